# SPDX-License-Identifier: Apache-2.0
"""Attacks on the proxy inside (--proxy) and by the proxy outside (--upstream)."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

from lib import netlab
from lib.leaks import descendants
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Holt
from lib.sessions import Sessions, until
from lib.tools import needs

pytestmark = needs("python3")

NET = "web.example.org:80,web.example.org:443,web.example.org:3128,*.wild.example.com:80"
GET = "GET / HTTP/1.1\r\nHost: {}\r\n\r\n"


@pytest.mark.parametrize("text", (
    GET.format("other.example.org"), GET.format("10.1.0.5"), "GET http://other.example.org/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
    "CONNECT other.example.org:80 HTTP/1.1\r\n\r\n", "CONNECT web.example.org:80 HTTP/1.1\r\n\r\n" + GET.format("other.example.org"),
    "GET / HTTP/1.1\r\nHost: web.example.org\r\nHost: other.example.org\r\n\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r\n" + GET.format("other.example.org"),
))
@pytest.mark.parametrize("port", (80, 3128))
def test_a_tunnel_carries_no_request_for_another_host(text: str, port: int, holt: Holt, lab: Lab) -> None:
    """The lab's server at port 3128 is a proxy that would connect anywhere."""
    answers = probe(holt, ["tunnel", "web.example.org", port, text], ["socks", "web.example.org", port, text], net=NET, flags=("--proxy",))

    assert all(answer.value in ("ECONNRESET", "EPIPE", "") for answer in answers), answers
    log = lab.log()
    assert not [row for row in log if row["what"] in ("http", "proxy")]


@pytest.mark.parametrize("host,port", (
    ("198.18.0.1", 3128), ("198.18.0.1", 53), ("127.0.0.1", 80), ("::1", 80), ("::ffff:127.0.0.1", 80), ("::ffff:198.18.0.1", 3128),
    ("169.254.169.254", 80), ("10.1.0.5", 80), ("0.0.0.0", 80), ("198.18.77.1", 80), ("fd00:686f:6c74::1", 3128), ("64:ff9b::a01:5", 80),
))
def test_an_address_is_no_way_around(host: str, port: int, holt: Holt, lab: Lab) -> None:
    bracketed = f"[{host}]" if ":" in host else host
    code, line = probe(holt, ["socks", host, port, "", True], ["tunnel", bracketed, port], net=NET, flags=("--proxy",))

    assert code[0] == 2 and " 403 " in line.value and not lab.log("tcp")


@pytest.mark.parametrize("host", ("localhost", "localhost.", "LOCALHOST", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "web.example.org\0.evil", "web.example.org:80@other.example.org",
                                  "web.example.org ", "*.wild.example.com", ".web.example.org", "web..example.org", "wild.example.com"))
def test_a_strange_name_is_refused(host: str, holt: Holt, lab: Lab) -> None:
    code, line = probe(holt, ["socks", host, 80], ["tunnel", host, 80], net=NET, flags=("--proxy",))

    assert code[0] in (1, 2) and (" 403 " in line.value or " 400 " in line.value) and not lab.log("tcp") and not lab.log("dns")


def test_names_below_a_wildcard_carry_little(holt: Holt, lab: Lab) -> None:
    names = [f"n{n}.wild.example.com" for n in range(300)]
    answers = probe(holt, *(["socks", name, 80] for name in names), ["socks", f"{'a' * 60}.{'b' * 60}.wild.example.com", 80], net=NET, flags=("--proxy",))

    assert answers[-1][0] == 2 and sum(isinstance(a.value, list) and a[0] == 2 for a in answers) > 100
    assert len({row["name"] for row in lab.log("dns")}) < 200


FLOOD = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
ends = []
for i in range(int(sys.argv[1])):
    try:
        end = socket.create_connection(("198.18.0.1", 3128), timeout=5)
        end.sendall(b"GET http://web.example.org/" + b"a" * 60000); ends.append(end)
    except OSError: pass
