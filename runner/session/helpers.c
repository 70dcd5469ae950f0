/* SPDX-License-Identifier: Apache-2.0 */
#include "session/helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "policy/helper-fields.h"
#include "policy/plan-files.h"
#include "policy/plan-parts.h"

#define META_HELPER "helper:" /* The module's name follows. The value is the text. */

enum { HELPER_SIZE_MAX = 1 << 20 }; /* bytes of a file */

/* The item of the policy, in its parts. */
typedef struct HelperItem {
        char module[HELPER_MODULE_MAX + 1];
        char *path; /* FILE; absolute if cwd was given. Owned. */
} HelperItem;

static void helper_item_clear(HelperItem *item) {
        free(item->path);
}

static int helper_item_split(const char *text, const char *cwd, HelperItem *ret, Error *reterr) {
        _cleanup_free_ char *file = NULL;
        const char *why = "";
        size_t length;

        /* The table of fields has checked it. */
        if (helper_split(text, &length, ret->module, &why) < 0)
                return error_set(reterr, ERROR_POLICY, 0, "bridge.helpers: \"%s\" %s", text, why);
        file = strndup(text, length);
        ret->path = file && cwd ? path_join(cwd, file) : TAKE_PTR(file);
        return ret->path ? 0 : error_oom(reterr);
}

/* --- reading files --- */

static int helper_fail(const char *path, int errnum, const char *what, Error *reterr) {
        char quoted[400];

        return error_set(reterr, ERROR_POLICY, errnum, "%s helper %s", what,
                         str_quote(path, quoted, sizeof(quoted)));
}

static int helper_refuse(const char *path, const char *cure, Error *reterr) {
        int r = helper_fail(path, 0, "cannot use", reterr);

        return error_cure(reterr, r, "%s", cure);
}

/* Reads at most size bytes to the end of the file. Returns their number or a negative errno. */
static ssize_t helper_read_bytes(int fd, char *bytes, size_t size) {
        size_t length = 0;

        while (length < size) {
                ssize_t n = read(fd, bytes + length, size - length);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        break;
                length += n > 0 ? (size_t)n : 0;
        }
        return (ssize_t)length;
}

static int helper_read_open(int fd, const char *path, PlanInputs *ret, Error *reterr) {
        _cleanup_free_ char *bytes = malloc(HELPER_SIZE_MAX + 2);
        struct stat st;
        ssize_t n;
        int copy_fd;

        if (!bytes)
                return error_oom(reterr);
        if (fstat(fd, &st) < 0)
                return helper_fail(path, errno, "cannot examine", reterr);
        if (!S_ISREG(st.st_mode))
                return helper_refuse(path, "It is not a regular file.", reterr);
        n = helper_read_bytes(fd, bytes, HELPER_SIZE_MAX + 1);
        if (n < 0)
                return helper_fail(path, (int)-n, "cannot read", reterr);
        if (n > HELPER_SIZE_MAX)
                return helper_refuse(path, "The limit for a helper is 1 MiB.", reterr);
        bytes[n] = '\0';
        if (strlen(bytes) != (size_t)n || !utf8_valid(bytes))
                return helper_refuse(path, "It is not a text in UTF-8.", reterr);
        copy_fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        return copy_fd < 0 ? helper_fail(path, errno, "cannot open", reterr)
               : plan_inputs_add(ret, path, copy_fd, bytes, (size_t)n) < 0 ? error_oom(reterr)
                                                                           : 0;
}

static int helper_read(const char *text, const char *cwd, PlanInputs *ret, Error *reterr) {
        _cleanup_(helper_item_clear) HelperItem item = { .path = NULL };
        _cleanup_close_ int fd = FD_NONE;
        int r = helper_item_split(text, cwd, &item, reterr);

        if (r < 0)
                return r;
        /* O_NONBLOCK keeps a FIFO from blocking holt before its type is known. */
        fd = open(item.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return helper_fail(item.path, errno, "cannot open", reterr);
        return helper_read_open(fd, item.path, ret, reterr);
}

int helpers_read(const Policy *policy, const char *cwd, PlanInputs *ret, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < policy->helpers.count; i++)
                r = helper_read(policy->helpers.items[i], cwd, ret, reterr);
        return r;
}

/* --- the plan --- */

