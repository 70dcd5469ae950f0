/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/nearest.h"

static const char project_cure[] = "The project's own file may only narrow your policy, because a "
                                   "command may have written it.\n"
                                   "Put the setting into your own policy: --policy FILE";

static void *policy_member(Policy *policy, const PolicyField *field) {
        return (char *)policy + field->offset;
}

static const void *member_const(const Policy *policy, const PolicyField *field) {
        return (const char *)policy + field->offset;
}

static bool policy_is_list(const PolicyField *field) {
        return field->kind == FIELD_LIST || field->kind == FIELD_MAP;
}

void policy_clear(Policy *policy) {
        for (size_t i = 0; i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];

                if (field->kind == FIELD_PATH)
                        free(*(char **)policy_member(policy, field));
                else if (policy_is_list(field))
                        strlist_clear(policy_member(policy, field));
        }
        for (size_t i = 0; i < policy->notes_count; i++) {
                free(policy->notes[i].text);
                free(policy->notes[i].where);
        }
        free(policy->notes);
        free(policy->preset);
        strlist_clear(&policy->net_callers);
        strlist_clear(&policy->net_project);
        *policy = (Policy){ 0 };
}

const PolicyField *policy_field(const char *path) {
        for (size_t i = 0; i < policy_fields_count; i++)
                if (streq(policy_fields[i].path, path))
                        return &policy_fields[i];
        return NULL;
}

const PolicyField *policy_field_of_option(const char *option) {
        for (size_t i = 0; i < policy_fields_count; i++)
                if (policy_fields[i].option && streq(policy_fields[i].option, option))
                        return &policy_fields[i];
        return NULL;
}

/* --- values as text --- */

typedef struct TextUnit {
        const char *name;
        uint64_t factor;
} TextUnit;

/* Largest first; the last unit always fits. */
static const TextUnit text_durations[] = {
        { "d", 86400000000ULL }, { "h", 3600000000ULL }, { "m", 60000000ULL },
        { "s", 1000000ULL },     { "ms", 1000ULL },      { "us", 1 },
};
static const TextUnit text_bytes[] = {
        { "TiB", 1ULL << 40 },
        { "GiB", 1ULL << 30 },
        { "MiB", 1ULL << 20 },
        { "KiB", 1ULL << 10 },
        { "", 1 },
};

static char *text_in_units(const TextUnit *unit, uint64_t value) {
        while (unit->factor > 1 && (value < unit->factor || value % unit->factor != 0))
                unit++;
        return str_format("%" PRIu64 "%s", value / unit->factor, unit->name);
}

char *policy_number_text(const PolicyField *field, uint64_t value) {
        if (value == 0 && field->none)
                return strdup("none");
        if (field->kind == FIELD_DURATION)
                return value == 0 ? strdup("0s") : text_in_units(text_durations, value);
        if (field->kind == FIELD_BYTES)
                return text_in_units(text_bytes, value);
        return str_format("%" PRIu64, value);
}

static char *text_path(const PolicyField *field, const void *value, size_t i) {
        const char *path = *(char *const *)value;

        (void)field;
        return path && i == 0 ? strdup(path) : NULL;
}

static char *text_bool(const PolicyField *field, const void *value, size_t i) {
        (void)field;
        return i == 0 ? strdup(*(const bool *)value ? "true" : "false") : NULL;
}

static char *text_number(const PolicyField *field, const void *value, size_t i) {
        return i == 0 ? policy_number_text(field, *(const uint64_t *)value) : NULL;
}

static char *text_enum(const PolicyField *field, const void *value, size_t i) {
        return i == 0 ? strdup(field->names[*(const unsigned *)value]) : NULL;
}

static char *text_list(const PolicyField *field, const void *value, size_t i) {
        const StrList *list = value;

        (void)field;
        return i < list->count ? strdup(list->items[i]) : NULL;
}

/* --- setting --- */

/* The text of a value, its origin and its place: setters need them for errors. */
typedef struct Word {
        const PolicyField *field;
        const char *text;
        PolicyOrigin origin;
        const char *where;
        Error *reterr;
} Word;

