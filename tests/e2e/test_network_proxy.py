# SPDX-License-Identifier: Apache-2.0
"""The proxy inside (--proxy), for programs that need one: HTTP and SOCKS5, with the same rules as every connection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lib import netlab
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Holt, Result
from lib.sessions import Sessions, until
from lib.tools import needs

pytestmark = [needs("python3", "curl"), pytest.mark.alike]

NET = "web.example.org:80,web.example.org:443"
NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def denied(result: Result) -> list[tuple[str, str | None]]:
    return [(d["what"], d["grant"]) for d in (result.report or {}).get("denials", [])]


# --- programs ---


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("curl", ("curl", "curl -x http://198.18.0.1:3128", "curl -x socks5h://198.18.0.1:3128",
                                  "curl -x socks5://198.18.0.1:3128", "curl -p"))
def test_curl_reaches_an_allowed_host(curl: str, holt: Holt, lab: Lab) -> None:
    out = holt.sh(f"{curl} -sS http://web.example.org/a && {curl} -sSk https://web.example.org/b", "--net", NET, "--proxy").ok().out

    assert [json.loads(line)["target"] for line in out.splitlines()] == ["/a", "/b"]
    assert [row["host"] for row in lab.log("http")] == ["web.example.org"] * 2


def test_python_reads_the_variables(holt: Holt) -> None:
    program = """
import ssl, urllib.error, urllib.request
context = ssl._create_unverified_context()
for url in ("http://web.example.org/x", "https://web.example.org/y"): print(urllib.request.urlopen(url, context=context).status)
for url in ("http://other.example.org/", "https://other.example.org/"):
    try: urllib.request.urlopen(url, context=context)
    except urllib.error.HTTPError as error: print(error.code, error.read().decode().strip())
    except urllib.error.URLError as error: print(error.reason)
"""
    out = holt(["run", "--net", NET, "--proxy", "--", "python3", "-c", program]).ok().out.splitlines()

    assert out[:2] == ["200", "200"]
    assert "403" in out[2] and "--net other.example.org:80" in out[2]
    assert "403" in out[3] and "--net other.example.org:443" in out[3]


def test_only_a_proxy_sets_the_variables(holt: Holt) -> None:
    script = "env | grep -i _proxy= | sort"
    out = holt.sh(script, "--net", NET, "--proxy").ok().out.splitlines()
    mine = holt.sh("echo $http_proxy", "--net", NET, "--proxy", "--env", "http_proxy=http://mine").ok().out

    assert {line.split("=")[0] for line in out} == {*NAMES, *(name.upper() for name in NAMES)}
    assert mine == "http://mine\n"
    for flags in (("--net", NET), ("--proxy",), ("--proxy", "--network", "host")):
        assert holt.sh(script + " || true", *flags).ok().out == ""


def test_without_the_option_there_is_no_proxy(holt: Holt) -> None:
    (answer,) = probe(holt, ["connect", "198.18.0.1", 3128], net=NET)

    assert answer == "ECONNREFUSED"


def test_a_wildcard_may_have_the_port_of_the_proxy(holt: Holt, lab: Lab) -> None:
    proxied, direct = probe(
        holt, ["tunnel", "web.example.org", 7, "mine"], ["say", "a.wild.example.com", 3128, "x"],
        net="web.example.org:7,*.wild.example.com:3128", flags=("--proxy",))

    assert proxied == "mine" and "proxy" not in str(direct.value)
    assert {row["port"] for row in lab.log("tcp")} == {7, 3128}


# --- connections ---


def test_bytes_pass_in_both_directions(holt: Holt) -> None:
    answers = probe(
        holt, ["tunnel", "web.example.org", 7, "one", "two"], ["socks", "web.example.org", 7, "three"],
        ["tunnel", "web.example.org", 22], ["socks", "web.example.org", 22],
        ["tunnel", "web.example.org", 9000, "\0" * 300000],
        net="web.example.org:7,web.example.org:22,web.example.org:9000", flags=("--proxy",))

    assert [a.value for a in answers[:2]] == ["onetwo", "three"]
    assert all("SSH-2.0-netlab" in a.value for a in answers[2:4]) and answers[4].value.startswith("300000 ")


def test_an_address_is_judged_by_blocks(holt: Holt, lab: Lab) -> None:
    allowed, by_name, port, other, private = probe(
        holt, ["socks", netlab.WEB4, 7, "a", True], ["tunnel", netlab.WEB4, 7, "b"], ["socks", netlab.WEB4, 80, "", True],
        ["socks", netlab.OTHER4, 7, "", True], ["socks", "127.0.0.1", 7, "", True], net=f"{netlab.WEB4}:7", flags=("--proxy",))

    assert (allowed, by_name) == ("a", "b")
    assert port[0] == other[0] == private[0] == 2
    assert len(lab.log("tcp")) == 2


def test_an_address_inside_is_its_name(holt: Holt) -> None:
    """A client with SOCKS may resolve a name itself."""
    allowed, refused = probe(
        holt, ["socks", "198.18.1.0", 7, "mine", True], ["socks", "198.18.1.0", 80, "", True], net="web.example.org:7", flags=("--proxy",))

    assert allowed == "mine" and refused[0] == 2


def test_requests_for_several_hosts_do_not_share_a_connection(holt: Holt, lab: Lab) -> None:
    script = """head -c 300000 /dev/zero > /tmp/x
