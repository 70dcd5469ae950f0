// SPDX-License-Identifier: Apache-2.0
/** A `holt serve` that is broken, hostile, slow or dead. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ClosedError, HoltError, HoltNotFoundError, ProtocolError, Sandbox, Server, SetupError, TimeoutError } from "holt";
import { children, descriptors, failure, fake, withBox } from "./lib.js";

const list = (server: Server) => server.call("session.list", {});
const exec = (server: Server) => server.call("exec", { session: "s", argv: ["true"] });

/** Runs a call against a script, and checks that nothing of it is left. */
async function failed(script: string, call: (server: Server) => Promise<unknown> = exec): Promise<Error> {
  const server = fake(script);
  try {
    return await failure(call(server));
  } finally {
    await server.close();
    assert.deepEqual(children(), []);
  }
}

test("a line that is not JSON", async () => {
  for (const line of ["oops", "{", "[", "nul", "", '{"id":1,"result":{}', "\\0", "\\xff\\xfe"]) {
    const error = await failed(`for await (const request of requests) await send(${JSON.stringify(line)} + "\\n");`);
    assert.ok(error instanceof ProtocolError && /not JSON/.test(error.message), line);
  }
});

test("messages that are JSON, and no messages", async () => {
  for (const message of ["1", "null", '"x"', "[]", "true"]) {
    const error = await failed(`for await (const request of requests) await send('${message}\\n');`);
    assert.match(error.message, /not an object/, message);
  }
});

test("replies without a result, and with wrong errors", async () => {
  const replies = ["{}", '{"result": 1}', '{"result": null}', '{"result": []}', '{"error": null}', '{"error": 5}', '{"error": {}}', '{"error": {"code": "x", "message": 5, "data": {"kind": 1, "hint": {}, "errno": []}}}', '{"error": {"data": {"kind": "__proto__"}}}'];
  for (const each of replies) {
    const error = await failed(`for await (const { id } of requests) await send(JSON.stringify({ id, ...${each} }) + "\\n");`);
    assert.ok(error instanceof HoltError && error.message.length > 10, each);
  }
});

test("results of wrong types fail the call alone", async () => {
  const wrong = [{}, { ended: 5 }, { ended: { denials: [null] } }, { id: {}, denials: 7, usage: null, limits_hit: [1] }, { stdout: 5, denials: [{}] }, { processes: 5 }, { entries: {} }, { content: 5 }];
  for (const result of wrong) {
    const server = fake(`let seen = 0; for await (const request of requests)
      await reply(request, { "session.create": { warnings: 5 }, "session.show": { directory: 7 } }[request.method] ?? (request.method.startsWith("session.") ? {} : ${JSON.stringify(result)}));`);
    const box = await Sandbox.create({ server });
    const calls = [
      () => box.exec(["x"]), () => box.exec(["x"], { onOutput: () => {}, timeout: 1, signal: AbortSignal.timeout(200) }), () => box.spawn("x"), () => box.python("x"), () => box.processes(),
      () => box.files.list(), () => box.files.read("x"), () => box.kv.get("x"), () => box.kv.keys(), () => box.history(), () => box.forward(1), () => box.routes.list(),
    ];
    await Promise.allSettled(calls.map((each) => each()));
    assert.deepEqual(await server.call("session.list", {}), {});
    await server.close();
  }
});

test("replies with unknown ids are ignored", async () => {
  const server = fake(`for await (const request of requests) {
    for (const id of [0, -1, 99, 1e300, "1", null, {}]) await send(JSON.stringify({ id, result: { sessions: ["wrong"] } }) + "\\n");
    await reply(request, { sessions: [] });
    await reply(request, { sessions: ["twice"] });
  }`);
  assert.deepEqual(await list(server), { sessions: [] });
  assert.deepEqual(await list(server), { sessions: [] });
  await server.close();
});

