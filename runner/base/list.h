/* SPDX-License-Identifier: Apache-2.0 */
/* Singly linked lists. An item is a struct with a member `next`, a pointer to its own type. The
 * head of a list is a pointer to its first item; NULL means that the list is empty. An item is in
 * one list at most, and the owner of the list owns it. To visit all items, write
 * for (; item; item = item->next).
 *
 * head: the address of the head. Each argument is evaluated once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Makes item the first. */
#define list_push(head, item)                                                                      \
        do {                                                                                       \
                __typeof__(head) list_head = (head);                                               \
                __typeof__(*list_head) list_item = (item);                                         \
                                                                                                   \
                list_item->next = *list_head;                                                      \
                *list_head = list_item;                                                            \
        } while (0)

/* Makes item the last; takes as long as the list. */
#define list_append(head, item)                                                                    \
        do {                                                                                       \
                __typeof__(head) list_at = (head);                                                 \
                __typeof__(*list_at) list_item = (item);                                           \
                                                                                                   \
                while (*list_at)                                                                   \
                        list_at = &(*list_at)->next;                                               \
                list_item->next = NULL;                                                            \
                *list_at = list_item;                                                              \
        } while (0)

/* Takes item out, without freeing it. Returns whether it was in the list. */
#define list_remove(head, item)                                                                    \
        ({                                                                                         \
                __typeof__(head) list_at = (head);                                                 \
                const __typeof__(**list_at) *list_item = (item);                                   \
                bool list_found;                                                                   \
                                                                                                   \
                while (*list_at && *list_at != list_item)                                          \
                        list_at = &(*list_at)->next;                                               \
                list_found = *list_at != NULL;                                                     \
                if (list_found)                                                                    \
                        *list_at = (*list_at)->next;                                               \
                list_found;                                                                        \
        })

/* A loop over the items from `first`, a pointer, to the last. The body may remove and free item,
 * but no other item. */
#define list_each_safe(item, first)                                                                \
        for (__typeof__(first) item##_next = (first), item;                                        \
             ((item) = item##_next) && ((item##_next = (item)->next), true);)
