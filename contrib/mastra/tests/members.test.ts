// SPDX-License-Identifier: Apache-2.0
/** Members that the base classes of Mastra bring, and members that holt leaves out. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { supportsComputer } from "@mastra/core/workspace";
import { HoltFilesystem, HoltSandbox, type HoltSandboxOptions } from "holt-mastra";
import { failure, withSandbox } from "./lib.js";

test("members that identify a sandbox", () =>
  withSandbox({ id: `members-${process.pid}` }, async (sandbox) => {
    assert.deepEqual([sandbox.id, sandbox.name, sandbox.provider, sandbox.workingDirectory], [`members-${process.pid}`, "HoltSandbox", "holt", "/workspace"]);
    assert.notEqual(new HoltSandbox().id, new HoltSandbox().id);
  }));

test("getEnv() returns a copy of what setEnv() has set", () =>
  withSandbox({ env: { A: "option" } }, async (sandbox) => {
    sandbox.setEnv((env) => ({ ...env, B: "overlay" }));
    sandbox.getEnv().B = "changed";
    assert.deepEqual(sandbox.getEnv(), { B: "overlay" });
  }));

test("setOnStart() adds to the hook, and ensureRunning() calls it once", async () => {
  const seen: string[] = [];
  await withSandbox({ onStart: () => void seen.push("option") }, async (sandbox) => {
    sandbox.setOnStart((previous) => async (args) => {
      await previous?.(args);
      seen.push(`set ${args.outcome}`);
    });
    await Promise.all([sandbox.ensureRunning(), sandbox.ensureRunning()]);
    assert.deepEqual([sandbox.status, await sandbox.isReady(), seen], ["running", true, ["option", "set created"]]);
  });
});

test("checkpoints and a desktop do not exist", () =>
  withSandbox({}, async (sandbox) => {
    assert.deepEqual([sandbox.supportsCheckpoints, sandbox.computer, supportsComputer(sandbox), await sandbox.snapshot()], [false, undefined, false, undefined]);
    assert.throws(() => new HoltSandbox({ checkpointName: "x" } as HoltSandboxOptions), /no option "checkpointName"/);
    assert.equal((await sandbox.getInfo()).timeoutAt, undefined);
  }));

test("release() forgets a command, and the next get() does not find it", () =>
  withSandbox({}, async (sandbox) => {
    const handle = await sandbox.processes.spawn("echo out");
    assert.equal(handle.command, "echo out");
    await handle.wait();
    sandbox.processes.release(handle.pid);
    assert.deepEqual([await sandbox.processes.get(handle.pid), await sandbox.processes.list()], [undefined, []]);
    assert.ok(sandbox.processes.sandbox === sandbox);
  }));

test("members of the filesystem", () =>
  withSandbox({}, async (sandbox) => {
    const files = new HoltFilesystem({ sandbox, id: "mine", textExtensions: [".sas"], instructions: ({ defaultInstructions }) => `${defaultInstructions} Mine.` });
    assert.deepEqual([files.id, files.name, files.provider, files.status, files.readOnly, files.icon], ["mine", "HoltFilesystem", "holt", "pending", false, "folder"]);
    assert.match(files.getInstructions(), /"\/workspace"\. Mine\.$/);
    assert.deepEqual([files.isTextFile("a.SAS"), files.isTextFile("a.png")], [true, false]);
    await files._init();
    assert.deepEqual([files.status, files.error, sandbox.status, files.getInfo().metadata], ["ready", undefined, "running", { sandbox: sandbox.id, workingDirectory: "/workspace" }]);
    const { basePath, displayName, description, getMountConfig, resolveAbsolutePath } = files as unknown as Record<string, unknown>;
    assert.deepEqual([basePath, displayName, description, getMountConfig, resolveAbsolutePath], [undefined, undefined, undefined, undefined, undefined]);
    await files.writeFile("kept", "x");
    await files._destroy();
    assert.equal((await sandbox.executeCommand("cat kept")).stdout, "x");

    const broken = new HoltFilesystem({ sandbox: new HoltSandbox({ holt: "/missing/holt" }) });
    await failure(broken._init());
    assert.deepEqual([broken.status, /missing/.test(broken.error!)], ["error", true]);
  }));
