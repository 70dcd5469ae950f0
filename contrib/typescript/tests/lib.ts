// SPDX-License-Identifier: Apache-2.0
/** Functions that the tests share: conditions with a deadline, this program's processes and descriptors, fake servers. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Sandbox, Server, type SandboxOptions } from "holt";

const WITHIN = Number(process.env.HANGS ?? "60") * 1000;

/** Waits for a condition, and returns its last value. */
export async function until<T>(condition: () => T | Promise<T>, what: string): Promise<NonNullable<T>> {
  const deadline = performance.now() + WITHIN;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(performance.now() < deadline, `never: ${what}`);
    await pause(5);
  }
}

/** The command lines of this program's children. */
export function children(): string[] {
  const found: string[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [state, parent] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
      if (Number(parent) === process.pid && state !== "Z") found.push(readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " "));
    } catch {
      continue; // it has ended
    }
  }
  return found;
}

/** The number of open file descriptors of this program. */
export function descriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

/** Runs a function with a throwaway sandbox. */
export async function withBox<T>(options: SandboxOptions, act: (box: Sandbox) => Promise<T>): Promise<T> {
  const box = await Sandbox.create({ timeout: "60s", ...options });
  try {
    return await act(box);
  } finally {
    await box.close();
  }
}

/** Returns the error with which a promise is rejected. */
export async function failure(promise: Promise<unknown>): Promise<Error & { hint?: string | null; kind?: string; reason?: string }> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof Error, String(error));
    return error;
  }
  return assert.fail("the call has not failed");
}

/**
 * Returns a Server whose program is a script of JavaScript. The script can use `requests` (an async iterator of parsed
 * requests), `reply(request, result)` and `send(text)`.
 */
export function fake(script: string, options: { replyTimeout?: string | number } = {}): Server {
  const program = join(mkdtempSync(join(tmpdir(), "fake-")), "holt.mjs");
  writeFileSync(
    program,
    `#!${process.execPath}
import { createInterface } from "node:readline";
const requests = (async function* () { for await (const line of createInterface({ input: process.stdin })) yield JSON.parse(line); })();
const send = (text) => new Promise((resolve) => process.stdout.write(text, resolve));
const reply = (request, result) => send(JSON.stringify({ jsonrpc: "2.0", id: request.id, result }) + "\\n");
${script}
`,
    { mode: 0o755 },
  );
  return new Server({ holt: program, ...options });
}

/** The Server of a sandbox. */
export function serverOf(box: Sandbox): Server {
  return (box as unknown as { server: Server }).server;
}
