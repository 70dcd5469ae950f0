/* SPDX-License-Identifier: Apache-2.0 */
/* The launch plan: a policy turned into steps. It is pure data without a pointer into any document.
 *
 * plan_make() fills in everything that follows from the policy and the caller's context.
 * runner/sandbox/prepare.c then opens every host path and fills in the members marked "prepared".
 * After clone the child reads the plan and writes only its Error. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/file-id.h"
#include "base/strings.h"
#include "policy/assembly.h"
#include "policy/layers.h"
#include "policy/policy.h"

#define PLAN_WHEELS "/mnt/wheels"
/* The directory inside of the policy's helpers. */
#define PLAN_HELPERS "/etc/holt/python"
#define PLAN_INSTALL "HOLT_PYTHON_INSTALL" /* the variable for python.install */

enum {
        PLAN_AGENT_ID = SYSCALLS_ID, /* uid and gid inside */
        PLAN_MOUNTS_MAX = 256,
};

enum { ROUTES_PORT = 8474 }; /* holt-gateway listens on this port of 127.0.0.1 inside */

/* Inside, the hosts of plan->tls_hosts have this address, where holt-gateway listens on port 443.
 * It is not 127.0.0.1, so that a server inside can have that port. */
#define ROUTES_TLS_ADDRESS "127.84.74.1"
enum { ROUTES_TLS_IPV4 = 127 << 24 | 84 << 16 | 74 << 8 | 1, ROUTES_TLS_PORT = 443 };

/* The certificates that programs inside trust if plan->tls_hosts has a host: of holt-gateway's CA
 * alone; with those of the host; and the same as a key store of Java. */
#define PLAN_CA_FILE "/etc/holt/ca.crt"
#define PLAN_CA_BUNDLE "/etc/holt/ca-bundle.crt"
#define PLAN_CA_JAVA "/etc/holt/cacerts"

#define PLAN_SESSION_WORKSPACE "/workspace" /* a session's workspace */
#define PLAN_SESSION_OWN "/run/holt"        /* the keeper's own directory inside */

/* --- the fixed part of every sandbox, as tables (tree.c) --- */

/* Top directories of the system tree. A link, as on hosts with merged /usr, is copied. A directory
 * is bound read-only. A missing one is left out. */
extern const char *const tree_system[];
extern const size_t tree_system_count;
/* Whether the absolute path is one of these directories, or lies below one. */
bool tree_has(const char *path);

/* Names in a directory of the system tree, such as "etc", that every sandbox shows. A name that is
 * missing on the host, or that others may not read, is left out. */
typedef struct TreeShown {
        const char *directory;
        const char *const *names;
        size_t count;
} TreeShown;
extern const TreeShown tree_shown[];
extern const size_t tree_shown_count;

/* Checks a name in /etc that a policy adds, or "all". Returns 0, or -EINVAL with a static reason in
 * *ret_why: it is no name, holt writes that entry itself, or it is a secret. The reason's second
 * line, if any, is the cure. */
int tree_etc_check(const char *name, const char **ret_why);

/* Whether a file of this name contains a key or passwords, wherever it lies. */
bool tree_is_key(const char *name);

/* Directories below such names that are masked if they exist. */
extern const char *const tree_masked[];
extern const size_t tree_masked_count;

/* A file of /etc that holt writes. If the host's system has `program`, `more` is appended to
 * `text`. `program` and `more` may be NULL. */
typedef struct TreeFile {
        const char *name, *text;
        const char *program, *more;
        const char *networked; /* the text instead if the policy allows some hosts, or NULL */
        bool of_network;       /* with the host's network, it is the host's file */
} TreeFile;
extern const TreeFile tree_etc_files[];
extern const size_t tree_etc_files_count;
/* Whether holt writes the file at this absolute path itself. */
bool tree_writes(const char *path);

/* Variables of env.set that become user.name and user.email in /etc/gitconfig. The command does not
 * get them. A repository's own config wins over that file, as on the host. */
