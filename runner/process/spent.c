/* SPDX-License-Identifier: Apache-2.0 */
/* Processor time of a process that still runs, from the kernel's own files in the sandbox. */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/sys.h"
#include "process/process-internal.h"
#include "process/report.h"

enum { STAT_MAX = 1024, STAT_TIMES_AT = 11 }; /* bytes of the file; fields before the times */

/* Without the layer "proc", the command itself may have made the files at these paths, for example
 * a pipe. */
static int spent_open(const Process *process) {
        struct statfs fs;
        char path[64];
        int fd;

        (void)snprintf(path, sizeof(path), "proc/%d/stat", process->pid);
        fd = sys_open_beneath(process->all->sandbox->root_fd, path, O_RDONLY | O_NONBLOCK);
        if (fd >= 0 && (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC))
                fd = fd_close(fd);
        return fd;
}

/* The fields are described in proc_pid_stat(5). The second is the name of the program, in
 * parentheses, and may have any bytes. */
bool process_spent(const Process *process, Usage *ret) {
        const uint64_t tick = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
        _cleanup_close_ int fd = process->all->sandbox->root_fd >= 0 ? spent_open(process)
                                                                     : FD_NONE;
        unsigned long long user, system, children_user, children_system;
        char text[STAT_MAX];
        const char *at;
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        if (n <= 0)
                return false;
        text[n] = '\0';
        at = strrchr(text, ')');
        for (int i = 0; at && i <= STAT_TIMES_AT; i++)
                at = strchr(at + 1, ' ');
        if (!at || sscanf(at, "%llu %llu %llu %llu", &user, &system, &children_user,
                          &children_system) != 4)
                return false;
        ret->user_us = (user + children_user) * tick;
        ret->system_us = (system + children_system) * tick;
        return true;
}
