/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the whole of a session's init (helpers/session-init.c) on a fake kernel. libFuzzer's input
 * answers each system call. So it decides the keeper's messages, the processes in /proc and their
 * text, which calls fail, and when a monitor dies. Monitors and commands run to their end inside
 * the call that starts them.
 *
 * Every access to memory must stay within the memory that is mapped for it. Only signals and calls
 * are allowed that a real kernel would accept. Each start is answered once, and each end is
 * reported once. Only orphans and descendants of a monitor may be killed. In the end no memory and
 * no fd is left.
 *
 * init uses the kernel's headers, which conflict with libc's of the same names. So this file uses
 * compiler builtins. */
#include <asm/unistd.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The entry point of init is not used; this function-like macro removes its instructions. */
#define __asm__(...)
#include "helpers/init-sys.h"
#undef __asm__

static long fake_call(long nr, long a, long b, long c, long d, long e);
static long fake_spawn(void (*fn)(void *), void *arg, int shares_fds);

#define sys6(nr, a, b, c, d, e, f) fake_call(nr, a, b, c, d, e)
#define sys_spawn(stack_top, fn, arg) ((void)(stack_top), fake_spawn(fn, arg, 0))
#define sys_vfork(stack_top, fn, arg) ((void)(stack_top), fake_spawn(fn, arg, 1))
#include "helpers/session-init.c"

#include "tests/fuzz/fuzz-init-kernel.h"

/* --- the keeper's messages --- */

static void add_string(char *block, unsigned *at, unsigned length) {
        while (length-- > 0 && *at < SESSION_INLINE_MAX - 1)
                block[(*at)++] = (char)(1 + take() % 255);
        if (*at < SESSION_INLINE_MAX)
                block[(*at)++] = '\0';
}

/* Makes a block like the keeper's, sometimes with a fault. */
static unsigned make_block(char *block) {
        static const char *const words[] = { "/bin/sh", "sh", "PATH=/usr/bin:/bin",
                                             "PATH=", "./a" };
        const unsigned shape = take();
        ExecBlock head = { .argc = shape & 64 ? take_u32(&input) : 1 + take() % 5,
                           .envc = shape & 128 ? take_u32(&input) : take() % 5,
                           .terminal = take() % 8,
                           .rows = (uint16_t)take(),
                           .has_mode = shape & 1 };
        unsigned at = sizeof(head), count = shape & 2 ? take() : 1 + head.argc + head.envc;

        if (shape & 4)
                head.argc = count = 200 + take();
        memcpy(block, &head, sizeof(head));
        for (unsigned i = 0; i < count && i < 600; i++) {
                const unsigned choice = take();

                if (choice < 5 && at + 32 < SESSION_INLINE_MAX) {
                        memcpy(block + at, words[choice], strlen(words[choice]) + 1);
                        at += (unsigned)strlen(words[choice]) + 1;
                } else {
                        add_string(block, &at, choice % 16);
                }
        }
        return shape & 8 ? at - take() % at : at;
}

static long receive_message(const MessageHeader *header) {
        Packet packet = { 0 };
        Rights *rights = header->control;
        const unsigned shape = take();
        unsigned count = shape & 3 ? shape & 7 : 3, size = 0;
        long length;

        REQUIRE(header->vector_count == 1 && header->vector->length == sizeof(Packet));
        REQUIRE(header->control_length == sizeof(Rights));
        packet.message.type = shape & 16 ? take() : SESSION_EXEC + take() % 4;
        packet.message.exec = shape & 32 ? take_u32(&input) : take() % 8;
        packet.message.value = (int32_t)(shape & 64 ? take_u32(&input) : take());
        packet.message.detail = shape & 128 ? take_u32(&input) : 2 + take() % 64;
        if (packet.message.type == SESSION_EXEC && !(shape & 64)) {
                size = make_block(packet.block);
                packet.message.value = (int32_t)size;
                if (shape & 8)
                        packet.message.value = 4090 + (int)take() * 37;
        }
        length = (long)(sizeof(packet.message) + size);
        if (take() % 16 == 0)
                length = 1 + (long)(take_u32(&input) % sizeof(packet));
        memcpy(header->vector->base, &packet, (unsigned long)length);
        count = count > FDS_MAX ? FDS_MAX : count;
        rights->header = (ControlHeader){ sizeof(ControlHeader) + count * sizeof(int),
                                          SOL_SOCKET_LEVEL, SCM_RIGHTS_TYPE };
        for (unsigned i = 0; i < count; i++)
                rights->fds[i] = (int)open_fd(FD_PLAIN, 0);
        ((MessageHeader *)(uintptr_t)header)->control_length = count ? sizeof(ControlHeader) +
                                                                               count * sizeof(int)
                                                                     : 0;
        return length;
}

