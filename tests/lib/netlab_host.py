# SPDX-License-Identifier: Apache-2.0
"""The process of a test network: makes its namespaces, and serves there. See netlab.py, which starts it.

It reads JSON objects from its standard input, one a line, and replies to each with one line: first the settings,
then commands. It ends when its input ends.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import os
import selectors
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lib import netlab_dns, netlab_git

Json = dict[str, Any]

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
NEWLINK, NEWADDR, NEWROUTE = 16, 20, 24
REQUEST, ACK, CREATE = 0x1, 0x4, 0x400
IPV6_FREEBIND = 78
LOOPBACK = 1  # The index of lo in a new namespace.

# Type, table, scope, and whether the route goes to lo. The kernel drops packets that come back from lo and are not local.
ROUTES = {"local": (2, 255, 254, True), "dropped": (1, 254, 253, True), "unreachable": (7, 254, 0, False)}

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


# --- namespaces, addresses and files ---


def enter_namespaces(own_user: bool) -> None:
    """Enters new namespaces. own_user: also a user namespace, in which the caller keeps its ids."""
    uid, gid = os.geteuid(), os.getegid()
    checked(libc.unshare(CLONE_NEWNET | CLONE_NEWNS | (CLONE_NEWUSER if own_user else 0)), "unshare")
    if own_user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path("/proc/self", name).write_text(text)
    checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount / private")


def cover(directory: Path, files: dict[str, str]) -> None:
    """Puts files over those of /etc. A file that the host does not have stays missing."""
    for name, text in files.items():
        source, target = directory / name, Path("/etc", name).resolve()
        source.write_text(text)
        if target.exists():
            checked(libc.mount(bytes(source), bytes(target), None, MS_BIND, None), f"mount {target}")


class Netlink:
    """Sets up addresses and routes by rtnetlink(7), because not every host has ip(8)."""

    def __init__(self) -> None:
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)

    def _ask(self, kind: int, flags: int, payload: bytes, what: str) -> None:
        flags |= REQUEST | ACK
        self.sock.send(struct.pack("=IHHII", 16 + len(payload), kind, flags, 1, 0) + payload)
        errnum = -struct.unpack("=i", self.sock.recv(4096)[16:20])[0]
        if errnum:
            raise OSError(errnum, f"{what}: {os.strerror(errnum)}")

    @staticmethod
    def _attribute(kind: int, data: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)

    def up(self) -> None:
        self._ask(NEWLINK, 0, struct.pack("=BxHiII", 0, 0, LOOPBACK, 1, 1), "set lo up")

    def address(self, text: str) -> None:
        family, address, prefix = parse(text)
        no_detection = 2 if family == socket.AF_INET6 else 0
        head = struct.pack("=BBBBI", family, prefix, no_detection, 0, LOOPBACK)
        attributes = self._attribute(2, address) + self._attribute(1, address)
        self._ask(NEWADDR, CREATE, head + attributes, f"address {text}")

    def route(self, text: str, kind: str) -> None:
        family, address, prefix = parse(text)
        number, table, scope, device = ROUTES[kind]
        head = struct.pack("=8BI", family, prefix, 0, 0, table, 3, scope, number, 0)
        attributes = self._attribute(1, address)
        attributes += self._attribute(4, struct.pack("=I", LOOPBACK)) if device else b""
        self._ask(NEWROUTE, CREATE, head + attributes, f"route {text}")


def parse(text: str) -> tuple[int, bytes, int]:
    address, _, prefix = text.partition("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address), int(prefix)


def set_up_network(settings: Json) -> None:
    netlink = Netlink()
    netlink.up()
    six = os.path.exists("/proc/net/if_inet6")
    for kind, texts in settings["routes"].items():
        for text in (t for t in texts if six or ":" not in t):
            netlink.address(text) if kind == "address" else netlink.route(text, kind)
    Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")


def make_certificate(directory: Path, names: list[str]) -> subprocess.Popen[bytes]:
    """Starts making a certificate that is its own CA: ca.pem."""
    alternatives = ",".join(f"DNS:{name}" for name in names)
    (directory / "openssl.cnf").write_text(
        "[req]\ndistinguished_name=dn\nprompt=no\nx509_extensions=v3\n[dn]\nCN=netlab\n"
        f"[v3]\nbasicConstraints=critical,CA:TRUE\nsubjectAltName={alternatives},IP:203.0.113.10,IP:10.1.0.5\n"
    )
    return subprocess.Popen(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-config", "openssl.cnf", "-keyout", "key.pem", "-out", "ca.pem"],
        cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )


def trust(directory: Path) -> None:
    """Adds the network's CA to those that programs in it trust."""
    target = Path("/etc/ssl/certs/ca-certificates.crt")
    source = directory / "trusted.pem"
    source.write_bytes(target.read_bytes() + (directory / "ca.pem").read_bytes())
    checked(libc.mount(bytes(source), bytes(target.resolve()), None, MS_BIND, None), f"mount {target}")


