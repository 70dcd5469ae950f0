/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation.
 *
 * A preset's row gives each call an action, which the allow and deny lists may change. Consecutive
 * numbers with the same action form a run, and the runs cover all 32 bits. The program finds a
 * number's run by binary search. A check is the same kind of search over an argument.
 *
 * Classic BPF jumps only forward, by at most 255 instructions. So the program is written from its
 * end, and every jump target exists already. A label names a place by the number of instructions
 * from it to the end. Only a load and its mask continue with the next instruction; all others jump
 * or return. So the compiler may put a second copy of a return, or a long jump, anywhere except
 * directly after a load or mask. */
#include "policy/syscalls/table.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

/* Linux 5.0; some build hosts have older kernel headers. */
#ifndef SECCOMP_RET_USER_NOTIF
#define SECCOMP_RET_USER_NOTIF 0x7fc00000U
#endif

enum {
        X32_BIT = 0x40000000,               /* __X32_SYSCALL_BIT */
        RUNS_MAX = SYSCALL_NUMBERS_END + 2, /* one for each number, and one above */
        LEAF_MAX = 4,                       /* consecutive comparisons, see find_leaf() */
        JUMP_MAX = 255,
};

/* The values from `first` up to the next run's first. */
typedef struct Run {
        uint32_t first;
        SyscallAction action;
} Run;

typedef struct Runs {
        Run items[RUNS_MAX];
        size_t count;
} Runs;

typedef struct Program {
        struct sock_filter *filter; /* written backwards from filter[max - 1] */
        size_t max, count;
        bool notify;
        bool full;
        size_t labels[ACTION_MAX]; /* the place that carries out an action; 0 before its first use
                                    */
} Program;

/* --- actions --- */

/* The filter's own actions. For a reported call, the launcher answers with errnum; a filter without
 * reports does so itself. */
static const struct {
        int errnum;
        bool notify;
} refusals[ACTION_CHECK_FIRST] = {
        [ACTION_EPERM] = { EPERM, false },
        [ACTION_ENOSYS] = { ENOSYS, false },
        [ACTION_EINVAL] = { EINVAL, false },
        [ACTION_EBUSY] = { EBUSY, false },
        [ACTION_ENOTTY] = { ENOTTY, false },
        [ACTION_EAFNOSUPPORT] = { EAFNOSUPPORT, false },
        [ACTION_EOPNOTSUPP] = { EOPNOTSUPP, false },
        [ACTION_EPROTONOSUPPORT] = { EPROTONOSUPPORT, false },
        [ACTION_PRETEND] = { 0, false },
        [ACTION_NOTIFY_EPERM] = { EPERM, true },
        [ACTION_NOTIFY_ENOSYS] = { ENOSYS, true },
};

uint32_t syscall_action_value(SyscallAction action, bool notify) {
        assert(action < ACTION_CHECK_FIRST);
        if (action == ACTION_ALLOW)
                return SECCOMP_RET_ALLOW;
        if (action == ACTION_KILL)
                return SECCOMP_RET_KILL_PROCESS;
        if (refusals[action].notify && notify)
                return SECCOMP_RET_USER_NOTIF;
        return SECCOMP_RET_ERRNO | (uint32_t)refusals[action].errnum;
}

static bool is_refusal(SyscallAction action) {
        return action != ACTION_ALLOW && action < ACTION_CHECK_FIRST;
}

/* Returns the refusal of a call, which must be the same in all presets: the launcher knows only the
 * number. */
static SyscallAction row_refusal(const SyscallRow *row) {
        for (size_t preset = 0; preset < SYSCALLS_PRESET_MAX; preset++)
                if (is_refusal(row->actions[preset]))
                        return row->actions[preset];
        return ACTION_NOTIFY_EPERM;
}

/* --- writing a program --- */

/* Returns the instruction's label. */
static size_t syscalls_emit(Program *p, struct sock_filter instruction) {
        if (p->count == p->max) {
                p->full = true;
                return p->count;
        }
        p->count++;
        p->filter[p->max - p->count] = instruction;
        return p->count;
}

