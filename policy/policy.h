/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may see, use and do.
 *
 * A Policy is filled field by field through policy_set(): a preset's rows (compiled in from
 * presets/), then the caller's files, then the caller's flags, then the workspace's own file. Every
 * way in goes through the one table of fields (fields.c), so that a flag, a JSON field, the schema
 * and the help can't disagree. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

/* Whose word a value is. The project's file lies in the workspace, where the sandbox can write: it
 * may narrow what the caller gave and never widen it. */
typedef enum PolicyOrigin {
        ORIGIN_PRESET,
        ORIGIN_CALLER,
        ORIGIN_PROJECT,
} PolicyOrigin;

typedef enum LandlockMode {
        LANDLOCK_AUTO,    /* used where the kernel has it (ABI 2, Linux 5.19) */
        LANDLOCK_REQUIRE, /* a kernel without it is an error */
        LANDLOCK_OFF,
        LANDLOCK_MODE_MAX,
} LandlockMode;

typedef enum SyscallPreset {
        SYSCALLS_DEFAULT,
        SYSCALLS_STRICT,
        SYSCALLS_PRESET_MAX,
} SyscallPreset;

typedef enum WorkspaceMode {
        WORKSPACE_READ_WRITE,
        WORKSPACE_READ_ONLY,
        WORKSPACE_NONE, /* no workspace at all */
        WORKSPACE_MODE_MAX,
} WorkspaceMode;

typedef enum NetworkMode {
        NETWORK_NONE, /* a loopback of its own and nothing else */
        NETWORK_MODE_MAX,
} NetworkMode;

/* Where a value comes from that is not the preset's. */
typedef struct PolicyNote {
        const struct PolicyField *field;
        char *text;  /* a list's item; NULL for what is no list */
        char *where; /* as policy_set() was told: "--timeout", "ci.json: $.limits.timeout" */
        PolicyOrigin origin;
} PolicyNote;

/* All strings are owned. Paths are as the caller wrote them: plan.c makes them absolute. */
typedef struct Policy {
        char *preset; /* the last "extends" or --policy NAME; for people */
        PolicyNote *notes;
        size_t notes_count;

        char *workspace_source;  /* NULL is the working directory */
        char *workspace_target;  /* NULL is the source's own path */
        unsigned workspace_mode; /* WorkspaceMode */
        char *files;             /* host directory at /mnt/files, or NULL */
        char *rootfs;            /* system tree instead of the host's, or NULL */
        StrList read_only;       /* PATH[:TARGET] each */
        StrList read_write;      /* PATH[:TARGET] each */
        StrList tmpfs;           /* TARGET each */
        StrList hide;            /* path, relative to the workspace or absolute */
        StrList protect;         /* path, relative to the workspace */
        uint64_t tmp_size;       /* bytes, of all private memory files together */
        bool allow_wide;         /* /, a home directory and the like as workspace or read_write */

        unsigned network; /* NetworkMode */

        char *python; /* of the interpreter: a name in PATH or an absolute path; NULL: python3 */
        char *wheels; /* host directory at /mnt/wheels, which packages are installed from, or NULL
                       */

        StrList env_set;  /* NAME=VALUE each */
        StrList env_pass; /* NAME each */

        uint64_t timeout;    /* usec of wall time; 0 is none */
        uint64_t kill_after; /* usec between TERM and KILL */
        uint64_t memory;     /* bytes of data of each process; 0 is none */
        uint64_t pids;       /* processes and threads; 0 is none */
        uint64_t open_files; /* fds of each process; 0 is the caller's own limit */
        uint64_t file_size;  /* bytes of each file written; 0 is none */
        uint64_t output;     /* bytes of stdout and stderr together; 0 is none */

        unsigned syscall_preset; /* SyscallPreset */
        StrList syscalls_allow;  /* groups or names beyond the preset */
        StrList syscalls_deny;   /* groups or names taken from it */

        unsigned landlock; /* LandlockMode */
} Policy;

enum {
        POLICY_LIST_MAX = 1024, /* items of one list */
        POLICY_PATH_MAX = 4095, /* bytes of one path, PATH_MAX without the NUL */
};

void policy_clear(Policy *policy);

/* Sets (a scalar) or adds to (a list) the field at path, for instance "limits.timeout", from text.
 * In a list an item that is there already is left alone; in env.set a later value takes the place
 * of an earlier.
 *
 * where  what a person has to correct: "--timeout", "ci.json: $.limits.timeout". Printed as it is.
 *
 * 0, -EINVAL (no such field, or not a value of its kind: the error says what is allowed), -EPERM
 * (the project's file would widen), -E2BIG (POLICY_LIST_MAX), -ENOMEM. Nothing is changed on
 * failure. */
