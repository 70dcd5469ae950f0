# SPDX-License-Identifier: Apache-2.0
"""Routes for clients that read settings from files, or that send a user and password: git, npm, pip and others."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.paths import PROJECT
from lib.registry import LOGIN, Registry, registry
from lib.sandbox import Holt, Result
from lib.sessions import Sessions
from lib.tools import needs
from lib.upstream import KEY
from lib.websocket import CLIENT, websocket

pytestmark = needs("git", "python3", "curl")

ENV = {"ACME_KEY": KEY}

Route = dict[str, Any]
Run = Callable[..., Result]


@pytest.fixture(name="registry")
def make_registry(place: Path) -> Iterator[Registry]:
    with registry(place) as server:
        yield server


@pytest.fixture
def policy(registry: Registry, place: Path, identity: Identity) -> Callable[..., Path]:
    def make(**route: Any) -> Path:
        path = place / "policy.json"
        whole = {"name": "acme", "upstream": registry.url, "header": {"authorization": "Bearer {env:ACME_KEY}"}, **route}
        path.write_text(json.dumps({"holt": 1, "bridge": {"routes": [whole]}}))
        return identity.own(path)

    return make


@pytest.fixture
def run(holt: Holt, policy: Callable[..., Path]) -> Run:
    return lambda script, *options, **route: holt.sh(script, "--policy", policy(**route), *options, env=ENV)


# --- files ---


@pytest.mark.identities("user", "root", "nested")
def test_files_of_a_route(run: Run) -> None:
    files = {"/etc/acme.conf": "url={url}\nat={address}\ntoken={token}\n{ 1 }", "/etc/acme/deep/a.ini": "é", "/etc/gitconfig": "[acme]\n\turl = {url}\n"}
    result = run("cat /etc/acme.conf; cat /etc/acme/deep/a.ini; git config acme.url; git config safe.directory; "
                 "echo x >/etc/acme.conf; rm /etc/acme/deep/a.ini; stat -c %a /etc/acme.conf /etc/acme", files=files)
    token = result.out.split("token=")[1].split("\n")[0]

    assert result.out == (f"url=http://127.0.0.1:8474/acme\nat=127.0.0.1:8474\ntoken={token}\n{{ 1 }}é"
                          "http://127.0.0.1:8474/acme\n*\n644\n755\n"), result
    assert len(token) >= 32 and result.err.count("Read-only file system") == 2, result


def test_a_file_of_a_route_replaces_the_hosts(run: Run) -> None:
    """bash.bashrc is one of the host's entries that --etc all shows."""
    script = "cat /etc/bash.bashrc"
    assert run(script, "--etc", "all", files={"/etc/bash.bashrc": "mine"}).out == "mine"
    assert run(script, "--ro", "/etc/hostname:/etc/bash.bashrc", files={"/etc/bash.bashrc": "mine"}).out == Path("/etc/hostname").read_text()


@pytest.mark.parametrize("path, why", (
    ("/etc/passwd", "holt writes this file itself"),
    ("/etc/ssl/openssl.cnf", "every sandbox has the host's entry of /etc there"),
    ("/etc/../tmp/x", "is not the path of a file below /etc"),
    ("/etc/", "is not the path of a file below /etc"),
    ("/tmp/x", "is not the path of a file below /etc"),
    ("/etc/a//b", "is not the path of a file below /etc"),
))
def test_a_path_that_no_route_may_write(run: Run, path: str, why: str) -> None:
    assert why in run("true", files={path: ""}).refusal()


def test_two_files_of_one_name(run: Run) -> None:
    assert "another file of holt has this path, or one above or below it" in run("true", files={"/etc/a": "", "/etc/a/b": ""}).refusal()
    assert "this one is unknown; write {url}, {token} or {address}" in run("true", files={"/etc/a": "{env:HOME}"}).refusal()
    assert '["/etc/gitconfig"]: the lines for this file are too long' in run("true", files={"/etc/gitconfig": "#" * 9000}).refusal()


@pytest.mark.identities("user", "root")
def test_files_in_a_session_have_its_new_token(sessions: Sessions, policy: Callable[..., Path], registry: Registry) -> None:
    registry.pages["/hello"] = ("text/plain", b"hello")
    document = policy(files={"/etc/curl.conf": 'header = "x-any: {token}"\nurl = "{url}/hello"\n'})
    sessions.create("w", "--policy", document)
    tokens = set()
    for _ in range(2):
        out = sessions(["exec", "w", "--", "sh", "-c", "curl -sS -K /etc/curl.conf; cat /etc/curl.conf"], env=ENV).ok().out
        assert out.startswith("hello"), out
        tokens.add(out)
        sessions(["stop", "w"]).ok()
    assert len(tokens) == 2


