# SPDX-License-Identifier: Apache-2.0
"""Requests and programs that try to use a route for another service, to pass its limits together, or to find its credential."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.leaks import descendants
from lib.routes import WITH_KEY, policy_maker
from lib.sandbox import Holt
from lib.sessions import Sessions, until
from lib.tools import needs
from lib.upstream import KEY, Upstream, upstream

pytestmark = needs("curl", "python3")

Policy = Callable[..., Path]


@pytest.fixture
def service() -> Iterator[Upstream]:
    with upstream() as server:
        yield server


@pytest.fixture
def policy(place: Path, identity: Identity, service: Upstream) -> Policy:
    return policy_maker(place, identity, service.url, allow=["GET /v1/*", "POST /v1/*"])


# Sends each head to holt-gateway, and prints the status of the response.
SEND = """
import json, os, socket, sys
for head in json.loads(sys.argv[1]):
    with socket.create_connection(os.environ["ACME_AT"].split(":")) as s:
        s.settimeout(10)
        start, _, rest = head.partition("\\r\\n")
        s.sendall(f"{start}\\r\\nX-Token: {os.environ['ACME_TOKEN']}\\r\\nConnection: close\\r\\n{rest}".encode("latin-1"))
        print((s.recv(4096) + b" - -").split()[1].decode())
"""


def statuses(holt: Holt, policy: Policy, *heads: str) -> "list[str]":
    return holt(["run", "--policy", policy(), "--", "python3", "-c", SEND, json.dumps(heads)], env=WITH_KEY).ok().out.split()


SMUGGLED = "GET /v2/secret HTTP/1.1\r\nHost: x\r\n\r\n"


def test_no_head_leads_to_another_service(holt: Holt, policy: Policy, service: Upstream) -> None:
    """The host comes from the route alone. A target with a host or without a route leads nowhere."""
    assert statuses(
        holt, policy,
        "GET http://evil.example/acme/v1/x HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://evil.example/v1/x HTTP/1.1\r\nHost: 127.0.0.1:8474\r\n\r\n",
        "GET /acme@evil.example/v1/x HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET //evil.example/acme/v1/x HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /%61cme/v1/x HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    ) == ["404"] * 7
    assert service.seen == []
    assert statuses(
        holt, policy,
        "GET /acme/v1/x HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "GET /acme/v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
    ) == ["200"] * 2
    assert {seen["headers"]["host"] for seen in service.seen} == {service.url.removeprefix("http://")}


def test_no_body_becomes_a_request(holt: Holt, policy: Policy, service: Upstream) -> None:
    """The service reads each request to the same end as holt-gateway. So a body cannot continue as a request that was not judged."""
    post = "POST /acme/v1/x HTTP/1.1\r\nHost: x\r\n"
    size = len(SMUGGLED)
    statuses(
        holt, policy,
        f"{post}Content-Length: 0\r\nContent-Length: {size}\r\n\r\n{SMUGGLED}",
        f"{post}Content-Length: {size}\r\nContent-Length: 0\r\n\r\n{SMUGGLED}",
        f"{post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}",
        f"{post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{SMUGGLED}",
        f"{post}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n{SMUGGLED}",
        f"{post}Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n{SMUGGLED}",
        f"{post}X: a\r\n\tb\r\nContent-Length: {size}\r\n\r\n{SMUGGLED}",
        f"{post}X: a\rContent-Length: {size}\r\n\r\n{SMUGGLED}",
        f"GET /acme/v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n{SMUGGLED}",
        f"GET /acme/v1/x HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n{SMUGGLED}",
    )
    assert service.seen and {seen["path"] for seen in service.seen} == {"/v1/x"}


def test_requests_at_once_do_not_pass_a_limit_together(holt: Holt, policy: Policy, service: Upstream) -> None:
    get = 'curl -s -m 30 -H "x-api-key: $ACME_TOKEN"'
    program = f"for i in $(seq 20); do {get} $ACME_URL/v1/x >/dev/null & done; wait"
    holt.sh(program, "--policy", policy(requests="5/1h"), env=WITH_KEY).ok()
    assert len(service.seen) == 5
    program = f"for i in $(seq 8); do {get} -f $ACME_URL/v1/big -o big$i & done; wait; cat big* | wc -c"  # -f: no refusals
    received = int(holt.sh(program, "--policy", policy(bytes="3MiB"), env=WITH_KEY).ok().out)
    assert 0 < received <= 3 << 20


@pytest.mark.parametrize("how", ("", "-H 'transfer-encoding: chunked'"))
def test_an_upload_does_not_pass_the_limit_of_bytes(how: str, holt: Holt, policy: Policy, service: Upstream) -> None:
    put = f"curl -s -o /dev/null -w '%{{http_code}} ' -m 30 -H \"x-api-key: $ACME_TOKEN\" {how} --data-binary"
    program = f"head -c 300000 /dev/zero >small; head -c 8000000 /dev/zero >big; {put} @small $ACME_URL/v1/x; {put} @big $ACME_URL/v1/x"
    assert holt.sh(program, "--policy", policy(bytes="1MiB"), env=WITH_KEY).ok().out == "200 429 "
    assert 300000 <= sum(seen["length"] for seen in service.seen) <= 1 << 20


# Reads every file that a program inside can read, and prints the paths of those with the credential. It looks for the
# credential in two pieces, because it must not find itself.
SEARCH = """
import os, stat, sys
wanted = (sys.argv[1] + sys.argv[2]).encode()
looked = 0
for top, directories, names in os.walk("/", followlinks=False):
    if top == "/":
        directories[:] = [d for d in directories if d not in ("usr", "bin", "lib", "lib64", "sbin")]
    for name in names:
        path = os.path.join(top, name)
        try:
            if not stat.S_ISREG(os.lstat(path).st_mode) or name in ("mem", "kmsg", "pagemap", "clear_refs"):
                continue
            with open(path, "rb") as file:
                looked += 1
                if wanted in file.read(8 << 20):
                    print(path)
        except OSError:
            pass
