# SPDX-License-Identifier: Apache-2.0
"""The contract of the package localsandbox, line by line."""

from __future__ import annotations

import asyncio
import builtins
import pickle
import re
import threading
import time
from pathlib import Path

import pytest
from conftest import session_names

import holt.localsandbox as package
from holt.localsandbox import (
    BashResult,
    CommandError,
    ExecutionLimitError,
    FileNotFoundError,
    LocalSandbox,
    LocalSandboxError,
    PermissionError,
    PythonResult,
    PythonRuntime,
    PythonToolset,
    SubprocessCrashed,
    TimeoutError,
    ToolDefinition,
    function_to_tool_definition,
    functions_to_toolset,
    _bash,
    _python,
)


def test_everything_is_exported() -> None:
    for name in package.__all__:
        assert hasattr(package, name)
    assert package.core.JsonValue and package.exceptions.CommandError is CommandError
    for name in package.__all__:
        if name not in ("core", "KeyValueStore"):
            assert getattr(package.core, name) is getattr(package, name)
    for name in ("KVStore", "LocalSandbox", "JsonValue", "JsonScalar", "ToolHandler", "ToolCallable", "ToolsetInput"):
        assert name in package.core.__all__
    assert type(LocalSandbox().kv) is package.core.KVStore
    for each in (CommandError, TimeoutError, SubprocessCrashed, ExecutionLimitError):
        assert issubclass(each, LocalSandboxError)
    assert issubclass(FileNotFoundError, CommandError) and issubclass(PermissionError, CommandError)


# --- making one ---


def test_seeds_of_every_kind(tmp_path: Path) -> None:
    (tmp_path / "host").write_text("from the host")
    files = {"file.txt": "text", "/data/sub/raw": b"\xff\x00", "/project/x": tmp_path / "host"}
    with LocalSandbox(files=files) as local:
        (tmp_path / "host").unlink()  # it was read when the sandbox was made
        assert local.read_file("/data/file.txt") == local.read_file("/file.txt") == "text"
        assert local.read_file_bytes("/sub/raw") == b"\xff\x00"
        assert local.read_file("/data/project/x") == "from the host"
        assert local.bash("cat /data/file.txt /file.txt file.txt").stdout == "texttexttext"
        (seed,) = [e for e in local.history() if e.name == "seed"]
        assert seed.parameters == {"paths": list(files), "count": 3} and seed.result == {"success": True}


