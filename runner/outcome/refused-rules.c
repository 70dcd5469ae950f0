/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/refused-rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"
#include "outcome/refused-host.h"
#include "outcome/refused-moved.h"

void suspect_clear(Suspect *s) {
        free(s->path);
        free(s->host);
}

/* --- the result --- */

/* Notes the refusal, and returns true. If memory is out, the refusal has no subject. */
static bool search_note(const Search *search, const Suspect *s, RefusalKind kind,
                        const char *subject) {
        _cleanup_free_ char *place = refusals_place(kind, subject, s->path);
        Refusal *refusal = refusals_entry(search->found, kind, place);

        if (!refusal || refusal->count++ > 0)
                return true;
        refusal->errnum = s->complaint->errnum;
        refusal->path = strdup(s->complaint->path);
        refusal->subject = TAKE_PTR(place);
        return true;
}

/* Takes ownership of why, which may be NULL. */
static bool search_note_why(const Search *search, const Suspect *s, RefusalKind kind, char *why) {
        const unsigned before = search->found->count;

        (void)search_note(search, s, kind, NULL);
        if (search->found->count > before)
                search->found->items[before].why = why;
        else
                free(why);
        return true;
}

/* Notes a refusal whose cure is to mount the host path source. */
static bool search_note_mount(const Search *search, const Suspect *s, RefusalKind kind,
                              const char *source) {
        const unsigned before = search->found->count;
        const PlanMount *mount = s->mount;
        Refusal *refusal;

        (void)search_note(search, s, kind, source);
        if (search->found->count == before)
                return true;
        refusal = &search->found->items[before];
        refusal->typed = search->here ? refused_typed(s->complaint->path, s->path, source) : NULL;
        if (mount && path_below(source, mount->source) && !streq(mount->source, mount->target))
                refusal->target = str_format("%s%s", mount->target, source + strlen(mount->source));
        return true;
}

/* --- host files --- */

/* Whether the sandbox needs its own directory at path: every sandbox has it, or a mount of the plan
 * lies in it. A mount at path would hide these. */
static bool search_is_shared(const Search *search, const char *path) {
        for (size_t i = 0; i < tree_nodes_count; i++)
                if (streq(path + 1, tree_nodes[i].path))
                        return true;
        for (size_t i = 0; i < search->plan->mounts_count; i++)
                if (path_below(search->plan->mounts[i].target, path))
                        return true;
        return false;
}

bool refused_shows(const Search *search, const char *path) {
        const PlanMount *mount = plan_mount_above(search->plan, path);
        const SystemTree *system = &search->launch->system;

        if (mount)
                return plan_mount_shows_host(mount) && streq(mount->source, mount->target);
        for (size_t i = 0; i < system->count; i++)
                if (path_below(path + 1, system->entries[i].path))
                        return true;
        return tree_writes(path);
}

/* Suggests a grant that shows a host file: a grant of its directory, or of the file alone if the
 * directory is too wide. */
static bool search_note_missing(const Search *search, const Suspect *s, const char *path, int fd) {
        _cleanup_free_ char *directory = refused_is_directory(fd) ? NULL
                                                                  : refused_directory_of(path);
        _cleanup_close_ int directory_fd = FD_NONE;

        if (directory && !search_is_shared(search, directory))
                directory_fd = refused_open_host(directory, &search->writable, false);
        return search_note_mount(search, s, REFUSAL_MISSING, directory_fd >= 0 ? directory : path);
}

static bool search_may_write(const Search *search, const char *path) {
        _cleanup_close_ int fd = refused_open_host(path, &search->writable, true);

        return fd >= 0 && refused_may_write(search->launch, fd, "");
}

/* A grant helps only if the command may then write the file, or its directory (fd). */
static RefusalKind search_kind(const Search *search, const Suspect *s, RefusalKind kind, int fd) {
        return refused_may_write(search->launch, fd, "") || search_may_write(search, s->host)
                       ? kind
                       : REFUSAL_FOREIGN;
}

/* Suggests a directory in which the command may write: the innermost one that the host has. Returns
 * whether there is one. floor: the suggestion is this directory or lies below it. */
static bool search_note_writable(const Search *search, const Suspect *s, RefusalKind kind,
                                 const char *floor) {
        _cleanup_free_ char *directory = refused_directory_of(s->host);

        while (directory && path_below(directory, floor) && !streq(directory, "/")) {
                _cleanup_close_ int fd = refused_open_host(directory, &search->writable, true);
                char *slash;

                if (fd >= 0 && refused_is_directory(fd) &&
                    (s->mount || !search_is_shared(search, directory)))
                        return search_note_mount(search, s, search_kind(search, s, kind, fd),
                                                 directory);
                if (fd != -ENOENT)
                        return false;
                slash = strrchr(directory, '/');
                slash[slash == directory] = '\0';
        }
        return false;
}

