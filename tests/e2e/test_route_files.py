# SPDX-License-Identifier: Apache-2.0
"""Routes for clients that read settings from files, or that send a user and password: git, npm, pip and others."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.sandbox import Holt, Result
from lib.sessions import Sessions
from lib.tools import needs
from lib.upstream import KEY

pytestmark = needs("git", "python3", "curl")

ENV = {"ACME_KEY": KEY}
LOGIN = "Basic " + base64.b64encode(f"agent:{KEY}".encode()).decode()

Route = dict[str, Any]
Run = Callable[..., Result]


class Registry(ThreadingHTTPServer):
    """Serves git, npm and pip to clients that know the credential."""

    daemon_threads = True

    def __init__(self, place: Path) -> None:
        super().__init__(("127.0.0.1", 0), Pages)
        self.place = place
        self.seen: list[tuple[str, str, str | None]] = []
        self.pages: dict[str, tuple[str, bytes]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def publish_npm(self, name: str) -> None:
        """A package whose tarball has an absolute URL, as the public registry writes it."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for path, text in (("package.json", json.dumps({"name": name, "version": "1.0.0"})), ("index.js", "module.exports = 'from npm'")):
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
        tarball = f"/{name}/-/{name}-1.0.0.tgz"
        version = {"name": name, "version": "1.0.0", "dist": {"tarball": f"https://registry.npmjs.org{tarball}"}}
        document = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        self.pages[f"/{name}"] = ("application/json", json.dumps(document).encode())
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
                "similar": f"{self.server.url}1/base/here", "prefix": "/basement/here", "double": "//other.example/here",
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


@pytest.fixture
def registry(place: Path) -> Iterator[Registry]:
    with Registry(place) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def policy(registry: Registry, place: Path, identity: Identity) -> Callable[..., Path]:
    def make(**route: Any) -> Path:
        path = place / "policy.json"
        whole = {"name": "acme", "upstream": registry.url, "header": {"authorization": "Bearer {env:ACME_KEY}"}, **route}
        path.write_text(json.dumps({"holt": 1, "bridge": {"routes": [whole]}}))
        return identity.own(path)

    return make


@pytest.fixture
def run(holt: Holt, policy: Callable[..., Path]) -> Run:
    return lambda script, *options, **route: holt.sh(script, "--policy", policy(**route), *options, env=ENV)


# --- files ---


@pytest.mark.identities("user", "root", "nested")
def test_files_of_a_route(run: Run) -> None:
    files = {"/etc/acme.conf": "url={url}\nat={address}\ntoken={token}\n{ 1 }", "/etc/acme/deep/a.ini": "é", "/etc/gitconfig": "[acme]\n\turl = {url}\n"}
    result = run("cat /etc/acme.conf; cat /etc/acme/deep/a.ini; git config acme.url; git config safe.directory; "
                 "echo x >/etc/acme.conf; rm /etc/acme/deep/a.ini; stat -c '%a %U' /etc/acme.conf /etc/acme", files=files)
    token = result.out.split("token=")[1].split("\n")[0]

    assert result.out == (f"url=http://127.0.0.1:8474/acme\nat=127.0.0.1:8474\ntoken={token}\n{{ 1 }}é"
                          "http://127.0.0.1:8474/acme\n*\n644 root\n755 root\n".replace("root", result.out.split()[-1])), result
    assert len(token) >= 32 and result.err.count("Read-only file system") == 2, result


def test_a_file_of_a_route_replaces_the_hosts(run: Run) -> None:
    """bash.bashrc is one of the host's entries that --etc all shows."""
    script = "cat /etc/bash.bashrc"
    assert run(script, "--etc", "all", files={"/etc/bash.bashrc": "mine"}).out == "mine"
    assert run(script, "--ro", "/etc/hostname:/etc/bash.bashrc", files={"/etc/bash.bashrc": "mine"}).out == Path("/etc/hostname").read_text()


@pytest.mark.parametrize("path, why", (
    ("/etc/passwd", "holt writes this file itself"),
    ("/etc/ssl/openssl.cnf", "every sandbox has the host's entry of /etc there"),
    ("/etc/../tmp/x", "is not the path of a file below /etc"),
    ("/etc/", "is not the path of a file below /etc"),
    ("/tmp/x", "is not the path of a file below /etc"),
    ("/etc/a//b", "is not the path of a file below /etc"),
))
def test_a_path_that_no_route_may_write(run: Run, path: str, why: str) -> None:
    assert why in run("true", files={path: ""}).refusal()


def test_two_files_of_one_name(run: Run) -> None:
    assert "another file of holt has this path, or one above or below it" in run("true", files={"/etc/a": "", "/etc/a/b": ""}).refusal()
    assert "this one is unknown; write {url}, {token} or {address}" in run("true", files={"/etc/a": "{env:HOME}"}).refusal()
    assert "/etc/gitconfig: the lines for this file are too long" in run("true", files={"/etc/gitconfig": "#" * 9000}).refusal()


