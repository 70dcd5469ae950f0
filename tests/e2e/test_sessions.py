# SPDX-License-Identifier: Apache-2.0
"""Sessions by the command line: they last, and each command in them has its own end."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib import leaks
from lib.identity import Identity
from lib.sessions import Session, Sessions, keepers, until
from lib.terminal import Terminal

Put = Callable[..., Path]

# --- the whole way ---


def listed(sessions: Sessions) -> dict[str, str]:
    return {s["name"]: s["state"] for s in json.loads(sessions(["ls", "--json"]).ok().out)}


def test_a_session_from_create_to_rm(sessions: Sessions) -> None:
    assert sessions(["create", "work"]).ok().out == "work\n"
    assert listed(sessions) == {"work": "at rest"}
    assert sessions(["exec", "work", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]).code == 3
    assert listed(sessions) == {"work": "live"}
    assert sessions(["stop", "work"]).ok().out == ""
    assert listed(sessions) == {"work": "at rest"}
    assert sessions(["rm", "work"]).ok().out == ""
    assert listed(sessions) == {}
    assert list(sessions.directory.iterdir()) == []


def test_machines_are_told_in_json(sessions: Sessions, session: Session) -> None:
    assert json.loads(sessions(["create", "other", "--json"]).ok().out)["name"] == "other"
    assert listed(sessions) == {"other": "at rest", "w": "at rest"}
    session.sh("true").ok()
    shown = session.show()
    assert shown["name"] == "w" and shown["state"] == "live" and shown["cwd"] == "/workspace"


def test_each_command_has_its_own_streams_and_end(session: Session) -> None:
    result = session.sh("echo out; echo err >&2; exit 3")

    assert (result.code, result.out, result.err) == (3, "out\n", "err\n")


@pytest.mark.parametrize("code", (0, 1, 3, 125, 255))
def test_the_exit_code_is_the_command_s(code: int, session: Session) -> None:
    assert session.sh(f"exit {code}").code == code


def test_a_command_that_is_not_there(session: Session) -> None:
    assert "no-such-command" in session.exec("no-such-command").refusal(127)


def test_a_command_that_can_not_be_executed(session: Session) -> None:
    session.sh("touch /workspace/plain").ok()

    assert "/workspace/plain" in session.exec("/workspace/plain").refusal(126)


def test_a_command_that_a_signal_ends(session: Session) -> None:
    assert session.sh("kill -TERM $$").code == 143
    assert session.sh("kill -KILL $$").code == 137


def test_a_signal_to_the_client_reaches_the_command(session: Session) -> None:
    with session.start("bash", "-c", "trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.01; done") as running:
        assert running.readline() == "ready"
        running.kill(signal.SIGUSR1)
        result = running.wait()
    assert (result.code, result.out) == (7, "caught\n")


def test_a_client_that_is_told_to_end_ends_its_command(session: Session) -> None:
    with session.start("sh", "-c", "echo ready; exec sleep 1000") as running:
        assert running.readline() == "ready"
        running.kill(signal.SIGTERM)
        assert running.wait().code == 143
    until(lambda: not session.processes("sleep"), "the command has ended")


def test_where_a_command_starts(session: Session) -> None:
    session.sh("mkdir -p /workspace/sub")

    assert session.exec("pwd").ok().out == "/workspace\n"
    assert session.exec("pwd", flags=["--cwd", "sub"]).ok().out == "/workspace/sub\n"
    assert session.exec("pwd", flags=["--cwd", "/tmp"]).ok().out == "/tmp\n"
    assert "directory" in session.exec("pwd", flags=["--cwd", "nowhere"]).refusal()


def test_variables_of_one_command(session: Session) -> None:
    assert session.sh("echo $A-$B", "--env", "A=1", "--env", "B=2").ok().out == "1-2\n"
    assert session.sh("echo $A-$B", "--env", "B", env={"A": "caller's", "B": "passed"}).ok().out == "-passed\n"


def test_nothing_of_the_caller_s_environment_is_inside(session: Session) -> None:
    env = {"SECRET_TOKEN": "s3cret"}
    session.exec("true", env=env).ok()

    assert "s3cret" not in session.exec("env", env=env).ok().out
    assert "s3cret" not in session.sh("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'", env=env).out


# --- streams ---


def test_stdin_is_read_to_its_end(session: Session) -> None:
    assert session.exec("wc", "-c", stdin="twelve bytes").ok().out == "12\n"
    assert session.exec("cat").ok().out == ""


def test_a_hundred_megabytes_go_through_pipes_as_they_are(session: Session) -> None:
    block = os.urandom(1 << 20)
    expected = hashlib.sha256(block * 100).hexdigest()
    with session.start("cat", stdin=subprocess.PIPE) as running:
        assert running.process.stdin and running.process.stdout
        if os.fork() == 0:
            for _ in range(100):
                os.write(running.process.stdin.fileno(), block)
            os._exit(0)
        running.process.stdin.close()
        seen = hashlib.sha256()
        while data := running.process.stdout.read(1 << 20):
            seen.update(data)
        assert running.process.wait() == 0
    assert seen.hexdigest() == expected


def test_files_of_the_caller_are_the_command_s_own(session: Session, place: Path, identity: Identity) -> None:
    source, target = place / "in", place / "out"
    source.write_text("from a file\n")
    with source.open() as stdin, target.open("w") as stdout:
        session.start("tr", "a-z", "A-Z", stdin=stdin, stdout=stdout).wait().code

    assert target.read_text() == "FROM A FILE\n"


def test_output_of_a_background_process_does_not_hold_the_client(session: Session) -> None:
    """The client ends with its command, though the pipe is still open at the other end."""
    with session.start("bash", "-c", "sleep 1000 & echo done") as running:
        assert running.readline() == "done"
        assert until(lambda: running.process.poll() is not None, "the client ends") and running.process.returncode == 0
    session("kill", "p1").ok()


def test_a_closed_pipe_is_the_command_s_to_notice(session: Session) -> None:
    with session.start("bash", "-c", "yes; echo ended ${PIPESTATUS[0]} >&2") as running:
        assert running.readline() == "y"
        assert running.process.stdout
        running.process.stdout.close()
        running.process.stdout = None
        assert running.wait().code in (1, 141, 0)


# --- processes ---

DAEMON = (
    "import os, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "os.chdir('/'); os.closerange(0, 3)\n"
    "time.sleep(1000)\n"
)

LEAVES = {
    "background": "sleep 1000 &",
    "setsid": "setsid sleep 1000 &",
    "double fork": "( ( sleep 1000 & ) & )",
    "daemon": f"python3 -c \"{DAEMON}\"",
    "nohup": "nohup sleep 1000 >/dev/null 2>&1 & disown",
    "ignores TERM": "bash -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' &",
}


def sleepers(session: Session) -> list[leaks.Process]:
    return [p for p in session.processes() if p.name in ("sleep", "python3", "bash")]


@pytest.mark.parametrize("way", LEAVES)
def test_what_a_command_leaves_lives_on(way: str, session: Session) -> None:
    session.sh(f"{LEAVES[way]}\n exit 0", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).ok()
    until(lambda: sleepers(session), "it runs")

    assert session.ps()["p1"]["state"] == "background"
    session.exec("true").ok()
    assert sleepers(session)


@pytest.mark.parametrize("way", LEAVES)
def test_kill_takes_all_that_a_command_has_started(way: str, session: Session) -> None:
    other = session.detach("exec sleep 2000")
    killed = session.detach(f"{LEAVES[way]}\n sleep 1000")
    until(lambda: len(sleepers(session)) >= 3, "both run")
    session("kill", killed).ok()
    until(lambda: session.ps()[killed]["state"] == "ended", "it is killed")

    assert session.ps()[killed]["cause"] == "killed"
    assert session.ps()[other]["state"] == "running"
    assert len(sleepers(session)) == 1


@pytest.mark.parametrize("way", LEAVES)
def test_kill_takes_what_an_ended_command_has_left(way: str, session: Session) -> None:
    session.sh(f"{LEAVES[way]}\n exit 0", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).ok()
    until(lambda: sleepers(session), "it runs")
    session("kill", "p1").ok()

    until(lambda: session.ps()["p1"]["state"] == "ended", "it is killed")
    assert sleepers(session) == []
    assert session.ps()["p1"]["cause"] == "exited"


@pytest.mark.parametrize("way", LEAVES)
def test_a_timeout_takes_all_that_a_command_has_started(way: str, sessions: Sessions) -> None:
    session = sessions.create("w", "--kill-after", "100ms")
    result = session.sh(f"{LEAVES[way]}\n sleep 1000", "--timeout", "200ms")

    assert result.code == 124, result
    until(lambda: session.ps()["p1"]["state"] == "ended", "all of it is killed")
    assert sleepers(session) == []
    assert session.ps()["p1"]["cause"] == "timeout"
    assert [row["kind"] for row in session.audit()] == ["limit"]


def test_kill_of_a_client_s_command_is_told_to_the_client(session: Session) -> None:
    with session.start("sh", "-c", "echo ready; sleep 1000") as running:
        assert running.readline() == "ready"
        session("kill", "p1").ok()
        assert running.wait().code == 137


def test_ps_has_states_and_ends(session: Session) -> None:
    session.sh("exit 3")
    session.detach("exec sleep 1000")
    text = session("ps").ok().out.splitlines()

    assert text[0].split() == ["ID", "STATE", "EXIT", "STARTED", "COMMAND"]
    assert text[1].split()[:2] == ["p2", "running"]
    assert text[2].split()[:3] == ["p1", "ended", "3"]


def test_what_commands_call_themselves_does_not_reach_the_terminal(session: Session) -> None:
    session.exec("true", "\x1b[2J\x07")

    assert not set(session("ps").ok().out) & set("\x1b\x07")


def test_a_detached_command_has_no_client(session: Session) -> None:
    session.detach("echo told; read; echo $? >/workspace/ended")
    until(lambda: session.ps()["p1"]["state"] == "ended", "it has ended")

    assert session.sh("cat /workspace/ended").ok().out == "1\n"


def test_kill_of_what_is_not_there(session: Session) -> None:
    assert "at rest" in session("kill", "p9").refusal()
    session.wake()
    assert '"p9"' in session("kill", "p9").refusal()


# --- kv, history, audit ---


def test_keys_and_values(session: Session) -> None:
    session("kv", "set", "user_id", "12345").ok()
    session("kv", "set", "user_name", "ä\n日本").ok()
    session("kv", "set", "other", "").ok()

    assert session("kv", "get", "user_id").ok().out == "12345\n"
    assert session("kv", "get", "user_name").ok().out == "ä\n日本\n"
    assert session("kv", "keys").ok().out.split() == ["other", "user_id", "user_name"]
    assert session("kv", "keys", "user_").ok().out.split() == ["user_id", "user_name"]
    session("kv", "delete", "user_id").ok()
    assert "user_id" in session("kv", "get", "user_id").refusal()


def test_a_key_that_is_too_long(session: Session) -> None:
    assert "key" in session("kv", "set", "k" * 1025, "v").refusal()
    session("kv", "set", "k" * 1024, "v").ok()


def test_values_last(session: Session) -> None:
    session("kv", "set", "k", "v").ok()
    session.stop()
    assert session("kv", "get", "k").ok().out == "v\n"
    session.kill_keeper()
    assert session("kv", "get", "k").ok().out == "v\n"


def test_history_has_every_command(session: Session) -> None:
    session.sh("exit 3")
    session.exec("no-such-command")
    session.stop()
    last, first = session.history()

    assert json.loads(first["params"])["argv"] == ["bash", "-c", "exit 3"]
    assert json.loads(first["result"])["exit_code"] == 3
    assert first["started_ms"] <= first["ended_ms"] <= last["ended_ms"]
    assert json.loads(last["result"])["exit_code"] == 127


def test_audit_has_denials_and_kills(session: Session) -> None:
    session.sh("unshare -U true; mount -t tmpfs x /mnt")
    session("kill", session.detach("sleep 1000")).ok()
    until(lambda: session.ps()["p2"]["state"] == "ended", "it is killed")
    rows = session.audit()

    assert {row["kind"] for row in rows} == {"denial", "kill"}
    whats = {json.loads(row["detail"]).get("what") for row in rows}
    assert "unshare" in whats


# --- what lasts ---

PLACES = ("/workspace", "/home/agent", "/tmp", "/var/tmp", "/project", "/opt/tool", "/mnt/files")


def leave_files(session: Session) -> None:
    for place in PLACES:
        session.sh(f"mkdir -p {place} && echo {place} >{place}/file && ln -s file {place}/link && chmod 751 {place}/file").ok()


def assert_files(session: Session) -> None:
    for place in PLACES:
        assert session.sh(f"cat {place}/link; stat -c %a-%U {place}/file").ok().out == f"{place}\n751-agent\n"


@pytest.mark.parametrize("times", (1, 3))
def test_files_last_over_stop_and_start(times: int, session: Session) -> None:
    leave_files(session)
    for _ in range(times):
        session.stop()
        assert_files(session)


def test_files_last_over_a_killed_keeper(session: Session) -> None:
    leave_files(session)
    session.kill_keeper()

    assert_files(session)


def test_run_and_shm_do_not_last(session: Session) -> None:
    session.sh("touch /run/file /dev/shm/file").ok()
    session.stop()

    assert session.sh("ls /run /dev/shm").ok().out.split() == ["/dev/shm:", "/run:"]


def test_the_host_sees_the_files_as_the_caller_s(session: Session, identity: Identity) -> None:
    session.sh("echo inside >/workspace/file; echo inside >/mnt/files/file").ok()

    for name in ("workspace", "files"):
        file = session.directory / name / "file"
        assert file.read_text() == "inside\n"
        assert (file.stat().st_uid, file.stat().st_gid) == (identity.uid, identity.gid)


def test_a_workspace_of_the_caller_s(sessions: Sessions, workspace: Path, put: Put, identity: Identity) -> None:
    put("mine", "mine\n", 0o640)
    session = sessions.create("w", "--workspace", workspace)

    assert session.sh("cat mine; pwd; stat -c %U mine; echo made >made").ok().out == "mine\n/workspace\nagent\n"
    assert (workspace / "made").read_text() == "made\n"
    for name in ("mine", "made"):
        assert (workspace / name).stat().st_uid == identity.uid
    session("rm").ok()
    assert (workspace / "made").exists()


def test_a_relative_workspace_is_that_of_create(sessions: Sessions, put: Put, workspace: Path) -> None:
    put("sub/file", "found\n")
    session = sessions.create("w", "--workspace", "sub", cwd=workspace)

    assert session.exec("cat", "file", cwd="/").ok().out == "found\n"


def test_sessions_see_nothing_of_each_other(sessions: Sessions) -> None:
    one, two = sessions.create("one"), sessions.create("two")
    one.sh("echo secret >/workspace/f; echo secret >/tmp/f; echo secret >/mnt/files/f").ok()
    one.detach("exec sleep 1000")

    assert two.sh("ls /workspace /tmp /mnt/files | grep -c '^f$'; ps ax | grep -c '[s]leep'").out == "0\n0\n"


# --- the policy ---


FORKS = """
import os, signal, time
made = []
try:
    while True:
        made.append(os.fork())
        if not made[-1]:
            time.sleep(1000)
