/* SPDX-License-Identifier: Apache-2.0 */
/* The policy: everything a sandbox may see, use and do.
 *
 * policy_set() fills a Policy field by field. First come a preset's rows (compiled in from
 * presets/), then the caller's files, the caller's flags, and finally the workspace's own file. All
 * of them use the one table of fields (fields.c), so that flags, JSON, the schema and the help
 * always agree. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "policy/syscalls/syscalls.h"

/* The project's own policy file, in the workspace. */
#define POLICY_PROJECT_FILE ".holt.json"

/* The source of a value. The project's file lies in the workspace, where the sandbox can write. So
 * it may narrow the caller's policy, and never widen it. */
typedef enum PolicyOrigin {
        ORIGIN_PRESET,
        ORIGIN_CALLER,
        ORIGIN_PROJECT,
} PolicyOrigin;

typedef enum LandlockMode {
        LANDLOCK_AUTO,    /* used if the kernel has it (ABI 2, Linux 5.19) */
        LANDLOCK_REQUIRE, /* a kernel without it is an error */
        LANDLOCK_OFF,
        LANDLOCK_MODE_MAX,
} LandlockMode;

typedef enum WorkspaceMode {
        WORKSPACE_READ_WRITE,
        WORKSPACE_READ_ONLY,
        WORKSPACE_NONE, /* no workspace */
        WORKSPACE_MODE_MAX,
} WorkspaceMode;

typedef enum NetworkMode {
        NETWORK_NONE,  /* only the sandbox's own loopback */
        NETWORK_ALLOW, /* also the names and addresses of network.allow */
        NETWORK_HOST,  /* the host's own network, without rules */
        NETWORK_MODE_MAX,
} NetworkMode;

enum { NETWORK_ASK_TIMEOUT = 60000000 }; /* usec, if the policy has no network.ask_timeout */

typedef enum NetworkSni {
        SNI_OPTIONAL, /* a TLS client may leave out the name of the server */
        SNI_REQUIRED,
        SNI_MAX,
} NetworkSni;

/* The origin of a value that does not come from the preset. */
#define POLICY_OF_CALL "policy" /* names the document that is a parameter of session.create */

typedef struct PolicyNote {
        const struct PolicyField *field;
        char *text;  /* the item, for a list; otherwise NULL */
        char *where; /* the argument of policy_set(): "--timeout", "ci.json: $.limits.timeout" */
        PolicyOrigin origin;
} PolicyNote;

/* All strings are owned. Paths are in the caller's spelling; plan.c makes them absolute. */
typedef struct Policy {
        char *preset;         /* the last "extends" or --policy NAME; for people */
        bool without_options; /* the command line has no options for fields (holt bwrap) */
        PolicyNote *notes;
        size_t notes_count;
        size_t settings_notes; /* The number of notes that come from the user's settings; they are
                                  the first ones. */

        char *workspace_source;  /* NULL means the working directory */
        char *workspace_target;  /* NULL means the source's own path */
        unsigned workspace_mode; /* WorkspaceMode */
        char *files;             /* host directory at /mnt/files, or NULL */
        char *rootfs;            /* replaces the host's system tree, or NULL */
        StrList read_only;       /* PATH[:TARGET] each */
        StrList read_write;      /* PATH[:TARGET] each */
        StrList etc;             /* names of entries of /etc, or "all" */
        StrList tmpfs;           /* TARGET each */
        StrList hide;            /* path, relative to the workspace or absolute */
        StrList protect;         /* path, relative to the workspace */
        uint64_t tmp_size;       /* bytes, for all private memory files together */
        bool allow_wide;         /* accept wide directories, such as / or a home, as workspace or in
                                    read_write */

        unsigned network;         /* NetworkMode */
        StrList net_allow;        /* RULE or @SET each, perhaps with a reason: policy/net/rules.h */
        unsigned net_sni;         /* NetworkSni */
        StrList net_publish;      /* [ADDRESS:]HOSTPORT:PORT each */
        StrList net_import;       /* HOSTPORT[:PORT] each */
        bool net_proxy;           /* a proxy inside, for programs that need one */
        bool net_ask;             /* ask the caller about hosts that no rule names */
        uint64_t net_ask_timeout; /* usec until a question is over */
        char *net_upstream;       /* URL of the proxy outside, perhaps with a password, or NULL */
        /* Once the project's file has a rule, net_allow contains what is left of its rules. */
        StrList net_callers; /* the caller's own rules */
        StrList net_project; /* the project's rules, as its file has them */
        size_t net_asked;    /* the number of the project's rules, with those that were dropped */
        bool net_narrowed;
        bool net_unlimited; /* the caller's mode was "host", which allows every rule */

        char *python; /* the interpreter: a name in PATH or an absolute path; NULL means python3 */
        char *index;  /* URL of the index of Python packages, or NULL */
        unsigned install; /* PythonInstall */
        char *wheels;     /* host directory at /mnt/wheels, the source of packages, or NULL */

        StrList env_set;   /* NAME=VALUE each */
        StrList env_pass;  /* NAME each */
        bool git_identity; /* set the variables that name the caller to git */

        uint64_t timeout;    /* usec of wall time; 0 is no limit */
        uint64_t kill_after; /* usec from TERM to KILL */
        uint64_t memory;     /* bytes of data for each process; 0 is no limit */
        uint64_t pids;       /* processes and threads; 0 is no limit */
        uint64_t open_files; /* fds for each process; 0 is the caller's own limit */
        uint64_t file_size;  /* bytes of each written file; 0 is no limit */
        uint64_t output;     /* bytes of stdout and stderr together; 0 is no limit */

        unsigned syscall_preset; /* SyscallPreset */
        StrList syscalls_allow;  /* groups or names added to the preset */
        StrList syscalls_deny;   /* groups or names removed from the preset */

        StrList routes;  /* name of a known provider, or a route as compact JSON
                            (policy/routes/route.h) */
        StrList helpers; /* FILE[:MODULE] each (policy/helper-fields.h) */
        bool links;      /* code inside may make links to files of /mnt/files */

        unsigned landlock; /* LandlockMode */
} Policy;

