/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strings.h"
#include "policy/routes/route.h"

/* --- the table as a tree --- */

/* The functions that write groups and fields. Fields of one group are next to each other in the
 * table. */
typedef struct Writer {
        JsonWriter *w;
        const Policy *policy, *preset; /* for a document */
        bool (*wanted)(const struct Writer *writer, const PolicyField *field);
        void (*begin)(JsonWriter *w, const char *name);
        void (*end)(JsonWriter *w);
        int (*field)(const struct Writer *writer, const PolicyField *field, const char *name);
} Writer;

/* Returns the end of the fields whose paths share the first `length` bytes with field i. */
static size_t group_end(size_t i, size_t length) {
        const char *prefix = policy_fields[i].path;

        while (i < policy_fields_count && strncmp(policy_fields[i].path, prefix, length) == 0)
                i++;
        return i;
}

/* Writes the fields from i to end. Their paths share the first `depth` bytes. */
static int write_fields(const Writer *writer, size_t i, size_t end, size_t depth) {
        while (i < end) {
                const PolicyField *field = &policy_fields[i];
                const char *name = field->path + depth, *dot = strchr(name, '.');
                size_t next = dot ? group_end(i, (size_t)(dot + 1 - field->path)) : i + 1;
                bool wanted = false;
                int r = 0;

                for (size_t j = i; j < next; j++)
                        wanted = wanted || writer->wanted(writer, &policy_fields[j]);
                if (wanted && !dot)
                        r = writer->field(writer, field, name);
                if (wanted && dot) {
                        _cleanup_free_ char *group = strndup(name, (size_t)(dot - name));

                        if (!group)
                                return -ENOMEM;
                        writer->begin(writer->w, group);
                        r = write_fields(writer, i, next, (size_t)(dot + 1 - field->path));
                        writer->end(writer->w);
                }
                if (r < 0)
                        return r;
                i = next;
        }
        return 0;
}

/* --- the schema --- */

#define ENV_NAME_PATTERN "^[A-Za-z_][A-Za-z0-9_]*$"

static void schema_string(JsonWriter *w, const PolicyField *field) {
        json_write_string(w, "type", "string");
        json_write_uint(w, "minLength", 1);
        if (field->kind == FIELD_PATH)
                json_write_uint(w, "maxLength", POLICY_PATH_MAX);
}

static void schema_bool(JsonWriter *w, const PolicyField *field) {
        (void)field;
        json_write_string(w, "type", "boolean");
}

/* Writes one alternative of a number. */
static void schema_integer(JsonWriter *w, const PolicyField *field) {
        json_write_object(w, NULL);
        json_write_string(w, "type", "integer");
        json_write_uint(w, "minimum", field->min);
        if (field->max)
                json_write_uint(w, "maximum", field->max);
        json_write_end(w);
}

static void schema_pattern(JsonWriter *w, const PolicyField *field, const char *pattern) {
        char text[120];

        (void)snprintf(text, sizeof(text), field->none ? "^(none|%s)$" : "^(%s)$", pattern);
        json_write_string(w, "type", "string");
        json_write_string(w, "pattern", text);
}

static void schema_uint(JsonWriter *w, const PolicyField *field) {
        json_write_array(w, "anyOf");
        schema_integer(w, field);
        if (field->none) {
                json_write_object(w, NULL);
                json_write_string(w, "const", "none");
                json_write_end(w);
        }
        json_write_end(w);
}

static void schema_duration(JsonWriter *w, const PolicyField *field) {
        schema_pattern(w, field, DURATION_PATTERN);
}

static void schema_bytes(JsonWriter *w, const PolicyField *field) {
        json_write_array(w, "anyOf");
        schema_integer(w, field);
        json_write_object(w, NULL);
        schema_pattern(w, field, BYTES_PATTERN);
        json_write_end(w);
        json_write_end(w);
}

static void schema_enum(JsonWriter *w, const PolicyField *field) {
        json_write_array(w, "enum");
        for (size_t i = 0; field->names[i]; i++)
                json_write_string(w, NULL, field->names[i]);
        json_write_end(w);
}

