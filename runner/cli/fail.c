/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fail.h"

#include <stdio.h>
#include <string.h>

#include "base/json-write.h"
#include "base/strings.h"
#include "cli/report.h"
#include "outcome/result.h"

const char *fail_find_option(int argc, char *const *argv, const char *name, const char **ret_next) {
        for (int i = 1; i < argc && !streq(argv[i], "--"); i++)
                if (str_starts(argv[i], name) && strchr("=", argv[i][strlen(name)])) {
                        *ret_next = i + 1 < argc ? argv[i + 1] : "";
                        return argv[i] + strlen(name);
                }
        return NULL;
}

bool fail_wants_json(int argc, char *const *argv) {
        const char *next, *json = fail_find_option(argc, argv, "--json", &next);

        return json && json[0] == '\0';
}

int fail_print(const Error *error, bool json) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (!json) {
                error_print(error, stderr);
                return error_exit_code(error);
        }
        json_write_object(&w, NULL);
        json_write_int(&w, "holt", 1);
        outcome_write_end(&w, cause_name(CAUSE_ERROR), error_exit_code(error));
        result_write_error(&w, error);
        json_write_end(&w);
        (void)json_write_finish(&w);
        report_print_document(&w, stderr);
        return error_exit_code(error);
}
