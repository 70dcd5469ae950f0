/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/result.h"

#include <signal.h>
#include <stdio.h>

#include "outcome/host-gates.h"
#include "policy/syscalls/syscalls.h"

/* Returns a name such as "SIGTERM", or "SIG34" in buf. */
static const char *result_signal_name(int signal, char buf[16]) {
        static const char *const names[] = {
                [SIGHUP] = "SIGHUP",   [SIGINT] = "SIGINT",   [SIGQUIT] = "SIGQUIT",
                [SIGILL] = "SIGILL",   [SIGTRAP] = "SIGTRAP", [SIGABRT] = "SIGABRT",
                [SIGBUS] = "SIGBUS",   [SIGFPE] = "SIGFPE",   [SIGKILL] = "SIGKILL",
                [SIGUSR1] = "SIGUSR1", [SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2",
                [SIGPIPE] = "SIGPIPE", [SIGALRM] = "SIGALRM", [SIGTERM] = "SIGTERM",
                [SIGXCPU] = "SIGXCPU", [SIGXFSZ] = "SIGXFSZ", [SIGSYS] = "SIGSYS",
        };

        if (signal > 0 && (size_t)signal < ELEMENTSOF(names) && names[signal])
                return names[signal];
        (void)snprintf(buf, 16, "SIG%d", signal);
        return buf;
}

void result_write_error(JsonWriter *w, const Error *error) {
        char sentence[ERROR_SENTENCE_MAX];

        if (!error) {
                json_write_null(w, "error");
                return;
        }
        json_write_object(w, "error");
        json_write_string(w, "kind", error_kind_name(error->kind));
        json_write_string(w, "message", error_sentence(error, sentence));
        json_write_string(w, "errno", error->errnum > 0 ? error_errno_name(error->errnum) : NULL);
        json_write_string(w, "layer",
                          error->kind == ERROR_LAYER ? layer_table[error->layer].name : NULL);
        json_write_string(w, "cure", error->cure[0] ? error->cure : NULL);
        json_write_end(w);
}

void result_write_head(JsonWriter *w, const ResultHead *head) {
        char buf[16];

        json_write_array(w, "command");
        for (const char *const *word = head->command; word && *word; word++)
                json_write_string(w, NULL, *word);
        json_write_end(w);
        outcome_write_end(w, head->cause, head->exit_code);
        json_write_string(w, "signal", head->signal ? result_signal_name(head->signal, buf) : NULL);
        result_write_error(w, head->error);
}

void result_write_output(JsonWriter *w, bool counted, uint64_t bytes, uint64_t dropped) {
        if (!counted)
                return json_write_null(w, "output");
        json_write_object(w, "output");
        json_write_uint(w, "bytes", bytes);
        json_write_uint(w, "dropped_bytes", dropped);
        json_write_end(w);
}

void result_write_usage(JsonWriter *w, const Usage *usage, const OomKills *kills) {
        json_write_object(w, "usage");
        json_write_uint(w, "wall_us", usage->wall_us);
        json_write_uint(w, "user_us", usage->user_us);
        json_write_uint(w, "system_us", usage->system_us);
        json_write_uint(w, "max_rss_bytes", usage->max_rss);
        if (kills && kills->scope == OOM_CGROUP)
                json_write_uint(w, "oom_kills", kills->count);
        else if (kills)
                json_write_null(w, "oom_kills");
        json_write_end(w);
}

/* Returns "on" with details, or "off" with the reason. */
static const char *layer_state(const LayerState *layers, bool from_root, Layer layer,
                               char buf[64]) {
        if (layers->missing & LAYER_BIT(layer))
                return "off: this host refuses it, and --allow-degraded accepts that";
        if (layers->switched_off & LAYER_BIT(layer))
                return "off: by policy";
        if (layer == LAYER_IDMAP && !from_root)
                return "off: not run by the host's root, so files keep their owners";
        if (layer == LAYER_LANDLOCK && !layers->landlock_abi)
                return "off: this kernel does not have it";
        if (layer != LAYER_LANDLOCK)
                return "on";
        (void)snprintf(buf, 64, "on: ABI %d", layers->landlock_abi);
        return buf;
}

void result_write_layers(JsonWriter *w, const LayerState *layers, bool from_root) {
        json_write_object(w, "layers");
        for (Layer layer = LAYER_USER; layers && layer < LAYER_MAX; layer++) {
                char buf[64];

                json_write_string(w, layer_table[layer].name,
                                  layer_state(layers, from_root, layer, buf));
        }
        json_write_end(w);
}

void result_write_limits(JsonWriter *w, const LaunchPlan *plan) {
        json_write_object(w, "limits");
        for (size_t i = 0; plan && i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];

                if (field->result)
                        json_write_uint_or_null(w, field->result, plan_limit(plan, field));
        }
        json_write_end(w);
}