/* Returns a label for target within limit of the next instruction. It is target itself, a copy of
 * target's return, or a long jump to target. */
static size_t bring_near(Program *p, size_t target, size_t limit) {
        size_t distance = p->count - target;
        const struct sock_filter *there;

        if (distance <= limit)
                return target;
        there = &p->filter[p->max - target];
        if (BPF_CLASS(there->code) == BPF_RET)
                return syscalls_emit(p, *there);
        return syscalls_emit(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)distance));
}

static size_t emit_jump(Program *p, unsigned short test, uint32_t value, size_t yes, size_t no) {
        struct sock_filter jump = BPF_JUMP((unsigned short)(BPF_JMP | BPF_K | test), value, 0, 0);

        /* Bringing the second target near may move the first one away by one. */
        yes = bring_near(p, yes, JUMP_MAX - 1);
        no = bring_near(p, no, JUMP_MAX);
        jump.jt = (uint8_t)(p->count - yes);
        jump.jf = (uint8_t)(p->count - no);
        return syscalls_emit(p, jump);
}

static size_t emit_check(Program *p, const SyscallCheck *check);

static size_t action_label(Program *p, SyscallAction action) {
        size_t *label = &p->labels[action];

        if (*label == 0 && action >= ACTION_CHECK_FIRST)
                *label = emit_check(p, &syscall_checks[action - ACTION_CHECK_FIRST]);
        else if (*label == 0)
                *label = syscalls_emit(
                        p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                        syscall_action_value(action, p->notify)));
        return *label;
}

/* --- the search --- */

static void runs_add(Runs *runs, uint32_t first, SyscallAction action) {
        if (runs->count > 0 && runs->items[runs->count - 1].action == action)
                return;
        assert(runs->count < RUNS_MAX);
        runs->items[runs->count++] = (Run){ first, action };
}

static bool is_single(const Runs *runs, size_t i) {
        return i + 1 < runs->count ? runs->items[i + 1].first == runs->items[i].first + 1
                                   : runs->items[i].first == UINT32_MAX;
}

/* Whether runs low to high are at most LEAF_MAX single numbers among one other action. An equality
 * test for each is then shorter than a search, which needs two tests for each. */
static bool find_leaf(const Runs *runs, size_t low, size_t high, SyscallAction *ret_sea) {
        for (size_t candidate = low; candidate <= high && candidate < low + 2; candidate++) {
                SyscallAction sea = runs->items[candidate].action;
                size_t islands = 0;
                bool all_single = true;

                for (size_t i = low; i <= high; i++) {
                        if (runs->items[i].action == sea)
                                continue;
                        islands++;
                        all_single = all_single && is_single(runs, i);
                }
                if (all_single && islands <= LEAF_MAX) {
                        *ret_sea = sea;
                        return true;
                }
        }
        return false;
}

static size_t emit_search(Program *p, const Runs *runs, size_t low, size_t high) {
        SyscallAction sea;
        size_t middle, yes, no;

        if (find_leaf(runs, low, high, &sea)) {
                no = action_label(p, sea);
                for (size_t i = low; i <= high; i++) {
                        const Run *run = &runs->items[i];

                        if (run->action == sea)
                                continue;
                        yes = action_label(p, run->action);
                        no = emit_jump(p, BPF_JEQ, run->first, yes, no);
                }
                return no;
        }
        middle = low + (high - low + 1) / 2;
        yes = emit_search(p, runs, middle, high);
        no = emit_search(p, runs, low, middle - 1);
        return emit_jump(p, BPF_JGE, runs->items[middle].first, yes, no);
}

/* Emits the search that runs after the next load. The load falls through, so the search must start
 * at the instruction written last. */
static void emit_search_next(Program *p, const Runs *runs) {
        size_t label = emit_search(p, runs, 0, runs->count - 1);

        assert(label == p->count);
        (void)label; /* for NDEBUG */
}

