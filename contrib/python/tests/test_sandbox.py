# SPDX-License-Identifier: Apache-2.0
"""Sandbox: commands, code, and the lifetime of sessions."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, Iterator, List

import pytest
from conftest import children, session_names, until

from holt import (
    AsyncSandbox,
    ClosedError,
    CommandFailed,
    ExistsError,
    HoltNotFoundError,
    LimitError,
    MissingError,
    PolicyError,
    Sandbox,
    Server,
    UsageError,
    find_holt,
)

PACKAGE = str(Path(__file__).resolve().parents[1])


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
        with pytest.raises(ExistsError, match=r"already exists with a different .*\n.*Sandbox\(name\).remove\(\)"):
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
    with pytest.raises(TypeError, match="no parameter 'hide'; write policy={'filesystem': {'hide': ...}}"):
        Sandbox(hide=[".env"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no parameter 'rw'; did you mean 'read_write'"):
        Sandbox(rw=["/x"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="has no parameter 'xyz'$"):
        Sandbox(xyz=1)  # type: ignore[arg-type]


def test_a_session_that_must_exist() -> None:
    with pytest.raises(MissingError, match="no-such"):
        Sandbox("no-such", create=False).bash("true")
    assert "no-such" not in [each.name for each in Sandbox.sessions()]
    with pytest.raises(UsageError, match="needs the name"):
        Sandbox(create=False)
    with Sandbox("there") as made, Sandbox("there", create=False) as opened:
        made.kv.set("k", "1")
        assert opened.kv.get("k") == "1"
        made.remove()


def test_policies(box: Sandbox) -> None:
    with Sandbox(policy={"extends": "strict", "env": {"set": {"FROM": "policy"}}}) as strict:
        assert strict.bash("echo $FROM").stdout == "policy\n"
    with Sandbox(policy="strict", memory="512MiB", timeout="5s") as strict:
        assert strict.show()["limits"]["timeout_us"] == 5_000_000
    with pytest.raises(PolicyError, match="limits"):
        Sandbox(policy={"limits": {"timeuot": "1s"}})


def test_a_missing_holt_is_an_error(holt: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_holt_is_not_searched_where_commands_can_write(holt: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, extra = place / "project", place / "extra"
    for each in (project, extra):
        each.mkdir()
    places = [project / ".venv/bin", project / "node_modules/.bin", extra]
    monkeypatch.delenv("HOLT")
    monkeypatch.setenv("PATH", ":".join((*map(str, places), str(Path(holt).parent))))
    for _ in range(2):
        with Sandbox(workspace=project, read_write=[str(extra)]) as box:
            for each in places:
                inside = str(each).replace(str(project), "/workspace")
                script = f"mkdir -p {inside}; printf '#!/bin/sh\\ntouch {project}/ran\\n' > {inside}/holt; chmod 755 {inside}/holt"
                box.bash(script).check()
                assert (each / "holt").exists()
    assert not (project / "ran").exists()

    monkeypatch.setenv("PATH", str(places[0]))
    with pytest.raises(HoltNotFoundError, match=f"{places[0]}/holt is not used") as passed_over:
        Sandbox(workspace=project)
    assert f"HOLT={places[0]}/holt" in str(passed_over.value.hint)

    monkeypatch.chdir(extra)
    for path in ("", ".", ":.:", "node_modules/.bin", str(places[1]), f"{places[1]}/"):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(HoltNotFoundError):
            find_holt()


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


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_kills_the_command_that_is_awaited(box: Sandbox) -> None:
    threading.Timer(0.5, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        box.bash("sleep 1000")
    until(lambda: "sleep 1000" not in box.bash("ps -eo args").stdout, "it is killed")


def test_ctrl_c_at_the_terminal_is_the_program_s_alone(holt: str) -> None:
    """Ctrl-C reaches all processes of the foreground process group. The server must survive it, to end the session."""
    code = (
        # A shell starts background jobs, which the tests may be, with SIGINT ignored.
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from holt import Sandbox\nbox = Sandbox()\nserver = box._server._process\n"
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


def test_results_list_files_that_were_set_aside(tmp_path: Path) -> None:
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


def test_host_changes_stay_while_nothing_runs(repository: Path) -> None:
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


@pytest.mark.parametrize("settings, why", (
    ({"read_only": "/opt"}, "read_only must be a list"), ({"read_write": "/opt"}, "read_write must be a list"),
    ({"net": "@python"}, "net must be a list"), ({"tools": print}, "tools must be a list"),
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


def test_tools_that_nobody_offers_are_told_before_anything_starts(box: Sandbox) -> None:
    for run in (box.bash, box.python, box.spawn, lambda line, tools: box.exec([line], tools=tools)):
        with pytest.raises(UsageError, match="no client of the session offers a tool 'nope'"):
            run("true", tools=["nope"])
    assert box.processes() == [] and box.bash("true", tools=[]).ok


def test_requests_keep_their_order_while_their_connection_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last request comes when the connection is made, but the requests before it are not sent yet."""
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


def test_net_allows_hosts() -> None:
    """The refused name is never looked up outside."""
    lookup = "import socket; socket.getaddrinfo('other.invalid', 80)"
    with Sandbox(net=["example.invalid:80"], policy={"network": {"allow": ["@npm"]}}) as box:
        assert box.show()["network"] == {"mode": "allow", "allow": ["@npm", "example.invalid:80"], "once": [], "publish": [], "import": []}
        (denial,) = box.exec(["python3", "-c", lookup]).denials
        box.allow("net:other.invalid:80", once=True)
        assert box.show()["network"]["once"] == ["other.invalid:80"]
    assert (denial.layer, denial.what, denial.answer) == ("network", "other.invalid", "NXDOMAIN")
    assert denial.hint == 'allow("net:other.invalid") allows it'


def test_without_net_there_is_no_network() -> None:
    with Sandbox() as box:
        assert box.show()["network"] == {"mode": "none", "allow": [], "once": [], "publish": [], "import": []}


def test_an_error_does_not_carry_control_characters_to_the_terminal(box: Sandbox) -> None:
    shell = box.bash("printf 'a\\033]0;title\\007\\r\\nb\\tc\\302\\2332J' >&2; exit 3")
    assert str(shell) == "exit code 3: a\\x1b]0;title\\x07\nb\tc\\x9b2J"
    assert "\x1b]0;title" in shell.stderr
    python = box.python("raise ValueError('\\x1b[2J')")
    assert str(python) == "ValueError: \\x1b[2J"
    for each in (shell, python):
        with pytest.raises(CommandFailed) as failed:
            each.check()
        assert all(c.isprintable() or c in "\n\t" for c in str(failed.value))
