/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decodes the percent signs of a URI's path (RFC 3986). Returns NULL if one of them is wrong or
 * stands for a NUL, if the text is not UTF-8, or without memory. The caller owns the result. */
char *uri_decode(const char *text);
