// SPDX-License-Identifier: Apache-2.0
/** A sandbox of holt for workspaces of Mastra. */
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { isAbsolute, resolve } from "node:path";
import {
  MastraSandbox, SandboxAbortError, validateSandboxFileMode, type CommandResult, type ExecuteCommandOptions, type InstructionsOption,
  type MountManager, type MountResult, type ProviderStatus, type SandboxCloneOptions, type SandboxFileInput, type SandboxInfo,
  type SandboxNetworking, type SandboxStartOptions, type SandboxStartResult, type WorkspaceFilesystem, type WriteFilesOptions,
} from "@mastra/core/workspace";
import { MissingError, Sandbox, findHolt } from "holt";
import { inOurWords, reworded } from "./denials.js";
import { type Detection, detect } from "./doctor.js";
import { memoryOf } from "./memory.js";
import { Mounts } from "./mounts.js";
import { type HoltSandboxOptions, isWithin, prepare, type Prepared } from "./options.js";
import { withPolicy } from "./policy.js";
import { HoltProcessManager, variables } from "./processes.js";

/** Bytes of each stream that executeCommand() keeps, unless the call says otherwise. A command can print without an end. */
const RETAINED = 8 << 20;

type RequestContext = Parameters<Exclude<InstructionsOption, string>>[0]["requestContext"];

