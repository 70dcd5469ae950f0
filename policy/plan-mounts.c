/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a plan that builds the file tree: which host files appear at which place inside. */
#include <errno.h>
#include <string.h>

#include "base/glob.h"
#include "base/paths.h"
#include "policy/plan-parts.h"

const PlanMountTraits plan_mount_traits[] = {
        [PLAN_BIND] = { .host = true },
        [PLAN_PRIVATE] = { .private = true },
        [PLAN_HIDE] = { .hides = true },
};
static_assert(ELEMENTSOF(plan_mount_traits) == PLAN_MOUNT_KIND_MAX, "every kind has a row");

/* --- mounts --- */

/* The origin of a mount: its place in a document, or else the option. */
static const char *asked_by(const Policy *policy, const char *field, const char *text,
                            const char *option) {
        const PolicyNote *note = policy_note(policy, field, text);

        return note ? note->where : option;
}

/* The origin together with the requested text, if any, for errors. Owned by the caller; NULL if
 * memory is out. */
static char *make_origin(const char *where, const char *text) {
        if (!text)
                return strdup(where);
        return str_format("%s%s %s", where, where[0] == '-' ? "" : ":", text);
}

/* Adds a mount. Takes ownership of source and target; a NULL there means that memory is out. */
static int plan_add_mount(LaunchPlan *plan, PlanMountKind kind, unsigned flags, char *source,
                          char *target, const char *where, const char *text, Error *reterr) {
        PlanMount *mount;

        if (plan->mounts_count == PLAN_MOUNTS_MAX) {
                free(source);
                free(target);
                return error_set(reterr, ERROR_POLICY, 0,
                                 "more than %d mounts; mount a common parent directory instead",
                                 PLAN_MOUNTS_MAX);
        }
        mount = &plan->mounts[plan->mounts_count++];
        *mount = (PlanMount){ .kind = kind,
                              .flags = flags,
                              .source = source,
                              .target = target,
                              .origin = make_origin(where, text),
                              .fd = FD_NONE,
                              .tree_fd = FD_NONE };
        if (!target || !mount->origin || (plan_mount_traits[kind].host && !source))
                return error_oom(reterr);
        return 0;
}

/* Whether the mount is the workspace again, as in docker's -v $PWD:$PWD. */
static bool is_workspace(const LaunchPlan *plan, unsigned flags, const char *source,
                         const char *target) {
        const PlanMount *workspace = plan_workspace(plan);

        return workspace && source && target && streq(workspace->source, source) &&
               streq(workspace->target, target) &&
               (workspace->flags & PLAN_READ_ONLY) == (flags & PLAN_READ_ONLY);
}

/* Adds a mount for PATH[:TARGET]. Without a target, the path inside is the one outside. */
static int add_bind(LaunchPlan *plan, const PlanContext *context, unsigned flags, const char *where,
                    const char *text, Error *reterr) {
        size_t length;
        const char *inside = policy_bind_split(text, &length);
        _cleanup_free_ char *path = strndup(text, length);
        char *source, *target;

        if (!path)
                return error_oom(reterr);
        source = path_join(context->cwd, path);
        target = path_join("/", inside ? inside : source ? source : "");
        if (is_workspace(plan, flags, source, target)) {
                free(source);
                free(target);
                return 0;
        }
        return plan_add_mount(plan, PLAN_BIND, flags, source, target, where, text, reterr);
}

