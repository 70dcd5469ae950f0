# SPDX-License-Identifier: Apache-2.0
"""holt bwrap: each option of bubblewrap. Where the host's bubblewrap has the option, it must behave in the same way."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.bwrap import PEER, PRIVATE, SYSTEM, Bwrap
from lib.leaks import descendants
from lib.sandbox import Holt
from lib.sessions import until
from lib.tools import needs

pytestmark = [needs("bwrap"), pytest.mark.alike]

SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
OPTIONS = r"^ +(--[a-z0-9-]+)"  # in the help
TABLE = Path(__file__).with_name("bwrap-options.txt")
CAPABILITIES = "sed -n 's/^Cap\\(...\\):\\t/\\1 /p' /proc/self/status"


@pytest.fixture(params=("holt", "bubblewrap"))
def both(request: pytest.FixtureRequest, holt: Holt) -> Bwrap:
    words = [holt.binary, "bwrap"] if request.param == "holt" else [PEER or "bwrap"]
    return Bwrap(words, holt.identity, holt.cwd)


@pytest.fixture
def bwrap(holt: Holt) -> Bwrap:
    """holt alone: for options that Debian's bubblewrap is too old for, and where holt differs on purpose."""
    return Bwrap([holt.binary, "bwrap"], holt.identity, holt.cwd)


# --- the command and its end ---


@pytest.mark.parametrize("script,code", (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)))
@pytest.mark.parametrize("options", ((), ("--unshare-pid",)))
def test_exit_codes(options: "tuple[str, ...]", script: str, code: int, both: Bwrap) -> None:
    assert both.sh(script, *SYSTEM, *options).code == code


@pytest.mark.parametrize("args", (
    ["--no-such-option"], ["--bind", "/"], [*SYSTEM], [*SYSTEM, "--", "no-such-program"], [*SYSTEM, "--unshare-pid", "no-such-program"],
    ["--ro-bind", "/no/such/path", "/", "true"], [*SYSTEM, "--dir", "/no/such/place", "true"], [*SYSTEM, "--chdir", "/no/such/place", "true"],
    [*SYSTEM, "--hostname", "x", "true"], [*SYSTEM, "--cap-add", "CAP_NONE", "true"], [*SYSTEM, "--file", "77", "/tmp/x", "true"],
    [*SYSTEM, "--perms", "9", "--dir", "/tmp/x", "true"], [*SYSTEM, "--chmod", "0700", "/no/such/place", "true"],
    [*SYSTEM, "--args", "77", "true"], [*SYSTEM, "--userns", "0", "--unshare-user", "true"], ["--exec-label", "x", *SYSTEM, "true"],
))
def test_mistakes(args: "list[str]", both: Bwrap) -> None:
    result = both(*args)
    assert result.code == 1 and result.out == ""
    assert re.match(r"(usage: .*)?bwrap", result.err), result.err


@pytest.mark.parametrize("args,why", (
    (["--perms", "0700"], "--perms must come before"), (["--perms", "0700", "--proc", "/proc"], "--perms must come before"),
    (["--size", "4096", "--dir", "/tmp/x"], "--size must come before"), (["--size", "0"], "above 0"), (["--overlay-src", "/usr"], "--overlay-src must come"),
    (["--ro-overlay", "/x"], "at least 2"), (["--userns2", "0"], "needs --userns"), (["--userns-block-fd", "0"], "needs --info-fd"),
    (["--as-pid-1"], "needs --unshare-pid"), (["--disable-userns"], "needs --unshare-user"),
    (["--seccomp", "0", "--add-seccomp-fd", "0"], "exclude each other"), (["--setenv", "A=B", "c"], "no name of a variable"),
))
def test_options_that_need_others(args: "list[str]", why: str, bwrap: Bwrap) -> None:
    result = bwrap(*SYSTEM, *args, "--", "true")
    assert result.code == 1 and result.err.startswith("bwrap: ") and why in result.err, result.err


def test_help_and_version(both: Bwrap) -> None:
    assert re.fullmatch(r"bubblewrap 0\.\d+\.\d+\n", both("--version").ok().out)
    assert "--ro-bind" in re.findall(OPTIONS, both("--help").ok().out, re.M)


def test_a_link_called_bwrap_is_holt_bwrap(bwrap: Bwrap, place: Path) -> None:
    link = place / "bwrap"
    link.symlink_to(bwrap.words[0])
    linked = Bwrap([link], bwrap.identity, place)
    assert linked("--version").out == bwrap("--version").out == "bubblewrap 0.11.1\n"
    assert linked.sh("exit 5", *SYSTEM).code == 5


