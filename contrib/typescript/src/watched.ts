// SPDX-License-Identifier: Apache-2.0
/**
 * Output of runs of the interpreter and of the shell, while they execute.
 *
 * Notifications about output name only the process, whose id is unknown until the reply. So runs with onOutput of one
 * session take turns, and each gets all notifications that belong to no known process.
 */
import { type OnOutput, Output } from "./process.js";
import type { Listener, Server } from "./server.js";
import { Slots } from "./slots.js";

const turns = new WeakMap<Server, Map<string, Slots>>();

/** @internal Calls a function when no other run with onOutput of the session executes. */
export async function inTurn<T>(server: Server, session: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  const ofServer = turns.get(server) ?? new Map<string, Slots>();
  turns.set(server, ofServer);
  const slots = ofServer.get(session) ?? new Slots(1);
  ofServer.set(session, slots);
  try {
    return await slots.run(signal, work);
  } finally {
    if (slots.idle) ofServer.delete(session);
  }
}

/** @internal Starts a run, and calls onOutput with its output. cancel is called if onOutput throws. */
export async function telling<R>(server: Server, session: string, onOutput: OnOutput, start: () => Promise<R>, cancel: () => void): Promise<R> {
  const output = new Output();
  const listener: Listener = (method, notes) => {
    if (method === "process.output" && notes) output.add(notes);
  };
  server.listen(session, "", listener);
  try {
    const run = start();
    // The reply follows all output.
    run.then(() => output.end(0), () => output.end(0));
    const told = output.tell(onOutput).catch((error: unknown) => {
      cancel();
      throw error;
    });
    const [result] = await Promise.all([run, told]);
    return result;
  } finally {
    server.unlisten(session, "", listener);
  }
}