# --- a user and a password ---


def test_basic_authentication(run: Run, registry: Registry) -> None:
    registry.pages["/echo"] = ("text/plain", f"<{KEY}> <{LOGIN[6:]}> <agent:{KEY}>".encode())
    result = run('printf %s "$T" >t; curl -sS -u "any:$T" $U/echo; curl -sS "http://x:$T@$A/acme/echo"; curl -sS --anyauth -u "$T:" $U/echo',
                 header={"authorization": {"basic": "agent", "env": "ACME_KEY"}}, env={"U": "{url}", "T": "{token}", "A": "{address}"})

    assert result.out.count("*" * len(KEY)) == 9 and len(result.out) == 3 * len(registry.pages["/echo"][1]), result
    assert KEY not in result.out and base64.b64encode(KEY.encode()).decode().rstrip("=") not in result.out
    assert {seen[2] for seen in registry.seen} == {LOGIN}


@pytest.mark.parametrize("value, why", (
    ({"basic": "a:b", "env": "ACME_KEY"}, 'a user has no ":"'),
    ({"basic": "a", "prefix": "b", "env": "ACME_KEY"}, "exclude each other"),
    ({"basic": "a"}, 'an object needs one of "env", "file" and "command"'),
    ({"basic": 1, "env": "ACME_KEY"}, "expected a string"),
))
def test_a_wrong_user(run: Run, value: Any, why: str) -> None:
    assert why in run("true", header={"authorization": value}).refusal()


# --- redirects ---


@pytest.mark.parametrize("kind, location", (
    ("absolute", "/acme/here"), ("path", "/acme/here?x=1"), ("above", "{url}/here"), ("host", "https://other.example/base/here"),
    ("similar", "{url}@other.example/base/here"), ("prefix", "{url}/basement/here"), ("double", "//other.example/here"),
))
def test_a_redirect_within_the_upstream_leads_to_the_route(run: Run, registry: Registry, kind: str, location: str) -> None:
    """A target outside the path of the upstream's URL leads to the upstream itself, and never to another route."""
    registry.pages["/base/here"] = ("text/plain", b"arrived")
    result = run(f'curl -sS -i -H "authorization: Bearer $T" $U/moved/{kind}; curl -sS -L -H "authorization: Bearer $T" $U/moved/path',
                 upstream=f"{registry.url}/base", env={"U": "{url}", "T": "{token}"})

    assert f"location: {location.format(url=registry.url)}\r\n" in result.out.replace("Location", "location"), result
    assert result.out.endswith("arrived")


# --- clients ---

GIT = {
    "header": {"authorization": {"basic": "agent", "env": "ACME_KEY"}},
    "files": {"/etc/gitconfig": '[url "{url}/"]\n\tinsteadOf = https://git.example/\n[http "{url}/"]\n\textraHeader = "authorization: Bearer {token}"\n'},
}


def test_a_login_that_is_sent_only_when_asked_for_is_no_refusal(run: Run, registry: Registry) -> None:
    """git, and curl --anyauth, send a request without a login first. If it passes then, the result has no word about it."""
    registry.pages["/page"] = ("text/plain", b"page")
    result = run('curl -sS --anyauth -u "x:$T" $U/page; curl -sS $U/other; exit 1', env={"U": "{url}", "T": "{token}"})
    [denial] = (result.report or {})["denials"]
    assert result.out.startswith("page") and (denial["what"], denial["answer"]) == ("GET /other of the route acme", "401")
    assert denial["why_not"] == "the token in place of the API key allows it" and "GET /page" not in result.err


def test_when_to_try_again(run: Run, registry: Registry) -> None:
    registry.pages["/page"] = ("text/plain", b"page")
    result = run('for i in 1 2; do curl -sS -i -H "x: $T" $U/page; done', env={"U": "{url}", "T": "{token}"}, requests="1/1m")
    assert "Retry-After: 61\r\n" in result.out, result


@pytest.mark.parametrize("value", ("$ACME_KEY", "Bearer ${ACME_KEY}"))
def test_a_variable_of_a_shell_is_no_placeholder(run: Run, value: str) -> None:
    assert "write {env:NAME}" in run("true", header={"authorization": value}).refusal()


