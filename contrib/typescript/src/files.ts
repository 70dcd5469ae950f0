// SPDX-License-Identifier: Apache-2.0
/**
 * Files of a sandbox. Paths are paths inside; relative ones start at the workspace.
 *
 * Node cannot receive file descriptors, so large files travel in pieces. A large file is written beside its target and
 * then renamed, so that no reader sees an incomplete one. Contents that are read in pieces may mix old and new bytes if
 * a command writes the file meanwhile.
 *
 * Code inside can make a file of a terabyte at no cost. So each call that reads into this program's memory has a limit.
 */
import { posix } from "node:path";
import { LimitError, MissingError, UsageError } from "./errors.js";
import { type Content, PIECE, Part, bytesOf } from "./part.js";
import type { FileEntry, FileStat, Link as WireLink, MatchingLine, Methods } from "./protocol.js";
import type { CallOptions } from "./server.js";
import { abortable } from "./signals.js";
import { type Time, timeoutOf } from "./times.js";
import { temporaryName } from "./trees.js";
import { type Copied, type DownloadOptions, Transfer } from "./transfers.js";

/** Maximum bytes of a file that are read into memory, unless maxBytes sets another limit. */
const READ_MAX = 64 << 20;

/** Maximum entries of a listing, unless limit sets another number. */
const LIST_MAX = 100_000;

/** The kernel's limit of symlinks in a path (MAXSYMLINKS). */
const LINKS_MAX = 40;

/** An entry of a directory. name is its path relative to the listed directory; raw is the same, if it is not UTF-8. */
export type FileInfo = FileEntry;

/** A line that matches. name is the path of its file, and line its number, counted from 1. */
export type Match = MatchingLine;

/** A signed URL to a file below /mnt/files, or one that accepts a file. */
export type Link = WireLink;

export interface ReadOptions extends CallOptions {
  /** maximum size of the file; default 64 MiB; Infinity: no limit */
  maxBytes?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** permission bits; default: those of the existing file, or 0o644 */
  mode?: number | undefined;
  /** whether to create missing parent directories; default true */
  makeParents?: boolean | undefined;
}

function* pieces(data: Buffer): Generator<Buffer, void, undefined> {
  for (let at = 0; at < data.length; at += PIECE) yield data.subarray(at, at + PIECE);
}

function checkSize(path: string, size: number, max: number): void {
  if (size > max)
    throw new LimitError(`${JSON.stringify(path)} has ${size} bytes; at most ${max} are read into memory`, {
      errno: "EFBIG", data: { size, limit: max },
      hint: "Set another limit by maxBytes (Infinity: no limit), or read the file in pieces by files.stream(path).",
    });
}