static size_t emit_load(Program *p, size_t offset) {
        return syscalls_emit(
                p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static size_t emit_check(Program *p, const SyscallCheck *check) {
        Runs runs = { .count = 0 };
        uint32_t next = 0;

        for (size_t i = 0; i < check->count; i++) {
                const CheckRange *range = &check->ranges[i];

                if (range->first > next)
                        runs_add(&runs, next, check->otherwise);
                runs_add(&runs, range->first, range->action);
                next = range->last + 1;
        }
        if (next != 0) /* 0 if the last range reaches the end */
                runs_add(&runs, next, check->otherwise);

        emit_search_next(p, &runs);
        if (check->mask != UINT32_MAX)
                (void)syscalls_emit(
                        p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, check->mask));
        /* Both architectures are little-endian: the low half comes first. */
        return emit_load(p, offsetof(struct seccomp_data, args) + 8UL * check->arg +
                                    4UL * check->high);
}

/* Emits the tests for calls that open files, in front of the search. Their modes must be checked,
 * so the kernel's bitmap cannot answer them, and no other checked call is as frequent. */
static size_t emit_first(Program *p, const uint8_t actions[SYSCALL_NUMBERS_END], size_t search) {
        for (uint32_t nr = 0; nr < SYSCALL_NUMBERS_END; nr++)
                if (actions[nr] == ACTION_CHECK_OPEN || actions[nr] == ACTION_CHECK_OPENAT)
                        search = emit_jump(p, BPF_JEQ, nr, action_label(p, actions[nr]), search);
        return search;
}

/* The index of actions is the call's number. */
static void emit_program(Program *p, const uint8_t actions[SYSCALL_NUMBERS_END]) {
        Runs runs = { .count = 0 };
        size_t search, native, foreign;

        for (uint32_t nr = 0; nr < SYSCALL_NUMBERS_END; nr++)
                runs_add(&runs, nr, actions[nr]);
        runs_add(&runs, SYSCALL_NUMBERS_END, ACTION_ENOSYS);
        /* x32 has the same AUDIT_ARCH as x86_64. Every number from its bit on is killed, including
         * -1. */
        if (syscalls_audit_arch == AUDIT_ARCH_X86_64)
                runs_add(&runs, X32_BIT, ACTION_KILL);

        search = emit_search(p, &runs, 0, runs.count - 1);
        search = emit_first(p, actions, search);
        assert(search == p->count); /* the load continues with it */
        (void)search;               /* for NDEBUG */
        native = emit_load(p, offsetof(struct seccomp_data, nr));
        foreign = action_label(p, ACTION_KILL);
        (void)emit_jump(p, BPF_JEQ, syscalls_audit_arch, native, foreign);
        (void)emit_load(p, offsetof(struct seccomp_data, arch));
}

/* --- names --- */

int syscall_row_find(const char *name) {
        for (size_t i = 0; i < syscall_rows_count; i++)
                if (streq(syscall_rows[i].name, name))
                        return (int)i;
        return -ENOENT;
}

static int group_find(const char *name) {
        for (size_t i = 0; i < GROUP_MAX; i++)
                if (streq(syscall_groups[i].name, name))
                        return (int)i;
        return -ENOENT;
}

const char *syscalls_group_name(size_t i) {
        return i < GROUP_MAX ? syscall_groups[i].name : NULL;
}

static const char *nearest_name(const char *name) {
        Nearest nearest = { .word = name };

        for (size_t i = 0; i < syscall_rows_count; i++)
                nearest_try(&nearest, syscall_rows[i].name);
        return nearest.best;
}

int syscalls_name_check(const char *name, const char **ret_why) {
#define GROUP_NAME(id, name, help) " " name
        static const char no_group[] =
                "is not a group of system calls; the groups are" SYSCALL_GROUPS(GROUP_NAME);
#undef GROUP_NAME
        static const char no_call[] =
                "is not a system call of Linux 6.18 on x86_64 or aarch64; use names from section 2 "
                "of the manual, or a group such as @mount";
        static char why[80];
        const char *meant;

        if (name[0] == '@' ? group_find(name) >= 0 : syscall_row_find(name) >= 0)
                return 0;
        meant = name[0] == '@' ? NULL : nearest_name(name);
        if (meant)
                (void)snprintf(why, sizeof(why), "is not a system call; did you mean \"%s\"?",
                               meant);
        *ret_why = meant ? why : name[0] == '@' ? no_group : no_call;
        return -EINVAL;
}

int syscalls_deny_check(const char *name, const char **ret_why) {
        const int row = syscall_row_find(name), r = syscalls_name_check(name, ret_why);

        if (r < 0)
                return r;
        if (row >= 0 ? syscall_rows[row].group != GROUP_BASIC : group_find(name) != GROUP_BASIC)
                return 0;
        *ret_why = row >= 0 ? "is in the group @basic and can't be denied: holt's init needs it"
                            : "is a group that can't be denied: holt's init needs its calls";
        return -EINVAL;
}

static const SyscallRow *row_of_number(unsigned nr) {
        for (size_t i = 0; i < syscall_rows_count; i++)
                if (syscall_numbers[i] >= 0 && (unsigned)syscall_numbers[i] == nr)
                        return &syscall_rows[i];
        return NULL;
}

const char *syscall_name(unsigned nr) {
        const SyscallRow *row = row_of_number(nr);

        return row ? row->name : NULL;
}

const char *syscall_group(unsigned nr) {
        const SyscallRow *row = row_of_number(nr);

        return row ? syscall_groups[row->group].name : NULL;
}

int syscall_refusal(unsigned nr) {
        const SyscallRow *row = row_of_number(nr);

        return row ? refusals[row_refusal(row)].errnum : ENOSYS;
}

const char *syscall_refused_argument(unsigned nr) {
        const SyscallRow *row = row_of_number(nr);
        const unsigned action = row ? row->actions[0] : ACTION_ALLOW;

        return action < ACTION_CHECK_FIRST ? NULL : syscall_checks[action - ACTION_CHECK_FIRST].why;
}

static bool allows_namespaces(const StrList *allow) {
        static const char *const makers[] = { "@namespace", "unshare", "clone", "clone3" };

        for (size_t i = 0; allow && i < ELEMENTSOF(makers); i++)
                if (strlist_has(allow, makers[i]))
                        return true;
        return false;
}

static bool is_grantable(const SyscallRow *row, const StrList *allow) {
        return row->gate == GATE_NONE || (row->gate == GATE_OWN && allows_namespaces(allow));
}

bool syscall_grantable(unsigned nr, const StrList *allow) {
        const SyscallRow *row = row_of_number(nr);

        return row && is_grantable(row, allow);
}

void syscalls_count(const char *name, const StrList *allow, unsigned *ret_all, unsigned *ret_vain) {
        const int row = syscall_row_find(name), group = group_find(name);

        *ret_all = *ret_vain = 0;
        for (size_t i = 0; i < syscall_rows_count; i++) {
                if (syscall_numbers[i] < 0 || ((int)i != row && syscall_rows[i].group != group))
                        continue;
                (*ret_all)++;
                *ret_vain += !is_grantable(&syscall_rows[i], allow);
        }
}

/* --- compiling --- */

static int refuse_name(const char *name, const char *why, Error *reterr) {
        char quoted[64];

        return error_set(reterr, ERROR_POLICY, 0, "the system call \"%s\" %s",
                         str_quote(name, quoted, sizeof(quoted)), why);
}

/* Calls change(row, action, whole group) for each call that name means. */
static int for_each_named(const char *name, uint8_t *actions,
                          int (*change)(const SyscallRow *row, uint8_t *action, bool by_group),
                          Error *reterr) {
        int row = syscall_row_find(name), group = group_find(name), r;
        const char *why;

        r = syscalls_name_check(name, &why);
        if (r < 0)
                return refuse_name(name, why, reterr);
        for (size_t i = 0; i < syscall_rows_count; i++) {
                if ((int)i != row && syscall_rows[i].group != group)
                        continue;
                r = change(&syscall_rows[i], &actions[i], group >= 0);
                if (r < 0)
                        return refuse_name(name, "can't be denied: holt's init needs it", reterr);
        }
        return 0;
}

/* Allows a call. By its own name, it is allowed with any arguments; by its group, with those of the
 * default preset. */
static int allow_row(const SyscallRow *row, uint8_t *action, bool by_group) {
        SyscallAction usual = row->actions[SYSCALLS_DEFAULT];

        *action = (uint8_t)(by_group && !is_refusal(usual) ? usual : ACTION_ALLOW);
        return 0;
}

/* A call that is refused already keeps its answer. */
static int deny_row(const SyscallRow *row, uint8_t *action, bool by_group) {
        (void)by_group;
        if (row->group == GROUP_BASIC)
                return -EINVAL;
        *action = (uint8_t)row_refusal(row);
        return 0;
}

/* A user namespace of the command's own may have other ids than the sandbox. Then only the kernel
 * knows whether an id exists. */
static void allow_ids(uint8_t *actions) {
        for (size_t i = 0; i < syscall_rows_count; i++)
                if (actions[i] >= ACTION_CHECK_ID_ARG0 && actions[i] <= ACTION_CHECK_IDS_ARG2_3)
                        actions[i] = ACTION_ALLOW;
}

static int syscalls_resolve(unsigned preset, const StrList *allow, const StrList *deny,
                            uint8_t *actions, Error *reterr) {
        int r = 0;

        for (size_t i = 0; i < syscall_rows_count; i++)
                actions[i] = syscall_rows[i].actions[preset];
        for (size_t i = 0; allow && i < allow->count && r == 0; i++)
                r = for_each_named(allow->items[i], actions, allow_row, reterr);
        for (size_t i = 0; deny && i < deny->count && r == 0; i++)
                r = for_each_named(deny->items[i], actions, deny_row, reterr);
        if (allows_namespaces(allow))
                allow_ids(actions);
        return r;
}

bool syscalls_check(unsigned preset, const StrList *allow, const StrList *deny, const char *name) {
        const int row = syscall_row_find(name);
        uint8_t actions[SYSCALL_NUMBERS_END * 2];

        assert(row >= 0 && preset < SYSCALLS_PRESET_MAX && syscall_rows_count <= sizeof(actions));
        return syscalls_resolve(preset, allow, deny, actions, NULL) == 0 &&
               actions[row] >= ACTION_CHECK_FIRST;
}

int syscalls_compile(unsigned preset, bool notify, const StrList *allow, const StrList *deny,
                     struct sock_filter *out, size_t max, unsigned short *ret_len, Error *reterr) {
        Program program = { .filter = out, .max = max, .notify = notify };
        uint8_t by_row[SYSCALL_NUMBERS_END * 2], by_number[SYSCALL_NUMBERS_END];
        int r;

        assert(preset < SYSCALLS_PRESET_MAX && syscall_rows_count <= ELEMENTSOF(by_row));
        r = syscalls_resolve(preset, allow, deny, by_row, reterr);
        if (r < 0)
                return r;
        memset(by_number, ACTION_ENOSYS, sizeof(by_number));
        for (size_t i = 0; i < syscall_rows_count; i++)
                if (syscall_numbers[i] >= 0)
                        by_number[syscall_numbers[i]] = by_row[i];

        emit_program(&program, by_number);
        if (program.full || program.count > BPF_MAXINSNS)
                return error_set(reterr, ERROR_SETUP, E2BIG,
                                 "the system call filter does not fit %zu instructions", max);
        memmove(out, out + max - program.count, program.count * sizeof(*out));
        *ret_len = (unsigned short)program.count;
        return 0;
}
