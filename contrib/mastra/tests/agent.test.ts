// SPDX-License-Identifier: Apache-2.0
/** An agent of Mastra on a model that follows a script, with the tools of a Workspace. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Agent } from "@mastra/core/agent";
import { LocalFilesystem, Workspace } from "@mastra/core/workspace";
import { HoltFilesystem, HoltSandbox, type HoltSandboxOptions } from "holt-mastra";
import { beside, directory, scripted, type Call } from "./lib.js";

const EXECUTE = "mastra_workspace_execute_command";
const OUTPUT = "mastra_workspace_get_process_output";
const KILL = "mastra_workspace_kill_process";
const WRITE = "mastra_workspace_write_file";
const READ = "mastra_workspace_read_file";

/** Lets an agent make the calls, and returns their results as the model saw them. */
async function run(script: ReadonlyArray<Call | ((results: readonly string[]) => Call)>, options: HoltSandboxOptions = {}, host?: string): Promise<string[]> {
  const sandbox = new HoltSandbox(host === undefined ? options : { ...options, workingDirectory: host });
  const filesystem = host === undefined ? new HoltFilesystem({ sandbox }) : new LocalFilesystem({ basePath: host });
  const workspace = new Workspace({ sandbox, filesystem });
  const { model, results } = scripted(script);
  const agent = new Agent({ id: "tester", name: "tester", instructions: "Follow the script.", model: model as never, workspace });
  try {
    const { text } = await agent.generate("go", { maxSteps: script.length + 1 });
    assert.equal(text, "done");
    return [...results];
  } finally {
    await workspace.destroy();
  }
}

test("the model gets the output of a command, and its exit code", async () => {
  const [first, second] = await run([
    { tool: EXECUTE, input: { command: "echo out; echo err >&2; id -u" } },
    { tool: EXECUTE, input: { command: "exit 7" } },
  ]);

  assert.match(first!, /out\n1000/);
  assert.match(first!, /err/);
  assert.match(second!, /Exit code: 7/);
});

test("the model is told what was refused, and which option allows it", async () => {
  const { workingDirectory, path: data } = beside();
  const [network, path] = await run([
    { tool: EXECUTE, input: { command: "curl -sS https://example.com" } },
    { tool: EXECUTE, input: { command: `cat ${data}` } },
  ], { workingDirectory });

  assert.match(network!, /\[holt: no rule allows example\.com; new HoltSandbox\(\{ net: \["example\.com"\] \}\) allows it\]/);
  assert.ok(path!.includes(`[holt: refused ${data}: `), path);
  assert.match(path!, /new HoltSandbox\(\{ nativeSandbox: \{ readOnlyPaths: \[/);
});

test("the timeout of the tool is in seconds", async () => {
  const [result] = await run([{ tool: EXECUTE, input: { command: "echo before; sleep 1000", timeout: 0.1 } }]);

  assert.match(result!, /before/);
  assert.match(result!, /Process timed out after 100ms/);
  assert.match(result!, /Exit code: 124/);
});

test("background processes are started, read and killed", async () => {
  const pid = (results: readonly string[]) => /PID: (\w+)/.exec(results[0]!)![1];
  const [started, output, killed, after] = await run([
    { tool: EXECUTE, input: { command: "echo ready > ready; sleep 1000", background: true } },
    { tool: EXECUTE, input: { command: "until [ -s ready ]; do sleep 0.01; done; echo it runs" } },
    (results) => ({ tool: KILL, input: { pid: pid(results) } }),
    (results) => ({ tool: OUTPUT, input: { pid: pid(results) } }),
  ]);

  assert.match(started!, /PID: p\d+/);
  assert.match(output!, /it runs/);
  assert.match(killed!, /killed/);
  assert.match(after!, /No background process found/);
});

test("output of a background process is read until its end", async () => {
  const [, output] = await run([
    { tool: EXECUTE, input: { command: "seq 3; echo gone >&2; exit 4", background: true } },
    (results) => ({ tool: OUTPUT, input: { pid: /PID: (\w+)/.exec(results[0]!)![1], wait: true } }),
  ]);

  assert.match(output!, /1\n2\n3/);
  assert.match(output!, /gone/);
  assert.match(output!, /Exit code: 4/);
});

test("files of the file tools are those of commands", async () => {
  const [, listing, , content] = await run([
    { tool: WRITE, input: { path: "src/a.txt", content: "written by a tool" } },
    { tool: EXECUTE, input: { command: "cat src/a.txt" } },
    { tool: EXECUTE, input: { command: "echo written by a command > b.txt" } },
    { tool: READ, input: { path: "b.txt" } },
  ]);

  assert.match(listing!, /written by a tool/);
  assert.match(content!, /written by a command/);
});

test("with LocalFilesystem, commands work in the same directory of the host", async () => {
  const host = directory();
  const [, listing] = await run(
    [{ tool: WRITE, input: { path: "a.txt", content: "one" } }, { tool: EXECUTE, input: { command: `cat ${join(host, "a.txt")}; echo two > b.txt` } }], {}, host,
  );

  assert.match(listing!, /one/);
  assert.equal(readFileSync(join(host, "b.txt"), "utf8"), "two\n");
});

test("the instructions of the workspace describe the sandbox", async () => {
  const sandbox = new HoltSandbox({ workingDirectory: directory(), net: ["example.org:443"] });
  const workspace = new Workspace({ sandbox });

  assert.match(workspace.getInstructions(), /example\.org:443/);
  await workspace.destroy();
});
