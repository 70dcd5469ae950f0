/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes base/json.c and policy/load.c. A document that the loader accepts from the caller must
 * print and load again as the same policy. A document of a project must never widen the policy. */
#include <string.h>

#include "base/json-write.h"
#include "base/json.h"
#include "policy/load.h"
#include "policy/net/rules.h"
#include "policy/plan-routes.h"
#include "policy/schema.h"
#include "tests/fuzz/harness.h"

static void print(const Policy *policy, JsonWriter *w) {
        REQUIRE(policy_document_print(policy, w) == 0);
        REQUIRE(json_write_finish(w) == 0);
}

/* The plan accepts each route that the loader has accepted. */
static void fuzz_routes(const Policy *policy) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        Error error = { 0 };
        int r = routes_plan(policy, "token", &plan, &error);

        if (r == 0)
                REQUIRE(plan.routes.count == policy->routes.count);
        else /* E2BIG: a variable is too long. */
                REQUIRE(policy->network == NETWORK_HOST || r == -E2BIG);
}

static void fuzz_caller(const char *bytes, size_t size) {
        _cleanup_(policy_clear) Policy policy = { 0 }, again = { 0 };
        _cleanup_(json_write_clear) JsonWriter first = { 0 }, second = { 0 };
        Error error = { 0 };

        if (policy_load(&policy, bytes, size, "fuzz", ORIGIN_CALLER, &error) < 0) {
                REQUIRE(error.text[0] && strlen(error.text) < sizeof(error.text));
                return;
        }
        fuzz_routes(&policy);
        print(&policy, &first);
        REQUIRE(policy_load(&again, first.data, first.length, "again", ORIGIN_CALLER, &error) == 0);
        print(&again, &second);
        REQUIRE(streq(first.data, second.data));
}

static bool list_within(const StrList *a, const StrList *b) {
        for (size_t i = 0; i < a->count; i++)
                if (!strlist_has(b, a->items[i]))
                        return false;
        return true;
}

/* Whether a rule of the caller covers each of the project's. */
static bool rules_within(const StrList *inner, const StrList *outer) {
        _cleanup_(net_rules_clear) NetRules a = { 0 }, b = { 0 };
        const char *why;
        bool within = true;

        for (size_t i = 0; i < inner->count; i++)
                REQUIRE(net_rules_add(&a, inner->items[i], &why) == 0);
        for (size_t i = 0; i < outer->count; i++)
                REQUIRE(net_rules_add(&b, outer->items[i], &why) == 0);
        for (size_t i = 0; i < a.count; i++) {
                bool covered = false;

                for (size_t j = 0; j < b.count; j++)
                        covered = covered || net_rule_covers(&b.items[j], &a.items[i]);
                within = within && covered;
        }
        return within;
}

/* Checks the rule of the project's file without the table under test. policy_load() may fail half
 * way, and even then the policy must not be wider. */
static void fuzz_project(const char *bytes, size_t size) {
        static const char *const rules[] = { "*.a.example:443", "10.0.0.0/8:22", "0.0.0.0/0:443" };
        _cleanup_(policy_clear) Policy caller = { 0 }, project = { 0 };
        Error error;

        REQUIRE(policy_preset(&caller, "strict", "fuzz", &error) == 0);
        REQUIRE(policy_preset(&project, "strict", "fuzz", &error) == 0);
        REQUIRE(policy_set(&caller, "limits.output", "1MiB", ORIGIN_CALLER, "fuzz", &error) == 0);
        REQUIRE(policy_set(&project, "limits.output", "1MiB", ORIGIN_CALLER, "fuzz", &error) == 0);
        for (size_t i = 0; i < ELEMENTSOF(rules); i++) {
                REQUIRE(policy_set(&caller, "network.allow", rules[i], ORIGIN_CALLER, "fuzz",
                                   &error) == 0);
                REQUIRE(policy_set(&project, "network.allow", rules[i], ORIGIN_CALLER, "fuzz",
                                   &error) == 0);
        }
        (void)policy_load(&project, bytes, size, "fuzz", ORIGIN_PROJECT, &error);
        REQUIRE(streq(project.preset, "strict"));
        REQUIRE(!project.workspace_source && !project.workspace_target && !project.files &&
                !project.rootfs);
        REQUIRE(project.workspace_mode < WORKSPACE_MODE_MAX);
        REQUIRE(project.read_only.count == 0 && project.read_write.count == 0 &&
                project.tmpfs.count == 0 && project.syscalls_allow.count == 0);
        REQUIRE(list_within(&caller.protect, &project.protect));
        REQUIRE(strlist_same(&caller.env_set, &project.env_set));
        REQUIRE(strlist_same(&caller.env_pass, &project.env_pass));
        REQUIRE(!project.allow_wide && project.network != NETWORK_HOST);
        REQUIRE(project.net_sni == SNI_REQUIRED);
        REQUIRE(project.net_publish.count == 0 && project.net_import.count == 0);
        REQUIRE(!project.net_proxy && !project.net_upstream && project.routes.count == 0);
        REQUIRE(rules_within(&project.net_allow, &caller.net_allow));
        REQUIRE(project.timeout && project.timeout <= caller.timeout);
        REQUIRE(project.kill_after <= caller.kill_after);
        REQUIRE(project.memory && project.memory <= caller.memory);
        REQUIRE(project.pids && project.pids <= caller.pids);
        REQUIRE(project.open_files && project.open_files <= caller.open_files);
        REQUIRE(project.file_size && project.file_size <= caller.file_size);
        REQUIRE(project.output && project.output <= caller.output);
        REQUIRE(project.tmp_size && project.tmp_size <= caller.tmp_size);
        REQUIRE(project.syscall_preset == SYSCALLS_STRICT);
        REQUIRE(project.landlock == LANDLOCK_REQUIRE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *bytes = (const char *)data;

        fuzz_caller(bytes, size);
        fuzz_project(bytes, size);
        return 0;
}
