// SPDX-License-Identifier: Apache-2.0
/** Processes: output, input, signals and ends. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { CommandNotFoundError, Sandbox, Server, TimeoutError } from "holt";
import { failure, serverOf, until, withBox } from "./lib.js";

test("a dialogue with a command", () =>
  withBox({}, async (box) => {
    await using process = await box.spawn("while read name; do echo hello $name; done; echo end >&2", { input: true });
    await process.write("Ann\n");
    assert.equal((await process.read())!.text, "hello Ann\n");
    assert.equal(process.exitCode, undefined);
    await process.closeStdin();
    const rest: string[] = [];
    for await (const { stream, text } of process) rest.push(`${stream} ${text}`);
    assert.deepEqual(rest, ["stderr end\n"]);
    assert.equal(process.exitCode, 0);
    assert.equal(await process.read(), null);
    const done = await process.wait();
    assert.deepEqual([done.stdout, done.stderr], ["hello Ann\n", "end\n"]);
    assert.deepEqual(await process.wait(), done);
  }));

test("5000 lines arrive intact, and so do characters that are split", () =>
  withBox({}, async (box) => {
    const lines: string[] = [];
    for await (const line of (await box.spawn("seq 5000")).lines()) lines.push(line);
    assert.deepEqual(lines, Array.from({ length: 5000 }, (_, i) => String(i + 1)));

    const euro = await box.spawn(String.raw`printf '\342'; sleep 0.2; printf '\202'; sleep 0.2; printf '\254 no end \342'`);
    let text = "";
    for await (const chunk of euro) text += chunk.text;
    assert.equal(text, "€ no end \ufffd");
  }));

test("kill takes everything with it, and wait() says so", () =>
  withBox({}, async (box) => {
    const process = await box.spawn("setsid sleep 1000 & echo up; wait");
    assert.equal((await process.read())!.text, "up\n");
    assert.equal(await process.kill(), true);
    const done = await process.wait();
    assert.deepEqual([done.cause, done.exitCode, done.signal], ["killed", 137, 9]);
    await until(async () => !(await process.kill()), "nothing is left to kill");
    assert.equal((await box.bash("pgrep sleep")).ok, false);
  }));

test("signals, terminals and sizes", () =>
  withBox({}, async (box) => {
    const trap = await box.spawn("trap 'echo got; exit 7' TERM; echo ready; while :; do sleep 0.05; done");
    await trap.read();
    await trap.signal("TERM");
    assert.equal((await trap.wait()).exitCode, 7);

    const terminal = await box.spawn("read x; stty size", { terminal: { rows: 30, columns: 100 }, input: true });
    await terminal.resize(40, 120);
    await terminal.write("\n");
    let text = "";
    for await (const chunk of terminal) text += chunk.text;
    assert.match(text, /40 120/);
  }));

test("a grandchild that holds stdout does not delay the end", () =>
  withBox({}, async (box) => {
    const process = await box.spawn("sleep 1000 & echo done");
    let text = "";
    for await (const chunk of process) text += chunk.text;
    assert.equal(text, "done\n");
    assert.equal((await process.wait()).exitCode, 0);
    assert.equal(await process.kill(), true); // the sleep
  }));

test("timeouts of read() and wait() leave the command running", () =>
  withBox({}, async (box) => {
    const process = await box.spawn("sleep 0.5; echo late");
    assert.ok((await failure(process.read({ timeout: 20 }))) instanceof TimeoutError);
    assert.ok((await failure(process.wait({ timeout: "20ms" }))) instanceof TimeoutError);
    assert.equal((await process.read())!.text, "late\n");
    assert.equal((await process.wait({ timeout: "10s" })).exitCode, 0);
  }));

test("a command that cannot start throws, and one with a timeout ends", () =>
  withBox({}, async (box) => {
    assert.ok((await failure(box.spawn(["no-such-program"]))) instanceof CommandNotFoundError);
    assert.equal((await (await box.spawn("sleep 1000", { timeout: 100 })).wait()).cause, "timeout");
  }));

test("another client finds a process, and its output", async () => {
  await using server = new Server();
  await using one = await Sandbox.create({ name: "shared", server });
  await using other = await Sandbox.open("shared");
  try {
    const process = await one.spawn("echo early; read x; echo $x", { input: true });
    await process.read();
    const found = await other.process(process.id);
    assert.equal((await found.read())!.text, "early\n");
    await found.write("late\n");
    assert.equal((await found.read())!.text, "late\n");
    assert.equal((await process.read())!.text, "late\n");
    assert.deepEqual((await other.processes()).map((each) => each.id), [process.id]);
  } finally {
    await one.remove();
  }
});

test("a second reader of the same program does not repeat output for the first", () =>
  withBox({}, async (box) => {
    const first = await box.spawn("echo 1; read x; echo 2", { input: true });
    assert.equal((await first.read())!.text, "1\n");
    const second = await box.process(first.id);
    assert.equal((await second.read())!.text, "1\n");
    await first.write("\n");
    assert.deepEqual([(await first.read())!.text, (await second.read())!.text], ["2\n", "2\n"]);
    assert.deepEqual([await first.read(), await second.read()], [null, null]);
  }));

test("a slow reader gets the newest 16 MiB, and the count of the rest", () =>
  withBox({}, async (box) => {
    const size = 48 << 20;
    const process = await box.spawn(`head -c ${size} /dev/zero`);
    const before = globalThis.process.memoryUsage().arrayBuffers;
    const done = await process.wait(); // nothing reads
    assert.equal(done.exitCode, 0);
    await until(() => process.exitCode !== undefined, "all output has come");
    assert.ok(globalThis.process.memoryUsage().arrayBuffers - before < 80 << 20);
    let got = 0;
    for await (const chunk of process) got += chunk.data.length;
    assert.equal(got + process.dropped, size);
    assert.ok(got <= 16 << 20 && got > 8 << 20, String(got));
  }));

test("a line without an end is yielded in pieces", () =>
  withBox({}, async (box) => {
    const size = 20 << 20;
    const process = await box.spawn(`printf first; head -c ${size} /dev/zero | tr '\\0' x; printf '\\nlast'`);
    const lines: string[] = [];
    for await (const line of process.lines()) lines.push(line);
    assert.equal(lines.at(-1), "last");
    assert.equal(lines.slice(0, -1).join("").length + process.dropped, "first".length + size);
    assert.ok(lines.every((each) => each.length <= 2 << 20), String(lines.map((each) => each.length)));
  }));

test("a slow iterator does not delay other calls", () =>
  withBox({}, async (box) => {
    await using process = await box.spawn("yes");
    let chunks = 0;
    for await (const _ of process) {
      assert.equal((await box.exec(["echo", "quick"])).stdout, "quick\n");
      if (++chunks === 20) break;
      await pause(5);
    }
    assert.equal(serverOf(box).closed, false);
  }));

test("wait() leaves a stopped session at rest, and says how the command ended", () =>
  withBox({}, async (box) => {
    const ended = await box.spawn("exit 3");
    for await (const _ of ended);
    const stopped = await box.spawn("sleep 1000");
    const waits = stopped.wait();
    await box.stop();

    assert.deepEqual([(await waits).cause, (await stopped.wait()).cause], ["killed", "killed"]);
    const { cause, exitCode, ok, usage } = await ended.wait();
    assert.deepEqual([cause, exitCode, ok, usage.userUs], ["exited", 3, false, null]);
    assert.equal((await box.show()).state, "at rest");
  }));

test("a program ends although it reads a process, after unref()", async () => {
  const script = join(mkdtempSync(join(tmpdir(), "unref-")), "unref.mjs");
  writeFileSync(script, `
    const { Sandbox } = await import(${JSON.stringify(fileURLToPath(import.meta.resolve("holt")))});
    const box = await Sandbox.create();
    const process = await box.spawn("echo ready; sleep 1000");
    console.log((await process.unref().ref().unref().ref().read()).text);
    process.read();
    setImmediate(() => process.unref());`);
  const child = spawn(globalThis.process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (data: Buffer) => (out += data));
  const ended = new Promise((resolve) => child.on("close", resolve));
  const timer = setTimeout(() => child.kill("SIGKILL"), 1000 * Number(globalThis.process.env.HANGS ?? "60"));
  assert.deepEqual([await ended, out.trim()], [0, "ready"]);
  clearTimeout(timer);
});
