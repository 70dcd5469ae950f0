/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that no build, test or script needs, and that many escapes from sandboxes have used. The
 * arguments are harmless, even as root. Any answer except a refusal shows that the kernel has
 * looked at the arguments. */
#include "hostile.h"

typedef struct Call {
        const char *name;
        long nr;
        long args[5];
} Call;

#define TEXT(s) ((long)(s))

static const Call calls[] = {
        { "io_setup", SYS_io_setup, { 0, 0 } },
        { "io_uring_setup", SYS_io_uring_setup, { 1, 0 } },
        { "io_uring_enter", SYS_io_uring_enter, { -1 } },
        { "io_uring_register", SYS_io_uring_register, { -1 } },
        { "bpf", SYS_bpf, { 0, 0, 0 } },
        { "perf_event_open", SYS_perf_event_open, { 0, 0, -1, -1, 0 } },
        { "userfaultfd", SYS_userfaultfd, { 1 /* UFFD_USER_MODE_ONLY */ } },
        { "keyctl", SYS_keyctl, { 0 /* GET_KEYRING_ID */, -3 /* session */, 0 } },
        { "add_key", SYS_add_key, { TEXT("user"), TEXT("holt"), TEXT("x"), 1, -2 /* process */ } },
        { "request_key", SYS_request_key, { TEXT("user"), TEXT("holt-absent"), 0, 0 } },
        { "kcmp", SYS_kcmp, { 1, 1, 0 } },
        { "pidfd_getfd", CALL_pidfd_getfd, { -1, 0, 0 } },
        { "open_by_handle_at", SYS_open_by_handle_at, { -1, 0, 0 } },
        { "kexec_load", SYS_kexec_load, { 0, 0, 0, 0x8000 } },
        { "init_module", SYS_init_module, { 0, 0, 0 } },
        { "finit_module", SYS_finit_module, { -1, 0, 0 } },
        { "delete_module", SYS_delete_module, { TEXT("holt-absent"), 0 } },
        { "reboot", SYS_reboot, { 0, 0, 0, 0 } },
        { "swapon", SYS_swapon, { 0, 0 } },
        { "swapoff", SYS_swapoff, { 0 } },
        { "acct", SYS_acct, { TEXT("/holt-absent/acct") } },
        { "settimeofday", SYS_settimeofday, { 0, 0 } },
        { "clock_settime", SYS_clock_settime, { 0, 0 } },
        { "sethostname", SYS_sethostname, { 0, 1 } },
        { "setdomainname", SYS_setdomainname, { 0, 1 } },
        { "syslog", SYS_syslog, { 10 /* SIZE_BUFFER */, 0, 0 } },
        { "quotactl", SYS_quotactl, { 0x7fffffff, 0, 0, 0 } },
        { "quotactl_fd", CALL_quotactl_fd, { -1, 0, 0, 0 } },
        { "vhangup", SYS_vhangup, { 0 } },
        { "fanotify_init", SYS_fanotify_init, { 0x200 /* FAN_REPORT_FID */, 0 } },
        { "personality", SYS_personality, { 0x0400000 /* READ_IMPLIES_EXEC */ } },
#ifdef __x86_64__
        { "personality-32", SYS_personality, { 8 /* PER_LINUX32 */ } },
        { "modify_ldt", SYS_modify_ldt, { 1, 0, 16 } },
        { "iopl", SYS_iopl, { 3 } },
        { "ioperm", SYS_ioperm, { 0, 1, 1 } },
#endif
};

static const Call *call;

static void make_call(char **args) {
        (void)args;
        reached(syscall(call->nr, call->args[0], call->args[1], call->args[2], call->args[3],
                        call->args[4]));
}

int main(int argc, char **argv) {
        for (size_t i = 0; argc == 2 && i < ELEMENTSOF(calls); i++)
                if (strcmp(calls[i].name, argv[1]) == 0) {
                        Attack attack = { calls[i].name, make_call, 0 };

                        call = &calls[i];
                        return hostile_main(&attack, 1, argc, argv);
                }
        fprintf(stderr, "usage: %s CALL\n", argv[0]);
        return 2;
}
