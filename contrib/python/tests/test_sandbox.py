# SPDX-License-Identifier: Apache-2.0
"""Sandbox: commands, code, and the lifetime of sessions."""

from __future__ import annotations

import contextlib
import datetime
import gc
import os
import pickle
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Iterator, List

import pytest
from conftest import children, session_names, until

from holt import (
    AsyncSandbox,
    Chunk,
    ClosedError,
    CommandFailed,
    CommandNotFoundError,
    ExistsError,
    HoltNotFoundError,
    LimitError,
    PolicyError,
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
        with pytest.raises(SetupError, match="the session was stopped, and with it p1"):
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


def test_a_command_that_is_not_there(box: Sandbox) -> None:
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


def test_outputs_of_many_runs_are_not_mixed(box: Sandbox) -> None:
    with box.spawn("yes") as forgotten:
        forgotten.read()
    seen: "list[list[bytes]]" = [[] for _ in range(12)]
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(
            lambda n: box.python(f"print({n})", fresh=n % 3 == 0, on_output=lambda c: seen[n].append(c.data)), range(12)
        ))
    assert [b"".join(each) for each in seen] == [b"%d\n" % n for n in range(12)]


def test_results_can_be_pickled_and_sandboxes_cannot(box: Sandbox) -> None:
    for each in (box, box.files, box.kv):
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(each)
    result = box.bash("exit 3")
    assert pickle.loads(pickle.dumps(result)) == result
    with pytest.raises(CommandFailed) as failed:
        result.check()
    assert pickle.loads(pickle.dumps(failed.value)).result == result


@pytest.mark.parametrize("code", (
    "Sandbox().bash('true')", "box = Sandbox(); box.bash('true')", "with Sandbox() as box: box.bash('true')",
    "box = Sandbox(); box.spawn('yes').read()", "holt.localsandbox.LocalSandbox().bash('true')",
), ids=("forgotten", "open", "closed", "spawned", "localsandbox"))
def test_no_resource_is_left_open(code: str, holt: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "always", "-c", f"import holt.localsandbox\nfrom holt import Sandbox\n{code}"],
        env={**os.environ, "PYTHONPATH": PACKAGE}, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert session_names(holt) == []


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


def test_history_has_calls_with_their_parameters(box: Sandbox) -> None:
    box.bash("echo 1")
    box.python("2")
    rows = box.history(2)
    assert [r.name for r in rows] == ["python.run", "process.spawn"] and rows[0].params["code"] == "2"
    assert [r.name for r in box.history(name="python.run")] == ["python.run"]
    for number in range(1200):
        box.kv.set("k", str(number))
    assert box.show()["state"] == "live"


def test_keys_and_values(box: Sandbox) -> None:
    for number in range(1100):
        box.kv.set(f"k{number:04}", f"v{number}")
    assert box.kv.get("k0007") == "v7" and box.kv.get("none") is None and box.kv.get("none", "d") == "d"
    assert len(box.kv.keys()) == 1100 and len(box.kv.keys("k000")) == 10
    assert box.kv.delete("k0007") is True and box.kv.delete("k0007") is False
    with pytest.raises(LimitError):
        box.kv.set("k", "x" * (2 << 20))


def test_values_are_text_or_any_bytes(box: Sandbox) -> None:
    box.kv.set("raw", b"\xff\0")
    box.kv.set("text", "ä")
    assert box.kv.get_bytes("raw") == b"\xff\0" and box.kv.get_bytes("text") == "ä".encode()
    assert box.kv.get_bytes("none") is None and box.kv.get_bytes("none", b"d") == b"d"
    with pytest.raises(UnicodeDecodeError):
        box.kv.get("raw")
    for call in (box.kv.set, box.files.write, box.files.append):
        with pytest.raises(UsageError, match="not int"):
            call("k", 1)  # type: ignore[arg-type]


def test_a_throwaway_session_is_gone_after_an_error_too(holt: str) -> None:
    with pytest.raises(ZeroDivisionError):
        with Sandbox() as box:
            assert session_names(holt) == [box.name]
            box.spawn("sleep 1000")
            raise ZeroDivisionError
    assert session_names(holt) == []
    with pytest.raises(ClosedError):
        box.bash("true")
    box.close()


def test_a_throwaway_session_is_gone_with_the_program(holt: str) -> None:
    code = "from holt import Sandbox\nbox = Sandbox()\nprint(box.bash('echo in').stdout, flush=True)\n{}"
    for end in ("", "1/0", "import sys; sys.exit(3)"):
        subprocess.run(
            [sys.executable, "-c", code.format(end)], env={**os.environ, "PYTHONPATH": PACKAGE}, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
        )
        assert session_names(holt) == []


