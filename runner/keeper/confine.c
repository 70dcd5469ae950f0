/* SPDX-License-Identifier: Apache-2.0 */
/* Confines the keeper. Once its sandbox exists, the keeper needs few of the caller's rights. So an
 * attacker who exploits the parsing of data from inside gains no more than the session. The keeper
 * cannot start programs of the host, only holt-links from its own memory (links/start.c). It
 * reaches only the session's own files and those that the sandbox sees. It makes only system calls
 * that a sandbox may make, plus openat2 and name_to_handle_at. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "child/landlock.h"
#include "keeper/keeper.h"
#include "outcome/host-gates.h"
#include "policy/syscalls/syscalls.h"
#include "reach/mount-table.h"

static int confine_files(const Keeper *keeper, Error *reterr) {
        /* A Landlock rule holds for an inode, no matter through which mount a process reaches it.
         * The workspace is listed for the sweep at the end, which uses the host's mount of it. */
        int fds[3 + PLAN_MOUNTS_MAX] = { keeper->sandbox.root_fd };
        size_t count = 1;

        if (keeper->plan.state.fd >= 0)
                fds[count++] = keeper->plan.state.fd;
        if (keeper->launch.workspace_fd >= 0)
                fds[count++] = keeper->launch.workspace_fd;
        for (size_t i = 0; i < keeper->plan.others_count; i++)
                if (keeper->plan.others[i].guards_count > 0)
                        fds[count++] = plan_workspace(&keeper->plan.others[i])->fd;
        return landlock_confine_to(fds, count, reterr);
}

/* The keeper finds files by openat2, and sets the modes of new files. It tells files apart by their
 * handles (base/file-id.h). A handle opens nothing, because open_by_handle_at stays refused. SQLite
 * gives new files the owner of their database (fchown). Outside the sandbox, ptrace would reach the
 * caller's other processes, so it is refused. */
static int confine_calls(Error *reterr) {
        static char open_name[] = "openat2", handle_name[] = "name_to_handle_at";
        static char owner_name[] = "fchown";
        static char ptrace_name[] = "@ptrace";
        static struct sock_filter room[SYSCALLS_PROGRAM_MAX];
        char *names[] = { open_name, handle_name, owner_name }, *refused[] = { ptrace_name };
        const StrList allow = { .items = names, .count = ELEMENTSOF(names) };
        const StrList deny = { .items = refused, .count = ELEMENTSOF(refused) };
        struct sock_fprog filter = { .filter = room };
        int r = syscalls_compile(SYSCALLS_DEFAULT, false, &allow, &deny, room, ELEMENTSOF(room),
                                 &filter.len, reterr);

        if (r < 0)
                return r;
        if (sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot confine the keeper");
        return 0;
}

/* The root user of a user namespace, for example in a rootless container, keeps its capabilities
 * until the sandbox exists. They would let the keeper read files whose mode forbids that. */
static int confine_rights(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        const struct __user_cap_data_struct none[2] = { 0 };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &header, none) < 0)
                return -1;
        return prctl(PR_SET_DUMPABLE, 0);
}

int keeper_confine(Keeper *keeper, Error *reterr) {
        int r;

        if (confine_rights() < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot confine the keeper");
        host_gates_note();
        r = mount_table_keep();
        if (r < 0)
                return error_set(reterr, ERROR_SETUP, -r, "cannot open /proc/self/mountinfo");
        r = confine_files(keeper, reterr);
        return r < 0 ? r : confine_calls(reterr);
}
