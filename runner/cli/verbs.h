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
int cmd_ls(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_tier(int argc, char **argv);
int cmd_rebind(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_wait(int argc, char **argv);
int cmd_kill(int argc, char **argv);
int cmd_python(int argc, char **argv);
int cmd_kv(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_audit(int argc, char **argv);