/* --- the rules, in this order --- */

/* Notes a hidden path, with the option or field that hides it. */
static bool search_note_hidden(const Search *search, const Suspect *s, const PlanMount *mount) {
        const unsigned before = search->found->count;
        const char *by = mount->hidden_by ? mount->hidden_by : mount->origin;
        const bool own = !mount->hidden_by && str_starts(mount->origin, "hidden: ");
        /* In a session's own copy of the policy, an index tells nothing. */
        const char *pattern = str_starts(by, "the session's policy: $.filesystem.hide[")
                                      ? strstr(by, "]: ")
                                      : NULL;
        char quoted[512];

        (void)search_note(search, s, REFUSAL_HIDDEN, mount->target);
        if (search->found->count > before && !own)
                search->found->items[before].why = str_format(
                        "%s %s", pattern ? "the session's policy hides" : "the reason is",
                        str_quote(pattern ? pattern + strlen("]: ") : by, quoted, sizeof(quoted)));
        return true;
}

static bool judge_hidden(const Search *search, const Suspect *s) {
        for (size_t i = 0; i < search->plan->mounts_count; i++) {
                const PlanMount *mount = &search->plan->mounts[i];

                if (plan_mount_hides(mount) && path_below(s->path, mount->target) &&
                    complaint_is_change(s->complaint->errnum))
                        return search_note_hidden(search, s, mount);
        }
        return false;
}

/* Whether another user owns the path, which is in an id-mapped mount. Returns -ENOENT if it does
 * not exist. */
static int search_is_foreign(const Search *search, const Suspect *s, const char *path) {
        _cleanup_close_ int fd = refused_open_shown(s->mount, path, O_PATH | O_NOFOLLOW);
        struct stat st;

        if (fd < 0)
                return errno == ENOENT ? -ENOENT : true;
        /* In the id-mapped mount, the owner's files belong to this uid. */
        return fstat(fd, &st) < 0 || st.st_uid != search->launch->identity.uid;
}

/* If a file's owner has no id in the mount, the kernel answers EOVERFLOW to chmod(2) and unlink(2),
 * and EACCES to a write. A file that is gone was the command's own temporary one. */
static bool judge_owner(const Search *search, const Suspect *s) {
        const int errnum = s->complaint->errnum;
        _cleanup_free_ char *directory = NULL;
        int foreign;

        if ((errnum != EOVERFLOW && errnum != EACCES) || !search->launch->identity.id_mapped ||
            !s->mount || !plan_mount_shows_host(s->mount) || streq(s->path, s->mount->target))
                return false;
        foreign = search_is_foreign(search, s, s->path);
        if (foreign > 0)
                return search_note(search, s, REFUSAL_OWNER, NULL);
        directory = refused_directory_of(s->path);
        return foreign == -ENOENT && errnum == EACCES && directory &&
               !streq(directory, s->mount->target) && search_is_foreign(search, s, directory) > 0 &&
               search_note(search, s, REFUSAL_OWNER_ABOVE, NULL);
}

static bool judge_input(const Search *search, const Suspect *s) {
        const PlanInputs *inputs = &search->plan->inputs;

        for (size_t i = 0; i < inputs->count; i++)
                if (streq(inputs->items[i].path, s->host) && s->complaint->errnum != EACCES &&
                    complaint_is_change(s->complaint->errnum))
                        return search_note(search, s, REFUSAL_INPUT, s->path);
        return false;
}

/* A guarded path, or a directory that contains one and so cannot be moved. */
static bool judge_guards(const Search *search, const Suspect *s, const LaunchPlan *plan) {
        const char *rest = plan->workspace ? path_rest(s->path, plan->workspace) : NULL;
        const int errnum = s->complaint->errnum;

        for (size_t i = 0; rest && rest[0] && i < plan->guards_count; i++) {
                const PlanGuard *guard = &plan->guards[i];

                if (guard->pinned &&
                    ((path_below(rest, guard->path) && complaint_is_change(errnum)) ||
                     (path_below(guard->path, rest) && errnum == EBUSY)))
                        return search_note(search, s, REFUSAL_PROTECTED, guard->path);
        }
        return false;
}

static bool judge_protected(const Search *search, const Suspect *s) {
        if (judge_guards(search, s, search->plan))
                return true;
        for (size_t i = 0; i < search->plan->others_count; i++)
                if (judge_guards(search, s, &search->plan->others[i]))
                        return true;
        return false;
}

static bool judge_mount_point(const Search *search, const Suspect *s) {
        if (s->complaint->errnum != EBUSY)
                return false;
        for (size_t i = 0; i < search->plan->mounts_count; i++)
                if (path_below(search->plan->mounts[i].target, s->path))
                        return search_note(search, s, REFUSAL_MOUNT, s->path);
        return false;
}