enum {
        POLICY_LIST_MAX = 1024, /* items of one list */
        POLICY_PATH_MAX = 4095, /* bytes of one path, PATH_MAX without the NUL */
};

void policy_clear(Policy *policy);

/* Sets the field at path, for example "limits.timeout", from text. For a list, adds one item. An
 * item that the list already has is ignored; in env.set a later value replaces an earlier one.
 *
 * where  the place that a person must correct: "--timeout", "ci.json: $.limits.timeout". Printed
 *        unchanged.
 *
 * Returns 0, or one of these; then nothing is changed:
 *   -EINVAL  no such field, or a value of the wrong kind: the error lists the allowed ones
 *   -EPERM   the project's file would widen the policy
 *   -E2BIG   the list is full (POLICY_LIST_MAX)
 *   -ENOMEM */
int policy_set(Policy *policy, const char *path, const char *text, PolicyOrigin origin,
               const char *where, Error *reterr);

/* The origin of the value of the field at path, or of a list's item `text`. Borrowed. NULL if the
 * value comes from the preset or does not exist. Variables in env.set have no origin. */
const PolicyNote *policy_note(const Policy *policy, const char *path, const char *text);

/* Whether the project's file has set the field, so that no option can widen it. */
bool policy_of_project(const Policy *policy, const char *path);
/* Adds to ret the paths of these fields, each once. Lists are left out: their items have a source
 * each. Returns 0 or -ENOMEM. */
int policy_project_fields(const Policy *policy, StrList *ret);
/* Notes that the project's file has set the field, for a policy that was stored without its
 * sources. Ignores a path that no field has. Returns 0 or -ENOMEM. */
int policy_note_project(Policy *policy, const char *path);

/* The origin of the field's limit, and how to raise it: "--pids", or "the preset standard; raise it
 * with --pids N". Owned by the caller; NULL if memory is out. */
char *policy_limit_text(const Policy *policy, const struct PolicyField *field);

#define POLICY_PRESET_DEFAULT "standard"

/* Writes the names of the presets, separated by ", ". Returns buf. */
enum { POLICY_PRESET_NAMES_MAX = 160 };
const char *policy_preset_names(char buf[POLICY_PRESET_NAMES_MAX]);

/* Starts policy from the built-in preset called name: "strict", "standard", "permissive" or "ci".
 * policy must be zeroed or cleared.
 *
 * where  the place of the name: "--policy", "policy_name", "ci.json: $.extends".
 *
 * Returns 0, -ENOENT (the error lists the names), -EEXIST (a preset was applied before; this one
 * would drop later changes), or -ENOMEM. */
int policy_preset(Policy *policy, const char *name, const char *where, Error *reterr);

/* --- checks that the plan needs too --- */

/* Checks a place inside. It must be absolute, without "..", and not a place that the sandbox itself
 * needs ("/", "/etc", anything in /proc or /dev). Returns 0, or -EINVAL with the reason in
 * *ret_why, which is static. */
int policy_target_check(const char *target, const char **ret_why);

/* Splits "PATH[:TARGET]" at the last ":/"; "PATH:/TARGET" therefore works for a path that contains
 * a colon. Returns the target, a pointer into text, or NULL. *ret_path_length is the length of
 * PATH. */
const char *policy_bind_split(const char *text, size_t *ret_path_length);

/* --- the table of fields, for the JSON loader, the schema, the flags and the help --- */

/* Whether an import of a missing module installs its package. */
typedef enum PythonInstall {
        PYTHON_INSTALL_AUTO, /* if the policy has a source of packages */
        PYTHON_INSTALL_ASK,  /* the error says how the caller installs it */
        PYTHON_INSTALL_NEVER,
} PythonInstall;

