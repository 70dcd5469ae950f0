# SPDX-License-Identifier: Apache-2.0
"""Ports in both directions: a server inside that the host opens, and a server of the host that a command reaches."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.netpeers import AtLevel, at_level  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Arg, Holt, Result, Running
from lib.sessions import Session, Sessions, until
from lib.tools import needs

pytestmark = needs("python3")

SERVE = ["python3", "-m", "http.server", "-b", "127.0.0.1", "3000"]

# Replies with the address from which it was reached, on each port that it is given.
FETCH = """
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=60).read().decode().strip())
    except OSError as error:
        print(getattr(error, "reason", error))
"""


def fetch(address: str, path: str = "") -> str:
    with urllib.request.urlopen(f"http://{address}/{path}", timeout=60) as reply:
        return reply.read().decode()


def published(running: Running) -> str:
    """The address that holt prints."""
    assert running.process.stderr
    line = running.process.stderr.readline().decode()
    match = re.fullmatch(r"holt: published (\S+) -> \d+\n", line)
    assert match, line
    return match[1]


def fetched(address: str, path: str = "") -> str:
    """Waits until the server listens, and returns its reply."""
    def attempt() -> str:
        with contextlib.suppress(OSError):
            return fetch(address, path)
        return ""
    return str(until(attempt, "a reply"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"{self.path} from {self.client_address[0]}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


class Server6(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


@contextlib.contextmanager
def server(kind: type[http.server.ThreadingHTTPServer] = http.server.ThreadingHTTPServer, host: str = "127.0.0.1") -> Iterator[int]:
    with kind((host, 0), Handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield int(web.server_address[1])
        web.shutdown()


@pytest.fixture
def host_port() -> Iterator[int]:
    with server() as port:
        yield port


def run(holt: Holt, *args: Arg) -> Result:
    return holt(["run", *args])


# --- published ---


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("flags", ((), ("--net", "web.example.org:80")), ids=("none", "allow"))
def test_the_host_opens_a_server_inside(flags: tuple[str, ...], holt: Holt, workspace: Path) -> None:
    (workspace / "page").write_text("from inside\n")

    with holt.start(["run", "-p", "0:3000", *flags, "--", *SERVE], report=False) as running:
        address = published(running)
        assert address.startswith("127.0.0.1:")
        assert fetched(address, "page") == "from inside\n"


def test_a_port_of_choice(holt: Holt, workspace: Path) -> None:
    (workspace / "page").write_text("x\n")
    port = free_port()

    with holt.start(["run", "--publish", f"{port}:3000", *SERVE], report=False):
        assert fetched(f"127.0.0.1:{port}", "page") == "x\n"


def test_a_server_on_the_sandbox_s_ipv6_loopback(holt: Holt, workspace: Path) -> None:
    """Node listens there for the name localhost."""
    (workspace / "page").write_text("six\n")

    with holt.start(["run", "-p", "0:3000", "python3", "-m", "http.server", "-b", "::1", "3000"], report=False) as running:
        assert fetched(published(running), "page") == "six\n"


def test_the_host_s_ipv6_loopback(holt: Holt, workspace: Path) -> None:
    (workspace / "page").write_text("six\n")

    with holt.start(["run", "-p", "[::1]:0:3000", *SERVE], report=False) as running:
        address = published(running)
        assert address.startswith("[::1]:") and fetched(address, "page") == "six\n"


def test_a_large_reply_and_a_closed_direction(holt: Holt) -> None:
    """The server answers after the client has closed its direction."""
    echo = ("import socket; s = socket.create_server(('', 3000)); c, _ = s.accept(); data = b''.join(iter(lambda: c.recv(1 << 16), b''));"
            " c.sendall(data[::-1])")
    data = os.urandom(5 << 20)

    def send(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)

    def ask() -> bytes:
        with socket.create_connection(end, timeout=60) as sock:
            sender = threading.Thread(target=send, args=(sock,))
            sender.start()
            with contextlib.suppress(ConnectionResetError):
                reply = b"".join(iter(lambda: sock.recv(1 << 16), b""))
                sender.join()
                return reply
            sender.join()
            return b""

    with holt.start(["run", "-p", "0:3000", "sh", "-c", "echo up; exec python3 -c \"$0\"", echo], report=False) as running:
        host, port = published(running).rsplit(":", 1)
        end = (host, int(port))
        assert running.process.stdout and running.process.stdout.readline() == b"up\n"
        replies: list[bytes] = []

        def attempt() -> bool:
            with contextlib.suppress(ConnectionError):
                replies.append(ask())
            return bool(replies and replies[-1])
        until(attempt, "a reply")
        assert replies[-1] == data[::-1]


def test_nobody_listens_inside(holt: Holt) -> None:
    with holt.start(["run", "-p", "0:3000", "sleep", "1000"], report=False) as running:
        with pytest.raises(OSError):
            fetch(published(running))


def test_a_port_in_use_is_told_before_anything_runs(holt: Holt, host_port: int, workspace: Path) -> None:
    result = run(holt, "--publish", f"{host_port}:3000", "touch", "made")

    assert result.refusal() == f"cannot publish port 3000 at 127.0.0.1:{host_port}: Address in use (EADDRINUSE)."
    assert "--publish 0:3000" in result.cure
    assert not (workspace / "made").exists()


def test_an_address_that_the_host_does_not_have(holt: Holt) -> None:
    result = run(holt, "--publish", "192.0.2.200:0:3000", "true")

    assert "cannot publish port 3000 at 192.0.2.200:0" in result.refusal() and "no such address" in result.cure


def test_the_result_lists_the_ports(holt: Holt) -> None:
    result = run(holt, "-p", "0:3000", "-p", "0:3001", "true").ok()
    assert result.report
    ports = result.report["published"]

    assert [port["port"] for port in ports] == [3000, 3001]
    told = [f"holt: published {port['address']} -> {port['port']}" for port in ports]
    assert result.err.splitlines() == told


def test_a_chosen_port_is_not_printed(holt: Holt) -> None:
    assert run(holt, "-p", f"{free_port()}:3000", "true").ok().err == ""
    assert json.loads(run(holt, "--json", "-p", "0:3000", "true").ok().err)["published"][0]["port"] == 3000


def test_the_port_closes_with_the_command(holt: Holt) -> None:
    port = free_port()
    run(holt, "-p", f"{port}:3000", "true").ok()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    run(holt, "-p", f"{port}:3000", "true").ok()


def test_the_host_s_network_has_no_ports_of_its_own(holt: Holt) -> None:
    result = run(holt, "--network", "host", "-p", "0:3000", "--import", "5432", "true").ok()

    assert "network.publish" in result.err and "network.import" in result.err


# --- imported ---


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("flags", ((), ("--net", "web.example.org:80")), ids=("none", "allow"))
def test_a_command_reaches_a_server_of_the_host(flags: tuple[str, ...], holt: Holt, host_port: int) -> None:
    inside = [f"http://{host}:{host_port}/page" for host in ("127.0.0.1", "[::1]", "localhost")]
    result = run(holt, "--import", str(host_port), *flags, "--", "python3", "-c", FETCH, *inside).ok()

    assert result.out == 3 * "/page from 127.0.0.1\n"


def test_an_imported_port_with_another_number(holt: Holt, host_port: int) -> None:
    """A low port too: the sandbox's own rules do not hold for it."""
    result = run(holt, "--import", f"{host_port}:80", "python3", "-c", FETCH, "http://127.0.0.1/a", f"http://127.0.0.1:{host_port}/")

    assert result.out == "/a from 127.0.0.1\n[Errno 111] Connection refused\n"