except BlockingIOError:
    print(len(made))
for pid in made:
    os.kill(pid, signal.SIGKILL)
"""


@pytest.mark.parametrize("again", ("at first", "after stop", "after a crash"))
def test_the_policy_of_create_is_in_force(
    again: str, sessions: Sessions, place: Path, workspace: Path, put: Put, identity: Identity
) -> None:
    data = identity.own(put(place / "ro" / "file", "readable\n").parent)
    put("hidden", "hidden\n")
    session = sessions.create(
        "w", "--workspace", workspace, "--ro", data, "--hide", "hidden", "--env", "SET=it", "--env", "PASSED",
        "--timeout", "60s", "--pids", "40", env={"PASSED": "as it was"},
    )
    if again != "at first":
        session.exec("true").ok()
        session.stop() if again == "after stop" else session.kill_keeper()

    assert session.sh(f"cat {data}/file").ok().out == "readable\n"
    assert session.sh(f"echo x >{data}/file").code == 1
    assert session.sh("cat hidden").code == 1
    assert session.sh("echo $SET $PASSED", env={"PASSED": "another"}).ok().out == "it as it was\n"
    assert 20 < int(session.exec("python3", "-c", FORKS).ok().out) < 40


def test_the_policy_s_timeout_is_each_command_s(sessions: Sessions) -> None:
    session = sessions.create("w", "--timeout", "200ms", "--kill-after", "100ms")

    assert session.exec("sleep", "1000").code == 124
    session.exec("true").ok()
    assert session.exec("sleep", "1000", flags=["--timeout", "100ms"]).code == 124


def test_create_refuses_a_policy_that_can_not_be(sessions: Sessions) -> None:
    assert sessions(["create", "w", "--pids", "many"]).code == 125
    assert sessions(["create", "w", "--workspace", "/nowhere/at/all"]).code in (0, 125)
    assert not [n for n in os.listdir(sessions.directory) if n.startswith(".")] if sessions.directory.is_dir() else True


def test_a_workspace_that_is_gone_is_named(sessions: Sessions, place: Path, workspace: Path, put: Put) -> None:
    put("sub/file")
    session = sessions.create("w", "--workspace", workspace / "sub")
    (workspace / "sub" / "file").unlink()
    (workspace / "sub").rmdir()

    assert str(workspace / "sub") in session.exec("true").refusal()
    assert sessions.names() == ["w"]


# --- many at once ---


def test_fifty_commands_at_once(session: Session) -> None:
    session.exec("true").ok()
    running = [session.start("sh", "-c", f"echo {i}; exit {i}") for i in range(50)]
    results = [each.wait() for each in running]

    assert [(r.code, r.out) for r in results] == [(i, f"{i}\n") for i in range(50)]


def test_a_session_at_rest_is_started_once_for_all(session: Session) -> None:
    results = [each.wait() for each in [session.start("echo", str(i)) for i in range(20)]]

    assert [r.out for r in results] == [f"{i}\n" for i in range(20)]
    assert len(keepers()) == 1


def test_two_clients_share_files_and_processes(session: Session) -> None:
    with session.start("bash", "-c", "mkfifo /tmp/fifo; echo ready; cat /tmp/fifo") as one:
        assert one.readline() == "ready"
        session.sh("echo through >/tmp/fifo").ok()
        assert one.wait().ok().out == "through\n"


def test_of_two_creates_of_one_name_one_wins(sessions: Sessions) -> None:
    results = [each.wait() for each in [sessions.start(["create", "w"]) for _ in range(8)]]

    assert sorted(r.code for r in results) == [0] + [125] * 7
    assert all('"w"' in r.refusal() for r in results if r.code)
    assert sessions.names() == ["w"]
    assert [p.name for p in sessions.directory.iterdir()] == ["w"]


def test_a_command_while_the_session_stops(session: Session) -> None:
    """It runs to its end, or is ended: never is it lost without a word, and the session goes on."""
    for _ in range(5):
        session.exec("true").ok()
        stopping = session.sessions.start(["stop", "w"])
        racing = [session.start("sh", "-c", "echo ran") for _ in range(4)]
        for each in racing:
            result = each.wait()
            assert (result.code, result.out) == (0, "ran\n") or result.code in (137, 143, 125), result
            assert result.code != 125 or result.err.startswith("holt: "), result
        stopping.wait().ok()
    session.exec("true").ok()


def test_stop_ends_what_runs(session: Session) -> None:
    with session.start("sh", "-c", "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.01; done") as running:
        assert running.readline() == "ready"
        session.stop()
        result = running.wait()
    assert (result.code, result.out) == (5, "told\n")


def test_stop_does_not_wait_for_those_who_will_not(sessions: Sessions) -> None:
    session = sessions.create("w", "--kill-after", "100ms")
    session.detach("trap '' TERM; while :; do sleep 1000; done")
    session.stop()

    assert keepers() == []


def test_stop_is_at_rest_already(session: Session) -> None:
    session.stop()
    session.stop()


def test_rm_of_a_live_session(session: Session) -> None:
    session.detach("mkdir -p /tmp/a/b; chmod 0 /tmp/a; ln -s / /tmp/link; exec sleep 1000")
    session("rm").ok()

    assert keepers() == []
    assert not session.directory.exists()


def test_an_idle_session_ends(sessions: Sessions) -> None:
    session = sessions.create("w", "--idle", "1s")
    session.exec("true").ok()
    until(lambda: not keepers(), "the keeper leaves")

    session.exec("true").ok()


def test_a_session_that_works_is_not_idle(sessions: Sessions) -> None:
    session = sessions.create("w", "--idle", "1s")
    session.detach("sleep 2.5; echo survived >/workspace/file")
    until(lambda: not keepers(), "the keeper leaves")

    assert session.sh("cat /workspace/file").ok().out == "survived\n"


# --- names and mistakes ---


@pytest.mark.parametrize("name", ("a/b", "..", ".", "../../x", "", "-x", ".hidden", "x" * 65, "a b", "a\nb", "ä", "a\0b"[:1] + "!"))
def test_a_name_that_can_not_be(name: str, sessions: Sessions) -> None:
    for verb in ("create", "exec", "stop", "rm", "show"):
        result = sessions([verb, name, *(["--", "true"] if verb == "exec" else [])])
        assert result.code == 125 and result.err.startswith("holt: ") and result.out == "", result
    assert not sessions.directory.is_dir() or list(sessions.directory.iterdir()) == []


@pytest.mark.parametrize("name", ("x" * 64, "a.b_c-d", "0", "A"))
def test_a_name_that_can_be(name: str, sessions: Sessions) -> None:
    assert sessions.create(name).exec("true").ok()


def test_an_unknown_session(sessions: Sessions, session: Session) -> None:
    for args in (["exec", "v", "--", "true"], ["show", "v"], ["stop", "v"], ["rm", "v"], ["ps", "v"], ["kv", "v", "keys"]):
        result = sessions(args)
        assert '"v"' in result.refusal() and '"w"' in result.cure
    assert sessions.names() == ["w"]


def test_a_session_that_is_there(sessions: Sessions, session: Session) -> None:
    session.sh("echo kept >/workspace/file").ok()

    assert '"w"' in sessions(["create", "w"]).refusal()
    assert session.sh("cat /workspace/file").ok().out == "kept\n"


def test_a_session_s_directory_that_is_a_link(sessions: Sessions, session: Session, place: Path) -> None:
    (sessions.directory / "link").symlink_to(session.directory)

    assert sessions(["exec", "link", "--", "true"]).code == 125
    (sessions.directory / "link").unlink()


def test_a_very_long_path_of_sessions(sessions: Sessions, identity: Identity) -> None:
    """Longer than a socket's name may be."""
    deep = sessions.data
    for _ in range(6):
        deep = deep / ("d" * 40)
        deep.mkdir(mode=0o700)
        identity.own(deep)
    long = Sessions(sessions.holt, deep)
    long.create("w").exec("true").ok()

    assert long.clean_up() == []


