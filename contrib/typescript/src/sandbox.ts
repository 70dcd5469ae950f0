// SPDX-License-Identifier: Apache-2.0
/** A sandbox, which is a new or an existing session of holt. */
import { randomBytes } from "node:crypto";
import type { Json } from "./connection.js";
import { ExistsError, HoltError, PolicyError, UsageError } from "./errors.js";
import { Files } from "./files.js";
import { hintBeside, hintForTypescript } from "./hints.js";
import { Interpreter } from "./interpreter.js";
import { Kv } from "./kv.js";
import { Lease, removeSession, removeThrowaway } from "./lease.js";
import type { AuditListParams, AuditRow, HistoryRow, Session, SessionEntry } from "./protocol.js";
import { didYouMean } from "./nearest.js";
import { type OnAsk, Questions } from "./questions.js";
import { Routes } from "./routes.js";
import { type CallOptions, Server } from "./server.js";
import { type Settings, paramsOf, writableOf } from "./settings.js";
import { abortable } from "./signals.js";
import { Shell } from "./shell.js";
import { type Tool, Tools } from "./tools.js";

export interface SandboxOptions extends Settings, CallOptions {
  /**
   * name of a lasting session, which is opened or created. Without a name, the session is a throwaway one: close()
   * removes it, and so does the end of this program.
   */
  name?: string | undefined;
  /** functions that code inside may call */
  tools?: readonly Tool[] | undefined;
  /**
   * is asked about each host that no rule allows, while the connection waits. Returns "once", "session" or "no".
   */
  onAsk?: OnAsk | undefined;
  /** false: open only a session that exists; without one, throw MissingError */
  create?: boolean | undefined;
  /** path of the program; default: $HOLT, or holt in the PATH */
  holt?: string | undefined;
  /** a Server to share with other sandboxes */
  server?: Server | undefined;
}

interface Made {
  server: Server;
  name: string;
  options: SandboxOptions;
}

const OPTIONS = new Set([
  "name", "tools", "onAsk", "create", "holt", "server", "signal", "policy", "workspace", "timeout", "memory", "idle", "tier", "env", "readOnly",
  "readWrite", "net", "routes", "helpers", "allowDegraded",
]);

/** Names that users of other tools try. */
const OTHER_NAMES: Readonly<Record<string, string>> = { ro: "readOnly", rw: "readWrite", network: "net", allow: "net", cwd: "workspace" };

function checkOptions(options: SandboxOptions): void {
  for (const name of Object.keys(options)) {
    if (OPTIONS.has(name)) continue;
    const other = Object.hasOwn(OTHER_NAMES, name) ? `; did you mean ${OTHER_NAMES[name]}?` : didYouMean(name, OPTIONS);
    throw new UsageError(`Sandbox.create() has no option ${JSON.stringify(name)}${other}`, {
      hint: "Fields of a policy without an option belong to policy: { ... }; see holt-policy(5).",
    });
  }
  if (options.onAsk !== undefined && typeof options.onAsk !== "function") throw new UsageError("onAsk must be a function");
  if (options.create === false && options.name === undefined)
    throw new UsageError("create: false needs the name of a session", { hint: 'Write Sandbox.open("NAME").' });
}

/**
 * A throwaway sandbox, or a lasting one with a name.
 *
 *     await using box = await Sandbox.create();
 *     console.log((await box.bash("echo $((6 * 7))")).check().stdout);
 */
export class Sandbox extends Interpreter {
  /** name of the session */
  readonly name: string;
  /** whether close() removes the session */
  readonly throwaway: boolean;
  readonly files: Files;
  readonly kv: Kv;
  readonly routes: Routes;
  readonly shell: Shell;
  /** likely mistakes, such as a path to hide that does not exist; empty if the session existed before */
  warnings: readonly string[] = [];

  readonly #options: SandboxOptions;
  readonly #lease = new Lease();
  readonly #tools = new Set<string>();
  #creating: Promise<Json> | undefined;
  #closing: Promise<void> | undefined;

  private constructor({ server, name, options }: Made) {
    super(server, name);
    this.name = name;
    this.throwaway = options.name === undefined;
    this.#options = options;
    this.files = new Files(server, name);
    this.kv = new Kv(server, name);
    this.routes = new Routes(server, name);
    this.shell = new Shell(server, name);
  }

