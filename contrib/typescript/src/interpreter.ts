// SPDX-License-Identifier: Apache-2.0
/** The Python interpreter of a sandbox. */
import { randomBytes } from "node:crypto";
import { Commands, type CommandOptions } from "./commands.js";
import type { Json } from "./connection.js";
import { HoltError } from "./errors.js";
import { PYTHON, checkNames } from "./options.js";
import type { OnOutput } from "./process.js";
import type { PythonLoaded, PythonSaved, Variable } from "./protocol.js";
import { PythonResult } from "./results.js";
import type { CallOptions } from "./server.js";
import { Slots } from "./slots.js";
import { timeoutOf } from "./times.js";
import { inTurn, telling } from "./watched.js";

/** Maximum number of runs that wait for the interpreter at once. A session accepts 64, of all its clients. */
const RUNS_MAX = 32;

export interface PythonOptions extends CommandOptions {
  /** runs the code in a new interpreter, which ends when the code ends */
  fresh?: boolean | undefined;
  /** is called with each piece of output; if it throws, the code is interrupted. Only one run with onOutput executes at a
   * time, of python() and shell.run() together. */
  onOutput?: OnOutput | undefined;
}

/** The part of a sandbox that runs Python code. */
export abstract class Interpreter extends Commands {
  readonly #runs = new Slots(RUNS_MAX);

  /**
   * Runs code in the session's interpreter, which keeps variables and imports. The result has `result` (the repr of the
   * last expression), `displays`, images() and `error`. The timeout starts with the code; waiting for another run does
   * not count. The signal interrupts the code.
   */
  async python(code: string, options: PythonOptions = {}): Promise<PythonResult> {
    checkNames("python", options, PYTHON);
    const { signal, onOutput, fresh, cwd, env, outputMax, keep, tools } = options;
    const params: Json = {
      code, cwd, env, fresh: fresh || undefined, timeout_ms: timeoutOf(options.timeout), output_max: outputMax, keep, tools, base64: true,
      run: randomBytes(8).toString("hex"),
    };
    signal?.throwIfAborted();
    const plain = (): Promise<PythonResult> => this.server.commands.run(signal, () => this.#python(params, signal));
    if (!onOutput) return this.#runs.run(signal, plain);
    const watched = (): Promise<PythonResult> =>
      this.server.commands.run(signal, () =>
        telling(this.server, this.session, onOutput, () => this.#python({ ...params, watch: true }, signal), () => this.#cancel(params)),
      );
    return this.#runs.run(signal, () => inTurn(this.server, this.session, signal, watched));
  }

  async #python(params: Json, signal: AbortSignal | undefined): Promise<PythonResult> {
    this.beforeCommand();
    try {
      return new PythonResult(await this.ask("python.run", params, { signal }));
    } catch (error) {
      if (!(error instanceof HoltError)) this.#cancel(params);
      throw error;
    }
  }

  /** Interrupts a run, or kills a fresh one. Either method also cancels a run that has not started. */
  #cancel(params: Json): void {
    this.tell(params.fresh ? "python.restart" : "python.interrupt", { run: params.run });
  }

  /** Kills the interpreter, so that the next run starts a new one. Returns whether an interpreter existed. */
  async restartPython(options: CallOptions = {}): Promise<boolean> {
    return (await this.request("python.restart", {}, { ...options, urgent: true })).killed;
  }

  /** Raises KeyboardInterrupt in the running code. Returns whether any code ran. */
  async interruptPython(options: CallOptions = {}): Promise<boolean> {
    return (await this.request("python.interrupt", {}, { ...options, urgent: true })).interrupted;
  }

  /** Lists the interpreter's variables. */
  async variables(options: CallOptions = {}): Promise<Variable[]> {
    return (await this.request("python.variables", {}, options)).variables;
  }

  /** Saves all variables that can be pickled in a file inside. leftOut has the reason for each other one. */
  async saveVariables(path?: string, options: CallOptions = {}): Promise<PythonSaved> {
    return this.request("python.save", { path }, options);
  }

  /** Restores saved variables. failed has the reason for each that could not be restored. */
  async loadVariables(path?: string, options: CallOptions = {}): Promise<PythonLoaded> {
    return this.request("python.load", { path }, options);
  }
}
