// SPDX-License-Identifier: Apache-2.0
/** Sandboxes, commands, files, keys and history. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  CommandFailed, CommandNotFoundError, ExistsError, LimitError, MissingError, NoProcessError, PolicyError, Result, Sandbox, Server, UsageError,
} from "holt";
import { failure, until, withBox } from "./lib.js";

test("a command's result", () =>
  withBox({}, async (box) => {
    const done = await box.exec(["sh", "-c", "cat; echo err >&2; exit 3"], { stdin: "in", env: { A: "1" }, cwd: "/tmp" });

    assert.deepEqual([done.stdout, done.stderr, done.exitCode, done.cause, done.ok, done.signal], ["in", "err\n", 3, "exited", false, null]);
    assert.ok(done.usage.wallUs! > 0);
    assert.equal(String(done), "exit code 3: err");
    const error = await failure((async () => done.check())());
    assert.ok(error instanceof CommandFailed && error.result === done && error.message === "exit code 3: err");
    assert.equal((await box.bash("printf a; exit 0")).check().stdout, "a");
  }));

test("a misspelt option of a command is an error", () =>
  withBox({}, async (box) => {
    const wrong = { timout: 5, tools: [] } as object;
    const calls = { bash: box.bash("true", wrong), exec: box.exec(["true"], wrong), spawn: box.spawn("true", wrong), python: box.python("1", wrong),
                    "shell.run": box.shell.run("true", wrong) };
    for (const [name, call] of Object.entries(calls)) {
      const error = await failure(call);
      assert.ok(error instanceof UsageError && error.message.startsWith(`${name}() has no option "timout"; did you mean timeout?`), String(error));
    }
    assert.equal((await failure(box.shell.run("true", { tools: [] } as object)) as UsageError).message.split("\n")[0], 'shell.run() has no option "tools"');
    assert.deepEqual((await box.history()).filter(({ name }) => name !== "files.write"), []);
  }));

test("console.log() and JSON.stringify() of a result show its output", () =>
  withBox({}, async (box) => {
    const done = await box.bash("printf %300s x; exit 1");

    assert.match(inspect(done), /^Result \{\n  cause: 'exited',\n  exitCode: 1,\n  stdout: '[ ]{200}\.\.\. \(300 characters\)'\n\}$/);
    assert.equal(JSON.parse(JSON.stringify(done)).stdout.length, 300);
  }));

test("output beyond the limit is counted", () =>
  withBox({}, async (box) => {
    const tail = await box.bash("seq 1000", { outputMax: 9, keep: "tail" });

    assert.deepEqual([tail.stdout, tail.stdoutDropped], ["999\n1000\n", 3893 - 9]);

  }));

test("bytes and long input reach a command", () =>
  withBox({}, async (box) => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    assert.deepEqual((await box.exec(["cat"], { stdin: bytes })).stdoutBytes, bytes);
    assert.equal((await box.exec(["wc", "-c"], { stdin: "x".repeat(2_000_000) })).stdout.trim(), "2000000");
    assert.ok((await box.exec(["true"], { stdin: "x".repeat(2_000_000) })).ok); // it reads nothing
  }));

test("onOutput gets all output while the command runs", () =>
  withBox({}, async (box) => {
    const seen: string[] = [];
    const done = await box.bash("echo one; echo two >&2; seq 100000", {
      outputMax: 10,
      onOutput: async ({ stream, text }) => void seen.push(`${stream === "stderr" ? "!" : ""}${text}`),
    });
    assert.ok(seen.includes("!two\n") && done.stdoutDropped > 500_000);
    assert.equal(seen.join("").length, "one\n!two\n".length + 588895);

    const error = await failure(box.bash("echo x; sleep 1000", { onOutput: () => assert.fail("stop") }));
    assert.match(error.message, /stop/);
    await until(async () => (await box.processes()).every((each) => each.state === "ended"), "the command is killed");
  }));

test("a timeout ends the command, and the output stays", () =>
  withBox({}, async (box) => {
    const done = await box.bash("echo begun; sleep 1000", { timeout: "200ms" });
    assert.deepEqual([done.cause, done.exitCode, done.stdout], ["timeout", 124, "begun\n"]);
    assert.match(done.summary, /^timeout after 0\.\d+ s, exit code 124$/);
    assert.equal((await box.exec(["sleep", "1000"], { timeout: 0 })).cause, "timeout");
  }));

test("a refused path, host and system call says what would allow it", () =>
  withBox({ net: ["example.org"] }, async (box) => {
    const host = await box.bash("curl -sS https://example.com");
    assert.equal(host.denials[0]?.hint, 'box.allow("net:example.com") allows it');
    assert.match(host.hint!, /^refused example\.com: .*; box\.allow\("net:example\.com"\) allows it$/m);
    await box.allow("net:example.com");

    const file = mkdtempSync(join(tmpdir(), "refused-"));
    const path = await box.exec(["ls", file]);
    assert.equal(path.denials[0]?.hint, `Sandbox.create({ readOnly: [${JSON.stringify(file)}] }) allows it`);

    const call = await box.bash("unshare --map-root-user true");
    assert.match(call.hint!, /^refused unshare: .*; namespaces are not available in a sandbox with Landlock/);
    assert.match(new CommandFailed(call).message, /\n {2}refused unshare: /);
  }));

test("a reached limit names the option that raises it", () =>
  withBox({ memory: "64MiB" }, async (box) => {
    const done = await box.python("x = bytearray(1 << 30)");
    assert.equal(done.limitsHit[0]?.limit, "memory");
    assert.match(done.hint!, /; Sandbox\.create\(\{ memory: \.\.\. \}\) raises it$/);
  }));

test("errors have classes, kinds and hints in this package's words", () =>
  withBox({}, async (box) => {
    const unknown = await failure(box.exec(["no-such-program"]));
    assert.ok(unknown instanceof CommandNotFoundError && unknown.kind === "not-found" && unknown.name === "CommandNotFoundError");
    assert.match(unknown.hint!, /Sandbox\.create\(\{ readOnly: \["DIR"\] \}\)/);
    assert.ok((await failure(box.files.read("none"))) instanceof MissingError);
    assert.ok((await failure(box.process("p999"))) instanceof NoProcessError);
    assert.match((await failure(box.exec("ls -l" as unknown as string[]))).hint!, /bash\("ls -l"\).*exec\(\["ls","-l"\]\)/);
    assert.match((await failure(box.exec(["a\0b"]))).message, /NUL/);
    assert.match((await failure(box.exec(["\ud800"]))).message, /surrogate/);
    assert.match((await failure(box.exec(["true"], { timeout: "10" }))).message, /"10"/);
    assert.ok((await failure(box.bash("x".repeat(2 << 20)))) instanceof LimitError);
    assert.equal((await box.bash("echo still here")).stdout, "still here\n");
  }));

test("wrong settings are refused before anything is made", async () => {
  const policy = await failure(Sandbox.create({ policy: { limits: { pids: "many" as unknown as number } } }));
  assert.ok(policy instanceof PolicyError && /limits\.pids/.test(policy.message), policy.message);
  assert.match((await failure(Sandbox.create({ ro: ["/x"] } as object))).message, /did you mean readOnly\?/);
  assert.ok((await failure(Sandbox.create({ net: "@python" as unknown as string[] }))) instanceof UsageError);
  assert.ok((await failure(Sandbox.create({ create: false }))) instanceof UsageError);
  assert.match((await failure(Sandbox.create({ policy: "no/such.json" }))).message, /cannot open policy file .*no\/such\.json/);
  assert.match((await failure(Sandbox.create({ net: ["@nosuch"] }))).message, /"@nosuch" is not a known set; the sets are @alpine, .*@python, .*@ubuntu$/);
  assert.deepEqual(await Sandbox.sessions(), []);
});

test("settings reach the session", async () => {
  const workspace = mkdtempSync(join(tmpdir(), "workspace-"));
  const shown = mkdtempSync(join(tmpdir(), "shown-"));
  const obeyed = mkdtempSync(join(tmpdir(), "obeyed-"));
  const helper = join(obeyed, "greeting.py");
  writeFileSync(helper, "def greet(): return 'hello'\n");
  writeFileSync(join(obeyed, "policy.json"), JSON.stringify({ holt: 1, limits: { pids: 50 } }));
  await withBox(
    {
      workspace, readOnly: [shown], readWrite: [`${shown}:/rw`], helpers: [helper], env: { GREETING: "hi" }, tier: "standard", memory: 1 << 28,
      idle: "10m", policy: join(obeyed, "policy.json"), timeout: 20_000,
    },
    async (box) => {
      const { limits, idleUs, tier } = await box.show();
      assert.deepEqual([limits.pids, limits.memoryPerProcessBytes, limits.timeoutUs, idleUs, tier], [50, 1 << 28, 20_000_000, 600_000_000, "standard"]);
      assert.ok((await box.bash(`echo $GREETING >made; cp made /rw/copy; ls ${shown}; ! touch ${shown}/x`)).ok);
      assert.equal(readFileSync(join(workspace, "made"), "utf8") + readFileSync(join(shown, "copy"), "utf8"), "hi\nhi\n");
      assert.equal((await box.python("from greeting import greet; greet()")).result, "'hello'");
    },
  );
});

test("a named session lasts", async () => {
  const server = new Server();
  try {
    assert.ok((await failure(Sandbox.open("work", { server }))) instanceof MissingError);
    const first = await Sandbox.create({ name: "work", timeout: "30s", server });
    await first.files.write("note", "kept");
    await first.close();
    const second = await Sandbox.open("work", { server });
    assert.equal(await second.files.read("note"), "kept");
    await second.stop();
    assert.equal((await second.show()).state, "at rest");
    assert.equal(await second.files.read("note"), "kept");
    assert.equal((await second.show()).state, "at rest");
    const other = await failure(Sandbox.create({ name: "work", timeout: "40s", server }));
    assert.ok(other instanceof ExistsError && /timeout/.test(other.message), other.message);
    assert.deepEqual(await Sandbox.sessions({ server }), [{ name: "work", state: "at rest" }]);
    await second.remove();
    assert.deepEqual(await Sandbox.sessions({ server }), []);
  } finally {
    await server.close();
  }
});

test("`await using` removes a throwaway session", async () => {
  let name: string;
  {
    await using box = await Sandbox.create();
    name = box.name;
    assert.ok((await Sandbox.sessions()).some((each) => each.name === name));
  }
  assert.ok(!(await Sandbox.sessions()).some((each) => each.name === name));
});

test("calls of a closed sandbox fail", async () => {
  const box = await Sandbox.create();
  await Promise.all([box.close(), box.close()]);
  assert.match((await failure(box.exec(["true"]))).message, /^the sandbox is closed/);
});

test("files", () =>
  withBox({}, async ({ files }) => {
    assert.equal(await files.write("a/b.txt", "één\n"), 6);
    assert.equal(await files.append("a/b.txt", "two\n"), 4);
    assert.equal(await files.read("a/b.txt"), "één\ntwo\n");
    const bytes = Buffer.from([0, 255, 10]);
    await files.write("raw", bytes, { mode: 0o600 });
    assert.deepEqual(await files.readBytes("raw"), bytes);
    assert.ok((await failure(files.read("raw"))) instanceof UsageError);
    assert.equal((await files.stat("raw")).mode, 0o600);
    await files.symlink("link", "raw");
    assert.deepEqual([(await files.stat("link")).type, (await files.stat("link", { follow: false })).target], ["file", "raw"]);
    assert.deepEqual((await files.list(".", { recursive: true })).map((each) => each.name), ["a", "a/b.txt", "link", "raw"]);
    assert.deepEqual((await files.glob("**/*.txt")).map((each) => each.name), ["a/b.txt"]);
    assert.deepEqual((await files.grep("^TWO", { ignoreCase: true })).map((each) => [each.name, each.line, each.text]), [["a/b.txt", 2, "two"]]);
    await files.copy("a", "c", { recursive: true });
    await files.move("c/b.txt", "raw", { replace: true });
    assert.equal(await files.read("raw"), "één\ntwo\n");
    await files.remove("a", { recursive: true });
    await files.mkdir("d/e");
    assert.deepEqual([await files.exists("a"), await files.exists("d/e")], [false, true]);
    assert.ok((await failure(files.list(".", { limit: 2 }))) instanceof LimitError);
    assert.ok((await failure(files.write("x", {} as string))) instanceof UsageError);
  }));

