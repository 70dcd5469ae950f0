# SPDX-License-Identifier: Apache-2.0
"""If a shell inside does not find a program that the caller's PATH has, the result names the options that show it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.sandbox import Holt, Result
from lib.sessions import Sessions

pytestmark = pytest.mark.alike

Make = Callable[..., Path]

REASON = "your PATH has it, but the sandbox has a PATH of its own"
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def tools(holt: Holt, put: Make) -> Path:
    """A directory of programs beside the workspace, with a program "sometool"."""
    return program(put, holt.cwd.parent / "tools" / "bin" / "sometool").parent


def program(put: Make, path: Path) -> Path:
    path = put(path, "#!/bin/sh\necho ran\n")
    path.chmod(0o755)
    return path


def told(result: Result) -> list[dict[str, Any]]:
    assert result.report
    return [d for d in result.report["denials"] if d["layer"] == "filesystem"]


def env(*directories: Path) -> dict[str, str]:
    return {"PATH": ":".join([*map(str, directories), SYSTEM])}


@pytest.mark.parametrize(
    "command",
    (
        ["bash", "-c", "sometool"],
        ["sh", "-c", "sometool"],
        ["env", "sometool"],
        ["timeout", "10", "sometool"],
        ["python3", "-c", "import subprocess; print(subprocess.check_output(['sometool'], text=True), end='')"],
    ),
    ids=lambda command: str(command[0]),
)
def test_a_program_of_the_callers_path(holt: Holt, tools: Path, command: list[str]) -> None:
    result = holt(["run", "--", *command], env=env(tools))
    (denial,) = told(result)
    assert (denial["path"], denial["answer"], denial["reason"]) == ("sometool", "ENOENT", REASON)
    assert denial["grant"].startswith(f"--ro {tools} --env PATH={tools}:/usr/") and denial["why_not"] is None
    assert denial["grant"] in result.err
    set_path = denial["grant"].split("--env PATH=")[1]
    assert denial["policy"] == {"filesystem": {"read_only": [str(tools)]}, "env": {"set": {"PATH": set_path}}}
    assert holt(["run", *shlex.split(denial["grant"]), "--", *command], env=env(tools)).ok().out == "ran\n"


def test_a_program_that_the_sandbox_shows_needs_only_its_path(holt: Holt, tools: Path, put: Make) -> None:
    (denial,) = told(holt(["run", "--ro", tools, "--", "sh", "-c", "sometool"], env=env(tools)))
    assert denial["grant"].startswith(f"--env PATH={tools}:/usr/") and list(denial["policy"]) == ["env"]

    own = program(put, holt.cwd / "bin" / "owntool").parent
    flags = ["--workspace", f"{holt.cwd}:/work"]
    (denial,) = told(holt(["run", *flags, "--", "sh", "-c", "owntool"], env=env(own)))
    assert denial["grant"].startswith("--env PATH=/work/bin:/usr/")
    holt(["run", *flags, *shlex.split(denial["grant"]), "--", "sh", "-c", "owntool"], env=env(own)).ok()


def test_a_program_that_is_a_symlink_needs_its_target(holt: Holt, tools: Path, put: Make) -> None:
    other = program(put, holt.cwd.parent / "other" / "tool")
    (tools / "linked").symlink_to(other)
    (denial,) = told(holt(["run", "--", "sh", "-c", "linked"], env=env(tools)))
    assert denial["grant"].startswith(f"--ro {tools} --ro {other.parent} --env PATH={tools}:")
    holt(["run", *shlex.split(denial["grant"]), "--", "sh", "-c", "linked"]).ok()
    first = shlex.split(denial["grant"].replace(f"--ro {other.parent} ", ""))
    (denial,) = told(holt(["run", *first, "--", "sh", "-c", "linked"], env=env(tools)))
    assert denial["grant"] == f"--ro {other.parent}"


def test_a_tree_of_programs_is_mounted_as_a_whole(holt: Holt, tools: Path, put: Make) -> None:
    """The programs of node's own tree, and those of a virtual environment, need more than their directory."""
    (tools / "inner").symlink_to("../lib/inner/cli")
    program(put, tools.parent / "lib" / "inner" / "cli")
    (denial,) = told(holt(["run", "--", "sh", "-c", "inner"], env=env(tools)))
    assert denial["grant"].startswith(f"--ro {tools.parent} --env PATH={tools}:")
    assert holt(["run", *shlex.split(denial["grant"]), "--", "sh", "-c", "inner"]).ok().out == "ran\n"
    put(tools.parent / "pyvenv.cfg", "")
    (denial,) = told(holt(["run", "--", "sh", "-c", "sometool"], env=env(tools)))
    assert denial["grant"].startswith(f"--ro {tools.parent} --env ")


def test_programs_that_no_option_would_show(holt: Holt, tools: Path, put: Make) -> None:
    put(tools / "plain", "").chmod(0o644)
    secret = program(put, holt.cwd.parent / ".secrets" / "tool")
    (tools / "secret").symlink_to(secret)
    (tools / "colon").symlink_to(program(put, holt.cwd.parent / "a:b" / "tool"))
    home = program(put, holt.identity.home / "hometool")
    # In a directory that commands can write, no symlink is followed: a command may have made it.
    (holt.cwd / "made").symlink_to(tools / "sometool")
    for name in ("nosuchtool", "plain", "secret", "colon", "hometool", "made"):
        result = holt(["run", "--", "sh", "-c", name], env=env(tools, home.parent, holt.cwd))
        assert told(result) == [] and "--ro" not in result.err, name
    home.unlink()
    relative = {"PATH": f"{os.path.relpath(tools, holt.cwd)}:{SYSTEM}"}
    assert told(holt(["run", "--", "sh", "-c", "sometool"], env=relative)) == []
    assert told(holt(["run", "--", "sh", "-c", "cat sometool"], env=env(tools))) == []


def test_a_program_in_a_session(sessions: Sessions, tools: Path) -> None:
    session = sessions.create("w")
    result = session.sh("sometool", "--output", "1M", env=env(tools))
    assert f"{REASON}; holt create --ro {tools} --env PATH={tools}:" in result.err
    document = json.loads(session.sh("sometool", "--json").err.splitlines()[-1])
    (denial,) = document["denials"]
    flags = shlex.split(denial["grant"])
    assert sessions.create("granted", *flags).out("sometool") == "ran\n"