def test_an_imported_port_beside_a_wildcard(holt: Holt, host_port: int) -> None:
    """The wildcard's listener takes the port at every address, also at the loopback."""
    result = run(holt, "--import", f"{host_port}:8080", "--net", "*.example.org:8080", "python3", "-c", FETCH, "http://127.0.0.1:8080/",
                      "http://127.0.0.2:8080/", "http://[::1]:8080/").ok()

    assert result.out.splitlines()[::2] == 2 * ["/ from 127.0.0.1"] and "reset" in result.out.splitlines()[1]


def test_a_server_on_the_host_s_ipv6_loopback(holt: Holt) -> None:
    with server(Server6, "::1") as port:
        assert run(holt, "--import", f"{port}:8080", "python3", "-c", FETCH, "http://127.0.0.1:8080/").ok().out == "/ from ::1\n"


def test_no_server_of_the_host_listens(at_level: AtLevel) -> None:
    """A command that waits for a database must not take the listener inside for the database."""
    port = free_port()
    result = run(at_level, "--import", f"{port}:8080", "python3", "-c", FETCH + "sys.exit(1)", "http://127.0.0.1:8080/")

    assert ("refused" if at_level.level == 2 else "reset") in result.out
    assert (f"holt: could not connect to 127.0.0.1:8080 (ECONNREFUSED): nothing listens on the host: port {port} of its loopback "
            f"(--import {port}:8080)\n") in result.err


