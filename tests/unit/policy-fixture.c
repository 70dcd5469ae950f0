/* SPDX-License-Identifier: Apache-2.0 */
#include "policy-fixture.h"

#include "policy/load.h"

int load(Policy *policy, const char *text, PolicyOrigin origin, Error *reterr) {
        return policy_load(policy, text, strlen(text), "t.json", origin, reterr);
}

void preset(Policy *policy, const char *name) {
        Error error = { 0 };

        if (policy_preset(policy, name, "test", &error) != 0)
                fail_msg("%s", error.text);
}

char *value_of(const Policy *policy, const char *path) {
        const PolicyField *field = policy_field(path);
        char *all = policy_field_text(policy, field, 0);

        for (size_t i = 1; all; i++) {
                _cleanup_free_ char *text = policy_field_text(policy, field, i);
                char *more;

                if (!text)
                        return all;
                more = str_format("%s %s", all, text);
                free(all);
                all = more;
        }
        return strdup("-");
}

void assert_value(const Policy *policy, const char *path, const char *expected) {
        _cleanup_free_ char *value = value_of(policy, path);

        assert_string_equal(value, expected);
}
