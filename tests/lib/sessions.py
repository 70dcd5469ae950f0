# SPDX-License-Identifier: Apache-2.0
"""Lasting sessions: creating them, using them by the command line and by JSON-RPC, and checking that they leave nothing behind.

A keeper is an orphan. The suite is the subreaper of all processes that it starts (leaks.py), so it finds each keeper.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lib import leaks
from lib.identity import Identity
from lib.openrpc import checker
from lib.paths import built_holt
from lib.sandbox import HANGS, Arg, Holt, Result, Running

Json = dict[str, Any]

# Seconds in which a keeper must end after giving up its session.
ENDS = 5


def until(condition: Callable[[], Any], what: str, timeout: float = HANGS) -> Any:
    """Waits for a condition and returns its last value."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.005)
    return value


class RpcError(Exception):
    """An error reply of a server."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']} {error['message']} {error.get('data')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Json = error.get("data") or {}

    @property
    def kind(self) -> str:
        return str(self.data.get("kind"))

    @property
    def errno(self) -> str:
        """The errno's name, such as ENOENT."""
        return str(self.data.get("errno"))

    @property
    def hint(self) -> str:
        return str(self.data.get("hint"))


class Closed(Exception):
    """The server has ended the connection."""


# Connects, passes the socket to the suite, and stays alive.
CONNECT = """
import socket, sys
end, up = socket.socket(socket.AF_UNIX), socket.socket(fileno=0)
try:
    end.connect(sys.argv[1])
except OSError:
    sys.exit(1)
socket.send_fds(up, [b"."], [end.fileno()])
end.close()
up.recv(1)
"""


def prove(end: socket.socket, namespace: str) -> None:
    """Sends the first line that a keeper waits for."""
    proof = os.open(namespace, os.O_RDONLY)
    try:
        socket.send_fds(end, [b"\n"], [proof])
    finally:
        os.close(proof)


