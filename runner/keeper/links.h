/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a live session; see links.c. */
#pragma once

#include "keeper/keeper.h"
#include "links/link.h"

enum {
        SESSION_LINKS_MAX = 256, /* Links of a session that have not expired. */
        INSIDE_LINKS_MAX = 64,   /* Of them, those that code inside has made. */
        LINK_USES_MAX = 64,      /* Requests at a time. */
};
#define LINK_FOR_MAX_MS (7ULL * 24 * 3600 * 1000)
#define LINK_FOR_MS (3600ULL * 1000)
/* Code inside makes no shorter links, which it could make again and again; the audit has a row for
 * each. */
#define INSIDE_LINK_FOR_MIN_MS (60ULL * 1000)
#define INSIDE_LINK_FOR_MAX_MS (24ULL * 3600 * 1000)
#define LINK_SIZE_MAX (1ULL << 40)
#define LINK_SIZE (100ULL << 20)

typedef struct KeeperLink {
        struct KeeperLink *next;
        Link link;
        uint64_t until;    /* usec of time_now_usec() at which it ends. */
        uint64_t max_size; /* Bytes of an upload. */
        uint64_t requests; /* That have ended. */
        bool used;         /* An upload was stored. */
        bool inside;       /* Code inside has made it. */
} KeeperLink;

typedef struct Links Links;

/* Makes a link to a path below /mnt/files, which must pass link_path_fits(). *ret is borrowed.
 * Returns 0 or a negative errno. */
int keeper_link(Keeper *keeper, const char *path, bool upload, uint64_t for_ms, uint64_t max_size,
                const KeeperLink **ret, Error *reterr);
/* Writes the members that describe a link, with its URL. */
void keeper_write_link(const Keeper *keeper, const KeeperLink *link, JsonWriter *w);
/* Returns the first of the links that have not expired, or NULL. */
const KeeperLink *keeper_first_link(Keeper *keeper);
/* Revokes a link, or all of them if id is 0, and ends their requests. Returns how many there were.
 */
size_t keeper_revoke_links(Keeper *keeper, uint32_t id);

/* Takes a path below /mnt/files, absolute or relative to it, and returns the relative one. Returns
 * NULL, with an ERROR_USAGE, if no link can have it. */
const char *keeper_link_path(const char *path, Error *reterr);
/* Makes a link for code inside (inside/bridge.h). data: the keeper. */
int keeper_link_inside(void *data, const char *path, uint64_t for_ms, JsonWriter *w, Error *reterr);

/* Whether a link can be used or is in use, so that the session stays live. */
bool keeper_links_hold(const Keeper *keeper);
/* Returns 0 or -ENOMEM. Call it before any command runs. */
int keeper_links_new(Keeper *keeper, Error *reterr);
void keeper_links_free(Keeper *keeper);