/** File operations. They throw MissingError for a missing entry, and ExistsError for an existing one. */
export class Files extends Part {
  /** Returns the text of a file. Throws UsageError if it is not UTF-8, or LimitError if it is too large. */
  async read(path: string, options: ReadOptions = {}): Promise<string> {
    const bytes = await this.readBytes(path, options);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      throw new UsageError(`${JSON.stringify(path)} is not UTF-8`, { hint: "Read it by files.readBytes()." });
    }
  }

  /** Returns all bytes of a file. Throws LimitError if it has more than maxBytes. */
  async readBytes(path: string, options: ReadOptions = {}): Promise<Buffer> {
    const { maxBytes = READ_MAX } = options;
    if (typeof maxBytes !== "number" || Number.isNaN(maxBytes) || maxBytes < 0) throw new UsageError(`maxBytes must be a number of 0 or more, not ${maxBytes}`);
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const { data, total } of this.#pieces(path, options)) {
      size += data.length;
      checkSize(path, Math.max(size, total), maxBytes);
      pieces.push(data);
    }
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, size);
  }

  /** Yields the content of a file of any size, in pieces of at most 512 KiB. */
  async *stream(path: string, options: CallOptions = {}): AsyncGenerator<Buffer, void, undefined> {
    for await (const { data } of this.#pieces(path, options)) if (data.length) yield data;
  }

  /** Reads up to the end that the file has at the start, so that a writer that keeps appending cannot delay the end. */
  async *#pieces(path: string, options: CallOptions): AsyncGenerator<{ data: Buffer; total: number }, void, undefined> {
    let offset = 0;
    let end = Infinity;
    do {
      const part = await this.request("files.read", { path, offset: offset || undefined, base64: true }, options);
      const data = Buffer.from(part.content, "base64");
      if (end === Infinity) end = part.eof ? data.length : part.size;
      yield { data: data.length > end - offset ? data.subarray(0, end - offset) : data, total: Math.max(part.size, end) };
      if (part.eof) return;
      offset = part.next;
    } while (offset < end);
  }

  /** Replaces a file in one step, or makes it. Returns its size in bytes. Text is written as UTF-8. */
  async write(path: string, content: Content, options: WriteOptions = {}): Promise<number> {
    const data = bytesOf(content);
    const { mode, makeParents = true, signal } = options;
    if (data.length > PIECE) return this.writeLarge(path, pieces(data), options);
    const answer = await this.request("files.write", { path, base64: data.toString("base64"), mode, makeParents }, { signal });
    return answer.size;
  }

  /** @internal Writes in a directory beside the target, which holt removes if this program ends meanwhile, and renames
   * the file. content yields at least one piece, each of at most PIECE bytes. */
  async writeLarge(path: string, content: Iterable<Buffer>, options: WriteOptions): Promise<number> {
    const { signal, makeParents = true } = options;
    const target = await this.#targetOf(path, signal);
    const mode = options.mode ?? target.mode;
    const above = posix.dirname(target.path);
    const directory = posix.join(above, temporaryName());
    const beside = `${directory}/file`;
    let last: Promise<unknown> = Promise.resolve();
    let size = 0;
    const step = async <M extends "files.mkdir" | "files.write" | "files.append" | "files.move">(
      method: M, params: Omit<Methods[M]["params"], "session">,
    ): Promise<void> => {
      last = this.request(method, params);
      await abortable(last, signal);
    };
    try {
      if (makeParents && above !== "." && above !== "/") await step("files.mkdir", { path: above, makeParents });
      await step("files.mkdir", { path: directory, owned: true, mode: 0o700 });
      let first = true;
      for (const piece of content) {
        await step(first ? "files.write" : "files.append", { path: beside, base64: piece.toString("base64"), ...(first ? { mode } : {}) });
        first = false;
        size += piece.length;
      }
      await step("files.move", { from: beside, to: target.path, replace: true });
    } finally {
      // The server may still execute the request that was given up, so the directory is removed after its reply.
      const removed = last.catch(() => {}).then(() => this.tell("files.remove", { path: directory, recursive: true }));
      if (!signal?.aborted) await removed;
      else this.server.keep(removed);
    }
    return size;
  }

  /** Follows symlinks to the file that a write would change, as files.write does. */
  async #targetOf(path: string, signal: AbortSignal | undefined): Promise<{ path: string; mode?: number }> {
    let target = path;
    for (let links = 0; links < LINKS_MAX; links++) {
      let there: FileStat;
      try {
        there = await this.stat(target, { signal, follow: false });
      } catch (error) {
        if (error instanceof MissingError) return { path: target };
        throw error;
      }
      if (there.type !== "link" || there.target === null) return { path: target, mode: there.mode };
      target = there.target.startsWith("/") ? there.target : posix.join(posix.dirname(target), there.target);
    }
    throw new UsageError(`${JSON.stringify(path)} leads through too many symlinks`, { errno: "ELOOP" });
  }

  /** Appends to a file, or makes it. Returns the number of bytes added. */
  async append(path: string, content: Content, options: CallOptions = {}): Promise<number> {
    const data = bytesOf(content);
    for (let at = 0; at === 0 || at < data.length; at += PIECE)
      await this.request("files.append", { path, base64: data.toString("base64", at, at + PIECE) }, options);
    return data.length;
  }

  /**
   * Lists a directory in byte order of names.
   *
   * recursive: lists all entries below it, too. limit: maximum number of entries; default 100000. Symlinks are not
   * followed. Throws LimitError for more entries.
   */
  async list(path = ".", options: CallOptions & { recursive?: boolean | undefined; limit?: number | undefined } = {}): Promise<FileInfo[]> {
    const { signal, recursive, limit = LIST_MAX } = options;
    const found: FileInfo[] = [];
    for (let after: string | undefined; ; ) {
      const page = await this.request("files.list", { path, recursive, after }, { signal });
      if (page.missed && page.missed.errno !== "EACCES")
        throw new LimitError(`${JSON.stringify(path)}: ${JSON.stringify(page.missed.name)} is nested too deeply to be listed`, {
          errno: page.missed.errno, hint: "List its directories one by one.",
        });
      found.push(...page.entries);
      if (found.length > limit)
        throw new LimitError(`${JSON.stringify(path)} has more than ${limit} entries`, { hint: "List its directories one by one, or set another limit." });
      if (page.next === null) return found;
      after = page.next;
    }
  }

  /** Returns paths below path that match a pattern such as "src/**\/*.py". limit is at most 10000. */
  async glob(pattern: string, options: CallOptions & { path?: string | undefined; limit?: number | undefined } = {}): Promise<FileInfo[]> {
    const { signal, path, limit = 10_000 } = options;
    return (await this.request("files.glob", { pattern, path, limit }, { signal })).entries;
  }

  /** Returns lines that match a POSIX extended regular expression. glob: searches only files whose names match it. */
  async grep(
    pattern: string,
    options: CallOptions & { path?: string | undefined; ignoreCase?: boolean | undefined; glob?: string | undefined; limit?: number | undefined } = {},
  ): Promise<Match[]> {
    const { signal, limit = 1000, ...given } = options;
    return (await this.request("files.grep", { pattern, limit, ...given }, { signal })).matches;
  }

  /** Describes the entry at a path. With follow, which is the default, describes the target of a symlink. */
  async stat(path: string, options: CallOptions & { follow?: boolean | undefined } = {}): Promise<FileStat> {
    return this.request("files.stat", { path, follow: options.follow ?? true }, { signal: options.signal });
  }

  /** Returns whether a path exists. */
  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    return (await this.request("files.exists", { path }, options)).exists;
  }

  /** Makes a directory. */
  async mkdir(path: string, options: WriteOptions = {}): Promise<void> {
    const { signal, mode, makeParents = true } = options;
    await this.request("files.mkdir", { path, mode, makeParents }, { signal });
  }

  /** Makes a symlink at path. Its target need not exist. */
  async symlink(path: string, target: string, options: CallOptions = {}): Promise<void> {
    await this.request("files.link", { path, target }, options);
  }

  /** Removes a file or an empty directory. With recursive, removes a directory with all its entries. */
  async remove(path: string, options: CallOptions & { recursive?: boolean | undefined } = {}): Promise<void> {
    await this.request("files.remove", { path, recursive: options.recursive }, { signal: options.signal });
  }

  /** Renames a file or directory. With replace, replaces an existing target. */
  async move(source: string, target: string, options: CallOptions & { replace?: boolean | undefined } = {}): Promise<void> {
    await this.request("files.move", { from: source, to: target, replace: options.replace }, { signal: options.signal });
  }

  /** Copies a file, a symlink or, with recursive, a directory. Returns how many FIFOs, sockets and devices were left out. */
  async copy(
    source: string, target: string, options: CallOptions & { recursive?: boolean | undefined; replace?: boolean | undefined } = {},
  ): Promise<number> {
    const { signal, recursive, replace } = options;
    return (await this.request("files.copy", { from: source, to: target, recursive, replace }, { signal })).leftOut;
  }

  /**
   * Copies a directory or file of the host into the sandbox. A directory appears at its path only when it is complete.
   *
   * path: its new path inside, which must not exist if source is a directory; default: its own name. Symlinks that stay
   * inside the tree are kept. Other symlinks, FIFOs, sockets and devices are left out, and leftOut names them. Throws
   * ExistsError, and LimitError for more than 1024 nested directories or 10 million entries.
   */
  async upload(source: string, path?: string, options: CallOptions = {}): Promise<Copied> {
    options.signal?.throwIfAborted();
    return new Transfer(this.server, this.session, this, options.signal).upload(source, path);
  }

  /**
   * Copies a directory or file of the sandbox to the host. A directory appears at its path only when it is complete.
   *
   * target: the new path on the host, which must not exist if path is a directory; default: its own name in the working
   * directory. The same entries as by upload() are kept and left out. Throws LimitError for too many entries or bytes. A
   * downloaded directory may have files that programs of the host run, such as the hooks of a git repository: look at it
   * first.
   */
  async download(path: string, target?: string, options: DownloadOptions = {}): Promise<Copied> {
    options.signal?.throwIfAborted();
    return new Transfer(this.server, this.session, this, options.signal).download(path, target, options);
  }

  /**
   * Makes a URL by which programs of the host read a file below /mnt/files.
   *
   * expires: time until the link expires, at most 7 days; default "1h". upload: accept one upload of the file, by PUT or
   * POST, instead of serving it. maxSize: maximum bytes of an upload; default 100 MiB. Everybody on the host who has the
   * URL can use it until it expires, or until the session stops.
   */
  async link(
    path: string, options: CallOptions & { expires?: Time | undefined; upload?: boolean | undefined; maxSize?: number | undefined } = {},
  ): Promise<Link> {
    const { signal, expires = "1h", upload, maxSize } = options;
    return this.request("links.make", { path, forMs: timeoutOf(expires), upload, maxSize }, { signal });
  }

  /** Lists the links that have not expired. */
  async links(options: CallOptions = {}): Promise<Link[]> {
    return (await this.request("links.list", {}, options)).links;
  }

  /** Revokes a link, or all of them, and ends their requests. Returns how many there were. */
  async revokeLink(link?: Link | number, options: CallOptions = {}): Promise<number> {
    const id = typeof link === "object" ? link.id : link;
    return (await this.request("links.revoke", { id }, options)).revoked;
  }
}

