/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/warnings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/entries.h"
#include "base/glob.h"
#include "base/paths.h"
#include "base/sys.h"
#include "base/util.h"
#include "git/attributes.h"
#include "policy/net/rules.h"
#include "policy/syscalls/syscalls.h"
#include "sandbox/prepare.h"

typedef struct Warnings {
        const Policy *policy;
        const LaunchPlan *plan;
        bool landlock; /* Landlock will be in force. */
        StrList *ret;
        Error *reterr;
} Warnings;

/* Whether the command has the variable, from any source. */
static bool has_variable(const LaunchPlan *plan, const char *name) {
        size_t length = strlen(name);

        for (size_t i = 0; i < plan->env.count; i++)
                if (strncmp(plan->env.items[i], name, length) == 0 &&
                    plan->env.items[i][length] == '=')
                        return true;
        return false;
}

/* Whether the value is meant for this one sandbox: from an option, or the parameter of a call. */
static bool warnings_is_of_call(const PolicyNote *note) {
        return note && (note->where[0] == '-' || str_starts(note->where, POLICY_OF_CALL ": "));
}

/* Adds a line that names the place of the value: "--env NAME", or "policy: $.env.pass[0]: NAME". */
static int warnings_add(const Warnings *w, const PolicyNote *note, const char *name,
                        const char *what) {
        return strlist_take(w->ret, str_format("%s%s %s: %s", note->where,
                                               note->where[0] == '-' ? "" : ":", name, what));
}

static int find_unset(const Warnings *w) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < w->policy->env_pass.count; i++) {
                const char *name = w->policy->env_pass.items[i];
                const PolicyNote *note = policy_note(w->policy, "env.pass", name);

                if (warnings_is_of_call(note) && !has_variable(w->plan, name))
                        r = warnings_add(w, note, name,
                                         "the variable is not set here, so it cannot be passed on");
        }
        return r;
}

/* Whether holt makes an entry at path inside, by a mount at or below it, or as a directory of the
 * fixed tree. The entries of /proc and /dev are not known here. */
static bool is_made(const LaunchPlan *plan, const char *path) {
        if (path_below(path, "/proc") || path_below(path, "/dev"))
                return true;
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (!plan_mount_hides(&plan->mounts[i]) && path_below(plan->mounts[i].target, path))
                        return true;
        for (size_t i = 0; i < tree_nodes_count; i++)
                if (path_below(tree_nodes[i].path, path + 1))
                        return true;
        for (size_t i = 0; i < tree_etc_files_count; i++)
                if (path_rest(path, "/etc") &&
                    streq(path_rest(path, "/etc"), tree_etc_files[i].name))
                        return true;
        return false;
}

/* Whether path, relative to the root, is one of the names in the directory, or lies below one. */
static bool warnings_is_shown(const TreeShown *shown, const char *path) {
        const char *rest = path_rest(path, shown->directory);

        for (size_t i = 0; rest && i < shown->count; i++)
                if (path_below(rest, shown->names[i]))
                        return true;
        return false;
}

/* Whether path comes from the system tree. */
static bool warnings_is_of_system(const char *path) {
        if (tree_has(path))
                return true;
        for (size_t i = 0; i < tree_shown_count; i++)
                if (warnings_is_shown(&tree_shown[i], path + 1))
                        return true;
        return false;
}

/* Whether path is missing below root_fd, the sandbox's root. A symlink on the way counts as
 * existing: only the sandbox knows its target. */
static bool is_missing_in(int root_fd, const char *path) {
        _cleanup_close_ int fd = sys_openat2(root_fd, path + 1, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0,
                                             RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

        return fd < 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* Whether path is missing outside of the plan's mounts. It could exist in the system tree, in
 * memory, or in the root of a session, which is empty while the session is being made. */
static bool is_missing_in_root(const LaunchPlan *plan, const char *path) {
        _cleanup_close_ int fd = FD_NONE;

        if (!warnings_is_of_system(path))
                return !plan->root.source || plan->root.fd < 0 ||
                       is_missing_in(plan->root.fd, path);
        if (plan->rootfs.source)
                return is_missing_in(plan->rootfs.fd, path);
        fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd >= 0 && is_missing_in(fd, path);
}

/* Whether path is certainly missing inside. A symlink in a mount of the plan makes that uncertain,
 * because only the sandbox knows its target. */
static bool is_nothing(const LaunchPlan *plan, const char *path) {
        const PlanMount *above = plan_mount_above(plan, path);
        _cleanup_close_ int fd = FD_NONE;

        if (is_made(plan, path))
                return false;
        if (!above)
                return is_missing_in_root(plan, path);
        if (!plan_mount_shows_host(above) || !above->directory)
                return true;
        fd = prepare_open_inside(plan, path, O_NOFOLLOW);
        return fd == -ENOENT || fd == -ENOTDIR;
}

static int find_unshown(const Warnings *w) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < w->plan->etc_notes.count; i++)
                r = strlist_add(w->ret, w->plan->etc_notes.items[i]);
        return r;
}

