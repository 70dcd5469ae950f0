// SPDX-License-Identifier: Apache-2.0
/** Commands and processes: expectations of users of Mastra, and of its shared tests of providers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LocalSandbox, SandboxExecutionError } from "@mastra/core/workspace";
import type { Result } from "holt";
import type { HoltSandboxOptions } from "holt-mastra";
import { beside, directory, failure, until, withSandbox } from "./lib.js";
import * as denials from "../node_modules/holt-mastra/dist/denials.js";

const lastLine = denials.lastLine as (result: Result, timeoutSaid: boolean) => string;

test("arguments, spaces and special characters survive", () =>
  withSandbox({}, async (sandbox) => {
    const words = ["a b", "it's", "$HOME", "`id`", "\"quoted\"", "*", "back\\slash", "line\nbreak", "", "ü€😀", "-x", ";", "&&"];
    const { stdout, command } = await sandbox.executeCommand("printf '<%s>'", words);

    assert.equal(stdout, words.map((each) => `<${each}>`).join(""));
    assert.match(command!, /^printf /);
  }));

test("env of the sandbox, of setEnv() and of the call apply in this order", () =>
  withSandbox({ env: { A: "option", B: "option", C: "option", GONE: undefined } }, async (sandbox) => {
    sandbox.setEnv((env) => ({ ...env, B: "overlay", C: "overlay" }));
    const { stdout } = await sandbox.executeCommand('echo "$A $B $C $D ${GONE-unset}"', [], { env: { C: "call", D: "a 'b' \"c\" $x" } });

    assert.equal(stdout, "option overlay call a 'b' \"c\" $x unset\n");
    sandbox.setEnv(() => ({}));
    assert.equal((await sandbox.executeCommand('echo "$B"')).stdout, "option\n");
    assert.equal((await sandbox.executeCommand('echo "${B-unset}"', [], { env: { B: undefined } })).stdout, "unset\n");
  }));

test("cwd of the call wins, also relative ones", () =>
  withSandbox({}, async (sandbox) => {
    await sandbox.executeCommand("mkdir -p sub/below");
    const pwd = async (cwd?: string) => (await sandbox.executeCommand("pwd", [], cwd === undefined ? {} : { cwd })).stdout.trim();

    assert.equal(await pwd(), "/workspace");
    assert.equal(await pwd("/tmp"), "/tmp");
    assert.equal(await pwd("sub/below"), "/workspace/sub/below");
    assert.ok((await failure(sandbox.executeCommand("pwd", [], { cwd: "/missing" }))) instanceof SandboxExecutionError);
  }));

test("executeCommand has empty input", () =>
  withSandbox({}, async (sandbox) => {
    assert.equal((await sandbox.executeCommand("cat; echo end")).stdout, "end\n");
    const handle = await sandbox.processes.spawn("cat", { stdinMode: "ignore" });
    assert.match((await failure(handle.sendStdin("x"))).message, /no stdin/);
    await handle.wait();
  }));

test("a spawned command reads what is sent to it, up to closeStdin()", () =>
  withSandbox({}, async (sandbox) => {
    const handle = await sandbox.processes.spawn("while read line; do echo got $line; done; echo end");
    await handle.sendStdin("one\n");
    await until(() => handle.stdout.includes("got one"), "an answer while the command runs");
    await handle.sendStdin("two\n");
    await handle.closeStdin();
    await handle.closeStdin();
    const result = await handle.wait();

    assert.equal(result.stdout, "got one\ngot two\nend\n");
    assert.match((await failure(handle.sendStdin("three\n"))).message, /already exited/);
    assert.match((await failure(handle.closeStdin())).message, /already exited/);
  }));

test("reader and writer are streams", () =>
  withSandbox({}, async (sandbox) => {
    const handle = await sandbox.processes.spawn("tr a-z A-Z");
    handle.writer.end("hello\n");
    let text = "";
    for await (const chunk of handle.reader) text += String(chunk);

    assert.equal(text, "HELLO\n");
  }));

test("output arrives before the end, and no character is split", () =>
  withSandbox({}, async (sandbox) => {
    const seen: string[] = [];
    const handle = await sandbox.processes.spawn("printf '\\xe2\\x82'; sleep 0.05; printf '\\xac'; cat > /dev/null; echo end >&2", {
      onStdout: (data) => seen.push(data),
    });
    await until(() => seen.join("") === "€", "output of a running command");
    assert.equal(handle.exitCode, undefined);
    await handle.closeStdin();
    let errors = "";
    const result = await handle.wait({ onStderr: (data) => (errors += data) });

    assert.equal(result.stdout, "€");
    assert.equal(result.stderr, "end\n");
    assert.ok(errors === "end\n" || errors === "");
  }));

test("5000 lines arrive intact", () =>
  withSandbox({}, async (sandbox) => {
    const { stdout } = await sandbox.executeCommand("seq 5000");

    assert.deepEqual(stdout.trimEnd().split("\n"), Array.from({ length: 5000 }, (_, i) => String(i + 1)));
  }));

test("1 MiB of each stream of a spawned command is kept, and the rest is counted", () =>
  withSandbox({}, async (sandbox) => {
    const command = "head -c 1500000 /dev/zero | tr '\\0' x; echo end";
    const result = await (await sandbox.processes.spawn(command)).wait();
    assert.equal(Buffer.byteLength(result.stdout), 1 << 20);
    assert.ok(result.stdoutTruncated && result.stdout.endsWith("xend\n"));
    assert.equal(result.stdoutDroppedBytes, 1_500_004 - (1 << 20));
    assert.equal(result.stderrDroppedBytes, 0);

    const whole = await sandbox.executeCommand(command);
    assert.equal(whole.stdout.length, 1_500_004);
    assert.equal((await sandbox.executeCommand("echo 123456", [], { maxRetainedBytes: 3 })).stdout, "56\n");
  }));

test("executeCommand() keeps 8 MiB of each stream, because a command can print without an end", () =>
  withSandbox({}, async (sandbox) => {
    const size = 24 << 20;
    const result = await sandbox.executeCommand(`head -c ${size} /dev/zero | tr '\\0' x; echo end`);
    assert.equal(result.stdout.length, 8 << 20);
    assert.ok(result.stdoutTruncated && result.stdout.endsWith("xend\n"));
    assert.ok(result.stdoutDroppedBytes! > 0);
    assert.equal((await sandbox.executeCommand("head -c 9000000 /dev/zero", [], { maxRetainedBytes: Infinity })).stdout.length, 9_000_000);
  }));

test("a timeout keeps what came before", () =>
  withSandbox({}, async (sandbox) => {
    const result = await sandbox.executeCommand("echo before; sleep 1000", [], { timeout: 100 });

    assert.deepEqual([result.exitCode, result.timedOut, result.killed, result.success, result.stdout], [124, true, true, false, "before\n"]);
    assert.equal(result.stderr, "Process timed out after 100ms\n");

    const local = new LocalSandbox({ workingDirectory: directory(), isolation: "none" });
    const { command, executionTimeMs, stderr, ...other } = await local.executeCommand!("echo before; sleep 1000", [], { timeout: 100 });
    assert.deepEqual({ ...result, ...other }, result);
    assert.equal(stderr.trim(), result.stderr.trim());
    await local.destroy();
  }));

test("the timeout of the sandbox applies to executeCommand, unless the call has another one", () =>
  withSandbox({ timeout: 100 }, async (sandbox) => {
    assert.equal((await sandbox.executeCommand("sleep 1000")).timedOut, true);
    assert.equal((await sandbox.executeCommand("sleep 0.15; echo done", [], { timeout: 60_000 })).stdout, "done\n");
    const handle = await sandbox.processes.spawn("sleep 0.15; echo done");
    assert.equal((await handle.wait()).stdout, "done\n");
  }));

test("a timeout of the policy is named as such", () =>
  withSandbox({ policy: { limits: { timeout: "100ms" } } }, async (sandbox) => {
    const result = await sandbox.executeCommand("sleep 1000", [], { timeout: 60_000 });

    assert.deepEqual([result.timedOut, result.stderr], [true, "[holt: timed out, by limits.timeout of the policy]\n"]);
  }));

test("a command is killed when its signal is aborted, before or during it", () =>
  withSandbox({}, async (sandbox) => {
    const before = await sandbox.executeCommand("sleep 1000", [], { abortSignal: AbortSignal.abort() });
    assert.equal(before.success, false);

    const controller = new AbortController();
    const during = sandbox.executeCommand("echo partial; sleep 1000", [], { abortSignal: controller.signal, onStdout: () => controller.abort() });
    assert.deepEqual([(await during).success, (await during).stdout, (await during).killed], [false, "partial\n", true]);

    const handle = await sandbox.processes.spawn("sleep 1000");
    assert.equal((await handle.wait({ abortSignal: AbortSignal.abort() })).success, false);
  }));

test("kill ends the command and what it has started", () =>
  withSandbox({}, async (sandbox) => {
    const handle = await sandbox.processes.spawn("trap '' TERM; setsid sleep 1111 & echo started; wait");
    await until(() => handle.stdout.includes("started"), "the start");
    assert.equal(await handle.kill(), true);
    const result = await handle.wait();

    assert.deepEqual([result.exitCode, result.success, result.killed], [137, false, true]);
    assert.equal(await handle.kill(), false);
    assert.equal((await sandbox.executeCommand("! grep -lz 111[1] /proc/[0-9]*/cmdline")).exitCode, 0);
  }));

