/* SPDX-License-Identifier: Apache-2.0 */
/* holt cp: copies files and directories into a session, or out of it. A directory is filled under a
 * temporary name and then renamed, so that the destination is always complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own-limits.h"
#include "base/path-text.h"
#include "base/sys.h"
#include "cli/copied.h"
#include "cli/fail.h"
#include "cli/links.h"
#include "cli/operands.h"
#include "cli/progress.h"
#include "cli/transfer.h"
#include "cli/verbs.h"
#include "files/copy.h"
#include "files/walk.h"
#include "session/directory.h"
#include "streams/stdio.h"

typedef struct CpOptions {
        bool json, recursive;
} CpOptions;

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
        .summary = "Copies files into session NAME, or out of it. PATH is a path as a command "
                   "there sees it,\nrelative to its workspace; \"-\" is stdin or stdout.",
        .options = cp_options,
        .options_count = ELEMENTSOF(cp_options),
        .operands = true,
        .help_epilog = "If the name of a host file contains \":\", write it as ./a:b.",
};

typedef struct Cp {
        CpOptions options;
        RpcClient *client;
        char session[SESSION_NAME_MAX + 1];
        Copied copied;
        const char *made; /* borrowed: name of the directory being filled on the host, or NULL */
        UnfinishedNotes notes; /* notes about such directories, for clearing up after a kill */
} Cp;

/* --- a directory into the session --- */

typedef struct Putting {
        Cp *cp;
        const char *temporary; /* owned by the caller: path in the session */
        Error *reterr;
} Putting;

static int cp_make_directory(Cp *cp, const char *path, unsigned mode, bool owned, Error *reterr) {
        JsonWriter w = transfer_path(path);

        /* The directory must be filled first, so its owner gets all rights. A directory that
         * refuses its own owner is rare. */
        json_write_uint(&w, "mode", (mode & 0777) | 0700);
        json_write_bool(&w, "owned", owned);
        return transfer_cure_parents(
                transfer_call(cp->client, "files.mkdir", &w, FD_NONE, NULL, reterr), path, reterr);
}

static int refuse_entry(const WalkEntry *entry, int r, Error *reterr) {
        char quoted[1024];

        return error_set(reterr, ERROR_SETUP, -r, "cannot read \"%s\"",
                         str_quote(entry->path, quoted, sizeof(quoted)));
}

/* Returns whether path is in the temporary directory made, whose name is random. The session's
 * workspace may be a host directory that is being copied. */
static bool cp_is_own(const char *path, const char *made) {
        const size_t length = strlen(made);

        for (const char *p = path; p; p = strchr(p, '/')) {
                p += *p == '/';
                if (strncmp(p, made, length) == 0 && (p[length] == '/' || p[length] == '\0'))
                        return true;
        }
        return false;
}

static int refuse_itself(Error *reterr) {
        int r = error_set(reterr, ERROR_USAGE, EINVAL, "cannot copy a directory into itself");

        return error_cure(reterr, r,
                          "The destination in the session lies in that directory of the host. "
                          "Choose one outside of it.");
}

static int put_link(const Putting *putting, const WalkEntry *entry, const char *path) {
        int r = link_put(putting->cp->client, entry, path, putting->reterr);

        if (r == 1)
                copied_leave_out(&putting->cp->copied, true, entry->path);
        return r < 0 ? r : WALK_ON;
}

static int put_entry(void *data, const WalkEntry *entry) {
        const Putting *putting = data;
        _cleanup_free_ char *path = str_format("%s/%s", putting->temporary, entry->path);
        _cleanup_close_ int fd = FD_NONE;
        struct stat st;
        int r;

        if (!path)
                return error_oom(putting->reterr);
        if (cp_is_own(entry->name, strrchr(putting->temporary, '/')
                                           ? strrchr(putting->temporary, '/') + 1
                                           : putting->temporary))
                return refuse_itself(putting->reterr);
        if (entry->type == DT_LNK)
                return put_link(putting, entry, path);
        if (entry->type != DT_DIR && entry->type != DT_REG) {
                copied_leave_out(&putting->cp->copied, false, entry->path);
                return WALK_ON;
        }
        fd = sys_open_beneath(entry->dir_fd, entry->name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0)
                return refuse_entry(entry, -errno, putting->reterr);
        if (S_ISREG(st.st_mode))
                return transfer_put_fd(putting->cp->client, fd, path, st.st_mode, putting->reterr);
        /* Another process has replaced the entry. A FIFO may have no end, so it is not read. */
        if (!S_ISDIR(st.st_mode)) {
                copied_leave_out(&putting->cp->copied, false, entry->path);
                return WALK_ON;
        }
        r = cp_make_directory(putting->cp, path, st.st_mode, false, putting->reterr);
        return r < 0 ? r : WALK_DOWN;
}

