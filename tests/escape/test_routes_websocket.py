# SPDX-License-Identifier: Apache-2.0
"""A WebSocket by way of a route gives no credential away, and is no way around the route."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.routes import WITH_KEY, policy_maker
from lib.sandbox import Holt, Result
from lib.sessions import until
from lib.tools import needs
from lib.upstream import KEY
from lib.websocket import BINARY, CLIENT, Service, by_tls, frame, only_plain, tls_members, websocket

pytestmark = needs("python3")

SECRET = KEY.encode()
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
ACCEPT = b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n"

# Answers of a hostile service, and the status that the program gets; None if the head may have gone on before the rest came.
ANSWERS = {
    "no-upgrade": (b"HTTP/1.1 101 Switching Protocols\r\n" + ACCEPT + b"\r\n" + SECRET, 502),
    "other": (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n" + ACCEPT + b"\r\n" + SECRET, 502),
    "no-accept": (SWITCH + b"\r\n" + SECRET, 502),
    "compressed": (SWITCH + ACCEPT + b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n" + SECRET, 502),
    "head": (SWITCH + ACCEPT + b"X-Key: %s\r\n\r\n" % SECRET, 101),
    "frame": (SWITCH + ACCEPT + b"\r\n" + frame(BINARY, b"<%s>" % SECRET), 101),
    "masked": (SWITCH + ACCEPT + b"\r\n\x81\x86\0\0\0\0" + SECRET, None),
    "length": (SWITCH + ACCEPT + b"\r\n\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff" + SECRET, None),
    "folded": (SWITCH + ACCEPT + b"X: a\r\n %s\r\n\r\n" % SECRET, 502),
    "space": (SWITCH + ACCEPT + b"X : %s\r\n\r\n" % SECRET, 502),
    "control": (SWITCH + ACCEPT + b"X: a\x01%s\r\n\r\n" % SECRET, 502),
    "nul": (SWITCH + ACCEPT + b"X: a\0%s\r\n\r\n" % SECRET, 502),
    "line-feeds": (SWITCH.replace(b"\r\n", b"\n") + ACCEPT + b"\r\n" + SECRET, 502),
    "no-http": (SECRET + b"\r\n\r\n", 502),
    "status": (b"HTTP/1.1 1x1 %s\r\n\r\n" % SECRET, 502),
    "endless": (SWITCH + b"X: y\r\n" * 20000, 502),
    "interim": (b"HTTP/1.1 103 x\r\nlink: %s\r\n\r\n" % SECRET * 5000, 502),
    "cut": (SWITCH, 502),
    "nothing": (b"", 502),
    "length-cut": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n%s" % SECRET, 200),
    "body": (b"HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n%s and more" % (len(SECRET), SECRET), 401),
    "chunks": (b"HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n%s" % SECRET, 401),
}


@pytest.fixture
def service() -> Iterator[Service]:
    with websocket() as made:
        yield made


@by_tls
def make_tls(request: Any) -> bool:
    return bool(request.param)


@pytest.fixture
def run(service: Service, holt: Holt, place: Path, identity: Identity, tls: bool) -> Callable[..., Result]:
    def run(program: str, **route: Any) -> Result:
        path = policy_maker(place, identity, service.url, **tls_members(tls))(**route)
        return holt(["run", "--policy", path, "--", "python3", "-c", CLIENT + program], env=WITH_KEY)

    return run


Run = Callable[..., Result]


@only_plain
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_hostile_service(answer: str, run: Run, service: Service) -> None:
    service.answers["/v1/x"], status = ANSWERS[answer]
    program = """
for _ in range(2):
    s, f, head = connect("/v1/x")
    print(*head, sep="\\n")
    s.shutdown(socket.SHUT_WR)
    try: print(f.read())
    except OSError: pass
print(connect("/v1/echo")[2][0])
sys.exit(1)
"""
    result = run(program)
    assert KEY not in result.out + result.err + json.dumps(result.report)
    heads = [line.split()[1] for line in result.out.splitlines() if line.startswith("HTTP/1.1 ")]
    assert heads[2:] == ["101"], "the gateway goes on"
    assert all(head == str(status) if status else head in ("101", "502") for head in heads[:2])


def test_a_credential_in_frames_is_masked(run: Run) -> None:
    """The service sends the frame byte by byte, and then the credential in base64."""
    program = """
s, f, head = connect("/v1/key")
print([line for line in head if line.startswith("X-Key")])
print(read(f), read(f), read(f)[0])
"""
    stars = "*" * len(KEY)
    assert run(program).ok().out == f"['X-Key: Bearer {stars}']\n(1, b'<{stars}>') (1, b'{'*' * 32}') 8\n"


def test_the_end_of_a_frame_does_not_wait(run: Run) -> None:
    """The message ends like the credential begins."""
    assert run(f's, f, head = connect("/v1/echo"); s.sendall(frame(1, b"{KEY[:9]}")); print(read(f))').ok().out == f"(1, b'{KEY[:9]}')\n"


@only_plain
def test_a_plain_request_gets_no_upgrade(run: Run, service: Service) -> None:
    """The service switches protocols without being asked."""
    service.answers["/v1/x"] = ANSWERS["frame"][0]
    program = """
