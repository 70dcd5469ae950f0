/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/denials.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>

#include "policy/syscalls/syscalls.h"

/* Room for the kernel's structs, both of which have grown before and may grow again. */
enum { NOTIF_ROOM = 512 };

static void denials_note(Denials *denials, unsigned nr) {
        for (unsigned i = 0; i < denials->count; i++)
                if (denials->items[i].nr == nr) {
                        denials->items[i].count++;
                        return;
                }
        if (denials->count < DENIALS_MAX)
                denials->items[denials->count++] = (Denial){ .nr = nr, .count = 1 };
}

int denials_answer(Denials *denials, int listener_fd, ExitTracer *tracer) {
        union {
                struct seccomp_notif notif;
                char room[NOTIF_ROOM];
        } request = { .room = { 0 } };
        union {
                struct seccomp_notif_resp resp;
                char room[NOTIF_ROOM];
        } answer = { .room = { 0 } };
        int r;

        if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
                return -errno;
        r = tracer ? exit_tracer_answer(tracer, listener_fd, &request.notif) : 0;
        if (r != 0)
                return r < 0 ? r : 0;
        denials_note(denials, (unsigned)request.notif.data.nr);
        answer.resp.id = request.notif.id;
        answer.resp.error = -syscall_refusal((unsigned)request.notif.data.nr);
        return ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0 ? -errno : 0;
}
