# SPDX-License-Identifier: Apache-2.0
"""The caller's environment stays outside: the sandbox has no secret of it, and no variable of it changes which code
runs."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import pytest

from lib import leaks
from lib.hostile import Attack, Hostile
from lib.identity import Identity
from lib.plugin import Make
from lib.sandbox import Holt

ALLOWED = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "COLORTERM", "TMPDIR",
    "PIP_RETRIES", "npm_config_fetch_retries",
    "PWD", "OLDPWD", "SHLVL", "_", "TZ",
}

# Variables that make a loader, a shell, an interpreter or git run other code.
STEERING = {
    "LD_PRELOAD": "/nonexistent/preload.so", "LD_LIBRARY_PATH": "/nonexistent",
    "LD_AUDIT": "/nonexistent/audit.so", "BASH_ENV": "/nonexistent/bash", "ENV": "/nonexistent/sh",
    "BASH_FUNC_ls%%": "() { echo hijacked; }", "PYTHONPATH": "/nonexistent",
    "PYTHONSTARTUP": "/nonexistent", "PERL5OPT": "-Mnonexistent", "NODE_OPTIONS": "--require=/nonexistent",
    "GIT_DIR": "/nonexistent", "GIT_SSH_COMMAND": "nonexistent", "SSH_AUTH_SOCK": "/nonexistent",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent", "AWS_SECRET_ACCESS_KEY": "secret",
    "GLIBC_TUNABLES": "glibc.malloc.check=1", "MALLOC_CHECK_": "3", "IFS": "/", "PS4": "$(id)",
    "HOLT": "/nonexistent", "HOLT_POLICY": "permissive", "http_proxy": "http://127.0.0.1:1",
}


def test_only_what_every_program_expects_is_set(holt: Holt) -> None:
    result = holt(["run", "--", "env", "-0"], env=STEERING).ok()

    names = {entry.split("=", 1)[0] for entry in result.out.split("\0") if entry}
    assert names <= ALLOWED
    assert "/nonexistent" not in result.out


def test_a_preloaded_library_is_not_loaded_inside(holt: Holt, hostile: Hostile) -> None:
    name = "/nonexistent/preload.so"
    control = hostile.caller.run(["true"], env=hostile.caller.environment({"LD_PRELOAD": name}))
    assert name in control.stderr

    result = holt.sh("/bin/true 2>&1; /bin/cat /proc/self/environ", env={"LD_PRELOAD": name}).ok()
    assert name not in result.out


# A program in the workspace that prints a line if it is run.
HIJACKER = "#!/bin/sh\necho hijacked\n"


@pytest.mark.parametrize("entry", ("{workspace}/bin", "bin", "./bin"))
def test_the_caller_s_path_does_not_choose_the_program(
    entry: str, holt: Holt, workspace: Path, identity: Identity, put: Make
) -> None:
    put("bin/ls", HIJACKER, 0o755)
    path = f"{entry.format(workspace=workspace)}:{os.environ['PATH']}:/usr/bin:/bin"
    # execvp must search the child's PATH from the child's cwd. subprocess does not do that, but env(1) does.
    control = identity.run(["/usr/bin/env", "ls"], cwd=workspace, env=identity.environment({"PATH": path}))
    assert control.stdout == "hijacked\n"

    result = holt(["run", "--", "ls"], env={"PATH": path}).ok()
    assert result.out == "bin\n"


@pytest.mark.parametrize("path", (".:/usr/bin:/bin", ":/usr/bin:/bin"))
def test_a_program_in_the_workspace_is_not_found_by_name(path: str, holt: Holt, put: Make) -> None:
    put("ls", HIJACKER, 0o755)

    assert holt(["run", "--", "ls"], env={"PATH": path}).ok().out == "ls\n"


@pytest.mark.parametrize("name", ("holt-full", "libexec/holt/holt-full", "holt-init", "holt"))
def test_no_part_of_holt_is_taken_from_the_workspace(
    name: str, holt: Holt, workspace: Path, put: Make
) -> None:
    put(name, HIJACKER, 0o755)
    (workspace / "policy.json").write_text('{"holt": 1}')
    env = {"PATH": f".:{workspace}:/usr/bin:/bin"}

    for args in (["policy", "show"], ["run", "--policy", "./policy.json", "--", "true"], ["run", "--", "true"]):
        assert "hijacked" not in str(holt(args, env=env))


# --- secrets ---


@pytest.fixture
def password() -> str:
    return secrets.token_hex(16)


def test_a_secret_is_in_no_memory_that_the_command_can_read(
    password: str, hostile: Hostile, holt: Holt
) -> None:
    attack = Attack("memory", "own", (password.encode().hex(),))
    env = hostile.caller.environment({"TOKEN": password})
    hostile.show_that_it_can_succeed(attack, env=env)

    assert hostile.attack(holt, attack, env={"TOKEN": password}).verdict == "HOLDS"


@pytest.mark.parametrize("path", ("/proc/1/environ", "/proc/1/cmdline", "/proc/1/mem", "/proc/self/environ",
                                  "/proc/self/auxv", "/proc/1/stat"))
def test_a_secret_is_in_no_file_of_proc(path: str, password: str, hostile: Hostile, holt: Holt) -> None:
    attack = Attack("memory", "file", (path, password.encode().hex()))

    assert hostile.attack(holt, attack, env={"TOKEN": password}).verdict == "HOLDS"


def test_the_search_in_proc_finds_a_secret_that_is_there(password: str, hostile: Hostile) -> None:
    """The control of the two tests around it."""
    attack = Attack("memory", "file", ("/proc/self/environ", password.encode().hex()))
    hostile.show_that_it_can_succeed(attack, env=hostile.caller.environment({"TOKEN": password}))


def memory_of(pid: int) -> bytes:
    """All readable memory of a process, read by the host's root."""
    found = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            start, _, end = line.split()[0].partition("-")
            if line.split()[1].startswith("r") and "[v" not in line:
                memory.seek(int(start, 16))
                found += memory.read(int(end, 16) - int(start, 16))
    return found


