/* SPDX-License-Identifier: Apache-2.0 */
/* holt cp: copies files and directories into a session, or out of it. A directory is filled under a
 * temporary name and then renamed, so that the destination is always complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/glob.h"
#include "base/own-limits.h"
#include "cli/cp-internal.h"
#include "cli/fail.h"
#include "cli/operands.h"
#include "cli/transfer.h"
#include "cli/verbs.h"
#include "files/files.h"
#include "files/unfinished.h"
#include "streams/stdio.h"

static const Option cp_options[] = {
        { "--recursive", NULL, "copy directories with everything in them", OPTION_BOOL,
          offsetof(CpOptions, recursive), NULL },
        { "-r", NULL, "short for --recursive", OPTION_BOOL, offsetof(CpOptions, recursive), NULL },
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(CpOptions, json),
          NULL },
};

static const OptionSyntax cp_syntax = {
        .verb = "cp",
        .usage = "[-r] [--json] SOURCE... NAME:PATH | [-r] [--json] NAME:PATH... DESTINATION",
        .summary = "Copies files into session NAME, or out of it. PATH is a path inside the "
                   "session,\nrelative to its workspace; \"-\" is stdin or stdout.",
        .options = cp_options,
        .options_count = ELEMENTSOF(cp_options),
        .operands = true,
        .help_epilog = "If the name of a host file contains \":\", write it as ./a:b.",
};

/* --- shared by both ways --- */

bool cp_is_own(const char *path, const char *made) {
        const size_t length = strlen(made);

        for (const char *p = path; p; p = strchr(p, '/')) {
                p += *p == '/';
                if (strncmp(p, made, length) == 0 && (p[length] == '/' || p[length] == '\0'))
                        return true;
        }
        return false;
}

int cp_refuse_missed(const char *path, int errnum, bool into, Error *reterr) {
        const bool closed = errnum == EACCES;
        char quoted[1024];
        int r = error_set(reterr, closed ? ERROR_SETUP : ERROR_LIMIT, errnum,
                          "cannot copy the contents of the directory \"%s\"",
                          str_quote(path, quoted, sizeof(quoted)));

        if (closed)
                return error_cure(reterr, r, "Its permissions refuse access.");
        return error_cure(reterr, r,
                          "holt cp copies paths of at most 4095 bytes, %d nested directories and "
                          "10000000 entries. Use tar for more: %s",
                          FILES_DEPTH_MAX,
                          into ? "tar c DIRECTORY | holt exec NAME -- tar x"
                               : "holt exec NAME -- tar c DIRECTORY | tar x");
}

int cp_refuse_existing(const char *target, Error *reterr) {
        char quoted[1024];
        int r = error_set(reterr, ERROR_EXISTS, EEXIST, "cannot make the directory \"%s\"",
                          str_quote(target, quoted, sizeof(quoted)));

        return error_cure(reterr, r,
                          "holt cp does not merge directories. Remove the existing one, or choose "
                          "another name.");
}

/* --- one file or directory --- */

static int cp_put(Cp *cp, const char *source, const char *path, bool several, Error *reterr) {
        _cleanup_free_ char *target = NULL;
        struct stat st;
        int r;

        if (several && !transfer_is_directory(cp->client, path[0] ? path : ".")) {
                r = error_set(reterr, ERROR_USAGE, ENOTDIR, "cannot copy several files to \"%s\"",
                              path);
                return error_cure(
                        reterr, r,
                        "The destination must be a directory: holt files NAME mkdir PATH");
        }
        r = transfer_put_target(cp->client, path, source, "holt cp - NAME:PATH", &target, reterr);
        if (r < 0)
                return r;
        if (cp->options.recursive && stat(source, &st) == 0 && S_ISDIR(st.st_mode))
                return cp_put_directory(cp, source, target, reterr);
        return transfer_put(cp->client, source, target, reterr);
}

static bool ends_in_slash(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash && !slash[1];
}