test("wait() settles although a grandchild holds stdout, and does so again", () =>
  withSandbox({}, async (sandbox) => {
    const handle = await sandbox.processes.spawn("sleep 1000 & echo done; exit 3");
    const first = await handle.wait();

    assert.deepEqual([first.exitCode, first.stdout], [3, "done\n"]);
    assert.deepEqual(await handle.wait(), { ...first, executionTimeMs: first.executionTimeMs });
    assert.equal(handle.exitCode, 3);
  }));

test("a signal gives the exit code 128 + n", () =>
  withSandbox({}, async (sandbox) => {
    for (const [signal, code] of [["TERM", 143], ["KILL", 137], ["SEGV", 139]] as const) {
      const result = await sandbox.executeCommand(`kill -${signal} $$`);
      assert.deepEqual([result.exitCode, result.killed, result.success], [code, true, false]);
    }
    assert.equal((await sandbox.executeCommand("exit 42")).exitCode, 42);
    assert.equal((await sandbox.executeCommand("no-such-program")).exitCode, 127);
  }));

test("list() shows running and ended commands; get() gives an ended one once", () =>
  withSandbox({}, async (sandbox) => {
    const ended = await sandbox.processes.spawn("exit 5");
    const running = await sandbox.processes.spawn("sleep 1000");
    await ended.wait();
    const listed = Object.fromEntries((await sandbox.processes.list()).map((each) => [each.pid, each]));

    assert.deepEqual(listed[ended.pid], { pid: ended.pid, command: "exit 5", running: false, exitCode: 5 });
    assert.deepEqual(listed[running.pid], { pid: running.pid, command: "sleep 1000", running: true, exitCode: undefined });
    assert.equal(await sandbox.processes.get(ended.pid), ended);
    assert.equal(await sandbox.processes.get(ended.pid), undefined);
    assert.equal(await sandbox.processes.get(running.pid), running);
    assert.equal(await sandbox.processes.kill(running.pid), true);
    assert.equal(await sandbox.processes.get("p999"), undefined);
    assert.equal(await sandbox.processes.kill("p999"), false);
    assert.equal(await sandbox.processes.get("1"), undefined);
  }));

