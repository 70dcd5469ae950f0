// SPDX-License-Identifier: Apache-2.0
/**
 * A running command: its output, its input and its end.
 *
 * Theory of operation. The server sends output as notifications, and this module queues it. All messages of the
 * server come through one pipe, so a slow reader of one process must not stop the pipe. Instead, the queue is bounded:
 * beyond BUFFER_MAX, the oldest output is dropped and counted.
 *
 * If `holt serve` ends, the command keeps running. The next reader asks the next `holt serve` for the output after the
 * last chunk. If the session has ended meanwhile, the output ends, and wait() reports "lost".
 */
import type { Json } from "./connection.js";
import { HoltNotFoundError, MissingError, NoProcessError, SetupError, TimeoutError, UsageError } from "./errors.js";
import { type Content, PIECE, Part, bytesOf } from "./part.js";
import type { HistoryRow, Process as WireProcess } from "./protocol.js";
import { Result } from "./results.js";
import { type CallOptions, type Listener, type Server, isGone } from "./server.js";
import { onAbort } from "./signals.js";
import { type Time, millisecondsOf } from "./times.js";

/** Maximum bytes of unread output. */
const BUFFER_MAX = 16 << 20;

/** Maximum characters of a line. A command can print one without an end. */
const LINE_MAX = 1 << 20;

/** Exit code of a command that was lost: that of SIGKILL, as holt itself reports it. */
const LOST = 137;

/** Milliseconds after the end of a command in which nobody else has stopped its session. */
const JUST = 100;

/** Rows of the history that one request reads, and the maximum number of such requests. */
const PAST_PAGE = 1000;
const PAST_PAGES_MAX = 20;

/** Bytes that each chunk counts in addition to its data. Otherwise, many small chunks could take too much memory. */
const CHUNK_COST = 256;

/** A process in a listing. id is the argument of Sandbox.process(), and pid the process id inside. */
export type ProcessInfo = WireProcess;

/** A piece of output. */
export interface Chunk {
  readonly stream: "stdout" | "stderr";
  readonly data: Buffer;
  /** the data as UTF-8; a character that is split between two chunks is in the later one */
  readonly text: string;
}

/** Is called with each piece of output. A promise that it returns is awaited before the next piece. */
export type OnOutput = (chunk: Chunk) => unknown;

/** A queue of output, which notifications fill and a reader empties. */
export class Output {
  /** bytes that were dropped because they were not read in time */
  dropped = 0;
  /** number of the last chunk */
  seen = 0;
  /** exit code, once all output has come */
  exitCode: number | undefined;
  /** whether no output comes any more, for another reason than the end of the command */
  lost = false;

  #chunks: Chunk[] = [];
  #first = 0;
  #size = 0;
  readonly #waiters = new Set<() => void>();
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  readonly #offsets = { stdout: 0, stderr: 0 };

  /** Takes a notification of process.output. */
  add(params: Json): void {
    const { seq, stream, base64, offset } = params;
    if (typeof seq !== "number" || typeof base64 !== "string" || (stream !== "stdout" && stream !== "stderr")) return;
    if (seq <= this.seen) return; // the server repeats it for a later watcher
    this.seen = seq;
    const data = Buffer.from(base64, "base64");
    if (typeof offset === "number") {
      this.dropped += Math.max(0, offset - this.#offsets[stream]); // holt has dropped what lies between
      this.#offsets[stream] = offset + data.length;
    }
    this.#push({ stream, data, text: this.#decoders[stream].decode(data, { stream: true }) });
  }

  #push(chunk: Chunk): void {
    this.#chunks.push(chunk);
    this.#size += chunk.data.length + CHUNK_COST;
    while (this.#size > BUFFER_MAX) this.dropped += this.#shift()!.data.length;
    this.wake();
  }

  #shift(): Chunk | undefined {
    const chunk = this.#chunks[this.#first];
    if (!chunk) return undefined;
    this.#size -= chunk.data.length + CHUNK_COST;
    this.#first++;
    if (this.#first > 1024 && this.#first * 2 > this.#chunks.length) {
      this.#chunks = this.#chunks.slice(this.#first);
      this.#first = 0;
    } else this.#chunks[this.#first - 1] = undefined as unknown as Chunk; // frees its memory
    return chunk;
  }

