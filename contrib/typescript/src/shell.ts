// SPDX-License-Identifier: Apache-2.0
/** The lasting shell of a session. */
import { randomBytes } from "node:crypto";
import type { CommandOptions } from "./commands.js";
import { HoltError } from "./errors.js";
import { SHELL, checkNames } from "./options.js";
import { Part } from "./part.js";
import type { OnOutput } from "./process.js";
import { ShellResult } from "./results.js";
import type { CallOptions } from "./server.js";
import { Slots } from "./slots.js";
import { timeoutOf } from "./times.js";
import { inTurn, telling } from "./watched.js";

/** Maximum number of calls that wait for the shell at once, as for the interpreter. */
const RUNS_MAX = 32;

export interface ShellOptions extends Omit<CommandOptions, "tools"> {
  /** is called with each piece of output; if it throws, the commands are interrupted. Only one run with onOutput executes
   * at a time, of shell.run() and python() together. */
  onOutput?: OnOutput | undefined;
}

/** A bash that lasts: each call finds the directory, variables and functions of earlier ones. */
export class Shell extends Part {
  readonly #runs = new Slots(RUNS_MAX);

  /**
   * Runs commands. Calls run one after the other. cwd changes the directory first, and env exports variables, both also
   * for later calls. At the timeout, the commands are interrupted, and then the shell is killed. The signal interrupts them.
   */
  async run(commands: string, options: ShellOptions = {}): Promise<ShellResult> {
    checkNames("shell.run", options, SHELL);
    const { signal, cwd, env, outputMax, keep, onOutput } = options;
    const run = randomBytes(8).toString("hex");
    const params = { code: commands, cwd, env, timeout_ms: timeoutOf(options.timeout), output_max: outputMax, keep, base64: true, run };
    signal?.throwIfAborted();
    const interrupt = (): void => void this.tell("shell.interrupt", { run });
    const ask = async (watch?: true): Promise<ShellResult> => {
      try {
        return new ShellResult(await this.ask("shell.run", { ...params, watch }, { signal }));
      } catch (error) {
        if (!(error instanceof HoltError)) interrupt();
        throw error;
      }
    };
    if (!onOutput) return this.#runs.run(signal, () => this.server.commands.run(signal, () => ask()));
    const watched = (): Promise<ShellResult> =>
      this.server.commands.run(signal, () => telling(this.server, this.session, onOutput, () => ask(true), interrupt));
    return this.#runs.run(signal, () => inTurn(this.server, this.session, signal, watched));
  }

  /** Interrupts the running commands, as Ctrl-C does. Returns whether any ran. */
  async interrupt(options: CallOptions = {}): Promise<boolean> {
    return (await this.request("shell.interrupt", {}, { ...options, urgent: true })).interrupted;
  }

  /** Kills the shell with everything that it started. The next call starts a new one. Returns whether it existed. */
  async restart(options: CallOptions = {}): Promise<boolean> {
    return (await this.request("shell.restart", {}, { ...options, urgent: true })).killed;
  }
}
