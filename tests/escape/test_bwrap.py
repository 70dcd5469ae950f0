# SPDX-License-Identifier: Apache-2.0
"""holt bwrap: a hostile workspace at the places of its steps, a hostile command, and callers that end at a bad moment."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lib.bwrap import PRIVATE, SYSTEM, Bwrap
from lib.identity import Identity
from lib.leaks import descendants
from lib.sandbox import Holt
from lib.sessions import until

BARE = ("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64")
STANDARD = {"HOLT_BWRAP_POLICY": "standard"}
# Opens every pipe of PID 1, which holds the one for the end of the command.
PIPES = """
import glob, os, struct, sys, time
def pipes(mode):
    found = []
    for path in glob.glob('/proc/1/fd/*'):
        try:
            if os.readlink(path).startswith('pipe:'):
                found.append(os.open(path, mode))
        except OSError:
            pass
    return found
"""


@pytest.fixture
def bwrap(holt: Holt) -> Bwrap:
    return Bwrap([holt.binary, "bwrap"], holt.identity, holt.cwd)


@pytest.fixture
def ws(place: Path, bwrap: Bwrap) -> Path:
    """A workspace that an earlier command has prepared, beside a victim."""
    path = place / "ws"
    path.mkdir()
    victim = place / "victim"
    victim.mkdir(mode=0o755)
    (victim / "file").write_text("precious\n")
    (victim / "file").chmod(0o640)
    for made in (path, victim, victim / "file"):
        bwrap.identity.own(made)
    return path


def state(victim: Path) -> "list[tuple[str, int, str]]":
    return [(str(p), p.lstat().st_mode, p.read_text() if p.is_file() else "") for p in (victim, *sorted(victim.rglob("*")))]


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


# --- places in a workspace ---

LINKS = ("{victim}", "../victim", "../../../../../../../..{victim}", "/proc/self/root{victim}", "/proc/self/cwd/../victim")


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("step", (
    ("--dir", "{ws}/l/new"), ("--file", "FD", "{ws}/l/file"), ("--file", "FD", "{ws}/l/new"), ("--symlink", "/x", "{ws}/l/new"),
    ("--chmod", "0777", "{ws}/l/file"), ("--chmod", "0777", "{ws}/l"), ("--bind-data", "FD", "{ws}/l/new"), ("--tmpfs", "{ws}/l/new"),
    ("--ro-bind", "/usr", "{ws}/l/new"), ("--bind", "{ws}", "{ws}/l/new/deep/er"), ("--proc", "{ws}/l/new"), ("--dev", "{ws}/l/new"),
    ("--file", "FD", "{ws}/f"), ("--chmod", "0777", "{ws}/f"), ("--bind-data", "FD", "{ws}/f"),
    ("--overlay-src", "/usr", "--tmp-overlay", "{ws}/l/new"), ("--file", "FD", "{ws}/../victim/file"), ("--dir", "{ws}/../../../..{victim}/new"),
), ids=lambda step: " ".join(step) if isinstance(step, tuple) else None)
def test_a_place_does_not_lead_out(step: "tuple[str, ...]", link: str, bwrap: Bwrap, ws: Path) -> None:
    """The victim is not bound. Whatever the step does, it does inside, or in the workspace."""
    victim = ws.parent / "victim"
    (ws / "l").symlink_to(link.format(victim=victim))
    (ws / "f").symlink_to(link.format(victim=victim) + "/file")
    before, host = state(victim), mounts()
    words = [bwrap.file(b"hostile") if w == "FD" else w.format(ws=ws, victim=victim) for w in step]
    bwrap(*BARE, "--proc", "/proc", "--unshare-pid", "--bind", ws, ws, *words, "--", "true")
    assert state(victim) == before and mounts() == host


@pytest.mark.parametrize("step", (("--file", "FD", "{ws}/x/file"), ("--dir", "{ws}/x/new"), ("--chmod", "0777", "{ws}/x/file"), ("--tmpfs", "{ws}/x/new")),
                         ids=lambda step: step[0])
@pytest.mark.slow
def test_a_place_that_changes_meanwhile_does_not_lead_out(step: "tuple[str, ...]", bwrap: Bwrap, ws: Path) -> None:
    """Another process of the workspace swaps a directory for a symlink, over and over."""
    victim = ws.parent / "victim"
    (ws / "d").mkdir(), bwrap.identity.own(ws / "d")
    (ws / "d/file").write_text("harmless"), bwrap.identity.own(ws / "d/file")
    before, host = state(victim), mounts()
    script = f"while :; do ln -sfn {victim} x; mv -T x y; mv -T d x; mv -T x d; mv -T y x; rm -f x; done 2>/dev/null"
    with subprocess.Popen(bwrap.identity.as_user(["sh", "-c", script]), cwd=ws, stdout=subprocess.PIPE, start_new_session=True) as swapper:
        for _ in range(60):
            words = [bwrap.file(b"hostile") if w == "FD" else w.format(ws=ws) for w in step]
            bwrap(*BARE, "--bind", ws, ws, *words, "--", "true")
        os.killpg(swapper.pid, signal.SIGKILL)
        assert swapper.stdout and swapper.stdout.read() == b""  # a mv that still ends holds the pipe
    assert state(victim) == before and mounts() == host


def test_a_place_is_found_while_files_are_renamed(bwrap: Bwrap, ws: Path) -> None:
    """The kernel refuses to follow ".." during a rename, so holt tries again."""
    (ws / "d").mkdir(), bwrap.identity.own(ws / "d")
    script = "import os\nwhile True:\n    os.rename('a', 'b'); os.rename('b', 'a')"
    (ws / "a").mkdir(), bwrap.identity.own(ws / "a")
    with subprocess.Popen(bwrap.identity.as_user(["python3", "-c", script]), cwd=ws, stderr=subprocess.DEVNULL) as renamer:
        for _ in range(10):
            words = [w for i in range(200) for w in ("--chmod", "0755", f"{ws}/d/../d/../d/../d")]
            bwrap(*BARE, "--bind", ws, ws, *words, "--", "true").ok()
        renamer.kill()


@pytest.mark.parametrize("step", (("--file", "FD", "{ws}/fifo"), ("--lock-file", "{ws}/fifo"), ("--bind-data", "FD", "{ws}/fifo"),
                                  ("--chmod", "0600", "{ws}/fifo"), ("--chdir", "{ws}/fifo")), ids=lambda step: step[0])
def test_a_fifo_in_the_workspace_holds_nothing_up(step: "tuple[str, ...]", bwrap: Bwrap, ws: Path) -> None:
    os.mkfifo(ws / "fifo"), bwrap.identity.own(ws / "fifo")
    words = [bwrap.file(b"x") if w == "FD" else w.format(ws=ws) for w in step]
    bwrap(*SYSTEM, "--bind", ws, ws, *words, "--", "true")  # it ends


# --- the host's mounts ---


@pytest.mark.identities("root", "nested")
@pytest.mark.parametrize("options", (
    (), ("--unshare-all",), ("--unshare-user",), ("--unshare-net", "--info-fd", "FD"), ("--unshare-user-try",), ("--tmpfs", "/mnt", "--proc", "/proc"),
    ("--overlay-src", "/usr", "--tmp-overlay", "/mnt"), ("--remount-ro", "/"), ("--dev", "/dev", "--mqueue", "/dev/mqueue"),
), ids=" ".join)
def test_no_mount_reaches_the_host(options: "tuple[str, ...]", bwrap: Bwrap) -> None:
    """Not from holt, and not from root inside, who may mount and unmount."""
    host = mounts()
    words = [bwrap.file() if w == "FD" else w for w in options]
    script = "mount -t tmpfs none /tmp; mount --make-rshared /; mount -t tmpfs none /var; umount -l /usr; umount -l /proc; true"
    bwrap.sh(script, "--dev-bind", "/", "/", *words)
    bwrap(*SYSTEM, *[bwrap.file() if w == "FD" else w for w in options], "--", "no-such-program")
    assert mounts() == host


# --- descriptors ---


@pytest.mark.parametrize("options", ((), ("--unshare-pid",), ("--unshare-pid", "--as-pid-1"), ("--unshare-all", "--die-with-parent"),
                                     ("--lock-file", "/etc/passwd"), ("--sync-fd", "FD"), ("--info-fd", "FD", "--unshare-net"),
                                     ("--json-status-fd", "FD", "--unshare-pid"), ("--bind-data", "FD", "/tmp/x", "--tmpfs", "/tmp/y")), ids=" ".join)
@pytest.mark.parametrize("env", ({}, STANDARD), ids=("plain", "policy"))
def test_no_descriptor_of_holt_reaches_the_command(options: "tuple[str, ...]", env: "dict[str, str]", bwrap: Bwrap) -> None:
    words = [bwrap.file() if w == "FD" else w for w in options]
    own = bwrap.give(os.open("/usr", os.O_PATH))
    found = bwrap("--ro-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/tmp", *words, "--", "ls", "/proc/self/fd", env=env).ok().out.split()
    # ls(1) has opened the directory, under the lowest free number.
    assert set(found) <= {"0", "1", "2", own, "3", "4"} and len(found) == 5, found
    if not words or "FD" not in options:
        assert all(fd in found for fd in ("0", "1", "2", own))


@pytest.mark.parametrize("closed", ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"))
@pytest.mark.parametrize("link", (False, True), ids=("verb", "link"))
def test_closed_standard_streams_get_no_message(closed: str, link: bool, bwrap: Bwrap, place: Path) -> None:
    """A message must not end up in a file that has got the number of stderr."""
    words = " ".join(map(str, bwrap.words))
    if link:
        (place / "bwrap").symlink_to(bwrap.words[0])
        words = str(place / "bwrap")
    report = bwrap.identity.tmp / "bwrap-report"
    script = f"{words} --ro-bind / / --unshare-pid -- no-such-program {closed}; {words} --ro-bind / / --unshare-pid -- sh -c 'exit 3' {closed}"
    argv = bwrap.identity.as_user(bwrap.identity.argv(["sh", "-c", script]))
    done = subprocess.run(argv, env=bwrap.identity.environment({"HOLT_BWRAP_REPORT": str(report)}), cwd=place, capture_output=True, timeout=60)
    told = json.loads(report.read_text())
    report.unlink()
    assert done.returncode == 3 and told["exit_code"] == 3


@pytest.mark.parametrize("fd", ("0", "2"))
def test_options_from_a_standard_stream(fd: str, bwrap: Bwrap, place: Path) -> None:
    """holt closes the descriptor, and must not write messages to the file that gets its number."""
    report = bwrap.identity.tmp / "bwrap-report"
    args = place / "args"
    args.write_bytes(b"--ro-bind\0/\0/\0--unshare-pid\0")
    words = " ".join(map(str, bwrap.words))
    script = f"{words} --args {fd} -- no-such-program {fd}<{args}"
    argv = bwrap.identity.as_user(bwrap.identity.argv(["sh", "-c", script]))
    done = subprocess.run(argv, env=bwrap.identity.environment({"HOLT_BWRAP_REPORT": str(report)}), cwd=place, capture_output=True, timeout=60)
    text = report.read_text()
    report.unlink()
    assert done.returncode == 1 and json.loads(text)["exit_code"] == 1 and "bwrap:" not in text


def test_a_caller_with_few_descriptors(bwrap: Bwrap) -> None:
    words = " ".join(map(str, [*bwrap.words, *PRIVATE, *[w for i in range(30) for w in ("--ro-bind", "/usr", "/usr")]]))
    for limit, code in (("-Sn 20", 0), ("-n 20", 1), ("-n 8", 1)):
        argv = bwrap.identity.as_user(bwrap.identity.argv(["sh", "-c", f"ulimit {limit}; {words} -- sh -c 'ulimit -Sn'"]))
        done = subprocess.run(argv, env=bwrap.identity.environment(), cwd=bwrap.cwd, capture_output=True, text=True, timeout=60)
        assert done.returncode == code and (done.stdout == "20\n" if code == 0 else "limit of open files is too low" in done.stderr), done


def test_two_messages_need_two_descriptors(bwrap: Bwrap) -> None:
    fd = bwrap.file()
    result = bwrap(*PRIVATE, "--info-fd", fd, "--json-status-fd", fd, "--", "true")
    assert result.code == 1 and "different descriptors" in result.err


# --- limits of the parser ---


@pytest.mark.parametrize("content,why", (
    (b"--dir\0/tmp/x\0" * 4097, "too many options"), (b"\0" * 70000, "cannot read"), (b"a" * (9 << 20), "cannot read"), (b"--args\0" + b"0\0" * 3, "--args"),
    (b"\0", "is no option"), (b"--", "is no option"), (b"--bind", "needs two values"), (b"--file\x00" + b"9" * 400 + b"\0x\0", "no file descriptor"),
    (b"--dir\0/" + b"a" * 256 + b"\0", "name too long"), (b"--dir\0" + b"/a" * 2100 + b"\0", "name too long"), (b"--perms\0" + b"7" * 99 + b"\0", "octal"),
    (b"--size\0" + b"9" * 99 + b"\0", "number of bytes"), (b"--size\0" + b"9223372036854775807\0--tmpfs\0/tmp\0", None),
    (b"--overlay-src\0/usr\0" * 900 + b"--tmp-overlay\0/tmp\0", "name too long"), (b"--uid\x004294967295\0", "no id"), (b"--hostname\0" + b"h" * 65 + b"\0", None),
    (b"--lock-file\0/etc/passwd\0" * 65, "too many --lock-file"), (b"--setenv\0A\0" + b"x" * 200000 + b"\0", None), (b"--symlink\0" + b"x" * 5000 + b"\0/l\0", "name too long"),
    (b"--file\x000\0/tmp" + b"/a" * 2100 + b"\0", "name too long"), (b"--remount-ro\0" + b"/x" * 2500 + b"\0", "name too long"),
), ids=lambda value: value[:20].decode().replace("\0", " ") if isinstance(value, bytes) else "")
def test_hostile_options(content: bytes, why: "str | None", bwrap: Bwrap) -> None:
    result = bwrap("--ro-bind", "/", "/", "--tmpfs", "/tmp", "--args", bwrap.file(content), "--", "true")
    assert result.code in ((1,) if why else (0, 1)) and (why or "").lower() in result.err.lower(), result.err[:500]
    assert "Sanitizer" not in result.err


def test_as_many_steps_as_fit(bwrap: Bwrap) -> None:
    content = b"".join(b"--dir\0/tmp/%d\0" % i for i in range(4094))
    bwrap(*SYSTEM, "--tmpfs", "/tmp", "--args", bwrap.file(content), "--", "test", "-d", "/tmp/4093").ok()
    locks = [w for _ in range(64) for w in ("--lock-file", "/etc/passwd")]
    bwrap(*SYSTEM, *locks, "--sync-fd", bwrap.file(), "--", "true").ok()


# --- the end of the command ---


def test_the_command_cannot_hold_up_the_timeout(bwrap: Bwrap, place: Path) -> None:
    """It empties the pipe of the reaper before holt has read it."""
    policy = place / "policy.json"
    policy.write_text('{"holt": 1, "limits": {"timeout": "3s"}}')
    bwrap.identity.own(policy)
    script = PIPES + """
