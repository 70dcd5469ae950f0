/* SPDX-License-Identifier: Apache-2.0 */
/* The table of policy fields, and the checks beyond those of their kinds.
 *
 * A new field needs only a row: the JSON loader, schema, flag, help and merge rule come from it. */
#include "policy/policy.h"

#include <errno.h>
#include <string.h>

#include "policy/helper-fields.h"
#include "policy/network-fields.h"
#include "policy/net/ports.h"
#include "policy/net/rules.h"
#include "policy/net/upstream.h"
#include "policy/path-fields.h"
#include "policy/python-fields.h"
#include "policy/plan.h"
#include "policy/route-fields.h"
#include "policy/syscalls/syscalls.h"
#include "policy/workspace-fields.h"

static size_t env_name_length(const char *text) {
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
        static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

        return strspn(text, letters) > 0 ? strspn(text, all) : 0;
}

#define ENV_NAME_RULE "letters, digits and _, not starting with a digit"

static int check_env_name(const char *text, const char **ret_why) {
        size_t length = env_name_length(text);

        if (length > 0 && text[length] == '=')
                return error_why(ret_why, "has a value; to pass a variable, give only its name");
        if (length == 0 || text[length] != '\0')
                return error_why(ret_why, "is not a valid variable name (" ENV_NAME_RULE ")");
        return 0;
}

static int check_env_set(const char *text, const char **ret_why) {
        size_t length = env_name_length(text);

        if (length == 0 || (text[length] != '=' && text[length] != '\0'))
                return error_why(ret_why,
                                 "does not start with a valid variable name (" ENV_NAME_RULE ")");
        if (text[length] == '\0')
                return error_why(ret_why, "has no value; write NAME=VALUE");
        return 0;
}

/* Handles --env NAME=VALUE, which sets, and --env NAME, which passes the caller's value. */
static int set_env(Policy *policy, const char *value, Error *reterr) {
        return policy_set(policy, strchr(value, '=') ? "env.set" : "env.pass", value, ORIGIN_CALLER,
                          "--env", reterr);
}

static const char *const workspace_modes[] = {
        [WORKSPACE_READ_WRITE] = "rw",
        [WORKSPACE_READ_ONLY] = "ro",
        [WORKSPACE_NONE] = "none",
        [WORKSPACE_MODE_MAX] = NULL,
};
static const unsigned char workspace_ranks[] = {
        [WORKSPACE_READ_WRITE] = 0,
        [WORKSPACE_READ_ONLY] = 1,
        [WORKSPACE_NONE] = 2,
};
static_assert(ELEMENTSOF(workspace_ranks) == WORKSPACE_MODE_MAX, "every mode has a rank");

static const char *const syscall_presets[] = {
        [SYSCALLS_DEFAULT] = "default",
        [SYSCALLS_STRICT] = "strict",
        [SYSCALLS_PRESET_MAX] = NULL,
};
static const unsigned char syscall_ranks[] = {
        [SYSCALLS_DEFAULT] = 0,
        [SYSCALLS_STRICT] = 1,
};
static_assert(ELEMENTSOF(syscall_ranks) == SYSCALLS_PRESET_MAX, "every preset has a rank");

static const char *const landlock_modes[] = {
        [LANDLOCK_AUTO] = "auto",
        [LANDLOCK_REQUIRE] = "require",
        [LANDLOCK_OFF] = "off",
        [LANDLOCK_MODE_MAX] = NULL,
};
static const unsigned char landlock_ranks[] = {
        [LANDLOCK_OFF] = 0,
        [LANDLOCK_AUTO] = 1,
        [LANDLOCK_REQUIRE] = 2,
};
static_assert(ELEMENTSOF(landlock_ranks) == LANDLOCK_MODE_MAX, "every mode has a rank");

#define AT(member) offsetof(Policy, member)

