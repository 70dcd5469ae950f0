/* SPDX-License-Identifier: Apache-2.0 */
/* Tests runner/outcome/complaints.c: the shapes of error messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/strings.h"
#include "outcome/complaints.h"

static Complaints found;

static const Complaint *find(const char *path) {
        for (size_t i = 0; i < found.count; i++)
                if (streq(found.items[i].path, path))
                        return &found.items[i];
        return NULL;
}

static void test_messages_of_many_languages(void **state) {
        static const struct {
                const char *text, *path;
                int errnum;
                bool creates;
        } cases[] = {
                { "touch: cannot touch '/opt/x': Read-only file system\n", "/opt/x", EROFS, true },
                { "cat: ../extra/d: No such file or directory", "../extra/d", ENOENT, false },
                { "cat: my file: No such file or directory", "my file", ENOENT, false },
                { "mkdir: cannot create directory ‘/foo’: Read-only file system\n", "/foo", EROFS,
                  true },
                { "bash: line 1: .git/config: Read-only file system\n", ".git/config", EROFS,
                  false },
                { "sh: 1: cannot create /opt/x: Read-only file system\n", "/opt/x", EROFS, true },
                { "sh: 1: cannot create /nope/x: Directory nonexistent\n", "/nope/x", ENOENT,
                  true },
                { "error: could not write config file .git/config: Device or resource busy\n",
                  ".git/config", EBUSY, true },
                { "OSError: [Errno 30] Read-only file system: '/opt/x'\n", "/opt/x", EROFS, false },
                { "FileNotFoundError: [Errno 2] No such file or directory: 'plain'", "plain",
                  ENOENT, false },
                { "Error: EROFS: read-only file system, open '/opt/x'\n", "/opt/x", EROFS, false },
                { "2026/01/01 open /opt/x: read-only file system\n", "/opt/x", EROFS, false },
                { "java.io.FileNotFoundException: /opt/x (Read-only file system)\n", "/opt/x",
                  EROFS, false },
                { "Error: unable to open database \"/srv/db\": unable to open database file\n",
                  "/srv/db", ENOENT, false },
                { "    db = sqlite3.connect(\"/srv/db\")\nsqlite3.OperationalError: unable to open "
                  "database file\n",
                  "/srv/db", ENOENT, false },
                { "Can't open perl script \"/srv/x.pl\": No such file or directory\n", "/srv/x.pl",
                  ENOENT, false },
                { "Error: Unable to access jarfile /srv/x.jar\n", "/srv/x.jar", ENOENT, false },
                { "Exception in thread \"main\" java.nio.file.NoSuchFileException: /srv/data\n",
                  "/srv/data", ENOENT, false },
                { "\tjava.nio.file.AccessDeniedException: /srv/key\n", "/srv/key", EACCES, false },
                { "e.rb:1:in `initialize': Read-only file system @ rb_sysopen - /opt/x "
                  "(Errno::EROFS)",
                  "/opt/x", EROFS, false },
                { "error: failed to open: /opt/x\n\nCaused by:\n  Read-only file system (os error "
                  "30)\n",
                  "/opt/x", EROFS, false },
                { "\033[1;31merror\033[0m: cannot open \033[1m/opt/x\033[0m: Permission denied\n",
                  "/opt/x", EACCES, false },
                { "tool: --config=/etc/tool.conf: No such file or directory\n", "/etc/tool.conf",
                  ENOENT, false },
                { "can't open the user's file '/srv/a b': Permission denied\r\n", "/srv/a b",
                  EACCES, false },
                { "sh: 1: cannot open ../extra/d: No such file", "../extra/d", ENOENT, false },
                { "/bin/sh: 0: cannot open ../extra/d: No such file", "../extra/d", ENOENT, false },
                { "sh: can't open ../extra/d: no such file", "../extra/d", ENOENT, false },
                { "dash: 1: cd: can't cd to ../extra", "../extra", ENOENT, false },
                { "cp: cannot create regular file '../extra/': Not a directory", "../extra/",
                  ENOENT, true },
                { "dash: 1: cd: can't cd to my dir", "my dir", ENOENT, false },
                { "sh: 1: cannot create x: Read-only file system", "x", EROFS, true },
                { "sed: couldn't open temporary file ./sedQx: Permission denied", "./sedQx", EACCES,
                  false },
                { "zsh:1: read-only file system: x", "x", EROFS, false },
                { "zsh: can't open input file: ../extra/d", "../extra/d", ENOENT, false },
                { "zsh:cd:1: no such file or directory: my dir", "my dir", ENOENT, false },
                { "/opt/bin/x: Read-only file system", "/opt/bin/x", EROFS, false },
                { "Config file /etc/tool.conf does not exist.\n", "/etc/tool.conf", ENOENT, false },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Complaint *complaint;

                complaints_find(cases[i].text, strlen(cases[i].text), &found);
                complaint = find(cases[i].path);
                if (!complaint)
                        fail_msg("%s: not found in: %s", cases[i].path, cases[i].text);
                assert_int_equal(complaint->errnum, cases[i].errnum);
                assert_int_equal(complaint->creates, cases[i].creates);
        }
}

static void test_other_output_has_none(void **state) {
        static const char *const texts[] = {
                "",
                "\n",
                "/opt/x\n",
                "make: *** [all] Error 1\n",
                "Permission denied\n",
                "'\"`‘“",
                "it's a test: all fine\n",
                "\033[",
                "\033",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                complaints_find(texts[i], strlen(texts[i]), &found);
                assert_int_equal(found.count, 0);
        }
}

static void test_the_name_of_the_program_is_no_path(void **state) {
        static const struct {
                const char *text, *other;
        } cases[] = {
                { "/bin/sh: 1: cannot create x: Read-only file system", "/bin/sh" },
                { "/bin/sh: 1: cannot create x: Read-only file system", "cannot create x" },
                { "./configure: line 3: x: Read-only file system", "./configure" },
                { "/usr/bin/touch: cannot touch 'x': Read-only file system", "/usr/bin/touch" },
                { "sed: cannot rename ./sedQx: Permission denied", "cannot rename ./sedQx" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                complaints_find(cases[i].text, strlen(cases[i].text), &found);
                assert_true(found.count > 0);
                if (find(cases[i].other))
                        fail_msg("%s: found in: %s", cases[i].other, cases[i].text);
        }
}

static void test_each_path_comes_once(void **state) {
        static const char text[] = "rm: cannot remove '/a/b': Device or resource busy\n"
                                   "rm: cannot remove '/a/b': Device or resource busy\n"
                                   "cat: /a/b: No such file or directory\n";

        (void)state;
        complaints_find(text, strlen(text), &found);
        assert_int_equal(found.count, 2);
        assert_int_equal(found.items[0].errnum, ENOENT);
        assert_int_equal(found.items[1].errnum, EBUSY);
}

static void test_the_end_of_a_long_text_counts(void **state) {
        static char text[3 * COMPLAINTS_TEXT_MAX];
        static const char last[] = "\ncat: /last: No such file or directory\n";

        (void)state;
        for (size_t i = 0; i + 8 <= sizeof(text); i += 8)
                memcpy(text + i, "/a: EIO ", 8);
        memcpy(text, "cat: /first: No such file or directory\n", 39);
        memcpy(text + sizeof(text) - strlen(last), last, strlen(last));
        complaints_find(text, sizeof(text), &found);
        assert_null(find("/first"));
        assert_non_null(find("/last"));
}

static void test_bounds(void **state) {
        static char text[COMPLAINTS_TEXT_MAX];
        size_t length = 0;

        (void)state;
        for (int i = 0; i < 2 * COMPLAINTS_MAX; i++)
                length += (size_t)snprintf(text + length, sizeof(text) - length,
                                           "cat: /%d: No such file or directory\n", i);
        complaints_find(text, length, &found);
        assert_int_equal(found.count, COMPLAINTS_MAX);
        assert_string_equal(found.items[0].path, "/127");

        /* A word that is too long to be a path. */
        memset(text, 'a', sizeof(text));
        memcpy(text, "cat: /", 6);
        memcpy(text + COMPLAINTS_PATH_MAX + 100, ": Permission denied", 19);
        complaints_find(text, COMPLAINTS_PATH_MAX + 119, &found);
        assert_int_equal(found.count, 0);
}

