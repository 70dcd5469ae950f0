// SPDX-License-Identifier: Apache-2.0
/**
 * A running `holt serve`, and the requests that it has not answered yet.
 *
 * Theory of operation. Requests have increasing numbers, and replies come in any order. The server accepts 256
 * unanswered requests, so requests beyond IN_FLIGHT wait here; urgent ones, such as process.kill, use the rest. A
 * request whose caller has given up keeps its number until the reply comes, because the server still counts it.
 *
 * The process and its pipes keep this program alive only while a reply is awaited. So a program that forgets to close a
 * sandbox still ends, and `holt serve` with it.
 *
 * A message that is not valid ends the connection: the reply that it should have been would otherwise never come. The
 * owner (server.ts) settles the unanswered requests.
 */
import { ClosedError, HoltError, ProtocolError, errorOf } from "./errors.js";
import { Lines, lineOf } from "./message.js";
import type { Serve } from "./program.js";

/** Maximum number of unanswered requests. A server takes 256; the rest is reserved for urgent requests. */
export const IN_FLIGHT = 230;

/** The same for urgent requests. */
const URGENT_IN_FLIGHT = 250;

/** Milliseconds for a `holt serve` whose output has ended to end, too. */
const END_WITHIN = 1000;

/** Bytes that are kept of its stderr. */
const STDERR_MAX = 4096;

export type Json = Record<string, unknown>;

/** A request, and the caller that waits for its reply. */
export interface Pending {
  readonly method: string;
  readonly params: Json;
  readonly urgent: boolean;
  /** whether it does not keep this program alive */
  readonly quiet: boolean;
  /** how often it was sent */
  tries: number;
  /** whether nobody waits any more */
  abandoned: boolean;
  /** takes the result while later messages have not been handled yet */
  resolve(result: Json): void;
  reject(error: unknown): void;
}