static long fake_receive(const MessageHeader *header) {
        long r;

        if (kernel.closed)
                return 0;
        r = is_over() ? -EAGAIN : may_fail();
        return r < 0 ? -EAGAIN : receive_message(header);
}

/* --- init's messages --- */

static void check_start_answered(const SessionMessage *message) {
        Person *monitor = find_person(kernel.self[kernel.level]);

        /* Without a monitor, init itself answers. */
        if (kernel.level == 0) {
                REQUIRE(message->type == SESSION_FAILED && !kernel.gone_due);
                kernel.gone_due = 1;
                kernel.gone_exec = message->exec;
                return;
        }
        REQUIRE(kernel.level == 1 && monitor && monitor->exec->id == message->exec);
        REQUIRE(monitor->answers++ == 0);
        REQUIRE(message->type == SESSION_FAILED || message->value > 0);
        REQUIRE(message->type == SESSION_STARTED || message->value > 0);
}

static long fake_send(const MessageHeader *header) {
        const SessionMessage *message = header->vector->base;

        REQUIRE(header->vector_count == 1 && header->vector->length == sizeof(*message));
        REQUIRE(message->exec != 0);
        if (may_fail() < 0)
                return -EINTR;
        if (header->control_length) {
                const Rights *rights = header->control;

                REQUIRE(message->type == SESSION_STARTED && fd_at(rights->fds[0]));
        }
        switch (message->type) {
        case SESSION_STARTED:
        case SESSION_FAILED:
                check_start_answered(message);
                break;
        case SESSION_STOPPED:
        case SESSION_ENDED:
                REQUIRE(kernel.level == 1);
                REQUIRE(find_person(kernel.self[1])->exec->id == message->exec);
                break;
        case SESSION_GONE:
                REQUIRE(kernel.level == 0 && kernel.gone_due);
                REQUIRE(message->exec == kernel.gone_exec);
                kernel.gone_due = 0;
                break;
        default:
                FAIL("a message of no kind");
        }
        return sizeof(*message);
}

/* --- processes --- */

/* fn does not return: it ends by exit, or after executing a program. */
static long fake_spawn(void (*fn)(void *), void *arg, int shares_fds) {
        Person *person;
        long r = may_fail();
        int pid;

        (void)shares_fds;
        REQUIRE(kernel.level + 1 < NESTED);
        if (r < 0)
                return r;
        person = add_person(kernel.self[kernel.level]);
        if (!person)
                return -EAGAIN;
        pid = person->pid;
        person->is_monitor = kernel.level == 0;
        if (person->is_monitor)
                person->exec = arg;
        memcpy(kernel.fds[kernel.level + 1], kernel.fds[kernel.level], sizeof(kernel.fds[0]));
        kernel.level++;
        kernel.self[kernel.level] = pid;
        if (setjmp(kernel.ends[kernel.level]) == 0) {
                fn(arg);
                FAIL("fn has returned");
        }
        kernel.level--;
        return pid;
}

static void fake_exit(void) {
        Person *self = find_person(kernel.self[kernel.level]);

        if (kernel.level == 1) {
                REQUIRE(self->answers == 1);
                REQUIRE(only_signals_open());
        }
        /* The input decides how long a monitor lives on in /proc. */
        if (self && kernel.level == 2)
                remove_person(self);
        longjmp(kernel.ends[kernel.level], 1);
}

