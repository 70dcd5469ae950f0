// SPDX-License-Identifier: Apache-2.0
/** Runs commands and code that nobody has checked, in a sandbox of holt on this machine. */
export type { CommandOptions, ExecOptions, SpawnOptions } from "./commands.js";
export {
  BusyError, ClosedError, CommandFailed, CommandNotFoundError, DataError, ExistsError, HoltError, HoltNotFoundError, LayerError, LimitError,
  MissingError, NoKeyError, NoProcessError, NotExecutableError, PolicyError, ProtocolError, SetupError, TimeoutError, ToolError, UsageError,
  type HoltErrorOptions, type ToolErrorType,
} from "./errors.js";
export { Files, type FileInfo, type Link, type Match, type ReadOptions, type WriteOptions } from "./files.js";
export { didYouMean } from "./nearest.js";
export { findHolt } from "./program.js";
export type { PythonOptions } from "./interpreter.js";
export { Kv } from "./kv.js";
export type { Content } from "./part.js";
export { Process, type Chunk, type OnOutput, type ProcessInfo, type WaitOptions } from "./process.js";
export type * as protocol from "./protocol.js";
export type { AuditRow, FileStat, HistoryRow, Policy, PolicyPart, Session, SessionEntry } from "./protocol.js";
export type { Allow, OnAsk, Question } from "./questions.js";
export {
  PythonResult, Result, ShellResult, type Cause, type Denial, type Display, type LimitHit, type Outcome, type PythonError, type Unreached, type Usage,
} from "./results.js";
export { Routes, type Route } from "./routes.js";
export { Sandbox, type SandboxOptions } from "./sandbox.js";
export { Server, type CallOptions, type ServerOptions } from "./server.js";
export type { RoutePolicy, Settings } from "./settings.js";
export { Shell, type ShellOptions } from "./shell.js";
export type { Size, Time } from "./times.js";
export type { Copied, DownloadOptions } from "./transfers.js";
export { tool, type JsonSchema, type PayloadOf, type StandardSchema, type Tool, type ToolContext } from "./tools.js";
