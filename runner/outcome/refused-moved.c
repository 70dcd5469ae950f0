/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/refused-moved.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/strings.h"
#include "base/sys.h"

static int moved_open(const PlanMount *mount, const char *below, int flags) {
        const int resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

        return sys_openat2(mount->fd, below, (uint64_t)(unsigned)(flags | O_CLOEXEC), 0,
                           (uint64_t)(unsigned)resolve);
}

int refused_open_shown(const PlanMount *mount, const char *path, int flags) {
        const char *below = path_rest(path, mount->target);

        return below && below[0] ? moved_open(mount, below, flags) : -ENOENT;
}

bool refused_interpreter(const PlanMount *mount, const char *path, char ret[PATH_MAX]) {
        _cleanup_close_ int fd = plan_mount_shows_host(mount)
                                         ? refused_open_shown(mount, path, O_RDONLY | O_NONBLOCK)
                                         : FD_NONE;
        const char *name = ret + 2;
        struct stat st;
        ssize_t n = -1;

        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                n = pread(fd, ret, PATH_MAX - 1, 0);
        ret[n < 0 ? 0 : n] = '\0';
        if (ret[0] != '#' || ret[1] != '!')
                return false;
        name += strspn(name, " \t");
        ret[2 + strcspn(ret + 2, "\r\n")] = '\0';
        (void)memmove(ret, name, strlen(name) + 1);
        ret[strcspn(ret, " \t")] = '\0';
        return ret[0] == '/';
}

char *refused_moved(const LaunchPlan *plan, const char *path) {
        const PlanMount *mount = plan_workspace(plan);
        const char *below = mount && !streq(mount->source, mount->target)
                                    ? path_rest(path, mount->source)
                                    : NULL;
        _cleanup_close_ int fd = below && below[0] ? moved_open(mount, below, O_PATH | O_NOFOLLOW)
                                                   : FD_NONE;
        _cleanup_free_ char *word = fd < 0 ? NULL : str_word(mount->source);
        char target[512], name[512];

        if (fd < 0)
                return NULL;
        return str_format("inside it is %s/%s. If files contain their own paths, as in a virtual "
                          "environment, use the same path inside: %s--workspace %s:%s",
                          str_quote(mount->target, target, sizeof(target)),
                          str_quote(below, name, sizeof(name)),
                          plan->root.source ? "holt create " : "", word ? word : "DIR",
                          word ? word : "DIR");
}

/* Reads the symlink at path into ret. Returns its length, or a negative value. */
static ssize_t moved_read_link(const PlanMount *mount, const char *path, char ret[PATH_MAX]) {
        _cleanup_close_ int fd = refused_open_shown(mount, path, O_PATH | O_NOFOLLOW);
        const ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", ret, PATH_MAX - 1);

        if (n > 0)
                ret[n] = '\0';
        return n;
}

static char *moved_link_words(const char *text, bool change) {
        char quoted[256];

        return str_format("the link is %s%s", str_quote(text, quoted, sizeof(quoted)),
                          change ? ": write to another place, or replace the link"
                                 : ", and holt does not look at its target. If you trust it, mount "
                                   "the target");
}

char *refused_link_out(const PlanMount *mount, const char *path, bool change, char **ret_target) {
        _cleanup_free_ char *part = plan_mount_shows_host(mount) ? strdup(path) : NULL;
        char text[PATH_MAX];

        for (char *end = part ? part + strlen(mount->target) : NULL; end && *end;) {
                char *slash = part;
                ssize_t n;
                char kept;

                end += 1 + strcspn(end + 1, "/");
                kept = *end;
                *end = '\0';
                n = moved_read_link(mount, part, text);
                slash = strrchr(part, '/');
                if (n > 0 && slash > part) {
                        _cleanup_free_ char *target = NULL;
                        const char *rest = path + (end - part);

                        *slash = '\0';
                        target = path_join(part, text);
                        *ret_target = target ? str_format("%s%s", target, rest) : NULL;
                        return *ret_target ? moved_link_words(text, change) : NULL;
                }
                *end = kept;
        }
        return NULL;
}
