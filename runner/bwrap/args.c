/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through the words of a command line, or of a file that --args names. */
#include "bwrap/args.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "bwrap/options.h"

enum {
        ARGS_BYTES_MAX = 8 << 20,
        ARGS_WORDS_MAX = 65536,
        ARGS_FILES_MAX = 64,
};

/* --- one option --- */

static int parser_check_values(const BwrapOption *option, size_t left, Error *reterr) {
        static const char *const counts[] = { "no values", "a value", "two values",
                                              "three values" };

        return left < option->values ? error_set(reterr, ERROR_USAGE, 0, "%s needs %s",
                                                 option->name, counts[option->values])
                                     : 0;
}

/* Refuses an option that an earlier one cannot apply to. NULL stands for the end. */
static int parser_check_pending(const Parser *p, const BwrapOption *next, Error *reterr) {
        const unsigned takes = next ? next->takes : 0;

        if (p->has_mode && !(takes & TAKES_MODE))
                return error_set(
                        reterr, ERROR_USAGE, 0,
                        "--perms must come before an option that makes a file, directory or "
                        "tmpfs");
        if (p->size && !(takes & TAKES_SIZE))
                return error_set(reterr, ERROR_USAGE, 0, "--size must come before --tmpfs");
        if (p->layers &&
            (!next || (next->kind != ASSEMBLY_LAYER && next->kind != ASSEMBLY_OVERLAY)))
                return error_set(reterr, ERROR_USAGE, 0,
                                 "--overlay-src must come before another --overlay-src, --overlay, "
                                 "--tmp-overlay or --ro-overlay");
        return 0;
}

/* Parses the option at *at, and moves *at behind its values. */
static int parser_step(Parser *p, char *const *words, size_t count, size_t *at, Error *reterr) {
        const BwrapOption *option = bwrap_option(words[*at]);
        int r;

        if (!option)
                return error_set(reterr, ERROR_USAGE, 0, "Unknown option %s", words[*at]);
        r = parser_check_pending(p, option, reterr);
        if (r == 0)
                r = parser_check_values(option, count - *at - 1, reterr);
        if (r < 0)
                return r;
        p->option = option;
        r = option->take(p, (const char *const *)words + *at + 1, reterr);
        *at += 1 + option->values;
        return r;
}

static bool parser_wants_no_more(const Parser *p) {
        return p->words->help || p->words->version;
}

/* --- a file of options --- */

/* Reads the file to its end. The caller owns the result, which ends in a NUL. */
static char *read_words(int fd, size_t *ret_length) {
        size_t length = 0, room = 16384;
        char *data = malloc(room);
        ssize_t n = 1;

        while (data && n != 0 && length < ARGS_BYTES_MAX) {
                n = read(fd, data + length, room - length - 1);
                if (n < 0 && errno != EINTR)
                        break;
                length += n > 0 ? (size_t)n : 0;
                if (length + 1 == room) {
                        char *grown = realloc(data, room *= 2);

                        if (!grown)
                                break;
                        data = grown;
                }
        }
        if (n != 0) {
                free(data);
                return NULL;
        }
        data[length] = '\0';
        *ret_length = length;
        return data;
}

/* Keeps the text for the strings that the assembly borrows. */
static int words_keep(BwrapWords *words, char *data) {
        char **args = data && words->args_count < ARGS_FILES_MAX
                              ? reallocarray(words->args, words->args_count + 1, sizeof(*args))
                              : NULL;

        if (!args) {
                free(data);
                return -ENOMEM;
        }
        words->args = args;
        args[words->args_count++] = data;
        return 0;
}

/* Splits the text into words. The caller owns the list. */
static char **words_split(char *data, size_t length, size_t *ret_count) {
        size_t count = 0;
        char **list = NULL;

        for (size_t i = 0; i < length; i++)
                count += data[i] == '\0';
        count += length > 0 && data[length - 1] != '\0';
        if (count <= ARGS_WORDS_MAX)
                list = calloc(count + 1, sizeof(*list));
        for (size_t i = 0; list && i < count; i++) {
                list[i] = data;
                data += strlen(data) + 1;
        }
        *ret_count = count;
        return list;
}