test("large files keep their content, their mode and their symlinks", () =>
  withBox({}, async (box) => {
    const { files } = box;
    const data = Buffer.alloc(3_000_001, "0123456789");
    await files.write("big", "small", { mode: 0o640 });
    await files.symlink("link", "big");
    await files.write("link", "still small");
    assert.equal(await files.read("big"), "still small");
    await files.write("link", data);

    assert.deepEqual(await files.readBytes("big"), data);
    assert.deepEqual([(await files.stat("big")).mode, (await files.stat("link", { follow: false })).type], [0o640, "link"]);
    let size = 0;
    for await (const piece of files.stream("big")) size += piece.length;
    assert.equal(size, data.length);
    assert.ok((await failure(files.readBytes("big", { maxBytes: 3_000_000 }))) instanceof LimitError);
    assert.equal((await files.readBytes("big", { maxBytes: 3_000_001 })).length, 3_000_001);
    await box.exec(["truncate", "-s", "1T", "holes"]);
    assert.ok((await failure(files.readBytes("holes"))) instanceof LimitError);
    assert.ok((await failure(files.write("/usr/big", data))).message);
    await files.write("new/below/big", data);
    assert.equal((await files.stat("new/below/big")).size, data.length);
    await files.remove("new", { recursive: true });
    await assert.rejects(files.write("new/big", data, { makeParents: false }), MissingError);
    assert.deepEqual((await files.list()).map((each) => each.name), ["big", "holes", "link"]); // nothing is left beside
  }));

