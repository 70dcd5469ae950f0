// SPDX-License-Identifier: Apache-2.0
/**
 * Rewrites the hints of `holt serve` for users of this package.
 *
 * `holt serve` writes a hint with its methods ("session.remove"), and with fields of a policy as JSON
 * ('limits.pids: 64'). Here they become methods and options of this package.
 */

/** The method of this package for each method of `holt serve` whose name or place differs. */
const METHODS: Readonly<Record<string, string>> = {
  "session.create": "Sandbox.create()", "session.list": "Sandbox.sessions()", "session.show": "box.show()",
  "session.stop": "box.stop()", "session.remove": "box.remove()",
  "session.rebind": 'server.call("session.rebind", ...)', "session.set_tier": 'server.call("session.set_tier", ...)',
  "tools.list": 'server.call("tools.list", ...)', "files.link": "box.files.symlink()", "session.start": "box.start()",
  "process.list": "box.processes()", "process.spawn": "box.spawn()", "python.run": "box.python()",
  "python.save": "box.saveVariables()", "python.load": "box.loadVariables()", "python.variables": "box.variables()",
  "python.interrupt": "box.interruptPython()", "python.restart": "box.restartPython()",
  "history.list": "box.history()", "audit.list": "box.audit()",
  "tools.register": "box.addTool()", "tools.unregister": "box.removeTool()",
  "files.open": "box.files.readBytes()", "files.receive": "box.files.write()",
  "mount.upload": "box.files.write()", "mount.download": "box.files.readBytes()", "mount.list": "box.files.list()",
  "mount.delete": "box.files.remove()",
  "shell.run": "box.shell.run()", "shell.interrupt": "box.shell.interrupt()", "shell.restart": "box.shell.restart()",
  "route.add": "box.routes.add()", "route.list": "box.routes.list()", "route.remove": "box.routes.remove()",
  "session.allow": "box.allow()", "ports.forward": "box.forward()", "ports.close": "box.closePort()",
  "links.make": "box.files.link()", "links.list": "box.files.links()", "links.revoke": "box.files.revokeLink()",
};

/** Groups of methods that have the same names in this package, except for those in METHODS. */
const SAME: readonly string[] = ["files", "kv"];

/** Methods of Process that are methods of `holt serve`, too. */
const PROCESS: Readonly<Record<string, string>> = {
  read: "read", write: "write", close_stdin: "closeStdin", resize: "resize", signal: "signal", kill: "kill", wait: "wait",
};

/** The option of Sandbox.create() for each field that has one of its own. Other fields are passed by `policy`. */
const OPTIONS: Readonly<Record<string, string>> = {
  "limits.timeout": "timeout", "limits.memory": "memory", "filesystem.read_only": "readOnly",
  "filesystem.read_write": "readWrite", "filesystem.workspace.source": "workspace", "env.set": "env", "network.allow": "net",
  tier: "tier", idle: "idle", allow_degraded: "allowDegraded", policy_name: "policy",
};

export const GROUPS = ["bridge", "env", "filesystem", "layers", "limits", "network", "python", "syscalls"] as const;

const METHOD = /(?<![\w./"-])(session|process|python|files|mount|kv|history|audit|tools|ports|links|route|shell)\.([a-z_]+)\b(?![\w(/-]|\.[a-z])/g;
const FIELD = new RegExp(
  String.raw`(?<![\w./"-])((?:${GROUPS.join("|")})(?:\.[a-z_]+)+|(?:tier|idle|allow_degraded|cwd|policy_name|exec with argv)(?=: ["[]))\b(?![\w(/-])`,
  "g",
);

/** Writes a value as TypeScript. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, each]) => `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)}: ${literal(each)}`);
  return members.length ? `{ ${members.join(", ")} }` : "{}";
}

/** Returns where the JSON value that starts at `start` ends, or -1. */
function endOfValue(text: string, start: number): number {
  const open = text[start];
  if (open !== "[" && open !== "{" && open !== '"') {
    const [scalar] = /^(?:true|false|null|-?\d+(?:\.\d+)?)/.exec(text.slice(start, start + 40)) ?? [];
    return scalar === undefined ? -1 : start + scalar.length;
  }
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '"') for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === "\\") at++;
    if (text[at] === "[" || text[at] === "{") depth++;
    if (text[at] === "]" || text[at] === "}") depth--;
    if (depth === 0) return at + 1;
  }
  return -1;
}