def test_files_and_a_snapshot_are_too_much() -> None:
    for files in ({"a": "b"}, {}):
        for snapshot in (b"x", b""):
            with pytest.raises(ValueError, match="Cannot provide both"):
                LocalSandbox(files=files, snapshot=snapshot)
    with pytest.raises(TypeError, match="a snapshot must be bytes, not str"):
        LocalSandbox(snapshot="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        LocalSandbox(preset="none")
    with pytest.raises(TypeError, match="a file must be str, bytes or pathlib.Path, not int"):
        LocalSandbox(files={"a": 1})  # type: ignore[dict-item]


@pytest.mark.parametrize("path, read", [
    ("lib/helper.py", "/data/lib/helper.py"), ("/data/etc/app.conf", "etc/app.conf"), ("bin/tool", "bin/tool"),
    ("run/out", "/data/run/out"), ("tmp/x", "/tmp/x"), ("/data/var/log/x", "/var/log/x"), ("/root/x", "/data/root/x"),
    ("/mnt/x/y", "/data/mnt/x/y"), ("/workspace/x", "/data/workspace/x"), ("/srv/x", "srv/x"),
])
def test_seeds_below_the_system_s_names(path: str, read: str) -> None:
    with LocalSandbox(files={path: "text"}) as local:
        assert local.read_file(path) == local.read_file(read) == local.bash(f"cat {read}").stdout == "text"
        snapshot = local.export_snapshot()
    with LocalSandbox(snapshot=snapshot) as again:
        assert again.read_file(path) == "text"


def test_a_seed_that_can_t_be_written() -> None:
    with pytest.raises(PermissionError, match="Permission denied: /etc/app.conf") as error:
        LocalSandbox(files={"/etc/app.conf": "text"})
    assert error.value.path == "/etc/app.conf"


def test_errors_can_be_sent_to_another_process() -> None:
    for error in (
        CommandError("m", 2, "o", "e"), FileNotFoundError("m", path="p"), TimeoutError("m", 5),
        SubprocessCrashed("m", signal=9), ExecutionLimitError("m", "loop_iterations", 100, "o"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == "m" and vars(again) == vars(error)


def test_destroying(holt: str) -> None:
    local = LocalSandbox()
    assert session_names(holt) == []
    local.bash("true")
    assert len(session_names(holt)) == 1
    local.destroy()
    local.destroy()
    assert session_names(holt) == []
    for use in (
        lambda: local.bash("true"), lambda: local.execute_python("1"), lambda: local.read_file("x"),
        lambda: local.kv.get("x"), local.history, local.export_snapshot, local.__enter__,
    ):
        with pytest.raises(RuntimeError, match="LocalSandbox instance has been destroyed"):
            use()


def test_cancelling_the_first_call_does_not_cancel_the_others() -> None:
    async def main() -> None:
        async with LocalSandbox() as local:
            first, *others = [asyncio.ensure_future(local.abash("echo made")) for _ in range(3)]
            while local._opening is None:
                await asyncio.sleep(0)
            first.cancel()
            assert [(await each).stdout for each in others] == ["made\n", "made\n"] and first.cancelled()

    asyncio.run(main())


def test_a_localsandbox_outlives_its_holt_serve(local: LocalSandbox) -> None:
    """Every failure is a LocalSandboxError, as programs expect."""
    local.execute_python("x = 1")
    serve = local._box._server._process
    serve.kill()
    serve.wait()
    assert local.execute_python("x").exit_code == 0  # holt serve is started again when it is needed
    local._box._server.close()
    with pytest.raises(SubprocessCrashed):
        local.execute_python("1")
    for use in (
        lambda: local.execute_python("1"), lambda: local.execute_python("1", toolset=[lookup]), lambda: local.bash("true"),
        lambda: local.read_file("x"), local.export_snapshot,
    ):
        with pytest.raises(SubprocessCrashed):
            use()
    with pytest.raises(LocalSandboxError, match="the program /nothing/holt was not found(.|\\n)*Build and install"):
        LocalSandbox(holt="/nothing/holt").bash("true")


# --- bash ---


def test_bash(local: LocalSandbox) -> None:
    done = local.bash("echo out; echo err >&2")
    assert isinstance(done, BashResult)
    assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 0) and done.duration_ms > 0
    local.bash("cd /tmp; export X=1; x=1; echo kept > kept.txt")
    assert local.bash("pwd; echo [$X$x]").stdout == "/data\n[]\n"
    assert local.bash("echo $LC_ALL").stdout == "C.UTF-8\n"  # errors are recognised by their text


@pytest.mark.parametrize("command, kind, path", [
    ("cat nope.txt", FileNotFoundError, "nope.txt"),
    ("ls /no/such", FileNotFoundError, "/no/such"),
    ("cd 'a b'", FileNotFoundError, "a b"),
    ("cat \"it's\"", FileNotFoundError, "it's"),
    ("sh -c ./nothere", FileNotFoundError, "./nothere"),
    ("cp a b", FileNotFoundError, "a"),
    ("tail -n 1 nope", FileNotFoundError, "nope"),
    ("sed p nope", FileNotFoundError, "nope"),
    ("tar xf nope", FileNotFoundError, "nope"),
    ("awk 1 nope", FileNotFoundError, "nope"),
    ("sh nope", FileNotFoundError, "nope"),
    ("echo > no/pe", FileNotFoundError, "no/pe"),
    ("python3 nope", FileNotFoundError, "/data/nope"),
    ("python3 -c \"open('nope')\"", FileNotFoundError, "nope"),
    ("touch f; chmod 0 f; head f", PermissionError, "f"),
    ("touch f; chmod 0 f; cat f", PermissionError, "f"),
    ("touch /usr/f", PermissionError, "/usr/f"),
    ("no-such-command", CommandError, None),
    ("echo 'sh: 1: no-such-command: not found' >&2; exit 127", FileNotFoundError, "no-such-command"),
    ("exit 7", CommandError, None),
    ("false", CommandError, None),
])
def test_errors_of_bash_have_types(local: LocalSandbox, command: str, kind: type, path: str) -> None:
    with pytest.raises(CommandError) as error:
        local.bash("echo before; " + command)
    assert type(error.value) is kind and error.value.exit_code > 0 and error.value.stdout == "before\n"
    assert getattr(error.value, "path", None) == path


def test_results_say_how_much_output_was_left_out(local: LocalSandbox) -> None:
    flood = "head -c 9000000 /dev/zero | tr '\\0' x"
    done = local.bash(flood)
    assert (done.stdout, done.stderr) == ("x" * (8 << 20), "holt: 611392 more bytes of stdout were left out\n")
    with pytest.raises(FileNotFoundError, match="^File not found: nope$") as error:
        local.bash(f"{flood}; cat nope")
    assert error.value.stderr.startswith("holt: 611392 more bytes")
    ran = local.execute_python("import sys\nprint('e' * 9000000, end='', file=sys.stderr)\n1/0")
    assert ran.stderr.startswith("holt: 611392 more bytes of stderr were left out\neee") and ran.error


@pytest.mark.parametrize("signal", (1, 6, 9, 11, 15))
def test_a_bash_that_a_signal_ends(signal: int, local: LocalSandbox) -> None:
    with pytest.raises(CommandError) as error:
        local.bash(f"echo out; echo err >&2; kill -{signal} $$")
    assert (error.value.exit_code, error.value.stdout, error.value.stderr) == (128 + signal, "out\n", "err\n")


def test_failed_bash_is_in_the_history(local: LocalSandbox) -> None:
    with pytest.raises(CommandError) as error:
        local.bash("exit 5")
    assert error.value.exit_code == 5
    assert local.history(1)[0].result == {"exitCode": 5}
    assert local.history(1)[0].parameters == {"command": "exit 5", "cwd": "/data"}


def test_timeouts(local: LocalSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (_bash.BASH_TIMEOUT_MS, _python.PYTHON_TIMEOUT_MS) == (30000, 60000)
    monkeypatch.setattr(_bash, "BASH_TIMEOUT_MS", 300)
    monkeypatch.setattr(_python, "PYTHON_TIMEOUT_MS", 300)
    with pytest.raises(TimeoutError) as error:
        local.bash("sleep 100")
    assert error.value.timeout_ms == 300
    with pytest.raises(TimeoutError):
        local.execute_python("while True: pass")


# --- Python ---


def test_python(local: LocalSandbox) -> None:
    done = local.execute_python("x = 41\nprint('hi')\nx")
    assert done == PythonResult("hi\n", "", 0, None)
    assert local.execute_python("print(x + 1)").stdout == "42\n"
    failed = local.execute_python("print(1)\n1/0")
    assert (failed.stdout, failed.exit_code) == ("1\n", 1)
    assert failed.error and "division by zero" in failed.error and "division by zero" in failed.stderr
    assert local.execute_python("def f(:").error
    assert local.execute_python("import sys; sys.exit(3)").exit_code == 3


def test_python_starts_where_it_is_told_each_time(local: LocalSandbox) -> None:
    local.write_file("/sub/x", "")
    where = "import os; print(os.getcwd())"
    assert local.execute_python(where).stdout == "/data\n"
    assert local.execute_python(where + "; os.chdir('/tmp')", cwd="/data/sub").stdout.endswith("/sub\n")
    assert local.execute_python(where).stdout == "/data\n"


def test_python_is_reused_while_tools_and_packages_are_the_same(local: LocalSandbox) -> None:
    local.execute_python("x = 1", preload_packages=["json", "csv"])
    assert local.execute_python("x", preload_packages=["csv", "json"]).error is None
    assert local.execute_python("x").error == "NameError: name 'x' is not defined"
    sessions = [e.parameters["sessionId"] for e in reversed(local.history())]
    assert sessions[0] == sessions[1] != sessions[2]
    entry = local.history(1)[0]
    assert entry.name == "python" and entry.result == {"exitCode": 1}
    assert {**entry.parameters, "sessionId": ""} == {
        "codeLength": 1, "cwd": "/data", "preloadPackages": [], "sessionId": "", "toolCallCount": 0,
    }


def test_runs_at_the_same_time_do_not_mix() -> None:
    async def main() -> None:
        async with LocalSandbox() as local:
            code = "import time; print({}, 'x' in globals()); x = 1; time.sleep(0.05)"
            runs = [
                asyncio.ensure_future(local.aexecute_python(code.format(n), preload_packages=[str(n)])) for n in range(6)
            ]
            given_up = asyncio.ensure_future(local.aexecute_python("print('never')"))
            asyncio.get_running_loop().call_later(0.2, given_up.cancel)
            done = await asyncio.gather(*runs)
            assert [d.stdout for d in done] == [f"{n} False\n" for n in range(6)]
            assert (await local.aexecute_python("print('next')")).stdout == "next\n"

    asyncio.run(main())


@pytest.mark.parametrize("end, signal", [("os.kill(os.getpid(), 11)", 11), ("os._exit(7)", None), ("os._exit(0)", None)])
def test_a_crash_of_the_interpreter(end: str, signal: "int | None", local: LocalSandbox) -> None:
    with pytest.raises(SubprocessCrashed) as error:
        local.execute_python(f"import os; {end}")
    assert error.value.signal == signal
    assert local.execute_python("print('again')").stdout == "again\n"


def test_the_hint() -> None:
    assert "host_tools" in LocalSandbox.get_python_hint()
    assert LocalSandbox.get_python_hint() == LocalSandbox.get_python_hint(python_runtime="pyodide")
    monty = LocalSandbox.get_python_hint(python_runtime=PythonRuntime.MONTY)
    assert monty == LocalSandbox.get_python_hint("monty")
    for words in ("pathlib", "third-party packages are not available", "tool_search"):
        assert words in monty
    assert "host_tools" not in monty
    with pytest.raises(ValueError):
        LocalSandbox.get_python_hint("perl")


# --- files, kv ---


def test_files(local: LocalSandbox) -> None:
    local.write_file("/a/b/c.txt", "grün")
    local.write_file_bytes("/data/a/raw", b"\x00\xff")
    with pytest.raises(TypeError):
        local.write_file_bytes("/data/a/number", 5)  # type: ignore[arg-type]
    assert local.read_file("/data/a/b/c.txt") == "grün" and local.read_file_bytes("a/raw") == b"\x00\xff"
    assert local.list_files("/data/a") == local.list_files("/a") == ["b", "raw"]
    assert local.exists("/a/raw") and not local.exists("/a/none")
    local.delete_file("/data/a/raw")
    assert not local.exists("/a/raw")
    assert not local.exists("a" * 300) and not local.exists("/tmp/\0")
    for call in (local.read_file, local.read_file_bytes, local.list_files, local.delete_file):
        with pytest.raises(FileNotFoundError) as error:
            call("/a/none")
        assert error.value.path == "/a/none" and not isinstance(error.value, builtins.FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        local.list_files("/a/b/c.txt")
    with pytest.raises(PermissionError):
        local.write_file("/usr/x", "")


@pytest.mark.parametrize("method, arguments", [
    ("bash", (3,)), ("execute_python", (b"1",)), ("write_file", ("f", b"x")), ("write_file_bytes", ("f", "x")),
])
def test_arguments_of_a_wrong_type_are_refused(method: str, arguments: "tuple[object, ...]", local: LocalSandbox) -> None:
    kinds = "must be (str|bytes), not (int|str|bytes)"
    with pytest.raises(TypeError, match=kinds):
        getattr(local, method)(*arguments)
    with pytest.raises(TypeError, match=kinds):
        asyncio.run(getattr(local, f"a{method}")(*arguments))
    assert local.history() == []


def test_kv(local: LocalSandbox) -> None:
    assert local.kv.get("k") is None
    local.kv.set("k", "1")
    local.kv.set("k", "2")
    local.kv.set("a/b", "x" * (3 << 20))
    local.kv.set("a/a", "")
    assert local.kv.get("k") == "2" and local.kv.keys() == ["a/a", "a/b", "k"] and local.kv.keys("a/") == ["a/a", "a/b"]
    local.kv.delete("k")
    local.kv.delete("k")
    assert local.kv.get("k") is None and local.history() == [] and local.list_files("/data") == []
    with pytest.raises(TypeError, match="a value must be str, not int"):
        local.kv.set("k", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a key must be str, not bytes"):
        asyncio.run(local.kv.aset(b"k", "1"))  # type: ignore[arg-type]


# --- history, snapshots ---


def test_history(local: LocalSandbox) -> None:
    before = int(time.time() * 1000)
    local.write_file("/x", "1")
    local.read_file("/x")
    local.exists("/x")
    local.exists("/y")
    with pytest.raises(FileNotFoundError):
        local.read_file("/y")
    entries = local.history()
    assert [(e.name, e.parameters["path"], e.result) for e in reversed(entries)] == [
        ("write_file", "/x", {"success": True}), ("read_file", "/x", {"success": True}),
        ("exists", "/x", {"exists": True}), ("exists", "/y", {"exists": False}), ("read_file", "/y", {"success": False}),
    ]
    assert [e.id for e in entries] == [5, 4, 3, 2, 1] and local.history(limit=2) == entries[:2]
    assert all(before <= e.started_at <= e.completed_at <= before + 600_000 for e in entries)


def test_a_snapshot_has_files_kv_and_history() -> None:
    with LocalSandbox() as local:
        assert local.export_snapshot() == b""
        local.bash("mkdir -p /deep/er /home/user; echo 1 > /deep/er/f; echo 2 > /home/user/f; echo 3 > f; echo 4 > /top")
        local.bash("echo run > script; chmod 750 script; ln -s script link; echo t > /tmp/t; mkdir empty")
        local.write_file("/project/main.py", "print(5)")
        local.execute_python("open('/by-python', 'w').write('6')")
        local.kv.set("k", "v")
        names, history, snapshot = local.list_files("/data"), local.history(), local.export_snapshot()
    assert isinstance(snapshot, bytes)
    with LocalSandbox(snapshot=snapshot) as again:
        assert again.list_files("/data") == names == [
            "by-python", "deep", "empty", "f", "home", "link", "project", "script", "top",
        ]
        assert again.kv.get("k") == "v"
        text = again.bash("cat /deep/er/f /data/home/user/f f /data/top /project/main.py /data/by-python /tmp/t").stdout
        assert text == "1\n2\n3\n4\nprint(5)6t\n"
        assert again.bash("stat -c %a script; readlink link").stdout == "750\nscript\n"
        assert [e for e in again.history() if e.id <= len(history)] == history
        further = again.export_snapshot()
    with LocalSandbox(snapshot=further) as third:
        assert third.read_file("/data/top") == "4\n"
    with LocalSandbox(snapshot=b"") as empty:
        assert empty.list_files("/data") == []


def test_a_snapshot_has_what_is_shut() -> None:
    with LocalSandbox() as local:
        local.bash("echo 1 > f; mkdir -p d/e /tmp/t; echo 2 > d/e/g; echo 3 > '/tmp/t/a b\nc'; chmod 000 f d/e/g d/e d '/tmp/t/a b\nc'")
        snapshot = local.export_snapshot()
        assert local.bash("stat -c %a f d; chmod 700 d; stat -c %a d/e").stdout == "0\n0\n0\n"
    with LocalSandbox(snapshot=snapshot) as again:
        assert again.bash("cat f d/e/g /tmp/t/*").stdout == "1\n2\n3\n"


# --- async twins ---


def test_every_method_has_a_twin() -> None:
    async def main() -> None:
        async with LocalSandbox(files={"f": "1"}) as local:
            assert (await local.abash("cat f")).stdout == "1"
            with pytest.raises(FileNotFoundError):
                await local.abash("cat none")
            assert (await local.aexecute_python("print(2)")).stdout == "2\n"
            await local.awrite_file("a", "x")
            await local.awrite_file_bytes("b", b"y")
            assert (await local.aread_file("a"), await local.aread_file_bytes("b")) == ("x", b"y")
            assert await local.alist_files("/data") == ["a", "b", "f"]
            assert await local.aexists("/a")
            await local.adelete_file("/a")
            await local.kv.aset("k", "v")
            assert (await local.kv.aget("k"), await local.kv.akeys()) == ("v", ["k"])
            await local.kv.adelete("k")
            assert len(await local.ahistory(3)) == 3 and await local.aexport_snapshot()
            done = await asyncio.gather(*[local.abash(f"echo {n}") for n in range(20)])
            assert [d.stdout for d in done] == [f"{n}\n" for n in range(20)]
        with pytest.raises(RuntimeError, match="destroyed"):
            await local.abash("true")
        await local.adestroy()

    asyncio.run(main())


# --- tools ---


def lookup(name: str, limit: int = 3) -> "list[str]":
    """Looks something up."""
    return [name] * limit


def test_definitions_from_functions() -> None:
    assert function_to_tool_definition(lookup) == ToolDefinition(
        "lookup", "Looks something up.",
        {"type": "object", "properties": {"name": {"type": "string"}, "limit": {"type": "integer", "default": 3}},
         "required": ["name"], "additionalProperties": False},
        {"type": "array", "items": {"type": "string"}}, 30000,
    )


def test_a_definition_has_the_first_line_of_a_docstring() -> None:
    def find(name: str) -> str:
        """Finds something.

        Never twice.

        Args:
            name: Whose.
        """
        return name

    for definition in (function_to_tool_definition(find), functions_to_toolset([find]).definitions[0]):
        assert definition.description == "Finds something."
        assert definition.input_schema["properties"]["name"] == {"type": "string", "description": "Whose."}


def test_toolsets_of_functions() -> None:
    toolset = functions_to_toolset([lookup])
    assert isinstance(toolset, PythonToolset) and toolset.handlers["lookup"]({"name": "a", "limit": 1}) == ["a"]
    with pytest.raises(ValueError):
        functions_to_toolset([lambda x: x])
    with pytest.raises(ValueError):
        PythonToolset([function_to_tool_definition(lookup)], {})


@pytest.mark.usefixtures("bridge")
class TestBridge:
    def test_tools_of_a_toolset(self, local: LocalSandbox) -> None:
        use = "from host_tools import call, search\n"
        done = local.execute_python(use + "x = 1\nprint(call('lookup', {'name': 'a'}))", toolset=[lookup])
        assert done.stdout == "['a', 'a', 'a']\n"
        done = local.execute_python("print(x, call('lookup', {'name': 'b', 'limit': 1}))", toolset=[lookup])
        assert done.stdout == "1 ['b']\n"
        assert local.execute_python("x").error
        done = local.execute_python(use + "call('lookup', {'name': 'a'})")
        assert done.error and "[permission_error]" in done.error

    def test_calls_are_in_the_history(self, local: LocalSandbox) -> None:
        local.execute_python(
            "from host_tools import call\ncall('lookup', {'name': 'n' * 500})\n"
            "try: call('lookup', {'nome': 1})\nexcept RuntimeError as e: print(e)", toolset=[lookup],
        )
        entries = local.history()
        (run,) = [e for e in entries if e.name == "python"]
        good, bad = sorted((e for e in entries if e.name == "python_tool_call"), key=lambda e: e.id)
        assert run.parameters["toolCallCount"] == 2
        assert good.parameters["toolName"] == "lookup" and good.parameters["sessionId"] == run.parameters["sessionId"]
        assert 0 < len(good.parameters["requestPreview"]) <= 200
        assert good.result and good.result["success"] is True and len(good.result["responsePreview"]) <= 200
        assert bad.result == {"success": False, "errorType": "validation_error"}

    @pytest.mark.parametrize("name, schema, words", [
        ("my tool", {"type": "object"}, 'the tool name "my tool" is invalid'), ("t", {"type": "objct"}, 'Did you mean "object"?'),
    ])
    def test_invalid_definitions_are_refused(
        self, name: str, schema: "dict[str, str]", words: str, local: LocalSandbox
    ) -> None:
        bad = PythonToolset(
            [function_to_tool_definition(lookup), ToolDefinition(name, "", schema)],
            {"lookup": lambda payload: [], name: lambda payload: 1},
        )
        with pytest.raises(ValueError, match=re.escape(words)):
            local.execute_python("1", toolset=bad)
        for toolset in (lookup, {"lookup": lookup}):
            with pytest.raises(TypeError, match="a toolset must be a list of callables or a PythonToolset"):
                local.execute_python("1", toolset=toolset)  # type: ignore[arg-type]
        call = "from host_tools import call\nprint(call('lookup', {'name': 'a', 'limit': 1}))"
        assert local.execute_python(call, toolset=[lookup]).stdout == "['a']\n"
        assert "[permission_error]" in str(local.execute_python(call).error)

    def test_a_definition_of_one_s_own_with_a_timeout(self, local: LocalSandbox) -> None:
        async def never(payload: object) -> None:
            await asyncio.sleep(1000)

        schema = {"type": "object", "properties": {}, "additionalProperties": False}
        toolset = PythonToolset([ToolDefinition("never", "", schema, timeout_ms=50)], {"never": never})
        done = local.execute_python("from host_tools import call\ncall('never', {})", toolset=toolset)
        assert done.error == "RuntimeError: [timeout] Tool 'never' timed out after 50 ms"

    def test_a_handler_whose_time_is_over_is_not_interrupted(self, local: LocalSandbox) -> None:
        go, through = threading.Event(), threading.Event()

        async def slow(payload: object) -> None:
            while not go.is_set():
                await asyncio.sleep(0.01)
            through.set()

        schema = {"type": "object", "properties": {}, "additionalProperties": False}
        toolset = PythonToolset([ToolDefinition("slow", "", schema, timeout_ms=50)], {"slow": slow})
        code = "from host_tools import call\ncall('slow', {})"
        done = local.execute_python(code, toolset=toolset)
        assert done.error and "[timeout]" in done.error
        go.set()
        assert through.wait(60)

        async def main() -> None:
            go.clear()
            through.clear()
            done = await local.aexecute_python(code, toolset=toolset)
            assert done.error and "[timeout]" in done.error
            go.set()
            assert await asyncio.get_running_loop().run_in_executor(None, through.wait, 60)

        asyncio.run(main())

    def test_handlers_run_in_the_loop_of_the_caller(self) -> None:
        async def main() -> None:
            async def where(x: int) -> bool:
                return asyncio.get_running_loop() is loop

            loop = asyncio.get_running_loop()
            async with LocalSandbox() as local:
                code = "from host_tools import call\nprint(call('where', {'x': 1}))"
                assert (await local.aexecute_python(code, toolset=[where])).stdout == "True\n"

        asyncio.run(main())


