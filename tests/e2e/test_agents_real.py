# SPDX-License-Identifier: Apache-2.0
"""Real agents on contrib/agents: Claude Code and OpenCode, with a stub of a model on loopback (lib/model.py).

npm ci --prefix tests/peers installs both. Claude Code 2.1.112 is the last version in JavaScript. Later ones are programs of
400 MB each, too large for the tests. test_bwrap_callers.py runs Codex.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.agents import CLAUDE, NASTY, OPENCODE, Agents, Told, put_files
from lib.sandbox import Holt
from lib.sessions import Sessions
from lib.tools import needs

pytestmark = [
    needs("python3", "node", "bash"), pytest.mark.identities("user"),
    pytest.mark.skipif(not CLAUDE.exists() or not OPENCODE.exists(),
                       reason="not on this host: agents of npm; npm ci --prefix tests/peers installs them"),
]

ways = pytest.mark.parametrize("way", ("hook", "shell"))
"""The hook wraps each command, or the agent starts it by holt-sh."""


@pytest.fixture
def agents(holt: Holt, place: Path) -> Agents:
    return Agents(holt, place)


def look(agents: Agents) -> "list[str]":
    """Commands that show where they run."""
    return [f"id -un; pwd; echo made > file; echo lost > {agents.place}/outside", "touch /usr/file; exit 7",
            "curl -sS https://example.org"]


def assert_inside(agents: Agents, told: Told) -> None:
    first, second, third = told.texts
    assert first.split() == ["agent", str(agents.project)] and (agents.project / "file").read_text() == "made\n", told
    assert not (agents.place / "outside").exists()
    assert "holt: refused /usr/file (EROFS)" in second.strip().splitlines()[-1], told
    assert "--net" in third.strip().splitlines()[-1], told


# --- Claude Code ---


@ways
def test_claude_code_runs_commands_inside(agents: Agents, way: str) -> None:
    told = agents.claude(*look(agents), settings=agents.settings(way))
    assert_inside(agents, told)
    assert "Exit code 7" in told.texts[1] and told.errors == [False, True, True], told


@ways
@pytest.mark.slow
def test_claude_code_gets_the_output_of_bash(agents: Agents, way: str) -> None:
    put_files(agents)
    # Claude Code itself keeps the directory of "cd", adds to the messages of bash, and runs commands where "set -e" has no effect.
    # Without a snapshot of the user's own shell, aliases are off, as in bash -c.
    other = ("cd ", "kill", "unclosed", "true; }", "test -t", "$0", "set -e", "alias")
    commands = [c for c in NASTY if not any(word in c for word in other)]
    told = agents.claude(*commands, settings=agents.settings(way))
    plain = agents.claude(*commands, settings={}, SHELL="/bin/bash")
    for command, inside, outside in zip(commands, told.texts, plain.texts, strict=True):
        assert inside == outside, command


@ways
@pytest.mark.slow
def test_a_background_command_runs_inside(agents: Agents, way: str) -> None:
    told = agents.claude({"command": "id -un > who; sleep 0.1; echo made > file", "run_in_background": True},
                         "until [ -e file ]; do sleep 0.01; done; cat who", settings=agents.settings(way))
    assert "running in background" in told.texts[0] and told.texts[1].split()[0] == "agent", told


@pytest.mark.parametrize("broken", ("no hook", "no holt", "no policy", "old python"))
@pytest.mark.slow
def test_claude_code_runs_nothing_if_the_hook_cannot_work(agents: Agents, broken: str) -> None:
    settings = agents.settings("hook")
    if broken == "no hook":
        (agents.folder / "claude-hook").unlink()
    elif broken == "no policy":
        (agents.folder / "policy.json").unlink()
    elif broken == "no holt":
        settings = agents.settings("hook", "--holt /nowhere/holt")
    else:
        hook = agents.folder / "claude-hook"
        hook.write_text(hook.read_text().replace("import json", "import no_such_module"))
    told = agents.claude("touch ran; echo ran", settings=settings)
    assert told.errors == [True] and not (agents.project / "ran").exists(), told
    if broken == "no holt":
        assert "holt: this command was not run: there is no holt at /nowhere/holt" in told.texts[0], told


@pytest.mark.slow
def test_without_the_hook_the_command_runs_outside(agents: Agents) -> None:
    """The control of the tests above."""
    told = agents.claude(f"echo made > {agents.place}/outside; echo ran", settings={})
    assert told.texts == ["ran"] and (agents.place / "outside").exists(), told


@pytest.mark.slow
def test_without_exit_2_a_missing_hook_lets_the_command_run(agents: Agents) -> None:
    """README says so."""
    settings = agents.settings("hook")
    settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"] = f"{agents.folder}/missing"
    assert agents.claude("touch ran", settings=settings).errors == [False] and (agents.project / "ran").exists()


@pytest.mark.parametrize("way,obeyed", (("hook", False), ("shell", True)))
@pytest.mark.slow
def test_claude_code_s_rules_see_the_original_command_only_with_holt_bash(agents: Agents, way: str, obeyed: bool) -> None:
    """README says so."""
    settings = agents.settings(way, permissions={"allow": ["Bash(python3:*)"], "deny": ["Bash(perl:*)"]})
    told = agents.claude("python3 -c 'print(6 * 7)'", settings=settings, options=())
    assert told.errors == [not obeyed], told
    told = agents.claude("perl -e 'print 42'", settings=settings)
    assert (told.texts == ["42"]) == (not obeyed), told


@pytest.mark.slow
def test_allow_runs_commands_without_a_question(agents: Agents) -> None:
    assert agents.claude("id -un", settings=agents.settings("hook"), options=()).errors == [True]
    assert agents.claude("id -un", settings=agents.settings("hook", "--allow"), options=()).texts == ["agent"]


@pytest.mark.slow
def test_a_session_lasts(agents: Agents, sessions: Sessions) -> None:
    sessions.create("work", "--workspace", f"{agents.project}:{agents.project}", "--policy", str(agents.folder / "policy.json"))
    settings = {**agents.settings("hook", "--session work"), "env": sessions.env}
    told = agents.claude("echo kept > /tmp/file", "cat /tmp/file; pwd", settings=settings)
    assert told.texts[1].split() == ["kept", str(agents.project)], told


# --- OpenCode ---


@ways
def test_opencode_runs_commands_inside(agents: Agents, way: str) -> None:
    told = agents.opencode(*look(agents), way=way)
    assert_inside(agents, told)


@ways
@pytest.mark.slow
def test_opencode_gets_the_output_of_bash(agents: Agents, way: str) -> None:
    put_files(agents)
    commands = [c for c in NASTY if "kill" not in c and "$0" not in c and "unclosed" not in c and "true; }" != c]
    told = agents.opencode(*commands, way=way)
    for command, inside in zip(commands, told.texts, strict=True):
        plain = agents.run("/bin/bash", "-c", command, HOME="/home/agent", LANG="C.UTF-8")
        printed = {text.replace("\r", "").strip() for text in (plain.stdout, plain.stdout + plain.stderr, plain.stderr + plain.stdout)}
        assert inside.replace("\r", "").strip() in (printed if plain.stdout + plain.stderr else {"(no output)"}), command


@ways
@pytest.mark.slow
def test_the_model_cannot_choose_another_workspace(agents: Agents, way: str) -> None:
    link = agents.project / "link"
    link.symlink_to(agents.place / "home")
    told = agents.opencode({"command": "touch ran", "workdir": str(agents.place / "home")}, {"command": "touch ran", "workdir": "link"}, "id -un", way=way)
    assert not (agents.place / "home/ran").exists() and told.texts[2].strip() == "agent", told


@pytest.mark.parametrize("broken", ("no holt-sh", "no holt", "NUL"))
@pytest.mark.slow
def test_opencode_runs_nothing_if_the_plugin_cannot_work(agents: Agents, broken: str) -> None:
    if broken == "no holt-sh":
        (agents.folder / "holt-sh").unlink()
    elif broken == "no holt":
        (agents.folder / "policy.json").unlink()
    told = agents.opencode("touch ran; echo ran" + ("\0" if broken == "NUL" else ""), way="hook")
    assert not (agents.project / "ran").exists() and "ran" not in told.texts[0].split(), told
