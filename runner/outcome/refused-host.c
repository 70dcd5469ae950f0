/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/refused-host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/home.h"
#include "base/paths.h"
#include "base/sys.h"
#include "reach/wide.h"

/* Directories that are too wide to suggest: a grant of one shows far more than one project. */
static const char *const wide[] = {
        "/",      "/bin",   "/boot", "/dev",       "/etc",  "/home",    "/lib",     "/lib32",
        "/lib64", "/media", "/mnt",  "/proc",      "/root", "/run",     "/sbin",    "/snap",
        "/sys",   "/tmp",   "/usr",  "/usr/local", "/var",  "/var/lib", "/var/tmp",
};

/* Trees whose files are the system's or other users'. */
static const char *const closed[] = {
        "/boot",        "/dev",     "/proc",     "/run",       "/sys",
        "/var/backups", "/var/log", "/var/mail", "/var/spool", "/var/run",
};

/* Names that start with a dot often hold credentials, except these: caches and installed tools.
 * Commands may read them. They must not write them, because programs of the host later run or trust
 * what lies there. */
static const char *const known_dots[] = {
        ".asdf", ".bun",    ".cache", ".cargo",  ".conda",  ".deno", ".dotnet",
        ".git",  ".gradle", ".ivy2",  ".local",  ".m2",     ".npm",  ".nuget",
        ".nvm",  ".pyenv",  ".rbenv", ".rustup", ".sdkman", ".venv", ".yarn",
};

/* A path probably holds keys if it contains one of these parts. A slash is added to the path's end
 * first. */
static const char *const secret_parts[] = {
        "secret", "passwd",  "password",   "credential",      "shadow",  "keyring",
        "id_rsa", "id_dsa",  "id_ed25519", "id_ecdsa",        "sudoers", "machine-id",
        ".pem/",  ".key/",   ".p12/",      ".pfx/",           ".kdbx/",  "/private/",
        "/ssh/",  "/gnupg/", "/tokens/",   "/holt/sessions/",
};

/* Directories of programs and settings: a command that can write there can later act as the user.
 */
static const char *const program_parts[] = { "/bin/", "/sbin/", "/etc/", "/usr/" };

/* More caches of the same sort, whose names have no dot. */
static const char *const cache_parts[] = { "/go/pkg/", "/go/bin/", "/site-packages/",
                                           "/dist-packages/", "/vendor_perl/" };

static bool grant_is_listed(const char *const *list, size_t count, const char *word,
                            size_t length) {
        for (size_t i = 0; i < count; i++)
                if (strlen(list[i]) == length && memcmp(list[i], word, length) == 0)
                        return true;
        return false;
}

/* Whether a part of the path starts with a dot and is not known as harmless. */
static bool has_hidden_part(const char *path) {
        for (const char *part = path; (part = strchr(part, '/')) != NULL;) {
                const size_t length = strcspn(++part, "/");

                if (*part == '.' &&
                    !grant_is_listed(known_dots, ELEMENTSOF(known_dots), part, length))
                        return true;
        }
        return false;
}

static bool has_part_of(const char *path, const char *const *parts, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (strcasestr(path, parts[i]))
                        return true;
        return false;
}

bool refused_is_of_tools(const char *path) {
        _cleanup_free_ char *slashed = str_format("%s/", path);

        for (const char *part = path; (part = strchr(part, '/')) != NULL;) {
                const size_t length = strcspn(++part, "/");

                if (grant_is_listed(known_dots, ELEMENTSOF(known_dots), part, length))
                        return true;
        }
        return slashed && has_part_of(slashed, cache_parts, ELEMENTSOF(cache_parts));
}

/* Whether the path is a home directory, of the caller or of another user, or contains one. */
static bool grant_is_home(const char *path) {
        const char *name = path_rest(path, "/home"), *home = home_of_uid(getuid());

        return home_lies_below(path) || (home && path_below(home, path)) ||
               (name && !strchr(name, '/'));
}

static bool grant_is_in_closed(const char *path) {
        for (size_t i = 0; i < ELEMENTSOF(closed); i++)
                if (path_below(path, closed[i]))
                        return true;
        return false;
}

/* Judges the text of a path: the spelling of the command, and the kernel's own. */
static bool may_suggest(const char *path, bool for_writing) {
        _cleanup_free_ char *slashed = str_format("%s/", path);

        if (!slashed || grant_is_listed(wide, ELEMENTSOF(wide), path, strlen(path)) ||
            grant_is_home(path) || has_hidden_part(path))
                return false;
        if (grant_is_in_closed(path))
                return false;
        if (path_below(path, "/root") && !(home_path() && path_below(home_path(), "/root")))
                return false;
        return !has_part_of(slashed, secret_parts, ELEMENTSOF(secret_parts)) &&
               !(for_writing && (path_is_wide(path) || refused_is_of_tools(path) ||
                                 has_part_of(slashed, program_parts, ELEMENTSOF(program_parts))));
}

