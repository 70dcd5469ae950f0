// SPDX-License-Identifier: Apache-2.0
/** The shortest way through the package: a command, a refusal, and a tool of Mastra. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Workspace, createWorkspaceTools } from "@mastra/core/workspace";
import { HoltSandbox } from "holt-mastra";

test("execute_command of a workspace runs in the sandbox, and says what was refused", async () => {
  const workspace = new Workspace({ sandbox: new HoltSandbox() });
  const tool = (await createWorkspaceTools(workspace)).mastra_workspace_execute_command;
  const result = String(await tool.execute({ command: "id -un; curl -sS https://example.com" }, { workspace }));
  await workspace.destroy();

  assert.match(result, /agent\n[^]*\[holt: no rule allows example\.com; new HoltSandbox\(\{ net: [^]*Exit code: 6$/);
});
