// SPDX-License-Identifier: Apache-2.0
/** Tools: functions of this program that code inside calls. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ExistsError, Sandbox, Server, ToolError, UsageError, tool, type Tool } from "holt";
import { z } from "zod";
import { children, failure, until, withBox } from "./lib.js";

const price = tool({
  name: "price",
  description: "The price of an item.",
  inputSchema: { type: "object", properties: { item: { type: "string" } }, required: ["item"], additionalProperties: false },
  execute({ item }) {
    if (item === "gold") throw new ToolError("not for sale", "permission_error");
    if (item === "bug") throw new Error("a bug\0");
    return { item, price: 3.5 };
  },
});

function call(box: Sandbox, name: string, payload: string): Promise<string | null> {
  return box.python(`from host_tools import call\ntry:\n  done = call(${JSON.stringify(name)}, ${payload})\nexcept Exception as error:\n  done = f"{type(error).__name__}: {error}"\ndone`)
    .then((done) => done.check().result);
}

test("a tool with a JSON Schema", () =>
  withBox({ tools: [price] }, async (box) => {
    assert.equal(JSON.parse((await box.bash(`holt-tool price '{"item": "tea"}'`)).check().stdout).price, 3.5);
    assert.equal(await call(box, "price", "{'item': 'tea'}"), "{'item': 'tea', 'price': 3.5}");
    assert.match((await call(box, "price", "{'item': 5}"))!, /\[validation_error\]/);
    assert.match((await call(box, "price", "{}"))!, /\[validation_error\]/);
    assert.match((await call(box, "price", "{'item': 'gold'}"))!, /\[permission_error\] not for sale/);
    assert.match((await call(box, "price", "{'item': 'bug'}"))!, /\[internal_error\] a bug/);
  }));

test("a tool with a schema of zod gets its output, with the inferred type", () => {
  const forecast = tool({
    name: "forecast",
    description: "The forecast for a city.",
    inputSchema: z.object({ city: z.string().min(2), days: z.number().int().max(14).default(3), at: z.string().transform((text) => text.length).optional() }),
    outputSchema: z.array(z.number()),
    execute: async ({ city, days, at }) => {
      const typed: [string, number, number | undefined] = [city, days, at];
      return typed[0] === "wrong" ? "no list" : Array.from({ length: days }, () => at ?? 21.5);
    },
  });
  return withBox({ tools: [forecast] }, async (box) => {
    assert.equal(await call(box, "forecast", "{'city': 'Oslo'}"), "[21.5, 21.5, 21.5]");
    assert.equal(await call(box, "forecast", "{'city': 'Oslo', 'days': 1, 'at': 'abcd'}"), "[4]");
    assert.match((await call(box, "forecast", "{'city': 'O'}"))!, /\[validation_error\]/);
    assert.match((await call(box, "forecast", "{'city': 'wrong'}"))!, /\[validation_error\] result/);
  });
});

test("zod checks what a JSON Schema cannot say", () => {
  const even = tool({ name: "even", description: "", inputSchema: z.object({ n: z.number().refine((n) => n % 2 === 0, "must be even") }), execute: ({ n }) => n });
  return withBox({ tools: [even] }, async (box) => {
    assert.equal(await call(box, "even", "{'n': 2}"), "2");
    assert.match((await call(box, "even", "{'n': 3}"))!, /\[validation_error\] n: must be even/);
  });
});

test("a result that JSON does not have is an error of the call alone", () => {
  const values: Record<string, unknown> = { nan: NaN, big: 2 ** 60, bigint: 1n, nul: "\0", long: "x".repeat(2 << 20), half: "\ud800", nothing: undefined };
  const odd: Tool = { name: "odd", description: "", inputSchema: { type: "object" }, execute: ({ of }: { of: string }) => values[of] };
  return withBox({ tools: [odd] }, async (box) => {
    for (const of of Object.keys(values).filter((name) => name !== "nothing")) assert.match((await call(box, "odd", `{'of': '${of}'}`))!, /\[internal_error\]/, of);
    assert.equal(await call(box, "odd", "{'of': 'nothing'}"), null);
  });
});

test("payloads of code inside are data, whatever their names", () => {
  const echo: Tool = { name: "echo", description: "", inputSchema: { type: "object" }, execute: (payload) => Object.entries(payload) };
  return withBox({ tools: [echo] }, async (box) => {
    assert.equal(await call(box, "echo", "{'__proto__': {'polluted': 1}, 'snake_case': 2}"), "[['__proto__', {'polluted': 1}], ['snake_case', 2]]");
    assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
  });
});

test("a call whose caller has gone is aborted", () => {
  let aborted = 0;
  const wait = tool({
    name: "wait", description: "", inputSchema: { type: "object" },
    execute: (_, { signal, session, exec }) => new Promise((_, reject) => signal.addEventListener("abort", () => {
      aborted++;
      reject(new Error(`${session} ${exec}`));
    })),
  });
  return withBox({ tools: [wait] }, async (box) => {
    assert.equal((await box.bash("holt-tool wait '{}'", { timeout: 300 })).cause, "timeout");
    await until(() => aborted === 1, "the signal is aborted");
  });
});

test("code inside cannot make a tool run any number of times by hanging up", () => {
  let count = 0;
  let release = (): void => {};
  const released = new Promise<string>((resolve) => (release = () => resolve("done")));
  const deaf: Tool = { name: "deaf", description: "", inputSchema: { type: "object" }, execute: () => (count++, released) };
  return withBox({ tools: [deaf] }, async (box) => {
    for (let round = 0; round < 7; round++) {
      const expected = Math.min(256, count + 50);
      const callers = await box.spawn("for i in $(seq 50); do holt-tool deaf '{}' & done; wait");
      await until(() => count >= expected, `${expected} functions run`);
      await callers.kill();
    }
    assert.match((await call(box, "deaf", "{}"))!, /\[internal_error\] 256 calls of tools run already/);
    assert.equal(count, 256);
    release();
    assert.equal(await call(box, "deaf", "{}"), "'done'");
  });
});

test("a thrown value that the payload has shaped does not end this program", () => {
  const odd: Tool = {
    name: "odd", description: "", inputSchema: { type: "object" },
    execute: (payload) => {
      if (payload.how === "value") throw payload;
      if (payload.how === "symbol") throw Symbol("odd");
      throw Object.assign(new Error(), payload);
    },
  };
  return withBox({ tools: [odd] }, async (box) => {
    for (const how of ["value", "symbol", "error"])
      for (const message of ["5", "None", "{'toString': 1, 'valueOf': 1}", "['x']"])
        assert.match((await call(box, "odd", `{'how': '${how}', 'toString': 1, 'valueOf': 1, 'message': ${message}}`))!, /\[internal_error\]/, how + message);
  });
});

test("a call is aborted when its server is closed", async () => {
  let aborted = 0;
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const wait: Tool = {
    name: "wait", description: "", inputSchema: { type: "object" },
    execute: (_, { signal }) => new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => (aborted++, resolve()));
      begin();
    }),
  };
  const box = await Sandbox.create({ name: "left", tools: [wait] }); // a lasting session, whose processes continue
  const run = box.bash("holt-tool wait '{}'").catch(() => {});
  await begun;
  await box.close();
  await until(() => aborted === 1, "the signal is aborted");
  await run;
  await using again = await Sandbox.open("left");
  await again.remove();
});

test("a tool can use its own sandbox, and many calls run at once", () => {
  const nested: Tool = { name: "nested", description: "", inputSchema: { type: "object" }, execute: async () => (await box!.exec(["echo", "deep"])).stdout };
  let box: Sandbox | undefined;
  return withBox({ tools: [nested] }, async (made) => {
    box = made;
    const done = await made.bash("for i in $(seq 20); do holt-tool nested '{}' & done; wait");
    assert.equal(done.stdout.match(/deep/g)?.length, 20, done.stderr);
  });
});

test("tools can be added, chosen, replaced and removed", () =>
  withBox({}, async (box) => {
    await box.addTool(price);
    await box.addTool({ ...price, execute: () => 4 });
    assert.equal(await call(box, "price", "{'item': 'tea'}"), "4");
    assert.match((await box.bash(`holt-tool price '{"item": "tea"}'`, { tools: [] })).stderr, /price/);
    await box.removeTool("price");
    assert.match((await call(box, "price", "{'item': 'tea'}"))!, /^"?'?\w+Error/);
    assert.ok((await failure(box.addTool({ ...price, inputSchema: z.string().pipe(z.any()) && ({ "~standard": { version: 1, vendor: "odd", validate: () => ({ value: 1 }) } } as never) }))) instanceof UsageError);
    assert.ok((await failure(box.addTool({ ...price, inputSchema: { type: "no-type" } }))).message);
  }));

test("one program offers a tool of a name, and gives it up by close()", async () => {
  await using server = new Server();
  await using first = await Sandbox.create({ name: "tools", server, tools: [price] });
  try {
    const other = new Server();
    assert.ok((await failure(Sandbox.create({ name: "tools", server: other, tools: [price] }))) instanceof ExistsError);
    await first.close();
    const second = await Sandbox.create({ name: "tools", server: other, tools: [price] });
    assert.equal(await call(second, "price", "{'item': 'tea'}"), "{'item': 'tea', 'price': 3.5}");
    await second.remove();
    await second.close();
    await other.close();
  } finally {
    assert.equal(children().filter((each) => each.includes("serve")).length, 1);
  }
  await pause(0);
});
