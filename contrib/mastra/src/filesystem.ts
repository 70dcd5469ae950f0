// SPDX-License-Identifier: Apache-2.0
/** The files of a HoltSandbox as a filesystem of Mastra. */
import { posix } from "node:path";
import { runInNewContext } from "node:vm";
import {
  DirectoryNotEmptyError, DirectoryNotFoundError, FileExistsError, FileNotFoundError, IsDirectoryError, MastraFilesystem, NotDirectoryError,
  PermissionError, StaleFileError, UnsupportedGrepPatternError, WorkspaceReadOnlyError, type CopyOptions, type FileContent, type FileEntry,
  type FileStat, type FilesystemGrepMatch, type FilesystemGrepOptions, type FilesystemGrepResult, type FilesystemInfo,
  type InstructionsOption, type ListOptions, type MastraFilesystemOptions, type ProviderStatus, type ReadOptions, type RemoveOptions,
  type WalkEntry, type WalkOptions, type WriteOptions,
} from "@mastra/core/workspace";
import { HoltError, MissingError, type FileInfo, type Sandbox } from "holt";
import { reworded } from "./denials.js";
import type { HoltSandbox } from "./sandbox.js";

type RequestContext = Parameters<Exclude<InstructionsOption, string>>[0]["requestContext"];

/** Maximum number of matches of one search. */
const MATCHES = 10_000;

/** Milliseconds for the columns of the matches of one search. */
const COLUMNS_WITHIN = 100;

export interface HoltFilesystemOptions extends MastraFilesystemOptions {
  /** the sandbox with the files; it is started when a method needs it */
  sandbox: HoltSandbox;
  /** default: the sandbox's id */
  id?: string | undefined;
  /** whether all methods that write fail */
  readOnly?: boolean | undefined;
  /** text for the model, or a function that gets the default text */
  instructions?: InstructionsOption | undefined;
}

/**
 * Reads and writes files of the sandbox, with the rights of its commands. A path is the same here and in commands:
 * relative ones start at the working directory.
 */
export class HoltFilesystem extends MastraFilesystem {
  readonly id: string;
  readonly name = "HoltFilesystem";
  readonly provider = "holt";
  status: ProviderStatus = "pending";
  readonly readOnly: boolean;
  readonly icon = "folder";

  readonly #sandbox: HoltSandbox;
  readonly #instructions: InstructionsOption | undefined;

  constructor(options: HoltFilesystemOptions) {
    super({ ...options, name: "HoltFilesystem" });
    this.id = options.id ?? `${options.sandbox.id}-files`;
    this.readOnly = options.readOnly ?? false;
    this.#sandbox = options.sandbox;
    this.#instructions = options.instructions;
  }

  override async init(): Promise<void> {
    await this.#sandbox.ensureRunning();
  }

  /** The sandbox keeps its files; its own destroy() removes them. */
  override async destroy(): Promise<void> {}

  /** The path inside, without ".." and ".". */
  #path(path: string): string {
    return posix.resolve(this.#sandbox.workingDirectory, path);
  }

