/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/other-tools.h"

#include <errno.h>
#include <string.h>

const OtherName other_names[] = {
        { "-e", "--env" },
        { "-w", "--cwd" },
        { "--workdir", "--cwd" },
        { "-m", "--memory" },
        { "--pids-limit", "--pids" },
        { "-p", "--publish" },
};
const size_t other_names_count = ELEMENTSOF(other_names);

/* --- hints --- */

static const char terminal_hint[] = "Leave it out: a command gets a terminal if holt has one.";
static const char port_hint[] = "The ports of a session are fixed when it is created: holt create "
                                "NAME --publish HOSTPORT:PORT\nCommands of one session can connect "
                                "to each other's ports: holt exec NAME -- curl ...";
static const char user_hint[] = "Leave it out: the command always has the user \"agent\", and its "
                                "files in the workspace belong to you.";

static const char both_hint[] =
        "Leave it out: a command gets a terminal if holt has one.\nTo leave a command running, use "
        "a "
        "session: holt create NAME [OPTIONS], then holt exec NAME --detach -- COMMAND";
static const char all_ports_hint[] =
        "Name each port: --publish HOSTPORT:PORT. holt has no images that name ports.";

static const char privilege_hint[] =
        "Leave it out: no option gives a command capabilities or devices.\nIf a system call is "
        "refused, the result names the option that allows it.";
static const char security_hint[] =
        "Leave it out: a command has no capabilities, and no program gives it more rights.\n"
        "--syscalls, --allow-syscall and --deny-syscall change the allowed system calls.";
static const char mount_hint[] = "The mounts of a session are fixed when it is created: holt "
                                 "create NAME -v SRC:DST[:ro]\nTo "
                                 "copy files into the session: holt cp FILE "
                                 "NAME:PATH";
static const char session_limit_hint[] =
        "holt create NAME sets the limits of a session: --memory, --pids and --open-files.";
static const char processor_hint[] = "holt does not limit processor time. To use two processors: "
                                     "taskset -c 0,1 holt run -- COMMAND";
static const char session_processor_hint[] =
        "--tier medium gives the session 2 processors, large 4 and xlarge 8.";
static const char ulimit_hint[] =
        "holt has options for these limits: --open-files (nofile), --pids (nproc), --file-size "
        "(fsize) and --memory (data).\nA command inherits the other limits of your shell: ulimit "
        "-c 0; holt run -- COMMAND";
static const char program_hint[] = "Write the program as the command: holt run [OPTIONS] -- "
                                   "PROGRAM [ARG...]";
static const char memory_hint[] = "--memory limits each process. For all processes together, run "
                                  "holt in a cgroup with a memory limit.";
static const char shared_hint[] = "/dev/shm, /tmp and the home directory inside share one limit: "
                                  "--tmp-size SIZE";
static const char resolver_hint[] = "Leave it out: holt looks up the names that --net allows, with "
                                    "the host's resolver.";
static const char signal_hint[] =
        "holt kill NAME ID sends SIGKILL to everything that the command has "
        "started. For another signal: holt kill NAME ID --signal TERM";
static const char tree_hint[] = "-r copies a directory with its files.";
static const char namespace_hint[] = "Leave it out: a sandbox always has namespaces of its own.";

