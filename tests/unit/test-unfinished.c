/* SPDX-License-Identifier: Apache-2.0 */
/* Tests unfinished things, whose makers died: those that the sweep removes, and those that it
 * leaves. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "files-fixture.h"
#include "files/copy.h"
#include "files/unfinished.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

typedef struct Case {
        Fixture *f;
        int place_fd, notes_fd; /* the directory of the things and of their notes */
        UnfinishedNotes notes;
} Case;

static void case_open(Case *c, void **state) {
        c->f = *state;
        c->place_fd = open("root/work", O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(mkdir("notes", 0700), 0);
        c->notes_fd = open("notes", O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(c->place_fd >= 0 && c->notes_fd >= 0);
        c->notes = (UnfinishedNotes){ c->notes_fd, UNFINISHED_INSIDE };
}

static void case_close(Case *c) {
        fd_close(c->place_fd);
        fd_close(c->notes_fd);
        assert_int_equal(rmdir("notes"), 0);
}

/* A note contains the path from the top of the mounts, but the fixture's root is elsewhere. */
static int place_of(void *data, const char *path, FilesPlace *ret) {
        const Case *c = data;

        (void)strcpy(ret->name, strrchr(path, '/') + 1);
        ret->dir_fd = fcntl(c->place_fd, F_DUPFD_CLOEXEC, 0);
        return ret->dir_fd < 0 ? -errno : 0;
}

static void sweep(Case *c) {
        unfinished_sweep(&c->notes, NULL, place_of, c);
}

static size_t notes_count(const Case *c) {
        _cleanup_(strlist_clear) StrList names = { 0 };

        assert_int_equal(unfinished_list(&c->notes, &names), 0);
        return names.count;
}

static bool has(const Case *c, const char *name) {
        return faccessat(c->place_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Makes a directory with a file in it. */
static void fill(int dir_fd, const char *name, const Unfinished *noted) {
        _cleanup_close_ int fd = FD_NONE, file_fd = FD_NONE;

        assert_int_equal(mkdirat(dir_fd, name, 0700), 0);
        fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (noted)
                unfinished_made(noted, fd);
        file_fd = openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(file_fd >= 0);
}

/* Makes a directory like a process that ends before the directory is finished. */
static void abandon(Case *c, char ret_name[UNFINISHED_NAME_SIZE]) {
        Unfinished unfinished;

        unfinished_begin(&c->notes, c->place_fd, NULL, &unfinished);
        (void)strcpy(ret_name, unfinished.name);
        fill(c->place_fd, ret_name, &unfinished);
        unfinished_leave(&unfinished);
}

static void test_a_thing_stays_while_its_maker_lives(void **state) {
        Unfinished unfinished;
        Case c;

        case_open(&c, state);
        unfinished_begin(&c.notes, c.place_fd, NULL, &unfinished);
        assert_true(unfinished_is_name(unfinished.name));
        fill(c.place_fd, unfinished.name, &unfinished);
        sweep(&c);
        assert_true(has(&c, unfinished.name));
        assert_int_equal(notes_count(&c), 1);
        unfinished_end(&unfinished);
        assert_int_equal(notes_count(&c), 0);
        case_close(&c);
}

static void test_abandoned_files_are_removed_with_their_notes(void **state) {
        char name[UNFINISHED_NAME_SIZE];
        Case c;

        case_open(&c, state);
        abandon(&c, name);
        sweep(&c);
        assert_false(has(&c, name));
        assert_int_equal(notes_count(&c), 0);
        case_close(&c);
}

static void test_another_thing_of_the_name_stays(void **state) {
        char name[UNFINISHED_NAME_SIZE];
        Case c;

        case_open(&c, state);
        abandon(&c, name);
        assert_int_equal(renameat(c.place_fd, name, c.place_fd, "old"), 0);
        fill(c.place_fd, name, NULL);
        sweep(&c);
        assert_true(has(&c, name) && has(&c, "old"));
        assert_int_equal(notes_count(&c), 0);
        case_close(&c);
}

typedef struct Swapper {
        int place_fd;
        const char *name;
        atomic_bool stop;
} Swapper;

static void *swapper_run(void *data) {
        Swapper *swapper = data;

        while (!atomic_load(&swapper->stop))
                (void)syscall(SYS_renameat2, swapper->place_fd, swapper->name, swapper->place_fd,
                              "victim", RENAME_EXCHANGE);
        return NULL;
}

/* Sweeps a thing while another thread exchanges it for the victim again and again. */
static void swap_and_sweep(Case *c) {
        Swapper swapper = { .place_fd = c->place_fd };
        char name[UNFINISHED_NAME_SIZE], keep[UNFINISHED_NAME_SIZE + 5];
        pthread_t thread;

        abandon(c, name);
        swapper.name = name;
        assert_int_equal(pthread_create(&thread, NULL, swapper_run, &swapper), 0);
        sweep(c);
        sweep(c);
        atomic_store(&swapper.stop, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        (void)snprintf(keep, sizeof(keep), "%s/keep", name);
        if (has(c, keep)) {
                assert_int_equal(files_remove_tree(c->place_fd, "victim"), 0);
                assert_int_equal(renameat(c->place_fd, name, c->place_fd, "victim"), 0);
        }
        assert_true(has(c, "victim/keep"));
        assert_int_equal(files_remove_tree(c->place_fd, name), 0);
        sweep(c);
        assert_int_equal(notes_count(c), 0);
}

static void test_a_thing_that_is_exchanged_meanwhile_costs_nobody_else_s(void **state) {
        _cleanup_close_ int fd = FD_NONE;
        Case c;

        case_open(&c, state);
        fill(c.place_fd, "victim", NULL);
        fd = openat(c.place_fd, "victim/keep", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        for (int i = 0; i < 400; i++)
                swap_and_sweep(&c);
        case_close(&c);
}

/* The maker died between making the thing and noting its identity. */
static void test_without_an_identity_only_an_empty_thing_goes(void **state) {
        char empty[UNFINISHED_NAME_SIZE], full[UNFINISHED_NAME_SIZE];
        Unfinished unfinished;
        Case c;

        case_open(&c, state);
        unfinished_begin(&c.notes, c.place_fd, NULL, &unfinished);
        (void)strcpy(empty, unfinished.name);
        assert_int_equal(mkdirat(c.place_fd, empty, 0700), 0);
        unfinished_leave(&unfinished);
        unfinished_begin(&c.notes, c.place_fd, NULL, &unfinished);
        (void)strcpy(full, unfinished.name);
        fill(c.place_fd, full, NULL);
        unfinished_leave(&unfinished);
        sweep(&c);
        assert_false(has(&c, empty));
        assert_true(has(&c, full));
        assert_int_equal(notes_count(&c), 0);
        case_close(&c);
}

static void test_a_thing_beside_its_note_needs_no_identity(void **state) {
        Unfinished unfinished;
        Case c;

        case_open(&c, state);
        unfinished_begin(&c.notes, FD_NONE, NULL, &unfinished);
        fill(c.notes_fd, unfinished.name, NULL);
        unfinished_leave(&unfinished);
        sweep(&c);
        assert_int_equal(notes_count(&c), 0);
        case_close(&c); /* removes an empty directory */
}

/* The note of an owned directory has the name that its client chose. */
static void test_the_note_of_another_maker_stays(void **state) {
        Unfinished first, second;
        Case c;

        case_open(&c, state);
        unfinished_begin(&c.notes, c.place_fd, ".holt-0123456789abcdef", &first);
        unfinished_begin(&c.notes, c.place_fd, ".holt-0123456789abcdef", &second);
        unfinished_end(&second);
        assert_int_equal(notes_count(&c), 1);
        unfinished_end(&first);
        assert_int_equal(notes_count(&c), 0);
        case_close(&c);
}

static void test_a_file_that_did_not_get_its_place(void **state) {
        char name[UNFINISHED_NAME_SIZE];
        NewFile file = NEW_FILE_NONE;
        unsigned mode = 0;
        Case c;

        case_open(&c, state);
        files_note_in(c.f->files, c.notes_fd);
        make_file("root/work/file", "old");
        assert_int_equal(new_file_begin(c.f->files, "/work/file", &mode, false, &file), 0);
        assert_int_equal(new_file_settle(&file, mode, false), -EEXIST);
        (void)strcpy(name, file.unfinished.name);
        assert_true(has(&c, name));
        unfinished_leave(&file.unfinished);
        sweep(&c);
        assert_false(has(&c, name));
        assert_file("root/work/file", "old");
        new_file_clear(&file);
        case_close(&c);
}

/* Makes trees and moves them to their places, until it is killed. */
__attribute__((noreturn)) static void make_for_ever(const Case *c) {
        for (unsigned i = 0;; i++) {
                Unfinished unfinished;
                char place[16];

                (void)snprintf(place, sizeof(place), "whole-%u", i % 4);
                unfinished_begin(&c->notes, c->place_fd, NULL, &unfinished);
                fill(c->place_fd, unfinished.name, &unfinished);
                if (renameat(c->place_fd, unfinished.name, c->place_fd, place) < 0)
                        (void)files_remove_tree(c->place_fd, unfinished.name);
                unfinished_end(&unfinished);
        }
}

static int count_unfinished(const char *path) {
        DIR *dir = opendir(path);
        int count = 0;

        for (const struct dirent *entry; dir && (entry = readdir(dir));)
                count += unfinished_is_name(entry->d_name);
        (void)closedir(dir);
        return count;
}

/* Kills makers at any moment: the pauses are random, and each process makes many trees in a
 * millisecond. */
static void test_makers_that_are_killed_leave_nothing(void **state) {
        const int rounds = getenv("HOLT_TEST_FULL") ? 500 : 100;
        Case c;

        case_open(&c, state);
        for (int i = 0; i < rounds; i++) {
                pid_t pid = fork();

                if (pid == 0)
                        make_for_ever(&c);
                (void)usleep((useconds_t)(random() % 3000));
                sweep(&c);
                assert_int_equal(kill(pid, SIGKILL), 0);
                assert_int_equal(waitpid(pid, NULL, 0), pid);
                sweep(&c);
                assert_int_equal(notes_count(&c), 0);
                assert_int_equal(count_unfinished("root/work"), 0);
        }
        case_close(&c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                files_test(test_a_thing_stays_while_its_maker_lives),
                files_test(test_abandoned_files_are_removed_with_their_notes),
                files_test(test_another_thing_of_the_name_stays),
                files_test(test_a_thing_that_is_exchanged_meanwhile_costs_nobody_else_s),
                files_test(test_without_an_identity_only_an_empty_thing_goes),
                files_test(test_a_thing_beside_its_note_needs_no_identity),
                files_test(test_the_note_of_another_maker_stays),
                files_test(test_a_file_that_did_not_get_its_place),
                files_test(test_makers_that_are_killed_leave_nothing),
        };

        return cmocka_run_group_tests_name("unfinished", tests, NULL, NULL);
}
