// SPDX-License-Identifier: Apache-2.0
/** Writes messages as strict JSON, one per line, and splits received bytes into lines. */
import { LimitError, ProtocolError, UsageError } from "./errors.js";

/** Maximum bytes of a message that `holt serve` accepts. */
export const LINE_MAX = 1 << 20;

/** Maximum bytes of a message from `holt serve`, which sends at most 32 MiB and the few bytes around it. */
export const REPLY_MAX = 33 << 20;

/** Maximum nesting depth of objects and arrays in a message. */
const DEPTH_MAX = 64;

/**
 * Throws UsageError for a value that strict JSON does not have. JSON.stringify() would write NaN as null, leave out a
 * function, or lose digits, and nobody would notice.
 */
function check(value: unknown, what: string, depth: number): void {
  if (typeof value === "string" || typeof value === "boolean" || value === null || value === undefined) return;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new UsageError(`${what}: JSON has no number ${value}`);
    if (Number.isInteger(value) && !Number.isSafeInteger(value))
      throw new UsageError(`${what}: an integer is past 2^53 - 1, where numbers of JSON lose digits`, { hint: "Pass it as text." });
    return;
  }
  if (typeof value !== "object") throw new UsageError(`${what}: a ${typeof value} can't be sent to a sandbox`);
  if (depth > DEPTH_MAX) throw new UsageError(`${what}: objects and arrays are nested more than ${DEPTH_MAX} deep`);
  if (Array.isArray(value)) {
    for (const each of value) {
      if (each === undefined) throw new UsageError(`${what}: an array has an undefined item`);
      check(each, what, depth + 1);
    }
  } else if (typeof (value as { toJSON?: unknown }).toJSON !== "function") {
    for (const each of Object.values(value)) check(each, what, depth + 1);
  }
}

/**
 * Returns a value as strict JSON. Throws UsageError.
 *
 * @param what the method, or another subject for the error
 * @param depth nesting depth of the value in its message
 */
export function textOf(value: unknown, what: string, depth = 2): string {
  check(value, what, depth);
  const text = JSON.stringify(value);
  // JSON.stringify() escapes a NUL and half of a surrogate pair. The first test is much faster, and nearly always enough.
  if (text.includes("\\u") && /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/.test(text)) {
    const nul = /(?<!\\)(?:\\\\)*\\u0000/.test(text);
    throw new UsageError(`${what}: a text has ${nul ? "a NUL, which messages must not contain" : "half of a surrogate pair, which is no character"}`);
  }
  return text;
}

/** Returns the line of a request. Throws UsageError, or LimitError if the line is too long. */
export function lineOf(id: number, method: string, params: object): string {
  const line = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${textOf(params, method)}}\n`;
  // UTF-8 has at most three bytes for each unit of a string.
  if (line.length * 3 > LINE_MAX && Buffer.byteLength(line) > LINE_MAX)
    throw new LimitError(`${method}: the request has ${Buffer.byteLength(line)} bytes, and may have at most ${LINE_MAX}`, {
      hint: "Write the data to a file by box.files.write().",
    });
  return line;
}

/** Splits received bytes into lines. */
export class Lines {
  #parts: Buffer[] = [];
  #size = 0;

  /** Whether the start of a line has come, and not its end. */
  get begun(): boolean {
    return this.#size > 0;
  }

  /** Returns the complete lines. Throws ProtocolError for a line that is too long. */
  split(data: Buffer): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
      let line = data.toString("utf8", start, end);
      if (this.#size) {
        this.#parts.push(data.subarray(start, end));
        line = Buffer.concat(this.#parts).toString("utf8");
        this.#parts = [];
        this.#size = 0;
      }
      lines.push(line);
      start = end + 1;
    }
    if (start < data.length) {
      this.#parts.push(start ? data.subarray(start) : data);
      this.#size += data.length - start;
    }
    if (this.#size > REPLY_MAX) throw new ProtocolError(`holt serve has sent a line of more than ${REPLY_MAX} bytes`);
    return lines;
  }
}