/* Names the cure only if the source is a directory: EISDIR may also come from the destination. */
static int cure_directory(Cp *cp, const char *path, int r, Error *reterr) {
        if (r != -EISDIR || !transfer_is_directory(cp->client, path))
                return r;
        return error_cure(reterr, r, "Copy directories with holt cp -r.");
}

static int cp_get(Cp *cp, const char *path, const char *destination, bool several, Error *reterr) {
        _cleanup_free_ char *name = transfer_name(path), *target = NULL;
        struct stat st;
        bool into = !streq(destination, "-") && stat(destination, &st) == 0 && S_ISDIR(st.st_mode);
        int r;

        if (!into && (several || ends_in_slash(destination))) {
                (void)error_set(reterr, ERROR_USAGE, ENOTDIR, "cannot copy into \"%s\"",
                                destination);
                return error_cure(reterr, -ENOTDIR,
                                  "The destination must be a directory: mkdir -p makes it.");
        }
        target = into ? str_format("%s/%s", destination, name ? name : "") : strdup(destination);
        if (!name || !target)
                return error_oom(reterr);
        if (cp->options.recursive && transfer_is_directory(cp->client, path))
                r = cp_get_directory(cp, path, target, reterr);
        else
                r = cure_directory(cp, path, transfer_get(cp->client, path, target, reterr),
                                   reterr);
        if (r == 0 && !streq(target, "-")) {
                copied_came_out(&cp->copied, path, name);
                copied_came_out(&cp->copied, path, target);
        }
        return r;
}

/* --- the command line --- */

/* Splits NAME:PATH. Returns false for a path on the host. */
static bool cp_split(const char *word, char ret_name[SESSION_NAME_MAX + 1], const char **ret_path) {
        size_t length = strcspn(word, ":/");

        if (word[length] != ':' || length > SESSION_NAME_MAX)
                return false;
        (void)memcpy(ret_name, word, length);
        ret_name[length] = '\0';
        *ret_path = word + length + 1;
        return session_name_check(ret_name, NULL) == 0;
}

static int refuse_words(const char *why, Error *reterr) {
        int r = error_set(reterr, ERROR_USAGE, 0, "%s", why);

        return error_cure(reterr, r,
                          "Use holt cp FILE... NAME:PATH, or holt cp NAME:PATH... FILE. Within a "
                          "session: holt files NAME cp FROM TO");
}

/* Checks that either all sources or the destination are in one session, and not both. */
static int check_words(const OptionResult *words, char name[SESSION_NAME_MAX + 1], bool *ret_put,
                       Error *reterr) {
        char other[SESSION_NAME_MAX + 1];
        const char *path;
        size_t last = words->operands_count - 1;
        int r = 0;

        if (words->operands_count < 2)
                return refuse_words(words->operands_count ? "missing DESTINATION"
                                                          : "missing SOURCE and DESTINATION",
                                    reterr);
        *ret_put = cp_split(words->operands[last], name, &path);
        if (!*ret_put && !cp_split(words->operands[0], name, &path))
                return refuse_words("none of the operands names a session (NAME:PATH)", reterr);
        for (size_t i = 0; r == 0 && i < last; i++) {
                bool there = cp_split(words->operands[i], other, &path);

                if (there == *ret_put || (there && !streq(name, other)))
                        r = refuse_words("copy either from the host to one session, or from one "
                                         "session to the host",
                                         reterr);
        }
        return r;
}

/* Names a cure if a word was taken for NAME:PATH, but no such session exists and a file has that
 * name. */