/* Waits for a monitor, which passes NULL if it does not need the status. */
static long wait_as_monitor(int *status, long options, long *usage) {
        const unsigned what = is_over() ? 255 : take();
        Person *child = (Person *)0;
        int ended;

        for (int i = 0; i < PEOPLE && !child; i++)
                if (kernel.people[i].pid && kernel.people[i].parent == kernel.self[1])
                        child = &kernel.people[i];
        REQUIRE(only_signals_open());
        if (what == 255 || !child)
                return -ECHILD;
        if (what % 8 == 0)
                return -EINTR;
        if (what % 8 == 3 && options & WNOHANG)
                return 0;
        ended = (int)(what % 8 == 1 ? 0x137f : take_u32(&input) & 0xffff);
        if ((ended & 0xff) == 0x7f && !(options & WUNTRACED))
                ended = 0;
        if (status)
                *status = ended;
        for (int i = 0; usage && i < 16; i++)
                usage[i] = (long)take();
        if ((ended & 0xff) == 0x7f)
                return child->pid;
        what % 8 == 2 ? (void)add_person(child->pid) : (void)0;
        {
                const int pid = child->pid;

                remove_person(child);
                return pid;
        }
}

/* Waits for init. init reports the end of a monitor, but not a stop, or the end of an orphan. */
static long wait_as_init(int *status) {
        const unsigned what = is_over() ? 0 : take();

        REQUIRE(!kernel.gone_due);
        for (int i = 0; i < PEOPLE; i++) {
                Person *p = &kernel.people[i];

                if (!p->pid || p->parent != 1)
                        continue;
                if (p->is_monitor && (p->zombie || is_over() || what % 4 == 0)) {
                        const int pid = p->pid;

                        *status = p->zombie || is_over() ? 0 : (int)(take() & 0x7f);
                        if (*status == 0x7f)
                                return pid;
                        kernel.gone_due = 1;
                        kernel.gone_exec = p->exec->id;
                        remove_person(p);
                        *p = (Person){ 0 };
                        return pid;
                }
                if (!p->is_monitor && what % 4 == 1) {
                        const int pid = p->pid;

                        *status = 9;
                        remove_person(p);
                        return pid;
                }
        }
        return 0;
}

static long fake_wait(int *status, long options, long *usage) {
        REQUIRE(kernel.level < 2);
        if (kernel.level == 1)
                return wait_as_monitor(status, options, usage);
        REQUIRE(options & WNOHANG);
        return wait_as_init(status);
}

/* Signals all processes, one, or a group. */
static long fake_kill(long pid, long signal) {
        Person *person = find_person((int)(pid < 0 ? -pid : pid));

        REQUIRE(kernel.level == 0 && pid != 0 && pid != 1);
        if (pid == -1) {
                REQUIRE(signal == SIGSTOP || signal == SIGCONT);
                return 0;
        }
        if (!person)
                return -ESRCH;
        /* A monitor without children ends. */
        if (person->is_monitor) {
                REQUIRE(pid > 0 && (signal == SIGCONT || signal == WAKE_SIGNAL));
                /* The input decides whether the monitor notices in time. */
                if (signal == WAKE_SIGNAL)
                        person->exec->resume = (int)take() % 2;
                if (!has_children(person->pid))
                        person->zombie = 1;
                return 0;
        }
        if (signal < 0 || signal > 64)
                return -EINVAL;
        if (signal == SIGKILL && (is_over() || take() % 8))
                remove_person(person);
        return 0;
}

/* --- /proc --- */

static void fork_somewhere(void) {
        const Person *parent = &kernel.people[take() % PEOPLE];

        if (parent->pid && !parent->zombie && !parent->is_monitor && kernel.forks++ < FORKS_MAX)
                (void)add_person(parent->pid);
}

static long add_entry(char *at, const char *name) {
        const long length = (19 + (long)strlen(name) + 1 + 7) & ~7L;

        *(uint16_t *)(void *)(at + 16) = (uint16_t)length;
        (void)strcpy(at + 19, name);
        return length;
}

static long fake_list(Open *open, char *buffer, unsigned long size) {
        char name[256];
        long length = 0;

        REQUIRE(open && open->kind == FD_PROC && size >= 8192);
        if (open->read)
                return 0;
        open->read = 1;
        length += add_entry(buffer + length, ".");
        length += add_entry(buffer + length, "1");
        if (!is_over() && take() % 8 == 0) {
                unsigned n = take();

                for (unsigned i = 0; i < n; i++)
                        name[i] = (char)(i % 3 ? '0' + take() % 10 : 1 + take() % 255);
                name[n] = '\0';
                length += add_entry(buffer + length, n ? name : "x");
        }
        for (int i = 0; i < PEOPLE; i++)
                if (kernel.people[i].pid) {
                        (void)snprintf(name, sizeof(name), "%d", kernel.people[i].pid);
                        length += add_entry(buffer + length, name);
                }
        fork_somewhere();
        return length;
}