/* --- hidden paths without a file --- */

/* Whether the user's settings hide this. They serve all workspaces, so a warning in each one
 * without such a file would only teach the user to ignore warnings. */
static bool is_of_settings(const Policy *policy, const char *origin) {
        for (size_t i = 0; i < policy->settings_notes; i++) {
                const PolicyNote *note = &policy->notes[i];
                _cleanup_free_ char *own = str_format("%s: %s", note->where,
                                                      note->text ? note->text : "");

                if (own && streq(note->field->path, "filesystem.hide") && streq(own, origin))
                        return true;
        }
        return false;
}

/* Whether a comma in the text separates paths or patterns, rather than being a part of a name such
 * as "*,v" or "Report, final.pdf". */
static bool is_list(const char *text) {
        static const char marks[] = "*.?[{/";
        int depth = 0;

        for (const char *s = text; *s; s++) {
                const char *next = s + 1 + strspn(s + 1, " ");

                depth += (*s == '{') - (*s == '}');
                if (*s == ',' && depth == 0 &&
                    (next == s + 1 ? strcspn(next, marks) < strcspn(next, ",")
                                   : strcspn(next, marks) == 0 && *next))
                        return true;
        }
        return false;
}

/* text: the path or pattern of the policy. ret may be NULL. */
static int tell_unhidden(const Policy *policy, const char *origin, const char *text,
                         const char *what, StrList *ret, Error *reterr) {
        char quoted[512];
        int r;

        (void)str_quote(origin, quoted, sizeof(quoted));
        if (is_list(text)) {
                r = error_set(reterr, ERROR_POLICY, 0, "%s: %s, and it looks like a list", quoted,
                              what);
                return error_cure(reterr, r,
                                  "Name each path separately: --hide .env --hide '*.pem'");
        }
        if (!ret || is_of_settings(policy, origin))
                return 0;
        r = strlist_take(ret, str_format("%s: %s, so nothing is hidden", quoted, what));
        return r < 0 ? error_oom(reterr) : 0;
}

/* An absolute path is never a pattern, although a file may have such a name. */
static int warnings_refuse_absolute(const PlanMount *mount, Error *reterr) {
        char quoted[512];
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "%s: no file has this name, and only a relative path can be a pattern",
                          str_quote(mount->origin, quoted, sizeof(quoted)));

        return error_cure(reterr, r,
                          "Write the pattern relative to the workspace (--hide '*.pem' or "
                          "'**/.env'). Outside of it, hide a file or directory by its path.");
}

static int find_unhidden_path(const Warnings *w, const PlanMount *mount) {
        const char *rest = w->plan->workspace ? path_rest(mount->target, w->plan->workspace) : NULL;

        if (mount->flags & PLAN_HIDE_ABSOLUTE && glob_is_pattern(mount->target) &&
            faccessat(AT_FDCWD, mount->target, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                return warnings_refuse_absolute(mount, w->reterr);
        return tell_unhidden(w->policy, mount->origin, rest ? rest : mount->target,
                             "the path does not exist inside", w->ret, w->reterr);
}

static int find_unhidden(const Warnings *w) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < w->plan->mounts_count; i++) {
                const PlanMount *mount = &w->plan->mounts[i];

                if (plan_mount_hides(mount) && !str_starts(mount->origin, "hidden: ") &&
                    !(mount->flags & PLAN_HIDE_SHOWN) && is_nothing(w->plan, mount->target))
                        r = find_unhidden_path(w, mount);
        }
        for (size_t i = 0; r == 0 && i < w->plan->globs_count; i++)
                if (!w->plan->globs[i].found)
                        r = tell_unhidden(w->policy, w->plan->globs[i].origin,
                                          w->plan->globs[i].pattern,
                                          "no file in the workspace matches", w->ret, w->reterr);
        return r;
}

