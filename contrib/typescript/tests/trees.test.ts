// SPDX-License-Identifier: Apache-2.0
/** Directories that are copied between the host and a sandbox, also where a command has planted symlinks. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, realpathSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ExistsError, LimitError, MissingError, UsageError } from "holt";
import { linkStays, pathText } from "../node_modules/holt/dist/trees.js";
import { descriptors, failure, withBox } from "./lib.js";

/** Returns a new directory of the host. */
function directory(): string {
  return mkdtempSync(join(realpathSync(tmpdir()), "trees-"));
}

/** Returns a directory with entries of every kind. */
function tree(): string {
  const top = join(directory(), "project");
  mkdirSync(join(top, "src", "empty"), { recursive: true });
  writeFileSync(join(top, "run"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
  writeFileSync(join(top, "src", "large"), Buffer.alloc(1_000_001, "0123456789"));
  writeFileSync(join(top, "src", "nothing"), "");
  writeFileSync(Buffer.concat([Buffer.from(`${top}/odd-`), Buffer.from([0xff])]), "odd");
  for (const [name, target] of [["stays", "src/large"], ["src/up", "../run"], ["leaves", "../outside"], ["src/round", "empty/../../../x"], ["absolute", "/etc/passwd"]] as const)
    symlinkSync(target, join(top, name));
  execFileSync("mkfifo", [join(top, "fifo")]);
  chmodSync(join(top, "src"), 0o750);
  return top;
}

const LEFT_OUT = ["absolute", "fifo", "leaves", "src/round"];

test("a directory goes in and out", () =>
  withBox({}, async ({ files }) => {
    const before = descriptors();
    const top = tree();
    const copied = await files.upload(top);
    assert.deepEqual([copied.path, copied.entries, [...copied.leftOut].sort()], ["project", 8, LEFT_OUT]);
    assert.deepEqual((await files.list(".")).map(({ name }) => name), ["project"]);
    assert.equal((await files.stat("project/src")).mode, 0o750);
    assert.equal(await files.read("project/stays"), "0123456789".repeat(100_001).slice(0, 1_000_001));

    const target = join(directory(), "new", "back");
    const back = await files.download("project", target);
    assert.deepEqual([back.path, back.entries, back.leftOut], [target, 8, []]);
    assert.equal(execFileSync("diff", ["-r", "--no-dereference", join(top, "src", "large"), join(target, "src", "large")], { encoding: "utf8" }), "");
    assert.deepEqual(readdirSync(target, { encoding: "buffer" }).map(String).sort(), ["odd-\ufffd", "run", "src", "stays"]);
    assert.deepEqual([readlinkSync(join(target, "src/up")), statSync(join(target, "run")).mode & 0o777, statSync(join(target, "src")).mode & 0o777], ["../run", 0o755, 0o750]);
    assert.deepEqual(readdirSync(join(target, "..")), ["back"]);
    assert.equal(descriptors(), before);
  }));

test("a copy does not merge directories", () =>
  withBox({}, async ({ files }) => {
    const top = tree();
    await files.mkdir("there");
    assert.ok((await failure(files.upload(top, "there"))) instanceof ExistsError);
    assert.ok((await failure(files.download("there", top))) instanceof ExistsError);
    assert.ok((await failure(files.upload("/missing/directory"))) instanceof MissingError);
    assert.ok((await failure(files.download("missing", join(directory(), "x")))) instanceof MissingError);
    assert.ok((await failure(files.download("/"))) instanceof UsageError);
    assert.ok((await failure(files.upload("/dev/null", "null"))) instanceof UsageError);
    assert.deepEqual((await files.list()).map(({ name }) => name), ["there"]);
    await files.upload(top, "deep/below/");
    assert.equal((await files.stat("deep/below/run")).mode, 0o755);
  }));

test("a single file goes in and out", () =>
  withBox({}, async ({ files }) => {
    const host = directory();
    writeFileSync(join(host, "large"), Buffer.alloc(900_000, "x"), { mode: 0o640 });
    assert.deepEqual(await files.upload(join(host, "large"), "a/b"), { path: "a/b", entries: 1, leftOut: [] });
    assert.deepEqual([(await files.stat("a/b")).size, (await files.stat("a/b")).mode], [900_000, 0o640]);
    assert.deepEqual(await files.download("a/b", join(host, "c/d")), { path: join(host, "c/d"), entries: 1, leftOut: [] });
    assert.equal((await files.download("a/b", host)).path, join(host, "b")); // into the directory
    await files.write("a/b", "short");
    await files.download("a/b", join(host, "b"));
    assert.equal(readFileSync(join(host, "b"), "utf8"), "short");
    assert.deepEqual(readdirSync(host).sort(), ["b", "c", "large"]);
  }));

test("a huge file of code inside does not fill the disk", () =>
  withBox({}, async ({ files }) => {
    const host = directory();
    await files.mkdir("d");
    await files.write("d/f", "begin");
    await files.write("d/make", "");
    assert.ok((await failure(files.download("d", join(host, "none"), { maxBytes: 4 }))) instanceof LimitError);
    assert.ok((await failure(files.download("d/f", join(host, "none"), { maxBytes: 4 }))) instanceof LimitError);
    assert.ok((await failure(files.download("d", join(host, "none"), { limit: 1 }))) instanceof LimitError);
    assert.deepEqual(readdirSync(host), []);
  }));

test("a sparse file stays sparse", () =>
  withBox({}, async (box) => {
    const host = directory();
    (await box.bash("mkdir d; truncate -s 20M d/holes; printf end | dd of=d/holes bs=1 seek=20000000 conv=notrunc status=none")).check();
    await box.files.download("d", join(host, "d"));
    const { size, blocks } = statSync(join(host, "d/holes"));
    assert.ok(size === 20 << 20 && blocks * 512 < 2 << 20, `${size} ${blocks}`);
    assert.equal(readFileSync(join(host, "d/holes")).subarray(20_000_000, 20_000_003).toString(), "end");
  }));

test("symlinks that a command has planted are not followed", async () => {
  const [workspace, outside] = [directory(), directory()];
  chmodSync(workspace, 0o777);
  writeFileSync(join(outside, "secret"), "of the host");
  await withBox({ workspace }, async (box) => {
    (await box.bash(`ln -s ${outside} way; ln -s ${outside}/secret file; mkdir tree; ln -s ${outside} tree/way; ln -s ${outside}/secret tree/file; echo mine > tree/own; ln -s / root`)).check();
    const { files } = box;
    const refused = /is a symlink in a directory that the session can write/;
    for (const source of ["way", "file", "way/secret", "root/etc/passwd", "tree/way"]) assert.match((await failure(files.upload(join(workspace, source), "in"))).message, refused, source);
    for (const target of ["way", "way/new", "file", "tree/file", "root/tmp/x"]) {
      assert.match((await failure(files.download("tree/own", join(workspace, target)))).message, refused, target);
      assert.match((await failure(files.download("tree", join(workspace, target)))).message, refused, target);
    }
    assert.deepEqual([...(await files.upload(join(workspace, "tree"), "copy")).leftOut], ["file", "way"]);
    assert.equal(await files.exists("copy/file"), false);
    assert.match((await failure(files.upload(workspace, "whole"))).message, /into itself/);
    symlinkSync(workspace, join(outside, "round"));
    assert.match((await failure(files.download("tree", join(outside, "round", "way", "x")))).message, refused); // a link of the host leads there
    assert.ok((await files.download("tree", join(outside, "round", "fine"))).entries === 1);
    assert.deepEqual([readdirSync(outside).sort(), readFileSync(join(outside, "secret"), "utf8")], [["round", "secret"], "of the host"]);
    assert.ok(lstatSync(join(workspace, "file")).isSymbolicLink());
    assert.deepEqual(readdirSync(workspace).filter((name) => name.startsWith(".holt-")), []);
  });
});

test("an abort leaves nothing behind", () =>
  withBox({}, async ({ files }) => {
    const top = tree();
    await files.upload(top);
    for (let after = 0; after < 12; after += 1) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), after);
      const host = directory();
      const outcomes = await Promise.allSettled([files.upload(top, "other", { signal: controller.signal }), files.download("project", join(host, "d"), { signal: controller.signal })]);
      for (const each of outcomes) if (each.status === "rejected") assert.equal((each.reason as Error).name, "AbortError");
      assert.deepEqual(readdirSync(host), outcomes[1]!.status === "rejected" ? [] : ["d"]);
      await files.exists("."); // the request that removes is before this one
      if (outcomes[0]!.status === "fulfilled") await files.remove("other", { recursive: true });
    }
    const left = async () => (await files.list()).map(({ name }) => name);
    const deadline = performance.now() + 10_000;
    while ((await left()).length > 1 && performance.now() < deadline);
    assert.deepEqual(await left(), ["project"]);
  }));

test("links and names", () => {
  for (const [path, target, stays] of [
    ["a", "b", true], ["a", "..", false], ["d/a", "../b", true], ["d/a", "../../b", false], ["d/a", "x/../y", false], ["a", "/b", false], ["a", "", false], ["d/e/a", "../../b/./c", true],
  ] as const)
    assert.equal(linkStays(Buffer.from(path), Buffer.from(target)), stays, `${path} ${target}`);
  assert.equal(pathText(Buffer.from("ü")), "ü");
  assert.equal(pathText(Buffer.from([0xff])), "\x01/w==");
  assert.equal(pathText(Buffer.from("\x01a")), `\x01${Buffer.from("\x01a").toString("base64")}`);
});
