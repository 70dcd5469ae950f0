// SPDX-License-Identifier: Apache-2.0
/** Options of HoltSandbox: those of LocalSandbox, and those of holt. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { LocalSandbox, type LocalSandboxOptions } from "@mastra/core/workspace";
import { HoltSandbox, type HoltSandboxOptions } from "holt-mastra";
import { directory, failure, withSandbox } from "./lib.js";

/** A directory of the host with a file, which is readable for the user of any sandbox. */
function shared(): string {
  const path = directory();
  writeFileSync(join(path, "f"), "shared\n");
  return path;
}

async function output(options: HoltSandboxOptions, command: string): Promise<string> {
  return withSandbox(options, async (sandbox) => (await sandbox.executeCommand(command)).stdout);
}

test("the options of LocalSandbox are options of HoltSandbox", () => {
  const options = { id: "x", workingDirectory: directory(), env: { A: "1" }, timeout: 1000, instructions: "i", isolation: "bwrap" } as const satisfies LocalSandboxOptions;
  const local = new LocalSandbox({ ...options, isolation: "none" });
  const ours = new HoltSandbox(options);

  assert.deepEqual([ours.id, ours.workingDirectory, ours.getInstructions()], [local.id, local.workingDirectory, local.getInstructions()]);
  assert.deepEqual(ours.warnings, []);
});

test("workingDirectory is made, is the same path inside, and its files are the host's", async () => {
  const host = join(directory(), "not", "there");
  await withSandbox({ workingDirectory: host }, async (sandbox) => {
    assert.equal((await sandbox.executeCommand("pwd; mkdir sub; echo inside > f")).stdout, `${host}\n`);
    assert.equal(readFileSync(join(host, "f"), "utf8"), "inside\n");
    assert.equal((await sandbox.executeCommand("pwd", [], { cwd: join(host, "sub") })).stdout, `${host}/sub\n`);
    assert.equal((await sandbox.executeCommand("pwd", [], { cwd: "sub" })).stdout, `${host}/sub\n`);
  });
  assert.ok(existsSync(join(host, "f")));
});

test("holt is not searched in the working directory, where commands can write", async () => {
  const { HOLT, PATH } = process.env;
  const workingDirectory = directory();
  try {
    delete process.env.HOLT;
    process.env.PATH = `${workingDirectory}/bin:${dirname(HOLT!)}`;
    const script = `mkdir -p bin; printf '#!/bin/sh\\ntouch ${workingDirectory}/ran\\n' > bin/holt; chmod 755 bin/holt`;
    for (let round = 0; round < 2; round++)
      await withSandbox({ workingDirectory, id: `searched-${process.pid}` }, async (sandbox) => assert.ok((await sandbox.executeCommand(script)).success));
    assert.deepEqual([existsSync(join(workingDirectory, "bin", "holt")), existsSync(join(workingDirectory, "ran"))], [true, false]);
  } finally {
    Object.assign(process.env, { HOLT, PATH });
  }
});

test("a relative workingDirectory starts at the directory of the program", async () => {
  const before = process.cwd();
  process.chdir(directory());
  try {
    assert.equal(await output({ workingDirectory: "./project" }, "pwd"), `${process.cwd()}/project\n`);
    await withSandbox({ workingDirectory: "project" }, async (sandbox) => {
      mkdirSync("project/sub", { recursive: true });
      assert.equal((await sandbox.executeCommand("pwd", [], { cwd: "./project/sub" })).stdout, `${process.cwd()}/project/sub\n`);
    });
  } finally {
    process.chdir(before);
  }
});

test("readOnlyPaths and readWritePaths are visible at their paths", async () => {
  const [only, write] = [shared(), shared()];
  const nativeSandbox = { readOnlyPaths: [only], readWritePaths: [write] };

  assert.equal(await output({ nativeSandbox }, `cat ${only}/f; touch ${only}/x || echo refused; echo new > ${write}/new; cat ${write}/new`), "shared\nrefused\nnew\n");
  assert.equal(await output({}, `cat ${only}/f || echo hidden`), "hidden\n");
});

test("readOnly makes the working directory read-only", async () => {
  const host = shared();

  assert.equal(await output({ workingDirectory: host, nativeSandbox: { readOnly: true } }, "cat f; touch x || echo refused"), "shared\nrefused\n");
});

test("allowNetwork allows the host's network, and net only its hosts", async () => {
  const mode = (options: HoltSandboxOptions) => withSandbox(options, async (sandbox) => (await sandbox.start(), (await sandbox.box!.show()).network.mode));

  assert.equal(await mode({}), "none");
  assert.equal(await mode({ nativeSandbox: { allowNetwork: true } }), "host");
  assert.equal(await mode({ net: ["example.org:443"] }), "allow");
  assert.throws(() => new HoltSandbox({ net: ["example.org"], nativeSandbox: { allowNetwork: true } }), /allowNetwork/);
});

test("options without an effect give a warning", () => {
  const warnings = (options: HoltSandboxOptions) => new HoltSandbox(options).warnings.join("\n");

  assert.match(warnings({ isolation: "none" }), /isolation: "none" has no effect/);
  assert.match(warnings({ nativeSandbox: { seatbeltProfilePath: "/x.sb" } }), /seatbelt exists only on macOS/);
  assert.match(warnings({ nativeSandbox: { allowSystemBinaries: false } }), /allowSystemBinaries/);
  assert.equal(warnings({ isolation: "bwrap", nativeSandbox: { allowSystemBinaries: true } }), "");
});