/* Finds grants without effect. For a group, it warns only if most of its calls are affected: the
 * user may have meant the others. */
static int find_vain(const Warnings *w) {
        static const char why[] = "a capability, and no command in a sandbox has one";
        int r = 0;

        for (size_t i = 0; r == 0 && i < w->policy->syscalls_allow.count; i++) {
                const char *name = w->policy->syscalls_allow.items[i];
                const PolicyNote *note = policy_note(w->policy, "syscalls.allow", name);
                _cleanup_free_ char *said = NULL;
                unsigned all, vain;

                syscalls_count(name, w->landlock ? NULL : &w->policy->syscalls_allow, &all, &vain);
                if (!warnings_is_of_call(note) || vain * 2 <= all)
                        continue;
                said = vain == all ? str_format("it needs %s", why)
                                   : str_format("%u of its %u calls need %s", vain, all, why);
                r = said ? warnings_add(w, note, name, said) : -ENOMEM;
        }
        return r;
}

/* Finds options of holt run that only a session uses. In a policy file, they may be meant for
 * sessions. */
static int find_unused(const Warnings *w) {
        static const char *const fields[] = { "python.program", "python.install", "bridge.links" };
        int r = 0;

        for (size_t i = 0; r == 0 && !w->plan->root.source && i < ELEMENTSOF(fields); i++) {
                const PolicyNote *note = policy_note(w->policy, fields[i], NULL);

                if (note && note->where[0] == '-')
                        r = strlist_take(
                                w->ret,
                                str_format("%s has no effect on holt run, only on a "
                                           "session: holt create NAME %s%s%s",
                                           note->where, note->field->option,
                                           note->field->option_arg ? " " : "",
                                           note->field->option_arg ? note->field->option_arg : ""));
        }
        return r;
}

/* --- parts of the workspace that another mount shows --- */

typedef const char *(*FindBare)(const LaunchPlan *plan, const PlanMount *workspace,
                                const PlanMount *mount);

/* Finds the mounts in which a path of the workspace has lost its guard or its cover. find returns
 * such a path, or NULL. */
static int find_bare(const LaunchPlan *plan, FindBare find, const char *can, const char *others,
                     const char *cure, StrList *ret) {
        const PlanMount *workspace = plan_workspace(plan);
        int r = 0;

        for (size_t i = 0; r == 0 && workspace && i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];
                const char *path = mount != workspace && plan_mount_shows_host(mount) && mount->real
                                           ? find(plan, workspace, mount)
                                           : NULL;
                char quoted[512], name[256];

                if (path)
                        r = strlist_take(
                                ret,
                                str_format("%s: the command can %s of the workspace there "
                                           "(%s%s); %s",
                                           str_quote(mount->origin, quoted, sizeof(quoted)), can,
                                           str_quote(path, name, sizeof(name)), others, cure));
        }
        return r;
}

/* Returns the path of a guard that is missing in mount, or NULL. If the mount shows the whole
 * workspace, git's files are guarded there as well (guards/guards.c). */
static const char *find_bare_guard(const LaunchPlan *plan, const PlanMount *workspace,
                                   const PlanMount *mount) {
        const bool whole = streq(workspace->real, mount->real),
                   above = path_below(workspace->real, mount->real);
        const char *inside = "";

        if (mount->flags & PLAN_READ_ONLY || (!above && !path_below(mount->real, workspace->real)))
                return NULL;
        if (!above)
                inside = mount->real + strlen(workspace->real) + 1;
        for (size_t i = 0; i < plan->guards_count; i++) {
                const char *path = plan->guards[i].path;

                if (whole ? !plan_guards_others(path)
                          : above || path_below(path, inside) || path_below(inside, path))
                        return path;
        }
        return NULL;
}

/* Finds mounts that show the workspace under another name: the workspace itself, a directory above
 * it, or a directory in it with protected paths. */
static int find_unguarded(const Warnings *w) {
        return find_bare(w->plan, find_bare_guard, "write protected paths", " and others",
                         "make it read-only (--ro), or mount a directory without them", w->ret);
}

/* Returns the hidden path of the workspace that the other mount shows, or NULL. An absolute path is
 * hidden in every mount. */
