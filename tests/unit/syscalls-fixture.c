/* SPDX-License-Identifier: Apache-2.0 */
#include "syscalls-fixture.h"

/* --- classic BPF: the instructions that the kernel allows and holt emits --- */

static uint32_t load(const struct seccomp_data *data, uint32_t offset) {
        uint32_t word;

        assert_true(offset % 4 == 0 && offset + 4 <= sizeof(*data));
        memcpy(&word, (const char *)data + offset, sizeof(word));
        return word;
}

Outcome interpret(SyscallProgram program, const struct seccomp_data *data) {
        Outcome outcome = { 0 };
        uint32_t a = 0;

        for (size_t pc = 0; pc < program.len; pc++) {
                struct sock_filter i = program.filter[pc];

                outcome.steps++;
                switch (i.code) {
                case BPF_LD | BPF_W | BPF_ABS:
                        a = load(data, i.k);
                        if (i.k >= offsetof(struct seccomp_data, instruction_pointer))
                                outcome.looked_at_arguments = true;
                        break;
                case BPF_ALU | BPF_AND | BPF_K:
                        a &= i.k;
                        break;
                case BPF_JMP | BPF_JA:
                        pc += i.k;
                        break;
                case BPF_JMP | BPF_JEQ | BPF_K:
                        pc += a == i.k ? i.jt : i.jf;
                        break;
                case BPF_JMP | BPF_JGE | BPF_K:
                        pc += a >= i.k ? i.jt : i.jf;
                        break;
                case BPF_RET | BPF_K:
                        outcome.value = i.k;
                        return outcome;
                default:
                        fail_msg("instruction %zu has code 0x%x", pc, i.code);
                }
        }
        fail_msg("the program has no end");
        return outcome;
}

Outcome run_with(SyscallProgram program, int nr, const uint64_t args[4]) {
        struct seccomp_data data = { .nr = nr,
                                     .arch = syscalls_audit_arch,
                                     .args = { args[0], args[1], args[2], args[3] } };

        return interpret(program, &data);
}

Outcome run(SyscallProgram program, int nr, uint64_t a, uint64_t b, uint64_t c) {
        const uint64_t args[4] = { a, b, c };

        return run_with(program, nr, args);
}

int number_of(const char *name) {
        int row = syscall_row_find(name);

        assert_true(row >= 0);
        return syscall_numbers[row];
}

const SyscallRow *row_of(int nr) {
        for (size_t i = 0; i < syscall_rows_count; i++)
                if (syscall_numbers[i] == nr)
                        return &syscall_rows[i];
        return NULL;
}

uint32_t return_value(int answer, bool notify) {
        if (answer == ALLOWED)
                return SECCOMP_RET_ALLOW;
        if ((answer & REPORTED) && notify)
                return SECCOMP_RET_USER_NOTIF;
        return SECCOMP_RET_ERRNO | (uint32_t)(answer & ~REPORTED);
}

/* --- the expected answers, by the tables --- */

static uint32_t action_of_arguments(SyscallAction action, bool notify, const uint64_t args[4]) {
        while (action >= ACTION_CHECK_FIRST) {
                const SyscallCheck *check = &syscall_checks[action - ACTION_CHECK_FIRST];
                uint32_t value = (uint32_t)args[check->arg] & check->mask;

                action = check->otherwise;
                for (size_t i = 0; i < check->count; i++)
                        if (value >= check->ranges[i].first && value <= check->ranges[i].last)
                                action = check->ranges[i].action;
        }
        return syscall_action_value(action, notify);
}

static bool listed(const StrList *list, const SyscallRow *row) {
        return strlist_has(list, row->name) || strlist_has(list, syscall_groups[row->group].name);
}

static SyscallAction refusal_of(const SyscallRow *row) {
        switch (syscall_refusal((unsigned)number_of(row->name))) {
        case EPERM:
                return row->actions[SYSCALLS_STRICT] == ACTION_EPERM ? ACTION_EPERM
                                                                     : ACTION_NOTIFY_EPERM;
        case EOPNOTSUPP:
                return ACTION_EOPNOTSUPP;
        default:
                return row->actions[SYSCALLS_STRICT] == ACTION_ENOSYS ? ACTION_ENOSYS
                                                                      : ACTION_NOTIFY_ENOSYS;
        }
}

static SyscallAction listed_action(const SyscallRow *row, unsigned preset, const StrList *allow,
                                   const StrList *deny) {
        if (!row)
                return ACTION_ENOSYS;
        if (deny && listed(deny, row))
                return refusal_of(row);
        if (allow && strlist_has(allow, row->name))
                return ACTION_ALLOW;
        if (allow && listed(allow, row))
                return row->actions[SYSCALLS_DEFAULT] >= ACTION_CHECK_FIRST
                               ? row->actions[SYSCALLS_DEFAULT]
                               : ACTION_ALLOW;
        return row->actions[preset];
}

/* Ids are checked only if the command has no user namespaces of its own. */
static SyscallAction expected_action(const SyscallRow *row, unsigned preset, const StrList *allow,
                                     const StrList *deny) {
        static const char *const makers[] = { "@namespace", "unshare", "clone", "clone3" };
        const SyscallAction action = listed_action(row, preset, allow, deny);

        if (action < ACTION_CHECK_ID_ARG0 || action > ACTION_CHECK_IDS_ARG2_3)
                return action;
        for (size_t i = 0; allow && i < ELEMENTSOF(makers); i++)
                if (strlist_has(allow, makers[i]))
                        return ACTION_ALLOW;
        return action;
}

static const uint64_t samples[][4] = {
        { 0, 0, 0 },          { 1, 1, 1 },           { 2, 2, 0 },
        { 16, 3, 0 },         { 10, 1, 132 },        { HIGH, HIGH, HIGH },
        { 0x10000000, 8, 6 }, { 35, 0x5412, 17 },    { 0xffffffff, 0x2000, 0x2000 },
        { 0, 0x40, 0x800 },   { 0, 0, 0x40, 0x400 },
};

void assert_program(SyscallProgram program, unsigned preset, bool notify, const StrList *allow,
                    const StrList *deny) {
        for (int nr = 0; nr <= 1024; nr++) {
                SyscallAction action = expected_action(row_of(nr), preset, allow, deny);

                for (size_t i = 0; i < ELEMENTSOF(samples); i++) {
                        Outcome outcome = run_with(program, nr, samples[i]);

                        assert_int_equal(outcome.value,
                                         action_of_arguments(action, notify, samples[i]));
                        assert_int_equal(outcome.looked_at_arguments, action >= ACTION_CHECK_FIRST);
                }
        }
}
