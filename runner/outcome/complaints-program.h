/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the name of a program that a shell or another program did not find. */
#pragma once

#include <stddef.h>

/* If the line says that a program was not found, returns its name, which is a part of the line and
 * has no slash. *ret_length is its length. Otherwise returns NULL. The line ends with a NUL. */
const char *complaint_program(const char *line, size_t *ret_length);
