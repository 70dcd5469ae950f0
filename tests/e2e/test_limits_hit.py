# SPDX-License-Identifier: Apache-2.0
"""If a command reaches a limit of the sandbox, the result names the limit and how to raise it."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import Arg, Holt
from lib.sessions import RpcError, Sessions

FULL = "dd if=/dev/zero of=/dev/shm/x bs=64k"
FILES = "python3 -c 'f = [open(\"/dev/null\") for i in range(100)]'"
THREADS = "python3 -c 'import threading, time; [threading.Thread(target=time.sleep, args=(1,)).start() for i in range(99)]'"
MEMORY = "python3 -c 'x = bytearray(1 << 28)'"
BIG = "python3 -c 'open(\"/tmp/x\", \"wb\").write(bytes(1 << 22))'"


@pytest.mark.parametrize(
    "limit, script, option, value, number, more",
    [
        ("disk", FULL, "--tmp-size", "1M", 1 << 20, "8M"),
        ("open_files", FILES, "--open-files", "64", 64, "200"),
        ("processes", THREADS, "--pids", "16", 16, "200"),
        ("memory", MEMORY, "--memory", "64M", 64 << 20, "1G"),
        ("file_size", BIG, "--file-size", "1M", 1 << 20, "8M"),
    ],
)
def test_a_reached_limit_is_named(
    holt: Holt, limit: str, script: str, option: str, value: str, number: int, more: str
) -> None:
    result = holt.sh(script, option, value)
    assert result.report
    (hit,) = result.report["limits_hit"]
    assert (hit["limit"], hit["option"], hit["value"]) == (limit, option, number)
    assert hit["field"] and f"{option} raises it" in result.err
    if limit != "disk":
        assert not hit["certain"] and "holt: probably, " in result.err
        again = holt.sh(script, option, more).ok()
        assert again.report and again.report["limits_hit"] == []


def test_what_the_project_s_file_sets_is_changed_there(holt: Holt, put: Callable[..., Path]) -> None:
    fields = {"limits": {"memory": "256MiB"}, "filesystem": {"workspace": {"mode": "ro"}}, "network": {"mode": "none"}}
    put(".holt.json", json.dumps({"holt": 1, **fields}))
    options = ["--memory", "2GiB", "--workspace-mode", "rw", "--net", "example.org"]

    result = holt(["run", *options, "--", "sh", "-c", "python3 -c 'bytearray(10**9)'; touch x; echo eai_again >&2; exit 1"])
    assert result.report and "raises it" not in result.err and "--" not in result.err
    (hit,) = result.report["limits_hit"]
    assert (hit["limit"], hit["option"], hit["value"]) == ("memory", None, 256 << 20)
    assert hit["why_not"] in result.err and ".holt.json" in hit["why_not"]
    denial = result.denials["x"]
    assert denial["grant"] is denial["policy"] is None and ".holt.json" in denial["why_not"]
    assert "no network, because the project's .holt.json says so" in result.err

    shown = holt(["policy", "show", *options]).ok().out
    for line in ("limits.memory                 256MiB (.holt.json)", "network.mode                  none (.holt.json)"):
        assert line in shown.splitlines()
    assert shown.count("(.holt.json)") == 3


def test_a_session_knows_what_the_project_s_file_has_set(sessions: Sessions, put: Callable[..., Path]) -> None:
    fields = {"limits": {"memory": "256MiB"}, "filesystem": {"workspace": {"mode": "ro"}}}
    project = put(".holt.json", json.dumps({"holt": 1, **fields})).parent
    session = sessions.create("w", "--workspace", project, "--memory", "2GiB", "--pids", "99", "--workspace-mode", "rw")
    result = session.sh("python3 -c 'bytearray(10**9)'; touch x; exit 1", "--json")
    document = json.loads(result.err.splitlines()[-1])
    (hit,) = document["limits_hit"]
    assert (hit["option"], hit["value"]) == (None, 256 << 20) and ".holt.json" in hit["why_not"]
    (denial,) = document["denials"]
    assert denial["grant"] is denial["policy"] is None and ".holt.json" in denial["why_not"]
    said = session.sh(FILES + "; python3 -c 'bytearray(10**9)'").err
    assert "the project's .holt.json sets this limit; change it there" in said


def test_a_timeout_of_the_project_s_file_is_changed_there(sessions: Sessions, put: Callable[..., Path]) -> None:
    project = put(".holt.json", json.dumps({"holt": 1, "limits": {"timeout": "300ms"}})).parent
    session = sessions.create("w", "--workspace", project, "--timeout", "1h")
    timed_out = "holt: timed out after 300ms (the project's .holt.json; change it there)\n"
    assert session.exec("sleep", "100").err == timed_out
    assert session("python", "-c", "import time; time.sleep(100)").err.endswith(timed_out)
    assert session.exec("sleep", "100", flags=("--timeout", "200ms")).err == "holt: timed out after 200ms (--timeout)\n"


@pytest.mark.parametrize(
    "text, options, limit",
    [
        ("RuntimeError: can't start new thread", ("--memory", "64M"), "memory"),
        ("RuntimeError: can't start new thread", ("--memory", "2G", "--pids", "100"), "processes"),
        ("java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory", ("--memory", "100M"), "memory"),
        ("java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory", ("--memory", "1G", "--pids", "100"), "processes"),
        ("runtime: failed to create new OS thread (have 2 already; errno=11)", ("--memory", "64M"), "memory"),
        ("Assertion `(0) == (uv_thread_create(t.get(), start_thread, this))' failed.", ("--memory", "64M"), "memory"),
        ("Assertion `(0) == (uv_thread_create(t.get(), start_thread, this))' failed.", ("--pids", "8"), "processes"),
        ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", ("--memory", "1G"), "memory"),
        ("# Fatal javascript OOM in Committing semi space failed.", ("--memory", "10M"), "memory"),
        ("java.lang.OutOfMemoryError: Java heap space", ("--memory", "1G"), "memory"),
        ("memory allocation of 268435456 bytes failed", ("--memory", "1G"), "memory"),
        ("# Native memory allocation (mmap) failed to map 12288 bytes.", ("--memory", "16M"), "memory"),
        ("bash: fork: retry: Resource temporarily unavailable", ("--memory", "64M", "--pids", "99"), "processes"),
    ],
)
def test_a_thread_may_lack_memory_rather_than_a_process(holt: Holt, text: str, options: "tuple[str, ...]", limit: str) -> None:
    result = holt(["run", *options, "--", "bash", "-c", 'echo "$0" >&2; exit 1', text])
    assert result.report and [hit["limit"] for hit in result.report["limits_hit"]] == [limit]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the sizes are of x86_64")
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_a_sanitizer_needs_memory_none(holt: Holt, put: Callable[..., Path], kind: str) -> None:
    put("a.c", "int main(void) { return 0; }\n")
    holt(["run", "--", "gcc", f"-fsanitize={kind}", "a.c", "-o", "a"]).ok()
    result = holt(["run", "--memory", "512M", "--", "./a"])
    assert result.report
    (hit,) = result.report["limits_hit"]
    assert (hit["limit"], hit["option"]) == ("memory", "--memory none")
    assert "shadow memory" in hit["reason"] and "--memory none raises it" in result.err
    holt(["run", "--memory", "none", "--", "./a"]).ok()


def test_a_full_memory_of_tmp_is_certain_if_holt_sees_it(holt: Holt) -> None:
    """In a repository, holt keeps the sandbox's root open to watch protected files."""
    subprocess.run(holt.identity.as_user(["git", "init", "-q", str(holt.cwd)]), check=True)
    result = holt.sh("dd if=/dev/zero of=/tmp/x bs=64k", "--tmp-size", "1M")
    assert result.report and [hit["certain"] for hit in result.report["limits_hit"]] == [True]
    result = holt.sh("echo 'No space left on device'; exit 1", "--tmp-size", "1M")
    assert result.report and not result.report["limits_hit"]