readers, writers = pipes(os.O_RDONLY | os.O_NONBLOCK), pipes(os.O_WRONLY | os.O_NONBLOCK)
while True:
    for fd in writers:
        try:
            os.write(fd, b'x')
        except OSError:
            pass
    for fd in readers:
        try:
            os.read(fd, 1)
        except OSError:
            pass
"""
    begin = time.monotonic()
    result = bwrap(*PRIVATE, "--", "python3", "-c", script, env={"HOLT_BWRAP_POLICY": str(policy)})
    assert result.code == 124 and time.monotonic() - begin < 30


def test_holt_does_not_wait_for_the_pipe(bwrap: Bwrap) -> None:
    """The command may win the race above only seldom."""
    with bwrap.start(*PRIVATE, "--die-with-parent", "--", "sh", "-c", "echo ready; sleep 100") as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        fds = [p for p in Path(f"/proc/{process.pid}/fd").iterdir() if int(p.name) > 2 and os.readlink(p).startswith("pipe:")]
        flags = [int(re.findall(r"flags:\t(\d+)", Path(f"/proc/{process.pid}/fdinfo/{p.name}").read_text())[0], 8) for p in fds]
        process.kill()
    readers = [f for f in flags if f & os.O_ACCMODE == os.O_RDONLY]
    assert len(readers) == 1 and readers[0] & os.O_NONBLOCK


def test_a_command_without_capabilities_cannot_open_the_pipe(bwrap: Bwrap) -> None:
    script = PIPES + "\nprint(len(pipes(os.O_WRONLY)))"
    assert bwrap(*PRIVATE, "--", "python3", "-c", script, env=STANDARD).ok().out == "0\n"


def test_processes_left_behind_do_not_outlive_a_timeout(bwrap: Bwrap, place: Path) -> None:
    policy = place / "policy.json"
    policy.write_text('{"holt": 1, "limits": {"timeout": "60s"}}')
    bwrap.identity.own(policy)
    assert bwrap.sh("sleep 1000 >/dev/null 2>&1 & exit 4", *PRIVATE, env={"HOLT_BWRAP_POLICY": str(policy)}).code == 4
    until(lambda: not [p for p in descendants() if p.name == "sleep" and not p.ended], "the process has ended")


def test_a_command_that_is_pid_1_meets_its_timeout(bwrap: Bwrap, place: Path) -> None:
    policy = place / "policy.json"
    policy.write_text('{"holt": 1, "limits": {"timeout": "500ms"}}')
    bwrap.identity.own(policy)
    script = "trap '' TERM INT; sleep 1000 & sleep 1000"
    assert bwrap.sh(script, *PRIVATE, "--as-pid-1", env={"HOLT_BWRAP_POLICY": str(policy)}).code == 124
    until(lambda: not [p for p in descendants() if p.name == "sleep" and not p.ended], "every process has ended")


@pytest.mark.parametrize("target", ("reaper", "command"))
def test_a_stopped_sandbox_meets_its_timeout(target: str, bwrap: Bwrap, place: Path) -> None:
    policy = place / "policy.json"
    policy.write_text('{"holt": 1, "limits": {"timeout": "3s"}}')
    bwrap.identity.own(policy)
    reader, writer = os.pipe()
    with bwrap.start(*PRIVATE, "--info-fd", bwrap.give(writer), "--", "sh", "-c", "echo ready; sleep 100; true",
                     env={"HOLT_BWRAP_POLICY": str(policy)}) as process:
        with os.fdopen(reader) as info:
            reaper = json.load(info)["child-pid"]
        assert process.stdout and process.stdout.readline() == b"ready\n"
        child = int(Path(f"/proc/{reaper}/task/{reaper}/children").read_text().split()[0])
        os.kill(reaper if target == "reaper" else child, signal.SIGSTOP)
        assert process.wait(60) == 124


# --- callers that end ---


@contextmanager
def no_orphan(bwrap: Bwrap) -> Iterator[None]:
    before = {p.pid for p in descendants()}
    yield
    until(lambda: not [p for p in descendants() if p.pid not in before and not p.ended], "no process is left")


@pytest.mark.slow
@pytest.mark.parametrize("options", ((), ("--unshare-net",), ("--disable-userns", "--unshare-user")), ids=" ".join)
def test_a_monitor_killed_at_any_moment_leaves_nothing(options: "tuple[str, ...]", bwrap: Bwrap) -> None:
    words = (*PRIVATE[:6], "--unshare-pid", *options, "--die-with-parent", *[w for _ in range(40) for w in ("--tmpfs", "/tmp")], "--", "sleep", "1000")
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with no_orphan(bwrap):
        for i in range(120):
            with bwrap.start(*words, **silent) as process:
                end = time.monotonic() + i * 0.0002
                while time.monotonic() < end:
                    pass
                process.kill()


def test_a_parent_that_ended_before_the_child_looked(bwrap: Bwrap) -> None:
    """While the child waits for its caller, holt is killed. The child is not held by anything else."""
    reader, writer = os.pipe()
    with no_orphan(bwrap):
        with bwrap.start(*PRIVATE, "--die-with-parent", "--block-fd", bwrap.give(reader), "--", "sleep", "1000") as process:
            until(lambda: len([p for p in descendants(process.pid) if not p.ended]) >= 1, "the child has started")
            process.kill()
        os.close(writer)


# --- the policy ---


@pytest.mark.parametrize("options", (
    ("--bind", "{place}", "{place}"), ("--bind", "/", "/"), ("--bind-try", "{place}", "/x"), ("--dev-bind", "{place}", "/x"),
    ("--bind", "{place}/link", "/x"), ("--bind", "{place}/policies/policy.json", "/x"), ("--bind-fd", "FD", "/x"),
    ("--overlay-src", "/usr", "--overlay", "{place}", "{place}/work", "/x"), ("--bind", "{place}", "{place}", "--ro-bind", "{place}/policies", "{place}/policies"),
), ids=" ".join)
def test_a_policy_that_the_command_could_change_is_refused(options: "tuple[str, ...]", bwrap: Bwrap, place: Path) -> None:
    (place / "policies").mkdir(), bwrap.identity.own(place / "policies")
    (place / "link").symlink_to(place / "policies")
    policy = place / "policies/policy.json"
    policy.write_text('{"holt": 1}')
    bwrap.identity.own(policy)
    words = [bwrap.give(os.open(place, os.O_PATH)) if w == "FD" else w.format(place=place) for w in options]
    result = bwrap(*SYSTEM, "--tmpfs", "/mnt", *words, "--", "echo", "started", env={"HOLT_BWRAP_POLICY": str(policy)})
    assert result.code == 1 and result.out == "" and "could change the policy file" in result.err, result.err


@pytest.mark.parametrize("unshare", ((), ("--unshare-pid",)), ids=("same pids", "own pids"))
def test_a_confined_command_does_not_reach_the_host_through_proc(unshare: "tuple[str, ...]", bwrap: Bwrap, ws: Path) -> None:
    """Without PIDs of its own, the command sees processes of the host. Landlock keeps it out of their roots."""
    victim = ws.parent / "victim/file"
    with subprocess.Popen(bwrap.identity.as_user(bwrap.identity.argv(["sleep", "1000"]))) as outside:
        script = f"for p in $PPID {outside.pid} 1; do echo hostile > /proc/$p/root{victim}; echo hostile > /proc/$p/cwd/../victim/file; ls /proc/$p/fd; done"
        result = bwrap.sh(script, *SYSTEM, "--proc", "/proc", *unshare, env=STANDARD)
        outside.kill()
    assert victim.read_text() == "precious\n", result


def test_the_report_is_not_where_the_command_writes(bwrap: Bwrap, ws: Path, identity: Identity) -> None:
    for link in (ws / "report.json", ws / "out/report.json"):
        (ws / "out").exists() or (ws / "out").symlink_to(ws.parent / "victim")
        bwrap.sh("ln -sfn ../victim/file report.json", *SYSTEM, "--bind", ws, ws, "--chdir", str(ws), env={"HOLT_BWRAP_REPORT": str(link)})
        assert (ws.parent / "victim/file").read_text() == "precious\n"
        assert sorted(p.name for p in (ws.parent / "victim").iterdir()) == ["file"]


def test_the_command_has_none_of_the_settings(bwrap: Bwrap) -> None:
    assert "HOLT_BWRAP" not in bwrap(*SYSTEM, "--proc", "/proc", "--", "sh", "-c", "env; cat /proc/self/environ", env=STANDARD).ok().out


@pytest.mark.identities("root")
def test_a_confined_command_of_root_has_no_capability(bwrap: Bwrap) -> None:
    script = "grep -E '^Cap(Eff|Prm|Bnd|Amb)' /proc/self/status; mount -t tmpfs none /tmp && echo mounted; chroot / true && echo rooted"
    result = bwrap.sh(script, *SYSTEM, "--proc", "/proc", "--unshare-pid", env=STANDARD)
    assert result.out.split()[1::2] == ["0000000000000000"] * 4 and "ed\n" not in result.out, result


def test_many_refusals_during_a_forged_end(bwrap: Bwrap) -> None:
    """The listener of the filter is answered while the command talks to the reaper's pipe."""
    script = PIPES + "\nimport ctypes\nlibc = ctypes.CDLL(None)\nfor _ in range(300): libc.unshare(0x10000000)\nfor fd in pipes(os.O_WRONLY): os.write(fd, b'xyz')\nsys.exit(9)"
    result = bwrap(*PRIVATE, "--", "python3", "-c", script, env=STANDARD)
    assert result.code == 9 and "holt: refused unshare" in result.err, result.err


@pytest.mark.parametrize("name,refused", (("--bind", True), ("--ro-bind", False)))
def test_a_confined_command_cannot_replace_holt(name: str, refused: bool, bwrap: Bwrap, holt: Holt, place: Path) -> None:
    """The next run would execute what the command has written there."""
    for program in ("holt", "holt-full"):
        shutil.copy(holt.binary.parent / program, place / program)
        bwrap.identity.own(place / program)
    own = Bwrap([place / "holt", "bwrap"], bwrap.identity, bwrap.cwd)
    result = own(*PRIVATE, name, place, place, "--", "echo", "started", env=STANDARD)
    assert (result.code, result.out) == ((1, "") if refused else (0, "started\n")), result
    assert not refused or f"{place}/holt" in result.err
    own(*PRIVATE, "--bind", place, place, "--", "true").ok()