/* Refuses a value. The text may have a second line, the cure. */
static int policy_refuse_value(const Word *word, const char *what) {
        const size_t length = strcspn(what, "\n");
        _cleanup_free_ char *masked = word->field->mask ? word->field->mask(word->text) : NULL;
        char quoted[160];
        int r = error_set(word->reterr, ERROR_POLICY, 0, "%s: \"%s\" %.*s", word->where,
                          str_quote(masked ? masked : word->text, quoted, sizeof(quoted)),
                          (int)length, what);

        return what[length] ? error_cure(word->reterr, r, "%s", what + length + 1) : r;
}

static int refuse_project(const Word *word, const char *in_force) {
        char quoted[160];

        (void)str_quote(word->text, quoted, sizeof(quoted));
        if (in_force)
                (void)error_set(word->reterr, ERROR_POLICY, 0,
                                "%s: \"%s\" is wider than the \"%s\" in force", word->where, quoted,
                                in_force);
        else
                (void)error_set(word->reterr, ERROR_POLICY, 0,
                                "%s: %s must not be set in the project's own file", word->where,
                                word->field->path);
        return error_cure(word->reterr, -EPERM, "%s", project_cure);
}

/* Each setter returns 0, a negative errno, or KEPT if the old value stays. */
enum { KEPT = 1 };

static int set_string(const Word *word, void *value) {
        char *copy = strdup(word->text);

        if (!copy)
                return error_oom(word->reterr);
        free(*(char **)value);
        *(char **)value = copy;
        return 0;
}

static int set_bool(const Word *word, void *value) {
        bool yes = streq(word->text, "true");

        if (!yes && !streq(word->text, "false"))
                return policy_refuse_value(word, "must be true or false");
        *(bool *)value = yes;
        return 0;
}

/* The highest value: the field's own, or the limit of base/strings.h. */
static uint64_t number_max(const PolicyField *field) {
        if (field->max)
                return field->max;
        return field->kind == FIELD_DURATION ? 1000 * 86400000000ULL : 1ULL << 60;
}

static int number_parse(const PolicyField *field, const char *text, uint64_t *ret) {
        uint64_t value = 0;
        int r;

        if (field->none && streq(text, "none")) {
                *ret = 0;
                return 0;
        }
        if (field->kind == FIELD_DURATION)
                r = str_to_usec(text, &value);
        else if (field->kind == FIELD_BYTES)
                r = str_to_bytes(text, &value);
        else
                r = str_to_uint(text, UINT64_MAX, &value);
        if (r < 0)
                return r;
        if (value < field->min || value > number_max(field))
                return -ERANGE;
        *ret = value;
        return 0;
}

static const char *none_text(const PolicyField *field) {
        return field->none ? ", or \"none\" for no limit" : "";
}

char *policy_range_text(const PolicyField *field) {
        _cleanup_free_ char *max = policy_number_text(field, number_max(field));
        _cleanup_free_ char *min = field->min ? policy_number_text(field, field->min) : strdup("0");

        return min && max ? str_format("%s to %s%s", min, max, none_text(field)) : NULL;
}

static int refuse_number(const Word *word, int r) {
        static const char *const forms[FIELD_KIND_MAX] = {
                [FIELD_UINT] = "a number",
                [FIELD_DURATION] = "a time; write it like 500ms, 30s, 10m or 2h",
                [FIELD_BYTES] = "a size; write it like 64KiB, 512MiB or 2GiB",
        };
        const PolicyField *field = word->field;
        _cleanup_free_ char *range = policy_range_text(field), *what = NULL;

        if (!range)
                return error_oom(word->reterr);
        if (r == -ERANGE)
                what = str_format("is out of range; write %s", range);
        else
                what = str_format("is not %s%s", forms[field->kind], none_text(field));
        return what ? policy_refuse_value(word, what) : error_oom(word->reterr);
}

static int set_number(const Word *word, void *value) {
        uint64_t *old = value, new = 0;
        int r = number_parse(word->field, word->text, &new);
        uint64_t unlimited = word->field->none ? 0 : UINT64_MAX;

        if (r < 0)
                return refuse_number(word, r);
        /* A project with a wider limit is no error: the lower one stays in force. */
        if (word->origin == ORIGIN_PROJECT && *old != unlimited &&
            (new == unlimited || new >= *old))
                return KEPT;
        *old = new;
        return 0;
}

