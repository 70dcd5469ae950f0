// SPDX-License-Identifier: Apache-2.0
/** Copies directories and files between the host and a sandbox. */
import { closeSync, fstatSync, openSync, readSync, renameSync, unlinkSync } from "node:fs";
import { basename, join, posix, resolve } from "node:path";
import { ExistsError, LimitError, UsageError } from "./errors.js";
import type { FileInfo, Files } from "./files.js";
import { at, entryAt, hostError, openPlace, placeOf } from "./host.js";
import { PIECE, Part } from "./part.js";
import type { Methods } from "./protocol.js";
import type { CallOptions, Server } from "./server.js";
import { abortable } from "./signals.js";
import { type Entry, Tree, linkStays, pathBytes, pathText, temporaryName, walk, writePieces } from "./trees.js";

/** Maximum bytes of a download, unless maxBytes sets another limit. */
const DOWNLOAD_MAX = 4 * 2 ** 30;

/** The result of upload() and download(). */
export interface Copied {
  /** the path of the copy */
  readonly path: string;
  /** number of copied files, directories and symlinks below it; 1 for a file */
  readonly entries: number;
  /** entries that were not copied: symlinks that lead out of the tree, FIFOs, sockets and devices */
  readonly leftOut: readonly string[];
}

export interface DownloadOptions extends CallOptions {
  /** maximum number of entries; default 100000 */
  limit?: number | undefined;
  /** maximum bytes of all files; default 4 GiB; Infinity: no limit */
  maxBytes?: number | undefined;
}

type Step = "files.mkdir" | "files.write" | "files.append" | "files.link" | "files.move";

/** Yields the content of an open file up to the size that it has at the start, at least one piece. */
function* piecesOf(fd: number): Generator<Buffer, void, undefined> {
  let left = fstatSync(fd).size;
  do {
    const piece = Buffer.alloc(Math.min(PIECE, left));
    const got = readSync(fd, piece, 0, piece.length, null);
    yield piece.subarray(0, got);
    left = got ? left - got : 0;
  } while (left > 0);
}

/** @internal One transfer. */
export class Transfer extends Part {
  readonly #files: Files;
  readonly #signal: AbortSignal | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #entries = 0;
  #bytes = 0;
  readonly #leftOut: string[] = [];

  constructor(server: Server, session: string, files: Files, signal: AbortSignal | undefined) {
    super(server, session);
    this.#files = files;
    this.#signal = signal;
  }