@pytest.mark.root_host
def test_the_search_in_memory_finds_a_secret_that_is_there(password: str) -> None:
    """The control of the next test."""
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, "TOKEN": password}) as process:
        found = memory_of(process.pid)
        process.kill()

    assert password.encode() in found


@pytest.mark.root_host
def test_a_secret_is_in_the_memory_of_no_process_inside(password: str, holt: Holt) -> None:
    """Init is executed from a sealed memory file, not carried over by fork. Only the host's root can check that."""
    waiting = ["run", "--", "sh", "-c", "echo ready; read line"]
    with holt.start(waiting, stdin=subprocess.PIPE, env={"TOKEN": password}) as run:
        assert run.readline() == "ready"
        inside = [p for p in leaks.descendants(run.pid) if p.pid != run.pid]
        searched = {p.name: memory_of(p.pid) for p in inside}
        run.wait(b"\n").ok()

    assert len(searched) >= 2
    for name, memory in searched.items():
        assert password.encode() not in memory, name


def test_holt_s_own_arguments_do_not_come_in(holt: Holt, secret: Path) -> None:
    """A path or value on holt's command line may itself be secret."""
    result = holt.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '", "--hide", "customer-names.txt").ok()

    assert "customer-names" not in result.out


STARTUP = (".bashrc", ".profile", ".bash_profile", ".bash_login")


@pytest.mark.parametrize("shell", (["bash", "-i"], ["bash", "-l"]), ids=" ".join)
@pytest.mark.parametrize("where", ("home", "workspace"))
def test_files_of_the_caller_s_shell_are_not_read(
    where: str, shell: list[str], holt: Holt, identity: Identity, workspace: Path, nothing_left: None
) -> None:
    home = identity.home if where == "home" else workspace
    paths = [home / name for name in STARTUP]
    for path in paths:
        path.write_text("echo hijacked\n")
        path.chmod(0o644)
    try:
        control = identity.run([*shell, "-c", "true"], env=identity.environment({"HOME": str(home)}))
        results = [holt(["run"], stdin="exit\n"), holt(["run", "--", *shell, "-c", "true"])]
    finally:
        for path in paths:
            path.unlink()

    assert "hijacked" in control.stdout
    assert "hijacked" not in "".join(map(str, results))
