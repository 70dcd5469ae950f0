// SPDX-License-Identifier: Apache-2.0
/** Commands of a HoltSandbox, and handles to them. */
import { ProcessHandle, SandboxExecutionError, SandboxProcessManager } from "@mastra/core/workspace";
import type { CommandResult, ProcessInfo, SpawnProcessOptions } from "@mastra/core/workspace";
import { ClosedError, HoltError, MissingError, NoProcessError, SetupError, UsageError, type Process, type Result } from "holt";
import { lastLine, reworded } from "./denials.js";
import type { HoltSandbox } from "./sandbox.js";

/** Exit code of a command whose end is unknown: that of SIGKILL, as holt reports it. */
const LOST = 137;

/** A command in the sandbox. Its pid is the id that `holt ps` shows. */
export class HoltProcessHandle extends ProcessHandle {
  readonly pid: string;
  exitCode: number | undefined;

  readonly #process: Process;
  readonly #ended: Promise<CommandResult>;
  readonly #input: boolean;
  readonly #timeout: number | undefined;
  readonly #started = Date.now();
  #inputClosed = false;
  #endsWithNewline = true;
  #listenerFailed: ((error: unknown) => void) | undefined;

  /** @internal */
  constructor(process: Process, options: SpawnProcessOptions, lasting: boolean, listenerFailed: (error: unknown) => void) {
    super(options);
    if (lasting) process.unref(); // the next program finds it
    this.pid = process.id;
    this.#process = process;
    this.#input = options.stdinMode !== "ignore";
    this.#timeout = options.timeout || undefined;
    this.#listenerFailed = listenerFailed;
    this.#ended = this.#follow();
  }

  /** Passes the output on until the command has ended. */
  async #follow(): Promise<CommandResult> {
    let result: Result | undefined;
    let failed = "";
    try {
      for await (const { stream, text } of this.#process) this.#emit(stream, text);
      result = await this.#process.wait();
    } catch (error) {
      failed = `[holt: ${error instanceof Error ? error.message : String(error)}]`;
    }
    const dropped = this.#process.dropped;
    if (dropped) this.#emitLine(`[holt: ${dropped} bytes of output were dropped, because they were not read in time]`);
    const own = this.#timeout !== undefined && result?.cause === "timeout" && (result.usage.wallUs ?? Infinity) >= this.#timeout * 1000;
    if (own) this.#emitLine(`Process timed out after ${this.#timeout}ms`); // as LocalSandbox says it
    const line = result ? lastLine(result, own) : failed;
    if (line) this.#emitLine(line);
    this.exitCode = result?.exitCode ?? LOST;
    return {
      success: result?.ok ?? false,
      exitCode: this.exitCode,
      stdout: this.stdout,
      stderr: this.stderr,
      executionTimeMs: Date.now() - this.#started,
      timedOut: result?.cause === "timeout",
      killed: result?.cause !== "exited",
    };
  }

  #emitLine(line: string): void {
    this.#emit("stderr", `${this.#endsWithNewline ? "" : "\n"}${line}\n`);
  }

  #emit(stream: "stdout" | "stderr", text: string): void {
    if (!text) return;
    if (stream === "stderr") this.#endsWithNewline = text.endsWith("\n");
    try {
      if (stream === "stdout") this.emitStdout(text);
      else this.emitStderr(text);
    } catch (error) {
      this.#listenerFailed?.(error); // once: the command continues, and the output is kept
      this.#listenerFailed = undefined;
    }
  }

  /** The output as a stream. It keeps this program alive until its end. */
  override get reader(): ProcessHandle["reader"] {
    this.#process.ref();
    return super.reader;
  }

  /** Waits for the end. The result has the retained output. The constructor of ProcessHandle adds what the options do. */
  override async wait(_options?: Parameters<ProcessHandle["wait"]>[0]): Promise<CommandResult> {
    this.#process.ref();
    return this.#ended;
  }

  /** Kills the command and all processes that it has started. Returns false if it has ended. */
  async kill(): Promise<boolean> {
    if (this.exitCode !== undefined) return false;
    try {
      return await this.#process.kill();
    } catch (error) {
      if (isLost(error)) return false;
      throw error;
    }
  }

  #needsInput(): void {
    if (this.exitCode !== undefined) throw new Error(`Process ${this.pid} has already exited with code ${this.exitCode}`);
    if (!this.#input) throw new Error(`Process ${this.pid} has no stdin, because it was started with stdinMode "ignore"`);
  }

  async sendStdin(data: string): Promise<void> {
    this.#needsInput();
    await this.#process.write(data);
  }

  /** Ends the command's input. A second call does nothing. */
  override async closeStdin(): Promise<void> {
    this.#needsInput();
    if (this.#inputClosed) return;
    await this.#process.closeStdin();
    this.#inputClosed = true;
  }
}

/** Whether a command cannot be found any more, because it or its session has ended. */
function isLost(error: unknown): boolean {
  return error instanceof NoProcessError || error instanceof MissingError || error instanceof ClosedError || error instanceof SetupError;
}

/** Returns the variables that have a value. */
export function variables(env: Readonly<Record<string, string | undefined>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(env ?? {}).filter((each): each is [string, string] => each[1] !== undefined));
}

/** Starts, lists and finds commands. A command is a line of bash. */
export class HoltProcessManager extends SandboxProcessManager<HoltSandbox> {
  override async spawn(command: string, options: SpawnProcessOptions = {}): Promise<HoltProcessHandle> {
    const { timeout, cwd, env, stdinMode } = options;
    try {
      const process = await this.sandbox.withBox((box) =>
        box.spawn(command, {
          cwd: this.sandbox.inside(cwd), env: variables({ ...this.env, ...env }), timeout: timeout || undefined, input: stdinMode !== "ignore",
        }),
      );
      return this.#track(process, options);
    } catch (error) {
      if (!(error instanceof HoltError)) throw error;
      throw new SandboxExecutionError(reworded(error.message), 126, "", "");
    }
  }

  #track(process: Process, options: SpawnProcessOptions): HoltProcessHandle {
    const handle = new HoltProcessHandle(process, options, this.sandbox.lasting, (error) => this.sandbox.warn("a listener of output has thrown an error", error));
    this._tracked.set(handle.pid, handle);
    return handle;
  }

  /** Lists the commands of this program, and those that run in the session since an earlier program. */
  override async list(): Promise<ProcessInfo[]> {
    const own = [...this._tracked.values()].map((handle): ProcessInfo => ({
      pid: handle.pid, command: handle.command, running: handle.exitCode === undefined, exitCode: handle.exitCode,
    }));
    const all = await this.sandbox.withBox((box) => box.processes());
    const known = (id: string): boolean => this._tracked.has(id) || this._dismissed.has(id);
    const others = all.filter(({ id, state, command }) => !["ended", "background"].includes(state) && !known(id) && !isInterpreter(command));
    return [...own, ...others.map(({ id, command }): ProcessInfo => ({ pid: id, command, running: true }))];
  }

  /** Returns the handle of a command, even if an earlier program has started it in the same session. */
  override async get(pid: string): Promise<ProcessHandle | undefined> {
    const own = this._tracked.get(pid);
    if (own) return own;
    try {
      const process = await this.sandbox.withBox((box) => box.process(pid));
      return this.#track(process, {});
    } catch (error) {
      if (error instanceof NoProcessError || error instanceof UsageError) return undefined;
      throw error;
    }
  }
}

function isInterpreter(command: string): boolean {
  return command.endsWith("/run/holt/python/holt_interpreter.py");
}
