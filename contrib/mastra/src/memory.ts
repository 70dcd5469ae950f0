// SPDX-License-Identifier: Apache-2.0
/** The memory that the processes of a session use, from /proc of the host. */
import { readFile, readdir } from "node:fs/promises";

interface Entry {
  parent: number;
  rss: number;
}

/** Reads /proc/PID/status. The kernel escapes newlines in its first line, the name, which comes from code inside. */
async function entryOf(pid: string): Promise<Entry | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/status`, "latin1");
    const field = (name: string): number => Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(text)?.[1] ?? 0);
    return { parent: field("PPid"), rss: field("VmRSS") * 1024 };
  } catch {
    return undefined; // it has ended
  }
}

/** Returns the resident bytes of all descendants of a session's process; 0 if it does not run. */
export async function memoryOf(keeper: number | undefined): Promise<number> {
  if (keeper === undefined) return 0;
  const entries = new Map<number, Entry>();
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const entry = await entryOf(pid);
    if (entry) entries.set(Number(pid), entry);
  }
  const below = (pid: number, depth = 0): boolean => pid === keeper || (depth < 1000 && pid > 1 && below(entries.get(pid)?.parent ?? 0, depth + 1));
  return [...entries].reduce((sum, [pid, { rss }]) => (pid !== keeper && below(pid) ? sum + rss : sum), 0);
}