test("an error without an id ends the connection, because some request has no reply", async () => {
  const error = await failed(`for await (const r of requests) await send(JSON.stringify({ id: null, error: { code: -32700, message: "no JSON" } }) + "\\n");`);
  assert.match(error.message, /has refused a message: no JSON/);
});

test("unknown notifications and requests", async () => {
  const server = fake(`let asked;
  for await (const message of requests) {
    if (message.method) {
      asked = message;
      for (const params of ["null", "5", "[]", "{}", '{"session":"__proto__","id":"x"}'])
        for (const method of ["no.such", "process.output", "process.exited", "tool.cancel", "__proto__"]) await send('{"method":"' + method + '","params":' + params + '}\\n');
      await send('{"id":"t1","method":"no.such","params":{}}\\n');
    } else await reply(asked, { sessions: [message.error.code, message.id] });
  }`);
  assert.deepEqual((await list(server)).sessions, [-32601, "t1"]);
  await server.close();
});

test("a line without an end does not fill the memory", async () => {
  const before = process.memoryUsage().rss;
  const error = await failed(`await requests.next(); const x = "x".repeat(1 << 20); for (;;) await send(x);`);
  assert.ok(error instanceof ProtocolError && /more than \d+ bytes/.test(error.message), error.message);
  assert.ok(process.memoryUsage().rss - before < 300 << 20);
});

test("half lines, and lines in one-byte pieces", async () => {
  const server = fake(`for await (const { id } of requests) {
    const line = Buffer.from(JSON.stringify({ id, result: { sessions: ["é€😀"] } }) + "\\n");
    for (const byte of line) { await send(Buffer.from([byte])); await new Promise(setImmediate); }
  }`);
  assert.deepEqual((await list(server)).sessions, ["é€😀"]);
  await server.close();
});

test("a large reply in many pieces takes linear time", async () => {
  const server = fake(`for await (const request of requests) await reply(request, { sessions: ["x".repeat(30 << 20)] });`);
  const start = performance.now();
  assert.equal(((await list(server)).sessions[0] as unknown as string).length, 30 << 20);
  assert.ok(performance.now() - start < 20_000);
  await server.close();
});

test("death in the middle of a reply", async () => {
  const error = await failed(`console.error("last words"); const { value } = await requests.next(); await send('{"id":' + value.id + ',"res'); process.exit(3);`);
  assert.ok(error instanceof ClosedError, error.message);
  assert.match(error.message, /^holt serve has ended in the middle of a message \(code 3\): last words\n {2}Repeat the request/);
});

test("death by a signal, before any reply and after one", async () => {
  assert.match((await failed(`await requests.next(); process.kill(process.pid, "SIGKILL");`)).message, /\(SIGKILL\)/);
  const server = fake(`const { value } = await requests.next(); await reply(value, { sessions: [] }); process.exit(1);`);
  for (let round = 0; round < 3; round++) assert.deepEqual(await list(server), { sessions: [] }); // each starts another one
  await server.close();
});

test("a reading request is repeated a few times, and then fails", async () => {
  const started = performance.now();
  const error = await failed(`await requests.next(); process.exit(1);`, list);
  assert.ok(error instanceof ClosedError);
  assert.ok(performance.now() - started < 20_000);
});

test("an output that ends while the process stays", async () => {
  const error = await failed(`const { closeSync } = await import("node:fs"); await requests.next(); closeSync(1); setInterval(() => {}, 1000);`);
  assert.ok(error instanceof ClosedError);
});

test("a server that does not read its input", async () => {
  const server = fake(`setInterval(() => {}, 1000);`, { replyTimeout: "500ms" });
  const calls = Array.from({ length: 40 }, () => failure(server.call("files.write", { session: "s", path: "x", content: "x".repeat(500_000) })));
  for (const error of await Promise.all(calls)) assert.ok(error instanceof TimeoutError, error.message);
  await server.close();
  assert.deepEqual(children(), []);
});

