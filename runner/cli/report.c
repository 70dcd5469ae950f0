/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/beneath.h"
#include "base/json-write.h"
#include "base/sys.h"
#include "cli/git-hint.h"
#include "cli/moved.h"
#include "cli/network-hint.h"
#include "cli/message.h"
#include "cli/report-net.h"
#include "guards/guard.h"
#include "outcome/result.h"
#include "policy/network-fields.h"
#include "policy/syscalls/syscalls.h"

/* --- the file --- */

/* Duplicates an fd that the caller has already open, because opening its path again may be
 * forbidden. */
static int open_inherited(const char *path) {
        uint64_t fd;

        if (streq(path, "/dev/stdout"))
                return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (streq(path, "/dev/stderr"))
                return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        if (str_starts(path, "/dev/fd/") && str_to_uint(path + 8, INT_MAX, &fd) == 0)
                return fcntl((int)fd, F_DUPFD_CLOEXEC, 3);
        return -1;
}

/* Writes the result that stays in the file if SIGKILL kills holt, in place of the result of an
 * older run. */
static int report_start(int fd) {
        static const char lost[] = "{\"holt\": 1, \"cause\": \"lost\", \"exit_code\": 137}\n";
        struct stat st;

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        if (ftruncate(fd, 0) < 0 || pwrite(fd, lost, sizeof(lost) - 1, 0) < 0)
                return -errno;
        return 0;
}

static const struct {
        int errnum;
        const char *cure;
} open_cures[] = {
        { ENOENT, "The directory does not exist: make it, or correct the path." },
        { ENOTDIR, "A part of the path is a file, not a directory: correct the path." },
        { EISDIR, "The path is a directory: name a file in it." },
        { EACCES, "holt writes it with your rights: name a file that you may write." },
        { ELOOP, "The path contains a symlink in a directory that commands in the sandbox can "
                 "write. holt follows no symlink there." },
        { ENOSPC, "The disk is full. Free space on it, or name a file on another." },
};

int report_check_name(const char *name, Error *reterr) {
        int r;

        if (!streq(name, "-"))
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "--report needs a file, not \"-\"");
        return error_cure(
                reterr, r,
                "Use --json to print the result to stderr. For a file of that name, write ./-");
}

int report_open(const char *option, const char *path, const StrList *writable, int *ret_fd,
                Error *reterr) {
        int fd = open_inherited(path), r;

        if (fd < 0)
                fd = beneath_open(path, writable, O_WRONLY | O_CREAT | O_NOCTTY, 0644);
        r = fd < 0 ? fd : report_start(fd);
        if (r == 0) {
                *ret_fd = fd;
                return 0;
        }
        fd_close(fd);
        r = error_set(reterr, ERROR_USAGE, -r, "%s %s", option, path);
        for (size_t i = 0; i < ELEMENTSOF(open_cures); i++)
                if (open_cures[i].errnum == -r)
                        return error_cure(reterr, r, "%s", open_cures[i].cure);
        return r;
}

/* --- the document --- */

static void write_denials(JsonWriter *w, const RunResult *result) {
        const Denials *denials = &result->outcome.denials;

        json_write_array(w, "denials");
        for (unsigned i = 0; i < denials->count; i++) {
                const Denial *denial = &denials->items[i];

                json_write_object(w, NULL);
                result_write_denial(w, result->policy, &result->layers, denial, denial->count);
                json_write_end(w);
        }
        if (result->outcome.signal == SIGSYS)
                result_write_foreign(w);
        result_write_refusals(w, result->outcome.refusals);
        net_denials_write(w, result->outcome.net_denials, NULL, false);
        gateway_denials_write(w, result->outcome.gateway_denials, NULL);
        json_write_end(w);
}

static unsigned report_network_mode(const RunResult *result) {
        return result->plan ? result->plan->network : NETWORK_NONE;
}

static void write_network(JsonWriter *w, const RunResult *result) {
        json_write_object(w, "network");
        json_write_string(w, "mode", network_modes[report_network_mode(result)]);
        json_write_uint_or_null(w, "level", result->outcome.network_level);
        json_write_bool(w, "lost", result->outcome.network_lost);
        json_write_bool(w, "missed", result->outcome.symptoms.network_missed);
        json_write_uint(w, "denials_omitted",
                        net_denials_omitted(result->outcome.net_denials, NULL));
        json_write_end(w);
}

static void write_list(JsonWriter *w, const char *key, const StrList *list) {
        json_write_array(w, key);
        for (size_t i = 0; list && i < list->count; i++)
                json_write_string(w, NULL, list->items[i]);
        json_write_end(w);
}

