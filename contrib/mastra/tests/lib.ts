// SPDX-License-Identifier: Apache-2.0
/** Functions that the tests share: conditions with a deadline, sandboxes that are removed, a model that follows a script. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { HoltSandbox, type HoltSandboxOptions } from "holt-mastra";

const WITHIN = Number(process.env.HANGS ?? "60") * 1000;

/** Waits for a condition, and returns its last value. */
export async function until<T>(condition: () => T | Promise<T>, what: string): Promise<NonNullable<T>> {
  const deadline = performance.now() + WITHIN;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(performance.now() < deadline, `never: ${what}`);
    await pause(5);
  }
}

/** Returns a new directory of the host. */
export function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "mastra-"));
  chmodSync(path, 0o755);
  return path;
}

/** Returns a new directory of the host, and a file beside it that a sandbox with this working directory does not show. */
export function beside(): { workingDirectory: string; path: string } {
  const parent = directory();
  mkdirSync(join(parent, "work"));
  mkdirSync(join(parent, "extra"));
  writeFileSync(join(parent, "extra", "data"), "of the host");
  return { workingDirectory: join(parent, "work"), path: join(parent, "extra", "data") };
}

/** Runs a function with a sandbox, which is destroyed afterwards. */
export async function withSandbox<T>(options: HoltSandboxOptions, act: (sandbox: HoltSandbox) => Promise<T>): Promise<T> {
  const sandbox = new HoltSandbox(options);
  try {
    return await act(sandbox);
  } finally {
    await sandbox.destroy();
  }
}

/** Returns the error with which a promise is rejected. */
export async function failure(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof Error, String(error));
    return error;
  }
  return assert.fail("the call has not failed");
}

/** A call of a tool by the model. */
export interface Call {
  tool: string;
  input: object;
}

/**
 * Returns a model that makes the calls one after the other, and then says "done". A function gets the results of the
 * calls before. `results` has the text of all results that the model got.
 */
export function scripted(script: ReadonlyArray<Call | ((results: readonly string[]) => Call)>) {
  const results: string[] = [];
  let step = 0;
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const next = ({ prompt }: { prompt: ReadonlyArray<{ role: string; content: unknown }> }) => {
    const parts = prompt.flatMap(({ content }) => (Array.isArray(content) ? (content as Array<Record<string, unknown>>) : []));
    results.splice(0, results.length, ...parts.filter(({ type }) => type === "tool-result").map(({ output }) => textOf(output)));
    const each = script[step++];
    const call = typeof each === "function" ? each(results) : each;
    if (!call) return { finishReason: "stop" as const, content: [{ type: "text" as const, text: "done" }] };
    const content = { type: "tool-call" as const, toolCallId: `call-${step}`, toolName: call.tool, input: JSON.stringify(call.input) };
    return { finishReason: "tool-calls" as const, content: [content] };
  };
  const model = {
    specificationVersion: "v2" as const,
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate: async (options: Parameters<typeof next>[0]) => ({ ...next(options), usage, warnings: [] }),
    doStream: async (options: Parameters<typeof next>[0]) => {
      const { content, finishReason } = next(options);
      const [part] = content;
      const parts = part?.type === "text" ? [{ type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: part.text }, { type: "text-end", id: "1" }] : [part];
      const chunks = [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason, usage }];
      return {
        stream: new ReadableStream({
          start: (controller) => {
            for (const chunk of chunks) controller.enqueue(chunk);
            controller.close();
          },
        }),
      };
    },
  };
  return { model, results };
}

function textOf(output: unknown): string {
  const { value } = output as { value?: unknown };
  return typeof value === "string" ? value : JSON.stringify(value);
}
