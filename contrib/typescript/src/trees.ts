// SPDX-License-Identifier: Apache-2.0
/**
 * Reads and writes directory trees of the host, for transfers of whole directories.
 *
 * Each entry is opened below the descriptor of its directory, and no symlink is followed. A command that can write the
 * tree cannot make this code read or write elsewhere. Symlinks are copied as such, if they stay inside the tree.
 */
import { randomBytes } from "node:crypto";
import { type Stats, closeSync, constants, fstatSync, ftruncateSync, mkdirSync, openSync, readdirSync, readlinkSync, renameSync, symlinkSync, writeSync } from "node:fs";
import { ExistsError, LimitError, UsageError } from "./errors.js";
import { DIRECTORY, type Place, at, entryAt, placeOf, removeTree } from "./host.js";

/** The limits of holt cp -r: nested directories, bytes of a path below the top, and entries. */
const DEPTH_MAX = 1024;
const PATH_MAX = 4095;
const ENTRIES_MAX = 10_000_000;

const SLASH = Buffer.from("/");

/** Returns a new name for a temporary entry. If the transfer is killed, holt removes the entry. */
export function temporaryName(): string {
  return `.holt-${randomBytes(8).toString("hex")}`;
}

/** Returns a path for holt serve. Bytes that are not UTF-8 are sent in base64, behind a mark. */
export function pathText(path: Buffer): string {
  const text = path.toString("utf8");
  return text.startsWith("\x01") || !Buffer.from(text).equals(path) ? `\x01${path.toString("base64")}` : text;
}

/** Returns the bytes of a path that holt serve has sent. */
export function pathBytes({ name, raw }: { name: string; raw?: string | undefined }): Buffer {
  return raw ? Buffer.from(raw.slice(1), "base64") : Buffer.from(name);
}

/**
 * Whether a symlink at path, relative to the top, stays inside the tree. Its target may only climb at its start, so that
 * links cannot be combined to lead out; see runner/cli/links.c.
 */
export function linkStays(path: Buffer, target: Buffer): boolean {
  let depth = path.toString("latin1").split("/").length - 1;
  let named = false;
  const text = target.toString("latin1");
  if (!text || text.startsWith("/") || target.length > PATH_MAX) return false;
  for (const part of text.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") named = true;
    else if (named || depth === 0) return false;
    else depth--;
  }
  return true;
}

/** An entry of a tree. */
export interface Entry {
  /** relative to the top */
  readonly path: Buffer;
  readonly stat: Stats;
  /** the open regular file, which the caller closes; otherwise undefined */
  readonly fd?: number;
  /** the target of a symlink */
  readonly target?: Buffer;
}