static int write_document(JsonWriter *w, const RunResult *result) {
        const Outcome *out = &result->outcome;
        const ResultHead head = { .command = result->command,
                                  .cause = cause_name(out->cause),
                                  .exit_code = out->exit_code,
                                  .signal = out->signal,
                                  .error = result->error };

        json_write_object(w, NULL);
        json_write_int(w, "holt", 1);
        result_write_head(w, &head);
        result_write_usage(w, &out->usage, &out->oom_kills);
        result_write_layers(w, result->started ? &result->layers : NULL,
                            result->identity && result->identity->from_root);
        result_write_limits(w, result->plan);
        result_write_output(w, result->started && result->plan->output, out->output,
                            out->output_dropped);
        write_network(w, result);
        write_denials(w, result);
        net_denials_write_unreached(w, result->outcome.net_denials, NULL);
        json_write_array(w, "published");
        net_published_write(w, result->published);
        json_write_end(w);
        json_write_object(w, "routes");
        json_write_bool(w, "lost", out->gateway_lost);
        write_list(w, "tls_terminated", result->plan ? &result->plan->tls_hosts : NULL);
        json_write_end(w);
        limits_hit_write(w, &out->symptoms.limits_hit, result->plan, result->policy);
        write_list(w, "set_aside", result->moved);
        json_write_string(w, "replaced", out->replaced);
        write_list(w, "warnings", result->warnings);
        json_write_end(w);
        return json_write_finish(w);
}

/* Truncates the old content only after all is written. If the disk is full, the file gets the
 * result "lost" again. */
static int report_replace_file(int fd, const char *data, size_t length) {
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return message_write(fd, data, length);
        if (fcntl(fd, F_GETFL) & O_APPEND)
                return ftruncate(fd, 0) < 0 ? -errno : sys_write_all(fd, data, length);
        r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : sys_write_all(fd, data, length);
        if (r == 0 && ftruncate(fd, (off_t)length) < 0)
                r = -errno;
        if (r < 0)
                (void)report_start(fd);
        return r;
}

int report_replace(int fd, const char *path, const JsonWriter *document, Error *reterr) {
        int r = document->error;

        if (r == 0)
                r = report_replace_file(fd, document->data, document->length);
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot write the report %s", path) : 0;
}

int report_write(int fd, const char *path, const RunResult *result, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };

        (void)write_document(&w, result);
        return report_replace(fd, path, &w, reterr);
}

void report_print_document(const JsonWriter *document, FILE *out) {
        if (document->error == 0)
                (void)fwrite(document->data, 1, document->length, out);
}

void report_print_json(const RunResult *result, FILE *out) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        (void)write_document(&w, result);
        report_print_document(&w, out);
}

/* --- for people --- */

void report_print_published(const StrList *wanted, const NetPublished *published, FILE *out) {
        for (size_t i = 0; i < wanted->count && i < published->count; i++) {
                NetPort port;
                const char *why;
                char text[NET_PORT_TEXT];

                if (net_publish_parse(wanted->items[i], &port, &why) == 0 && port.host == 0)
                        (void)fprintf(out, "holt: published %s -> %u\n",
                                      net_port_host_text(&published->items[i], text), port.inside);
        }
}

void report_print_warnings(const StrList *warnings, FILE *out) {
        for (size_t i = 0; i < warnings->count; i++)
                (void)fprintf(out, "holt: %s\n", warnings->items[i]);
}

static void print_limit(const RunResult *result, const char *path, FILE *out) {
        _cleanup_free_ char *text = policy_limit_text(result->policy, policy_field(path));

        (void)fprintf(out, "%s)\n", text ? text : "the policy");
}

void report_unrecorded(const char *why, FILE *out) {
        if (why[0])
                (void)fprintf(out,
                              "holt: this is not in the session's history yet: %s\n  Free disk "
                              "space, or remove sessions that you do not need: holt rm NAME.\n",
                              why);
}

void report_timeout(uint64_t usec, const char *limit, FILE *out) {
        _cleanup_free_ char *time = policy_number_text(policy_field("limits.timeout"), usec);

        (void)fprintf(out, "holt: timed out after %s (%s)\n", time ? time : "its limit", limit);
}

static void print_timeout(const RunResult *result, FILE *out) {
        _cleanup_free_ char *limit = policy_limit_text(result->policy,
                                                       policy_field("limits.timeout"));

        report_timeout(result->plan->timeout, limit ? limit : "the policy", out);
}