def test_an_output_that_is_dev_full_is_no_limit(holt: Holt) -> None:
    with open("/dev/full", "wb") as full:
        result = holt(["run", "--", "bash", "-c", "echo text"], stdout=full)
    assert "No space left on device" in result.err and "holt:" not in result.err, str(result)
    assert result.code == 1 and result.report and result.report["limits_hit"] == []


@pytest.mark.parametrize("script", ("echo text >/dev/full", "dd if=/dev/zero of=/dev/full count=1"))
def test_a_command_that_writes_to_dev_full_hits_no_limit(holt: Holt, script: str) -> None:
    result = holt.sh(script)
    assert "No space left on device" in result.err and "holt:" not in result.err, str(result)
    filled = holt.sh(f"head -c 2M /dev/zero >/tmp/file; {script.replace('/dev/full', '/tmp/other')}", "--tmp-size", "1M")
    assert "--tmp-size raises it" in filled.err, str(filled)


@pytest.mark.root_host
def test_the_disk_of_a_session_is_full(sessions: Sessions, mkdir: Callable[[str], Path]) -> None:
    place = mkdir("small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=1777", "none", place], check=True)
    try:
        session = sessions.create("w", "--workspace", place)
        result = session.sh("head -c 200000 /dev/zero >out")
        report = sessions.holt(["run", "--report", place / "report", "--", "true"])
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
    assert "holt: the host's disk is full (limit disk); holt does not limit it; free space on it\n" in result.err
    assert "ENOSPC" in report.refusal() and "The disk is full." in report.cure