/* A process chooses its own name. */
static long fake_stat(const Open *open, char *buffer, unsigned long size) {
        static const char *const names[] = { "sh", ") R 1 (", "a) Z 0", ")))))", "" };
        const Person *p = find_person(open->pid);
        char text[600];
        int n;

        if (!p)
                return -ESRCH;
        if (!is_over() && take() % 16 == 0)
                return (long)(take() % 3);
        n = snprintf(text, sizeof(text), "%d (%s) %c %d %d 0 0 more", p->pid,
                     names[is_over() ? 0 : take() % 5], p->zombie ? 'Z' : 'S', p->parent, p->pid);
        n = (unsigned long)n < size ? n : (int)size;
        memcpy(buffer, text, (unsigned long)n);
        return n;
}

static long fake_open(long at, const char *path) {
        char *end;
        long r = may_fail();
        int pid = 0;

        if (r < 0)
                return r;
        if (at == AT_FDCWD_VALUE)
                return open_fd(strcmp(path, "/proc") == 0 ? FD_PROC : FD_PLAIN, 0);
        REQUIRE(fd_at(at) && fd_at(at)->kind == FD_PROC);
        for (end = (char *)(uintptr_t)path; *end >= '0' && *end <= '9'; end++)
                pid = (int)((unsigned)pid * 10U + (unsigned)(*end - '0'));
        REQUIRE(end != path && strcmp(end, "/stat") == 0);
        return find_person(pid) ? open_fd(FD_STAT, pid) : -ENOENT;
}

static long fake_read(long fd, char *buffer, unsigned long size) {
        const Open *open = fd_at(fd);
        unsigned long n;

        if (!open)
                return -EBADF;
        if (open->kind == FD_STAT)
                return fake_stat(open, buffer, size);
        n = take() % (size + 1);
        for (unsigned long i = 0; i < n; i++)
                buffer[i] = (char)take();
        return (long)n;
}

/* --- executing --- */

static unsigned long count_strings(char **strings) {
        unsigned long count = 0;

        while (strings[count])
                (void)strlen(strings[count++]);
        return count;
}

static long fake_execute(const char *path, char **argv, char **env) {
        static const int errors[] = { ENOENT, EACCES, ENOEXEC, ENOTDIR, E2BIG };
        const unsigned what = is_over() ? 255 : take();

        REQUIRE(kernel.level == 2 && strlen(path) < (unsigned long)SESSION_BLOCK_MAX);
        REQUIRE(count_strings(argv) > 0);
        (void)count_strings(env);
        if (what < 200)
                return -errors[what % 5];
        longjmp(kernel.ends[kernel.level], 1);
}

/* --- the calls --- */

/* Polls for a monitor whose command has a terminal; init may have asked for the foreground
 * meanwhile. */
static long poll_as_monitor(const struct pollfd *fds, unsigned long count) {
        const unsigned what = take();

        REQUIRE(count == 1 && fd_at(fds->fd) && fd_at(fds->fd)->kind == FD_SIGNAL);
        find_person(kernel.self[1])->exec->resume |= what % 4 == 1;
        return what % 16 == 15 ? -EINTR : 1;
}

static long fake_poll(struct pollfd *fds, unsigned long count) {
        unsigned what;

        if (count == 0)
                return 0;
        if (kernel.level == 1)
                return poll_as_monitor(fds, count);
        REQUIRE(count == 2 && kernel.level == 0 && fds[1].fd == SESSION_CONTROL_FD);
        /* Between two messages, no fd is left open and no report is due. */
        REQUIRE(count_fds() == 5 && !kernel.gone_due);
        kernel.closed = is_over();
        what = kernel.closed ? 3 : take();
        if (what % 16 == 15)
                return -EINTR;
        fds[0].revents = what & 1 ? POLLIN : 0;
        fds[1].revents = what & 2 ? POLLIN : 0;
        return 1;
}