print(len(ends) > 0, flush=True)
sys.stdin.readline()
for end in ends: end.close()
end = socket.create_connection(("198.18.0.1", 3128), timeout=60)
end.sendall(b"GET http://web.example.org/ HTTP/1.1\\r\\n\\r\\n")
print(end.recv(15), flush=True)
"""


@pytest.mark.parametrize("count", (400, pytest.param(3000, marks=pytest.mark.slow)))
def test_unfinished_requests_are_bounded(count: int, holt: Holt) -> None:
    with holt.start(["run", "--net", NET, "--proxy", "--", "python3", "-c", FLOOD, str(count)], stdin=subprocess.PIPE) as started:
        assert started.readline() == "True"
        doors = [process for process in descendants() if process.name.startswith("holt-egress")]
        sizes = [int(line.split()[1]) for p in doors for line in Path(f"/proc/{p.pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
        assert max(sizes) < 64 * 1024
        started.send("go on\n")
        assert started.readline() == "b'HTTP/1.1 200 OK'"
        started.wait()


def test_a_program_sees_no_trace_of_the_proxy_outside(holt: Holt) -> None:
    script = "env; cat /proc/1/environ /proc/self/mountinfo /etc/hosts /etc/resolv.conf 2>/dev/null; ls -R /run /etc 2>/dev/null"
    out = holt.sh(script, "--net", NET, "--proxy", "--upstream", "http://agent:s3cret@proxy.corp.example.org:3129").out

    assert not any(word in out for word in ("s3cret", "proxy.corp", "agent:", "3129"))


def memory(pid: int) -> bytes:
    """Returns all writable memory of a process."""
    found = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            bounds, mode = line.split()[:2]
            start, end = (int(word, 16) for word in bounds.split("-"))
            if mode.startswith("rw"):
                mem.seek(start)
                found += mem.read(end - start)
    return found


@pytest.mark.identities("root")
def test_the_maker_does_not_have_the_password(holt: Holt) -> None:
    """The maker acts in the sandbox's namespaces, so no secret of the host may be in its memory."""
    flags = ("--net", NET, "--upstream", "http://agent:s3cret-word@proxy.corp.example.org:3129")
    with holt.start(["run", *flags, "--", "sh", "-c", "echo begin; read line"], stdin=subprocess.PIPE) as running:
        assert running.readline() == "begin"
        egress, maker = sorted(process.pid for process in descendants(running.pid) if process.name == "holt-egress")
        secrets = (b"s3cret-word", base64.b64encode(b"agent:s3cret-word"))

        assert all(secret in memory(egress) for secret in secrets)
        assert b"example.org" in memory(maker) and not any(secret in memory(maker) for secret in secrets)
        running.wait(b"go\n")


def test_no_project_adds_a_proxy(holt: Holt, workspace: Path) -> None:
    for field in ('"proxy": true', '"upstream": "http://10.1.0.5:3128"'):
        (workspace / ".holt.json").write_text('{"holt": 1, "network": {' + field + "}}")
        result = holt(["run", "--net", NET, "--", "true"])
        (workspace / ".holt.json").unlink()
        assert result.code == 125 and "network." in result.err


CHUNKED = """
import json, socket, sys
head = b"POST http://web.example.org:7/x HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
results = []
for pieces in json.load(sys.stdin):
    end = socket.create_connection(("198.18.0.1", 3128), timeout=20)
    got = b""
    try:
        end.sendall(head)
        while not got.endswith(b"\\r\\n\\r\\n"):
            got += end.recv(4096)
        got = b""
        for sent, wanted in pieces:
            end.sendall(sent.encode())
            while len(got) < len(wanted):
                part = end.recv(4096)
                if not part:
                    break
                got += part
        end.shutdown(socket.SHUT_WR)
        while part := end.recv(4096):
            got += part
        results.append([got.decode(), "end"])
    except OSError as error:
        results.append([got.decode(), "reset"])
print(json.dumps(results))
"""

