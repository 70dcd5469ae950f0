// SPDX-License-Identifier: Apache-2.0
/** A sandbox from its creation to its end, what lasts in it, and how it describes itself. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { get } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Workspace, LocalFilesystem, MountError, SandboxAbortError, callLifecycle, supportsNetworking } from "@mastra/core/workspace";
import { Sandbox } from "holt";
import { HoltSandbox, type HoltSandboxOptions } from "holt-mastra";
import { directory, failure, until, withSandbox } from "./lib.js";

let names = 0;

/** Returns an id that no other test uses. */
function id(): string {
  return `mastra-${process.pid}-${names++}`;
}

async function sessions(): Promise<string[]> {
  return (await Sandbox.sessions()).map(({ name }) => name);
}

test("pending, running, stopped, running, destroyed", () =>
  withSandbox({}, async (sandbox) => {
    assert.equal(sandbox.status, "pending");
    await sandbox._start();
    await sandbox._start();
    assert.equal(sandbox.status, "running");
    await sandbox._stop();
    assert.equal(sandbox.status, "stopped");
    assert.equal((await sandbox.executeCommand("echo again")).stdout, "again\n");
    assert.equal(sandbox.status, "running");
    await sandbox._destroy();
    assert.equal(sandbox.status, "destroyed");
    assert.equal((await failure(sandbox.executeCommand("true"))).name, "SandboxNotReadyError");
    assert.match((await failure(sandbox._start() as Promise<unknown>)).message, /destroyed/);
  }));

test("stop() and destroy() set the status, too", () =>
  withSandbox({}, async (sandbox) => {
    await sandbox.start();
    await sandbox.stop();
    assert.equal(sandbox.status, "stopped");
    await sandbox.destroy();
    assert.equal(sandbox.status, "destroyed");
    await sandbox.destroy();
  }));

test("a command starts the sandbox, and many at once start one", () =>
  withSandbox({}, async (sandbox) => {
    const results = await Promise.all(Array.from({ length: 8 }, (_, i) => sandbox.executeCommand(`echo ${i} >> all; echo ${i}`)));

    assert.deepEqual(results.map(({ stdout }) => stdout.trim()), Array.from({ length: 8 }, (_, i) => String(i)));
    assert.equal((await sandbox.executeCommand("wc -l < all")).stdout, "8\n");
  }));

test("start and stop at the same time", () =>
  withSandbox({}, async (sandbox) => {
    await Promise.all([callLifecycle(sandbox, "start"), callLifecycle(sandbox, "stop"), callLifecycle(sandbox, "start")]);

    assert.equal((await sandbox.executeCommand("echo fine")).stdout, "fine\n");
  }));

test("/tmp and files last for three cycles of stop and start", () =>
  withSandbox({}, async (sandbox) => {
    for (let cycle = 1; cycle <= 3; cycle++) {
      await sandbox.executeCommand("echo x >> /tmp/t; echo x >> ~/h; echo x >> f");
      const handle = await sandbox.processes.spawn("sleep 1000");
      await sandbox._stop();
      assert.equal((await handle.wait()).success, false);
      assert.equal((await sandbox.executeCommand("cat /tmp/t ~/h f | wc -l")).stdout, `${3 * cycle}\n`);
    }
  }));

test("a sandbox with an id lasts: the next one has its files and background processes", async () => {
  const options: HoltSandboxOptions = { id: id() };
  const first = new HoltSandbox(options);
  assert.deepEqual(await first.start(), { outcome: "created" });
  await first.executeCommand("echo state > /tmp/kept");
  const { pid } = await first.processes.spawn("while [ ! -e go ]; do sleep 0.01; done; echo ended; exit 6");

  await withSandbox(options, async (second) => {
    assert.deepEqual(await second.start(), { outcome: "connected" });
    assert.equal((await second.executeCommand("cat /tmp/kept")).stdout, "state\n");
    await second.box!.python("1"); // its interpreter is no command
    assert.deepEqual((await second.processes.list()).map((each) => [each.pid, each.running]), [[pid, true]]);
    const handle = await second.processes.get(pid);
    await second.executeCommand("touch go");
    const result = await handle!.wait();
    assert.deepEqual([result.exitCode, result.stdout], [6, "ended\n"]);
  });
  assert.ok(!(await sessions()).includes(options.id!));
});