/* Returns a list such as "rw, ro or none". */
static char *name_list(const char *const *names) {
        char *all = strdup("");

        for (size_t i = 0; all && names[i]; i++) {
                const char *glue = i == 0 ? "" : names[i + 1] ? ", " : " or ";
                char *next = str_format("%s%s\"%s\"", all, glue, names[i]);

                free(all);
                all = next;
        }
        return all;
}

static int policy_set_enum(const Word *word, void *value) {
        const PolicyField *field = word->field;
        unsigned *old = value, new = 0;

        while (field->names[new] && !streq(field->names[new], word->text))
                new ++;
        if (!field->names[new]) {
                _cleanup_free_ char *all = name_list(field->names);
                _cleanup_free_ char *what = all ? str_format("is not known; write %s", all) : NULL;

                return what ? policy_refuse_value(word, what) : error_oom(word->reterr);
        }
        if (word->origin == ORIGIN_PROJECT && field->ranks[new] < field->ranks[*old])
                return refuse_project(word, field->names[*old]);
        if (word->origin == ORIGIN_PROJECT && new == *old)
                return KEPT;
        *old = new;
        return 0;
}

static int list_full(const Word *word) {
        (void)error_set(word->reterr, ERROR_POLICY, 0, "%s: more than %d items in %s", word->where,
                        POLICY_LIST_MAX, word->field->path);
        return -E2BIG;
}

static int set_list(const Word *word, void *value) {
        StrList *list = value;

        if (word->field->none && streq(word->text, "none")) {
                if (word->origin == ORIGIN_PROJECT && list->count > 0)
                        return refuse_project(word, list->items[0]);
                strlist_clear(list);
                return KEPT;
        }
        if (strlist_has(list, word->text))
                return KEPT;
        if (list->count >= POLICY_LIST_MAX)
                return list_full(word);
        return strlist_add(list, word->text) < 0 ? error_oom(word->reterr) : 0;
}

static int policy_set_map(const Word *word, void *value) {
        StrList *list = value;
        size_t name = strcspn(word->text, "=") + 1;

        for (size_t i = 0; i < list->count; i++)
                if (strncmp(list->items[i], word->text, name) == 0)
                        return set_string(word, &list->items[i]);
        if (list->count >= POLICY_LIST_MAX)
                return list_full(word);
        return strlist_add(list, word->text) < 0 ? error_oom(word->reterr) : 0;
}

static const struct {
        int (*set)(const Word *word, void *value);
        char *(*text)(const PolicyField *field, const void *value, size_t i);
} kinds[] = {
        [FIELD_PATH] = { set_string, text_path },    [FIELD_BOOL] = { set_bool, text_bool },
        [FIELD_UINT] = { set_number, text_number },  [FIELD_DURATION] = { set_number, text_number },
        [FIELD_BYTES] = { set_number, text_number }, [FIELD_ENUM] = { policy_set_enum, text_enum },
        [FIELD_LIST] = { set_list, text_list },      [FIELD_MAP] = { policy_set_map, text_list },
};
static_assert(ELEMENTSOF(kinds) == FIELD_KIND_MAX, "every kind has a setter");

char *policy_field_text(const Policy *policy, const PolicyField *field, size_t i) {
        return kinds[field->kind].text(field, member_const(policy, field), i);
}

/* --- origins of values --- */

const PolicyNote *policy_note(const Policy *policy, const char *path, const char *text) {
        /* The last note counts, because a list may have dropped an item and got it back. */
        for (size_t i = policy->notes_count; i > 0; i--) {
                const PolicyNote *note = &policy->notes[i - 1];

                if (streq(note->field->path, path) &&
                    (!note->text || (text && streq(note->text, text))))
                        return note;
        }
        return NULL;
}

bool policy_of_project(const Policy *policy, const char *path) {
        const PolicyNote *note = policy_note(policy, path, NULL);

        return note && note->origin == ORIGIN_PROJECT;
}

int policy_project_fields(const Policy *policy, StrList *ret) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < policy->notes_count; i++) {
                const char *path = policy->notes[i].field->path;

                if (!policy->notes[i].text && policy_of_project(policy, path) &&
                    !strlist_has(ret, path))
                        r = strlist_add(ret, path);
        }
        return r;
}