/* If the caller's own limit is lower, or the policy has none, the caller's applies, and the policy
 * is not the reason. */
static bool ended_by_file_size(const RunResult *result) {
        return result->outcome.cause == CAUSE_SIGNALED && result->outcome.signal == SIGXFSZ &&
               result->plan->file_size && result->plan->file_size == result->policy->file_size &&
               !(result->layers.missing & LAYER_BIT(LAYER_LIMITS));
}

static void print_file_size(const RunResult *result, FILE *out) {
        static const char path[] = "limits.file_size";
        _cleanup_free_ char *size = policy_number_text(policy_field(path), result->plan->file_size);

        (void)fprintf(out, "holt: a file of the command reached the size limit of %s (",
                      size ? size : "its limit");
        print_limit(result, path, out);
}

/* Prints which memory ran out, and a cure. */
static void print_memory(const OomKills *kills, FILE *out) {
        _cleanup_free_ char *limit = NULL;

        if (kills->limit)
                limit = policy_number_text(policy_field("limits.memory"), kills->limit);
        if (limit)
                (void)fprintf(
                        out,
                        "the limit is %s\n  It is the limit of the container or service that holt "
                        "runs in (memory.max of its cgroup). Raise it, or run less in parallel.\n",
                        limit);
        else
                (void)fputs("the machine has no more\n  Give more to the machine, or to the "
                            "container or service that holt runs in; or run less in parallel.\n",
                            out);
}

static void print_oom(const RunResult *result, FILE *out) {
        const OomKills *kills = &result->outcome.oom_kills;

        if (result->outcome.cause == CAUSE_OOM)
                (void)fputs("holt: the kernel killed the command because memory ran out: ", out);
        else
                (void)fprintf(out,
                              "holt: the kernel killed %" PRIu64
                              " process%s because memory ran out: ",
                              kills->count, kills->count == 1 ? "" : "es");
        print_memory(kills, out);
}

/* Prints a hint for exit code 137: a SIGKILL, or the way in which a shell reports it for a
 * child. */
static void print_oom_hint(const RunResult *result, FILE *out) {
        if (result->outcome.exit_code != 128 + SIGKILL)
                return;
        (void)fputs("holt: the command may have been killed because memory ran out: the kernel has "
                    "killed processes of this machine during the run\n  The kernel log names them: "
                    "dmesg, or journalctl -k.\n",
                    out);
}

static const char *bytes_text(uint64_t count, char buf[32]) {
        (void)snprintf(buf, 32, "%" PRIu64 " byte%s", count, count == 1 ? "" : "s");
        return buf;
}

static void print_output_limit(const RunResult *result, FILE *out) {
        static const char path[] = "limits.output";
        char buf[32];
        _cleanup_free_ char *size = policy_number_text(policy_field(path), result->plan->output);

        (void)fprintf(out,
                      "holt: ended the command, and dropped %s of output beyond the limit of %s (",
                      bytes_text(result->outcome.output_dropped, buf), size ? size : "its limit");
        print_limit(result, path, out);
}

/* Reports nothing if the reader has left by itself. */
static void print_cut_short(const Outcome *outcome, FILE *out) {
        char buf[32];

        if (outcome->output_dropped &&
            (outcome->cause == CAUSE_TIMEOUT || outcome->cause == CAUSE_KILLED))
                (void)fprintf(out, "holt: dropped %s of output\n",
                              bytes_text(outcome->output_dropped, buf));
}

void report_limit(const LimitText *limit, const char *who_raises, FILE *out) {
        const PolicyField *field = limit->field ? policy_field(limit->field) : NULL;
        _cleanup_free_ char *value = field ? policy_number_text(field, limit->value) : NULL;

        (void)fprintf(out, "holt: %s%s", limit->certain ? "" : "probably, ", limit->reason);
        if (field && value && limit->option)
                (void)fprintf(out, " (limit %s: %s); %s%s raises it\n", limit->name, value,
                              who_raises, limit->option);
        else if (field && value)
                (void)fprintf(out, " (limit %s: %s); %s of a policy file raises it\n", limit->name,
                              value, limit->field);
        else
                (void)fprintf(out, " (limit %s)%s%s\n", limit->name, limit->why_not ? "; " : "",
                              limit->why_not ? limit->why_not : "");
}