def test_the_help_has_each_option_of_bubblewrap(bwrap: Bwrap) -> None:
    """Callers look for options in this text."""
    theirs = subprocess.run([PEER or "bwrap", "--help"], capture_output=True, text=True, check=True).stdout
    ours = bwrap("--help").ok().out
    names = set(re.findall(OPTIONS, ours, re.M))
    assert set(re.findall(OPTIONS, theirs, re.M)) <= names
    assert {"--argv0", "--level-prefix", "--overlay-src", "--overlay", "--tmp-overlay", "--ro-overlay", "--bind-fd", "--ro-bind-fd"} <= names


def uses(test: ast.FunctionDef, option: str) -> bool:
    return any(isinstance(node, ast.Constant) and node.value == option for node in ast.walk(test))


def test_each_option_has_the_test_that_shows_it(bwrap: Bwrap) -> None:
    """bwrap-options.txt names it. It compares with the host's bubblewrap where that has the option."""
    theirs = set(re.findall(OPTIONS, subprocess.run([PEER or "bwrap", "--help"], capture_output=True, text=True, check=True).stdout, re.M))
    ours = re.findall(OPTIONS, bwrap("--help").ok().out, re.M)
    rows = [line.split() for line in TABLE.read_text().splitlines() if line.startswith("--")]
    tests = {node.name: node for node in ast.parse(Path(__file__).read_text()).body if isinstance(node, ast.FunctionDef)}

    assert [option for option, _ in rows] == ours and len(ours) == 67
    assert [row for row in rows if row[1] not in tests or not uses(tests[row[1]], row[0])] == []
    compares = {name for name, test in tests.items() if "both" in [argument.arg for argument in test.args.args]}
    assert [option for option, test in rows if option in theirs and test not in compares] == []


def test_level_prefix(bwrap: Bwrap) -> None:
    assert bwrap("--level-prefix", "--no-such-option").err == "<3>bwrap: Unknown option --no-such-option\n"


def test_args_come_from_a_descriptor(both: Bwrap) -> None:
    second = both.file(b"--setenv\0B\0two\0")
    assert both("--args", second, *SYSTEM, "--setenv", "A", "one", "printenv", "B").out == "two\n"
    first = both.file(b"--ro-bind\0/\0/\0--setenv\0A\0one\0")
    assert both("--args", first, "--", "printenv", "A").out == "one\n"
    assert both("--args", both.file(b"--ro-bind\0/\0"), "--", "true").code == 1


def test_argv0(bwrap: Bwrap) -> None:
    for options in ((), ("--unshare-pid",)):
        result = bwrap(*SYSTEM, "--proc", "/proc", *options, "--argv0", "another", "--", "sh", "-c", "tr '\\0' ' ' < /proc/$$/cmdline")
        assert result.out.startswith("another -c"), result


def test_processes_that_a_command_leaves_behind_go_on(both: Bwrap, place: Path) -> None:
    script = f"(while ! [ -e {place}/end ]; do sleep 0.02; done; touch {place}/done) & exit 6"
    with both.start(*SYSTEM, "--dev-bind", "/dev", "/dev", "--bind", place, place, "--unshare-pid", "--", "sh", "-c", script, **SILENT) as process:
        assert process.wait(60) == 6
    assert not (place / "done").exists()
    (place / "end").touch()
    until(lambda: (place / "done").exists(), "the background process has gone on")


def test_die_with_parent(both: Bwrap, place: Path) -> None:
    options = (*SYSTEM, "--unshare-pid", "--dev", "/dev", "--proc", "/proc", "--die-with-parent", "--info-fd")
    reader, writer = os.pipe()
    with both.start(*options, both.give(writer), "--", "sh", "-c", "echo ready; sleep 60") as process:
        with os.fdopen(reader) as info:
            pid = json.load(info)["child-pid"]
        assert process.stdout and process.stdout.readline() == b"ready\n"
        assert pid in [found.pid for found in descendants() if not found.ended]
        process.kill()
        process.wait()
        until(lambda: pid not in [found.pid for found in descendants() if not found.ended], "the sandbox has ended")


