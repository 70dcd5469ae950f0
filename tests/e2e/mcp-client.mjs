// SPDX-License-Identifier: Apache-2.0
// Runs the official client of the Model Context Protocol against `holt mcp`.
//
//     node mcp-client.mjs MODULES HOLT mcp NAME OPTIONS...
//
// Reads one JSON array a line from stdin: the name of a method of the client, and its arguments. Prints one reply a line.
// If MCP_URL is set, uses HTTP, with the token MCP_TOKEN. If MCP_ROOTS is set, the client has these roots: a JSON array of URIs.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [modules, holt, ...args] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ElicitRequestSchema, ListRootsRequestSchema, ResourceUpdatedNotificationSchema } = require("@modelcontextprotocol/sdk/types.js");

let answer, controller;
const asked = [];
let roots = process.env.MCP_ROOTS && JSON.parse(process.env.MCP_ROOTS);
let rootsAsked = 0;
const capabilities = { elicitation: {}, ...(roots ? { roots: { listChanged: true } } : {}) };
const client = new Client({ name: "test", version: "1" }, { capabilities });
if (roots) {
  client.setRequestHandler(ListRootsRequestSchema, async () => {
    rootsAsked++;
    if (!roots) throw new Error("no roots");
    return { roots: roots.map((uri) => ({ uri, name: uri })) };
  });
}
const updates = [];
let onUpdate = () => {};
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (note) => {
  updates.push(note.params.uri);
  onUpdate();
});
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(request.params.message);
  return answer;
});
const http = process.env.MCP_URL && new StreamableHTTPClientTransport(
  new URL(process.env.MCP_URL), { requestInit: { headers: { Authorization: `Bearer ${process.env.MCP_TOKEN}` } } },
);
await client.connect(http || new StdioClientTransport({ command: holt, args, env: process.env }));

const own = {
  version: async () => client.getServerVersion(),
  answerWith: async (value) => { answer = value; return null; },
  asked: async () => asked,
  rootsAsked: async () => rootsAsked,
  setRoots: async (value) => {
    roots = value;
    await client.sendRootsListChanged();
    return null;
  },
  updated: async () => {
    while (!updates.length) await new Promise((resolve) => { onUpdate = resolve; });
    return updates.splice(0);
  },
  progress: async (call) => {
    const seen = [];
    const result = await client.callTool(call, undefined, { onprogress: (p) => seen.push(p.message) });
    return { seen, result };
  },
  // Cancels a call after its first output.
  cancel: async (call) => {
    controller = new AbortController();
    try {
      await client.callTool(call, undefined, { signal: controller.signal, onprogress: () => controller.abort("enough") });
    } catch (error) {
      return String(error);
    }
    return null;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [method, ...params] = JSON.parse(line);
  let reply;
  try {
    reply = { result: await (own[method] ? own[method](...params) : client[method](...params)) };
  } catch (error) {
    reply = { error: String(error) };
  }
  console.log(JSON.stringify(reply));
}
if (http) {
  await http.terminateSession();
}
await client.close();
