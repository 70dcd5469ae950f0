# SPDX-License-Identifier: Apache-2.0
"""Attacks on the proxy inside (--proxy) and by the proxy outside (--upstream)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lib import netlab
from lib.leaks import descendants
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Holt
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


def test_no_project_adds_a_proxy(holt: Holt, workspace: Path) -> None:
    for field in ('"proxy": true', '"upstream": "http://10.1.0.5:3128"'):
        (workspace / ".holt.json").write_text('{"holt": 1, "network": {' + field + "}}")
        result = holt(["run", "--net", NET, "--", "true"])
        (workspace / ".holt.json").unlink()
        assert result.code == 125 and "network." in result.err