def test_the_keeper_has_nothing_of_its_starter(sessions: Sessions, session: Session) -> None:
    session.exec("true", env={"SECRET_TOKEN": "s3cret"}).ok()
    keeper = session.keeper()

    assert Path(f"/proc/{keeper}/cmdline").read_bytes() == b"holt\0keeper\0w\0"
    if os.geteuid() == 0:
        assert Path(f"/proc/{keeper}/environ").read_bytes() == b""
        assert os.readlink(f"/proc/{keeper}/cwd") == "/"
        for fd in range(3):
            assert os.readlink(f"/proc/{keeper}/fd/{fd}") == "/dev/null"
    assert os.getsid(keeper) == keeper


# --- a terminal ---

PROMPT = r"\$ "


@pytest.fixture
def sh(sessions: Sessions, session: Session) -> Iterator[Callable[..., Terminal]]:
    """Starts "holt sh w", or "holt ARGS", on a terminal."""
    opened: list[Terminal] = []

    def start(*args: str, **options: object) -> Terminal:
        argv = sessions.holt.argv([*(args or ("sh", "w"))])
        options.setdefault("cwd", sessions.holt.cwd)
        env = {**sessions.env, "TERM": "dumb"}
        opened.append(Terminal(sessions.holt.identity, argv, env=env, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.__exit__()


def test_sh_is_a_shell_on_a_terminal(sh: Callable[..., Terminal]) -> None:
    shell = sh(size=(33, 77))
    shell.expect(PROMPT)
    shell.send("stty size; tty\n")
    shell.expect(r"33 77\r\n/dev/pts/\d+\r\n")
    shell.expect(PROMPT)
    shell.send("exit 9\n")
    assert shell.wait() == 9
    assert shell.modes() == shell.initial


def test_a_resize_goes_in(sh: Callable[..., Terminal]) -> None:
    shell = sh()
    shell.expect(PROMPT)
    shell.send("trap 'stty size' WINCH; echo se''t\n")
    shell.expect("set\r\n")
    shell.until_raw()
    shell.resize(42, 142)
    shell.interrupt(signal.SIGWINCH)
    shell.expect("42 142")
    shell.send("exit\n")
    assert shell.wait() == 0


def test_ctrl_c_ends_a_job_and_not_the_shell(sh: Callable[..., Terminal]) -> None:
    shell = sh()
    shell.expect(PROMPT)
    shell.send("sh -c \"echo run''ning; exec sleep 1000\"\n")
    shell.expect("running")
    shell.send("\x03")
    shell.expect(PROMPT)
    shell.send("echo $?-al''ive\n")
    shell.expect("130-alive")
    shell.expect(PROMPT)
    shell.send("\x04")
    shell.wait()


def test_ctrl_z_and_fg(sh: Callable[..., Terminal]) -> None:
    shell = sh()
    shell.expect(PROMPT)
    shell.send("sh -c \"echo run''ning; exec cat\"\n")
    shell.expect("running")
    shell.send("\x1a")
    shell.expect(r"\[1\]\+\s+Stopped")
    shell.expect(PROMPT)
    shell.send("fg\n")
    shell.expect("exec cat.*\r\n")
    shell.send("back\n")
    shell.expect("back\r\nback\r\n")
    shell.send("\x04")
    shell.expect(PROMPT)
    shell.send("exit 3\n")
    assert shell.wait() == 3


def test_exec_has_a_terminal_where_its_caller_has(sh: Callable[..., Terminal]) -> None:
    shell = sh("exec", "w", "--", "bash", "-c", "test -t 0 && test -t 1 && echo a terminal; exit 4")
    assert shell.wait() == 4
    assert "a terminal" in shell.output


def test_a_terminal_that_goes_ends_its_command(sh: Callable[..., Terminal], session: Session) -> None:
    shell = sh("exec", "w", "--", "sh", "-c", "echo ready; exec sleep 1000")
    shell.expect("ready")
    shell.process.kill()
    shell.process.wait()
    until(lambda: not session.processes("sleep"), "the command has ended")


def test_only_output_is_a_pipe(sh: Callable[..., Terminal], session: Session, place: Path, identity: Identity) -> None:
    """Keys come from the terminal; what is printed goes to a file."""
    target = place / "target"
    target.touch()
    identity.own(target)
    command = f"exec {' '.join(session.sessions.holt.argv(['exec', 'w', '--', 'head', '-n1']))} >{target}"
    env = {**session.sessions.env, "TERM": "dumb"}
    argv = ["sh", "-c", command]
    with Terminal(session.sessions.holt.identity, argv, cwd=session.sessions.holt.cwd, env=env) as terminal:
        terminal.send("typed\n")
        assert terminal.wait(timeout=3) == 0
    assert target.read_text() == "typed\n"