static const char *find_bare_hide(const LaunchPlan *plan, const PlanMount *workspace,
                                  const PlanMount *mount) {
        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *hide = &plan->mounts[i];
                const char *rest = plan_mount_hides(hide) && !(hide->flags & PLAN_HIDE_ABSOLUTE)
                                           ? path_rest(hide->target, workspace->target)
                                           : NULL;
                _cleanup_free_ char *host = rest ? path_child(workspace->real, rest) : NULL;

                if (host && path_below(host, mount->real))
                        return rest;
        }
        return NULL;
}

static int find_shown_hides(const Warnings *w) {
        return find_bare(w->plan, find_bare_hide, "read hidden files", "",
                         "an absolute path is hidden in every mount", w->ret);
}

/* --- repositories below the workspace --- */

enum { ENTRIES_LOOKED_AT = 64 }; /* Entries of the workspace's top; every start takes this time. */

static bool warnings_is_repository(int fd) {
        return faccessat(fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
               faccessat(fd, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_protected(const LaunchPlan *plan, const char *directory, const char *below) {
        _cleanup_free_ char *path = path_child(directory, below);

        for (size_t i = 0; path && i < plan->guards_count; i++)
                if (path_below(path, plan->guards[i].path))
                        return true;
        return false;
}

/* Whether the entry of the workspace has a .git with hooks or a config that the command can
 * write. */
static bool is_bare_below(const LaunchPlan *plan, int fd, const struct dirent *entry) {
        _cleanup_free_ char *git = NULL;

        if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) || streq(entry->d_name, ".") ||
            streq(entry->d_name, ".."))
                return false;
        git = str_format("%s/.git", entry->d_name);
        return git && faccessat(fd, git, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
               !(is_protected(plan, git, "hooks") && is_protected(plan, git, "config"));
}

/* Adds the warning about the first repository. Some names are unsafe in a shell, so a placeholder
 * is shown instead. */
static int tell_below(const char *name, unsigned others, StrList *ret) {
        _cleanup_free_ char *directory = str_word(name);
        _cleanup_free_ char *git = str_format("%s/.git", name);
        _cleanup_free_ char *word = git ? str_word(git) : NULL;
        _cleanup_free_ char *more = str_format(" (and %u more)", others);
        char quoted[512];

        if (!git || !more)
                return -ENOMEM;
        return strlist_take(ret, str_format("%s%s can be written, and git on the host would run "
                                            "its hooks: only a repository at the top of the "
                                            "workspace is protected. Use --protect %s, or "
                                            "--workspace ./%s",
                                            str_quote(git, quoted, sizeof(quoted)),
                                            others > 0 ? more : "", word ? word : "DIRECTORY/.git",
                                            directory ? directory : "DIRECTORY"));
}

int warnings_find_below(const LaunchPlan *plan, StrList *ret, Error *reterr) {
        const PlanMount *workspace = plan_protects_git(plan) ? plan_workspace(plan) : NULL;
        _cleanup_close_ int fd = FD_NONE;
        _uninitialized_ Entries entries;
        _cleanup_free_ char *first = NULL;
        const struct dirent *entry;
        unsigned found = 0;
        int r = 0;

        if (!workspace || workspace->flags & PLAN_READ_ONLY ||
            warnings_is_repository(workspace->fd))
                return 0;
        fd = openat(workspace->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        entries_begin(&entries, fd);
        for (unsigned i = 0; i < ENTRIES_LOOKED_AT + 2 && (entry = entries_next(&entries)); i++)
                if (is_bare_below(plan, fd, entry) && found++ == 0)
                        first = strdup(entry->d_name);
        if (found > 0)
                r = first ? tell_below(first, found - 1, ret) : -ENOMEM;
        return r == -ENOMEM ? error_oom(reterr) : r;
}

/* Whether the sandbox shows a file of the caller in its home directory, where git reads its config.
 * That config may define filters. */
static bool warnings_has_git_config(const LaunchPlan *plan) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]) &&
                    path_below(plan->mounts[i].target, "/home/agent"))
                        return true;
        return false;
}

/* Finds the git filters that have no program inside. git would commit the files of such a filter
 * unfiltered. */
