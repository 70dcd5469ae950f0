/* SPDX-License-Identifier: Apache-2.0 */
#include "git/attributes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "git/config.h"
#include "git/repository.h"

static const char blanks[] = " \t\r";

static int attributes_add(const char *name, size_t length, StrList *ret) {
        char *copy = length > 0 ? strndup(name, length) : NULL;

        if (length == 0)
                return 0;
        if (copy && (strlist_has(ret, copy) || ret->count >= GIT_ATTRIBUTES_FILTERS_MAX)) {
                free(copy);
                return 0;
        }
        return strlist_take(ret, copy);
}

/* The first word is the pattern. In a macro it is [attr]NAME, and its attributes follow, too. */
static int attributes_read_line(const char *line, const char *end, StrList *ret) {
        static const char key[] = "filter=";
        int r = 0;

        line += strspn(line, blanks);
        if (*line == '#')
                return 0;
        line += strcspn(line, " \t\r\n");
        while (r == 0 && line < end) {
                size_t length;

                line += strspn(line, blanks);
                length = strcspn(line, " \t\r\n");
                if (str_starts(line, key) && length > strlen(key))
                        r = attributes_add(line + strlen(key), length - strlen(key), ret);
                line += length;
                if (*line == '\n')
                        break;
        }
        return r;
}

int git_attributes_filters(const char *text, StrList *ret) {
        int r = 0;

        while (r == 0 && *text) {
                const char *end = strchrnul(text, '\n');

                r = attributes_read_line(text, end, ret);
                text = *end ? end + 1 : end;
        }
        return r;
}

/* --- in a work tree --- */

/* Adds nothing if the file cannot be read. */
static int attributes_read(int tree_fd, const char *path, StrList *ret) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        const int fd = sys_open_beneath(tree_fd, path, O_PATH | O_NOFOLLOW);
        int r = repository_read_fd(NULL, fd, GIT_ATTRIBUTES_SIZE_MAX, &text, &size);

        return r == 0 ? git_attributes_filters(text, ret) : r == -ENOMEM ? r : 0;
}

/* Reads the repository's config. Returns false if it does not tell everything. */
static bool attributes_read_config(const LaunchPlan *plan, int tree_fd, GitConfig *ret) {
        const int fd = sys_open_beneath(tree_fd, ".git/config", O_PATH | O_NOFOLLOW);
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        return repository_read_fd(plan, fd, GIT_CONFIG_SIZE_MAX, &text, &size) == 0 &&
               git_config_read(text, size, ret) == 0 && ret->includes.count == 0;
}

int git_attributes_missing(const LaunchPlan *plan, int tree_fd, StrList *ret) {
        _cleanup_(git_config_clear) GitConfig config = { 0 };
        _cleanup_(strlist_clear) StrList named = { 0 };
        int r = attributes_read(tree_fd, ".gitattributes", &named);

        if (r == 0)
                r = attributes_read(tree_fd, ".git/info/attributes", &named);
        if (r < 0 || named.count == 0 || !attributes_read_config(plan, tree_fd, &config))
                return r;
        for (size_t i = 0; r == 0 && i < named.count; i++)
                if (!strlist_has(&config.filters, named.items[i]))
                        r = strlist_add(ret, named.items[i]);
        return r;
}
