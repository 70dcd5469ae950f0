/* SPDX-License-Identifier: Apache-2.0 */
/* "swap NAME OTHER [FROM TO]": exchanges two names as fast as it can, until it is killed. NAME is a
 * directory, and OTHER a symlink that leads out, or vice versa. A program that checks a name first
 * may then act on the other file. With FROM and TO, a directory is also moved back and forth,
 * against programs that go up by "..". Prints "ready" first. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

int main(int argc, char **argv) {
        if (argc != 3 && argc != 5)
                return 2;
        if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) < 0) {
                perror("renameat2");
                return 1;
        }
        if (write(STDOUT_FILENO, "ready\n", 6) != 6)
                return 1;
        for (;;) {
                (void)renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE);
                if (argc == 5 && rename(argv[3], argv[4]) < 0)
                        (void)rename(argv[4], argv[3]);
        }
}
