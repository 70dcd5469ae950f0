# SPDX-License-Identifier: Apache-2.0
"""A network by name: programs run unchanged, reach the allowed names and ports, and are told at once about all others."""

from __future__ import annotations

import json
import subprocess

import pytest

from lib import netlab
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Holt, Result
from lib.sessions import Sessions
from lib.tools import needs

pytestmark = needs("python3")

MIB = 1 << 20


def grants(result: Result) -> list[str]:
    """The grants that the result offers for what was refused."""
    return [d["grant"] for d in (result.report or {}).get("denials", []) if d.get("grant")]


# --- reached ---


@pytest.mark.identities("user", "root", "nested")
def test_an_allowed_name_is_reached(holt: Holt) -> None:
    reply, secure = probe(holt, ["get", "web.example.org"], ["tls", "web.example.org"], net="web.example.org:80,web.example.org:443")

    assert (reply["host"], secure["sni"]) == ("web.example.org", "web.example.org")
    assert reply["address"] in (netlab.WEB4, netlab.WEB6)


def test_a_name_without_a_port_means_http_and_https(holt: Holt) -> None:
    http, https, other = probe(
        holt, ["get", "web.example.org"], ["tls", "web.example.org"], ["connect", "web.example.org", 8080], net="web.example.org")

    assert http["port"] == 80 and https["port"] == 443 and other == "ECONNREFUSED"


def test_net_can_be_given_more_than_once(holt: Holt) -> None:
    one, two = probe(
        holt, ["get", "web.example.org"], ["get", "other.example.org"], net="web.example.org:80",
        flags=("--net", "other.example.org:80"))

    assert (one["host"], two["host"]) == ("web.example.org", "other.example.org")


def test_both_families_work(holt: Holt) -> None:
    four, six, all_four = probe(
        holt, ["get", "four.example.org"], ["get", "six.example.org"], ["get", "web.example.org"],
        net="four.example.org,six.example.org,web.example.org")

    assert (four["address"], six["address"]) == (netlab.WEB4, netlab.WEB6)
    assert all_four["address"] in (netlab.WEB4, netlab.WEB6)


def test_a_wildcard_is_every_name_below_but_not_the_bare_name(holt: Holt) -> None:
    one, deep, bare = probe(
        holt, ["get", "a.wild.example.com"], ["get", "x.y.wild.example.com"], ["lookup", "wild.example.com"],
        net="*.wild.example.com:80")

    assert (one["host"], deep["host"], bare.value) == ("a.wild.example.com", "x.y.wild.example.com", "EAI_NONAME")


def test_an_exact_name_and_a_wildcard_may_share_a_port(holt: Holt) -> None:
    one, two, three = probe(
        holt, ["get", "web.example.org"], ["get", "a.wild.example.com"], ["lookup", "wild.example.com"],
        net="web.example.org:80,*.wild.example.com:80")

    assert (one["host"], two["host"], three.value) == ("web.example.org", "a.wild.example.com", "EAI_NONAME")


def test_each_name_has_its_own_ports(holt: Holt) -> None:
    answers = probe(
        holt, ["connect", "web.example.org", 8080], ["connect", "web.example.org", 80], ["connect", "other.example.org", 80],
        ["connect", "other.example.org", 8080], net="web.example.org:8080,other.example.org:80")

    assert answers == ["ok", "ECONNREFUSED", "ok", "ECONNREFUSED"]
    assert all(answer.at_once for answer in answers)


def test_a_wildcard_s_port_is_not_another_name_s(holt: Holt) -> None:
    """The wildcard's port has a listener for all addresses, so only the judgement keeps the other name from it."""
    wild, other = probe(
        holt, ["get", "a.wild.example.com", 8080], ["say", "web.example.org", 8080, "x"],
        net="*.wild.example.com:8080,web.example.org:80")

    assert wild["port"] == 8080 and other in ("ECONNRESET", "ECONNREFUSED", "EPIPE")


