/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

typedef struct Item {
        struct Item *next;
        char name;
} Item;

static void assert_names(const Item *first, const char *names) {
        for (const Item *item = first; item; item = item->next)
                assert_int_equal(item->name, *names++);
        assert_int_equal(*names, '\0');
}

static void test_push_append_and_remove(void **state) {
        Item items[] = { { NULL, 'a' }, { NULL, 'b' }, { &items[0], 'c' }, { NULL, 'd' } };
        Item *first = NULL;

        (void)state;
        list_append(&first, &items[0]);
        list_push(&first, &items[1]);
        list_append(&first, &items[2]); /* its old next is forgotten */
        assert_names(first, "bac");
        assert_false(list_remove(&first, &items[3]));
        assert_true(list_remove(&first, &items[0]));
        assert_names(first, "bc");
        assert_true(list_remove(&first, &items[1]));
        assert_true(list_remove(&first, &items[2]));
        assert_null(first);
        assert_false(list_remove(&first, &items[2]));
}

static void test_items_may_go_in_the_loop(void **state) {
        Item items[] = { { NULL, 'a' }, { NULL, 'b' }, { NULL, 'c' }, { NULL, 'd' } };
        Item *first = NULL, *others = NULL;

        (void)state;
        list_each_safe(item, first)
                fail();
        for (size_t i = 0; i < 4; i++)
                list_append(&first, &items[i]);
        list_each_safe(item, first)
                if (item->name != 'c') {
                        assert_true(list_remove(&first, item));
                        list_push(&others, item);
                }
        assert_names(first, "c");
        assert_names(others, "dba");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_push_append_and_remove),
                cmocka_unit_test(test_items_may_go_in_the_loop),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
