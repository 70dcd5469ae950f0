/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/refused-links.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/strings.h"
#include "base/sys.h"

/* A failing command must not take noticeably longer: about 1 ms for all of this. */
enum {
        ENTRIES_MAX = 1000, /* Directory entries that one search reads. */
        DEPTH_MAX = 3,      /* Nesting depth of directories. */
        PROGRAMS_MAX = 8,   /* Programs of a shell's command line. */
        SCRIPT_MAX = 16384, /* Bytes of a script that are read. */
};

typedef struct LinkSearch {
        const LaunchPlan *plan;
        const SystemTree *system;
        int tree_fd;        /* The system tree on the host. */
        int usr_fd;         /* The same, or the root inside: /usr is read there. */
        char top[PATH_MAX]; /* The system tree's path on the host; "" if it is the host's own. */
        unsigned left;      /* Entries that may still be read. */
        unsigned programs;  /* Programs that may still be looked at. */
        DeadLinks *found;
} LinkSearch;

/* Opens a path below /usr for reading. */
static int links_read(const LinkSearch *search, const char *path, int flags) {
        return sys_openat2(search->usr_fd, path + 1, (uint64_t)(unsigned)(flags | O_CLOEXEC), 0,
                           RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* Opens a path of the system tree as O_PATH. */
static int links_look(const LinkSearch *search, const char *path) {
        return sys_openat2(search->tree_fd, path + 1, O_PATH | O_CLOEXEC, 0,
                           RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* --- one link --- */

/* Whether the sandbox shows the absolute path in any way. */
static bool links_shows(const LinkSearch *search, const char *path) {
        if (plan_mount_above(search->plan, path))
                return true;
        for (size_t i = 0; i < search->system->count; i++)
                if (path_below(path + 1, search->system->entries[i].path))
                        return true;
        return tree_writes(path);
}

/* Returns the entry of /etc, /var/lib or /var/cache in which the target lies; owned by the caller.
 * NULL if it lies elsewhere. */
static char *links_entry(const char *target) {
        for (size_t i = 0; i < tree_shown_count; i++) {
                const char *rest = path_rest(target + 1, tree_shown[i].directory);

                if (rest && rest[0])
                        return strndup(target, (size_t)(rest - target) + strcspn(rest, "/"));
        }
        return NULL;
}

/* Whether an option may show the entry: every user may read it, and it is no secret. */
static bool links_may_show(const LinkSearch *search, const char *entry) {
        _cleanup_close_ int fd = links_look(search, entry);
        const char *why;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !(st.st_mode & S_IROTH))
                return false;
        return !str_starts(entry, "/etc/") || tree_etc_check(entry + 5, &why) == 0;
}

static bool links_has(const DeadLinks *found, const char *entry) {
        for (unsigned i = 0; i < found->count; i++)
                if (streq(found->items[i].target, entry))
                        return true;
        return false;
}

/* Notes the symlink called name in directory, if it leads to something that is missing inside. */
static void links_judge(LinkSearch *search, int dir_fd, const char *directory, const char *name) {
        char text[PATH_MAX];
        const ssize_t n = readlinkat(dir_fd, name, text, sizeof(text) - 1);
        _cleanup_free_ char *target = NULL, *entry = NULL, *path = NULL;
        _cleanup_close_ int fd = FD_NONE;
        DeadLinks *found = search->found;

        if (n <= 0 || found->count == LINKS_FOUND_MAX)
                return;
        text[n] = '\0';
        target = path_join(directory, text);
        entry = target ? links_entry(target) : NULL;
        if (!entry || links_shows(search, target) || links_has(found, entry))
                return;
        fd = links_look(search, target);
        path = str_format("%s/%s", directory, name);
        if (fd >= 0 && path && links_may_show(search, entry))
                found->items[found->count++] = (DeadLink){ TAKE_PTR(path), TAKE_PTR(entry) };
}

/* --- the directories of a package --- */

static void links_walk(LinkSearch *search, int dir_fd, const char *directory, unsigned depth);

static void links_visit(LinkSearch *search, int dir_fd, const char *directory,
                        const struct dirent *entry, unsigned depth) {
        _cleanup_free_ char *path = NULL;
        int fd;

        if (entry->d_type == DT_LNK)
                links_judge(search, dir_fd, directory, entry->d_name);
        if (entry->d_type != DT_DIR || depth == DEPTH_MAX || streq(entry->d_name, ".") ||
            streq(entry->d_name, ".."))
                return;
        path = str_format("%s/%s", directory, entry->d_name);
        fd = path ? openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                  : FD_NONE;
        if (fd >= 0)
                links_walk(search, fd, path, depth + 1);
}

/* Takes ownership of dir_fd. */
static void links_walk(LinkSearch *search, int dir_fd, const char *directory, unsigned depth) {
        DIR *dir = fdopendir(dir_fd);
        const struct dirent *entry;

        if (!dir) {
                fd_close(dir_fd);
                return;
        }
        while (search->left > 0 && (entry = readdir(dir))) {
                search->left--;
                links_visit(search, dirfd(dir), directory, entry, depth);
        }
        (void)closedir(dir);
}

static const char *const package_places[] = {
        "/usr/share/",   "/usr/lib/",         "/usr/lib64/",
        "/usr/libexec/", "/usr/local/share/", "/usr/local/lib/",
};

/* Searches the directory called name in place. */
static void links_search(LinkSearch *search, const char *place, const char *name, size_t length) {
        _cleanup_free_ char *path = str_format("%s%.*s", place, (int)length, name);
        int fd = path && length > 0 ? links_read(search, path, O_RDONLY | O_DIRECTORY) : FD_NONE;

        if (fd >= 0)
                links_walk(search, fd, path, 0);
}

/* Searches the directories named like the program, with and without its version. */
static void links_search_named(LinkSearch *search, const char *program) {
        const char *name = strrchr(program, '/') + 1;
        size_t whole = strlen(name), part = whole;

        while (part > 0 && strchr("-.0123456789", name[part - 1]))
                part--;
        for (size_t i = 0; i < ELEMENTSOF(package_places); i++) {
                links_search(search, package_places[i], name, whole);
                if (part < whole)
                        links_search(search, package_places[i], name, part);
        }
}

/* Returns the length of the directory's name at the start of text. A directory of libraries, such
 * as "x86_64-linux-gnu", belongs to no package, but the one below it does. */
static size_t links_name_length(const char *text) {
        static const char ends[] = "/ \t\n\"'`;:&|<>(){}$*?\\";
        const size_t length = strcspn(text, ends);
        const char *libraries = memmem(text, length, "-linux-", strlen("-linux-"));

        if (!libraries)
                return length;
        return text[length] == '/' ? length + 1 + strcspn(text + length + 1, ends) : 0;
}

/* Searches each directory of a package that the text names. */
static void links_search_text(LinkSearch *search, const char *text) {
        for (const char *at = text; (at = strstr(at, "/usr/")) != NULL; at++)
                for (size_t i = 0; i < ELEMENTSOF(package_places); i++) {
                        const char *name = at + strlen(package_places[i]);

                        if (str_starts(at, package_places[i]))
                                links_search(search, package_places[i], name,
                                             links_name_length(name));
                }
}

/* --- the programs of a command --- */

/* Searches the directories of packages that the script at fd names. */
static void links_search_script(LinkSearch *search, int fd) {
        char *text = malloc(SCRIPT_MAX + 1);
        const ssize_t n = text ? pread(fd, text, SCRIPT_MAX, 0) : -1;

        if (n > 2 && memcmp(text, "#!", 2) == 0) {
                text[n] = '\0';
                links_search_text(search, text);
        }
        free(text);
}

/* Searches the package of a program of the system. Returns false if path is no such program. */
static bool links_search_program(LinkSearch *search, const char *path) {
        _cleanup_close_ int fd = links_read(search, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        char real[PATH_MAX];
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || path_of_fd(fd, real) < 0 ||
            !path_below(real, search->top[0] ? search->top : "/"))
                return false;
        links_search_text(search, real + strlen(search->top));
        links_search_named(search, path);
        links_search_named(search, real);
        links_search_script(search, fd);
        return true;
}

/* Looks a word up like a shell, except that a path must be absolute. An attacker may have chosen
 * the words, and opening a device or a name of an automounter has an effect. So only the system
 * tree is opened. */
static void links_search_word(LinkSearch *search, const char *word, size_t length) {
        static const char *const places[] = { "/usr/local/bin/", "/usr/bin/", "/usr/sbin/", "/bin/",
                                              "/usr/games/" };
        bool done = search->programs == 0 || length == 0 || length > NAME_MAX;

        if (!done && word[0] == '/') {
                _cleanup_free_ char *given = strndup(word, length);
                _cleanup_free_ char *path = given ? path_join("/", given) : NULL;

                done = !path || (tree_has(path) && links_search_program(search, path));
                search->programs -= done;
        }
        for (size_t i = 0; !done && !memchr(word, '/', length) && i < ELEMENTSOF(places); i++) {
                _cleanup_free_ char *path = str_format("%s%.*s", places[i], (int)length, word);

                done = !path || links_search_program(search, path);
                search->programs -= done;
        }
}

/* Programs that run the programs among their words. */
static const char *const runners[] = {
        "bash", "dash",   "env",  "ionice",  "nice",  "nohup",
        "sh",   "stdbuf", "time", "timeout", "xargs", "zsh",
};

static bool is_runner(const char *program) {
        const char *name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;

        for (size_t i = 0; i < ELEMENTSOF(runners); i++)
                if (streq(name, runners[i]))
                        return true;
        return false;
}

static void links_search_words(LinkSearch *search, const char *const *argv) {
        static const char ends[] = " \t\n;|&(){}<>\"'`$=";

        if (!is_runner(argv[0])) {
                links_search_word(search, argv[0], strlen(argv[0]));
                return;
        }
        for (size_t i = 1; argv[i] && search->programs > 0; i++)
                for (const char *word = argv[i]; *word && search->programs > 0;) {
                        const size_t length = strcspn(word, ends);

                        links_search_word(search, word, length);
                        word += length;
                        word += strspn(word, ends);
                }
}

void dead_links_find(const Launch *launch, const char *const *argv, int inside_fd, DeadLinks *ret) {
        const PlanMount *rootfs = &launch->plan->rootfs;
        _cleanup_close_ int fd = rootfs->source ? fcntl(rootfs->fd, F_DUPFD_CLOEXEC, 0)
                                                : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        LinkSearch search = { .plan = launch->plan,
                              .system = &launch->system,
                              .tree_fd = fd,
                              .left = ENTRIES_MAX,
                              .programs = PROGRAMS_MAX,
                              .found = ret };

        *ret = (DeadLinks){ 0 };
        if (fd < 0 || !argv || !argv[0])
                return;
        search.usr_fd = inside_fd >= 0 ? inside_fd : fd;
        if (rootfs->source && inside_fd < 0)
                (void)snprintf(search.top, sizeof(search.top), "%s", rootfs->real);
        links_search_words(&search, argv);
}

void dead_links_clear(DeadLinks *links) {
        for (unsigned i = 0; i < links->count; i++) {
                free(links->items[i].path);
                free(links->items[i].target);
        }
        *links = (DeadLinks){ 0 };
}