@pytest.mark.identities("user", "root")
def test_files_in_a_session_have_its_new_token(sessions: Sessions, policy: Callable[..., Path], registry: Registry) -> None:
    registry.pages["/hello"] = ("text/plain", b"hello")
    document = policy(files={"/etc/curl.conf": 'header = "x-any: {token}"\nurl = "{url}/hello"\n'})
    sessions.create("w", "--policy", document)
    tokens = set()
    for _ in range(2):
        out = sessions(["exec", "w", "--", "sh", "-c", "curl -sS -K /etc/curl.conf; cat /etc/curl.conf"], env=ENV).ok().out
        assert out.startswith("hello"), out
        tokens.add(out)
        sessions(["stop", "w"]).ok()
    assert len(tokens) == 2


# --- a user and a password ---


def test_basic_authentication(run: Run, registry: Registry) -> None:
    registry.pages["/echo"] = ("text/plain", f"<{KEY}> <{LOGIN[6:]}> <agent:{KEY}>".encode())
    result = run('printf %s "$T" >t; curl -sS -u "any:$T" $U/echo; curl -sS "http://x:$T@$A/acme/echo"; curl -sS --anyauth -u "$T:" $U/echo',
                 header={"authorization": {"basic": "agent", "env": "ACME_KEY"}}, env={"U": "{url}", "T": "{token}", "A": "{address}"})

    assert result.out.count("*" * len(KEY)) == 9 and len(result.out) == 3 * len(registry.pages["/echo"][1]), result
    assert KEY not in result.out and base64.b64encode(KEY.encode()).decode().rstrip("=") not in result.out
    assert {seen[2] for seen in registry.seen} == {LOGIN}


@pytest.mark.parametrize("value, why", (
    ({"basic": "a:b", "env": "ACME_KEY"}, 'a user has no ":"'),
    ({"basic": "a", "prefix": "b", "env": "ACME_KEY"}, "exclude each other"),
    ({"basic": "a"}, 'an object needs one of "env", "file" and "command"'),
    ({"basic": 1, "env": "ACME_KEY"}, "expected a string"),
))
def test_a_wrong_user(run: Run, value: Any, why: str) -> None:
    assert why in run("true", header={"authorization": value}).refusal()


# --- redirects ---


@pytest.mark.parametrize("kind, location", (
    ("absolute", "/acme/here"), ("path", "/acme/here?x=1"), ("above", "/here"), ("host", "https://other.example/base/here"),
    ("similar", "{url}1/base/here"), ("prefix", "/basement/here"), ("double", "//other.example/here"),
))
def test_a_redirect_within_the_upstream_leads_to_the_route(run: Run, registry: Registry, kind: str, location: str) -> None:
    """A target outside the path of the upstream's URL stays as it is."""
    registry.pages["/base/here"] = ("text/plain", b"arrived")
    result = run(f'curl -sS -i -H "authorization: Bearer $T" $U/moved/{kind}; curl -sS -L -H "authorization: Bearer $T" $U/moved/path',
                 upstream=f"{registry.url}/base", env={"U": "{url}", "T": "{token}"})

    assert f"location: {location.format(url=registry.url)}\r\n" in result.out.replace("Location", "location"), result
    assert result.out.endswith("arrived")


# --- clients ---

GIT = {
    "header": {"authorization": {"basic": "agent", "env": "ACME_KEY"}},
    "files": {"/etc/gitconfig": '[url "{url}/"]\n\tinsteadOf = https://git.example/\n[http "{url}/"]\n\textraHeader = "authorization: Bearer {token}"\n'},
}


def test_git(run: Run, registry: Registry) -> None:
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", registry.place / "project.git"], check=True)
    result = run("""
        git clone -q https://git.example/project.git work && cd work && git checkout -q -b main && echo one >file && git add file &&
        git -c user.name=a -c user.email=a@b commit -qm one && git push -q origin main && cd .. && rm -rf work &&
        git clone -q https://git.example/project.git again && cat again/file && git -C again config remote.origin.url
    """, **{**GIT, "upstream": f"{registry.url}/git"}).ok()

    assert result.out == "one\nhttps://git.example/project.git\n", result
    assert {seen[2] for seen in registry.seen} == {LOGIN}


@needs("npm")
def test_npm(run: Run, registry: Registry) -> None:
    registry.publish_npm("acme-left-pad")
    provider = json.loads((Path(__file__).parents[2] / "policy/routes/providers/npm.json").read_text())
    files = {path: text.replace("/npm/", "/acme/") for path, text in provider["files"].items()}
    result = run("npm install --no-audit --no-fund --loglevel=error acme-left-pad && node -p 'require(\"acme-left-pad\")'", files=files, env=provider["env"])

    assert result.ok().out.endswith("from npm\n"), result
    assert {seen[2] for seen in registry.seen} == {f"Bearer {KEY}"}


def test_pip(run: Run, registry: Registry) -> None:
    registry.publish_wheel("acmelib")
    files = {"/etc/pip.conf": "[global]\nindex-url = http://any:{token}@{address}/acme/simple/\n"}
    result = run("/usr/bin/python3 -m venv v && v/bin/pip --disable-pip-version-check install -q acmelib && v/bin/python -c 'import acmelib; print(acmelib.text)'",
                 header={"authorization": {"basic": "agent", "env": "ACME_KEY"}}, files=files)

    assert result.ok().out == "from pip\n", result
    assert {seen[2] for seen in registry.seen} == {LOGIN}