import http.client
c = http.client.HTTPConnection(os.environ["ACME_AT"])
for headers in ({}, {"Upgrade": "h2c", "Connection": "Upgrade"}, {"Connection": "Upgrade"}):
    c.request("GET", "/acme/v1/x", headers={"x-api-key": os.environ["ACME_TOKEN"], **headers})
    print(c.getresponse().status)
    c.close()
"""
    assert run(program).ok().out == "502\n502\n502\n"
    assert not any("upgrade" in line.lower() for head in service.heads for line in head)


@only_plain
@pytest.mark.identities("user", "root", "nested")
def test_nothing_is_smuggled_into_the_head(run: Run, service: Service) -> None:
    """Bytes after the head are frames, however they look. Headers of one connection do not go on."""
    program = """
token = "Authorization: Bearer " + os.environ["ACME_TOKEN"]
smuggled = b"GET /v2/secret HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
for extra in ([], ["Host: evil.example"], ["Transfer-Encoding: identity"], ["Content-Length: 0"], ["Authorization: mine"], ["X:"],
              ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="], ["TE: trailers", "Proxy-Authorization: x", "Keep-Alive: 5"]):
    try:
        s, f, head = connect("/v1/echo", token, *extra, early=smuggled)
        print(head[0].split()[1], f.read()[:0])
    except (OSError, IndexError) as error: print(type(error))
"""
    run(program, allow=["GET /v1/*"]).ok()
    assert len(service.heads) >= 4
    for head in service.heads:
        names = [line.partition(":")[0].lower() for line in head[1:]]
        assert head[0] == "GET /v1/echo HTTP/1.1" and f"Host: {service.url.removeprefix('http://')}" in head
        assert names.count("authorization") == names.count("host") == names.count("connection") == 1
        assert f"authorization: Bearer {KEY}" in head and "evil" not in str(head)
        assert not {"content-length", "transfer-encoding", "te", "proxy-authorization", "keep-alive"} & set(names)


def test_a_client_that_never_reads(run: Run, service: Service) -> None:
    """The service has to wait, and the route's timeout ends the connection."""
    program = """
s, f, head = connect("/v1/flood")
print(head[0].split()[1])
import time
time.sleep(2)
t = connect("/v1/echo")
t[0].sendall(frame(1, b"others go on"))
print(read(t[1]))
t[0].close()
while os.path.exists("/proc/self") and s.recv(1 << 20): pass
sys.exit(1)
"""
    result = run(program, timeout="1s")
    assert result.out == "101\n(1, b'others go on')\n" and "silent for too long" in result.err
    until(service.flood_ended.is_set, "the service was cut off")
    assert service.flooded < 32 << 20


def test_a_client_that_goes_away(run: Run, service: Service) -> None:
    run('s, f, head = connect("/v1/flood"); f.read(100); s.setsockopt(1, 13, b"\\1\\0\\0\\0\\0\\0\\0\\0"); f.close(); s.close(); connect("/v1/echo")').ok()
    until(service.flood_ended.is_set, "the service was cut off")


def test_a_limit_of_bytes_is_exact(run: Run, service: Service) -> None:
    """The limit may be hit before the head of the response has gone on."""
    program = """
s, f, head = connect("/v1/flood")
s.settimeout(2)
length = 0
try:
    while n := len(s.recv(1 << 16)): length += n
except OSError: pass
print(head[0].split()[1] in ("101", "429"), length <= 100000)
sys.exit(1)
"""
    result = run(program, bytes="100KB")
    assert result.out == "True True\n" and "more bytes than its limit" in result.err


@pytest.mark.parametrize("tls", (True,), indirect=True)
def test_bytes_before_the_response_are_no_request(run: Run, service: Service) -> None:
    """With TLS they are lost. They become neither a request of the route nor a head at the service."""
    program = """
smuggled = b"GET /v1/secret HTTP/1.1\\r\\nHost: api.acme.example\\r\\nX: " + os.environ["ACME_TOKEN"].encode() + b"\\r\\n\\r\\n"
s, f, head = connect("/v1/echo", early=smuggled)
print(head[0].split()[1])
s.sendall(frame(1, b"goes on"))
print(read(f))
s.close()
s, f, head = connect("/v1/echo")
s.sendall(frame(8, b"\\x03\\xe8") + smuggled)
print(read(f), read(f))
"""
    assert run(program).ok().out == "101\n(1, b'goes on')\n(8, b'\\x03\\xe8') (None, b'')\n"
    assert [head[0] for head in service.heads] == ["GET /v1/echo HTTP/1.1"] * 2


@pytest.mark.parametrize("tls", (True,), indirect=True)
def test_a_client_that_breaks_off(run: Run, service: Service) -> None:
    """It ends the connection without TLS, or within a record. The service sees the end of each."""
    program = """
for end in (b"", b"\\x17\\x03\\x03\\x10\\x00half a record", b"no record at all, but as long as the head of one"):
    s, f, head = connect("/v1/flood")
    f.read(100)
    raw = socket.socket(fileno=s.detach())
    raw.send(end)
    raw.close()
s, f, head = connect("/v1/echo")
s.sendall(frame(1, b"goes on"))
print(read(f))
"""
    assert run(program).out == "(1, b'goes on')\n"
    until(service.flood_ended.is_set, "the service was cut off")
