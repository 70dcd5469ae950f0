# SPDX-License-Identifier: Apache-2.0
"""Routes carry WebSockets (RFC 6455)."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.routes import WITH_KEY, MakePolicy, policy_maker
from lib.sandbox import Holt, Result
from lib.sessions import Sessions
from lib.tools import needs
from lib.upstream import KEY
from lib.websocket import CLIENT, Service, by_tls, only_plain, tls_members, websocket

pytestmark = needs("python3", "openssl")

Run = Callable[..., Result]


@pytest.fixture
def service() -> Iterator[Service]:
    with websocket() as made:
        yield made


@by_tls
def make_tls(request: Any) -> bool:
    return bool(request.param)


@pytest.fixture
def policy(service: Service, place: Path, identity: Identity, tls: bool) -> MakePolicy:
    return policy_maker(place, identity, service.url, **tls_members(tls))


@pytest.fixture
def run(holt: Holt, policy: MakePolicy) -> Run:
    def run(program: str, env: "dict[str, str] | None" = None, **route: Any) -> Result:
        return holt(["run", "--policy", policy(**route), "--", "python3", "-c", CLIENT + program], env={**WITH_KEY, **(env or {})})

    return run


MESSAGES = """
s, f, head = connect("/v1/echo?a=b", "Authorization: Bearer " + os.environ["ACME_TOKEN"], "X-More: 1", "Sec-WebSocket-Protocol: chat",
                     "Sec-WebSocket-Extensions: permessage-deflate")
print(head[0])
s.sendall(frame(1, "h\\xe9".encode()) + frame(2, bytes(range(256))) + frame(9, b"ping"))
print(*[read(f) == wanted for wanted in ((1, "h\\xe9".encode()), (2, bytes(range(256))), (10, b"ping"))])
s.sendall(frame(1, b"a", last=False) + frame(0, b"b", last=False) + frame(0, b"c"))
print(read(f))
big = os.urandom(3 << 20)
s.sendall(frame(2, big))  # the service reads all of it first; two threads must not use one TLS socket
print(read(f) == (2, big))
s.sendall(frame(8, b"\\x03\\xe8"))
print(read(f), read(f))
"""


@pytest.mark.identities("user", "root", "nested")
def test_messages_pass_in_both_directions(run: Run, service: Service) -> None:
    out = run(MESSAGES).ok().out.splitlines()
    assert out == ["HTTP/1.1 101 Switching Protocols", "True True True", "(1, b'abc')", "True", "(8, b'\\x03\\xe8') (None, b'')"]
    [head] = service.heads
    names = [line.partition(":")[0].lower() for line in head[1:]]
    assert head[0] == "GET /v1/echo?a=b HTTP/1.1" and f"authorization: Bearer {KEY}" in head and "X-More: 1" in head
    assert f"Host: {service.url.removeprefix('http://')}" in head and "Sec-WebSocket-Protocol: chat" in head
    assert "sec-websocket-extensions" not in names and "holt-" not in str(head)
    assert names.count("connection") == names.count("upgrade") == names.count("host") == names.count("sec-websocket-key") == 1


@only_plain
@pytest.mark.parametrize("trusted", (True, False))
def test_by_tls(trusted: bool, holt: Holt, policy: MakePolicy, place: Path, identity: Identity) -> None:
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", place / "key.pem", "-out", place / "ca.pem"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "ca.pem", place / "key.pem")
    env = {**WITH_KEY, "SSL_CERT_FILE": str(identity.own(place / "ca.pem"))} if trusted else WITH_KEY
    with websocket(context) as service:
        document = policy(upstream=service.url.replace("127.0.0.1", "localhost"), network={"allow": ["127.0.0.0/8:*"]})
        program = MESSAGES if trusted else 'print(connect("/v1/echo")[2][0])'
        result = holt(["run", "--policy", document, "--", "python3", "-c", CLIENT + program], env=env)
    assert ("True True True\n(1, b'abc')\nTrue\n(8," in result.out) == trusted
    assert trusted or ("502 Bad Gateway" in result.out and service.heads == []), result


def test_many_at_once(run: Run) -> None:
    program = """
import threading
def one(n):
    s, f, head = connect("/v1/echo")
    for i in range(20):
        data = os.urandom(5000 * n % 70000)
        s.sendall(frame(2, data))
        assert read(f) == (2, data)
    done.append(n)
