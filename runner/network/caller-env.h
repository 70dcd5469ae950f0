/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's environment on its way to holt-gateway, by way of a keeper.
 *
 * A keeper must not obey the variables of whoever has started it, so it gets each of them under
 * another name. It passes them on to holt-gateway, which may need one as a credential, and erases
 * them. */
#pragma once

/* Returns the caller's variables under their other names, and before them `first`, unless it is
 * NULL. The array ends with NULL. It is never freed: the process executes another program. Returns
 * NULL without memory. */
char **caller_env_wrap(const char *first);
/* Returns the caller's variables under their own names, in an array that ends with NULL. In a
 * process without wrapped ones, it is the environment of the process. The strings are borrowed; the
 * array is owned by the caller. Returns NULL without memory. */
char **caller_env_unwrap(void);
/* Returns the value of one of the caller's variables, or NULL. Borrowed. */
const char *caller_env_get(const char *name);
/* Erases the value of a variable of this process, whose environment the caller's is. */
void caller_env_erase(const char *name);
/* Erases the wrapped variables of this process. */
void caller_env_forget(void);
