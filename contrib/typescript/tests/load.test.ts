// SPDX-License-Identifier: Apache-2.0
/** Many calls at once, and what is left after `await using`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Sandbox, Server } from "holt";
import { children, descriptors, until, withBox } from "./lib.js";

test("1000 commands at once", () =>
  withBox({}, async (box) => {
    const results = await Promise.all(Array.from({ length: 1000 }, (_, i) => box.exec(["echo", String(i)])));
    assert.deepEqual(results.map((each) => each.stdout), results.map((_, i) => `${i}\n`));
  }));

test("1000 other calls at once, of which some wait for commands", () =>
  withBox({}, async (box) => {
    const signal = new AbortController().signal;
    await Promise.all(Array.from({ length: 1000 }, async (_, i) => {
      if (i % 5 === 0) assert.equal((await box.bash(`echo ${i}`, { signal })).stdout, `${i}\n`);
      else if (i % 5 === 1) await box.files.write(`f${i}`, String(i)).then(async () => assert.equal(await box.files.read(`f${i}`), String(i)));
      else if (i % 5 === 2) await box.kv.set(`k${i}`, String(i)).then(async () => assert.equal(await box.kv.get(`k${i}`), String(i)));
      else if (i % 5 === 3) assert.equal((await box.python(`${i}`)).result, String(i));
      else assert.equal(await box.files.exists(`none${i}`), false);
    }));
    assert.equal((await box.kv.keys()).length, 200);
  }));

test("300 processes of two sandboxes, all of them watched, awaited and killed at once", async () => {
  await using server = new Server();
  const boxes = await Promise.all([1, 2].map(() => Sandbox.create({ server, policy: { limits: { pids: 2000 } } })));
  try {
    const spawned = boxes.map((box) => Array.from({ length: 150 }, () => box.spawn("echo up; read x", { input: true })));
    const processes = await Promise.all(spawned.flat());
    assert.deepEqual(await Promise.all(processes.map(async (each) => (await each.read())?.text)), processes.map(() => "up\n"));
    const waits = processes.map((each) => each.wait());
    assert.equal((await boxes[0]!.exec(["echo", "others work"])).stdout, "others work\n");
    await Promise.all(processes.map((each, i) => (i % 2 ? each.kill() : each.closeStdin())));
    assert.deepEqual((await Promise.all(waits)).map((each) => each.cause), processes.map((_, i) => (i % 2 ? "killed" : "exited")));
  } finally {
    await Promise.all(boxes.map((box) => box.close()));
  }
});

test("nothing is left after `await using`", async () => {
  const round = async (): Promise<void> => {
    await using box = await Sandbox.create({ tools: [{ name: "t", description: "", inputSchema: {}, execute: () => 1 }] });
    await using process_ = await box.spawn("echo up; sleep 1000");
    await process_.read();
    await Promise.allSettled([box.exec(["true"]), box.exec(["sleep", "1000"], { signal: AbortSignal.timeout(20) }), box.python("1"), box.files.write("x", "y")]);
  };
  await round();
  const listeners = (): number => process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0);
  const before = [descriptors(), listeners(), process.getActiveResourcesInfo().length];
  for (let i = 0; i < 5; i++) await round();
  const exact = (): boolean => descriptors() <= before[0]! && listeners() <= before[1]! && process.getActiveResourcesInfo().length <= before[2]!;
  await until(exact, `only these are left: ${before}`);
  assert.deepEqual(children(), []);
  assert.deepEqual(await Sandbox.sessions(), []);
});

test("sandboxes share a server, and one that closes does not disturb others", async () => {
  await using server = new Server();
  const boxes = await Promise.all(Array.from({ length: 8 }, () => Sandbox.create({ server })));
  assert.equal(children().length, 1);
  const runs = boxes.map((each, i) => (i < 4 ? each.close().then(() => "closed") : each.bash("sleep 0.2; echo ok").then((done) => done.stdout)));
  assert.deepEqual(await Promise.all(runs), ["closed", "closed", "closed", "closed", "ok\n", "ok\n", "ok\n", "ok\n"]);
  await Promise.all(boxes.map((each) => each.close()));
  assert.deepEqual(await Sandbox.sessions({ server }), []);
});

test("a server that closes fails the calls that wait, and removes its throwaway sessions", async () => {
  const server = new Server();
  const box = await Sandbox.create({ server });
  const runs = [box.exec(["sleep", "1000"]), box.python("import time; time.sleep(1000)"), box.spawn("sleep 1000").then((each) => each.wait())];
  const settled = Promise.allSettled(runs);
  await until(async () => (await box.processes()).length >= 2, "they run");
  await server.close();
  for (const each of await settled) assert.ok(each.status === "rejected" && each.reason.name === "ClosedError", JSON.stringify(each));
  await box.close();
  assert.deepEqual(await Sandbox.sessions(), []);
});
