/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/peek.h"

#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "base/util.h"

static const char blanks[] = " \t\r\n";

static const char *skip_blanks(const char *s) {
        return s + strspn(s, blanks);
}

/* Returns the byte behind the string at s; NULL if s is not a whole string. */
static const char *skip_string(const char *s) {
        if (*s++ != '"')
                return NULL;
        while (*s && *s != '"')
                s += *s == '\\' && s[1] ? 2 : 1;
        return *s ? s + 1 : NULL;
}

/* Returns the byte behind the member at s; NULL if the value is incomplete, an array or an object.
 */
static const char *skip_member(const char *s) {
        s = skip_string(skip_blanks(s));
        s = s ? skip_blanks(s) : NULL;
        if (!s || *s++ != ':')
                return NULL;
        s = skip_blanks(s);
        if (*s == '"')
                s = skip_string(s);
        else
                s += strcspn(s, " \t\r\n,}[]{\"");
        return s && *(s = skip_blanks(s)) && strchr(",}", *s) ? s : NULL;
}

static bool is_wanted(const char *member) {
        static const char *const wanted[] = { "\"id\"", "\"method\"" };

        member = skip_blanks(member);
        for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
                if (str_starts(member, wanted[i]))
                        return true;
        return false;
}

JsonDocument *rpc_peek(const char *head) {
        _cleanup_free_ char *text = malloc(strlen(head) + 2);
        const char *at = skip_blanks(head), *next;
        JsonDocument *document = NULL;
        size_t length = 0;
        Error ignored;

        if (!text || *at != '{')
                return NULL;
        for (; *at != '}' && (next = skip_member(at + 1)); at = next)
                if (is_wanted(at + 1)) {
                        text[length] = length == 0 ? '{' : ',';
                        memcpy(text + length + 1, at + 1, (size_t)(next - at - 1));
                        length += (size_t)(next - at);
                }
        if (length == 0)
                return NULL;
        text[length++] = '}';
        if (json_parse(text, length, "line", &document, &ignored) < 0)
                return NULL;
        return document;
}
