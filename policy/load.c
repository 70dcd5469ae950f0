/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "policy/routes/route.h"

enum { DOCUMENT_VERSION = 1 };

typedef struct Loader {
        Policy *policy;
        char name[400]; /* quoted */
        PolicyOrigin origin;
        bool extended; /* the caller has applied the file that the document extends */
        Error *reterr;
} Loader;

/* An object in the document, and the prefix of its fields. */
typedef struct Spot {
        const char *path;   /* "$.limits" */
        const char *prefix; /* "limits.", or "" at the top */
} Spot;

static int fail_type(const Loader *l, const JsonValue *value, const char *path,
                     const char *expected) {
        return error_set(l->reterr, ERROR_POLICY, 0, "%s: %s: expected %s, not %s", l->name, path,
                         expected, json_type_name(json_type(value)));
}

/* --- the top --- */

static int check_version(Loader *l, const JsonValue *value, const char *path) {
        uint64_t version;
        int r;

        if (json_uint(value, JSON_INTEGER_MAX, &version) == 0 && version == DOCUMENT_VERSION)
                return 0;
        r = error_set(l->reterr, ERROR_POLICY, 0,
                      "%s: %s: holt does not support this version of policy documents", l->name,
                      path);
        return error_cure(l->reterr, r, "Write \"holt\": %d.", DOCUMENT_VERSION);
}

static int load_check_text(Loader *l, const JsonValue *value, const char *path) {
        return json_string(value) ? 0 : fail_type(l, value, path, "a string");
}

static int load_extends(Loader *l, const JsonValue *value, const char *path) {
        const char *name = json_string(value);
        _cleanup_free_ char *where = str_format("%s: %s", l->name, path);

        if (!where)
                return error_oom(l->reterr);
        if (!name)
                return fail_type(l, value, path, "the name of a preset or a file");
        if (l->extended)
                return 0;
        if (l->origin == ORIGIN_CALLER && policy_name_is_file(name)) {
                (void)error_set(l->reterr, ERROR_POLICY, 0,
                                "%s: only a policy file can extend a file", where);
                return error_cure(l->reterr, -EINVAL, "Extend a preset, or use a policy file.");
        }
        if (l->origin == ORIGIN_CALLER)
                return policy_preset(l->policy, name, where, l->reterr);
        (void)error_set(l->reterr, ERROR_POLICY, 0, "%s: a %s must not choose the preset", where,
                        l->origin == ORIGIN_PROJECT ? "project's own file" : "preset");
        return error_cure(l->reterr, -EPERM, "Choose the preset in your own policy: --policy NAME");
}

/* Members of the top object that are not fields. */
static const struct {
        const char *key;
        int (*load)(Loader *l, const JsonValue *value,
                    const char *path); /* NULL if load_base() handles the member */
} top_members[] = {
        { "holt", NULL },
        { "extends", NULL },
        { "description", load_check_text },
        { "$schema", load_check_text },
};

/* Checks the version first, because another version may mean anything. Then loads the preset, which
 * everything else builds on. */
static int load_base(Loader *l, const JsonValue *root) {
        const JsonValue *version = json_member(root, "holt");
        const JsonValue *extends = json_member(root, "extends");
        int r;

        if (!version) {
                r = error_set(l->reterr, ERROR_POLICY, 0,
                              "%s: $.holt: the version of the document is missing", l->name);
                return error_cure(l->reterr, r, "Write \"holt\": %d.", DOCUMENT_VERSION);
        }
        r = check_version(l, version, "$.holt");
        if (r < 0)
                return r;
        if (extends)
                return load_extends(l, extends, "$.extends");
        if (l->origin == ORIGIN_CALLER && !l->policy->preset)
                return policy_preset(l->policy, POLICY_PRESET_DEFAULT, l->name, l->reterr);
        return 0;
}

/* --- values --- */

static int set_text(Loader *l, const PolicyField *field, const char *text, const char *path) {
        _cleanup_free_ char *where = str_format("%s: %s", l->name, path);

        if (!where)
                return error_oom(l->reterr);
        return policy_set(l->policy, field->path, text, l->origin, where, l->reterr);
}

static int load_string(Loader *l, const PolicyField *field, const JsonValue *value,
                       const char *path) {
        if (!json_string(value))
                return fail_type(l, value, path, "a string");
        return set_text(l, field, json_string(value), path);
}

static int load_bool(Loader *l, const PolicyField *field, const JsonValue *value,
                     const char *path) {
        bool yes;

        if (json_bool(value, &yes) < 0)
                return fail_type(l, value, path, "true or false");
        return set_text(l, field, yes ? "true" : "false", path);
}

static int fail_number(Loader *l, const PolicyField *field, const char *path, const char *what) {
        _cleanup_free_ char *range = policy_range_text(field);

        if (!range)
                return error_oom(l->reterr);
        return error_set(l->reterr, ERROR_POLICY, 0, "%s: %s: a number that is %s; write %s",
                         l->name, path, what, range);
}