def test_a_range_of_ports(holt: Holt) -> None:
    answers = probe(
        holt, ["connect", "web.example.org", 9000], ["connect", "web.example.org", 9004], ["connect", "web.example.org", 9005],
        ["connect", "web.example.org", 8443], net="web.example.org:9000-9004")

    assert answers == ["ok", "ok", "ECONNREFUSED", "ECONNREFUSED"]


def test_a_block_of_addresses(holt: Holt) -> None:
    inside, outside, port = probe(
        holt, ["get", netlab.WEB4], ["connect", netlab.RESOLVER, 80], ["connect", netlab.WEB4, 443],
        net="203.0.113.8/29:80")

    assert (inside["address"], outside.value, port.value) == (netlab.WEB4, "ENETUNREACH", "ECONNREFUSED")


def test_one_address(holt: Holt) -> None:
    inside, neighbour = probe(holt, ["get", netlab.WEB4], ["connect", netlab.OTHER4, 80], net=f"{netlab.WEB4}:80")

    assert (inside["address"], neighbour.value) == (netlab.WEB4, "ENETUNREACH")


def test_a_block_of_ipv6(holt: Holt) -> None:
    inside, other, outside = probe(
        holt, ["get", netlab.WEB6, 80, f"[{netlab.WEB6}]"], ["get", netlab.OTHER6, 80, f"[{netlab.OTHER6}]"],
        ["connect", "fd12:3456::5", 80], net="[2001:db8::]/48:80")

    assert (inside["address"], other["address"], outside.value) == (netlab.WEB6, netlab.OTHER6, "ENETUNREACH")


def test_a_name_in_a_block_needs_its_own_rule(holt: Holt) -> None:
    assert probe(holt, ["lookup", "web.example.org"], net="203.0.113.0/24:80") == ["EAI_NONAME"]


# --- not reached ---


def test_without_rules_nothing_is_reached(holt: Holt, lab: Lab) -> None:
    answers = probe(
        holt, ["lookup", "web.example.org"], ["connect", netlab.WEB4, 80], ["connect", netlab.WEB6, 80],
        ["connect", "127.0.0.1", 80], ["connect", "169.254.169.254", 80], flags=("--network", "allow"))

    assert answers == ["EAI_NONAME", "ENETUNREACH", "ENETUNREACH", "ECONNREFUSED", "ENETUNREACH"]
    assert all(answer.at_once for answer in answers) and lab.log() == []


def test_network_none_wins_over_nothing(holt: Holt, lab: Lab) -> None:
    answers = probe(holt, ["lookup", "web.example.org"], ["connect", netlab.WEB4, 80], flags=("--network", "none"))

    assert answers[1] == "ENETUNREACH" and str(answers[0].value).startswith("EAI_") and lab.log() == []


def test_network_host_is_the_host_s_network(holt: Holt) -> None:
    web, loopback = probe(
        holt, ["get", "other.example.org"], ["get", "127.0.0.1"], flags=("--network", "host"))

    assert (web["address"], loopback["address"]) == (netlab.OTHER4, "127.0.0.1") or web["address"] == netlab.OTHER6


def test_a_bare_address_is_unreachable_at_once(holt: Holt, lab: Lab) -> None:
    """Even the address of an allowed name is unreachable, because rules about names allow no addresses."""
    addresses = (netlab.WEB4, netlab.WEB6, "10.1.0.5", "169.254.169.254", "100.64.0.1", "fd12:3456::5", "64:ff9b::a01:5")
    answers = probe(holt, *(["connect", address, 80] for address in addresses), net="web.example.org:80")

    assert answers == ["ENETUNREACH"] * len(addresses)
    assert all(answer.at_once for answer in answers) and not lab.log("tcp")


def test_another_port_is_refused_at_once(holt: Holt) -> None:
    (answer,) = probe(holt, ["connect", "web.example.org", 443], net="web.example.org:80")

    assert answer == "ECONNREFUSED" and answer.at_once


def test_the_loopback_is_the_sandbox_s_own(holt: Holt, lab: Lab) -> None:
    answers = probe(
        holt, ["connect", "127.0.0.1", 80], ["connect", "127.0.0.2", 80], ["connect", "::1", 80], ["connect", "localhost", 80],
        net="web.example.org:80")

    assert answers == ["ECONNREFUSED"] * 4 and not lab.log("tcp")


