// SPDX-License-Identifier: Apache-2.0
/** Policies that are a file of the user and settings of this package. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PolicyPart } from "holt";

/** Whether a policy's name is the path of a file. */
export function isFile(name: string | null | undefined): name is string {
  return typeof name === "string" && (name.includes("/") || name.endsWith(".json"));
}

/** Calls a function with a policy. Only a file can extend a file, so such a policy is written to one for the call. */
export async function withPolicy<T>(policy: PolicyPart, act: (policy: string | PolicyPart) => Promise<T>): Promise<T> {
  if (!isFile(policy.extends)) return act(policy);
  const directory = await mkdtemp(join(tmpdir(), "holt-mastra-")); // with mode 0700
  try {
    const file = join(directory, "policy.json");
    await writeFile(file, JSON.stringify({ holt: 1, ...policy }));
    return await act(file);
  } finally {
    await rm(directory, { recursive: true });
  }
}