curl -sS http://web.example.org/1 http://other.example.org/2
curl -sS --data-binary @/tmp/x http://web.example.org/3 http://other.example.org/4
curl -sS -T - http://web.example.org/5 < /tmp/x"""
    out = holt.sh(script, "--net", NET + ",other.example.org", "--proxy").ok().out

    rows = [json.loads(line) for line in out.splitlines()]
    assert [(r["target"], r["host"].split(".")[0], r["address"]) for r in rows[:4]] == [
        ("/1", "web", netlab.WEB4), ("/2", "other", netlab.OTHER4), ("/3", "web", netlab.WEB4), ("/4", "other", netlab.OTHER4)]
    assert [r["size"] for r in rows[2:4]] == [300000, 300000]


TWICE = """
import socket
end = socket.create_connection(("198.18.0.1", 3128), timeout=60)
def put(n):
    end.sendall(b"PUT http://web.example.org:8081/%d HTTP/1.1\\r\\nContent-Length: 300000\\r\\n\\r\\n" % n + bytes(300000))
put(1)
reply = b""
while not reply.endswith(b"}\\n"): reply += end.recv(65536)
put(2)
print(reply[:15], end.recv(65536))
"""


def test_a_second_request_on_a_connection_is_not_reset(holt: Holt, lab: Lab) -> None:
    """A client sends a request again on another connection if the first one ends before the reply."""
    out = holt(["run", "--net", "web.example.org:8081", "--proxy", "--", "python3", "-c", TWICE]).ok().out

    assert out == "b'HTTP/1.1 200 OK' b''\n" and [row["target"] for row in lab.log("http")] == ["/1"]


def test_a_server_that_keeps_its_connection_loses_no_request(holt: Holt, lab: Lab) -> None:
    """curl reuses the connection, and sends a large upload on another one if the first ends, but perhaps not if it is reset."""
    url = "http://web.example.org:8081"
    script = f"head -c 8000000 /dev/zero > /tmp/x; curl -sS -H Expect: -T /tmp/x {url}/1 -T /tmp/x {url}/2"
    out = holt.sh(script, "--net", NET + ",web.example.org:8081", "--proxy").ok().out

    assert [(row["target"], row["size"]) for row in map(json.loads, out.splitlines())] == [("/1", 8000000), ("/2", 8000000)]
    assert len(lab.log("tcp")) == 2


# --- refusals and failures ---


@pytest.mark.parametrize("host,port,grant", (
    ("other.example.org", 443, "--net other.example.org:443"), ("web.example.org", 25, "--net web.example.org:25"),
    ("203.0.113.11", 443, "--net 203.0.113.11:443"), ("x.web.example.org", 443, "--net x.web.example.org:443"),
))
def test_a_refusal_names_the_cure(host: str, port: int, grant: str, holt: Holt, lab: Lab) -> None:
    line, code = answers = probe(holt, ["tunnel", host, port], ["socks", host, port], net=NET, flags=("--proxy",))

    assert line.value.startswith(f"HTTP/1.1 403 The policy refuses {host}:{port}") and line.value.endswith(grant)
    assert code == [2, ""] and line.at_once and code.at_once
    assert denied(answers.result) == [(f"{host}:{port}", grant)]
    assert not lab.log("tcp")


