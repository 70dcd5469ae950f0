// SPDX-License-Identifier: Apache-2.0
/** Parts of the package that need no sandbox. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { LimitError, Sandbox, UsageError, didYouMean, type SandboxOptions } from "holt";
// The package does not export these.
import { callOf, hintBeside, hintForTypescript, optionFor, optionOf } from "../node_modules/holt/dist/hints.js";
import { Lines, lineOf, textOf } from "../node_modules/holt/dist/message.js";
import { camelOf, fromWire, snakeOf, toWire } from "../node_modules/holt/dist/names.js";
import { paramsOf } from "../node_modules/holt/dist/settings.js";
import { onAbort } from "../node_modules/holt/dist/signals.js";
import { Slots } from "../node_modules/holt/dist/slots.js";
import { millisecondsOf, textOfSize, textOfTime, timeoutOf } from "../node_modules/holt/dist/times.js";

test("names", () => {
  for (const [snake, camel] of [["exit_code", "exitCode"], ["id", "id"], ["max_rss_bytes", "maxRssBytes"], ["base64", "base64"]] as const)
    assert.deepEqual([camelOf(snake), snakeOf(camel)], [camel, snake]);
  const answer = JSON.parse('{"exit_code": 1, "limits_hit": [{"why_not": null}], "params": {"snake_case": 1}, "__proto__": {"x_y": 1}}') as object;
  const made = fromWire(answer) as Record<string, unknown>;
  assert.deepEqual(Object.entries(made), [["exitCode", 1], ["limitsHit", [{ whyNot: null }]], ["params", { snake_case: 1 }], ["__proto__", { xY: 1 }]]);
  assert.equal(Object.getPrototypeOf(made), Object.prototype);
  assert.deepEqual(toWire({ outputMax: 5, env: { MY_Name: "x" }, cwd: undefined, keep: null }), { output_max: 5, env: { MY_Name: "x" } });
});

test("times and sizes", () => {
  assert.deepEqual(["500ms", "1.5s", "2m", "1h", "1d", "250us", "none", 7, undefined].map(millisecondsOf), [500, 1500, 120_000, 3_600_000, 86_400_000, 0.25, undefined, 7, undefined]);
  for (const wrong of ["10", "", "1 s", "-1s", "1.s", "5 minutes", "1S", "constructor", NaN, {}, [], true] as never[]) assert.throws(() => millisecondsOf(wrong), UsageError, String(wrong));
  assert.deepEqual([0, -5, 0.2, Infinity, "10us"].map(timeoutOf), [1, 1, 1, undefined, 1]);
  assert.deepEqual([textOfTime(1500), textOfTime("90s"), textOfTime(Infinity), textOfSize(1024), textOfSize("1GiB")], ["1500ms", "90s", "none", "1024", "1GiB"]);
  assert.throws(() => textOfSize(1.5), UsageError);
});

test("hints have the words of this package", () => {
  const hints = {
    "Remove it by session.remove.": "Remove it by box.remove().",
    'Set limits.pids: 64 or more.': "Set Sandbox.create({ policy: { limits: { pids: 64 } } }) or more.",
    'Pass filesystem.read_only: ["/x", "a b"], or tier: "large".': 'Pass Sandbox.create({ readOnly: ["/x", "a b"] }), or Sandbox.create({ tier: "large" }).',
    "kv.keys lists keys, process.close_stdin ends input, process.list lists them": "box.kv.keys() lists keys, process.closeStdin() ends input, box.processes() lists them",
    'bridge.routes: [{"name": "a-b", "env": {"X-Y": "{url}"}}]': 'Sandbox.create({ policy: { bridge: { routes: [{ name: "a-b", env: { "X-Y": "{url}" } }] } } })',
    "Lower timeout_ms.": "Lower timeout.",
    'env.set: {"A": "]}\\""}': 'Sandbox.create({ env: { A: "]}\\"" } })',
    "limits.memory: ": "Sandbox.create({ memory: ... }): ",
    "network.allow: [oops": "Sandbox.create({ net: ... }): [oops",
    "See /etc/files.conf and my.files.read": "See /etc/files.conf and my.files.read",
  };
  for (const [hint, expected] of Object.entries(hints)) assert.equal(hintForTypescript(hint), expected);
  assert.equal(hintForTypescript(null), null);
  assert.equal(optionOf({ filesystem: { read_write: ["/x"] } }), 'Sandbox.create({ readWrite: ["/x"] })');
  assert.equal(optionOf({ syscalls: { allow: ["ptrace"] } }), 'Sandbox.create({ policy: { syscalls: { allow: ["ptrace"] } } })');
  assert.equal(optionFor("limits.memory"), "Sandbox.create({ memory: ... })");
  assert.equal(callOf({ method: "session.allow", params: { grants: ["net:a", "net:b"] } }), 'box.allow("net:a", "net:b")');
});

test("a hint adds to the policy that the caller passes", () => {
  const hint = "Sandbox.create({ policy: { limits: { pids: 64 } } })";
  assert.equal(hintBeside(hint, undefined), hint);
  assert.equal(hintBeside(hint, "strict"), 'Sandbox.create({ policy: { extends: "strict", limits: { pids: 64 } } })');
  assert.match(hintBeside(hint, "a.json")!, /\nAdd this to the file a\.json that you pass as policy/);
  assert.match(hintBeside(hint, {})!, /\nAdd this to the object/);
});

test("messages are strict JSON", () => {
  assert.equal(lineOf(7, "exec", { argv: ["\\u0000", "é\n"] }), '{"jsonrpc":"2.0","id":7,"method":"exec","params":{"argv":["\\\\u0000","é\\n"]}}\n');
  const deep = (levels: number): unknown => (levels ? [deep(levels - 1)] : 1);
  for (const wrong of [NaN, Infinity, 2 ** 53, 10n, () => 1, Symbol("x"), "\0", "a\ud800", { "\0": 1 }, [undefined], deep(70), new Map([[1, NaN]]).get(1)])
    assert.throws(() => textOf({ x: wrong }, "exec"), UsageError, String(wrong));
  assert.equal(textOf({ at: new Date(0), x: undefined, n: 1.5, none: null, deep: deep(50) }, "x"), `{"at":"1970-01-01T00:00:00.000Z","n":1.5,"none":null,"deep":${"[".repeat(50)}1${"]".repeat(50)}}`);
  const cycle: unknown[] = [];
  cycle.push(cycle);
  assert.throws(() => textOf(cycle, "x"), UsageError);
  assert.throws(() => lineOf(1, "exec", { argv: ["é".repeat(600_000)] }), LimitError);
});

test("lines are split wherever the bytes are cut", () => {
  const bytes = Buffer.from('{"a":"é€😀"}\n\n{"b":1}\nrest');
  for (let size = 1; size <= bytes.length; size++) {
    const lines = new Lines();
    const found: string[] = [];
    for (let at = 0; at < bytes.length; at += size) found.push(...lines.split(bytes.subarray(at, at + size)));
    assert.deepEqual(found, ['{"a":"é€😀"}', "", '{"b":1}'], `pieces of ${size}`);
    assert.equal(lines.begun, true);
  }
});

test("settings become one policy", () => {
  const { cwd, ...params } = paramsOf({ policy: { network: { allow: ["a.example"], proxy: true } }, net: ["b.example"], timeout: 1500, memory: "1GiB", readOnly: ["/x"] }, true);
  assert.equal(cwd, process.cwd());
  assert.deepEqual(params, {
    policy: { holt: 1, network: { allow: ["a.example", "b.example"], proxy: true, ask: true }, limits: { timeout: "1500ms", memory: "1GiB" }, filesystem: { read_only: ["/x"] } },
  });
  assert.deepEqual(paramsOf({ policy: "strict" }, false), { cwd: process.cwd(), policy_name: "strict" });
  assert.deepEqual(paramsOf({ policy: {} }, false), { cwd: process.cwd(), policy: { holt: 1 } });
  for (const wrong of [{ policy: 5 }, { policy: null }, { policy: [] }, { workspace: "" }, { env: { "A=B": "" } }, { env: { A: undefined } }, { readOnly: "/x" }, { timeout: "5" }])
    assert.throws(() => paramsOf(wrong as object, false), UsageError, JSON.stringify(wrong));
});

test("one signal serves any number of listeners", () => {
  const controller = new AbortController();
  const seen: number[] = [];
  const stops = Array.from({ length: 100 }, (_, i) => onAbort(controller.signal, () => seen.push(i)));
  assert.equal(getEventListeners(controller.signal, "abort").length, 1);
  const other = new AbortController();
  onAbort(other.signal, () => assert.fail("it was stopped"))();
  assert.equal(getEventListeners(other.signal, "abort").length, 0);
  other.abort();
  for (const stop of stops.slice(1)) stop();
  stops[1]!();
  controller.abort();
  controller.abort();
  stops[0]!();
  assert.deepEqual(seen, [0]);
});

test("slots", async () => {
  const slots = new Slots(2);
  let running = 0;
  let most = 0;
  const controller = new AbortController();
  const work = async (): Promise<void> => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
  };
  const given = slots.run(undefined, () => new Promise((resolve) => setTimeout(resolve, 20)));
  const failing = slots.run(undefined, async () => assert.fail("work"));
  const cancelled = slots.run(controller.signal, work);
  controller.abort(new Error("gone"));
  await assert.rejects(cancelled, /gone/);
  await assert.rejects(failing, /work/);
  await given;
  await Promise.all(Array.from({ length: 10 }, () => slots.run(undefined, work)));
  assert.equal(most, 2);
});

test("a misspelt name suggests the nearest one", async () => {
  const names = ["timeout", "net", "workspace", "onOutput"];
  assert.deepEqual(
    ["timout", "tiemout", "nets", "Workspace", "onoutput", "x", "", "nothing like it", "t".repeat(100)].map((word) => didYouMean(word, names)),
    [...["timeout", "timeout", "net", "workspace", "onOutput"].map((name) => `; did you mean ${name}?`), "", "", "", ""],
  );
  await assert.rejects(Sandbox.create({ timout: 1 } as SandboxOptions), /no option "timout"; did you mean timeout\?/);
  await assert.rejects(Sandbox.create({ cwd: "x" } as SandboxOptions), /did you mean workspace\?/);
});