def test_as_pid_1(both: Bwrap) -> None:
    assert both.sh("echo $$", *SYSTEM, "--unshare-pid").out != "1\n"
    assert both.sh("echo $$", *SYSTEM, "--unshare-pid", "--as-pid-1").out == "1\n"


def test_new_session(both: Bwrap) -> None:
    script = "echo $(cut -d' ' -f6 /proc/self/stat) $$"
    inside, own = both.sh(script, *SYSTEM, "--new-session").ok().out.split()
    assert inside == own
    inside, own = both.sh(script, *SYSTEM).ok().out.split()
    assert inside != own


# --- environment ---


def test_environment(both: Bwrap) -> None:
    env = {"KEPT": "1", "GONE": "1", "PWD": "/wrong"}
    result = both("--ro-bind", "/", "/", "--setenv", "NEW", "a=b", "--unsetenv", "GONE", "--", "env", env=env).ok()
    found = dict(line.split("=", 1) for line in result.out.splitlines())
    assert (found["KEPT"], found["NEW"], found["PWD"]) == ("1", "a=b", str(both.cwd)) and "GONE" not in found

    cleared = both(*SYSTEM, "--setenv", "A", "1", "--clearenv", "--setenv", "B", "2", "--", "/usr/bin/env").ok()
    assert sorted(cleared.out.splitlines()) == ["B=2", f"PWD={both.cwd}"]


def test_the_command_is_found_in_the_new_path(both: Bwrap, place: Path) -> None:
    program = place / "tool"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    for options in ((), ("--unshare-pid",)):
        assert both(*SYSTEM, *options, "--setenv", "PATH", f"/nowhere:{place}", "--", "tool").out == "found\n"


def test_chdir(both: Bwrap) -> None:
    assert both.sh("pwd; echo $PWD", *SYSTEM, "--chdir", "/usr").out == "/usr\n/usr\n"
    assert both.sh("pwd", *SYSTEM).out == f"{both.cwd}\n"
    usr = ("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64")
    assert both.sh("pwd", *usr).ok().out == "/\n"
    assert both.sh("pwd", *usr, "--dir", "/h", env={"HOME": "/h"}).ok().out == "/h\n"


def test_descriptors_are_inherited_except_for_those_of_options(both: Bwrap) -> None:
    for options in ((), ("--unshare-pid",)):
        kept, used = both.file(b"kept"), both.file(b"used")
        result = both.sh(f"cat /proc/self/fd/{kept}; [ -e /proc/self/fd/{used} ] || echo gone", *SYSTEM, "--proc", "/proc", *options,
                         "--tmpfs", "/tmp", "--file", used, "/tmp/x")
        assert result.out == "keptgone\n", result


# --- binds ---


def test_binds(both: Bwrap, place: Path) -> None:
    (place / "a").write_text("a\n")
    (place / "a").chmod(0o666)
    options = ("--tmpfs", "/tmp", "--bind", place, "/tmp/rw", "--ro-bind", place, "/tmp/ro", "--ro-bind", place / "a", "/tmp/deep/er/file")
    result = both.sh("cat /tmp/rw/a /tmp/ro/a /tmp/deep/er/file; echo b > /tmp/rw/a; cat /tmp/ro/a; echo c > /tmp/ro/a; echo c > /tmp/deep/er/file",
                     *SYSTEM, *options)
    assert result.out == "a\na\na\nb\n" and result.err.count("Read-only") == 2
    assert (place / "a").read_text() == "b\n"


def test_a_missing_source_may_be_skipped(both: Bwrap) -> None:
    for name in ("--bind-try", "--ro-bind-try", "--dev-bind-try"):
        assert both.sh("[ -e /tmp/x ] || echo none", *SYSTEM, "--tmpfs", "/tmp", name, "/no/such/path", "/tmp/x").ok().out == "none\n"
        assert both.sh("[ -e /tmp/x/bin ] && echo some", *SYSTEM, "--tmpfs", "/tmp", name, "/usr", "/tmp/x").ok().out == "some\n"


def test_devices_need_dev_bind(both: Bwrap) -> None:
    assert both.sh("echo > /dev/null", *SYSTEM).code != 0
    both.sh("echo > /dev/null", *SYSTEM, "--dev-bind", "/dev", "/dev").ok()
    both.sh("echo > /n", "--dev-bind", "/dev/null", "/n", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
            "--symlink", "usr/lib64", "/lib64").ok()


