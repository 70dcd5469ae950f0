// SPDX-License-Identifier: Apache-2.0
/** Translates arguments of bubblewrap into settings of holt. */
import { existsSync } from "node:fs";
import { posix, resolve } from "node:path";
import { UsageError } from "holt";

export interface BwrapSettings {
  readOnly: string[];
  readWrite: string[];
  env: Record<string, string>;
  /** whether commands get the host's network; undefined if no argument says so */
  network?: boolean;
  /** the directory in which commands start */
  directory?: string;
}

/** Paths of the system that every sandbox of holt shows, or has of its own. */
const OWN = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev", "/tmp"];

/** Options without an effect here, and how many values they take: holt always does this, or has no use for it. */
const IGNORED: Readonly<Record<string, number>> = {
  "--unshare-user": 0, "--unshare-user-try": 0, "--unshare-ipc": 0, "--unshare-pid": 0, "--unshare-uts": 0, "--unshare-cgroup": 0,
  "--unshare-cgroup-try": 0, "--die-with-parent": 0, "--new-session": 0, "--as-pid-1": 0, "--proc": 1, "--dev": 1, "--mqueue": 1, "--dir": 1,
};

/** Whether the sandbox shows a path of the host, or has its own. In its own /tmp, nothing of the host is visible. */
function isOwn(path: string): boolean {
  return OWN.some((each) => path === each || (each !== "/tmp" && path.startsWith(`${each}/`)));
}

/** Adds a mount, unless the sandbox shows it anyway. A mount of the workspace says whether commands can write it. */
function bind(paths: string[], from: string, to: string, optional: boolean, workspace: string | undefined): void {
  const [source, target] = [resolve(from), posix.resolve("/", to)];
  if (source === target && source !== workspace && isOwn(source)) return;
  if (optional && !existsSync(source)) return;
  if (source === "/") throw new UsageError("nativeSandbox.bwrapArgs: holt does not show the whole file system of the host", { hint: "Bind the directories that commands need." });
  paths.push(source === target ? source : `${source}:${target}`);
}

/**
 * Throws UsageError for an option that has no equivalent, because leaving it out might leave something open.
 *
 * workspace: the directory of the host in which commands run, or undefined.
 */
export function settingsOfBwrap(args: readonly string[], workspace: string | undefined): BwrapSettings {
  const settings: BwrapSettings = { readOnly: [], readWrite: [], env: {} };
  const rest = [...args];
  const next = (option: string): string => {
    const value = rest.shift();
    if (value === undefined) throw new UsageError(`nativeSandbox.bwrapArgs: ${option} needs another value`);
    return value;
  };
  for (let option = rest.shift(); option !== undefined && option !== "--"; option = rest.shift()) {
    const ignored = Object.hasOwn(IGNORED, option) ? IGNORED[option] : undefined;
    if (ignored !== undefined) for (let count = 0; count < ignored; count++) next(option);
    else if (option === "--ro-bind" || option === "--ro-bind-try") bind(settings.readOnly, next(option), next(option), option.endsWith("-try"), workspace);
    else if (option === "--bind" || option === "--bind-try") bind(settings.readWrite, next(option), next(option), option.endsWith("-try"), workspace);
    else if (option === "--setenv") settings.env[next(option)] = next(option);
    else if (option === "--chdir") settings.directory = next(option);
    else if (option === "--tmpfs" && rest[0] === "/tmp") next(option);
    else if (option === "--share-net") settings.network = true;
    else if (option === "--unshare-net") settings.network = false;
    else if (option === "--unshare-all") settings.network = rest.includes("--share-net");
    else
      throw new UsageError(`nativeSandbox.bwrapArgs: ${JSON.stringify(option)} has no equivalent here`, {
        hint: "Use policy, or run the command by `holt bwrap`, which knows all options of bubblewrap.",
      });
  }
  settings.network ??= true; // bubblewrap shares the network by default
  return settings;
}
