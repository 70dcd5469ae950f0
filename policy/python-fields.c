/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/python-fields.h"

#include <errno.h>
#include <string.h>

int python_index_check(const char *text, const char **ret_why) {
        const char *host = strstr(text, "://");

        if (!str_starts(text, "https://") && !str_starts(text, "http://"))
                return error_why(ret_why, "must begin with https:// or http://\n"
                                          "Write it like https://pypi.org/simple");
        for (const char *c = text; *c; c++)
                if ((unsigned char)*c <= 0x20 || *c == 0x7f)
                        return error_why(ret_why, "contains a space or a control character");
        if (strcspn(host + 3, "/?#") == 0)
                return error_why(ret_why, "has no host\nWrite it like https://pypi.org/simple");
        if (memchr(host + 3, '@', strcspn(host + 3, "/?#")))
                return error_why(ret_why, "contains a password, which commands could read\n"
                                          "Use a route: bridge.routes in man 5 holt-policy");
        return 0;
}

const char *const python_install[] = {
        [PYTHON_INSTALL_AUTO] = "auto",
        [PYTHON_INSTALL_ASK] = "ask",
        [PYTHON_INSTALL_NEVER] = "never",
        NULL,
};
const unsigned char python_install_ranks[] = { 0, 1, 2 };