# --- servers ---


class Log:
    def __init__(self) -> None:
        self.lock, self.rows = threading.Lock(), list[Json]()

    def __call__(self, what: str, **values: Any) -> None:
        with self.lock:
            self.rows.append({"what": what, **values})

    def take(self) -> list[Json]:
        with self.lock:
            rows, self.rows = self.rows, []
        return rows


log = Log()


def parts(size: int) -> Iterator[bytes]:
    """Bytes without a short period, so that a part that is lost or repeated changes them."""
    block = hashlib.sha512(b"netlab").digest() * 1021 + b"."
    while size > 0:
        yield block[:size]
        size -= len(block)


def pattern(size: int) -> bytes:
    return b"".join(parts(size))


def spoken(greeting: bytes) -> Any:
    """A server that speaks first and then echoes."""

    def serve(end: socket.socket, _: Json) -> None:
        end.sendall(greeting)
        echo(end, _)

    return serve


def echo(end: socket.socket, _: Json) -> None:
    while data := end.recv(65536):
        end.sendall(data)


def digest(end: socket.socket, _: Json) -> None:
    """Replies only when the client has shut down its side."""
    hashed, size = hashlib.sha256(), 0
    while data := end.recv(1 << 18):
        hashed.update(data)
        size += len(data)
    end.sendall(f"{size} {hashed.hexdigest()}\n".encode())


def download(end: socket.socket, _: Json) -> None:
    """Reads a number up to the end of a line, and sends so many bytes."""
    for part in parts(int(end.makefile("rb").readline())):
        end.sendall(part)


def reset(end: socket.socket, _: Json) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset_later(end: socket.socket, _: Json) -> None:
    end.recv(1)
    end.sendall(b"some")
    reset(end, _)


def hold(end: socket.socket, _: Json) -> None:
    """Never speaks. Ends when the client does."""
    while end.recv(65536):
        pass


def deaf(end: socket.socket, _: Json) -> None:
    """Never reads: the buffers of the client fill up."""
    time.sleep(600)


