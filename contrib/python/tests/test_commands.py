# SPDX-License-Identifier: Apache-2.0
"""Commands and code in a sandbox, and their results."""

from __future__ import annotations

import asyncio
import datetime
import os
import platform
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any, List

import pytest
from conftest import until

from holt import (
    AsyncSandbox,
    Chunk,
    CommandFailed,
    CommandNotFoundError,
    LimitError,
    Sandbox,
    Server,
    SetupError,
    UsageError,
)

PACKAGE = str(Path(__file__).resolve().parents[1])


def test_a_session_that_another_stops_before_a_command_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox("w") as box, Sandbox("w") as other:
        ask = box._ask

        def stopped(method: str, *args: Any, **options: Any) -> Any:
            if method == "process.wait":
                other.stop()
            return ask(method, *args, **options)

        monkeypatch.setattr(box, "_ask", stopped)
        with pytest.raises(SetupError, match="p1 has ended, because the session was stopped"):
            box.bash("true")
        monkeypatch.undo()
        assert box.bash("echo again").stdout == "again\n"
        box.remove()


def test_commands_and_how_they_end(box: Sandbox) -> None:
    done = box.bash("echo out; echo err >&2; exit 3", env={"A": "b"})
    assert (done.cause, done.exit_code, done.stdout, done.stderr, done.ok) == ("exited", 3, "out\n", "err\n", False)
    assert done.usage.wall_us and done.usage.max_rss_bytes
    with pytest.raises(CommandFailed) as failed:
        done.check()
    assert failed.value.result is done and "err" in str(failed.value)
    assert box.exec(["printf", "%s", "$HOME"], cwd="/").check().stdout == "$HOME"
    assert box.bash("kill -9 $$").signal == 9
    assert box.bash("sleep 100", timeout=0.2).cause == "timeout"
    assert box.bash(r"printf '\xff\xfe'").stdout_bytes == b"\xff\xfe"
    assert box.bash("pwd; echo $A", env={"A": "b"}, cwd="/tmp").stdout == "/tmp\nb\n"


def test_input_of_any_length_the_command_need_not_read(box: Sandbox) -> None:
    text = "ä" * 700_000
    assert box.bash("cat", stdin=text, output_max=4 << 20).stdout == text
    assert box.bash("true", stdin=text).exit_code == 0
    data = os.urandom(1_000_000)
    assert box.bash("cat", stdin=data, output_max=1 << 20).stdout_bytes == data
    assert box.bash("wc -c", stdin=b"\0\xff\0").stdout == "3\n"
    with pytest.raises(UsageError, match="content must be text or bytes"):
        box.bash("touch started", stdin=["a"])  # type: ignore[arg-type]
    assert not box.files.exists("started") and not box.audit(kind="kill")


def test_output_past_the_limit_is_counted(box: Sandbox) -> None:
    head = box.bash("echo first; yes | head -c 100000; echo last", output_max=1000)
    tail = box.bash("echo first; yes | head -c 100000; echo last", output_max=1000, keep="tail")
    assert head.stdout.startswith("first\n") and head.stdout_dropped > 90000
    assert tail.stdout.endswith("last\n")


def test_a_denial_says_what_would_grant_it(box: Sandbox) -> None:
    keyctl = {"x86_64": 250, "aarch64": 219}[platform.machine()]
    code = f"import ctypes; ctypes.CDLL(None).syscall({keyctl}, 0, 0, 0)"
    denials = {d.what: d for d in box.exec(["python3", "-c", code]).denials}
    assert denials["keyctl"].grant == "--allow-syscall keyctl"
    assert denials["keyctl"].policy == {"syscalls": {"allow": ["keyctl"]}} and denials["keyctl"].path is None


def test_a_refused_path_says_what_would_grant_it(box: Sandbox) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:  # pytest's own directories are closed to a session's uid
        os.chmod(place, 0o755)
        Path(place, "d").write_text("data")
        for result in (box.bash(f"cat {place}/d"), box.python(f"open('{place}/d')")):
            (denial,) = result.denials
            assert denial.layer == "filesystem" and denial.path == denial.what == f"{place}/d"
            assert denial.policy == {"filesystem": {"read_only": [place]}} and denial.reason
            with Sandbox(policy=denial.policy) as other:
                assert other.bash(f"cat {place}/d").stdout == "data"


def test_the_audit_has_denials(box: Sandbox) -> None:
    box.bash("unshare --map-root-user true")
    assert any(row.kind == "denial" for row in box.audit())


def test_a_missing_command_is_an_error(box: Sandbox) -> None:
    with pytest.raises(CommandNotFoundError) as missing:
        box.exec(["no-such-program"])
    assert missing.value.kind == "not-found" and missing.value.hint and missing.value.code == -32005


