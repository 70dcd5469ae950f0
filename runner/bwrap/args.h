/* SPDX-License-Identifier: Apache-2.0 */
/* Reads options from the descriptor of --args. */
#pragma once

#include "bwrap/parser.h"

/* Reads options, each word followed by a NUL, and parses them. Returns like bwrap_parse(). */
int bwrap_read_args(Parser *p, int fd, Error *reterr);
