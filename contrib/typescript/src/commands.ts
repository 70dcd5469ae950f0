// SPDX-License-Identifier: Apache-2.0
/**
 * Commands of a sandbox.
 *
 * A plain command is one request (exec). With a signal, a function for the output, or much input, a command needs two:
 * process.spawn starts it, and process.wait awaits it. So its id is known, and it can be killed.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Json } from "./connection.js";
import { HoltError, LimitError, NoProcessError, SetupError, UsageError } from "./errors.js";
import { EXEC, SPAWN, checkNames } from "./options.js";
import { type Content, PIECE, Part, bytesOf } from "./part.js";
import { type OnOutput, Output, Process, type ProcessInfo, argvOf, mayBeLost } from "./process.js";
import { Result } from "./results.js";
import type { CallOptions, Listener } from "./server.js";
import { abortable } from "./signals.js";
import { type Time, timeoutOf } from "./times.js";

/** Bits of the fds 0 to 2, for a terminal. */
const TERMINAL = 7;

/** Milliseconds in which a command must start if very many start at the same time. */
const START_WITHIN = 30_000;

/** Maximum length of stdin in the request of exec. */
const STDIN_MAX = 128 * 1024;

const INTERPRETER = "/run/holt/python/holt_interpreter.py";

export interface CommandOptions extends CallOptions {
  /** working directory; relative to the workspace */
  cwd?: string | undefined;
  /** environment variables in addition to the session's */
  env?: Readonly<Record<string, string>> | undefined;
  /** time that the command may take; limited by the policy; 0 or less ends the command at once */
  timeout?: Time | undefined;
  /** bytes to keep of each stream; default 1 MiB, at most 8 MiB */
  outputMax?: number | undefined;
  /** the part of the output to keep */
  keep?: "head" | "tail" | undefined;
  /** names of tools that the command may call, also of other clients; default: the tools of this sandbox */
  tools?: readonly string[] | undefined;
}

export interface ExecOptions extends CommandOptions {
  /** input as text or bytes; default empty */
  stdin?: Content | undefined;
  /** is called with each piece of output; if it throws, the command is killed */
  onOutput?: OnOutput | undefined;
}

export interface SpawnOptions extends CommandOptions {
  /** makes stdin a pipe, for write() and closeStdin(); otherwise stdin is empty */
  input?: boolean | undefined;
  /** makes the command's stdin, stdout and stderr a terminal; all output is then stdout */
  terminal?: boolean | { rows: number; columns: number } | undefined;
  /** kills the command when this program ends; otherwise the command keeps running in a lasting session */
  owned?: boolean | undefined;
}

/** Returns the parameters that all commands have. Throws UsageError. */
function paramsOf(command: Json, options: CommandOptions): Json {
  const params: Json = { ...command };
  const { cwd, env, outputMax, keep, tools } = options;
  const timeout = timeoutOf(options.timeout);
  for (const [name, value] of Object.entries(env ?? {}))
    if (typeof value !== "string") throw new UsageError(`env.${name} must be text, not ${value}`, { hint: 'Leave the variable out, or write "".' });
  if (tools !== undefined && !Array.isArray(tools))
    throw new UsageError("tools must be an array of names", { hint: "addTool() offers a function." });
  if (cwd !== undefined) params.cwd = cwd;
  if (env !== undefined) params.env = env;
  if (timeout !== undefined) params.timeout_ms = timeout;
  if (outputMax !== undefined) params.output_max = outputMax;
  if (keep !== undefined) params.keep = keep;
  if (tools !== undefined) params.tools = tools;
  return params;
}

/** The part of a sandbox that runs commands. */
export abstract class Commands extends Part {
  /** @internal Is called before each command. */
  protected beforeCommand(): void {}

  /**
   * Runs a line of bash to its end. A command that fails throws nothing: see `ok`, `exitCode` and `cause` of the result,
   * or call check().
   */
  async bash(line: string, options: ExecOptions = {}): Promise<Result> {
    if (typeof line !== "string") throw new UsageError("bash() needs a line as text", { hint: "exec() runs an array of arguments." });
    checkNames("bash", options, EXEC);
    return this.#run({ shell: line }, options);
  }

