// SPDX-License-Identifier: Apache-2.0
/** Results of commands and code. They have the members of the Python package's results, in camelCase. */
import { CommandFailed, onOneLine, printable } from "./errors.js";
import { callOf, optionFor, optionOf } from "./hints.js";
import { fromWire } from "./names.js";
import type * as wire from "./protocol.js";

/** How a command ended. */
export type Cause = wire.Result["cause"];

/** Used resources: times in microseconds, memory in bytes; null if unknown. */
export type Usage = wire.Usage;

/** A host that is allowed but was not reached. */
export type Unreached = wire.Unreached;

/** An access that the policy has refused. */
export interface Denial extends wire.Denial {
  /** the call or option of Sandbox.create() that allows the access, or the reason why none does */
  readonly hint: string;
}

/** A limit of the sandbox that a command or code has reached. */
export interface LimitHit extends wire.LimitHit {
  /** the option of Sandbox.create() that raises the limit, or the reason why none does */
  readonly hint: string;
}

/** Maximum number of refusals in a hint. */
const HINTS = 5;

/** Maximum characters of a text that console.log() of a result shows. */
const PREVIEW = 200;

function hintOfDenial(denial: wire.Denial): string {
  if (denial.call) return `${callOf(denial.call)} allows it`;
  if (!denial.policy) return denial.whyNot ?? "no option allows it";
  return `${optionOf(denial.policy)} ${denial.answer ? "allows it" : "may help"}`;
}

function hintOfLimit(hit: wire.LimitHit): string {
  return hit.field ? `${optionFor(hit.field)} raises it` : (hit.whyNot ?? "no option raises it");
}

type Json = Record<string, unknown>;

/** Returns a list of a reply with the names of this package. */
function list<T>(value: unknown): T[] {
  return Array.isArray(value) && value.length ? (fromWire(value) as T[]) : [];
}

/** The end of a command or of code. */
export abstract class Outcome {
  readonly id: string;
  /** "exited", "signaled", "timeout", "killed", "oom", "output_limit" or "lost" */
  readonly cause: Cause;
  /** the command's own exit code; 128 + n after signal n, 124 after a timeout */
  readonly exitCode: number;
  /** whether the time limit came from the project's .holt.json; an option can only lower it */
  readonly timeoutByProject: boolean;
  /** bytes of output beyond the limit */
  readonly stdoutDropped: number;
  readonly stderrDropped: number;
  readonly usage: Usage;
  /** accesses that the policy has refused */
  readonly denials: readonly Denial[];
  /** allowed hosts that were not reached while the command ran */
  readonly unreached: readonly Unreached[];
  /** number of refused or failed connections that are neither in denials nor in unreached */
  readonly denialsOmitted: number;
  /** whether the process that carries the session's connections has ended; stop() starts it again at the next call */
  readonly networkLost: boolean;
  /** whether the process that carries requests of routes has ended; stop() starts it again at the next call */
  readonly routesLost: boolean;
  /** whether a failed command did not reach a host, and the sandbox has no network, or only rules for one */
  readonly networkMissed: boolean;
  /** limits of the sandbox that the command reached, if it failed */
  readonly limitsHit: readonly LimitHit[];
  /** why the call is not in the session's history yet, for example because the disk is full; "" if it is */
  readonly unrecorded: string;
  /** new names of files that holt has set aside at protected paths */
  readonly setAside: readonly string[];
  /** files of the host that were set aside earlier and still have their new names */
  readonly stillAside: readonly string[];
  /** why a file at a protected path could not be set aside; "" if there is no such file */
  readonly unguarded: string;
  /** path of the protected or hidden file that the host replaced, if holt stopped the sandbox because of it */
  readonly replaced: string;
  /** path of such a file, if holt stopped the session between the previous call and this one */
  readonly stoppedFor: string;

  readonly #output: { stdout: string; stderr: string };

