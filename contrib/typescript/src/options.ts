// SPDX-License-Identifier: Apache-2.0
/** Options of commands. JavaScript does not check their names, and a misspelt timeout would be no timeout. */
import { UsageError } from "./errors.js";
import { didYouMean } from "./nearest.js";

const COMMON = ["cwd", "env", "timeout", "outputMax", "keep", "signal"];

export const EXEC = new Set([...COMMON, "tools", "stdin", "onOutput"]);
export const SPAWN = new Set([...COMMON, "tools", "input", "terminal", "owned"]);
export const PYTHON = new Set([...COMMON, "tools", "fresh", "onOutput"]);
export const SHELL = new Set([...COMMON, "onOutput"]);

/** Throws UsageError if an option is not in the set. */
export function checkNames(method: string, options: object, names: ReadonlySet<string>): void {
  for (const name of Object.keys(options))
    if (!names.has(name)) throw new UsageError(`${method}() has no option ${JSON.stringify(name)}${didYouMean(name, names)}`, { hint: `Its options are ${[...names].join(", ")}.` });
}
