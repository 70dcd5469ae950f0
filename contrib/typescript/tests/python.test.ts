// SPDX-License-Identifier: Apache-2.0
/** The interpreter. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { until, failure, withBox } from "./lib.js";

test("variables stay, and the last expression is the result", () =>
  withBox({}, async (box) => {
    assert.equal((await box.python("x = 6\nx * 7")).result, "42");
    const done = await box.python("import sys; print(x); print('e', file=sys.stderr)", { env: { A: "1" } });
    assert.deepEqual([done.stdout, done.stderr, done.result, done.error, done.newInterpreter], ["6\n", "e\n", null, null, false]);
    assert.equal((await box.python("'x' in globals()", { fresh: true })).result, "False");
    assert.ok((await box.variables()).some((each) => each.name === "x" && each.type === "int"));
    await box.python("unsaved = open('open_file', 'w')");
    const saved = await box.saveVariables("saved");
    assert.ok(saved.saved.includes("x") && "unsaved" in saved.leftOut);
    assert.equal(await box.restartPython(), true);
    const lost = await box.python("x");
    assert.deepEqual([lost.error?.name, lost.newInterpreter, lost.ok], ["NameError", true, false]);
    assert.match(String(lost), /^NameError: name 'x' is not defined/);
    assert.ok((await box.loadVariables("saved")).loaded.includes("x"));
    assert.equal((await box.python("x")).result, "6");
  }));

test("displays are shown by their types", () =>
  withBox({}, async (box) => {
    const done = await box.python(
      "class Plot:\n  def _repr_png_(self): return b'\\x89PNG'\n  def _repr_html_(self): return '<b>snake_case</b>'\nPlot()",
    );
    assert.deepEqual(done.images(), [Buffer.from("\x89PNG", "latin1")]);
    assert.equal(done.displays.find((each) => "text/html" in each)?.["text/html"], "<b>snake_case</b>");
  }));

test("onOutput gets output while the code runs", () =>
  withBox({}, async (box) => {
    const seen: string[] = [];
    const waits = box.python("import os, time\nprint('one', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('two')", {
      onOutput: ({ text }) => void seen.push(text),
    });
    await until(() => seen.join("") === "one\n", "the first line comes while the code runs");
    await box.files.write("go", "");
    assert.equal((await waits).stdout, "one\ntwo\n");
    assert.equal(seen.join(""), "one\ntwo\n");

    const error = await failure(box.python("print('x', flush=True)\nimport time\ntime.sleep(1000)", { onOutput: () => assert.fail("stop") }));
    assert.match(error.message, /stop/);
    assert.equal((await box.python("1 + 1")).result, "2");
  }));

test("an exception, a timeout and an interrupt", () =>
  withBox({}, async (box) => {
    assert.match((await box.python("1/0")).error!.traceback, /ZeroDivisionError/);
    const late = await box.python("import time; time.sleep(1000)", { timeout: "200ms" });
    assert.equal(late.cause, "timeout");
    const run = box.python("open('begun', 'w').close()\nimport time; time.sleep(1000)");
    await until(() => box.files.exists("begun"), "the code runs");
    assert.equal(await box.interruptPython(), true);
    assert.equal((await run).error?.name, "KeyboardInterrupt");
  }));
