/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of holt, in the order of its help. A row declares cmd_NAME(), and main.c needs nothing
 * else.
 *
 * Each function takes argv from the verb on, prints its own errors, and returns the exit code. Both
 * programs have the LIGHT verbs. Only holt-full has the FULL ones, and holt executes it for
 * them. */
#pragma once

#define VERBS(LIGHT, FULL)                                                                         \
        LIGHT(run, "run a command in a sandbox of its own")                                        \
        FULL(create, "create a session, a sandbox that lasts")                                     \
        FULL(exec, "run a command in a session")                                                   \
        FULL(sh, "run an interactive bash in a session")                                           \
        FULL(shell, "run commands in the lasting shell of a session")                              \
        FULL(python, "run code in the Python interpreter of a session")                            \
        FULL(ps, "list the processes of a session")                                                \
        FULL(logs, "print the output of a process")                                                \
        FULL(wait, "wait until a process has ended")                                               \
        FULL(kill, "kill a process and everything that it has started")                            \
        FULL(allow, "add rules to the network of a session")                                       \
        FULL(route, "add routes to a session, list or remove them")                                \
        FULL(forward, "let the host connect to a port of a session")                               \
        FULL(cp, "copy files into a session or out of it")                                         \
        FULL(files, "list, read, write and move the files of a session")                           \
        FULL(link, "make a URL to a file of a session, or one that accepts a file")                \
        FULL(kv, "store keys and values in a session")                                             \
        FULL(history, "list the commands and calls of a session")                                  \
        FULL(audit, "list the refusals, kills and connections of a session")                       \
        FULL(ls, "list the sessions")                                                              \
        FULL(show, "describe a session")                                                           \
        FULL(tier, "change the size of a session at rest")                                         \
        FULL(rebind, "let a session use a mounted file or directory that was replaced")            \
        FULL(stop, "end every process of a session")                                               \
        FULL(rm, "remove a session and its files")                                                 \
        FULL(serve, "serve sessions over JSON-RPC, for other programs")                            \
        FULL(mcp, "serve a session to an agent, by the Model Context Protocol")                    \
        FULL(policy, "show, check and describe policies")                                          \
        LIGHT(bwrap, "run a command with the arguments of bubblewrap")                             \
        LIGHT(doctor, "test every layer on this host, and say how to fix those that fail")

#define VERB_DECLARE(name, help) int cmd_##name(int argc, char **argv);
VERBS(VERB_DECLARE, VERB_DECLARE)
#undef VERB_DECLARE