test("names that are not UTF-8", () =>
  withBox({}, async (box) => {
    (await box.bash(String.raw`mkdir d; printf one > $'d/\xff\n'; printf two > $'d/new\nline'`)).check();
    const [line, odd] = await box.files.list("d");
    assert.deepEqual([line!.name, line!.raw, odd!.name], ["new\nline", undefined, "\ufffd\n"]);
    const [, , whole] = await box.files.list(".", { recursive: true });
    assert.equal(await box.files.read(`d/${line!.name}`), "two");
    assert.equal(await box.files.read(whole!.raw!), "one");
    await box.files.move(whole!.raw!, "d/plain");
    assert.equal(await box.files.read("d/plain"), "one");
  }));

test("keys", () =>
  withBox({}, async ({ kv }) => {
    assert.equal(await kv.get("k"), undefined);
    await kv.set("k", "välue");
    await kv.set("raw", Buffer.from([255]));
    assert.deepEqual([await kv.get("k"), await kv.getBytes("raw"), await kv.keys(), await kv.keys("r")], ["välue", Buffer.from([255]), ["k", "raw"], ["raw"]]);
    assert.ok((await failure(kv.get("raw"))) instanceof UsageError);
    assert.deepEqual([await kv.delete("k"), await kv.delete("k")], [true, false]);
    await Promise.all(Array.from({ length: 1001 }, (_, i) => kv.set(`n${i}`, "")));
    assert.equal((await kv.keys("n")).length, 1001);
    await kv.set("__proto__", "x");
    assert.equal(await kv.get("__proto__"), "x");
  }));

