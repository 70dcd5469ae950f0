// SPDX-License-Identifier: Apache-2.0
/**
 * Times and sizes. A number is a time in milliseconds, as in setTimeout() and AbortSignal.timeout(). The Python package
 * counts in seconds, as its standard library does. A text has a unit, which is the same in both packages.
 */
import { UsageError } from "./errors.js";

/** Milliseconds, or text with a unit, such as "500ms", "1.5s", "10m" or "1h"; "none" means no limit. */
export type Time = number | string;

/** Bytes, or text with a unit, such as "2GiB". */
export type Size = number | string;

const UNITS: Readonly<Record<string, number>> = { us: 1e-3, ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 };

function millisecondsOfText(text: string): number | undefined {
  if (text === "none") return Infinity;
  const [, count, unit] = /^([0-9]+(?:\.[0-9]{1,6})?)([a-z]+)$/.exec(text) ?? [];
  const factor = unit === undefined || !Object.hasOwn(UNITS, unit) ? undefined : UNITS[unit];
  return factor === undefined ? undefined : Number(count) * factor;
}

/** Returns a time in milliseconds, or undefined if there is no limit. Throws UsageError. */
export function millisecondsOf(time: Time | undefined): number | undefined {
  if (time === undefined || time === null) return undefined;
  const value = typeof time === "string" ? millisecondsOfText(time) : time;
  if (value === Infinity) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value))
    throw new UsageError(`a time must be a number of milliseconds or text with a unit, not ${JSON.stringify(time)}`, {
      hint: 'Write 1500, "500ms", "10s", "2m" or "1h". The units are us, ms, s, m, h and d; "none" means no limit.',
    });
  return value;
}

/** Returns a timeout for `holt serve`. 0 or less becomes 1 ms, so that the command ends at once. */
export function timeoutOf(time: Time | undefined): number | undefined {
  const value = millisecondsOf(time);
  return value === undefined ? undefined : Math.max(1, Math.round(value));
}

/** Returns a time as text for a policy. */
export function textOfTime(time: Time): string {
  const value = millisecondsOf(time);
  if (typeof time === "string") return time;
  return value === undefined ? "none" : `${Math.round(value)}ms`;
}

/** Returns a size as text for a policy. */
export function textOfSize(size: Size): string {
  if (typeof size === "string") return size;
  if (!Number.isSafeInteger(size)) throw new UsageError(`a size must be a number of bytes or text, not ${size}`, { hint: 'Write 1048576, or "2GiB".' });
  return String(size);
}
