// SPDX-License-Identifier: Apache-2.0
/**
 * The last line of a result: what holt has refused, and which option allows it.
 *
 * A model that does not get this line often tries the same command again. Names in the line come from code inside, so
 * control characters are replaced, and the length is limited.
 */
import { HoltError, type Result } from "holt";
import type { HoltSandboxOptions } from "./options.js";
import { isFile } from "./policy.js";

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
  [/\bbox\.remove\(\)/g, "sandbox.destroy()"],
  [/\bbox\.(start|stop)\(\)/g, "sandbox.$1()"],
  [/\bbox\./g, "sandbox.box."],
];

/** Returns a text of the package holt with the names of this package. */
export function reworded(text: string): string {
  return OPTIONS.reduce((changed, [pattern, by]) => changed.replace(pattern, by), text);
}

/** The line of a hint for a caller that passes a policy as an object or a file, as this package always does. */
const BESIDE = /\nAdd this to the (?:object|file \S+) that you pass as policy, rather than replacing it\.$/;

/** Returns a hint for the policy that the user has passed. */
function beside(hint: string, policy: HoltSandboxOptions["policy"]): string {
  const alone = hint.replace(BESIDE, "");
  if (typeof policy === "object" || alone === hint) return hint;
  if (policy === undefined) return alone;
  if (isFile(policy)) return `${alone}\nAdd this to the file ${policy}.`;
  return alone.replace("({ policy: {", `({ policy: { extends: ${JSON.stringify(policy)},`);
}

/** Returns an error of the package holt with the names of this package. Other values stay as they are. */
export function inOurWords(error: unknown, policy: HoltSandboxOptions["policy"]): unknown {
  if (!(error instanceof HoltError)) return error;
  const { kind, errno, code, data } = error;
  const [reason, hint] = [reworded(error.reason), error.hint && beside(reworded(error.hint), policy)];
  if (reason === error.reason && hint === error.hint) return error;
  const made = error.constructor as typeof HoltError;
  return new made(reason, { kind, errno, code, data, hint, cause: error });
}

/** Returns a text without control characters and of limited length. */
function oneLine(text: string): string {
  // eslint-disable-next-line no-control-regex
  const line = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  return line.length > LENGTH ? `${line.slice(0, LENGTH)}...` : line;
}

/** Messages about a host that cannot be looked up: of curl and git, wget, Node, ssh and Python's requests. */
const NOT_FOUND = [
  /[Cc]ould not resolve host:? ([\w.-]+)/, /unable to resolve host address [‘'"]?([\w.-]+)/, /(?:ENOTFOUND|EAI_AGAIN) ([\w.-]+)/,
  /[Cc]ould not resolve hostname ([\w.-]+)/, /[Ff]ailed to resolve '([\w.-]+)'/,
];

/** Returns the host that a command did not reach, from its own messages. Without a network, holt sees no request for it. */
function hostOf(result: Result): string | undefined {
  const host = NOT_FOUND.map((pattern) => pattern.exec(result.stderr)?.[1] ?? pattern.exec(result.stdout)?.[1]).find((each) => each);
  return host && host.length <= 253 ? host.replace(/\.+$/, "") : undefined;
}

/**
 * Returns the last line of a result without its end, or "" if there is nothing to say.
 *
 * timeoutSaid: whether a line before it says that the time of the call has passed.
 */
export function lastLine(result: Result, timeoutSaid: boolean): string {
  const parts: string[] = [];
  if (result.cause === "timeout" && !timeoutSaid) parts.push("timed out, by limits.timeout of the policy");
  const host = result.networkMissed && !result.denials.some(({ answer }) => answer) ? hostOf(result) : undefined;
  if (host) parts.push(`no rule allows ${host}; new HoltSandbox({ net: [${JSON.stringify(host)}] }) allows it`);
  if (result.cause === "lost") parts.push("the command has ended, because its sandbox was stopped");
  if (result.cause === "oom") parts.push("the command has used too much memory");
  if (result.hint) parts.push(...result.hint.split("\n").filter((each) => !host || !each.startsWith("the sandbox reaches only hosts")));
  else for (const each of result.denials.slice(0, REFUSALS)) parts.push(`refused ${each.path ?? each.what}: ${each.reason}; ${each.hint}`);
  const more = Math.max(0, result.denials.length - REFUSALS) + result.denialsOmitted;
  if (more) parts.push(`${more} more refusals`);
  return parts.length ? `[holt: ${oneLine(parts.map(reworded).join(" | "))}]` : "";
}
