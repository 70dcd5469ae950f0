/* SPDX-License-Identifier: Apache-2.0 */
/* The signed links of a live session.
 *
 * Theory of operation. The keeper keeps a table of links, and starts holt-links (links/server.h)
 * with the first one. holt-links checks the signature and the expiry of each request, and asks for
 * the file. The keeper looks the link up in its table, opens the path below /mnt/files, and sends
 * the descriptor. No symlink is followed there, because commands can make one at any time.
 *
 * An upload goes to a new file without a name, or with a temporary one. Only a complete upload is
 * renamed to its path, and that uses the link up. While one request uses an upload link, others are
 * refused. So of two requests in parallel, one is stored.
 *
 * The key and the table are only in memory, so all links end with the keeper. While a link can be
 * used, the session does not go to rest by itself. */
#include "keeper/links.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/pass-fds.h"
#include "base/path-text.h"
#include "base/sys.h"
#include "base/time.h"
#include "files/copy.h"
#include "files/path.h"
#include "keeper/links-files.h"
#include "links/start.h"
#include "store/unwritten.h"

enum { READ_TURN = 64 }; /* Messages that one event reads, at most. */

/* A request that holt-links has opened and not ended. */
typedef struct LinkUse {
        struct LinkUse *next;
        uint32_t request;
        uint32_t link;
        uint64_t length; /* Of an upload, as its client has announced it. */
        NewFile file;    /* Of an upload. */
        unsigned mode;
        bool stored;
} LinkUse;

struct Links {
        Keeper *keeper;
        int dir_fd; /* An O_PATH fd of /mnt/files; FD_NONE if the session has none. */
        LinksProcess process;
        LoopWatch *watch;
        KeeperLink *first;
        LinkUse *uses;
        size_t uses_count;
        uint32_t last_id;
};

/* --- the audit --- */

static void links_audit(const Links *links, const char *what, const KeeperLink *link,
                        const LinksMessage *message) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "event", what);
        if (link) {
                json_write_uint(&w, "id", link->link.id);
                json_write_name(&w, "path", link->link.path);
                json_write_bool(&w, "upload", link->link.upload);
                json_write_bool(&w, "inside", link->inside);
                json_write_uint(&w, "expires_ms", link->link.expires_ms);
        }
        if (message) {
                json_write_uint(&w, "status", message->status);
                json_write_uint(&w, "bytes", message->bytes);
        }
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                unwritten_audit(links->keeper->unwritten, "link", w.data);
}

/* --- the table --- */

static KeeperLink *links_find(const Links *links, uint32_t id) {
        KeeperLink *link = links->first;

        while (link && link->link.id != id)
                link = link->next;
        return link;
}

/* Both clocks count: nobody extends a link by setting the time back, and a suspended host does not
 * either. */
static bool link_is_over(const KeeperLink *link) {
        return link->link.expires_ms <= time_epoch_ms() || link->until <= time_now_usec();
}

static bool link_is_usable(const KeeperLink *link) {
        return !link->used && !link_is_over(link);
}

static void links_forget_expired(Links *links) {
        list_each_safe(link, links->first) {
                if (!link_is_over(link))
                        continue;
                (void)list_remove(&links->first, link);
                free(link);
        }
}

/* --- requests --- */

