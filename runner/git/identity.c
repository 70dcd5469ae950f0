/* SPDX-License-Identifier: Apache-2.0 */
#include "git/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/home.h"
#include "base/paths.h"
#include "git/config.h"
#include "git/repository.h"
#include "policy/plan.h"

enum { INCLUDES_DEPTH_MAX = 10, INCLUDES_FILES_MAX = 100 };

/* The values that the configs have set so far. The last value counts. */
typedef struct Identity {
        char *name, *email;
        unsigned files;
} Identity;

static void identity_clear(Identity *identity) {
        free(identity->name);
        free(identity->email);
}

static void git_identity_take(char **value, char **found) {
        if (!*found)
                return;
        free(*value);
        *value = TAKE_PTR(*found);
}

/* Returns the path of an include, owned by the caller, or NULL. */
static char *identity_included(const char *path, const char *value) {
        const char *slash = strrchr(path, '/'), *home = home_path();

        if (str_starts(value, "~/"))
                return home ? path_child(home, value + 2) : NULL;
        return value[0] == '/' ? strdup(value)
                               : str_format("%.*s/%s", (int)(slash - path), path, value);
}

/* Reads one config. A config that git could not read is ignored. Included files are read last, so
 * their values win, because the file that includes them mostly has only the defaults. */
static void identity_read(Identity *identity, const char *path, unsigned depth) {
        _cleanup_(git_config_clear) GitConfig config = { 0 };
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        if (depth > INCLUDES_DEPTH_MAX || ++identity->files > INCLUDES_FILES_MAX ||
            repository_read(AT_FDCWD, path, GIT_CONFIG_SIZE_MAX, &text, &size) < 0 ||
            git_config_read(text, size, &config) < 0)
                return;
        git_identity_take(&identity->name, &config.user_name);
        git_identity_take(&identity->email, &config.user_email);
        for (size_t i = 0; i < config.always.count; i++) {
                _cleanup_free_ char *included = identity_included(path, config.always.items[i]);

                if (included)
                        identity_read(identity, included, depth + 1);
        }
}

/* Reads the configs in git's order (git-config(1)). GIT_CONFIG_GLOBAL replaces the caller's two
 * configs. */
static void identity_find(Identity *identity) {
        const char *global = getenv("GIT_CONFIG_GLOBAL"), *home = home_path();
        _cleanup_free_ char *directory = home_config_directory();
        _cleanup_free_ char *xdg = directory ? path_join(directory, "git/config") : NULL;
        _cleanup_free_ char *own = home ? path_join(home, ".gitconfig") : NULL;

        identity_read(identity, "/etc/gitconfig", 0);
        if (global && global[0] == '/')
                return identity_read(identity, global, 0);
        if (xdg)
                identity_read(identity, xdg, 0);
        if (own)
                identity_read(identity, own, 0);
}

/* Reads the config of the workspace's own repository. Returns false if holt cannot tell which file
 * that is: the .git of a linked worktree or a submodule is a file. */
static bool identity_find_local(const Policy *policy, Identity *identity) {
        const char *workspace = policy->workspace_source ? policy->workspace_source : ".";
        /* The path may be relative, and path_join() is for absolute ones. */
        _cleanup_free_ char *git = str_format("%s/.git", workspace);
        _cleanup_free_ char *config = str_format("%s/.git/config", workspace);
        struct stat st;

        if (policy->workspace_mode == WORKSPACE_NONE)
                return true;
        if (config)
                identity_read(identity, config, 0);
        return git && (stat(git, &st) < 0 || S_ISDIR(st.st_mode));
}

/* --- the variables --- */

/* A value of git's identity, and everything that can set it. */
typedef struct IdentityKey {
        const char *key, *config;
        const char *variables[2];
        size_t value; /* offset in Identity */
} IdentityKey;

static const IdentityKey identity_keys[] = {
        { "name",
          PLAN_GIT_NAME,
          { "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME" },
          offsetof(Identity, name) },
        { "email",
          PLAN_GIT_EMAIL,
          { "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL" },
          offsetof(Identity, email) },
};

static const char *identity_value(const Identity *identity, const IdentityKey *key) {
        return *(char *const *)(const void *)((const char *)identity + key->value);
}

static bool identity_has(const Policy *policy, const char *name) {
        const size_t length = strlen(name);

        for (size_t i = 0; i < policy->env_set.count; i++)
                if (str_starts(policy->env_set.items[i], name) &&
                    policy->env_set.items[i][length] == '=')
                        return true;
        return false;
}

static int identity_missing(const Policy *policy, const char *key, Error *reterr) {
        const PolicyNote *note = policy_note(policy, "env.git_identity", NULL);

        (void)error_set(reterr, ERROR_POLICY, 0, "%s: your git config has no user.%s",
                        note ? note->where : "env.git_identity", key);
        return error_cure(reterr, -ENOENT,
                          "Set it: git config --global user.%s VALUE\nholt ignores configs that "
                          "git includes under a condition (includeIf).",
                          key);
}

static int identity_set_one(Policy *policy, const char *variable, const char *value,
                            Error *reterr) {
        _cleanup_free_ char *item = NULL;

        if (!value || !value[0] || identity_has(policy, variable))
                return 0;
        item = str_format("%s=%s", variable, value);
        return item ? policy_set(policy, "env.set", item, ORIGIN_CALLER, "env.git_identity", reterr)
                    : error_oom(reterr);
}

/* The caller's own variables win over every config, as on the host. */
static int identity_set(Policy *policy, const IdentityKey *key, const char *value, Error *reterr) {
        int r = identity_set_one(policy, key->config, value, reterr);

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(key->variables); i++)
                r = identity_set_one(policy, key->variables[i], getenv(key->variables[i]), reterr);
        return r;
}

/* Whether git inside knows the value. */
static bool identity_is_complete(const Policy *policy, const IdentityKey *key) {
        return identity_has(policy, key->config) ||
               (identity_has(policy, key->variables[0]) && identity_has(policy, key->variables[1]));
}

int git_identity_set(Policy *policy, Error *reterr) {
        _cleanup_(identity_clear) Identity identity = { 0 }, local = { 0 };
        int r = 0;

        if (!policy->git_identity)
                return 0;
        identity_find(&identity);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(identity_keys); i++)
                r = identity_set(policy, &identity_keys[i],
                                 identity_value(&identity, &identity_keys[i]), reterr);
        if (r < 0 || !identity_find_local(policy, &local))
                return r;
        for (size_t i = 0; i < ELEMENTSOF(identity_keys); i++)
                if (!identity_is_complete(policy, &identity_keys[i]) &&
                    !identity_value(&local, &identity_keys[i]))
                        return identity_missing(policy, identity_keys[i].key, reterr);
        return 0;
}