def test_udp_is_refused_at_once(holt: Holt, lab: Lab) -> None:
    """A refusal at once makes QUIC fall back to TCP."""
    by_name, by_address, resolver = probe(
        holt, ["datagram", "web.example.org", 443], ["datagram", netlab.WEB4, 443], ["datagram", "198.18.0.1", 443],
        net="web.example.org:443,*.wild.example.com:443")

    assert by_name == "ECONNREFUSED" and by_name.at_once
    assert by_address == "ENETUNREACH" and resolver == "ECONNREFUSED" and not lab.log("udp")


def test_an_ipv6_socket_may_use_mapped_addresses(holt: Holt, lab: Lab) -> None:
    """Java uses such sockets only."""
    program = """
import errno, socket
for host in (socket.gethostbyname("web.example.org"), "203.0.113.10", "127.0.0.1"):
    end = socket.socket(socket.AF_INET6)
    try:
        end.connect(("::ffff:" + host, 25))
        print(end.recv(3).decode())
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
    result = holt(["run", "--net", "web.example.org:25", "--", "python3", "-c", program])

    assert result.ok().out == "220\nENETUNREACH\nECONNREFUSED\n" and len(lab.log("tcp")) == 1


# --- denials ---


def test_a_refused_name_is_listed_with_the_grant(holt: Holt) -> None:
    result = probe(holt, ["lookup", "web.example.org"], net="other.example.org:443").result

    assert grants(result) == ["--net web.example.org"], result.report


def test_a_refused_port_is_listed_with_the_grant(holt: Holt) -> None:
    """Routes alone do not show this for an exact name, but a wildcard's port has a listener for all names."""
    result = probe(
        holt, ["say", "web.example.org", 8080, "x"], net="*.wild.example.com:8080,web.example.org:80").result

    assert "--net web.example.org:8080" in grants(result), result.report


PROJECT = "the project's .holt.json narrows the network and leaves it out; change it there"


@needs("curl")
@pytest.mark.parametrize("caller, project, host, by_project", [
    (("--net", "web.example.org:80,other.example.org:80"), ["web.example.org:80"], "other.example.org", True),
    (("--net", "web.example.org:80"), ["web.example.org:80", "*.example.org:8080"], "web.example.org:8080", False),
    (("--net", "web.example.org"), ["web.example.org:80"], "web.example.org:443", True),
    (("--net", "web.example.org:80"), ["none"], "web.example.org", True),
    (("--net", "web.example.org:80"), ["other.example.org:80"], "other.example.org", False),
    (("--network", "host"), ["web.example.org:80"], "other.example.org", True),
    (("--net", "0.0.0.0/0:80"), ["203.0.113.77:80"], "203.0.113.78:80", True),
    (("--net", "203.0.113.77:80"), ["203.0.113.0/24:80"], "203.0.113.78:80", False),
])
def test_no_option_gives_back_what_the_project_leaves_out(
    caller: tuple[str, str], project: list[str], host: str, by_project: bool, holt: Holt,
) -> None:
    (holt.cwd / ".holt.json").write_text(json.dumps({"holt": 1, "network": {"allow": project}}))
    words = ["run", *caller, "--", "curl", "-sSk", "-m", "20", f"{'https' if host.endswith(':443') else 'http'}://{host}/"]

    result = holt(words, report=True)

    (denial,) = result.report["denials"]
    assert denial["what"] == host and (denial["why_not"] == PROJECT) == by_project
    assert (denial["grant"], denial["policy"]) == ((None, None) if by_project else (f"--net {host}", {"network": {"allow": [host]}}))
    assert (PROJECT in holt(words).err) == by_project


def test_a_rule_s_reason_is_in_its_denials(holt: Holt) -> None:
    result = probe(
        holt, ["tls", "web.example.org", 443, "other.example.org"], net="web.example.org:443 # only the package index").result

    assert "only the package index" in str(result.report)