/* Whether every user may read the file. In /etc, other files are the system's secrets. */
static bool grant_is_public(int fd, const char *real) {
        struct stat st;

        if (!path_below(real, "/etc"))
                return true;
        return fstat(fd, &st) == 0 && st.st_mode & S_IROTH;
}

int refused_open_host(const char *path, const StrList *writable, bool for_writing) {
        _cleanup_close_ int fd = FD_NONE;
        char real[PATH_MAX];
        int r;

        if (!may_suggest(path, for_writing))
                return -EPERM;
        fd = beneath_open_local(path, writable);
        r = fd < 0 ? fd : path_of_fd(fd, real);
        if (r < 0)
                return r;
        return may_suggest(real, for_writing) && grant_is_public(fd, real) ? TAKE_FD(fd) : -EPERM;
}

/* Whether the directory of that fd has no entry with the first name of the rest, not even a symlink
 * that leads nowhere. */
static bool grant_is_missing(int fd, const char *rest) {
        _cleanup_free_ char *name = strndup(rest, strcspn(rest, "/"));

        return name && !path_may_exist(fd, name);
}

bool refused_is_nowhere(const char *path, const StrList *writable) {
        _cleanup_free_ char *directory = refused_directory_of(path);
        int fd = refused_open_host(path, writable, false);
        char real[PATH_MAX];

        if (fd >= 0)
                fd_close(fd);
        while (fd == -ENOENT && directory) {
                _cleanup_close_ int above = beneath_open_local(directory, writable);
                char *slash = strrchr(directory, '/');

                if (above >= 0)
                        return path_of_fd(above, real) == 0 && streq(real, directory) &&
                               !streq(directory, "/home") &&
                               grant_is_missing(above, path_rest(path, directory));
                fd = above;
                slash[slash == directory] = '\0';
        }
        return false;
}

bool refused_is_of_git(const char *path) {
        const char *name = strrchr(path, '/');

        return strstr(path, "/.git/") || (name && streq(name, "/.git"));
}

bool refused_is_of_packages(const char *path) {
        static const char *const directories[] = {
                "/etc/apk",        "/etc/apt",     "/etc/dnf",          "/etc/pacman.d",
                "/etc/zypp",       "/lib/apk",     "/var/cache/apt",    "/var/cache/dnf",
                "/var/lib/apt",    "/var/lib/dnf", "/var/cache/pacman", "/var/lib/dpkg",
                "/var/lib/pacman", "/var/lib/rpm", "/var/log/apt",
        };

        for (size_t i = 0; i < ELEMENTSOF(directories); i++)
                if (path_below(path, directories[i]))
                        return true;
        return false;
}

bool refused_is_closed(const char *path) {
        static const char *const places[] = { "/boot", "/root", "/sys", "/home" };
        const char *home = home_of_uid(getuid());

        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (path_below(path, places[i]))
                        return true;
        return str_starts(path, "/var/") ? grant_is_in_closed(path)
                                         : home && !streq(home, "/") && path_below(path, home);
}

char *refused_closed_why(const char *path) {
        return path_below(path, "/sys/fs/cgroup")
                       ? str_format("the sandbox shows only its limits of memory and processors "
                                    "there, and only if it has such limits")
                       : NULL;
}

/* Wide directories in which a narrower one can be made writable. */
static const char *const wide_tops[] = { "/media", "/mnt", "/opt", "/srv", "/var/lib" };

bool refused_may_write(const Launch *launch, int fd, const char *path) {
        return launch->identity.id_mapped ||
               faccessat(fd, path, W_OK, AT_EACCESS | (path[0] ? 0 : AT_EMPTY_PATH)) == 0;
}

char *refused_directory_why(const Launch *launch, const char *directory) {
        if (refused_may_write(launch, AT_FDCWD, directory) &&
            grant_is_listed(wide_tops, ELEMENTSOF(wide_tops), directory, strlen(directory)))
                return str_format("%s is too wide: make a directory in it and pass --rw %s/DIR, or "
                                  "pass --rw %s --allow-wide",
                                  directory, directory, directory);
        return path_is_wide(directory)
                       ? str_format("its directory is too wide to be made writable: write in the "
                                    "workspace, /tmp or the home directory inside")
                       : NULL;
}

char *refused_directory_of(const char *path) {
        char *directory = strdup(path), *slash = directory ? strrchr(directory, '/') : NULL;

        if (slash)
                slash[slash == directory] = '\0';
        return directory;
}

bool refused_is_directory(int fd) {
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

bool refused_is_private(const LaunchPlan *plan, const char *path) {
        if (path_below(path, "/proc") || plan_mount_above(plan, path))
                return false;
        for (size_t i = 0; i < tree_private_count; i++)
                if (path_below(path, tree_private[i].target))
                        return true;
        return false;
}

bool refused_is_own_file(const LaunchPlan *plan, const char *word) {
        _cleanup_free_ char *directory = strdup(word);
        char *slash = directory ? strrchr(directory, '/') : NULL;

        if (!slash)
                return false;
        *slash = '\0';
        for (size_t i = 0; i < tree_private_count; i++)
                if (streq(directory, tree_private[i].target))
                        return !plan_mount_above(plan, word);
        return false;
}