def test_a_limit_of_the_caller_s_own_in_a_session(sessions: Sessions) -> None:
    said = sessions.create("w").sh(FILES, prefix=["prlimit", "--nofile=96:96"]).err
    assert said.endswith("holt: probably, your own limit (ulimit) is lower than the policy's (limit open_files)\n")


@pytest.mark.root_host
def test_an_output_on_a_full_disk_is_no_limit_of_the_sandbox(holt: Holt, mkdir: Callable[[str], Path]) -> None:
    place = mkdir("small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=1777", "none", place], check=True)
    try:
        with open(place / "out", "wb") as out:
            result = holt(["run", "--", "head", "-c", "200000", "/dev/zero"], stdout=out)
    finally:
        subprocess.run(["umount", place], check=True)
    assert result.report, str(result)
    (hit,) = result.report["limits_hit"]
    assert hit["reason"] == "the host's disk is full" and hit["option"] is None and hit["certain"], str(result)


def test_a_limit_of_the_callers_own_has_no_option(holt: Holt) -> None:
    result = holt.sh(FILES, prefix=["prlimit", "--nofile=96:96"])
    assert result.report
    (hit,) = result.report["limits_hit"]
    assert hit["option"] is hit["field"] is None and "ulimit" in hit["reason"]


@pytest.mark.parametrize(
    "text", ["fork: retry: no", "inotify_init: Too many open files", "JavaScript heap out of memory", "read: EAGAIN"]
)
def test_other_messages_are_no_limit(holt: Holt, text: str) -> None:
    result = holt.sh(f"echo '{text}' >&2; exit 1")
    assert result.report and result.report["limits_hit"] == []


def test_a_session_names_reached_limits(sessions: Sessions) -> None:
    session = sessions.create("w", "--open-files", "64", "--memory", "128M")
    result = session.sh(FILES, "--output", "1M")
    assert "holt create --open-files raises it" in result.err
    result = session("python", "-c", "x = bytearray(1 << 28)")
    assert "holt create --memory raises it" in result.err
    with session.rpc() as rpc:
        (hit,) = rpc.call("exec", shell=FILES)["limits_hit"]
        assert hit["limit"] == "open_files" and hit["field"] == "limits.open_files" and hit["value"] == 64


def test_a_session_with_too_many_processes_names_the_limit(sessions: Sessions) -> None:
    """A command may leave processes in the background, as an endless recursion of forks does."""
    session = sessions.create("w", "--pids", "20")
    session.exec("dash", "-c", "exec >/dev/null 2>&1; for i in $(seq 40); do sleep 1000 & done")
    result = session.exec("id")
    assert result.code == 125 and "EAGAIN" in result.err, result
    assert "as --pids allows: 20. holt ps w lists the commands" in result.cure
    with pytest.raises(RpcError, match="EAGAIN|temporarily") as error:
        session.rpc()("exec", argv=["id"])
    assert "limits.pids" in error.value.data["hint"] and "process.list" in error.value.data["hint"]
    session("kill", "p1").ok()
    session.exec("id").ok()


@pytest.mark.parametrize("flags", ((), ("--allow-syscall", "unshare"), ("--policy", "strict")), ids=("default", "own", "strict"))
def test_mounts_do_not_count_as_open_files(flags: "tuple[str, ...]", holt: Holt, place: Path) -> None:
    mounts: list[Arg] = []
    for name in map(str, range(80)):
        (place / name).mkdir()
        mounts += ["--ro", place / name]
    assert holt(["run", *flags, "--open-files", "64", *mounts, "--", "sh", "-c", "ulimit -n"]).ok().out == "64\n"
