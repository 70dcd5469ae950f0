# SPDX-License-Identifier: Apache-2.0
"""Routes: a program inside uses a service with a credential that it does not have."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.leaks import descendants
from lib.routes import WITH_KEY, MakePolicy, policy_maker
from lib.sandbox import Holt, Result
from lib.sessions import Session, Sessions, until
from lib.tools import needs
from lib.upstream import KEY, Upstream, upstream

pytestmark = needs("curl", "python3", "openssl")

GET = 'curl -sS -m 20 -H "authorization: Bearer $ACME_TOKEN"'


@pytest.fixture
def service() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


@pytest.fixture
def policy(service: Upstream, place: Path, identity: Identity) -> MakePolicy:
    return policy_maker(place, identity, service.url)


@pytest.fixture
def run(holt: Holt, policy: MakePolicy) -> Callable[..., Result]:
    def run(script: str, env: "dict[str, str] | None" = None, **route: Any) -> Result:
        return holt.sh(script, "--policy", policy(**route), env=WITH_KEY if env is None else env)

    return run


Run = Callable[..., Result]


def denied(result: Result) -> list[tuple[str, str, int]]:
    return [(d["what"], d["answer"], d["count"]) for d in (result.report or {})["denials"] if d["layer"] == "route"]


# --- what a request becomes ---


@pytest.mark.identities("user", "root", "nested")
def test_the_service_gets_the_credential_and_the_program_does_not(run: Run, service: Upstream) -> None:
    result = run(f"echo $ACME_URL $ACME_AT; {GET} -H 'x-more: 1' $ACME_URL/v1/models?limit=2; env; cat /proc/*/environ; true").ok()

    assert result.out.startswith("http://127.0.0.1:8474/acme 127.0.0.1:8474\n")
    assert KEY not in result.out + result.err
    [seen] = service.seen
    assert (seen["method"], seen["path"]) == ("GET", "/v1/models?limit=2")
    assert seen["headers"]["authorization"] == f"Bearer {KEY}" and seen["headers"]["x-more"] == "1"
    assert seen["headers"]["host"] == service.url.removeprefix("http://")
    assert "holt-" not in json.dumps(seen)


@pytest.mark.parametrize("client", (
    '-H "authorization: Bearer $ACME_TOKEN"', '-H "x-api-key: $ACME_TOKEN"', '-u "user:$ACME_TOKEN"', '-u "$ACME_TOKEN:"',
))
def test_a_client_sends_the_token_where_it_sends_a_key(client: str, run: Run, service: Upstream) -> None:
    run(f"curl -sS -m 20 {client} $ACME_URL/v1/models").ok()
    [seen] = service.seen
    assert seen["headers"]["authorization"] == f"Bearer {KEY}" and "holt-" not in json.dumps(seen)
    assert "x-api-key" not in seen["headers"]


def test_a_credential_in_the_query(run: Run, service: Upstream) -> None:
    run(f"{GET} '$ACME_URL/v1/models?a=b&key=mine&c'".replace("'", '"'), header={}, query={"key": "k {env:ACME_KEY}"}).ok()
    assert service.seen[0]["path"] == f"/v1/models?a=b&c&key=k%20{KEY}"
    assert "authorization" not in service.seen[0]["headers"]


@pytest.mark.parametrize("base,target,path", (
    ("", "", "/"), ("", "/", "/"), ("", "?q", "/?q"), ("/api/", "", "/api"), ("/api", "/v1/x%2Fy?z=%20", "/api/v1/x%2Fy?z=%20"),
))
def test_the_path_goes_on_as_it_was_sent(base: str, target: str, path: str, run: Run, service: Upstream) -> None:
    run(f"{GET} --path-as-is \"$ACME_URL{target}\"", upstream=service.url + base).ok()
    assert service.seen[0]["path"] == path


@pytest.mark.parametrize("method", ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"))
def test_methods(method: str, run: Run, service: Upstream) -> None:
    option = "-I" if method == "HEAD" else f"-X {method}"
    run(f"{GET} {option} $ACME_URL/v1/x").ok()
    assert [seen["method"] for seen in service.seen] == [method]
    assert service.seen[0]["headers"].get("content-length") == ("0" if method in ("POST", "PUT", "PATCH") else None)
    assert "content-type" not in service.seen[0]["headers"] and "expect" not in service.seen[0]["headers"]


def test_a_head_without_a_length_has_no_body(run: Run) -> None:
    """The next response on the connection would begin with it."""
    script = f"""{GET} -I -o /dev/null -w '%{{http_code}} ' $ACME_URL/v1/chunks --next -sS -m 20 -H "authorization: Bearer $ACME_TOKEN" $ACME_URL/v1/x