/* A copy with missing parts is an error. */
static int refuse_missed(const char *path, int errnum, bool into, Error *reterr) {
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

static int put_tree(Cp *cp, int dir_fd, const char *temporary, Error *reterr) {
        Putting putting = { cp, temporary, reterr };
        FilesMissed missed = { 0 };
        int r;

        /* This error applies if the walk itself fails and sets none. */
        (void)error_set(reterr, ERROR_SETUP, 0, "cannot read the directory");
        r = walk_tree(dir_fd, put_entry, &putting, &missed);
        return r == 0 && missed.error != 0 ? refuse_missed(missed.path, -missed.error, true, reterr)
                                           : r;
}

static int move_into_place(Cp *cp, const char *temporary, const char *target, Error *reterr) {
        JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_path(&w, "from", temporary);
        json_write_path(&w, "to", target);
        return transfer_call(cp->client, "files.move", &w, FD_NONE, NULL, reterr);
}

static void remove_temporary(Cp *cp, const char *temporary) {
        JsonWriter w = transfer_path(temporary);

        json_write_bool(&w, "recursive", true);
        (void)transfer_call(cp->client, "files.remove", &w, FD_NONE, NULL, NULL);
}

static int cp_refuse_existing(const char *target, Error *reterr) {
        char quoted[1024];
        int r = error_set(reterr, ERROR_EXISTS, EEXIST, "cannot make the directory \"%s\"",
                          str_quote(target, quoted, sizeof(quoted)));

        return error_cure(reterr, r,
                          "holt cp does not merge directories. Remove the existing one, or choose "
                          "another name.");
}

/* Returns a new temporary name in the directory of target. */
static char *cp_beside(const char *target) {
        const char *slash = strrchr(target, '/');
        char name[UNFINISHED_NAME_SIZE];

        unfinished_name(name);
        return str_format("%.*s%s", slash ? (int)(slash + 1 - target) : 0, target, name);
}

static int put_directory(Cp *cp, const char *directory, const char *target, Error *reterr) {
        _cleanup_close_ int fd = transfer_open_own(cp->client, directory, O_RDONLY | O_DIRECTORY);
        _cleanup_free_ char *temporary = cp_beside(target);
        struct stat st;
        int r;

        if (!temporary)
                return error_oom(reterr);
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(reterr, ERROR_SETUP, fd < 0 ? -fd : errno, "cannot read \"%s\"",
                                 directory);
        r = cp_make_directory(cp, temporary, st.st_mode, true, reterr);
        if (r < 0)
                return r;
        r = put_tree(cp, fd, temporary, reterr);
        if (r == 0)
                r = move_into_place(cp, temporary, target, reterr);
        if (r < 0)
                remove_temporary(cp, temporary);
        return r == -EEXIST ? cp_refuse_existing(target, reterr) : r;
}

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
                return put_directory(cp, source, target, reterr);
        return transfer_put(cp->client, source, target, reterr);
}

/* --- a directory out of the session --- */

/* Opens the directory of name without following a symlink, and sets *ret_last to the last part of
 * name. The copy may lie where a command can write, such as in a workspace, and the command may
 * have made a link. */
static int cp_open_above(int dir_fd, const char *name, const char **ret_last) {
        const char *slash = strrchr(name, '/');
        _cleanup_free_ char *above = slash ? strndup(name, (size_t)(slash - name)) : strdup(".");
        int fd;

        if (!above)
                return -ENOMEM;
        *ret_last = slash ? slash + 1 : name;
        fd = sys_open_beneath(dir_fd, above, O_PATH | O_DIRECTORY);
        return fd < 0 ? -errno : fd;
}

