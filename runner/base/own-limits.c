/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own-limits.h"

#include <sys/resource.h>

void own_limit_raise(unsigned resource) {
        struct rlimit own;

        if (getrlimit(resource, &own) < 0 || own.rlim_cur == own.rlim_max)
                return;
        own.rlim_cur = own.rlim_max;
        (void)setrlimit(resource, &own);
}

static struct rlimit open_before; /* saved by open_files_raise(); zero until then */

void open_files_raise(void) {
        if (open_before.rlim_max == 0)
                (void)getrlimit(RLIMIT_NOFILE, &open_before);
        own_limit_raise(RLIMIT_NOFILE);
}

void open_files_restore(void) {
        if (open_before.rlim_max > 0)
                (void)setrlimit(RLIMIT_NOFILE, &open_before);
}