static void schema_list(JsonWriter *w, const PolicyField *field) {
        json_write_string(w, "type", "array");
        json_write_uint(w, "maxItems", POLICY_LIST_MAX);
        json_write_object(w, "items");
        if (field->objects)
                route_schema_write(w);
        else
                schema_string(w, field);
        json_write_end(w);
}

static void schema_map(JsonWriter *w, const PolicyField *field) {
        (void)field;
        json_write_string(w, "type", "object");
        json_write_uint(w, "maxProperties", POLICY_LIST_MAX);
        json_write_object(w, "propertyNames");
        json_write_string(w, "pattern", ENV_NAME_PATTERN);
        json_write_end(w);
        json_write_object(w, "additionalProperties");
        json_write_string(w, "type", "string");
        json_write_end(w);
}

static void (*const kind_schemas[])(JsonWriter *w, const PolicyField *field) = {
        [FIELD_PATH] = schema_string, [FIELD_BOOL] = schema_bool,
        [FIELD_UINT] = schema_uint,   [FIELD_DURATION] = schema_duration,
        [FIELD_BYTES] = schema_bytes, [FIELD_ENUM] = schema_enum,
        [FIELD_LIST] = schema_list,   [FIELD_MAP] = schema_map,
};
static_assert(ELEMENTSOF(kind_schemas) == FIELD_KIND_MAX, "every kind has a schema");

static bool schema_wanted(const Writer *writer, const PolicyField *field) {
        (void)writer;
        (void)field;
        return true;
}

static void schema_begin(JsonWriter *w, const char *name) {
        json_write_object(w, name);
        json_write_string(w, "type", "object");
        json_write_bool(w, "additionalProperties", false);
        json_write_object(w, "properties");
}

static void schema_end(JsonWriter *w) {
        json_write_end(w);
        json_write_end(w);
}

static int schema_field(const Writer *writer, const PolicyField *field, const char *name) {
        json_write_object(writer->w, name);
        json_write_string(writer->w, "description",
                          field->document_help ? field->document_help : field->help);
        kind_schemas[field->kind](writer->w, field);
        json_write_end(writer->w);
        return 0;
}

static void schema_text(JsonWriter *w, const char *name, const char *description) {
        json_write_object(w, name);
        json_write_string(w, "description", description);
        json_write_string(w, "type", "string");
        json_write_end(w);
}

static void schema_top(JsonWriter *w) {
        json_write_object(w, "holt");
        json_write_string(w, "description", "version of the document format");
        json_write_uint(w, "const", 1);
        json_write_end(w);
        json_write_object(w, "extends");
        json_write_string(w, "description", "preset or policy file to start from");
        json_write_array(w, "anyOf");
        json_write_object(w, NULL);
        json_write_array(w, "enum");
        for (size_t i = 0; i < policy_presets_count; i++)
                json_write_string(w, NULL, policy_presets[i].name);
        json_write_end(w);
        json_write_end(w);
        json_write_object(w, NULL);
        json_write_string(w, "type", "string");
        json_write_string(w, "pattern", "/|\\.json$");
        json_write_end(w);
        json_write_end(w);
        json_write_end(w);
        schema_text(w, "description", "description for people; holt ignores it");
        schema_text(w, "$schema", "URL of this schema, for editors");
}

void policy_schema_members(JsonWriter *w) {
        const Writer writer = {
                .w = w,
                .wanted = schema_wanted,
                .begin = schema_begin,
                .end = schema_end,
                .field = schema_field,
        };

        json_write_string(w, "type", "object");
        json_write_bool(w, "additionalProperties", false);
        json_write_object(w, "properties");
        schema_top(w);
        if (write_fields(&writer, 0, policy_fields_count, 0) < 0)
                w->error = -ENOMEM;
        json_write_end(w);
}

void policy_schema_required(JsonWriter *w) {
        json_write_array(w, "required");
        json_write_string(w, NULL, "holt");
        json_write_end(w);
}

void policy_schema_print(JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
        json_write_string(w, "title", "holt policy");
        policy_schema_required(w);
        policy_schema_members(w);
        json_write_end(w);
}

/* --- a policy as a document --- */

static const StrList *schema_list_of(const Policy *policy, const PolicyField *field) {
        return (const StrList *)(const void *)((const char *)policy + field->offset);
}

