/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/entries.h"
#include "base/util.h"
#include "directory-fixture.h"

enum { MANY = 1000 }; /* More entries than the buffer can hold. */

static void name_of(unsigned number, char *ret, size_t size) {
        (void)snprintf(ret, size, "entry-%u-with-a-name-that-fills-the-buffer-soon", number);
}

static void test_every_entry_is_read_once(void **state) {
        _cleanup_close_ int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        bool seen[MANY] = { 0 };
        unsigned count = 0, number;
        const struct dirent *entry;
        Entries entries;
        char name[80];

        for (unsigned i = 0; i < MANY; i++) {
                name_of(i, name, sizeof(name));
                assert_int_equal(mkdirat(fd, name, 0755), 0);
        }
        entries_begin(&entries, fd);
        while ((entry = entries_next(&entries)))
                if (sscanf(entry->d_name, "entry-%u-", &number) == 1) {
                        name_of(number, name, sizeof(name));
                        assert_string_equal(entry->d_name, name);
                        assert_true(entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
                        assert_false(seen[number]);
                        seen[number] = true;
                        count++;
                }
        assert_int_equal(entries.errnum, 0);
        assert_int_equal(count, MANY);
}

static void test_a_removed_directory_has_no_entries(void **state) {
        _cleanup_close_ int fd = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC), gone = FD_NONE;
        Entries entries;

        assert_int_equal(mkdirat(fd, "gone", 0755), 0);
        gone = openat(fd, "gone", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(unlinkat(fd, "gone", AT_REMOVEDIR), 0);
        entries_begin(&entries, gone);
        assert_null(entries_next(&entries));
        assert_int_equal(entries.errnum, 0);
}

static void test_an_error_is_told_from_the_end(void **state) {
        _cleanup_close_ int fd = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
        Entries entries;

        entries_begin(&entries, fd);
        assert_null(entries_next(&entries));
        assert_int_equal(entries.errnum, EBADF);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_every_entry_is_read_once, enter_directory,
                                                leave_directory),
                cmocka_unit_test_setup_teardown(test_a_removed_directory_has_no_entries,
                                                enter_directory, leave_directory),
                cmocka_unit_test_setup_teardown(test_an_error_is_told_from_the_end, enter_directory,
                                                leave_directory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
