/* SPDX-License-Identifier: Apache-2.0 */
/* Gives back the memory that an idle keeper does not need, so that hundreds of idle sessions cost
 * little. The next request reads it in again, which takes about a millisecond. */
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>

#include "keeper/keeper.h"

/* Unwritten pages of programs and libraries can be read from their files again. */
static int forget_segment(struct dl_phdr_info *info, size_t size, void *data) {
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

        (void)size;
        (void)data;
        for (unsigned i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
                uintptr_t start = (uintptr_t)info->dlpi_addr + segment->p_vaddr;
                uintptr_t end = start + segment->p_memsz;

                if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
                        continue;
                start = (start + page - 1) & ~(page - 1);
                end &= ~(page - 1);
                if (end > start)
                        (void)madvise((void *)start, end - start, MADV_DONTNEED);
        }
        return 0;
}

void keeper_rest(Keeper *keeper) {
        store_rest(keeper->store);
#ifdef __GLIBC__
        (void)malloc_trim(0);
#endif
        (void)dl_iterate_phdr(forget_segment, NULL);
}
