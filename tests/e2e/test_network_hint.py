# SPDX-License-Identifier: Apache-2.0
"""A command that failed because it found no host is told what the network of the sandbox is, and how to get more of it."""

from __future__ import annotations

import json
import shlex
import socket

import pytest

from lib.sandbox import Holt
from lib.sessions import Sessions

pytestmark = pytest.mark.alike

HINT = "holt: the sandbox has no network\n  Allow the hosts that the command needs: --net "
IN_SESSION = "holt: the sandbox has no network\n  Allow the hosts that the command needs: holt stop w, then holt allow w net:"
RULES = "holt: the sandbox reaches only the hosts and ports that rules allow;"
PYTHON = "import socket\nsocket.getaddrinfo('example.invalid', 80)"


@pytest.mark.parametrize(
    "message",
    [
        "curl: (6) Could not resolve host: example.invalid",
        "fatal: unable to access 'https://example.invalid/x/': Could not resolve host: example.invalid",
        "npm error code EAI_AGAIN",
        "E: Temporary failure resolving 'example.invalid'",
        "ERROR: No matching distribution found for x",
        "ssh: connect to host 192.0.2.1 port 22: Network is unreachable",
        "ping: unknown host example.invalid",
        "ping: bad address 'example.invalid'",
        "[Errno -5] No address associated with hostname",
        "getaddrinfo: Name does not resolve",
        "Curl error (6): Couldn't resolve host name for https://example.invalid/repo",
        "{:failed_connect, [{:to_address, {~c'repo.hex.pm', 443}}, {:inet, [:inet], :nxdomain}]}",
        "Failed downloading https://luarocks.org/manifest-5.1 - host or service not provided, or not known",
        "Cannot connect to host example.invalid:443 ssl:default [Could not contact DNS servers]",
        "DNS resolution failed for example.invalid:443: C-ares status is not ARES_SUCCESS",
        "WARNING: fetching https://dl-cdn.alpinelinux.org/alpine/v3.20/main: DNS lookup error",
        ";; no servers could be reached",
        "ERROR 2005 (HY000): Unknown MySQL server host 'example.invalid' (-3)",
        "ERROR 2005 (HY000): Unknown server host 'example.invalid' (-3)",
        "Could not reach host rubygems.org. Check your network connection and try again.",
        "All attempts to connect to pypi.org failed.",
        "CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://repo.anaconda.com/pkgs/main/noarch>",
        "info There appears to be trouble with your network connection. Retrying...",
        "error NU1301: Unable to load the service index for source https://api.nuget.org/v3/index.json.",
        "unable to access index for repository https://cloud.r-project.org/src/contrib:",
        "Got socket error trying to find package http at https://pub.dev.",
    ],
)
def test_a_failed_command_is_told_that_there_is_no_network(holt: Holt, message: str) -> None:
    script = f"echo {shlex.quote(message)} >&2; exit"
    failed, passed = holt.sh(f"{script} 1"), holt.sh(f"{script} 0")
    assert failed.err.count(HINT) == 1 and failed.report["network"]["missed"] is True
    assert HINT not in passed.err and passed.report["network"]["missed"] is False


@pytest.mark.parametrize(
    "message",
    [
        "curl: (7) Failed to connect to 127.0.0.1 port 9",
        "error: unable to load the service index for source /srv/packages",
        "error: Could not resolve './module' from src/main.js",
    ],
)
def test_no_hint_for_other_failures(holt: Holt, message: str) -> None:
    assert "no network" not in holt.sh(f"echo {shlex.quote(message)} >&2; exit 7").err


def test_a_program_that_asks_for_a_host(holt: Holt, sessions: Sessions) -> None:
    session = sessions.create("w")
    for result, hint in ((holt(["run", "--", "python3", "-c", PYTHON]), HINT), (session("python", "-c", PYTHON), IN_SESSION)):
        assert result.err.count(hint) == 1, str(result)
    with (holt.cwd.parent / "err").open("w+") as err:
        session.exec("python3", "-c", PYTHON, stderr=err)
        err.seek(0)
        assert err.read().count(IN_SESSION) == 1