class Http:
    """HTTP/1.1 with keep-alive, unless the client asks to close. "/bytes/N" is N bytes; "/files/..." are files, and "/git/..." are the
    repositories among them. "/events" is a stream of two events, of which the second one waits for a request of "/continue". Any other
    path replies with the request. If a directory of the files has the name of the host, that host shows this directory instead.

    keeps: it keeps the connection even if the client asks to close."""

    def __init__(self, files: Path, keeps: bool = False) -> None:
        self.files, self.keeps = files, keeps
        self.proceed = threading.Event()

    def __call__(self, end: socket.socket, about: Json) -> None:
        with end.makefile("rb") as file:
            while line := file.readline().decode("latin-1"):
                fields = {}
                while (field := file.readline().decode("latin-1").strip()):
                    name, _, value = field.partition(":")
                    fields[name.lower()] = value.strip()
                body = self._body(file, fields)
                method, target, _ = [*line.split(), "", "", ""][:3]
                log("http", host=fields.get("host"), method=method, target=target, **about)
                if repositories := self._repositories(fields, target):
                    status, head, data = netlab_git.backend(repositories, method, target, fields, body)
                    end.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\n".encode() + head + b"\r\n\r\n" + data)
                    continue
                closes = fields.get("connection", "").lower() == "close" and not self.keeps
                self._reply(end, method, target, {**about, "host": fields.get("host"), "method": method,
                            "target": target, "body": hashlib.sha256(body).hexdigest(), "size": len(body)}, closes)
                if closes:
                    return

    def _repositories(self, fields: Json, target: str) -> Path | None:
        """The directory of the repositories, if the request is for one."""
        site = self.files / str(fields.get("host"))
        return self.files if target.startswith("/git/") else site if ".git/" in target and site.is_dir() else None

    def _file(self, host: str | None, path: str) -> Path | None:
        """The file or directory that the request is for. It may not exist."""
        site = self.files / str(host)
        return self.files / path[len("/files/") :] if path.startswith("/files/") else site / path[1:] if site.is_dir() else None

    @staticmethod
    def _body(file: Any, fields: Json) -> bytes:
        if fields.get("transfer-encoding") != "chunked":
            return bytes(file.read(int(fields.get("content-length", 0))))
        parts = []
        while size := int(file.readline(), 16):
            parts.append(file.read(size))
            file.readline()
        file.readline()
        return b"".join(parts)

    def _reply(self, end: socket.socket, method: str, target: str, about: Json, closes: bool) -> None:
        status, data = "200 OK", (json.dumps(about) + "\n").encode()
        path = target.partition("?")[0]
        if path == "/events":
            return self._send_events(end)
        if path == "/continue":
            self.proceed.set()
        if path.startswith("/bytes/"):
            data = pattern(int(path.rpartition("/")[2]))
        elif file := self._file(about["host"], path):
            index = "".join(f'<a href="{p.name}">{p.name}</a>\n' for p in file.iterdir()).encode() if file.is_dir() else b""
            status = status if file.exists() else "404 Not Found"
            data = file.read_bytes() if file.is_file() else index
        kind = "application/octet-stream" if path.startswith("/bytes/") else \
            "text/html" if path.endswith("/") and path != "/" else "application/json"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
        head += "Connection: close\r\n\r\n" if closes else "\r\n"
        end.sendall(head.encode() + (b"" if method == "HEAD" else data))


    def _send_events(self, end: socket.socket) -> None:
        self.proceed.clear()
        end.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
        self.proceed.wait(60)
        end.sendall(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")


class Proxy:
    """An HTTP proxy that only knows CONNECT. It resolves names like the rest of the network."""

    def __init__(self, login: str = "") -> None:
        self.login = login

    def __call__(self, end: socket.socket, about: Json) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = end.recv(1)
            if not byte:
                return
            head += byte
        (method, target, _), *fields = [line.split(" ", 2) for line in head.decode("latin-1").split("\r\n")[:-2]]
        given = {name.lower(): " ".join(rest) for name, *rest in fields}
        log("proxy", method=method, target=target, login=given.get("proxy-authorization:"), **about)
        if self.login and given.get("proxy-authorization:") != "Basic " + base64.b64encode(self.login.encode()).decode():
            end.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        host, _, port = target.rpartition(":")
        try:
            server = socket.create_connection((host.strip("[]"), int(port)), timeout=10)
        except OSError:
            end.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        with server:
            server.settimeout(None)
            end.sendall(b"HTTP/1.0 200 OK\r\nVia: netlab\r\n\r\n")
            back = threading.Thread(target=self._copy, args=(server, end), daemon=True)
            back.start()
            self._copy(end, server)
            back.join()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Tls:
    """Another server, behind TLS. The certificate has all names of the lab, so only the client checks the name."""

    def __init__(self, directory: Path, serve: Any) -> None:
        self.directory, self.serve = directory, serve

    def __call__(self, end: socket.socket, about: Json) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.directory / "ca.pem", self.directory / "key.pem")
        asked: list[str | None] = []
        context.sni_callback = lambda _, name, __: asked.append(name)
        with context.wrap_socket(end, server_side=True) as wrapped:
            about["sni"] = asked[0] if asked else None
            log("tls", **about)
            self.serve(wrapped, about)


