// SPDX-License-Identifier: Apache-2.0
/**
 * Mounts of filesystems in a sandbox.
 *
 * A session's mounts are fixed when it is created. So the mounts that are known before the first command become part of
 * the session: start() reads them before it creates the session, and the mount manager asks for them afterwards. A later
 * mount can only be a symlink inside, to a directory that commands see already. LocalSandbox makes symlinks, too.
 */
import { mkdir, readdir, realpath, rmdir } from "node:fs/promises";
import { posix, resolve } from "node:path";
import { MountError, type FilesystemMountConfig, type MountManager, type MountResult, type WorkspaceFilesystem } from "@mastra/core/workspace";
import { HoltError, MissingError, type Sandbox } from "holt";
import { isWithin } from "./options.js";

/** Directories of the system that a mount must not hide. */
const SYSTEM = ["/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/tmp", "/var"];

const FIXED = "holt fixes the mounts of a sandbox when it creates it";
const BEFORE = `${FIXED}, and commands do not see this directory; mount it before the first command, or show it by readOnlyPaths or readWritePaths`;
const UNTIL = `${FIXED}, so that this one lasts until destroy()`;

interface Bound {
  source: string;
  readOnly: boolean;
}

export class Mounts {
  readonly #manager: MountManager;
  readonly #bound = new Map<string, Bound>();
  readonly #refused = new Map<string, string>();
  readonly #made = new Set<string>();
  readonly #links = new Map<string, string>();

  constructor(manager: MountManager) {
    this.#manager = manager;
  }