test("destroy() removes the sandbox of an earlier program, without a command", async () => {
  const options: HoltSandboxOptions = { id: id() };
  for (const end of ["destroy", "_destroy"] as const) {
    await new HoltSandbox(options).executeCommand("true");
    assert.ok((await sessions()).includes(options.id!));
    const second = new HoltSandbox(options);
    await second[end]();
    assert.deepEqual([second.status, (await sessions()).includes(options.id!)], ["destroyed", false]);
  }
  await new HoltSandbox(options).destroy(); // there is none
});

test("a program with an id ends, and its background processes stay", async () => {
  const options: HoltSandboxOptions = { id: id() };
  const run = (rest: string) => {
    const script = join(directory(), "program.mjs");
    writeFileSync(script, `
      const { HoltSandbox } = await import(${JSON.stringify(fileURLToPath(import.meta.resolve("holt-mastra")))});
      const sandbox = new HoltSandbox(${JSON.stringify(options)});
      const handle = await sandbox.processes.spawn("read x; until [ -e go ]; do sleep 0.01; done; echo out", { onStdout: () => {} });
      ${rest}`);
    const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8", timeout: 1000 * Number(process.env.HANGS ?? "60") });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  assert.equal(run("console.log(handle.pid)"), "p1\n");
  await withSandbox(options, async (sandbox) => {
    assert.deepEqual((await sandbox.processes.list()).map(({ pid, running }) => [pid, running]), [["p1", true]]);
    await sandbox.executeCommand("touch go");
    assert.equal(run("await handle.closeStdin(); for await (const data of handle.reader) console.log(String(data).trim(), (await handle.wait()).exitCode)"), "out 0\n");
  });
});

test("an id that is no name of a session gets one", () =>
  withSandbox({ id: `User ${process.pid}: ü/../x` }, async (sandbox) => {
    const { metadata } = (await sandbox.executeCommand("true"), await sandbox.getInfo());

    assert.match(String(metadata!.session), /^User-[\w.-]+-[0-9a-f]{12}$/);
    assert.ok((await sessions()).includes(String(metadata!.session)));
  }));

test("a sandbox without an id is gone after destroy()", async () => {
  const sandbox = new HoltSandbox();
  await sandbox.start();
  const { name } = sandbox.box!;
  assert.ok((await sessions()).includes(name));
  await sandbox.destroy();

  assert.ok(!(await sessions()).includes(name));
});

test("it recovers after its processes were killed, or its session was removed, from outside", () =>
  withSandbox({ id: id() }, async (sandbox) => {
    await sandbox.executeCommand("echo kept > f");
    const handle = await sandbox.processes.spawn("sleep 1000");
    process.kill((await sandbox.box!.show()).keeperPid!, "SIGKILL");
    const lost = await handle.wait();
    assert.deepEqual([lost.success, lost.exitCode, lost.stderr], [false, 137, "[holt: the command has ended, because its sandbox was stopped]\n"]);
    assert.equal((await sandbox.executeCommand("cat f")).stdout, "kept\n");

    await (await Sandbox.open(sandbox.id)).remove();
    assert.equal((await sandbox.executeCommand("ls | wc -l")).stdout, "0\n");
    assert.equal(sandbox.status, "running");
  }));

test("getInfo() describes it", () =>
  withSandbox({ policy: { limits: { memory: "512MiB" } }, tier: "standard" }, async (sandbox) => {
    const pending = await sandbox.getInfo();
    assert.deepEqual([pending.status, pending.provider, pending.name], ["pending", "holt", "HoltSandbox"]);
    await sandbox.processes.spawn("sleep 1000");
    const info = await sandbox.getInfo();

    assert.deepEqual([info.id, info.status, info.mounts], [sandbox.id, "running", []]);
    assert.ok(info.createdAt instanceof Date && info.lastUsedAt instanceof Date);
    assert.equal(info.resources!.memoryMB, 512);
    assert.ok(info.resources!.memoryUsedMB! > 0 && info.resources!.cpuCores! > 0);
    assert.equal(info.metadata!.network, "none");
  }));

test("instructions are a text or a function", () => {
  assert.equal(new HoltSandbox({ instructions: "" }).getInstructions(), "");
  assert.equal(new HoltSandbox({ instructions: "Mine." }).getInstructions(), "Mine.");
  const extended = new HoltSandbox({ instructions: ({ defaultInstructions }) => `${defaultInstructions} And mine.`, routes: ["openai"] });
  assert.match(extended.getInstructions(), /"\/workspace".*no hosts.*openai.* And mine\.$/);
  assert.match(new HoltSandbox({ nativeSandbox: { allowNetwork: true } }).getInstructions(), /all hosts/);
});

test("detectIsolation() asks holt doctor", () => {
  assert.deepEqual({ ...HoltSandbox.detectIsolation(), message: "" }, { backend: "holt", available: true, message: "" });
  const missing = HoltSandbox.detectIsolation({ holt: "/missing/holt" });
  assert.deepEqual([missing.backend, missing.available], ["none", false]);
  assert.match(missing.message, /\/missing\/holt/);

  const broken = join(directory(), "holt");
  const layer = { works: false, needed: true, message: "clone: EPERM", cure: "Allow user namespaces." };
  writeFileSync(broken, `#!/bin/sh\necho '${JSON.stringify({ works: false, kernel: "6", layers: { user: layer } })}'; exit 125\n`, { mode: 0o755 });
  const { available, message } = HoltSandbox.detectIsolation({ holt: broken });
  assert.equal(available, false);
  assert.match(message, /user: clone: EPERM; Allow user namespaces\./);
});

test("getPortUrl() leads to a server inside", () =>
  withSandbox({}, async (sandbox) => {
    assert.ok(supportsNetworking(sandbox));
    assert.equal(await sandbox.networking.getPortUrl(3000), null);
    await sandbox.processes.spawn("node -e 'require(`http`).createServer((_, r) => r.end(`inside`)).listen(3000, `127.0.0.1`)'");
    const url = await until(() => sandbox.networking.getPortUrl(3000), "a URL");
    const body = () =>
      new Promise<string>((resolve) => get(url, (answer) => answer.on("data", (data) => resolve(String(data)))).on("error", () => resolve("")));

    assert.equal(await until(body, "an answer"), "inside");
  }));

test("writeFiles() writes files with their modes", () =>
  withSandbox({}, async (sandbox) => {
    await sandbox.writeFiles([
      { path: "bin/run", content: "#!/bin/sh\necho ran\n", mode: 0o755 },
      { path: "/workspace/data", content: Buffer.from([0, 255]) },
    ]);

    assert.equal((await sandbox.executeCommand("bin/run; wc -c < data")).stdout, "ran\n2\n");
    assert.ok((await failure(sandbox.writeFiles([{ path: "x", content: "" }], { abortSignal: AbortSignal.abort() }))) instanceof SandboxAbortError);
    await failure(sandbox.writeFiles([{ path: "x", content: "", mode: 0o4755 }]));
    assert.equal((await sandbox.executeCommand("ls x")).success, false);
  }));

test("a clone has the options and its own session", () =>
  withSandbox({ env: { A: "1" }, net: ["example.org"] }, async (sandbox) => {
    await sandbox.executeCommand("touch mine");
    const clone = sandbox.clone({ env: { A: "2" } });
    try {
      assert.equal((await clone.executeCommand("echo $A; ls")).stdout, "2\n");
      assert.notEqual(clone.id, sandbox.id);
      assert.deepEqual((await clone.box!.show()).network.allow, ["example.org"]);
    } finally {
      await clone.destroy();
    }
  }));

test("a start that fails is reported, and can be repeated", () =>
  withSandbox({ holt: join(directory(), "holt") }, async (sandbox) => {
    assert.equal((await failure(sandbox.executeCommand("true"))).name, "HoltNotFoundError");
    assert.equal(sandbox.status, "error");
    assert.equal((await failure(sandbox.executeCommand("true"))).name, "HoltNotFoundError");
  }));

test("settings of a sandbox with an id are fixed", async () => {
  const options: HoltSandboxOptions = { id: id(), policy: { limits: { pids: 64 } } };
  await withSandbox(options, async (sandbox) => {
    await sandbox.start();
    const other = new HoltSandbox({ ...options, policy: { limits: { pids: 65 } } });
    const { message } = await failure(other.start());
    assert.match(message, /limits\.pids/);
    assert.match(message, /sandbox\.destroy\(\)/);
    assert.doesNotMatch(message, /\bbox\.|Sandbox\.create/);
  });
});

test("hooks run with the sandbox", async () => {
  const seen: string[] = [];
  const sandbox = new HoltSandbox({
    onStart: async ({ sandbox: own, outcome }) => {
      seen.push(`start ${outcome} ${(await own.executeCommand!("echo hook")).stdout.trim()}`);
    },
    onStop: () => void seen.push("stop"),
    onDestroy: () => void seen.push("destroy"),
  });
  await sandbox._start();
  await sandbox._stop();
  await sandbox._start();
  await sandbox._destroy();

  assert.deepEqual(seen, ["start created hook", "stop", "start connected hook", "destroy"]);
});

test("mounts of the workspace are directories inside", async () => {
  const [data, full, host] = [directory(), directory(), directory()];
  writeFileSync(join(data, "a"), "mounted");
  mkdirSync(join(host, "taken"));
  writeFileSync(join(host, "taken", "x"), "");
  const sandbox = new HoltSandbox({ workingDirectory: host });
  const workspace = new Workspace({
    sandbox,
    mounts: {
      "/data": new LocalFilesystem({ basePath: data }),
      "/fixed": new LocalFilesystem({ basePath: full, readOnly: true }),
      [join(host, "taken")]: new LocalFilesystem({ basePath: full }),
      "/etc": new LocalFilesystem({ basePath: full }),
      "/usr/share": new LocalFilesystem({ basePath: full }),
    },
  });
  const result = await sandbox.executeCommand("cat /data/a; echo inside > /data/b; touch /fixed/x || echo read-only; ls taken");

  assert.equal(result.stdout, "mountedread-only\nx\n");
  assert.equal(readFileSync(join(data, "b"), "utf8"), "inside\n");
  const state = (path: string) => [sandbox.mounts.get(path)?.state, sandbox.mounts.get(path)?.error ?? ""].join(" ");
  assert.equal(state("/data"), "mounted ");
  assert.match(state(join(host, "taken")), /error .*not empty/);
  assert.match(state("/etc"), /error .*system/);
  assert.match(state("/usr/share"), /error .*not empty/);
  assert.match(sandbox.getInstructions(), /\/data, \/fixed/);
  assert.ok((await sandbox.getInfo()).mounts!.some(({ path, filesystem }) => path === "/data" && filesystem === "local"));

  const late = await sandbox.mount(new LocalFilesystem({ basePath: full }), "/late"); // commands see it, but read-only
  assert.deepEqual([late.success, sandbox.mounts.get("/late")?.state], [false, "error"]);
  assert.match(late.error!, /holt fixes the mounts of a sandbox when it creates it, and commands do not see this directory/);
  const error = await failure(sandbox.unmount("/data"));
  assert.ok(error instanceof MountError && error.message.includes("lasts until destroy()"), String(error));
  await workspace.destroy();
  assert.deepEqual(readdirSync(data).sort(), ["a", "b"]);
});

test("a mount in the working directory leaves nothing behind", async () => {
  const [host, data] = [directory(), directory()];
  const sandbox = new HoltSandbox({ workingDirectory: host });
  const workspace = new Workspace({ sandbox, mounts: { [join(host, "data")]: new LocalFilesystem({ basePath: data }) } });
  assert.equal((await sandbox.executeCommand("echo x > data/f")).exitCode, 0);
  await workspace.destroy();

  assert.deepEqual([readdirSync(data), readdirSync(host)], [["f"], []]);
});

test("a mount point is not made through a symlink that a command has made", async () => {
  const [host, outside, data] = [directory(), directory(), directory()];
  await withSandbox({ workingDirectory: host }, (sandbox) => sandbox.executeCommand(`ln -s ${outside} way; ln -s ${outside}/made link`));
  for (const name of ["way/made", "link", "way"])
    await withSandbox({ workingDirectory: host }, async (sandbox) => {
      await sandbox.mount(new LocalFilesystem({ basePath: data }), join(host, name));
      assert.equal((await sandbox.executeCommand("true")).success, true);
      assert.deepEqual([sandbox.mounts.get(join(host, name))?.state, readdirSync(outside)], ["error", []], name);
    });
});

test("mounts can change until the first command, although the sandbox runs", async () => {
  for (const options of [{}, { id: id() }])
    await withSandbox(options, async (sandbox) => {
      const [one, two] = [directory(), directory()];
      writeFileSync(join(one, "f"), "of one");
      await sandbox.start();
      assert.deepEqual(await sandbox.mount(new LocalFilesystem({ basePath: one }), "/one"), { success: true, mountPath: "/one" });
      await sandbox.mount(new LocalFilesystem({ basePath: two }), "/two");
      await sandbox.unmount("/two");
      assert.equal((await sandbox.executeCommand("cat /one/f; ls -d /two || echo gone")).stdout, "of onegone\n");
      assert.deepEqual([...sandbox.mounts.entries].map(([path, { state }]) => [path, state]), [["/one", "mounted"]]);
      assert.equal((await sandbox.mount(new LocalFilesystem({ basePath: one }), "/one")).success, true); // it is there
    });
});

test("a mount keeps the file that the first call has written", () =>
  withSandbox({}, async (sandbox) => {
    await sandbox.writeFiles([{ path: "kept", content: "kept" }]);
    assert.equal((await sandbox.mount(new LocalFilesystem({ basePath: directory() }), "/one")).success, false);
    assert.equal((await sandbox.executeCommand("cat kept")).stdout, "kept");
  }));

test("a directory that commands see can be mounted, and removed again, while they run", async () => {
  const [host, shown] = [directory(), directory()];
  mkdirSync(join(shown, "data", "below"), { recursive: true });
  mkdirSync(join(host, "full"));
  writeFileSync(join(host, "full", "f"), "");
  writeFileSync(join(host, "file"), "kept");
  await withSandbox({ workingDirectory: host, nativeSandbox: { readWritePaths: [shown] } }, async (sandbox) => {
    await sandbox.executeCommand("mkdir empty");
    const data = new LocalFilesystem({ basePath: join(shown, "data") });
    for (const path of [join(host, "new", "data"), join(host, "empty")]) {
      assert.deepEqual(await sandbox.mount(data, path), { success: true, mountPath: path });
      assert.equal((await sandbox.executeCommand(`echo ${path} > ${path}/f; ls ${path}`)).stdout, "below\nf\n");
      assert.equal(readFileSync(join(shown, "data", "f"), "utf8"), `${path}\n`);
      assert.equal((await sandbox.mount(data, path)).success, true);
      assert.deepEqual((await sandbox.getInfo()).mounts!.map((each) => each.path), [path]);
      await sandbox.unmount(path);
      assert.equal((await sandbox.executeCommand(`ls -d ${path}`)).success, false);
      assert.deepEqual([...sandbox.mounts.entries.keys()], []);
    }
    for (const [name, why] of [["full", /not empty/], ["file", /no directory/]] as const) {
      assert.match((await sandbox.mount(data, join(host, name))).error!, why);
      sandbox.mounts.delete(join(host, name));
    }
    assert.match((await sandbox.mount(new LocalFilesystem({ basePath: shown, readOnly: true }), join(host, "ro"))).error!, /do not see this directory/);
    assert.match((await sandbox.mount(new LocalFilesystem({ basePath: directory() }), join(host, "other"))).error!, /do not see this directory/);

    await sandbox.mount(data, join(host, "swapped"));
    await sandbox.executeCommand("rm swapped; echo mine > swapped");
    await sandbox.unmount(join(host, "swapped"));
    assert.deepEqual([readFileSync(join(host, "swapped"), "utf8"), readFileSync(join(host, "file"), "utf8")], ["mine\n", "kept"]);
  });
});

test("a mount can be taken back before the first command", () =>
  withSandbox({}, async (sandbox) => {
    const filesystem = new LocalFilesystem({ basePath: directory() });
    assert.deepEqual(await sandbox.mount(filesystem, "/one"), { success: true, mountPath: "/one" });
    await sandbox.mount(filesystem, "/two");
    await sandbox.unmount("/one");
    assert.equal((await sandbox.executeCommand("ls -d /one /two")).stdout, "/two\n");
    assert.deepEqual([...sandbox.mounts.entries.keys()], ["/two"]);
  }));