def test_two_imported_ports_cannot_be_one_inside(holt: Holt) -> None:
    result = run(holt, "--import", "5432:80", "--import", "5433:80", "true")

    assert result.refusal() == 'network.import: "5432:80" and "5433:80" have the same port inside'


def test_ports_of_a_policy_file(holt: Holt, workspace: Path, host_port: int) -> None:
    (workspace.parent / "ports.json").write_text(json.dumps(
        {"holt": 1, "extends": "standard", "network": {"publish": ["0:3000"], "import": [f"{host_port}:5432"]}}))
    result = run(holt, "--policy", workspace.parent / "ports.json", "python3", "-c", FETCH, "http://127.0.0.1:5432/").ok()

    assert result.out == "/ from 127.0.0.1\n" and "-> 3000" in result.err


# --- sessions ---


@pytest.fixture
def session(sessions: Sessions, workspace: Path) -> Session:
    (workspace / "page").write_text("from the session\n")
    return sessions.create("w", "--workspace", workspace)


def forward(session: Session, *words: str) -> Result:
    return session("forward", *words)


def serve(session: Session) -> None:
    session.detach("exec " + " ".join(SERVE))


def waiting_of(session: Session) -> list[int]:
    """Each holt-egress of the session."""
    keeper = session.keeper()
    found = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return [int(pid) for pid in found if Path(f"/proc/{pid}/comm").read_text() == "holt-egress\n"]


def listed(session: Session) -> dict[str, int]:
    return {port["address"]: port["port"] for port in json.loads(session("ps", "--json").ok().out)["ports"]}


@pytest.mark.identities("user", "root", "nested")
def test_forward_a_port_of_a_running_session(session: Session) -> None:
    """The server may start before or after."""
    serve(session)
    address = forward(session, "3000").ok().out.strip()

    assert address.startswith("127.0.0.1:") and fetched(address, "page") == "from the session\n"
    assert forward(session, "3000").ok().out.strip() == address
    assert listed(session) == {address: 3000}
    assert re.search(rf"^{address} +3000$", session("ps").ok().out, re.M)


@pytest.mark.parametrize("flags", (("--net", "web.example.org:80"), ("--publish", "0:3001")), ids=("net", "publish"))
def test_forward_beside_other_rules(flags: tuple[str, ...], sessions: Sessions, workspace: Path) -> None:
    (workspace / "page").write_text("x\n")
    session = sessions.create("w", "--workspace", workspace, *flags)
    serve(session)
    address = forward(session, "3000").ok().out.strip()

    assert fetched(address, "page") == "x\n"
    assert sorted(listed(session).values()) == ([3000, 3001] if "--publish" in flags else [3000])