static bool judge_proc(const Search *search, const Suspect *s) {
        const char *rest = path_rest(s->path, "/proc");
        const int errnum = s->complaint->errnum;

        for (size_t i = 0; rest && i < tree_proc_count; i++)
                if (path_below(rest, tree_proc[i].name) &&
                    (errnum == EROFS || (tree_proc[i].masked && errnum == EACCES)))
                        return search_note(search, s, REFUSAL_PROC, s->path);
        return false;
}

static bool judge_system(const Search *search, const Suspect *s) {
        if (!s->mount && refused_is_of_packages(s->path))
                return search_note(search, s, REFUSAL_PACKAGES, NULL);
        if (s->complaint->errnum == EROFS && !s->mount && tree_has(s->path))
                return search_note(search, s, REFUSAL_SYSTEM, NULL);
        return false;
}

/* EROFS of a path that the host has. The sandbox has the directory above it only because of a mount
 * below that directory. */
static bool search_note_absent(const Search *search, const Suspect *s) {
        return !search_is_shared(search, s->path) && search_may_write(search, s->path) &&
               search_note_mount(search, s, REFUSAL_ABSENT, s->path);
}

static bool search_note_root(const Search *search, const Suspect *s) {
        _cleanup_free_ char *directory = s->mount ? NULL : refused_directory_of(s->host);

        return search_note_why(search, s, REFUSAL_ROOT,
                               directory ? refused_directory_why(search->launch, directory) : NULL);
}

static bool judge_read_only(const Search *search, const Suspect *s) {
        const PlanMount *mount = s->mount;

        if (s->complaint->errnum != EROFS || (mount && !(mount->flags & PLAN_READ_ONLY)))
                return false;
        if (mount && mount == plan_workspace(search->plan))
                return search_note(search, s, refused_workspace(search->plan), NULL);
        if (mount && !mount->directory && search_may_write(search, mount->source))
                return search_note_mount(search, s, REFUSAL_BOUND, mount->source);
        if (mount && mount->directory &&
            search_note_writable(search, s, REFUSAL_BOUND, mount->source))
                return true;
        if (!mount && (search_note_absent(search, s) ||
                       search_note_writable(search, s, REFUSAL_READ_ONLY, "/")))
                return true;
        if (refused_is_of_git(s->host))
                return search_note(search, s, REFUSAL_GIT, NULL);
        if (refused_is_of_tools(s->host))
                return search_note(search, s, REFUSAL_TOOLS, NULL);
        return search_note_root(search, s);
}

/* ENOENT of a file of the workspace, which is mounted at another path. The caller shows the file
 * already, so the reply tells nothing new. */
static bool judge_moved(const Search *search, const Suspect *s) {
        char *why = s->complaint->errnum == ENOENT && !s->mount
                            ? refused_moved(search->plan, s->path)
                            : NULL;

        return why && search_note_why(search, s, REFUSAL_MOVED, why);
}

/* ENOENT of a file that the host has. A symlink of the host may lead out of the mount that shows
 * it; then its target is missing inside. */
static bool judge_missing(const Search *search, const Suspect *s) {
        _cleanup_close_ int fd = FD_NONE;
        char real[PATH_MAX];

        if (s->complaint->errnum != ENOENT || (s->mount && !plan_mount_shows_host(s->mount)))
                return false;
        fd = refused_open_host(s->host, &search->writable, false);
        if ((fd >= 0 || fd == -ENOENT) && s->complaint->creates && !s->mount &&
            !refused_shows(search, s->path) &&
            (search_note_writable(search, s, REFUSAL_UNSHOWN, "/") ||
             search_note_absent(search, s)))
                return true;
        if (fd < 0 || path_of_fd(fd, real) < 0)
                return false;
        if (!s->mount && !refused_shows(search, s->path))
                return search_note_missing(search, s, s->path, fd);
        if (!streq(real, s->host) && !refused_shows(search, real))
                return search_note_missing(search, s, real, fd);
        return false;
}

/* Notes that the host file source must be mounted at another path inside. The mount is that of its
 * directory, or of the file alone if the sandbox needs the directory. */
static bool search_note_beside(const Search *search, const Suspect *s, const char *source, int fd) {
        _cleanup_free_ char *outer = refused_directory_of(source),
                            *inner = refused_directory_of(s->path);
        const unsigned before = search->found->count;
        _cleanup_close_ int directory_fd = FD_NONE;
        bool whole;

        if (!outer || !inner)
                return false;
        if (!refused_is_directory(fd) && !streq(inner, "/") && !search_is_shared(search, inner))
                directory_fd = refused_open_host(outer, &search->writable, false);
        whole = directory_fd >= 0;
        (void)search_note(search, s, REFUSAL_MISSING, whole ? outer : source);
        if (search->found->count > before)
                search->found->items[before].target = strdup(whole ? inner : s->path);
        return true;
}

