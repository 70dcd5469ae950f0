/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of holt. Each takes argv from the verb on, prints its own errors, and returns the exit
 * code. */
#pragma once

int cmd_run(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_create(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_sh(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_files(int argc, char **argv);
int cmd_cp(int argc, char **argv);
/* ls, show, stop, rm, ps, kill, kv, history, audit. */
int cmd_session(int argc, char **argv);
