# SPDX-License-Identifier: Apache-2.0
"""A registry on the host's loopback, to which a route leads. It serves git, npm and pip to clients that know the credential."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lib.upstream import KEY, serving

LOGIN = "Basic " + base64.b64encode(f"agent:{KEY}".encode()).decode()


class Registry(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, place: Path) -> None:
        super().__init__(("127.0.0.1", 0), Pages)
        self.place = place
        self.seen: list[tuple[str, str, str | None]] = []
        self.pages: dict[str, tuple[str, bytes]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def publish_npm(self, name: str, registry: str = "https://registry.npmjs.org") -> None:
        """A package whose tarball has an absolute URL, as the registry writes it."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for path, text in (("package.json", json.dumps({"name": name, "version": "1.0.0"})), ("index.js", "module.exports = 'from npm'")):
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
        tarball = f"/{name}/-/{name}-1.0.0.tgz"
        version = {"name": name, "version": "1.0.0", "dist": {"tarball": f"{registry}{tarball}"}}
        document = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        self.pages["/" + name.replace("/", "%2f")] = ("application/json", json.dumps(document).encode())
        self.pages[tarball] = ("application/octet-stream", packed.getvalue())

    def publish_wheel(self, name: str) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as wheel:
            info = f"{name}-1.0.dist-info"
            wheel.writestr(f"{name}.py", "text = 'from pip'\n")
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
        file = f"{name}-1.0-py3-none-any.whl"
        self.pages[f"/simple/{name}/"] = ("text/html", f'<a href="../../files/{file}">{file}</a>'.encode())
        self.pages[f"/files/{file}"] = ("application/octet-stream", packed.getvalue())


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Registry

    def log_message(self, *args: object) -> None:
        pass

    def send(self, status: int, body: bytes, headers: "dict[str, str] | None" = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def serve(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        self.server.seen.append((self.command, self.path, self.headers.get("authorization")))
        if self.headers.get("authorization") not in (LOGIN, f"Bearer {KEY}"):
            self.send(401, b"who are you?")
        elif path.startswith("/git/"):
            self.serve_git(path.removeprefix("/git"), query, body)
        elif path in self.server.pages:
            kind, page = self.server.pages[path]
            self.send(200, page, {"content-type": kind})
        elif path.startswith("/base/moved/"):
            self.send(301, b"", {"location": {
                "absolute": f"{self.server.url}/base/here", "path": "/base/here?x=1", "above": "/here", "host": "https://other.example/base/here",
                "similar": f"{self.server.url}@other.example/base/here", "prefix": "/basement/here", "double": "//other.example/here",
            }[path.removeprefix("/base/moved/")]})
        else:
            self.send(404, b"no such page")

    do_GET = do_POST = do_HEAD = serve

    def serve_git(self, path: str, query: str, body: bytes) -> None:
        env = {"GIT_PROJECT_ROOT": str(self.server.place), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
               "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("content-type", ""), "REMOTE_USER": "agent",
               "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""), "PATH": "/usr/bin:/bin",
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        done = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE, check=True)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send(int(headers.pop("Status", "200").split()[0]), rest, headers)


@contextlib.contextmanager
def registry(place: Path) -> Iterator[Registry]:
    """place has the repositories of git."""
    with serving(Registry(place)) as server:
        yield server
