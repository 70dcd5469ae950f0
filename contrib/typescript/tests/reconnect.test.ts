// SPDX-License-Identifier: Apache-2.0
/** The death of `holt serve`, of a session's process, and of this program. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ClosedError, Sandbox, SetupError, type Tool } from "holt";
import { failure, serverOf, until, withBox } from "./lib.js";

const tool: Tool = { name: "one", description: "", inputSchema: { type: "object" }, execute: () => 1 };

async function killServe(box: Sandbox): Promise<void> {
  const { pid } = serverOf(box);
  process.kill(pid!, "SIGKILL");
  await until(() => serverOf(box).pid !== pid, "the death is noticed");
}

async function killKeeper(box: Sandbox): Promise<void> {
  process.kill((await box.show()).keeperPid!, "SIGKILL");
}

test("holt serve dies: a throwaway session, its variables and its tools stay", () =>
  withBox({ tools: [tool] }, async (box) => {
    await box.files.write("kept", "x");
    await box.python("x = 1");
    await killServe(box);
    assert.equal(await box.files.read("kept"), "x");
    assert.equal((await box.python("x")).result, "1");
    assert.equal((await box.bash("holt-tool one '{}'")).stdout.trim(), "1");
  }));

test("holt serve dies during calls: readers do not notice, and others fail with a ClosedError", () =>
  withBox({}, async (box) => {
    const signal = new AbortController().signal;
    const run = failure(box.exec(["sleep", "0.5"]));
    const awaited = box.bash("touch begun; sleep 0.5; echo done", { signal });
    await until(() => box.files.exists("begun"), "it has begun");
    const process_ = await box.spawn("for i in 1 2 3; do echo $i; sleep 0.2; done");
    assert.equal((await process_.read())!.text, "1\n");
    const wait = process_.wait();
    const reads = Array.from({ length: 20 }, () => box.files.exists("x"));
    await killServe(box);

    const error = await run;
    assert.ok(error instanceof ClosedError && /starts holt serve again/.test(error.hint!), error.message);
    assert.deepEqual(await Promise.all(reads), reads.map(() => false));
    assert.equal((await awaited).stdout, "done\n");
    let rest = "";
    for await (const chunk of process_) rest += chunk.text;
    assert.equal(rest, "2\n3\n");
    assert.equal((await wait).stdout, "1\n2\n3\n");
  }));

test("holt serve dies: onOutput misses nothing, and a signal still kills", () =>
  withBox({}, async (box) => {
    const seen: string[] = [];
    const run = box.bash("for i in 1 2 3 4; do echo $i; sleep 0.2; done", { onOutput: ({ text }) => void seen.push(text) });
    const controller = new AbortController();
    const process_ = await box.spawn("echo up; sleep 1000", { signal: controller.signal });
    await until(() => seen.length, "the first line has come");
    await killServe(box);
    assert.equal((await run).stdout, "1\n2\n3\n4\n");
    assert.equal(seen.join(""), "1\n2\n3\n4\n");
    controller.abort();
    assert.equal((await process_.wait()).cause, "killed");
  }));

test("the session's process dies: calls fail, processes are lost, and the next call works", () =>
  withBox({ tools: [tool] }, async (box) => {
    await box.files.write("kept", "x");
    const process_ = await box.spawn("echo hi; sleep 1000");
    assert.equal((await process_.read())!.text, "hi\n");
    const wait = process_.wait();
    const run = failure(box.exec(["sleep", "1000"]));
    let begun = false;
    const signalled = failure(box.bash("echo up; sleep 1000", { signal: new AbortController().signal, onOutput: () => (begun = true) }));
    await until(async () => begun && (await box.processes()).length === 3, "all commands run");
    await killKeeper(box);

    assert.ok((await run) instanceof SetupError);
    assert.match((await signalled).message, /has ended, because the session was stopped/);
    assert.deepEqual([(await wait).cause, (await wait).ok], ["lost", false]);
    assert.equal(await process_.read(), null);
    assert.equal(await box.files.read("kept"), "x");
    assert.equal((await box.bash("holt-tool one '{}'")).stdout.trim(), "1");
  }));

test("a reader that only iterates notices the death of the session's process", () =>
  withBox({}, async (box) => {
    const processes = await Promise.all(Array.from({ length: 5 }, () => box.spawn("echo hi; sleep 1000")));
    const ends = processes.map(async (each) => {
      let text = "";
      for await (const chunk of each) text += chunk.text;
      return [text, each.exitCode];
    });
    await until(() => processes.every((each) => each.exitCode === undefined), "they run");
    await (await box.spawn("true")).wait();
    await killKeeper(box);
    for (const end of await Promise.all(ends)) assert.equal(end[1], 137);
  }));

test("stop() ends processes, and says so", () =>
  withBox({}, async (box) => {
    const process_ = await box.spawn("echo hi; sleep 1000");
    assert.equal((await process_.read())!.text, "hi\n");
    const wait = process_.wait();
    await box.stop();
    assert.equal((await wait).cause, "killed");
    assert.equal(await process_.read(), null);
    assert.equal((await process_.wait()).cause, "killed"); // from the history
  }));

test("stop() leaves a session with many processes at rest", async () => {
  await using box = await Sandbox.create({ name: "many" });
  try {
    const processes = await Promise.all(Array.from({ length: 10 }, () => box.spawn("trap '' TERM; echo hi; sleep 1000")));
    await Promise.all(processes.map((each) => each.read()));
    const ends = processes.map((each) => each.read());
    await box.stop();
    assert.deepEqual(await Promise.all(ends), processes.map(() => null));
    await pause(300); // longer than the time after which another process would be awaited
    assert.equal((await box.show()).state, "at rest");
  } finally {
    await box.remove();
  }
});

test("a program that forgets to close its sandbox ends, and so does the session", async () => {
  const home = fileURLToPath(new URL(".", import.meta.resolve("holt")));
  const script = join(mkdtempSync(join(tmpdir(), "forgets-")), "forgets.mjs");
  for (const [end, code] of [["", 0], ["process.exit(3);", 3], ["throw new Error('x');", 1], ["process.kill(process.pid, 'SIGKILL');", null]] as const) {
    writeFileSync(script, `
      const { Sandbox } = await import(${JSON.stringify(join(dirname(home), "dist/index.js"))});
      const box = await Sandbox.create({ tools: [{ name: "t", description: "", inputSchema: {}, execute: () => 1 }] });
      await box.spawn("sleep 1000");
      console.log((await box.exec(["echo", "ran"])).stdout);
      ${end}`);
    const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "ignore"] });
    let out = "";
    child.stdout.on("data", (data: Buffer) => (out += data));
    const ended = await new Promise((resolve) => child.on("close", resolve));
    assert.deepEqual([out.trim(), ended], ["ran", code], end);
    await until(async () => (await Sandbox.sessions()).length === 0, "the session is removed");
  }
});
