# SPDX-License-Identifier: Apache-2.0
"""holt mcp: the roots of the official client are the workspace of a session that nobody names."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.test_mcp import MODULES, Client, Http
from lib.identity import Identity
from lib.sessions import Sessions, until
from lib.tools import needs

pytestmark = [
    needs("node"), pytest.mark.alike,
    pytest.mark.skipif(not MODULES.is_dir(), reason="not on this host: the npm clients; npm ci --prefix tests/peers installs them"),
]

Start = Callable[..., Client]


@pytest.fixture(params=["stdio", "http"])
def start(sessions: Sessions, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Starts a client with these roots, or without that capability if they are None."""
    with contextlib.ExitStack() as stack:
        def begin(roots: "list[str] | None", *args: str) -> Client:
            env = {} if roots is None else {"MCP_ROOTS": json.dumps(roots)}
            if request.param == "stdio":
                return stack.enter_context(Client(sessions, *args, **env))
            http = stack.enter_context(Http(sessions, *args))
            return stack.enter_context(Client(sessions, *args, MCP_URL=http.url, MCP_TOKEN=http.token, **env))

        yield begin
    until(lambda: not sessions.names(), "the end of the sessions")


@pytest.fixture
def project(place: Path, identity: Identity) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        path = place / name
        path.mkdir()
        (path / "file").write_text(f"of {name}\n")
        for made in (path, path / "file"):
            identity.own(made)
        return path

    return make


def test_the_first_root_is_the_workspace(start: Start, project: Callable[[str], Path], sessions: Sessions) -> None:
    first, second = project("a \u00e4%"), project("second")
    client = start([first.as_uri(), second.as_uri(), first.as_uri()])
    client("listTools")
    assert sessions.names() == [] and client("rootsAsked") == 0
    result = client.texts("bash", command=f"cat file {second}/file; touch new {second}/new")
    assert result[0] == "of a \u00e4%\nof second\n"
    assert result[1:] == ["holt: exited, exit code 0", f"holt: /workspace is the client's root {first}; its other roots have their own paths"]
    assert client.texts("bash", command="pwd") == ["/workspace\n", "holt: exited, exit code 0"]
    assert (first / "new").exists() and (second / "new").exists() and client("rootsAsked") == 1
    assert client("listResources")["resources"] == []


@pytest.mark.parametrize("roots,args", ((None, ()), ([], ()), (["ROOT"], ("--no-roots",))), ids=("incapable", "none", "unwanted"))
def test_without_roots_the_workspace_is_empty(start: Start, project: Callable[[str], Path], roots: "list[str] | None", args: "tuple[str, ...]") -> None:
    root = project("a").as_uri()
    client = start([root for _ in roots] if roots is not None else None, *args)
    assert client.texts("bash", command="pwd; ls -A") == ["/workspace\n", "holt: exited, exit code 0"]


def test_the_caller_s_workspace_comes_before_roots(start: Start, project: Callable[[str], Path]) -> None:
    client = start([project("a").as_uri()], "--workspace", str(project("b")))
    assert client.texts("bash", command="cat file") == ["of b\n", "holt: exited, exit code 0"] and client("rootsAsked") == 0


def test_calls_wait_for_the_roots(start: Start, project: Callable[[str], Path]) -> None:
    """A request before the first call of a tool needs the session, too."""
    client = start([project("a").as_uri()])
    assert client("listResources")["resources"] == [] and client("rootsAsked") == 1
    assert client.tool("read", path="file")["content"][0]["text"] == "of a\n" and client("rootsAsked") == 1


def test_changed_roots_need_a_restart(start: Start, project: Callable[[str], Path]) -> None:
    first, second = project("a").as_uri(), project("b")
    client = start([first])
    client("setRoots", [first])  # before the session exists
    client.texts("bash", command="true")
    client("setRoots", [first])
    assert client.texts("bash", command="true") == ["holt: exited, exit code 0"]
    client("setRoots", [second.as_uri()])
    told = client.texts("bash", command="cat file")
    assert told[0] == "of a\n" and "roots have changed" in told[-1] and "restart" in told[-1]
    assert client.texts("bash", command="true") == ["holt: exited, exit code 0"]


def test_a_wrong_root_can_be_mended(start: Start, project: Callable[[str], Path], sessions: Sessions) -> None:
    client = start(["file:///"])
    for _ in range(2):
        refused = client.tool("bash", command="true")
        (text,) = [item["text"] for item in refused["content"]]
        assert refused["isError"] and "\n" not in text and 'the client\'s root "file:///" is the whole file system' in text and "--workspace" in text
    assert "is the whole file system" in client.reply("listResources")["error"]
    assert sessions.names() == []
    client("setRoots", [project("a").as_uri()])
    assert client.texts("bash", command="cat file")[0] == "of a\n"


def test_each_client_has_its_own_session(sessions: Sessions, project: Callable[[str], Path]) -> None:
    with Http(sessions) as http:
        roots = [project(name).as_uri() for name in ("a", "b")]
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(sessions, MCP_URL=http.url, MCP_TOKEN=http.token, MCP_ROOTS=json.dumps([root]))) for root in roots]
            assert [client.texts("bash", command="cat file; ls /tmp; touch /tmp/x")[0] for client in clients] == ["of a\n", "of b\n"]
            assert len(sessions.names()) == 2
        until(lambda: not sessions.names(), "the end of the sessions")
