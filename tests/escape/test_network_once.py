# SPDX-License-Identifier: Apache-2.0
"""A grant for one connection lets one connection through, to the host and port that it names.

The test network (lib/netlab.py) is the host's network here, and its log shows what has left the sandbox.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sessions import Session, Sessions, until
from lib.tools import needs

pytestmark = needs("python3")

RACE = """
import socket, sys, threading
address, gate, done = (socket.gethostbyname("other.example.org"), 9004), threading.Barrier(50), []
def attempt():
    gate.wait()
    try: done.append(socket.create_connection(address, timeout=60))
    except OSError: pass
    else:
        try: done[-1].recv(1)
        except OSError: done.pop()
threads = [threading.Thread(target=attempt, daemon=True) for _ in range(50)]
for thread in threads: thread.start()
for thread in threads: thread.join(1)
print(len(done))
"""

TRICKS = """
import errno, socket
def attempt(host, port, greeting=b""):
    try:
        with socket.create_connection((host, port), timeout=60) as end:
            end.sendall(greeting)
            print(end.recv(20) or "closed")
    except socket.gaierror as error: print("no name")
    except OSError as error: print(errno.errorcode.get(error.errno, error))
for host, port in (("other.example.org", 80), ("other.example.org", 8443), ("four.example.org", 8080), ("a.other.example.org", 8080), ("203.0.113.11", 8080)):
    attempt(host, port)
attempt("other.example.org", 8080, b"GET / HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n")
attempt("other.example.org", 8080, b"GET / HTTP/1.1\\r\\nHost: other.example.org\\r\\n\\r\\n")
"""


@pytest.fixture
def session(sessions: Sessions) -> Session:
    session = sessions.create("w", "--net", "web.example.org:80")
    session.out("true")
    return session


def arrived(lab: Lab) -> int:
    """Waits for a connection, and returns the number of those that have come."""
    seen: list[object] = []
    until(lambda: bool(seen.extend(lab.log("tcp")) or seen), "a connection has come")
    return len(seen) + len(lab.log("tcp"))


def test_one_of_fifty_connections_passes(session: Session, lab: Lab) -> None:
    session("allow", "net:other.example.org:9004", "--once").ok()

    assert session.exec("python3", "-c", RACE).ok().out.strip() == "1"
    assert arrived(lab) == 1


def test_another_host_or_port_does_not_pass(session: Session, lab: Lab) -> None:
    """The connection that asks for another host than its own is refused, but it counts as the one connection."""
    session("allow", "net:other.example.org:8080", "--once").ok()

    answers = session.exec("python3", "-c", TRICKS).ok().out.splitlines()

    assert answers[2:4] == ["no name"] * 2 and all("HTTP" not in answer for answer in answers), answers
    assert arrived(lab) == 1


@pytest.mark.parametrize("name", ("loopback", "metadata", "private-10"))
def test_a_grant_for_a_name_does_not_open_private_addresses(name: str, session: Session, lab: Lab) -> None:
    session("allow", f"net:{name}.bad.example.org:80", "--once").ok()

    assert session.sh(f"exec 3<>/dev/tcp/{name}.bad.example.org/80").code != 0
    assert not lab.log("tcp") and session.show()["network"]["once"] == [f"{name}.bad.example.org:80"]


def test_nothing_inside_makes_a_grant(session: Session) -> None:
    """Neither the verb nor the session's socket is inside."""
    assert session.sh("holt allow w net:other.example.org:80 --once").code == 127
    assert json.loads(session("show", "--json").ok().out)["network"]["once"] == []


def test_many_grants_for_one_connection_need_no_lasting_rule(sessions: Sessions, workspace: Path, lab: Lab) -> None:
    (workspace / "none.json").write_text(json.dumps({"holt": 1, "network": {"mode": "allow"}}))
    session = sessions.create("w", "--policy", "./none.json", cwd=workspace)
    session.out("true")
    for _ in range(4):
        session("allow", "net:other.example.org:9004", "--once").ok()

    assert session.show()["network"]["once"] == ["other.example.org:9004"] * 4
    assert session.exec("python3", "-c", RACE).ok().out.strip() == "4"
    assert arrived(lab) == 4
