/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/other-tools.h"

#include <errno.h>
#include <string.h>

const OtherName other_names[] = {
        { "-e", "--env" },
        { "-w", "--cwd" },
        { "--workdir", "--cwd" },
};
const size_t other_names_count = ELEMENTSOF(other_names);

/* --- hints --- */

static const char terminal_hint[] = "Leave it out: a command gets a terminal if holt has one.";
static const char port_hint[] = "Leave it out: in this version, a sandbox has no network, so it "
                                "cannot publish a port.\nCommands of one session can connect to "
                                "each other's ports: holt exec NAME -- curl ...";
static const char user_hint[] = "Leave it out: the command always has the user \"agent\", and its "
                                "files in the workspace belong to you.";

static const struct {
        const char *word;
        const char *verbs; /* separated by blanks */
        const char *hint;
} option_hints[] = {
        { "-it", "run create exec", terminal_hint },
        { "-ti", "run create exec", terminal_hint },
        { "-i", "run create exec", terminal_hint },
        { "-t", "run create exec", terminal_hint },
        { "--interactive", "run create exec", terminal_hint },
        { "--tty", "run create exec", terminal_hint },
        { "--rm", "run", "Leave it out: holt run keeps nothing." },
        { "--rm", "create exec", "To remove a session and its files: holt rm NAME" },
        { "-p", "run create exec", port_hint },
        { "--publish", "run create exec", port_hint },
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