  /**
   * Creates a session, or opens an existing one by its name.
   *
   * An existing session keeps the settings that it was created with. If you pass a setting with another value, an
   * ExistsError names the difference. Settings that you do not pass may have any value.
   */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    checkOptions(options);
    options.signal?.throwIfAborted();
    const name = options.name ?? `js-${process.pid}-${randomBytes(6).toString("hex")}`;
    const box = new Sandbox({ server: options.server ?? new Server({ holt: options.holt, writable: writableOf(options) }), name, options });
    try {
      await box.#open();
    } catch (error) {
      await box.close().catch(() => {});
      throw error;
    }
    return box;
  }

  /** Opens a session that exists. Throws MissingError if it does not. */
  static async open(name: string, options: Omit<SandboxOptions, "name" | "create"> = {}): Promise<Sandbox> {
    return Sandbox.create({ ...options, name, create: false });
  }

  /** Lists all sessions, including throwaway ones. */
  static async sessions(options: CallOptions & { holt?: string | undefined; server?: Server | undefined } = {}): Promise<SessionEntry[]> {
    const server = options.server ?? new Server({ holt: options.holt });
    try {
      return (await server.call("session.list", {}, { signal: options.signal })).sessions;
    } finally {
      if (server !== options.server) await server.close();
    }
  }

  async #open(): Promise<void> {
    const { signal, tools, onAsk, create } = this.#options;
    if (create === false) await this.ask("session.show", {}, { signal });
    await this.#create();
    if (this.throwaway) {
      // The connection keeps the started session in use, so that its interpreter and its variables stay.
      await this.ask("session.start", {}, { signal });
      this.#lease.hold((await this.show({ signal })).directory);
    }
    for (const each of tools ?? []) await this.addTool(each, { signal });
    if (onAsk) await Questions.of(this.server).attend(this.name, onAsk, signal);
  }

  async #create(): Promise<void> {
    const { signal, onAsk, policy } = this.#options;
    const params = { ...paramsOf(this.#options, onAsk !== undefined), name: this.name, [this.throwaway ? "owned" : "find"]: true };
    try {
      this.#creating = this.server.ask("session.create", params);
      const answer = await abortable(this.#creating, signal);
      this.warnings = Array.isArray(answer.warnings) ? answer.warnings.map((each) => hintForTypescript(String(each)) ?? "") : [];
    } catch (error) {
      if (!(error instanceof PolicyError || error instanceof UsageError || error instanceof ExistsError)) throw error;
      throw reworded(error, policy, onAsk !== undefined);
    }
  }

  /** @internal */
  protected override beforeCommand(): void {
    if (this.#options.onAsk) Questions.of(this.server).again(this.name);
  }

  // --- tools ---

  /** Offers a function to code inside. */
  async addTool(tool: Tool, options: CallOptions = {}): Promise<void> {
    await Tools.of(this.server).register(this.name, tool, options.signal);
    this.#tools.add(tool.name);
  }

  /** Removes a tool of this sandbox. */
  async removeTool(name: string, options: CallOptions = {}): Promise<void> {
    await Tools.of(this.server).unregister(this.name, name, options.signal);
    this.#tools.delete(name);
  }

  // --- history and audit ---

  /** Returns commands, runs of code, file calls and calls of tools, the newest first. name: only calls of this method,
   * such as "python.run". limit: maximum number of rows; default 100. */
  async history(options: CallOptions & { limit?: number | undefined; name?: string | undefined } = {}): Promise<HistoryRow[]> {
    const { signal, limit = 100, name } = options;
    return rowsOf(limit, (page) => this.request("history.list", { ...page, name }, { signal }));
  }

  /** Returns events such as denials, kills, grants, connections and requests of routes, the newest first. kind: only
   * events of this kind. limit: maximum number of rows; default 100. */
  async audit(options: CallOptions & { limit?: number | undefined; kind?: AuditListParams["kind"] | undefined } = {}): Promise<AuditRow[]> {
    const { signal, limit = 100, kind } = options;
    return rowsOf(limit, (page) => this.request("audit.list", { ...page, kind }, { signal }));
  }

  // --- its life ---

  /** Describes the session: its state, mounts, limits and layers. */
  async show(options: CallOptions = {}): Promise<Session> {
    return this.request("session.show", {}, options);
  }

  /** Starts the session, if it is at rest. Each command does so, too. */
  async start(options: CallOptions = {}): Promise<void> {
    await this.ask("session.start", {}, options);
  }

  /** Ends all processes of the session. The session keeps its files, keys and history, and its next use starts it again. */
  async stop(options: CallOptions = {}): Promise<void> {
    await this.server.stop(this.name, options);
  }

  /** Removes the session with all its files, even if the session has a name. */
  async remove(options: CallOptions = {}): Promise<void> {
    await removeSession(this.server, this.name, options.signal);
  }

  /** Whether close() was called. */
  get closed(): boolean {
    return this.#closing !== undefined;
  }

  /** Removes a throwaway session. A lasting session keeps running. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      if (this.#options.onAsk) Questions.of(this.server).drop(this.name);
      await this.#creating?.catch(() => {}); // if the caller has given it up
      if (this.throwaway) await removeThrowaway(this.server, this.name);
      else Tools.of(this.server).drop(this.name, this.#tools);
    } finally {
      this.#lease.end();
      if (!this.#options.server) await this.server.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Returns all pages of rows, up to a limit. */
async function rowsOf<R>(limit: number, ask: (page: { before?: number | undefined; limit: number }) => Promise<{ rows: R[]; next: number | null }>): Promise<R[]> {
  const rows: R[] = [];
  for (let before: number | undefined; rows.length < limit; ) {
    const page = await ask({ before, limit: Math.min(1000, limit - rows.length) });
    rows.push(...page.rows);
    if (page.next === null) break;
    before = page.next;
  }
  return rows;
}

/** Returns an error of session.create with the words of this package. */
function reworded(error: HoltError, policy: unknown, asks: boolean): HoltError {
  const reason = error.reason.replace(/^policy_name: /, "policy: ").replace(asks ? " network.ask (" : "\0", " network.ask, which onAsk sets (");
  const { kind, errno, code, data } = error;
  const made = error.constructor as typeof HoltError;
  return new made(reason, { kind, errno, code, data, hint: hintBeside(error.hint, policy), cause: error });
}