  /** Runs a command to its end without a shell. Throws CommandNotFoundError. */
  async exec(argv: readonly string[], options: ExecOptions = {}): Promise<Result> {
    checkNames("exec", options, EXEC);
    return this.#run({ argv: argvOf(argv) }, options);
  }

  async #run(command: Json, options: ExecOptions): Promise<Result> {
    const params = paramsOf(command, options);
    const { signal, stdin, onOutput } = options;
    const input = stdin === undefined ? undefined : bytesOf(stdin);
    signal?.throwIfAborted();
    return this.server.commands.run(signal, async () => {
      if (signal || onOutput || (input && !isShortText(stdin))) return this.#awaited(params, input, options);
      if (input?.length) params.stdin = stdin;
      params.base64 = true;
      return new Result(await this.#started("exec", params));
    });
  }

  /** Sends a request that starts a command, again if init has not read all earlier ones yet. */
  async #started(method: "exec" | "process.spawn", params: Json, options: CallOptions & { then?: (result: Json) => void } = {}): Promise<Json> {
    const deadline = performance.now() + START_WITHIN;
    for (;;) {
      this.beforeCommand();
      try {
        return await this.ask(method, params, options);
      } catch (error) {
        if (!(error instanceof HoltError) || error.errno !== "EAGAIN" || performance.now() > deadline) throw error;
      }
      await pause(10, undefined, options.signal ? { signal: options.signal } : {});
    }
  }

  /** Starts a command. If the caller gives up meanwhile, the command is killed as soon as its id is known. */
  async #spawned(params: Json, signal: AbortSignal | undefined, then: (result: Json) => void): Promise<Json> {
    const started = this.#started("process.spawn", params, {
      then: (result) => {
        if (signal?.aborted) this.tell("process.kill", { id: result.id });
        else then(result);
      },
    });
    if (signal) void this.server.keep(started); // close() waits, so that it can still be killed
    return abortable(started, signal);
  }

  async #awaited(params: Json, input: Buffer | undefined, options: ExecOptions): Promise<Result> {
    const { signal, onOutput } = options;
    if (input?.length) params.input = true;
    if (onOutput) params.watch = true;
    const output = new Output();
    let id: unknown;
    const listener: Listener = (method, notes) => {
      if (method === "process.output" && notes) output.add(notes);
      else if (method === "process.exited") output.end(0);
      else if (!notes) {
        // `holt serve` has ended. The next one sends the rest of the output.
        this.ask("process.watch", { id, from: output.seen + 1, base64: true }).catch(() => {
          output.lost = true;
          output.wake();
        });
      }
    };
    try {
      const started = await this.#spawned(params, signal, (result) => {
        if (onOutput && !result.ended) this.server.listen(this.session, String(result.id), listener);
      });
      if (started.ended) return new Result(started.ended as Json); // it never ran
      id = started.id;
      return await this.#waited(String(id), input, output, options);
    } finally {
      if (onOutput && id !== undefined) this.server.unlisten(this.session, String(id), listener);
    }
  }

  async #waited(id: string, input: Buffer | undefined, output: Output, options: ExecOptions): Promise<Result> {
    const { signal, onOutput } = options;
    const release = this.server.hold(); // the end of the output may come after the reply
    try {
      const fed = input?.length ? this.#feed(id, input, signal) : undefined;
      fed?.catch(() => {}); // it is awaited below, unless something else fails before
      const answer = this.ask("process.wait", { id, output: true, base64: true }, { signal, urgent: true });
      answer.catch(() => {});
      if (onOutput) await Promise.race([output.tell(onOutput, signal), answer.then(() => new Promise<never>(() => {}))]);
      await fed;
      return new Result(await answer);
    } catch (error) {
      if (!signal?.aborted && mayBeLost(error))
        throw new SetupError(`${id} has ended, because the session was stopped`, { hint: "history() shows how it ended.", cause: error });
      this.tell("process.kill", { id });
      throw error;
    } finally {
      release();
    }
  }

  async #feed(id: string, data: Buffer, signal: AbortSignal | undefined): Promise<void> {
    try {
      for (let at = 0; at < data.length; at += PIECE)
        await this.ask("process.write", { id, base64: data.toString("base64", at, at + PIECE) }, { signal });
      await this.ask("process.close_stdin", { id }, { signal });
    } catch (error) {
      // The command may close its stdin, or end, before it has read everything. That is legal for any pipe.
      if (!(error instanceof HoltError) || error instanceof LimitError) throw error;
    }
  }

  /**
   * Starts a command, and does not wait for its end. Text is a line of bash; an array is a program and its arguments.
   * The signal kills the command, also after the start.
   */
  async spawn(command: string | readonly string[], options: SpawnOptions = {}): Promise<Process> {
    checkNames("spawn", options, SPAWN);
    const params = paramsOf(typeof command === "string" ? { shell: command } : { argv: argvOf(command) }, options);
    const { input, terminal, owned, signal } = options;
    signal?.throwIfAborted();
    if (input) params.input = true;
    if (owned) params.owned = true;
    if (terminal) Object.assign(params, { terminal: TERMINAL, rows: 24, columns: 80 }, typeof terminal === "object" ? terminal : {});
    params.watch = true;
    let made: Process | undefined;
    await this.#spawned(params, signal, (result) => {
      made = new Process(this.server, this.session, String(result.id), Number(result.pid));
      if (result.ended) made.endAtOnce(result.ended as Json);
      else {
        made.listen();
        made.killOn(signal);
      }
    });
    return made!;
  }

  /** Lists the processes of all clients, the newest first: running ones, and the last that ended. */
  async processes(options: CallOptions = {}): Promise<ProcessInfo[]> {
    return (await this.request("process.list", {}, options)).processes;
  }

  /**
   * Returns an existing process, even of another client, for example of `holt exec --detach`. Its output starts with the
   * oldest kept bytes. Throws NoProcessError.
   */
  async process(id: string, options: CallOptions = {}): Promise<Process> {
    const found = (await this.processes(options)).find((each) => each.id === id);
    if (!found) throw new NoProcessError(`process ${JSON.stringify(id)} does not exist`, { hint: "processes() lists those that do." });
    if (found.command.endsWith(INTERPRETER))
      throw new UsageError(`${id} is the interpreter`, { hint: "Use python(), interruptPython() and restartPython()." });
    const made = new Process(this.server, this.session, found.id, found.pid);
    await made.watch(options);
    return made;
  }

  /**
   * Adds rules to the network of the session, which keeps them: box.allow("net:example.org:443").
   *
   * Each grant is "net:" and a rule, or "net:@" and a named set. A live session must have a network with rules. With
   * `{ once: true }` as the last argument, each grant allows one connection.
   */
  async allow(...grants: Array<string | (CallOptions & { once?: boolean })>): Promise<void> {
    const last = grants.at(-1);
    const { once, signal } = typeof last === "object" ? last : {};
    await this.request("session.allow", { grants: grants.filter((each) => typeof each === "string"), once }, { signal });
  }

  /**
   * Lets programs of the host connect to a port inside, and returns the address for them, such as "127.0.0.1:49152".
   *
   * hostPort: port of the host; 0 is a free one. address: the host's address; default 127.0.0.1. The port stays open
   * until the session stops. A second call without hostPort returns the same address.
   */
  async forward(port: number, options: CallOptions & { hostPort?: number; address?: string } = {}): Promise<string> {
    const { signal, hostPort, address } = options;
    return (await this.request("ports.forward", { port, hostPort: hostPort || undefined, address }, { signal })).address;
  }

  /** Closes the ports of the host that forward() has opened for the port inside: all of them, or only hostPort. */
  async closePort(port: number, options: CallOptions & { hostPort?: number } = {}): Promise<void> {
    await this.request("ports.close", { port, hostPort: options.hostPort }, { signal: options.signal });
  }

  /** Returns the port inside for each address of the host that leads into the session: { "127.0.0.1:49152": 3000 }. */
  async ports(options: CallOptions = {}): Promise<Record<string, number>> {
    const { ports } = await this.request("process.list", {}, options);
    return Object.fromEntries(ports.map((each) => [each.address, each.port]));
  }
}

/** Whether a text fits in the request of exec. Its JSON may be six times as long. */
function isShortText(stdin: Content | undefined): boolean {
  return typeof stdin === "string" && stdin.length <= STDIN_MAX && !stdin.includes("\0");
}