/* The kills of the OOM killer and SIGXFSZ have their own lines. */
static void print_limits_hit(const RunResult *result, FILE *out) {
        LimitText limit;

        for (unsigned i = 0; limits_hit_text(&result->outcome.symptoms.limits_hit, i, result->plan,
                                             result->policy, &limit);
             i++)
                if (!(streq(limit.name, "memory") &&
                      result->outcome.symptoms.limits_hit.memory_is_host) &&
                    !(streq(limit.name, "file_size") && ended_by_file_size(result)))
                        report_limit(&limit, "", out);
}

static void print_cause(const RunResult *result, FILE *out) {
        const OomKills *kills = &result->outcome.oom_kills;

        if (result->outcome.cause == CAUSE_TIMEOUT)
                print_timeout(result, out);
        if (result->outcome.cause == CAUSE_OUTPUT_LIMIT)
                print_output_limit(result, out);
        print_cut_short(&result->outcome, out);
        if (ended_by_file_size(result))
                print_file_size(result, out);
        if (result->outcome.cause == CAUSE_LOST)
                (void)fputs("holt: the sandbox was killed from outside\n", out);
        if (kills->count > 0)
                (kills->scope == OOM_CGROUP ? print_oom : print_oom_hint)(result, out);
        print_limits_hit(result, out);
}

void report_denial(const char *name, uint64_t count, const char *answer, const char *why_not,
                   const char *who_allows, FILE *out) {
        (void)fprintf(out, "holt: refused %s (%" PRIu64 "x, %s); ", name, count, answer);
        if (why_not)
                (void)fprintf(out, "%s\n", why_not);
        else
                (void)fprintf(out, "%s--allow-syscall %s allows it\n", who_allows, name);
}

static void print_denial(const RunResult *result, const Denial *denial, FILE *out) {
        const char *name = syscall_name(denial->nr);
        const char *why_not = result_why_not(result->policy, &result->layers, denial);

        if (!why_not && result->policy && result->policy->without_options)
                why_not = "syscalls.allow of a policy file can allow it";
        report_denial(name ? name : "?", denial->count,
                      error_errno_name(syscall_refusal(denial->nr)), why_not, "", out);
}

void report_refusal(const char *path, const char *answer, const char *reason, const char *grant,
                    const char *why_not, const char *who_allows, FILE *out) {
        char name[256];

        (void)str_quote(path, name, sizeof(name));
        if (!answer[0]) {
                (void)fprintf(out,
                              "holt: maybe refused %s: %s; %s%s may help%s. holt could not read "
                              "the command's messages; with --output 1MiB, it can\n",
                              name, reason, grant[0] ? who_allows : "",
                              grant[0] ? grant : "no option",
                              str_starts(grant, "--ro ") ? ", or --rw if it writes there" : "");
                return;
        }
        (void)fprintf(out, "holt: refused %s (%s): %s; ", name, answer, reason);
        if (grant[0])
                (void)fprintf(out, "%s%s allows it, if you trust the command with that\n",
                              who_allows, grant);
        else
                (void)fprintf(out, "%s\n", why_not[0] ? why_not : "no option can name this path");
}

static void print_refusals(const Refusals *refusals, FILE *out) {
        for (unsigned i = 0; refusals && i < refusals->count && i < REPORT_REFUSALS_MAX; i++) {
                const Refusal *refusal = &refusals->items[i];
                const char *why_not = refused_why_not(refusal);
                _cleanup_free_ char *grant = refused_grant(refusal);

                report_refusal(refusal->path ? refusal->path : "", refused_answer(refusal),
                               refused_reason(refusal), grant ? grant : "", why_not ? why_not : "",
                               "", out);
        }
}

static void print_denials(const RunResult *result, FILE *out) {
        const Denials *denials = &result->outcome.denials;

        for (unsigned i = 0; i < denials->count; i++)
                print_denial(result, &denials->items[i], out);
        if (result->outcome.signal == SIGSYS)
                report_denial(RESULT_FOREIGN, 1, "SIGSYS", result_foreign_why_not, "", out);
        print_refusals(result->outcome.refusals, out);
        report_net_denials(result->outcome.net_denials, out);
        report_gateway_denials(result->outcome.gateway_denials, out);
}

static void print_moved(const RunResult *result, FILE *out) {
        const PlanMount *workspace = result->plan ? plan_workspace(result->plan) : NULL;

        if (result->moved)
                moved_report(result->moved,
                             &(const MovedFrom){
                                     .why = result->outcome.replaced ? MOVED_REPLACED : MOVED_MADE,
                                     .workspace = workspace ? workspace->source : NULL },
                             out);
}