#define PLAN_GIT_NAME "HOLT_GIT_NAME"
#define PLAN_GIT_EMAIL "HOLT_GIT_EMAIL"
enum { PLAN_GIT_IDENTITY_MAX = 1024 }; /* Bytes of both together, as lines of the file. */
/* Bytes, with the NUL, of the lines that are appended to one of holt's own files of /etc. */
enum { PLAN_ETC_MORE_MAX = 8 * 1024 };

/* Whether the tables of every sandbox have an entry at this absolute path, or one above it. */
bool tree_shows(const char *path);

/* Directories and links of the root, parents first. */
typedef struct TreeNode {
        const char *path;
        const char *link; /* its target, or NULL for a directory */
} TreeNode;
extern const TreeNode tree_nodes[];
extern const size_t tree_nodes_count;

/* Device nodes of the host's /dev that are bound. */
extern const char *const tree_devices[];
extern const size_t tree_devices_count;

/* Directories of the private tmpfs and their targets. */
typedef struct TreePrivate {
        const char *name, *target;
        mode_t mode;
        bool lasting; /* in a session, it lies in the lasting root instead */
} TreePrivate;
extern const TreePrivate tree_private[];
extern const size_t tree_private_count;

/* Top directories that are new in each sandbox, even if the root lasts. Those of tree_system[] are
 * new, too, and are not repeated here. */
extern const char *const tree_covered[];
extern const size_t tree_covered_count;

/* Parts of /proc that are read-only or masked, like the defaults of the OCI runtime specification.
 */
typedef struct TreeProc {
        const char *name;
        bool masked; /* unreadable; otherwise read-only */
} TreeProc;
extern const TreeProc tree_proc[];
extern const size_t tree_proc_count;

/* --- the caller's requests --- */

typedef enum PlanMountKind {
        PLAN_BIND,    /* source on the host */
        PLAN_PRIVATE, /* an empty directory of the private tmpfs */
        PLAN_HIDE,    /* an empty file or directory of mode 0 over an existing path */
        PLAN_MOUNT_KIND_MAX,
} PlanMountKind;

enum {
        PLAN_READ_ONLY = 1 << 0,
        PLAN_MAKE_TARGET = 1 << 1, /* the target lies in memory: create it and its parents */
        PLAN_IN_ROOT = 1 << 2, /* the target lies in the root itself, which becomes read-only before
                                  the attach */
        PLAN_WIDE_CHECK = 1 << 3, /* refuse too-wide sources */
        PLAN_SHOWN = 1 << 4,    /* from --ro: if root runs holt, only files that anybody may read */
        PLAN_NO_LINKS = 1 << 5, /* do not follow a symlink on the way to the source */
        PLAN_MAY_GO = 1 << 6,   /* hidden while it exists: the host may remove it */
        PLAN_HIDE_ABSOLUTE = 1 << 7, /* requested as an absolute path, which may mean the host's */
        PLAN_HIDE_SHOWN = 1 << 8,    /* prepared: a mount of the plan shows that host path */
};

/* Identifies the file or directory that a session's source must be. */
typedef struct PlanRecord {
        bool known;   /* false: record the current file at the path */
        bool changed; /* prepared: the other members are new, and must be stored */
        bool renamed; /* prepared: the host has put another file in its place, which holt accepts */
        int fd;       /* prepared: O_PATH of the source on the host, or FD_NONE */
        FileId id;
        FileId parent; /* the parent directory, if the source is a file; otherwise mode 0 */
} PlanRecord;

