/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's database says of it, as members of an answer's object: the keeper's methods give
 * them, and so do verbs that look into a session at rest. Each returns 0 or a negative errno of the
 * store's; on failure the object may have a part of the answer. */
#pragma once

#include "base/json-write.h"
#include "store/store.h"

enum { ANSWER_LIMIT_DEFAULT = 100, ANSWER_LIMIT_MAX = 1000 }; /* rows, keys */

/* value, as text or in base64 */
int answer_kv_get(Store *store, const char *key, bool base64, JsonWriter *w, Error *reterr);
/* keys, next; prefix and after may be "". */
int answer_kv_keys(Store *store, const char *prefix, const char *after, uint64_t limit,
                   JsonWriter *w, Error *reterr);
/* rows, next; before may be 0, name and kind NULL. */
int answer_history(Store *store, uint64_t before, const char *name, uint64_t limit, JsonWriter *w,
                   Error *reterr);
int answer_audit(Store *store, uint64_t before, const char *kind, uint64_t limit, JsonWriter *w,
                 Error *reterr);
