# SPDX-License-Identifier: Apache-2.0
"""Requests of routes go through the proxy outside (network.upstream), too."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt, Result
from lib.tools import needs
from lib.upstream import KEY, Upstream, upstream

pytestmark = needs("curl", "python3")

GET = 'curl -sS -m 20 -H "authorization: Bearer $ACME_TOKEN" $ACME_URL/v1/x'


class Proxy:
    """A proxy that keeps the head of each request, and leads every connection to one service."""

    def __init__(self, target: int) -> None:
        self.heads: "list[str]" = []
        self.answer = b"HTTP/1.1 200 OK\r\nx-proxy: mine\r\n\r\n"
        self.target = target
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.threads: "list[threading.Thread]" = []
        self.start(self.accept)

    def start(self, function: "Callable[..., None]", *args: socket.socket) -> threading.Thread:
        self.threads.append(threading.Thread(target=function, args=args, daemon=True))
        self.threads[-1].start()
        return self.threads[-1]

    def close(self) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)
        self.server.close()

    def accept(self) -> None:
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            self.start(self.serve, client)

    def serve(self, client: socket.socket) -> None:
        head = b""
        with client:
            while b"\r\n\r\n" not in head:
                if not (got := client.recv(65536)):
                    return
                head += got
            self.heads.append(head.decode())
            client.sendall(self.answer)
            if b" 200 " not in self.answer:
                return
            with socket.create_connection(("127.0.0.1", self.target)) as service:
                back = self.start(self.copy, service, client)
                self.copy(client, service)
                back.join(10)

    def copy(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while got := source.recv(65536):
                target.sendall(got)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture
def service() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


@pytest.fixture
def proxy(service: Upstream) -> Iterator[Proxy]:
    made = Proxy(int(service.url.rpartition(":")[2]))
    yield made
    made.close()


Run = Callable[..., Result]


@pytest.fixture
def run(holt: Holt, proxy: Proxy, place: Path, identity: Identity) -> Run:
    def run(url: str, via: str = "127.0.0.1", port: int = 0, mode: str = "none") -> Result:
        path = place / "policy.json"
        path.write_text(json.dumps({"holt": 1, "network": {"mode": mode, "upstream": f"http://{via}:{port or proxy.port}"}, "bridge": {"routes": [{
            "name": "acme", "upstream": url, "header": {"authorization": "Bearer {env:ACME_KEY}"},
            "env": {"ACME_URL": "{url}", "ACME_TOKEN": "{token}"}}]}}))
        return holt.sh(f"{GET}; env; exit 1", "--policy", identity.own(path), env={"ACME_KEY": KEY})

    return run


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("via, login", (("127.0.0.1", ""), ("localhost", ""), ("agent:p%40ss:word@127.0.0.1", "Basic YWdlbnQ6cEBzczp3b3Jk")))
def test_a_route_goes_through_the_proxy(via: str, login: str, run: Run, proxy: Proxy, service: Upstream) -> None:
    result = run("http://api.acme.invalid:81", via)
    assert '"path": "/v1/x"' in result.out and "x-proxy" not in result.out, result
    [head] = proxy.heads
    assert head.startswith("CONNECT api.acme.invalid:81 HTTP/1.1\r\n") and KEY not in head and "holt-" not in head
    assert [line.partition(": ")[2] for line in head.splitlines() if line.lower().startswith("proxy-authorization")] == ([login] if login else [])
    [seen] = service.seen
    assert seen["headers"]["authorization"] == f"Bearer {KEY}" and seen["headers"]["host"] == "api.acme.invalid:81"
    assert not any(word.startswith("proxy-") for word in seen["headers"])
    assert "p@ss" not in result.out + result.err and "p%40ss" not in result.out + result.err + json.dumps(result.report)


@pytest.mark.parametrize("mode", ("none", "allow"))
def test_an_address_goes_through_the_proxy(mode: str, run: Run, proxy: Proxy) -> None:
    run("http://192.0.2.1:81", mode=mode)
    assert proxy.heads[0].startswith("CONNECT 192.0.2.1:81 HTTP/1.1\r\n")


def test_tls_is_not_the_proxys(run: Run, proxy: Proxy) -> None:
    run("https://api.acme.invalid")
    assert proxy.heads[0].startswith("CONNECT api.acme.invalid:443 HTTP/1.1\r\n") and KEY not in proxy.heads[0]


def test_failures_of_the_proxy(run: Run, proxy: Proxy, service: Upstream) -> None:
    proxy.answer = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
    assert "the proxy outside (network.upstream) refused api.acme.invalid:81 with 403" in run("http://api.acme.invalid:81").out
    assert "the proxy outside (network.upstream) cannot be reached" in run("http://api.acme.invalid:81", port=1).out
    assert "the proxy outside (network.upstream) cannot be resolved" in run("http://api.acme.invalid:81", "proxy.invalid").out
    assert service.seen == []
