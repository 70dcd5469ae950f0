/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sealed-program.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/sys.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif

/* vm.memfd_noexec (Linux 6.3) requires MFD_EXEC; older kernels do not know that flag. */
int sealed_file(const char *name, const void *bytes, size_t size, int *ret_fd, Error *reterr) {
        _cleanup_close_ int fd = sys_memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
        ssize_t n;

        if (fd < 0 && errno == EINVAL)
                fd = sys_memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a memory file for %s",
                                 name);
        n = write(fd, bytes, size);
        /* A short write means that a limit of file sizes was reached. */
        if (n != (ssize_t)size)
                return error_set(reterr, ERROR_SETUP, n < 0 ? errno : EFBIG,
                                 "cannot write the memory file of %s", name);
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot seal the memory file of %s",
                                 name);
        *ret_fd = TAKE_FD(fd);
        return 0;
}