def test_a_throwaway_session_that_is_forgotten_goes_too(holt: str) -> None:
    box = Sandbox()
    box.files.write("x", "1")
    del box
    gc.collect()
    until(lambda: session_names(holt) == [] and not [c for c in children() if "serve" in c], "all of it is gone")


def test_a_session_whose_server_was_killed_goes_too(holt: str) -> None:
    with Sandbox() as box:
        os.kill(box._server._process.pid, signal.SIGKILL)  # type: ignore[union-attr]
        with pytest.raises(ClosedError):
            until(lambda: box.bash("true") and None, "it is seen")
    assert session_names(holt) == []


def test_a_lasting_session_is_found_again(holt: str, place: Path) -> None:
    (place / "w").mkdir()
    with Sandbox("work", workspace=place / "w", timeout="30s", env={"A": "1"}) as box:
        assert box.bash("echo $A > file; pwd").check().stdout == "/workspace\n"
        box.kv.set("k", "v")
    assert (place / "w" / "file").read_text() == "1\n"
    with Sandbox(name="work") as box:
        assert box.kv.get("k") == "v" and box.files.read("file") == "1\n"
    for other in (
        {"policy": "strict"}, {"policy": {"limits": {"pids": 9}}}, {"timeout": "1s"}, {"memory": "1GiB"}, {"idle": 9},
        {"tier": "large"}, {"env": {"A": "2"}}, {"workspace": place}, {"read_only": ["/usr"]}, {"policy": {"filesystem": {"hide": ["x"]}}},
    ):
        with pytest.raises(ExistsError, match="already exists with a different .*\n.*session.remove"):
            Sandbox("work", **other)
    Sandbox("work", workspace=place / "w", timeout=30, env={"A": "1"}).close()
    with Sandbox("work") as box:
        box.remove()
    assert session_names(holt) == []


def test_an_unknown_parameter_names_the_nearest_one() -> None:
    for face in (Sandbox, AsyncSandbox):
        with pytest.raises(TypeError) as wrong:
            face(memry=1)  # type: ignore[arg-type]
        assert str(wrong.value) == f"{face.__name__}() has no parameter 'memry'; did you mean 'memory'?"
    with pytest.raises(TypeError, match="has no parameter 'xyz'$"):
        Sandbox(xyz=1)  # type: ignore[arg-type]


def test_policies(box: Sandbox) -> None:
    with Sandbox(policy={"extends": "strict", "env": {"set": {"FROM": "policy"}}}) as strict:
        assert strict.bash("echo $FROM").stdout == "policy\n"
    with Sandbox(policy="strict", memory="512MiB", timeout="5s") as strict:
        assert strict.show()["limits"]["timeout_us"] == 5_000_000
    with pytest.raises(PolicyError, match="limits"):
        Sandbox(policy={"limits": {"timeuot": "1s"}})


def test_without_holt(holt: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLT", str(place / "nothing"))
    with pytest.raises(HoltNotFoundError, match="nothing") as missing:
        Sandbox()
    assert "HOLT" in str(missing.value.hint)
    monkeypatch.delenv("HOLT")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HoltNotFoundError, match="PATH"):
        Sandbox()
    monkeypatch.setenv("PATH", f"/nowhere:{Path(holt).parent}")
    with Sandbox() as box:
        assert box.bash("echo found").stdout == "found\n"


def test_many_threads_share_one(box: Sandbox) -> None:
    with ThreadPoolExecutor(32) as threads:
        done = list(threads.map(lambda n: box.bash(f"echo {n}").stdout, range(200)))
    assert done == [f"{n}\n" for n in range(200)]


def test_sandboxes_may_share_a_server() -> None:
    server = Server()
    with Sandbox(server=server) as one, Sandbox(server=server) as other:
        one.files.write("x", "1")
        assert not other.files.exists("x")
    assert not server.closed
    server.close()


def test_ctrl_c_kills_the_command_that_is_awaited(box: Sandbox) -> None:
    threading.Timer(0.5, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        box.bash("sleep 1000")
    until(lambda: "sleep 1000" not in box.bash("ps -eo args").stdout, "it is killed")


def test_ctrl_c_at_the_terminal_is_the_program_s_alone(holt: str) -> None:
    """Ctrl-C reaches all processes of the foreground process group. The server must survive it, to end the session."""
    code = (
        "import os, time\nfrom holt import Sandbox\nbox = Sandbox()\nserver = box._server._process\n"
        "print(flush=True)\ntry: box.bash('sleep 1000')\n"
        "except KeyboardInterrupt: print(server.poll(), box.bash('echo lives').stdout, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": PACKAGE}, stdout=subprocess.PIPE,
        start_new_session=True, text=True,
    ) as program:
        assert program.stdout and program.stdout.readline()
        (name,) = session_names(holt)
        until(lambda: _runs(holt, name, "sleep 1000"), "it waits")
        os.killpg(program.pid, signal.SIGINT)
        assert program.stdout.read().split() == ["None", "lives"]
    assert session_names(holt) == []


