/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/links.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/path-text.h"
#include "cli/transfer.h"

static size_t link_depth(const char *path) {
        size_t depth = 0;

        for (; *path; path++)
                depth += *path == '/';
        return depth;
}

/* Returns whether the symlink at path, relative to the top of the tree, leads to a place in the
 * tree, whether or not that exists. The target must be relative, and may have ".." only at its
 * start. After a name, ".." could start from the end of another link. Other links on the way belong
 * to the tree, so the same holds for them. */
static bool link_stays(const char *path, const char *target) {
        size_t depth = link_depth(path);
        bool named = false;

        if (target[0] == '\0' || target[0] == '/' || strlen(target) >= PATH_MAX)
                return false;
        for (size_t length; *target; target += length + strspn(target + length, "/")) {
                length = strcspn(target, "/");
                if (length == 1 && target[0] == '.')
                        continue;
                if (length != 2 || target[0] != '.' || target[1] != '.')
                        named = true;
                else if (named || depth-- == 0)
                        return false;
        }
        return true;
}

int link_put(RpcClient *client, const WalkEntry *entry, const char *path, Error *reterr) {
        char target[PATH_MAX];
        ssize_t n = readlinkat(entry->dir_fd, entry->name, target, sizeof(target));
        JsonWriter w;

        /* Another process has replaced the link. */
        if (n < 0 || n == (ssize_t)sizeof(target))
                return 1;
        target[n] = '\0';
        if (!link_stays(entry->path, target))
                return 1;
        w = transfer_path(path);
        json_write_path(&w, "target", target);
        return transfer_call(client, "files.link", &w, FD_NONE, NULL, reterr);
}

/* In a reply, a target that is not UTF-8 has U+FFFD in it, and so leads nowhere. */
int link_get(const JsonValue *entry, const char *path, int above_fd, const char *name) {
        const char *target = json_member_text(entry, "target");

        if (strstr(target, "\xef\xbf\xbd") || !link_stays(path, target))
                return 1;
        return symlinkat(target, above_fd, name) < 0 ? -errno : 0;
}