def test_refusals_that_are_not_listed_are_counted(holt: Holt) -> None:
    result = holt.sh("for i in $(seq 80); do getent hosts n$i.example.org; done; exit 1", "--net", "web.example.org:80")

    omitted = result.report["network"]["denials_omitted"]
    assert len(result.report["denials"]) == 64 and omitted > 0
    assert sum(denial["count"] for denial in result.report["denials"]) + omitted >= 80
    assert f"holt: and {omitted} more of other hosts and ports\n" in result.err


# --- the peer's errors, and slow peers ---


def test_a_peer_that_refuses(holt: Holt) -> None:
    (answer,) = probe(holt, ["say", "refused.example.org", 80, "x"], net="refused.example.org:80")

    assert answer in ("ECONNREFUSED", "ECONNRESET", "EPIPE") and answer.at_once


def test_a_peer_that_resets(holt: Holt) -> None:
    answers = probe(
        holt, ["say", "web.example.org", 9002], ["say", "web.example.org", 9003, "x"], net="web.example.org:9000-9010")

    assert all(answer in ("ECONNRESET", "EPIPE", "ENOTCONN") for answer in answers), answers


def test_happy_eyeballs_outside(holt: Holt) -> None:
    """An address that does not answer, or refuses, holds up the next one only shortly."""
    names = ("dead-six", "refused-six", "second", "dead-first")
    answers = probe(
        holt, *(["get", f"{name}.example.org"] for name in names), net=",".join(f"{name}.example.org:80" for name in names))

    assert [answer["address"] for answer in answers] == [netlab.WEB4] * 4
    assert all(answer.at_once for answer in answers)


# --- how bytes travel ---


def test_a_server_may_speak_first(holt: Holt) -> None:
    smtp, ssh, mysql = probe(
        holt, ["first", "web.example.org", 25], ["first", "web.example.org", 22], ["first", "web.example.org", 3306],
        net="web.example.org:22-25,web.example.org:3306")

    assert smtp.value.startswith("220 ") and ssh.value.startswith("SSH-2.0") and "8.0.36" in mysql.value
    assert smtp.at_once and ssh.at_once and mysql.at_once


FIRST_BYTES = {
    "a byte": "x", "zero": "\0", "a word": "hello", "digits": "000001", "four letters": "ruok", "redis": "*1\r\n$4\r\nPING\r\n",
    "git": "0032git-upload-pack /project.git\0host=web.example.org\0", "amqp": "AMQP\0\0\x09\x01", "a line": "PING\r\n",
    "postgres": "\0\0\0\x08\x04\xd2\x16\x2f", "http2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "ssh": "SSH-2.0-x\r\n",
    "socks": "\x05\x01\0", "mongo": "\x3a\0\0\0\x01", "irc": "NICK me\r\n", "json": '{"id": 1}', "ftp": "USER a\r\n",
}


@pytest.mark.parametrize("case", FIRST_BYTES)
def test_bytes_of_any_protocol_pass(case: str, holt: Holt) -> None:
    """The client waits for the reply and keeps its side open."""
    (answer,) = probe(holt, ["exchange", "web.example.org", 7, FIRST_BYTES[case]], net="web.example.org:7")

    assert answer == FIRST_BYTES[case] and answer.seconds < 3


def test_bytes_pass_as_they_are(holt: Holt) -> None:
    (answer,) = probe(holt, ["say", "web.example.org", 7, "a", "b", "c\0\xff"], net="web.example.org:7")

    assert answer == "abc\0\xff"


def test_each_direction_closes_alone(holt: Holt) -> None:
    (sums,) = probe(holt, ["digest", "web.example.org", 9000, 100], net="web.example.org:9000")

    assert sums[0] == sums[1]


def test_big_transfers_are_whole_both_ways(holt: Holt) -> None:
    sums, got = probe(
        holt, ["digest", "web.example.org", 9000, 64 * MIB], ["download", "web.example.org", 9001, 64 * MIB],
        net="web.example.org:9000-9001")

    assert sums[0] == sums[1]
    assert tuple(got.value) == netlab.bytes_and_digest(64 * MIB)