static long fake_dup(long from, long to) {
        if (!fd_at(from))
                return -EBADF;
        if (from == to)
                return -EINVAL;
        kernel.fds[kernel.level][to] = *fd_at(from);
        return to;
}

static long fake_close_range(long first) {
        for (long fd = first; fd < OPEN_FDS; fd++)
                kernel.fds[kernel.level][fd] = (Open){ 0 };
        return 0;
}

/* A command's group has its PID: either the command asks, or its monitor does. */
static void check_group(const int *group) {
        const Person *leader = find_person(*group);

        REQUIRE(*group > 1);
        if (kernel.level == 2)
                REQUIRE(*group == kernel.self[2]);
        else if (leader)
                REQUIRE(leader->parent == kernel.self[1]);
}

static long fake_ioctl(long fd, long request, const void *argument) {
        long r = may_fail();

        if (!fd_at(fd))
                return -EBADF;
        if (request == TIOCSPGRP_REQUEST)
                check_group(argument);
        if (r < 0)
                return r;
        return request == TIOCGPTPEER_REQUEST ? open_fd(FD_PLAIN, 0) : 0;
}

static long fake_call(long nr, long a, long b, long c, long d, long e) {
        switch (nr) {
        case __NR_recvmsg:
                return fake_receive((const MessageHeader *)b);
        case __NR_sendmsg:
                REQUIRE(a == SESSION_CONTROL_FD);
                return fake_send((const MessageHeader *)b);
        case __NR_mmap:
                return map((unsigned long)b, d & MAP_ANONYMOUS_FLAG ? -1 : e,
                           !(d & MAP_ANONYMOUS_FLAG));
        case __NR_munmap:
                return unmap_at((void *)a, (unsigned long)b);
        case __NR_close:
                return close_fd(a);
        case __NR_close_range:
                return fake_close_range(a);
        case __NR_dup3:
                return fake_dup(a, b);
        case __NR_openat:
                return fake_open(a, (const char *)b);
        case __NR_read:
                return fake_read(a, (char *)b, (unsigned long)c);
        case __NR_getdents64:
                return fake_list(fd_at(a), (char *)b, (unsigned long)c);
        case __NR_ppoll:
                return fake_poll((struct pollfd *)a, (unsigned long)b);
        case __NR_wait4:
                return fake_wait((int *)b, c, (long *)d);
        case __NR_kill:
                return fake_kill(a, b);
        case __NR_execve:
                return fake_execute((const char *)a, (char **)b, (char **)c);
        case __NR_ioctl:
                return fake_ioctl(a, b, (const void *)c);
        case __NR_chdir:
                (void)strlen((const char *)a);
                return may_fail();
        case __NR_faccessat:
                (void)strlen((const char *)b);
                return may_fail();
        case __NR_signalfd4:
                return open_fd(FD_SIGNAL, 0);
        case __NR_exit:
        case __NR_exit_group:
                fake_exit();
                return 0;
        case __NR_getpid:
                return kernel.self[kernel.level];
        case __NR_setpgid:
                REQUIRE(kernel.level == 2 && a == 0 && b == 0);
                return may_fail();
        case __NR_setsid:
        case __NR_prctl:
        case __NR_rt_sigprocmask:
        case __NR_fcntl:
                return 0;
        default:
                FAIL("a call that init does not make");
                return -ENOSYS;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        input = (Input){ data, data + size };
        memset(&kernel, 0, sizeof(kernel));
        memset(monitors, 0, sizeof(monitors));
        processes = (Process *)0;
        kernel.last_pid = kernel.self[0] = 1;
        kernel.fds[0][SESSION_CONTROL_FD].kind = FD_SOCKET;
        for (int fd = 0; fd < 3; fd++)
                kernel.fds[0][fd].kind = FD_PLAIN;
        if (setjmp(kernel.ends[0]) == 0)
                init_main((long *)0);
        for (int i = 0; i < SESSION_EXECS_MAX; i++)
                REQUIRE(!monitors[i].exec);
        REQUIRE(count_maps() == (processes ? 1 : 0));
        if (processes)
                (void)unmap_at(processes, PROCESSES_MAX * sizeof(*processes));
        return 0;
}
