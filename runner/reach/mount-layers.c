/* SPDX-License-Identifier: Apache-2.0 */
#include "reach/mount-layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/sys.h"

struct MountStacks {
        const MountTable *table;
        MountStack **items; /* Callers borrow each of them. */
        size_t count;
};

/* Options that ovl_show_options() of fs/overlayfs/params.c prints. Those with "+" exist since Linux
 * 6.5. */
static const char lower_option[] = "lowerdir=";
static const struct {
        const char *name;
        bool upper;
} single_options[] = { { "upperdir=", true }, { "lowerdir+=", false }, { "datadir+=", false } };

static const char *const opaque_types[] = { "fuse", "fuseblk", "ecryptfs", "aufs", "unionfs" };

/* --- one file system --- */

static MountStack *stack_free(MountStack *stack) {
        if (!stack)
                return NULL;
        for (size_t i = 0; i < stack->count; i++)
                free(stack->layers[i].path);
        free(stack->layers);
        free(stack);
        return NULL;
}

/* Whether a symlink is on the path. It may have been put there after the overlay was mounted. */
static bool has_symlink(const char *path) {
        _cleanup_close_ int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
                                             RESOLVE_NO_SYMLINKS);

        return fd < 0 && errno == ELOOP;
}

/* Adds a layer. path may be relative to an unknown directory, or belong to another mount
 * namespace. */
static int stack_add(MountStack *stack, const MountTable *table, const char *path, bool upper) {
        _cleanup_close_ int fd = path[0] == '/' ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        MountLayer *layers, layer = { .upper = upper };
        char top[PATH_MAX];

        if (fd < 0 || mount_table_locate(table, fd, &layer.device, top) < 0) {
                stack->lost = true;
                return 0;
        }
        stack->lost |= has_symlink(path);
        layers = reallocarray(stack->layers, stack->count + 1, sizeof(*layers));
        if (layers)
                stack->layers = layers;
        layer.path = layers ? strdup(top) : NULL;
        if (!layer.path)
                return -ENOMEM;
        layers[stack->count++] = layer;
        return 0;
}

/* Removes quoting backslashes, up to `end` or the end of the text. Returns the position after
 * `end`. */
static char *layers_unquote(char *text, char end) {
        char *out = text;

        while (*text && *text != end) {
                text += *text == '\\' && text[1];
                *out++ = *text++;
        }
        end = *text;
        *out = '\0';
        return text + (end != '\0');
}

/* Adds the layers of lowerdir. They are separated by ":", or by "::" in front of data-only
 * layers. */
static int stack_add_lower(MountStack *stack, const MountTable *table, char *text) {
        int r = 0;

        while (r == 0 && *text) {
                char *layer = text;

                text = layers_unquote(text, ':');
                if (layer[0])
                        r = stack_add(stack, table, layer, false);
        }
        return r;
}

/* Adds one layer. The way in which the overlay was mounted decides whether backslashes quote
 * here. */
static int stack_add_single(MountStack *stack, const MountTable *table, char *path, bool upper) {
        if (strchr(path, '\\') && access(path, F_OK) < 0)
                (void)layers_unquote(path, '\0');
        return stack_add(stack, table, path, upper);
}

static int stack_add_option(MountStack *stack, const MountTable *table, char *option) {
        mount_table_unescape(option);
        if (str_starts(option, lower_option))
                return stack_add_lower(stack, table, option + strlen(lower_option));
        for (size_t i = 0; i < ELEMENTSOF(single_options); i++)
                if (str_starts(option, single_options[i].name))
                        return stack_add_single(stack, table,
                                                option + strlen(single_options[i].name),
                                                single_options[i].upper);
        return 0;
}

static int stack_fill(MountStack *stack, const MountTable *table, const MountEntry *entry) {
        _cleanup_free_ char *options = NULL;
        char *state = NULL;
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(opaque_types); i++)
                stack->opaque |= streq(entry->type, opaque_types[i]);
        stack->opaque |= str_starts(entry->type, "fuse.");
        if (!streq(entry->type, "overlay"))
                return 0;
        options = strdup(entry->options);
        if (!options)
                return -ENOMEM;
        for (char *option = strtok_r(options, ",", &state); r == 0 && option;
             option = strtok_r(NULL, ",", &state))
                r = stack_add_option(stack, table, option);
        return r;
}

/* --- all file systems --- */

MountStacks *mount_stacks_new(const MountTable *table) {
        MountStacks *stacks = calloc(1, sizeof(*stacks));

        if (stacks)
                stacks->table = table;
        return stacks;
}

MountStacks *mount_stacks_free(MountStacks *stacks) {
        if (!stacks)
                return NULL;
        for (size_t i = 0; i < stacks->count; i++)
                stack_free(stacks->items[i]);
        free(stacks->items);
        free(stacks);
        return NULL;
}

static int stacks_add(MountStacks *stacks, dev_t device, MountStack **ret) {
        MountStack **items = reallocarray(stacks->items, stacks->count + 1, sizeof(MountStack *));
        MountStack *stack = calloc(1, sizeof(*stack));
        int r = 0;

        if (items)
                stacks->items = items;
        if (!items || !stack) {
                free(stack);
                return -ENOMEM;
        }
        stack->device = device;
        for (size_t i = 0; i < mount_table_count(stacks->table); i++)
                if (mount_table_entry(stacks->table, i)->device == device) {
                        r = stack_fill(stack, stacks->table, mount_table_entry(stacks->table, i));
                        break; /* The file system's other mounts have the same options. */
                }
        if (r < 0) {
                stack_free(stack);
                return r;
        }
        *ret = items[stacks->count++] = stack;
        return 0;
}

int mount_stacks_find(MountStacks *stacks, dev_t device, const MountStack **ret) {
        MountStack *stack = NULL;
        int r = 0;

        for (size_t i = 0; i < stacks->count && !stack; i++)
                if (stacks->items[i]->device == device)
                        stack = stacks->items[i];
        if (!stack)
                r = stacks_add(stacks, device, &stack);
        if (r == 0)
                *ret = stack->count > 0 || stack->lost || stack->opaque ? stack : NULL;
        return r;
}