static unsigned links_status(int r) {
        static const struct {
                int errnum;
                unsigned status;
        } rows[] = {
                { ENOENT, 404 }, { ENOTDIR, 404 }, { ELOOP, 409 },  { EISDIR, 409 },
                { EROFS, 409 },  { EACCES, 409 },  { EPERM, 409 },  { EOPNOTSUPP, 409 },
                { EXDEV, 409 },  { EBUSY, 409 },   { EAGAIN, 503 }, { ENOSPC, 507 },
                { EDQUOT, 507 }, { EFBIG, 413 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (r == -rows[i].errnum)
                        return rows[i].status;
        return r < 0 ? 500 : 200;
}

static LinkUse *links_use_find(const Links *links, uint32_t request) {
        LinkUse *use = links->uses;

        while (use && use->request != request)
                use = use->next;
        return use;
}

static void links_use_free(Links *links, LinkUse *use) {
        (void)list_remove(&links->uses, use);
        links->uses_count--;
        new_file_clear(&use->file);
        free(use);
}

static bool links_is_uploading(const Links *links, uint32_t id) {
        for (const LinkUse *use = links->uses; use; use = use->next)
                if (use->link == id && use->file.fd >= 0)
                        return true;
        return false;
}

/* Makes the file of an upload. Returns the status. */
static unsigned links_begin_upload(const Links *links, const KeeperLink *link, LinkUse *use,
                                   int *ret_fd) {
        int r;

        if (links_is_uploading(links, link->link.id))
                return 423;
        if (use->length != LINKS_UNKNOWN && use->length > link->max_size)
                return 413;
        r = links_upload_place(links->keeper->files, links->dir_fd, link->link.path, &use->mode,
                               &use->file.place);
        if (r == 0)
                r = new_file_make(&use->file);
        if (r == 0)
                *ret_fd = fcntl(use->file.fd, F_DUPFD_CLOEXEC, 0);
        if (r == 0 && *ret_fd < 0)
                r = -errno;
        return links_status(r);
}

static void links_send(const Links *links, const LinksAnswer *answer, int fd) {
        (void)send_with_fd(links->process.control_fd, answer, sizeof(*answer), fd, MSG_DONTWAIT);
}

static LinkUse *links_use_new(Links *links, const LinksMessage *message) {
        LinkUse *use = NULL;

        if (links->uses_count < LINK_USES_MAX && !links_use_find(links, message->request))
                use = calloc(1, sizeof(*use));
        if (!use)
                return NULL;
        *use = (LinkUse){ .request = message->request,
                          .link = message->id,
                          .length = message->bytes,
                          .file = NEW_FILE_NONE };
        use->file.notes = &links->keeper->files->notes;
        list_push(&links->uses, use);
        links->uses_count++;
        return use;
}

static void links_on_open(Links *links, const LinksMessage *message) {
        KeeperLink *link = links_find(links, message->id);
        LinkUse *use = links_use_new(links, message);
        LinksAnswer answer = { .request = message->request, .id = message->id, .status = 503 };
        _cleanup_close_ int fd = FD_NONE;

        if (use && (!link || !link_is_usable(link)))
                answer.status = 410;
        else if (use && link->link.upload) {
                answer.status = links_begin_upload(links, link, use, &fd);
                answer.size = link->max_size;
        } else if (use)
                answer.status = links_status(
                        links_open_file(links->dir_fd, link->link.path, &fd, &answer.size));
        links_send(links, &answer, answer.status == 200 ? fd : FD_NONE);
}

/* Whether both descriptors, which are open, lead to the same directory. */
static bool links_same_directory(int a, int b) {
        struct stat one, two;

        return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_dev == two.st_dev &&
               one.st_ino == two.st_ino;
}

/* Moves a complete upload to its place. Everything is checked again: holt-links may be taken over,
 * and commands may have changed the directory. */
static unsigned links_store(const Links *links, LinkUse *use) {
        KeeperLink *link = links_find(links, use->link);
        FilesPlace place = FILES_PLACE_NONE;
        struct stat st;
        unsigned mode;
        int r;

        if (!link || link->used)
                return 410;
        if (use->file.fd < 0 || fstat(use->file.fd, &st) < 0)
                return 500;
        if ((use->length != LINKS_UNKNOWN && use->length != (uint64_t)st.st_size) ||
            (uint64_t)st.st_size > link->max_size)
                return 413;
        r = links_upload_place(links->keeper->files, links->dir_fd, link->link.path, &mode, &place);
        if (r == 0 && !links_same_directory(place.dir_fd, use->file.place.dir_fd))
                r = -EBUSY;
        files_place_clear(&place);
        if (r == 0)
                r = new_file_settle(&use->file, use->mode, true);
        if (r < 0)
                return links_status(r);
        new_file_clear(&use->file);
        use->stored = link->used = true;
        keeper_touched(links->keeper, true);
        return 200;
}

static void links_on_store(Links *links, const LinksMessage *message) {
        LinkUse *use = links_use_find(links, message->request);
        const LinksAnswer answer = { .request = message->request,
                                     .id = message->id,
                                     .status = use ? links_store(links, use) : 410 };

        links_send(links, &answer, FD_NONE);
}

static void links_on_end(Links *links, const LinksMessage *message) {
        LinkUse *use = links_use_find(links, message->request);
        KeeperLink *link = use ? links_find(links, use->link) : NULL;

        if (!use)
                return;
        if (link)
                link->requests++;
        links_audit(links, use->stored ? "stored" : "request", link, message);
        links_use_free(links, use);
}

static void links_on_refused(Links *links, const LinksMessage *message) {
        links_audit(links, "refused", NULL, message);
}

/* --- the process --- */

static void links_end_process(Links *links) {
        links->watch = loop_unwatch(links->watch);
        links_stop(&links->process);
        while (links->uses)
                links_use_free(links, links->uses);
}

/* Without the process and its key, no link can be used. */
static void links_drop_all(Links *links) {
        links_end_process(links);
        list_each_safe(link, links->first) {
                free(link);
        }
        links->first = NULL;
}

static void links_on_event(void *data, uint32_t events) {
        static void (*const on_message[])(Links * links, const LinksMessage *message) = {
                [LINKS_OPEN] = links_on_open,
                [LINKS_STORE] = links_on_store,
                [LINKS_END] = links_on_end,
                [LINKS_REFUSED] = links_on_refused,
        };
        Links *links = data;

        static_assert(ELEMENTSOF(on_message) == LINKS_TYPE_MAX, "each message has its function");
        (void)events;
        for (int i = 0; i < READ_TURN; i++) {
                LinksMessage message;
                const ssize_t n = recv(links->process.control_fd, &message, sizeof(message),
                                       MSG_DONTWAIT);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n != (ssize_t)sizeof(message) || message.type >= LINKS_TYPE_MAX)
                        return links_drop_all(links);
                keeper_used(links->keeper);
                on_message[message.type](links, &message);
        }
}

static int links_need_process(Links *links, Error *reterr) {
        int r;

        if (links->process.pid)
                return 0;
        r = links_start(links->keeper->name, &links->process, reterr);
        if (r == 0)
                r = loop_watch(links->keeper->loop, links->process.control_fd, EPOLLIN,
                               links_on_event, links, &links->watch, reterr);
        if (r < 0)
                links_stop(&links->process);
        return r;
}

/* --- for the methods --- */

/* Says now why the link would not work. */
static int links_check(const Links *links, const KeeperLink *link, Error *reterr) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        _cleanup_close_ int fd = FD_NONE;
        const char *path = link->link.path;
        uint64_t size;
        unsigned mode;
        int r = link->link.upload ? links_upload_place(links->keeper->files, links->dir_fd, path,
                                                       &mode, &place)
                                  : links_open_file(links->dir_fd, path, &fd, &size);
        char quoted[200];

        if (r >= 0)
                return 0;
        (void)str_quote(path, quoted, sizeof(quoted));
        if (r == -ELOOP) {
                (void)error_set(reterr, ERROR_USAGE, ELOOP, "cannot link to %s", quoted);
                return error_cure(reterr, r, "Name the file itself: links follow no symlink.");
        }
        (void)files_fail(NULL, r, "link to", path, reterr);
        if (r == -ENOENT)
                return error_cure(reterr, r,
                                  link->link.upload
                                          ? "Its directory does not exist in " LINKS_DIRECTORY "."
                                          : "A link needs a file in " LINKS_DIRECTORY ".");
        return r;
}

