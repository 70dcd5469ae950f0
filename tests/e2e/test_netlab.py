# SPDX-License-Identifier: Apache-2.0
"""The test network of lib/netlab.py works without holt: the tests of networks would otherwise show nothing."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from lib import netlab
from lib.netlab import Lab, lab  # noqa: F401
from lib.sandbox import Holt
from lib.tools import needs

everyone = pytest.mark.identities("user", "root", "nested")

needs_six = pytest.mark.skipif(not socket.has_ipv6, reason="this host has no IPv6")

LOOKUP = """
import json, socket, sys
try:
    found = socket.getaddrinfo(sys.argv[1], 443, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    print(json.dumps(sorted(row[4][0] for row in found)))
except OSError as error:
    print(json.dumps(error.errno))
"""

CONNECT = """
import errno, socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3])) as end:
        print(end.recv(100))
except OSError as error:
    print(errno.errorcode.get(error.errno, type(error).__name__))
"""


def lookup(lab: Lab, name: str) -> Any:
    return json.loads(lab.run(["python3", "-c", LOOKUP, name]).stdout)


def connect(lab: Lab, host: str, port: int, timeout: float = 20) -> str:
    return lab.run(["python3", "-c", CONNECT, host, str(port), str(timeout)]).stdout.strip()


@everyone
def test_names_have_addresses(lab: Lab) -> None:
    assert lookup(lab, "web.example.org") == sorted([netlab.WEB4, netlab.WEB6])
    assert lookup(lab, "four.example.org") == [netlab.WEB4]
    assert lookup(lab, "chain.example.org") == sorted([netlab.WEB4, netlab.WEB6])
    assert lookup(lab, "anything.wild.example.com") == sorted([netlab.WEB4, netlab.WEB6])
    assert lookup(lab, "missing.example.org") == socket.EAI_NONAME
    assert lookup(lab, "failing.example.org") == socket.EAI_AGAIN
    assert len(lookup(lab, "many.example.org")) == 110
    assert {row["over"] for row in lab.log("dns") if row["name"] == "many.example.org"} == {"udp", "tcp"}


def test_a_name_can_change_at_each_query(lab: Lab) -> None:
    lab.name("turning.example.org", turns=[[netlab.WEB4], ["127.0.0.1"]], ttl=0)

    assert [lookup(lab, "turning.example.org")[0] for _ in range(3)] == [netlab.WEB4, "127.0.0.1", "127.0.0.1"]


def test_a_slow_name_is_slow(lab: Lab) -> None:
    started = time.monotonic()

    assert lookup(lab, "slow.example.org") == [netlab.WEB4]
    assert time.monotonic() - started >= 1


@needs("curl")
@pytest.mark.parametrize("flag", ("-4", pytest.param("-6", marks=needs_six)))
def test_curl_reaches_the_web(flag: str, lab: Lab) -> None:
    for url in ("http://web.example.org/a", "https://web.example.org/a"):
        reply = json.loads(lab.run(["curl", "-sS", flag, "--cacert", lab.ca, url]).stdout)
        assert (reply["host"], reply["target"]) == ("web.example.org", "/a")
        assert reply["address"] == (netlab.WEB4 if flag == "-4" else netlab.WEB6)
    assert [row["sni"] for row in lab.log("tls")] == ["web.example.org"]


@needs("python3")
def test_servers_that_speak_first(lab: Lab) -> None:
    assert connect(lab, "web.example.org", 25).startswith("b'220 ")
    assert "8.0.36" in connect(lab, "web.example.org", 3306)
    assert connect(lab, "web.example.org", 22).startswith("b'SSH-2.0")


@needs("python3")
def test_ends_of_connections(lab: Lab) -> None:
    assert connect(lab, "web.example.org", 4) == "ECONNREFUSED"
    assert connect(lab, "refused.example.org", 443) == "ECONNREFUSED"
    assert connect(lab, "unreachable.example.org", 443) == "EHOSTUNREACH"
    assert connect(lab, "dropped.example.org", 443, 0.5) == "TimeoutError"
    assert connect(lab, "web.example.org", 9002) == "ECONNRESET"
    assert connect(lab, "198.51.99.1", 80) == "ENETUNREACH"


@needs("curl")
@pytest.mark.parametrize("kind", netlab.FORBIDDEN)
def test_addresses_that_a_name_must_not_lead_to_have_servers(kind: str, lab: Lab) -> None:
    reply = lab.run(["curl", "-sS", f"http://{kind}.bad.example.org/"]).stdout

    assert json.loads(reply)["address"] == netlab.FORBIDDEN[kind]


@needs("curl")
def test_the_web_has_bytes_and_files(lab: Lab) -> None:
    (lab.files / "hello").write_text("hello\n")

    assert lab.run(["curl", "-sS", "http://web.example.org/files/hello"]).stdout == "hello\n"
    done = lab.run(["bash", "-c", "curl -sS http://web.example.org/bytes/3000000 | sha256sum"])
    assert done.stdout.split()[0] == netlab.bytes_and_digest(3000000)[1]


@everyone
def test_holt_starts_in_the_lab(holt_binary: Path, lab: Lab, workspace: Path) -> None:
    holt = Holt(holt_binary, lab.identity, workspace)

    assert holt.sh("cat /etc/resolv.conf; pwd").ok().out.splitlines()[-1] == str(workspace)