@pytest.mark.parametrize(
    "message, rule, known",
    [
        ("curl: (6) Could not resolve host: example.invalid", "example.invalid", None),
        ("Error: getaddrinfo EAI_AGAIN registry.npmjs.org", "registry.npmjs.org", "npm"),
        ('Get "https://proxy.golang.org/x": dial tcp: lookup proxy.golang.org on [::1]:53: refused', "proxy.golang.org", "go"),
        (
            "[ERROR] Could not transfer artifact x:pom:2.6 from/to central (https://repo.maven.apache.org/maven2): transfer failed"
            " for https://repo.maven.apache.org/maven2/x.pom: Unknown host repo.maven.apache.org: Temporary failure in name resolution",
            "repo.maven.apache.org",
            "maven",
        ),
        ('Exception in thread "main" java.net.UnknownHostException: services.gradle.org', "services.gradle.org", "gradle"),
        ("E: Failed to fetch http://example.invalid/x  Temporary failure resolving 'example.invalid'", "example.invalid", None),
        ("wget: unable to resolve host address ‘example.invalid’", "example.invalid", None),
        ("NameResolutionError: Failed to resolve 'pypi.org' ([Errno -3] Temporary failure in name resolution)", "pypi.org", "python"),
        (
            "Unable to download data from https://rubygems.org/ - Failed to open TCP connection to rubygems.org:443"
            " (getaddrinfo: Temporary failure in name resolution)",
            "rubygems.org",
            "ruby",
        ),
        ("php_network_getaddresses: getaddrinfo for example.invalid failed: Name or service not known", "example.invalid", None),
        ("curl: (6) Could not resolve host: a..b;x", "NAME:PORT", None),
        ("curl: (6) Could not resolve host: --allow-wide", "NAME:PORT", None),
        ("Could not resolve host: ", "NAME:PORT", None),
        ("ssh: Could not resolve hostname github.com: Temporary failure in name resolution", "NAME:PORT", None),
    ],
)
def test_the_host_and_its_set_are_named(message: str, rule: str, known: str | None, sessions: Sessions) -> None:
    """The text is the command's, so only a name that a rule takes is passed on. exec has no --net. A rule for ssh needs a port."""
    words = "its whole set" if known else "a set such as"
    result = sessions.holt(["run", "--", "sh", "-c", 'echo "$0" >&2; exit 1', message])
    assert f'--net {rule}, or {words} --net @{known or "python"}; "holt policy list"' in result.err

    session = sessions.create("w")
    with (sessions.holt.cwd.parent / "err").open("w+") as err:
        session.exec("sh", "-c", 'echo "$0" >&2; exit 1', message, stderr=err)
        err.seek(0)
        text = err.read()
    assert f'holt stop w, then holt allow w net:{rule}, or {words} net:@{known or "python"};' in text and "--net" not in text


@pytest.mark.parametrize(
    "message",
    [
        "curl: (7) Failed to connect to example.invalid port 81: Couldn't connect to server",
        "connect ECONNREFUSED 198.18.1.0:81",
        "ssh: connect to host 192.0.2.1 port 22: Network is unreachable",
    ],
)
def test_a_failed_command_is_told_that_rules_limit_the_network(holt: Holt, message: str) -> None:
    def told(*options: str) -> str:
        return holt(["run", *options, "--", "sh", "-c", 'echo "$0" >&2; exit 1', message]).err

    assert told("--net", "example.invalid").count(RULES) == 1
    assert RULES not in told()
    assert "holt:" not in told("--network", "host")


def test_rules_are_not_named_for_the_sandbox_s_own_ports(holt: Holt) -> None:
    script = "echo 'connect to 127.0.0.1 port 3000: Connection refused' >&2; exit 1"

    assert "holt:" not in holt(["run", "--net", "example.invalid", "--", "sh", "-c", script]).err


def test_a_session_with_rules_is_told_so(holt: Holt, sessions: Sessions) -> None:
    session = sessions.create("w", "--net", "example.invalid:80")
    with (holt.cwd.parent / "err").open("w+") as err:
        session.exec("sh", "-c", "echo Connection refused >&2; exit 1", stderr=err)
        err.seek(0)
        text = err.read()

    assert RULES in text and HINT not in text and "allow it: holt allow w net:NAME:PORT, or net:ADDRESS:PORT\n" in text


@pytest.mark.parametrize("message", [
    "curl: (7) Failed to connect to localhost port {} after 0 ms: Couldn't connect to server",
    "connect ECONNREFUSED 127.0.0.1:{}", "connect ECONNREFUSED ::1:{}", "dial tcp [::1]:{}: connect: connection refused",
    'connection to server at "127.0.0.1", port {} failed: Connection refused',
    "curl: (7) Failed to connect to 127.0.0.1 port {} after 0 ms: Could not connect to server",
    "bash: line 1: /dev/tcp/127.0.0.1/{}: Connection refused", "[Errno 111] Connect call failed ('127.0.0.1', {})",
    "HTTPConnectionPool(host='localhost', port={}): Max retries exceeded: [Errno 111] Connection refused",
])
def test_a_port_of_the_host_is_not_one_of_the_sandbox(message: str, holt: Holt, sessions: Sessions) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = ("sh", "-c", 'echo "$0" >&2; exit 7', message.format(port))
        cure = f"a program of the host listens on port {port}, which the sandbox cannot reach\n  If the command meant that one: "
        assert f"{cure}--import {port}\n" in holt(["run", "--", *command]).err
        session = sessions.create("w")
        assert f"{cure}holt create NAME --import {port}\n" in session.exec(*command).err
    assert "holt:" not in holt(["run", "--", *command]).err


