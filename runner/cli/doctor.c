/* SPDX-License-Identifier: Apache-2.0 */
/* holt doctor: tries every layer on this host, and then a whole sandbox, and names a cure for each
 * failure. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json-write.h"
#include "child/identity.h"
#include "child/landlock.h"
#include "cli/fail.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "policy/plan.h"
#include "sandbox/diagnose.h"
#include "sandbox/launch.h"
#include "sandbox/probe.h"
#include "sandbox/supervise.h"
#include "streams/stdio.h"

typedef struct DoctorOptions {
        bool json;
} DoctorOptions;

static const Option doctor_options[] = {
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(DoctorOptions, json),
          NULL },
};

static const OptionSyntax doctor_syntax = {
        .verb = "doctor",
        .usage = "[--json]",
        .summary = "Tests every layer of the sandbox on this host, then a whole sandbox. Says how "
                   "to fix what fails.\nChanges nothing on the host.",
        .options = doctor_options,
        .options_count = ELEMENTSOF(doctor_options),
        .help_epilog = "Exit codes: 0 if holt run works here with every layer that its policy "
                       "needs, otherwise 125.",
};

/* One line of the table: a layer, or the whole sandbox. */
typedef struct Finding {
        const char *name, *what;
        bool works;
        bool needed; /* holt run fails without this layer */
        bool unused; /* this user's runs do not have the layer, and doctor does not try it */
        char note[160];
        Error error; /* set if the layer does not work */
} Finding;

enum { FINDING_SANDBOX = LAYER_MAX, FINDING_NETWORK, FINDINGS_MAX };

static void try_layer(Layer layer, bool from_root, Finding *finding) {
        const bool unused = layer == LAYER_IDMAP && !from_root;
        const char *step;
        int r = probe_layer(layer, &step);

        *finding = (Finding){ .name = layer_table[layer].name,
                              .what = layer_table[layer].what,
                              .works = r == 0,
                              .needed = layer != LAYER_LANDLOCK && !unused,
                              .unused = unused };
        if (r < 0) {
                (void)error_layer(&finding->error, (int)layer, -r, "%s", step);
                (void)diagnose_layer(&finding->error);
        } else if (layer == LAYER_LANDLOCK) {
                (void)snprintf(finding->note, sizeof(finding->note), "ABI %d", landlock_abi());
        } else if (layer == LAYER_IDMAP) {
                (void)snprintf(finding->note, sizeof(finding->note),
                               unused ? "only root needs it"
                                      : "the test of the whole sandbox, below, includes it");
        } else if (layer == LAYER_LIMITS) {
                (void)snprintf(finding->note, sizeof(finding->note),
                               "rlimits: memory of each process, number of processes");
        }
}

/* shown: the working directory becomes the workspace. This is for root, because id-mapped mounts
 * depend on the file system. For other users there is no workspace. */
static int choose_workspace(Policy *policy, bool shown, Error *reterr) {
        int r = policy_set(policy, "filesystem.workspace.mode", shown ? "ro" : "none",
                           ORIGIN_CALLER, "doctor", reterr);

        if (r == 0 && shown)
                r = policy_set(policy, "filesystem.workspace.target", "/workspace", ORIGIN_CALLER,
                               "doctor", reterr);
        if (r == 0 && shown)
                r = policy_set(policy, "filesystem.allow_wide", "true", ORIGIN_CALLER, "doctor",
                               reterr);
        return r;
}

/* Makes the plan of "true" with the default preset of holt run. rule: a network rule, "" for a
 * network without rules, or NULL for no network. */
static int plan_true(const char *rule, LaunchPlan *ret, Error *reterr) {
        char cwd[PATH_MAX] = "/";
        const bool shown = geteuid() == 0 && getcwd(cwd, sizeof(cwd)) && cwd[0] == '/' &&
                           cwd[1] != '\0';
        const char *const argv[] = { "true", NULL }, *const env[] = { NULL };
        const PlanContext context = { .cwd = shown ? cwd : "/", .argv = argv, .env = env };
        _cleanup_(policy_clear) Policy policy = { 0 };
        int r = policy_preset(&policy, POLICY_PRESET_DEFAULT, "doctor", reterr);

        if (r < 0)
                return r;
        r = choose_workspace(&policy, shown, reterr);
        if (r == 0 && rule)
                r = policy_set(&policy, "network.mode", "allow", ORIGIN_CALLER, "doctor", reterr);
        if (r == 0 && rule && rule[0])
                r = policy_set(&policy, "network.allow", rule, ORIGIN_CALLER, "doctor", reterr);
        return r < 0 ? r : plan_make(&policy, &context, ret, reterr);
}