def test_later_steps_cover_earlier_ones(both: Bwrap, place: Path) -> None:
    (place / "inner").mkdir()
    both.identity.own(place / "inner")
    order = ("--bind", place, place, "--ro-bind", place / "inner", place / "inner")
    assert both.sh(f"touch {place}/x && touch {place}/inner/x", *SYSTEM, *order).err.count("Read-only") == 1
    both.sh(f"touch {place}/inner/x", *SYSTEM, "--ro-bind", place / "inner", place / "inner", "--bind", place, place).ok()
    assert both.sh(f"ls {place}", *SYSTEM, "--bind", place, place, "--tmpfs", place).ok().out == ""
    assert both.sh("ls /", *SYSTEM, "--tmpfs", "/", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
                   "--symlink", "usr/bin", "/bin").ok().out.split() == ["bin", "lib", "lib64", "usr"]


@pytest.mark.parametrize("name,writable", (("--bind-fd", True), ("--ro-bind-fd", False)))
def test_a_descriptor_is_bound(name: str, writable: bool, both: Bwrap, place: Path) -> None:
    fd = both.give(os.open(place, os.O_PATH))
    result = both.sh("touch /tmp/d/made", *SYSTEM, "--tmpfs", "/tmp", name, fd, "/tmp/d")
    assert (result.code == 0) == writable == (place / "made").exists()


def test_remount_ro(both: Bwrap) -> None:
    result = both.sh("touch /tmp/x; touch /tmp/in/x", *SYSTEM, "--tmpfs", "/tmp", "--tmpfs", "/tmp/in", "--remount-ro", "/tmp")
    assert result.code == 0 and "/tmp/x" in result.err


# --- overlays, which Debian's bubblewrap does not have ---


def test_overlays(bwrap: Bwrap, place: Path) -> None:
    for name in ("low:er", "upper", "rw", "work"):
        (place / name).mkdir()
        bwrap.identity.own(place / name)
    for name, text in (("low:er", "low"), ("upper", "up")):
        for file in ("both", name):
            (place / name / file).write_text(text)
            bwrap.identity.own(place / name / file)
    layers = ("--overlay-src", place / "low:er", "--overlay-src", place / "upper")
    script = "cat /tmp/o/both; ls /tmp/o; echo new > /tmp/o/both && cat /tmp/o/both"
    readonly = bwrap.sh(script, *SYSTEM, "--tmpfs", "/tmp", *layers, "--ro-overlay", "/tmp/o")
    assert readonly.out.split() == ["upboth", "low:er", "upper"] and "Read-only" in readonly.err
    private = bwrap.sh(script, *SYSTEM, "--tmpfs", "/tmp", *layers, "--tmp-overlay", "/tmp/o").ok()
    assert private.out.split() == ["upboth", "low:er", "upper", "new"] and (place / "upper" / "both").read_text() == "up"
    lasting = bwrap.sh(script, *SYSTEM, "--tmpfs", "/tmp", *layers, "--overlay", place / "rw", place / "work", "/tmp/o").ok()
    assert lasting.out.split()[-1] == "new" and (place / "rw" / "both").read_text() == "new\n"


# --- file systems and files ---


def test_proc(both: Bwrap) -> None:
    assert both.sh("ls -d /proc/[0-9]* | wc -l", *SYSTEM, "--proc", "/proc", "--unshare-pid").ok().out.strip() in ("2", "3", "4", "5")
    assert both.sh("[ -e /proc/$$/status ] && echo $$", *SYSTEM, "--proc", "/proc").ok().out.strip().isdigit()


def test_dev(both: Bwrap) -> None:
    result = both.sh("ls /dev; echo x > /dev/null; head -c 4 /dev/zero | wc -c; readlink /dev/stdin /dev/fd /dev/core /dev/ptmx; ls /dev/pts",
                     *SYSTEM, "--dev", "/dev").ok()
    assert result.out.split() == [
        "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero", "4",
        "/proc/self/fd/0", "/proc/self/fd", "/proc/kcore", "pts/ptmx", "ptmx"]


def test_tmpfs_with_perms_and_size(both: Bwrap) -> None:
    script = "stat -c %a /tmp; df --output=size -B1 /tmp | tail -1"
    plain = both.sh(script, *SYSTEM, "--tmpfs", "/tmp").ok().out.split()
    assert plain[0] == "755"
    assert both.sh(script, *SYSTEM, "--perms", "1777", "--size", "65536", "--tmpfs", "/tmp").ok().out.split() == ["1777", "65536"]
    assert both.sh(script, *SYSTEM, "--size", "65536", "--perms", "0700", "--tmpfs", "/tmp").ok().out.split() == ["700", "65536"]