def test_a_refusal_has_the_reason_of_the_rule(holt: Holt) -> None:
    (line,) = probe(holt, ["tunnel", "web.example.org", 25], net="web.example.org:80 # only the web", flags=("--proxy",))

    assert "only the web" in line.value


def test_a_failure_has_the_true_errno(holt: Holt) -> None:
    names = ("refused", "unreachable", "nowhere")
    answers = probe(
        holt, *(["tunnel", f"{n}.example.org", 443] for n in names), *(["socks", f"{n}.example.org", 443] for n in names),
        net=",".join(f"{n}.example.org:443" for n in names), flags=("--proxy",))

    assert [a.value.split()[1] for a in answers[:3]] == ["502"] * 3
    assert "Connection refused" in answers[0].value and "No route to host" in answers[1].value and "no address" in answers[2].value
    assert [a[0] for a in answers[3:]] == [5, 4, 4]


@pytest.mark.parametrize("kind", ("loopback", "private-10", "metadata", "cgnat", "nat64", "unique-local"))
def test_a_name_must_not_lead_to_a_private_address(kind: str, holt: Holt, lab: Lab) -> None:
    host = f"{kind}.bad.example.org"
    line, code = probe(holt, ["tunnel", host, 80], ["socks", host, 80], net=host, flags=("--proxy",))

    assert " 403 " in line.value and code[0] == 2 and not lab.log("tcp")


@pytest.mark.parametrize("text", (
    "GET / HTTP/1.1\r\nHost: web.example.org\r\n\r\n", "CONNECT web.example.org HTTP/1.1\r\n\r\n", "GET https://web.example.org/ HTTP/1.1\r\n\r\n",
    "CONNECT user@web.example.org:80 HTTP/1.1\r\n\r\n", "connect web.example.org:80 HTTP/1.1\r\n\r\n", "CONNECT 3405803786:80 HTTP/1.1\r\n\r\n",
    "CONNECT web.example.org:80 HTTP/1.1\n\n",
))
def test_a_bad_request_is_answered(text: str, holt: Holt, lab: Lab) -> None:
    (answer,) = probe(holt, ["say", "198.18.0.1", 3128, text], net=NET, flags=("--proxy",))

    assert answer.value.startswith("HTTP/1.1 400 The proxy refuses ") and not lab.log("tcp")


def test_other_protocols_end_at_once(holt: Holt) -> None:
    answers = probe(
        holt, ["say", "198.18.0.1", 3128, "\4\1\0\x50\xcb\0\x71\x0ax\0"], ["say", "198.18.0.1", 3128, "\x16\3\1"],
        ["say", "198.18.0.1", 3128, "\5\1\2"], ["say", "198.18.0.1", 3128, "\5\1\0\5\2\0\1\0\0\0\0\0\1"], net=NET, flags=("--proxy",))

    assert [a.value for a in answers] == ["\0\x5b" + "\0" * 6, "", "\5\xff", "\5\0\5\7\0\1" + "\0" * 6]
    assert all(a.at_once for a in answers)


# --- sessions ---


def test_a_session_has_the_proxy(sessions: Sessions, holt: Holt) -> None:
    session = sessions.create("w", "--net", NET, "--proxy")

    assert session.out("curl -sS http://web.example.org/bytes/5000 | wc -c; echo $https_proxy").split() == ["5000", "http://198.18.0.1:3128"]
    refused = session.sh("curl -sS -o /dev/null -w %{http_code} -f http://other.example.org/")
    assert refused.out == "403" and "refused other.example.org:80" in refused.err

    def rows() -> list[Any]:
        return [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "network"]

    (row,) = until(rows, "the connection is noted")
    assert row["peer"] == "web.example.org:80" and row["received"] > 5000 and row["sent"] > 50 and row["error"] is None
