// SPDX-License-Identifier: Apache-2.0
/**
 * Converts between the names of the protocol and those of this package.
 *
 * `holt serve` writes `exit_code`, and this package `exitCode`, because every TypeScript API and every linter of its
 * users does. The generated types (protocol.ts) have the same names, so no result has two spellings. Policies keep the
 * names of policy files: a user can move a policy between a file and a program. Values that come from users, such as
 * environments and the payloads of tools, keep their names, too.
 */
import { FREE } from "./protocol.js";

type Json = Record<string, unknown>;

const camels = new Map<string, string>();
const snakes = new Map<string, string>();

export function camelOf(name: string): string {
  let made = camels.get(name);
  if (made === undefined) {
    made = name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    if (camels.size < 1000) camels.set(name, made); // names of users must not fill the memory
  }
  return made;
}

export function snakeOf(name: string): string {
  let made = snakes.get(name);
  if (made === undefined) {
    made = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (snakes.size < 1000) snakes.set(name, made);
  }
  return made;
}

/** Sets a member, even one with the name `__proto__`, which an assignment would not create. */
function put(target: Json, name: string, value: unknown): void {
  if (name === "__proto__") Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
  else target[name] = value;
}

/** Returns a result of `holt serve` with the names of this package. */
export function fromWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromWire);
  if (typeof value !== "object" || value === null) return value;
  const made: Json = {};
  for (const [name, member] of Object.entries(value)) put(made, camelOf(name), FREE.has(name) ? member : fromWire(member));
  return made;
}

/** Returns parameters with the names of the protocol, without those that are undefined or null. */
export function toWire(params: object): Json {
  const made: Json = {};
  for (const [name, value] of Object.entries(params)) if (value !== undefined && value !== null) put(made, snakeOf(name), value);
  return made;
}
