// SPDX-License-Identifier: Apache-2.0
/** Uses of the package that must compile, and mistakes that must not. Nothing runs this file. */
import { Sandbox, tool, type Result, type SandboxOptions, type Tool, type protocol } from "holt";
import { z } from "zod";

export async function uses(): Promise<void> {
  const options: SandboxOptions = { timeout: "5s", policy: { extends: "strict", limits: { pids: 5 } } };
  const add = tool({ name: "add", description: "", inputSchema: z.object({ n: z.number().default(1) }), execute: ({ n }) => n.toFixed() });
  const tools: Tool[] = [add, { name: "any", description: "", inputSchema: { type: "object" }, execute: (payload) => payload.anything }];
  const box = await Sandbox.create({ ...options, tools });
  const done: Result = (await box.exec(["x"])).check();
  const denial: protocol.Denial | undefined = done.denials[0];
  console.log(denial?.whyNot, done.denials[0]?.hint);

  // @ts-expect-error: no such option
  await box.exec(["x"], { timout: 5 });
  // @ts-expect-error: a line of bash is no array
  await box.exec("ls -l");
  // @ts-expect-error: no such tier
  await Sandbox.create({ tier: "huge" });
  // @ts-expect-error: no such field of a policy
  await Sandbox.create({ policy: { limits: { pid: 5 } } });
  // @ts-expect-error: the payload has a number
  tool({ name: "add", description: "", inputSchema: z.object({ n: z.number() }), execute: ({ n }) => n.toUpperCase() });
}