static const struct {
        const char *word;
        const char *verbs; /* separated by blanks */
        const char *hint;
} option_hints[] = {
        { "-it", "run create exec", terminal_hint },
        { "-ti", "run create exec", terminal_hint },
        { "-itd", "run create exec", both_hint },
        { "-dit", "run create exec", both_hint },
        { "-tid", "run create exec", both_hint },
        { "-dti", "run create exec", both_hint },
        { "-i", "run create exec", terminal_hint },
        { "-t", "run create exec", terminal_hint },
        { "--interactive", "run create exec", terminal_hint },
        { "--tty", "run create exec", terminal_hint },
        { "--rm", "run", "Leave it out: holt run keeps nothing." },
        { "--rm", "create exec", "To remove a session and its files: holt rm NAME" },
        { "-p", "exec", port_hint },
        { "--publish", "exec", port_hint },
        { "-P", "run create", all_ports_hint },
        { "--publish-all", "run create", all_ports_hint },
        { "--name", "create exec", "Write the name without an option: holt create NAME [OPTIONS]" },
        { "--name", "run",
          "For a sandbox with a name, use a session: holt create NAME [OPTIONS], then holt exec "
          "NAME -- COMMAND" },
        { "-u", "run create exec", user_hint },
        { "--user", "run create exec", user_hint },
        { "-d", "exec", "holt exec NAME --detach -- COMMAND leaves the command running." },
        { "-d", "run create",
          "To leave a command running, use a session: holt create NAME [OPTIONS], then holt exec "
          "NAME --detach -- COMMAND" },
        { "--detach", "run create",
          "To leave a command running, use a session: holt create NAME [OPTIONS], then holt exec "
          "NAME --detach -- COMMAND" },
        { "-v", "exec", mount_hint },
        { "--volume", "exec", mount_hint },
        { "--mount", "exec", mount_hint },
        { "-w", "create",
          "The commands of a session start in its workspace. For another directory: holt exec NAME "
          "-w DIR -- COMMAND" },
        { "--workdir", "create",
          "The commands of a session start in its workspace. For another directory: holt exec NAME "
          "-w DIR -- COMMAND" },
        { "--cwd", "create",
          "The commands of a session start in its workspace. For another directory: holt exec NAME "
          "--cwd DIR -- COMMAND" },
        { "-m", "exec", session_limit_hint },
        { "--memory-swap", "run create", memory_hint },
        { "--memory-reservation", "run create", memory_hint },
        { "--cpus", "run", processor_hint },
        { "--cpuset-cpus", "run", processor_hint },
        { "--cpu-shares", "run", "For less processor time than others: nice holt run -- COMMAND" },
        { "-c", "run", "For a shell: holt run -- bash -c LINE" },
        { "--cpus", "create", session_processor_hint },
        { "--cpuset-cpus", "create", session_processor_hint },
        { "--ulimit", "run create", ulimit_hint },
        { "--entrypoint", "run", program_hint },
        { "--shm-size", "run create", shared_hint },
        { "--read-only", "run create",
          "The system is always read-only inside. For a read-only workspace: --workspace-mode "
          "ro\nFor a file or directory of the host: --ro PATH" },
        { "--privileged", "run create exec", privilege_hint },
        { "--cap-add", "run create exec", privilege_hint },
        { "--device", "run create", privilege_hint },
        { "--gpus", "run create", privilege_hint },
        { "--cap-drop", "run create exec", security_hint },
        { "--security-opt", "run create", security_hint },
        { "--dns", "run create", resolver_hint },
        { "--add-host", "run create", resolver_hint },
        { "--userns", "run create", namespace_hint },
        { "--pid", "run create", namespace_hint },
        { "--ipc", "run create", namespace_hint },
        { "--hostname", "run create", "Leave it out: every sandbox has the same host name." },
        { "--pull", "run create",
          "Leave it out: holt has no images, and runs the programs of the host." },
        { "--restart", "run create",
          "Leave it out: a session starts again when it is used, but its commands do not." },
        { "-a", "ps",
          "Leave it out: holt ps also lists processes that have ended. For all sessions: holt ls" },
        { "--all", "ps",
          "Leave it out: holt ps also lists processes that have ended. For all sessions: holt ls" },
        { "--init", "run create", "Leave it out: every sandbox has an init." },
        { "--stop-timeout", "run create",
          "The time between SIGTERM and SIGKILL: --kill-after TIME" },
        { "--net", "exec sh python",
          "To allow a host in a session: holt allow NAME net:HOST:PORT, or holt create NAME --net "
          "HOST:PORT" },
        { "--net", "allow", "Write the rule without an option: holt allow NAME net:HOST:PORT" },
        { "--port", "run create", "To open a port of the host: --publish HOSTPORT:PORT" },
        { "--timeout", "wait", "To limit only this wait: timeout 10 holt wait NAME ID" },
        { "-9", "kill", signal_hint },
        { "-15", "kill", signal_hint },
        { "-KILL", "kill", signal_hint },
        { "-TERM", "kill", signal_hint },
        { "-INT", "kill", signal_hint },
        { "-R", "cp", tree_hint },
        { "-a", "cp", tree_hint },
};

static const struct {
        const char *word, *hint;
} verb_hints[] = {
        { "inspect", "To describe a session: holt show NAME\nTo see what a run would allow: holt "
                     "policy show [OPTIONS]" },
        { "start", "A session starts when it is used: holt exec NAME -- COMMAND\nFor a new one: "
                   "holt create NAME" },
        { "restart", "To end all processes of a session: holt stop NAME\nThe next use starts it "
                     "again." },
        { "attach", "For a shell in a session: holt sh NAME\nTo follow the output of a process: "
                    "holt logs NAME ID --follow" },
        { "destroy", "To remove a session and its files: holt rm NAME" },
        { "delete", "To remove a session and its files: holt rm NAME" },
        { "remove", "To remove a session and its files: holt rm NAME" },
        { "list", "To list the sessions: holt ls" },
        { "top", "To list the processes of a session: holt ps NAME" },
        { "stats", "To list the processes of a session: holt ps NAME\nTo show what a run used: "
                   "holt run --json -- COMMAND" },
        { "copy", "To copy files into a session or out of it: holt cp SOURCE TARGET" },
        { "rename", "A session keeps its name. To take its files along: holt cp -r NAME:PATH DIR, "
                    "then holt create NEW --workspace DIR" },
        { "port", port_hint },
        { "-v", "To show the version: holt --version" },
        { "shell", "For a shell in a session: holt sh NAME\nFor one in a sandbox of its own: holt "
                   "run" },
};

