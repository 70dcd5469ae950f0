# SPDX-License-Identifier: Apache-2.0
"""Steps that a test takes inside a sandbox with a network, many of them in one run.

    probe(holt, ["lookup", "web.example.org"], ["get", "web.example.org", 80], net="web.example.org")

returns one Answer for each step. The first part of this file is also the program inside: it reads the steps as JSON from its standard
input.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import select
import socket
import ssl
import struct
import sys
import time
from typing import Any

TIMEOUT = 60.0
ERRORS = {getattr(socket, name): name for name in dir(socket) if name.startswith("EAI_")}


def name_of(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return ERRORS.get(error.errno, str(error.errno))
    if isinstance(error, ssl.SSLError) and not isinstance(error, ConnectionError):
        return "EOF" if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)) else "TLS"
    return "TIMEOUT" if isinstance(error, TimeoutError) else errno.errorcode.get(error.errno or 0, repr(error))


def dial(host: str, port: int) -> socket.socket:
    end = socket.create_connection((host, port), timeout=TIMEOUT)
    end.settimeout(TIMEOUT)
    return end


def read_all(end: socket.socket) -> bytes:
    data = bytearray()
    while part := end.recv(1 << 18):
        data += part
    return bytes(data)


def finish(end: socket.socket) -> None:
    """Closes one direction. After a reset, only a read shows the reason."""
    try:
        end.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise
        raise ConnectionResetError(errno.ECONNRESET, "reset") from error


def lookup(name: str, family: int = 0, flags: int = socket.AI_ADDRCONFIG) -> Any:
    found = socket.getaddrinfo(name, 80, family, socket.SOCK_STREAM, 0, flags)
    return sorted(row[4][0] for row in found)


def reverse(address: str) -> Any:
    return socket.getnameinfo((address, 80), socket.NI_NAMEREQD)[0]


def connect(host: str, port: int) -> Any:
    with dial(host, port):
        return "ok"


def dial_within(host: str, port: int, seconds: float) -> Any:
    """Connects, and gives up after some seconds."""
    with socket.create_connection((host, port), timeout=seconds):
        return "ok"


def dial_nonblocking(host: str, port: int) -> Any:
    """The errors of a nonblocking connect: at once, and in SO_ERROR."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, socket.SOCK_STREAM) as end:
        end.setblocking(False)
        at_once, poll = end.connect_ex(address), select.poll()
        poll.register(end, select.POLLOUT)
        poll.poll(TIMEOUT * 1000)
        codes = (at_once, end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        return [errno.errorcode.get(code, "ok") for code in codes]


def dial_asyncio(host: str, port: int) -> Any:
    """A connect of asyncio with happy eyeballs."""
    async def dial_one() -> str:
        _, writer = await asyncio.open_connection(host, port, happy_eyeballs_delay=0.25)
        peer: tuple[Any, ...] = writer.get_extra_info("peername")
        writer.close()
        return str(peer[0])

    return asyncio.run(dial_one())


def dial_many(count: int, host: str, port: int) -> Any:
    """Connects many sockets at once, and counts the results."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    ends = [socket.socket(family, socket.SOCK_STREAM) for _ in range(count)]
    poll, results = select.poll(), dict[str, int]()
    for end in ends:
        end.setblocking(False)
        end.connect_ex(address)
        poll.register(end, select.POLLOUT)
    waiting, deadline = {end.fileno(): end for end in ends}, time.monotonic() + 20
    while waiting and time.monotonic() < deadline:
        for number, _ in poll.poll(1000):
            end = waiting.pop(number)
            poll.unregister(number)
            result = errno.errorcode.get(end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "ok")
            results[result] = results.get(result, 0) + 1
    return results | ({"waiting": len(waiting)} if waiting else {})


def first(host: str, port: int) -> Any:
    """The first bytes of a server that speaks first."""
    with dial(host, port) as end:
        return end.recv(200).decode("latin-1")


def say(host: str, port: int, *texts: str, pause: float = 0.02) -> Any:
    """Sends the texts with a pause after each, shuts down, and returns the whole reply."""
    with dial(host, port) as end:
        for text in texts:
            end.sendall(text.encode("latin-1"))
            if len(texts) > 1:
                time.sleep(pause)
        finish(end)
        return read_all(end).decode("latin-1")


def exchange(host: str, port: int, text: str) -> Any:
    """Sends a text and reads as many bytes, without closing a direction."""
    with dial(host, port) as end:
        end.sendall(text.encode("latin-1"))
        return end.recv(len(text), socket.MSG_WAITALL).decode("latin-1")


def get(host: str, port: int = 80, field: str | None = None, target: str = "/") -> Any:
    """Asks for a page. field: the Host to send instead of host."""
    with dial(host, port) as end:
        return request(end, host if field is None else field, target)


def request(end: socket.socket, field: str, target: str) -> Any:
    end.sendall(f"GET {target} HTTP/1.1\r\nHost: {field}\r\nConnection: close\r\n\r\n".encode("latin-1"))
    data = b""
    while b"\r\n\r\n" not in data:
        part = end.recv(65536)
        if not part:
            return "EOF"
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(next(line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")))
    while len(body) < length:
        part = end.recv(65536)
        if not part:
            return "EOF"
        body += part
    return json.loads(body)


def context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def tls(host: str, port: int = 443, sni: str | None = "", field: str | None = None) -> Any:
    """sni: "" takes the host, None sends no name."""
    with context().wrap_socket(dial(host, port), server_hostname=host if sni == "" else sni) as end:
        return request(end, host if field is None else field, "/")


def tls_in_pieces(host: str, size: int, pause: float, sni: str = "") -> Any:
    """Sends the ClientHello in pieces of size bytes, and then does the same as tls()."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context().wrap_bio(incoming, outgoing, server_hostname=sni or host)
    with dial(host, 443) as end:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                data = outgoing.read()
                for i in range(0, len(data), size):
                    end.sendall(data[i : i + size])
                    time.sleep(pause)
                part = end.recv(65536)
                if not part:
                    return "EOF"
                incoming.write(part)
        end.sendall(outgoing.read())
        return request_by(session, incoming, outgoing, end, host)


def request_by(session: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, end: socket.socket, host: str) -> Any:
    """Returns the first bytes of the reply to a request."""
    session.write(f"GET / HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
    end.sendall(outgoing.read())
    while True:
        try:
            return session.read(15).decode()
        except ssl.SSLWantReadError:
            part = end.recv(65536)
            if not part:
                return "EOF"
            incoming.write(part)


def datagram(host: str, port: int) -> Any:
    """Sends a datagram and waits for a reply or an error."""
    family, _, _, _, address = socket.getaddrinfo(host, port, 0, socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(2)
        sock.connect(address)
        sock.send(b"hello")
        return sock.recv(100).decode()


def digest(host: str, port: int, size: int) -> Any:
    """Sends bytes, shuts down its side, and returns the server's sum of them and its own."""
    block, own = bytes(range(256)) * 257 + b"x", hashlib.sha256()
    with dial(host, port) as end:
        while size:
            part = block[: min(size, len(block))]
            end.sendall(part)
            own.update(part)
            size -= len(part)
        end.shutdown(socket.SHUT_WR)
        return [read_all(end).decode().split()[1], own.hexdigest()]


def download(host: str, port: int, size: int) -> Any:
    with dial(host, port) as end:
        end.sendall(f"{size}\n".encode())
        own, count = hashlib.sha256(), 0
        while part := end.recv(1 << 18):
            own.update(part)
            count += len(part)
        return [count, own.hexdigest()]


def many(host: str, port: int, count: int) -> Any:
    """Opens connections, then uses all of them; returns the number that echo."""
    ends = [dial(host, port) for _ in range(count)]
    for i, end in enumerate(ends):
        end.sendall(b"%06d" % i)
    good = sum(end.recv(6, socket.MSG_WAITALL) == b"%06d" % i for i, end in enumerate(ends))
    for end in ends:
        end.close()
    return good


def listen(host: str, port: int) -> Any:
    """The program's own server: binds, connects to itself by the loopback, and passes a byte."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as server:
        with dial("::1" if ":" in host else "127.0.0.1", port) as end, server.accept()[0] as peer:
            peer.sendall(b"mine")
            return end.recv(9).decode()


def dns(name: str, kind: int, over: str = "udp", server: str = "198.18.0.1", edns: bool = False) -> Any:
    """Sends a query without a resolver. Returns the code, the types of the answers, and the lowest TTL."""
    labels = b"".join(bytes([len(p)]) + p.encode("latin-1") for p in name.split(".") if p) + b"\0"
    query = struct.pack("!6H", 4711, 0x0100, 1, 0, 0, int(edns)) + labels + struct.pack("!2H", kind, 1)
    query += b"\0" + struct.pack("!HHIH", 41, 1232, 0, 0) if edns else b""
    data = ask_udp(query, server) if over == "udp" else ask_tcp(query, server)
    ident, flags, _, answers = struct.unpack("!4H", data[:8])
    return {"id": ident == 4711, "code": flags & 15, "answers": answers, "size": len(data), "cut": bool(flags & 0x0200)}


def ask_udp(query: bytes, server: str) -> bytes:
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(20)
        sock.connect((server, 53))
        sock.send(query)
        return sock.recv(65536)


def ask_tcp(query: bytes, server: str) -> bytes:
    with dial(server, 53) as end:
        end.sendall(struct.pack("!H", len(query)) + query)
        size = struct.unpack("!H", end.recv(2, socket.MSG_WAITALL))[0]
        return end.recv(size, socket.MSG_WAITALL)


PROXY = ("198.18.0.1", 3128)


def socks(host: str, port: int, text: str = "", address: bool = False) -> Any:
    """Asks the proxy inside for a host. Returns its code, or what the host replies to the text."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    named = bytes([3, len(host)]) + host.encode()
    packed = bytes([4 if ":" in host else 1]) + socket.inet_pton(family, host) if address else named
    with dial(*PROXY) as end:
        end.sendall(b"\5\1\0\5\1\0" + packed + struct.pack("!H", port))
        if end.recv(2, socket.MSG_WAITALL) != b"\5\0":
            return "greeting"
        code = end.recv(10, socket.MSG_WAITALL)[1]
        if code:
            return [code, read_all(end).decode("latin-1")]
        end.sendall(text.encode("latin-1"))
        finish(end)
        return read_all(end).decode("latin-1")


def tunnel(host: str, port: int, *texts: str) -> Any:
    """Asks the proxy inside for a host by CONNECT. Returns the status line, or the reply to the texts."""
    with dial(*PROXY) as end:
        end.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode("latin-1"))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            part = end.recv(1)
            if not part:
                return "EOF"
            head += part
        if b" 200 " not in head:
            return head.partition(b"\r\n")[0].decode("latin-1")
        for text in texts:
            end.sendall(text.encode("latin-1"))
        finish(end)
        return read_all(end).decode("latin-1")


def sleep(seconds: float) -> Any:
    time.sleep(seconds)


def take(step: list[Any]) -> list[Any]:
    started = time.monotonic()
    try:
        value = globals()[step[0]](*step[1:])
    except OSError as error:
        value = name_of(error)
    return [value, time.monotonic() - started]


def main() -> None:
    for step in json.loads(sys.stdin.readline()):
        print(json.dumps(take(step)), flush=True)


# --- the test's side ---


class Answer:
    """The value of a step, and the seconds that it took. Compares like the value."""

    def __init__(self, value: Any, seconds: float) -> None:
        self.value, self.seconds = value, seconds

    def __eq__(self, other: object) -> bool:
        return bool(self.value == other)

    def __getitem__(self, key: Any) -> Any:
        return self.value[key]

    def __repr__(self) -> str:
        return f"{self.value!r} after {self.seconds:.2f}s"

    @property
    def at_once(self) -> bool:
        """Whether nothing waited for a timeout: those of resolvers begin at 5 s."""
        return self.seconds < 2


class Answers(list[Answer]):
    """The answers of one run, with the result of holt."""

    result: Any


def probe(holt: Any, *steps: list[Any], net: str | None = None, flags: tuple[Any, ...] = (), **options: Any) -> Answers:
    """Takes the steps in "holt run --net NET FLAGS". options: of Holt."""
    argv = ["run", *(("--net", net) if net is not None else ()), *flags, "--", "python3", "-c", PROGRAM]
    result = holt(argv, stdin=json.dumps(steps) + "\n", **options)
    answers = Answers(Answer(*json.loads(line)) for line in result.out.splitlines())
    answers.result = result
    assert len(answers) == len(steps), str(result)
    return answers


with open(__file__, encoding="utf-8") as _file:
    # The program inside is the part above this side.
    PROGRAM = _file.read().partition("# --- the test's")[0] + "main()\n"
