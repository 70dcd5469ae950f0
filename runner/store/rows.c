/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rows.h"

#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strings.h"

typedef struct Listing {
        StrList keys;
        JsonWriter *writer;
        uint64_t count, last;
} Listing;

/* --- kv --- */

int answer_kv_get(Store *store, const char *key, bool base64, JsonWriter *w, Error *reterr) {
        _cleanup_free_ char *value = NULL, *encoded = NULL;
        size_t length = 0;
        int r = store_kv_get(store, key, &value, &length, reterr);

        if (r < 0)
                return r;
        if (!base64) {
                json_write_bytes(w, "value", value, length);
                return 0;
        }
        encoded = base64_encode(value, length);
        if (!encoded)
                return error_oom(reterr);
        json_write_string(w, "value", encoded);
        return 0;
}

static int add_key(void *data, const char *key, size_t value_length) {
        Listing *listing = data;

        (void)value_length;
        return strlist_add(&listing->keys, key);
}

static void write_next_key(JsonWriter *w, const StrList *keys, uint64_t limit) {
        json_write_string(w, "next",
                          keys->count == limit && limit > 0 ? keys->items[limit - 1] : NULL);
}

int answer_kv_keys(Store *store, const char *prefix, const char *after, uint64_t limit,
                   JsonWriter *w, Error *reterr) {
        Listing listing = { 0 };
        int r = store_kv_keys(store, prefix, after, limit, add_key, &listing, reterr);

        if (r == 0) {
                json_write_array(w, "keys");
                for (size_t i = 0; i < listing.keys.count; i++)
                        json_write_string(w, NULL, listing.keys.items[i]);
                json_write_end(w);
                write_next_key(w, &listing.keys, limit);
        }
        strlist_clear(&listing.keys);
        return r;
}

/* --- history and audit --- */

static Listing rows_begin(JsonWriter *w) {
        json_write_array(w, "rows");
        return (Listing){ .writer = w };
}

static void rows_end(const Listing *listing, uint64_t limit) {
        json_write_end(listing->writer);
        if (listing->count == limit && limit > 0)
                json_write_uint(listing->writer, "next", listing->last);
        else
                json_write_null(listing->writer, "next");
}

/* Begins the object of a row, which the caller ends. */
static JsonWriter *rows_add(Listing *listing, uint64_t id) {
        listing->count++;
        listing->last = id;
        json_write_object(listing->writer, NULL);
        json_write_uint(listing->writer, "id", id);
        return listing->writer;
}

/* Writes an object that the store has as JSON text. Clients parse a reply up to a limited depth. So
 * the text is parsed here inside as many levels as it has in a reply. Any other text becomes a
 * member "text"; only a damaged database contains such a text. Returns 0 or -ENOMEM. */
static int rows_write_object(JsonWriter *w, const char *key, const char *text) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        _cleanup_free_ char *around = text ? str_format("[[[[%s]]]]", text) : NULL;
        const JsonValue *value;
        int r;

        if (!text) {
                json_write_null(w, key);
                return 0;
        }
        if (!around)
                return -ENOMEM;
        r = json_parse(around, strlen(around), key, &document, NULL);
        value = r == 0 ? json_root(document) : NULL;
        for (int i = 0; i < 4; i++)
                value = json_first(value);
        if (value && json_type(value) == JSON_OBJECT) {
                json_copy(w, key, value);
        } else {
                json_write_object(w, key);
                json_write_string(w, "text", text);
                json_write_end(w);
        }
        return r == -ENOMEM ? r : 0;
}

static int add_history(void *data, const StoreHistory *row) {
        JsonWriter *w = rows_add(data, row->id);
        int r;

        json_write_string(w, "name", row->name);
        json_write_uint(w, "started_ms", row->started_ms);
        json_write_uint_or_null(w, "ended_ms", row->ended_ms);
        r = rows_write_object(w, "params", row->params);
        if (r == 0)
                r = rows_write_object(w, "result", row->result);
        json_write_end(w);
        return r;
}

int answer_history(Store *store, uint64_t before, const char *name, uint64_t limit, JsonWriter *w,
                   Error *reterr) {
        Listing listing = rows_begin(w);
        int r = store_history_list(store, before, name, limit, add_history, &listing, reterr);

        rows_end(&listing, limit);
        return r;
}

static int add_audit(void *data, const StoreAudit *row) {
        JsonWriter *w = rows_add(data, row->id);
        int r;

        json_write_uint(w, "at_ms", row->at_ms);
        json_write_string(w, "kind", row->kind);
        r = rows_write_object(w, "detail", row->detail);
        json_write_end(w);
        return r;
}

int answer_audit(Store *store, uint64_t before, const char *kind, uint64_t limit, JsonWriter *w,
                 Error *reterr) {
        Listing listing = rows_begin(w);
        int r = store_audit_list(store, before, kind, limit, add_audit, &listing, reterr);

        rows_end(&listing, limit);
        return r;
}
