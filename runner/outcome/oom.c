/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"

/* The longest file is /proc/vmstat with 4 to 7 KiB. A longer file is cut. */
enum { TEXT_MAX = 8 * 1024 };

/* --- the kernel's files --- */

static const char *oom_next_line(const char *line) {
        const char *end = strchr(line, '\n');

        return end ? end + 1 : NULL;
}

/* Whether word is in a list that has commas between its items and ends at a colon. */
static bool list_has(const char *list, const char *word) {
        const size_t length = strlen(word);

        for (;; list++) {
                size_t item = strcspn(list, ",:\n");

                if (item == length && strncmp(list, word, length) == 0)
                        return true;
                list += item;
                if (*list != ',')
                        return false;
        }
}

/* Whether the path leaves the cgroup namespace. A process that was moved in from outside sees
 * "/../..". */
static bool leads_out(const char *path, size_t length) {
        for (size_t i = 0; i + 3 <= length; i++)
                if (strncmp(path + i, "/..", 3) == 0 && (i + 3 == length || path[i + 3] == '/'))
                        return true;
        return false;
}

int oom_find_cgroup(const char *text, bool *ret_v1, const char **ret_path, size_t *ret_length) {
        const char *found = NULL;
        bool v1 = false;
        size_t length;

        /* A line of cgroup v1 is "4:memory:/path", and that of v2 is "0::/path". A hybrid host has
         * both; a controller of v1 does not exist in v2 then. */
        for (const char *line = text; line && !v1; line = oom_next_line(line)) {
                const char *list = line + strspn(line, "0123456789");
                const char *path = *list == ':' ? list + 1 + strcspn(list + 1, ":\n") : list;

                if (list == line || path[0] != ':' || path[1] != '/' || !strchr(path, '\n'))
                        continue;
                v1 = list_has(list + 1, "memory");
                if (v1 || str_starts(line, "0::"))
                        found = path + 1;
        }
        if (!found)
                return -ENODATA;
        length = strcspn(found, "\n");
        if (leads_out(found, length))
                return -EXDEV;
        *ret_v1 = v1;
        *ret_path = found;
        *ret_length = length;
        return 0;
}

static int parse_number(const char *text, uint64_t *ret) {
        char number[24];
        size_t length = strcspn(text, "\n");

        if (length >= sizeof(number))
                return -ERANGE;
        memcpy(number, text, length);
        number[length] = '\0';
        return str_to_uint(number, UINT64_MAX, ret);
}

int oom_find_count(const char *text, const char *key, uint64_t *ret) {
        const size_t length = strlen(key);

        for (const char *line = text; line; line = oom_next_line(line))
                if (strncmp(line, key, length) == 0 && line[length] == ' ')
                        return parse_number(line + length + 1, ret);
        return -ENODATA;
}

/* Reads from the start each time, because the kernel generates the content at each read. */
static int read_again(int fd, char *buf, size_t size) {
        size_t length = 0;
        ssize_t n = 1;

        while (n > 0 && length < size - 1) {
                n = pread(fd, buf + length, size - 1 - length, (off_t)length);
                if (n < 0)
                        return -errno;
                length += (size_t)n;
        }
        buf[length] = '\0';
        return 0;
}

static int oom_read_text(int dir_fd, const char *name, char *buf, size_t size) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -errno : read_again(fd, buf, size);
}

static int read_events(int fd, OomEvents *ret) {
        char text[TEXT_MAX] = "";
        int r = read_again(fd, text, sizeof(text));

        if (r < 0)
                return r;
        if (oom_find_count(text, "oom", &ret->oom) < 0)
                ret->oom = 0;
        return oom_find_count(text, "oom_kill", &ret->oom_kill);
}

/* --- finding them --- */

typedef struct Place {
        const char *directory, *file;
} Place;

/* The mount points that all distributions and container engines use. */
static const Place v1_places[] = {
        { "/sys/fs/cgroup/memory", "memory.oom_control" },
        { NULL, NULL },
};
static const Place v2_places[] = {
        { "/sys/fs/cgroup", "memory.events" },
        { "/sys/fs/cgroup/unified",
          "memory.events" }, /* A hybrid host, whose v1 has no memory controller. */
        { NULL, NULL },
};
static const Place machine = { "/proc", "vmstat" };

