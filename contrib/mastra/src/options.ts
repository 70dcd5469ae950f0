// SPDX-License-Identifier: Apache-2.0
/** Options of a HoltSandbox, and the settings of holt that they stand for. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import type { InstructionsOption, MastraSandboxOptions, NativeSandboxConfig } from "@mastra/core/workspace";
import { UsageError, didYouMean, type PolicyPart, type SandboxOptions, type Settings } from "holt";
import { type BwrapSettings, settingsOfBwrap } from "./bwrap.js";
import { isFile } from "./policy.js";

/** The names of LocalSandbox's options, and those of holt. */
export interface HoltSandboxOptions extends Omit<MastraSandboxOptions, "processes" | "env" | "workingDirectory"> {
  /**
   * name of a sandbox that lasts: the next program with this id finds its files and background processes. Without an id,
   * the sandbox is removed when the program ends.
   */
  id?: string | undefined;
  /** directory of the host in which commands run, at the same path inside; default: a private one, at /workspace */
  workingDirectory?: string | undefined;
  /** environment variables of commands */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** milliseconds that executeCommand() may take, unless the call says otherwise; default: no limit */
  timeout?: number | undefined;
  /** is accepted so that options of LocalSandbox stay valid; holt always isolates */
  isolation?: "holt" | "none" | "bwrap" | "seatbelt" | undefined;
  /** options of LocalSandbox's isolation */
  nativeSandbox?: NativeSandboxConfig | undefined;
  /** text for the model, or a function that gets the default text */
  instructions?: InstructionsOption | undefined;

  /** a preset's name, a file's path (with a "/" or the suffix ".json"), or a policy as an object */
  policy?: string | PolicyPart | undefined;
  /** size of the session */
  tier?: Settings["tier"];
  /** hosts that commands can reach: rules such as "example.org:443", or sets such as "@npm" */
  net?: readonly string[] | undefined;
  /** services that commands use with a credential of the host, without getting it */
  routes?: Settings["routes"];
  /** time without use after which the processes of the sandbox end; the next command starts it again */
  idle?: Settings["idle"];
  /** path of the program; default: $HOLT, or holt in the PATH */
  holt?: string | undefined;
}

/** The workspace inside, if it is not a directory of the host. */
const WORKSPACE = "/workspace";

/** The options, translated for holt. */
export interface Prepared {
  /** name of the session, or undefined for a throwaway one */
  session: string | undefined;
  /** the host's directory, or undefined */
  workspace: string | undefined;
  /** the directory inside in which commands start */
  workingDirectory: string;
  policy: PolicyPart;
  settings: Omit<SandboxOptions, "policy">;
  warnings: string[];
}

const NAMES = new Set([
  "id", "workingDirectory", "env", "timeout", "isolation", "nativeSandbox", "instructions", "policy", "tier", "net", "routes", "idle", "holt",
  "onStart", "onStop", "onDestroy",
]);

const NATIVE_NAMES = new Set([
  "allowNetwork", "readOnlyPaths", "readWritePaths", "allowSystemBinaries", "seatbeltProfilePath", "bwrapArgs", "readOnly",
]);

/** Whether a path is that directory, or is below it. */
export function isWithin(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way === "" || (!way.startsWith("..") && !isAbsolute(way));
}

function expanded(path: string): string {
  return resolve(path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path);
}

/** Returns the name of the session for an id. An id that cannot be a name gets a name that is made from it. */
export function sessionOf(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id)) return id;
  const hash = createHash("sha256").update(id).digest("hex").slice(0, 12);
  return `${id.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(0, 48)}-${hash}`.replace(/^-+/, "id-");
}

/** Returns the policy as an object, to which fields can be added. */
function policyOf(policy: string | PolicyPart | undefined): PolicyPart {
  if (typeof policy !== "string") return { ...policy };
  return { extends: isFile(policy) ? resolve(policy) : policy };
}