/** Returns an entry. fd is also the descriptor of a directory. Returns undefined if the entry has gone. */
function opened(directory: number, name: Buffer, path: Buffer): Entry | undefined {
  const stat = entryAt(directory, name);
  if (!stat) return undefined;
  if (stat.isSymbolicLink()) return { path, stat, target: readlinkSync(at(directory, name), { encoding: "buffer" }) };
  if (!stat.isFile() && !stat.isDirectory()) return { path, stat };
  const fd = openSync(at(directory, name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const now = fstatSync(fd); // it may have been replaced meanwhile
  if (now.isFile() || now.isDirectory()) return { path, stat: now, fd };
  closeSync(fd);
  return { path, stat: now };
}

function namesOf(directory: number): Buffer[] {
  return readdirSync(at(directory, "."), { encoding: "buffer" }).sort(Buffer.compare).reverse();
}

/** Yields all entries below an open directory, each directory before its contents. */
export function* walk(top: number): Generator<Entry, void, undefined> {
  const levels = [{ directory: openSync(at(top, "."), DIRECTORY), path: Buffer.alloc(0), names: namesOf(top) }];
  let count = 0;
  try {
    for (let level = levels.at(-1); level; level = levels.at(-1)) {
      const name = level.names.pop();
      if (!name) {
        closeSync(levels.pop()!.directory);
        continue;
      }
      const path = Buffer.concat([level.path, name]);
      if (levels.length > DEPTH_MAX || path.length > PATH_MAX || ++count > ENTRIES_MAX)
        throw new LimitError(
          `cannot copy ${JSON.stringify(path.toString("utf8", 0, 200))}: a copy may have ${DEPTH_MAX} nested directories, paths of ${PATH_MAX} bytes ` +
            `and ${ENTRIES_MAX} entries`,
          { hint: "Pack the directory with tar, and upload the archive." },
        );
      const entry = opened(level.directory, name, path);
      if (!entry) continue;
      if (entry.fd !== undefined && entry.stat.isDirectory()) {
        levels.push({ directory: entry.fd, path: Buffer.concat([path, SLASH]), names: namesOf(entry.fd) });
        yield { path, stat: entry.stat };
      } else yield entry;
    }
  } finally {
    for (const { directory } of levels) closeSync(directory);
  }
}

const ZEROS = Buffer.alloc(1 << 20);

/** Writes pieces to a descriptor. Pieces of zeros become holes, so that a sparse file stays sparse. */
export async function writePieces(fd: number, pieces: AsyncIterable<Buffer>): Promise<void> {
  let size = 0;
  for await (const piece of pieces) {
    const empty = piece.length <= ZEROS.length && ZEROS.compare(piece, 0, piece.length, 0, piece.length) === 0;
    for (let done = 0; !empty && done < piece.length; ) done += writeSync(fd, piece, done, piece.length - done, size + done);
    size += piece.length;
  }
  ftruncateSync(fd, size);
}

/** A new directory of the host, which is filled under a temporary name and then renamed to its own. */
export class Tree {
  readonly temporary = temporaryName();
  readonly #place: Place;
  readonly #top: number;
  #finished = false;

  constructor(target: string, writable: readonly string[]) {
    this.#place = placeOf(target, writable, true);
    try {
      this.#checkFree();
      mkdirSync(at(this.#place.directory, this.temporary));
      this.#top = openSync(at(this.#place.directory, this.temporary), DIRECTORY);
    } catch (error) {
      closeSync(this.#place.directory);
      throw error;
    }
  }

  #checkFree(): void {
    const { directory, name } = this.#place;
    if (entryAt(directory, name))
      throw new ExistsError(`${JSON.stringify(name)} already exists`, {
        errno: "EEXIST", hint: "download() does not merge directories. Remove it, or choose another target.",
      });
  }

  /** Calls a function with the path of an entry, which starts at the descriptor of its directory. */
  #in<T>(path: Buffer, act: (path: Buffer) => T): T {
    const parts = path.toString("latin1").split("/").map((part) => Buffer.from(part, "latin1"));
    if (parts.some((part) => ["", ".", ".."].includes(part.toString("latin1")) || part.includes(0)))
      throw new UsageError(`${JSON.stringify(path.toString())} is not the path of an entry`);
    const name = parts.pop()!;
    let directory = openSync(at(this.#top, "."), DIRECTORY);
    try {
      for (const part of parts) {
        const below = openSync(at(directory, part), DIRECTORY);
        closeSync(directory);
        directory = below;
      }
      return act(at(directory, name));
    } finally {
      closeSync(directory);
    }
  }

  mkdir(path: Buffer, mode: number): void {
    this.#in(path, (there) => mkdirSync(there, (mode & 0o777) | 0o700));
  }

  link(path: Buffer, target: Buffer): void {
    this.#in(path, (there) => symlinkSync(target, there));
  }

  async write(path: Buffer, mode: number, pieces: AsyncIterable<Buffer>): Promise<void> {
    const how = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const fd = this.#in(path, (there) => openSync(there, how, mode & 0o777));
    try {
      await writePieces(fd, pieces);
    } finally {
      closeSync(fd);
    }
  }

  /** Gives the directory its own name. Throws ExistsError. */
  finish(): void {
    const { directory, name } = this.#place;
    this.#checkFree();
    renameSync(at(directory, this.temporary), at(directory, name));
    this.#finished = true;
  }

  /** Removes the directory unless it is finished. */
  close(): void {
    closeSync(this.#top);
    try {
      if (!this.#finished) removeTree(this.#place.directory, this.temporary);
    } catch {
      // A command that can write there may have put something into it.
    } finally {
      closeSync(this.#place.directory);
    }
  }
}
