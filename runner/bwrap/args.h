/* SPDX-License-Identifier: Apache-2.0 */
/* Words of --args. */
#pragma once

#include "bwrap/parser.h"

/* Reads options, each word with a NUL behind it, and parses them. Returns like bwrap_parse(). */
int bwrap_read_args(Parser *p, int fd, Error *reterr);