static bool is_denied(const Policy *policy, const Denial *denial) {
        const char *name = syscall_name(denial->nr), *group = syscall_group(denial->nr);

        return policy && name &&
               (strlist_has(&policy->syscalls_deny, name) ||
                strlist_has(&policy->syscalls_deny, group));
}

/* Whether the call makes or enters a namespace. */
static bool makes_namespace(const char *name) {
        static const char *const makers[] = { "clone", "unshare", "setns" };

        for (size_t i = 0; name && i < ELEMENTSOF(makers); i++)
                if (streq(name, makers[i]))
                        return true;
        return false;
}

const char *result_why_not(const Policy *policy, const LayerState *layers, const Denial *denial) {
        const StrList *allow = policy ? &policy->syscalls_allow : NULL;
        const char *argument = syscall_refused_argument(denial->nr);

        if (is_denied(policy, denial))
                return "the policy denies it (syscalls.deny)";
        if (argument)
                return argument;
        /* A grant would not help: after the namespace, such a program mounts file systems, which
         * Landlock refuses. */
        if (makes_namespace(syscall_name(denial->nr)) && layers->landlock_abi > 0)
                return "namespaces are not available in a sandbox with Landlock; switch the "
                       "program's own sandbox off inside (--no-sandbox or similar)";
        /* Landlock refuses to change mounts, even in a user namespace of the command's own. */
        if (!syscall_grantable(denial->nr, layers->landlock_abi > 0 ? NULL : allow))
                return "it needs a capability, and no command in a sandbox has one";
        return host_gate_why(denial->nr);
}

/* Writes the part of a policy that allows the call; null if name is NULL. */
static void result_write_syscall_policy(JsonWriter *w, const char *name) {
        if (!name)
                return json_write_null(w, "policy");
        json_write_object(w, "policy");
        json_write_object(w, "syscalls");
        json_write_array(w, "allow");
        json_write_string(w, NULL, name);
        for (int i = 0; i < 3; i++)
                json_write_end(w);
}

void result_write_denial(JsonWriter *w, const Policy *policy, const LayerState *layers,
                         const Denial *denial, uint64_t count) {
        const char *why_not = result_why_not(policy, layers, denial);
        const bool option = !why_not && !(policy && policy->without_options);
        const char *name = syscall_name(denial->nr);
        char number[32], grant[80];

        (void)snprintf(number, sizeof(number), "system call %u", denial->nr);
        (void)snprintf(grant, sizeof(grant), "--allow-syscall %s", name ? name : "");
        json_write_string(w, "layer", "seccomp");
        json_write_string(w, "what", name ? name : number);
        json_write_uint(w, "count", count);
        json_write_string(w, "answer", error_errno_name(syscall_refusal(denial->nr)));
        json_write_null(w, "path");
        json_write_string(w, "reason", "the policy does not allow this system call");
        json_write_string(w, "grant", option ? grant : NULL);
        result_write_syscall_policy(w, why_not ? NULL : name);
        json_write_string(w, "why_not", why_not);
}

void result_write_refusals(JsonWriter *w, const Refusals *refusals) {
        for (unsigned i = 0; refusals && i < refusals->count; i++) {
                json_write_object(w, NULL);
                refused_write(w, &refusals->items[i]);
                json_write_end(w);
        }
}

const char result_foreign_why_not[] = "no sandbox runs programs that were built for another ABI "
                                      "than the kernel's own (32-bit, x32): use a 64-bit build";

void result_write_foreign_members(JsonWriter *w) {
        json_write_string(w, "layer", "seccomp");
        json_write_string(w, "what", RESULT_FOREIGN);
        json_write_uint(w, "count", 1);
        json_write_string(w, "answer", "SIGSYS");
        json_write_null(w, "path");
        json_write_string(w, "reason", "every system call of another ABI is refused");
        json_write_null(w, "grant");
        json_write_null(w, "policy");
        json_write_string(w, "why_not", result_foreign_why_not);
}

void result_write_foreign(JsonWriter *w) {
        json_write_object(w, NULL);
        result_write_foreign_members(w);
        json_write_end(w);
}
