/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec-explain.h"

#include <string.h>

#include "base/base64.h"

enum { WORDS_MAX = 64, WORD_MAX = 16 * 1024 }; /* Limits of what is passed on. */

static void explain_write_words(const char *const *argv, JsonWriter *w) {
        json_write_array(w, "argv");
        for (size_t i = 0; argv && argv[i] && i < WORDS_MAX; i++)
                if (strnlen(argv[i], WORD_MAX) < WORD_MAX)
                        json_write_string(w, NULL, argv[i]);
        json_write_end(w);
}

static void explain_write_text(const Tail *tail, JsonWriter *w) {
        const size_t from = tail->length > TAIL_MAX ? tail->length - TAIL_MAX : 0;
        _cleanup_free_ char *text = base64_encode(tail->data + from, tail->length - from);

        json_write_string(w, "stderr", text ? text : "");
}

void exec_explain(RpcClient *client, const char *id, const Tail *tail, const char *const *argv,
                  Answer *ret) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", id);
        if (tail->length > 0)
                explain_write_text(tail, &w);
        else
                explain_write_words(argv, &w);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                (void)ask_client(client, "process.explain", &w, ret, &ignored);
}

void exec_explain_read(RpcClient *client, const char *id, Tail *tail) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        Error ignored;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", id);
        json_write_end(&w);
        if (json_write_finish(&w) == 0 &&
            ask_client(client, "process.explain", &w, &answer, &ignored) == 0 &&
            base64_decode(json_member_text(answer.result, "stderr"), &text, &length) == 0)
                tail_add(tail, text, length);
}
