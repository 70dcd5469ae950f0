/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copied.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-write.h"
#include "base/strings.h"
#include "base/util.h"
#include "cli/ask.h"
#include "cli/progress.h"

void copied_clear(Copied *copied) {
        for (size_t i = 0; i < ELEMENTSOF(copied->first); i++)
                free(copied->first[i].path);
        free(copied->repository);
}

void copied_leave_out(Copied *copied, bool link, const char *path) {
        if (copied->left_out < ELEMENTSOF(copied->first)) {
                copied->first[copied->left_out].type = link ? "link" : "special file";
                copied->first[copied->left_out].path = strdup(path);
        }
        copied->left_out++;
}

void copied_came_out(Copied *copied, const char *path, const char *name) {
        const char *slash = strrchr(name, '/');

        if (!copied->repository && streq(slash ? slash + 1 : name, ".git"))
                copied->repository = strdup(path);
}

static void tell_left_out(const Copied *copied, const char *session, bool into) {
        char quoted[1024];

        (void)fprintf(
                stderr,
                "holt: left out links that lead out of the directory, and special files: %" PRIu64,
                copied->left_out);
        for (size_t i = 0; i < ELEMENTSOF(copied->first) && copied->first[i].path; i++)
                (void)fprintf(stderr, "%s %s %s", i > 0 ? "," : ":", copied->first[i].type,
                              str_quote(copied->first[i].path, quoted, sizeof(quoted)));
        (void)fprintf(stderr, "%s\n  tar copies all links: ",
                      copied->left_out > ELEMENTSOF(copied->first) ? ", ..." : "");
        (void)fprintf(stderr,
                      into ? "tar c DIRECTORY | holt exec %s -- tar x\n"
                           : "holt exec %s -- tar c DIRECTORY | tar x\n",
                      session);
}

/* The guards protect only the original repository of the workspace, and not a copy elsewhere. */
void copied_tell_repository(const Copied *copied) {
        char quoted[1024];

        if (copied->repository)
                (void)fprintf(
                        stderr,
                        "holt: the copy contains a git repository: %s\n  Commands may have written "
                        "its config and hooks, and your git runs them. Look at them first.\n",
                        str_quote(copied->repository, quoted, sizeof(quoted)));
}

void copied_tell(const Copied *copied, const char *session, bool into) {
        if (copied->left_out > 0)
                tell_left_out(copied, session, into);
        copied_tell_repository(copied);
}

int copied_print(const Copied *copied, Error *reterr) {
        const ProgressCounts counts = progress_counts();
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };

        json_write_object(&w, NULL);
        json_write_uint(&w, "files", counts.files);
        json_write_uint(&w, "bytes", counts.bytes);
        json_write_uint(&w, "left_out", copied->left_out);
        json_write_array(&w, "left_out_first");
        for (size_t i = 0; i < ELEMENTSOF(copied->first) && copied->first[i].path; i++) {
                json_write_object(&w, NULL);
                json_write_string(&w, "type", copied->first[i].type);
                json_write_string(&w, "path", copied->first[i].path);
                json_write_end(&w);
        }
        json_write_end(&w);
        json_write_string(&w, "repository", copied->repository);
        json_write_end(&w);
        return ask_print_document(&w, reterr);
}
