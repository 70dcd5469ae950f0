// SPDX-License-Identifier: Apache-2.0
/** Removes sessions, and keeps throwaway ones while this program lives. */
import { closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { BusyError, MissingError } from "./errors.js";
import type { Server } from "./server.js";

/** Milliseconds for a session to be removed. */
const REMOVE_WITHIN = 30_000;

/** Stops and removes a session. */
export async function removeSession(server: Server, session: string, signal?: AbortSignal): Promise<void> {
  const deadline = performance.now() + REMOVE_WITHIN;
  for (;;) {
    await server.stop(session, { signal });
    try {
      await server.ask("session.remove", { session }, { urgent: true, signal });
      return;
    } catch (error) {
      // Its process is still ending, or another request has started the next one.
      if (!(error instanceof BusyError) || performance.now() > deadline) throw error;
    }
    await pause(10, undefined, signal ? { signal } : {});
  }
}

/**
 * Keeps a throwaway session while this program lives, even if its `holt serve` dies. Like holt serve, it holds the FIFO
 * "owner" in the session's directory (runner/session/owner.h).
 */
export class Lease {
  #fd: number | undefined;

  hold(directory: string): void {
    try {
      this.#fd = openSync(join(directory, "owner"), constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch {
      // Then the session ends with holt serve.
    }
  }

  end(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Removes a throwaway session. One that has gone already is no error. */
export async function removeThrowaway(server: Server, session: string): Promise<void> {
  if (server.closed) return; // it has removed the session
  try {
    await removeSession(server, session);
  } catch (error) {
    if (!(error instanceof MissingError)) throw error;
  }
}
