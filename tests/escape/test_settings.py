# SPDX-License-Identifier: Apache-2.0
"""holt obeys the caller's settings without being told: nobody else may write them, and no command can plant them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import Sessions

Make = Callable[..., Path]
USER_AND_ROOT = pytest.mark.identities("user", "root")

EVIL = '{"holt": 1, "filesystem": {"read_write": ["/"], "allow_wide": true}}'
PLANT = f"""
mkdir -p .config/holt; echo '{EVIL}' > .config/holt/config.json; cat .config/holt/config.json
mv .config/holt .config/old; rm -rf .config; mv .config other; ln -s /tmp .config/holt/x; ls -A .config/holt
"""


@USER_AND_ROOT
@pytest.mark.parametrize("there", (True, False))
@pytest.mark.parametrize("way", ("workspace", "--rw", "session"))
def test_a_command_cannot_write_the_settings(
    way: str, there: bool, holt: Holt, sessions: Sessions, place: Path, program: Make
) -> None:
    """The settings are out of reach even if the whole home directory is writable, and if they do not exist yet."""
    home = program("home/file").parent
    good = '{"holt": 1, "env": {"set": {"MARK": "good"}}}'
    if there:
        program("home/.config/holt/config.json", good).chmod(0o644)
    env = {"HOME": str(home), "XDG_DATA_HOME": str(place / "data")}
    script = ["--", "sh", "-c", f"cd {home} && {PLANT}"]
    flags = ["--rw", str(home)] if way == "--rw" else ["--workspace", f"{home}:{home}"]

    if way == "session":
        sessions.create("w", *flags, "--allow-wide", env={**sessions.env, **env})
        result = sessions(["exec", "w", *script], env={**sessions.env, **env})
    else:
        result = holt(["run", "--allow-wide", *flags, *script], env=env)

    assert "allow_wide" not in result.out and "good" not in result.out, str(result)
    path = home / ".config" / "holt" / "config.json"
    assert (path.read_text() if path.exists() else None) == (good if there else None)
    assert not path.parent.is_symlink() and not path.parent.parent.is_symlink()
    assert (home / ".config" / "holt").is_dir()


@USER_AND_ROOT
def test_a_session_cannot_write_the_settings_of_its_creator(sessions: Sessions, program: Make) -> None:
    """Only the caller's environment says where the settings are. Settings in that place are refused, so this session
    has none."""
    config = program("elsewhere/holt/config.json", '{"holt": 1}').parents[1]
    env = {**sessions.env, "XDG_CONFIG_HOME": str(config)}
    assert "--no-config" in sessions(["create", "w", "--rw", str(config)], env=env).cure
    sessions.create("w", "--no-config", "--rw", str(config), env=env)

    result = sessions(["exec", "w", "--", "sh", "-c", f"echo evil > {config}/holt/config.json; cat {config}/holt/*"], env=env)
    assert result.code != 0 and '"holt"' not in result.out
    assert (config / "holt" / "config.json").read_text() == '{"holt": 1}'


@USER_AND_ROOT
@pytest.mark.parametrize("name", (".config", ".config/holt"))
def test_a_link_on_the_way_is_not_the_command_s(name: str, holt: Holt, place: Path, program: Make) -> None:
    home = program("home/file").parent
    target = program("target/holt/config.json", '{"holt": 1}').parents[1]
    link = home / name
    if name == ".config/holt":
        holt.identity.own(link.parent) if link.parent.mkdir() is None else None
        target = target / "holt"
    os.symlink(target, link)
    os.lchown(link, holt.identity.uid, holt.identity.gid) if os.geteuid() == 0 else None

    result = holt(["run", "--allow-wide", "--workspace", str(home), "--", "true"],
                  env={"HOME": str(home), "XDG_DATA_HOME": str(place / "data")})
    assert f"could replace the symlink {link}, which leads to holt's settings" in result.refusal()


@pytest.mark.identities("user")
def test_a_file_behind_a_link_in_the_workspace_is_pinned(holt: Holt, program: Make, place: Path) -> None:
    """Some users keep their settings in a repository, and link to them."""
    real = program("workspace/dotfiles/holt.json", '{"holt": 1, "env": {"set": {"MARK": "good"}}}')
    real.chmod(0o644)
    directory = program("xdg/holt/other").parent
    os.symlink(real, directory / "config.json")
    if os.geteuid() == 0:
        os.lchown(directory / "config.json", holt.identity.uid, holt.identity.gid)

    script = "echo $MARK; echo evil > dotfiles/holt.json; mv dotfiles other; rm -f dotfiles/holt.json; true"
    result = holt(["run", "--", "sh", "-c", script], env={"XDG_CONFIG_HOME": str(place / "xdg")})
    assert result.ok().out == "good\n"
    assert "good" in real.read_text()


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("name, mode", (("config.json", 0o666), ("config.json", 0o646), (".", 0o777), ("..", 0o777)))
def test_settings_that_others_may_write_are_refused(name: str, mode: int, holt: Holt, program: Make, place: Path) -> None:
    path = program("xdg/holt/config.json", '{"holt": 1}')
    path.chmod(0o644)
    os.path.normpath(path.parent / name)
    Path(os.path.normpath(path.parent / name)).chmod(mode)

    result = holt(["run", "--", "true"], env={"XDG_CONFIG_HOME": str(place / "xdg")})
    assert "other users may write to" in result.refusal() and "--no-config" in result.cure


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.identities("user", "root")
def test_settings_of_another_user_are_refused(holt: Holt, program: Make, place: Path) -> None:
    path = program("xdg/holt/config.json", '{"holt": 1}')
    path.chmod(0o644)
    os.chown(path, 54321, 54321)

    result = holt(["run", "--", "true"], env={"XDG_CONFIG_HOME": str(place / "xdg")})
    assert "belongs to uid 54321" in result.refusal()


@pytest.mark.identities("user", "root")
def test_a_file_that_the_settings_extend_is_not_the_command_s(holt: Holt, place: Path, program: Make) -> None:
    """The file lies in the workspace. If a command could change it, the next run would obey the command."""
    base = program("workspace/base.json", '{"holt": 1, "env": {"set": {"MARK": "good"}}}')
    program("xdg/holt/config.json", f'{{"holt": 1, "extends": "{base}"}}').chmod(0o644)

    script = "echo $MARK; echo evil > base.json; rm -f base.json; mv base.json other; cat base.json"
    result = holt(["run", "--", "sh", "-c", script], env={"XDG_CONFIG_HOME": str(place / "xdg")})
    assert result.out == "good\n" + base.read_text()


@pytest.mark.identities("user", "root")
def test_a_planted_file_of_variables_passes_no_secret(holt: Holt, put: Make, place: Path) -> None:
    """A command may write the .env that the next run reads. Names without values, links and pipes must pass no secret."""
    put("x")
    (place / "secret").write_text("A=s3cret\n")
    plants = ("echo TOKEN > .env", f"ln -sf {place}/secret .env", "ln -sf /proc/self/environ .env", "mkfifo .env",
              f"mkdir -p d; ln -sfn {place} d/up; echo A=1 > .env")
    for plant in plants:
        holt.sh(f"rm -rf .env; {plant}").ok()
        for name in (".env", "d/up/secret"):
            result = holt(["run", "--env-file", name, "--", "env"], env={"TOKEN": "s3cret"})
            assert "s3cret" not in result.out + result.err, (plant, name)
