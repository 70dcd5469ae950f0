// SPDX-License-Identifier: Apache-2.0
/**
 * Notices a `holt serve`, or the process of a session, that no longer answers.
 *
 * Theory of operation. A command may take days, so no request has a deadline of its own. A timer looks at the
 * connection several times per replyTimeout. If a request waits since the last look, the timer sends a short request to
 * the same session. A live one answers within milliseconds, whatever else it does. If the reply does not come within
 * replyTimeout, the session hangs: its requests fail with a TimeoutError. If `holt serve` itself hangs, it is killed.
 */
import type { Connection, Json } from "./connection.js";
import { TimeoutError } from "./errors.js";

/** Looks per replyTimeout. */
const LOOKS = 4;

type Ask = (method: string, params: Json) => Promise<unknown>;

function hangs(who: string): TimeoutError {
  return new TimeoutError(`${who} does not answer`, { hint: "replyTimeout of Server sets how long to wait for it." });
}

/** Looks after a connection until the returned function is called. */
export function watchOver(connection: Connection, within: number, ask: Ask): () => void {
  const probes = new Map<string, number>(); // when the unanswered probe of a session was sent; "": of holt serve
  const pause = within / LOOKS;
  let before = 0; // requests up to this number were waiting at the last look
  let last = performance.now();

  const probe = (session: string): void => {
    probes.set(session, performance.now());
    const asked = session ? ask("tools.list", { session }) : ask("session.list", {});
    asked.catch(() => {}).finally(() => probes.delete(session));
  };
  const look = (): void => {
    const now = performance.now();
    // A program that was busy has not read replies that have come meanwhile.
    if (now - last > 2 * pause) for (const session of probes.keys()) probes.set(session, now);
    last = now;
    const targets = connection.sessionsUpTo(before);
    before = connection.newest;
    for (const session of targets.size ? ["", ...targets] : []) if (!probes.has(session)) probe(session);
    const late = (since: number | undefined): boolean => since !== undefined && now - since >= within;
    if (late(probes.get(""))) return connection.kill(hangs("holt serve")); // no session can answer then
    for (const [session, since] of probes) {
      if (!late(since)) continue;
      probes.delete(session);
      connection.giveUp(session, hangs(`the process of session "${session}"`));
    }
  };
  const timer = setInterval(look, pause).unref();
  return () => clearInterval(timer);
}