SECOND = "GET http://other.example.org/ HTTP/1.1\r\nHost: other.example.org\r\n\r\n"
HELLO, WORLD, LAST = "5\r\nhello\r\n", "6\r\n world\r\n", "0\r\n\r\n"
LONG = f"{20000:x}\r\n{'x' * 20000}\r\n"

# Each case has the pieces that a client sends after the head of a chunked request. After each piece, the client waits until the
# server, an echo, has returned the bytes beside it. Then come all bytes that the server may get, and how the connection ends.
BODIES = {
    "whole": ([(HELLO + WORLD + LAST, "")], HELLO + WORLD + LAST, "end"),
    "in pieces": ([("5\r", ""), ("\nhel", "5\r\nhel"), ("lo\r", "5\r\nhello"), ("\n0\r\n\r", "5\r\nhello"), ("\n", HELLO + LAST)],
                  HELLO + LAST, "end"),
    "long": ([(LONG * 5 + LAST, "")], LONG * 5 + LAST, "end"),
    "many": ([("1\r\nx\r\n" * 300 + LAST, "")], "1\r\nx\r\n" * 300 + LAST, "end"),
    "a second request": ([(HELLO + LAST + SECOND, "")], HELLO + LAST, "end"),
    "a later request": ([(HELLO + LAST, HELLO + LAST), (SECOND, "")], HELLO + LAST, "end"),
    "a request in place of a chunk": ([(HELLO, "5\r\nhello"), (SECOND, "")], HELLO, "reset"),
    "a trailer": ([(HELLO + "0\r\nHost: other.example.org\r\n\r\n", "")], HELLO, "reset"),
    "an extension": ([("5;x=\"\r\nhello\r\n" + LAST, "")], "", "reset"),
    "a chunk that is longer": ([("4\r\nhello\r\n" + LAST, "")], "4\r\nhell", "reset"),
    "line feeds": ([("5\nhello\n0\n\n", "")], "", "reset"),
}


def test_a_chunked_request_is_one_request(holt: Holt) -> None:
    """The server never gets a byte behind the body, where a request for another host could be."""
    result = holt(["run", "--proxy", "--net", "web.example.org:7", "--", "python3", "-c", CHUNKED],
                  stdin=json.dumps([pieces for pieces, _, _ in BODIES.values()]))

    for (name, (_, most, how)), (got, ended) in zip(BODIES.items(), json.loads(result.ok().out), strict=True):
        assert ended == how and (got == most if how == "end" else most.startswith(got)), (name, got[:200], ended)


GIVES_UP = """
import socket, struct, sys
end = socket.create_connection(("198.18.0.1", 3128), timeout=20)
end.sendall(b"POST http://web.example.org:7/ HTTP/1.1\\r\\n" + sys.argv[1].encode() + b"\\r\\n\\r\\n")
got = b""
while not got.endswith(b"\\r\\n\\r\\n"): got += end.recv(4096)
end.sendall(sys.argv[2].encode())
if sys.argv[3] == "reset": end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
end.close()
"""


@pytest.mark.parametrize("field,body,how", (
    ("Content-Length: 0", "", "reset"), ("Content-Length: 2", "1", "reset"), ("Transfer-Encoding: chunked", "", "reset"),
    ("Transfer-Encoding: chunked", "5", "reset"), ("Transfer-Encoding: chunked", "5", "end"),
))
def test_a_request_that_is_given_up_ends_at_the_server(field: str, body: str, how: str, sessions: Sessions) -> None:
    """If it stayed open, the connection would count for as long as the server says nothing."""
    session = sessions.create("w", "--proxy", "--net", "web.example.org:7")
    session.exec("python3", "-c", GIVES_UP, field, body, how).ok()

    until(lambda: [row for row in session.audit() if row["kind"] == "network"], "the connection ends", timeout=20)