  /** Calls a function with the sandbox, and translates errors. */
  async #with<T>(path: string, missing: "file" | "directory", act: (box: Sandbox, path: string) => Promise<T>): Promise<T> {
    await this.ensureReady();
    try {
      return await this.#sandbox.withBox((box) => act(box, this.#path(path)));
    } catch (error) {
      throw translated(error, path, missing);
    }
  }

  /** The same for a method that writes. */
  async #changing<T>(path: string, act: (box: Sandbox, path: string) => Promise<T>): Promise<T> {
    if (this.readOnly) throw new WorkspaceReadOnlyError(`change ${path}`);
    return this.#with(path, "file", act);
  }

  async readFile(path: string, options: ReadOptions = {}): Promise<string | Buffer> {
    const bytes = await this.#with(path, "file", (box, inside) => box.files.readBytes(inside));
    return options.encoding ? bytes.toString(options.encoding) : bytes;
  }

  /** Replaces a file in one step, or makes it. With recursive, which is the default, makes its directories. */
  async writeFile(path: string, content: FileContent, options: WriteOptions = {}): Promise<void> {
    const { recursive = true, overwrite = true, expectedMtime } = options;
    await this.#changing(path, async (box, inside) => {
      if (!overwrite && (await box.files.exists(inside))) throw new FileExistsError(path);
      if (expectedMtime) {
        const { modifiedMs } = await box.files.stat(inside);
        if (modifiedMs !== expectedMtime.getTime()) throw new StaleFileError(path, expectedMtime, new Date(modifiedMs));
      }
      if (!recursive && !(await box.files.exists(posix.dirname(inside)))) throw new DirectoryNotFoundError(posix.dirname(path));
      await box.files.write(inside, content, { makeParents: recursive });
    });
  }

  async appendFile(path: string, content: FileContent): Promise<void> {
    await this.#changing(path, async (box, inside) => {
      await box.files.mkdir(posix.dirname(inside));
      await box.files.append(inside, content);
    });
  }

  async deleteFile(path: string, options: RemoveOptions = {}): Promise<void> {
    await this.#changing(path, async (box, inside) => {
      try {
        if ((await box.files.stat(inside, { follow: false })).type === "directory") throw new IsDirectoryError(path);
        await box.files.remove(inside);
      } catch (error) {
        if (!(options.force && error instanceof MissingError)) throw error;
      }
    });
  }

  async copyFile(src: string, dest: string, options: CopyOptions = {}): Promise<void> {
    const { overwrite = true, recursive } = options;
    await this.#changing(src, async (box, inside) => {
      await box.files.stat(inside);
      const target = this.#path(dest);
      await box.files.mkdir(posix.dirname(target));
      await named(dest, () => box.files.copy(inside, target, { replace: overwrite, recursive }));
    });
  }

  async moveFile(src: string, dest: string, options: CopyOptions = {}): Promise<void> {
    await this.#changing(src, async (box, inside) => {
      await box.files.stat(inside, { follow: false });
      const target = this.#path(dest);
      await box.files.mkdir(posix.dirname(target));
      await named(dest, () => box.files.move(inside, target, { replace: options.overwrite ?? true }));
    });
  }

  async mkdir(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    const { recursive = true } = options;
    await this.#changing(path, async (box, inside) => {
      if (recursive && (await box.files.exists(inside)) && (await box.files.stat(inside)).type === "directory") return;
      if (!recursive && !(await box.files.exists(posix.dirname(inside)))) throw new DirectoryNotFoundError(posix.dirname(path));
      await box.files.mkdir(inside, { makeParents: recursive });
    });
  }

  async rmdir(path: string, options: RemoveOptions = {}): Promise<void> {
    const { recursive = false, force } = options;
    if (this.readOnly) throw new WorkspaceReadOnlyError(`remove ${path}`);
    await this.#with(path, "directory", async (box, inside) => {
      try {
        if ((await box.files.stat(inside, { follow: false })).type !== "directory") throw new NotDirectoryError(path);
        await box.files.remove(inside, { recursive });
      } catch (error) {
        if (!(force && error instanceof MissingError)) throw error;
      }
    });
  }

  async readdir(path: string, options: ListOptions = {}): Promise<FileEntry[]> {
    const { recursive, extension, maxDepth = Infinity } = options;
    const extensions = extension === undefined ? undefined : [extension].flat().map((each) => (each.startsWith(".") ? each : `.${each}`));
    const entries = await this.#entries(path, recursive ?? false);
    return entries
      .filter(({ name, type }) => depthOf(name) <= maxDepth && (!extensions || type === "directory" || extensions.includes(posix.extname(name))))
      .map(entryOf);
  }

  async #entries(path: string, recursive: boolean): Promise<FileInfo[]> {
    return this.#with(path, "directory", (box, inside) => box.files.list(inside, { recursive }));
  }

  /** Lists everything below a directory in one call. */
  async walk(path: string, options: WalkOptions = {}): Promise<WalkEntry[]> {
    const { maxDepth = Infinity, includeHidden = false } = options;
    const entries = await this.#entries(path, maxDepth > 1);
    return entries
      .filter(({ name }) => depthOf(name) <= maxDepth && (includeHidden || !isHidden(name)))
      .map((each) => ({ ...entryOf(each), name: posix.basename(each.name), path: each.name }));
  }

  /** Searches files inside. Patterns that mean something else in POSIX are left to Mastra's own search. */
  async grep(options: FilesystemGrepOptions): Promise<FilesystemGrepResult[]> {
    const { pattern, path, caseSensitive, includeHidden, maxCountPerFile = Infinity, maxTotalMatches = MATCHES, contextLines = 0 } = options;
    if (/[\\^$[{]|\(\?|[*+?]\?/.test(pattern) || contextLines > 0) throw new UnsupportedGrepPatternError(pattern, "holt searches with POSIX patterns");
    const found = await this.#with(path, "file", (box, inside) => box.files.grep(pattern, { path: inside, ignoreCase: !caseSensitive, limit: MATCHES }));
    if (found.length >= MATCHES) throw new UnsupportedGrepPatternError(pattern, `more than ${MATCHES} lines match`);
    const results = new Map<string, FilesystemGrepMatch[]>();
    const chosen: FilesystemGrepMatch[] = [];
    for (const { name, line, text } of found) {
      if (chosen.length >= maxTotalMatches || (!includeHidden && isHidden(name))) continue;
      const matches = results.get(name) ?? [];
      if (matches.length >= maxCountPerFile) continue;
      const match = { line, column: 0, text };
      matches.push(match);
      results.set(name, matches);
      chosen.push(match);
    }
    columnsOf(pattern, caseSensitive, chosen.map(({ text }) => text)).forEach((column, index) => (chosen[index]!.column = Math.max(0, column)));
    return [...results].map(([name, matches]) => ({ path: name, matches }));
  }

  async exists(path: string): Promise<boolean> {
    return this.#with(path, "file", (box, inside) => box.files.exists(inside));
  }

  /** Describes a file. createdAt is the time of the last change, because holt does not report the time of creation. */
  async stat(path: string): Promise<FileStat> {
    const { type, size, modifiedMs } = await this.#with(path, "file", (box, inside) => box.files.stat(inside));
    const modifiedAt = new Date(modifiedMs);
    const isDirectory = type === "directory";
    return {
      name: posix.basename(this.#path(path)), path: this.#path(path), type: isDirectory ? "directory" : "file", size: isDirectory ? 0 : size,
      createdAt: modifiedAt, modifiedAt,
    };
  }

  /** Follows symlinks, as a command inside would. */
  async realpath(path: string): Promise<string> {
    return this.#with(path, "file", async (box, inside) => {
      const done = await box.exec(["realpath", "-ez", "--", inside]);
      if (!done.ok) throw new FileNotFoundError(path);
      return done.stdout.replace(/\0$/, "");
    });
  }

  getInfo(): FilesystemInfo {
    return {
      id: this.id, name: this.name, provider: this.provider, status: this.status, readOnly: this.readOnly, icon: this.icon,
      metadata: { sandbox: this.#sandbox.id, workingDirectory: this.#sandbox.workingDirectory },
    };
  }

  /** Describes the paths for a model. */
  getInstructions(options?: { requestContext?: RequestContext }): string {
    const defaultInstructions =
      `Files of the sandbox in which commands run. A path is the same in both. Relative paths start at "${this.#sandbox.workingDirectory}".` +
      (this.readOnly ? " The file tools cannot change files." : "");
    const own = this.#instructions;
    if (typeof own === "string") return own;
    return own ? own({ defaultInstructions, requestContext: options?.requestContext }) : defaultInstructions;
  }
}

/**
 * Returns the column of the first match in each text, or [] if that takes too long. The model chooses the pattern, and
 * commands write the texts. For some of them, the search of JavaScript takes longer than the age of the universe.
 */
function columnsOf(pattern: string, caseSensitive: boolean | undefined, texts: readonly string[]): number[] {
  try {
    const expression = new RegExp(pattern, caseSensitive ? "" : "i");
    return runInNewContext("texts.map((text) => text.search(expression))", { texts, expression }, { timeout: COLUMNS_WITHIN }) as number[];
  } catch {
    return []; // or the pattern is valid in POSIX alone
  }
}

function depthOf(name: string): number {
  return name.split("/").length;
}

function isHidden(name: string): boolean {
  return name.split("/").some((part) => part.startsWith("."));
}

function entryOf({ name, type, size, target }: FileInfo): FileEntry {
  const link = type === "link" ? { isSymlink: true, ...(target === null ? {} : { symlinkTarget: target }) } : {};
  return { name, type: type === "directory" ? "directory" : "file", ...(type === "directory" ? {} : { size }), ...link };
}

/** Calls a function whose errors are about another path. */
async function named<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw translated(error, path, "file");
  }
}

/** PermissionError writes "on PATH" behind its second argument, so that the hint is added later. */
function refused(path: string, { reason, errno, hint }: HoltError): PermissionError {
  const error = new PermissionError(path, reason.endsWith(path) ? reason.slice(0, -path.length).trim() || "access" : reason);
  error.message += ` (${errno})${hint ? `\n  ${reworded(hint)}` : ""}`;
  return error;
}

/** Returns the error of Mastra for an error of holt. */
function translated(error: unknown, path: string, missing: "file" | "directory"): unknown {
  if (!(error instanceof HoltError)) return error;
  switch (error.errno) {
    case "ENOENT":
      return missing === "file" ? new FileNotFoundError(path) : new DirectoryNotFoundError(path);
    case "EEXIST":
      return new FileExistsError(path);
    case "EISDIR":
      return new IsDirectoryError(path);
    case "ENOTDIR":
      return new NotDirectoryError(path);
    case "ENOTEMPTY":
      return new DirectoryNotEmptyError(path);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return refused(path, error);
    default:
      return error;
  }
}