static int launch_plan(LaunchPlan *plan, Outcome *out, Error *reterr) {
        Launch launch = LAUNCH_NONE;
        Sandbox sandbox = SANDBOX_NONE;
        int r = launch_prepare(plan, NULL, &launch, reterr);

        if (r == 0)
                r = launch_start(&launch, &sandbox, reterr);
        if (r == 0)
                r = supervise(&launch, &sandbox, out, reterr);
        sandbox_clear(&sandbox);
        launch_clear(&launch);
        return r;
}

static int launch_true(const char *rule, Outcome *out, Error *reterr) {
        LaunchPlan plan = { 0 };
        int r = plan_true(rule, &plan, reterr);

        if (r == 0)
                r = stdio_open(NULL, reterr);
        if (r == 0)
                r = launch_plan(&plan, out, reterr);
        plan_clear(&plan);
        return r;
}

static void try_sandbox(Finding *finding) {
        Outcome out = { 0 };
        int r;

        *finding = (Finding){ .name = "sandbox",
                              .what = "a whole sandbox: holt run -- true",
                              .needed = true };
        r = launch_true(NULL, &out, &finding->error);
        finding->works = r == 0 && out.cause == CAUSE_EXITED && out.exit_code == 0;
        if (finding->works)
                (void)snprintf(finding->note, sizeof(finding->note), "in %.1f ms",
                               (double)out.usage.wall_us / 1000);
        else if (r == 0)
                (void)error_set(&finding->error, ERROR_SETUP, 0, "true ended with %d (%s)",
                                out.exit_code, cause_name(out.cause));
}

/* Tries a network with this rule. A launch by root gives up root's rights, so a child makes it, and
 * writes the finding to shared memory. */
static void try_network_rule(Finding *finding, const char *rule) {
        Outcome out = { 0 };
        pid_t pid = fork();

        if (pid > 0)
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        if (pid != 0)
                return;
        finding->works = launch_true(rule, &out, &finding->error) == 0;
        if (finding->works)
                (void)snprintf(
                        finding->note, sizeof(finding->note), "%s; %s",
                        out.network_level == EGRESS_LEVEL_TRUE
                                ? "level 2: programs get the errors of the real connections"
                                : "level 1: programs connect at once, and lose a "
                                  "connection that fails outside",
                        rule[0] ? "rules may have any number of ports"
                                : "this kernel cannot redirect ports, so rules may have 512");
        _exit(0);
}

/* Only holt run --net needs the network. */
static void try_network(Finding *finding) {
        *finding = (Finding){ .name = "network", .what = "a network by name: holt run --net NAME" };
        try_network_rule(finding, "name.invalid:*");
        if (!finding->works)
                try_network_rule(finding, "");
}

/* Marks idmap as failed if the sandbox failed there: only the whole sandbox tries this layer. */
static void blame_idmap(Finding *findings) {
        const Finding *sandbox = &findings[FINDING_SANDBOX];
        Finding *idmap = &findings[LAYER_IDMAP];

        if (sandbox->works || sandbox->error.kind != ERROR_LAYER ||
            sandbox->error.layer != LAYER_IDMAP)
                return;
        idmap->works = false;
        idmap->error = sandbox->error;
}

/* --- printing --- */

