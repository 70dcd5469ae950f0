/* SPDX-License-Identifier: Apache-2.0 */
/* Refused paths in words: the reason, and the option and the policy that allow it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "outcome/refused.h"

/* The text of each kind. option is NULL if why_not says why no option helps. */
static const struct {
        const char *reason, *option, *why_not;
} kinds[] = {
        [REFUSAL_READ_ONLY] = { "it is read-only in the sandbox", "--rw", NULL },
        [REFUSAL_MISSING] = { "the host has it, but the sandbox does not show it", "--ro", NULL },
        [REFUSAL_ABSENT] = { "the host has it, but the sandbox does not show it", "--rw", NULL },
        [REFUSAL_UNSHOWN] = { "the sandbox does not show its directory", "--rw", NULL },
        [REFUSAL_NEW] = { "the host has no such file, and the sandbox does not show its directory",
                          "--rw", NULL },
        [REFUSAL_MOVED] = { "the sandbox has it at another path", NULL,
                            "the workspace is mounted at another path" },
        [REFUSAL_LINK] = { "the sandbox does not show the target of this symlink, and the command "
                           "may have failed for that reason",
                           "--ro", NULL },
        [REFUSAL_BOUND] = { "the policy mounts it read-only (--ro)", "--rw", NULL },
        [REFUSAL_WORKSPACE] = { "the workspace is read-only", "--workspace-mode rw", NULL },
        [REFUSAL_PROJECT] = { "the workspace is read-only", NULL,
                              "the project's .holt.json makes it so; change it there, outside the "
                              "sandbox" },
        [REFUSAL_PROTECTED] = { "holt protects it, because programs on the host may use it later",
                                NULL, "change it outside the sandbox" },
        [REFUSAL_INPUT] = { "holt protects it, because holt itself uses this file", NULL,
                            "change it outside the sandbox" },
        [REFUSAL_HIDDEN] = { "it is hidden", NULL, "it belongs to holt" },
        [REFUSAL_MOUNT] = { "it is a mount point", NULL,
                            "nothing inside can remove or rename a mount point" },
        [REFUSAL_SYSTEM] = { "the system is read-only", NULL,
                             "install into the workspace or the home directory inside" },
        [REFUSAL_PACKAGES] = { "it belongs to the system's package manager", NULL,
                               "packages of the system cannot be installed inside: install them on "
                               "the host" },
        [REFUSAL_ROOT] = { "it is read-only in the sandbox", NULL,
                           "no option makes its directory writable: write in the workspace, /tmp "
                           "or the home directory inside" },
        [REFUSAL_PROC] = { "every sandbox masks it", NULL,
                           "it would reveal or change the host's kernel" },
        [REFUSAL_TOOLS] = { "it is read-only in the sandbox", NULL,
                            "programs on the host run or trust what is there: give the command a "
                            "copy, or a cache of its own" },
        [REFUSAL_GIT] = { "it is read-only in the sandbox", NULL,
                          "git on the host uses what is there: run this git command outside" },
        [REFUSAL_OWNER] = { "another user owns it", NULL,
                            "if root runs holt, the command acts as the workspace's owner: change "
                            "the file on the host, or chown it to that owner" },
        [REFUSAL_OWNER_ABOVE] = { "another user owns its directory", NULL,
                                  "if root runs holt, the command acts as the workspace's owner: "
                                  "chown the directory to that owner" },
        [REFUSAL_FOREIGN] = { "the user who runs holt may not write in its directory", NULL,
                              "no option changes that: write in the workspace, /tmp or the home "
                              "directory inside" },
        [REFUSAL_CLOSED] = { "the sandbox does not show it", NULL,
                             "holt suggests no option, because such a place may hold secrets" },
        [REFUSAL_OUT] = { "a symlink in the path leads out of the sandbox", NULL,
                          "holt does not look at the target of such a link" },
        [REFUSAL_LINKED] = { "a symlink in the path leads to a place that is read-only in the "
                             "sandbox",
                             NULL, "write to another place, or replace the link" },
        [REFUSAL_PROGRAM] = { "your PATH has it, but the sandbox has a PATH of its own", "--env",
                              NULL },
};
static_assert(ELEMENTSOF(kinds) == REFUSAL_KIND_MAX, "every kind has a text");

RefusalKind refused_workspace(const LaunchPlan *plan) {
        return plan->workspace_by_project ? REFUSAL_PROJECT : REFUSAL_WORKSPACE;
}

const char *refused_reason(const Refusal *refusal) {
        return kinds[refusal->kind].reason;
}

const char *refused_answer(const Refusal *refusal) {
        return refusal->errnum ? error_errno_name(refusal->errnum) : "";
}

const char *refused_why_not(const Refusal *refusal) {
        return refusal->why ? refusal->why : kinds[refusal->kind].why_not;
}