  /** Notes the end of the command. */
  end(exitCode: number): void {
    if (this.exitCode !== undefined) return;
    this.exitCode = exitCode;
    for (const stream of ["stdout", "stderr"] as const) {
      const text = this.#decoders[stream].decode();
      if (text) this.#push({ stream, data: Buffer.alloc(0), text });
    }
    this.wake();
  }

  wake(): void {
    for (const each of [...this.#waiters]) each();
  }

  /** Returns the next chunk, null at the end, or undefined if there is none yet. */
  take(): Chunk | null | undefined {
    return this.#shift() ?? (this.exitCode === undefined ? undefined : null);
  }

  /** Waits until take() should be called again. */
  more(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const done = (): void => {
        this.#waiters.delete(done);
        stop();
        resolve();
      };
      const stop = onAbort(signal, (reason) => {
        this.#waiters.delete(done);
        reject(reason);
      });
      this.#waiters.add(done);
    });
  }

  /** Calls a function with each chunk up to the end. */
  async tell(onOutput: OnOutput, signal?: AbortSignal): Promise<void> {
    for (;;) {
      const chunk = this.take();
      if (chunk) await onOutput(chunk);
      else if (chunk === null || this.lost) return;
      else await this.more(signal);
    }
  }
}

/** Returns a signal that is also aborted after a time, with a TimeoutError. */
export function withTimeout(signal: AbortSignal | undefined, time: Time | undefined): { signal: AbortSignal | undefined; done: () => void } {
  const milliseconds = millisecondsOf(time);
  if (milliseconds === undefined) return { signal, done: () => {} };
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new TimeoutError(`timed out after ${milliseconds / 1000} s`)), Math.min(Math.max(0, milliseconds), 2 ** 31 - 1));
  const stop = onAbort(signal, (reason) => controller.abort(reason));
  if (signal?.aborted) controller.abort(signal.reason);
  return {
    signal: controller.signal,
    done: () => {
      clearTimeout(timer);
      stop();
    },
  };
}

export interface WaitOptions extends CallOptions {
  /** time after which the call fails with a TimeoutError; the command keeps running */
  timeout?: Time | undefined;
}

/** A command that Sandbox.spawn() has started, or Sandbox.process() has found. Iterating it yields its output. */
export class Process extends Part {
  /** the session's name for the command, such as "p1" */
  readonly id: string;
  /** the process id inside */
  readonly pid: number;
  readonly #output = new Output();
  readonly #listener: Listener = (method, params) => this.#on(method, params);
  #listening = false;
  #ended: Result | undefined;
  #stopAbort: () => void = () => {};
  #watching: Promise<void> | undefined;
  #exited: { at: number; stops: number } | undefined;
  #referenced = true;
  #waiting = 0;
  #release: (() => void) | undefined;

  /** @internal */
  constructor(server: Server, session: string, id: string, pid: number) {
    super(server, session);
    this.id = id;
    this.pid = pid;
  }

  /** @internal Listens to the output. Must run before the notifications after the reply are handled. */
  listen(): void {
    if (this.#listening) return;
    this.#listening = true;
    this.server.listen(this.session, this.id, this.#listener);
  }

  #unlisten(): void {
    this.#listening = false;
    this.server.unlisten(this.session, this.id, this.#listener);
  }

  /** @internal A command that never ran has its result at once. */
  endAtOnce(ended: Json): void {
    this.#ended = new Result(ended);
    this.#end(this.#ended.exitCode);
    this.#unlisten();
  }

  /** @internal Kills the command when the signal is aborted. */
  killOn(signal: AbortSignal | undefined): void {
    if (signal?.aborted) this.tell("process.kill", { id: this.id });
    else this.#stopAbort = onAbort(signal, () => this.tell("process.kill", { id: this.id }));
  }

  /** @internal Starts to listen to a process that runs already. */
  async watch(options: CallOptions = {}): Promise<void> {
    this.listen();
    try {
      await this.ask("process.watch", { id: this.id, from: this.#output.seen + 1, base64: true }, options);
    } catch (error) {
      this.#unlisten();
      throw error;
    }
  }

  #on(method: string, params: Json | undefined): void {
    if (method === "process.output" && params) this.#output.add(params);
    else if (method === "process.exited") {
      this.#unlisten();
      // Its children may still print, which is ignored. process.unwatch would start a session that was just stopped.
      this.#end(typeof params?.exit_code === "number" ? params.exit_code : 0);
    } else if (!params) {
      this.#unlisten();
      this.#output.lost = true;
      this.#output.wake();
    }
  }

  #end(exitCode: number): void {
    this.#exited = { at: performance.now(), stops: this.server.stops };
    this.#stopAbort();
    this.#output.end(exitCode);
  }

  /** Asks for the rest of the output after `holt serve`, or the process of the session, has ended. */
  #watchAgain(): Promise<void> {
    this.#watching ??= (async () => {
      try {
        if (await this.#isAtRest()) return this.#end(LOST);
        this.#output.lost = false;
        await this.watch();
      } catch (error) {
        this.#output.lost = true;
        if (!mayBeLost(error)) throw error;
        this.#end((await this.wait()).exitCode);
      } finally {
        this.#watching = undefined;
      }
    })();
    return this.#watching;
  }