def test_a_line_is_no_list_and_a_list_no_line(box: Sandbox) -> None:
    with pytest.raises(UsageError, match="list of arguments") as error:
        box.exec("ls -l")
    assert "bash('ls -l')" in str(error.value.hint) and "exec(['ls', '-l'])" in str(error.value.hint)
    with pytest.raises(UsageError, match="not 1"):
        box.exec(["echo", 1])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="text"):
        box.bash(["ls"])  # type: ignore[arg-type]
    assert box.exec(["ls", PurePosixPath("/usr/bin/env")], cwd=PurePosixPath("/tmp")).stdout == "/usr/bin/env\n"


@pytest.mark.skipif(sys.version_info < (3, 10), reason="earlier versions name only the function")
def test_wrong_arguments_name_what_the_caller_wrote(box: Sandbox) -> None:
    calls: List[Any] = [
        (lambda: box.bash(), r"^bash\(\) missing"),  # type: ignore[call-arg]
        (lambda: box.exec(["true"], nope=1), r"^exec\(\) got an unexpected"),  # type: ignore[call-arg]
        (lambda: box.files.read(), r"^files\.read\(\) missing"),  # type: ignore[call-arg]
        (lambda: box.kv.get(), r"^kv\.get\(\) missing"),  # type: ignore[call-arg]
    ]
    for call, message in calls:
        with pytest.raises(TypeError, match=message):
            call()


def test_output_of_code_as_it_comes(box: Sandbox) -> None:
    """The code waits for a file that on_output makes."""
    seen = []

    def on_output(chunk: Chunk) -> None:
        seen.append((chunk.stream, chunk.text))
        box.files.write("go", "")

    code = (
        "import os, sys, time\nprint('first', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.005)\n"
        "print('second', file=sys.stderr)\n7"
    )
    done = box.python(code, on_output=on_output)
    assert (done.result, done.stdout, seen) == ("7", "first\n", [("stdout", "first\n"), ("stderr", "second\n")])
    long = []
    done = box.python("for i in range(20000): print(i)", on_output=lambda c: long.append(c.data), output_max=1000)
    assert b"".join(long) == b"".join(b"%d\n" % i for i in range(20000)) and len(done.stdout) == 1000

    def fail(chunk: Chunk) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        box.python("x = 1\nwhile True: print(flush=True)", on_output=fail)
    assert box.python("x").result == "1"


def test_nothing_reads_in_the_background_once_output_has_been_passed_on() -> None:
    """Otherwise a thread reads beside each later caller."""
    with Sandbox() as box:
        for _ in range(2):
            box.python("print(1)", on_output=lambda chunk: None)
            box.exec(["echo"], on_output=lambda chunk: None)
        connection = box._server._links[box.name].connection
        assert connection
        until(lambda: connection._wants == 0 and not connection._wanted, "the connection expects no message")


def test_output_of_a_command_as_it_comes(box: Sandbox) -> None:
    """The command waits for a file that on_output makes."""
    seen = []

    def on_output(chunk: Chunk) -> None:
        seen.append((chunk.stream, chunk.text, threading.current_thread()))
        box.files.write("go", "")

    line = "echo first; until [ -e go ]; do sleep 0.005; done; cat >&2"
    me = threading.current_thread()
    runs: "list[Any]" = [lambda **more: box.bash(line, **more), lambda **more: box.exec(["bash", "-c", line], **more)]
    for run in runs:
        done = run(stdin="second", on_output=on_output)
        assert (done.stdout, done.stderr, done.ok) == ("first\n", "second", True)
        assert seen == [("stdout", "first\n", me), ("stderr", "second", me)]
        seen.clear()


def test_on_output_misses_nothing(box: Sandbox) -> None:
    """on_output gets more than the session keeps, from the first byte on."""
    for _ in range(5):
        parts: "list[bytes]" = []
        done = box.bash("seq 400000", on_output=lambda c: parts.append(c.data), output_max=1000, keep="tail")
        assert b"".join(parts) == b"".join(b"%d\n" % (n + 1) for n in range(400000)) and len(done.stdout) == 1000
    assert box.bash("echo quick", on_output=lambda c: parts.append(c.data)).ok and parts[-1] == b"quick\n"


def test_an_exception_in_on_output_kills_the_command(box: Sandbox) -> None:
    def fail(chunk: Chunk) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        box.bash("while :; do echo; done", on_output=fail)
    until(lambda: all(each.state == "ended" for each in box.processes()), "the command is killed")
    with pytest.raises(CommandNotFoundError):
        box.exec(["no-such-program"], on_output=fail)