class Listeners:
    """Every server at every address. An address or port that is not here refuses."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()

    def add(self, address: str, port: int, serve: Any) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family)
        if family == socket.AF_INET6:
            # Addresses of a local route do not count as the host's own.
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        sock.bind((address, port))
        sock.listen(4096)
        self.selector.register(sock, selectors.EVENT_READ, (address, port, serve))

    def serve(self) -> None:
        while True:
            for key, _ in self.selector.select():
                end, peer = key.fileobj.accept()  # type: ignore[union-attr]
                threading.Thread(target=self._one, args=(end, peer, *key.data), daemon=True).start()

    @staticmethod
    def _one(end: socket.socket, peer: Any, address: str, port: int, serve: Any) -> None:
        about = {"address": address, "port": port, "peer": peer[0]}
        log("tcp", **about)
        with end:
            try:
                serve(end, about)
            except (OSError, ValueError):
                log("broken", **about)


def servers(directory: Path) -> dict[str, Any]:
    """The servers by the names of netlab.SERVERS."""
    http = Http(directory / "files")
    return {
        "http": http, "http-keeps": Http(directory / "files", keeps=True), "https": Tls(directory, http), "tls-echo": Tls(directory, echo),
        "smtp": spoken(b"220 mail.example.org ESMTP\r\n"), "ssh": spoken(b"SSH-2.0-netlab\r\n"),
        "mysql": spoken(b"\x4a\0\0\0\x0a8.0.36\0"), "echo": echo, "digest": digest, "download": download,
        "proxy": Proxy(), "proxy-login": Proxy("agent:p@ss:word"),
        "reset": reset, "reset-later": reset_later, "hold": hold, "deaf": deaf,
    }


def udp_echo(address: str, port: int) -> None:
    """Its log shows that a datagram has left a sandbox."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    if ":" in address:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    sock.bind((address, port))

    def serve() -> None:
        while True:
            data, peer = sock.recvfrom(65536)
            log("udp", address=address, port=port, peer=peer[0])
            sock.sendto(data, peer)

    threading.Thread(target=serve, daemon=True).start()


# --- servers that are programs ---


# An option of setpriv(1). The kernel forgets the signal if the user changes afterwards.
ENDS_WITH_PARENT = ("--pdeathsig", "TERM")


class Programs:
    """Programs that serve until the network ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started = list[subprocess.Popen[bytes]]()

    def serve(self, argv: list[str], addresses: list[str], port: int) -> str:
        """Starts a program, and waits until it listens at one of the addresses. Returns its output if it does not."""
        log_path = self.directory / f"{len(self.started)}.log"
        # The signal ends the program even if the suite is killed.
        words = argv if argv[0] == "setpriv" else ["setpriv", *ENDS_WITH_PARENT, "--", *argv]
        with log_path.open("wb") as output:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.directory)
        self.started.append(process)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if any(listens(address, port) for address in addresses):
                return ""
            time.sleep(0.02)
        return f"does not listen at port {port}: {log_path.read_text(errors='replace')}"

    def stop(self) -> None:
        for process in self.started:
            process.terminate()
        for process in self.started:
            process.wait()


def listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        return False
    return True


# --- the process ---


def start(settings: Json) -> netlab_dns.Zone:
    directory = Path(settings["directory"])
    enter_namespaces(settings["own_user"])
    cover(directory, settings["files"])
    set_up_network(settings)
    six = os.path.exists("/proc/net/if_inet6")
    zone = netlab_dns.Zone(settings["zone"])
    dns, listeners = netlab_dns.Server(zone, log), Listeners()
    for address in settings["resolvers"]:
        dns.serve(address)
    named = servers(directory)
    for address in (a for a in settings["hosts"] if six or ":" not in a):
        for port, name in settings["servers"].items():
            listeners.add(address, int(port), named[name])
        udp_echo(address, 443)
    threading.Thread(target=listeners.serve, daemon=True).start()
    return zone


def main() -> None:
    settings = json.loads(sys.stdin.readline())
    directory = Path(settings["directory"])
    certificate = make_certificate(directory, settings["certificate"])
    zone = start(settings)
    if certificate.wait() != 0:
        sys.exit("openssl cannot make a certificate")
    (directory / "ca.pem").chmod(0o644)
    programs = Programs(directory)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "log":
            print(json.dumps(log.take()), flush=True)
        elif command["do"] == "name":
            zone.turns.clear()
            zone.entries[command["name"]] = command["entry"]
            print("{}", flush=True)
        elif command["do"] == "trust":
            trust(directory)
            print("{}", flush=True)
        elif command["do"] == "serve":
            failure = programs.serve(command["argv"], command["addresses"], command["port"])
            print(json.dumps({"failure": failure}), flush=True)
        elif command["do"] == "stop":
            programs.stop()
            print("{}", flush=True)


if __name__ == "__main__":
    main()