static int refuse_making(const char *what, const char *name, int r, Error *reterr) {
        char quoted[1024];

        return error_set(reterr, ERROR_SETUP, -r, "cannot make %s \"%s\"", what,
                         str_quote(name, quoted, sizeof(quoted)));
}

static int get_file(Cp *cp, const char *path, int dir_fd, const char *name, unsigned mode,
                    Error *reterr) {
        _cleanup_close_ int source_fd = FD_NONE, above_fd = FD_NONE, fd = FD_NONE;
        const char *last;
        uint64_t length = 0;
        unsigned ignored;
        int r = transfer_open_file(cp->client, path, &source_fd, &ignored, reterr);

        if (r < 0)
                return r;
        r = above_fd = cp_open_above(dir_fd, name, &last);
        if (r >= 0) {
                fd = openat(above_fd, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            mode);
                progress_file(source_fd);
                r = fd < 0 ? -errno : files_copy_contents(source_fd, fd, &length);
                progress_done(r == 0, length);
        }
        return r < 0 ? refuse_making("the file", name, r, reterr) : 0;
}

static int get_empty(int dir_fd, const char *name, unsigned mode, Error *reterr) {
        const char *last;
        _cleanup_close_ int above_fd = cp_open_above(dir_fd, name, &last);
        int r = above_fd < 0 ? above_fd : 0;

        if (r == 0 && mkdirat(above_fd, last, mode | 0700) < 0)
                r = -errno;
        return r < 0 ? refuse_making("the directory", name, r, reterr) : 0;
}

/* No file that is written later follows the link; see cp_open_above(). */
static int get_link(Cp *cp, int dir_fd, const char *name, const JsonValue *entry, Error *reterr) {
        const char *last;
        _cleanup_close_ int above_fd = cp_open_above(dir_fd, name, &last);
        int r = above_fd < 0 ? above_fd : link_get(entry, name, above_fd, last);

        if (r == 1)
                copied_leave_out(&cp->copied, true, name);
        return r < 0 ? refuse_making("the link", name, r, reterr) : 0;
}

static int get_entry(Cp *cp, const char *path, int dir_fd, const JsonValue *entry, Error *reterr) {
        const char *type = json_member_text(entry, "type");
        _cleanup_free_ char *name = transfer_entry_name(entry);
        _cleanup_free_ char *source = name ? str_format("%s/%s", path, name) : NULL;
        uint64_t mode = 0;

        if (!source)
                return error_oom(reterr);
        if (cp->made && cp_is_own(name, cp->made))
                return 0;
        if (!streq(type, "file") && !streq(type, "directory") && !streq(type, "link")) {
                copied_leave_out(&cp->copied, false, name);
                return 0;
        }
        copied_came_out(&cp->copied, source, name);
        if (streq(type, "link"))
                return get_link(cp, dir_fd, name, entry, reterr);
        (void)json_uint(json_member(entry, "mode"), 07777, &mode);
        return streq(type, "file")
                       ? get_file(cp, source, dir_fd, name, (unsigned)mode & 0777, reterr)
                       : get_empty(dir_fd, name, (unsigned)mode & 0777, reterr);
}

/* Fails if the session could not list an entry. */
static int check_missed(const JsonValue *missed, Error *reterr) {
        _cleanup_free_ char *name = missed ? transfer_entry_name(missed) : NULL;

        if (!missed)
                return 0;
        return refuse_missed(name ? name : "",
                             streq(json_member_text(missed, "errno"), "EACCES") ? EACCES : E2BIG,
                             false, reterr);
}