def test_processes_in_the_background_can_print_after_on_output(box: Sandbox) -> None:
    line = "(sleep 0.2; seq 200000; touch done) & echo end"
    assert box.bash(line, on_output=lambda c: None).stdout == "end\n"
    until(lambda: box.files.exists("done"), "all is printed")


def test_outputs_of_many_commands_are_not_mixed(box: Sandbox) -> None:
    seen: "list[list[bytes]]" = [[] for _ in range(12)]
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda n: box.bash(f"echo {n}", on_output=lambda c: seen[n].append(c.data)), range(12)))
    assert seen == [[b"%d\n" % n] for n in range(12)]


def test_output_that_comes_at_once_is_not_lost(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread has read the reply and the output before the caller goes on."""
    ask, seen, done = Server.ask, [], []  # type: Any, List[bytes], List[Any]

    def ask_slowly(self: Server, session: str, method: str, *args: Any, **more: Any) -> Any:
        request = ask(self, session, method, *args, **more)
        if method == "process.spawn":
            until(request.done, "the reply has come")
            time.sleep(0.2)
        return request

    with box.spawn("sleep 100"):  # the background thread reads
        monkeypatch.setattr(Server, "ask", ask_slowly)
        run = lambda: done.append(box.bash("echo out", on_output=lambda chunk: seen.append(chunk.data)))  # noqa: E731
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(20)
    assert done and seen == [b"out\n"]


async def _output_in_the_loop() -> None:
    async with AsyncSandbox() as box:
        seen: "list[Any]" = []

        def on_output(chunk: Chunk) -> None:
            seen.append((chunk.text, asyncio.get_running_loop()))

        loop = asyncio.get_running_loop()
        await asyncio.gather(box.bash("echo a", on_output=on_output), box.exec(["echo", "b"], on_output=on_output))
        assert sorted(text for text, _ in seen) == ["a\n", "b\n"] and all(each is loop for _, each in seen)
        assert (await box.bash("sleep 1000", timeout="100ms")).cause == "timeout"


def test_output_comes_in_the_event_loop() -> None:
    asyncio.run(_output_in_the_loop())


def test_outputs_of_many_runs_are_not_mixed(box: Sandbox) -> None:
    with box.spawn("yes") as forgotten:
        forgotten.read()
    seen: "list[list[bytes]]" = [[] for _ in range(12)]
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(
            lambda n: box.python(f"print({n})", fresh=n % 3 == 0, on_output=lambda c: seen[n].append(c.data)), range(12)
        ))
    assert [b"".join(each) for each in seen] == [b"%d\n" % n for n in range(12)]


def test_python_keeps_its_variables(box: Sandbox) -> None:
    assert box.python("x = 41").result is None
    done = box.python("print('hi'); x + 1")
    assert (done.result, done.stdout, done.ok) == ("42", "hi\n", True)
    failed = box.python("1/0")
    assert failed.error and failed.error.name == "ZeroDivisionError" and "1/0" in failed.error.traceback
    with pytest.raises(CommandFailed, match="division by zero"):
        failed.check()
    for late in (box.python("__import__('time').sleep(100)", timeout=0.5), box.bash("sleep 100", timeout=0.5)):
        with pytest.raises(CommandFailed, match=r"^timeout after 0\.\d+ s, exit code 124"):
            late.check()
    assert box.python("x", fresh=True).error
    assert [v["name"] for v in box.variables()] == ["x"]
    saved = box.save_variables()
    assert saved["saved"] == ["x"]
    assert box.restart_python() is True
    assert box.python("x").error
    box.load_variables()
    assert box.python("x").result == "41"


def test_a_run_says_that_it_has_a_new_interpreter() -> None:
    with Sandbox("w") as box:

        def runs_in_a_new_one() -> bool:
            first, second = box.python("x = 1"), box.python("x")
            assert second.result == "1" and not second.new_interpreter
            return first.new_interpreter

        assert not runs_in_a_new_one()  # no variables existed
        assert not box.python("1", fresh=True).new_interpreter
        assert not box.python("import os; os._exit(1)").state_kept
        assert runs_in_a_new_one()
        assert box.restart_python() and runs_in_a_new_one()
        box.stop()
        assert runs_in_a_new_one() and "new_interpreter" not in repr(box.python("x"))
        box.remove()


def test_python_s_displays_and_timeout(box: Sandbox) -> None:
    code = "class P:\n def _repr_png_(self): return b'png'\nP()"
    assert box.python(code).images() == [b"png"]
    for odd in ("a", "ä"):  # text from the code, not base64
        result = box.python(f"class P:\n def _repr_png_(self): return {odd!r}\nP()")
        assert result.displays[0]["image/png"] == odd and result.images() == []
    late = box.python("y = 1\nwhile True: pass", timeout=0.3)
    assert late.cause == "timeout" and late.state_kept and box.python("y").result == "1"
    gone = box.python("import os; os._exit(3)")
    assert not gone.state_kept and gone.exit_code == 3


@pytest.mark.parametrize("call", (
    lambda box: box.bash("echo 'a\0b'"), lambda box: box.exec(["echo", "a\0"]), lambda box: box.python("'\0'"),
    lambda box: box.kv.set("k", "a\0b"), lambda box: box.files.write("f\0", "x"),
), ids=("bash", "exec", "python", "kv", "files"))
def test_a_nul_is_refused_at_once(call, box: Sandbox) -> None:
    with pytest.raises(UsageError, match="NUL"):
        call(box)
    assert box.bash(r"echo '\u0000 \\u0000'").stdout == "\\u0000 \\\\u0000\n"


def test_a_timeout_is_a_number_or_text_with_a_unit(box: Sandbox) -> None:
    for wrong in (
        float("nan"), -float("inf"), "5 s", "-5s", "s", "", "1e3", "5sec", "1.s", "\N{ARABIC-INDIC DIGIT ONE}s", [],
        datetime.timedelta(1),
    ):
        with pytest.raises(UsageError, match="seconds") as error:
            box.bash("true", timeout=wrong)  # type: ignore[arg-type]
        assert '"500ms"' in str(error.value.hint)
        with pytest.raises(UsageError, match="seconds"):
            box.spawn("true").wait(wrong)  # type: ignore[arg-type]
    for time in ("5 parsecs", "5 s"):
        for name in ("timeout", "idle"):
            with pytest.raises(UsageError, match="text with a unit, not '5 "):
                Sandbox(**{name: time})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="number or text"):
        Sandbox(timeout=float("nan"))
    for time in ("100ms", "0.1s", "0.1", "100000us"):
        assert box.bash("sleep 1000", timeout=time).cause == "timeout"
    assert box.exec(["sleep", "1000"], timeout="50ms").cause == "timeout"
    assert box.python("import time; time.sleep(1000)", timeout="50ms").cause == "timeout"
    with box.spawn("sleep 1000") as process:
        with pytest.raises(TimeoutError):
            process.wait("50ms")
        with pytest.raises(TimeoutError):
            process.read("50ms")
    for time in ("1m", "2h", "1d", "none"):
        assert box.bash("true", timeout=time).ok
    assert box.spawn("sleep 1000", timeout="100ms").wait().cause == "timeout"
    assert box.bash("true", timeout=float("inf")).ok and box.spawn("true").wait(float("inf")).ok
    assert box.bash("sleep 1000", timeout=-1).cause == "timeout"
    with Sandbox(timeout=float("inf")) as other:
        assert other.bash("true").ok


def test_a_result_shows_the_first_of_what_was_printed(box: Sandbox) -> None:
    result = box.bash("echo out; echo err >&2; exit 3")
    assert repr(result) == f"Result(id={result.id!r}, cause='exited', exit_code=3, stdout='out\\n', stderr='err\\n')"
    long = box.bash("yes | head -c 1000", output_max=500)
    assert "stdout='y\\ny\\n" in repr(long) and "... (500 characters), stdout_dropped=500)" in repr(long)
    assert len(repr(long)) < 300
    code = box.python("class H:\n  def _repr_html_(self): return 'x' * 10000\n  def __repr__(self): return 'h' * 100\nH()")
    assert f"stdout='', result='{'h' * 60}'... (100 characters), displays=('text/html',))" in repr(code)
    failed = box.python("print('so far')\nraise ValueError('m' * 1000)")
    assert repr(failed).endswith(f"stdout='so far\\n', error='ValueError: {'m' * 48}'... (1012 characters))")


def test_commands_that_are_too_long_get_a_hint(box: Sandbox) -> None:
    long = "x" * (128 * 1024)
    for what, start in (
        ("the line of bash", lambda: box.bash(f"# {long}")), ("the line of bash", lambda: box.spawn(f"# {long}")),
        ("an argument", lambda: box.exec(["echo", long])), ("an argument", lambda: box.spawn(["echo", long])),
        ("the variable A", lambda: box.bash("true", env={"A": long})), ("an argument", lambda: box.exec(["true", long[1:] + "é"])),
    ):
        with pytest.raises(LimitError, match=f"{what} has 13.*\n.*stdin=.*files.write"):
            start()
    assert box.exec(["printf", "%s", long[1:]]).check().stdout == long[1:]
    box.files.write("name", f"# {long}\necho done")
    assert box.bash("bash name").stdout == box.bash("bash", stdin=f"# {long}\necho done").stdout == "done\n"