test("a misspelled option is an error", () => {
  assert.throws(() => new HoltSandbox({ workdir: "x" } as HoltSandboxOptions), /no option "workdir"/);
  assert.throws(() => new HoltSandbox({ nets: [] } as HoltSandboxOptions), /no option "nets"; did you mean net\?/);
  assert.throws(() => new HoltSandbox({ nativeSandbox: { readonly: true } } as HoltSandboxOptions), /no option nativeSandbox\.readonly; did you mean readOnly\?/);
});

test("an error of holt names the options of this package, beside those that were passed", async () => {
  const message = async (policy?: HoltSandboxOptions["policy"]) => (await failure(new HoltSandbox({ workingDirectory: "/home", policy }).start())).message;
  const wide = "filesystem: { allow_wide: true } } })";
  const file = join(directory(), "mine.json");
  writeFileSync(file, '{"holt": 1}');

  assert.ok((await message()).endsWith(`new HoltSandbox({ policy: { ${wide}`), await message());
  assert.ok((await message("strict")).endsWith(`new HoltSandbox({ policy: { extends: "strict", ${wide}`));
  assert.ok((await message(file)).endsWith(`new HoltSandbox({ policy: { ${wide}\nAdd this to the file ${file}.`));
  assert.ok((await message({ limits: { pids: 64 } })).endsWith(`${wide}\nAdd this to the object that you pass as policy, rather than replacing it.`));
});

test("bwrapArgs become settings", async () => {
  const [only, write, host] = [shared(), shared(), shared()];
  const bwrapArgs = [
    "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--ro-bind", only, "/only", "--bind", write, "/write", "--ro-bind-try", "/missing", "/missing",
    "--ro-bind", host, host, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--setenv", "A", "b c", "--chdir", "/write",
  ];
  const command = `pwd; cat /only/f; touch f2; echo "$A"; touch ${host}/x || echo refused`;

  assert.equal(await output({ workingDirectory: host, nativeSandbox: { bwrapArgs } }, command), "/write\nshared\nb c\nrefused\n");
  assert.ok(existsSync(join(write, "f2")));
});

test("a workspace that bwrapArgs bind read-only is read-only, wherever it is", async () => {
  const made = (tmpdir: string): string => mkdtempSync(join(tmpdir, "mastra-tmp-"));
  for (const [workingDirectory, end] of [[made("/tmp"), ""], [made("/tmp"), "/"], [made("/var/tmp"), "/."]] as const) {
    const named = workingDirectory + end;
    const command = "touch x && echo written || echo refused";
    try {
      assert.equal(await output({ workingDirectory, nativeSandbox: { bwrapArgs: ["--ro-bind", named, named] } }, command), "refused\n", named);
      assert.equal(existsSync(join(workingDirectory, "x")), false, named);
    } finally {
      rmSync(workingDirectory, { recursive: true });
    }
  }
});

test("bwrapArgs without an equivalent are errors", () => {
  const make = (...bwrapArgs: string[]) => () => new HoltSandbox({ nativeSandbox: { bwrapArgs } });

  assert.throws(make("--overlay-src", "/x"), /--overlay-src.*no equivalent/);
  assert.throws(make("--ro-bind", "/x"), /needs another value/);
  assert.throws(make("--bind", "/", "/"), /whole file system/);
});

test("bwrapArgs decide about the network as bubblewrap does", () => {
  const hosts = (...bwrapArgs: string[]) => new HoltSandbox({ nativeSandbox: { bwrapArgs } }).getInstructions();

  assert.match(hosts("--unshare-pid"), /all hosts/);
  assert.match(hosts("--unshare-net"), /no hosts/);
  assert.match(hosts("--unshare-all"), /no hosts/);
  assert.match(hosts("--unshare-all", "--share-net"), /all hosts/);
});

test("policy is a preset, a file or an object, and other options are added to it", async () => {
  const file = join(directory(), "mine.json");
  writeFileSync(file, '{"holt": 1, "extends": "strict", "limits": {"pids": 77}}');
  const session = (options: HoltSandboxOptions) => withSandbox({ workingDirectory: shared(), ...options }, async (sandbox) => (await sandbox.start(), sandbox.box!.show()));

  assert.equal((await session({ policy: "strict" })).preset, "strict");
  const made = await session({ policy: file });
  assert.deepEqual([made.preset, made.limits.pids], ["strict", 77]);
  assert.equal((await session({ policy: { limits: { pids: 66 } } })).limits.pids, 66);
});

test("tier, routes and idle are passed on", () =>
  withSandbox({ tier: "standard", idle: "2m", routes: [{ name: "acme", upstream: "https://acme.example", header: { "x-key": "{env:ACME_KEY}" } }] }, async (sandbox) => {
    process.env.ACME_KEY = "sk-of-the-host";
    await sandbox.start();
    const session = await sandbox.box!.show();

    assert.deepEqual([session.tier, session.idleUs, session.routes.map(({ name }) => name)], ["standard", 120_000_000, ["acme"]]);
  }));
