// SPDX-License-Identifier: Apache-2.0
/**
 * Questions about hosts that no rule allows.
 *
 * Theory of operation. network.attend offers the process of a session (its keeper) to answer questions. A keeper that is
 * started later does not know of the offer, and no message says that it is another one. So the offer is sent again
 * before each command. It costs the keeper a few microseconds.
 */
import type { Json } from "./connection.js";
import { UsageError, printable, reasonOf } from "./errors.js";
import type { Server } from "./server.js";

/** The answer "once" allows this connection, "session" adds a rule that the session keeps, and "no" refuses the
 * connection. After "no", the name and the port are refused without a question while the session is live. */
export type Allow = "once" | "session" | "no";

/**
 * A question about a host that no rule allows. A connection inside waits for the answer.
 *
 * name comes from code inside, in its ASCII form: show it as untrusted text. timeout is the time for the answer in
 * milliseconds. After that, holt refuses the connection.
 */
export interface Question {
  readonly name: string;
  readonly port: number;
  readonly timeout: number;
}

/** A function that answers questions. If it throws, or returns another value, the answer is "no". */
export type OnAsk = (question: Question) => Allow | Promise<Allow>;

/** Refuses only the connection of the question. */
const NOBODY = { error: { code: -32000, message: "nobody answers questions about hosts" } };

const known = new WeakMap<Server, Questions>();

/** @internal The questions of all sessions of one server. */
export class Questions {
  readonly #server: Server;
  readonly #asked = new Map<string, OnAsk>();

  private constructor(server: Server) {
    this.#server = server;
    server.onRequests("network.ask", (params, answer) => void this.#answer(params, answer));
  }

  static of(server: Server): Questions {
    let questions = known.get(server);
    if (!questions) known.set(server, (questions = new Questions(server)));
    return questions;
  }

  async attend(session: string, onAsk: OnAsk, signal?: AbortSignal): Promise<void> {
    this.#asked.set(session, onAsk);
    try {
      await this.#server.ask("network.attend", { session }, { signal });
    } catch (error) {
      this.#asked.delete(session);
      if (error instanceof UsageError) throw new UsageError(`onAsk: ${error.reason}`, { hint: "Leave out onAsk, or the mode of the network in policy." });
      throw error;
    }
  }

  /** Offers to answer again, before a command. */
  again(session: string): void {
    this.#server.tell("network.attend", { session });
  }

  drop(session: string): void {
    this.#asked.delete(session);
  }

  async #answer(params: Json, answer: (message: Json) => void): Promise<void> {
    const onAsk = this.#asked.get(String(params.session));
    if (!onAsk) return answer(NOBODY);
    const release = this.#server.hold();
    let allow: Allow = "no";
    try {
      allow = await onAsk({ name: String(params.name), port: Number(params.port), timeout: Number(params.timeout_ms) });
      if (!["once", "session", "no"].includes(allow)) throw new UsageError(`onAsk must return "once", "session" or "no", not ${JSON.stringify(allow)}`);
    } catch (error) {
      allow = "no";
      process.emitWarning(`onAsk failed, so the connection is refused: ${printable(reasonOf(error))}`, "HoltWarning");
    } finally {
      release();
    }
    answer({ result: { allow } });
  }
}