def test_200_connections_at_once(holt: Holt) -> None:
    assert probe(holt, ["many", "web.example.org", 7, 200], net="web.example.org:7") == [200]


@pytest.mark.slow
def test_1000_connections_at_once(holt: Holt) -> None:
    assert probe(holt, ["many", "web.example.org", 7, 1000], net="web.example.org:7") == [1000]


def test_a_client_that_does_not_read_holds_up_no_other(holt: Holt) -> None:
    program = """
import socket
full = socket.create_connection(("web.example.org", 9001)); full.sendall(b"100000000\\n")
deaf = socket.create_connection(("web.example.org", 9005)); deaf.setblocking(False)
try:
    while True: deaf.send(bytes(1 << 20))
except BlockingIOError: pass
end = socket.create_connection(("web.example.org", 7), timeout=20); end.sendall(b"x"); print(end.recv(1))
"""
    result = holt(["run", "--net", "web.example.org:7,web.example.org:9000-9010", "--", "python3", "-c", program])

    assert result.ok().out == "b'x'\n"


# --- the program's own servers ---


def test_the_program_may_use_the_same_ports_itself(holt: Holt) -> None:
    """The listener of an exact name is only at that name's address."""
    *own, web = probe(
        holt, ["listen", "127.0.0.1", 8080], ["listen", "::1", 8080], ["listen", "127.0.0.1", 8443], ["listen", "0.0.0.0", 3000],
        ["get", "web.example.org", 8080], net="web.example.org:8080,web.example.org:8443")

    assert own == ["mine"] * 4 and web["host"] == "web.example.org"


def test_a_server_on_all_addresses_conflicts_with_an_allowed_port(holt: Holt) -> None:
    exact, wildcard = (
        probe(holt, ["listen", "0.0.0.0", 8080], ["listen", "127.0.0.1", 8080], net=net)
        for net in ("web.example.org:8080", "*.wild.example.com:8080"))

    assert exact == ["EADDRINUSE", "mine"] and wildcard == ["EADDRINUSE", "EADDRINUSE"]


# --- families of programs ---


def test_asyncio(holt: Holt) -> None:
    program = """
import asyncio
async def main():
    reader, writer = await asyncio.open_connection("web.example.org", 443, ssl=False)
    reader, writer = await asyncio.open_connection("web.example.org", 25, happy_eyeballs_delay=0.2)
    print((await reader.readline()).decode().split()[0])
    try:
        await asyncio.open_connection("missing.example.org", 25)
    except OSError as error:
        print(type(error).__name__)
asyncio.run(main())
"""
    result = holt(["run", "--net", "web.example.org:25,web.example.org:443", "--", "python3", "-c", program])

    assert result.ok().out == "220\ngaierror\n"


@needs("curl")
def test_curl(holt: Holt, lab: Lab) -> None:
    result = holt.sh(
        f"curl -sS http://web.example.org/ && curl -sS --cacert {lab.ca} https://web.example.org/; "
        "curl -sS https://other.example.org/; echo $?", "--ro", lab.ca, "--net", "web.example.org")

    assert result.out.count('"host": "web.example.org"') == 2 and result.out.endswith("6\n"), str(result)
    assert "Could not resolve host" in result.err


@needs("node")
def test_node_fetch(holt: Holt, lab: Lab) -> None:
    program = """
(async () => {
    for (const url of ["http://web.example.org/", "https://web.example.org/", "http://dead-six.example.org/"])
        console.log((await (await fetch(url)).json()).host);
    for (const url of ["http://other.example.org/", "http://web.example.org:81/"])
        await fetch(url).catch(error => console.log(error.cause.code));
})()
"""
    result = holt(
        ["run", "--ro", lab.ca, "--env", f"NODE_EXTRA_CA_CERTS={lab.ca}", "--net", "web.example.org,dead-six.example.org",
         "--", "node", "-e", program])

    assert result.ok().out.split() == [
        "web.example.org", "web.example.org", "dead-six.example.org", "ENOTFOUND", "ECONNREFUSED"]


