// SPDX-License-Identifier: Apache-2.0
/**
 * Runs `holt serve`, and starts another one if it ends.
 *
 * Theory of operation. All requests go through one `holt serve`, which forwards them to the processes of the sessions.
 * The Python package connects to these directly, by descriptors that Node cannot receive. The detour costs less than a
 * tenth of the time of a command.
 *
 * If `holt serve` ends during a request, the request is sent again to the next one if it only reads. Otherwise it fails
 * with a ClosedError, because nobody knows whether it was carried out. The next request starts another `holt serve`,
 * which first gets the requests of repeat() again, such as those for tools. Throwaway sessions outlive the death of a
 * `holt serve` (lease.ts).
 *
 * Notifications about a process stop without a word if the process of its session (its keeper) dies. So while
 * somebody listens to a session, one of its processes is awaited: the reply comes, with an error, if the keeper dies.
 */
import { setImmediate as immediate, setTimeout as pause } from "node:timers/promises";
import { Connection, type Json, type Owner, type Pending } from "./connection.js";
import { ClosedError, HoltError, ProtocolError, TimeoutError, UsageError } from "./errors.js";
import { watchOver } from "./liveness.js";
import { LINE_MAX, textOf } from "./message.js";
import { fromWire, toWire } from "./names.js";
import { startServe } from "./program.js";
import { AT_REST, type Methods } from "./protocol.js";
import { onAbort } from "./signals.js";
import { Slots } from "./slots.js";
import { type Time, millisecondsOf } from "./times.js";

/** Maximum number of commands that run at once for one server; others start as these end. */
const COMMANDS_MAX = 160;

/** Milliseconds for `holt serve` to end, after its input has ended. */
const CLOSE_WITHIN = 10_000;

/** Milliseconds that close() waits for the replies to requests that nobody else waits for. */
const TELL_WITHIN = 2000;

/** Maximum number of sessions in which a process is awaited. */
const SENTINELS_MAX = 100;

/** Milliseconds between two processes that are awaited. */
const SENTINEL_PAUSE = 100;

/** How often a request is sent in all, if one `holt serve` after the other ends. */
const TRIES_MAX = 3;

/** Methods that change something although they start no session. */
const CHANGING = new Set(["session.allow", "session.stop", "route.add", "route.remove"]);

/** Whether a request can be sent again, because a second time changes nothing. */
function mayRepeat(method: string): boolean {
  return (AT_REST.has(method) && !CHANGING.has(method)) || method === "process.wait" || method === "session.list" || method === "process.watch";
}

/** A listener for notifications about one process. undefined: `holt serve` has ended, so no more come. */
export type Listener = (method: string, params: Json | undefined) => void;

type Answerer = (params: Json, answer: (message: Json) => void) => void;

export interface ServerOptions {
  /** path of the program; default: $HOLT, or holt in the PATH */
  holt?: string | undefined;
  /** environment variables in addition to this program's; { XDG_DATA_HOME: ... } stores sessions elsewhere */
  env?: Readonly<Record<string, string>> | undefined;
  /**
   * directories that commands can write: there and below, holt is not searched in the PATH. A Sandbox without a server
   * of its own adds its workspace and its readWrite.
   */
  writable?: readonly string[] | undefined;
  /**
   * time after which calls fail with a TimeoutError if the server answers nothing; default "1m"; "none": never. A command
   * may take longer: the server still answers other requests.
   */
  replyTimeout?: Time | undefined;
}

export interface CallOptions {
  /** gives up the call when it is aborted */
  signal?: AbortSignal | undefined;
}

interface AskOptions extends CallOptions {
  urgent?: boolean;
  /** does not keep this program alive */
  quiet?: boolean;
  /** is also sent while close() waits */
  late?: boolean;
  /** is called with the result before later messages are handled */
  then?: (result: Json) => void;
}

interface Repeated {
  method: string;
  params: Json;
}