static int helper_plan(const char *text, const struct PlanInput *input, LaunchPlan *plan,
                       Error *reterr) {
        _cleanup_(helper_item_clear) HelperItem item = { .path = NULL };
        _cleanup_free_ char *path = NULL;
        const char *why = NULL;
        char *copy;
        int r = helper_item_split(text, NULL, &item, reterr);

        if (r < 0)
                return r;
        path = str_format("%s/%s.py", PLAN_HELPERS, item.module);
        copy = path ? strdup(input->text) : NULL;
        if (!copy)
                return error_oom(reterr);
        r = plan_add_file(plan, path, copy, input->size, &why);
        return r == -EINVAL
                       ? error_set(reterr, ERROR_POLICY, 0, "bridge.helpers: %s: %s", path, why)
               : r < 0 ? error_oom(reterr)
                       : 0;
}

/* The directory of the helpers comes first, so that a helper can replace a module. */
static int helpers_plan_path(LaunchPlan *plan, Error *reterr) {
        static const char name[] = "PYTHONPATH";
        const size_t length = strlen(name);
        _cleanup_free_ char *value = NULL;

        for (size_t i = 0; !value && i < plan->env.count; i++)
                if (strncmp(plan->env.items[i], name, length) == 0 &&
                    plan->env.items[i][length] == '=')
                        value = str_format("%s:%s", PLAN_HELPERS, plan->env.items[i] + length + 1);
        return plan_set_env(&plan->env, name, length, value ? value : PLAN_HELPERS) < 0
                       ? error_oom(reterr)
                       : plan_check_lengths(&plan->env, "environment variable", reterr);
}

int helpers_plan(const Policy *policy, const PlanInputs *helpers, LaunchPlan *plan, Error *reterr) {
        int r = 0;

        if (helpers->count == 0)
                return 0;
        for (size_t i = 0; r == 0 && i < helpers->count; i++)
                r = helper_plan(policy->helpers.items[i], &helpers->items[i], plan, reterr);
        return r < 0 ? r : helpers_plan_path(plan, reterr);
}

int helpers_prepare(const Policy *policy, const char *cwd, LaunchPlan *plan, Error *reterr) {
        _cleanup_(plan_inputs_clear) PlanInputs helpers = { 0 };
        int r = helpers_read(policy, cwd, &helpers, reterr);

        if (r == 0)
                r = helpers_plan(policy, &helpers, plan, reterr);
        for (size_t i = 0; r == 0 && i < helpers.count; i++) {
                struct PlanInput *input = &helpers.items[i];

                r = plan_inputs_add(&plan->inputs, input->path, TAKE_FD(input->fd), input->text,
                                    input->size);
                if (r < 0)
                        return error_oom(reterr);
        }
        return r;
}

/* --- the database --- */

int helpers_store(const Policy *policy, const PlanInputs *helpers, Store *store, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < helpers->count; i++) {
                _cleanup_(helper_item_clear) HelperItem item = { .path = NULL };
                _cleanup_free_ char *name = NULL;

                r = helper_item_split(policy->helpers.items[i], NULL, &item, reterr);
                if (r < 0)
                        return r;
                name = str_format(META_HELPER "%s", item.module);
                r = name ? store_meta_set(store, name, helpers->items[i].text, reterr)
                         : error_oom(reterr);
        }
        return r;
}

static int helper_load(const char *text, Store *store, PlanInputs *ret, Error *reterr) {
        _cleanup_(helper_item_clear) HelperItem item = { .path = NULL };
        _cleanup_free_ char *name = NULL, *value = NULL;
        int r = helper_item_split(text, NULL, &item, reterr);

        if (r < 0)
                return r;
        name = str_format(META_HELPER "%s", item.module);
        r = name ? store_meta_get(store, name, &value, reterr) : error_oom(reterr);
        if (r < 0)
                return r;
        if (!value) {
                r = error_set(reterr, ERROR_DATA, 0, "the session's database has no helper %s",
                              item.module);
                return error_cure(reterr, r, "Remove the session and create it again: holt rm.");
        }
        r = plan_inputs_add(ret, item.path, FD_NONE, value, strlen(value));
        return r < 0 ? error_oom(reterr) : 0;
}

int helpers_load(const Policy *policy, Store *store, PlanInputs *ret, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < policy->helpers.count; i++)
                r = helper_load(policy->helpers.items[i], store, ret, reterr);
        return r;
}