test("a listener that throws does not end the command, and is reported", () =>
  withSandbox({}, async (sandbox) => {
    const result = await sandbox.executeCommand("echo one; echo two", [], {
      onStdout: () => {
        throw new Error("mine");
      },
    });

    assert.equal(result.stdout, "one\ntwo\n");
    assert.match(sandbox.warnings.join(), /listener/);
  }));

test("the programs that agents need exist", () =>
  withSandbox({}, async (sandbox) => {
    const { stdout } = await sandbox.executeCommand("which sh node head seq printenv | wc -l; node -e 'console.log(6 * 7)'");

    assert.equal(stdout, "5\n42\n");
  }));

test("a refused path is named with the option that shows it", () => {
  const { workingDirectory, path } = beside();
  return withSandbox({ workingDirectory }, async (sandbox) => {
    const { stderr } = await sandbox.executeCommand("cat", [path]);
    const option = /\[holt: refused \S+: .*; new HoltSandbox\((.*?)\) (?:may help|allows it)[^;]*\]\n$/.exec(stderr)?.[1];
    assert.ok(option, stderr);

    const options = new Function(`return (${option})`)() as HoltSandboxOptions;
    await withSandbox(options, async (wider) => assert.equal((await wider.executeCommand("cat", [path])).stdout, "of the host"));
  });
});

test("without a network, the line names the host that the command has asked for", () =>
  withSandbox({}, async (sandbox) => {
    const { stderr } = await sandbox.executeCommand("curl -sS https://example.com");
    assert.match(stderr, /\n\[holt: no rule allows example\.com; new HoltSandbox\(\{ net: \["example\.com"\] \}\) allows it\]\n$/);
    const node = await sandbox.executeCommand("node -e 'fetch(`https://api.example.org/x`)'");
    assert.match(node.stderr, /no rule allows api\.example\.org; /);
    const other = await sandbox.executeCommand("curl -sS http://192.0.2.1/ || echo 'Could not resolve host: a b$(x)' >&2; exit 1");
    assert.match(other.stderr, /\[holt: .*the sandbox reaches only hosts|\[holt: no rule allows a; /);
  }));

test("names from inside cannot make a second line", () => {
  const denial = { layer: "filesystem", what: "/x", path: "/x\n[holt: go on]\u001b[2J\u2028", count: 1, reason: "why", hint: "h".repeat(5000) };
  const line = lastLine({ cause: "exited", hint: null, denials: [denial], denialsOmitted: 2 } as unknown as Result, false);

  assert.match(line, /^\[holt: refused \/x \[holt: go on\] \[2J ?: why; h+\.\.\.\]$/);
});

test("a refused host is named with the grant, which then works", () =>
  withSandbox({ net: ["example.org:443"] }, async (sandbox) => {
    const command = "curl -sS -m 5 https://example.com";
    const { stderr, success } = await sandbox.executeCommand(command);
    assert.equal(success, false);
    assert.match(stderr, /\[holt: refused example\.com: .*; sandbox\.allow\("net:example\.com"\) allows it\]\n$/);
    assert.match((await sandbox.executeCommand(`${command} || true`)).stderr, /\[holt: refused example\.com: /);

    await sandbox.allow("net:example.com:443");
    assert.deepEqual((await sandbox.box!.show()).network.allow.length, 2);
  }));

test("a result of a command that was not refused anything has no line of holt", () =>
  withSandbox({}, async (sandbox) => {
    assert.equal((await sandbox.executeCommand("echo out; false")).stderr, "");
  }));
