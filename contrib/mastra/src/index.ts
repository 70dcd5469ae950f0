// SPDX-License-Identifier: Apache-2.0
/** A sandbox and a filesystem of holt for workspaces of Mastra. */
export type { Detection } from "./doctor.js";
export type { HoltSandboxOptions } from "./options.js";
export { HoltProcessHandle, HoltProcessManager } from "./processes.js";
export { HoltSandbox } from "./sandbox.js";
export { HoltFilesystem, type HoltFilesystemOptions } from "./filesystem.js";