/** Checks names, because a misspelled option of a sandbox may leave something open. */
function checkNames(options: HoltSandboxOptions): void {
  for (const name of Object.keys(options)) if (!NAMES.has(name)) throw new UsageError(`HoltSandbox has no option ${JSON.stringify(name)}${didYouMean(name, NAMES)}`);
  for (const name of Object.keys(options.nativeSandbox ?? {}))
    if (!NATIVE_NAMES.has(name)) throw new UsageError(`HoltSandbox has no option nativeSandbox.${name}${didYouMean(name, NATIVE_NAMES)}`);
}

function warningsOf({ isolation, nativeSandbox }: HoltSandboxOptions): string[] {
  const warnings: string[] = [];
  if (isolation === "none" || isolation === "seatbelt") warnings.push(`isolation: ${JSON.stringify(isolation)} has no effect: holt isolates every command`);
  if (nativeSandbox?.seatbeltProfilePath !== undefined) warnings.push("nativeSandbox.seatbeltProfilePath has no effect: seatbelt exists only on macOS");
  if (nativeSandbox?.allowSystemBinaries === false)
    warnings.push("nativeSandbox.allowSystemBinaries: false does not hide /usr; it only leaves out the directory of node");
  return warnings;
}

/** Returns the directory of this program's node, if the sandbox does not show it anyway. */
function nodeDirectory(workspace: string | undefined): string | undefined {
  const directory = dirname(process.execPath);
  const shown = ["/usr", "/bin", workspace].some((each) => each !== undefined && isWithin(each, directory));
  return shown || !existsSync(directory) ? undefined : directory;
}

/** Translates the options. Throws UsageError. */
export function prepare(options: HoltSandboxOptions): Prepared {
  checkNames(options);
  const { id, net, routes, tier, idle, holt, nativeSandbox = {} } = options;
  const workspace = options.workingDirectory === undefined ? undefined : expanded(options.workingDirectory);
  const bwrap: BwrapSettings = nativeSandbox.bwrapArgs ? settingsOfBwrap(nativeSandbox.bwrapArgs, workspace) : { readOnly: [], readWrite: [], env: {} };
  const allowNetwork = bwrap.network ?? nativeSandbox.allowNetwork ?? false;
  if (allowNetwork && net !== undefined)
    throw new UsageError("nativeSandbox.allowNetwork allows all hosts, so that net has no effect", { hint: "Leave one of them out." });

  const policy = policyOf(options.policy);
  const readOnlyWorkspace = nativeSandbox.readOnly === true || (workspace !== undefined && bwrap.readOnly.includes(workspace));
  if (workspace !== undefined || readOnlyWorkspace) {
    const target = policy.filesystem?.workspace?.target ?? workspace;
    const mode = readOnlyWorkspace ? { mode: "ro" as const } : {};
    policy.filesystem = { ...policy.filesystem, workspace: { ...policy.filesystem?.workspace, ...(target ? { target } : {}), ...mode } };
  }
  if (allowNetwork) policy.network = { ...policy.network, mode: "host" };

  const node = nativeSandbox.allowSystemBinaries === false ? undefined : nodeDirectory(workspace);
  const readOnly = [...(nativeSandbox.readOnlyPaths ?? []), ...bwrap.readOnly, ...(node ? [node] : [])].filter((path) => path !== workspace);
  const readWrite = [...(nativeSandbox.readWritePaths ?? []), ...bwrap.readWrite].filter((path) => path !== workspace);
  return {
    session: id === undefined ? undefined : sessionOf(id),
    workspace,
    workingDirectory: bwrap.directory ?? policy.filesystem?.workspace?.target ?? WORKSPACE,
    policy,
    settings: {
      tier, net, routes, idle, holt, readOnly, readWrite, workspace,
      env: { ...(node ? { PATH: `${node}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin` } : {}), ...bwrap.env },
    },
    warnings: warningsOf(options),
  };
}
