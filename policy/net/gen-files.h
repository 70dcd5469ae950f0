/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of build-time tools that turn JSON files into one C file. For each JSON file they
 * print its own data, and then a row of the table. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

typedef struct GenFile {
        char bytes[64 << 10];
        size_t length;
        const char *path;
        char name[32]; /* base name without ".json" */
} GenFile;

typedef int (*GenFn)(const GenFile *file, Error *reterr);

typedef struct GenTable {
        const char *head; /* printed first: comment and includes */
        GenFn definitions;
        const char *begin, *end; /* printed around the rows */
        GenFn row;
} GenTable;

static inline int gen_file_read(const char *path, GenFile *ret, Error *reterr) {
        const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
        FILE *file = fopen(path, "re");

        if (!file)
                return error_set(reterr, ERROR_SETUP, errno, "cannot open %s", path);
        ret->path = path;
        ret->length = fread(ret->bytes, 1, sizeof(ret->bytes), file);
        (void)fclose(file);
        if (ret->length == sizeof(ret->bytes))
                return error_set(reterr, ERROR_SETUP, EFBIG, "%s", path);
        (void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)strcspn(base, "."), base);
        return 0;
}

static inline int gen_each(char **paths, GenFn print, Error *reterr) {
        static GenFile file;

        for (; *paths; paths++) {
                int r = gen_file_read(*paths, &file, reterr);

                if (r == 0)
                        r = print(&file, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Prints a string of C. */
static inline void gen_print_string(const char *text) {
        (void)putchar('"');
        for (; *text; text++) {
                if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20)
                        (void)printf("\\%03o", (unsigned char)*text);
                else
                        (void)putchar(*text);
        }
        (void)putchar('"');
}

static inline int gen_print_table(const GenTable *table, char **paths, Error *reterr) {
        int r;

        (void)printf("%s", table->head);
        r = gen_each(paths, table->definitions, reterr);
        if (r < 0)
                return r;
        (void)printf("%s", table->begin);
        r = gen_each(paths, table->row, reterr);
        (void)printf("%s", table->end);
        return r;
}

/* Prints the table of the files that argv names, or an error. Returns the exit code. */
static inline int gen_main(const GenTable *table, char **argv) {
        Error error;

        if (gen_print_table(table, argv + 1, &error) < 0) {
                error_print(&error, stderr);
                return 1;
        }
        return fflush(stdout) == 0 ? 0 : 1;
}