static int cure_colon(const OptionResult *words, int r, Error *reterr) {
        char name[SESSION_NAME_MAX + 1], quoted[1024];
        const char *path;

        for (size_t i = 0; i < words->operands_count; i++) {
                const char *word = words->operands[i];
                _cleanup_close_ int fd = FD_NONE;

                if (cp_split(word, name, &path) && session_open(name, &fd, NULL, NULL) < 0 &&
                    faccessat(AT_FDCWD, word, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                        return error_cure(reterr, r,
                                          "If you mean the file of that name, write ./%s",
                                          str_quote(word, quoted, sizeof(quoted)));
        }
        return r;
}

/* path: in the session. */
static int cp_cure_missing(const char *path, bool into, int r, Error *reterr) {
        if (r != -ENOENT || reterr->cure[0])
                return r;
        if (!into && glob_is_pattern(path))
                return error_cure(reterr, r,
                                  "holt cp does not expand patterns: name each file, or copy the "
                                  "directory with -r. To list the files: holt files NAME ls");
        return error_cure(reterr, r,
                          "PATH is relative to the workspace, as a command inside sees it. To list "
                          "the files: holt files NAME ls");
}

static int cp_check_json(const Cp *cp, const char *destination, Error *reterr) {
        if (!cp->options.json || transfer_own_output(destination) != STDOUT_FILENO)
                return 0;
        (void)error_set(reterr, ERROR_USAGE, 0, "--json and the file would both go to stdout");
        return error_cure(reterr, -EINVAL, "Name a file as destination, or leave out --json.");
}

static int cp_place(void *data, const char *path, FilesPlace *ret) {
        return transfer_place(data, path, ret);
}

/* Removes the directories that killed copies of this session have left on the host. */
static void cp_sweep(Cp *cp) {
        if (session_open(cp->session, &cp->notes.dir_fd, NULL, NULL) == 0)
                unfinished_sweep(&cp->notes, NULL, cp_place, cp->client);
}

static int cp_run(Cp *cp, const OptionResult *words, Error *reterr) {
        const size_t last = words->operands_count - 1;
        const char *path = "";
        bool into = false;
        int r = check_words(words, cp->session, &into, reterr);

        if (r == 0)
                r = cp_check_json(cp, words->operands[last], reterr);
        if (r == 0)
                r = into ? transfer_open(cp->session, &cp->client, reterr)
                         : transfer_open_to_read(cp->session, &cp->client, reterr);
        if (r < 0)
                return cure_colon(words, r, reterr);
        cp_sweep(cp);
        transfer_begin(cp->client, "cp", words->operands);
        for (size_t i = 0; r == 0 && i < last; i++) {
                const char *source = words->operands[i], *destination = words->operands[last];

                (void)cp_split(into ? destination : source, cp->session, &path);
                if (!into && !path[0])
                        path = "."; /* "NAME:" means the workspace */
                r = into ? cp_put(cp, source, path, last > 1, reterr)
                         : cp_get(cp, path, destination, last > 1, reterr);
        }
        r = cp_cure_missing(path, into, r, reterr);
        if (r < 0)
                operands_name_session(cp->session, reterr);
        transfer_end(cp->client, r, reterr);
        cp->client = rpc_client_free(cp->client);
        if (r < 0 && !cp->options.json)
                copied_tell_repository(&cp->copied);
        if (r < 0)
                return r;
        if (cp->options.json)
                return copied_print(&cp->copied, reterr);
        copied_tell(&cp->copied, cp->session, into);
        return 0;
}

int cmd_cp(int argc, char **argv) {
        OptionResult words = { 0 };
        Cp cp = { .notes = { FD_NONE, UNFINISHED_OUTSIDE } };
        Error error;
        int r = stdio_open(NULL, &error);

        if (r == 0)
                r = options_parse(&cp_syntax, argc, (const char *const *)argv, &cp.options, &words,
                                  &error);
        if (r == 0 && words.help)
                options_help(&cp_syntax, stdout);
        else if (r == 0) {
                open_files_raise(); /* one fd stays open for each level of the tree */
                r = cp_run(&cp, &words, &error);
        }
        options_clear(&words);
        copied_clear(&cp.copied);
        return r < 0 ? fail_print(&error, fail_wants_json(argc, argv)) : 0;
}
