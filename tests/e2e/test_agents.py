# SPDX-License-Identifier: Apache-2.0
"""contrib/agents: the hook of Claude Code and holt-sh, with input in the documented format. test_agents_real.py runs the agents."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from lib.agents import NASTY, SOURCE, Agents, put_files
from lib.sandbox import Holt
from lib.sessions import Sessions
from lib.terminal import Terminal
from lib.tools import needs

pytestmark = needs("python3", "bash")


@pytest.fixture
def agents(holt: Holt, place: Path) -> Agents:
    return Agents(holt, place)


# --- the hook ---


def test_a_command_runs_inside(agents: Agents) -> None:
    done = agents.hooked(f"id -un; echo made > file; echo lost > {agents.place}/file; touch /usr/file; exit 7")
    assert (done.returncode, done.stdout, (agents.project / "file").read_text()) == (7, "agent\n", "made\n"), done
    assert not (agents.place / "file").exists()
    assert done.stderr.splitlines()[-1].startswith("holt: refused /usr/file (EROFS)"), done.stderr


@pytest.mark.alike
def test_a_command_runs_in_the_working_directory_of_the_call(agents: Agents) -> None:
    put_files(agents)
    done = agents.hooked("pwd; touch made ../above", cwd=agents.project / "sub")
    assert done.stdout == f"{agents.project}/sub\n" and (agents.project / "sub/made").exists() and (agents.project / "above").exists()
    outside = agents.hooked("pwd", cwd=agents.place / "home")
    assert outside.returncode == 125 and "cannot start in the sandbox's directory" in outside.stderr, outside


@pytest.mark.alike
def test_a_worktree_of_claude_code_is_the_workspace(agents: Agents) -> None:
    tree = agents.project / ".claude/worktrees/one"
    tree.mkdir(parents=True)
    for path in (agents.project / ".claude", agents.project / ".claude/worktrees", tree):
        agents.holt.identity.own(path)
    done = agents.hooked("touch made; touch ../../settings.json", cwd=tree)
    assert (tree / "made").exists() and not (agents.project / ".claude/settings.json").exists(), done


@pytest.mark.alike
@pytest.mark.parametrize("shell", (pytest.param("bash"), pytest.param("zsh", marks=needs("zsh"))))
def test_a_command_does_what_it_does_in_bash(agents: Agents, shell: str) -> None:
    put_files(agents)
    for command in NASTY:
        plain, inside = agents.run("/bin/bash", "-c", command, HOME="/home/agent", LANG="C.UTF-8"), agents.hooked(command, shell=shell)
        code = 128 - plain.returncode if plain.returncode < 0 else plain.returncode
        assert (inside.returncode, inside.stdout) == (code, plain.stdout), command
        assert inside.stderr.startswith(plain.stderr), command


@pytest.mark.alike
def test_options_reach_holt_run(agents: Agents) -> None:
    assert agents.hooked("ulimit -n; echo $A", "--", "--open-files", "123", "--env", "A=it's").stdout == "123\nit's\n"
    assert agents.hooked("ulimit -n", "--holt", str(agents.holt.binary), "--", "--policy", "strict").stdout == "1024\n"


@pytest.mark.alike
def test_the_permission_is_claude_code_s_own_unless_the_user_says_so(agents: Agents) -> None:
    asked = json.loads(agents.ask_hook({"command": "true"}).stdout)["hookSpecificOutput"]
    allowed = json.loads(agents.ask_hook({"command": "true"}, "--allow").stdout)["hookSpecificOutput"]
    assert "permissionDecision" not in asked and allowed["permissionDecision"] == "allow"


@pytest.mark.alike
def test_a_session_keeps_its_state(agents: Agents, sessions: Sessions) -> None:
    sessions.create("work", "--workspace", f"{agents.project}:{agents.project}", "--policy", str(agents.folder / "policy.json"))
    put_files(agents)
    options = ("--session", "work", "--holt", agents.holt.binary)
    assert agents.hooked("echo kept > /tmp/file; pwd", *options, cwd=agents.project / "sub", **sessions.env).stdout == f"{agents.project}/sub\n"
    done = agents.hooked("cat /tmp/file; touch /usr/file; exit 3", *options, **sessions.env)
    assert (done.returncode, done.stdout) == (3, "kept\n") and done.stderr.splitlines()[-1].startswith("holt: refused /usr/file"), done
    assert agents.hooked("true", "--session", "other", "--holt", agents.holt.binary, **sessions.env).returncode == 125


@pytest.mark.alike
@pytest.mark.parametrize("tool,given,what", (
    ("Bash", {"command": "true"}, "wraps"), ("Monitor", {"command": "true", "timeout_ms": 5}, "wraps"),
    ("Monitor", {"ws": {"url": "ws://127.0.0.1"}}, "leaves"), ("Read", {"file_path": "/x"}, "leaves"),
    ("Bash", {}, "refuses"), ("Bash", {"command": 5}, "refuses"), ("Bash", {"command": None}, "refuses"), ("Bash", None, "refuses"),
    ("Bash", {"command": "id\0"}, "refuses"), ("Monitor", {"command": ["id"]}, "refuses"),
))
def test_a_call_of_each_tool(agents: Agents, tool: str, given: object, what: str) -> None:
    done = agents.ask_hook(given, tool=tool)
    if what == "wraps":
        updated = json.loads(done.stdout)["hookSpecificOutput"]["updatedInput"]
        assert {**updated, "command": given["command"]} == given and shlex.split(updated["command"])[-3:] == ["/bin/bash", "-c", "true"]  # type: ignore[index]
    elif what == "leaves":
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    else:
        assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("holt: this command was not run: "), done


@pytest.mark.alike
@pytest.mark.parametrize("text", ("", "{", "[]", "null", '{"hook_event_name": "PostToolUse"}', '{"hook_event_name": "PreToolUse"}', "\udcff", "[" * 100000))
def test_broken_input_is_refused(agents: Agents, text: str) -> None:
    done = agents.run(agents.folder / "claude-hook", stdin=text, CLAUDE_PROJECT_DIR=str(agents.project))
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("holt: this command was not run: "), done


@pytest.mark.alike
@pytest.mark.parametrize("options,env,reason", (
    ((), {"PATH": "/usr/bin:/bin"}, "there is no holt in the PATH"), (("--holt", "/nowhere/holt"), {}, "there is no holt at /nowhere/holt"),
    (("--holt", "holt"), {}, "no absolute path"), (("--holt",), {}, "--holt needs a value"), (("--polcy", "strict"), {}, 'unknown option "--polcy"'),
    (("--session", "w", "--", "--net", "a.example"), {}, "pass the options to holt create"), (("--session", "w"), {}, "name holt by --holt"), ((), {"CLAUDE_PROJECT_DIR": ""}, "CLAUDE_PROJECT_DIR is not set"),
    ((), {"CLAUDE_PROJECT_DIR": "relative"}, "no absolute path"), (("--workspace", "/nowhere"), {}, "no directory"),
))
def test_a_wrong_setup_is_refused(agents: Agents, options: "tuple[str, ...]", env: "dict[str, str]", reason: str) -> None:
    done = agents.ask_hook({"command": "true"}, *options, **env)
    assert (done.returncode, done.stdout) == (2, "") and reason in done.stderr, done


@pytest.mark.alike
def test_the_hook_leaves_commands_to_holt_bash(agents: Agents) -> None:
    """Only if Claude Code will really start it."""
    own = agents.folder / "holt-bash"
    assert json.loads(agents.ask_hook({"command": "id"}, CLAUDE_CODE_SHELL=str(own)).stdout) == {"hookSpecificOutput": {"hookEventName": "PreToolUse"}}
    assert (agents.project / ".claude").is_dir()
    other = agents.place / "holt-bash"
    other.symlink_to("/bin/bash")
    for shell in ("/bin/bash", str(other), str(agents.folder / "holt-sh"), str(agents.folder / "missing/holt-bash")):
        assert "updatedInput" in json.loads(agents.ask_hook({"command": "id"}, CLAUDE_CODE_SHELL=shell).stdout)["hookSpecificOutput"], shell
    (agents.folder / "holt-sh").chmod(0o644)
    assert "updatedInput" in json.loads(agents.ask_hook({"command": "id"}, CLAUDE_CODE_SHELL=str(own)).stdout)["hookSpecificOutput"]


# --- holt-sh ---


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("name", ("holt-sh", "holt-bash"))
def test_holt_sh_runs_inside(agents: Agents, name: str) -> None:
    done = agents.run(agents.folder / name, "-c", 'id -un; echo "$0 $1"; cat; touch made /usr/file; exit 7', "name", "one", stdin="input\n")
    assert (done.returncode, done.stdout) == (7, "agent\nname one\ninput\n"), done
    assert (agents.project / "made").exists() and done.stderr.splitlines()[-1].startswith("holt: refused /usr/file"), done


@pytest.mark.alike
def test_holt_sh_does_what_bash_does(agents: Agents) -> None:
    put_files(agents)
    (agents.project / "script.sh").write_text('echo "$0" "$@"; cat; exit 4\n')
    for words in (*(("-c", command) for command in NASTY), ("script.sh", "a b", "c"), ("-e", "script.sh"), ("-s", "x"), ("-lc", "shopt login_shell"),
                  ("-l", "-c", "shopt login_shell"), ("-ic", "echo $-"), ("-c",), ("--version",), ("missing.sh",), ("-o", "noglob", "-c", "echo *"), ()):
        stdin = "echo from stdin\n"
        plain = agents.run("/bin/bash", *words, stdin=stdin, HOME="/home/agent", LANG="C.UTF-8")
        inside = agents.run(agents.folder / "holt-sh", *words, stdin=stdin)
        code = 128 - plain.returncode if plain.returncode < 0 else plain.returncode
        assert (inside.returncode, inside.stdout) == (code, plain.stdout), words


@pytest.mark.alike
def test_holt_sh_obeys_its_variables(agents: Agents) -> None:
    put_files(agents)
    policy = agents.place / "policy.json"
    policy.write_text('{"holt": 1, "limits": {"open_files": 123}}')
    agents.holt.identity.own(policy)
    run = agents.folder / "holt-sh"
    assert agents.run(run, "-c", "ulimit -n", HOLT_SH_POLICY="strict").stdout == "1024\n"
    assert agents.run(run, "-c", "ulimit -n", HOLT_SH_POLICY=str(policy)).stdout == "123\n"
    assert agents.run(run, "-c", "touch ../above; pwd", cwd=agents.project / "sub", HOLT_SH_WORKSPACE=str(agents.project)).stdout == f"{agents.project}/sub\n"
    assert (agents.project / "above").exists()
    assert "bad" in agents.run(run, "-c", "id", HOLT_SH_NET="bad..rule").stderr
    assert agents.run(run, "-c", "echo ok", PATH="/usr/bin:/bin", HOLT_SH_HOLT=str(agents.holt.binary)).stdout == "ok\n"


@pytest.mark.alike
@pytest.mark.parametrize("env,reason", (
    ({"PATH": "/usr/bin:/bin"}, "there is no holt in the PATH"), ({"HOLT_SH_HOLT": "holt"}, "not an absolute path"),
    ({"HOLT_SH_WORKSPACE": "/nowhere"}, "no directory"), ({"HOLT_SH_POLICY": "nowhere.json"}, "nowhere.json"), ({"HOLT_SH_HOLT": "/nowhere/holt"}, "/nowhere/holt"),
))
def test_holt_sh_runs_nothing_if_its_setup_is_wrong(agents: Agents, env: "dict[str, str]", reason: str) -> None:
    done = agents.run(agents.folder / "holt-sh", "-c", "echo ran", **env)
    assert done.returncode in (125, 126, 127) and done.stdout == "" and reason in done.stderr, done


@pytest.mark.alike
def test_holt_sh_inside_a_sandbox_is_bash(agents: Agents) -> None:
    done = agents.holt(["run", "--ro", str(agents.folder), "--", agents.folder / "holt-sh", "-c", 'echo "$0 $1"; exit 3', "a", "b"])
    assert (done.code, done.out) == (3, "a b\n"), str(done)


@pytest.mark.alike
@pytest.mark.parametrize("sig,code", ((signal.SIGTERM, 143), (signal.SIGHUP, 129)))
def test_a_signal_ends_the_command(agents: Agents, sig: int, code: int) -> None:
    argv = agents.holt.identity.as_user([str(agents.folder / "holt-sh"), "-c", "echo started; sleep 1000"])
    with subprocess.Popen(argv, cwd=agents.project, env=agents.environment(), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout and running.stdout.readline() == "started\n"
        os.kill(running.pid, sig)
        assert running.wait(60) == code


@pytest.mark.alike
def test_holt_sh_has_a_terminal(agents: Agents) -> None:
    with Terminal(agents.holt.identity, [str(agents.folder / "holt-sh"), "--norc", "-i"], cwd=agents.project, env=agents.environment(PS1="")) as terminal:
        terminal.send("test -t 0 && echo terminal $((40 + 2)); id -un\n")
        terminal.expect("terminal 42")
        terminal.expect("agent")
        terminal.send("exit 5\n")
        assert terminal.wait() == 5


# --- the folder ---


def test_every_file_is_installed() -> None:
    """holt-bash is holt-sh under a name that Claude Code accepts."""
    meson = (SOURCE.parent / "meson.build").read_text()
    for path in SOURCE.rglob("*"):
        assert path.is_dir() or f"'agents/{path.relative_to(SOURCE)}'" in meson or path.is_symlink(), path
    assert (SOURCE / "holt-bash").readlink() == Path("holt-sh")
