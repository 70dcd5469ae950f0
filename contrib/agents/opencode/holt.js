// SPDX-License-Identifier: Apache-2.0
// A plugin of OpenCode, which puts the commands of its bash tool under holt, by the holt-sh above this file's directory.
//
// The commands can write the project: the git work tree, or the directory in which OpenCode was started. The model can
// choose the working directory of a command, but not the project. HOLT_SH_POLICY, HOLT_SH_NET and HOLT_SH_HOLT in OpenCode's
// environment change the sandbox; see holt-sh.
//
// If SHELL leads to holt-sh, OpenCode itself starts commands by it, and the plugin only names the project. OpenCode's rules
// for commands then see each command as the model wrote it. Otherwise they see the rewritten command.
import { accessSync, constants, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const holtSh = join(dirname(realpathSync(fileURLToPath(import.meta.url))), "..", "holt-sh");

/** The word for bash, zsh and fish. In single quotes, fish interprets a backslash. */
const quoted = (word) => "'" + word.replace(/['\\]/g, (c) => (c === "'" ? `'"'"'` : `'"\\\\"'`)) + "'";

const leadsToHoltSh = (path) => {
  try {
    return realpathSync(path) === realpathSync(holtSh);
  } catch {
    return false;
  }
};

export const Holt = async ({ directory, worktree }) => {
  const workspace = worktree && worktree !== "/" ? worktree : directory;
  let shell = process.env.SHELL;
  return {
    config: async (config) => {
      shell = config.shell ?? shell;
    },
    "shell.env": async (_, output) => {
      output.env.HOLT_SH_WORKSPACE = workspace;
    },
    // OpenCode does not run the tool if this function throws.
    "tool.execute.before": async ({ tool }, output) => {
      if (tool !== "bash") return;
      accessSync(holtSh, constants.X_OK);
      const command = output.args?.command;
      if (typeof command !== "string" || command.includes("\0")) throw new Error("holt: the command is no text that a shell can run");
      if (leadsToHoltSh(shell)) return;
      output.args.command = ["/usr/bin/env", `HOLT_SH_WORKSPACE=${workspace}`, holtSh, "-c", command].map(quoted).join(" ");
    },
  };
};