char *policy_limit_text(const Policy *policy, const PolicyField *field) {
        const PolicyNote *note = policy_note(policy, field->path, NULL);

        if (policy->without_options)
                return note ? str_format("%s; raise it there", note->where)
                            : str_format("the preset %s; a policy file can raise it",
                                         policy->preset);
        if (!note)
                return str_format("the preset %s; raise it with %s %s", policy->preset,
                                  field->option, field->option_arg);
        if (note->origin == ORIGIN_PROJECT)
                return str_format("the workspace's %s; raise it there, because no option can",
                                  note->where);
        if (streq(note->where, field->option))
                return strdup(note->where);
        return str_format("%s; raise it there, or with %s %s", note->where, field->option,
                          field->option_arg);
}

/* Adds a note, except for presets: they come first, and most runs have nothing else. */
static int add_note(Policy *policy, const Word *word) {
        const bool list = word->field->kind == FIELD_LIST && word->text;
        PolicyNote *notes;
        PolicyNote note = { .field = word->field, .origin = word->origin };

        if (word->origin == ORIGIN_PRESET || word->field->kind == FIELD_MAP)
                return 0;
        notes = reallocarray(policy->notes, policy->notes_count + 1, sizeof(*notes));
        if (!notes)
                return error_oom(word->reterr);
        policy->notes = notes;
        note.text = list ? strdup(word->text) : NULL;
        note.where = strdup(word->where);
        notes[policy->notes_count++] = note;
        return (list && !note.text) || !note.where ? error_oom(word->reterr) : 0;
}

int policy_note_project(Policy *policy, const char *path) {
        Error ignored;
        const Word word = { .field = policy_field(path),
                            .origin = ORIGIN_PROJECT,
                            .where = POLICY_PROJECT_FILE,
                            .reterr = &ignored };

        return word.field ? add_note(policy, &word) : 0;
}

/* In a path or a name, a control character is a mistake, or an attack on the readers of a log.
 * Values of variables may contain newlines. */
static bool has_control(const char *text) {
        for (; *text; text++)
                if ((unsigned char)*text < 0x20 || *text == 0x7f)
                        return true;
        return false;
}

static int check_word(const Word *word) {
        const char *why = NULL;

        if (word->text[0] == '\0')
                return policy_refuse_value(word, "is empty");
        if (word->field->kind != FIELD_MAP && has_control(word->text))
                return policy_refuse_value(word, "contains a control character");
        if (!word->field->check || (word->field->none && streq(word->text, "none")))
                return 0;
        return word->field->check(word->text, &why) < 0 ? policy_refuse_value(word, why) : 0;
}

/* Adds the part of a project's item that the caller allows. */
static int set_common(Policy *policy, const Word *word) {
        _cleanup_(strlist_clear) StrList parts = { 0 };
        int r = word->field->narrow(policy, word->text, &parts);

        if (r < 0)
                return r == -E2BIG ? list_full(word) : error_oom(word->reterr);
        for (size_t i = 0; r >= 0 && i < parts.count; i++) {
                Word part = *word;

                part.text = parts.items[i];
                r = set_list(&part, policy_member(policy, word->field));
                if (r == 0)
                        r = add_note(policy, &part);
        }
        return r < 0 ? r : 0;
}

static int policy_set_word(Policy *policy, const Word *word) {
        int r;

        if (word->origin == ORIGIN_PROJECT && word->field->before_project)
                word->field->before_project(policy);
        if (word->origin == ORIGIN_PROJECT && word->field->merge == MERGE_COMMON)
                return set_common(policy, word);
        r = kinds[word->field->kind].set(word, policy_member(policy, word->field));
        /* A project's word that changes nothing counts if only the preset says the same. */
        if (r == 0 ||
            (r == KEPT && word->origin == ORIGIN_PROJECT && word->field->kind == FIELD_ENUM &&
             !policy_note(policy, word->field->path, NULL)))
                r = add_note(policy, word);
        if (r >= 0 && word->origin == ORIGIN_CALLER && word->field->after_caller)
                r = word->field->after_caller(policy, word->where, word->reterr);
        return r == KEPT ? 0 : r;
}

