# SPDX-License-Identifier: Apache-2.0
"""Many runs leave no more behind than one: nothing. The fixture nothing_left compares processes, mounts, descriptors,
files and cgroups before and after."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lib.sandbox import Holt

RUN = '"$0" run --report "$TMPDIR/report-$i" -- sh -c "echo $i > out-$i; exit $((i % 200))" < /dev/null'


@pytest.mark.slow
@pytest.mark.identities("user", "root")
def test_a_thousand_runs_in_a_row(holt: Holt, workspace: Path) -> None:
    check = 'test $? = $((i % 200)) || exit 1; rm "$TMPDIR/report-$i"'
    script = f"for ((i = 0; i < 1000; i++)); do {RUN}; {check}; done; echo all"
    result = subprocess.run(
        holt.identity.as_user(["bash", "-c", script, holt.binary]), cwd=workspace, capture_output=True, text=True,
        env=holt.identity.environment(), timeout=600,
    )

    assert (result.returncode, result.stdout, result.stderr) == (0, "all\n", "")
    assert len(list(workspace.iterdir())) == 1000


def test_fifty_runs_at_once(holt: Holt) -> None:
    running = [holt.start(["run", "--", "sh", "-c", f"echo ready; read line; echo $line > out-{i}; exit {i}"],
                          stdin=subprocess.PIPE) for i in range(50)]
    for each in running:
        assert each.readline() == "ready"
    results = [each.wait(b"go\n") for each in running]

    assert [r.code for r in results] == list(range(50))
    assert all(r.cause == "exited" for r in results)
    assert len(list(holt.cwd.iterdir())) == 50


def test_fifty_killed_runs_leave_nothing(holt: Holt) -> None:
    argv = ["run", "--", "sh", "-c", "echo ready; sleep 1000 & sleep 1000"]
    running = [holt.start(argv, report=False) for _ in range(50)]
    for each in running:
        assert each.readline() == "ready"
        each.kill()
    for each in running:
        assert each.wait().code == -9


def test_runs_that_fail_leave_nothing_either(holt: Holt) -> None:
    for _ in range(20):
        holt(["run", "--ro", "/no/such", "--", "true"]).refusal()
        holt(["run", "--", "no-such-program"]).refusal(127)
        holt(["run", "--tmpfs", f"{holt.cwd}/no/such", "--", "true"]).refusal()

    assert list(holt.cwd.iterdir()) == []
