/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of holt, in the order of its help. A row declares cmd_NAME() and is all that main.c
 * needs.
 *
 * Each function takes argv from the verb on, prints its own errors, and returns the exit code.
 * LIGHT verbs are in both programs, FULL ones in holt-full alone, to which holt hands them over. */
#pragma once

#define VERBS(LIGHT, FULL)                                                                         \
        LIGHT(run, "run a command in a sandbox of its own")                                        \
        FULL(create, "make a session, a sandbox that lasts")                                       \
        FULL(exec, "run a command in a session")                                                   \
        FULL(sh, "an interactive bash in a session")                                               \
        FULL(python, "run code in a session's lasting interpreter")                                \
        FULL(ps, "list the processes of a session")                                                \
        FULL(logs, "print what a process of a session has printed")                                \
        FULL(wait, "wait for the end of a process")                                                \
        FULL(kill, "kill all that a process has started")                                          \
        FULL(cp, "copy files into a session, or out of it")                                        \
        FULL(files, "list, read, write and move a session's files")                                \
        FULL(kv, "keys and values that a session keeps")                                           \
        FULL(history, "what was done in a session")                                                \
        FULL(audit, "what was refused, killed or limited in it")                                   \
        FULL(ls, "list the sessions")                                                              \
        FULL(show, "say what a session is and has")                                                \
        FULL(tier, "give a session at rest another size")                                          \
        FULL(rebind, "have a session at rest take a replaced directory")                           \
        FULL(stop, "end all that runs in a session")                                               \
        FULL(rm, "take a session away, with its files")                                            \
        FULL(serve, "serve JSON-RPC, for adapters")                                                \
        FULL(policy, "show, check and describe policies")                                          \
        LIGHT(doctor, "try every layer on this host, and say what cures it")

#define VERB_DECLARE(name, help) int cmd_##name(int argc, char **argv);
VERBS(VERB_DECLARE, VERB_DECLARE)
#undef VERB_DECLARE