/** Returns the JSON value behind ": " as TypeScript, and where it ends. */
function valueBehind(text: string, at: number): [value: string | null, end: number] {
  if (!text.startsWith(": ", at)) return [null, at];
  const end = endOfValue(text, at + 2);
  try {
    return end < 0 ? [null, at] : [literal(JSON.parse(text.slice(at + 2, end))), end];
  } catch {
    return [null, at];
  }
}

/** Returns the option that sets a field. */
function option(path: string, value: string | null): string {
  if (path === "cwd") return `cwd: ${value ?? "..."}`;
  if (path === "exec with argv") return `exec(${value ?? "..."})`;
  const own = Object.hasOwn(OPTIONS, path) ? OPTIONS[path] : undefined;
  if (own) return `Sandbox.create({ ${own}: ${value ?? "..."} })`;
  const made = path.split(".").reduceRight((inner, name) => `{ ${name}: ${inner} }`, value ?? "...");
  return `Sandbox.create({ policy: ${made} })`;
}

/** Returns the option that sets the one field of a part of a policy, such as `{filesystem: {read_only: ["/x"]}}`. */
export function optionOf(policy: object): string {
  const path: string[] = [];
  let value: unknown = policy;
  while (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 1) {
    const [entry] = Object.entries(value);
    if (!entry) break;
    path.push(entry[0]);
    value = entry[1];
  }
  return option(path.join("."), literal(value));
}

/** Returns the option that sets a field, without a value. */
export function optionFor(field: string): string {
  return option(field, null);
}

/** Returns the call for a request to `holt serve` whose parameters are one list, such as session.allow. */
export function callOf(call: { method: string; params: object }): string {
  const [values] = Object.values(call.params) as unknown[];
  const method = Object.hasOwn(METHODS, call.method) ? METHODS[call.method]! : `${call.method}()`;
  return `${method.slice(0, -2)}(${(Array.isArray(values) ? values : []).map(literal).join(", ")})`;
}

function methodOf(area: string, name: string): string {
  const method = `${area}.${name}`;
  if (Object.hasOwn(METHODS, method)) return METHODS[method]!;
  if (area === "process" && Object.hasOwn(PROCESS, name)) return `process.${PROCESS[name]}()`;
  return SAME.includes(area) ? `box.${method}()` : method;
}

/** Returns a hint of `holt serve` with the words of this package. */
export function hintForTypescript(hint: string | null): string | null {
  if (!hint) return null;
  let text = "";
  let at = 0;
  for (const match of hint.matchAll(FIELD)) {
    if (match.index < at || Object.hasOwn(METHODS, match[1]!)) continue; // within the value of the field before, or no field
    const [value, end] = valueBehind(hint, match.index + match[0].length);
    text += hint.slice(at, match.index) + option(match[1]!, value);
    at = end;
  }
  text += hint.slice(at);
  return text.replace(METHOD, (_, area: string, name: string) => methodOf(area, name)).replace(/\btimeout_ms\b/g, "timeout");
}

/** Returns a hint for a caller who already passes a policy: the hint must add to that policy, and not replace it. */
export function hintBeside(hint: string | null, policy: unknown): string | null {
  if (!hint || policy === undefined || !hint.includes("Sandbox.create({ policy: {")) return hint;
  if (typeof policy === "string" && !policy.includes("/") && !policy.endsWith(".json"))
    return hint.replace("Sandbox.create({ policy: {", `Sandbox.create({ policy: { extends: ${literal(policy)},`);
  const where = typeof policy === "string" ? `the file ${policy}` : "the object";
  return `${hint}\nAdd this to ${where} that you pass as policy, rather than replacing it.`;
}
