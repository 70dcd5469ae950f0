# SPDX-License-Identifier: Apache-2.0
"""Routes for clients that insist on https://: holt-gateway terminates TLS for the hosts that the policy names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.routes import WITH_KEY, MakePolicy, policy_maker
from lib.sandbox import Holt, Result
from lib.sessions import Sessions
from lib.tools import needs
from lib.upstream import KEY, Upstream, upstream

pytestmark = needs("curl", "python3", "openssl")

HOST = "api.acme.example"
GET = 'curl -sS -m 20 -H "authorization: Bearer $T"'

Run = Callable[..., Result]


@pytest.fixture
def service() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


@pytest.fixture
def policy(service: Upstream, place: Path, identity: Identity) -> MakePolicy:
    return policy_maker(place, identity, service.url, terminate_tls=[HOST, "Files.Acme.Example."], env={"T": "{token}", "U": "{url}"})


@pytest.fixture
def run(holt: Holt, policy: MakePolicy) -> Run:
    return lambda script, *options, **route: holt.sh(script, "--policy", policy(**route), *options, env=WITH_KEY)


@pytest.mark.identities("user", "root", "nested")
def test_a_program_uses_the_https_url(run: Run, service: Upstream) -> None:
    result = run(f"{GET} https://{HOST}/v1/models?x=1; {GET} https://files.acme.example/v1/list; {GET} $U/v1/plain; cat /proc/*/environ; true").ok()

    assert [seen["path"] for seen in service.seen] == ["/v1/models?x=1", "/v1/list", "/v1/plain"]
    assert {seen["headers"]["authorization"] for seen in service.seen} == {f"Bearer {KEY}"}
    assert KEY not in result.out and result.report is not None
    assert result.report["routes"] == {"lost": False, "tls_terminated": [HOST, "files.acme.example"]}


# Each prints the status of a response. git always prints 200, and the service must have got its request.
CLIENTS = {
    "curl": f"curl -sS -o /dev/null -w '%{{http_code}}\\n' -H \"x-key: $T\" https://{HOST}/v1/x",
    "python3": f"""python3 -c 'import os, urllib.request as u; print(u.urlopen(u.Request("https://{HOST}/v1/x", headers={{"x-key": os.environ["T"]}})).status)'""",
    "openssl": f"printf 'GET /v1/x HTTP/1.0\\r\\nHost: {HOST}\\r\\nx-key: %s\\r\\n\\r\\n' $T | "
               f"openssl s_client -quiet -verify_return_error -verify_hostname {HOST} -connect {HOST}:443 2>/dev/null | head -1 | cut -d' ' -f2",
    "node": f"""node -e 'fetch("https://{HOST}/v1/x", {{headers: {{"x-key": process.env.T}}}}).then(r => console.log(r.status), e => console.log(e.cause))'""",
    "wget": f"wget -q -S -O /dev/null --header=\"x-key: $T\" https://{HOST}/v1/x 2>&1 | sed -n '1s/.* \\(200\\) .*/\\1/p'",
    "git": f"""git -c http.extraHeader="x-key: $T" ls-remote https://{HOST}/v1/x >/dev/null 2>&1; echo 200""",
}


@pytest.mark.parametrize("client", [pytest.param(client, marks=needs(client)) for client in CLIENTS])
def test_clients_trust_the_certificate(run: Run, service: Upstream, client: str) -> None:
    assert run(CLIENTS[client]).out.split() == ["200"]
    assert service.seen[0]["path"].startswith("/v1/x") and KEY in service.seen[0]["headers"]["authorization"]


@needs("javac")
def test_java_trusts_the_certificate(run: Run, holt: Holt) -> None:
    (holt.cwd / "Get.java").write_text("""
        public class Get {
            public static void main(String[] args) throws Exception {
                var c = (java.net.HttpURLConnection) new java.net.URL(args[0]).openConnection();
                c.setRequestProperty("x-key", System.getenv("T"));
                System.out.println(c.getResponseCode());
            }
        }""")
    assert run(f"java Get.java https://{HOST}/v1/x").ok().out == "200\n"
    assert "holt-0" in run("keytool -list -keystore /etc/holt/cacerts -storepass changeit").ok().out


def test_programs_without_the_variables(run: Run) -> None:
    """The bundle lies in the place of the host's, so programs that ignore variables trust it, too."""
    script = f"env -i T=$T curl -sS -o /dev/null -w '%{{http_code}}' -H \"x-key: $T\" https://{HOST}/v1/x"
    assert run(script).out == "200"


