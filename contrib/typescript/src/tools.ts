// SPDX-License-Identifier: Apache-2.0
/**
 * Functions of this program that code inside may call.
 *
 * Theory of operation. tools.register registers a tool with a session; the tool belongs to our connection. A call is a
 * request of the server (tool.call), whose payload the session's process has checked by the JSON Schema. A schema with
 * code, such as one of zod, then checks it again and converts it. tool.cancel aborts the signal of a call whose caller
 * has gone, and a later reply is dropped. Calls are identified by session and id, because each session counts its own.
 *
 * A function that ignores its signal outlives its call. Code inside could make calls and hang up again and again, so each
 * session may have only RUNNING_MAX functions that run.
 */
import type { Json } from "./connection.js";
import { ToolError, UsageError, reasonOf } from "./errors.js";
import type { Server } from "./server.js";
import { type Time, timeoutOf } from "./times.js";

/** Maximum number of functions that run at once for one session. holt sends at most as many calls that wait for a reply. */
const RUNNING_MAX = 256;

/** A JSON Schema (2020-12 or older) of an object. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A schema with code, as zod, valibot and ArkType have it (standardschema.dev). */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardOutcome<Output> | Promise<StandardOutcome<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type StandardOutcome<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<{ readonly message: string; readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined }> };

/** The payload that a tool gets: the output of its schema, or any object for a JSON Schema. */
export type PayloadOf<S> = 0 extends 1 & S ? any : S extends StandardSchema<unknown, infer Output> ? Output : Record<string, any>;

/** The second argument of a tool's function. */
export interface ToolContext {
  /** is aborted when the caller has gone, or the time limit of the call has passed */
  readonly signal: AbortSignal;
  /** name of the session */
  readonly session: string;
  /** id of the process that calls the tool, such as "p1" */
  readonly exec: string;
}

export interface Tool<S = any> {
  /** name by which code inside calls the tool */
  readonly name: string;
  /** a text for the model or program that calls it */
  readonly description: string;
  /** JSON Schema of the payload, or a schema of zod 4.2 or later, valibot and others */
  readonly inputSchema: S;
  /** JSON Schema of the result */
  readonly outputSchema?: JsonSchema | StandardSchema | undefined;
  /** time limit of a call; default 30 s */
  readonly timeout?: Time | undefined;
  /** Returns a JSON value, or a promise of one. Throw a ToolError to choose the type of an error. */
  execute(payload: PayloadOf<S>, context: ToolContext): unknown;
}

/** Returns the tool, and infers the type of its payload from its schema. */
export function tool<const S extends JsonSchema | StandardSchema>(definition: Tool<S>): Tool<S> {
  return definition;
}

function isStandard(schema: unknown): schema is StandardSchema {
  return (typeof schema === "object" || typeof schema === "function") && schema !== null && "~standard" in schema;
}

type Converter = { input?: (options: { target: string }) => unknown; output?: (options: { target: string }) => unknown };

/** Returns the JSON Schema of a schema with code. zod has it in a method of its own, others in "~standard". */
function convert(schema: StandardSchema, io: "input" | "output", what: string): unknown {
  const standard = schema["~standard"] as StandardSchema["~standard"] & { jsonSchema?: Converter };
  const made = standard.jsonSchema?.[io]?.({ target: "draft-2020-12" });
  if (made) return made;
  const own = schema as { toJSONSchema?: (options: { io: string }) => unknown };
  if (typeof own.toJSONSchema === "function") return own.toJSONSchema({ io });
  throw new UsageError(`${what} is a schema of ${standard.vendor} that has no JSON Schema`, {
    hint: "Use zod 4.2 or later, or pass a JSON Schema: for zod 4.0, z.toJSONSchema(schema).",
  });
}

function jsonSchemaOf(schema: unknown, io: "input" | "output", what: string): Json {
  const made = isStandard(schema) ? convert(schema, io, what) : schema;
  if (typeof made !== "object" || made === null || Array.isArray(made))
    throw new UsageError(`${what} must be a JSON Schema or a schema of zod, not ${JSON.stringify(made)}`);
  return { ...made };
}

