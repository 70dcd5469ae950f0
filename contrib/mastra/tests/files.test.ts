// SPDX-License-Identifier: Apache-2.0
/** HoltFilesystem: the files of a sandbox as a filesystem of Mastra. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DirectoryNotEmptyError, DirectoryNotFoundError, FileExistsError, FileNotFoundError, IsDirectoryError, NotDirectoryError, PermissionError,
  StaleFileError, UnsupportedGrepPatternError, WorkspaceReadOnlyError,
} from "@mastra/core/workspace";
import { HoltFilesystem, type HoltSandbox } from "holt-mastra";
import { failure, withSandbox } from "./lib.js";

function withFiles(act: (files: HoltFilesystem, sandbox: HoltSandbox) => Promise<void>): Promise<void> {
  return withSandbox({}, (sandbox) => act(new HoltFilesystem({ sandbox }), sandbox));
}

test("files are written, read, appended to, copied, moved and deleted", () =>
  withFiles(async (files, sandbox) => {
    await files.writeFile("a/b.txt", "one\n");
    await files.appendFile("a/b.txt", Buffer.from("two\n"));
    await files.appendFile("new/c.txt", "three");
    assert.equal(await files.readFile("/workspace/a/b.txt", { encoding: "utf8" }), "one\ntwo\n");
    assert.deepEqual(await files.readFile("new/c.txt"), Buffer.from("three"));

    await files.copyFile("a/b.txt", "copies/b.txt");
    await files.moveFile("new/c.txt", "copies/c.txt");
    assert.deepEqual((await files.readdir("copies")).map(({ name, type }) => `${type} ${name}`), ["file b.txt", "file c.txt"]);
    await files.deleteFile("a/b.txt");
    assert.deepEqual([await files.exists("a/b.txt"), await files.exists("new/c.txt"), await files.exists("copies/c.txt")], [false, false, true]);
    assert.equal((await sandbox.executeCommand("cat copies/b.txt")).stdout, "one\ntwo\n");
  }));

test("errors are those of Mastra", () =>
  withFiles(async (files) => {
    await files.writeFile("d/f", "x");
    await files.copyFile("d/f", "d/f2");
    const expected = [
      [() => files.readFile("none"), FileNotFoundError],
      [() => files.readFile("d"), IsDirectoryError],
      [() => files.stat("none"), FileNotFoundError],
      [() => files.writeFile("d/f", "y", { overwrite: false }), FileExistsError],
      [() => files.writeFile("no/f", "y", { recursive: false }), DirectoryNotFoundError],
      [() => files.writeFile("d/f", "y", { expectedMtime: new Date(0) }), StaleFileError],
      [() => files.deleteFile("none"), FileNotFoundError],
      [() => files.deleteFile("d"), IsDirectoryError],
      [() => files.copyFile("none", "x"), FileNotFoundError],
      [() => files.copyFile("d/f", "d/f2", { overwrite: false }), FileExistsError],
      [() => files.moveFile("d/f", "d/f2", { overwrite: false }), FileExistsError],
      [() => files.mkdir("d/f"), FileExistsError],
      [() => files.rmdir("none"), DirectoryNotFoundError],
      [() => files.rmdir("d"), DirectoryNotEmptyError],
      [() => files.rmdir("d/f"), NotDirectoryError],
      [() => files.readdir("none"), DirectoryNotFoundError],
      [() => files.readdir("d/f"), NotDirectoryError],
      [() => files.writeFile("/usr/x", ""), PermissionError],
      [() => files.realpath("none"), FileNotFoundError],
    ] as const;
    for (const [call, kind] of expected) {
      const error = await failure(call());
      assert.ok(error instanceof kind, `${String(call)}: ${kind.name}, not ${error.name}: ${error.message}`);
    }
    await files.deleteFile("none", { force: true });
    await files.rmdir("none", { force: true });
    await files.mkdir("d");
    await files.rmdir("d", { recursive: true });
    assert.equal(await files.exists("d"), false);
    const { modifiedAt } = (await files.writeFile("s", "1"), await files.stat("s"));
    await files.writeFile("s", "2", { expectedMtime: modifiedAt });
    assert.equal(await files.readFile("s", { encoding: "utf8" }), "2");
  }));

test("directories are listed", () =>
  withFiles(async (files, sandbox) => {
    await sandbox.executeCommand("mkdir -p src/deep .git && echo 12345 > src/a.ts && echo > src/deep/b.py && echo > .git/x && ln -s a.ts src/link");
    const names = async (path: string, options?: object) => (await files.readdir(path, options)).map(({ name }) => name);

    assert.deepEqual(await files.readdir("src"), [
      { name: "a.ts", type: "file", size: 6 }, { name: "deep", type: "directory" }, { name: "link", type: "file", size: 4, isSymlink: true, symlinkTarget: "a.ts" },
    ]);
    assert.deepEqual(await names(".", { recursive: true, maxDepth: 2, extension: "ts" }), [".git", "src", "src/a.ts", "src/deep"]);
    assert.deepEqual((await files.walk(".")).map(({ path }) => path), ["src", "src/a.ts", "src/deep", "src/deep/b.py", "src/link"]);
    assert.deepEqual((await files.walk(".", { maxDepth: 1, includeHidden: true })).map(({ path, name }) => [path, name]), [[".git", ".git"], ["src", "src"]]);
    assert.equal(await files.realpath("src/link"), "/workspace/src/a.ts");
    const stat = await files.stat("src/a.ts");
    assert.deepEqual([stat.name, stat.path, stat.type, stat.size], ["a.ts", "/workspace/src/a.ts", "file", 6]);
    assert.ok(Math.abs(stat.modifiedAt.getTime() - Date.now()) < 600_000);
  }));

test("content is searched", () =>
  withFiles(async (files) => {
    await files.writeFile("a.txt", "ü Needle here\nnothing\nneedle again\n");
    await files.writeFile("sub/b.txt", "needle\n");
    await files.writeFile(".hidden/c.txt", "needle\n");
    const grep = (options: object) => files.grep({ pattern: "needle", path: ".", caseSensitive: true, includeHidden: false, ...options });

    assert.deepEqual(await grep({ caseSensitive: false }), [
      { path: "a.txt", matches: [{ line: 1, column: 2, text: "ü Needle here" }, { line: 3, column: 0, text: "needle again" }] },
      { path: "sub/b.txt", matches: [{ line: 1, column: 0, text: "needle" }] },
    ]);
    assert.deepEqual((await grep({ includeHidden: true })).map(({ path }) => path).sort(), [".hidden/c.txt", "a.txt", "sub/b.txt"]);
    assert.deepEqual((await grep({ path: "a.txt" })).map(({ path, matches }) => [path, matches.length]), [["a.txt", 1]]);
    assert.deepEqual((await grep({ path: ".hidden/c.txt" })).map(({ path }) => path), ["c.txt"]);
    assert.equal((await grep({ maxTotalMatches: 1, caseSensitive: false })).flatMap(({ matches }) => matches).length, 1);
    for (const pattern of ["\\d+", "a+?", "(?=x)", "[\\w]", "^x$", "{"]) assert.ok((await failure(grep({ pattern }))) instanceof UnsupportedGrepPatternError);
  }));

test("a read-only filesystem refuses all changes, and reads", () =>
  withSandbox({}, async (sandbox) => {
    await sandbox.executeCommand("echo kept > f");
    const files = new HoltFilesystem({ sandbox, readOnly: true });
    const changes = [
      () => files.writeFile("f", ""), () => files.appendFile("f", ""), () => files.deleteFile("f"), () => files.moveFile("f", "g"),
      () => files.copyFile("f", "g"), () => files.mkdir("d"), () => files.rmdir("d"),
    ];
    for (const each of changes) assert.ok((await failure(each())) instanceof WorkspaceReadOnlyError, String(each));

    assert.equal(await files.readFile("f", { encoding: "utf8" }), "kept\n");
    assert.match(files.getInstructions(), /"\/workspace".*cannot change/);
    assert.deepEqual([files.getInfo().readOnly, files.getInfo().provider], [true, "holt"]);
  }));

test("a search whose columns would take forever still ends", () =>
  withFiles(async (files) => {
    await files.writeFile("short.txt", "x aab\n");
    await files.writeFile("trap.txt", `${"a".repeat(60)}! ab\n`);
    const search = (path: string) => files.grep({ pattern: "(a+)+b", path, caseSensitive: true, includeHidden: true });
    assert.deepEqual(await search("short.txt").then(([found]) => found?.matches), [{ line: 1, column: 2, text: "x aab" }]);
    const found = await search(".");
    assert.deepEqual(found.map(({ path, matches }) => [path, matches.map(({ line }) => line)]), [["short.txt", [1]], ["trap.txt", [1]]]);
  }));

test("a refused path is named once, and the hint stands on its own line", () =>
  withFiles(async (files) => {
    const { message } = await failure(files.writeFile("/usr/x", ""));
    const [first, ...rest] = message.split("\n");

    assert.equal(first, "Permission denied: cannot write on /usr/x (EROFS)");
    assert.deepEqual(rest.map((line) => /^ {2}\S/.test(line) && !line.endsWith("/usr/x")), [true]);
  }));