const PolicyField policy_fields[] = {
        { .path = "filesystem.workspace.source",
          .kind = FIELD_PATH,
          .offset = AT(workspace_source),
          .check = path_field_check,
          .option = "--workspace",
          .option_arg = "DIR[:TARGET]",
          .set_option = workspace_set,
          .help = "workspace, or none (default: the current directory)",
          .session_help = "workspace, or none (default: a directory of the session)",
          .document_help = "host directory that commands work in (default: the working directory "
                           "of holt run, or a directory of the session)",
          .unset = "the working directory" },
        { .path = "filesystem.workspace.target",
          .kind = FIELD_PATH,
          .offset = AT(workspace_target),
          .check = policy_target_check,
          .help = "path of the workspace inside (default: its own path, or /workspace in a "
                  "session)",
          .unset = "its own path" },
        { .path = "filesystem.workspace.mode",
          .kind = FIELD_ENUM,
          .offset = AT(workspace_mode),
          .merge = MERGE_STRICTER,
          .names = workspace_modes,
          .ranks = workspace_ranks,
          .option = "--workspace-mode",
          .option_arg = "rw|ro|none",
          .set_option = workspace_set_mode,
          .help = "whether commands may write in the workspace",
          .document_help =
                  "whether commands may write the workspace (\"rw\") or only read it (\"ro\"), "
                  "or \"none\" for no workspace" },
        { .path = "filesystem.files.source",
          .kind = FIELD_PATH,
          .offset = AT(files),
          .check = path_field_check,
          .option = "--files",
          .option_arg = "DIR",
          .help = "host directory that commands may read and write at /mnt/files" },
        { .path = "filesystem.rootfs",
          .kind = FIELD_PATH,
          .offset = AT(rootfs),
          .check = path_field_check,
          .option = "--rootfs",
          .option_arg = "DIR",
          .help = "system tree that replaces the host's",
          .document_help =
                  "directory with a system tree, which commands see instead of the host's system",
          .unset = "the host's" },
        { .path = "filesystem.read_only",
          .kind = FIELD_LIST,
          .offset = AT(read_only),
          .check = path_field_check_bind,
          .option = "--ro",
          .option_arg = "PATH[:TARGET]",
          .help = "host file or directory that commands may read",
          .document_help =
                  "host files and directories that commands may read, each PATH or PATH:TARGET" },
        { .path = "filesystem.read_write",
          .kind = FIELD_LIST,
          .offset = AT(read_write),
          .check = path_field_check_bind,
          .option = "--rw",
          .option_arg = "PATH[:TARGET]",
          .help = "host file or directory that commands may read and write",
          .document_help =
                  "host files and directories that commands may read and write, each PATH or "
                  "PATH:TARGET" },
        { .path = "filesystem.etc",
          .kind = FIELD_LIST,
          .offset = AT(etc),
          .check = tree_etc_check,
          .option = "--etc",
          .option_arg = "NAME|all",
          .help = "entry of /etc that commands may read, or all public ones",
          .document_help = "additional names in /etc that commands may read, or \"all\" for all "
                           "public ones" },
        { .path = "filesystem.tmpfs",
          .kind = FIELD_LIST,
          .offset = AT(tmpfs),
          .check = policy_target_check,
          .option = "--tmpfs",
          .option_arg = "TARGET",
          .help = "empty private directory in memory",
          .document_help = "paths inside that are empty private directories in memory" },
        { .path = "filesystem.hide",
          .kind = FIELD_LIST,
          .offset = AT(hide),
          .merge = MERGE_ADD,
          .check = path_field_check_hide,
          .option = "--hide",
          .option_arg = "PATH",
          .help = "path or pattern that commands can't read, in the workspace or absolute",
          .document_help =
                  "paths and patterns that commands can't read, in the workspace or absolute" },
        { .path = "filesystem.protect",
          .kind = FIELD_LIST,
          .offset = AT(protect),
          .merge = MERGE_ADD,
          .none = true,
          .check = path_field_check_protect,
          .option = "--protect",
          .option_arg = "PATH",
          .help = "workspace path that commands can't change; \"none\" drops the preset's",
          .document_help =
                  "workspace paths that commands can't change; the item \"none\" drops the items "
                  "before it, such as the preset's" },
        { .path = "filesystem.tmp_size",
          .kind = FIELD_BYTES,
          .offset = AT(tmp_size),
          .plan = offsetof(LaunchPlan, tmp_size),
          .result = "tmp_size_bytes",
          .scope = " for /run, /dev/shm and --tmpfs",
          .merge = MERGE_MIN,
          .min = 64 << 10,
          .option = "--tmp-size",
          .option_arg = "SIZE",
          .help = "maximum size of all private files in memory together" },
        { .path = "filesystem.allow_wide",
          .kind = FIELD_BOOL,
          .offset = AT(allow_wide),
          .option = "--allow-wide",
          .help = "let commands write to wide directories, such as / or a home directory",
          .document_help =
                  "whether commands may write to wide directories, such as / or a home directory" },
        { .path = "network.mode",
          .kind = FIELD_ENUM,
          .offset = AT(network),
          .merge = MERGE_STRICTER,
          .names = network_modes,
          .ranks = network_ranks,
          .before_project = network_note_host,
          .option = "--network",
          .option_arg = "none|allow|host",
          .set_option = network_set_mode,
          .help = "no network, only the hosts of --net, or the host's whole network",
          .document_help = "whether commands reach no host, only the hosts of network.allow, or "
                           "the host's whole network" },
        { .path = "network.allow",
          .kind = FIELD_LIST,
          .offset = AT(net_allow),
          .merge = MERGE_COMMON,
          .none = true,
          .check = net_rule_check,
          .narrow = network_narrow,
          .after_caller = network_imply_mode,
          .option = "--net",
          .option_arg = "RULE[,RULE...]",
          .set_option = network_set_rules,
          .help = "host that commands may reach: NAME, NAME:PORT, ADDRESS:PORT or @SET",
          .document_help =
                  "hosts that commands may reach, each NAME, NAME:PORT, ADDRESS:PORT or @SET" },
        { .path = "network.sni",
          .kind = FIELD_ENUM,
          .offset = AT(net_sni),
          .merge = MERGE_STRICTER,
          .names = network_sni,
          .ranks = network_sni_ranks,
          .option = "--sni",
          .option_arg = "required|optional",
          .help = "whether TLS clients must name their server; default optional" },
        { .path = "network.publish",
          .kind = FIELD_LIST,
          .offset = AT(net_publish),
          .none = true,
          .check = net_publish_check,
          .option = "--publish",
          .option_arg = "[ADDRESS:]HOSTPORT:PORT",
          .help = "port inside that the host can connect to; HOSTPORT 0 means a free port",
          .document_help =
                  "ports inside that the host can connect to, each [ADDRESS:]HOSTPORT:PORT; "
                  "HOSTPORT 0 means a free port" },
        { .path = "network.import",
          .kind = FIELD_LIST,
          .offset = AT(net_import),
          .none = true,
          .check = net_import_check,
          .option = "--import",
          .option_arg = "HOSTPORT[:PORT]",
          .help = "port of the host's loopback that commands reach on their own loopback",
          .document_help =
                  "ports of the host's loopback that commands reach on their own loopback, "
                  "each HOSTPORT or HOSTPORT:PORT" },
        { .path = "network.proxy",
          .kind = FIELD_BOOL,
          .offset = AT(net_proxy),
          .option = "--proxy",
          .help = "add an HTTP and SOCKS5 proxy inside, with the same rules",
          .document_help =
                  "whether there is an HTTP and SOCKS5 proxy inside, with the same rules" },
        { .path = "network.ask",
          .kind = FIELD_BOOL,
          .offset = AT(net_ask),
          .after_caller = network_imply_ask_mode,
          .option = "--ask",
          .set_option = network_set_ask,
          .help = "ask on your terminal about each host that no rule allows",
          .document_help = "whether holt asks the caller about each host that no rule allows" },
        { .path = "network.ask_timeout",
          .kind = FIELD_DURATION,
          .offset = AT(net_ask_timeout),
          .option = "--ask-timeout",
          .option_arg = "TIME",
          .help = "time to answer a question of --ask; default 1m",
          .document_help = "time to answer a question about a host; default 1m" },
        { .path = "network.upstream",
          .kind = FIELD_PATH,
          .offset = AT(net_upstream),
          .check = net_upstream_check,
          .mask = net_upstream_mask,
          .option = "--upstream",
          .option_arg = "URL",
          .help = "HTTP proxy outside that all connections go through",
          .document_help = "URL of an HTTP proxy outside that all connections go through" },
        { .path = "python.program",
          .kind = FIELD_PATH,
          .offset = AT(python),
          .check = path_field_check,
          .option = "--python",
          .option_arg = "PROGRAM",
          .help = "interpreter for holt python: a name, or its path inside",
          .document_help = "Python interpreter of sessions: a name, or its path inside",
          .unset = "python3" },
        { .path = "python.wheels",
          .kind = FIELD_PATH,
          .offset = AT(wheels),
          .check = path_field_check,
          .option = "--wheels",
          .option_arg = "DIR",
          .help = "host directory of wheels for pip and imports, at /mnt/wheels",
          .document_help =
                  "host directory of Python wheels, which pip and imports find at /mnt/wheels" },
        { .path = "python.index",
          .kind = FIELD_PATH,
          .offset = AT(index),
          .check = python_index_check,
          .option = "--index",
          .option_arg = "URL",
          .help = "index of Python packages; --net or a route must lead to it",
          .document_help = "URL of the index from which pip, uv and imports install packages; a "
                           "rule of the network or a route must lead to it" },
        { .path = "python.install",
          .kind = FIELD_ENUM,
          .offset = AT(install),
          .merge = MERGE_STRICTER,
          .names = python_install,
          .ranks = python_install_ranks,
          .option = "--install",
          .option_arg = "auto|ask|never",
          .help = "whether imports install missing packages; default auto" },
        { .path = "env.set",
          .kind = FIELD_MAP,
          .offset = AT(env_set),
          .check = check_env_set,
          .option = "--env",
          .option_arg = "NAME[=VALUE]",
          .set_option = set_env,
          .help = "variable to set; --env NAME passes your own",
          .document_help = "variables to set, with their values" },
        { .path = "env.pass",
          .kind = FIELD_LIST,
          .offset = AT(env_pass),
          .check = check_env_name,
          .help = "names of variables to pass on from the environment of holt, if they are set" },
        { .path = "env.git_identity",
          .kind = FIELD_BOOL,
          .offset = AT(git_identity),
          .option = "--git-identity",
          .help = "pass the name and e-mail address of your git settings",
          .document_help = "whether git inside commits with the caller's name and e-mail address" },
        { .path = "limits.timeout",
          .kind = FIELD_DURATION,
          .offset = AT(timeout),
          .plan = offsetof(LaunchPlan, timeout),
          .result = "timeout_us",
          .merge = MERGE_MIN,
          .none = true,
          .min = 1000,
          .option = "--timeout",
          .option_arg = "TIME",
          .help = "maximum wall time of a command, or none",
          .document_help = "maximum wall time of a command, or \"none\"" },
        { .path = "limits.kill_after",
          .kind = FIELD_DURATION,
          .offset = AT(kill_after),
          .plan = offsetof(LaunchPlan, kill_after),
          .merge = MERGE_MIN,
          .option = "--kill-after",
          .option_arg = "TIME",
          .help = "time between SIGTERM and SIGKILL after the timeout",
          .document_help =
                  "time between SIGTERM and SIGKILL, after the timeout or a signal to stop" },
        { .path = "limits.memory",
          .kind = FIELD_BYTES,
          .offset = AT(memory),
          .plan = offsetof(LaunchPlan, memory),
          .result = "memory_per_process_bytes",
          .scope = " each process",
          .merge = MERGE_MIN,
          .none = true,
          .min = 1 << 20,
          .option = "--memory",
          .option_arg = "SIZE",
          .help = "maximum data of each process, or none",
          .document_help = "maximum data of each process, or \"none\"" },
        { .path = "limits.pids",
          .kind = FIELD_UINT,
          .offset = AT(pids),
          .plan = offsetof(LaunchPlan, pids),
          .result = "pids",
          .merge = MERGE_MIN,
          .none = true,
          .min = 1,
          .max = 1 << 22, /* PID_MAX_LIMIT */
          .option = "--pids",
          .option_arg = "N",
          .help = "maximum number of processes and threads, or none",
          .document_help = "maximum number of processes and threads, or \"none\"" },
        { .path = "limits.open_files",
          .kind = FIELD_UINT,
          .offset = AT(open_files),
          .plan = offsetof(LaunchPlan, open_files),
          .result = "open_files",
          .merge = MERGE_MIN,
          .none = true,
          .min = 64, /* init and the start of a command need fewer */
          .max = 1 << 30,
          .option = "--open-files",
          .option_arg = "N",
          .help = "maximum open files of each process, or none for your own limit",
          .document_help =
                  "maximum open files of each process, or \"none\" for the limit of holt itself" },
        { .path = "limits.file_size",
          .kind = FIELD_BYTES,
          .offset = AT(file_size),
          .plan = offsetof(LaunchPlan, file_size),
          .result = "file_size_bytes",
          .merge = MERGE_MIN,
          .none = true,
          .min = 1,
          .option = "--file-size",
          .option_arg = "SIZE",
          .help = "maximum size of each written file, or none",
          .document_help = "maximum size of each written file, or \"none\"" },
        { .path = "limits.output",
          .kind = FIELD_BYTES,
          .offset = AT(output),
          .plan = offsetof(LaunchPlan, output),
          .result = "output_bytes",
          .merge = MERGE_MIN,
          .none = true,
          .min = 1,
          .option = "--output",
          .option_arg = "SIZE",
          .help = "maximum output of a run, or output that a session keeps; or none",
          .document_help = "maximum bytes of output, or \"none\"; beyond it, holt run ends the "
                           "command, and a session drops the rest" },
        { .path = "syscalls.preset",
          .kind = FIELD_ENUM,
          .offset = AT(syscall_preset),
          .merge = MERGE_STRICTER,
          .names = syscall_presets,
          .ranks = syscall_ranks,
          .option = "--syscalls",
          .option_arg = "default|strict",
          .help = "set of allowed system calls" },
        { .path = "syscalls.allow",
          .kind = FIELD_LIST,
          .offset = AT(syscalls_allow),
          .check = syscalls_name_check,
          .option = "--allow-syscall",
          .option_arg = "NAME|@GROUP",
          .help = "system call to add to the set",
          .document_help = "system calls and @groups to add to the set" },
        { .path = "syscalls.deny",
          .kind = FIELD_LIST,
          .offset = AT(syscalls_deny),
          .merge = MERGE_ADD,
          .check = syscalls_deny_check,
          .option = "--deny-syscall",
          .option_arg = "NAME|@GROUP",
          .help = "system call to remove from the set",
          .document_help = "system calls and @groups to remove from the set" },
        { .path = "bridge.routes",
          .kind = FIELD_LIST,
          .objects = true,
          .offset = AT(routes),
          .check = route_field_check,
          .after_caller = route_field_added,
          .option = "--route",
          .option_arg = "ROUTE",
          .set_option = route_field_set,
          .help = "service to reach with your credential; see holt policy routes",
          .document_help = "services that commands reach with a credential of the host, each the "
                           "name of a known one or an object that describes it" },
        { .path = "bridge.helpers",
          .kind = FIELD_LIST,
          .offset = AT(helpers),
          .check = helper_field_check,
          .after_caller = helper_field_added,
          .option = "--helper",
          .option_arg = "FILE[:MODULE]",
          .help = "Python file that code inside can import, under the name MODULE",
          .document_help = "Python files of the host that code inside can import, each FILE or "
                           "FILE:MODULE" },
        { .path = "bridge.links",
          .kind = FIELD_BOOL,
          .offset = AT(links),
          .option = "--links",
          .help = "let code inside make links, as holt link does, to files of /mnt/files" },
        { .path = "layers.landlock",
          .kind = FIELD_ENUM,
          .offset = AT(landlock),
          .merge = MERGE_STRICTER,
          .names = landlock_modes,
          .ranks = landlock_ranks,
          .option = "--landlock",
          .option_arg = "auto|require|off",
          .help = "use Landlock if the kernel has it, or fail without it, or never use it" },
};
const size_t policy_fields_count = ELEMENTSOF(policy_fields);