  /** Returns the host directories that the session can write. */
  async #writable(): Promise<string[]> {
    const { mounts } = await this.request("session.show", {}, { signal: this.#signal });
    return mounts.filter((each) => !each.readOnly).flatMap(({ source, movedTo }) => [source, movedTo].filter((path): path is string => typeof path === "string"));
  }

  async #step<M extends Step>(method: M, params: Omit<Methods[M]["params"], "session">): Promise<void> {
    this.#last = this.request(method, params);
    await abortable(this.#last, this.#signal);
  }

  #copied(path: string): Copied {
    return { path, entries: this.#entries, leftOut: this.#leftOut };
  }

  // --- to the sandbox ---

  async upload(source: string, path: string | undefined): Promise<Copied> {
    const name = (path ?? basename(resolve(source))).replace(/(?<=.)\/+$/, "");
    if (!name) throw new UsageError(`${JSON.stringify(source)} has no name`, { hint: 'Pass a name as the second argument: upload(source, "name").' });
    const fd = openSource(source, await this.#writable());
    try {
      const stat = fstatSync(fd);
      if (stat.isDirectory()) await this.#uploadTree(fd, stat.mode, name);
      else if (stat.isFile()) await this.#uploadFile(fd, stat.mode, name);
      else throw new UsageError(`${source} is no directory and no regular file`);
    } finally {
      closeSync(fd);
    }
    return this.#copied(name);
  }

  async #uploadFile(fd: number, mode: number, name: string): Promise<void> {
    await this.#files.writeLarge(name, piecesOf(fd), { mode: mode & 0o777, signal: this.#signal });
    this.#entries = 1;
  }

  async #uploadTree(top: number, mode: number, name: string): Promise<void> {
    const above = posix.dirname(name);
    if (above !== "." && above !== "/") await this.#step("files.mkdir", { path: above, makeParents: true });
    if (await this.#files.exists(name, { signal: this.#signal }))
      throw new ExistsError(`${JSON.stringify(name)} already exists in the sandbox`, {
        errno: "EEXIST", hint: "upload() does not merge directories. Remove it by files.remove(path, { recursive: true }), or pass another path.",
      });
    const temporary = temporaryName();
    const beside = posix.join(above, temporary);
    try {
      await this.#step("files.mkdir", { path: beside, mode: (mode & 0o777) | 0o700, owned: true });
      for (const entry of walk(top)) {
        try {
          if (entry.path.toString("latin1").split("/").includes(temporary))
            throw new UsageError("cannot copy a directory into itself", { hint: "Its new path lies in that directory of the host." });
          await this.#uploadEntry(entry, pathText(Buffer.concat([Buffer.from(`${beside}/`), entry.path])));
        } finally {
          if (entry.fd !== undefined) closeSync(entry.fd);
        }
      }
      await this.#step("files.move", { from: beside, to: name });
    } catch (error) {
      // The server may still execute the request that was given up, so the directory is removed after its reply.
      const removed = this.#last.catch(() => {}).then(() => this.tell("files.remove", { path: beside, recursive: true }));
      if (this.#signal?.aborted) void this.server.keep(removed);
      else await removed;
      throw error;
    }
  }

  async #uploadEntry({ path: name, stat, fd, target }: Entry, path: string): Promise<void> {
    const mode = stat.mode & 0o777;
    if (fd !== undefined) {
      let first = true;
      for (const piece of piecesOf(fd)) {
        await this.#step(first ? "files.write" : "files.append", { path, base64: piece.toString("base64"), ...(first ? { mode } : {}) });
        first = false;
      }
    } else if (stat.isDirectory()) await this.#step("files.mkdir", { path, mode: mode | 0o700 });
    else if (target && linkStays(name, target)) await this.#step("files.link", { path, target: pathText(target) });
    else {
      this.#leftOut.push(name.toString());
      return;
    }
    this.#entries++;
  }

  // --- to the host ---

  async download(path: string, target: string | undefined, { limit, maxBytes = DOWNLOAD_MAX }: DownloadOptions): Promise<Copied> {
    const signal = this.#signal;
    const name = posix.basename(path);
    if (target === undefined && !name) throw new UsageError(`${JSON.stringify(path)} does not end with a name`, { hint: 'Pass a target: download(path, "name").' });
    const there = target ?? name;
    const { type } = await this.#files.stat(path, { signal });
    if (type !== "directory") return this.#downloadFile(path, there, name, maxBytes);
    const entries = await this.#files.list(path, { recursive: true, limit, signal });
    const tree = new Tree(there, await this.#writable());
    try {
      for (const entry of entries) {
        signal?.throwIfAborted();
        if (!entry.name.split("/").includes(tree.temporary)) await this.#downloadEntry(tree, path, entry, maxBytes);
      }
      tree.finish();
    } catch (error) {
      throw hostError(error, there);
    } finally {
      tree.close();
    }
    return this.#copied(there);
  }

  async #downloadEntry(tree: Tree, top: string, entry: FileInfo, maxBytes: number): Promise<void> {
    const path = pathBytes(entry);
    if (entry.type === "file") await tree.write(path, entry.mode, this.#limited(pathText(Buffer.concat([pathBytes({ name: top, raw: top.startsWith("\x01") ? top : undefined }), Buffer.from("/"), path])), maxBytes));
    else if (entry.type === "directory") tree.mkdir(path, entry.mode);
    else if (entry.type === "link" && entry.target !== null && !entry.target.includes("\ufffd") && linkStays(path, Buffer.from(entry.target)))
      tree.link(path, Buffer.from(entry.target));
    else {
      this.#leftOut.push(entry.name);
      return;
    }
    this.#entries++;
  }

  /** Yields the content of a file inside. Code inside can make a file of a terabyte at no cost. */
  async *#limited(path: string, maxBytes: number): AsyncGenerator<Buffer, void, undefined> {
    for await (const piece of this.#files.stream(path, { signal: this.#signal })) {
      this.#bytes += piece.length;
      if (this.#bytes > maxBytes)
        throw new LimitError(`the download has more than ${maxBytes} bytes`, { errno: "EFBIG", hint: "Set another limit by maxBytes (Infinity: no limit)." });
      yield piece;
    }
  }

  /** Writes a file beside the target, and renames it. The existing file is never opened, since a command may swap it. */
  async #downloadFile(path: string, target: string, name: string, maxBytes: number): Promise<Copied> {
    const place = placeOf(target, await this.#writable(), true);
    try {
      const existing = entryAt(place.directory, place.name);
      if (existing?.isDirectory() && name && basename(target) !== "..") return await this.#downloadFile(path, join(target, name), "", maxBytes);
      if (existing && !existing.isFile()) throw new UsageError(`${target} is no regular file`, { hint: "Choose another target." });
      const beside = at(place.directory, temporaryName());
      const fd = openSync(beside, "wx", existing ? existing.mode & 0o777 : 0o666);
      try {
        await writePieces(fd, this.#limited(path, maxBytes));
        renameSync(beside, at(place.directory, place.name));
      } catch (error) {
        unlinkSync(beside);
        throw error;
      } finally {
        closeSync(fd);
      }
    } catch (error) {
      throw hostError(error, target);
    } finally {
      closeSync(place.directory);
    }
    this.#entries = 1;
    return this.#copied(target);
  }
}

function openSource(source: string, writable: readonly string[]): number {
  const place = placeOf(source, writable, false);
  try {
    return openPlace(place);
  } catch (error) {
    throw hostError(error, source);
  } finally {
    closeSync(place.directory);
  }
}