static int oom_open_directory(const char *root, const char *directory, const char *below,
                              size_t length) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s%s%.*s", root, directory, (int)length, below);

        if (n < 0 || (size_t)n >= sizeof(path))
                return -ENAMETOOLONG;
        n = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return n < 0 ? -errno : n;
}

static size_t oom_count_parts(const char *path, size_t length) {
        size_t count = 0;

        for (size_t i = 0; i + 1 < length; i++)
                count += path[i] == '/';
        return count;
}

/* Watches the nearest cgroup that counts memory. A cgroup of v2 without a memory controller is
 * accounted to the next one above that has it. Takes ownership of dir_fd. */
static int watch_upwards(int dir_fd, size_t above, const char *file, OomWatch *ret) {
        _cleanup_close_ int fd = dir_fd, file_fd = FD_NONE;
        int r;

        while ((file_fd = openat(fd, file, O_RDONLY | O_CLOEXEC)) < 0 && errno == ENOENT &&
               above-- > 0) {
                int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

                if (up < 0)
                        return -errno;
                fd_close(fd);
                fd = up;
        }
        r = file_fd < 0 ? -errno : read_events(file_fd, &ret->before);
        if (r < 0)
                return r;
        ret->fd = TAKE_FD(file_fd);
        ret->dir_fd = TAKE_FD(fd);
        return 0;
}

/* Watches one place. A container without a cgroup namespace sees its path on the host, but its
 * mount shows its own cgroup. Then the path does not exist below the mount, and the mount itself is
 * used. */
static int watch_place(const char *root, const Place *place, const char *path, size_t length,
                       OomWatch *ret) {
        int fd = oom_open_directory(root, place->directory, path, length);

        if (fd == -ENOENT) {
                length = 0;
                fd = oom_open_directory(root, place->directory, "", 0);
        }
        return fd < 0 ? fd : watch_upwards(fd, oom_count_parts(path, length), place->file, ret);
}

static int watch_cgroup(const char *root, int proc_fd, OomWatch *ret) {
        char text[TEXT_MAX];
        const char *path;
        size_t length;
        bool v1;
        int r = oom_read_text(proc_fd, "self/cgroup", text, sizeof(text));

        if (r < 0)
                return r;
        r = oom_find_cgroup(text, &v1, &path, &length);
        if (r < 0)
                return r;
        r = -ENOENT;
        for (const Place *place = v1 ? v1_places : v2_places; place->file && r < 0; place++)
                r = watch_place(root, place, path, length, ret);
        return r;
}

void oom_watch_start(const char *root, OomWatch *ret) {
        int fd = oom_open_directory(root, machine.directory, "", 0);

        *ret = (OomWatch)OOM_WATCH_NONE;
        if (fd < 0)
                return;
        if (watch_cgroup(root, fd, ret) == 0)
                ret->scope = OOM_CGROUP;
        else if (watch_upwards(TAKE_FD(fd), 0, machine.file, ret) == 0)
                ret->scope = OOM_MACHINE;
        fd_close(fd);
}

/* --- the end --- */

/* Returns the limit in bytes; 0 for "max", which means no limit. */
static uint64_t read_limit(int dir_fd) {
        char text[32];
        uint64_t limit = 0;

        if (oom_read_text(dir_fd, "memory.max", text, sizeof(text)) == 0)
                (void)parse_number(text, &limit);
        return limit;
}

static OomKills count_kills(OomWatch *watch) {
        OomKills kills = { 0 };
        OomEvents now;

        if (watch->fd < 0 || read_events(watch->fd, &now) < 0 ||
            now.oom_kill < watch->before.oom_kill)
                return kills;
        kills.scope = watch->scope;
        kills.count = now.oom_kill - watch->before.oom_kill;
        /* The counter "oom" counts only events of this limit or one below. */
        if (kills.count > 0 && now.oom > watch->before.oom)
                kills.limit = read_limit(watch->dir_fd);
        watch->before = now;
        return kills;
}

bool oom_watch_killed(OomWatch *watch) {
        const OomKills kills = count_kills(watch);

        return kills.scope == OOM_CGROUP && kills.count > 0;
}

OomKills oom_watch_end(OomWatch *watch) {
        const OomKills kills = count_kills(watch);

        watch->fd = fd_close(watch->fd);
        watch->dir_fd = fd_close(watch->dir_fd);
        return kills;
}