test("history and audit", () =>
  withBox({}, async (box) => {
    for (let i = 0; i < 3; i++) await box.exec(["echo", String(i)]);
    await box.bash("unshare --map-root-user true");
    assert.equal((await box.history({ limit: 3 })).length, 3);
    const rows = await box.history({ name: "exec", limit: 2 });
    assert.deepEqual(rows.map((each) => each.name), ["exec", "exec"]);
    assert.equal(rows[0]!.result!["exit_code"], 1); // members of the history keep their names
    const [denial] = await box.audit({ kind: "denial" });
    assert.equal(denial!.detail["layer"], "seccomp");
  }));

test("ports and links", () =>
  withBox({}, async (box) => {
    await box.files.write("/mnt/files/report.txt", "total: 3");
    await box.spawn("cd /mnt/files; exec python3 -m http.server -b 127.0.0.1 3000");
    (await box.bash("until echo > /dev/tcp/127.0.0.1/3000; do sleep 0.05; done 2>/dev/null")).check();
    const address = await box.forward(3000);
    assert.equal(await (await fetch(`http://${address}/report.txt`)).text(), "total: 3");
    assert.deepEqual(await box.ports(), { [address]: 3000 });
    await box.closePort(3000);
    assert.deepEqual(await box.ports(), {});

    const link = await box.files.link("report.txt", { expires: "10m" });
    assert.equal(await (await fetch(link.url)).text(), "total: 3");
    const upload = await box.files.link("in", { upload: true, maxSize: 10 });
    assert.equal((await fetch(upload.url, { method: "PUT", body: "abc" })).ok, true);
    assert.equal(await box.files.read("/mnt/files/in"), "abc");
    assert.equal((await box.files.links()).length, 2);
    assert.deepEqual([await box.files.revokeLink(link), await box.files.revokeLink()], [1, 1]);
  }));