print("looked" if looked > 100 else looked)
"""


@pytest.mark.identities("user", "root", "nested")
def test_the_credential_is_in_no_file(sessions: Sessions, policy: Policy, place: Path) -> None:
    """Neither inside, nor outside in the session's directory, nor in a core dump of holt-gateway."""
    sessions.env.update(WITH_KEY)
    session = sessions.create("w", "--policy", policy())
    get = 'curl -sS -m 20 -H "x-api-key: $ACME_TOKEN"'
    assert '"/v1/x"' in session.out(f"{get} $ACME_URL/v1/x; {get} $ACME_URL/v1/echo >echo; {get} $ACME_URL/v2 >refused; true")
    assert session("exec", "--", "python3", "-c", SEARCH, KEY[:7], KEY[7:]).ok().out == "looked\n"
    session.out(f"printf %s {KEY[:7]} {KEY[7:]} >/tmp/found")
    assert session("exec", "--", "python3", "-c", SEARCH, KEY[:7], KEY[7:]).ok().out == "/tmp/found\nlooked\n", "the search works"
    session.out("rm /tmp/found")
    assert KEY not in session("audit", "--json").ok().out
    session.stop()
    for path in session.directory.rglob("*"):
        assert not path.is_file() or path.is_symlink() or KEY.encode() not in path.read_bytes(), path


@pytest.mark.identities("user")
def test_the_gateway_has_no_core_dump(holt: Holt, policy: Policy) -> None:
    """The files in /proc of a process that has no core dump belong to root (proc(5))."""
    with holt.start(["run", "--policy", policy(), "--", "sh", "-c", "echo ready; sleep 60"], env=WITH_KEY) as running:
        assert running.readline() == "ready"
        found = [process.pid for process in descendants() if process.name == "holt-gateway"]
        assert found
        for pid in found:
            until(lambda: os.stat(f"/proc/{pid}/environ").st_uid == 0, "it cannot be dumped")
        running.kill()
