/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of rules and of refused hosts, which are printed on a terminal. */
#pragma once

#include <stdbool.h>

/* Whether a text contains neither control characters, also those of Unicode, nor characters that
 * change the direction of the text around them. A project may have written it. */
bool net_text_plain(const char *text);