def test_git(run: Run, registry: Registry) -> None:
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", registry.place / "project.git"], check=True)
    result = run("""
        git clone -q https://git.example/project.git work && cd work && git checkout -q -b main && echo one >file && git add file &&
        git -c user.name=a -c user.email=a@b commit -qm one && git push -q origin main && cd .. && rm -rf work &&
        git clone -q https://git.example/project.git again && cat again/file && git -C again config remote.origin.url
    """, **{**GIT, "upstream": f"{registry.url}/git"}).ok()

    assert result.out == "one\nhttps://git.example/project.git\n", result
    assert {seen[2] for seen in registry.seen} == {LOGIN}


def of_readme(name: str) -> Route:
    """The members of an example of README.md, except for those that lead to its service."""
    found: "list[Route]" = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", (PROJECT / "README.md").read_text(), re.M | re.S)
                            if '"upstream"' in block and '"holt"' not in block]
    [route] = [route for route in found if route["name"] == name]
    return {**route, "header": json.loads(re.sub(r"[A-Z]+_(TOKEN|KEY)", "ACME_KEY", json.dumps(route["header"])))}


def test_the_example_for_git(run: Run, registry: Registry) -> None:
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", registry.place / "project.git"], check=True)
    result = run("git clone -q https://git.acme.example/project.git; git -C project config remote.origin.url",
                 **{**of_readme("git"), "upstream": f"{registry.url}/git"}).ok()
    assert result.out == "https://git.acme.example/project.git\n" and {seen[2] for seen in registry.seen} == {LOGIN}


@needs("npm")
def test_the_example_for_a_scope_of_npm(run: Run, registry: Registry) -> None:
    """The registry names its own host in the URLs of packages."""
    registry.publish_npm("@acme/left-pad", "https://npm.acme.example")
    result = run("npm install --no-audit --no-fund --loglevel=error @acme/left-pad && node -p 'require(\"@acme/left-pad\")'",
                 **{**of_readme("packages"), "upstream": registry.url})
    assert result.ok().out.endswith("from npm\n"), result
    assert {seen[2] for seen in registry.seen} == {f"Bearer {KEY}"}


def test_the_example_for_a_websocket(holt: Holt, policy: Callable[..., Path]) -> None:
    with websocket() as service:
        document = policy(**{**of_readme("live"), "upstream": service.url})
        client = CLIENT.replace("GET /acme", "GET /live") + """
os.environ["ACME_AT"] = os.environ["LIVE_URL"].split("/")[2]
assert os.environ["LIVE_URL"].endswith("/live")
s, f, head = connect("/v1/echo", "Authorization: Bearer " + os.environ["LIVE_TOKEN"])
s.sendall(frame(1, b"hello")); print(head[0], read(f))
"""
        result = holt(["run", "--policy", document, "--", "python3", "-c", client], env=ENV).ok()
    assert result.out == "HTTP/1.1 101 Switching Protocols (1, b'hello')\n" and f"authorization: Bearer {KEY}" in service.heads[0]


@needs("npm")
def test_npm(run: Run, registry: Registry) -> None:
    registry.publish_npm("acme-left-pad")
    provider = json.loads((Path(__file__).parents[2] / "policy/routes/providers/npm.json").read_text())
    files = {path: text.replace("/npm/", "/acme/") for path, text in provider["files"].items()}
    result = run("npm install --no-audit --no-fund --loglevel=error acme-left-pad && node -p 'require(\"acme-left-pad\")'", files=files, env=provider["env"])

    assert result.ok().out.endswith("from npm\n"), result
    assert {seen[2] for seen in registry.seen} == {f"Bearer {KEY}"}


def test_pip(run: Run, registry: Registry) -> None:
    registry.publish_wheel("acmelib")
    files = {"/etc/pip.conf": "[global]\nindex-url = http://any:{token}@{address}/acme/simple/\n"}
    result = run("/usr/bin/python3 -m venv v && v/bin/pip --disable-pip-version-check install -q acmelib && v/bin/python -c 'import acmelib; print(acmelib.text)'",
                 header={"authorization": {"basic": "agent", "env": "ACME_KEY"}}, files=files)

    assert result.ok().out == "from pip\n", result
    assert {seen[2] for seen in registry.seen} == {LOGIN}