typedef struct PlanMount {
        PlanMountKind kind;
        unsigned flags;
        char *source;       /* absolute host path; NULL if the kind shows no files of the host */
        char *target;       /* absolute path inside, normal form */
        char *origin;       /* for errors: "--ro ~/.pyenv", "x.json: $.filesystem.hide[0]: .env" */
        PlanRecord *record; /* owned; NULL if the source may be anything */

        /* prepared */
        char *hidden_by; /* for a path that plan_hide() has added: the origin of the policy's path
                            or pattern; owned; NULL if holt hides a file of its own */
        int fd;          /* O_PATH of source, or of a detached clone of it with an id map */
        int tree_fd; /* a second clone, for the sandbox; FD_NONE if it makes its own. Later mounts
                        lie on this one, so fd still shows the host's files. */
        bool directory; /* the source is a directory */
        char *real;     /* the kernel's own path of the source; owned */
        dev_t device;   /* the source's device; the child compares it when it opens the source again
                         */
        ino_t inode;
        uint64_t mount_id; /* the host mount that contains the source; 0 if unknown */
        uid_t owner;       /* the source's owner on the host */
} PlanMount;

/* The properties of each kind. Code asks for a property and never for a kind. So a new kind needs
 * one row here, and one with its builder in runner/child/build-mounts.c. */
typedef struct PlanMountTraits {
        bool host;    /* its files are the host's, and PlanMount has a source */
        bool private; /* it begins as an empty directory in memory */
        bool hides;   /* it covers what is there, so it is attached last, even over guards */
} PlanMountTraits;
extern const PlanMountTraits plan_mount_traits[];

static inline bool plan_mount_shows_host(const PlanMount *mount) {
        return plan_mount_traits[mount->kind].host;
}

static inline bool plan_mount_is_private(const PlanMount *mount) {
        return plan_mount_traits[mount->kind].private;
}

static inline bool plan_mount_hides(const PlanMount *mount) {
        return plan_mount_traits[mount->kind].hides;
}

/* A path that the policy protects (relative to the workspace, normal form). */
typedef struct PlanGuard {
        char *path;

        /* prepared */
        bool pinned; /* it exists, and a read-only mount over itself protects it */
        int fd; /* O_PATH of it, or FD_NONE; an open fd keeps its inode number from being reused */
        dev_t device; /* its device and inode numbers */
        ino_t inode;
        bool directory;
        char *text; /* the content of a small file and a zero byte, or NULL; see guards/restore.h */
        size_t text_size;
        mode_t mode;    /* its permissions */
        bool submodule; /* a submodule's .git, found in the index of the repository above */
} PlanGuard;

/* Names in the workspace's git directory that git does not create there (guards/strays.h). */
typedef struct PlanStrays {
        StrList paths;   /* relative to the workspace */
        StrList targets; /* the target of each, and data that identifies this entry */
        size_t work;     /* the number of steps that the search took */
} PlanStrays;

enum { PLAN_CPUS_MAX = 8192 }; /* processors of one machine; the largest CONFIG_NR_CPUS */

/* Files that holt has read and obeys. The sandbox must not change them. */
typedef struct PlanInputs {
        struct PlanInput {
                char *path; /* on the host, in the caller's spelling */
                int fd;     /* the fd that holt read; the path must still lead to this file */
                char *text; /* the bytes that holt obeys, and a zero byte */
                size_t size;
        } * items;
        size_t count;
} PlanInputs;

/* Copies path and the size bytes of text, and takes ownership of fd, also on failure. Returns 0 or
 * -ENOMEM. */
int plan_inputs_add(PlanInputs *inputs, const char *path, int fd, const char *text, size_t size);
void plan_inputs_clear(PlanInputs *inputs);

/* A pattern of paths to hide, relative to the workspace (guards/hidden-globs.c). */
typedef struct PlanGlob {
        char *pattern;
        char *origin; /* the same as in PlanMount */
        bool found;   /* prepared: a file in the workspace matches */
} PlanGlob;

/* A read-only file of /etc. */
typedef struct PlanFile {
        char *path; /* relative to the root, in normal form: "etc/pip.conf" */
        char *text;
        size_t size; /* bytes of text */
} PlanFile;

