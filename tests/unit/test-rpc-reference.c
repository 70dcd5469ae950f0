/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rpc/: the table of methods as a reference for people and programs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "rpc-fixture.h"
#include "rpc/connection.h"
#include "rpc/methods.h"

static void test_the_reference_as_text(void **state) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        (void)state;
        rpc_print_methods(toy_methods, 3, false, out);
        assert_int_equal(fclose(out), 0);
        assert_string_equal(text,
                            "toy.echo\n"
                            "  says it again\n"
                            "    text   a string of at most 2000 bytes, required: what to say\n"
                            "    loud   true or false: whether to shout\n"
                            "    times  an integer from 0 to 100: how often\n"
                            "  Returns\n"
                            "    text   a string, or null: the text\n"
                            "    loud   true or false\n"
                            "    times  an integer, may be missing: how often\n"
                            "  Errors: setup, usage, limit\n"
                            "\n"
                            "toy.list\n"
                            "  lists\n"
                            "    items  an array of strings, at most 3: some strings\n"
                            "    env    an object of strings, at most 2: some variables\n"
                            "  Returns nothing\n"
                            "  Errors: setup, limit\n"
                            "\n"
                            "toy.keep\n"
                            "  waits\n"
                            "  Returns nothing\n"
                            "  Errors: setup, limit\n");
        free(text);
}

static void test_the_reference_as_json(void **state) {
        JsonDocument *document = NULL;
        const JsonValue *schema;
        char *text = NULL;
        uint64_t value = 0;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        (void)state;
        rpc_print_methods(toy_methods, toy_methods_count, true, out);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(json_parse(text, size, "reference", &document, NULL), 0);
        schema = json_member(json_member(json_root(document), "toy.echo"), "params");
        assert_string_equal(json_string(json_member(schema, "type")), "object");
        assert_string_equal(json_string(json_first(json_member(schema, "required"))), "text");
        schema = json_member(json_member(schema, "properties"), "times");
        assert_int_equal(json_uint(json_member(schema, "maximum"), 1000, &value), 0);
        assert_int_equal(value, 100);
        json_free(document);
        free(text);
}

/* Only the first method has an example. */
static void test_the_reference_as_openrpc(void **state) {
        const JsonValue *method, *value;
        JsonDocument *document = NULL;
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        (void)state;
        assert_int_equal(rpc_print_openrpc(toy_methods, 1, out, NULL), 0);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(json_parse(text, size, "document", &document, NULL), 0);
        method = json_first(json_member(json_root(document), "methods"));
        value = json_member(json_member(method, "result"), "schema");
        assert_string_equal(json_string(json_member(value, "$ref")), "#/components/schemas/Echo");
        value = json_first(json_member(method, "errors"));
        assert_string_equal(json_string(json_member(value, "$ref")), "#/components/errors/setup");
        value = json_member(json_member(json_root(document), "components"), "schemas");
        value = json_first(json_member(json_member(value, "Echo"), "required"));
        assert_string_equal(json_string(value), "text");
        assert_string_equal(json_string(json_next(value)), "loud");
        assert_null(json_next(json_next(value)));
        json_free(document);
        free(text);
}

static void test_a_word_that_a_parameter_does_not_take(void **state) {
        JsonDocument *params = NULL;
        const RpcMethod *colour = &toy_methods[toy_methods_count - 1];
        char *path = NULL;
        Error error;

        (void)state;
        assert_int_equal(json_parse("{\"colour\": \"blue\"}", 18, "t", &params, NULL), 0);
        assert_int_equal(rpc_check_params(colour, json_root(params), &path, &error), 0);
        json_free(params);
        assert_int_equal(json_parse("{\"colour\": \"green\"}", 19, "t", &params, NULL), 0);
        assert_int_equal(rpc_check_params(colour, json_root(params), &path, &error), -EINVAL);
        assert_string_equal(path, "$.params.colour");
        assert_string_equal(error.text, "toy.colour: colour cannot be \"green\"");
        assert_string_equal(error.cure,
                            "colour is one of \"red\", \"blue\", required: of the line");
        free(path);
        json_free(params);
}

/* Clients see names; errors inside holt have kinds. */
static void test_a_kind_s_name_is_its_error_s(void **state) {
        (void)state;
        for (unsigned kind = 0; kind < ERROR_KIND_MAX; kind++)
                assert_string_equal(rpc_error_row(kind)->name, error_kind_name(kind));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_reference_as_text),
                cmocka_unit_test(test_the_reference_as_json),
                cmocka_unit_test(test_the_reference_as_openrpc),
                cmocka_unit_test(test_a_word_that_a_parameter_does_not_take),
                cmocka_unit_test(test_a_kind_s_name_is_its_error_s),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