/** Handles the events of a connection. */
export interface Owner {
  onNotification(method: string, params: Json): void;
  onRequest(connection: Connection, id: string | number, method: string, params: Json): void;
  onEnd(connection: Connection, unanswered: Pending[]): void;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export class Connection {
  /** whether no reply can come any more */
  ended = false;
  /** why it has ended; undefined before the end */
  why: HoltError | undefined;
  readonly closed: Promise<void>;

  readonly #serve: Serve;
  readonly #owner: Owner;
  readonly #lines = new Lines();
  readonly #waiting = new Map<number, Pending>();
  #delayed: Pending[] = [];
  #urgent: Pending[] = [];
  #next = 1;
  #held = 0;
  #said = Buffer.alloc(0);
  #broken: HoltError | undefined;
  #onClosed: () => void = () => {};

  constructor(serve: Serve, owner: Owner) {
    this.#serve = serve;
    this.#owner = owner;
    serve.stdout.on("data", (data: Buffer) => this.#take(data));
    serve.stdout.on("error", () => {}); // "close" follows
    serve.stdout.on("close", () => this.#onOutputEnd());
    serve.stdin.on("error", () => {}); // the output ends, too
    serve.stderr.on("data", (data: Buffer) => (this.#said = Buffer.concat([this.#said, data]).subarray(-STDERR_MAX)));
    serve.stderr.on("error", () => {});
    serve.on("error", (error) => this.#break(new ClosedError(`${serve.spawnfile} can't be started: ${error.message}`, { cause: error })));
    serve.on("close", () => this.#end());
    serve.on("exit", () => setTimeout(() => this.#end(), END_WITHIN).unref()); // if another process holds its pipes
    this.closed = new Promise((resolve) => (this.#onClosed = resolve));
    this.#setHold(false);
  }

  get pid(): number | undefined {
    return this.#serve.pid;
  }

  // --- sending ---

  /** Sends a request, or lets it wait for its turn. Throws HoltError if it cannot be written. */
  send(pending: Pending): void {
    if (this.ended) throw this.why ?? new ClosedError("holt serve has ended");
    const full = this.#waiting.size >= (pending.urgent ? URGENT_IN_FLIGHT : IN_FLIGHT);
    if (full) {
      lineOf(0, pending.method, pending.params); // throws now if it cannot be sent
      (pending.urgent ? this.#urgent : this.#delayed).push(pending);
    } else this.#write(pending);
  }

  #write(pending: Pending): void {
    const number = this.#next++;
    const line = lineOf(number, pending.method, pending.params);
    pending.tries++;
    this.#waiting.set(number, pending);
    if (!pending.quiet) this.hold(1);
    this.#serve.stdin.write(line);
  }

  #writeDelayed(): void {
    for (const [queue, room] of [[this.#urgent, URGENT_IN_FLIGHT], [this.#delayed, IN_FLIGHT]] as const) {
      let taken = 0;
      while (taken < queue.length && this.#waiting.size < room) {
        const pending = queue[taken++]!;
        if (pending.abandoned) continue;
        try {
          this.#write(pending);
        } catch (error) {
          pending.reject(error); // the caller has changed the parameters meanwhile
        }
      }
      if (taken) queue.splice(0, taken);
    }
  }

  /** Replies to a request of the server. */
  answer(line: string): void {
    if (!this.ended) this.#serve.stdin.write(line);
  }

  /** The number of the last request. */
  get newest(): number {
    return this.#next - 1;
  }

  /** The sessions of unanswered requests up to a number; "" for those without a session. */
  sessionsUpTo(number: number): Set<string> {
    const found = new Set<string>();
    for (const [each, { params, quiet }] of this.#waiting)
      if (each <= number && !quiet) found.add(typeof params.session === "string" ? params.session : "");
    return found;
  }

  /** Fails all requests of a session. */
  giveUp(session: string, why: HoltError): void {
    for (const each of [...this.#waiting.values(), ...this.#urgent, ...this.#delayed]) {
      if (each.params.session !== session || each.abandoned) continue;
      each.abandoned = true;
      each.reject(why);
    }
  }

  // --- receiving ---

  #take(data: Buffer): void {
    if (this.#broken) return;
    let lines: string[];
    try {
      lines = this.#lines.split(data);
    } catch (error) {
      this.#break(error as HoltError);
      return;
    }
    for (const line of lines) {
      if (this.#broken) return;
      this.#takeLine(line);
    }
  }

  #takeLine(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      this.#break(new ProtocolError(`holt serve has sent a line that is not JSON: ${JSON.stringify(line.slice(0, 80))}`));
      return;
    }
    if (!isObject(message)) this.#break(new ProtocolError("holt serve has sent a message that is not an object"));
    else if (typeof message.method === "string") this.#takeCall(message, message.method);
    else this.#takeReply(message);
  }

  #takeCall(message: Json, method: string): void {
    const params = isObject(message.params) ? message.params : {};
    const { id } = message;
    if (typeof id === "string" || typeof id === "number") this.#owner.onRequest(this, id, method, params);
    else this.#owner.onNotification(method, params);
  }

  #takeReply(message: Json): void {
    const pending = typeof message.id === "number" ? this.#waiting.get(message.id) : undefined;
    if (!pending) {
      // Without a known id, nobody can tell which request has failed: the server could not parse one.
      if (isObject(message.error)) this.#break(new ProtocolError(`holt serve has refused a message: ${errorOf(message.error).reason}`));
      return;
    }
    this.#waiting.delete(message.id as number);
    if (!pending.quiet) this.hold(-1);
    if (this.#urgent.length || this.#delayed.length) this.#writeDelayed();
    if (pending.abandoned) return;
    if (isObject(message.result)) pending.resolve(message.result);
    else if ("error" in message) pending.reject(errorOf(message.error));
    else pending.reject(new ProtocolError(`holt serve has replied to ${pending.method} without a result`));
  }

  // --- life ---

  /** Adds to the number of reasons for which this program must not end yet. */
  hold(count: number): void {
    if (this.ended) return;
    const before = this.#held > 0;
    this.#held += count;
    if (this.#held > 0 !== before) this.#setHold(!before);
  }

  #setHold(held: boolean): void {
    const { stdin, stdout, stderr } = this.#serve;
    for (const each of [this.#serve, stdin, stdout, stderr] as unknown as Array<{ ref?(): void; unref?(): void }>) {
      if (held) each.ref?.();
      else each.unref?.();
    }
  }

  /**
   * Hangs up, so that `holt serve` removes its throwaway sessions and ends. Its output is closed, too, because otherwise it
   * first waits for the commands that still run. Kills it after `patience` ms.
   */
  async close(patience: number, why: HoltError): Promise<void> {
    if (this.ended) return;
    this.#broken = why; // no further message is handled
    this.hold(1);
    for (const each of this.#takeUnanswered()) each.reject(why);
    this.#serve.stdin.end();
    this.#serve.stdout.destroy();
    const timer = setTimeout(() => this.#serve.kill("SIGKILL"), patience);
    await this.closed;
    clearTimeout(timer);
  }

  #takeUnanswered(): Pending[] {
    const unanswered = [...this.#waiting.values(), ...this.#urgent, ...this.#delayed].filter((each) => !each.abandoned);
    this.#waiting.clear();
    this.#urgent = [];
    this.#delayed = [];
    return unanswered;
  }

  /** Kills `holt serve`, because it is of no use any more. */
  kill(why: HoltError): void {
    this.#break(why);
  }

  #break(why: HoltError): void {
    this.#broken ??= why;
    this.#serve.kill("SIGKILL");
    if (this.#serve.pid === undefined) this.#end();
  }

  #onOutputEnd(): void {
    if (this.ended || this.#broken) return;
    this.hold(1);
    setTimeout(() => this.#serve.kill("SIGKILL"), END_WITHIN).unref();
  }

  #end(): void {
    if (this.ended) return;
    this.ended = true;
    const { exitCode, signalCode } = this.#serve;
    const said = this.#said.toString("utf8").trim();
    const half = this.#lines.begun ? " in the middle of a message" : "";
    this.why = this.#broken ?? new ClosedError(`holt serve has ended${half} (${signalCode ?? `code ${exitCode}`})${said ? `: ${said}` : ""}`, {
      hint: "Repeat the request; it starts holt serve again. Sessions and their files are still there.",
    });
    const unanswered = this.#takeUnanswered();
    this.#held = 0;
    this.#setHold(false);
    for (const each of [this.#serve.stdin, this.#serve.stdout, this.#serve.stderr]) each.destroy();
    this.#onClosed();
    this.#owner.onEnd(this, unanswered);
  }
}
