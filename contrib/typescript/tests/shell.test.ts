// SPDX-License-Identifier: Apache-2.0
/** The lasting shell. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { failure, until, withBox } from "./lib.js";

test("directory, variables and functions stay", () =>
  withBox({}, async (box) => {
    await box.shell.run("mkdir -p a; cd a; export X=1; f() { echo f$X; }");
    const done = await box.shell.run("pwd; f; echo e >&2; false");
    assert.deepEqual([done.stdout, done.stderr, done.exitCode, done.stateKept, done.newShell], ["/workspace/a\nf1\n", "e\n", 1, true, false]);
    assert.equal(await box.shell.restart(), true);
    const next = await box.shell.run("echo ${X-unset}", { env: { Y: "2" } });
    assert.deepEqual([next.stdout, next.newShell, next.lost], ["unset\n", true, ""]);
    assert.equal((await box.shell.run("kill -9 $$")).stateKept, false);
    assert.equal((await box.shell.run("echo $Y")).stdout, "\n");
  }));

test("a signal and interrupt() end the commands and keep the shell", () =>
  withBox({}, async (box) => {
    await box.shell.run("X=1");
    const control = new AbortController();
    const waits = box.shell.run("bash -c 'touch began; exec sleep 60'", { signal: control.signal });
    await until(() => box.files.exists("began"), "the commands run");
    control.abort();
    await assert.rejects(waits, { name: "AbortError" });
    const other = box.shell.run("bash -c 'touch again; exec sleep 60'");
    await until(() => box.files.exists("again"), "the commands run");
    assert.equal(await box.shell.interrupt(), true);
    assert.equal((await other).exitCode, 130);
    assert.equal((await box.shell.run("echo $X")).stdout, "1\n");
  }));

test("onOutput gets output while the commands run, also beside code of the interpreter", () =>
  withBox({}, async (box) => {
    const seen: string[] = [];
    const run = box.shell.run("echo one; until [ -e go ]; do sleep 0.01; done; echo two >&2", { onOutput: ({ stream, text }) => seen.push(`${stream} ${text}`) });
    await until(() => seen.length === 1, "output of running commands");
    const told: string[] = [];
    const code = box.python("print('of Python')", { onOutput: ({ text }) => told.push(text) }); // it waits for its turn
    await box.files.write("go", "");
    const done = await run;
    await code;

    assert.deepEqual([seen.map((each) => each.trim()), told.join("").trim()], [["stdout one", "stderr two"], "of Python"]);
    assert.deepEqual([done.stdout, done.stderr], ["one\n", "two\n"]);
  }));

test("an onOutput that throws interrupts the commands, and keeps the shell", () =>
  withBox({}, async (box) => {
    await box.shell.run("X=1");
    const thrown = await failure(
      box.shell.run("echo one; sleep 1000", {
        onOutput: () => {
          throw new Error("mine");
        },
      }),
    );
    assert.equal(thrown.message, "mine");
    assert.equal((await box.shell.run("echo $X")).stdout, "1\n");
  }));