  protected constructor(answer: Json) {
    const text = (name: string): string => (typeof answer[name] === "string" ? answer[name] : "");
    const count = (name: string): number => (typeof answer[name] === "number" ? answer[name] : 0);
    this.id = text("id");
    this.cause = text("cause") as Cause;
    this.exitCode = count("exit_code");
    this.timeoutByProject = answer.timeout_by_project === true;
    this.stdoutDropped = count("stdout_dropped");
    this.stderrDropped = count("stderr_dropped");
    this.usage = fromWire(answer.usage ?? {}) as Usage;
    this.denials = list<wire.Denial>(answer.denials).map((each) => ({ ...each, hint: hintOfDenial(each) }));
    this.unreached = list(answer.unreached);
    this.denialsOmitted = count("denials_omitted");
    this.networkLost = answer.network_lost === true;
    this.routesLost = answer.routes_lost === true;
    this.networkMissed = answer.network_missed === true;
    this.limitsHit = list<wire.LimitHit>(answer.limits_hit).map((each) => ({ ...each, hint: hintOfLimit(each) }));
    this.unrecorded = text("unrecorded");
    this.setAside = list(answer.set_aside);
    this.stillAside = list(answer.still_aside);
    this.unguarded = text("unguarded");
    this.replaced = text("replaced");
    this.stoppedFor = text("stopped_for");
    this.#output = { stdout: text("stdout"), stderr: text("stderr") };
  }

