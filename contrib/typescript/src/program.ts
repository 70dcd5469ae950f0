// SPDX-License-Identifier: Apache-2.0
/** Finds the program holt, and runs `holt serve` in a process. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { HoltNotFoundError } from "./errors.js";

export type Serve = ChildProcessByStdio<Writable, Readable, Readable>;

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * Whether holt may be searched in a directory of the PATH. npm puts node_modules/.bin of the project first. That directory
 * is in the workspace of many sandboxes, so a command inside could put another program there.
 */
function isTrusted(directory: string): boolean {
  return isAbsolute(directory) && !/\/node_modules\/\.bin\/*$/.test(directory);
}

/** Returns the real path of a directory; the path itself if it does not exist. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

/**
 * Returns the path of the program: the argument, $HOLT, or holt in the PATH. Throws HoltNotFoundError.
 *
 * writable: directories that commands can write. There and below, holt is not searched.
 */
export function findHolt(holt?: string, writable: readonly string[] = []): string {
  const named = holt || process.env.HOLT;
  const name = named || "holt";
  const avoided = writable.map((path) => `${realPath(path)}/`);
  const isAvoided = (directory: string): boolean => avoided.some((path) => `${realPath(directory)}/`.startsWith(path));
  const all = (process.env.PATH ?? "").split(delimiter);
  const path = all.filter((each) => isTrusted(each) && !isAvoided(each));
  const places = name.includes("/") ? [""] : path;
  const found = places.map((place) => (place ? join(place, name) : name)).find(isProgram);
  if (found) return resolve(found);
  const passedOver = name.includes("/") ? undefined : all.filter(isAbsolute).map((place) => join(place, name)).find(isProgram);
  if (passedOver) {
    throw new HoltNotFoundError(`the program ${passedOver} is not used, because a command could have put it there`, {
      hint:
        "Commands can write its directory, or it is in a node_modules/.bin. If you trust it, name it: " +
        `HOLT=${passedOver}. Otherwise install holt elsewhere, or choose another workspace.`,
    });
  }
  const where = holt ? "given" : named ? "of $HOLT" : "in the PATH";
  throw new HoltNotFoundError(`the program ${name} was not found (${where})`, {
    hint: "Build and install holt (see its README.md), or set HOLT to its path: HOLT=~/holt/build/runner/holt",
  });
}

/**
 * Starts `holt serve`. It has a process session of its own (setsid(2)), so that Ctrl-C reaches only this program. It
 * ends with its stdin, at the latest when this program ends.
 */
export function startServe(holt: string | undefined, env: Readonly<Record<string, string>>, writable: readonly string[] = []): Serve {
  return spawn(findHolt(holt, writable), ["serve"], { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...env }, detached: true });
}