def test_mqueue(both: Bwrap) -> None:
    assert both.sh("stat -f -c %T /tmp/q; ls /tmp/q", *SYSTEM, "--tmpfs", "/tmp", "--unshare-ipc", "--mqueue", "/tmp/q").ok().out == "mqueue\n"


def test_directories_and_modes(both: Bwrap) -> None:
    options = ("--tmpfs", "/tmp", "--dir", "/tmp/a", "--dir", "/tmp/a/", "--perms", "0700", "--dir", "/tmp/b/c", "--perms", "0750", "--dir", "/tmp/d/e",
               "--chmod", "1710", "/tmp/a")
    assert both.sh("stat -c '%n %a' /tmp/a /tmp/b /tmp/b/c /tmp/d /tmp/d/e", *SYSTEM, *options).ok().out.split() == [
        "/tmp/a", "1710", "/tmp/b", "700", "/tmp/b/c", "700", "/tmp/d", "750", "/tmp/d/e", "750"]


def test_data(both: Bwrap) -> None:
    one, two, three, four = (both.file(text) for text in (b"one\n", b"two\n", b"three\n", b"x" * 300000))
    options = ("--tmpfs", "/tmp", "--file", one, "/tmp/in/file", "--bind-data", two, "/tmp/bound", "--perms", "0644", "--ro-bind-data", three, "/tmp/ro",
               "--perms", "0751", "--file", four, "/tmp/big")
    script = "cat /tmp/in/file /tmp/bound /tmp/ro; wc -c < /tmp/big; cd /tmp; stat -c %a in/file bound ro big; echo x > bound; cat bound; echo x > ro"
    result = both.sh(script, *SYSTEM, *options)
    assert result.out.split() == ["one", "two", "three", "300000", "666", "600", "644", "751", "x"] and "Read-only" in result.err


def test_symlinks(both: Bwrap) -> None:
    assert both.sh("readlink /tmp/in/link", *SYSTEM, "--tmpfs", "/tmp", "--symlink", "../target", "/tmp/in/link").ok().out == "../target\n"
    assert both(*SYSTEM, "--tmpfs", "/tmp", "--symlink", "a", "/tmp/x", "--symlink", "b", "/tmp/x", "true").code == 1


def test_an_equal_symlink_is_fine(bwrap: Bwrap) -> None:
    bwrap(*SYSTEM, "--tmpfs", "/tmp", "--symlink", "a", "/tmp/x", "--symlink", "a", "/tmp/x", "true").ok()


# --- namespaces ---

KINDS = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


def new_namespaces(bwrap: Bwrap, *options: str) -> "set[str]":
    """Returns the kinds of namespaces that the command does not share with the caller."""
    script = " ".join(f"$(readlink /proc/self/ns/{kind})" for kind in KINDS)
    inside = bwrap.sh(f"echo {script}", *SYSTEM, "--proc", "/proc", *options).ok().out.split()
    return {kind for kind, link in zip(KINDS, inside) if link != os.readlink(f"/proc/self/ns/{kind}")}


@pytest.mark.parametrize("options,kinds", (
    ((), set()), (("--unshare-ipc",), {"ipc"}), (("--unshare-pid",), {"pid"}), (("--unshare-net",), {"net"}), (("--unshare-uts",), {"uts"}),
    (("--unshare-cgroup",), {"cgroup"}), (("--unshare-cgroup-try",), {"cgroup"}), (("--unshare-user",), set()), (("--unshare-user-try",), set()),
    (("--unshare-all",), {"cgroup", "ipc", "net", "pid", "uts"}), (("--unshare-all", "--share-net"), {"cgroup", "ipc", "pid", "uts"}),
))
def test_namespaces(options: "tuple[str, ...]", kinds: "set[str]", both: Bwrap) -> None:
    assert new_namespaces(both, *options) == kinds | {"mnt", "user"}


def test_the_loopback_is_up(both: Bwrap) -> None:
    program = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('up')"
    assert both(*SYSTEM, "--unshare-net", "--", "/usr/bin/python3", "-c", program).ok().out == "up\n"


