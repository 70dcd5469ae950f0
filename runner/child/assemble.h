/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of assembling a tree step by step (assemble.c). All of them run in the child
 * (child.h). Each returns 0 or a negative errno with *error set. */
#pragma once

#include <limits.h>
#include <sys/resource.h>

#include "child/build.h"
#include "policy/assembly.h"

/* --- places inside (assemble-places.c) ---
 *
 * A symlink on the way is followed, and an absolute one leads to the new root: nothing leads out.
 */

/* Opens path inside. flags as for open(2); O_CLOEXEC is added. Returns -1 with errno on failure. */
int assemble_open(const char *path, int flags);
/* Makes the missing parents of path, and opens the last one. *ret_name: the last part of path.
 * Returns the fd, or a negative errno. */
int assemble_parent(const AssemblyStep *step, const char **ret_name, Error *error);
/* Takes the slashes from the end of the target, which are not part of a directory's name. buf holds
 * the new target. Returns 0 or a negative errno. */
int assemble_trim(AssemblyStep *step, char buf[PATH_MAX], Error *error);
/* Makes an empty file or a directory for a mount, unless something is there, and opens it with
 * O_PATH. Returns the fd, or a negative errno. */
int assemble_place(const AssemblyStep *step, bool directory, Error *error);
/* Attaches a mount at the step's place. One at "/" becomes the new root. */
int assemble_attach(const AssemblyStep *step, int mount_fd, bool directory, Error *error);
/* Sets error to "OPTION: WHAT SUBJECT". Returns -errnum. */
int assemble_fail(const AssemblyStep *step, int errnum, const char *what, const char *subject,
                  Error *error);

/* --- steps --- */

/* assemble-mounts.c */
int assemble_sources(Launch *launch, Error *error);
int assemble_bind(Assembly *a, AssemblyStep *step, Error *error);
int assemble_overlay(Assembly *a, AssemblyStep *step, Error *error);
int assemble_remount(Assembly *a, AssemblyStep *step, Error *error);

/* assemble-made.c */
int assemble_proc(Assembly *a, AssemblyStep *step, Error *error);
int assemble_dev(Assembly *a, AssemblyStep *step, Error *error);
int assemble_tmpfs(Assembly *a, AssemblyStep *step, Error *error);
int assemble_mqueue(Assembly *a, AssemblyStep *step, Error *error);
int assemble_directory(Assembly *a, AssemblyStep *step, Error *error);
int assemble_file(Assembly *a, AssemblyStep *step, Error *error);
int assemble_data(Assembly *a, AssemblyStep *step, Error *error);
int assemble_symlink(Assembly *a, AssemblyStep *step, Error *error);
int assemble_chmod(Assembly *a, AssemblyStep *step, Error *error);

/* Maps the ids of the command to those of the process, which has just made its user namespace. */
int assemble_map_ids(const Assembly *a, uid_t uid, gid_t gid, Error *error);

/* Lets the kernel kill this process when its parent ends, if the caller wants that. Does not return
 * if the parent has ended. */
void assemble_die_with_parent(const Assembly *a);

/* Notes a mount that the command can write, for Landlock, and takes ownership of the fd. */
void assemble_note_writable(int fd);

/* State of the child while it assembles. */
typedef struct AssembleState {
        int proc_fd;     /* O_PATH of the host's /proc */
        int users_fd;    /* max_user_namespaces of the new user namespace, or FD_NONE */
        rlim_t files;    /* the limit of open files to return to; 0 if it was not changed */
        bool everything; /* more writable mounts than fit: Landlock allows the whole tree */
} AssembleState;

extern AssembleState assemble_state;