  /** The exit code, or undefined while the command runs. */
  get exitCode(): number | undefined {
    return this.#output.exitCode;
  }

  /** Bytes of output that were dropped because they were not read in time. */
  get dropped(): number {
    return this.#output.dropped;
  }

  /** Returns the next chunk of output, or null at the end. */
  async read(options: WaitOptions = {}): Promise<Chunk | null> {
    const { signal, done } = withTimeout(options.signal, options.timeout);
    try {
      for (;;) {
        signal?.throwIfAborted();
        const chunk = this.#output.take();
        if (chunk !== undefined) return chunk;
        if (this.#output.lost) await this.#watchAgain();
        else await this.#held(this.#output.more(signal));
      }
    } finally {
      done();
    }
  }

  /** Keeps this program alive while it waits for output, unless unref() was called. */
  async #held(promise: Promise<void>): Promise<void> {
    this.#waiting++;
    this.#holdOrRelease();
    try {
      await promise;
    } finally {
      this.#waiting--;
      this.#holdOrRelease();
    }
  }

  #holdOrRelease(): void {
    const needed = this.#referenced && this.#waiting > 0;
    if (needed) this.#release ??= this.server.hold();
    else {
      this.#release?.();
      this.#release = undefined;
    }
  }

  /** Lets this program end while it waits for the output or the end of the command, as unref() of Node's own objects does. */
  unref(): this {
    this.#referenced = false;
    this.#holdOrRelease();
    return this;
  }

  /** Undoes unref(). */
  ref(): this {
    this.#referenced = true;
    this.#holdOrRelease();
    return this;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void, undefined> {
    for (let chunk = await this.read(); chunk; chunk = await this.read()) yield chunk;
  }

  /** Yields the lines of one stream, or of both, without their ends. Yields a line of more than 1 Mi characters in pieces. */
  async *lines(stream?: "stdout" | "stderr"): AsyncGenerator<string, void, undefined> {
    const begun = { stdout: "", stderr: "" };
    for await (const chunk of this) {
      if (stream && chunk.stream !== stream) continue;
      const lines = chunk.text.split("\n");
      lines[0] = begun[chunk.stream] + lines[0]!;
      begun[chunk.stream] = lines.at(-1)!.length > LINE_MAX ? "" : lines.pop()!;
      yield* lines;
    }
    for (const rest of [begun.stdout, begun.stderr]) if (rest) yield rest;
  }

  /** Writes text or bytes to the command's stdin; needs spawn(..., { input: true }). Throws LimitError if more than 8 MiB
   * would wait for the command to read them. */
  async write(content: Content, options: CallOptions = {}): Promise<void> {
    const data = bytesOf(content);
    for (let at = 0; at < data.length; at += PIECE)
      await this.ask("process.write", { id: this.id, base64: data.toString("base64", at, at + PIECE) }, options);
  }

  /** Ends the command's input: after the last byte, the command reads end-of-file. */
  async closeStdin(options: CallOptions = {}): Promise<void> {
    await this.ask("process.close_stdin", { id: this.id }, options);
  }

  /** Sets the size of the command's terminal; needs spawn(..., { terminal: true }). */
  async resize(rows: number, columns: number, options: CallOptions = {}): Promise<void> {
    await this.ask("process.resize", { id: this.id, rows, columns }, options);
  }

  /** Sends a signal to the command and its process group: "TERM", "SIGTERM" or 15. */
  async signal(signal: string | number, options: CallOptions = {}): Promise<void> {
    await this.ask("process.signal", { id: this.id, signal: String(signal) }, { ...options, urgent: true });
  }

  /** Kills the command and all processes that it has started. Returns whether any existed. */
  async kill(options: CallOptions = {}): Promise<boolean> {
    return (await this.request("process.kill", { id: this.id }, { ...options, urgent: true })).killed;
  }

  /**
   * Waits for the end, and returns the result with the kept output. If the session has stopped since the command ended,
   * the output is gone. The result then comes from the session's history, and the session stays stopped. If the history
   * does not say how the command ended, because the session's process was killed, the cause is "lost".
   */
  async wait(options: WaitOptions = {}): Promise<Result> {
    if (this.#ended) return this.#ended;
    const { signal, done } = withTimeout(options.signal, options.timeout);
    try {
      return new Result(await this.#waited(signal));
    } finally {
      done();
    }
  }

  async #waited(signal: AbortSignal | undefined): Promise<Json> {
    // A request that waits takes one of the few places of requests, so it is sent after the notification of the end.
    while (this.#listening && this.#output.exitCode === undefined) await this.#held(this.#output.more(signal));
    for (const output of [true, false]) {
      if (!(output && this.#hasJustExited()) && (await this.#isAtRest(signal))) break;
      try {
        return await this.ask("process.wait", { id: this.id, base64: true, ...(output ? { output } : {}) }, { signal, urgent: true });
      } catch (error) {
        if (output ? !mayBeLost(error) : !(error instanceof NoProcessError)) throw error;
      }
    }
    return (await this.#past(signal)) ?? { id: this.id, cause: "lost", exit_code: LOST };
  }

  /** Whether the command has ended by itself a moment ago, so that its session is live. */
  #hasJustExited(): boolean {
    if (!this.#exited || (this.exitCode ?? LOST) >= 128) return false;
    return performance.now() - this.#exited.at < JUST && this.#exited.stops === this.server.stops;
  }

  /** Whether the session is stopped. Most requests about a process would start it. */
  async #isAtRest(signal?: AbortSignal): Promise<boolean> {
    return (await this.request("session.show", {}, { signal, urgent: true })).state === "at rest";
  }

  /** Returns how the command ended, from the history. */
  async #past(signal: AbortSignal | undefined): Promise<Json | undefined> {
    for (const name of ["process.spawn", "exec"]) {
      let before: number | undefined;
      for (let pages = 0; pages < PAST_PAGES_MAX; pages++) {
        const { rows, next } = await this.request("history.list", { name, before, limit: PAST_PAGE }, { signal, urgent: true });
        const row = rows.find(({ result }) => result?.id === this.id);
        if (row) return pastOf(row);
        if (next === null) break;
        before = next;
      }
    }
    return undefined;
  }

  /** Kills the command and all processes that it has started, and waits for their end. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (this.server.closed || this.#ended) return;
      await this.ask("process.kill", { id: this.id }, { urgent: true });
      await this.ask("process.wait", { id: this.id }, { urgent: true });
    } catch (error) {
      if (!(error instanceof MissingError) && !isGone(error)) throw error;
    } finally {
      this.#stopAbort();
      this.#unlisten();
    }
  }
}

/** Returns the result for a row of the history. */
function pastOf({ result, startedMs, endedMs }: HistoryRow): Json {
  const { exit_code: code, cause } = result ?? {};
  const signal = cause === "signaled" && typeof code === "number" && code > 128 ? code - 128 : null;
  return { ...result, signal, usage: { wall_us: endedMs === null ? null : Math.max(0, endedMs - startedMs) * 1000, user_us: null, system_us: null, max_rss_bytes: null } };
}

/** @internal Whether a request about a process may have failed because its session has ended. */
export function mayBeLost(error: unknown): boolean {
  return error instanceof NoProcessError || (error instanceof SetupError && !(error instanceof HoltNotFoundError));
}

/** @internal Throws UsageError for a command that is text where an array belongs. */
export function argvOf(argv: readonly string[]): string[] {
  if (typeof argv === "string")
    throw new UsageError(`a command must be an array of arguments, not the text ${JSON.stringify(argv)}`, {
      hint: `Run a line of bash by bash(${JSON.stringify(argv)}), or a command without a shell by exec(${JSON.stringify((argv as string).split(/\s+/))}).`,
    });
  if (!Array.isArray(argv)) throw new UsageError(`a command must be an array of arguments, not ${typeof argv}`);
  for (const each of argv) if (typeof each !== "string") throw new UsageError(`an argument of a command must be text, not ${JSON.stringify(each)}`);
  if (!argv.length) throw new UsageError("a command needs at least one argument");
  return [...argv];
}