test("a server that hangs fails its calls, and a slow command does not", async () => {
  const hangs = fake(`for await (const request of requests) {}`, { replyTimeout: 200 });
  const error = await failure(exec(hangs));
  assert.ok(error instanceof TimeoutError && /holt serve does not answer/.test(error.message), error.message);
  await hangs.close();

  const slow = fake(`for await (const request of requests) {
    if (request.method !== "exec") await reply(request, { sessions: [], tools: [] });
    else setTimeout(() => reply(request, { stdout: "late" }), 1500);
  }`, { replyTimeout: 200 });
  assert.equal((await exec(slow)).stdout, "late");
  await slow.close();
});

test("a session that hangs fails only its own calls", async () => {
  const server = fake(`for await (const request of requests)
    if (request.params.session === "dead") continue;
    else if (request.method === "exec") setTimeout(() => reply(request, { stdout: "alive" }), 1500);
    else await reply(request, { sessions: [], tools: [] });`, { replyTimeout: 200 });
  const alive = exec(server);
  const error = await failure(server.call("exec", { session: "dead", argv: ["x"] }));
  assert.match(error.message, /the process of session "dead" does not answer/);
  assert.equal((await alive).stdout, "alive");
  await server.close();
});

test("a program that is busy does not take its own delay for the server's", async () => {
  const server = fake(`for await (const request of requests) setTimeout(() => reply(request, { sessions: [], tools: [], stdout: "" }), request.method === "exec" ? 2500 : 100);`, { replyTimeout: 200 });
  const run = exec(server);
  for (let burst = 0; burst < 5; burst++) {
    await pause(70); // a request of the watch is sent, and its reply comes while the program is busy
    const until = performance.now() + 300;
    while (performance.now() < until);
  }
  assert.equal((await run).stdout, "");
  await server.close();
});

test("a call that is aborted while it waits for its turn is never sent", async () => {
  const server = fake(`const waiting = [], seen = new Set();
  for await (const request of requests) {
    seen.add(request.method);
    if (request.method === "session.list") await reply(request, { sessions: [...seen] });
    else if (waiting.push(request) === 230) for (const each of waiting) await reply(each, { keys: [] });
  }`);
  const controller = new AbortController();
  const first = Array.from({ length: 230 }, () => server.call("kv.keys", { session: "s" }));
  const late = server.call("kv.set", { session: "s", key: "k", value: "v" }, { signal: controller.signal });
  controller.abort();
  assert.equal((await failure(late)).name, "AbortError");
  await Promise.all(first);
  assert.deepEqual((await list(server)).sessions, ["kv.keys", "session.list"]);
  await server.close();
});

test("close() waits for a slow start of a command that was given up, and kills it", async () => {
  const killed = join(mkdtempSync(join(tmpdir(), "killed-")), "id");
  const server = fake(`const { writeFileSync } = await import("node:fs");
  for await (const request of requests) {
    if (request.method === "process.kill") writeFileSync(${JSON.stringify(killed)}, request.params.id);
    setTimeout(() => reply(request, { id: "p7", warnings: [], directory: "/" }), request.method === "process.spawn" ? 300 : 0);
  }`);
  const box = await Sandbox.create({ name: "lasting", server });
  const controller = new AbortController();
  const run = failure(box.bash("true", { signal: controller.signal }));
  controller.abort();
  assert.equal((await run).name, "AbortError");
  await server.close();
  assert.equal(readFileSync(killed, "utf8"), "p7");
});

test("a server that stays after its input has ended is killed", async () => {
  const server = fake(`process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); for await (const request of requests) await reply(request, { sessions: [] });`);
  await list(server);
  const start = performance.now();
  await server.close();
  assert.ok(performance.now() - start < 15_000);
  assert.deepEqual(children(), []);
});