/* ENOENT of a relative path that leads out of a workspace which is mounted at another path. From
 * the host's workspace, the same relative path leads to a file. */
static bool judge_beside(const Search *search, const Suspect *s) {
        const PlanMount *mount = plan_mount_above(search->plan, s->base);
        const char *typed = s->complaint->path;
        _cleanup_free_ char *base = NULL, *source = NULL;
        _cleanup_close_ int fd = FD_NONE;

        if (s->complaint->errnum != ENOENT || typed[0] == '/' || s->mount || !mount ||
            mount != plan_workspace(search->plan) || streq(mount->source, mount->target) ||
            search_is_shared(search, s->path))
                return false;
        base = str_format("%s%s", mount->source, s->base + strlen(mount->target));
        source = base ? path_join(base, typed) : NULL;
        if (!source || path_below(source, mount->source))
                return false;
        fd = refused_open_host(source, &search->writable, false);
        return fd >= 0 && search_note_beside(search, s, source, fd);
}

/* ENOENT of a file that the host does not have either, in a directory that only the host has. The
 * message does not say whether the command wanted to make the file. */
static bool judge_new(const Search *search, const Suspect *s) {
        _cleanup_free_ char *directory = refused_directory_of(s->host);
        _cleanup_close_ int fd = FD_NONE;

        if (s->complaint->errnum != ENOENT || !s->complaint->opens || s->mount || !directory ||
            refused_shows(search, s->path))
                return false;
        fd = refused_open_host(s->host, &search->writable, true);
        return fd == -ENOENT && search_may_write(search, directory) &&
               search_note_writable(search, s, REFUSAL_NEW, directory);
}

/* ENOENT of a script that the sandbox has: a shell says so if its interpreter is missing. */
static bool judge_script(const Search *search, const Suspect *s) {
        char interpreter[PATH_MAX];
        const Complaint complaint = { .path = interpreter, .errnum = ENOENT };
        _cleanup_(suspect_clear) Suspect missing = { .complaint = &complaint };

        if (s->complaint->errnum != ENOENT || !s->mount ||
            !refused_interpreter(s->mount, s->path, interpreter))
                return false;
        missing.path = path_join("/", interpreter);
        missing.host = missing.path ? strdup(missing.path) : NULL;
        missing.mount = missing.path ? plan_mount_above(search->plan, missing.path) : NULL;
        return missing.host && !missing.mount &&
               (judge_moved(search, &missing) || judge_missing(search, &missing));
}

/* A path behind a symlink of the command's own files, whose target on the host is not read. The
 * text of the target suffices to find out whether it is hidden or protected. */
static bool judge_link(const Search *search, const Suspect *s) {
        const int errnum = s->complaint->errnum;
        _cleanup_free_ char *target = NULL, *why = NULL;
        Suspect behind = *s;

        if (!search->guess && s->mount)
                why = refused_link_out(s->mount, s->path, errnum != ENOENT, &target);
        behind.path = behind.host = target;
        if (!why || judge_hidden(search, &behind) || judge_protected(search, &behind))
                return why;
        if (errnum == EROFS)
                return search_note_why(search, s, REFUSAL_LINKED, TAKE_PTR(why));
        return errnum == ENOENT && !plan_mount_above(search->plan, target) &&
               !refused_shows(search, target) && !refused_is_private(search->plan, target) &&
               search_note_why(search, s, REFUSAL_OUT, TAKE_PTR(why));
}

/* ENOENT in a place that no sandbox shows, or that holt may not enter. If the place may hold
 * secrets, the path may not exist at all. */
static bool judge_closed(const Search *search, const Suspect *s) {
        _cleanup_close_ int fd = FD_NONE;

        if (s->complaint->errnum != ENOENT || search->guess || s->mount ||
            refused_is_private(search->plan, s->path) || refused_shows(search, s->path) ||
            refused_is_nowhere(s->path, &search->writable))
                return false;
        if (!refused_is_closed(s->path))
                fd = refused_open_host(s->path, &search->writable, false);
        return (refused_is_closed(s->path) || fd == -EACCES) &&
               search_note_why(search, s, REFUSAL_CLOSED, refused_closed_why(s->path));
}

static bool (*const rules[])(const Search *, const Suspect *) = {
        judge_hidden, judge_owner,  judge_input,     judge_protected, judge_mount_point,
        judge_proc,   judge_system, judge_read_only, judge_moved,     judge_missing,
        judge_script, judge_new,    judge_beside,    judge_closed,    judge_link,
};

bool refused_judge(const Search *search, const Suspect *s) {
        for (size_t i = 0; i < ELEMENTSOF(rules); i++)
                if (rules[i](search, s))
                        return true;
        return false;
}