class Rpc:
    """A JSON-RPC client with one object per line. A context manager.

    notes holds the notifications received so far. fds holds descriptors that came over the socket with replies since the last
    request; the next request closes those that nobody has taken. Every message is checked against the OpenRPC document. alone
    means that the client uses one session's own socket.
    """

    def __init__(
        self, reader: int, writer: int, end: Callable[[], None], socket: socket.socket | None = None, alone: bool = False
    ) -> None:
        self.reader, self.writer, self._end, self._socket = reader, writer, end, socket
        self.checker = checker(built_holt(), alone)
        self.notes: list[Json] = []
        self.fds: list[int] = []
        self._answers: dict[Any, Json] = {}
        self._ids = itertools.count(1)
        self._buffer = bytearray()
        self._searched = 0

    def __enter__(self) -> Rpc:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @classmethod
    def of_socket(cls, path: Path, uid: int, namespace: str | None = None) -> Rpc:
        """Connects as the given user (SO_PEERCRED), because a keeper in a user namespace does not know the host's root. Raises
        OSError if nobody listens. For a keeper, the client first sends a proof: a descriptor of its user namespace."""
        # The path goes through the directory's fd, because a socket's path must be short (unix(7)).
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        end = socket.socket(socket.AF_UNIX)
        own = os.geteuid()
        try:
            os.seteuid(uid if own == 0 else own)
            end.connect(f"/proc/self/fd/{directory}/{path.name}")
            if namespace:
                os.seteuid(own)
                prove(end, namespace)
        except OSError:
            end.close()
            raise
        finally:
            os.seteuid(own)
            os.close(directory)
        return cls(end.fileno(), end.fileno(), end.close, end, alone=True)

    @classmethod
    def of_server(cls, path: Path, identity: Identity) -> Rpc:
        """Connects to the socket of holt serve, which examines the connecting process. So a process that belongs entirely to
        the identity connects, and lives as long as the client. Raises ConnectionRefusedError if nobody listens."""
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        child = subprocess.Popen(
            identity.as_user(identity.argv([sys.executable, "-c", CONNECT, path])), stdin=theirs
        )
        theirs.close()
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        if not fds:
            ours.close()
            child.wait(HANGS)
            raise ConnectionRefusedError(f"nobody listens at {path}")
        end = socket.socket(fileno=fds[0])

        def close() -> None:
            end.close()
            ours.close()
            child.wait(HANGS)

        return cls(end.fileno(), end.fileno(), close, end)

    @classmethod
    def of_process(cls, process: subprocess.Popen[bytes]) -> Rpc:
        """Makes a client of a server on pipes, which ends with its input."""
        assert process.stdin and process.stdout
        stdin, stdout = process.stdin, process.stdout

        def close() -> None:
            if not stdin.closed:
                with contextlib.suppress(BrokenPipeError):
                    stdin.close()
            try:
                process.wait(HANGS)
            finally:
                process.kill()
                process.wait()
                stdout.close()

        return cls(stdout.fileno(), stdin.fileno(), close)

    def close(self) -> None:
        self._drop_fds()
        self._end()

    def _drop_fds(self) -> None:
        while self.fds:
            os.close(self.fds.pop())

    def raw(self, data: bytes, fds: Sequence[int] = ()) -> None:
        """Sends bytes. Sends even a wrong reply to a request of the server, and then raises Mismatch."""
        try:
            self.checker.sent(data)
        finally:
            self._write(data, fds)

    def _write(self, data: bytes, fds: Sequence[int]) -> None:
        view = memoryview(data)
        if fds:
            assert self._socket, "fds go through a socket only"
            view = view[socket.send_fds(self._socket, [view], fds) :]
        while view:
            view = view[os.write(self.writer, view) :]

    def send(self, method: str, fds: Sequence[int] = (), /, **params: Any) -> int:
        """Sends a request without waiting, and returns the id for result()."""
        self._drop_fds()
        number, line = self._request(method, params)
        self.raw(line, fds)
        return number

    def send_together(self, *calls: tuple[str, Json]) -> list[int]:
        """Sends all requests in one piece, so that each arrives before the first is answered."""
        requests = [self._request(method, params) for method, params in calls]
        self.raw(b"".join(line for _, line in requests))
        return [number for number, _ in requests]

    def _request(self, method: str, params: Json) -> tuple[int, bytes]:
        number = next(self._ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return number, json.dumps(request, ensure_ascii=False).encode() + b"\n"

    def call(self, method: str, fds: Sequence[int] = (), /, *, timeout: float = HANGS, **params: Any) -> Json:
        """Returns the result of a call. Raises RpcError or Closed."""
        return self.result(self.send(method, fds, **params), timeout)

    __call__ = call

    def refused(self, method: str, fds: Sequence[int] = (), /, **params: Any) -> RpcError:
        """Returns the error of a call that must fail."""
        try:
            result = self.call(method, fds, **params)
        except RpcError as error:
            return error
        raise AssertionError(f"{method} {params} was answered: {result}")

    def result(self, number: Any, timeout: float = HANGS) -> Json:
        deadline = time.monotonic() + timeout
        while number not in self._answers:
            self.read(deadline - time.monotonic())
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def end(self) -> None:
        """Ends the requests; replies can still come."""
        assert self._socket
        self._socket.shutdown(socket.SHUT_WR)

    def answered(self, number: int) -> bool:
        """Whether the reply has already come, while the client waited for another one."""
        return number in self._answers

    def note(self, method: str, timeout: float = HANGS, **members: Any) -> Json:
        """Waits for a notification with these members, and takes it."""
        deadline = time.monotonic() + timeout
        while True:
            for note in self.notes:
                if note["method"] == method and members.items() <= note["params"].items():
                    self.notes.remove(note)
                    return note["params"]
            self.read(deadline - time.monotonic())

    def read(self, timeout: float = HANGS) -> None:
        """Reads the next bytes and handles each complete line."""
        ready, _, _ = select.select([self.reader], [], [], max(timeout, 0))
        assert ready, f"no answer, but notifications {self.notes[-3:]}"
        try:
            data = self._read()
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(f"with {bytes(self._buffer[:200])!r}")
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            self._take(json.loads(line))
        self._searched = len(self._buffer)

    def _read(self) -> bytes:
        if not self._socket:
            return os.read(self.reader, 1 << 20)
        data, fds, _, _ = socket.recv_fds(self._socket, 1 << 20, 32)
        self.fds += fds
        return data

    def _take(self, message: Json) -> None:
        assert message["jsonrpc"] == "2.0", message
        self.checker.came(message)
        if "method" in message:
            self.notes.append(message)
        else:
            self._answers[message["id"]] = message


class Sessions:
    """holt with its own place for sessions."""

    def __init__(self, holt: Holt, data: Path) -> None:
        self.holt, self.data = holt, data
        self.env = {"XDG_DATA_HOME": str(data)}
        self._clients: list[Rpc] = []

    @property
    def directory(self) -> Path:
        return self.data / "holt" / "sessions"

    def _options(self, options: Json) -> Json:
        return {**options, "env": {**self.env, **(options.get("env") or {})}}

    def __call__(self, args: Sequence[Arg], **options: Any) -> Result:
        return self.holt(args, **self._options(options))

    def start(self, args: Sequence[Arg], **options: Any) -> Running:
        return self.holt.start(args, **self._options(options))

    def create(self, name: str = "w", *flags: Arg, **options: Any) -> Session:
        self(["create", name, *flags], **options).ok()
        return Session(self, name)

    def serve(self, *flags: Arg, **options: Any) -> Rpc:
        """Starts a "holt serve" and returns a client over pipes. If nobody closes the client, clean_up() does."""
        options.setdefault("stderr", None)
        return self.keep(Rpc.of_process(self.start(["serve", *flags], stdin=subprocess.PIPE, **options).process))

    def keep(self, client: Rpc) -> Rpc:
        self._clients.append(client)
        return client

    def names(self) -> list[str]:
        return [s["name"] for s in json.loads(self(["ls", "--json"]).ok().out)]

    def clean_up(self) -> list[str]:
        """Removes all sessions, and returns their remains."""
        while self._clients:
            self._clients.pop().close()
        names = self.names() if self.directory.is_dir() else []
        failed = [str(r) for name in names if (r := self(["rm", name])).code != 0]
        deadline = time.monotonic() + ENDS
        while keepers() and time.monotonic() < deadline:
            time.sleep(0.005)
        for process in keepers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
                failed.append(f"a keeper: {process}")
        left = [str(p) for p in self.directory.iterdir()] if self.directory.is_dir() else []
        return [*failed, *left]


def keepers() -> list[leaks.Process]:
    """The keepers among the descendants."""
    return [p for p in leaks.descendants() if not p.ended and _command(p.pid).startswith("holt\0keeper\0")]


def readers() -> list[int]:
    """PIDs of the readers of sessions at rest, and of the child that each has for a moment."""
    return [p.pid for p in leaks.descendants() if not p.ended and _command(p.pid).startswith("holt\0reader\0")]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _as_text(row: Json, *keys: str) -> Json:
    return {k: json.dumps(v) if k in keys and v is not None else v for k, v in row.items()}


class Session:
    """One session that a test has created."""

    def __init__(self, sessions: Sessions, name: str) -> None:
        self.sessions, self.name = sessions, name

    @property
    def directory(self) -> Path:
        return self.sessions.directory / self.name

    def __call__(self, verb: str, *args: Arg, **options: Any) -> Result:
        """Runs holt VERB NAME ARGS."""
        return self.sessions([verb, self.name, *args], **options)

    def exec(self, *argv: Arg, flags: Sequence[Arg] = (), **options: Any) -> Result:
        return self("exec", *flags, "--", *argv, **options)

    def sh(self, script: str, *flags: Arg, **options: Any) -> Result:
        return self.exec("bash", "-c", script, flags=flags, **options)

    def out(self, script: str) -> str:
        """Returns the output of a bash script, after asserting that it exits with 0."""
        return self.sh(script).ok().out

    def start(self, *argv: Arg, flags: Sequence[Arg] = (), **options: Any) -> Running:
        return self.sessions.start(["exec", self.name, *flags, "--", *argv], **options)

    def cp(self, *args: Arg, **options: Any) -> Result:
        """Runs holt cp ARGS. Session names are written out, such as "w:FILE"."""
        return self.sessions(["cp", *args], **options)

    def detach(self, script: str, *flags: Arg) -> str:
        """Starts a process that keeps running, and returns its id."""
        return self.sh(script, "--detach", *flags).ok().out.strip()

    def stop(self) -> None:
        self("stop").ok()
        assert self.show()["state"] == "at rest"

    def rpc(self) -> Rpc:
        """Connects to the keeper and starts it if necessary. Closed like the client of serve()."""
        while True:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                path, identity = self.directory / "keeper.sock", self.sessions.holt.identity
                return self.sessions.keep(Rpc.of_socket(path, identity.uid, identity.namespace))
            self.wake()

    def wake(self) -> None:
        """Starts the keeper if necessary, without an entry in the history."""
        with self.sessions.serve() as rpc:
            rpc.call("session.start", session=self.name)

    def show(self) -> Json:
        return json.loads(self("show", "--json").ok().out)

    def ps(self) -> dict[str, Json]:
        listed = json.loads(self("ps", "--json").ok().out)["processes"]
        return {p["id"]: p for p in listed}

    def history(self) -> list[Json]:
        """The rows, with params and result as the JSON text that the store keeps."""
        return [_as_text(row, "params", "result") for row in json.loads(self("history", "--json").ok().out)["rows"]]

    def audit(self) -> list[Json]:
        """The rows, with detail as the JSON text that the store keeps."""
        return [_as_text(row, "detail") for row in json.loads(self("audit", "--json").ok().out)["rows"]]

    def keeper(self) -> int:
        """The keeper's PID."""
        self.wake()
        return int(self.show()["keeper_pid"])

    def keeper_peak(self) -> int:
        """The keeper's peak memory in bytes (VmHWM)."""
        status = Path(f"/proc/{self.keeper()}/status").read_text()
        return int(re.search(r"^VmHWM:\s*(\d+) kB", status, re.M)[1]) << 10  # type: ignore[index]

    def processes(self, name: str | None = None) -> list[leaks.Process]:
        """All running processes in the sandbox of the current keeper, as the host sees them."""
        for keeper in keepers():
            if _command(keeper.pid).split("\0")[2] == self.name:
                return [
                    p for p in leaks.descendants(keeper.pid)
                    if not p.ended and p.name != "holt-egress" and (name is None or p.name == name)
                ]
        return []

    def init(self) -> int:
        """The host's PID of the sandbox's PID 1."""
        def find() -> int:
            keeper = self.keeper()  # another one, if the last is about to end
            return next((p.pid for p in self.processes() if p.parent == keeper), 0)

        return int(until(find, "the keeper has its init"))

    def kill_keeper(self) -> None:
        """Kills the keeper like a crash, and waits until its sandbox is gone too."""
        keeper = self.keeper()
        inside = [p.pid for p in leaks.descendants(keeper)]
        os.kill(keeper, signal.SIGKILL)
        until(lambda: not alive([keeper, *inside]), "the sandbox is gone with its keeper")


def alive(pids: Sequence[int]) -> list[int]:
    """Returns the processes that have not ended."""
    return [p.pid for p in leaks.all_processes() if p.pid in pids and not p.ended]


def sessions_of(holt: Holt, place: Path) -> Iterator[Sessions]:
    """The body of the fixture (plugin.py)."""
    data = place / "data"
    data.mkdir(mode=0o700)
    sessions = Sessions(holt, holt.identity.own(data))
    yield sessions
    left = sessions.clean_up()
    assert not left, "left of the sessions:\n" + "\n".join(left)


class Bound:
    """An Rpc that adds the session's name to each call if it goes by holt serve."""

    def __init__(self, rpc: Rpc, more: Json) -> None:
        self.rpc, self.more = rpc, more
        self.note, self.result, self.raw, self.read = rpc.note, rpc.result, rpc.raw, rpc.read

    def call(self, method: str, **params: object) -> Json:
        return self.rpc.call(method, **self.more, **params)

    def send(self, method: str, **params: object) -> int:
        return self.rpc.send(method, **self.more, **params)

    def refused(self, method: str, **params: object) -> RpcError:
        return self.rpc.refused(method, **self.more, **params)

    def sh(self, script: str, **params: object) -> Json:
        return self.call("exec", shell=script, **params)

    def spawn(self, script: str, **params: object) -> str:
        return self.call("process.spawn", shell=script, **params)["id"]

    def text(self, process: str, stream: str = "stdout", start: int = 1) -> str:
        """Returns everything that is kept of a stream."""
        text = ""
        while chunks := (answer := self.call("process.read", id=process, **{"from": start}))["chunks"]:
            text += "".join(c["text"] for c in chunks if c["stream"] == stream)
            start = answer["next"]
        return text


# The type of the fixture connect, which makes clients of the session "w".
Connect = Callable[[], Bound]


def memory(pid: int) -> int:
    """Bytes of a process's private memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{pid} has ended")
