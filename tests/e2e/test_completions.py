# SPDX-License-Identifier: Apache-2.0
"""What the shells complete is what this holt takes. Bash is asked as it asks itself: by its words, at a cursor."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.paths import PROJECT
from lib.sandbox import Holt
from lib.tools import needs

Put = Callable[..., Path]

SCRIPT = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_holt
printf '%s\\n' "${COMPREPLY[@]}"
"""

WORDS = sorted("""--help --version audit cp create doctor exec files help history kill kv logs ls policy ps python rm run serve
               sh show stop tier wait""".split())

# As bash breaks a line for completion (COMP_WORDBREAKS): "@mo" is "@" and "mo", "a=b" is "a", "=" and "b".
BREAKS = re.compile(r"[=:@]+|[^=:@\s]+")


def sessions(holt: Holt) -> dict[str, str]:
    """Of each test its own."""
    return {"XDG_DATA_HOME": str(holt.cwd / ".data")}


def split(line: str) -> list[str]:
    return BREAKS.findall(line) + ([""] if line.endswith(" ") else [])


@pytest.fixture
def completed(holt: Holt) -> Callable[[str], list[str]]:
    """The completions of a line, by the file that is installed."""
    file = PROJECT / "contrib" / "completions" / "holt.bash"

    def complete(line: str) -> list[str]:
        path = f"{holt.binary.parent}:{os.environ['PATH']}:{holt.cwd}/bin:{holt.cwd}/more/bin"
        done = holt.identity.run(
            ["bash", "-c", SCRIPT, "bash", "/dev/stdin", line, *split(line)], cwd=holt.cwd,
            env=holt.identity.environment({"PATH": path, **sessions(holt)}), stdin=file.open(),
        )
        assert done.returncode == 0, done.stderr
        return sorted(filter(None, done.stdout.splitlines()))

    return complete


@needs("bash")
@pytest.mark.identities("user")
@pytest.mark.parametrize("line, expected", (
    ("holt ", WORDS),
    ("holt help ", WORDS),
    ("holt policy ", ["--help", "check", "list", "schema", "show", "syscalls"]),
    ("holt help policy s", ["schema", "show", "syscalls"]),
    ("holt run --work", ["--workspace", "--workspace-mode"]),
    ("holt run --json --allow-d", ["--allow-degraded"]),
    ("holt run --policy s", ["standard", "strict"]),
    ("holt run --policy=s", ["standard", "strict"]),
    ("holt policy show --policy c", ["ci"]),
    ("holt run --policy d", ["dir"]),
    ("holt run --policy f", ["f.json"]),
    ("holt run --policy=f", ["f.json"]),
    ("holt policy show f", ["f.json"]),
    ("holt policy show s", ["standard", "strict"]),
    ("holt policy show --landlock=", ["auto", "off", "require"]),
    ("holt run --workspace-mode r", ["ro", "rw"]),
    ("holt run --network ", ["none"]),
    ("holt run --allow-degraded l", ["landlock", "limits"]),
    ("holt run --allow-syscall @n", ["@namespace", "@network", "@numa"]),
    ("holt run --deny-syscall=@n", ["@namespace", "@network", "@numa"]),
    ("holt run --timeout ", []),
    ("holt run --env HOLT_COMPLETED=a:b --pol", ["--policy"]),
    ("holt run --ro f", ["f.json", "file"]),
    ("holt run --ro fi", ["file"]),
    ("holt run --ro=fi", ["file"]),
    ("holt run --ro fi:/x --cwd d", ["dir"]),
    ("holt policy check fi", ["file"]),
    ("holt run -- ls fi", ["file"]),
    ("holt run --ro a@b ls x=y fi", ["file"]),
    ("holt doctor --j", ["--json"]),
    ("holt exec w", ["work"]),
    ("holt exec --det", ["--detach"]),
    ("holt exec work --detach ls fi", ["file"]),
    ("holt exec work --cwd fi -- ls fi", ["file"]),
    ("holt exec work --keep ", ["head", "tail"]),
    ("holt rm other w", ["work"]),
    ("holt kv work k", ["keys"]),
    ("holt files work c", ["cat", "cp"]),
    ("holt files work put fi", ["file"]),
    ("holt files work get inside fi", ["file"]),
    ("holt files work cat fi", []),
    ("holt tier work l", ["large"]),
    ("holt tier w", ["work"]),
    ("holt cp f", ["f.json", "file"]),
    ("holt cp file w", ["work:"]),
    ("holt cp file work:f", []),
    ("holt python work fi", ["file"]),
    ("holt audit work --kind g", ["grant", "guard"]),
    ("holt kill work p1 --signal US", ["USR1", "USR2"]),
    ("holt kill work p1 --signal=SIGUS", ["SIGUSR1", "SIGUSR2"]),
    ("holt run --allow-syscall unsh", ["unshare"]),
    ("holt create new --deny-syscall ptr", ["ptrace"]),
    ("holt exec work -- twi", ["twice"]),
    ("holt run twi", ["twice"]),
    ("holt show ", ["work"]),
    ("holt create ", []),
))
def test_bash_completes(
    line: str, expected: list[str], completed: Callable[[str], list[str]], put: Put, holt: Holt
) -> None:
    holt(["create", "work"], env=sessions(holt)).ok()
    put("file")
    put("f.json")
    put("dir/x")
    for where in ("bin", "more/bin"):
        put(f"{where}/twice", mode=0o755)

    assert completed(line) == expected


@needs("bash")
@pytest.mark.identities("user")
def test_bash_completes_keys(completed: Callable[[str], list[str]], holt: Holt) -> None:
    """Of a session that stays at rest; bash takes what is behind the last break of a word."""
    holt(["create", "work"], env=sessions(holt)).ok()
    for key in ("key", "k:1", "k:2", "a b"):
        holt(["kv", "work", "set", key, "v"], env=sessions(holt)).ok()
    holt(["stop", "work"], env=sessions(holt)).ok()

    assert completed("holt kv work get ") == ["a b", "k:1", "k:2", "key"]
    assert completed("holt kv work set ke") == ["key"]
    assert completed("holt kv work delete k:") == ["1", "2"]
    assert completed("holt kv work keys ") == []
    assert "at rest" in holt(["show", "work"], env=sessions(holt)).ok().out