  get stdoutBytes(): Buffer {
    return Buffer.from(this.#output.stdout, "base64");
  }

  get stderrBytes(): Buffer {
    return Buffer.from(this.#output.stderr, "base64");
  }

  /** The output as UTF-8. Invalid bytes become U+FFFD. */
  get stdout(): string {
    return this.stdoutBytes.toString("utf8");
  }

  /** The output of errors as UTF-8. Invalid bytes become U+FFFD. */
  get stderr(): string {
    return this.stderrBytes.toString("utf8");
  }

  /** Whether the command ended by itself with exit code 0. */
  get ok(): boolean {
    return this.cause === "exited" && this.exitCode === 0;
  }

  /** Returns this result if ok is true. Otherwise throws CommandFailed. */
  check(): this {
    if (!this.ok) throw new CommandFailed(this);
    return this;
  }

  /**
   * Refusals, limits that were reached, and the options of Sandbox.create() that help, one per line. null after a success,
   * or if there is nothing to say. Show it to a model: it says why a second attempt would fail in the same way.
   */
  get hint(): string | null {
    if (this.ok) return null;
    const lines: string[] = [];
    if (this.cause === "timeout" && this.timeoutByProject)
      lines.push("the project's .holt.json limits the time of a command; change limits.timeout there");
    for (const each of this.denials.slice(0, HINTS)) lines.push(onOneLine(`refused ${each.path ?? each.what}: ${each.reason}; ${each.hint}`));
    for (const each of this.unreached.slice(0, HINTS)) lines.push(onOneLine(`could not reach ${each.what}: ${each.reason ?? each.answer}`));
    if (this.networkMissed)
      lines.push('the sandbox reaches only hosts that Sandbox.create({ net: [...] }) allows, for example net: ["@python"]');
    if (this.networkLost) lines.push("the session has lost its network; stop() starts it again at the next call");
    if (this.routesLost) lines.push("the session has lost its routes; stop() starts them again at the next call");
    for (const hit of this.limitsHit) lines.push(`${hit.certain ? "" : "probably, "}${hit.reason}; ${hit.hint}`);
    return lines.join("\n") || null;
  }

  /** How it ended, and the end of its errors, in one text. Control characters are written as "\x1b". */
  get summary(): string {
    const after = this.cause === "timeout" && this.usage.wallUs ? ` after ${Number((this.usage.wallUs / 1e6).toPrecision(3))} s` : "";
    const how = this.cause === "exited" ? `exit code ${this.exitCode}` : `${this.cause}${after}, exit code ${this.exitCode}`;
    const said = printable(this.stderr.trim().slice(-1000).replaceAll("\r\n", "\n"));
    return said ? `${how}: ${said}` : how;
  }

  toString(): string {
    return this.summary;
  }

  /** The members of the result, and its output as text. */
  toJSON(): Json {
    return { ...(this as unknown as Json), ok: this.ok, stdout: this.stdout, stderr: this.stderr, hint: this.hint };
  }

  /** Shortens the output, and leaves out members that say nothing. */
  [Symbol.for("nodejs.util.inspect.custom")](_depth: number, options: object, inspect: (value: unknown, options: object) => string): string {
    const shown: Json = { cause: this.cause, exitCode: this.exitCode };
    for (const [name, value] of Object.entries(this.toJSON())) {
      if (["id", "ok", "hint", "usage"].includes(name) || value === "" || value === 0 || value === false || value === null) continue;
      if (Array.isArray(value) && !value.length) continue;
      shown[name] = typeof value === "string" && value.length > PREVIEW ? `${value.slice(0, PREVIEW)}... (${value.length} characters)` : value;
    }
    return `${this.constructor.name} ${inspect(shown, options)}`;
  }
}

/** The result of a command. */
export class Result extends Outcome {
  /** number of the signal that ended the command, or null */
  readonly signal: number | null;

  /** @internal */
  constructor(answer: Json) {
    super(answer);
    this.signal = typeof answer.signal === "number" ? answer.signal : null;
  }
}

/** An exception in the interpreter. name is its class, such as "ValueError". */
export type PythonError = wire.PythonError;

/** A displayed object: text for each mime type; binary types such as images are in base64. */
export type Display = Readonly<Record<string, string>>;

/** The result of code in the interpreter. */
export class PythonResult extends Outcome {
  /** repr() of the last expression, or null */
  readonly result: string | null;
  /** displayed objects, such as plots */
  readonly displays: readonly Display[];
  /** the exception that ended the code, or null */
  readonly error: PythonError | null;
  /** false if the interpreter has ended, so that the next run starts without variables */
  readonly stateKept: boolean;
  /** why the interpreter ended by itself before this run ("signaled", "oom", ...); "" if it did not */
  readonly lost: string;
  /**
   * true if the code started without the variables of earlier runs. Their interpreter has ended: by itself, at a timeout,
   * by restartPython(), or because the session stopped.
   */
  readonly newInterpreter: boolean;

  /** @internal */
  constructor(answer: Json) {
    super(answer);
    this.result = typeof answer.result === "string" ? answer.result : null;
    this.displays = Array.isArray(answer.displays) ? (answer.displays as Display[]) : [];
    this.error = answer.error ? (fromWire(answer.error) as PythonError) : null;
    this.stateKept = answer.state_kept !== false;
    this.lost = typeof answer.lost === "string" ? answer.lost : "";
    this.newInterpreter = answer.new_interpreter === true;
  }

  /** Returns the bytes of displayed objects of a mime type, such as plots. */
  images(mime = "image/png"): Buffer[] {
    return this.displays.flatMap((each) => (Object.hasOwn(each, mime) && each[mime] ? [Buffer.from(each[mime], "base64")] : []));
  }

  override get summary(): string {
    return this.error && this.cause !== "timeout" ? printable(`${this.error.name}: ${this.error.message}`) : super.summary;
  }
}

/** The result of a call of the lasting shell. */
export class ShellResult extends Outcome {
  /** false if the shell has ended, so that the next call starts a new one */
  readonly stateKept: boolean;
  /** why the shell ended by itself before this call ("signaled", "oom", ...); "" if it did not */
  readonly lost: string;
  /** true if the call started without the directory, variables and functions of earlier calls */
  readonly newShell: boolean;

  /** @internal */
  constructor(answer: Json) {
    super(answer);
    this.stateKept = answer.state_kept !== false;
    this.lost = typeof answer.lost === "string" ? answer.lost : "";
    this.newShell = answer.new_shell === true;
  }
}