done = []
threads = [threading.Thread(target=one, args=(n,)) for n in range(64)]
for t in threads: t.start()
for t in threads: t.join()
print(len(done))
"""
    assert run(program, concurrent=64).ok().out == "64\n"


# --- refusals, and responses that are no upgrade ---


@only_plain
@pytest.mark.parametrize("call,status", (
    ('"/v1/echo", "X: y"', 401), ('"/v2/echo"', 403), ('"/v1/../v2"', 400), ('"/v1/echo", TOKEN, "Content-Length: 5"', 400),
    ('"/v1/echo", TOKEN, "Transfer-Encoding: chunked", early=b"0\\r\\n\\r\\n"', 400), ('"/v1/echo", key="short"', 400),
    ('"/v1/echo", TOKEN, "X : y"', 400), ('"/v1/echo?a\\tb"', 502), ('"/v1/echo?a b"', None), ('"/v1/echo#x"', 400),
))
def test_refusals(call: str, status: int, run: Run, service: Service) -> None:
    program = f"""
TOKEN = "Authorization: Bearer " + os.environ["ACME_TOKEN"]
s, f, head = connect({call})
print(head[0].split()[1] if head else None)
sys.exit(1)
"""
    result = run(program, allow=["GET /v1/*"])
    assert result.out == f"{status}\n" and service.heads == [], result


@pytest.mark.parametrize("answer,out", (
    (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nX-A: b\r\n\r\nno", "403 b'no' True"),
    (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", "200 b'until the end' False"),
    (b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404 b'' False"),
))
def test_another_response_goes_back(answer: bytes, out: str, run: Run, service: Service) -> None:
    service.answers["/v1/x"] = answer
    program = """
s, f, head = connect("/v1/x")
length = [line.split()[1] for line in head if line.lower().startswith("content-length")]
print(head[0].split()[1], f.read(int(length[0])) if length else b"".join(chunks(f)), "X-A: b" in head)
"""
    chunks = "def chunks(f):\n    while size := int(f.readline(), 16): yield f.read(size); f.readline()\n"
    assert run(chunks + program).out.strip() == out


def test_limits(run: Run) -> None:
    echo = """
s, f, head = connect("/v1/echo")
print(head[0].split()[1])
try:
    s.sendall(frame(2, bytes(200000)))
    print(len(f.read()) < 200000)
except OSError:
    print(True)
print(connect("/v1/echo")[2][0].split()[1])
sys.exit(1)
"""
    result = run(echo, bytes="100KB")
    assert result.out == "101\nTrue\n429\n" and "would carry more bytes than its limit" in result.err
    result = run(echo, body="100KB")
    assert result.out == "101\nTrue\n101\n" and "bodies of at most 100000 bytes" in result.err
    two = 'a = connect("/v1/echo"); b = connect("/v1/echo"); print(a[2][0].split()[1], b[2][0].split()[1]); a[0].shutdown(2); f = a[1].read()\n'
    assert run(two, concurrent=1).out == "101 429\n"


def test_a_pause_has_a_limit(run: Run) -> None:
    result = run('s, f, head = connect("/v1/silent"); print(head[0].split()[1], f.read()); sys.exit(1)', timeout="1s")
    assert result.out == "101 b''\n" and "silent for too long" in result.err


# --- the end ---


@only_plain
def test_the_program_may_end_first(run: Run) -> None:
    program = """
s, f, head = connect("/v1/echo")
s.sendall(frame(1, b"last"))
s.shutdown(socket.SHUT_WR)
print(read(f), read(f))
"""
    assert run(program).ok().out == "(1, b'last') (None, b'')\n"


def test_a_session_audits_it(sessions: Sessions, policy: MakePolicy, service: Service) -> None:
    sessions.env.update(WITH_KEY)
    session = sessions.create("w", "--policy", policy())
    program = 's, f, head = connect("/v1/echo"); s.sendall(frame(1, b"x" * 100)); print(len(read(f)[1]))'
    assert session("exec", "--", "python3", "-c", CLIENT + program).ok().out == "100\n"
    session.stop()
    [request] = [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "route"]
    assert (request["method"], request["path"], request["status"], request["error"]) == ("GET", "/v1/echo", 101, None)
    assert request["sent"] > 100 and request["received"] > 100
