# SPDX-License-Identifier: Apache-2.0
"""A session, by the command line and by the keeper's socket."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lib.identity import Identity
from lib.sandbox import HANGS, Arg, Holt, Result, Running

Json = dict[str, Any]


class RpcError(Exception):
    """An answer that is an error: kind, errno and hint as in its data."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.kind, self.errno, self.hint = (error["data"][key] for key in ("kind", "errno", "hint"))


@contextmanager
def _as(identity: Identity) -> Iterator[None]:
    """What this process is to others that it connects to (SO_PEERCRED)."""
    if os.geteuid() != 0 or identity.uid == 0:
        yield
        return
    os.setegid(identity.gid)
    os.seteuid(identity.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class Rpc:
    """A client of a session's keeper, as its identity."""

    def __init__(self, directory: Path, identity: Identity) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(HANGS)
        self.fds: list[int] = []  # that came with the last answer; closed by the next call
        self._bytes, self._id = b"", 0
        with _as(identity):
            # No path is too long this way.
            fd = os.open(directory, os.O_PATH | os.O_DIRECTORY)
            try:
                self.socket.connect(f"/proc/self/fd/{fd}/keeper.sock")
            finally:
                os.close(fd)

    def close(self) -> None:
        self._drop_fds()
        self.socket.close()

    def _drop_fds(self) -> None:
        while self.fds:
            os.close(self.fds.pop())

    def send(self, method: str, fds: Sequence[int] = (), **params: Any) -> int:
        """A request whose answer nobody waits for yet; its id."""
        self._id += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}).encode() + b"\n"
        if fds:
            line = line[socket.send_fds(self.socket, [line], fds) :]
        self.socket.sendall(line)
        return self._id

    def receive(self) -> Json:
        """The next answer's result. Raises RpcError."""
        self._drop_fds()
        while b"\n" not in self._bytes:
            data, fds, _, _ = socket.recv_fds(self.socket, 1 << 16, 4)
            self.fds += fds
            assert data, "the keeper has hung up"
            self._bytes += data
        line, self._bytes = self._bytes.split(b"\n", 1)
        answer = json.loads(line)
        if "error" in answer:
            raise RpcError(answer["error"])
        return dict(answer["result"])

    def __call__(self, method: str, fds: Sequence[int] = (), **params: Any) -> Json:
        self.send(method, fds, **params)
        return self.receive()


class Session:
    """A session in a place of the test's own. remove() has to be called in the end."""

    def __init__(self, holt: Holt, data: Path, name: str, *options: Arg) -> None:
        self._holt, self._data, self.name = holt, data, name
        self._clients: list[Rpc] = []
        self.holt("create", name, *options).ok()

    @property
    def directory(self) -> Path:
        return self._data / "holt" / "sessions" / self.name

    def holt(self, *args: Arg, **options: Any) -> Result:
        """"holt ARGS", where the session is."""
        return self._holt(args, env=self._environment(options), **options)

    def start(self, *args: Arg, **options: Any) -> Running:
        """Starts it."""
        return self._holt.start(args, env=self._environment(options), **options)

    def _environment(self, options: dict[str, Any]) -> dict[str, str]:
        return {"XDG_DATA_HOME": str(self._data), **options.pop("env", {})}

    def sh(self, script: str) -> str:
        """What a bash script prints in the session, after asserting that it ends with 0."""
        return self.holt("exec", self.name, "--", "bash", "-c", script).ok().out

    def rpc(self) -> Rpc:
        """A client; it starts the keeper where there is none."""
        request = {"jsonrpc": "2.0", "id": 1, "method": "session.show", "params": {"session": self.name}}
        self.holt("serve", stdin=json.dumps(request) + "\n").ok()
        self._clients.append(Rpc(self.directory, self._holt.identity))
        return self._clients[-1]

    def keeper_peak(self) -> int:
        """Bytes of memory that the keeper has had at most (VmHWM)."""
        pid = json.loads(self.holt("show", self.name, "--json").ok().out)["keeper_pid"]
        status = Path(f"/proc/{pid}/status").read_text()
        return int(re.search(r"^VmHWM:\s*(\d+) kB", status, re.M)[1]) << 10  # type: ignore[index]

    def stop(self) -> None:
        self.holt("stop", self.name).ok()

    def remove(self) -> None:
        for client in self._clients:
            client.close()
        self.holt("rm", self.name).ok()
