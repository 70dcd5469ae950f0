// SPDX-License-Identifier: Apache-2.0
// A plain MCP server without a sandbox, for tests/bench/drivers: each call of its tool "bash" starts a bash on the host.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(fileURLToPath(new URL("../peers/node_modules/", import.meta.url)));
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = require("zod");

const run = (command) => new Promise((resolve, reject) => {
  const child = spawn("bash", ["-c", command], { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part) => { text += part; });
  child.on("error", reject);
  child.on("close", (code) => resolve({ content: [{ type: "text", text }], isError: code !== 0 }));
});

const server = new McpServer({ name: "bash", version: "1" });
server.registerTool("bash", { description: "Runs a command.", inputSchema: { command: z.string() } }, ({ command }) => run(command));
await server.connect(new StdioServerTransport());
