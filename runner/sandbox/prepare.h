/* SPDX-License-Identifier: Apache-2.0 */
/* launch_prepare() in parts; see prepare.c. */
#pragma once

#include "sandbox/launch.h"

/* Fds 0 to 2: opens /dev/null where one is closed, and refuses what leads out of a sandbox
 * (stdio.c). */
int prepare_stdio(Error *reterr);

/* Whether a command may have fd as its stdin, stdout or stderr: a file that holds data, a pipe, a
 * terminal or another character device, a connected local stream. */
bool stdio_is_harmless(int fd);

/* The error for one that is not; fd is the number that the command would have it by, 0 to 2. */
int stdio_refuse(int fd, Error *reterr);

/* Notes the status flags and locks of fds 0 to 2 before the command has them, and puts them back
 * after it has ended (stdio-state.c). except has a bit for each that the command did not have. */
void stdio_note(void);
void stdio_restore(unsigned except);

/* Gives the command a sealed copy in place of each of fds 0 to 2 that is open for reading only and
 * that it must not write (stdio-files.c). After all other parts of prepare_all(). 0; -EFBIG with an
 * ERROR_POLICY if the file is too large for that; or another negative errno. */
int prepare_stdio_files(Launch *launch, Error *reterr);

/* The same for one open file, *fd, which is replaced if need be, and which the command would have
 * as number, 0 to 2. identity: NULL if it is the caller's own. landlock: its ABI,
 * or 0 if it is not in force. */
int stdio_shield(const LaunchPlan *plan, const Identity *identity, int landlock, int number,
                 int *fd, Error *reterr);

/* Fills the launch from its plan and the host; as root nothing has been given up yet. */
int prepare_all(Launch *launch, Error *reterr);

/* In this order, of prepare_all() (prepare-mounts.c, prepare-store.c, prepare-guards.c). */
int prepare_rootfs(LaunchPlan *plan, Error *reterr);
int prepare_mounts(Launch *launch, Error *reterr);
/* Hides the host's file of each absolute path to hide, too (prepare-hidden.c). */
int prepare_hidden(LaunchPlan *plan, Error *reterr);
int prepare_report(Launch *launch, Error *reterr);
int prepare_store(Launch *launch, Error *reterr);
int prepare_guards(Launch *launch, Error *reterr);

/* Opens what a plan mounts of the host, until prepare_close_mounts(): for whoever makes a plan that
 * is launched later. The errors are those of prepare_mounts(); nothing is open then. */
int prepare_try_mounts(LaunchPlan *plan, Error *reterr);
void prepare_close_mounts(LaunchPlan *plan);

/* Opens a source that was recorded when the session was made, without following any symlink, and
 * compares it (prepare-sources.c). *ret_fd is O_PATH and the caller's. 0; -EINVAL with an
 * ERROR_POLICY that says how it differs; or a negative errno of openat2(2). */
int prepare_open_recorded(const LaunchPlan *plan, PlanMount *mount, int *ret_fd, Error *reterr);
/* The same for a source with PLAN_NO_LINKS, which is compared with nothing. */
int prepare_open_unlinked(const LaunchPlan *plan, const PlanMount *mount, int *ret_fd,
                          Error *reterr);
/* Fills the record of a source that has just been opened. 0 or a negative errno. */
int prepare_record(PlanMount *mount, Error *reterr);
/* Refuses a file that was renamed over a recorded one, if the session itself can do that. reach is
 * of this plan, whose mounts are open. 0, or -EINVAL with an ERROR_POLICY. */
struct Reach;
int prepare_renamed(const LaunchPlan *plan, const struct Reach *reach, Error *reterr);

/* path, as the workspace has it: "" for the workspace itself, NULL for what lies elsewhere. */
const char *prepare_within(const PlanMount *workspace, const char *path);

/* Guards one more path, relative to the workspace, unless a guard holds it already. */
int prepare_guard(LaunchPlan *plan, const PlanMount *workspace, const char *path, Error *reterr);