typedef struct LaunchPlan {
        /* the tree */
        PlanMount rootfs; /* the system tree, without a target; source is NULL for the host's own */
        PlanMount *mounts;
        size_t mounts_count;
        PlanGlob *globs;
        size_t globs_count;
        PlanGuard *guards;
        size_t guards_count;
        PlanInputs inputs;
        PlanStrays strays;     /* prepared: the strays in the caller's workspace */
        size_t links_work;     /* prepared: the number of steps that the search for git's submodules
                                  took */
        StrList plain_indexes; /* prepared: large indexes that lead to no other repository
                                  (git/unchanged.h) */
        /* One plan for each other read-write mount. If the mount is a git repository, it gets a
         * repository's guards, like a workspace. Only mounts, workspace, guards, strays,
         * links_work, plain_indexes and unfiltered are set in such a plan. After guards_prepare()
         * its mounts are borrowed from this plan. */
        struct LaunchPlan *others;
        size_t others_count;
        StrList etc;         /* more names of /etc; "all" is every public one */
        StrList etc_origins; /* the words for each in errors: "--etc nginx" */
        StrList etc_notes;   /* prepared: warnings about names that are not shown */
        char *gitconfig;     /* more lines of /etc/gitconfig, or NULL */
        char *hosts;         /* more lines of /etc/hosts, or NULL */
        PlanFile *files;     /* more files of /etc that holt writes, in place of the host's */
        size_t files_count;
        uint64_t tmp_size;
        char *workspace; /* the workspace's target, or NULL */
        char *cwd;       /* absolute, inside */
        bool cwd_asked;  /* --cwd was given */
        bool cwd_here;   /* cwd is also the caller's own directory */
        bool allow_wide;

        /* An O_PATH fd of the sandbox's root, in its mount namespace, while the sandbox lives and a
         * file is watched (guards/watch.h). NULL otherwise. */
        const int *inside_fd;

        /* only for a session; in a single run, source is NULL */
        PlanMount root;  /* the lasting, writable "/" */
        PlanMount state; /* the session's own directory, which is not visible inside */

        /* the network */
        unsigned network;          /* NetworkMode */
        StrList net_allow;         /* rules and sets; empty unless the mode is NETWORK_ALLOW */
        bool workspace_by_project; /* the project's file makes the workspace read-only */
        bool net_narrowed;   /* the project's file has narrowed net_allow to hosts of net_project */
        StrList net_project; /* rules and sets of the project's file */
        unsigned net_sni;    /* NetworkSni */
        StrList net_publish, net_import;
        bool net_proxy;
        bool net_ask;
        bool net_asked; /* prepared: with net_ask, somebody can be asked from the start on */
        uint64_t net_ask_timeout; /* usec */
        char *net_upstream;       /* URL, perhaps with a password; or NULL */
        /* One JSON text for each route, in the form that route_write() of policy/routes/route.h
         * describes. Empty before routes_plan(). */
        StrList routes;
        StrList route_variables; /* the caller's variables that are credentials of routes */
        char *route_token; /* the secret with which the sandbox uses the routes; NULL without any */
        StrList tls_hosts; /* the hosts for which holt-gateway terminates TLS */

        /* the command */
        StrList argv;
        StrList env;
        const char *hostname;

        /* limits; 0 means no limit */
        uint64_t timeout, kill_after; /* usec */
        uint64_t memory, pids, open_files, file_size;
        unsigned cpus;   /* number of processors for the sandbox */
        uint64_t output; /* bytes of stdout and stderr together */
        unsigned long cpu_set[PLAN_CPUS_MAX /
                              (8 * sizeof(unsigned long))]; /* prepared: the chosen processors, if
                                                               cpus is not 0 */
        char *pids_origin; /* if pids is 1, which is too few: policy_limit_text() for an error */

        /* confinement */
        LandlockMode landlock;
        unsigned syscall_preset;
        struct sock_filter
                *program; /* compiled for this plan; NULL for the preset's built-in program */
        struct sock_filter *program_quiet; /* the same without user notification */
        unsigned short program_length, program_quiet_length;
        bool exit_tracer;   /* one process at a time may trace the exits of others */
        bool unfiltered;    /* the command may make system calls that no preset allows */
        Assembly *assembly; /* borrowed: a tree in place of the one above; NULL for none */
        int report_fd;      /* borrowed: a file that the command must not reach, or FD_NONE */
        unsigned degraded;  /* LAYER_BITs that may be missing if the host refuses them */
} LaunchPlan;

