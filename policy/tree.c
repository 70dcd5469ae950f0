/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed part of every sandbox: the visible parts of the system, and new files. */
#include "policy/plan.h"

const char *const tree_system[] = {
        "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32",
};
const size_t tree_system_count = ELEMENTSOF(tree_system);

/* Files that programs need to start, resolve names, verify certificates and render text. None of
 * them reveals the host or its users. Each name costs every launch a look-up, and each existing one
 * a copy or a mount. */
const char *const tree_etc[] = {
        "alternatives",    "crypto-policies", "debian_version",  "fonts",           "java",
        "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "ld.so.cache",
        "localtime",       "lsb-release",     "matplotlibrc",    "os-release",      "pki",
        "protocols",       "python3",         "python3.9",       "python3.10",      "python3.11",
        "python3.12",      "python3.13",      "python3.14",      "services",        "ssl",
        "timezone",
};
const size_t tree_etc_count = ELEMENTSOF(tree_etc);

/* Host uids that are not mapped appear as 65534, so root's files in /usr belong to "nobody" inside.
 */
const TreeFile tree_etc_files[] = {
        /* The sandbox shows git only files that it was given, so a foreign owner is no reason to
         * refuse them. */
        { "gitconfig", "[safe]\n\tdirectory = *\n" },
        { "passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                    "agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
                    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
        { "group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n" },
        { "hosts", "127.0.0.1 localhost holt\n::1 localhost ip6-localhost ip6-loopback\n" },
        { "nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                           "services: files\nprotocols: files\nrpc: files\n" },
        { "resolv.conf", "# no resolver: this sandbox has no network\n" },
};
const size_t tree_etc_files_count = ELEMENTSOF(tree_etc_files);

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
const char *const tree_covered[] = { "etc", "dev", "proc", "run" };
const size_t tree_covered_count = ELEMENTSOF(tree_covered);

/* Everybody may write to the files of pressure, which creates a monitor in the host's kernel.
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