def test_ids(both: Bwrap) -> None:
    options = (*SYSTEM, "--unshare-user")
    assert both.sh("id -u; id -g", *options).ok().out.split() == [str(both.identity.uid), str(both.identity.gid)]
    assert both.sh("id -u; id -g; cat /proc/self/setgroups", *options, "--uid", "0", "--gid", "7").ok().out.split() == ["0", "7", "deny"]


def test_hostname(both: Bwrap) -> None:
    assert both.sh("uname -n", *SYSTEM, "--unshare-uts", "--hostname", "den").ok().out == "den\n"


def test_user_namespaces_can_be_disabled(both: Bwrap) -> None:
    script = "unshare -U true && echo made; id -u"
    assert both.sh(script, *SYSTEM, "--unshare-user").ok().out.startswith("made")
    result = both.sh(script, *SYSTEM, "--unshare-user", "--disable-userns", "--assert-userns-disabled").ok()
    assert result.out == f"{both.identity.uid}\n"
    assert both(*SYSTEM, "--unshare-user", "--assert-userns-disabled", "true").code == 1


def test_namespaces_of_other_processes(both: Bwrap) -> None:
    """A sandbox enters the user and pid namespaces of another one."""
    reader, writer = os.pipe()
    with both.start("--dev-bind", "/", "/", "--unshare-user", "--uid", "5", "--unshare-pid", "--info-fd", both.give(writer), "--", "sleep", "60") as first:
        try:
            with os.fdopen(reader) as info:
                pid = json.load(info)["child-pid"]
            until(lambda: Path(f"/proc/{pid}/uid_map").read_text() != "", "its ids are mapped")
            options = [word for name, kind in (("--userns", "user"), ("--pidns", "pid"))
                       for word in (name, both.give(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)))]
            result = both.sh("id -u; readlink /proc/self/ns/user; echo $$", *SYSTEM, "--proc", "/proc", *options)
            uid, link, own = result.ok().out.split()
            assert (uid, link) == ("5", os.readlink(f"/proc/{pid}/ns/user")) and int(own) < 10
        finally:
            first.kill()
            os.kill(pid, signal.SIGKILL)


def test_the_command_may_run_in_a_second_user_namespace(both: Bwrap) -> None:
    """The sandbox is made in the first one. The second one is below it."""
    reader, writer = os.pipe()
    script = "unshare -U sh -c 'echo $$; exec sleep 60'"
    with both.start("--dev-bind", "/", "/", "--unshare-user", "--info-fd", both.give(writer), "--", "sh", "-c", script) as first:
        try:
            with os.fdopen(reader) as info:
                outer = json.load(info)["child-pid"]
            assert first.stdout
            inner = int(first.stdout.readline())
            options = [word for name, pid in (("--userns", outer), ("--userns2", inner))
                       for word in (name, both.give(os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)))]
            result = both.sh("readlink /proc/self/ns/user", "--dev-bind", "/", "/", *options)
            assert result.ok().out == os.readlink(f"/proc/{inner}/ns/user") + "\n" != os.readlink(f"/proc/{outer}/ns/user") + "\n"
        finally:
            os.kill(inner, signal.SIGKILL)


# --- capabilities ---


def capabilities(result: str) -> "dict[str, int]":
    return {line.split()[0]: int(line.split()[1], 16) for line in result.splitlines()}


def test_an_ordinary_user_has_no_capabilities(both: Bwrap) -> None:
    assert set(capabilities(both.sh(CAPABILITIES, *SYSTEM).ok().out).values()) == {0}
    assert set(capabilities(both.sh(CAPABILITIES, *SYSTEM, "--unshare-user", "--uid", "0").ok().out).values()) == {0}


def test_capabilities_can_be_added(both: Bwrap) -> None:
    found = capabilities(both.sh(CAPABILITIES, *SYSTEM, "--cap-add", "CAP_NET_RAW", "--cap-add", "cap_sys_admin", "--cap-drop", "CAP_NET_RAW").ok().out)
    assert set(found.values()) == {1 << 21}
    assert capabilities(both.sh(CAPABILITIES, *SYSTEM, "--cap-add", "ALL").ok().out)["Eff"] & 0xFFFFFFFF == 0xFFFFFFFF


