// SPDX-License-Identifier: Apache-2.0
/** Settings of a new session: the parameters of session.create. */
import { resolve } from "node:path";
import type { Json } from "./connection.js";
import { UsageError } from "./errors.js";
import type { PolicyPart, SessionCreateParams } from "./protocol.js";
import { type Size, type Time, textOfSize, textOfTime } from "./times.js";

/** A route of a policy; see "ROUTES" in holt-policy(5). */
export type RoutePolicy = NonNullable<NonNullable<PolicyPart["bridge"]>["routes"]>[number];

/** Settings of a new session. An existing session keeps the settings that it was created with. */
export interface Settings {
  /** a preset's name, a file's path (with a "/" or the suffix ".json"), or a policy as an object */
  policy?: string | PolicyPart | undefined;
  /** a host directory that becomes /workspace; default: a directory of the session */
  workspace?: string | undefined;
  /** time that a command may take */
  timeout?: Time | undefined;
  /** memory of each process */
  memory?: Size | undefined;
  /** time without use after which the session stops */
  idle?: Time | undefined;
  /** size of the session */
  tier?: SessionCreateParams["tier"] | undefined;
  /** environment variables of every command */
  env?: Readonly<Record<string, string>> | undefined;
  /** host paths that commands can read, each PATH or PATH:TARGET */
  readOnly?: readonly string[] | undefined;
  /** host paths that commands can read and write, each PATH or PATH:TARGET */
  readWrite?: readonly string[] | undefined;
  /**
   * hosts that commands can reach: rules such as "example.org:443", or sets such as "@python". They are added to
   * network.allow of the policy; see "NETWORK RULES" in holt-policy(5).
   */
  net?: readonly string[] | undefined;
  /**
   * services that commands can use with a credential of the host: names such as "openai", or objects with the members of
   * "ROUTES" in holt-policy(5). Commands do not get the credential.
   */
  routes?: ReadonlyArray<string | RoutePolicy> | undefined;
  /** Python files of the host that code inside can import: paths, or "FILE:MODULE". The sandbox gets copies. */
  helpers?: readonly string[] | undefined;
  /** layers of the sandbox that may be missing if this host refuses them */
  allowDegraded?: readonly string[] | undefined;
}

function listOf(value: readonly unknown[] | undefined, name: string): unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new UsageError(`${name} must be an array, not ${JSON.stringify(value)}`, { hint: `Write ${name}: [${JSON.stringify(value)}].` });
  return [...value];
}

/** Adds members to a group of the policy. A list is appended to an existing list; other values are replaced. */
function merge(document: Json, group: string, members: Json): void {
  const there = document[group] ?? {};
  if (typeof there !== "object") return; // holt reports the error
  const merged: Json = { ...there };
  for (const [name, value] of Object.entries(members)) {
    const before = merged[name];
    merged[name] = Array.isArray(value) && Array.isArray(before) ? [...before, ...value] : value;
  }
  document[group] = merged;
}

/** Returns the name of a preset unchanged, and the path of a policy file as an absolute path. */
function absoluteFile(name: string): string {
  return name.includes("/") || name.endsWith(".json") ? resolve(name) : name;
}

function checked(settings: Settings): void {
  const { policy, workspace, env } = settings;
  if (policy !== undefined && typeof policy !== "string" && (typeof policy !== "object" || policy === null || Array.isArray(policy)))
    throw new UsageError(`policy must be a preset's name, a file's path or an object, not ${JSON.stringify(policy)}`, {
      hint: 'Write policy: "strict", or policy: { limits: { pids: 64 } }.',
    });
  if (workspace !== undefined && (typeof workspace !== "string" || workspace === "")) // "" would be the working directory
    throw new UsageError(`workspace must be the path of a directory, not ${JSON.stringify(workspace)}`);
  for (const [name, value] of Object.entries(env ?? {})) {
    if (name.includes("=")) throw new UsageError(`a name in env must be text without "=", not ${JSON.stringify(name)}`);
    if (typeof value !== "string") throw new UsageError(`env.${name} must be text, not ${value}`, { hint: 'Leave the variable out, or write "".' });
  }
}

/** Returns the directories of the host that commands can write, except for those that only a preset or a file names. */
export function writableOf({ workspace, readWrite, policy }: Settings): string[] {
  const filesystem = typeof policy === "object" ? policy?.filesystem : undefined;
  const mounted = [readWrite, filesystem?.read_write].flatMap((each) => (Array.isArray(each) ? each.map(String) : []));
  const all = [workspace, filesystem?.workspace?.source, ...mounted, ...mounted.map((each) => each.replace(/:[^:]*$/, ""))];
  return all.filter((each): each is string => typeof each === "string" && each !== "");
}

/** Returns the parameters of session.create that describe the session. `ask`: whether somebody answers questions. */
export function paramsOf(settings: Settings, ask: boolean): Json {
  checked(settings);
  const { policy, env } = settings;
  const document: Json = { holt: 1, ...(typeof policy === "object" ? policy : {}) };
  const params: Json = { cwd: process.cwd() };
  if (typeof policy === "string") params.policy_name = absoluteFile(policy);
  if (settings.timeout !== undefined) merge(document, "limits", { timeout: textOfTime(settings.timeout) });
  if (settings.memory !== undefined) merge(document, "limits", { memory: textOfSize(settings.memory) });
  for (const [value, name, group, field] of [
    [settings.readOnly, "readOnly", "filesystem", "read_only"], [settings.readWrite, "readWrite", "filesystem", "read_write"],
    [settings.net, "net", "network", "allow"], [settings.routes, "routes", "bridge", "routes"],
    [settings.helpers, "helpers", "bridge", "helpers"],
  ] as const) {
    const list = listOf(value, name);
    if (list.length) merge(document, group, { [field]: list });
  }
  if (ask) merge(document, "network", { ask: true });
  if (Object.keys(document).length > 1 || typeof policy === "object") params.policy = document;
  if (settings.workspace !== undefined) params.workspace = resolve(settings.workspace);
  if (env && Object.keys(env).length) params.env = env;
  if (settings.tier !== undefined) params.tier = settings.tier;
  const degraded = listOf(settings.allowDegraded, "allowDegraded");
  if (degraded.length) params.allow_degraded = degraded;
  if (settings.idle !== undefined) params.idle = textOfTime(settings.idle);
  return params;
}
