/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a harness without libFuzzer on each file of its corpus. So harnesses are built and run with
 * the unit tests, and keep up with the code. Each file is a test, reported in cmocka's format. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/harness.h"

static void replay(int directory_fd, const char *name) {
        struct stat st;
        uint8_t *data;
        int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC);

        REQUIRE(fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode));
        data = malloc((size_t)st.st_size + 1);
        REQUIRE(data && read(fd, data, (size_t)st.st_size) == st.st_size);
        (void)close(fd);
        (void)fprintf(stderr, "[ RUN      ] %s\n", name);
        REQUIRE(LLVMFuzzerTestOneInput(data, (size_t)st.st_size) == 0);
        (void)fprintf(stderr, "[       OK ] %s\n", name);
        free(data);
}

int main(int argc, char *argv[]) {
        const struct dirent *entry;
        unsigned count = 0;
        DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;

        REQUIRE(directory);
        while ((entry = readdir(directory)))
                if (entry->d_name[0] != '.') {
                        replay(dirfd(directory), entry->d_name);
                        count++;
                }
        (void)closedir(directory);
        REQUIRE(count > 0);
        return 0;
}
