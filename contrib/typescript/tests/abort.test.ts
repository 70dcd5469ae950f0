// SPDX-License-Identifier: Apache-2.0
/** AbortSignal at each moment of a call. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Sandbox, Server } from "holt";
import { failure, fake, until, withBox } from "./lib.js";

const nothingRuns = (box: Sandbox): Promise<unknown> =>
  until(async () => (await box.processes()).every((each) => each.state === "ended" || each.command.includes("holt_interpreter")), "nothing runs any more");

test("an aborted signal stops each method before it sends anything", () =>
  withBox({}, async (box) => {
    const rows = (await box.history()).length;
    const reason = new Error("my reason");
    const signal = AbortSignal.abort(reason);
    const calls: Array<() => Promise<unknown>> = [
      () => box.exec(["true"], { signal }), () => box.bash("true", { signal }), () => box.spawn("true", { signal }), () => box.python("1", { signal }),
      () => box.files.read("x", { signal }), () => box.files.write("x", "y", { signal }), () => box.files.write("x", "y".repeat(1e6), { signal }),
      () => box.files.list(".", { signal }), () => box.kv.get("k", { signal }), () => box.kv.set("k", "v", { signal }), () => box.kv.keys("", { signal }),
      () => box.history({ signal }), () => box.audit({ signal }), () => box.show({ signal }), () => box.stop({ signal }), () => box.forward(1, { signal }),
      () => box.routes.list({ signal }), () => box.allow("net:a.example", { signal }), () => box.remove({ signal }), () => Sandbox.create({ signal }),
      () => box.files.upload("/etc/hostname", "h", { signal }), () => box.files.download("x", "/tmp/x", { signal }), () => box.shell.run("true", { signal, onOutput: () => {} }),
      () => Sandbox.sessions({ signal }), () => box.addTool({ name: "t", description: "", inputSchema: {}, execute: () => 1 }, { signal }),
    ];
    for (const each of calls) assert.equal(await failure(each()), reason, String(each));
    assert.equal((await box.history()).length, rows);
    assert.equal(getEventListeners(signal, "abort").length, 0);
  }));

test("abort while a command runs kills it, and everything that it has started", () =>
  withBox({}, async (box) => {
    for (const stdin of [undefined, "x".repeat(300_000)]) {
      const controller = new AbortController();
      const run = box.bash("setsid sleep 1000 & touch begun; sleep 1000", { signal: controller.signal, stdin });
      await until(() => box.files.exists("begun"), "the command runs");
      controller.abort();
      assert.equal((await failure(run)).name, "AbortError");
      await nothingRuns(box);
      await box.files.remove("begun");
      assert.equal(getEventListeners(controller.signal, "abort").length, 0);
    }
  }));

test("abort at any moment leaves no process, no listener, and a sandbox that works", () =>
  withBox({}, async (box) => {
    for (const delay of [0, 0.5, 1, 2, 3, 5, 8, 13]) {
      const controller = new AbortController();
      const { signal } = controller;
      const runs = [
        box.bash("sleep 1000", { signal }), box.spawn("sleep 1000", { signal }).then((each) => each.wait({ signal })), box.exec(["cat"], { signal, stdin: Buffer.alloc(1e6) }),
        box.bash("yes", { signal, onOutput: () => pause(1) }), box.python("import time; time.sleep(1000)", { signal }), box.python("1", { signal, fresh: true }),
        box.files.write("big", "x".repeat(2e6), { signal }), box.files.list("/usr/lib", { signal, recursive: true, limit: 1e6 }),
      ];
      if (delay) await pause(delay);
      controller.abort();
      for (const [i, outcome] of (await Promise.allSettled(runs)).entries())
        assert.ok(outcome.status === "fulfilled" ? i === 2 || i > 4 || delay > 5 : outcome.reason === signal.reason || i === 6, `${delay} ms: run ${i}: ${JSON.stringify(outcome)}`);
      assert.equal(getEventListeners(signal, "abort").length, 0, `listeners after ${delay} ms`);
    }
    await nothingRuns(box);
    assert.equal((await box.python("6 * 7")).result, "42");
    assert.deepEqual((await box.files.list()).map((each) => each.name).filter((name) => name.startsWith(".holt-")), []);
  }));

test("abort kills a spawned command later, too", () =>
  withBox({}, async (box) => {
    const controller = new AbortController();
    const process = await box.spawn("echo up; sleep 1000", { signal: controller.signal });
    await process.read();
    controller.abort();
    assert.equal((await process.wait()).cause, "killed");
    await until(() => process.exitCode !== undefined, "the end is known");
    assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  }));

test("abort while a sandbox is created leaves no session", async () => {
  await using server = new Server();
  await server.call("session.list", {});
  for (let delay = 0; delay < 40; delay += 2) {
    const signal = delay ? AbortSignal.timeout(delay) : AbortSignal.abort();
    const made = await Sandbox.create({ server, signal }).catch(() => undefined);
    await made?.close();
    assert.deepEqual(await Sandbox.sessions({ server }), [], `after ${delay} ms`);
  }
});

test("a sandbox that closes right after an abort has killed the command", async () => {
  await using other = await Sandbox.create({ name: "lasting" });
  try {
    for (const begun of [true, false]) {
      const box = await Sandbox.open("lasting");
      const controller = new AbortController();
      const run = failure(box.bash("sleep 1000", { signal: controller.signal }));
      if (begun) await until(async () => (await box.processes()).some((each) => each.state === "running"), "it runs");
      controller.abort();
      await Promise.all([run, box.close()]);
      await nothingRuns(other);
    }
  } finally {
    await other.remove();
  }
});

test("abort of a waiting reader loses no output", () =>
  withBox({}, async (box) => {
    const process = await box.spawn("read x; echo $x", { input: true });
    const error = await failure(process.read({ signal: AbortSignal.timeout(50) }));
    assert.equal(error.name, "TimeoutError");
    await process.write("kept\n");
    assert.equal((await process.read())!.text, "kept\n");
  }));

test("abort of code that waits for other code", () =>
  withBox({}, async (box) => {
    const first = box.python("import time; open('begun', 'w').close(); time.sleep(0.5); 'first'");
    await until(() => box.files.exists("begun"), "the code runs");
    const controller = new AbortController();
    const second = box.python("open('second', 'w').close()", { signal: controller.signal });
    setTimeout(() => controller.abort(), 50);
    assert.equal((await failure(second)).name, "AbortError");
    assert.equal((await first).result, "'first'");
    assert.equal(await box.files.exists("second"), false);
  }));

test("abort of a call whose server never answers", async () => {
  const server: Server = fake("for await (const request of requests) {}");
  assert.equal((await failure(server.call("session.list", {}, { signal: AbortSignal.timeout(100) }))).name, "TimeoutError");
  await server.close();
});