python3 - <<E
import os, socket
s = socket.create_connection(("127.0.0.1", 8474), 20)
s.sendall(b"HEAD /acme/v1/chunks HTTP/1.1\\r\\nHost: x\\r\\nX-T: " + os.environ["ACME_TOKEN"].encode() + b"\\r\\n\\r\\n")
data = b""
while more := s.recv(65536): data += more
print(data.endswith(b"\\r\\n\\r\\n"), data.count(b"\\r\\n\\r\\n"))
E"""
    out = run(script).ok().out
    assert out.startswith('200 {"method": "GET"') and out.endswith("}True 1\n"), out


@pytest.mark.parametrize("how", ("--data-binary @big", "-T big", "-T big -H 'transfer-encoding: chunked'"))
def test_bodies_pass_in_both_directions(how: str, run: Run, service: Upstream) -> None:
    script = f"head -c 20000000 /dev/urandom > big; sha256sum < big; {GET} {how} $ACME_URL/v1/x; {GET} $ACME_URL/v1/big | wc -c"
    first, second = run(script).ok().out.split("\n", 1)
    assert json.loads(second.rsplit("}", 1)[0] + "}")["sha256"] == first.split()[0] == service.seen[0]["sha256"]
    assert second.rsplit("}", 1)[1].strip() == str(16 << 20)


def test_events_come_when_they_are_sent(run: Run) -> None:
    program = f"""
import os, urllib.request
def get(path): return urllib.request.urlopen(urllib.request.Request(os.environ["ACME_URL"] + path, headers={{"x-api-key": os.environ["ACME_TOKEN"]}}), timeout=15)
events = get("/v1/events")
print(events.headers["content-type"], events.readline(), events.readline())
get("/v1/go_on").read()
print(events.read())
"""
    assert run(f"python3 -c '{program}'").ok().out == "text/event-stream b'data: one\\n' b'\\n'\nb'data: two\\n\\n'\n"


def test_many_requests_at_once(run: Run, service: Upstream) -> None:
    program = """
import concurrent.futures, os, urllib.request
def get(n):
    request = urllib.request.Request(f"{os.environ['ACME_URL']}/v1/{n}", headers={"x-api-key": os.environ["ACME_TOKEN"]})
    with urllib.request.urlopen(request, timeout=15) as answer: return len(answer.read()) and answer.status
