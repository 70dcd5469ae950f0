# SPDX-License-Identifier: Apache-2.0
"""contrib/agents: the hook of Claude Code and holt-sh, with input in the documented format."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.paths import PROJECT
from lib.sandbox import HANGS, Holt
from lib.tools import needs

SOURCE = PROJECT / "contrib" / "agents"

pytestmark = needs("python3", "bash")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def agents(place: Path) -> Path:
    """A copy of the folder that every identity can read."""
    target = place / "agents"
    shutil.copytree(SOURCE, target)
    return target


@pytest.fixture
def run(holt: Holt) -> Run:
    """Runs a program of the host in the workspace, with holt in the PATH."""

    def run(*words: object, stdin: str = "", cwd: "Path | None" = None, **env: str) -> "subprocess.CompletedProcess[str]":
        more = {"PATH": f"{holt.binary.parent}:/usr/bin:/bin", "CLAUDE_PROJECT_DIR": str(holt.cwd), **env}
        argv = holt.identity.as_user(holt.identity.argv([str(w) for w in words]))
        return subprocess.run(argv, input=stdin, cwd=cwd or holt.cwd, env=holt.identity.environment(more), text=True,
                              capture_output=True, timeout=HANGS)

    return run


@pytest.fixture
def hook(agents: Path, run: Run, holt: Holt) -> Run:
    """Gives a call of the tool Bash to the hook, and runs the command that it answers as Claude Code does."""

    def hook(command: str, *options: str, cwd: "Path | None" = None, **env: str) -> "subprocess.CompletedProcess[str]":
        call = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": str(cwd or holt.cwd),
                "tool_input": {"command": command, "description": "test"}}
        done = run(agents / "claude-hook", *options, stdin=json.dumps(call), cwd=cwd, **env)
        assert done.returncode == 0, done
        output = json.loads(done.stdout)["hookSpecificOutput"]
        assert output["updatedInput"]["description"] == "test"
        return run("bash", "-c", output["updatedInput"]["command"], cwd=cwd)

    return hook


def test_a_command_runs_inside(hook: Run, holt: Holt, place: Path) -> None:
    done = hook(f"id -un; echo made > file; echo lost > {place}/file; touch /usr/file; exit 7")
    assert (done.returncode, done.stdout, (holt.cwd / "file").read_text()) == (7, "agent\n", "made\n"), done
    assert not (place / "file").exists()
    assert done.stderr.splitlines()[-1].startswith("holt: refused /usr/file"), done.stderr


def test_holt_sh_runs_inside(agents: Path, run: Run) -> None:
    done = run(agents / "holt-sh", "-c", 'id -un; echo "$0 $1"; cat; exit 7', "name", "one", stdin="input\n")
    assert (done.returncode, done.stdout) == (7, "agent\nname one\ninput\n"), done