int policy_set(Policy *policy, const char *path, const char *text, PolicyOrigin origin,
               const char *where, Error *reterr) {
        const PolicyField *field = policy_field(path);
        const Word word = { field, text, origin, where, reterr };
        int r;

        if (!field)
                return error_set(reterr, ERROR_POLICY, 0, "%s: no policy field is called %s", where,
                                 path);
        r = check_word(&word);
        if (r < 0)
                return r;
        if (origin == ORIGIN_PROJECT && field->merge == MERGE_CALLER)
                return refuse_project(&word, NULL);
        return policy_set_word(policy, &word);
}

int policy_set_option(Policy *policy, const PolicyField *field, const char *value, Error *reterr) {
        if (field->set_option)
                return field->set_option(policy, value, reterr);
        return policy_set(policy, field->path, field->option_arg ? value : "true", ORIGIN_CALLER,
                          field->option, reterr);
}

/* --- presets --- */

static const Preset *preset_find(const char *name) {
        for (size_t i = 0; i < policy_presets_count; i++)
                if (streq(policy_presets[i].name, name))
                        return &policy_presets[i];
        return NULL;
}

const char *policy_preset_names(char buf[POLICY_PRESET_NAMES_MAX]) {
        buf[0] = '\0';
        for (size_t i = 0, length = 0; i < policy_presets_count; i++, length = strlen(buf))
                (void)snprintf(buf + length, POLICY_PRESET_NAMES_MAX - length, "%s%s",
                               i == 0 ? "" : ", ", policy_presets[i].name);
        return buf;
}

/* Whether a document extends the preset. Otherwise, an option or a parameter names it. */
static bool preset_is_extended(const char *where) {
        return strstr(where, "$.extends");
}

static int preset_unknown(const char *name, const char *where, Error *reterr) {
        Nearest nearest = { .word = name };
        char quoted[160], all[POLICY_PRESET_NAMES_MAX];

        for (size_t i = 0; i < policy_presets_count; i++)
                nearest_try(&nearest, policy_presets[i].name);
        (void)policy_preset_names(all);
        (void)error_set(reterr, ERROR_POLICY, 0, "%s: no preset is called \"%s\"%s%s%s", where,
                        str_quote(name, quoted, sizeof(quoted)),
                        nearest.best ? "; did you mean \"" : "", nearest.best ? nearest.best : "",
                        nearest.best ? "\"?" : "");
        if (preset_is_extended(where))
                return error_cure(reterr, -ENOENT,
                                  "\"extends\" takes the name of a preset (%s), or the path of a "
                                  "policy file, such as \"./base.json\".",
                                  all);
        return error_cure(reterr, -ENOENT,
                          "The presets are %s. A policy file has a \"/\" in its name or ends in "
                          "\".json\".",
                          all);
}

int policy_preset(Policy *policy, const char *name, const char *where, Error *reterr) {
        const Preset *preset = preset_find(name);

        if (!preset)
                return preset_unknown(name, where, reterr);
        if (policy->preset) {
                (void)error_set(reterr, ERROR_POLICY, 0,
                                "%s: the preset %s would replace the settings that come after the "
                                "preset %s",
                                where, name, policy->preset);
                if (preset_is_extended(where))
                        return error_cure(
                                reterr, -EEXIST,
                                "A policy starts from one preset. Name only this file, or "
                                "remove \"extends\" from it to put it on top of %s.",
                                policy->preset);
                return error_cure(reterr, -EEXIST,
                                  "A policy starts from one preset. Give only one, and give it "
                                  "first: --policy %s --policy FILE. A file that extends a preset "
                                  "needs no other.",
                                  name);
        }
        for (size_t i = 0; i < preset->count; i++) {
                int r = policy_set(policy, preset->rows[i].path, preset->rows[i].text,
                                   ORIGIN_PRESET, preset->name, reterr);

                if (r < 0)
                        return r;
        }
        policy->preset = strdup(name);
        return policy->preset ? 0 : error_oom(reterr);
}

bool policy_name_is_file(const char *name) {
        size_t length = strlen(name);

        return strchr(name, '/') || streq(name, "-") ||
               (length > 5 && streq(name + length - 5, ".json"));
}