static int get_page(Cp *cp, const char *path, int dir_fd, char **after, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        JsonWriter w = transfer_path(path);
        const char *next;
        int r;

        json_write_bool(&w, "recursive", true);
        json_write_uint(&w, "limit", FILES_LIST_MAX);
        if (*after)
                json_write_string(&w, "after", *after);
        r = transfer_call(cp->client, "files.list", &w, FD_NONE, &message, reterr);
        if (r < 0)
                return r;
        for (const JsonValue *entry = json_first(json_member(message.result, "entries"));
             r == 0 && entry; entry = json_next(entry))
                r = get_entry(cp, path, dir_fd, entry, reterr);
        if (r == 0)
                r = check_missed(json_member(message.result, "missed"), reterr);
        next = json_string(json_member(message.result, "next"));
        free(*after);
        *after = next ? strdup(next) : NULL;
        return r == 0 && next && !*after ? error_oom(reterr) : r;
}

static int get_tree(Cp *cp, const char *path, int dir_fd, Error *reterr) {
        _cleanup_free_ char *after = NULL;
        int r;

        do
                r = get_page(cp, path, dir_fd, &after, reterr);
        while (r == 0 && after);
        return r;
}

/* Makes a directory with a temporary name beside the place. Somebody may replace it before it is
 * opened, but sys_open_beneath() follows no link. */
static int make_beside(const Cp *cp, const FilesPlace *place, Unfinished *ret, int *ret_fd) {
        int fd;

        unfinished_begin(&cp->notes, place->dir_fd, NULL, ret);
        if (mkdirat(place->dir_fd, ret->name, 0777) < 0)
                return -errno;
        fd = sys_open_beneath(place->dir_fd, ret->name, O_PATH | O_DIRECTORY);
        if (fd < 0)
                return -errno;
        unfinished_made(ret, fd);
        *ret_fd = fd;
        return 0;
}

static void cp_discard(const FilesPlace *made, int fd, Unfinished *unfinished) {
        if (files_remove_opened(made->dir_fd, made->name, fd) == 0)
                unfinished_end(unfinished);
}

static int get_directory(Cp *cp, const char *path, const char *target, Error *reterr) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        _cleanup_close_ int dir_fd = FD_NONE;
        _cleanup_(unfinished_leave) Unfinished unfinished = UNFINISHED_NONE;
        FilesPlace made = FILES_PLACE_NONE; /* its dir_fd is borrowed from place */
        const bool known = cp->copied.repository;
        int r = transfer_place(cp->client, target, &place);

        if (r == 0)
                r = make_beside(cp, &place, &unfinished, &dir_fd);
        if (r < 0) {
                unfinished_end(&unfinished);
                return refuse_making("the directory", target, r, reterr);
        }
        made.dir_fd = place.dir_fd;
        (void)strcpy(made.name, unfinished.name);
        cp->made = made.name;
        r = get_tree(cp, path, dir_fd, reterr);
        cp->made = NULL;
        if (r == 0) {
                r = files_rename(&made, &place, false);
                if (r == -EEXIST)
                        (void)cp_refuse_existing(target, reterr);
                else if (r < 0)
                        (void)refuse_making("the directory", target, r, reterr);
        }
        if (r == 0) {
                unfinished_end(&unfinished);
                return 0;
        }
        cp_discard(&made, dir_fd, &unfinished);
        if (!known)
                free(TAKE_PTR(cp->copied.repository));
        return r;
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
                r = get_directory(cp, path, target, reterr);
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
                return refuse_words("neither the first nor the last operand is in a session",
                                    reterr);
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
                r = transfer_open(cp->session, &cp->client, reterr);
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
        if (r == -ENOENT && reterr->cure[0] == '\0')
                (void)error_cure(reterr, r,
                                 "PATH is relative to the workspace, as a command inside sees it. "
                                 "To list the files: holt files NAME ls");
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
        int r = stdio_open(&error);

        if (r == 0)
                r = options_parse(&cp_syntax, argc, (const char *const *)argv, &cp.options, &words,
                                  &error);
        if (r == 0 && words.help) {
                options_help(&cp_syntax, stdout);
                return 0;
        }
        if (r == 0) {
                open_files_raise(); /* one fd stays open for each level of the tree */
                r = cp_run(&cp, &words, &error);
        }
        options_clear(&words);
        copied_clear(&cp.copied);
        return r < 0 ? fail_print(&error, fail_wants_json(argc, argv)) : 0;
}
