/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "cli/tool-programs.h"

static bool is_allowed(const char *command, const char *program, bool *ret_directories) {
        ToolWords words = { 0 };
        Error error;
        int r;

        assert_int_equal(tool_words_split("t", command, "/home/me", &words, &error), 0);
        r = tool_programs_check("t", &words, program, ret_directories, &error);
        tool_words_clear(&words);
        assert_true(r == 0 || (r == -EPERM && error.kind == ERROR_POLICY));
        return r == 0;
}

static const char *const without_shell[] = {
        "/opt/a",
        "tr a-z A-Z",
        "sh /opt/a",
        "bash -eu -o pipefail /opt/a -c x",
        "/bin/sh -x -- /opt/a -s",
        "python3 /opt/a.py",
        "python3.11 -I -c 'print(1)'",
        "python3 -m json.tool",
        "perl -e 1",
        "env -i A=1 /opt/a -C x",
        "env -u A sh /opt/a",
        "timeout -k 1 5 sh /opt/a",
        "nice -n 5 timeout 5 env A=1 python3 /opt/a.py",
        "find /opt -name x",
        "busybox sh /opt/a",
        "shellcheck -s sh",
        "price --kind sh",
};

static void test_commands_without_a_shell_are_allowed(void **state) {
        bool directories;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(without_shell); i++)
                if (!is_allowed(without_shell[i], "/opt/a", &directories))
                        fail_msg("<%s> is refused", without_shell[i]);
}

static const char *const with_shell[] = {
        "sh -c x",
        "sh -ec x",
        "bash -lc x",
        "/bin/bash -c x",
        "sh",
        "sh -",
        "sh -e",
        "sh /dev/stdin",
        "sh -s x",
        "sh -o pipefail -c x",
        "bash --rcfile x",
        "bash +O x -c y",
        "bash -O x -c y",
        "dash -c x",
        "zsh -c x",
        "fish -C x",
        "bash-5.2 -c x",
        "busybox sh -c x",
        "env sh -c x",
        "env -i A=1 sh -c x",
        "env -C / x",
        "env -S x",
        "env -iS x",
        "env -vC/ x",
        "env --chdir=/ x",
        "env --ch=/ x",
        "env --split-string=x",
        "env -u A -C / x",
        "env - sh -c x",
        "nice sh -c x",
        "nice -n 5 sh -c x",
        "nohup sh -c x",
        "timeout 5 sh -c x",
        "timeout -k 1 5 sh -c x",
        "setsid -w sh -c x",
        "xargs -0 -n1 echo",
        "xargs find /opt -name",
        "env xargs /opt/a",
        "setpriv bash",
        "perl -Mstrict",
        "python3 -Iu",
        "xargs sh",
        "xargs env",
        "xargs -I'{}' '{}'",
        "xargs -I'{}' /opt/'{}' x",
        "xargs -0 nice timeout 5",
        "xargs -I'{}' sh -c x",
        "sudo -i",
        "sudo -s x",
        "sudo sh -c x",
        "sudo -D / x",
        "su -c x",
        "script -c x",
        "watch x",
        "flock /l -c x",
        "flock /l sh -c x",
        "find / -exec sh '{}' '+'",
        "find / -ok x",
        "perl",
        "python3",
        "python3 -",
        "python3 -I",
        "ruby /dev/stdin",
        "node",
        "env python3",
        "timeout 5 perl -",
        "strace -f sh -c x",
        "bwrap --bind / / sh -c x",
        "unshare -r bash -lc x",
        "make --eval=x",
        "nice env nohup timeout 5 dash -c x",
};

static void test_commands_that_start_a_shell_are_refused(void **state) {
        bool directories;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(with_shell); i++)
                if (is_allowed(with_shell[i], "/opt/a", &directories))
                        fail_msg("<%s> is allowed", with_shell[i]);
        /* The same program by another name. */
        assert_false(is_allowed("/opt/a -c x", "/usr/bin/dash", &directories));
        assert_false(is_allowed("a -c x", "/usr/bin/bash", &directories));
        assert_true(is_allowed("a x", "/usr/bin/bash", &directories));
}

static void test_directories_to_run_from(void **state) {
        bool directories;

        (void)state;
        assert_true(is_allowed("make -C /opt", "/usr/bin/make", &directories) && directories);
        assert_true(is_allowed("env A=/ python3 -m x", "/usr/bin/env", &directories) &&
                    directories);
        assert_true(is_allowed("cat /opt", "/usr/bin/cat", &directories) && !directories);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_commands_without_a_shell_are_allowed),
                cmocka_unit_test(test_commands_that_start_a_shell_are_refused),
                cmocka_unit_test(test_directories_to_run_from),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