def test_forward_a_port_of_choice_and_close_it(session: Session) -> None:
    port = free_port()
    serve(session)

    assert json.loads(forward(session, "--json", f"{port}:3000").ok().out) == {"address": f"127.0.0.1:{port}", "port": 3000}
    fetched(f"127.0.0.1:{port}", "page")
    assert "EADDRINUSE" in forward(session, f"{port}:3001").refusal()
    assert forward(session, "--stop", "3000").ok().out == "" and listed(session) == {}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    assert forward(session, "--stop", "3000").refusal() == "port 3000 of the session is not forwarded"
    host = forward(session, "3000").ok().out.strip().rsplit(":", 1)[1]
    assert f"Port {host} of the host leads to port 3000 of the session" in forward(session, "--stop", host).err


def test_a_conflict_names_the_way_out(session: Session, host_port: int) -> None:
    assert "holt forward w 3000" in forward(session, f"{host_port}:3000").cure


def test_a_forwarded_port_closes_with_the_session(session: Session) -> None:
    host, port = forward(session, "3000").ok().out.strip().split(":")
    session.stop()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    assert listed(session) == {}


def test_a_published_port_of_a_session(sessions: Sessions, workspace: Path) -> None:
    (workspace / "page").write_text("x\n")
    port = free_port()
    session = sessions.create("w", "--workspace", workspace, "--publish", f"{port}:3000")
    serve(session)

    assert fetched(f"127.0.0.1:{port}", "page") == "x\n" and listed(session) == {f"127.0.0.1:{port}": 3000}


def test_many_imported_ports(holt: Holt, host_port: int) -> None:
    """The packet filter has rules for some of them only."""
    ports = [host_port if i == 29 else free_port() for i in range(30)]
    argv = [word for i, port in enumerate(ports) for word in ("--import", f"{port}:{6000 + i}")]
    first, last = probe(holt, ["dial_nonblocking", "127.0.0.1", 6000], ["connect", "127.0.0.1", 6029], flags=tuple(argv))

    assert first == ["EINPROGRESS", "ECONNREFUSED"] and last == "ok"


def test_an_imported_port_of_a_session(sessions: Sessions, host_port: int) -> None:
    session = sessions.create("w", "--import", f"{host_port}:5432")

    assert session.exec("python3", "-c", FETCH, "http://127.0.0.1:5432/x").ok().out == "/x from 127.0.0.1\n"


def test_the_audit_has_ports_and_their_connections(session: Session) -> None:
    serve(session)
    address = forward(session, "3000").ok().out.strip()
    fetched(address, "page")
    forward(session, "--stop", "3000").ok()
    rows = json.loads(session("audit", "--json").ok().out)["rows"]
    ports = [row["detail"] for row in rows if row["kind"] == "port"]
    connections = [row["detail"] for row in rows if row["kind"] == "network"]

    assert ports == [{"address": address, "port": 3000, "open": is_open} for is_open in (False, True)]
    assert any(c["published"] and c["sent"] > len("from the session\n") for c in connections), connections


def test_a_missing_port_is_named(session: Session) -> None:
    assert forward(session).refusal() == "missing [[ADDRESS:]HOSTPORT:]PORT"


def test_words_that_are_no_port(session: Session) -> None:
    for word in ("0", "70000", "x", "8080:0", ":3000", "3000/udp"):
        assert f'"{word}"' in forward(session, word).refusal()


def test_the_host_s_network_needs_no_forward(sessions: Sessions) -> None:
    session = sessions.create("w", "--network", "host")

    assert "the host's own network" in forward(session, "3000").refusal()


def test_forward_after_the_waiting_process_was_killed(session: Session) -> None:
    session.exec("true").ok()
    waiting = until(lambda: waiting_of(session), "holt-egress")
    os.kill(waiting[0], 9)
    until(lambda: forward(session, "3000").code == 125, "a refusal")

    result = forward(session, "3000")
    assert "lost its network, because holt-egress ended" in result.refusal() and "holt stop w" in result.cure
    session.stop()
    forward(session, "3000").ok()


def test_the_port_of_a_killed_holt_closes(holt: Holt) -> None:
    port = free_port()
    with holt.start(["run", "-p", f"{port}:3000", "sleep", "1000"], report=False) as running:
        until(lambda: accepts(port), "the port opens")
        running.process.kill()
        until(lambda: not accepts(port), "the port closes")


def accepts(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