static void test_a_line_says_how_the_path_was_used(void **state) {
        static const struct {
                const char *text, *path;
                bool opens;
        } cases[] = {
                { "bash: line 1: /d/new: No such file or directory", "/d/new", true },
                { "zsh:1: no such file or directory: /d/new", "/d/new", true },
                { "sh: can't create /d/new: nonexistent directory", "/d/new", false },
                { "FileNotFoundError: [Errno 2] No such file or directory: '/d/new'", "/d/new",
                  true },
                { "Error: ENOENT: no such file or directory, open '/d/new'", "/d/new", true },
                { "PHP Warning:  file_put_contents(/d/new): Failed to open stream: No such file or "
                  "directory in x.php on line 1",
                  "/d/new", true },
                { "tee: /d/new: No such file or directory", "/d/new", true },
                { "head: cannot open '/d/x' for reading: No such file or directory", "/d/x",
                  false },
                { "cat: /d/x: No such file or directory", "/d/x", false },
                { "cat: /d/open/x: No such file or directory", "/d/open/x", false },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Complaint *complaint;

                complaints_find(cases[i].text, strlen(cases[i].text), &found);
                complaint = find(cases[i].path);
                if (!complaint || complaint->opens != cases[i].opens)
                        fail_msg("%s", cases[i].text);
        }
}

