// SPDX-License-Identifier: Apache-2.0
/**
 * The last line of a result: what holt has refused, and which option allows it.
 *
 * A model that does not get this line often tries the same command again. Names in the line come from code inside, so
 * control characters are replaced, and the length is limited.
 */
import type { Result } from "holt";

/** Maximum number of refusals in the line. */
const REFUSALS = 5;

/** Maximum characters of the line. */
const LENGTH = 1000;

/** The option of HoltSandbox for each option of Sandbox.create() that has another name or place. */
const OPTIONS: ReadonlyArray<readonly [RegExp, string]> = [
  [/Sandbox\.create\(\{ readOnly: (.*?) \}\)/g, "new HoltSandbox({ nativeSandbox: { readOnlyPaths: $1 } })"],
  [/Sandbox\.create\(\{ readWrite: (.*?) \}\)/g, "new HoltSandbox({ nativeSandbox: { readWritePaths: $1 } })"],
  [/Sandbox\.create\(\{ workspace: (.*?) \}\)/g, "new HoltSandbox({ workingDirectory: $1 })"],
  [/Sandbox\.create\(\{ memory: (.*?) \}\)/g, "new HoltSandbox({ policy: { limits: { memory: $1 } } })"],
  [/Sandbox\.create\(/g, "new HoltSandbox("],
  [/\bbox\.allow\(/g, "sandbox.allow("],
  [/\bbox\./g, "sandbox.box."],
];

/** Returns a text of the package holt with the names of this package. */
export function reworded(text: string): string {
  return OPTIONS.reduce((changed, [pattern, by]) => changed.replace(pattern, by), text);
}

/** Returns a text without control characters and of limited length. */
function oneLine(text: string): string {
  // eslint-disable-next-line no-control-regex
  const line = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  return line.length > LENGTH ? `${line.slice(0, LENGTH)}...` : line;
}

/** Returns the last line of a result without its end, or "" if there is nothing to say. */
export function lastLine(result: Result, timeout: number | undefined): string {
  const parts: string[] = [];
  if (result.cause === "timeout") {
    const own = timeout !== undefined && (result.usage.wallUs ?? Infinity) >= timeout * 1000;
    parts.push(own ? `timed out after ${timeout} ms` : "timed out, by limits.timeout of the policy");
  }
  if (result.cause === "lost") parts.push("the command has ended, because its sandbox was stopped");
  if (result.cause === "oom") parts.push("the command has used too much memory");
  if (result.hint) parts.push(...result.hint.split("\n"));
  else for (const each of result.denials.slice(0, REFUSALS)) parts.push(`refused ${each.path ?? each.what}: ${each.reason}; ${each.hint}`);
  const more = Math.max(0, result.denials.length - REFUSALS) + result.denialsOmitted;
  if (more) parts.push(`${more} more refusals`);
  return parts.length ? `[holt: ${oneLine(parts.map(reworded).join(" | "))}]` : "";
}
