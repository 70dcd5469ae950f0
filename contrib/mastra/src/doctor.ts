// SPDX-License-Identifier: Apache-2.0
/** Asks `holt doctor` whether holt works on this host. */
import { spawnSync } from "node:child_process";
import { findHolt } from "holt";

export interface Detection {
  backend: "holt" | "none";
  /** whether a sandbox works */
  available: boolean;
  message: string;
}

interface Report {
  works: boolean;
  kernel: string;
  layers: Record<string, { works: boolean; needed: boolean; message: string | null; cure: string | null }>;
}

const WITHIN = 60_000;

/** Runs the tests of every layer and of a whole sandbox, which takes some 0.1 s. */
export function detect(holt: string | undefined): Detection {
  let report: Report;
  try {
    const { stdout, stderr, error } = spawnSync(findHolt(holt), ["doctor", "--json"], { encoding: "utf8", timeout: WITHIN, maxBuffer: 1 << 20 });
    if (error) throw error;
    if (!stdout) throw new Error(stderr.trim() || "holt doctor printed nothing");
    report = JSON.parse(stdout) as Report;
  } catch (error) {
    return { backend: "none", available: false, message: error instanceof Error ? error.message : String(error) };
  }
  if (report.works) return { backend: "holt", available: true, message: `holt works on this host (Linux ${report.kernel})` };
  const failed = Object.entries(report.layers).filter(([, { works, needed }]) => needed && !works);
  const reasons = failed.map(([name, { message, cure }]) => [`${name}: ${message ?? "does not work"}`, cure].filter(Boolean).join("; "));
  return { backend: "none", available: false, message: `holt does not work on this host: ${reasons.join(" | ")}` };
}