/* Returns the host path and the path inside in the form of an option: PATH:TARGET. NULL if an
 * option cannot take it. */
static char *refused_mount_words(const Refusal *refusal, const char *source) {
        if (!source || strchr(source, ':') || (refusal->target && strchr(refusal->target, ':')))
                return NULL;
        return refusal->target ? str_format("%s:%s", source, refusal->target) : strdup(source);
}

/* Returns the name of an entry of /etc for --etc, or NULL if another option shows it. */
static const char *refused_etc(const Refusal *refusal) {
        return refusal->kind == REFUSAL_LINK && refusal->subject
                       ? path_rest(refusal->subject, "/etc")
                       : NULL;
}

/* Adds the option and its value to the text, which the function frees. Returns the new text; NULL
 * if text is NULL, or if an option cannot take the value. If value is NULL, adds nothing. */
static char *refused_add_option(char *text, const char *option, const char *value) {
        _cleanup_free_ char *before = text, *word = value ? str_word(value) : NULL;

        if (!text || !value)
                return TAKE_PTR(before);
        return word ? str_format("%s%s%s%s", text, text[0] ? " " : "", option, word) : NULL;
}

static char *refused_grant_program(const Refusal *refusal) {
        char *text = strdup("");

        for (size_t i = 0; i < ELEMENTSOF(refusal->mounts); i++)
                text = refused_add_option(text, "--ro ", refusal->mounts[i]);
        return refused_add_option(text, "--env PATH=", refusal->search);
}

char *refused_grant(const Refusal *refusal) {
        const char *etc = refused_etc(refusal);
        const char *option = etc ? "--etc" : kinds[refusal->kind].option;
        _cleanup_free_ char *words = NULL, *word = NULL;

        if (refusal->kind == REFUSAL_PROGRAM)
                return refused_grant_program(refusal);
        if (!option || refusal->kind == REFUSAL_WORKSPACE)
                return option ? strdup(option) : NULL;
        words = etc ? strdup(etc)
                    : refused_mount_words(refusal,
                                          refusal->typed ? refusal->typed : refusal->subject);
        word = words ? str_word(words) : NULL;
        return word ? str_format("%s %s", option, word) : NULL;
}

static void refused_write_program_policy(JsonWriter *w, const Refusal *refusal) {
        json_write_object(w, "policy");
        if (refusal->mounts[0] || refusal->mounts[1]) {
                json_write_object(w, "filesystem");
                json_write_array(w, "read_only");
                for (size_t i = 0; i < ELEMENTSOF(refusal->mounts); i++)
                        if (refusal->mounts[i])
                                json_write_string(w, NULL, refusal->mounts[i]);
                json_write_end(w);
                json_write_end(w);
        }
        if (refusal->search) {
                json_write_object(w, "env");
                json_write_object(w, "set");
                json_write_string(w, "PATH", refusal->search);
                json_write_end(w);
                json_write_end(w);
        }
        json_write_end(w);
}

/* Writes the part of a policy that allows the path. */
static void refused_write_policy(JsonWriter *w, const Refusal *refusal, const char *grant) {
        _cleanup_free_ char *words = refused_mount_words(refusal, refusal->subject);

        const char *etc = refused_etc(refusal);

        if (refusal->kind == REFUSAL_PROGRAM)
                return grant ? refused_write_program_policy(w, refusal)
                             : json_write_null(w, "policy");
        if (!kinds[refusal->kind].option || (refusal->kind != REFUSAL_WORKSPACE && !words))
                return json_write_null(w, "policy");
        json_write_object(w, "policy");
        json_write_object(w, "filesystem");
        if (refusal->kind == REFUSAL_WORKSPACE) {
                json_write_object(w, "workspace");
                json_write_string(w, "mode", "rw");
        } else {
                const bool reads = refusal->kind == REFUSAL_MISSING ||
                                   refusal->kind == REFUSAL_LINK;

                json_write_array(w, etc ? "etc" : reads ? "read_only" : "read_write");
                json_write_string(w, NULL, etc ? etc : words);
        }
        for (int i = 0; i < 3; i++)
                json_write_end(w);
}

void refused_write(JsonWriter *w, const Refusal *refusal) {
        _cleanup_free_ char *grant = refused_grant(refusal);

        json_write_string(w, "layer", "filesystem");
        json_write_string(w, "what", refusal->path ? refusal->path : "");
        json_write_uint(w, "count", refusal->count);
        json_write_string(w, "answer", refused_answer(refusal));
        json_write_string(w, "path", refusal->path);
        json_write_string(w, "reason", refused_reason(refusal));
        json_write_string(w, "grant", grant);
        refused_write_policy(w, refusal, grant);
        json_write_string(w, "why_not", refused_why_not(refusal));
}