static int load_integer(Loader *l, const PolicyField *field, const JsonValue *value,
                        const char *path) {
        uint64_t number;
        char text[24];
        int r = json_uint(value, JSON_INTEGER_MAX, &number);

        if (r < 0)
                return fail_number(l, field, path, r == -ERANGE ? "out of range" : "not whole");
        (void)snprintf(text, sizeof(text), "%" PRIu64, number);
        return set_text(l, field, text, path);
}

static int load_uint(Loader *l, const PolicyField *field, const JsonValue *value,
                     const char *path) {
        const char *text = json_string(value);

        if (field->none && text && streq(text, "none"))
                return set_text(l, field, text, path);
        if (json_type(value) != JSON_NUMBER)
                return fail_type(l, value, path, field->none ? "a number or \"none\"" : "a number");
        return load_integer(l, field, value, path);
}

static int load_duration(Loader *l, const PolicyField *field, const JsonValue *value,
                         const char *path) {
        if (!json_string(value))
                return fail_type(l, value, path,
                                 field->none ? "a time like \"10m\" or \"90s\", or \"none\""
                                             : "a time like \"10m\" or \"90s\"");
        return set_text(l, field, json_string(value), path);
}

static int load_bytes(Loader *l, const PolicyField *field, const JsonValue *value,
                      const char *path) {
        if (json_type(value) == JSON_NUMBER)
                return load_integer(l, field, value, path);
        if (!json_string(value))
                return fail_type(l, value, path, "a size like \"512MiB\" or a number of bytes");
        return set_text(l, field, json_string(value), path);
}

/* Loads an object as its compact text. A string with that text would not have been checked. */
static int load_object_item(Loader *l, const PolicyField *field, const JsonValue *value,
                            const char *path) {
        _cleanup_free_ char *where = str_format("%s: %s", l->name, path), *text = NULL;
        int r;

        if (json_string(value) && json_string(value)[0] != '{')
                return set_text(l, field, json_string(value), path);
        if (json_type(value) != JSON_OBJECT)
                return fail_type(l, value, path, "a name or an object");
        r = where ? route_check(value, where, l->reterr) : error_oom(l->reterr);
        if (r < 0)
                return r;
        text = route_text(value);
        if (!text)
                return error_oom(l->reterr);
        if (strlen(text) > ROUTE_TEXT_MAX)
                return error_set(l->reterr, ERROR_POLICY, 0, "%s: has more than %d bytes", where,
                                 ROUTE_TEXT_MAX);
        return policy_set(l->policy, field->path, text, l->origin, where, l->reterr);
}