static void test_programs_that_were_not_found(void **state) {
        static const struct {
                const char *text, *name; /* NULL: no program */
        } cases[] = {
                { "bash: line 1: tool: command not found\n", "tool" },
                { "./x.sh: line 3: my-tool2.7: command not found\n", "my-tool2.7" },
                { "sh: 1: g++: not found\n", "g++" },
                { "/bin/sh: 1: tool: not found\nmake: *** [m:2: all] Error 127\n", "tool" },
                { "sh: tool: not found\n", "tool" },
                { "zsh:1: command not found: tool\n", "tool" },
                { "fish: Unknown command: tool\nfish: \ntool\n^~~^\n", "tool" },
                { "env: ‘tool’: No such file or directory\n", "tool" },
                { "/usr/bin/env: 'tool': No such file or directory\n", "tool" },
                { "env: can't execute 'tool': No such file or directory\n", "tool" },
                { "timeout: failed to run command ‘tool’: No such file or directory\n", "tool" },
                { "nice: ‘tool’: No such file or directory\n", "tool" },
                { "setsid: failed to execute tool: No such file or directory\n", "tool" },
                { "xargs: tool: No such file or directory\n", "tool" },
                { "make: tool: No such file or directory\n", "tool" },
                { "make[1]: tool: No such file or directory\n", "tool" },
                { "exec: \"tool\": executable file not found in $PATH\n", "tool" },
                { "Error: spawn tool ENOENT\n    at x (y:1:2)\n", "tool" },
                { "java.io.IOException: Cannot run program \"tool\": error=2, No such file\n",
                  "tool" },
                { "FileNotFoundError: [Errno 2] No such file or directory: 'tool'\n", "tool" },
                { "\033[31mbash: tool: command not found\033[0m\n", "tool" },
                { "cat: tool: No such file or directory\n", NULL },
                { "find: ‘tool’: No such file or directory\n", NULL },
                { "bash: line 1: ./tool: command not found\n", NULL },
                { "bash: line 1: /opt/tool: No such file or directory\n", NULL },
                { "error: the package tool was not found\n", NULL },
                { "sh: 1: Syntax error: \"(\" unexpected\n", NULL },
                { "my env: ‘tool’: No such file or directory\n", NULL },
                { ": command not found", NULL },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Complaint *program = NULL;

                complaints_find(cases[i].text, strlen(cases[i].text), &found);
                for (size_t j = 0; j < found.count; j++)
                        if (found.items[j].program)
                                program = &found.items[j];
                if (!program != !cases[i].name ||
                    (program &&
                     (!streq(program->path, cases[i].name) || program->errnum != ENOENT)))
                        fail_msg("%s", cases[i].text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_messages_of_many_languages),
                cmocka_unit_test(test_a_line_says_how_the_path_was_used),
                cmocka_unit_test(test_other_output_has_none),
                cmocka_unit_test(test_the_name_of_the_program_is_no_path),
                cmocka_unit_test(test_each_path_comes_once),
                cmocka_unit_test(test_the_end_of_a_long_text_counts),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_programs_that_were_not_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