def test_a_port_that_the_sandbox_shares_or_cannot_import_gets_no_hint(holt: Holt, sessions: Sessions) -> None:
    fails = ("sh", "-c", 'echo "connect ECONNREFUSED 127.0.0.1:$0" >&2; exit 7')
    with socket.create_server(("127.0.0.9", 0)) as server:
        port = str(server.getsockname()[1])
        for options in ((), ("--import", port), ("--publish", f"{port}:80"), ("--publish", f"8077:{port}")):
            assert "a program of the host" not in holt(["run", *options, "--", *fails, port]).err
        session = sessions.create("w", "--publish", f"{port}:{port}")
        assert "a program of the host" not in session.exec(*fails, port).err
    circle = holt(["run", "--publish", "8080:80", "--import", "8080:80", "--", "true"])
    assert "port 8080 of the host is both published and imported" in circle.refusal()


def test_a_name_like_an_option_gets_an_option_that_works(holt: Holt) -> None:
    query = r"b'\x12\x34\x01\0\0\1\0\0\0\0\0\0\x02-x\0\0\1\0\1'"  # glibc would not ask for such a name
    asks = f"import socket\ns = socket.socket(2, 2)\ns.sendto({query}, ('198.18.0.1', 53))\ns.recv(99)\nraise SystemExit(1)"
    assert "; --net=-x allows it" in holt(["run", "--net", "a.invalid", "--", "python3", "-c", asks]).err
    holt(["run", "--net=-x", "--", "true"]).ok()


def test_the_project_s_rules_give_no_network(holt: Holt) -> None:
    (holt.cwd / ".holt.json").write_text('{"holt": 1, "network": {"allow": ["a.invalid"]}}')
    told = holt.sh("echo 'Could not resolve host: a.invalid' >&2; exit 6").err
    assert "has no network: the project's .holt.json has rules for one, but can only narrow yours\n  Allow the hosts" in told


@pytest.mark.parametrize("name, cure", [
    ("pypi.org", "{}pypi.org allows it on ports 80 and 443, and @python its whole set\n"),
    ("some.invalid", "{}some.invalid allows it on ports 80 and 443\n"),
])
def test_a_refused_name_has_ports_and_a_set(name: str, cure: str, holt: Holt, sessions: Sessions) -> None:
    assert cure.format("--net ") in holt(["run", "--net", "example.invalid", "--", "getent", "hosts", name]).err
    session = sessions.create("w", "--net", "example.invalid")
    assert cure.format("holt allow w net:") in session.exec("getent", "hosts", name).err


@pytest.mark.parametrize("options, missed", [((), True), (("--net", "example.invalid:80"), True), (("--network", "host"), False)])
def test_a_session_s_results_say_that_a_host_was_missed(options: "tuple[str, ...]", missed: bool, holt: Holt, sessions: Sessions) -> None:
    session = sessions.create("w", *options)
    command = ("sh", "-c", "echo Network is unreachable >&2; exit 1")
    assert json.loads(session.exec(*command, flags=("--json",)).err.splitlines()[-1])["network"]["missed"] == missed
    with (holt.cwd.parent / "err").open("w") as err:  # only the caller can read it
        session.exec(*command, flags=("--report", "report"), stderr=err)
    assert json.loads((holt.cwd / "report").read_text())["network"]["missed"] == missed
    with session.rpc() as rpc:
        assert rpc.call("exec", argv=list(command)).get("network_missed", False) == missed
        code = "raise OSError('Network is unreachable')"
        assert rpc.call("python.run", code=code).get("network_missed", False) == missed
        assert "network_missed" not in rpc.call("exec", argv=["sh", "-c", "echo fails >&2; exit 1"])


def test_show_names_the_rules_of_a_session(sessions: Sessions) -> None:
    session = sessions.create("w", "--net", "example.invalid:80,@npm", "-p", "0:3000", "--import", "1234:5432", "--import", "99")

    assert json.loads(session("show", "--json").out)["network"] == {
        "mode": "allow", "allow": ["example.invalid:80", "@npm"], "once": [], "publish": ["0:3000"], "import": ["1234:5432", "99"],
    }
    assert session("show").out.endswith(
        "network     example.invalid:80\n            @npm\npublish     0:3000\nimport      1234:5432\n            99\n"
    )