@needs("git")
def test_git_over_http(holt: Holt, lab: Lab) -> None:
    make = "git init -q r && git -C r -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && " \
        "git -C r update-server-info && mv r/.git repo.git"
    subprocess.run(["bash", "-c", make], cwd=lab.files, check=True)
    result = holt.sh("git clone -q http://git.example.org/files/repo.git got && git -C got log --format=%s",
                     "--net", "git.example.org")

    assert result.ok().out == "first\n"


@needs("ssh")
def test_ssh_reads_the_banner(holt: Holt) -> None:
    result = holt.sh("ssh -v -o BatchMode=yes git.example.org true", "--net", "git.example.org:22")

    assert "remote software version netlab" in result.err, str(result)


# --- rules ---

BAD_RULES = {
    "": "", "web.example.org:0": "port", "web.example.org:65536": "port", "web.example.org:": "port",
    "https://web.example.org": "https", "web.example.org/path:443": "", "user@web.example.org:443": "",
    "bücher.example.org:443": "xn--", "*:443": "", "*.com:443": "", "a.*.example.org:443": "*", "web*.example.org:443": "*",
    "2130706433:80": "", "0177.0.0.1:80": "", "0x7f.1:80": "", "127.1:80": "", "[::ffff:10.0.0.1]:80": "10.0.0.1",
    "203.0.113.10": "port", "203.0.113.9/24:80": "first address", "a b.example.org:80": "", f"{'a' * 64}.example.org:80": "",
    "@missing": "missing", "web.example.org:20-10": "",
}


@pytest.mark.parametrize("rule", BAD_RULES)
def test_a_bad_rule_is_refused_with_the_reason(rule: str, holt: Holt) -> None:
    result = holt(["run", "--net", rule, "--", "true"])

    assert result.code == 125 and result.out == "", str(result)
    assert BAD_RULES[rule] in result.err, str(result)


@pytest.mark.parametrize(("rule", "said"), [
    ("127.0.0.1:80", "services on the host's loopback; --import PORT allows one port"),
    ("[::1]:80", "services on the host's loopback"),
    ("127.0.0.0/8:*", "services on the host's loopback"),
    ("npm", "--net npm: this names a host; the set of this name is @npm"),
    ("npm:443", None),
    ("@npm", None),
    ("0.0.0.0/0:80", None),
    ("10.0.0.0/8:80", None),
])
def test_a_rule_that_may_be_misread_is_told(rule: str, said: str | None, holt: Holt) -> None:
    err = holt(["run", "--net", rule, "--", "true"]).ok().err
    assert said in err if said else err == "", err


def test_rules_fold_case_and_drop_a_trailing_dot(holt: Holt) -> None:
    answers = probe(
        holt, ["get", "web.example.org"], ["get", "WEB.Example.ORG"], ["get", "web.example.org."], net="Web.EXAMPLE.org.:80")

    assert all(answer["address"] in (netlab.WEB4, netlab.WEB6) for answer in answers)


# --- sessions ---


@needs("curl")
@pytest.mark.identities("user", "root", "nested")
def test_a_session_has_a_network(sessions: Sessions) -> None:
    session = sessions.create("w", "--net", "web.example.org:80")

    for _ in range(2):
        assert '"host": "web.example.org"' in session.out("curl -sS http://web.example.org/")
        assert session.sh("curl -sS http://other.example.org/").code == 6


URGENT = """
import socket
end = socket.create_connection(("web.example.org", 7), timeout=60)
for data, flags in ((b"a", 0), (b"!", socket.MSG_OOB), (b"b", 0)):
    end.send(data, flags)
end.shutdown(socket.SHUT_WR)
reply = b""
while part := end.recv(9): reply += part
print(reply)
"""


def test_an_urgent_byte_does_not_stop_a_connection(holt: Holt) -> None:
    """splice(2) never moves such a byte. It arrives as an ordinary byte."""
    assert holt(["run", "--net", "web.example.org:7", "--", "python3", "-c", URGENT]).ok().out == "b'a!b'\n"
