// SPDX-License-Identifier: Apache-2.0
/**
 * Errors of this package. A command that fails throws none of them, unless check() of its result is called.
 *
 * Each kind of error in holt-serve(1) has its own class, so that a program can catch the errors that it can handle. The
 * classes are those of the Python package.
 */
import { hintForTypescript } from "./hints.js";

export interface HoltErrorOptions {
  /** the kind of error as in holt-serve(1), such as "missing", "busy" or "limit" */
  kind?: string | undefined;
  /** the name of the system's error, such as "ENOENT" */
  errno?: string | null | undefined;
  /** a way to solve the problem, in methods and options of this package */
  hint?: string | null | undefined;
  /** the error code of JSON-RPC */
  code?: number | undefined;
  /** other members of the error's data */
  data?: Record<string, unknown> | undefined;
  cause?: unknown;
}

/** An operation failed. This is the base class of all errors that holt reports. */
export class HoltError extends Error {
  /** the kind of error as in holt-serve(1), such as "missing", "busy" or "limit" */
  readonly kind: string;
  /** the name of the system's error, such as "ENOENT"; or null */
  readonly errno: string | null;
  /** a way to solve the problem, in methods and options of this package; or null */
  readonly hint: string | null;
  /** the error code of JSON-RPC */
  readonly code: number;
  /** other members of the error's data */
  readonly data: Readonly<Record<string, unknown>>;
  /** the operation, its object, and the reason of the failure, without the hint */
  readonly reason: string;

  constructor(reason: string, options: HoltErrorOptions = {}) {
    const { errno = null, hint = null } = options;
    const shown = errno && !reason.includes(errno) ? `${reason} (${errno})` : reason;
    super(hint ? `${shown}\n  ${hint}` : shown, "cause" in options ? { cause: options.cause } : undefined);
    this.reason = reason;
    this.kind = options.kind ?? new.target.kind;
    this.errno = errno;
    this.hint = hint;
    this.code = options.code ?? -32000;
    this.data = options.data ?? {};
  }

  /** the kind of errors of this class */
  static readonly kind: string = "setup";
}

/** The host, or holt itself, failed. */
export class SetupError extends HoltError {}

/** A parameter is wrong, or parameters contradict each other. */
export class UsageError extends HoltError {
  static override readonly kind: string = "usage";
}

/** A field or file of a policy is wrong. */
export class PolicyError extends HoltError {
  static override readonly kind: string = "policy";
}

/** The host refuses a layer of the sandbox; `data.layer` names it. */
export class LayerError extends HoltError {
  static override readonly kind: string = "layer";
}

/** The command exists and cannot be executed. */
export class NotExecutableError extends HoltError {
  static override readonly kind: string = "not-executable";
}

/** The command does not exist. */
export class CommandNotFoundError extends HoltError {
  static override readonly kind: string = "not-found";
}

/** The session, process, key, tool or file does not exist. */
export class MissingError extends HoltError {
  static override readonly kind: string = "missing";
}

/** The session has no such key. */
export class NoKeyError extends MissingError {
  static override readonly kind: string = "no-key";
}

/** The session has no such process. */
export class NoProcessError extends MissingError {
  static override readonly kind: string = "no-process";
}

/** The file, key or session exists already, or a session exists with other settings. */
export class ExistsError extends HoltError {
  static override readonly kind: string = "exists";
}

/** The session or file is in use, or still running. */
export class BusyError extends HoltError {
  static override readonly kind: string = "busy";
}

/** A limit of holt, of its protocol or of the disk is reached. */
export class LimitError extends HoltError {
  static override readonly kind: string = "limit";
}

/** One of holt's own files is damaged, or was made by a newer holt. */
export class DataError extends HoltError {
  static override readonly kind: string = "data";
}

/** A message was invalid, or came at the wrong time. */
export class ProtocolError extends HoltError {
  static override readonly kind: string = "protocol";
}

/** The program holt was not found. */
export class HoltNotFoundError extends SetupError {
  static override readonly kind: string = "no-holt";
}

/** The sandbox is closed, or its `holt serve` has ended during the call. In the second case, the next call starts another
 * one. */
export class ClosedError extends HoltError {
  static override readonly kind: string = "closed";
}

/** A time has passed: `timeout` of a call, or `replyTimeout` of a server that does not answer. */
export class TimeoutError extends HoltError {
  static override readonly kind: string = "timeout";
}

/**
 * Returns a text without control characters, as holt writes them: "\x1b". The text comes from code inside, and runtimes
 * print the message of an error on a terminal, which would obey them. Newlines and tabs stay.
 */
export function printable(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (each) => `\\x${each.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

/** The same for a text of one line. */
export function onOneLine(text: string): string {
  return printable(text).replaceAll("\n", "\\x0a");
}

/** Returns the text of a value that a function of the user has thrown. Code inside may have shaped it: String() of an
 * object whose toString is no function throws. */
export function reasonOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message || error.name) : String(error);
  } catch {
    return "the thrown value has no text";
  }
}

/** A result that an error can describe. */
export interface Failed {
  readonly hint: string | null;
  readonly summary: string;
}

/** A command or code has failed. Only check() of its result throws this. */
export class CommandFailed<R extends Failed = Failed> extends Error {
  /** the result of the command or code */
  readonly result: R;
  /** the refusals and reached limits, and the options of Sandbox.create() that help; or null */
  readonly hint: string | null;

  constructor(result: R) {
    const lines = result.hint ? result.hint.split("\n").map((line) => `\n  ${line}`) : [];
    super(result.summary + lines.join(""));
    this.result = result;
    this.hint = result.hint;
  }
}

/** The types of a failed call of a tool. */
export type ToolErrorType = "validation_error" | "permission_error" | "internal_error";

/** An error that a tool throws for its caller. The code inside gets a RuntimeError "[type] message". Other errors of a tool
 * arrive as "internal_error". */
export class ToolError extends Error {
  readonly type: ToolErrorType;

  constructor(message: string, type: ToolErrorType = "internal_error") {
    if (!["validation_error", "permission_error", "internal_error"].includes(type))
      throw new TypeError(`the type of a ToolError must be validation_error, permission_error or internal_error, not ${type}`);
    super(message);
    this.type = type;
  }
}

// A name on the prototype, and not on each error, is also in the first line of a stack.
for (const each of [HoltError, CommandFailed, ToolError, HoltNotFoundError, ClosedError, TimeoutError])
  Object.defineProperty(each.prototype, "name", { value: each.name, writable: true, configurable: true });

const classes = new Map<string, typeof HoltError>(
  [
    SetupError, UsageError, PolicyError, LayerError, NotExecutableError, CommandNotFoundError, MissingError, NoKeyError,
    NoProcessError, ExistsError, BusyError, LimitError, DataError, ProtocolError,
  ].map((each) => [each.kind, each]),
);
for (const each of classes.values()) Object.defineProperty(each.prototype, "name", { value: each.name, writable: true, configurable: true });

/** Returns the error for the error object of a reply. */
export function errorOf(answer: unknown): HoltError {
  const error = typeof answer === "object" && answer !== null ? (answer as Record<string, unknown>) : {};
  const { kind, errno, hint, ...data } = (typeof error.data === "object" && error.data !== null ? error.data : {}) as Record<string, unknown>;
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const made = classes.get(text(kind) ?? "") ?? HoltError;
  return new made(text(error.message) ?? "holt serve replied with an error without a message", {
    kind: text(kind), errno: text(errno), hint: hintForTypescript(text(hint) ?? null),
    code: typeof error.code === "number" ? error.code : -32000, data,
  });
}