/* The command may have left any colours on its terminal, even ones that hide text. */
static void reset_colours(const RunResult *result, FILE *out) {
        const Outcome *outcome = &result->outcome;
        const bool talks = result->error || outcome->replaced ||
                           (result->moved && result->moved->count > 0) ||
                           (outcome->exit_code != 0 &&
                            (outcome->cause != CAUSE_EXITED || outcome->denials.count > 0 ||
                             outcome->refusals || outcome->symptoms.limits_hit.hit));

        if (talks && result->started && isatty(STDERR_FILENO))
                (void)fputs("\033[0m", out);
}

void report_replaced(const char *what, const char *path, bool set_aside, FILE *out) {
        char name[256];

        (void)str_quote(path, name, sizeof(name));
        if (what)
                (void)fprintf(
                        out,
                        "holt: stopped %s because %s was replaced or created on the host, or "
                        "created by a command inside; the policy protects or hides this path\n",
                        what, name);
        else
                (void)fprintf(out,
                              "holt: %s was replaced or created on the host, or created by a "
                              "command inside, shortly before the command ended; the policy "
                              "protects or hides this path\n  The "
                              "command may have read the new file.\n",
                              name);
        if (!set_aside)
                (void)fputs("  The next start protects or hides the new file.\n", out);
}

void report_stopped_for(const char *path, FILE *out) {
        char name[256];

        (void)fprintf(out,
                      "holt: %s was replaced or created on the host, or created by a command "
                      "inside; the policy protects or hides this path\n  So holt killed everything "
                      "that ran in the session before this command. To avoid this, run holt stop "
                      "before you change the file.\n",
                      str_quote(path, name, sizeof(name)));
}

static void print_replaced(const RunResult *result, FILE *out) {
        const Outcome *outcome = &result->outcome;

        if (outcome->replaced)
                report_replaced(outcome->cause == CAUSE_KILLED ? "the command" : NULL,
                                outcome->replaced, result->moved && result->moved->count > 0, out);
}

static void print_git_hint(const RunResult *result, FILE *out) {
        const PlanMount *workspace = result->plan ? plan_workspace(result->plan) : NULL;
        const GitHint hint = { .exit_code = result->outcome.exit_code,
                               .workspace = workspace ? workspace->real : NULL,
                               .argv = result->command,
                               .text = result->outcome.said,
                               .length = result->outcome.said_length,
                               .here = result->plan && result->plan->cwd_here,
                               .identity = result->policy && result->policy->git_identity,
                               .before = "" };

        if (result->outcome.cause == CAUSE_EXITED)
                (void)git_hint_print(&hint, out);
}

/* Adds "NAME URL" of each route. The text of a route begins with {"name":"NAME","upstream":"URL"
 * (policy/routes/route.h). The light holt, which has no JSON, never has one. */
static void report_add_routes(const LaunchPlan *plan, StrList *ret) {
        static const char name[] = "{\"name\":\"", url[] = "\",\"upstream\":\"";

        for (size_t i = 0; plan && i < plan->routes.count; i++) {
                const char *text = plan->routes.items[i];
                const char *at = str_starts(text, name) ? strstr(text, url) : NULL;
                const char *first = text + strlen(name), *rest = at ? at + strlen(url) : "";
                char *item = at ? str_format("%.*s %.*s", (int)(at - first), first,
                                             (int)strcspn(rest, "\""), rest)
                                : NULL;

                if (item)
                        (void)strlist_take(ret, item);
        }
}

void report_print_text(const RunResult *result, FILE *out) {
        _cleanup_(strlist_clear) StrList routes = { 0 };

        report_add_routes(result->plan, &routes);
        reset_colours(result, out);
        if (result->error)
                error_print(result->error, out);
        else if (result->outcome.exit_code != 0) {
                print_cause(result, out);
                print_denials(result, out);
                print_git_hint(result, out);
                network_hint_print(
                        &(const NetworkHint){
                                .mode = report_network_mode(result),
                                .text = result->outcome.said,
                                .length = result->outcome.said_length,
                                .publish = result->plan ? &result->plan->net_publish : NULL,
                                .import = result->plan ? &result->plan->net_import : NULL,
                                .routes = &routes,
                                .asked = result->policy && result->policy->net_asked > 0,
                                .told = result->outcome.net_denials != NULL,
                                .by_project = result->policy &&
                                              policy_of_project(result->policy, "network.mode") },
                        out);
        }
        if (result->outcome.network_lost)
                report_lost(NULL, "network", "holt-egress", out);
        if (result->outcome.gateway_lost)
                report_lost(NULL, "routes", "holt-gateway", out);
        print_replaced(result, out);
        print_moved(result, out);
}