const char *keeper_link_path(const char *path, Error *reterr) {
        const char *rest = str_starts(path, LINKS_DIRECTORY "/") ? path + sizeof(LINKS_DIRECTORY)
                                                                 : path;
        char quoted[160];
        int r;

        if (link_path_fits(rest))
                return rest;
        r = error_set(reterr, ERROR_USAGE, 0,
                      "\"%s\" is not the path of a file below " LINKS_DIRECTORY,
                      str_quote(path, quoted, sizeof(quoted)));
        (void)error_cure(reterr, r,
                         "Pass a path below it, with at most %d bytes and without \"..\".",
                         LINK_PATH_MAX);
        return NULL;
}

/* Refuses more links than a session may have. */
static int links_check_room(Links *links, bool inside, Error *reterr) {
        size_t count = 0, made_inside = 0;
        int r;

        links_forget_expired(links);
        for (const KeeperLink *link = links->first; link; link = link->next) {
                count++;
                made_inside += link->inside;
        }
        if (count < SESSION_LINKS_MAX && !(inside && made_inside >= INSIDE_LINKS_MAX))
                return 0;
        r = error_set(reterr, ERROR_LIMIT, 0, "the session has %zu links%s already",
                      inside ? made_inside : count, inside ? " of code inside" : "");
        return error_cure(reterr, r, "Revoke links that nobody needs.");
}