static int add_read_only(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                         Error *reterr) {
        for (size_t i = 0; i < policy->read_only.count; i++) {
                const char *text = policy->read_only.items[i];
                int r = add_bind(plan, context, PLAN_READ_ONLY | PLAN_SHOWN,
                                 asked_by(policy, "filesystem.read_only", text, "--ro"), text,
                                 reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_read_write(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                          Error *reterr) {
        for (size_t i = 0; i < policy->read_write.count; i++) {
                const char *text = policy->read_write.items[i];
                int r = add_bind(plan, context, PLAN_WIDE_CHECK,
                                 asked_by(policy, "filesystem.read_write", text, "--rw"), text,
                                 reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* The directory that is used by default: the session's own, or else the caller's. */
static const char *own_directory(const PlanContext *context) {
        return context->session ? context->session : context->cwd;
}

static int add_workspace(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                         Error *reterr) {
        const char *otherwise = context->session ? PLAN_SESSION_WORKSPACE : NULL;
        const bool own = !policy->workspace_source && context->session;
        const char *source = policy->workspace_source ? policy->workspace_source
                             : own                    ? "workspace"
                                                      : ".";
        unsigned flags = PLAN_WIDE_CHECK;
        char *path, *target;
        int r;

        if (policy->workspace_mode == WORKSPACE_NONE)
                return 0;
        if (policy->workspace_mode == WORKSPACE_READ_ONLY)
                flags |= PLAN_READ_ONLY;
        plan->workspace_by_project = policy_of_project(policy, "filesystem.workspace.mode");
        path = path_join(policy->workspace_source ? context->cwd : own_directory(context), source);
        if (policy->workspace_target)
                otherwise = policy->workspace_target;
        target = path_join("/", otherwise ? otherwise : path ? path : "");
        r = plan_add_mount(
                plan, PLAN_BIND, flags, path, target,
                own ? "the session's own workspace"
                    : asked_by(policy, "filesystem.workspace.source", source, "--workspace"),
                own ? NULL : source, reterr);
        if (r < 0)
                return r;
        plan->workspace = strdup(target);
        return plan->workspace ? 0 : error_oom(reterr);
}

static int add_files(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                     Error *reterr) {
        const char *source = policy->files ? policy->files : "files", *where;

        if (!policy->files && !context->session)
                return 0;
        where = policy->files ? asked_by(policy, "filesystem.files.source", source, "--files")
                              : "the session's own files";
        return plan_add_mount(
                plan, PLAN_BIND, PLAN_WIDE_CHECK,
                path_join(policy->files ? context->cwd : own_directory(context), source),
                strdup("/mnt/files"), where, policy->files ? source : NULL, reterr);
}

static int add_wheels(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                      Error *reterr) {
        return policy->wheels
                       ? plan_add_mount(
                                 plan, PLAN_BIND, PLAN_READ_ONLY,
                                 path_join(context->cwd, policy->wheels), strdup(PLAN_WHEELS),
                                 asked_by(policy, "python.wheels", policy->wheels, "--wheels"),
                                 policy->wheels, reterr)
                       : 0;
}

static int add_private(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                       Error *reterr) {
        (void)context;
        for (size_t i = 0; i < policy->tmpfs.count; i++) {
                const char *target = policy->tmpfs.items[i];
                int r = plan_add_mount(plan, PLAN_PRIVATE, 0, NULL, path_join("/", target),
                                       asked_by(policy, "filesystem.tmpfs", target, "--tmpfs"),
                                       target, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Adds a pattern. In an absolute path, "*" and the like are plain characters. */
static int add_glob(LaunchPlan *plan, const char *where, const char *pattern, Error *reterr) {
        PlanGlob *more = reallocarray(plan->globs, plan->globs_count + 1, sizeof(*more));
        PlanGlob *glob;

        if (!more)
                return error_oom(reterr);
        plan->globs = more;
        glob = &more[plan->globs_count++];
        *glob = (PlanGlob){ .pattern = strdup(pattern), .origin = make_origin(where, pattern) };
        return glob->pattern && glob->origin ? 0 : error_oom(reterr);
}

static int add_hidden(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                      Error *reterr) {
        (void)context;
        for (size_t i = 0; i < policy->hide.count; i++) {
                const char *path = policy->hide.items[i];
                const char *where = asked_by(policy, "filesystem.hide", path, "--hide");
                int r = path[0] != '/' && glob_is_pattern(path)
                                ? add_glob(plan, where, path, reterr)
                                : plan_add_mount(
                                          plan, PLAN_HIDE, path[0] == '/' ? PLAN_HIDE_ABSOLUTE : 0,
                                          NULL,
                                          path_join(plan->workspace ? plan->workspace : "/", path),
                                          where, path, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

int plan_hide(LaunchPlan *plan, const char *target, const char *rest, const char *by,
              Error *reterr) {
        PlanMount *mounts = reallocarray(plan->mounts, plan->mounts_count + 1, sizeof(*mounts));
        PlanMount *mount;
        int r;

        if (!mounts)
                return error_oom(reterr);
        plan->mounts = mounts;
        r = plan_add_mount(plan, PLAN_HIDE, 0, NULL, str_format("%s%s", target, rest), "hidden",
                           rest, reterr);
        if (r < 0 || !by)
                return r;
        mount = &plan->mounts[plan->mounts_count - 1];
        mount->hidden_by = strdup(by);
        return mount->hidden_by ? 0 : error_oom(reterr);
}

int plan_hide_host(LaunchPlan *plan, const char *path, const char *by, Error *reterr) {
        _cleanup_free_ char *normal = path_join("/", path);
        int r = normal ? plan_hide(plan, normal, "", by, reterr) : error_oom(reterr);

        if (r == 0)
                plan->mounts[plan->mounts_count - 1].flags |= PLAN_HIDE_ABSOLUTE;
        return r;
}

const PlanMount *plan_workspace(const LaunchPlan *plan) {
        for (size_t i = 0; plan->workspace && i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]) &&
                    streq(plan->mounts[i].target, plan->workspace))
                        return &plan->mounts[i];
        return NULL;
}

const PlanMount *plan_mount_above(const LaunchPlan *plan, const char *path) {
        const PlanMount *best = NULL;

        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];

                if (!plan_mount_hides(mount) && path_below(path, mount->target) &&
                    (!best || strlen(mount->target) > strlen(best->target)))
                        best = mount;
        }
        return best;
}

int plan_writable(const LaunchPlan *plan, StrList *ret) {
        int r = plan->root.source ? strlist_add(ret, plan->root.source) : 0;

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]) &&
                    !(plan->mounts[i].flags & PLAN_READ_ONLY))
                        r = strlist_add(ret, plan->mounts[i].source);
        return r;
}

static int compare_targets(const void *a, const void *b) {
        const PlanMount *x = a, *y = b;

        /* Hidden paths come last, after every mount above or below them. */
        if (plan_mount_hides(x) != plan_mount_hides(y))
                return plan_mount_hides(x) ? 1 : -1;
        return strcmp(x->target, y->target);
}

/* The advice for a too-wide mount, by the option that asked for it; the last row is for a policy
 * file. */
static const struct {
        const char *option, *cure;
} wide_cures[] = {
        { "--workspace ",
          "Change to the project's own directory, or name it with --workspace DIR. If the command "
          "needs no files of yours: --workspace none" },
        { "--files ", "Name a directory that serves only this purpose: --files DIR" },
        { "--rw ", "Name the directory in it that the command needs: --rw DIR. If it only reads, "
                   "use --ro DIR." },
        { "--ro ", "Name the directory in it that the command needs: --ro DIR. /usr is visible "
                   "anyway." },
        { "", "Name only the directory in it that the command needs." },
};

int plan_refuse_wide(const PlanMount *mount, const char *path, Error *reterr) {
        /* The current directory is the default, so perhaps nobody has asked for it. */
        const bool here = streq(mount->origin, "--workspace .");
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "%s%s%s is too wide to share with a command that nobody has checked",
                          here ? "the current directory is the workspace, but " : mount->origin,
                          here ? "" : ": ", path);
        size_t i = 0;

        while (!str_starts(mount->origin, wide_cures[i].option))
                i++;
        /* Nothing may be mounted over the root, so no option allows it. */
        return error_cure(reterr, r, "%s%s", wide_cures[i].cure,
                          streq(mount->target, "/")
                                  ? ""
                                  : "\nIf you want to share it anyway, pass --allow-wide");
}

/* Checks a target again: a relative path has only now become its own target. */
static int check_target(const PlanMount *mount, Error *reterr) {
        const char *why;

        if (plan_mount_hides(mount) || policy_target_check(mount->target, &why) == 0)
                return 0;
        if (plan_mount_shows_host(mount) && streq(mount->target, "/") && streq(mount->source, "/"))
                return plan_refuse_wide(mount, "/", reterr);
        return error_set(reterr, ERROR_POLICY, 0, "%s: the path inside, %s, %s: PATH:/TARGET",
                         mount->origin, mount->target, why);
}

/* Refuses a mount or hidden path at the keeper's own directory. The keeper writes there at each
 * start, so it must neither belong to the host nor be hidden. */
static int check_own(const LaunchPlan *plan, const PlanMount *mount, Error *reterr) {
        const bool covers = path_below(PLAN_SESSION_OWN, mount->target);
        int r;

        if (!plan->root.source || plan_mount_is_private(mount) ||
            !(covers ||
              (plan_mount_shows_host(mount) && path_below(mount->target, PLAN_SESSION_OWN))))
                return 0;
        r = error_set(reterr, ERROR_POLICY, 0,
                      "%s: %s " PLAN_SESSION_OWN ", which holt uses in a session", mount->origin,
                      covers ? "covers" : "lies in");
        return error_cure(reterr, r,
                          plan_mount_shows_host(mount)
                                  ? "Choose another path inside: PATH:/TARGET"
                                  : "Name the path below it that you want to hide.");
}

static bool below_private(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < tree_private_count; i++)
                if (!(plan->root.source && tree_private[i].lasting) &&
                    path_below(path, tree_private[i].target))
                        return true;
        return false;
}

/* Sorts parents before children, and decides for each target whether and where it must be created.
 */
static int order_mounts(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                        Error *reterr) {
        (void)policy;
        (void)context;
        qsort(plan->mounts, plan->mounts_count, sizeof(*plan->mounts), compare_targets);
        for (size_t i = 0; i < plan->mounts_count; i++) {
                PlanMount *mount = &plan->mounts[i];
                const PlanMount *above = NULL;
                int r = check_target(mount, reterr);

                if (r == 0)
                        r = check_own(plan, mount, reterr);
                if (r < 0)
                        return r;
                if (plan_mount_hides(mount))
                        continue;
                if (i > 0 && streq(mount->target, mount[-1].target))
                        return error_set(reterr, ERROR_POLICY, 0,
                                         "%s and %s both have the target %s; remove one",
                                         mount[-1].origin, mount->origin, mount->target);
                for (size_t j = 0; j < i; j++)
                        if (path_below(mount->target, plan->mounts[j].target))
                                above = &plan->mounts[j];
                if (above ? plan_mount_is_private(above) : below_private(plan, mount->target))
                        mount->flags |= PLAN_MAKE_TARGET;
                else if (!above && !tree_has(mount->target))
                        mount->flags |= PLAN_MAKE_TARGET | PLAN_IN_ROOT;
        }
        return 0;
}

int plan_add_guard(LaunchPlan *plan, const char *path, Error *reterr) {
        char *copy = strdup(path);

        if (!copy)
                return error_oom(reterr);
        plan->guards[plan->guards_count++] = (PlanGuard){ .path = copy, .fd = FD_NONE };
        return 0;
}

bool plan_guards_others(const char *path) {
        return path_below(path, ".git") || streq(path, "HEAD") || streq(path, ".holt.json");
}

/* Adds those guards of another read-write mount that depend on the policy: the protected paths that
 * count in every repository. */
static int add_other(LaunchPlan *plan, const Policy *policy, const PlanMount *mount,
                     Error *reterr) {
        LaunchPlan *other = &plan->others[plan->others_count++];
        int r = 0;

        other->workspace = strdup(mount->target);
        other->guards = calloc(policy->protect.count + 1, sizeof(*other->guards));
        if (!other->workspace || !other->guards)
                return error_oom(reterr);
        for (size_t i = 0; r == 0 && i < policy->protect.count; i++) {
                _cleanup_free_ char *path = path_join("/", policy->protect.items[i]);

                if (!path)
                        return error_oom(reterr);
                if (plan_guards_others(path + 1))
                        r = plan_add_guard(other, path + 1, reterr);
        }
        return r;
}

/* Skips a session's own directories, which nobody on the host uses. */
static int add_others(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                      Error *reterr) {
        int r = 0;

        (void)context;
        if (policy->protect.count == 0)
                return 0;
        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];

                if (!plan_mount_shows_host(mount) || mount->flags & PLAN_READ_ONLY ||
                    (plan->workspace && streq(mount->target, plan->workspace)) ||
                    (plan->state.source && path_below(mount->source, plan->state.source)))
                        continue;
                if (!plan->others)
                        plan->others = calloc(plan->mounts_count, sizeof(*plan->others));
                r = plan->others ? add_other(plan, policy, mount, reterr) : error_oom(reterr);
        }
        return r;
}

static int add_guards(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                      Error *reterr) {
        /* Nobody on the host uses a session's own workspace, so git's new files in it may stay. */
        const bool own = plan->root.source && !policy->workspace_source;
        int r = 0;

        (void)context;
        if (!plan->workspace || own || policy->workspace_mode == WORKSPACE_READ_ONLY)
                return 0;
        plan->guards = calloc(policy->protect.count + 1, sizeof(*plan->guards));
        if (!plan->guards)
                return error_oom(reterr);
        for (size_t i = 0; r == 0 && i < policy->protect.count; i++) {
                _cleanup_free_ char *path = path_join("/", policy->protect.items[i]);

                r = path ? plan_add_guard(plan, path + 1, reterr) : error_oom(reterr);
        }
        return r;
}

const LaunchPlan *plan_guarding(const LaunchPlan *plan, const PlanMount *mount) {
        if (plan->workspace && streq(plan->workspace, mount->target))
                return plan;
        for (size_t i = 0; i < plan->others_count; i++)
                if (streq(plan->others[i].workspace, mount->target))
                        return &plan->others[i];
        return NULL;
}

bool plan_has_guards(const LaunchPlan *plan) {
        bool has = plan->guards_count > 0;

        for (size_t i = 0; i < plan->others_count; i++)
                has |= plan->others[i].guards_count > 0;
        return has;
}

bool plan_protects_git(const LaunchPlan *plan) {
        for (size_t i = 0; i < plan->guards_count; i++)
                if (path_below(plan->guards[i].path, ".git"))
                        return true;
        return false;
}

static int plan_add_session(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                            Error *reterr) {
        const struct {
                PlanMount *mount;
                const char *source;
        } parts[] = { { &plan->root, "root" }, { &plan->state, "." } };

        (void)policy;
        for (size_t i = 0; context->session && i < ELEMENTSOF(parts); i++) {
                *parts[i].mount = (PlanMount){
                        .kind = PLAN_BIND,
                        .source = path_join(context->session, parts[i].source),
                        .target = strdup("/"),
                        .origin = make_origin("the session's", context->session),
                        .fd = FD_NONE,
                        .tree_fd = FD_NONE
                };
                if (!parts[i].mount->source || !parts[i].mount->target || !parts[i].mount->origin)
                        return error_oom(reterr);
        }
        return 0;
}

static int add_rootfs(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                      Error *reterr) {
        _cleanup_free_ char *source = NULL;

        if (!policy->rootfs)
                return 0;
        source = path_join(context->cwd, policy->rootfs);
        if (source && streq(source, "/"))
                return 0;
        plan->rootfs = (PlanMount){
                .kind = PLAN_BIND,
                .flags = PLAN_READ_ONLY,
                .source = TAKE_PTR(source),
                .origin = make_origin(asked_by(policy, "filesystem.rootfs", NULL, "--rootfs"),
                                      policy->rootfs),
                .fd = FD_NONE,
                .tree_fd = FD_NONE,
        };
        return plan->rootfs.source && plan->rootfs.origin ? 0 : error_oom(reterr);
}

static int add_etc(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                   Error *reterr) {
        (void)context;
        for (size_t i = 0; i < policy->etc.count; i++) {
                const char *name = policy->etc.items[i];
                char *origin = make_origin(asked_by(policy, "filesystem.etc", name, "--etc"), name);

                if (strlist_take(&plan->etc_origins, origin) < 0 ||
                    strlist_add(&plan->etc, name) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* The order matters: all mounts are added before they are sorted, and guards are placed in finished
 * mounts. */
static int (*const tree_steps[])(LaunchPlan *plan, const Policy *policy, const PlanContext *context,
                                 Error *reterr) = {
        add_rootfs,   add_etc,       plan_add_session, add_workspace, add_files,
        add_wheels,   add_read_only, add_read_write,   add_private,   add_hidden,
        order_mounts, add_guards,    add_others,
};

int plan_tree(LaunchPlan *plan, const Policy *policy, const PlanContext *context, Error *reterr) {
        size_t most = policy->read_only.count + policy->read_write.count + policy->tmpfs.count +
                      policy->hide.count + 3;

        plan->mounts = calloc(most < PLAN_MOUNTS_MAX ? most : PLAN_MOUNTS_MAX,
                              sizeof(*plan->mounts));
        if (!plan->mounts)
                return error_oom(reterr);
        return RUN_STEPS(tree_steps, plan, policy, context, reterr);
}
