/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/helper-fields.h"

#include <errno.h>
#include <string.h>

#include "policy/path-fields.h"

static bool helper_name_valid(const char *name, size_t length) {
        static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

        return length > 0 && strspn(name, all) >= length && (name[0] < '0' || name[0] > '9');
}

int helper_split(const char *text, size_t *ret_length, char ret_module[HELPER_MODULE_MAX + 1],
                 const char **ret_why) {
        const char *colon = strrchr(text, ':');
        const char *name = colon ? colon + 1 : "";
        size_t file = strlen(text), length = strlen(name);

        if (colon && helper_name_valid(name, length)) {
                file = (size_t)(colon - text);
        } else {
                const char *slash = strrchr(text, '/');

                name = slash ? slash + 1 : text;
                length = strlen(name);
                if (length > 3 && streq(name + length - 3, ".py"))
                        length -= 3;
        }
        if (file == 0)
                return error_why(ret_why, "has no file; write FILE or FILE:MODULE");
        if (!helper_name_valid(name, length) || length > HELPER_MODULE_MAX)
                return error_why(ret_why, "has no name that Python can import (letters, digits and "
                                          "_, not starting with a digit)\nWrite FILE:MODULE.");
        *ret_length = file;
        memcpy(ret_module, name, length);
        ret_module[length] = '\0';
        return 0;
}

int helper_field_check(const char *text, const char **ret_why) {
        char module[HELPER_MODULE_MAX + 1];
        size_t length;
        int r = path_field_check(text, ret_why);

        if (r == 0)
                r = helper_split(text, &length, module, ret_why);
        if (r == 0 && (str_starts(module, "holt_") || streq(module, "host_tools")))
                return error_why(ret_why, "has the name of a module of holt\nWrite FILE:MODULE.");
        return r;
}

/* Compares the last helper, which is new, with the others. */
int helper_field_added(Policy *policy, const char *where, Error *reterr) {
        const StrList *helpers = &policy->helpers;
        char added[HELPER_MODULE_MAX + 1], module[HELPER_MODULE_MAX + 1];
        const char *why;
        size_t length;
        int r;

        if (helpers->count > HELPERS_MAX) {
                (void)error_set(reterr, ERROR_POLICY, 0, "%s: more than %d helpers", where,
                                HELPERS_MAX);
                return -E2BIG;
        }
        if (helper_split(helpers->items[helpers->count - 1], &length, added, &why) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i + 1 < helpers->count; i++)
                if (helper_split(helpers->items[i], &length, module, &why) == 0 &&
                    streq(module, added)) {
                        r = error_set(reterr, ERROR_POLICY, 0, "%s: two helpers are called %s",
                                      where, module);
                        return error_cure(reterr, r, "Give each a name of its own: FILE:MODULE");
                }
        return 0;
}
