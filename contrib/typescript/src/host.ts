// SPDX-License-Identifier: Apache-2.0
/**
 * Opens host files in directories that a session may have changed.
 *
 * A directory that a session can write, such as its workspace, may have symlinks that a command has planted. Following one
 * would let the command choose the file that is read or written. So such symlinks are refused. Symlinks elsewhere belong
 * to the host and are followed.
 *
 * Node has no openat(2). A path below /proc/self/fd/N starts at the directory of that descriptor, which is the same.
 */
import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readdirSync, readlinkSync, realpathSync, rmdirSync, statSync, unlinkSync } from "node:fs";
import type { Stats } from "node:fs";
import { resolve } from "node:path";
import { ExistsError, HoltError, MissingError, SetupError, UsageError } from "./errors.js";

/** Opens a directory only to name what is below it; needs no right to read it. */
const O_PATH = 0o10000000;

/** The kernel's limit of symlinks in a path (MAXSYMLINKS). */
const LINKS_MAX = 40;

export const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** A name in a directory of the host. */
export interface Place {
  /** descriptor of the directory; the caller closes it */
  readonly directory: number;
  readonly name: string;
  /** whether the session can write the directory */
  readonly inside: boolean;
}

/** Returns the path of an entry of an open directory. */
export function at(directory: number, name: Buffer | string): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${directory}/`), Buffer.from(name)]);
}

/** Describes an entry itself, or returns undefined if it does not exist. */
export function entryAt(directory: number, name: Buffer | string): Stats | undefined {
  return lstatSync(at(directory, name), { throwIfNoEntry: false });
}

function pathOf(directory: number): string {
  return readlinkSync(`/proc/self/fd/${directory}`);
}

/** Whether a directory is in /proc. Symlinks there may have targets that no path can name. */
function isInProc(directory: number): boolean {
  return /^\/proc(\/|$)/.test(pathOf(directory));
}

function rootsOf(writable: readonly string[]): string[] {
  return writable.flatMap((each) => {
    try {
      return [realpathSync(each)];
    } catch {
      return []; // it has gone
    }
  });
}

function isInside(directory: number, roots: readonly string[]): boolean {
  const where = `${pathOf(directory)}/`;
  return roots.some((root) => where.startsWith(root.endsWith("/") ? root : `${root}/`));
}

/** Refuses another user's symlink in a shared directory such as /tmp, as fs.protected_symlinks does (proc(5)). */
function refuseForeign(directory: number, link: Stats): void {
  const above = fstatSync(directory);
  const shared = constants.S_IWOTH | 0o1000;
  if ((above.mode & shared) === shared && link.uid !== process.geteuid?.() && link.uid !== above.uid)
    throw Object.assign(new Error("it leads through another user's symlink"), { code: "EACCES" });
}

/** Returns the error of this package for an error of Node about a path. */
export function hostError(error: unknown, path: string): unknown {
  if (error instanceof HoltError || !(error instanceof Error)) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== "string" || !/^E[A-Z0-9]+$/.test(code)) return error;
  const made = code === "ENOENT" ? MissingError : code === "EEXIST" ? ExistsError : SetupError;
  const why = error.message.replace(/^E\w+: /, "").replace(/, \w+ '.*$/s, "");
  return new made(`${path}: ${why}`, { errno: code, cause: error });
}

/**
 * Follows a path step by step, because a symlink of the host may lead into a directory that the session can write.
 * make: makes missing directories above the name.
 */
export function placeOf(path: string, writable: readonly string[], make: boolean): Place {
  const left = resolve(path).split("/").filter(Boolean).reverse();
  const roots = rootsOf(writable);
  let links = 0;
  let directory = openSync("/", O_PATH | constants.O_DIRECTORY);
  const into = (path: Buffer | string, flags: number): void => {
    const next = openSync(path, O_PATH | constants.O_DIRECTORY | flags);
    closeSync(directory);
    directory = next;
  };
  try {
    for (;;) {
      const name = left.pop() ?? ".";
      const inside = name !== ".." && isInside(directory, roots);
      const proc = isInProc(directory);
      const entry = proc ? statSync(at(directory, name), { throwIfNoEntry: false }) : entryAt(directory, name);
      if (entry?.isSymbolicLink()) {
        if (inside)
          throw new UsageError(`${pathOf(directory)}/${name} is a symlink in a directory that the session can write, and is not followed`, {
            hint: "Pass the path that it points to, or a path that the session cannot write.",
          });
        refuseForeign(directory, entry);
        if (++links > LINKS_MAX) throw Object.assign(new Error("it leads through too many symlinks"), { code: "ELOOP" });
        const target = readlinkSync(at(directory, name), "utf8");
        left.push(...target.split("/").filter((part) => part && part !== ".").reverse());
        if (target.startsWith("/")) into("/", 0);
      } else if (left.length || name === "..") {
        if (!entry && make) mkdirSync(at(directory, name));
        into(at(directory, name), proc ? 0 : constants.O_NOFOLLOW);
      } else return { directory, name, inside };
    }
  } catch (error) {
    closeSync(directory);
    throw hostError(error, path);
  }
}

/** Opens an entry for reading, and returns its descriptor. A FIFO is opened, too, and does not block. */
export function openPlace({ directory, name }: Place): number {
  return openSync(at(directory, name), constants.O_RDONLY | constants.O_NONBLOCK | (isInProc(directory) ? 0 : constants.O_NOFOLLOW));
}

/** Removes an entry with all that is below it. Never follows a symlink, even if a command replaces an entry meanwhile. */
export function removeTree(directory: number, name: Buffer | string): void {
  let below: number;
  try {
    below = openSync(at(directory, name), DIRECTORY);
  } catch {
    return unlinkSync(at(directory, name));
  }
  try {
    for (const each of readdirSync(at(below, "."), { encoding: "buffer" })) removeTree(below, each);
  } finally {
    closeSync(below);
  }
  rmdirSync(at(directory, name));
}