with concurrent.futures.ThreadPoolExecutor(16) as pool: print(sum(pool.map(get, range(200))))
"""
    assert run(f"python3 - <<'END'\n{program}\nEND", concurrent=16).ok().out == f"{200 * 200}\n"
    assert len(service.seen) == 200


# --- refusals ---


@pytest.mark.parametrize("request_,status,why", (
    ("curl -sS -m 20 $ACME_URL/v1/models", 401, "the request has no token"),
    ("curl -sS -m 20 -H 'authorization: Bearer holt-0000' $ACME_URL/v1/models", 401, "the request has no token"),
    (f"{GET} http://$ACME_AT/other/x", 404, "the routes are /acme"),
    (f"{GET} http://$ACME_AT/", 404, "the routes are /acme"),
    (f"{GET} $ACME_URL/v2/models", 403, "does not allow this method and path"),
    (f"{GET} -X DELETE $ACME_URL/v1/models", 403, "does not allow this method and path"),
    (f"{GET} --path-as-is $ACME_URL/v1/../v2/models", 400, "the path is ambiguous"),
    (f"{GET} $ACME_URL/v1/%2e%2E/v2", 400, "the path is ambiguous"),
    (f"{GET} $ACME_URL/v1/..%2Fv2", 400, "the path is ambiguous"),
    (f"{GET} $ACME_URL/v1/..%5Cv2", 400, "the path is ambiguous"),
    (f"{GET} $ACME_URL/v1/x%0d%0ay", 400, "the path is ambiguous"),
    (f"{GET} -H 'x y: z' $ACME_URL/v1/x", 400, "the method or a header is malformed"),
    (f"{GET} -H $'authorization : Bearer mine' $ACME_URL/v1/x", 400, "the method or a header is malformed"),
    (f"{GET} -H $'x: a\x01b' $ACME_URL/v1/x", 400, "the method or a header is malformed"),
    (f"{GET} -X 'G@T' $ACME_URL/v1/x", 400, "the method or a header is malformed"),
    (f"{GET} -X TRACE $ACME_URL/v1/x", 405, "carries no requests of this method"),
    (f"{GET} -d 12345678901 $ACME_URL/v1/up", 413, "bodies of at most 10 bytes"),
    (f"{GET} -d 12345678901 -H 'transfer-encoding: chunked' $ACME_URL/v1/up", 413, "bodies of at most 10 bytes"),
))
def test_refusals(request_: str, status: int, why: str, run: Run, service: Upstream) -> None:
    result = run(f"{request_} -w '\\n%{{http_code}}'; exit 1", allow=["GET /v1/*", "POST /v1/up"], body="10B")
    body, code = result.out.rsplit("\n", 1)
    assert int(code) == status and why in json.loads(body)["error"]["message"], result
    assert f"with {status} (1x): " in result.err and why in result.err
    [(what, answer, count)] = denied(result)
    assert (answer, count) == (str(status), 1)
    assert service.seen == [] or status == 413


def test_limits_of_requests(run: Run) -> None:
    codes = f"for i in 1 2 3; do {GET} -o /dev/null -w '%{{http_code}} ' $ACME_URL/v1/x; done; exit 1"
    for period in ("1h", "90s", "2m"):
        result = run(codes, requests=f"2/{period}")
        assert result.out == "200 200 429 " and f"at most 2 requests in {period}\n" in result.err, result
    assert run(f"{GET} $ACME_URL/v1/big | wc -c; {codes}", bytes="1MiB").out.endswith("429 429 429 ")
    both = f"{GET} -o /dev/null $ACME_URL/v1/slow & sleep 1; {codes}; "
    result = run(f"{both}", concurrent=1)
    assert result.out == "429 429 429 " and ("GET /v1/x of the route acme", "429", 3) in denied(result)


def test_a_request_has_a_deadline(run: Run) -> None:
    result = run(f"{GET} $ACME_URL/v1/slow; exit 1", timeout="1s")
    assert "did not answer in time" in result.out and denied(result)[0][1] == "504"


# --- responses ---


def test_a_credential_in_a_response_is_masked(run: Run) -> None:
    out = run(f"{GET} -i $ACME_URL/v1/echo").ok().out
    stars = "*" * len(KEY)
    assert KEY not in out and f"x-key: {stars}\r\n" in out
    assert out.endswith(f"<{stars}><{'*' * 32}>sk-a-real")


def test_a_compressed_response_is_refused(run: Run, service: Upstream) -> None:
    result = run(f"{GET} --compressed $ACME_URL/v1/gzip; exit 1")
    assert "an answer that cannot be passed on" in result.out
    assert service.seen[0]["headers"]["accept-encoding"] == "identity"


def test_a_redirect_is_not_followed(run: Run, service: Upstream) -> None:
    assert "location: http://127.0.0.1:9/elsewhere" in run(f"{GET} -i $ACME_URL/v1/away").ok().out
    assert len(service.seen) == 1


def test_a_response_that_breaks_off_is_no_success(run: Run) -> None:
    result = run(f"{GET} $ACME_URL/v1/cut")
    assert result.code == 18 and "closed the connection within its answer" in result.err


def test_a_service_that_cannot_be_reached(run: Run) -> None:
    result = run(f"{GET} $ACME_URL/v1/x; exit 1", upstream="http://127.0.0.1:9")
    assert "127.0.0.1:9 cannot be reached" in result.out and denied(result)[0][1] == "502"


@pytest.mark.parametrize("name,line,rule,status", (
    ("api.acme.example", "127.0.0.1 api.acme.example", None, "502"),
    ("api.acme.example", "127.0.0.1 api.acme.example", "127.0.0.0/8:*", "200"),
    ("api.acme.example", "127.0.0.1 api.acme.example", "127.0.0.0/8:1", "502"),
    ("localhost.acme.example", "127.0.0.1 localhost.acme.example", None, "502"),
    ("mylocalhost", "127.0.0.1 mylocalhost", None, "502"),
    ("localhost", "127.0.0.1 localhost", None, "200"),
    ("acme.localhost", "127.0.0.1 acme.localhost", None, "200"),
    ("localhost", "10.0.0.1 localhost", None, "502"),
))
def test_a_name_must_not_lead_to_the_host(name: str, line: str, rule: "str | None", status: str, holt: Holt, policy: MakePolicy,
                                          service: Upstream, place: Path, identity: Identity) -> None:
    """Only localhost means the loopback without a rule, and only the loopback."""
    hosts = place / "hosts"
    hosts.write_text(f"{line}\n")
    path = policy(network={"allow": [rule]} if rule else None, upstream=service.url.replace("127.0.0.1", name))
    result = holt.sh(f"{GET} -w '%{{http_code}}' $ACME_URL/v1/x; exit 1", "--policy", path, env=WITH_KEY,
                     prefix=["unshare", *(() if identity.name == "root" else ("--map-root-user",)), "--mount", "sh", "-c",
                             'mount --bind "$0" /etc/hosts && exec "$@"', identity.own(hosts)])
    assert result.out.endswith(status) and ("which no rule allows" in result.err) == (status == "502")


@pytest.mark.parametrize("name,trusted,works", (("localhost", True, True), ("localhost", False, False), ("127.0.0.1", True, False)))
def test_the_certificate_is_checked(
    name: str, trusted: bool, works: bool, run: Run, service: Upstream, place: Path, identity: Identity
) -> None:
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", place / "key.pem", "-out", place / "ca.pem"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "ca.pem", place / "key.pem")
    service.socket = context.wrap_socket(service.socket, server_side=True)
    env = {**WITH_KEY, "SSL_CERT_FILE": str(identity.own(place / "ca.pem"))} if trusted else WITH_KEY
    result = run(f"{GET} -w '%{{http_code}}' $ACME_URL/v1/x; exit 1", env=env, network={"allow": ["127.0.0.0/8:*"]},
                 upstream=service.url.replace("http:", "https:").replace("127.0.0.1", name))
    assert result.out.endswith("200" if works else "502") and len(service.seen) == works
    assert works or "has no certificate that this host trusts" in result.out


# --- credentials ---


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("source", ("file", "command"))
def test_a_credential_from_a_file_or_a_command(source: str, run: Run, service: Upstream, place: Path, identity: Identity) -> None:
    path = identity.own(place / "key") if (place / "key").write_text(KEY + "\n") else None
    path.chmod(0o600)
    value = {"file": str(path)} if source == "file" else {"command": ["sh", "-c", f"echo used >> {place}/log; cat {path}"]}
    result = run(f"{GET} $ACME_URL/v1/x; {GET} $ACME_URL/v1/echo; cat {path}", env={}, header={"x-key": value})
    assert "No such file" in result.err and KEY not in result.out + result.err
    assert [seen["headers"]["x-key"] for seen in service.seen] == [KEY, KEY]
    assert source == "file" or (place / "log").read_text() == "used\n"


@pytest.mark.parametrize("value,why", (
    ({"file": "/nonexistent/key"}, "the file /nonexistent/key: No such file or directory"),
    ({"file": "/dev/null"}, "the file /dev/null: it is empty"),
    ({"command": ["false"]}, "the command false: it ended with exit code 1"),
    ({"command": ["printf", "a\\nb"]}, "the command printf: it has more than one line"),
    ({"command": ["no-such-program"]}, "the command no-such-program: No such file or directory"),
))
def test_a_credential_that_is_missing(value: Any, why: str, run: Run, service: Upstream) -> None:
    result = run(f"{GET} $ACME_URL/v1/x; exit 1", env={}, header={"x-key": value})
    assert f"there is no credential for this route: {why}" in result.out and why in result.err
    assert service.seen == [] and denied(result)[0][1] == "502"


def test_an_unset_variable_is_an_error_before_the_command(run: Run, holt: Holt) -> None:
    result = run("echo started", env={})
    assert "the route acme needs the environment variable ACME_KEY, which is not set" in result.refusal() and result.out == ""
    named = holt(["run", "--route", "openai", "--", "true"], env={"OPENAI_API_KEY": ""})
    assert "the route openai needs the environment variable OPENAI_API_KEY" in named.refusal()
    assert holt(["run", "--route", "openai", "--", "sh", "-c", "echo $OPENAI_BASE_URL"], env={"OPENAI_API_KEY": "k" * 8}).ok().out == \
        "http://127.0.0.1:8474/openai/v1\n"


def test_a_route_needs_a_network_of_its_own(holt: Holt, policy: MakePolicy) -> None:
    assert "a route needs a network of its own" in holt.sh("true", "--policy", policy(), "--network", "host", env=WITH_KEY).refusal()
    (holt.cwd / ".holt.json").write_text('{"holt": 1, "bridge": {"routes": ["openai"]}}')
    assert "bridge.routes" in holt.sh("true").refusal()


# --- holt-gateway ---


def gateways() -> "list[int]":
    return [process.pid for process in descendants() if process.name == "holt-gateway" and not process.ended]


@pytest.mark.identities("user", "root", "nested")
def test_the_gateway_is_confined_and_ends_with_the_command(holt: Holt, policy: MakePolicy) -> None:
    with holt.start(["run", "--policy", policy(), "--", "sh", "-c", "echo ready; sleep 60"], env=WITH_KEY) as running:
        assert running.readline() == "ready"
        [pid] = gateways()

        def status() -> "dict[str, str]":
            return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)

        until(lambda: status()["Seccomp"] == "2", "it is confined")
        assert {status()[name] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {"0" * 16}
        assert status()["NoNewPrivs"] == "1" and status()["Uid"].split()[1] != "0"
        assert KEY.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
        assert sorted(os.readlink(f"/proc/{pid}/fd/{fd}") for fd in ("0", "1", "2")) == ["/dev/null"] * 3
        running.kill(signal.SIGTERM)
        running.wait()
    until(lambda: not gateways(), "it has ended")


def test_a_command_outlives_the_gateway(holt: Holt, policy: MakePolicy) -> None:
    with holt.start(["run", "--policy", policy(), "--", "sh", "-c", f"echo ready; read line; {GET} $ACME_URL/v1/x"], env=WITH_KEY,
                    stdin=-1) as running:
        assert running.readline() == "ready"
        for pid in gateways():
            os.kill(pid, signal.SIGKILL)
        until(lambda: not gateways(), "it has ended")
        running.send("\n")
        result = running.wait()
    assert result.code == 7 and "the sandbox lost its routes, because holt-gateway ended" in result.err
    assert result.report and result.report["routes"]["lost"] is True


@pytest.mark.not_sanitized
def test_the_gateway_gives_memory_back(holt: Holt, policy: MakePolicy) -> None:
    program = """
