/* SPDX-License-Identifier: Apache-2.0 */
#include "child/step.h"

#include <string.h>

#undef step_fail

/* Like strncat(3), with the size of the whole buffer. */
static void step_append(char *buf, size_t size, const char *text) {
        size_t used = strlen(buf), length = strlen(text);

        if (length > size - used - 1)
                length = size - used - 1;
        memcpy(buf + used, text, length);
        buf[used + length] = '\0';
}

int step_fail(Error *error, Layer layer, int errnum, const char *what, const char *subject) {
        error->errnum = errnum;
        error->kind = layer == LAYER_NONE ? ERROR_SETUP : ERROR_LAYER;
        error->layer = (int)layer;
        error->text[0] = '\0';
        error->cure[0] = '\0';
        step_append(error->cure, sizeof(error->cure), error_usual_cure(errnum));
        step_append(error->text, sizeof(error->text), what);
        step_append(error->text, sizeof(error->text), " ");
        step_append(error->text, sizeof(error->text), subject);
        return -errnum;
}

int step_cure(Error *error, int r, const char *cure) {
        error->cure[0] = '\0';
        step_append(error->cure, sizeof(error->cure), cure);
        return r;
}

int steps_run(const Step *steps, size_t count, Launch *launch, Error *error) {
        for (size_t i = 0; i < count; i++) {
                int r = steps[i].run(launch, error);

                if (r < 0 && error->kind == ERROR_LAYER) {
                        step_append(error->text, sizeof(error->text), " (to ");
                        step_append(error->text, sizeof(error->text), steps[i].name);
                        step_append(error->text, sizeof(error->text), ")");
                }
                if (r < 0)
                        return r;
        }
        return 0;
}
