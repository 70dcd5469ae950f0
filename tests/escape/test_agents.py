# SPDX-License-Identifier: Apache-2.0
"""Attacks of a sandboxed command on the agent that started it: its settings, its hook, holt-sh and their programs.

A command runs as the agent runs it: by what the hook answers, or by holt-sh. The control runs it on the host.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lib.agents import Agents, Done
from lib.sandbox import Holt
from lib.tools import needs

pytestmark = needs("python3", "bash")

WAYS = ("hook", "holt-sh")


@pytest.fixture
def agents(holt: Holt, place: Path) -> Agents:
    return Agents(holt, place)


def attack(agents: Agents, way: str, command: str, **env: str) -> Done:
    return agents.hooked(command, **env) if way == "hook" else agents.run(agents.folder / "holt-sh", "-c", command, **env)


def put(agents: Agents, name: str, text: str, mode: int = 0o644) -> Path:
    path = agents.project / name
    for parent in reversed(path.relative_to(agents.project).parents[:-1]):
        (agents.project / parent).mkdir(exist_ok=True)
        agents.holt.identity.own(agents.project / parent)
    path.write_text(text)
    path.chmod(mode)
    return agents.holt.identity.own(path)


SETTINGS = (
    ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks/claude-hook", ".claude/skills/a/SKILL.md", ".mcp.json", ".opencode/plugin/a.js",
    ".opencode/opencode.json", "opencode.json", "opencode.jsonc", ".codex/config.toml", ".vscode/tasks.json", ".cursor/mcp.json", ".gemini/settings.json",
)


@pytest.mark.parametrize("way", WAYS)
def test_settings_of_agents_stay_as_they_are(agents: Agents, way: str) -> None:
    for name in SETTINGS:
        put(agents, name, "the user's")
    script = f"for f in {' '.join(SETTINGS)}; do echo evil > $f; rm -f $f; mv $f moved; ln -sf /dev/null $f; done; rm -rf .claude .opencode; mv .claude .c"
    attack(agents, way, script)
    assert {name: (agents.project / name).read_text() for name in SETTINGS} == {name: "the user's" for name in SETTINGS}
    agents.run("bash", "-c", script)
    assert not (agents.project / ".claude").exists()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SETTINGS)
def test_new_settings_of_agents_are_set_aside(agents: Agents, way: str, name: str) -> None:
    command = f"mkdir -p $(dirname {name}); echo evil > {name}; cat {name}"
    done = attack(agents, way, command)
    assert not (agents.project / name).exists(), done
    agents.run("bash", "-c", f"rm -rf .[a-z]*; {command}")
    assert (agents.project / name).exists()


def test_no_settings_of_claude_code_appear_while_a_command_runs(agents: Agents) -> None:
    """Claude Code reads new settings at once. So the hook makes .claude before the command starts."""
    done = agents.hooked("echo '{\"disableAllHooks\": true}' > .claude/settings.local.json; ls .claude; mv .claude old; mkdir .claude; ls -d .claude")
    assert done.stdout == ".claude\n" and list((agents.project / ".claude").iterdir()) == [], done
    assert done.stderr.count("Read-only file system") == 1, done


@pytest.mark.parametrize("way", WAYS)
def test_the_hook_and_its_files_in_a_project_stay_as_they_are(agents: Agents, way: str) -> None:
    """Even in the workspace, where README tells nobody to put them, .claude protects them."""
    inside = agents.project / ".claude" / "agents-of-holt"
    inside.parent.mkdir()
    agents.holt.identity.own(inside.parent)
    agents.folder.rename(inside)
    agents.folder = inside
    before = {path.name: path.read_bytes() for path in inside.iterdir() if path.is_file()}
    attack(agents, way, "cd .claude/agents-of-holt; for f in *; do echo exit > $f; rm -f $f; done; chmod 644 *")
    assert {path.name: path.read_bytes() for path in inside.iterdir() if path.is_file()} == before


def test_a_policy_in_the_workspace_stays_as_it_is(agents: Agents) -> None:
    policy = put(agents, "policy.json", '{"holt": 1}')
    attack(agents, "holt-sh", "echo evil > policy.json; rm policy.json", HOLT_SH_POLICY="./policy.json")
    assert policy.read_text() == '{"holt": 1}'


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ("directory", "relative", "link to it", "link in it", "option"))
def test_a_planted_holt_is_not_used(agents: Agents, way: str, how: str) -> None:
    """PATH, or an option, leads to a program that an earlier command has made."""
    planted = put(agents, "bin/holt", f"#!/bin/sh\ntouch {agents.place}/escaped\n", 0o755)
    path = str(planted.parent)
    if how == "relative":
        path = "bin"
    if how == "link to it":
        path = str(agents.place / "links")
        Path(path).mkdir()
        (Path(path) / "holt").symlink_to(planted)
    if how == "link in it":
        planted.unlink()
        planted.symlink_to(agents.holt.binary)
    given = {"PATH": f"{path}:/usr/bin:/bin"} if how != "option" else {"HOLT_SH_HOLT": str(planted)}
    if way == "hook":
        options = ("--holt", str(planted)) if how == "option" else ()
        done = agents.ask_hook({"command": "echo ran"}, *options, **given)
        assert (done.returncode, done.stdout) == (2, ""), done
    else:
        done = agents.run(agents.folder / "holt-sh", "-c", "echo ran", **given)
        assert (done.returncode, done.stdout) == (125, ""), done
    assert not (agents.place / "escaped").exists()


def test_the_hook_and_the_shell_are_not_used_from_the_project(agents: Agents) -> None:
    """The first command could change what runs each later one on the host."""
    shutil.copytree(agents.folder, agents.project / "tools", symlinks=True)
    agents.folder = agents.project / "tools"
    done = agents.ask_hook({"command": "echo ran"}, "--holt", str(agents.holt.binary))
    assert (done.returncode, done.stdout) == (2, "") and "install these files elsewhere" in done.stderr, done
    done = agents.run(agents.folder / "holt-sh", "-c", "echo ran")
    assert (done.returncode, done.stdout) == (125, "") and "install it elsewhere" in done.stderr, done


@pytest.mark.parametrize("where", (".git/hooks", ".claude", ".claude/worktrees/a/.git", "sub/.vscode"))
def test_a_protected_directory_is_no_workspace(agents: Agents, where: str) -> None:
    """Its files are protected in a workspace that contains it. A model may choose the working directory."""
    directory = agents.project / where
    directory.mkdir(parents=True, exist_ok=True)
    for each in (directory, *directory.parents):
        if each != agents.project and agents.project in each.parents:
            agents.holt.identity.own(each)
    done = agents.run(agents.folder / "holt-sh", "-c", "echo evil > planted", cwd=directory)
    assert done.returncode == 125 and "is no project: name the workspace by HOLT_SH_WORKSPACE" in done.stderr, done
    assert list(directory.iterdir()) == []


def test_a_planted_holt_in_another_writable_directory_is_not_used(agents: Agents) -> None:
    tools = agents.place / "home/bin"
    tools.mkdir()
    (tools / "holt").write_text("#!/bin/sh\n")
    (tools / "holt").chmod(0o755)
    for words in (("--rw", str(tools)), (f"--rw={agents.place}/home",), ("-v", f"{tools}:/opt/bin")):
        done = agents.ask_hook({"command": "id"}, "--", *words, PATH=f"{tools}:/usr/bin:/bin")
        assert (done.returncode, done.stdout) == (2, "") and "sandboxed commands can write" in done.stderr, done


BREAKOUTS = (
    "'; touch X; '", "\"; touch X; \"", "'\\''; touch X; '\\''", "\\'; touch X; \\'", "$(touch X)", "`touch X`", "'\n touch X\n'", "\n'\ntouch X #", "\r'; touch X; '",
    "'\u2028touch X\u2028'", "' | touch X; '", "'>X'", "' -- sh -c 'touch X", "'\"'\"'; touch X; '\"'\"'", "\\", "'\\", "' && touch X #", "EOF\ntouch X\nEOF",
    "'; } ; touch X; { '", "!!; touch X", "\\\n'; touch X; \\\n'", "$'\\''; touch X; $'\\''", "\udc80'; touch X; '", "\ud800'; touch X; '", "''''; touch X; ''''",
)


@pytest.mark.parametrize("shell", ("bash", pytest.param("zsh", marks=needs("zsh"))))
def test_no_text_leaves_the_quotes(agents: Agents, shell: str) -> None:
    outside, naively = agents.place / "escaped", 0
    for text in BREAKOUTS:
        command = text.replace("X", str(outside))
        answered = agents.ask_hook({"command": command})
        updated = json.loads(answered.stdout)["hookSpecificOutput"]["updatedInput"]["command"]
        # JavaScript replaces lone surrogates when it passes the text to the shell.
        agents.run(shell, "-c", updated.encode(errors="replace").decode())
        assert not outside.exists(), command
        naive = updated[: updated.index(" -c ")] + f" -c '{command.encode(errors='replace').decode()}'"
        agents.run(shell, "-c", naive)
        naively += outside.exists()
        outside.unlink(missing_ok=True)
    assert naively > 5, "without the quoting, texts get out"


@pytest.mark.parametrize("way", WAYS)
def test_an_earlier_command_sets_nothing_for_the_next_one(agents: Agents, way: str) -> None:
    files = ".bashrc .bash_profile .profile .bash_login .zshenv .zshrc .env bunfig.toml json.py os.py sitecustomize.py usercustomize.py"
    evil = f"touch {agents.place}/escaped; touch escaped"
    python = f"open('{agents.place}/escaped', 'w')"
    attack(agents, way, f"for f in {files}; do case $f in *.py) echo \"{python}\" ;; *) echo '{evil}' ;; esac | tee $f > ~/$f; done; export BASH_ENV=$PWD/.bashrc")
    assert (agents.project / "json.py").exists()
    done = attack(agents, way, "echo ${BASH_ENV-unset}")
    assert done.stdout == "unset\n" and not (agents.place / "escaped").exists() and not (agents.project / "escaped").exists(), done
    agents.run("python3", "-c", "import json")
    assert (agents.place / "escaped").exists(), "the control"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ("BASH_ENV", "ENV", "LD_PRELOAD", "PYTHONPATH", "BASH_FUNC_id%%", "CDPATH", "PS4"))
def test_the_agent_s_variables_do_not_reach_a_command(agents: Agents, way: str, name: str) -> None:
    done = attack(agents, way, f"env | grep -c '^{name}='", **{name: "() { :; }" if "%" in name else str(agents.project)})
    assert done.stdout == "0\n", done


def test_the_working_directory_does_not_move_the_workspace(agents: Agents) -> None:
    """A command has made a symlink, and the model names it as the working directory."""
    secret = agents.place / "home/.ssh"
    secret.mkdir()
    (secret / "id").write_text("secret")
    (agents.project / "link").symlink_to(secret)
    for done in (agents.hooked("cat id", cwd=agents.project / "link"),
                 agents.run(agents.folder / "holt-sh", "-c", "cat id", cwd=agents.project / "link", HOLT_SH_WORKSPACE=str(agents.project))):
        assert done.returncode != 0 and "secret" not in done.stdout, done
    assert agents.run("cat", "id", cwd=agents.project / "link").stdout == "secret"