static int find_filters(const Warnings *w) {
        const PlanMount *workspace = plan_workspace(w->plan);
        _cleanup_(strlist_clear) StrList missing = { 0 };
        const bool lfs = !w->plan->rootfs.source && access("/usr/bin/git-lfs", X_OK) == 0;
        int r;

        if (!workspace || workspace->flags & PLAN_READ_ONLY || warnings_has_git_config(w->plan))
                return 0;
        r = git_attributes_missing(w->plan, workspace->fd, &missing);
        for (size_t i = 0; r == 0 && i < missing.count; i++) {
                char name[128];

                if (lfs && streq(missing.items[i], "lfs"))
                        continue;
                r = strlist_take(
                        w->ret,
                        str_format(
                                "git inside has no filter \"%s\", which .gitattributes names, so "
                                "it commits these files as they are. If ~/.gitconfig has it: "
                                "--ro ~/.gitconfig:/home/agent/.gitconfig",
                                str_quote(missing.items[i], name, sizeof(name))));
        }
        return r;
}

int warnings_refuse_lists(const Policy *policy, const LaunchPlan *plan, Error *reterr) {
        const Warnings w = { .policy = policy, .plan = plan, .reterr = reterr };

        return find_unhidden(&w);
}

/* On the host's own network, every port is shared already. */
static int find_ports_of_host(const Warnings *w) {
        const LaunchPlan *plan = w->plan;
        const struct {
                const char *field;
                const StrList *ports;
        } lists[] = { { "network.publish", &plan->net_publish },
                      { "network.import", &plan->net_import } };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(lists); i++)
                if (plan->network == NETWORK_HOST && lists[i].ports->count > 0)
                        r = strlist_take(w->ret, str_format("%s has no effect on the host's own "
                                                            "network, where commands have the "
                                                            "host's ports",
                                                            lists[i].field));
        return r;
}

static bool warnings_is_loopback(const NetRule *rule) {
        for (size_t i = 0; rule->kind == NET_BLOCK && i < ELEMENTSOF(net_loopback); i++)
                if (net_block_allows(&rule->address, rule->prefix, &net_loopback[i]))
                        return true;
        return false;
}

/* Tells about a rule for the loopback, because inside, programs expect their own there. Also tells
 * about a name that is probably meant as a set. */
static int warnings_tell_rule(const Warnings *w, const char *text, const PolicyNote *note) {
        _cleanup_(net_rules_clear) NetRules rules = { 0 };
        const char *ignored;
        char what[80];
        int r = 0;

        (void)snprintf(what, sizeof(what), "this names a host; the set of this name is @%s", text);
        if (net_set(text))
                r = warnings_add(w, note, text, what);
        else if (text[0] != '@' && net_rules_add(&rules, text, &ignored) == 0 &&
                 warnings_is_loopback(&rules.items[0]))
                r = warnings_add(w, note, text,
                                 "the command can connect to services on the host's loopback; "
                                 "--import PORT allows one port, and nothing else there");
        return r;
}

/* Only a client that attends the session can be asked. holt create is none. */
static int find_unattended(const Warnings *w) {
        const PolicyNote *note = policy_note(w->policy, "network.ask", NULL);

        if (!w->plan->root.source || !w->plan->net_ask || !note || !streq(note->where, "--ask"))
                return 0;
        return strlist_take(
                w->ret, strdup("--ask: a plain holt exec cannot ask you, and the network refuses "
                               "each host without a rule; write holt exec NAME --ask"));
}

static int find_misread_rules(const Warnings *w) {
        const StrList *allow = &w->policy->net_allow;
        int r = 0;

        for (size_t i = 0; r == 0 && i < allow->count; i++) {
                const PolicyNote *note = policy_note(w->policy, "network.allow", allow->items[i]);

                if (warnings_is_of_call(note))
                        r = warnings_tell_rule(w, allow->items[i], note);
        }
        return r;
}

/* In the order of the lines that they add. Each returns 0, -ENOMEM, or another negative errno with
 * its error. */
static int (*const finders[])(const Warnings *w) = {
        find_unset,         find_shown_hides, find_unshown, find_unguarded,
        find_unhidden,      find_filters,     find_vain,    find_ports_of_host,
        find_misread_rules, find_unattended,  find_unused,
};

int warnings_find(const Policy *policy, const LaunchPlan *plan, bool landlock, StrList *ret,
                  Error *reterr) {
        const Warnings w = { policy, plan, landlock, ret, reterr };
        int r = RUN_STEPS(finders, &w);

        return r == -ENOMEM ? error_oom(reterr) : r;
}
