# SPDX-License-Identifier: Apache-2.0
"""Attacks on routes: trees, programs and services that try to get more than a route gives."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.rootfs import make_rootfs
from lib.sandbox import Holt
from lib.sessions import Sessions
from lib.tools import needs
from lib.upstream import KEY, Upstream, read_head, upstream

pytestmark = needs("curl", "python3")

ENV = {"ACME_KEY": KEY}
HOST = "api.acme.example"
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def policy(place: Path, identity: Identity) -> Callable[..., Path]:
    """Makes a policy with routes: the first one is "acme", the second one "other"."""

    def make(*urls: str, **route: Any) -> Path:
        path = place / "policy.json"
        routes = [{"name": name, "upstream": url, "header": {"authorization": "Bearer {env:ACME_KEY}"},
                   "env": {"T": "{token}", f"{name.upper()}_URL": "{url}"}} for name, url in zip(("acme", "other"), urls)]
        routes[0].update(route)
        path.write_text(json.dumps({"holt": 1, "bridge": {"routes": routes}}))
        return identity.own(path)

    return make


# --- trees of --rootfs ---

@pytest.fixture
def tree(place: Path, identity: Identity) -> Path:
    """A system tree in which the certificates of holt-gateway lead to a file of the host."""
    secret = identity.own(place / "secret") if (place / "secret").write_text("the host's secret\n") else None
    made = make_rootfs(place / "tree", identity)
    for directory in ("etc/holt", "etc/ssl/certs"):
        (made / directory).mkdir(parents=True)
    for name in ("ca.crt", "ca-bundle.crt", "cacerts"):
        (made / "etc/holt" / name).symlink_to(secret or "")
    (made / "etc/ssl/certs/ca-certificates.crt").write_text("old\n")
    return made


@pytest.mark.identities("user", "root", "nested")
@needs("busybox", "openssl")
@pytest.mark.parametrize("etc", (["--etc", "all"], ["--etc", "holt"], []))
def test_a_tree_cannot_show_a_file_of_the_host(etc: list[str], holt: Holt, policy: Callable[..., Path], tree: Path) -> None:
    result = holt(["run", "--rootfs", tree, *etc, "--policy", policy(NOWHERE, terminate_tls=[HOST]), "--", "sh", "-c",
                   "cat /etc/ssl/certs/ca-certificates.crt /etc/holt/*"], env=ENV)
    assert "the host's secret" not in result.out, "the sandbox shows a file of the host"
    assert "BEGIN CERTIFICATE" in result.ok().out


@needs("busybox", "openssl")
@pytest.mark.parametrize("kind", ("directory", "loop", "dangling", "outside", "fifo"))
def test_a_tree_with_odd_certificates(kind: str, holt: Holt, policy: Callable[..., Path], tree: Path, place: Path) -> None:
    path = tree / "etc/ssl/certs/ca-certificates.crt"
    path.unlink()
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"loop": path.name, "dangling": "/nothing", "outside": place / "secret"}[kind])
    result = holt(["run", "--rootfs", tree, "--policy", policy(NOWHERE, terminate_tls=[HOST]), "--", "sh", "-c", "cat /etc/holt/ca.crt"], env=ENV)
    assert "BEGIN CERTIFICATE" in result.ok().out
    assert (place / "secret").read_text() == "the host's secret\n"


# --- programs ---

HALF = """
import socket, time
for _ in range(20):
    s = socket.create_connection(("api.acme.example", 443)); s.sendall(b"\\x16\\x03\\x01\\x02\\x00\\x01"); kept = [s, *globals().get("kept", [])]
print("open", flush=True)
time.sleep(60)
"""


def gateways(pid: int) -> set[int]:
    """The processes of holt-gateway below a process."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        parents[int(path.parent.name)] = (name, int(rest.split()[1]))

    def is_below(child: int) -> bool:
        return child == pid or (child in parents and is_below(parents[child][1]))

    return {child for child, (name, _) in parents.items() if name == "holt-gateway" and is_below(child)}


def ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@needs("openssl")
def test_half_handshakes_keep_no_processor_busy(holt: Holt, policy: Callable[..., Path]) -> None:
    with holt.start(["run", "--policy", policy(NOWHERE, terminate_tls=[HOST]), "--", "python3", "-c", HALF], env=ENV) as running:
        assert running.readline() == "open"
        found = gateways(running.pid)
        before = sum(map(ticks, found))
        time.sleep(1)
        spent = sum(map(ticks, found)) - before
        assert found and spent < 10, f"holt-gateway spins: {spent}"
        running.kill()