/* The caller's context, which plan_make() needs. All members are borrowed. */
typedef struct PlanContext {
        const char *cwd;         /* absolute */
        const char *const *argv; /* the command; empty starts a shell */
        const char *const
                *env; /* the caller's environment; only variables that the policy passes are read */
        const char *inside_cwd; /* --cwd, or NULL */
        const char *session;    /* the session's directory, absolute; NULL for a single run */
        unsigned degraded;      /* LAYER_BITs of --allow-degraded */
} PlanContext;

void plan_clear(LaunchPlan *plan);
/* Frees the texts of plan->files, which are not needed once the sandbox has them. */
void plan_clear_files(LaunchPlan *plan);

/* Returns 0, -EINVAL or -ENOMEM. -EINVAL is for mistakes that show only after paths are made
 * absolute, such as two mounts on one target or a target below a file. It is also for an argument
 * or variable that is too long for execve(2). */
int plan_make(const Policy *policy, const PlanContext *context, LaunchPlan *ret, Error *reterr);
/* The value of a limit, in the unit of its field. 0 means no limit. field->plan must be set. */
uint64_t plan_limit(const LaunchPlan *plan, const PolicyField *field);

/* Returns -E2BIG if a word of the list is longer than execve(2) accepts (MAX_ARG_STRLEN), which is
 * 128 KiB on machines with pages of 4 KiB. `what` names a word in the error. 0 otherwise. */
int plan_check_lengths(const StrList *list, const char *what, Error *reterr);

/* Hides REST, which is "" or starts with a slash, below the target of a mount. by: the origin of
 * the policy's path or pattern, or NULL for a file of holt's own. Returns 0, -EINVAL (too many
 * mounts) or -ENOMEM. */
int plan_hide(LaunchPlan *plan, const char *target, const char *rest, const char *by,
              Error *reterr);

/* Hides a file of the host, whose path is absolute, in every mount that shows it. by: the reason,
 * for a message about the file. Returns like plan_hide(). */
int plan_hide_host(LaunchPlan *plan, const char *path, const char *by, Error *reterr);

/* Refuses a writable mount whose source, path, is too wide. Returns -EINVAL. */
int plan_refuse_wide(const PlanMount *mount, const char *path, Error *reterr);

/* The workspace's mount, or NULL. */
const PlanMount *plan_workspace(const LaunchPlan *plan);

/* Appends a guard for path, which is copied. plan->guards must have room. Returns 0 or -ENOMEM. */
int plan_add_guard(LaunchPlan *plan, const char *path, Error *reterr);

/* Returns the guard that holds the content of the file with these device and inode numbers, or
 * NULL. The guard's open fd keeps the inode number from being used again. */
const PlanGuard *plan_guard_read(const LaunchPlan *plan, dev_t device, ino_t inode);

/* The innermost requested mount whose target is path or a parent of it, or NULL. */
const PlanMount *plan_mount_above(const LaunchPlan *plan, const char *path);

/* Adds the host paths of everything that the sandbox can write. Returns 0 or -ENOMEM. */
int plan_writable(const LaunchPlan *plan, StrList *ret);

/* Returns the plan with the guards of mount: plan itself for the workspace, one of plan's other
 * plans, or NULL. */
const LaunchPlan *plan_guarding(const LaunchPlan *plan, const PlanMount *mount);

/* Whether a protected path of the workspace is protected in every repository that is mounted
 * read-write. That applies to files of git and of holt; other paths count only in the workspace. */
bool plan_guards_others(const char *path);

/* Whether any path is guarded, in the workspace or another mount. */
bool plan_has_guards(const LaunchPlan *plan);

/* Whether the policy protects any path in .git. Only then are submodules protected too; --protect
 * none, for example, protects none. */
bool plan_protects_git(const LaunchPlan *plan);