test("a route carries requests with a credential that commands do not get", async () => {
  const seen: Array<string | undefined> = [];
  const upstream = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.end("served");
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const server = new Server({ env: { ACME_KEY: "sk-secret" } });
  const route = {
    name: "acme", upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`, header: { authorization: "Bearer {env:ACME_KEY}" },
    env: { ACME_URL: "{url}", ACME_TOKEN: "{token}" },
  };
  try {
    await withBox({ server, routes: [route] }, async (box) => {
      const done = await box.bash('curl -sS -H "authorization: Bearer $ACME_TOKEN" $ACME_URL/x; echo; env');
      assert.match(done.stdout, /^served\n/);
      assert.ok(!done.stdout.includes("sk-secret"));
      assert.deepEqual(seen, ["Bearer sk-secret"]);
      assert.deepEqual((await box.routes.list()).map((each) => [each.name, each.live]), [["acme", true]]);
      await box.routes.remove("acme");
      assert.deepEqual(await box.routes.list(), []);
      assert.ok((await failure(box.routes.remove("acme"))) instanceof MissingError);
      assert.equal(await box.routes.add("openai").catch((error: Error) => error.name), "UsageError"); // no OPENAI_API_KEY here
    });
  } finally {
    await server.close();
    upstream.close();
  }
});

test("onAsk decides about hosts, also after the session has stopped", async () => {
  const asked: string[] = [];
  const onAsk = ({ name, port, timeout }: { name: string; port: number; timeout: number }) => {
    asked.push(`${name}:${port} ${timeout}`);
    return "no" as const;
  };
  await withBox({ onAsk }, async (box) => {
    await box.bash("curl -sS https://one.example");
    await box.stop();
    await box.bash("curl -sS https://two.example");
    assert.deepEqual(asked, ["one.example:443 60000", "two.example:443 60000"]);
  });
});

test("results of any method of holt serve are typed", async () => {
  await using server = new Server();
  await using box = await Sandbox.create({ server });
  const { tools } = await server.call("tools.list", { session: box.name });
  assert.deepEqual(tools, []);
  const done = await server.call("exec", { session: box.name, argv: ["echo", "hi"], timeoutMs: 5000 });
  assert.equal(`${done.exitCode} ${done.stdout}`, "0 hi\n");
  assert.ok(!(done instanceof Result));
});

test("an error does not carry control characters of code inside to the terminal", () =>
  withBox({}, async (box) => {
    const shell = await box.bash("printf 'a\\033]0;title\\007\\r\\nb\\tc\\302\\2332J' >&2; exit 3");
    assert.equal(shell.summary, "exit code 3: a\\x1b]0;title\\x07\nb\tc\\x9b2J");
    assert.ok(shell.stderr.includes("\u001b]0;title"));
    const python = await box.python("raise ValueError('\\x1b[2J')");
    assert.equal(python.summary, "ValueError: \\x1b[2J");
    for (const each of [shell, python]) assert.throws(() => each.check(), (error: Error) => !/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(error.message));
  }));
