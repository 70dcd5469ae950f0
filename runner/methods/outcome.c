/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of the end of a command or a run, in replies. keeper/outcome.c writes them. */
#include "methods/area.h"

const char *const method_causes[] = { "exited",       "signaled", "timeout",
                                      "output_limit", "killed",   "oom",
                                      "lost",         "error",    NULL };
static_assert(ELEMENTSOF(method_causes) == CAUSE_MAX + 1, "every cause is listed");

static const RpcField usage_fields[] = {
        { "wall_us", RPC_UINT, RPC_OR_NULL, "time from start to end, in microseconds" },
        { "user_us", RPC_UINT, RPC_OR_NULL, "processor time in user mode, in microseconds" },
        { "system_us", RPC_UINT, RPC_OR_NULL, "processor time in the kernel, in microseconds" },
        { "max_rss_bytes", RPC_UINT, RPC_OR_NULL, "memory of the largest process at its peak" },
};
const RpcShape method_usage = {
        .name = "Usage",
        .help = "time and memory that were used; null if not known. That of "
                "the shell is in steps of 10 ms, and without its memory",
        RPC_FIELDS(usage_fields)
};

static const RpcField grants_fields[] = {
        { "grants", RPC_STRINGS, RPC_ALWAYS, "the grants, such as \"net:example.org:443\"" },
};
static const RpcShape grants_shape = { .name = "Grants",
                                       .help = "parameters of session.allow",
                                       RPC_FIELDS(grants_fields) };

static const char *const grant_methods[] = { "session.allow", NULL };
static const RpcField grant_call_fields[] = {
        { "method", RPC_STRING, RPC_ALWAYS, "name of the method", .values = grant_methods },
        { "params", RPC_SHAPE, RPC_ALWAYS, "parameters of the method, except for session",
          .shape = &grants_shape },
};
static const RpcShape grant_call_shape = { .name = "GrantCall",
                                           .help = "a request that allows a refused host",
                                           RPC_FIELDS(grant_call_fields) };

static const char *const denial_layers[] = { "seccomp", "filesystem", "network", "route", NULL };

static const RpcField denial_fields[] = {
        { "layer", RPC_STRING, RPC_ALWAYS, "the layer that refused it", .values = denial_layers },
        { "what", RPC_STRING, RPC_ALWAYS,
          "the system call, the path, the host or the request that was refused" },
        { "count", RPC_UINT, RPC_ALWAYS,
          "how often it was refused, or the number of paths that this entry stands for" },
        { "answer", RPC_STRING, RPC_ALWAYS,
          "the errno that the program got, \"SIGSYS\", or the status of a response; \"\" if the "
          "path is only a word of "
          "the command line, and so may not be the cause" },
        { "path", RPC_STRING, RPC_OR_NULL, "the path, as the command named it" },
        { "reason", RPC_STRING, RPC_ALWAYS, "why it was refused" },
        { "grant", RPC_STRING, RPC_OR_NULL, "the option of holt create that would allow it" },
        { "policy", RPC_OBJECT, RPC_OR_NULL, "the part of a policy that would allow it",
          .component = RPC_POLICY_PART },
        { "why_not", RPC_STRING, RPC_OR_NULL, "why no option allows it" },
        { "call", RPC_SHAPE, RPC_SOMETIMES,
          "the request that allows a host while the session lives", .shape = &grant_call_shape },
};
static const RpcShape denial_shape = { .name = "Denial",
                                       .help = "something that the policy refused",
                                       RPC_FIELDS(denial_fields) };

static const RpcField unreached_fields[] = {
        { "what", RPC_STRING, RPC_ALWAYS, "the host, and the port if it is known" },
        { "count", RPC_UINT, RPC_ALWAYS, "how often" },
        { "answer", RPC_STRING, RPC_ALWAYS, "the errno of the connection, or \"NXDOMAIN\"" },
        { "reason", RPC_STRING, RPC_OR_NULL, "more about the failure, if it is known" },
};
static const RpcShape unreached_shape = { .name = "Unreached",
                                          .help = "a host that is allowed but was not reached",
                                          RPC_FIELDS(unreached_fields) };

static const char *const limit_names[] = { "memory", "processes", "open_files",
                                           "disk",   "file_size", NULL };
static_assert(ELEMENTSOF(limit_names) == LIMIT_KIND_MAX + 1, "every limit is listed");

static const RpcField limit_hit_fields[] = {
        { "limit", RPC_STRING, RPC_ALWAYS, "name of the limit", .values = limit_names },
        { "certain", RPC_BOOL, RPC_ALWAYS, "false if only the command's messages say so" },
        { "reason", RPC_STRING, RPC_ALWAYS, "what happened" },
        { "value", RPC_UINT, RPC_OR_NULL, "the limit, in the unit of the field" },
        { "option", RPC_STRING, RPC_OR_NULL, "the option of holt create that raises it" },
        { "field", RPC_STRING, RPC_OR_NULL, "the field of a policy that raises it" },
        { "why_not", RPC_STRING, RPC_OR_NULL, "why no option raises it" },
};
static const RpcShape limit_hit_shape = { .name = "LimitHit",
                                          .help = "a limit of the sandbox that was reached",
                                          RPC_FIELDS(limit_hit_fields) };

