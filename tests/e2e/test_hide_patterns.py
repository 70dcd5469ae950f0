# SPDX-License-Identifier: Apache-2.0
"""Patterns of files to hide: the files of the workspace that match at the start, at any depth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import Session, Sessions

Make = Callable[..., Path]

READABLE = r"""find . -type f | sort | while read -r file; do cat "$file" >/dev/null 2>&1 && echo "${file#./}"; done; true"""


@pytest.fixture
def tree(put: Make) -> None:
    for name in ("k.pem", "a/k.pem", "a/.b/.k.pem", "a/.env", ".env", "a/b/.env", "a/plain", "x1", "x2"):
        put(name, "secret\n")


def readable(holt: Holt, *flags: str) -> list[str]:
    return holt.sh(READABLE, *flags).ok().out.split()


@pytest.mark.parametrize(
    "pattern, hidden",
    [
        ("*.pem", {"k.pem", "a/k.pem", "a/.b/.k.pem"}),
        ("**/.env", {".env", "a/.env", "a/b/.env"}),
        ("a/*.pem", {"a/k.pem"}),
        ("a/**", {"a/k.pem", "a/.b/.k.pem", "a/.env", "a/b/.env", "a/plain"}),
        ("x[1]", {"x1"}),
        ("?1", {"x1"}),
        ("*.{pem,key}", {"k.pem", "a/k.pem", "a/.b/.k.pem"}),
        ("{.env,x[12],gone}", {".env", "a/.env", "a/b/.env", "x1", "x2"}),
        ("{a/{plain,.env},k.*}", {"a/plain", "a/.env", "k.pem", "a/k.pem"}),
        ("*", {"k.pem", "a/k.pem", "a/.b/.k.pem", "a/.env", ".env", "a/b/.env", "a/plain", "x1", "x2"}),
    ],
)
def test_a_pattern_hides_what_matches(holt: Holt, tree: None, pattern: str, hidden: set[str]) -> None:
    everything = set(readable(holt))
    assert hidden < everything or pattern == "*"
    assert set(readable(holt, "--hide", pattern)) == everything - hidden


def test_a_policy_file_may_have_patterns(holt: Holt, tree: None, put: Make) -> None:
    put(".holt.json", json.dumps({"holt": 1, "filesystem": {"hide": ["*.pem", "**/.env"]}}))
    assert set(readable(holt)) == {".holt.json", "a/plain", "x1", "x2"}


def test_a_literal_name_with_brackets_is_hidden_too(holt: Holt, put: Make) -> None:
    put("pages/[id].js", "x\n")
    put("pages/other.js", "x\n")
    assert readable(holt, "--hide", "pages/[id].js") == ["pages/other.js"]


def test_an_absolute_pattern_is_an_error(holt: Holt, sessions: Sessions, put: Make) -> None:
    """An absolute pattern would hide nothing, but the caller believes that it hides the files."""
    put("k.pem", "secret\n")
    pattern = f"{holt.cwd}/*.pem"
    for args in (["run", "--hide", pattern, "--", "true"], ["create", "w", "--workspace", holt.cwd, "--hide", pattern]):
        result = sessions(args, cwd=holt.cwd)
        assert f"--hide {pattern}: no file has this name, and only a relative path can be a pattern" in result.refusal()
        assert "--hide '*.pem'" in result.cure
    with sessions.serve() as rpc:
        policy = {"holt": 1, "filesystem": {"hide": [pattern]}}
        assert rpc.refused("session.create", name="w", workspace=str(holt.cwd), policy=policy).kind == "policy"
    put("[id].pem", "secret\n")
    assert readable(holt, "--hide", f"{holt.cwd}/[id].pem") == ["k.pem"]


def test_patterns_without_a_match_are_a_warning(holt: Holt, put: Make) -> None:
    result = holt.sh("true", "--hide", "*.none").ok()
    assert "--hide *.none: no file in the workspace matches, so nothing is hidden" in result.err
    policy = put(".holt.json", json.dumps({"holt": 1, "filesystem": {"hide": ["*.none", "gone"]}}))
    result = holt.sh("true").ok()
    assert f"{policy}: $.filesystem.hide[0]: *.none: no file in the workspace matches" in result.err
    assert f"{policy}: $.filesystem.hide[1]: gone: the path does not exist inside" in result.err
    assert result.report and len(result.report["warnings"]) == 2


@pytest.mark.parametrize("value", (".env,*.pem", "*.pem,.env", ".env, *.pem", "gone,a/plain", "*.{pem,key},.env", "/etc/a,/etc/b"))
def test_a_list_is_an_error(holt: Holt, sessions: Sessions, tree: None, put: Make, value: str) -> None:
    """The caller believes that these files are hidden."""
    for args in (["run", "--hide", value, "--", "true"], ["create", "w", "--workspace", holt.cwd, "--hide", value]):
        result = sessions(args)
        assert (result.code, result.out) == (125, ""), result
        assert f"holt: --hide {value}: " in result.err and "it looks like a list" in result.err, result
        assert "Name each path separately: --hide .env --hide '*.pem'" in result.err


def test_a_client_is_told_of_a_list(holt: Holt, sessions: Sessions, tree: None) -> None:
    with sessions.serve() as rpc:
        policy = {"holt": 1, "filesystem": {"workspace": {"source": str(holt.cwd)}, "hide": [".env,*.pem"]}}
        assert "it looks like a list" in rpc.refused("session.create", name="a", policy=policy).message
        policy["filesystem"]["hide"] = [".env", "*.pem", "*.none"]
        rpc.call("session.create", name="a", policy=policy)


def test_a_name_with_a_comma_is_no_list(holt: Holt, put: Make) -> None:
    for name in ("a,v", "Report, final.pdf", "x,.y", "plain"):
        put(name, "x\n")
    names = ["--hide", "*,v", "--hide", "Report, final.pdf", "--hide", "x,.y"]
    assert readable(holt, *names) == ["plain"]
    for name in ("a,v", "Report, final.pdf"):
        (holt.cwd / name).unlink()
    assert holt.sh("true", *names).ok().err.count("so nothing is hidden") == 2


def test_settings_warn_of_nothing(holt: Holt, put: Make) -> None:
    """The settings serve all workspaces, so a pattern in them may match nothing."""
    config = put("settings/config.json", json.dumps({"holt": 1, "extends": "standard", "filesystem": {"hide": ["*.none", "gone"]}}))
    work = put("work/plain", "x\n").parent
    env = {"HOLT_CONFIG": str(config)}
    assert holt(["run", "--", "true"], cwd=work, env=env).ok().err == ""
    result = holt(["run", "--hide", "*.other", "--", "true"], cwd=work, env=env).ok()
    assert "*.other" in result.err and "*.none" not in result.err
    policy = put("policy.json", json.dumps({"holt": 1, "filesystem": {"hide": ["*.mine"]}}))
    result = holt(["run", "--policy", str(policy), "--", "true"], cwd=work, env=env).ok()
    assert "*.mine" in result.err and "gone" not in result.err


def test_a_session_resolves_patterns_at_each_start(sessions: Sessions, holt: Holt, tree: None) -> None:
    result = sessions(["create", "w", "--workspace", holt.cwd, "--hide", "*.pem", "--hide", "*.none"]).ok()
    assert "*.none" in result.err and "*.pem" not in result.err
    session = Session(sessions, "w")
    assert "Permission denied" in session.sh("cat k.pem").err
    assert session.sh("echo later > later.pem; cat later.pem").ok().out == "later\n"
    session.stop()
    assert "Permission denied" in session.sh("cat later.pem").err


def test_git_is_left_alone(holt: Holt, put: Make) -> None:
    put(".git/refs/heads/k.pem", "x\n")
    put("k.pem", "x\n")
    assert readable(holt, "--hide", "*.pem", "--protect", "none") == [".git/refs/heads/k.pem"]


def test_a_mount_that_shows_a_hidden_file_again_is_a_warning(holt: Holt, tree: None) -> None:
    words = "the command can read hidden files of the workspace there"
    shown = holt(["run", "--hide", ".env", "-v", f"{holt.cwd}:/app", "--", "cat", "/app/.env"])
    assert shown.out == "secret\n" and words in shown.err and "(.env)" in shown.err
    assert words in holt(["run", "--hide", "*.pem", "--ro", f"{holt.cwd}/a:/app", "--", "true"]).ok().err

    hidden = holt(["run", "--hide", f"{holt.cwd}/.env", "-v", f"{holt.cwd}:/app", "--", "cat", "/app/.env"])
    assert hidden.out == "" and words not in hidden.err
    assert words not in holt(["run", "--hide", ".env", "--ro", f"{holt.cwd}/a:/app", "--", "true"]).ok().err
