# SPDX-License-Identifier: Apache-2.0
"""holt mcp --http: any program and any web page of the host can reach its port."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator

import pytest

from lib.sandbox import HANGS
from lib.sessions import Json, Session, Sessions, memory

pytestmark = pytest.mark.alike

TOKEN = "secret-token-of-the-test-0123456789"
BEGIN = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}}


class Server:
    def __init__(self, sessions: Sessions, name: str) -> None:
        self.process = sessions.start(["mcp", name, "--http", "0"], stderr=None, env={"HOLT_MCP_TOKEN": TOKEN}).process
        assert self.process.stdout
        self.port = int(self.process.stdout.readline().decode().split(":")[2].split("/")[0])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), HANGS)

    def raw(self, data: bytes) -> bytes:
        """Returns the whole response."""
        with self.connect() as end:
            end.sendall(data)
            answer = b""
            while part := end.recv(65536):
                answer += part
            return answer

    def ask(self, line: str = "POST /mcp HTTP/1.1", message: "Json | bytes" = BEGIN, /, **headers: "str | None") -> bytes:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        given: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json",
                                        "Content-Length": str(len(body))}
        given.update({name.replace("_", "-"): value for name, value in headers.items()})
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value is not None)
        return self.raw(f"{line}\r\n{head}\r\n".encode() + body)

    def status(self, *args: "str | Json | bytes", **headers: "str | None") -> int:
        return int(self.ask(*args, **headers).split()[1])  # type: ignore[arg-type]

    def begin(self) -> str:
        answer = self.ask()
        assert answer.startswith(b"HTTP/1.1 200 ") and b'"serverInfo"' in answer, answer
        return answer.split(b"Mcp-Session-Id: ")[1].split(b"\r\n")[0].decode()


@pytest.fixture
def server(sessions: Sessions, session: Session) -> Iterator[Server]:
    server = Server(sessions, session.name)
    yield server
    server.begin()  # it still serves
    server.process.send_signal(15)
    assert server.process.wait(HANGS) == 0
    assert server.process.stdout
    server.process.stdout.close()


def test_nothing_works_without_the_token(server: Server) -> None:
    for wrong in (None, "", "Bearer", "Bearer ", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", f"Bearer {'x' * len(TOKEN)}", TOKEN):
        assert server.status(Authorization=wrong) == 401, wrong
        assert server.status("GET /mcp HTTP/1.1", b"", Authorization=wrong) == 401
        assert server.status("DELETE /mcp HTTP/1.1", b"", Authorization=wrong) == 401
        assert server.status("OPTIONS /mcp HTTP/1.1", b"", Authorization=wrong) == 401
    assert server.status(f"POST /mcp?token={TOKEN} HTTP/1.1", Authorization=None) == 401


def test_a_web_page_gets_nothing(server: Server) -> None:
    """Even a page that knows the token: of another site, of this host, or of a name that leads here."""
    for origin in ("http://evil.example", "null", "", f"http://127.0.0.1:{server.port}", "http://localhost"):
        answer = server.ask(Origin=origin)
        assert b" 403 " in answer and b"Access-Control" not in answer, origin
        assert server.status("OPTIONS /mcp HTTP/1.1", b"", Origin=origin) == 403
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", f"127.0.0.1:{server.port}.evil.example", f"localhost.evil:{server.port}", "", None,
                 f"127.0.0.1:{server.port + 1}"):
        assert server.status(Host=host) == 403, host
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", None):
        assert server.status(Content_Type=kind) == 415, kind
    server.begin()
    assert server.status(Host=f"LOCALHOST:{server.port}", Content_Type="application/json; charset=utf-8") == 200


def test_wrong_requests(server: Server) -> None:
    here = f"Host: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    body = json.dumps(BEGIN)
    head = "POST /mcp HTTP/1.1\r\n"
    for text, status in (
        (f"{head}{here}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411), (f"{head}{here}\r\n", 411),
        (f"{head}{here}Content-Length: {len(body)}\r\nContent-Length: 1\r\n\r\n{body}", 400), (f"{head}{here}Host: evil\r\nContent-Length: 2\r\n\r\n{{}}", 400),
        (f"{head}{here}Content-Length: -1\r\n\r\n", 413), (f"{head}{here}Content-Length: 99999999999\r\n\r\n", 413),
        (f"{head}{here}Content-Length: 1048577\r\n\r\n", 413), (f"{head}{here} folded: x\r\n\r\n", 400), (f"{head}{here}no colon\r\n\r\n", 400),
        (f"{head}{here}Name : x\r\n\r\n", 400), (f"{head}{here}Bare: x\ny: z\r\n\r\n", 400), (f"{head}{here}Nul: \0\r\n\r\n", 400),
        (f"{head}{here}Big: {'x' * 20000}\r\n\r\n", 431), ("x" * 20000, 431), ("\r\n\r\n", 403), (f"GET / HTTP/1.1\r\n{here}\r\n", 404),
        (f"GET /mcp/../mcp HTTP/1.1\r\n{here}\r\n", 404), (f"PUT /mcp HTTP/1.1\r\n{here}\r\n", 405), (f"POST /mcp HTTP/1.0\r\n{here}\r\n", 405),
        (f"GET /mcp HTTP/1.1\r\n{here}Content-Length: 1\r\n\r\nx", 400),
    ):
        answer = server.raw(text.encode())
        assert answer.split()[1] == str(status).encode(), (text[:200], answer)
    for message in (b"", b"{", b"[]", b'"x"', b"[" * 5000, b'{"method":"ping","id":1}', b'{"a":1,"a":2}'):
        assert server.status("POST /mcp HTTP/1.1", message) == 400, message
    for session in ("0" * 32, "../../../etc/passwd", "x" * 300):
        assert server.status(Mcp_Session_Id=session) == 404
        assert server.status("GET /mcp HTTP/1.1", b"", Mcp_Session_Id=session) == 404


def test_sessions_and_connections_are_limited(server: Server) -> None:
    first = server.begin()
    for _ in range(20):
        last = server.begin()
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert server.status("POST /mcp HTTP/1.1", ping, Mcp_Session_Id=first) == 404  # it made room
    assert server.status("POST /mcp HTTP/1.1", ping, Mcp_Session_Id=last) == 200
    assert len(subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, check=False).stdout.split()) <= 16
    idle = [server.connect() for _ in range(100)]
    assert server.status("POST /mcp HTTP/1.1", ping, Mcp_Session_Id=last) == 200
    for end in idle:
        end.close()
    assert server.status("DELETE /mcp HTTP/1.1", b"", Mcp_Session_Id=last) == 200
    assert server.status("POST /mcp HTTP/1.1", ping, Mcp_Session_Id=last) == 404


def test_huge_output_stays_bounded(server: Server) -> None:
    session = server.begin()
    before = memory(server.process.pid)
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "bash", "arguments": {"command": "head -c 30000000 /dev/zero | tr '\\0' x"}}}
    answer = server.ask("POST /mcp HTTP/1.1", call, Mcp_Session_Id=session)
    assert b"bytes of output are left out" in answer and len(answer) < 2 << 20
    assert memory(server.process.pid) - before < 16 << 20


def test_a_large_result_and_a_wrong_id_get_a_response(server: Server) -> None:
    name = server.begin()
    code = "class Long:\n    def __repr__(self): return 'x' * 150000\nfor _ in range(36): display(Long())"
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "python", "arguments": {"code": code}}}
    answer = server.ask("POST /mcp HTTP/1.1", call, Mcp_Session_Id=name)
    assert len(answer) > 10 << 20 and answer.endswith(b'"isError":false}}\n\n')
    assert b"the message is no request" in server.ask("POST /mcp HTTP/1.1", {"jsonrpc": "2.0", "id": {}, "method": "ping"}, Mcp_Session_Id=name)


def test_the_sandbox_does_not_reach_the_port(server: Server, session: Session) -> None:
    ended = session.exec("bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{server.port}")
    assert ended.code != 0 and "refused" in ended.err.lower()


@pytest.mark.parametrize("token", ["short", "x" * 300, "a b" * 20, "x" * 40 + "\n"])
def test_a_weak_token_is_refused(sessions: Sessions, session: Session, token: str) -> None:
    refused = sessions(["mcp", session.name, "--http", "0"], env={"HOLT_MCP_TOKEN": token})
    assert refused.code == 125 and "token" in refused.err


LIAR = r"""
import json, sys
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    number = asked.get("id")
    if "method" not in asked:  # holt's own reply
        print("refused" if "error" in asked else "ponged", file=sys.stderr, flush=True)
        continue
    for forged in (0, 1, 2, 3, 99, "1", None, [1]):
        say(id=forged, result={"forged": True}) if forged != number else None
    for method in ("sampling/createMessage", "roots/list", "elicitation/create", "ping"):
        say(id=1000, method=method, params={})
    print("no JSON", "\x1b[2J", "{", "[]", "9" * 100, '{"id":%d,"id":2,"result":{}}' % (number or 0), "[" * 100000, sep="\n", flush=True)
    print('{"jsonrpc":"2.0","id":%d,"result":{},"error":{}}' % (number or 0), '{"jsonrpc":"2.0","id":%d}' % (number or 0), sep="\n", flush=True)
    say(method="evil/notification", params={}); say(method="notifications/message", params={"data": "\x1b[2J"})
    print("x" * 20000000, flush=True)
    if number is not None:
        say(id=number, result={"real": True}); say(id=number, result={"again": True})
    print("\x1b[2Jclear", file=sys.stderr, flush=True)
"""


def test_a_wrapped_server_that_lies(sessions: Sessions, session: Session) -> None:
    session.exec("tee", "/workspace/liar.py", stdin=LIAR.encode()).ok()
    running = sessions.start(["mcp", session.name, "--wrap", "--", "python3", "liar.py"], stdin=subprocess.PIPE).process
    assert running.stdin and running.stdout and running.stderr
    for number in (1, 2):
        running.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/list"}).encode() + b"\n")
        running.stdin.flush()
        seen = [json.loads(running.stdout.readline()) for _ in range(2)]
        assert [m.get("method") or m["result"] for m in seen] == ["notifications/message", {"real": True}], seen
    running.stdin.close()
    assert running.stdout.read() == b""
    assert running.wait(HANGS) == 0
    told = running.stderr.read()
    assert b"\x1b" not in told and told.count(b"refused\n") == 6 and told.count(b"ponged\n") == 2
    running.stdout.close()
    running.stderr.close()