int bwrap_read_args(Parser *p, int fd, Error *reterr) {
        size_t length = 0, count = 0, at = 0;
        char *data = read_words(fd, &length);
        _cleanup_free_ char **list = NULL;
        int r = 0;

        (void)close(fd);
        sys_keep_places();
        if (words_keep(p->words, data) < 0 || !(list = words_split(data, length, &count)))
                return error_set(reterr, ERROR_USAGE, 0, "--args: cannot read fd %d", fd);
        while (r == 0 && at < count && !parser_wants_no_more(p)) {
                if (list[at][0] != '-' || streq(list[at], "--"))
                        return error_set(reterr, ERROR_USAGE, 0,
                                         "--args: \"%s\" is no option; COMMAND comes after the "
                                         "other arguments",
                                         list[at]);
                r = parser_step(p, list, count, &at, reterr);
        }
        return r;
}

/* --- the command line --- */

static int words_copy_env(BwrapWords *words, char *const *env) {
        int r = 0;

        for (; r == 0 && *env; env++)
                if (!str_starts(*env, "HOLT_BWRAP_"))
                        r = strlist_add(&words->env, *env);
        return r;
}

typedef struct Demand {
        bool wrong;
        const char *text;
} Demand;

/* Options that need others, or exclude them. */
static int words_check(const BwrapWords *words, Error *reterr) {
        const Assembly *a = &words->assembly;
        const bool user = words->user_asked || words->user_try_asked || a->userns_fd >= 0;
        const Demand demands[] = {
                { a->userns_fd >= 0 && words->user_asked,
                  "--userns and --unshare-user exclude each other" },
                { a->userns_fd >= 0 && words->user_try_asked,
                  "--userns and --unshare-user-try exclude each other" },
                { a->disable_userns && !words->user_asked,
                  "--disable-userns needs --unshare-user" },
                { a->disable_userns && a->userns_block_fd >= 0,
                  "--disable-userns and --userns-block-fd exclude each other" },
                { a->userns_block_fd >= 0 && a->info_fd < 0, "--userns-block-fd needs --info-fd" },
                { a->info_fd >= 0 && a->info_fd == a->status_fd,
                  "--info-fd and --json-status-fd need different descriptors" },
                { a->userns2_fd >= 0 && a->userns_fd < 0, "--userns2 needs --userns" },
                { a->uid >= 0 && !user && geteuid() == 0,
                  "--uid needs --unshare-user or --userns" },
                { a->gid >= 0 && !user && geteuid() == 0,
                  "--gid needs --unshare-user or --userns" },
                { a->hostname && !(a->namespaces & CLONE_NEWUTS),
                  "--hostname needs --unshare-uts" },
                { a->as_pid_1 && !(a->namespaces & CLONE_NEWPID),
                  "--as-pid-1 needs --unshare-pid" },
                { a->as_pid_1 && a->locks_count > 0,
                  "--as-pid-1 and --lock-file exclude each other" },
        };

        for (size_t i = 0; i < ELEMENTSOF(demands); i++)
                if (demands[i].wrong)
                        return error_set(reterr, ERROR_USAGE, 0, "%s", demands[i].text);
        return 0;
}

int bwrap_parse(int argc, char *const *argv, char *const *env, BwrapWords *ret, Error *reterr) {
        Assembly *a = &ret->assembly;
        Parser p = { .words = ret };
        size_t at = 1, count = (size_t)argc;
        int r;

        *ret = (BwrapWords){ 0 };
        a->userns_fd = a->userns2_fd = a->pidns_fd = FD_NONE;
        a->block_fd = a->userns_block_fd = a->info_fd = a->status_fd = a->sync_fd = FD_NONE;
        a->uid = a->gid = -1;
        a->capabilities = getuid() == 0 ? UINT64_MAX : 0;
        r = words_copy_env(ret, env);
        if (r < 0)
                return error_oom(reterr);
        while (r == 0 && at < count && argv[at][0] == '-' && !streq(argv[at], "--") &&
               !parser_wants_no_more(&p))
                r = parser_step(&p, argv, count, &at, reterr);
        if (r < 0 || parser_wants_no_more(&p))
                return r;
        at += at < count && streq(argv[at], "--");
        a->argv = (const char *const *)argv + at;
        r = parser_check_pending(&p, NULL, reterr);
        return r == 0 ? words_check(ret, reterr) : r;
}

void bwrap_words_clear(BwrapWords *words) {
        free(words->assembly.steps);
        strlist_clear(&words->env);
        for (size_t i = 0; i < words->args_count; i++)
                free(words->args[i]);
        free(words->args);
        *words = (BwrapWords){ 0 };
}
