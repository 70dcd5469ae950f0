/* SPDX-License-Identifier: Apache-2.0 */
/* Ioctls by which a program types for another one. If it pushes input into the caller's terminal,
 * the caller's shell runs that after holt has ended. The terminal is standard input. */
#include "hostile.h"

#include <fcntl.h>
#include <linux/tiocl.h>
#include <sys/ioctl.h>

/* CVE-2019-10063: seccomp compares 64 bits of the request, the tty layer reads 32. */
#define HIGH_BIT (1UL << 32)

static void push(unsigned long request) {
        got(syscall(SYS_ioctl, STDIN_FILENO, request, "x"));
}

static void tiocsti(char **args) {
        (void)args;
        push(TIOCSTI);
}

static void tiocsti_high(char **args) {
        (void)args;
        push(TIOCSTI | HIGH_BIT);
}

/* Opens the same terminal under another name. */
static void tiocsti_reopened(char **args) {
        int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

        (void)args;
        if (fd < 0)
                held("no /dev/tty: %s", errno_name(errno));
        got(syscall(SYS_ioctl, fd, TIOCSTI, "x"));
}

/* Pastes the selection, which works only on the Linux console. Elsewhere, ENOTTY or EINVAL shows
 * that the kernel got to it. */
static void paste(unsigned long request) {
        char code[] = { TIOCL_PASTESEL, 0 };

        reached(syscall(SYS_ioctl, STDIN_FILENO, request, code));
}

static void tioclinux(char **args) {
        (void)args;
        paste(TIOCLINUX);
}

static void tioclinux_high(char **args) {
        (void)args;
        paste(TIOCLINUX | HIGH_BIT);
}

static const Attack attacks[] = {
        { "tiocsti", tiocsti, 0 },
        { "tiocsti-high-bit", tiocsti_high, 0 },
        { "tiocsti-reopened", tiocsti_reopened, 0 },
        { "tioclinux", tioclinux, 0 },
        { "tioclinux-high-bit", tioclinux_high, 0 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