static void doctor_print_text(const Finding *findings, const struct utsname *host, uid_t uid) {
        (void)printf("Linux %s on %s, uid %u\n\n", host->release, host->machine, uid);
        for (size_t i = LAYER_USER; i < FINDINGS_MAX; i++) {
                const Finding *f = &findings[i];
                const char *cure = f->error.cure;
                char line[ERROR_SENTENCE_MAX];

                (void)printf("%-13s %-8s %s", f->name,
                             f->unused   ? "not used"
                             : f->works  ? "ok"
                             : f->needed ? "FAILS"
                                         : "not here",
                             f->what);
                (void)printf(f->note[0] ? " (%s)\n" : "\n", f->note);
                if (f->works)
                        continue;
                (void)printf("%22s %s%s%s\n", "",
                             error_line(f->error.text, strlen(f->error.text), line),
                             f->error.errnum ? ": " : "",
                             f->error.errnum ? error_errno_name(f->error.errnum) : "");
                while (*cure) {
                        size_t length = strcspn(cure, "\n");

                        (void)printf("%22s %s\n", "", error_line(cure, length, line));
                        cure += length;
                        cure += *cure == '\n';
                }
        }
}

static void doctor_print_json(const Finding *findings, const struct utsname *host, uid_t uid,
                              bool works) {
        JsonWriter w = { .pretty = true };

        json_write_object(&w, NULL);
        json_write_int(&w, "holt", 1);
        json_write_bool(&w, "works", works);
        json_write_string(&w, "kernel", host->release);
        json_write_string(&w, "machine", host->machine);
        json_write_uint(&w, "uid", uid);
        json_write_object(&w, "layers");
        for (size_t i = LAYER_USER; i < FINDINGS_MAX; i++) {
                const Finding *f = &findings[i];

                json_write_object(&w, f->name);
                json_write_bool(&w, "works", f->works);
                json_write_bool(&w, "needed", f->needed);
                json_write_string(&w, "what", f->what);
                json_write_string(&w, "note", f->note[0] ? f->note : NULL);
                json_write_string(&w, "message", f->works ? NULL : f->error.text);
                json_write_string(&w, "errno",
                                  f->works || !f->error.errnum ? NULL
                                                               : error_errno_name(f->error.errnum));
                json_write_string(&w, "cure", f->works || !f->error.cure[0] ? NULL : f->error.cure);
                json_write_end(&w);
        }
        json_write_end(&w);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                (void)fwrite(w.data, 1, w.length, stdout);
        json_write_clear(&w);
}

/* Tries the layers in a child, which leaves its findings in shared memory. If root runs doctor, the
 * child drops root's rights first, as a launch does. */
static void try_layers(Finding *findings) {
        Launch launch = LAUNCH_NONE;
        Error error;
        pid_t pid = fork();

        if (pid > 0)
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        if (pid != 0)
                return;
        if (identity_choose(&launch, &error) == 0 && launch.identity.from_root)
                (void)identity_take(&launch, &error);
        for (Layer layer = LAYER_USER; layer < LAYER_MAX; layer++)
                try_layer(layer, launch.identity.from_root, &findings[layer]);
        _exit(0);
}

static int doctor_examine(const DoctorOptions *options) {
        const uid_t uid = geteuid();
        Finding *findings = mmap(NULL, FINDINGS_MAX * sizeof(*findings), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct utsname host = { 0 };
        bool works = true;

        if (findings == MAP_FAILED) {
                perror("holt: doctor");
                return 125;
        }
        (void)uname(&host);
        try_layers(findings);
        try_network(&findings[FINDING_NETWORK]);
        try_sandbox(&findings[FINDING_SANDBOX]);
        blame_idmap(findings);
        for (size_t i = LAYER_USER; i < FINDINGS_MAX; i++)
                works &= findings[i].works || !findings[i].needed;
        if (options->json)
                doctor_print_json(findings, &host, uid, works);
        else
                doctor_print_text(findings, &host, uid);
        return works ? 0 : 125;
}

int cmd_doctor(int argc, char **argv) {
        DoctorOptions options = { 0 };
        OptionResult words = { 0 };
        Error error;
        int r = options_parse(&doctor_syntax, argc, (const char *const *)argv, &options, &words,
                              &error);

        if (r == 0 && words.help)
                options_help(&doctor_syntax, stdout);
        else if (r == 0 && words.operands_count > 0)
                r = error_set(&error, ERROR_USAGE, 0, "unexpected operand \"%s\"",
                              words.operands[0]);
        if (r < 0)
                r = fail_print(&error, fail_wants_json(argc, argv));
        else
                r = words.help ? 0 : doctor_examine(&options);
        options_clear(&words);
        return r;
}
