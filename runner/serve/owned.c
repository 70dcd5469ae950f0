/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>

#include "base/list.h"
#include "base/sys.h"
#include "keeper/stop.h"
#include "session/directory.h"

enum {
        REMOVE_TRIES = 500, /* 10 ms apart, while others try to start it */
        REMOVE_PAUSE = 10000000,
        DIRECTORY_FD = 3, /* number of the fd in the removing process */
};

struct OwnedSession {
        OwnedSession *next;
        Owned *owned;
        RpcConnection *connection;
        Owner owner;
        char name[SESSION_NAME_MAX + 1];
};

/* A process that removes a session. */
typedef struct Remover {
        struct Remover *next;
        Owned *owned;
        pid_t pid;
        int pidfd;
        LoopWatch *watch;
} Remover;

struct Owned {
        Loop *loop;
        OwnedSession *sessions;
        unsigned count; /* includes sessions that are being made */
        Remover *removers;
};

int owned_new(Loop *loop, Owned **ret, Error *reterr) {
        Owned *owned = calloc(1, sizeof(*owned));

        if (!owned)
                return error_oom(reterr);
        owned->loop = loop;
        *ret = owned;
        return 0;
}

/* --- the list --- */

int owned_prepare(Owned *owned, const char *name, OwnedSession **ret, Error *reterr) {
        OwnedSession *session;

        if (owned->count >= OWNED_MAX) {
                (void)error_set(reterr, ERROR_LIMIT, 0,
                                "clients of this server already own %d sessions", OWNED_MAX);
                return error_cure(reterr, -EBUSY, "End one of their connections.");
        }
        session = calloc(1, sizeof(*session));
        if (!session)
                return error_oom(reterr);
        *session = (OwnedSession){ .owned = owned, .owner = OWNER_NONE };
        (void)strncpy(session->name, name, sizeof(session->name) - 1);
        owned->count++;
        *ret = session;
        return 0;
}

Owner *owned_owner(OwnedSession *session) {
        return &session->owner;
}

void owned_discard(OwnedSession *session) {
        session->owned->count--;
        owner_clear(&session->owner);
        free(session);
}

void owned_add(OwnedSession *session, RpcConnection *connection) {
        session->connection = connection;
        list_push(&session->owned->sessions, session);
}

/* --- removing --- */

static void drop_remover(Remover *remover) {
        (void)list_remove(&remover->owned->removers, remover);
        (void)loop_unwatch(remover->watch);
        while (waitpid(remover->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        fd_close(remover->pidfd);
        free(remover);
}

static void on_removed(void *data, uint32_t events) {
        (void)events;
        drop_remover(data);
}

/* Runs in the child: closes the fds of the server's clients, and ignores signals that are meant for
 * the server. */
static void owned_detach(int dir_fd) {
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        sigset_t none;

        (void)setsid();
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)dup2(null_fd, STDIN_FILENO);
        (void)dup2(null_fd, STDOUT_FILENO);
        if (dir_fd >= 0)
                (void)dup2(dir_fd, DIRECTORY_FD);
        (void)close_range(dir_fd >= 0 ? DIRECTORY_FD + 1 : DIRECTORY_FD, ~0U, 0);
}

/* If the process that removes the session cannot be started, the next server removes the session
 * (owned_take_leftovers()). */
static void start_remover(Owned *owned, int dir_fd, const char *name,
                          void (*run)(const char *name)) {
        Remover *remover = calloc(1, sizeof(*remover));
        pid_t pid = remover ? fork() : -1;

        if (pid == 0) {
                owned_detach(dir_fd);
                run(name);
                _exit(0);
        }
        if (pid < 0) {
                free(remover);
                return;
        }
        *remover = (Remover){ .next = owned->removers, .owned = owned, .pid = pid };
        owned->removers = remover;
        remover->pidfd = sys_pidfd_open(pid);
        if (remover->pidfd >= 0)
                (void)loop_watch(owned->loop, remover->pidfd, EPOLLIN, on_removed, remover,
                                 &remover->watch, NULL);
}

/* If the check of protected paths fails, the failure is reported and the session is still
 * removed. */
static int owned_stop_and_remove(const char *name, int dir_fd, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        int r = keeper_ask_to_stop(name, dir_fd, &message, reterr);
        Error left;

        if (r < 0)
                return r;
        if (keeper_check_swept(name, dir_fd, &left) < 0)
                error_print(&left, stderr);
        return session_remove(name, dir_fd, reterr);
}

/* Nobody can start the session any more, but a process that tries may hold the session's lock for a
 * moment. */
static void remove_session(const char *name) {
        const struct timespec pause = { .tv_nsec = REMOVE_PAUSE };
        Error error;
        int r = -EWOULDBLOCK;

        for (int i = 0; r == -EWOULDBLOCK && i < REMOVE_TRIES; i++) {
                if (i > 0)
                        (void)nanosleep(&pause, NULL);
                r = owned_stop_and_remove(name, DIRECTORY_FD, &error);
        }
        if (r < 0 && r != -ENOENT)
                error_print(&error, stderr);
}

static void owned_let_go_one(OwnedSession *session) {
        session->owner.hold_fd = fd_close(session->owner.hold_fd);
        start_remover(session->owned, session->owner.dir_fd, session->name, remove_session);
        owned_discard(session);
}

void owned_let_go(Owned *owned, RpcConnection *connection) {
        list_each_safe(session, owned->sessions)
                if (session->connection == connection) {
                        (void)list_remove(&owned->sessions, session);
                        owned_let_go_one(session);
                }
}

Owned *owned_free(Owned *owned) {
        while (owned && owned->removers)
                drop_remover(owned->removers);
        free(owned);
        return NULL;
}

/* --- leftovers --- */

static int owned_take_away(void *data, const char *name, int dir_fd) {
        Error ignored;

        (void)data;
        if (owner_is_gone(dir_fd))
                (void)owned_stop_and_remove(name, dir_fd, &ignored);
        return 0;
}

static void take_all_away(const char *name) {
        (void)name;
        (void)session_each(owned_take_away, NULL, NULL);
}

static int look_for_one(void *data, const char *name, int dir_fd) {
        (void)name;
        *(bool *)data |= owner_is_gone(dir_fd);
        return 0;
}

void owned_take_leftovers(Owned *owned) {
        bool found = false;

        if (session_each(look_for_one, &found, NULL) == 0 && found)
                start_remover(owned, FD_NONE, NULL, take_all_away);
}