#define NETWORK_MISSED_HELP                                                                        \
        "true if the messages of a failed command say that it did not reach a host, and no "       \
        "denial names the host; always missing if the mode of the network is \"host\""

/* Written by keeper_write_refused(). */
#define NETWORK_FIELDS(when)                                                                       \
        { "unreached", RPC_SHAPES, RPC_SOMETIMES,                                                  \
          when "allowed hosts that were not reached while the command ran",                        \
          .shape = &unreached_shape },                                                             \
                { "denials_omitted", RPC_UINT, RPC_SOMETIMES,                                      \
                  when                                                                             \
                  "number of refused or failed connections that are in neither of these lists" },  \
                { "network_lost", RPC_BOOL, RPC_SOMETIMES,                                         \
                  when "true if holt-egress has ended; the session then has no network until it "  \
                       "stops" },                                                                  \
        {                                                                                          \
                "routes_lost", RPC_BOOL, RPC_SOMETIMES,                                            \
                        when                                                                       \
                        "true if holt-gateway has ended; the session then has no routes until it " \
                        "stops"                                                                    \
        }

static const RpcField refused_fields[] = {
        { "denials", RPC_SHAPES, RPC_ALWAYS,
          "the refused paths; with \"running\", also the calls, hosts and requests",
          .shape = &denial_shape },
        { "limits_hit", RPC_SHAPES, RPC_ALWAYS, "limits that the command reached",
          .shape = &limit_hit_shape },
        { "network_missed", RPC_BOOL, RPC_SOMETIMES, NETWORK_MISSED_HELP },
        NETWORK_FIELDS("with \"running\": "),
        { "stderr", RPC_STRING, RPC_SOMETIMES,
          "only without the parameters stderr and argv: the end of the stderr that holt itself "
          "has read, in base64; its refused paths and limits are in the command's result" },
};
const RpcShape method_refused = { .name = "Refused", RPC_FIELDS(refused_fields) };

static const RpcField outcome_fields[] = {
        { "id", RPC_STRING, RPC_ALWAYS, "id of the process, such as \"p1\"" },
        { "cause", RPC_STRING, RPC_ALWAYS, "how the command ended", .values = method_causes },
        { "exit_code", RPC_UINT, RPC_ALWAYS,
          "exit code of the command; 128 + n after signal n, 124 after a timeout" },
        { "timeout_us", RPC_UINT, RPC_OR_NULL, "the time limit that applied, in microseconds" },
        { "timeout_by_project", RPC_BOOL, RPC_SOMETIMES,
          "true if timeout_us is the limit of the project's .holt.json; timeout_ms can lower it" },
        { "usage", RPC_SHAPE, RPC_ALWAYS, "time and memory that the command used",
          .shape = &method_usage },
        { "stdout_dropped", RPC_UINT, RPC_ALWAYS, "bytes of stdout that were not kept" },
        { "stderr_dropped", RPC_UINT, RPC_ALWAYS, "bytes of stderr that were not kept" },
        { "denials", RPC_SHAPES, RPC_ALWAYS,
          "the calls, paths and hosts that were refused while the command ran",
          .shape = &denial_shape },
        NETWORK_FIELDS(""),
        { "network_missed", RPC_BOOL, RPC_SOMETIMES, NETWORK_MISSED_HELP },
        { "limits_hit", RPC_SHAPES, RPC_ALWAYS, "limits that the command reached, if it failed",
          .shape = &limit_hit_shape },
        { "set_aside", RPC_STRINGS, RPC_ALWAYS,
          "new names of files that holt has set aside at protected paths; relative to the "
          "workspace, or absolute" },
        { "still_aside", RPC_STRINGS, RPC_SOMETIMES,
          "files of the host that were set aside earlier and still have their new names" },
        { "unguarded", RPC_STRING, RPC_SOMETIMES,
          "why a file at a protected path could not be set aside" },
        { "replaced", RPC_STRING, RPC_OR_NULL,
          "path of the file that the host replaced, if holt stopped the sandbox because of it" },
        { "stopped_for", RPC_STRING, RPC_SOMETIMES,
          "path of a file that the host replaced, if holt stopped the session because of it "
          "before this call; only the next result has it" },
        { "unrecorded", RPC_STRING, RPC_SOMETIMES, "why the call is not in the history yet" },
};
const RpcShape method_outcome = { .name = "Outcome", RPC_FIELDS(outcome_fields) };

static const RpcField ended_fields[] = {
        { "signal", RPC_UINT, RPC_OR_NULL, "the signal that ended the command" },
        { "stdout_bytes", RPC_UINT, RPC_ALWAYS, "bytes that the command wrote to stdout" },
        { "stderr_bytes", RPC_UINT, RPC_ALWAYS, "bytes that the command wrote to stderr" },
        { "stream_error", RPC_STRING, RPC_SOMETIMES,
          "why holt could not write or read a file that came with the request" },
};
const RpcShape method_ended = { .name = "Ended",
                                .help = "how a command ended",
                                RPC_FIELDS(ended_fields),
                                .base = &method_outcome };

static const RpcField output_fields[] = {
        METHOD_STREAM_FIELDS,
};
const RpcShape method_result = { .name = "Result",
                                 .help = "how a command ended, and its output",
                                 RPC_FIELDS(output_fields),
                                 .base = &method_ended };