test("a program that is missing, or cannot be executed", async () => {
  for (const holt of ["/no/such/holt", "no-such-holt", "/etc/passwd", "/etc"]) {
    const error = await failure(Sandbox.create({ holt }));
    assert.ok(error instanceof HoltNotFoundError && error instanceof SetupError && /was not found \(given\)/.test(error.message), error.message);
  }
  const text = fake("");
  await text.close();
  
  const broken = `${mkdtempSync(join(tmpdir(), "broken-"))}/holt`;
  writeFileSync(broken, "#!/no/such/interpreter\n", { mode: 0o755 });
  const error = await failure(Sandbox.create({ holt: broken }));
  assert.match(error.message, /can't be started: spawn .* ENOENT/);
});

test("a program in the workspace is not taken for holt", async () => {
  const { HOLT, PATH } = process.env;
  const project = mkdtempSync(join(tmpdir(), "project-"));
  const bin = join(project, "node_modules", ".bin");
  mkdirSync(bin, { recursive: true });
  for (const place of [bin, project]) writeFileSync(join(place, "holt"), `#!/bin/sh\ntouch ${project}/ran\n`, { mode: 0o755 });
  try {
    delete process.env.HOLT;
    process.chdir(project);
    for (const path of [`${bin}:/usr/bin`, `${bin}/:/usr/bin`, ":.:", "node_modules/.bin"]) {
      process.env.PATH = path;
      assert.ok((await failure(Sandbox.create())) instanceof HoltNotFoundError, path);
    }
    process.env.PATH = bin;
    const error = await failure(Sandbox.create());
    assert.ok(error.message.startsWith(`the program ${join(bin, "holt")} is not used`), error.message);
    assert.equal(existsSync(join(project, "ran")), false);
    process.env.PATH = `${bin}:${dirname(HOLT!)}`;
    await withBox({}, async (box) => assert.ok((await box.exec(["true"])).ok));
  } finally {
    Object.assign(process.env, { HOLT, PATH });
  }
});

test("a value without a text that onAsk throws refuses the connection, and does not end this program", async () => {
  const server = fake(`let asked;
  for await (const message of requests) {
    if (!message.method) await reply(asked, { sessions: [message.result] });
    else if (message.method !== "session.list") await reply(message, { warnings: [], directory: "/" });
    else {
      asked = message;
      await send(JSON.stringify({ id: "t1", method: "network.ask", params: { session: "q", name: "evil.example", port: 443, timeout_ms: 1000 } }) + "\\n");
    }
  }`);
  const box = await Sandbox.create({ name: "q", server, onAsk: () => { throw Object.create(null); } });
  assert.deepEqual((await list(server)).sessions, [{ allow: "no" }]);
  await box.close();
  await server.close();
});

test("holt is not searched in directories that the sandbox can write", async () => {
  const { HOLT, PATH } = process.env;
  const project = mkdtempSync(join(tmpdir(), "project-"));
  const extra = mkdtempSync(join(tmpdir(), "extra-"));
  const places = [join(project, ".venv", "bin"), join(project, "bin"), extra];
  try {
    delete process.env.HOLT;
    const link = `${project}-link`;
    symlinkSync(places[1]!, link);
    process.env.PATH = [...places, link, dirname(HOLT!)].join(":");
    const run = () => withBox({ workspace: project, readWrite: [extra] }, (box) =>
      box.bash(places.map((each) => each.replace(project, "/workspace")).map((each) => `mkdir -p ${each}; printf '#!/bin/sh\\ntouch ${project}/ran\\n' > ${each}/holt; chmod 755 ${each}/holt`).join("; ")));
    assert.ok((await run()).ok);
    for (const place of places) assert.ok(existsSync(join(place, "holt")), place);
    assert.ok((await run()).ok);
    assert.equal(existsSync(join(project, "ran")), false);
  } finally {
    Object.assign(process.env, { HOLT, PATH });
  }
});

test("a server that ends at once leaves no descriptor", async () => {
  await failed("process.exit(1);");
  const before = descriptors();
  for (let round = 0; round < 5; round++) await failed(`console.log("bad");`);
  assert.ok(descriptors() <= before, `${before} descriptors became ${descriptors()}`);
});
