# SPDX-License-Identifier: Apache-2.0
"""The caller's settings, ~/.config/holt/config.json: the policy from which holt starts unless a preset is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.sandbox import Holt, Result
from lib.sessions import Sessions

Make = Callable[..., Path]
MARK = ["--", "sh", "-c", 'echo "<$MARK>"']


@pytest.fixture
def settings(program: Make) -> "Callable[..., dict[str, str]]":
    """Writes the settings, and returns the environment in which holt reads them."""

    def write(name: str = "xdg/holt/config.json", **members: Any) -> "dict[str, str]":
        path = program(name, json.dumps({"holt": 1, **members}))
        path.chmod(0o644)
        return {"XDG_CONFIG_HOME": str(path.parents[1])}

    return write


def marked(result: Result) -> str:
    return result.ok().out.strip().strip("<>")


def test_runs_start_from_the_settings(holt: Holt, settings: "Callable[..., dict[str, str]]", put: Make) -> None:
    env = settings(extends="ci", env={"set": {"MARK": "mine", "OTHER": "1"}}, limits={"pids": 99})

    assert marked(holt(["run", *MARK], env=env)) == "mine"
    assert marked(holt(["run", "--env", "MARK=option", *MARK], env=env)) == "option"
    shown = json.loads(holt(["policy", "show", "--json", "--pids", "98"], env=env).ok().out)
    assert (shown["extends"], shown["limits"]["pids"], shown["env"]["set"]["OTHER"]) == ("ci", 98, "1")
    put("file.json", '{"holt": 1, "env": {"set": {"MARK": "file"}}}')
    assert marked(holt(["run", "--policy", "./file.json", *MARK], env=env)) == "file"
    shown = json.loads(holt(["policy", "show", "--json", "--policy", "./file.json"], env=env).ok().out)
    assert (shown["extends"], shown["limits"]["pids"], shown["env"]["set"]["OTHER"]) == ("ci", 99, "1")


def test_the_settings_are_in_the_home_directory(holt: Holt, settings: "Callable[..., dict[str, str]]", place: Path) -> None:
    settings("home/.config/holt/config.json", env={"set": {"MARK": "mine"}})

    assert marked(holt(["run", *MARK], env={"HOME": str(place / "home")})) == "mine"
    assert marked(holt(["run", *MARK], env={"HOME": str(place / "home"), "XDG_CONFIG_HOME": str(place)})) == ""


def test_a_named_preset_replaces_the_settings(holt: Holt, settings: "Callable[..., dict[str, str]]", put: Make) -> None:
    env = settings(env={"set": {"MARK": "mine"}}, filesystem={"read_write": ["/nonexistent"]})
    put("file.json", '{"holt": 1, "extends": "strict"}')

    for policy in ("strict", "standard", "./file.json"):
        assert marked(holt(["run", "--policy", policy, *MARK], env=env)) == ""


@pytest.mark.parametrize("flags, extra", ((["--no-config"], {}), ([], {"HOLT_CONFIG": ""}), ([], {"HOLT_CONFIG": "none"})))
def test_the_settings_can_be_left_out(
    flags: "list[str]", extra: "dict[str, str]", holt: Holt, settings: "Callable[..., dict[str, str]]"
) -> None:
    env = {**settings(env={"set": {"MARK": "mine"}}), **extra}

    assert marked(holt(["run", *flags, *MARK], env=env)) == ""
    assert "settings" not in holt(["policy", "show", *flags], env=env).ok().out


def test_holt_config_names_other_settings(holt: Holt, settings: "Callable[..., dict[str, str]]", place: Path) -> None:
    env = settings(env={"set": {"MARK": "mine"}})
    settings("other/file.json", env={"set": {"MARK": "other"}})

    assert marked(holt(["run", *MARK], env={**env, "HOLT_CONFIG": f"{place}/other/file.json"})) == "other"
    assert "ENOENT" in holt(["run", *MARK], env={**env, "HOLT_CONFIG": "/no/such"}).refusal()
    assert "absolute" in holt(["run", *MARK], env={**env, "HOLT_CONFIG": "file.json"}).refusal()


def test_sessions_start_from_the_settings(sessions: Sessions, settings: "Callable[..., dict[str, str]]") -> None:
    """The session keeps the policy that it was created with: later settings do not change it."""
    env = {**sessions.env, **settings(env={"set": {"MARK": "mine"}})}
    sessions.create("w", env=env)
    settings(env={"set": {"MARK": "new"}})

    assert marked(sessions(["exec", "w", *MARK], env=env)) == "mine"


def test_policy_show_names_the_settings(holt: Holt, settings: "Callable[..., dict[str, str]]") -> None:
    env = settings(limits={"timeout": "1m"})

    assert holt(["policy", "show"], env=env).ok().out.splitlines()[0].split() == [
        "settings", f"{env['XDG_CONFIG_HOME']}/holt/config.json"]


def test_wrong_settings_are_an_error(holt: Holt, settings: "Callable[..., dict[str, str]]") -> None:
    env = settings(limits={"timeuot": "1m"})

    for args in (["run", *MARK], ["create", "w"], ["policy", "show"]):
        assert "config.json: $.limits.timeuot: unknown field" in holt(args, env=env).err


def test_settings_may_extend_a_file(holt: Holt, settings: "Callable[..., dict[str, str]]", program: Make) -> None:
    program("xdg/holt/team.json", '{"holt": 1, "extends": "ci", "env": {"set": {"MARK": "team"}}}')

    assert marked(holt(["run", *MARK], env=settings(extends="./team.json"))) == "team"


def test_settings_that_a_command_may_have_written_are_refused(
    sessions: Sessions, holt: Holt, settings: "Callable[..., dict[str, str]]", place: Path
) -> None:
    """XDG_CONFIG_HOME may be set in some shells only. In the others, commands can write there."""
    env = settings("work/project/xdg/holt/config.json", env={"set": {"MARK": "planted"}})
    work = Path(env["XDG_CONFIG_HOME"]).parent
    assert marked(holt(["run", "--workspace", "none", *MARK], env=env)) == "planted"
    for args in (["run", "--workspace", work, *MARK], ["create", "w", "--workspace", work], ["run", "--workspace", "none", "--rw", work, *MARK]):
        result = sessions(args, env=env)
        assert (result.code, result.out) == (125, ""), result
        assert "commands can write: an earlier command may have made them" in result.err and "--no-config" in result.err, result
    assert marked(holt(["run", "--workspace", work, "--no-config", *MARK], env=env)) == ""
    assert marked(holt(["run", "--workspace", work, "--workspace-mode", "ro", *MARK], env=env)) == "planted"
    assert marked(holt(["run", "--workspace", work, "--policy", "standard", *MARK], env=env)) == ""


def test_settings_at_home_are_hidden_from_each_command(holt: Holt, place: Path, program: Make) -> None:
    program("home/.config/holt/config.json", json.dumps({"holt": 1, "env": {"set": {"MARK": "own"}}})).chmod(0o644)
    home = {"HOME": str(place / "home")}
    result = holt(["run", "--workspace", place / "home", "--allow-wide", *MARK], env=home)
    assert marked(result) == "own"
    result = holt(["run", "--workspace", place / "home", "--allow-wide", "--", "cat", ".config/holt/config.json"], env=home)
    assert result.code != 0 and result.out == ""