@pytest.mark.identities("root", "nested")
def test_root_keeps_its_capabilities_unless_told_otherwise(both: Bwrap) -> None:
    assert capabilities(both.sh(CAPABILITIES, *SYSTEM).ok().out)["Eff"] >> 21 & 1
    dropped = capabilities(both.sh(CAPABILITIES, *SYSTEM, "--cap-drop", "CAP_SYS_ADMIN").ok().out)
    assert not dropped["Eff"] >> 21 & 1 and dropped["Eff"] >> 1 & 1
    assert capabilities(both.sh(CAPABILITIES, *SYSTEM, "--cap-drop", "ALL").ok().out)["Eff"] == 0


@pytest.mark.identities("root", "nested")
def test_root_gets_a_user_namespace_only_if_asked(both: Bwrap) -> None:
    before = os.readlink(both.identity.namespace)
    assert both.sh("readlink /proc/self/ns/user; id -u", *SYSTEM).ok().out == f"{before}\n0\n"
    assert both.sh("readlink /proc/self/ns/user", *SYSTEM, "--unshare-user").ok().out != f"{before}\n"
    assert both(*SYSTEM, "--uid", "5", "true").code == 1


@pytest.mark.identities("root")
def test_mounts_of_root_do_not_appear_on_the_host(both: Bwrap) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    with both.start("--dev-bind", "/", "/", "--tmpfs", "/mnt", "--proc", "/proc", "--", "sh", "-c", "echo ready; read line", stdin=subprocess.PIPE) as process:
        assert process.stdout and process.stdin and process.stdout.readline() == b"ready\n"
        assert Path("/proc/self/mountinfo").read_text() == before
        process.stdin.close()


# --- descriptors that callers wait for ---


def test_info_and_status(both: Bwrap) -> None:
    info_reader, info = os.pipe()
    status_reader, status = os.pipe()
    result = both.sh("readlink /proc/self/ns/net /proc/self/ns/mnt; exit 3", *PRIVATE, "--info-fd", both.give(info), "--json-status-fd", both.give(status))
    assert result.code == 3
    with os.fdopen(info_reader) as stream:
        told = json.load(stream)
    with os.fdopen(status_reader) as stream:
        first, last = (json.loads(line) for line in stream)
    assert first == told and last == {"exit-code": 3}
    assert list(told) == ["child-pid", *(f"{kind}-namespace" for kind in ("cgroup", "ipc", "mnt", "net", "pid", "uts"))]
    assert result.out.split() == [f"net:[{told['net-namespace']}]", f"mnt:[{told['mnt-namespace']}]"]


def test_the_status_has_no_exit_code_of_a_command_that_was_not_started(bwrap: Bwrap) -> None:
    for options in ((), ("--unshare-pid",)):
        reader, writer = os.pipe()
        assert bwrap(*SYSTEM, *options, "--json-status-fd", bwrap.give(writer), "--", "no-such-program").code == 1
        with os.fdopen(reader) as stream:
            assert "exit-code" not in stream.read()


@pytest.mark.parametrize("how", ("a byte", "the end"))
def test_block_fd(how: str, both: Bwrap) -> None:
    """The command starts when the caller says so, and the caller may read --info-fd to its end before that."""
    reader, writer = os.pipe()
    info_reader, info = os.pipe()
    with both.start(*SYSTEM, "--info-fd", both.give(info), "--block-fd", both.give(reader), "--", "echo", "started") as process:
        with os.fdopen(info_reader) as stream:
            assert json.load(stream)["child-pid"]
        assert process.stdout and process.poll() is None
        if how == "a byte":
            os.write(writer, b"x")
        else:
            os.close(writer)
        assert process.communicate(timeout=60)[0] == b"started\n"
    if how == "a byte":
        os.close(writer)


def test_the_caller_may_map_the_ids(both: Bwrap) -> None:
    reader, writer = os.pipe()
    info_reader, info = os.pipe()
    options = ("--unshare-user", "--info-fd", both.give(info), "--userns-block-fd", both.give(reader))
    with both.start(*SYSTEM, *options, "--", "id", "-u") as process:
        with os.fdopen(info_reader) as stream:
            pid = json.load(stream)["child-pid"]
        for name, text in (("setgroups", "deny"), ("uid_map", f"4242 {both.identity.uid} 1"), ("gid_map", f"4242 {both.identity.gid} 1")):
            both.identity.run(["sh", "-c", f"echo '{text}' > /proc/{pid}/{name}"]).check_returncode()
        os.write(writer, b"x")
        assert process.communicate(timeout=60)[0] == b"4242\n"
    os.close(writer)


