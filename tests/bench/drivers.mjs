// SPDX-License-Identifier: Apache-2.0
// Measures the drivers that are programs of Node, for tests/bench/drivers. Each driver runs by turns with what it replaces.
//
//     node drivers.mjs PART HOLT RUNS SLOW
//
// PART is "mastra", "mcp" or "typescript". Prints a JSON array of rows: what was measured, and the milliseconds of each turn.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const [part, holt, runs, slow] = process.argv.slice(2);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const contrib = (name) => import(here(`../../contrib/${name}/dist/index.js`));
const WARM_UP = 3;
const MEBIBYTE = 1 << 20;
const PRINT = `head -c ${MEBIBYTE} /dev/zero | tr '\\0' x`;
const BWRAP = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent", "--"];

const take = async (call) => {
  const start = performance.now();
  await call();
  return performance.now() - start;
};

/** Measures two functions by turns, and in turn each of them first. */
const pairs = async (what, against, call, peer, count) => {
  const times = [];
  for (let turn = -WARM_UP; turn < count; turn++) {
    const pair = [];
    for (const which of turn % 2 ? [1, 0] : [0, 1]) pair[which] = await take([call, peer][which]);
    if (turn >= 0) times.push(pair);
  }
  return { what, against, times };
};

const expect = (fact, value) => {
  if (!fact) throw new Error(`not the expected result: ${JSON.stringify(value)?.slice(0, 500)}`);
};

const mastra = async () => {
  const { LocalSandbox } = await import(here("../../contrib/mastra/node_modules/@mastra/core/dist/workspace/index.js"));
  const { HoltSandbox } = await contrib("mastra");
  const makers = {
    holt: () => new HoltSandbox({ workingDirectory: process.cwd(), holt }),
    peer: () => new LocalSandbox({ workingDirectory: process.cwd(), isolation: "bwrap" }),
  };
  const run = async (sandbox, command, bytes) => {
    const result = await sandbox.executeCommand(command);
    expect(result.exitCode === 0 && result.stdout.length === bytes, { ...result, stdout: result.stdout.length });
  };
  const first = async (make) => {
    const sandbox = make();
    await sandbox.start();
    await run(sandbox, "true", 0);
    return sandbox;
  };
  const against = "LocalSandbox, isolation bwrap";
  const made = [];
  const starts = await pairs(
    "HoltSandbox, start to first command", against, async () => made.push(await first(makers.holt)),
    async () => made.push(await first(makers.peer)), Number(slow),
  );
  for (const sandbox of made) await sandbox.destroy();
  const [ours, theirs] = [await first(makers.holt), await first(makers.peer)];
  const rows = [
    await pairs("executeCommand(\"true\")", against, () => run(ours, "true", 0), () => run(theirs, "true", 0), Number(runs)),
    starts,
    await pairs(
      "executeCommand, 1 MiB of output", against, () => run(ours, PRINT, MEBIBYTE), () => run(theirs, PRINT, MEBIBYTE), Number(slow),
    ),
  ];
  await ours.destroy();
  await theirs.destroy();
  return rows;
};

const mcp = async () => {
  const require = createRequire(here("../peers/node_modules/"));
  const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
  const connected = async (command, args) => {
    const client = new Client({ name: "bench", version: "1" });
    await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
    return client;
  };
  const ours = await connected(holt, ["mcp", "drivers-mcp"]);
  const theirs = await connected(process.execPath, [here("drivers-mcp.mjs")]);
  const run = async (client, command, word) => {
    const result = await client.callTool({ name: "bash", arguments: { command } });
    expect(!result.isError && JSON.stringify(result.content).includes(word), result);
  };
  const both = (command, word, what, count) => pairs(
    what, "an MCP server that spawns bash", () => run(ours, command, word), () => run(theirs, command, word), Number(count),
  );
  const rows = [await both("echo done", "done", "MCP tool bash, echo", runs), await both("ls -l /usr/bin", "bash", "MCP tool bash, ls -l /usr/bin", slow)];
  await ours.close();
  await theirs.close();
  return rows;
};

const typescript = async () => {
  const { Sandbox } = await contrib("typescript");
  const box = await Sandbox.create({ holt });
  const spawned = (words) => new Promise((resolve, reject) => {
    const parts = [];
    const child = spawn("bwrap", [...BWRAP, ...words], { stdio: ["ignore", "pipe", "inherit"] });
    child.stdout.on("data", (part) => parts.push(part));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, size: Buffer.concat(parts).length }));
  });
  const print = ["sh", "-c", PRINT];
  const by = {
    box: async (words, size) => {
      const result = await box.exec(words);
      expect(result.exitCode === 0 && result.stdout.length === size, { ...result, stdout: result.stdout.length });
    },
    bwrap: async (words, size) => {
      const result = await spawned(words);
      expect(result.code === 0 && result.size === size, result);
    },
  };
  const both = (what, words, size, count) => pairs(
    what, "child_process.spawn of bwrap", () => by.box(words, size), () => by.bwrap(words, size), Number(count),
  );
  const rows = [await both("TypeScript exec([\"true\"])", ["true"], 0, runs), await both("TypeScript exec, 1 MiB of output", print, MEBIBYTE, slow)];
  await box.close();
  return rows;
};

console.log(JSON.stringify(await { mastra, mcp, typescript }[part]()));
process.exit(0);
