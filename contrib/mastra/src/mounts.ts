// SPDX-License-Identifier: Apache-2.0
/**
 * Mounts of filesystems in a sandbox.
 *
 * A session's mounts are fixed when it is created. So the mounts that are known before the first start become part of
 * the session: start() reads them before it creates the session, and the mount manager asks for them afterwards.
 */
import { mkdir, readdir, realpath, rmdir } from "node:fs/promises";
import { posix, resolve } from "node:path";
import { MountError, type FilesystemMountConfig, type MountManager, type MountResult, type WorkspaceFilesystem } from "@mastra/core/workspace";
import { isWithin } from "./options.js";

/** Directories of the system that a mount must not hide. */
const SYSTEM = ["/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/tmp", "/var"];

const FIXED = "the mounts of a sandbox of holt are fixed when it is created; mount before the first command, or destroy the sandbox";

interface Bound {
  source: string;
  readOnly: boolean;
}

export class Mounts {
  readonly #manager: MountManager;
  readonly #bound = new Map<string, Bound>();
  readonly #refused = new Map<string, string>();
  readonly #made = new Set<string>();

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
    if (started && bound?.source !== source) return this.#failed(filesystem, mountPath, FIXED);
    const config = filesystem.getMountConfig?.();
    this.#manager.set(mountPath, { filesystem, state: started ? "mounted" : "pending", ...(config ? { config } : {}) });
    return { success: true, mountPath };
  }

  #failed(filesystem: WorkspaceFilesystem, mountPath: string, error: string): MountResult {
    this.#manager.set(mountPath, { filesystem, state: "error", error });
    return { success: false, mountPath, error };
  }

  unmount(mountPath: string, started: boolean): void {
    if (started && this.#bound.has(mountPath)) throw new MountError(FIXED, mountPath);
    this.#manager.delete(mountPath);
  }
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