# --- requests that a service could read in another way than holt ---

@pytest.fixture
def service() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


@pytest.mark.parametrize("path", ("..;/admin", "..;x=1/admin", "%2e%2e;/admin", "%252e%252e/admin", "%25252e./admin", "a%252f..%252f..%252fadmin", ".;/admin"))
def test_paths_that_lead_out(path: str, holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    result = holt.sh(f'curl -sS --path-as-is -i -m 10 -H "x-t: $T" "$ACME_URL/v1/{path}"; true', "--policy", policy(service.url, allow=["/v1/*"]), env=ENV)
    assert "the path is ambiguous" in result.out and not service.seen, result


def test_harmless_paths(holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    paths = ("a;b", "a%20b", "100%25", "%25zz", "..a", "a..;b", ".well-known/x", "a%2Fb", "%C3%A4")
    for path in paths:
        holt.sh(f'curl -sS --path-as-is -f -m 10 -H "x-t: $T" "$ACME_URL/v1/{path}?a=b;c"', "--policy", policy(service.url, allow=["/v1/*"]), env=ENV).ok()
    assert [seen["path"] for seen in service.seen] == [f"/v1/{path}?a=b;c" for path in paths]


@pytest.mark.parametrize("query", ("key=own", "KEY=own", "k%65y=own", "%6B%65%79=own", "a=1;key=own", "a=1%3bkey=own", ";key", "%20key=own", "+key=own", "key;a=own"))
def test_a_parameter_of_the_route_cannot_be_replaced(query: str, holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    document = policy(service.url, header={}, query={"key": "{env:ACME_KEY}"})
    holt.sh(f'curl -sS -f -m 10 -H "x-t: $T" "$ACME_URL/x?{query}&monkey=2"', "--policy", document, env=ENV).ok()
    assert [seen["path"] for seen in service.seen] == [f"/x?monkey=2&key={KEY}"]


@pytest.mark.parametrize("header", ("x_api_key: own", "X-Api_Key: own", "x-api-key: own", "content_length: 9", "transfer_encoding: chunked"))
def test_a_header_of_the_route_cannot_be_replaced(header: str, holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    document = policy(service.url, header={"x-api-key": "{env:ACME_KEY}"})
    holt.sh(f'curl -sS -f -m 10 -H "x-t: $T" -H "{header}" $ACME_URL/x', "--policy", document, env=ENV).ok()
    assert {name for name in service.seen[0]["headers"]} <= {"host", "x-api-key", "accept", "accept-encoding", "user-agent"}
    assert service.seen[0]["headers"]["x-api-key"] == KEY


@pytest.mark.parametrize("coding", ("identity", "gzip, chunked", "xchunked", "chunked, chunked"))
def test_other_codings_of_a_request(coding: str, holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    """The body would end with the connection, so the request would never be complete."""
    result = holt.sh(f'curl -sS -m 10 -i -H "x-t: $T" -H "transfer-encoding: {coding}" -H "content-length: 3" --data-raw abc $ACME_URL/x', "--policy", policy(service.url), env=ENV)
    assert "HTTP/1.1 501" in result.ok().out and not service.seen


# --- services ---

@pytest.mark.parametrize("headers", (("Content-Length: 3", "Content-Length: 5"), ("Transfer-Encoding: chunked", "Transfer-Encoding: gzip"),
                                     ("Transfer-Encoding: chunked", "transfer-encoding: chunked"), ("Content-Length: 3", "content-length: 3")))
def test_two_ends_of_a_body(headers: "tuple[str, ...]", holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    (holt.cwd / "ends.py").write_text(f"""
import os, socket
s = socket.create_connection(("127.0.0.1", 8474), 20)
lines = ["POST /acme/v1/x HTTP/1.1", "Host: x", "X-T: " + os.environ["T"], *{headers!r}]
s.sendall("\\r\\n".join(lines).encode() + b"\\r\\n\\r\\n3\\r\\nabc\\r\\n0\\r\\n\\r\\n")
print(s.recv(1000).decode().split()[1])
""")
    result = holt.sh("python3 ends.py", "--policy", policy(service.url), env=ENV).ok()
    assert result.out == "400\n" and not service.seen


Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Returns a function that starts a server, which sends the first answer and then the second one for ever. Returns its URL."""
    servers: "list[socket.socket]" = []
    threads: "list[threading.Thread]" = []

    def run(server: socket.socket, answer: bytes, again: bytes) -> None:
        while True:
            try:
                with server.accept()[0] as client:
                    client.settimeout(20)
                    read_head(client)
                    client.sendall(answer)
                    while again:
                        client.sendall(again)
            except OSError:
                if server.fileno() < 0:
                    return

    def start(answer: bytes, again: bytes = b"") -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        threads.append(threading.Thread(target=run, args=(server, answer, again), daemon=True))
        threads[-1].start()
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    for thread in threads:
        thread.join(5)


ENDLESS = {
    "trailers": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", b"a: " + b"b" * 1000 + b"\r\n"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"a: " + b"b" * 1000 + b"\r\n"),
    "header": (b"HTTP/1.1 200 OK\r\na: ", b"b" * 10000),
    "early": (b"", b"HTTP/1.1 103 Hints\r\na: " + b"b" * 1000 + b"\r\n\r\n"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_head(kind: str, holt: Holt, policy: Callable[..., Path], serve: Serve) -> None:
    result = holt.sh('curl -sS -m 15 -H "x-t: $T" $ACME_URL/x; echo " $?"', "--policy", policy(serve(*ENDLESS[kind])), env=ENV).ok()
    assert result.out.rstrip().endswith((" 18", " 0")), f"the transfer must end: {result}"
    assert result.report and [d["layer"] for d in result.report["denials"]] == ["route"]


HEADS = {
    "space": b"content-encoding : gzip\r\n",
    "folded": b"content-encoding: identity\r\n , gzip\r\n",
    "folded header": b"x: y\r\n content-encoding: gzip\r\n",
    "odd name": b"x y: z\r\n",
}


@pytest.mark.parametrize("kind", HEADS)
def test_a_malformed_head(kind: str, holt: Holt, policy: Callable[..., Path], serve: Serve) -> None:
    """A program could read another header than holt, and so decompress a credential."""
    answer = b"HTTP/1.1 200 OK\r\n" + HEADS[kind] + b"content-length: 2\r\n\r\nok"
    result = holt.sh('curl -sS -i -m 10 -H "x-t: $T" $ACME_URL/x', "--policy", policy(serve(answer)), env=ENV)
    assert "HTTP/1.1 502" in result.out, result


def test_a_length_beside_chunks(holt: Holt, policy: Callable[..., Path], serve: Serve) -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    assert holt.sh('curl -sS -m 10 -H "x-t: $T" $ACME_URL/x', "--policy", policy(serve(answer)), env=ENV).ok().out == "hello"


REDIRECTS = {
    "/other/x": "/acme/other/x",
    "../other/x": "/acme/other/x",
    "/../other/x": "/acme/other/x",
    "?other": "/acme/v1/x?other",
    "y#z": "/acme/v1/y#z",
    "{url}/../other/x": "/acme/other/x",
    "{url}/y?z": "/acme/y?z",
    "http://other.example/": "http://other.example/",
    "/%2e%2e/other/x": None,
    "/..\\other/x": None,
    "/\\other.example/x": None,
    "http://127.0.0.1:8474/other/x": None,
    "http://localhost:8474/other/x": None,
    "//127.1:8474/other/x": None,
}


@pytest.mark.parametrize("location", REDIRECTS)
def test_a_redirect_to_another_route(location: str, holt: Holt, policy: Callable[..., Path], serve: Serve, service: Upstream) -> None:
    """The program would send a request of the service's choice, with its token, to another service."""
    held: list[str] = []

    def answer(url: str) -> bytes:
        return f"HTTP/1.1 307 Go\r\nlocation: {location.replace('{url}', url)}\r\ncontent-length: 0\r\n\r\n".encode()

    with socket.create_server(("127.0.0.1", 0)) as free:
        held.append(f"http://127.0.0.1:{free.getsockname()[1]}")
    url = held[0] if "{url}" in location else ""
    server = threading.Thread(target=serve_once, args=(int(url.rpartition(":")[2]), answer(url)), daemon=True) if url else None
    if server:
        server.start()
    result = holt.sh('curl -sS -i -m 10 -H "x-t: $T" $ACME_URL/v1/x; curl -sSL -m 5 -H "x-t: $T" -d x $ACME_URL/v1/x >/dev/null 2>&1; true',
                     "--policy", policy(url or serve(answer("")), service.url), env=ENV)
    found = re.search(r"(?im)^location: (.*)\r$", result.out)
    assert (found.group(1) if found else None) == REDIRECTS[location], result
    assert not service.seen, "the other route was used"


OTHER = "api.other.example"
TLS_REDIRECTS = {
    f"https://{OTHER}/x": False,
    f"https://{OTHER.upper()}.:443/x": False,
    "https://api%2Eother.example/x": False,
    "https://api\u3002other.example/x": False,
    f"https://user@{OTHER}/x": False,
    f"https://{HOST}/x": True,
    "https://elsewhere.example/x": True,
    f"https://{OTHER}:8443/x": True,
}


@needs("openssl")
@pytest.mark.parametrize("location", TLS_REDIRECTS)
def test_a_redirect_to_the_tls_host_of_another_route(location: str, holt: Holt, policy: Callable[..., Path], serve: Serve, service: Upstream) -> None:
    """It is another way to the other route, with the credential of that route."""
    answer = f"HTTP/1.1 307 Go\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()
    path = policy(serve(answer), service.url, terminate_tls=[HOST])
    document = json.loads(path.read_text())
    document["bridge"]["routes"][1]["terminate_tls"] = [OTHER]
    path.write_text(json.dumps(document))
    result = holt.sh(f'curl -sS -i -m 10 -H "x-t: $T" $ACME_URL/x; curl -sS -i -m 10 -H "x-t: $T" https://{HOST}/x; '
                     'curl -sSL -m 5 -H "x-t: $T" -d x $ACME_URL/x >/dev/null 2>&1; true', "--policy", path, env=ENV)
    assert result.out.count("HTTP/1.1 307" if TLS_REDIRECTS[location] else "HTTP/1.1 502") == 2, result
    assert not service.seen, "the other route was used"


COOKIES = {
    "k=v": "k=v; Path=/acme/a/",
    "k=v; Path=/": "k=v; Path=/acme/",
    "k=v; path=/v1": "k=v; Path=/acme/",
    "k=v;PATH=/v1/a; HttpOnly": "k=v; HttpOnly; Path=/acme/a",
    "k=v; Domain=acme.example; Path=/; SameSite=Lax": "k=v; SameSite=Lax; Path=/acme/",
    "k=v; Domain = 127.0.0.1 ;domain": "k=v; Path=/acme/a/",
    'k=v; Path="/v1/b"': "k=v; Path=/acme/b",
    "k=v; Path=/v1; Path=/other": None,
    "k=v; Path=/other": None,
    "k=v; Path=/v10": None,
    "k=v; Path": "k=v; Path=/acme/a/",
    "k=v; Path=relative": "k=v; Path=/acme/a/",
    "k=v; Path=/v1/../other": "k=v; Path=/acme/../other",
    "path=/other": "path=/other; Path=/acme/a/",
    "": "; Path=/acme/a/",
    ";": ";; Path=/acme/a/",
    "k=v" + ";" * 90000: "k=v" + ";" * 90000 + "; Path=/acme/a/",
}


@pytest.mark.parametrize("cookie", COOKIES, ids=lambda cookie: cookie[:50])
def test_a_cookie_is_only_for_its_route(cookie: str, holt: Holt, policy: Callable[..., Path], serve: Serve) -> None:
    answer = f"HTTP/1.1 200 OK\r\nset-cookie: {cookie}\r\nset-cookie2: a=b; path=/\r\ncontent-length: 0\r\n\r\n".encode()
    result = holt.sh('curl -sS -i -m 10 -H "x-t: $T" "$ACME_URL/a/x?b/c"', "--policy", policy(serve(answer) + "/v1"), env=ENV).ok()
    found = re.search(r"(?im)^set-cookie: (.*)\r$", result.out)
    assert (found.group(1) if found else None) == COOKIES[cookie] and "set-cookie2" not in result.out.lower()


JAR = """
import http.cookiejar, os, urllib.request
opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
for url in (os.environ["ACME_URL"] + "/v1/x", os.environ["ACME_URL"] + "/v1/y", os.environ["OTHER_URL"] + "/v1/x"):
    opener.open(urllib.request.Request(url, headers={"x-t": os.environ["T"]}))
"""


@pytest.mark.parametrize("client", ("curl", "python"))
def test_a_client_with_cookies(client: str, holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    """It sends them to the service that has set them, and to no other one."""
    service.cookie = "k=v; Domain=acme.example; Path=/"
    curl = " ".join(f'curl -sS -f -m 10 -c jar -b jar -H "x-t: $T" ${url};' for url in ("ACME_URL/v1/x", "ACME_URL/v1/y", "OTHER_URL/v1/x"))
    (holt.cwd / "jar.py").write_text(JAR)
    holt.sh(curl if client == "curl" else "python3 jar.py", "--policy", policy(service.url, service.url), env=ENV).ok()
    assert [seen["headers"].get("cookie") for seen in service.seen] == [None, "k=v", None]


def serve_once(port: int, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", port)) as server, server.accept()[0] as client:
        read_head(client)
        client.sendall(answer)


SECRET = "s/k+a real\"key?0123"
FORMS = {
    **{f"base64 behind {n}": base64.b64encode(b"x" * n + SECRET.encode() + b"y" * m) for n in range(4) for m in (0, 1, 2)},
    "base64url": base64.urlsafe_b64encode(b"??" + SECRET.encode()),
    "unpadded": base64.b64encode(SECRET.encode()).rstrip(b"="),
    "url": urllib.parse.quote(SECRET, safe="").encode(),
    "json": json.dumps(SECRET).replace("/", "\\/").encode(),
}


@pytest.mark.parametrize("basic", (False, True))
def test_forms_of_a_credential(basic: bool, holt: Holt, policy: Callable[..., Path], serve: Serve) -> None:
    """Services repeat a request in errors, in the form in which they got it or in which they write."""
    forms = {**FORMS, "login": base64.b64encode(f"me:{SECRET}".encode()).rstrip(b"=")}
    body = b"\n".join(forms.values())
    document = policy(serve(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)),
                      header={"authorization": {"env": "ACME_KEY", **({"basic": "me"} if basic else {})}})
    lines = holt.sh('curl -sS -m 10 -H "x-t: $T" $ACME_URL/x', "--policy", document, env={"ACME_KEY": SECRET}).ok().out.split("\n")
    for line, (name, form) in zip(lines, forms.items(), strict=True):
        assert line.count("*") >= len(SECRET) - 2, f"{name}: {form!r} became {line}"


@pytest.mark.parametrize("line", ("me:" + KEY, KEY + ": x", "x: me:" + KEY, "location:" + KEY))
def test_a_header_that_is_a_credential(line: str, holt: Holt, policy: Callable[..., Path], serve: Serve) -> None:
    """The asterisks also replace the colon of "me:KEY"."""
    answer = b"HTTP/1.1 200 OK\r\n%s\r\ncontent-length: 2\r\n\r\nok" % line.encode()
    document = policy(serve(answer), header={"authorization": {"env": "ACME_KEY", "basic": "location" if "location" in line else "me"}})
    result = holt.sh('for i in 1 2; do curl -sS -i -m 10 -H "x-t: $T" $ACME_URL/x; done', "--policy", document, env=ENV).ok()
    assert KEY not in result.out and result.out.count("HTTP/1.1 200 OK") == 2, result


# --- policies ---

@pytest.mark.parametrize("path", ("/etc/mtab", "/etc/mtab/x", "/etc/gitconfig/x", "/etc/hosts/x", "/etc/passwd/x", "/etc/passwd"))
def test_files_where_holt_has_its_own(path: str, holt: Holt, policy: Callable[..., Path]) -> None:
    assert f'files["{path}"]: holt writes this file itself' in holt.sh("true", "--policy", policy(NOWHERE, files={path: "x"}), env=ENV).refusal()


@needs("openssl")
def test_lines_without_an_end(holt: Holt, policy: Callable[..., Path], place: Path) -> None:
    """The next line would become a part of the last one, so a name would have another address."""
    path = policy(NOWHERE, NOWHERE, files={"/etc/hosts": "192.0.2.1 x", "/etc/gitconfig": "[a]\n\tb = c"})
    document = json.loads(path.read_text())
    document["bridge"]["routes"][1].update({"terminate_tls": [HOST], "files": {"/etc/gitconfig": "[d]\n\te = f"}})
    path.write_text(json.dumps(document))
    result = holt.sh("cat /etc/hosts /etc/gitconfig", "--policy", path, env=ENV).ok()
    assert "\n192.0.2.1 x\n127.84.74.1 " + HOST + "\n" in result.out and "\tb = c\n[d]\n\te = f\n" in result.out


def test_a_command_with_as_many_words_as_allowed(holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    command = ["sh", "-c", 'for last; do :; done; echo "$last"', *"w" * 60, "last-word"]
    holt.sh('curl -sS -f -m 10 -H "x-t: $T" $ACME_URL/x', "--policy", policy(service.url, header={"x-key": {"command": command}})).ok()
    assert service.seen[0]["headers"]["x-key"] == "last-word"


@pytest.mark.parametrize("name, value", (("bridge", {"routes": ["github"]}), ("bridge", {"routes": [{"name": "a", "upstream": NOWHERE, "files": {"/etc/x": "y"}}]}),
                                         ("bridge", {"routes": [{"name": "a", "upstream": NOWHERE, "terminate_tls": [HOST]}]})))
def test_a_file_of_the_project_adds_no_route(name: str, value: Any, holt: Holt) -> None:
    path = holt.cwd / ".holt.json"
    path.write_text(json.dumps({"holt": 1, name: value}))
    result = holt.sh("env | grep -i 8474; ls /etc/x /etc/holt; cat /etc/hosts; true", env={**ENV, "GITHUB_TOKEN": KEY})
    assert "8474" not in result.out and HOST not in result.out and "/etc/x" not in result.out, result


@pytest.mark.parametrize("tls", (False, True))
def test_requests_that_are_given_up_leave_no_trace(tls: bool, holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    """An agent gives up a slow request and tries again. The first one must not count as a running one until the service answers."""
    url = f"https://{HOST}" if tls else "$ACME_URL"
    document = policy(service.url, concurrent=2, terminate_tls=[HOST])
    result = holt.sh(f'for i in 1 2 3 4 5; do curl -sS -m 1 -H "x-t: $T" {url}/v1/slow; done 2>/dev/null; curl -sS -f -m 10 -H "x-t: $T" {url}/v1/x',
                     "--policy", document, env=ENV).ok()
    assert '"/v1/x"' in result.out and [seen["path"] for seen in service.seen].count("/v1/slow") == 5


def test_control_characters_hide_no_request(holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    program = """
import os, socket
for line in (b"GET /acme/a\\x01b", b"G\\x7fT /acme/x"):
    s = socket.create_connection(("127.0.0.1", 8474))
    s.sendall(line + b" HTTP/1.1\\r\\nhost: x\\r\\nx-t: " + os.environ["T"].encode() + b"\\r\\n\\r\\n"); s.recv(1000)
"""
    result = holt(["run", "--policy", policy(service.url), "--", "python3", "-c", program], env=ENV).ok()
    assert set(result.denials) == {"GET /a%01b of the route acme", "G%7FT /x of the route acme"} and not service.seen, result.report


@pytest.mark.identities("user", "root")
def test_a_request_sends_no_commands_to_the_terminal(holt: Holt, sessions: Sessions, policy: Callable[..., Path], service: Upstream) -> None:
    """Terminals obey U+009B as they obey ESC [, and U+202E changes the direction of the text after it."""
    program = r"""
import socket
for method, path in ((b"GET", b"/\xc2\x9b31m"), (b"\xc2\x9b31m", b"/"), (b"GET", b"/\xe2\x80\xae"), (b"GET", b"/\xff")):
    s = socket.create_connection(("127.0.0.1", 8474))
    s.sendall(method + b" /acme" + path + b" HTTP/1.1\r\nhost: x\r\n\r\n"); s.recv(1000)
raise SystemExit(1)
"""
    document = policy(service.url)
    sessions.create("w", "--policy", document)
    for result in (holt(["run", "--policy", document, "--", "python3", "-c", program], env=ENV),
                   sessions(["exec", "w", "--", "python3", "-c", program], env=ENV)):
        for what in ("GET /%C2%9B31m of", "%C2%9B31m / of", "GET /%E2%80%AE of", "GET /%FF of"):
            assert f"holt: answered {what} the route acme with 401" in result.err
        assert result.err.isascii() and "\x1b" not in result.err


LEAVE = """
import os, socket
token = os.environ["T"]
starts = {
    "upload": f"POST /acme/x HTTP/1.1\\r\\nHost: x\\r\\nX-T: {token}\\r\\nContent-Length: 100000\\r\\n\\r\\n" + "x" * 5000,
    "chunks": f"POST /acme/x HTTP/1.1\\r\\nHost: x\\r\\nX-T: {token}\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nabc",
    "head": "GET /acme/x HTTP/1.1\\r\\nHo",
    "line": "GET",
}
for start in starts.values():
    for _ in range(300):
        with socket.create_connection(("127.0.0.1", 8474), 10) as s:
            s.sendall(start.encode())
"""


def test_programs_that_go_away_within_a_request_leave_room(holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    """The last bytes and the end of the connection come together. More connections than holt-gateway takes at once must not stay."""
    (holt.cwd / "leave.py").write_text(LEAVE)
    result = holt.sh('python3 leave.py && curl -sS -f -m 20 -H "x-t: $T" $ACME_URL/v1/x', "--policy", policy(service.url), env=ENV).ok()
    assert '"/v1/x"' in result.out


CROWD = """
import os, socket, ssl, sys, time
kind = sys.argv[1]
token = os.environ["T"]
start = {"silent": b"", "line": b"GET", "head": b"GET /acme/x HTTP/1.1\\r\\nHo", "handshake": b"\\x16\\x03\\x01\\x02\\x00\\x01",
         "answered": f"GET /acme/v1/forbidden HTTP/1.1\\r\\nHost: x\\r\\nX-T: {token}\\r\\n\\r\\n".encode(),
         "upload": f"POST /NAME/v1/x HTTP/1.1\\r\\nHost: x\\r\\nX-T: {token}\\r\\nContent-Length: 9\\r\\n\\r\\nx".encode()}[kind]
tls = kind == "handshake"
where = ("api.acme.example", 443) if tls else ("127.0.0.1", 8474)
request = f"GET {'' if tls else '/acme'}/v1/%s HTTP/1.1\\r\\nHost: {where[0]}\\r\\nX-T: {token}\\r\\n\\r\\n"
def connect():
    s = socket.create_connection(where, 30)
    return ssl.create_default_context().wrap_socket(s, server_hostname=where[0]) if tls else s
def read(s, end):
    data = b""
    while end not in data:
        more = s.recv(65536)
        assert more, data
        data += more
slow = connect()
slow.sendall((request % "slow").encode())
crowd = []
for i in range(500):
    s = socket.socket()
    s.settimeout(30)
    s.connect(where)
    s.sendall(start.replace(b"NAME", b"r%d" % (i % 5)))
    if kind == "answered":
        s.recv(1024)
    crowd.append(s)
began = time.monotonic()
with connect() as s:
    s.sendall((request % "quick").encode())
    read(s, b"/v1/quick")
print(time.monotonic() - began)
with connect() as s:
    s.sendall((request % "go/on").encode())
    read(s, b"200 OK")
read(slow, b"late")
"""


@needs("openssl")
@pytest.mark.parametrize("kind", ("silent", "line", "head", "answered", "handshake", pytest.param("upload", marks=pytest.mark.slow)))
def test_connections_that_say_nothing_block_no_others(kind: str, holt: Holt, policy: Callable[..., Path], service: Upstream) -> None:
    """A request gets its response soon, and one that the service answers late is not dropped."""
    (holt.cwd / "crowd.py").write_text(CROWD)
    path = policy(service.url, terminate_tls=[HOST])
    document = json.loads(path.read_text())
    document["bridge"]["routes"] += [{"name": f"r{i}", "upstream": service.url, "concurrent": 64} for i in range(5)]
    path.write_text(json.dumps(document))
    result = holt.sh(f"ulimit -n 1000; python3 crowd.py {kind}", "--policy", path, env=ENV).ok()
    assert float(result.out) < 20, "the connections were dropped too late"