static bool schema_is_list(const PolicyField *field) {
        return field->kind == FIELD_LIST || field->kind == FIELD_MAP;
}

/* Whether the document must empty a list first. A document only adds, so the preset's items would
 * come back otherwise. */
static bool list_was_emptied(const Writer *writer, const PolicyField *field) {
        const StrList *list = schema_list_of(writer->policy, field);
        const StrList *base = schema_list_of(writer->preset, field);

        if (!field->none)
                return false;
        for (size_t i = 0; i < base->count; i++)
                if (i >= list->count || !streq(list->items[i], base->items[i]))
                        return true;
        return false;
}

static bool document_wanted(const Writer *writer, const PolicyField *field) {
        _cleanup_free_ char *text = NULL;

        if (schema_is_list(field))
                return schema_list_of(writer->policy, field)->count > 0 ||
                       list_was_emptied(writer, field);
        if (field->kind != FIELD_PATH)
                return true;
        text = policy_field_text(writer->policy, field, 0);
        return text != NULL;
}

static void document_begin(JsonWriter *w, const char *name) {
        json_write_object(w, name);
}

static int document_object(JsonWriter *w, const char *text) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        int r = json_parse(text, strlen(text), "policy", &document, NULL);

        if (r == 0)
                json_copy(w, NULL, json_root(document));
        return r;
}

static int document_list(const Writer *writer, const PolicyField *field, const char *name) {
        const StrList *list = schema_list_of(writer->policy, field);
        int r = 0;

        json_write_array(writer->w, name);
        if (list_was_emptied(writer, field))
                json_write_string(writer->w, NULL, "none");
        for (size_t i = 0; r == 0 && i < list->count; i++)
                if (field->objects && list->items[i][0] == '{')
                        r = document_object(writer->w, list->items[i]);
                else
                        json_write_string(writer->w, NULL, list->items[i]);
        json_write_end(writer->w);
        return r;
}

static int document_map(const Writer *writer, const PolicyField *field, const char *name) {
        const StrList *list = schema_list_of(writer->policy, field);

        json_write_object(writer->w, name);
        for (size_t i = 0; i < list->count; i++) {
                const char *value = strchr(list->items[i], '=') + 1;
                size_t length = (size_t)(value - 1 - list->items[i]);
                _cleanup_free_ char *key = strndup(list->items[i], length);

                if (!key)
                        return -ENOMEM;
                json_write_string(writer->w, key, value);
        }
        json_write_end(writer->w);
        return 0;
}

static int document_scalar(const Writer *writer, const PolicyField *field, const char *name) {
        _cleanup_free_ char *text = policy_field_text(writer->policy, field, 0);
        uint64_t number;

        if (!text)
                return -ENOMEM;
        if (field->kind == FIELD_BOOL)
                json_write_bool(writer->w, name, streq(text, "true"));
        else if (field->kind == FIELD_UINT && str_to_uint(text, UINT64_MAX, &number) == 0)
                json_write_uint(writer->w, name, number);
        else
                json_write_string(writer->w, name, text);
        return 0;
}

static int document_field(const Writer *writer, const PolicyField *field, const char *name) {
        if (field->kind == FIELD_MAP)
                return document_map(writer, field, name);
        if (field->kind != FIELD_LIST)
                return document_scalar(writer, field, name);
        return document_list(writer, field, name);
}

int policy_document_print(const Policy *policy, JsonWriter *w) {
        _cleanup_(policy_clear) Policy preset = { 0 };
        const Writer writer = {
                .w = w,
                .policy = policy,
                .preset = &preset,
                .wanted = document_wanted,
                .begin = document_begin,
                .end = json_write_end,
                .field = document_field,
        };
        const char *name = policy->preset ? policy->preset : POLICY_PRESET_DEFAULT;
        int r;

        r = policy_preset(&preset, name, "", NULL);
        if (r < 0)
                return r;
        json_write_object(w, NULL);
        json_write_uint(w, "holt", 1);
        json_write_string(w, "extends", name);
        r = write_fields(&writer, 0, policy_fields_count, 0);
        if (r < 0)
                return r;
        json_write_end(w);
        return 0;
}
