/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed part of every sandbox: the visible parts of the system, and new files. */
#include "policy/plan.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/paths.h"

const char *const tree_system[] = {
        "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32",
};
const size_t tree_system_count = ELEMENTSOF(tree_system);

bool tree_has(const char *path) {
        for (size_t i = 0; i < tree_system_count; i++)
                if (path_below(path + 1, tree_system[i]))
                        return true;
        return false;
}

/* Files that the packages of distributions need: their programs have settings there, or a directory
 * of /usr leads there by a symlink. None of them reveals the host or its users. Servers with keys
 * or passwords in their settings are missing here, except for the types and modules of nginx.
 *
 * The tables have names and no patterns: looking up 30 missing names takes 20 us, but reading a
 * directory of 170 entries takes 100 us. */
static const char *const tree_etc[] = {
        /* clang-format off */
        "ImageMagick-6", "ImageMagick-7", "R", "X11", "alternatives", "ca-certificates", "chromium",
        "chromium.d", "crypto-policies", "debian_version", "dictionaries-common", "dpkg", "emacs",
        "fonts", "ghostscript", "groff", "java", "java-1.8.0-openjdk", "java-11-openjdk",
        "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "java-29-openjdk",
        "java-8-openjdk", "java-latest-openjdk", "ld.so.cache", "libreoffice",
        "locale.alias", "localtime", "lsb-release", "man_db.conf",
        "manpath.config", "matplotlibrc", "maven", "mime.types", "nginx", "octave.conf", "openmpi",
        "os-release", "perl", "php", "php.d", "php.ini", "pki", "protocols", "python3",
        "python3.10", "python3.11", "python3.12", "python3.13", "python3.14", "python3.15",
        "python3.9", "rpm", "services", "sgml", "shells", "ssl", "texlive", "texmf",
        "timezone", "vim", "vimrc", "xml",
        /* clang-format on */
};

/* Databases of package managers, and files that programs make for all users. Without the cache of
 * fonts, each program that draws text reads every font first. */
static const char *const tree_var_lib[] = {
        "aspell", "dictionaries-common", "dpkg",   "emacsen-common",
        "ghc",    "libreoffice",         "pacman", "php",
        "rpm",    "sgml-base",           "texmf",  "xkb",
};

static const char *const tree_var_cache[] = { "fontconfig" };

const TreeShown tree_shown[] = {
        { "etc", tree_etc, ELEMENTSOF(tree_etc) },
        { "var/lib", tree_var_lib, ELEMENTSOF(tree_var_lib) },
        { "var/cache", tree_var_cache, ELEMENTSOF(tree_var_cache) },
};
const size_t tree_shown_count = ELEMENTSOF(tree_shown);

/* Keys, and the sites of a web server, which may name other hosts and their passwords. */
const char *const tree_masked[] = {
        "etc/nginx/conf.d",    "etc/nginx/sites-available", "etc/nginx/sites-enabled",
        "etc/pki/CA/private",  "etc/pki/tls/private",       "etc/ssl/private",
        "var/lib/php/session", "var/lib/php/sessions",
};
const size_t tree_masked_count = ELEMENTSOF(tree_masked);

/* The settings of "git lfs install". Without them, git would commit large files as they are. The
 * sandbox may have no network, so git-lfs must give up soon and leave a missing file as a
 * pointer. */
static const char git_lfs[] = "[filter \"lfs\"]\n"
                              "\tclean = git-lfs clean -- %f\n"
                              "\tsmudge = git-lfs smudge -- %f\n"
                              "\tprocess = git-lfs filter-process\n"
                              "\trequired = true\n"
                              "[lfs]\n\tskipDownloadErrors = true\n"
                              "[lfs \"transfer\"]\n\tmaxRetries = 1\n\tmaxRetryDelay = 0\n";

/* Host uids that are not mapped appear as 65534, so root's files in /usr belong to "nobody" inside.
 */
