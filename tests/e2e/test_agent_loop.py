# SPDX-License-Identifier: Apache-2.0
"""The daily work of an agent, by JSON-RPC alone. It clones, looks around, runs the tests, reads why they fail, and
mends the code. It runs them again, keeps the results, rests, and continues."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sessions import Bound, Json, Session, Sessions, until
from lib.tools import needs

# Each function has a fault that its test shows.
PROGRAM = '''\
def middle(values):
    """The median of numbers."""
    values = sorted(values)
    return values[len(values) // 2]


def words(text):
    return text.split(" ")
'''

TESTS = '''\
import unittest

from lib.program import middle, words


class Middle(unittest.TestCase):
    def test_odd(self):
        self.assertEqual(middle([3, 1, 2]), 2)

    def test_even(self):
        self.assertEqual(middle([4, 1, 2, 3]), 2.5)


class Words(unittest.TestCase):
    def test_blanks(self):
        self.assertEqual(words("an  otter"), ["an", "otter"])
'''

RUN = "cd project && exec python3 -m unittest -v"
GIT = "git -c user.name=Agent -c user.email=agent@example.org"

pytestmark = needs("git", "python3")


@pytest.fixture
def upstream(place: Path, identity: Identity) -> Path:
    """The caller's repository, which the session may read."""
    path = place / "upstream"
    for directory in (path, path / "lib"):
        directory.mkdir()
        identity.own(directory)
    for name, text in (("lib/program.py", PROGRAM), ("test_program.py", TESTS)):
        (path / name).write_text(text)
        identity.own(path / name)
    script = "git init -qb main . && git add -A && git -c user.name=A -c user.email=a@example.org commit -qm first"
    identity.run(["sh", "-c", script], cwd=path).check_returncode()
    return path


def failed(result: Json) -> list[str]:
    """Returns the tests that failed, which the agent reads from unittest's output."""
    return sorted(re.findall(r"^(?:FAIL|ERROR): (\w+)", result["stderr"], re.M))


def mend(agent: Bound, path: str, old: str, new: str) -> None:
    """Edits a file as agents do: reads it, replaces a text that occurs once, writes it."""
    text = agent.call("files.read", path=path)["content"]
    assert text.count(old) == 1
    agent.call("files.write", path=path, content=text.replace(old, new))


def test_an_agent_works_rests_and_goes_on(sessions: Sessions, upstream: Path) -> None:
    with sessions.serve() as rpc:
        rpc.call("session.create", name="w", policy={"holt": 1, "filesystem": {"read_only": [str(upstream)]}})
        agent = Bound(rpc, {"session": "w"})

        cloned = agent.sh(f"git clone -q {upstream} project")
        assert cloned["exit_code"] == 0, cloned["stderr"]
        found = agent.call("files.glob", pattern="project/**/*.py")["entries"]
        assert [e["name"] for e in found] == ["project/lib/program.py", "project/test_program.py"]

        first = agent.sh(RUN)
        assert first["exit_code"] == 1
        assert failed(first) == ["test_blanks", "test_even"]
        assert "3 != 2.5" in first["stderr"]

        (place,) = agent.call("files.grep", pattern="// 2", path="project/lib")["matches"]
        assert (place["name"], place["line"]) == ("program.py", 4)
        half = "    half = len(values) // 2\n    return (values[half] + values[-half - 1]) / 2"
        mend(agent, "project/lib/program.py", "    return values[len(values) // 2]", half)

        # This time, the agent watches the output as it comes.
        second = agent.spawn(RUN)
        agent.call("process.watch", id=second)
        assert rpc.note("process.exited", id=second)["exit_code"] == 1
        assert failed({"stderr": agent.text(second, "stderr")}) == ["test_blanks"]
        committed = agent.sh(f"cd project && {GIT} commit -qam 'middle of an even number' && git log --oneline | wc -l")
        assert committed["stdout"] == "2\n", committed["stderr"]
        agent.call("kv.set", key="failing", value=json.dumps(["test_blanks"]))
        agent.call("mount.upload", path="reports/second.txt", content=agent.text(second, "stderr"))
        rpc.call("session.stop", session="w")

    # A new client, another day.
    with sessions.serve() as rpc:
        until(lambda: rpc.call("session.list")["sessions"] == [{"name": "w", "state": "at rest"}], "it rests")
        agent = Bound(rpc, {"session": "w"})
        assert json.loads(agent.call("kv.get", key="failing")["value"]) == ["test_blanks"]
        assert "test_blanks" in agent.call("mount.download", path="reports/second.txt")["content"]
        assert agent.sh("cd project && git status --porcelain -uno")["stdout"] == ""

        mend(agent, "project/lib/program.py", 'text.split(" ")', "text.split()")
        last = agent.sh(RUN)
        assert (last["exit_code"], failed(last)) == (0, []), last["stderr"]
        assert agent.sh(f"cd project && {GIT} commit -qam words && git diff --stat HEAD~2")["stdout"].count("program.py") == 1
        agent.call("kv.delete", key="failing")
        agent.call("kv.set", key="done", value=agent.sh("git -C project rev-parse HEAD")["stdout"].strip())

        rows = agent.call("history.list", limit=1000)["rows"]
        names = [row["name"] for row in reversed(rows)]
        assert names.count("files.write") == 2 and names.index("files.write") < names.index("process.spawn")
        ends = [row["result"].get("exit_code") for row in reversed(rows) if "unittest" in str(row["params"])]
        assert ends == [1, 1, 0]

    # The caller finds its work, both in the session and by the command line.
    session = Session(sessions, "w")
    head = session.out("git -C project rev-parse HEAD")
    assert session("kv", "get", "done").ok().out == head
    session.cp("-r", "w:project", sessions.data / "result").ok()
    assert "text.split()" in (sessions.data / "result/lib/program.py").read_text()
    assert (upstream / "lib/program.py").read_text() == PROGRAM
