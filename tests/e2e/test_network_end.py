# SPDX-License-Identifier: Apache-2.0
"""Bytes that a program has sent before it ended, as the last process of its sandbox."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from lib.sandbox import Holt

SIZE = 8 << 20
SEND = "import socket; s = socket.create_connection(('127.0.0.1', {})); s.sendall(bytes({}))"
SERVE = "import socket; s = socket.create_server(('', 3000)); print('up', flush=True); c, _ = s.accept(); c.sendall(bytes({}))"


def read(sock: socket.socket, pause: float) -> int:
    """Reads until the end, slowly. Returns the number of bytes, or -1 after a reset."""
    total = 0
    try:
        while data := sock.recv(1 << 18):
            total += len(data)
            time.sleep(pause)
    except ConnectionResetError:
        return -1
    return total


class Server:
    def __init__(self, wait: threading.Event, pause: float) -> None:
        """Reads from its first client once `wait` is set."""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.got = 0
        self.thread = threading.Thread(target=self._run, args=(wait, pause))
        self.thread.start()

    def _run(self, wait: threading.Event, pause: float) -> None:
        with self.socket, self.socket.accept()[0] as client:
            wait.wait()
            self.got = read(client, pause)

    def end(self) -> int:
        self.thread.join()
        return self.got


@pytest.mark.alike
def test_a_slow_server_gets_everything(holt: Holt) -> None:
    now = threading.Event()
    now.set()
    server = Server(now, 0.01)
    holt(["run", "--import", str(server.port), "--", "python3", "-c", SEND.format(server.port, SIZE)]).ok()
    assert server.end() == SIZE


@pytest.mark.alike
def test_a_server_that_does_not_read_gets_a_reset_and_the_run_ends(holt: Holt) -> None:
    later = threading.Event()
    server = Server(later, 0)
    try:
        result = holt(["run", "--import", str(server.port), "--", "python3", "-c", SEND.format(server.port, SIZE)])
    finally:
        later.set()
    assert server.end() == -1 and result.code == 0


@pytest.mark.alike
def test_a_slow_client_of_a_published_port_gets_everything(holt: Holt) -> None:
    with holt.start(["run", "-p", "0:3000", "--", "python3", "-c", SERVE.format(SIZE)], report=False) as running:
        assert running.process.stderr
        port = int(running.process.stderr.readline().split()[2].rpartition(b":")[2])
        assert running.readline() == "up"
        with socket.create_connection(("127.0.0.1", port)) as sock:
            got = read(sock, 0.01)
        running.wait().ok()
    assert got == SIZE