const TreeFile tree_etc_files[] = {
        /* git inside sees only files that were given to the sandbox, so it need not refuse those of
         * another owner. */
        { "gitconfig", "[safe]\n\tdirectory = *\n", "/usr/bin/git-lfs", git_lfs },
        { "passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                    "agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
                    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
        { "group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n" },
        { "hosts", "127.0.0.1 localhost holt\n::1 localhost ip6-localhost ip6-loopback\n",
          .of_network = true },
        { "nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                           "services: files\nprotocols: files\nrpc: files\n" },
        { "resolv.conf", "# no resolver: this sandbox has no network\n",
          .networked = "# holt answers for the names that the policy allows\n"
                       "nameserver 198.18.0.1\noptions timeout:15 attempts:1\n",
          .of_network = true },
};
const size_t tree_etc_files_count = ELEMENTSOF(tree_etc_files);

bool tree_writes(const char *path) {
        for (size_t i = 0; i < tree_etc_files_count; i++)
                if (str_starts(path, "/etc/") && streq(path + 5, tree_etc_files[i].name))
                        return true;
        return false;
}

bool tree_shows(const char *path) {
        for (size_t i = 0; i < ELEMENTSOF(tree_etc); i++) {
                const size_t length = strlen(tree_etc[i]);

                if (str_starts(path, "/etc/") && strncmp(path + 5, tree_etc[i], length) == 0 &&
                    (path[5 + length] == '\0' || path[5 + length] == '/'))
                        return true;
        }
        return false;
}

const TreeNode tree_nodes[] = {
        { "dev", NULL },
        { "dev/pts", NULL },
        { "dev/shm", NULL },
        { "dev/fd", "/proc/self/fd" },
        { "dev/stdin", "/proc/self/fd/0" },
        { "dev/stdout", "/proc/self/fd/1" },
        { "dev/stderr", "/proc/self/fd/2" },
        { "dev/ptmx", "pts/ptmx" },
        { "etc", NULL },
        { "etc/mtab", "/proc/self/mounts" },
        { "home", NULL },
        { "home/agent", NULL },
        { "mnt", NULL },
        { "opt", NULL },
        { "proc", NULL },
        { "run", NULL },
        { "tmp", NULL },
        { "var", NULL },
        { "var/cache", NULL },
        { "var/lib", NULL },
        { "var/tmp", NULL },
        { "var/run", "/run" },
};
const size_t tree_nodes_count = ELEMENTSOF(tree_nodes);

const char *const tree_devices[] = {
        "null", "zero", "full", "random", "urandom", "tty",
};
const size_t tree_devices_count = ELEMENTSOF(tree_devices);

const TreePrivate tree_private[] = {
        { "tmp", "/tmp", 01777, true },        { "vartmp", "/var/tmp", 01777, true },
        { "home", "/home/agent", 0755, true }, { "run", "/run", 0755, false },
        { "shm", "/dev/shm", 01777, false },
};
const size_t tree_private_count = ELEMENTSOF(tree_private);

/* The rest of a session's root belongs to the session. */
const char *const tree_covered[] = { "etc", "dev", "proc", "run", "sys" };
const size_t tree_covered_count = ELEMENTSOF(tree_covered);

/* Everybody may write to the files in /proc/pressure, which creates a monitor in the host's kernel.
 * Reading them reveals the host's load, to the microsecond. */
const TreeProc tree_proc[] = {
        { "sys", false },        { "sysrq-trigger", false },
        { "irq", false },        { "bus", false },
        { "fs", false },         { "kcore", true },
        { "keys", true },        { "timer_list", true },
        { "sched_debug", true }, { "latency_stats", true },
        { "acpi", true },        { "scsi", true },
        { "asound", true },      { "interrupts", true },
        { "pressure", true },
};
const size_t tree_proc_count = ELEMENTSOF(tree_proc);

/* --- more of /etc --- */

/* Beginnings of names in /etc that no policy adds: passwords, the rights of users, and the identity
 * of the host. --ro shows them nevertheless. */
static const char *const etc_secrets[] = { "gshadow", "machine-id", "shadow", "sudoers" };

/* Endings of names of keys and passwords. */
static const char *const key_endings[] = {
        ".jks", ".kdb", ".key",     ".keytab",  ".p12",
        ".pfx", "_key", "htpasswd", "-secrets", "passwords",
};

/* Whether it is a file that holt makes, or a backup of the host's, such as passwd-. */
static bool etc_is_made(const char *name) {
        size_t length = strlen(name);

        length -= length > 1 && name[length - 1] == '-';
        for (size_t i = 0; i < tree_etc_files_count; i++)
                if (strlen(tree_etc_files[i].name) == length &&
                    memcmp(name, tree_etc_files[i].name, length) == 0)
                        return true;
        return streq(name, "mtab");
}

bool tree_is_key(const char *name) {
        const size_t length = strlen(name);

        for (size_t i = 0; i < ELEMENTSOF(key_endings); i++) {
                const size_t part = strlen(key_endings[i]);

                if (length >= part && streq(name + length - part, key_endings[i]))
                        return true;
        }
        return false;
}

static bool etc_is_secret(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(etc_secrets); i++)
                if (str_starts(name, etc_secrets[i]))
                        return true;
        return tree_is_key(name);
}

int tree_etc_check(const char *name, const char **ret_why) {
        *ret_why = name[0] == '\0'     ? "is empty; write the name of an entry of /etc, or all"
                   : strchr(name, '/') ? "contains a \"/\"; write the name of an entry of /etc "
                                         "alone, such as nginx"
                   : streq(name, ".") || streq(name, "..") || strlen(name) > NAME_MAX
                           ? "is not the name of an entry of /etc"
                   : strpbrk(name, "*?[") ? "is a pattern; write one name each time, or all"
                   : etc_is_made(name) ? "is an entry of /etc that holt writes itself\nTo show the "
                                         "host's: --ro /etc/NAME"
                   : etc_is_secret(name) ? "is an entry of /etc with secrets\nTo show it "
                                           "nevertheless: --ro /etc/NAME"
                                         : NULL;
        return *ret_why ? -EINVAL : 0;
}
