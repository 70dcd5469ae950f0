# SPDX-License-Identifier: Apache-2.0
"""A peer in another user namespace is a stranger, whatever its uid.

Each test makes the socket visible inside, as a careless caller would. The attack is on the server's choice of clients.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt, Result
from lib.sessions import Closed, Rpc, RpcError, Session, Sessions, until

EVERYBODY = pytest.mark.identities("user", "root", "nested")

# Calls a method, with or without sending a descriptor of its own user namespace first.
ASK = """
import os, socket, sys
path, method, proof = sys.argv[1:4]
end = socket.socket(socket.AF_UNIX)
end.settimeout(60)
end.connect(path)
try:
    if proof == "own":
        socket.send_fds(end, [b"\\n"], [os.open("/proc/self/ns/user", os.O_RDONLY)])
    if proof == "file":
        socket.send_fds(end, [b"\\n"], [os.open("/proc/self/status", os.O_RDONLY)])
    if proof == "line":
        end.sendall(b"\\n")
    end.sendall(b'{"jsonrpc":"2.0","id":1,"method":"%s"}\\n' % method.encode())
except BrokenPipeError:
    pass
print(end.makefile().readline())
"""

STRANGER = "another user namespace"


def is_refused(asked: Result) -> bool:
    """Root's sandbox has a uid of its own, so it may also be refused for that."""
    return '"result"' not in asked.out and (STRANGER in asked.out or "this server does not serve uid" in asked.out)


def answer_to(path: Path, method: str, proof: str, identity: Identity) -> str:
    """Asks on the host, as the identity."""
    return identity.run(identity.argv([sys.executable, "-c", ASK, path, method, proof])).stdout


@pytest.fixture
def server(sessions: Sessions, workspace: Path) -> Path:
    """The socket of a holt serve, in the workspace."""
    path = workspace / "s.sock"
    with sessions.start(["serve", "--socket", "s.sock"], cwd=workspace) as running:
        until(lambda: path.is_socket(), "the server listens")
        yield path
        running.kill(15)
        running.process.wait(60)


@EVERYBODY
def test_holt_serve_hears_no_sandbox(server: Path, holt: Holt) -> None:
    control = answer_to(server, "session.list", "none", holt.identity)
    inside = holt(["run", "--", "python3", "-c", ASK, server, "session.list", "none"])

    assert '"sessions"' in control
    assert is_refused(inside), str(inside)


@pytest.mark.identities("user", "root")
def test_holt_serve_hears_no_other_namespace_of_its_user(server: Path, identity: Identity) -> None:
    asked = identity.run(["unshare", "--user", "--map-current-user", sys.executable, "-c", ASK, server, "session.list", "none"])

    assert STRANGER in asked.stdout, asked


@pytest.mark.identities("user")
def test_holt_serve_hears_nobody_whose_process_can_not_be_looked_at(server: Path, identity: Identity) -> None:
    hide = "import ctypes; ctypes.CDLL(None).prctl(4, 0)\n"
    asked = identity.run([sys.executable, "-c", hide + ASK, server, "session.list", "none"])

    assert "cannot read the user namespace" in asked.stdout, asked


@pytest.mark.identities("user", "root")
def test_holt_serve_hears_nobody_whose_connecting_process_has_ended(server: Path, identity: Identity) -> None:
    """The connecting process passes the socket on and ends: another process may soon have its pid."""
    script = f"""
import os, socket, time
end = socket.socket(socket.AF_UNIX)
os.kill({_pid_of(server)}, 19)
if (child := os.fork()) == 0:
    end.connect({str(server)!r})
    os._exit(0)
os.waitpid(child, 0)
os.kill({_pid_of(server)}, 18)
print(end.makefile().readline())
"""
    asked = identity.run([sys.executable, "-c", script])

    assert "has ended" in asked.stdout, asked


def _pid_of(path: Path) -> int:
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(str(path))
        return int.from_bytes(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)


@EVERYBODY
@pytest.mark.parametrize("proof", ["own", "file", "line", "none"])
def test_a_keeper_hears_no_sandbox(proof: str, session: Session, holt: Holt) -> None:
    """A run gets the keeper's directory: code inside can make no valid proof."""
    session.exec("true").ok()
    at = session.directory / "keeper.sock"
    place = Path("/mnt/store")
    inside = holt(["run", "--rw", f"{at.parent}:{place}", "--", "python3", "-c", ASK, place / at.name, "session.show", proof])
    control = answer_to(at, "session.show", "own", holt.identity)

    assert '"keeper_pid"' in control
    assert is_refused(inside), str(inside)


@EVERYBODY
def test_a_keeper_hears_nobody_without_a_proof(session: Session, holt: Holt) -> None:
    session.exec("true").ok()

    assert STRANGER in answer_to(session.directory / "keeper.sock", "session.show", "none", holt.identity)


@pytest.mark.identities("user", "root")
def test_a_command_line_in_another_namespace_is_told(session: Session, identity: Identity) -> None:
    session.exec("true").ok()
    sessions = session.sessions
    asked = identity.run(
        ["unshare", "--user", "--map-current-user", sessions.holt.binary, "exec", "w", "--", "true"],
        env=identity.environment(sessions.env),
    )

    assert asked.returncode == 125 and STRANGER in asked.stderr, asked
    assert "Connect from the one in which the server was started" in asked.stderr


# Listens at a path, and prints how many descriptors and bytes the first client sends. With the second word "hide", the
# process is unreadable for others, like a keeper.
IMPOSTOR = """
import ctypes, socket, sys
if sys.argv[2] == "hide":
    ctypes.CDLL(None).prctl(4, 0)
end = socket.socket(socket.AF_UNIX)
end.bind(sys.argv[1])
end.listen(8)
print("listens", flush=True)
client, _ = end.accept()
data, fds, _, _ = socket.recv_fds(client, 100, 8)
print("got", len(fds), len(data), flush=True)
"""


@EVERYBODY
@pytest.mark.parametrize("how", ["plain", "hide"])
def test_a_client_gives_its_proof_to_no_sandbox(how: str, session: Session, holt: Holt) -> None:
    """A command's socket replaces the keeper's. The host moves it there, as if the store had been inside."""
    at = session.directory / "keeper.sock"
    with holt.start(["run", "--", "python3", "-c", IMPOSTOR, "s.sock", how]) as impostor:
        assert impostor.readline() == "listens"
        (holt.cwd / "s.sock").rename(at)
        for verb in (["exec", "w", "--", "true"], ["show", "w"], ["stop", "w"]):
            asked = session.sessions(verb)
            if asked.code == 0 and verb[0] != "exec":  # show and stop see that nobody holds the lock
                continue
            assert "the session's socket is not its keeper's" in asked.refusal(), str(asked)
            assert "remove keeper.sock" in asked.cure
        assert impostor.readline() == "got 0 0"
    at.unlink()
    session.exec("true").ok()


@pytest.mark.slow
@pytest.mark.identities("user")
def test_silent_clients_are_disconnected(session: Session, identity: Identity) -> None:
    session.exec("true").ok()
    with Rpc.of_socket(session.directory / "keeper.sock", identity.uid) as rpc, pytest.raises((Closed, RpcError)):
        rpc.read(30)
        rpc.read(30)
