/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the contents of a session's database as members of a reply. The keeper's methods use it,
 * and so do verbs that read a session at rest. Each function returns 0 or a negative errno of the
 * store. On failure, the object may contain a part of the reply. */
#pragma once

#include "base/json-write.h"
#include "store/store.h"

enum { ANSWER_LIMIT_DEFAULT = 100, ANSWER_LIMIT_MAX = 1000 }; /* number of rows or keys */

/* Writes "value", as text or in base64. */
int answer_kv_get(Store *store, const char *key, bool base64, JsonWriter *w, Error *reterr);
/* Writes "keys" and "next". prefix and after may be "". */
int answer_kv_keys(Store *store, const char *prefix, const char *after, uint64_t limit,
                   JsonWriter *w, Error *reterr);
/* Write "rows" and "next". before may be 0; name and kind may be NULL. */
int answer_history(Store *store, uint64_t before, const char *name, uint64_t limit, JsonWriter *w,
                   Error *reterr);
int answer_audit(Store *store, uint64_t before, const char *kind, uint64_t limit, JsonWriter *w,
                 Error *reterr);
