# SPDX-License-Identifier: Apache-2.0
"""holt bwrap with a policy of holt, and the report of its result."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from lib.bwrap import PRIVATE, SYSTEM, Bwrap
from lib.identity import Identity
from lib.sandbox import Holt
from lib.tools import needs

pytestmark = pytest.mark.alike

OPTION = re.compile(r"(?<![\w-])--?[a-z]")
MAKE_NAMESPACE = "unshare -U true"


@pytest.fixture
def bwrap(holt: Holt) -> Bwrap:
    return Bwrap([holt.binary, "bwrap"], holt.identity, holt.cwd)


@pytest.fixture
def report(identity: Identity) -> Path:
    """A place for the report, outside of every directory that a command can write."""
    return identity.tmp / "report.json"


def read(report: Path) -> "dict[str, Any]":
    told: "dict[str, Any]" = json.loads(report.read_text())
    report.unlink()
    return told


def policy_file(bwrap: Bwrap, place: Path, **fields: object) -> str:
    path = place / "policy.json"
    path.write_text(json.dumps({"holt": 1, **fields}))
    return str(bwrap.identity.own(path))


def lines_of_holt(err: str) -> "list[str]":
    return [line for line in err.splitlines() if line.startswith(("holt: ", "bwrap: "))]


def test_a_policy_adds_to_the_arguments(bwrap: Bwrap, report: Path) -> None:
    env = {"HOLT_BWRAP_POLICY": "standard", "HOLT_BWRAP_REPORT": str(report)}
    script = "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; env | grep -c HOLT_BWRAP; unshare -U true; exit 3"
    result = bwrap.sh(script, *PRIVATE, env=env)
    assert result.code == 3 and result.out.split() == ["NoNewPrivs:", "1", "Seccomp:", "2", "0"]
    assert "holt: refused unshare (1x, EPERM)" in result.err
    told = read(report)
    assert (told["cause"], told["exit_code"], [d["what"] for d in told["denials"]]) == ("exited", 3, ["unshare"])
    assert told["layers"]["seccomp"] == "on" and told["layers"]["limits"] == "on"


@needs("strace")
def test_strace_works_in_a_pid_namespace(bwrap: Bwrap, report: Path) -> None:
    env = {"HOLT_BWRAP_POLICY": "standard", "HOLT_BWRAP_REPORT": str(report)}
    # The filter knows only the id 1000, and strace calls setreuid.
    user = ("--unshare-user", "--uid", "1000", "--gid", "1000")
    result = bwrap.sh("strace true", *PRIVATE, *user, env=env)
    assert result.code == 0 and "+++ exited with 0 +++" in result.err
    assert read(report)["denials"] == []

    # Here, the sandbox could share the namespace with other ones, which have tracers too.
    result = bwrap.sh("strace true", *SYSTEM, *user, env=env)
    assert result.code != 0 and [d["what"] for d in read(report)["denials"]] == ["ptrace"]


def test_a_report_without_a_policy(bwrap: Bwrap, report: Path) -> None:
    assert bwrap.sh("exit 3", *SYSTEM, env={"HOLT_BWRAP_REPORT": str(report)}).code == 3
    told = read(report)
    assert told["exit_code"] == 3 and told["layers"]["seccomp"].startswith("off") and told["layers"]["pid"].startswith("off")


def test_limits_of_a_policy_file(bwrap: Bwrap, place: Path) -> None:
    policy = policy_file(bwrap, place, limits={"open_files": 77, "timeout": "500ms"})
    begin = time.monotonic()
    result = bwrap.sh("ulimit -n; sleep 60 & sleep 60", *PRIVATE, env={"HOLT_BWRAP_POLICY": policy})
    assert result.code == 124 and result.out == "77\n" and time.monotonic() - begin < 30
    assert "limits.timeout needs --unshare-pid" in bwrap(*SYSTEM, "--", "true", env={"HOLT_BWRAP_POLICY": policy}).err


@pytest.mark.parametrize("text,why", (
    ('{"holt": 1, "network": {"mode": "host"}}', "has no effect here"), ('{"holt": 1, "limits": {"output": "1MiB"}}', "has no effect here"),
    ('{"holt": 1, "nope": 1}', "nope"), ("{", "policy.json"),
))
def test_mistakes_in_a_policy(text: str, why: str, bwrap: Bwrap, place: Path) -> None:
    path = place / "policy.json"
    path.write_text(text)
    bwrap.identity.own(path)
    result = bwrap(*SYSTEM, "--", "echo", "started", env={"HOLT_BWRAP_POLICY": str(path)})
    assert result.code == 1 and result.out == "" and why in result.err and result.err.startswith("bwrap: ")


def test_a_preset_that_does_not_exist(bwrap: Bwrap) -> None:
    assert 'no preset is called "nope"' in bwrap(*SYSTEM, "--", "true", env={"HOLT_BWRAP_POLICY": "nope"}).err


# --- what its callers are told ---


def test_a_refused_policy_leaves_a_report(bwrap: Bwrap, place: Path, report: Path) -> None:
    """Nothing was started, so nothing was lost."""
    policy = policy_file(bwrap, place, network={"mode": "host"})
    result = bwrap(*PRIVATE, "--", "echo", "started", env={"HOLT_BWRAP_POLICY": policy, "HOLT_BWRAP_REPORT": str(report)})
    assert result.code == 1 and result.out == ""
    told = read(report)
    assert (told["cause"], told["exit_code"]) == ("error", 1) and "network.mode" in told["error"]["message"], told


def test_the_report_names_the_limit_of_a_files_size(bwrap: Bwrap, place: Path, report: Path) -> None:
    policy = policy_file(bwrap, place, limits={"file_size": "64KiB"})
    options = (*PRIVATE, "--tmpfs", "/tmp")
    env = {"HOLT_BWRAP_POLICY": policy, "HOLT_BWRAP_REPORT": str(report)}
    assert bwrap.sh("head -c 1000 /dev/zero > /tmp/x", *options, env=env).ok().code == 0
    assert read(report)["limits_hit"] == []
    for script, cure in (
        ("head -c 1000000 /dev/zero > /tmp/x", "(limit file_size: 64KiB); limits.file_size of a policy file raises it"),
        ("exec head -c 1000000 /dev/zero > /tmp/x", f"size limit of 64KiB ({policy}: $.limits.file_size; raise it there)"),
    ):
        result = bwrap.sh(script, *options, env=env)
        assert result.code == 128 + 25, result
        [hit] = read(report)["limits_hit"]
        assert (hit["limit"], hit["value"], hit["field"], hit["option"]) == ("file_size", 64 << 10, "limits.file_size", None)
        assert cure in result.err and "--" not in result.err, result.err


def test_a_refused_system_call_names_what_its_callers_can_change(bwrap: Bwrap, place: Path, report: Path) -> None:
    """bubblewrap has no option that could allow it, but a policy file has. (With Landlock, namespaces are never allowed.)"""
    policy = policy_file(bwrap, place, layers={"landlock": "off"})
    result = bwrap.sh(MAKE_NAMESPACE, *PRIVATE, env={"HOLT_BWRAP_POLICY": policy, "HOLT_BWRAP_REPORT": str(report)})
    [denial] = read(report)["denials"]
    assert (denial["what"], denial["grant"]) == ("unshare", None)
    [line] = lines_of_holt(result.err)
    assert line.startswith("holt: refused unshare (1x, EPERM)") and "syscalls.allow of a policy file can allow it" in line
    assert not OPTION.search(line), line

    policy = policy_file(bwrap, place, layers={"landlock": "off"}, syscalls={"allow": ["unshare"]})
    assert lines_of_holt(bwrap.sh(MAKE_NAMESPACE, *PRIVATE, env={"HOLT_BWRAP_POLICY": policy}).ok().err) == []


def test_the_line_of_the_timeout_names_no_option(bwrap: Bwrap, place: Path) -> None:
    policy = policy_file(bwrap, place, limits={"timeout": "300ms"})
    result = bwrap.sh("sleep 60", *PRIVATE, env={"HOLT_BWRAP_POLICY": policy})
    [line] = lines_of_holt(result.err)
    assert result.code == 124 and f"{policy}" in line and "raise it there" in line and not OPTION.search(line), line


def test_a_report_that_cannot_be_written(bwrap: Bwrap) -> None:
    for env in ({}, {"HOLT_BWRAP_POLICY": "standard"}):
        result = bwrap(*PRIVATE, "--", "echo", "started", env={**env, "HOLT_BWRAP_REPORT": "/no/such/place/report"})
        assert result.code == 1 and result.out == ""
        assert result.err.startswith("bwrap: HOLT_BWRAP_REPORT /no/such/place/report") and "--report" not in result.err, result.err
