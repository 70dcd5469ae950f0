/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-scan.h"
#include "base/json-write.h"
#include "base/strings.h"

struct JsonDocument {
        cJSON *root;
};

/* --- equal keys --- */

/* The position of the walk. It becomes a JSON path only if an error needs one. */
typedef struct Place {
        const struct Place *above;
        const cJSON *value; /* has a key if the parent is an object */
        size_t index;       /* used if the parent is an array */
} Place;

static char *json_place_path(const Place *place) {
        _cleanup_free_ char *above = NULL;

        if (!place->above)
                return strdup("$");
        above = json_place_path(place->above);
        if (!above)
                return NULL;
        if (place->value->string)
                return json_path_key(above, place->value->string);
        return json_path_index(above, place->index);
}

static int fail_duplicate(const Place *place, const char *key, const char *name, Error *reterr) {
        _cleanup_free_ char *object = json_place_path(place);
        _cleanup_free_ char *path = object ? json_path_key(object, key) : NULL;
        char quoted[400];

        if (!path)
                return error_oom(reterr);
        return error_set(reterr, ERROR_POLICY, 0, "%s: %s is a duplicate key",
                         str_quote(name, quoted, sizeof(quoted)), path);
}

static int compare_keys(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys are sorted first, because a hostile object may have very many. */
static int check_keys(const Place *place, size_t count, const char *name, Error *reterr) {
        _cleanup_free_ const char **keys = NULL;
        size_t n = 0;

        if (count < 2 || !cJSON_IsObject(place->value))
                return 0;
        keys = calloc(count, sizeof(*keys));
        if (!keys)
                return error_oom(reterr);
        for (const cJSON *child = place->value->child; child; child = child->next)
                keys[n++] = child->string;
        qsort(keys, n, sizeof(*keys), compare_keys);
        for (size_t i = 1; i < n; i++)
                if (streq(keys[i - 1], keys[i]))
                        return fail_duplicate(place, keys[i], name, reterr);
        return 0;
}

static int check_tree(const Place *place, const char *name, Error *reterr) {
        size_t count = 0;

        for (const cJSON *child = place->value->child; child; child = child->next) {
                const Place below = { place, child, count++ };
                int r = child->child ? check_tree(&below, name, reterr) : 0;

                if (r < 0)
                        return r;
        }
        return check_keys(place, count, name, reterr);
}

/* --- documents --- */

JsonDocument *json_free(JsonDocument *document) {
        if (document)
                cJSON_Delete(document->root);
        free(document);
        return NULL;
}

static int document_make(const char *bytes, size_t length, JsonDocument **ret, Error *reterr) {
        JsonDocument *document = calloc(1, sizeof(*document));

        if (!document)
                return error_oom(reterr);
        document->root = cJSON_ParseWithLengthOpts(bytes, length, NULL, false);
        if (!document->root) {
                /* The scanner has accepted the text, so only memory can be missing. */
                json_free(document);
                return error_oom(reterr);
        }
        *ret = document;
        return 0;
}

int json_parse(const char *bytes, size_t length, const char *name, JsonDocument **ret,
               Error *reterr) {
        return json_parse_large(bytes, length, JSON_SIZE_MAX, name, ret, reterr);
}

int json_parse_large(const char *bytes, size_t length, size_t max, const char *name,
                     JsonDocument **ret, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        char quoted[400];
        int r;

        if (length > max) {
                (void)error_set(reterr, ERROR_POLICY, 0, "%s: more than %zu KiB of JSON",
                                str_quote(name, quoted, sizeof(quoted)), max >> 10);
                return -EFBIG;
        }
        r = json_scan(bytes, length, name, reterr);
        if (r < 0)
                return r;
        r = document_make(bytes, length, &document, reterr);
        if (r < 0)
                return r;
        assert(document);
        r = check_tree(&(const Place){ NULL, document->root, 0 }, name, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(document);
        return 0;
}

/* --- values --- */

static const cJSON *json_node(const JsonValue *value) {
        return (const cJSON *)(const void *)value;
}

static const JsonValue *from_node(const cJSON *item) {
        return (const JsonValue *)(const void *)item;
}

const JsonValue *json_root(const JsonDocument *document) {
        return from_node(document->root);
}

JsonType json_type(const JsonValue *value) {
        static const struct {
                int bits;
                JsonType type;
        } types[] = {
                { cJSON_NULL, JSON_NULL },     { cJSON_True | cJSON_False, JSON_BOOL },
                { cJSON_Number, JSON_NUMBER }, { cJSON_String, JSON_STRING },
                { cJSON_Array, JSON_ARRAY },   { cJSON_Object, JSON_OBJECT },
        };

        static_assert(ELEMENTSOF(types) == JSON_TYPE_MAX, "every type");
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (json_node(value)->type & types[i].bits)
                        return types[i].type;
        assert(false);
        return JSON_NULL;
}

const char *json_type_name(JsonType type) {
        static const char *const names[] = {
                [JSON_NULL] = "null",       [JSON_BOOL] = "true or false",
                [JSON_NUMBER] = "a number", [JSON_STRING] = "a string",
                [JSON_ARRAY] = "an array",  [JSON_OBJECT] = "an object",
        };

        static_assert(ELEMENTSOF(names) == JSON_TYPE_MAX, "every type has a name");
        return names[type];
}

/* value may be missing: NULL. */
static bool json_value_is(const JsonValue *value, JsonType type) {
        return value && json_type(value) == type;
}

const JsonValue *json_first(const JsonValue *value) {
        return value ? from_node(json_node(value)->child) : NULL;
}

const JsonValue *json_next(const JsonValue *value) {
        return from_node(json_node(value)->next);
}

const char *json_key(const JsonValue *value) {
        return json_node(value)->string;
}

const JsonValue *json_member(const JsonValue *object, const char *key) {
        if (!json_value_is(object, JSON_OBJECT))
                return NULL;
        for (const JsonValue *member = json_first(object); member; member = json_next(member))
                if (streq(json_key(member), key))
                        return member;
        return NULL;
}

const char *json_string(const JsonValue *value) {
        return json_value_is(value, JSON_STRING) ? json_node(value)->valuestring : NULL;
}

int json_bool(const JsonValue *value, bool *ret) {
        if (!json_value_is(value, JSON_BOOL))
                return -EINVAL;
        *ret = (json_node(value)->type & cJSON_True) != 0;
        return 0;
}

int json_uint(const JsonValue *value, uint64_t max, uint64_t *ret) {
        double number;

        if (json_number(value, &number) < 0 || !json_is_integer(number))
                return -EINVAL;
        if (number < 0 || number > (double)JSON_INTEGER_MAX || (uint64_t)number > max)
                return -ERANGE;
        *ret = (uint64_t)number;
        return 0;
}

int json_int(const JsonValue *value, int64_t *ret) {
        double number;

        if (json_number(value, &number) < 0 || !json_is_integer(number))
                return -EINVAL;
        if (fabs(number) > (double)JSON_INTEGER_MAX)
                return -ERANGE;
        *ret = (int64_t)number;
        return 0;
}

int json_number(const JsonValue *value, double *ret) {
        if (!json_value_is(value, JSON_NUMBER))
                return -EINVAL;
        *ret = json_node(value)->valuedouble;
        return 0;
}

const char *json_member_string(const JsonValue *object, const char *key) {
        return json_string(json_member(object, key));
}

const char *json_member_text(const JsonValue *object, const char *key) {
        const char *text = json_member_string(object, key);

        return text ? text : "";
}

uint64_t json_member_uint(const JsonValue *object, const char *key) {
        uint64_t number = 0;

        (void)json_uint(json_member(object, key), JSON_INTEGER_MAX, &number);
        return number;
}

/* --- paths --- */

static bool json_is_plain(const char *key) {
        static const char plain[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789$-";

        return key[0] && !json_is_digit(key[0]) && key[strspn(key, plain)] == '\0';
}

char *json_path_key(const char *path, const char *key) {
        char quoted[160];

        if (json_is_plain(key) && strlen(key) < sizeof(quoted))
                return str_format("%s.%s", path, key);
        return str_format("%s[\"%s\"]", path, str_quote(key, quoted, sizeof(quoted)));
}

char *json_path_index(const char *path, size_t i) {
        return str_format("%s[%zu]", path, i);
}

static void copy_number(JsonWriter *w, const char *key, const JsonValue *value) {
        int64_t integer = 0;
        double number = 0;

        (void)json_number(value, &number);
        if (json_int(value, &integer) == 0 && !(number == 0 && signbit(number)))
                json_write_int(w, key, integer);
        else
                json_write_number(w, key, number);
}

void json_copy(JsonWriter *w, const char *key, const JsonValue *value) {
        const JsonType type = json_type(value);
        bool yes = false;

        if (type == JSON_OBJECT || type == JSON_ARRAY) {
                if (type == JSON_OBJECT)
                        json_write_object(w, key);
                else
                        json_write_array(w, key);
                for (const JsonValue *item = json_first(value); item; item = json_next(item))
                        json_copy(w, json_key(item), item);
                json_write_end(w);
        } else if (type == JSON_STRING) {
                json_write_string(w, key, json_string(value));
        } else if (type == JSON_NUMBER) {
                copy_number(w, key, value);
        } else if (type == JSON_BOOL) {
                (void)json_bool(value, &yes);
                json_write_bool(w, key, yes);
        } else {
                json_write_null(w, key);
        }
}