/** Returns an argument that the shell reads as one word. */
function quoted(argument: string): string {
  return /^[\w.\-/=:@]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

/**
 * Runs the commands of an agent in a sandbox of holt on this machine. It has the options of LocalSandbox:
 *
 *     new Workspace({ sandbox: new HoltSandbox({ workingDirectory: "./project" }) })
 */
export class HoltSandbox extends MastraSandbox {
  readonly id: string;
  readonly name = "HoltSandbox";
  readonly provider = "holt";
  status: ProviderStatus = "pending";
  readonly isolation = "holt";
  declare readonly processes: HoltProcessManager;
  declare readonly mounts: MountManager;
  /** options without an effect, and likely mistakes */
  readonly warnings: string[];
  override readonly networking: SandboxNetworking = { getPortUrl: (port) => this.#portUrl(port) };

  readonly #options: HoltSandboxOptions;
  readonly #prepared: Prepared;
  readonly #mounts: Mounts;
  readonly #createdAt = new Date();
  #lastUsedAt: Date | undefined;
  #box: Sandbox | undefined;
  /** whether the session may have files or processes */
  #used = false;

  constructor(options: HoltSandboxOptions = {}) {
    const prepared = prepare(options);
    super({
      name: "HoltSandbox", processes: new HoltProcessManager({ env: variables(options.env) }), workingDirectory: prepared.workingDirectory,
      onStart: options.onStart, onStop: options.onStop, onDestroy: options.onDestroy,
    });
    this.id = options.id ?? `holt-sandbox-${randomBytes(6).toString("hex")}`;
    this.#options = options;
    this.#prepared = prepared;
    this.#mounts = new Mounts(this.mounts);
    this.warnings = [...prepared.warnings];
    for (const each of prepared.warnings) this.logger.warn(each);
  }

  /** Says whether holt works on this host, by `holt doctor`. */
  static detectIsolation(options: { holt?: string | undefined } = {}): Detection {
    return detect(options.holt);
  }

  /** The directory inside in which commands start. */
  override get workingDirectory(): string {
    return this.#prepared.workingDirectory;
  }

  // --- its life ---

  /** Creates the session, opens the existing one of this id, or starts it again. */
  override async start(options: SandboxStartOptions = {}): Promise<SandboxStartResult> {
    const signal = options.abortSignal;
    try {
      if (this.#box && (await exists(this.#box))) {
        await this.#box.start({ signal });
        return { outcome: "connected" };
      }
      await this.#forget();
      return await this.#create(signal);
    } catch (error) {
      throw inOurWords(error, this.#options.policy);
    }
  }

  async #create(signal: AbortSignal | undefined): Promise<SandboxStartResult> {
    const { session, settings, workspace, policy } = this.#prepared;
    if (workspace !== undefined) await mkdir(workspace, { recursive: true });
    const holt = this.#program();
    const found = session !== undefined && (await Sandbox.sessions({ holt, signal })).some(({ name }) => name === session);
    const readOnly = [...(settings.readOnly ?? [])];
    const readWrite = [...(settings.readWrite ?? [])];
    for (const { path, readOnly: only } of await this.#mounts.prepare(workspace)) (only ? readOnly : readWrite).push(path);
    this.#box = await withPolicy(policy, (given) => Sandbox.create({ ...settings, holt, policy: given, name: session, readOnly, readWrite, signal }));
    this.#used = found;
    for (const each of this.#box.warnings) this.warn(reworded(each));
    await this.#box.start({ signal });
    return { outcome: found ? "connected" : "created" };
  }

  /** Returns the path of holt. It is not searched where commands can write. */
  #program(): string {
    const { settings, workspace } = this.#prepared;
    return findHolt(settings.holt, [...(workspace === undefined ? [] : [workspace]), ...(settings.readWrite ?? [])]);
  }

  /** Ends all processes. Files stay, and the next command starts the sandbox again. */
  override async stop(): Promise<void> {
    if (this.status !== "stopping") return this._stop(); // which calls this method, and keeps the status
    await this.#box?.stop();
  }

  /** The base class does nothing for a sandbox that was not started, but an earlier program may have made its session. */
  override async _destroy(): Promise<void> {
    if (this.status === "pending" && this.#prepared.session !== undefined && !this._startPromise) this.status = "stopped";
    return super._destroy();
  }

  /**
   * Removes the session with all its files, even if an earlier program has made it. The files of workingDirectory and of
   * mounts stay.
   */
  override async destroy(): Promise<void> {
    if (this.status !== "destroying") return this._destroy();
    try {
      await this.#remove();
    } finally {
      await this.#forget();
      await this.#mounts.clean();
      this.mounts.clear();
    }
  }

  /** Removes a session that lasts. A throwaway one ends with #forget(). */
  async #remove(): Promise<void> {
    const { session } = this.#prepared;
    if (session === undefined) return;
    try {
      const box = this.#box ?? (await Sandbox.open(session, { holt: this.#program() }));
      await box.remove().finally(() => (box === this.#box ? undefined : box.close()));
    } catch (error) {
      if (!(error instanceof MissingError)) throw inOurWords(error, this.#options.policy);
    }
  }

  async #forget(): Promise<void> {
    const box = this.#box;
    this.#box = undefined;
    await box?.close();
  }

  /** @deprecated Use `status === "running"`. */
  async isReady(): Promise<boolean> {
    return this.status === "running";
  }

  /** The sandbox of the package holt, with Python, history, audit, keys and more; undefined before the first start. */
  get box(): Sandbox | undefined {
    this.#used ||= this.#box !== undefined;
    return this.#box;
  }

  /** @internal Whether the next program with this id finds the processes. */
  get lasting(): boolean {
    return this.#prepared.session !== undefined;
  }

  /** Calls a function with the started sandbox. If the session was removed from outside, makes it again. */
  async withBox<T>(act: (box: Sandbox) => Promise<T>): Promise<T> {
    this.#lastUsedAt = new Date();
    const box = await this.#running();
    this.#used = true; // after the start, which sets it to false for a new session
    try {
      return await act(box);
    } catch (error) {
      if (!(error instanceof MissingError) || (await exists(box))) throw error;
    }
    if (this.status === "running") this.status = "stopped";
    const made = await this.#running();
    this.#used = true;
    return act(made);
  }

  async #running(): Promise<Sandbox> {
    await this.ensureRunning();
    if (!this.#box) throw new Error(`Sandbox '${this.id}' is ${this.status}`);
    return this.#box;
  }

  // --- commands ---

  /**
   * Runs a line of bash to its end, with empty input. Arguments are quoted. A command that fails throws nothing. If holt
   * has refused something, the last line of stderr says what, and which option allows it. The result has the last 8 MiB of
   * each stream, unless maxRetainedBytes sets another number.
   */
  override async executeCommand(command: string, args?: string[], options: ExecuteCommandOptions = {}): Promise<CommandResult> {
    const line = [command, ...(args ?? []).map(quoted)].join(" ");
    const handle = await this.processes.spawn(line, {
      ...options, timeout: options.timeout ?? this.#options.timeout, maxRetainedBytes: options.maxRetainedBytes ?? RETAINED, stdinMode: "ignore",
    });
    try {
      return { ...(await handle.wait()), command: line };
    } finally {
      this.processes.release(handle.pid);
    }
  }

  /** Returns a path of a call as holt expects it: absolute, or relative to the workspace. */
  inside(path: string | undefined): string | undefined {
    const { workspace, workingDirectory } = this.#prepared;
    if (!path) return workingDirectory;
    if (isAbsolute(path)) return path;
    const onHost = resolve(path); // LocalSandbox accepts this, too
    return workspace !== undefined && workspace === workingDirectory && isWithin(workspace, onHost) ? onHost : resolve(workingDirectory, path);
  }

  /** Allows hosts from now on: "net:example.org:443". The sandbox must have been created with net. */
  async allow(...grants: string[]): Promise<void> {
    await this.withBox((box) => box.allow(...grants));
  }

  /** Writes files, and makes their directories. Relative paths start at the working directory. */
  override async writeFiles(files: SandboxFileInput[], options: WriteFilesOptions = {}): Promise<void> {
    const signal = options.abortSignal;
    for (const { mode } of files) if (mode !== undefined) validateSandboxFileMode(mode);
    try {
      for (const { path, content, mode } of files) {
        signal?.throwIfAborted();
        await this.withBox((box) => box.files.write(resolve(this.workingDirectory, path), content, { mode, signal }));
      }
    } catch (error) {
      if (signal?.aborted) throw new SandboxAbortError("writeFiles", signal.reason);
      throw error;
    }
  }

  /** Returns the URL by which programs of this host reach a port inside; null if the sandbox does not run. */
  async #portUrl(port: number): Promise<string | null> {
    if (this.status !== "running" || !this.#box) return null;
    return `http://${await this.#box.forward(port)}`;
  }

  // --- mounts ---

  /**
   * Mounts a LocalFilesystem. holt fixes the mounts of a session when it creates it. So a session that nothing has used
   * is made again. In one that is in use, a directory that commands see already becomes a symlink at the mount path, and
   * another one is an error.
   */
  override async mount(filesystem: WorkspaceFilesystem, mountPath: string): Promise<MountResult> {
    if (!this.#box || this.#mounts.isPart(filesystem, mountPath)) return this.#mounts.mount(filesystem, mountPath, this.#box !== undefined);
    if (this.#used) return this.#mounts.link(this.#box, filesystem, mountPath);
    this.mounts.delete(mountPath);
    this.mounts.add({ [mountPath]: filesystem });
    await this.#remake();
    return this.#mounts.mount(filesystem, mountPath, true);
  }

  /** Removes a mount, with its mount point. Once commands have run, only those that were made later can be removed. */
  override async unmount(mountPath: string): Promise<void> {
    const remake = this.#box !== undefined && !this.#used && this.#mounts.paths.includes(mountPath);
    await this.#mounts.unmount(mountPath, remake ? undefined : this.#box);
    if (remake) await this.#remake();
  }

  /** Makes the session again with other mounts. Nothing has used it, so nothing is lost. */
  async #remake(): Promise<void> {
    try {
      await this.#remove();
      await this.#forget();
      await this.#create(undefined);
    } catch (error) {
      this.status = "error";
      throw inOurWords(error, this.#options.policy);
    }
  }

  // --- description ---

  /** Describes the sandbox for a model. */
  override getInstructions(options?: { requestContext?: RequestContext }): string {
    const { instructions } = this.#options;
    if (typeof instructions === "string") return instructions;
    const defaultInstructions = this.#defaultInstructions();
    return instructions ? instructions({ defaultInstructions, requestContext: options?.requestContext }) : defaultInstructions;
  }

  #defaultInstructions(): string {
    const { net, routes, readOnly, readWrite } = this.#prepared.settings;
    const mode = this.#prepared.policy.network?.mode;
    const hosts = net?.length ? `only these hosts: ${net.join(", ")}` : mode === "host" ? "all hosts" : "no hosts, unless a policy allows some";
    const shown = [...(readOnly ?? []), ...(readWrite ?? []), ...this.#mounts.paths].map((path) => path.split(":").at(-1));
    const names = (routes ?? []).map((each) => (typeof each === "string" ? each : each.name));
    return [
      `Commands run with bash in a sandbox, as an ordinary user. Working directory: "${this.workingDirectory}".`,
      `They see the system's programs, ${["the working directory", ...shown].join(", ")}, and no other files of the host.`,
      `Commands can reach ${hosts}.`,
      ...(names.length ? [`Services with a key of the host: ${names.join(", ")}; environment variables have their URLs and tokens.`] : []),
      'A last line "[holt: ...]" says what the sandbox has refused. The same command will be refused again.',
    ].join(" ");
  }

  /** Describes the sandbox, and the memory that its processes use. */
  override async getInfo(): Promise<SandboxInfo> {
    const box = this.#box;
    const session = box && this.status !== "destroyed" ? await box.show().catch(() => undefined) : undefined;
    const memory = session?.limits.memoryPerProcessBytes ?? totalmem();
    return {
      id: this.id,
      name: this.name,
      provider: this.provider,
      status: this.status,
      createdAt: session ? new Date(session.createdMs) : this.#createdAt,
      lastUsedAt: this.#lastUsedAt,
      mounts: [...this.mounts.entries].map(([path, { filesystem }]) => ({ path, filesystem: filesystem.provider })),
      resources: {
        memoryMB: Math.round(memory / 2 ** 20),
        memoryUsedMB: Math.round(((await memoryOf(session?.keeperPid)) / 2 ** 20) * 10) / 10,
        cpuCores: session?.cpus ?? cpus().length,
      },
      metadata: {
        workingDirectory: this.workingDirectory, isolation: this.isolation, session: box?.name ?? this.#prepared.session,
        network: session?.network.mode, layers: session?.layers, warnings: [...this.warnings],
      },
    };
  }

  /** Returns a sandbox with the same options, except for those that are passed. It gets its own session. */
  clone(options: SandboxCloneOptions = {}): HoltSandbox {
    const { sandboxId, env, workingDirectory, idleTimeoutMinutes } = options;
    return new HoltSandbox({
      ...this.#options, id: sandboxId ?? options.id, ...(env ? { env } : {}), ...(workingDirectory === undefined ? {} : { workingDirectory }),
      ...(idleTimeoutMinutes === undefined ? {} : { idle: `${idleTimeoutMinutes}m` }),
    });
  }

  /** @internal */
  warn(text: string, error?: unknown): void {
    this.warnings.push(text);
    this.logger.warn(text, { sandbox: this.id, error });
  }
}

/** Whether the session of a sandbox exists. */
async function exists(box: Sandbox): Promise<boolean> {
  try {
    await box.show();
    return true;
  } catch (error) {
    if (error instanceof MissingError) return false;
    throw error;
  }
}