import os, socket
def ask():
    client = socket.create_connection(os.environ["ACME_AT"].split(":"))
    client.send(b"GET /acme/v1/big HTTP/1.1\\r\\nhost: x\\r\\nx-api-key: %s\\r\\n\\r\\n" % os.environb[b"ACME_TOKEN"])
    return client
print("ready", flush=True)
for _ in range(2):
    input()
    clients = [ask() for _ in range(40)]
    input()
    del clients
    print("closed", flush=True)
input()
"""
    with holt.start(["run", "--policy", policy(concurrent=40), "--", "python3", "-c", program], env=WITH_KEY, stdin=-1) as running:
        assert running.readline() == "ready"
        [pid] = gateways()

        def used() -> int:
            return int(Path(f"/proc/{pid}/status").read_text().split("RssAnon:")[1].split()[0])

        before = used()
        for _ in range(2):  # glibc keeps more memory once it has seen large buffers
            running.send("\n")
            until(lambda: used() > before + 6000, "bodies wait in buffers")
            running.send("\n")
            assert running.readline() == "closed"
            until(lambda: used() < before + 2000, "it has given memory back")
        running.send("\n")
        assert running.wait().code == 0


# --- sessions ---


@pytest.fixture
def session(sessions: Sessions, policy: MakePolicy) -> Session:
    sessions.env.update(WITH_KEY)
    return sessions.create("w", "--policy", policy(allow=["/v1/*"]))


@pytest.mark.identities("user", "root", "nested")
def test_a_session_has_routes(session: Session, service: Upstream) -> None:
    assert json.loads(session.out(f"{GET} $ACME_URL/v1/x"))["path"] == "/v1/x"
    code = "import os, urllib.request as u\nprint(u.urlopen(u.Request(os.environ['ACME_URL'] + '/v1/y', headers={'a': os.environ['ACME_TOKEN']})).status)"
    assert session("python", "-c", code).ok().out == "200\n"
    token = session.out("echo $ACME_TOKEN")
    session.stop()
    assert session.out("echo $ACME_TOKEN") != token
    assert [seen["headers"]["authorization"] for seen in service.seen] == [f"Bearer {KEY}"] * 2
    for path in session.directory.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_a_session_tells_and_audits_requests(session: Session) -> None:
    refused = session.sh(f"{GET} $ACME_URL/v2/x; {GET} $ACME_URL/v2/x; {GET} $ACME_URL/v1/x; exit 1")
    assert "holt: answered GET /v2/x of the route acme with 403 (2x): the route does not allow" in refused.err
    assert "route" not in session.sh("exit 1").err
    with session.rpc() as rpc:
        [denial] = rpc.call("exec", argv=["sh", "-c", f"{GET} $ACME_URL/v2/x"])["denials"]
        assert (denial["layer"], denial["count"], denial["answer"], denial["grant"]) == ("route", 1, "403", None)
    rows = [(row["kind"], json.loads(row["detail"])) for row in session.audit()]
    [request] = [detail for kind, detail in rows if kind == "route"]
    assert (request["route"], request["method"], request["path"], request["status"], request["error"]) == ("acme", "GET", "/v1/x", 200, None)
    assert len([detail for kind, detail in rows if kind == "denial" and detail["layer"] == "route"]) == 1


def test_a_session_that_loses_its_routes(session: Session) -> None:
    session.out("true")
    for pid in gateways():
        os.kill(pid, signal.SIGKILL)
    until(lambda: not gateways(), "it has ended")

    lost = "holt: the session has lost its routes, because holt-gateway ended\n  Stop the session: holt stop w. "
    assert session.sh(f"{GET} $ACME_URL/v1/x").code == 7
    assert lost in session.sh("true").err and lost in session("python", "-c", "1").err
    assert json.loads(session.sh("", "--json").err.splitlines()[-1])["routes"]["lost"] is True
    with session.rpc() as rpc:
        assert rpc.call("exec", argv=["true"])["routes_lost"] is True
    session.stop()
    assert json.loads(session.out(f"{GET} $ACME_URL/v1/x"))["path"] == "/v1/x"


def test_reading_a_session_at_rest_starts_no_gateway(session: Session) -> None:
    session.out("true")
    session.stop()
    session("files", "ls").ok()
    assert gateways() == []


def test_a_session_starts_with_the_longest_variable(sessions: Sessions) -> None:
    """A keeper gets the caller's variables under longer names, and one may be as long as execve(2) accepts."""
    longest = {"LONG": "x" * (128 * 1024 - len("LONG=") - 1)}
    session = sessions.create("w", env=longest)
    assert session.sh("echo started; echo ${LONG:-none}", env=longest).ok().out == "started\nnone\n"
