/* SPDX-License-Identifier: Apache-2.0 */
/* Grants: rules that a caller adds to a session that exists. */
#pragma once

#include "session/settings.h"

/* The prefix of a grant for the network; a rule or a set follows (policy/net/rules.h). */
#define ALLOW_NET "net:"

/* Checks a grant. Returns 0, and its rule in *ret_rule, which points into text; or -EINVAL with an
 * ERROR_USAGE. */
int allow_parse(const char *text, const char **ret_rule, Error *reterr);
/* Reads the grants of a request, with their prefix, into the rules ret (zeroed), which the caller
 * clears even on failure. Returns 0; -EINVAL with an ERROR_USAGE; or -ENOMEM. */
int allow_read(const StrList *grants, StrList *ret, Error *reterr);
/* Adds the rules to the settings and stores them, with an audit row for each. asked: the rules
 * answer a question. A session without a network gets one. Returns 0, or a negative errno if
 * nothing has changed. */
int allow_store(Settings *settings, Store *store, bool asked, const StrList *rules, Error *reterr);
/* Adds one-time grants of a live session: to the settings in memory, and an audit row for each. id:
 * the number of the first; the others get the next numbers. Returns 0, or a negative errno if
 * nothing has changed. */
int allow_once(Settings *settings, Store *store, uint32_t id, bool asked, const StrList *rules,
               Error *reterr);
/* Does the same as allow_store() for a session at rest. grants: with their prefix. Returns
 * -EWOULDBLOCK with an ERROR_BUSY if the session is live, or another negative errno. */
int allow_at_rest(const char *session, const StrList *grants, Error *reterr);
/* Refuses a one-time grant to a session at rest. grants: with their prefix. Returns -EINVAL with
 * an ERROR_USAGE, or -ENOMEM. */
int allow_refuse_once(const char *session, const StrList *grants, Error *reterr);
/* Refuses a one-time grant to a session without a network. rule: the first one. Returns -EINVAL
 * with an ERROR_USAGE. */
int allow_refuse_networkless(const char *session, const char *rule, Error *reterr);
/* Refuses a grant to a session on the host's network, which needs none. Returns 0 or -EINVAL. */
int allow_check_mode(const Settings *settings, Error *reterr);
