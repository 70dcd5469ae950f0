/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of rules and of refused hosts, which are printed on a terminal. */
#pragma once

#include <stdbool.h>

/* Whether a text is safe to print on a terminal. It must be free of control characters, those of
 * Unicode included, and of characters that change the direction of text. A project may have written
 * the text. */
bool net_text_plain(const char *text);