/** A `holt serve`, which the first request starts. Sandboxes can share it. close(), or `await using`, ends it. */
export class Server {
  /** @internal */
  readonly commands = new Slots(COMMANDS_MAX);
  readonly #options: ServerOptions;
  readonly #replyTimeout: number | undefined;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #answerers = new Map<string, Answerer>();
  readonly #repeated = new Map<string, Map<string, Repeated>>();
  readonly #told = new Set<Promise<void>>();
  readonly #stale = new Set<string>();
  readonly #sentinels = new Set<string>(); // sessions
  /** @internal how often this program has stopped a session */
  stops = 0;
  readonly #stopping = new Map<string, number>(); // sessions, and how many calls stop them
  readonly #awaited = new Set<string>(); // keys of listeners whose processes have ended
  #connection: Connection | undefined;
  #closing: Promise<void> | undefined;
  #over = false;
  #unwatch: () => void = () => {};
  #onCancel: ((params: Json) => void) | undefined;
  #onGone: () => void = () => {};
  readonly #owner: Owner = {
    onNotification: (method, params) => this.#onNotification(method, params),
    onRequest: (connection, id, method, params) => this.#onRequest(connection, id, method, params),
    onEnd: (connection, unanswered) => this.#onEnd(connection, unanswered),
  };

  constructor(options: ServerOptions = {}) {
    this.#options = options;
    this.#replyTimeout = options.replyTimeout === undefined ? 60_000 : millisecondsOf(options.replyTimeout);
  }

  /** Sends a request of holt-serve(1), and returns its result. Parameters and results have the names of this package. */
  async call<M extends keyof Methods>(method: M, params: Methods[M]["params"], options: CallOptions = {}): Promise<Methods[M]["result"]> {
    return fromWire(await this.ask(method, toWire(params), options)) as Methods[M]["result"];
  }

  /** @internal Sends a request, and returns its result. Both have the names of the protocol. */
  ask(method: string, params: Json, options: AskOptions = {}): Promise<Json> {
    const { signal, then } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = onAbort(signal, (reason) => {
        pending.abandoned = true;
        reject(reason);
      });
      const pending: Pending = {
        method, params, urgent: options.urgent ?? false, quiet: options.quiet ?? false, tries: 0, abandoned: false,
        resolve: (result) => {
          stop();
          try {
            then?.(result);
            resolve(result);
          } catch (error) {
            reject(error); // a wrong result must not end this program
          }
        },
        reject: (error) => {
          stop();
          reject(error);
        },
      };
      try {
        this.#send(pending, options.late);
      } catch (error) {
        pending.reject(error);
      }
    });
  }

  /** @internal Sends a request and ignores its outcome, so that another error can be thrown. */
  async tell(method: string, params: Json): Promise<void> {
    if (this.#connection) await this.keep(this.ask(method, params, { urgent: true, late: true }));
  }

  /** @internal Makes close() wait for something that nobody else waits for. Returns a promise that is never rejected. */
  keep(promise: Promise<unknown>): Promise<void> {
    const kept = promise.then(() => {}, () => {});
    this.#told.add(kept);
    void kept.then(() => this.#told.delete(kept));
    return kept;
  }

  #send(pending: Pending, late = false): void {
    if (this.#over || (this.#closing && !late)) throw new ClosedError("the sandbox is closed");
    if (!this.#connection) {
      this.#connection = new Connection(startServe(this.#options.holt, this.#options.env ?? {}, this.#options.writable), this.#owner);
      if (this.#replyTimeout !== undefined)
        this.#unwatch = watchOver(this.#connection, this.#replyTimeout, (asked, params) => this.ask(asked, params, { urgent: true, quiet: true }));
    }
    const { session } = pending.params;
    if (typeof session === "string" && this.#stale.has(session) && !AT_REST.has(pending.method)) this.#repeat(session);
    this.#connection.send(pending);
  }

  // --- life ---

  /** @internal Keeps this program alive until the returned function is called. */
  hold(): () => void {
    const connection = this.#connection;
    connection?.hold(1);
    return () => connection?.hold(-1);
  }

  /** Whether close() was called. */
  get closed(): boolean {
    return this.#closing !== undefined;
  }

  /** The process id of the running `holt serve`; undefined if none runs. */
  get pid(): number | undefined {
    return this.#connection?.pid;
  }

  /** Ends `holt serve`. Sessions keep running, except throwaway ones. Pending requests fail with a ClosedError. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#unwatch();
    const connection = this.#connection;
    if (!connection) return;
    // A request that nobody waits for may kill a command that was given up just now.
    const release = this.hold();
    const waits = new AbortController();
    await immediate();
    await Promise.race([this.#allTold(), pause(TELL_WITHIN, undefined, { signal: waits.signal })]);
    waits.abort();
    release();
    this.#over = true;
    await connection.close(CLOSE_WITHIN, new ClosedError("the sandbox is closed"));
  }

  async #allTold(): Promise<void> {
    while (this.#told.size) await Promise.all(this.#told);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #onEnd(connection: Connection, unanswered: Pending[]): void {
    if (this.#connection === connection) this.#connection = undefined;
    this.#unwatch();
    this.#onGone();
    for (const session of this.#repeated.keys()) this.#stale.add(session);
    const why = this.#closing ? new ClosedError("the sandbox is closed") : (connection.why ?? new ClosedError("holt serve has ended"));
    for (const each of unanswered) {
      if (!this.#closing && why instanceof ClosedError && mayRepeat(each.method) && each.tries < TRIES_MAX) this.#sendAgain(each);
      else each.reject(why);
    }
    for (const listeners of [...this.#listeners.values()]) for (const each of [...listeners]) each("", undefined);
  }

  #sendAgain(pending: Pending): void {
    try {
      this.#send(pending);
    } catch (error) {
      pending.reject(error);
    }
  }

  // --- messages of the server ---

  /** @internal Adds a listener for the notifications about a process. */
  listen(session: string, id: string, listener: Listener): void {
    const key = `${session}\n${id}`;
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(listener));
    if (id) this.#sentinel(session);
  }

  /** @internal Removes a listener. */
  unlisten(session: string, id: string, listener: Listener): void {
    const key = `${session}\n${id}`;
    const listeners = this.#listeners.get(key);
    if (listeners?.delete(listener) && !listeners.size) {
      this.#listeners.delete(key);
      this.#awaited.delete(key);
    }
  }

  /** Waits for one process of a session, to notice the death of the session's keeper. */
  #sentinel(session: string): void {
    if (this.#sentinels.has(session) || this.#sentinels.size >= SENTINELS_MAX || this.#closing) return;
    const prefix = `${session}\n`;
    const key = [...this.#listeners.keys()].find((each) => each.startsWith(prefix) && each !== prefix && !this.#awaited.has(each));
    if (!key) return;
    this.#sentinels.add(session);
    // If the session is being stopped, its other processes end now, too. A request would start it again.
    const next = (): void => {
      setTimeout(() => {
        this.#sentinels.delete(session);
        if (!this.#stopping.has(session)) this.#sentinel(session);
      }, SENTINEL_PAUSE).unref();
    };
    this.ask("process.wait", { session, id: key.slice(prefix.length) }, { urgent: true, quiet: true }).then(
      () => {
        this.#awaited.add(key); // its last notifications may still come
        next();
      },
      () => {
        for (const [name, listeners] of [...this.#listeners]) if (name.startsWith(prefix)) for (const each of [...listeners]) each("", undefined);
        next();
      },
    );
  }

  /** @internal Stops a session. */
  async stop(session: string, options: CallOptions = {}): Promise<void> {
    this.stops++;
    this.#stopping.set(session, (this.#stopping.get(session) ?? 0) + 1);
    try {
      await this.ask("session.stop", { session }, { ...options, urgent: true });
    } finally {
      const left = this.#stopping.get(session)! - 1;
      if (left) this.#stopping.set(session, left);
      else this.#stopping.delete(session);
    }
  }

  /** @internal Sets the function that answers requests of the server, such as tool.call. */
  onRequests(method: string, answerer: Answerer): void {
    this.#answerers.set(method, answerer);
  }

  /** @internal Sets the function that handles tool.cancel. */
  onCancel(handler: (params: Json) => void): void {
    this.#onCancel = handler;
  }

  /** @internal Sets the function that is called when `holt serve` has ended, and with it all calls of tools. */
  onGone(handler: () => void): void {
    this.#onGone = handler;
  }

  #onNotification(method: string, params: Json): void {
    if (method === "tool.cancel") return this.#onCancel?.(params);
    const { session, id } = params;
    const all = this.#listeners.get(`${session}\n${id}`) ?? this.#listeners.get(`${session}\n`);
    for (const each of all ? [...all] : []) each(method, params);
  }

  #onRequest(connection: Connection, id: string | number, method: string, params: Json): void {
    const answer = (message: Json): void => connection.answer(answerLine(id, message));
    const answerer = this.#answerers.get(method);
    if (answerer) answerer(params, answer);
    else answer({ error: { code: -32601, message: `no method is called ${JSON.stringify(method)}` } });
  }

  /**
   * @internal Remembers a request, such as one for a tool of this name, to repeat it to each new `holt serve`. params
   * undefined forgets it.
   */
  repeat(session: string, method: string, name: string, params: Json | undefined): void {
    const known = this.#repeated.get(session) ?? new Map<string, Repeated>();
    if (params) known.set(`${method}\n${name}`, { method, params });
    else known.delete(`${method}\n${name}`);
    if (known.size) this.#repeated.set(session, known);
    else this.#repeated.delete(session);
  }

  #repeat(session: string): void {
    this.#stale.delete(session);
    for (const { method, params } of this.#repeated.get(session)?.values() ?? []) this.ask(method, params, { urgent: true }).catch(() => {});
  }
}

/** Returns the line of a reply to the server. A value that cannot be sent becomes an error. */
function answerLine(id: string | number, message: Json): string {
  try {
    const line = `${textOf({ jsonrpc: "2.0", id, ...message }, "the tool's result", 1)}\n`;
    if (Buffer.byteLength(line) > LINE_MAX)
      throw new UsageError(`the tool's result has ${Buffer.byteLength(line)} bytes, and may have at most ${LINE_MAX}`);
    return line;
  } catch (error) {
    const reason = error instanceof HoltError ? error.reason : String(error);
    return `${JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32000, message: reason.toWellFormed().replaceAll("\0", "\uFFFD"), data: { type: "internal_error" } } })}\n`;
  }
}

/** @internal Whether a request failed because its `holt serve` is gone or does not work. */
export function isGone(error: unknown): boolean {
  return error instanceof ClosedError || error instanceof ProtocolError || error instanceof TimeoutError;
}