/* Keeps from the sandbox what holt obeys: the plan's inputs, and holt's own programs if they lie in
 * a writable mount. What lies in the workspace gets a guard. 0; -EPERM with an ERROR_POLICY if the
 * sandbox could change it nevertheless; or another negative errno. After prepare_guards(). */
int prepare_inputs(LaunchPlan *plan, Error *reterr);
/* The same for one path. reach is of this plan, whose mounts are open. input_fd: the file that has
 * been read, or FD_NONE; -ESTALE if the path does not lead there any more. */
int prepare_input(LaunchPlan *plan, const struct Reach *reach, const char *path, int input_fd,
                  Error *reterr);
/* The same for the system tree, if it is not the host's. */
int prepare_rootfs_input(LaunchPlan *plan, const struct Reach *reach, Error *reterr);
/* Guards the open file or directory fd if it lies in the workspace. A guard does not reach other
 * writable mounts, or symlinks on the way to the file: look the path up again. */
int prepare_pin_input(LaunchPlan *plan, const struct Reach *reach, int fd, Error *reterr);

/* Whether the sandbox may change holt's own programs, or make one where holt would look for it; as
 * far as it can be said without the mount table (prepare-programs.c). */
typedef enum ProgramsNear {
        PROGRAMS_FAR,
        PROGRAMS_ASK, /* the mount table has to be asked */
        PROGRAMS_NEAR,
} ProgramsNear;
ProgramsNear prepare_programs_near(const LaunchPlan *plan);
/* prepare_input() of each of them. If one does not exist, the directory is guarded that it would
 * lie in. */
int prepare_programs(LaunchPlan *plan, const struct Reach *reach, ProgramsNear near, Error *reterr);

/* Refuses a file that is protected by its path and has a second one. Returns -EINVAL. */
int prepare_refuse_shared(const PlanMount *workspace, const char *path, Error *reterr);

/* The error of a search of repositories that has ended with r, one of repository_is_closed().
 * Returns a negative errno. */
int prepare_repository_closed(const PlanMount *workspace, int r, Error *reterr);

/* How much has been looked at for git's configs, of all repositories together. Ends with
 * strlist_clear() of the directories. */
typedef struct PrepareLooks {
        StrList directories; /* of hooks */
        size_t entries;      /* in them */
        size_t files, bytes; /* configs */
} PrepareLooks;

/* Guards what of the workspace the configs of its own repository, of those above and of the caller
 * lead git to, and says whether there is any; bare: the workspace may be one itself.
 * prepare_config_of() guards what those of a submodule and of the caller do there; its .git is path
 * (prepare-config.c). */
int prepare_config(LaunchPlan *plan, const PlanMount *workspace, bool bare, PrepareLooks *looks,
                   bool *ret_found, Error *reterr);
int prepare_config_of(LaunchPlan *plan, const PlanMount *workspace, const char *path,
                      PrepareLooks *looks, Error *reterr);

/* Opens what is at path inside, where that is in a mount of the plan, with O_PATH and the other
 * flags of open(2): an fd that the caller owns, -ENXIO where it is in none, -EXDEV where a link
 * leads out of the mount, or another negative errno. */
int prepare_open_inside(const LaunchPlan *plan, const char *path, int flags);

/* The caller's home: HOME, or else the account's. NULL if neither says one: services and cron jobs
 * come without HOME. It is kept, since root's environment is wiped when root is given up. */
const char *prepare_home(void);
/* The home that /etc/passwd has for uid, until the next call for another one; NULL if it has none.
 */
const char *prepare_account_home(uid_t uid);

/* Whether the caller's home is path, a path of the kernel's, or lies below it. */
bool prepare_has_home(const char *path);

/* Adds to the error of a host path that could not be opened what to do. r is the negative errno;
 * returns it. */
int prepare_source_cure(const char *source, int r, Error *reterr);