/** Checks a payload by a schema with code, and returns its output. Throws ToolError. */
async function parsed(schema: unknown, payload: unknown): Promise<unknown> {
  if (!isStandard(schema)) return payload;
  const outcome = await schema["~standard"].validate(payload);
  if (!outcome.issues) return outcome.value;
  const lines = outcome.issues.map(({ message, path }) => {
    const at = (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return at ? `${at}: ${message}` : message;
  });
  throw new ToolError(lines.join("; "), "validation_error");
}

function errorOf(error: unknown): Json {
  const type = error instanceof ToolError ? error.type : "internal_error";
  return { error: { code: -32000, message: reasonOf(error).replaceAll("\0", "\uFFFD").toWellFormed(), data: { type } } };
}

function keyOf(session: unknown, name: unknown): string {
  return `${session}\n${name}`;
}

const known = new WeakMap<Server, Tools>();

/** @internal The tools that one server has registered, for all its sessions. */
export class Tools {
  readonly #server: Server;
  readonly #tools = new Map<string, Tool>();
  readonly #running = new Map<string, AbortController>();
  readonly #unfinished = new Map<string, Set<AbortController>>(); // by session, with calls whose callers have gone

  private constructor(server: Server) {
    this.#server = server;
    server.onRequests("tool.call", (params, answer) => void this.#call(params, answer));
    server.onCancel(({ session, call }) => this.#running.get(keyOf(session, call))?.abort());
    server.onGone(() => {
      for (const calls of this.#unfinished.values()) for (const each of calls) each.abort();
    });
  }

  static of(server: Server): Tools {
    let tools = known.get(server);
    if (!tools) known.set(server, (tools = new Tools(server)));
    return tools;
  }

  async register(session: string, tool: Tool, signal?: AbortSignal): Promise<void> {
    if (typeof tool?.execute !== "function") throw new UsageError("a tool needs a function execute(payload, context)");
    const params: Json = {
      session, name: tool.name, description: tool.description ?? "",
      input_schema: jsonSchemaOf(tool.inputSchema, "input", `inputSchema of the tool ${tool.name}`),
    };
    if (tool.outputSchema) params.output_schema = jsonSchemaOf(tool.outputSchema, "output", `outputSchema of the tool ${tool.name}`);
    if (tool.timeout !== undefined) params.timeout_ms = timeoutOf(tool.timeout);
    const key = keyOf(session, tool.name);
    const before = this.#tools.get(key);
    this.#tools.set(key, tool); // a call may come before the reply
    try {
      await this.#server.ask("tools.register", params, { signal });
    } catch (error) {
      if (before) this.#tools.set(key, before);
      else this.#tools.delete(key);
      throw error;
    }
    this.#server.repeat(session, "tools.register", tool.name, params);
  }

  async unregister(session: string, name: string, signal?: AbortSignal): Promise<void> {
    await this.#server.ask("tools.unregister", { session, name }, { signal });
    this.#forget(session, name);
  }

  #forget(session: string, name: string): void {
    this.#tools.delete(keyOf(session, name));
    this.#server.repeat(session, "tools.register", name, undefined);
  }

  /** Forgets tools of a session that ends for this program. */
  drop(session: string, names: Iterable<string>): void {
    for (const name of names) {
      this.#server.tell("tools.unregister", { session, name });
      this.#forget(session, name);
    }
  }

  /** Counts a call until its function ends. Returns the function to call then, or undefined for one call too many. */
  #begin(session: string, key: string, controller: AbortController): (() => void) | undefined {
    const calls = this.#unfinished.get(session) ?? new Set();
    if (calls.size >= RUNNING_MAX) return undefined;
    this.#unfinished.set(session, calls.add(controller));
    this.#running.set(key, controller);
    const release = this.#server.hold();
    return () => {
      release();
      if (calls.delete(controller) && !calls.size) this.#unfinished.delete(session);
      if (this.#running.get(key) === controller) this.#running.delete(key);
    };
  }

  async #call(params: Json, answer: (message: Json) => void): Promise<void> {
    const { session, name, payload, call, exec } = params;
    const tool = this.#tools.get(keyOf(session, name));
    const controller = new AbortController();
    const end = this.#begin(String(session), keyOf(session, call), controller);
    if (!end) return answer(errorOf(new Error(`${RUNNING_MAX} calls of tools run already, some of which have lost their callers`)));
    let message: Json;
    try {
      if (!tool) throw new Error(`this client has no tool ${JSON.stringify(name)}`);
      const context = { signal: controller.signal, session: String(session), exec: String(exec) };
      const value = await tool.execute((await parsed(tool.inputSchema, payload)) as Record<string, unknown>, context);
      message = { result: { value: value === undefined ? null : value } };
    } catch (error) {
      message = errorOf(error);
    } finally {
      end();
    }
    if (!controller.signal.aborted) answer(message);
  }
}