static bool is_among(const char *word, const char *words) {
        const size_t length = strlen(word);

        for (const char *at = words; (at = strstr(at, word)); at += length)
                if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
                        return true;
        return false;
}

const char *other_option_hint(const OptionSyntax *syntax, const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(option_hints); i++)
                if (streq(option_hints[i].word, name) &&
                    is_among(syntax->verb, option_hints[i].verbs))
                        return option_hints[i].hint;
        return NULL;
}

const char *other_verb_hint(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(verb_hints); i++)
                if (streq(verb_hints[i].word, name))
                        return verb_hints[i].hint;
        return NULL;
}

/* --- -v --- */

/* Modes of docker's -v. Those without a field concern SELinux's labels and caches of other systems.
 * holt needs neither. */
static const struct {
        const char *mode, *field;
} volume_modes[] = {
        { "ro", "filesystem.read_only" },
        { "rw", "filesystem.read_write" },
        { "z", NULL },
        { "Z", NULL },
        { "cached", NULL },
        { "delegated", NULL },
        { "consistent", NULL },
};

static int refuse_volume(const char *value, Error *reterr) {
        char quoted[160];
        int r = error_set(reterr, ERROR_USAGE, 0, "-v: \"%s\" is not SRC:DST[:ro]",
                          str_quote(value, quoted, sizeof(quoted)));

        return error_cure(reterr, r,
                          "SRC is a file or directory of the host, and DST its path inside. holt "
                          "has no named volumes; a session keeps its files.");
}

/* Takes the modes after the second colon, such as "ro,z". Returns false if one is unknown. */
static bool take_modes(const char *modes, const char **field) {
        while (*modes) {
                const size_t length = strcspn(modes, ",");
                size_t i = 0;

                while (i < ELEMENTSOF(volume_modes) &&
                       (strlen(volume_modes[i].mode) != length ||
                        strncmp(volume_modes[i].mode, modes, length) != 0))
                        i++;
                if (i == ELEMENTSOF(volume_modes))
                        return false;
                if (volume_modes[i].field)
                        *field = volume_modes[i].field;
                modes += length + (modes[length] == ',');
        }
        return true;
}

int other_volume(const char *value, const PolicyField **ret_field, char **ret_value,
                 Error *reterr) {
        const char *field = "filesystem.read_write", *target, *modes;
        size_t length;

        target = policy_bind_split(value, &length);
        modes = target ? strchr(target, ':') : NULL;
        if (!target || length == 0 || (modes && !take_modes(modes + 1, &field)))
                return refuse_volume(value, reterr);
        *ret_value = strndup(value, modes ? (size_t)(modes - value) : strlen(value));
        *ret_field = policy_field(field);
        return *ret_value ? 0 : error_oom(reterr);
}

/* --- --tmpfs --- */

/* The options that docker takes behind the directory. */
static const char *const tmpfs_words[] = { "rw",     "ro",   "exec",      "noexec", "suid",
                                           "nosuid", "dev",  "nodev",     "size=",  "mode=",
                                           "uid=",   "gid=", "nr_inodes=" };

static bool is_tmpfs_word(const char *word, size_t length) {
        for (size_t i = 0; i < ELEMENTSOF(tmpfs_words); i++) {
                const size_t known = strlen(tmpfs_words[i]);

                if (strncmp(word, tmpfs_words[i], known) == 0 &&
                    (length == known || tmpfs_words[i][known - 1] == '='))
                        return true;
        }
        return false;
}

int other_tmpfs_check(const char *value, Error *reterr) {
        const char *options = strrchr(value, ':');
        char quoted[160];
        int r;

        if (!options || !is_tmpfs_word(options + 1, strcspn(options + 1, ",")))
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "--tmpfs: \"%s\" has options of docker",
                      str_quote(value, quoted, sizeof(quoted)));
        return error_cure(reterr, r,
                          "Write only the directory. --tmp-size SIZE limits all private files in "
                          "memory together.");
}