def _runs(holt: str, session: str, command: str) -> bool:
    return command in subprocess.run([holt, "ps", session], stdout=subprocess.PIPE, text=True, check=False).stdout


def test_a_fork_is_told_to_make_its_own(box: Sandbox) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            box.bash("true")
        except UsageError as error:
            os._exit(0 if "fork" in error.message else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert box.bash("true").ok


def test_what_was_set_aside_is_in_the_result(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    with Sandbox(workspace=tmp_path) as box:
        made = box.bash("echo ../x > .git/commondir")
        assert (made.set_aside, made.unguarded) == ((".git/commondir.holt-untrusted",), "")
        assert box.bash("true").set_aside == ()
        made = box.python("open('.git/commondir', 'w').write('../x')")
        assert (made.set_aside, made.unguarded) == ((".git/commondir.holt-untrusted.2",), "")
        assert box.python("1").set_aside == ()


def test_a_result_names_the_path_for_which_the_session_was_stopped(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("a=2\n")
    (tmp_path / ".env").write_text("a=1\n")
    with Sandbox(workspace=tmp_path, policy={"filesystem": {"hide": [".env"]}}) as box:
        assert box.bash("true").replaced == ""
        process = box.spawn(["bash", "-c", "touch ready; sleep 60"])
        until(lambda: (tmp_path / "ready").exists(), "the command runs")
        (tmp_path / "new").rename(tmp_path / ".env")
        result = process.wait()
        assert (result.cause, result.replaced) == ("killed", "/workspace/.env")
        assert box.bash("cat .env").stdout == ""


def double(number: int) -> int:
    """Doubles a number."""
    return 2 * number


def keepers(name: str) -> List[str]:
    """Returns the state of the session's keeper, if it runs."""
    states = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cmdline").read_bytes() == f"holt\0keeper\0{name}\0".encode():
                states.append((process / "stat").read_text().rsplit(")", 1)[1].split()[0])
    return states


def replace_config(box: Sandbox, workspace: Path) -> None:
    """The session has no running process, so its keeper ends."""
    for _ in range(3):
        until(lambda: keepers(box.name) == ["S"], "the keeper has looked, and waits")
        time.sleep(0.02)
    (workspace / ".git" / "new").write_text("[core]\n#new\n")
    (workspace / ".git" / "new").rename(workspace / ".git" / "config")
    until(lambda: not keepers(box.name), "the keeper has ended")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git" / "config").write_text("[core]\n")
    return tmp_path


def test_what_the_host_changes_while_nothing_runs_stays(repository: Path) -> None:
    with Sandbox(workspace=repository) as box:
        box.bash("echo kept >/tmp/x")
        replace_config(box, repository)
        assert box.bash("cat /tmp/x; echo x >> .git/config").stdout == "kept\n"
    assert (repository / ".git" / "config").read_text() == "[core]\n#new\n"


def test_a_session_that_starts_anew_has_the_tools(repository: Path) -> None:
    with Sandbox(workspace=repository, tools=[double]) as box:
        assert box.bash("""holt-tool double '{"number": 4}'""").stdout == "8\n"
        replace_config(box, repository)
        assert box.bash("""holt-tool double '{"number": 4}'""").stdout == "8\n"
        box.remove_tool("double")
        replace_config(box, repository)
        assert box.bash("holt-tool --list").stdout == ""


@pytest.mark.parametrize("call", (
    lambda box: box.bash("echo 'a\0b'"), lambda box: box.exec(["echo", "a\0"]), lambda box: box.python("'\0'"),
    lambda box: box.kv.set("k", "a\0b"), lambda box: box.files.write("f\0", "x"),
), ids=("bash", "exec", "python", "kv", "files"))
def test_a_nul_is_refused_at_once(call, box: Sandbox) -> None:
    with pytest.raises(UsageError, match="NUL"):
        call(box)
    assert box.bash(r"echo '\u0000 \\u0000'").stdout == "\\u0000 \\\\u0000\n"


def test_a_timeout_is_a_number(box: Sandbox) -> None:
    for wrong in (float("nan"), -float("inf"), "5s", [], datetime.timedelta(1)):
        with pytest.raises(UsageError, match="seconds"):
            box.bash("true", timeout=wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="seconds"):
            box.spawn("true").wait(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="number or text"):
        Sandbox(timeout=float("nan"))
    assert box.bash("true", timeout=float("inf")).ok and box.spawn("true").wait(float("inf")).ok
    assert box.bash("sleep 1000", timeout=-1).cause == "timeout"
    with Sandbox(timeout=float("inf")) as other:
        assert other.bash("true").ok


@pytest.mark.parametrize("settings, why", (
    ({"read_only": "/opt"}, "read_only must be a list"), ({"read_write": "/opt"}, "read_write must be a list"),
    ({"tools": print}, "tools must be a list"),
    ({"tools": 5}, "tools must be a list, not 5"), ({"env": {"A=B": "c"}}, "without \"=\""), ({"env": {1: "c"}}, "without \"=\""),
    ({"env": {"A": None}}, "env.'A'. is None"),
    ({"env": ["A=c"]}, "env must be a dict"), ({"policy": ["strict"]}, "policy must be a preset's name"),
    ({"workspace": 5}, "workspace must be the path of a directory"), ({"workspace": ""}, "workspace must be the path of a directory"),
    ({"name": ""}, "is not a valid session name"),
))
def test_settings_that_are_something_else(settings: "dict[str, Any]", why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Sandbox(**settings)


def test_a_policy_s_mistake_is_of_the_dict_that_has_it(holt: str) -> None:
    with pytest.raises(PolicyError) as raised, Sandbox(policy={"limits": {"pidz": 4}}):
        pass
    assert raised.value.message.startswith("policy: $.limits.pidz: ")
    assert repr(raised.value).startswith("PolicyError('policy: $.limits.pidz: ")


def test_settings_are_whatever_can_be_gone_through(holt: str, tmp_path: Path) -> None:
    def shout(text: str) -> str:
        return text.upper()

    def failing() -> "Iterator[str]":
        yield "/opt"
        raise TypeError("the caller's own")

    env = MappingProxyType({"A": "b"})
    with Sandbox(
        policy=MappingProxyType({"limits": {"pids": 64}}), workspace=tmp_path, env=env,
        read_only=(path for path in ("/opt", "/srv")), tools=iter([shout]),
    ) as box:
        assert box.bash("echo $A; holt-tool shout '{\"text\": \"a\"}'").check().stdout == 'b\n"A"\n'
    with pytest.raises(TypeError, match="the caller's own"):
        Sandbox(read_only=failing())


def test_tools_of_a_call_are_a_list(box: Sandbox) -> None:
    for call in (box.bash, box.python):
        with pytest.raises(UsageError, match="tools must be a list"):
            call("1", tools="one")


@pytest.mark.parametrize("end", (signal.SIGTERM, signal.SIGKILL), ids=("TERM", "KILL"))
def test_a_throwaway_goes_with_its_program_however_that_ends(end: int, holt: str) -> None:
    before = set(session_names(holt))
    code = "from holt import Sandbox\nbox = Sandbox().__enter__()\nprint(box.name, flush=True)\nbox.bash('sleep 1000')"
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": PACKAGE}
    )
    assert program.stdout
    name = program.stdout.readline().strip()
    assert name in session_names(holt)
    program.send_signal(end)
    program.wait()
    program.stdout.close()
    until(lambda: set(session_names(holt)) <= before, "its session is gone")


def test_repr_shows_the_names_of_sandboxes_and_processes() -> None:
    with Sandbox() as box:
        assert repr(box) == f"<Sandbox {box.name!r}>" and repr(box.files) == f"<Files of {box.name!r}>"
        process = box.spawn(["true"])
        assert repr(process) == f"<Process {process.id!r} of {box.name!r}>"
    assert repr(box) == f"<Sandbox {box.name!r} (closed)>"
    assert repr(AsyncSandbox("work")) == "<AsyncSandbox 'work'>"


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


def test_tools_that_nobody_offers_are_told_before_anything_starts(box: Sandbox) -> None:
    for run in (box.bash, box.python, box.spawn, lambda line, tools: box.exec([line], tools=tools)):
        with pytest.raises(UsageError, match="no client of the session offers a tool 'nope'"):
            run("true", tools=["nope"])
    assert box.processes() == [] and box.bash("true", tools=[]).ok


def test_what_is_too_long_for_a_command_says_what_to_do(box: Sandbox) -> None:
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


def test_requests_keep_their_order_while_their_connection_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """One comes when the connection is there, and those before it are not sent yet."""
    with contextlib.closing(Server()) as server:
        server.call("session.create", name="order", owned=True)
        sent, send_queued = [], server._send_queued  # type: List[Any], Any

        def write(value: str) -> None:
            sent.append(server.submit("kv.set", {"session": "order", "key": "key", "value": value}))

        def send(*arguments: Any) -> None:
            if len(sent) == 1:
                write("second")
            send_queued(*arguments)

        monkeypatch.setattr(server, "_send_queued", send)
        write("first")
        until(lambda: len(sent) == 2, "both are sent")
        for request in sent:
            request.result()
        assert sent[0].number < sent[1].number
        assert server.call("kv.get", session="order", key="key")["value"] == "second"