def test_sync_fd(both: Bwrap, place: Path) -> None:
    """The caller sees the end of the descriptor when the last process of the sandbox has ended."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    script = f"while ! [ -e {place}/end ]; do sleep 0.02; done & exit 0"
    options = ("--dev-bind", "/dev", "/dev", "--unshare-pid", "--sync-fd", both.give(writer))
    with both.start(*SYSTEM, *options, "--", "sh", "-c", script, **SILENT) as process:
        assert process.wait(60) == 0
    with pytest.raises(BlockingIOError):
        os.read(reader, 1)
    (place / "end").touch()
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_lock_file(both: Bwrap, place: Path) -> None:
    lock = place / "lock"
    lock.write_text("")
    both.identity.own(lock)

    def is_locked() -> bool:
        with lock.open("r+b") as file:
            answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
            return bool(struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK)

    with both.start("--dev-bind", "/", "/", "--lock-file", lock, "--", "sh", "-c", "echo ready; read line", stdin=subprocess.PIPE) as process:
        assert process.stdout and process.stdin and process.stdout.readline() == b"ready\n"
        until(is_locked, "the file is locked")
        process.stdin.close()
        assert process.wait(60) == 1
    until(lambda: not is_locked(), "the lock is gone")


def test_a_file_that_cannot_be_locked(bwrap: Bwrap) -> None:
    result = bwrap(*SYSTEM, "--lock-file", "/no/such/file", "--", "echo", "started")
    assert result.code == 1 and result.out == "" and "cannot open the lock file /no/such/file" in result.err


# --- seccomp ---


def refuse(nr: int, errno: int) -> bytes:
    """A program that refuses one system call."""
    rows = ((0x20, 0, 0, 0), (0x15, 0, 1, nr), (0x06, 0, 0, 0x50000 | errno), (0x06, 0, 0, 0x7FFF0000))
    return b"".join(struct.pack("HBBI", *row) for row in rows)


MKDIR, RMDIR = (83, 84) if os.uname().machine == "x86_64" else (34, 35)
TRY = "import os\nfor call in (os.mkdir, os.rmdir):\n try: call('/tmp/x')\n except OSError as e: print(e.errno)"


@pytest.mark.parametrize("options", ((), ("--unshare-pid",)))
def test_seccomp(options: "tuple[str, ...]", both: Bwrap) -> None:
    python = ("--tmpfs", "/tmp", "--", "/usr/bin/python3", "-c", TRY)
    assert both(*SYSTEM, *options, "--seccomp", both.file(refuse(MKDIR, 99)), *python).ok().out.split() == ["99", "2"]
    assert both(*SYSTEM, *options, "--seccomp", both.file(refuse(MKDIR, 99)), "--seccomp", both.file(refuse(RMDIR, 98)), *python).ok().out.split() == ["98"]
    several = ("--add-seccomp-fd", both.file(refuse(MKDIR, 99)), "--add-seccomp-fd", both.file(refuse(RMDIR, 98)))
    assert both(*SYSTEM, *options, *several, *python).ok().out.split() == ["99", "98"]


@pytest.mark.parametrize("content", (b"", b"1234567", b"\xff" * 8))
def test_bad_seccomp_programs(content: bytes, both: Bwrap) -> None:
    for options in ((), ("--unshare-pid",)):
        assert both(*SYSTEM, *options, "--seccomp", both.file(content), "--", "true").code == 1


def test_labels_are_refused(both: Bwrap) -> None:
    for name in ("--exec-label", "--file-label"):
        assert both(name, "x", *SYSTEM, "--", "true").code == 1


# --- callers ---


def test_a_caller_that_ignores_the_ends_of_children(bwrap: Bwrap) -> None:
    """Debian's bubblewrap waits forever."""
    ignore: Callable[[], object] = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # noqa: E731
    for options in ((), ("--unshare-pid",)):
        with bwrap.start(*SYSTEM, *options, "--", "sh", "-c", "exit 4", preexec_fn=ignore) as process:
            assert process.wait(60) == 4


def test_many_binds(bwrap: Bwrap) -> None:
    """More than the usual limit of open files."""
    binds = [word for n in range(1500) for word in ("--ro-bind", "/usr", f"/tmp/{n}")]
    script = "ls /tmp | wc -l; ulimit -n"
    soft = int(bwrap.sh("ulimit -n", *SYSTEM).ok().out)
    assert bwrap.sh(script, *SYSTEM, "--tmpfs", "/tmp", *binds).ok().out.split() == ["1500", str(soft)]
