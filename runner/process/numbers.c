/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of processes, which continue from one keeper of a session to the next. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "process/process-internal.h"

enum { NUMBER_LENGTH = 11 }; /* Decimal digits with leading zeros, and a newline. */

uint32_t process_read_number(int fd) {
        char text[NUMBER_LENGTH + 1] = "";

        if (fd < 0 || pread(fd, text, NUMBER_LENGTH, 0) != NUMBER_LENGTH)
                return 0;
        return (uint32_t)strtoul(text, NULL, 10);
}

void processes_continue_numbers(Processes *all, int fd) {
        all->numbers_fd = fd;
        all->last_number = process_read_number(fd);
}

uint32_t processes_last_number(const Processes *all) {
        return all->last_number;
}

/* The text always has the same length, so a full disk cannot refuse it. The file needs no fsync(2):
 * a kill -9 loses nothing. After a crash of the machine, numbers may be used again. */
uint32_t process_next_number(Processes *all) {
        char text[NUMBER_LENGTH + 1];

        (void)snprintf(text, sizeof(text), "%010" PRIu32 "\n", ++all->last_number);
        if (all->numbers_fd >= 0)
                (void)!pwrite(all->numbers_fd, text, NUMBER_LENGTH, 0);
        return all->last_number;
}