typedef enum FieldKind {
        FIELD_PATH,     /* char * */
        FIELD_BOOL,     /* bool; text "true" or "false" */
        FIELD_UINT,     /* uint64_t; JSON integer */
        FIELD_DURATION, /* uint64_t usec; JSON string */
        FIELD_BYTES,    /* uint64_t; JSON string or integer */
        FIELD_ENUM,     /* unsigned; names[] */
        FIELD_LIST,     /* StrList; JSON array of strings */
        FIELD_MAP,      /* StrList of NAME=VALUE; JSON object of strings */
        FIELD_KIND_MAX,
} FieldKind;

typedef enum MergeRule {
        MERGE_CALLER,   /* only the caller may set it; the project's file is refused */
        MERGE_MIN,      /* the lower one of the caller's and the project's (no limit counts as the
                           highest) */
        MERGE_ADD,      /* a list of restrictions; the project's file may add some */
        MERGE_STRICTER, /* the project's file may choose a name of the same or a higher rank */
        MERGE_COMMON,   /* a list of permissions; the project's file replaces it by what both
                           allow */
        MERGE_RULE_MAX,
} MergeRule;

typedef struct PolicyField {
        const char *path; /* "limits.timeout" */
        FieldKind kind;
        size_t offset; /* into Policy */
        MergeRule merge;
        bool none;    /* accepts "none": no limit (0), or an empty list */
        bool objects; /* for a list: items may be JSON objects, which policy_set() takes as compact
                         text; load.c has checked them */
        uint64_t min,
                max; /* the bounds of a number, in its unit; max 0 means the kind's own bound */
        const char *const *names;   /* for FIELD_ENUM, NULL-terminated */
        const unsigned char *ranks; /* for MERGE_STRICTER: the strictness of each name */
        const char *option;         /* "--timeout", or NULL if no flag sets it */
        const char *option_arg;     /* "TIME", for the help; NULL for a flag without an argument */
        const char *help;           /* one line */
        const char *session_help;   /* the help of holt create, or NULL if it is the same */
        const char *document_help;  /* the description in the schema, or NULL if it is the same */
        const char *unset;          /* the default of an unset path, for people; NULL for none */
        /* For a path whose value may contain a password: returns the value without it. Owned by the
         * caller. */
        char *(*mask)(const char *text);

        /* An additional check of the text before the kind's own, or NULL. Returns -EINVAL with a
         * static reason, whose second line, if any, is the cure. */
        int (*check)(const char *text, const char **ret_why);
        /* Handles a flag that sets more than this field, or NULL. Returns like policy_set_option().
         */
        int (*set_option)(Policy *policy, const char *value, Error *reterr);

        /* For MERGE_COMMON: adds to ret the part of an item that the caller's items allow. Returns
         * 0, -E2BIG (too many items) or -ENOMEM. NULL for other merge rules. */
        int (*narrow)(Policy *policy, const char *text, StrList *ret);
        /* Called before the project's file changes the value, or NULL. */
        void (*before_project)(Policy *policy);
        /* Called after the caller has set the value, or NULL. Returns like policy_set(). */
        int (*after_caller)(Policy *policy, const char *where, Error *reterr);

        /* For a limit: how the plan, the results and holt show carry it. */
        size_t plan;        /* offset of its uint64_t in the LaunchPlan; 0: the field is no limit */
        const char *result; /* its name among the limits of a result; NULL: results omit it */
        const char *scope;  /* for people: " each process"; NULL for the whole sandbox */
} PolicyField;

/* All fields in the order of the schema, and their number. */
extern const PolicyField policy_fields[];
extern const size_t policy_fields_count;

const PolicyField *policy_field(const char *path);
/* Returns the field that the option sets, such as "--timeout", or NULL. */
const PolicyField *policy_field_of_option(const char *option);

/* Applies the flag field->option from the caller. value is NULL for a flag without an argument.
 * Returns like policy_set(). */
int policy_set_option(Policy *policy, const PolicyField *field, const char *value, Error *reterr);

/* The value of a field in the form that policy_set() accepts; for a list, its i-th item. Owned by
 * the caller. NULL if the field is unset, i is past the end, or memory is out. */
char *policy_field_text(const Policy *policy, const PolicyField *field, size_t i);

/* The range of a number field: "1 to 4194304, or \"none\" for no limit". Owned by the caller; NULL
 * if memory is out. */
char *policy_range_text(const PolicyField *field);

/* A number in the notation of the field's kind ("10m", "1GiB"), for bounds. Owned by the caller. */
char *policy_number_text(const PolicyField *field, uint64_t value);

/* --- built-in presets, generated from presets/NAME.json at build time --- */

typedef struct PresetRow {
        const char *path, *text;
} PresetRow;

typedef struct Preset {
        const char *name;
        const char *description;
        const PresetRow *rows;
        size_t count;
} Preset;

extern const Preset policy_presets[];
extern const size_t policy_presets_count;

/* Whether the NAME of --policy is a file: it contains a '/', ends in ".json", or is "-" for stdin.
 */
bool policy_name_is_file(const char *name);
