/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of the head of an HTTP request. Its end must not depend on the pieces in which
 * it arrives; the first byte of the input is their size. All parts of an accepted head must lie in
 * it, and its fields must be its lines. */
#include <stdlib.h>
#include <string.h>

#include "wire/http-head.h"
#include "tests/fuzz/harness.h"

/* Each piece gets memory of its own, so that no byte can be read before it has arrived. */
static int find_end(const uint8_t *data, size_t size, size_t start, size_t piece, size_t *seen) {
        int r = 0;

        *seen = start;
        for (size_t length = start; length < size && r == 0;) {
                uint8_t *copy;

                length = size - length < piece ? size : length + piece;
                copy = malloc(length);
                REQUIRE(copy);
                memcpy(copy, data, length);
                r = http_head_end(copy, length, start, seen);
                REQUIRE(*seen <= length);
                free(copy);
        }
        return r;
}

static void check_text(const HttpText *text, const uint8_t *data, size_t size) {
        const uint8_t *at = (const uint8_t *)text->at;

        REQUIRE(text->length == 0 || (at >= data && at + text->length <= data + size));
}

static void check_fields(const HttpHead *head, const uint8_t *data, size_t size) {
        HttpText rest = head->fields;
        HttpField field;
        size_t hosts = 0, length = 0;

        while (http_field_next(&rest, &field)) {
                check_text(&field.name, data, size);
                check_text(&field.value, data, size);
                check_text(&field.line, data, size);
                REQUIRE(field.name.length > 0 && field.line.at[field.line.length - 1] == '\n');
                for (size_t i = 0; i < field.name.length; i++)
                        REQUIRE(http_is_token((uint8_t)field.name.at[i]));
                hosts += http_text_is(&field.name, "Host");
                length += field.line.length;
        }
        REQUIRE(hosts <= 1 && (hosts == 1 || !head->has_host));
        REQUIRE(length == head->fields.length);
}

static void check_head(const uint8_t *data, size_t size) {
        uint8_t *copy = malloc(size);
        const char *why = NULL;
        HttpHead head;

        REQUIRE(copy);
        memcpy(copy, data, size);
        if (http_head_parse(copy, size, &head, &why) < 0) {
                REQUIRE(why);
        } else {
                check_text(&head.method, copy, size);
                check_text(&head.path, copy, size);
                check_fields(&head, copy, size);
                REQUIRE(head.method.length > 0 && head.minor <= 9);
                REQUIRE(head.has_host == (head.host.host[0] != '\0'));
                REQUIRE((head.form == HTTP_ABSOLUTE || head.form == HTTP_AUTHORITY) ==
                        (head.target.host[0] != '\0'));
                REQUIRE(head.form != HTTP_AUTHORITY || head.target.port > 0);
        }
        free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t whole_seen, seen, start;
        int whole, pieces;

        if (size < 2)
                return 0;
        start = data[0] & 128 ? 2 : 1;
        whole = find_end(data, size, start, size, &whole_seen);
        pieces = find_end(data, size, start, 1 + (size_t)data[0] % 64, &seen);
        REQUIRE(whole == pieces && (whole <= 0 || whole_seen == seen));
        if (whole > 0)
                check_head(data + start, seen - start);
        return 0;
}