@pytest.mark.parametrize("request_, why", (
    (f"curl -sS https://{HOST}/v1/x", "the request has no token"),
    (f"{GET} -H 'host: other.example' https://{HOST}/v1/x", "no route terminates TLS for this host"),
    (f"{GET} --path-as-is https://{HOST}/a/../v1/x", "the path is ambiguous"),
    (f"{GET} https://{HOST}/v2/x", "the route does not allow this method and path"),
))
def test_the_same_rules_apply(run: Run, service: Upstream, request_: str, why: str) -> None:
    result = run(f"{request_}; false", allow=["GET /v1/*"])
    assert why in result.out and not service.seen
    assert result.report and [d["layer"] for d in result.report["denials"]] == ["route"]


def test_other_hosts_keep_their_certificates(run: Run) -> None:
    """Nothing else goes through holt-gateway, and its certificate is for the hosts of the policy only."""
    result = run(f"{GET} --connect-to other.example:443:{HOST}:443 https://other.example/v1/x; echo $?; {GET} https://other.example/; echo $?")
    assert result.out.split() == ["60", "6"], result
    assert "no alternative certificate subject name" in result.err


def test_each_sandbox_has_its_own_ca(run: Run) -> None:
    first, second = (run("cat /etc/holt/ca.crt; ls /etc/holt; grep -rlE 'PRIVATE KEY' /etc/holt; grep -qF -f /etc/holt/ca.crt /etc/holt/ca-bundle.crt").ok().out
                     for _ in range(2))
    names = "-----END CERTIFICATE-----\nca-bundle.crt\nca.crt\ncacerts\n"

    assert first != second and first.endswith(names) and second.endswith(names)
    assert first.count("BEGIN CERTIFICATE") == 1


def test_without_hosts_nothing_is_trusted(run: Run) -> None:
    result = run("ls /etc/holt; env; true", terminate_tls=[])
    assert "SSL_CERT_FILE" not in result.out and "cannot access '/etc/holt'" in result.err
    assert result.report and result.report["routes"]["tls_terminated"] == []


def test_a_redirect_stays_at_the_host(run: Run, service: Upstream) -> None:
    result = run(f"{GET} -i https://{HOST}/v1/back")
    assert "location: /v1/arrived\r\n" in result.out.lower(), result


@pytest.mark.parametrize("route, why", (
    ({"terminate_tls": ["localhost"]}, "is not the full name of a host"),
    ({"terminate_tls": ["127.0.0.1"]}, "is not the full name of a host"),
    ({"terminate_tls": ["*.acme.example"]}, "is not the full name of a host"),
    ({"terminate_tls": [HOST], "upstream": "https://a.example/v1"}, "must not have a path then"),
    ({"terminate_tls": [HOST, HOST.upper()]}, f"another route has the host {HOST}"),
    ({"files": {"/etc/holt/ca.crt": ""}}, "another file of holt has this path"),
))
def test_wrong_hosts(run: Run, route: Any, why: str) -> None:
    assert why in run("true", **route).refusal()


@pytest.mark.identities("user", "root")
def test_a_session(sessions: Sessions, policy: MakePolicy, service: Upstream) -> None:
    session = sessions.create("w", "--policy", policy())
    assert f"routes      acme to {service.url}, and TLS of {HOST} files.acme.example\n" in sessions(["show", "w"]).ok().out
    route = {"name": "acme", "upstream": service.url, "env": ["T", "U"], "terminate_tls": [HOST, "files.acme.example"], "live": False}
    for verb in (["show"], ["route", "list"]):
        assert json.loads(sessions([*verb, "w", "--json"]).ok().out)["routes"] == [route]
    assert session.cp("w:/etc/hosts", "-").ok().out.endswith(" files.acme.example\n"), "a session at rest"
    for _ in range(2):
        assert '"/v1/x"' in sessions(["exec", "w", "--", "sh", "-c", f"{GET} https://{HOST}/v1/x"], env=WITH_KEY).ok().out
        sessions(["stop", "w"]).ok()


def test_with_a_network_of_its_own(run: Run) -> None:
    """The host is reached at the loopback, although holt's resolver answers for other names."""
    result = run(f"{GET} -o /dev/null -w '%{{http_code}}' https://{HOST}/v1/x; cat /etc/resolv.conf", network={"allow": ["other.example:443"]})
    assert result.out.startswith("200") and "198.18.0.1" in result.out, result


def test_only_http_1_1_is_offered(run: Run) -> None:
    ask = f"openssl s_client -connect {HOST}:443 -alpn h2,http/1.1 </dev/null"
    assert "ALPN protocol: http/1.1\n" in run(ask).out