static int load_list(Loader *l, const PolicyField *field, const JsonValue *value,
                     const char *path) {
        int (*const load)(Loader * l, const PolicyField *field, const JsonValue *value,
                          const char *path) = field->objects ? load_object_item : load_string;
        size_t i = 0;

        if (json_type(value) != JSON_ARRAY)
                return fail_type(l, value, path,
                                 field->objects ? "an array" : "an array of strings");
        for (const JsonValue *item = json_first(value); item; item = json_next(item)) {
                _cleanup_free_ char *place = json_path_index(path, i++);
                int r = place ? load(l, field, item, place) : error_oom(l->reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int load_pair(Loader *l, const PolicyField *field, const JsonValue *member,
                     const char *path) {
        const char *key = json_key(member), *value = json_string(member);
        _cleanup_free_ char *place = json_path_key(path, key), *text = NULL;

        if (!place)
                return error_oom(l->reterr);
        if (!value)
                return fail_type(l, member, place, "a string");
        if (strchr(key, '='))
                return error_set(l->reterr, ERROR_POLICY, 0, "%s: %s: a name that contains \"=\"",
                                 l->name, place);
        text = str_format("%s=%s", key, value);
        return text ? set_text(l, field, text, place) : error_oom(l->reterr);
}

static int load_map(Loader *l, const PolicyField *field, const JsonValue *value, const char *path) {
        if (json_type(value) != JSON_OBJECT)
                return fail_type(l, value, path, "an object of strings");
        for (const JsonValue *member = json_first(value); member; member = json_next(member)) {
                int r = load_pair(l, field, member, path);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int (*const kind_loaders[])(Loader *l, const PolicyField *field, const JsonValue *value,
                                   const char *path) = {
        [FIELD_PATH] = load_string,       [FIELD_BOOL] = load_bool,   [FIELD_UINT] = load_uint,
        [FIELD_DURATION] = load_duration, [FIELD_BYTES] = load_bytes, [FIELD_ENUM] = load_string,
        [FIELD_LIST] = load_list,         [FIELD_MAP] = load_map,
};
static_assert(ELEMENTSOF(kind_loaders) == FIELD_KIND_MAX, "every kind is loaded");

/* --- objects --- */

/* Returns the next name after prefix in a field's path, or false if the field is elsewhere. */
static bool child_name(const PolicyField *field, const char *prefix, char *name, size_t size) {
        const char *rest = field->path + strlen(prefix);
        size_t length;

        if (!str_starts(field->path, prefix))
                return false;
        length = strcspn(rest, ".");
        assert(length < size);
        (void)size;
        memcpy(name, rest, length);
        name[length] = '\0';
        return true;
}

static void load_allow(char *list, size_t size, Nearest *nearest, const char *name) {
        size_t length = strlen(list);

        (void)snprintf(list + length, size - length, "%s%s", length ? ", " : "", name);
        nearest_try(nearest, name);
}

static int fail_unknown(const Loader *l, const Spot *spot, const char *key, const char *path) {
        char allowed[800] = "", names[64][32];
        Nearest nearest = { .word = key };
        size_t n = 0;
        int r;

        for (size_t i = 0; spot->prefix[0] == '\0' && i < ELEMENTSOF(top_members); i++)
                load_allow(allowed, sizeof(allowed), &nearest, top_members[i].key);
        for (size_t i = 0; i < policy_fields_count && n < ELEMENTSOF(names); i++) {
                if (!child_name(&policy_fields[i], spot->prefix, names[n], sizeof(names[n])))
                        continue;
                /* Fields of one group are next to each other. */
                if (n > 0 && streq(names[n - 1], names[n]))
                        continue;
                load_allow(allowed, sizeof(allowed), &nearest, names[n++]);
        }
        r = error_set(l->reterr, ERROR_POLICY, 0, "%s: %s: unknown field%s%s%s", l->name, path,
                      nearest.best ? "; did you mean \"" : "", nearest.best ? nearest.best : "",
                      nearest.best ? "\"?" : "");
        return error_cure(l->reterr, r, "Allowed in %s: %s.", spot->path, allowed);
}

static bool is_group(const char *prefix) {
        for (size_t i = 0; i < policy_fields_count; i++)
                if (str_starts(policy_fields[i].path, prefix))
                        return true;
        return false;
}

static int load_object(Loader *l, const JsonValue *object, const Spot *spot);

/* Loads a member that is a field or a group of fields. A key that contains "." is neither. */
static int load_member(Loader *l, const JsonValue *member, const Spot *spot, const char *path) {
        const char *key = json_key(member);
        _cleanup_free_ char *name = str_format("%s%s", spot->prefix, key);
        _cleanup_free_ char *prefix = str_format("%s%s.", spot->prefix, key);
        const PolicyField *field;

        if (!name || !prefix)
                return error_oom(l->reterr);
        field = strchr(key, '.') ? NULL : policy_field(name);
        if (field)
                return kind_loaders[field->kind](l, field, member, path);
        if (!key[0] || strchr(key, '.') || !is_group(prefix))
                return fail_unknown(l, spot, key, path);
        if (json_type(member) != JSON_OBJECT)
                return fail_type(l, member, path, "an object");
        return load_object(l, member, &(const Spot){ path, prefix });
}

static int load_top_member(Loader *l, const JsonValue *member, const Spot *spot, const char *path) {
        for (size_t i = 0; i < ELEMENTSOF(top_members); i++)
                if (streq(json_key(member), top_members[i].key))
                        return top_members[i].load ? top_members[i].load(l, member, path) : 0;
        return load_member(l, member, spot, path);
}

static int load_object(Loader *l, const JsonValue *object, const Spot *spot) {
        bool top = spot->prefix[0] == '\0';

        for (const JsonValue *member = json_first(object); member; member = json_next(member)) {
                _cleanup_free_ char *path = json_path_key(spot->path, json_key(member));
                int r;

                if (!path)
                        return error_oom(l->reterr);
                r = top ? load_top_member(l, member, spot, path)
                        : load_member(l, member, spot, path);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int load_document(Loader *l, const JsonValue *document, const char *name) {
        int r;

        (void)str_quote(name, l->name, sizeof(l->name));
        if (json_type(document) != JSON_OBJECT)
                return fail_type(l, document, "$", "an object");
        r = load_base(l, document);
        return r < 0 ? r : load_object(l, document, &(const Spot){ "$", "" });
}

const char *policy_extended_file(const JsonValue *document) {
        const char *name = json_string(json_member(document, "extends"));

        return name && policy_name_is_file(name) ? name : NULL;
}

int policy_load_over(Policy *policy, const JsonValue *document, const char *name, Error *reterr) {
        Loader l = {
                .policy = policy, .origin = ORIGIN_CALLER, .extended = true, .reterr = reterr
        };

        return load_document(&l, document, name);
}

int policy_load_value(Policy *policy, const JsonValue *document, const char *name,
                      PolicyOrigin origin, Error *reterr) {
        Loader l = { .policy = policy, .origin = origin, .reterr = reterr };

        return load_document(&l, document, name);
}

int policy_load(Policy *policy, const char *bytes, size_t length, const char *name,
                PolicyOrigin origin, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        int r = json_parse(bytes, length, name, &document, reterr);

        return r < 0 ? r : policy_load_value(policy, json_root(document), name, origin, reterr);
}
