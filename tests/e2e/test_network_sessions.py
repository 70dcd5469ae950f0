# SPDX-License-Identifier: Apache-2.0
"""A session with a network by name: its audit, the results of its commands, and the processes that serve it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from lib import netlab
from lib.leaks import Process, descendants
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sandbox import Holt, Result
from lib.sessions import Session, Sessions, until
from lib.tools import needs

pytestmark = needs("curl")


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.create("w", "--net", "web.example.org:80 # only the web")


def doors() -> list[Process]:
    return [process for process in descendants() if process.name == "holt-egress" and not process.ended]


def audit(session: Session, kind: str) -> list[dict[str, Any]]:
    return [json.loads(row["detail"]) for row in session.audit() if row["kind"] == kind]


def document(result: Result) -> dict[str, Any]:
    return json.loads(result.err.splitlines()[-1])


def test_a_connection_is_an_audit_row(session: Session) -> None:
    assert session.out("curl -sS http://web.example.org/bytes/5000 | wc -c") == "5000\n"

    (row,) = until(lambda: audit(session, "network"), "the connection is noted")
    assert row["peer"] == "web.example.org:80" and row["received"] > 5000 and row["sent"] > 50
    assert 0 < row["started_ms"] <= row["ended_ms"] and row["error"] is None


def test_a_refusal_is_an_audit_row(session: Session) -> None:
    assert session.sh("curl -sS http://other.example.org/").code == 6

    (row,) = until(lambda: audit(session, "denial"), "the refusal is noted")
    assert (row["what"], row["grant"]) == ("other.example.org", "--net other.example.org")


def test_a_command_is_told_of_its_own_refusals(session: Session) -> None:
    first = session.sh("curl -sS http://other.example.org/")
    second = session.sh("curl -sS -H 'Host: four.example.org' http://web.example.org/")

    assert "refused other.example.org" in first.err and "only the web" not in first.err
    assert "refused web.example.org:80" in second.err and "only the web" in second.err
    assert "refused other.example.org" not in second.err


def test_a_stopped_session_has_no_process_of_the_network(session: Session) -> None:
    session.out("true")
    assert len(doors()) == 2

    session("stop").ok()
    until(lambda: not doors(), "both have ended")


def test_a_killed_keeper_leaves_no_process_of_the_network(session: Session) -> None:
    os.kill(session.keeper(), signal.SIGKILL)

    until(lambda: not doors(), "both have ended")
    assert session.out("curl -sS http://web.example.org/bytes/10 | wc -c") == "10\n"


def test_a_session_outlives_its_network(session: Session, lab: Lab) -> None:
    session.out("true")
    for process in doors():
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: not doors(), "both have ended")

    assert session.sh("curl -sS -m 20 http://web.example.org/").code in (6, 7)
    alive = session.sh("echo alive", "--json")
    assert alive.out == "alive\n" and not lab.log("tcp")
    lost = 'holt: the session has lost its network, because holt-egress ended\n  Stop the session: holt stop w. '
    assert document(alive)["network"]["lost"] is True and lost in session.sh("true").err
    assert lost in session("python", "-c", "1").err
    with session.rpc() as rpc:
        assert rpc.call("exec", argv=["true"])["network_lost"] is True
        assert rpc.call("python.run", code="1")["network_lost"] is True
    session("stop").ok()
    assert session.out("curl -sS http://web.example.org/bytes/10 | wc -c") == "10\n"
    assert document(session.sh("", "--json"))["network"]["lost"] is False


def test_without_rules_a_session_shows_no_level(sessions: Sessions) -> None:
    """The level is about connections to other hosts. A published port needs none."""
    session = sessions.create("w", "--publish", "0:80")
    session.exec("true").ok()
    shown = session("show").ok().out
    assert "publish     0:80" in shown and "net level" not in shown


@pytest.mark.parametrize("option", ("--import", "--publish", "forward"))
def test_a_session_loses_its_ports_without_rules(option: str, sessions: Sessions) -> None:
    session = sessions.create("w", *{"--import": (option, "9"), "--publish": (option, "0:80"), "forward": ()}[option])
    session.out("true")
    if option == "forward":
        session("forward", "80").ok()
    for process in doors():
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: not doors(), "both have ended")
    assert document(session.sh("true", "--json"))["network"]["lost"] is True
    with session.rpc() as rpc:
        assert rpc.call("process.list")["ports"] == []


def test_a_session_without_rules_has_no_network_to_lose(sessions: Sessions) -> None:
    session = sessions.create("w")
    session.out("true")
    for process in doors():
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: not doors(), "it has ended")
    result = session.sh("true", "--json")
    assert document(result)["network"] == {"mode": "none", "level": None, "lost": False, "missed": False, "denials_omitted": 0}
    assert "holt:" not in result.err


def test_sessions_have_different_rules(sessions: Sessions) -> None:
    one, two = (sessions.create(name, "--net", f"{name}.example.org:80") for name in ("web", "other"))

    for session, own, foreign in ((one, "web", "other"), (two, "other", "web")):
        assert f'"host": "{own}.example.org"' in session.out(f"curl -sS http://{own}.example.org/")
        assert session.sh(f"curl -sS http://{foreign}.example.org/").code == 6


# The server's queue stays full until holt-egress tries the next address. The kernel sends the request again after a second.
LATE = """
import socket, sys, time
server = socket.create_server((sys.argv[1], 8181), backlog=0)
ends = [socket.socket() for _ in range(3)]
for end in ends: end.setblocking(False); end.connect_ex((sys.argv[1], 8181))
print("full", flush=True)
sys.stdin.readline()
time.sleep(0.5)
server.settimeout(20)
while True:
    end, peer = server.accept()
    end.sendall(b"late")
    end.close()