int policy_set(Policy *policy, const char *path, const char *text, PolicyOrigin origin,
               const char *where, Error *reterr);

/* Where the value of the field at path comes from, of a list the item that is text. Borrowed; NULL
 * where it is the preset's, or there is no such value. Variables in env.set have none. */
const PolicyNote *policy_note(const Policy *policy, const char *path, const char *text);

/* Who has set the limit of the field, and what raises it: "--pids; raise it there". Owned by the
 * caller; NULL when memory is out. */
char *policy_limit_text(const Policy *policy, const struct PolicyField *field);

#define POLICY_PRESET_DEFAULT "standard"

/* Starts policy, which must be zeroed or cleared, from the built-in preset called name: "strict",
 * "standard", "permissive" or "ci".
 *
 * 0, -ENOENT (the error lists the names), -EEXIST (started from a preset before: this one would
 * drop what came since), -ENOMEM. */
int policy_preset(Policy *policy, const char *name, const char *where, Error *reterr);

/* --- checks that the plan needs as well --- */

/* 0, or -EINVAL with why, for a place inside: absolute, without "..", and not one that the sandbox
 * itself needs ("/", "/etc", anything in /proc or /dev). *ret_why is static. */
int policy_target_check(const char *target, const char **ret_why);

/* Splits "PATH[:TARGET]" at the last ":/", so that a path with a colon in it can be given as
 * "PATH:/TARGET". Returns the target (inside text) or NULL, and the length of PATH. */
const char *policy_bind_split(const char *text, size_t *ret_path_length);

/* --- the table of fields, for the JSON loader, the schema, the flags and the help --- */

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
        MERGE_CALLER,   /* only the caller's word; the project's file is refused */
        MERGE_MIN,      /* of the caller's and the project's the lower (no limit is the highest) */
        MERGE_ADD,      /* a list of restrictions: the project's file may add */
        MERGE_STRICTER, /* the project's file may choose a name of the same or a higher rank */
        MERGE_RULE_MAX,
} MergeRule;

typedef struct PolicyField {
        const char *path; /* "limits.timeout" */
        FieldKind kind;
        size_t offset; /* into Policy */
        MergeRule merge;
        bool none;                  /* the word "none": no limit (0); a list is emptied by it */
        uint64_t min, max;          /* of a number, in its unit; max 0: the kind's own bound */
        const char *const *names;   /* of FIELD_ENUM, NULL-terminated */
        const unsigned char *ranks; /* of MERGE_STRICTER: how strict each name is */
        const char *option;         /* "--timeout", or NULL where no flag sets it */
        const char *option_arg;     /* "TIME", for the help; NULL for a flag that takes none */
        const char *help;           /* one line */
        const char *unset;          /* what a path means that is not set; NULL for none at all */

        /* An extra check of the text before the kind's own, or NULL; -EINVAL with a static why. */
        int (*check)(const char *text, const char **ret_why);
        /* Where the flag is more than this field, or NULL. As policy_set_option(). */
        int (*set_option)(Policy *policy, const char *value, Error *reterr);
} PolicyField;

/* Every field, in the order of the schema; the count. */
extern const PolicyField policy_fields[];
extern const size_t policy_fields_count;

const PolicyField *policy_field(const char *path);

/* Applies the flag field->option as the caller's word; value is NULL for a flag without an
 * argument. Returns as policy_set(). */
int policy_set_option(Policy *policy, const PolicyField *field, const char *value, Error *reterr);

/* The value of a field as text, as policy_set() would take it; for a list the i-th. Owned by the
 * caller; NULL when it is unset, i is past the end, or memory is out. */
char *policy_field_text(const Policy *policy, const PolicyField *field, size_t i);

/* What a number of the field may be: "1 to 4194304, or \"none\" for no limit". Owned by the caller;
 * NULL when memory is out. */
char *policy_range_text(const PolicyField *field);

/* A number as text of the field's kind ("10m", "1GiB"), for bounds. Owned by the caller. */
char *policy_number_text(const PolicyField *field, uint64_t value);

/* --- built-in presets, as rows made from presets/NAME.json at build time --- */

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

/* Whether --policy NAME means a file: it has a '/' in it, ends in ".json", or is "-" for stdin. */
bool policy_name_is_file(const char *name);