static int links_make(Links *links, const KeeperLink *wanted, const KeeperLink **ret,
                      Error *reterr) {
        int r = links_check_room(links, wanted->inside, reterr);
        KeeperLink *link = r < 0 ? NULL : malloc(sizeof(*link));

        if (!link)
                return r < 0 ? r : error_oom(reterr);
        *link = *wanted;
        r = links_check(links, link, reterr);
        if (r == 0)
                r = links_need_process(links, reterr);
        if (r < 0) {
                free(link);
                return r;
        }
        link->link.id = ++links->last_id;
        list_append(&links->first, link);
        links_audit(links, "made", link, NULL);
        *ret = link;
        return 0;
}

int keeper_link(Keeper *keeper, const char *path, bool upload, uint64_t for_ms, uint64_t max_size,
                const KeeperLink **ret, Error *reterr) {
        KeeperLink link = { .max_size = max_size, .until = time_now_usec() + for_ms * 1000 };

        link.link.upload = upload;
        link.link.expires_ms = time_epoch_ms() + for_ms;
        (void)strcpy(link.link.path, path);
        return links_make(keeper->links, &link, ret, reterr);
}

int keeper_link_inside(void *data, const char *path, uint64_t for_ms, JsonWriter *w,
                       Error *reterr) {
        Keeper *keeper = data;
        const uint64_t ms = for_ms ? for_ms : LINK_FOR_MS;
        KeeperLink link = { .inside = true, .until = time_now_usec() + ms * 1000 };
        const char *rest = keeper_link_path(path, reterr);
        const KeeperLink *made;
        int r;

        if (!rest)
                return -EINVAL;
        if (ms < INSIDE_LINK_FOR_MIN_MS || ms > INSIDE_LINK_FOR_MAX_MS)
                return error_set(reterr, ERROR_USAGE, 0,
                                 "for_ms must be from 60000, a minute, to 86400000, a day");
        link.link.expires_ms = time_epoch_ms() + ms;
        (void)strcpy(link.link.path, rest);
        r = links_make(keeper->links, &link, &made, reterr);
        if (r == 0)
                keeper_write_link(keeper, made, w);
        return r;
}

void keeper_write_link(const Keeper *keeper, const KeeperLink *link, JsonWriter *w) {
        const LinksSettings *settings = &keeper->links->process.settings;
        char target[LINK_TARGET_MAX + 1], url[LINK_TARGET_MAX + 32];

        link_write(&settings->key, &link->link, target);
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", settings->port, target);
        json_write_uint(w, "id", link->link.id);
        json_write_string(w, "url", url);
        json_write_name(w, "path", link->link.path);
        json_write_bool(w, "upload", link->link.upload);
        json_write_uint(w, "expires_ms", link->link.expires_ms);
        if (link->link.upload)
                json_write_uint(w, "max_size", link->max_size);
        else
                json_write_null(w, "max_size");
        json_write_bool(w, "used", link->used);
        json_write_uint(w, "requests", link->requests);
}

const KeeperLink *keeper_first_link(Keeper *keeper) {
        links_forget_expired(keeper->links);
        return keeper->links->first;
}

static void links_revoke(Links *links, KeeperLink *link) {
        const LinksAnswer answer = { .id = link->link.id };

        links_audit(links, "revoked", link, NULL);
        links_send(links, &answer, FD_NONE);
        (void)list_remove(&links->first, link);
        free(link);
}

size_t keeper_revoke_links(Keeper *keeper, uint32_t id) {
        Links *links = keeper->links;
        size_t count = 0;

        links_forget_expired(links);
        list_each_safe(link, links->first) {
                if (id && link->link.id != id)
                        continue;
                links_revoke(links, link);
                count++;
        }
        return count;
}

/* --- for the keeper --- */

bool keeper_links_hold(const Keeper *keeper) {
        for (const KeeperLink *link = keeper->links->first; link; link = link->next)
                if (link_is_usable(link))
                        return true;
        return keeper->links->uses != NULL;
}

/* The directory is opened before any command runs, because a command could rename /mnt. */
int keeper_links_new(Keeper *keeper, Error *reterr) {
        Links *links = calloc(1, sizeof(*links));

        if (!links)
                return error_oom(reterr);
        links->keeper = keeper;
        links->process = (LinksProcess)LINKS_NONE;
        links->dir_fd = sys_openat2(keeper->sandbox.root_fd, LINKS_DIRECTORY,
                                    O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
                                    RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        keeper->links = links;
        return 0;
}

void keeper_links_free(Keeper *keeper) {
        if (!keeper->links)
                return;
        links_drop_all(keeper->links);
        keeper->links->dir_fd = fd_close(keeper->links->dir_fd);
        free(keeper->links);
        keeper->links = NULL;
}