  /** Paths of the mounts that the session has. */
  get paths(): string[] {
    return [...this.#bound.keys()];
  }

  /** Returns the pending mounts as settings of the session, each "SOURCE:TARGET". */
  async prepare(workspace: string | undefined): Promise<Array<{ path: string; readOnly: boolean }>> {
    this.#bound.clear();
    this.#refused.clear();
    for (const [mountPath, { filesystem, state }] of this.#manager.entries) {
      if (state !== "pending" && state !== "mounted") continue;
      const source = sourceOf(filesystem);
      if (source !== undefined && workspace !== undefined && posix.dirname(mountPath) === workspace) await this.#make(mountPath);
      const refusal = source === undefined ? undefined : await refusalOf(mountPath, workspace);
      if (refusal) this.#refused.set(mountPath, refusal);
      else if (source !== undefined) this.#bound.set(mountPath, { source, readOnly: filesystem.readOnly === true });
    }
    return [...this.#bound].map(([target, { source, readOnly }]) => ({ path: `${source}:${target}`, readOnly }));
  }

  /** Makes a mount point at the top of the workspace, so that commands cannot replace a directory above it by a symlink. */
  async #make(path: string): Promise<void> {
    try {
      await mkdir(path);
      this.#made.add(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }

  /** Removes the mount points that were made, after the session has ended. */
  async clean(): Promise<void> {
    for (const path of this.#made) await rmdir(path).catch(() => {}); // it may have files meanwhile
    this.#made.clear();
  }

  /** Reports the mount, which exists if the session was created with it. */
  mount(filesystem: WorkspaceFilesystem, mountPath: string, started: boolean): MountResult {
    const source = sourceOf(filesystem);
    if (source === undefined) return this.#failed(filesystem, mountPath, `holt mounts only directories of this host, not ${filesystem.provider}`);
    const refusal = this.#refused.get(mountPath);
    if (refusal) return this.#failed(filesystem, mountPath, refusal);
    const bound = this.#bound.get(mountPath);
    if (started && bound?.source !== source) return this.#failed(filesystem, mountPath, BEFORE);
    const config = filesystem.getMountConfig?.();
    this.#manager.set(mountPath, { filesystem, state: started ? "mounted" : "pending", ...(config ? { config } : {}) });
    return { success: true, mountPath };
  }

  #failed(filesystem: WorkspaceFilesystem, mountPath: string, error: string): MountResult {
    this.#manager.set(mountPath, { filesystem, state: "error", error });
    return { success: false, mountPath, error };
  }

  /** Whether the session was created with this mount, or has refused it. */
  isPart(filesystem: WorkspaceFilesystem, mountPath: string): boolean {
    const source = sourceOf(filesystem);
    return source === undefined || this.#refused.has(mountPath) || this.#bound.get(mountPath)?.source === source;
  }

  /** Makes a symlink inside to a directory that commands see. An empty directory at the path is replaced. */
  async link(box: Sandbox, filesystem: WorkspaceFilesystem, mountPath: string): Promise<MountResult> {
    const source = sourceOf(filesystem);
    const shown = source === undefined ? undefined : await shownAt(box, source, filesystem.readOnly === true);
    if (shown === undefined) return this.#failed(filesystem, mountPath, BEFORE);
    try {
      if (this.#links.has(mountPath)) await this.#unlink(box, mountPath);
      const there = await typeAt(box, mountPath);
      if (there === "directory") await box.files.remove(mountPath); // fails unless it is empty
      else if (there) return this.#failed(filesystem, mountPath, `${mountPath} exists, and is no directory`);
      await box.files.mkdir(posix.dirname(mountPath));
      await box.files.symlink(mountPath, shown);
    } catch (error) {
      const { errno, reason } = error instanceof HoltError ? error : { errno: null, reason: String(error) };
      return this.#failed(filesystem, mountPath, errno === "ENOTEMPTY" ? `${mountPath} is not empty, and the mount would hide its files` : reason);
    }
    this.#links.set(mountPath, shown);
    const config = filesystem.getMountConfig?.();
    this.#manager.delete(mountPath);
    this.#manager.set(mountPath, { filesystem, state: "mounted", ...(config ? { config } : {}) });
    return { success: true, mountPath };
  }

  /** Removes the symlink, unless a command has put something else in its place. */
  async #unlink(box: Sandbox, mountPath: string): Promise<void> {
    try {
      const { type, target } = await box.files.stat(mountPath, { follow: false });
      if (type === "link" && target === this.#links.get(mountPath)) await box.files.remove(mountPath);
    } catch (error) {
      if (!(error instanceof MissingError)) throw error;
    }
    this.#links.delete(mountPath);
  }

  /** Removes a mount. box: the session, or undefined if it does not exist, or is made again. */
  async unmount(mountPath: string, box: Sandbox | undefined): Promise<void> {
    if (box && this.#bound.has(mountPath)) throw new MountError(UNTIL, mountPath);
    if (box && this.#links.has(mountPath)) await this.#unlink(box, mountPath);
    this.#manager.delete(mountPath);
    if (this.#made.delete(mountPath)) await rmdir(mountPath).catch(() => {}); // it may have files meanwhile
  }
}

async function typeAt(box: Sandbox, path: string): Promise<string | undefined> {
  try {
    return (await box.files.stat(path, { follow: false })).type;
  } catch (error) {
    if (error instanceof MissingError) return undefined;
    throw error;
  }
}

/** Returns where commands see a directory of the host, with the same right to write. */
async function shownAt(box: Sandbox, source: string, readOnly: boolean): Promise<string | undefined> {
  const { mounts } = await box.show();
  const above = mounts.filter((each) => each.readOnly === readOnly && isWithin(each.source, source));
  const nearest = above.sort((a, b) => b.source.length - a.source.length)[0];
  return nearest && posix.join(nearest.target, posix.relative(nearest.source, source));
}

/** Returns the directory of the host that a filesystem stands for, or undefined. */
function sourceOf(filesystem: WorkspaceFilesystem): string | undefined {
  const config = filesystem.getMountConfig?.() as (FilesystemMountConfig & { basePath?: unknown }) | undefined;
  return config?.type === "local" && typeof config.basePath === "string" ? resolve(config.basePath) : undefined;
}

/**
 * Returns why a path cannot be a mount, or undefined.
 *
 * A path of the host must be a real, empty directory. Commands may have replaced a part of the path by a symlink, so
 * the path must have none below the workspace.
 */
async function refusalOf(path: string, workspace: string | undefined): Promise<string | undefined> {
  if (!path.startsWith("/") || path === "/" || posix.normalize(path) !== path || path.endsWith("/")) return `${path} is not an absolute path in its shortest form`;
  if (path.includes(":")) return `${path} contains ":"`;
  if (SYSTEM.includes(path)) return `${path} is a directory of the system that the mount would hide`;
  const ofHost = workspace !== undefined && isWithin(workspace, path);
  if (!ofHost && !SYSTEM.some((each) => isWithin(each, path))) return undefined; // only the session could have it
  try {
    if (ofHost && (await realpath(path)) !== posix.join(await realpath(workspace), posix.relative(workspace, path))) return `${path} leads through a symlink`;
    if ((await readdir(path)).length) return `${path} is not empty, and the mount would hide its files`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") return `${path} is not a directory`;
    if (ofHost) return `${path} does not exist, and only a directory at the top of the working directory is made`;
  }
  return undefined;
}