"""


def test_the_audit_names_the_address_that_answered(sessions: Sessions, lab: Lab) -> None:
    """A later address may have been tried before. Whoever answers for a name must not hide its servers behind other addresses."""
    lab.name("late.example.org", answers=[netlab.REFUSING4, netlab.DROPPED4])
    session = sessions.create("w", "--net", "late.example.org:8181")
    argv = lab.identity.as_user(["/usr/bin/python3", "-c", LATE, netlab.REFUSING4])
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout and server.stdout.readline() == "full\n"
        server.stdin.write("go on\n")
        server.stdin.flush()
        assert session.out("cat </dev/tcp/late.example.org/8181") == "late"
        server.kill()

    (row,) = until(lambda: audit(session, "network"), "the connection is noted")
    assert row["address"] == netlab.REFUSING4


def test_a_command_is_told_how_many_refusals_are_not_listed(session: Session) -> None:
    """getent asks for two types of addresses."""
    script = "for i in $(seq {}); do getent hosts n$i.example.org; done; exit 1"
    for count in (80, 3, 70):
        result = session.sh(script.format(count), "--json")
        told = document(result)
        omitted = told["network"]["denials_omitted"]
        assert sum(d["count"] for d in told["denials"]) + omitted == 2 * count
        if count > 64:
            assert omitted > 0 and re.search(r"^holt: and \d+ more of other hosts and ports$", session.sh(script.format(count)).err, re.M)


def test_hosts_that_were_not_reached_are_in_the_document(holt: Holt, session: Session) -> None:
    """In the same words for a run and for a command in a session."""
    rule = "refused.example.org:80"
    session("allow", f"net:{rule}").ok()
    run = holt.sh("curl -sS http://refused.example.org/", "--net", rule)
    (there,) = run.report["unreached"]
    (here,) = document(session.sh("curl -sS http://refused.example.org/", "--json"))["unreached"]
    assert here == there and here["what"] == rule and here["answer"] == "ECONNREFUSED"


def test_many_refusals_do_not_hide_the_next_one(session: Session) -> None:
    """A program must not fill the list with names that nobody cares about, and then be refused in secret."""
    session.sh("for i in $(seq 80); do getent hosts n$i.example.org; done")

    def told() -> bool:
        return "refused secret.example.org (" in session.sh("getent hosts secret.example.org").err

    until(told, "the refusal is told")
    assert "secret.example.org" in [row["what"] for row in audit(session, "denial")]


HURRY = """
import socket
print("begin", flush=True)
input()
for i in range(1000):
    socket.create_connection(("web.example.org", 7), timeout=60).close()
    open("made", "w").write(str(i))
"""


@pytest.mark.slow
def test_no_row_is_lost_while_the_keeper_is_stopped(sessions: Sessions, workspace: Path) -> None:
    """The keeper reads no event meanwhile, and its socket is full soon. holt-egress must then wait for it."""
    session = sessions.create("w", "--workspace", workspace, "--net", "web.example.org:7")
    with session.start("python3", "-c", HURRY, stdin=subprocess.PIPE) as running:
        assert running.readline() == "begin"
        keeper = session.keeper()
        os.kill(keeper, signal.SIGSTOP)
        assert running.process.stdin
        running.process.stdin.write(b"go\n")
        running.process.stdin.flush()
        until(lambda: halted(workspace / "made"), "the program ends or waits")
        os.kill(keeper, signal.SIGCONT)
        running.wait(b"")

    until(lambda: rows(session) == 1000, "all rows are there")


def rows(session: Session) -> int:
    """The number of connections in the audit."""
    found, before = 0, None
    while True:
        page = json.loads(session("audit", "--json", "--limit", "1000", *(("--before", str(before)) if before else ())).ok().out)["rows"]
        if not page:
            return found
        found, before = found + sum(row["kind"] == "network" for row in page), page[-1]["id"]


def halted(path: Path) -> bool:
    """Whether the number in a file no longer grows."""
    before = path.read_text() if path.exists() else ""
    time.sleep(0.5)
    return before not in ("", "0") and path.read_text() == before
