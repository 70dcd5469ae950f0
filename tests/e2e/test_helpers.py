# SPDX-License-Identifier: Apache-2.0
"""--helper: Python files of the host that code inside can import."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lib.composio_backend import SESSION, Backend, backend
from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Sessions
from lib.tools import needs
from lib.upstream import KEY

pytestmark = needs("python3")

PROVIDER = Path(__file__).parents[2] / "policy/routes/providers/composio.json"
IMPORT = ["python3", "-c", "import acme; print(acme.NAME, acme.__file__)"]
INSIDE = "one /etc/holt/python/acme.py\n"

# A helper as Composio's own programs bring it: it knows only three variables and the wire.
GENERATED = """
import json, os, urllib.request, uuid

backend = os.environ.get("BACKEND_URL", "https://backend.composio.dev").rstrip("/")
session = os.environ.get("COMPOSIO_TOOLROUTER_SESSION_ID")
key = os.environ.get("COMPOSIO_API_KEY")

def run_composio_tool(tool_slug, arguments=None):
    if not key or not session:
        raise RuntimeError("not configured")
    request = urllib.request.Request(
        f"{backend}/api/v3/tool_router/session/{session}/execute", method="POST",
        data=json.dumps({"tool_slug": tool_slug.upper(), "arguments": arguments or {}}).encode(),
        headers={"Content-Type": "application/json", "x-api-key": key, "x-request-id": str(uuid.uuid4())},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        answer = json.load(response)
    return answer, answer.get("error") or ""
"""


@pytest.fixture
def helper(place: Path, identity: Identity) -> Path:
    path = place / "acme.py"
    path.write_text("NAME = 'one'\n")
    return identity.own(path)


# --- one run ---


@pytest.mark.identities("user", "root", "nested")
def test_a_run_imports_a_helper(holt: Holt, helper: Path) -> None:
    both = ["--helper", helper, "--helper", f"{helper}:other", "--env", "PYTHONPATH=/x"]
    code = "import acme, other, sys; print(acme.NAME, other.__name__, [p for p in sys.path if p in ('/etc/holt/python', '/x')])"
    assert holt(["run", *both, "--", "python3", "-c", code]).ok().out == "one other ['/etc/holt/python', '/x']\n"


def test_a_policy_names_helpers(holt: Holt, helper: Path, place: Path, identity: Identity) -> None:
    (place / "p.json").write_text(json.dumps({"holt": 1, "bridge": {"helpers": [str(helper)]}}))
    assert holt(["run", "--policy", identity.own(place / "p.json"), "--", *IMPORT]).ok().out == INSIDE
    assert json.loads(holt(["policy", "show", "--json", "--helper", helper]).ok().out)["bridge"]["helpers"] == [str(helper)]
    (holt.cwd / ".holt.json").write_text('{"holt": 1, "bridge": {"helpers": ["a.py"]}}')
    assert "bridge.helpers" in holt.sh("true").refusal()


@pytest.mark.identities("user", "root", "nested")
def test_a_command_cannot_change_a_helper(holt: Holt) -> None:
    """Otherwise it could put a symlink there, and the next run would show it the file at its end."""
    (holt.cwd / "acme.py").write_text("NAME = 'one'\n")
    script = "for p in acme.py /etc/holt/python/acme.py; do echo x >>$p; rm -f $p; ln -sf /etc/passwd $p; mv $p /tmp/x; done; mv . ../y; true"
    holt.sh(script, "--helper", "acme.py").ok()
    assert (holt.cwd / "acme.py").read_text() == "NAME = 'one'\n" and not (holt.cwd / "acme.py").is_symlink()
    assert holt(["run", "--helper", "acme.py", "--", *IMPORT[:2], "import acme; print(acme.NAME)"]).ok().out == "one\n"


def test_a_helper_at_a_place_that_holt_cannot_protect(holt: Holt, place: Path, helper: Path) -> None:
    (place / "shared").mkdir(mode=0o777)
    (place / "shared").chmod(0o777)
    os.rename(helper, place / "shared" / "acme.py")
    refused = holt.sh("true", "--rw", place / "shared", "--helper", place / "shared" / "acme.py").refusal()
    assert "holt obeys" in refused and "acme.py" in refused
    (holt.cwd / "link.py").symlink_to("/etc/passwd")
    assert "link.py" in holt.sh("true", "--helper", "link.py:acme").refusal()


@pytest.mark.alike
@pytest.mark.parametrize("content,name,why", (
    (b"x" * ((1 << 20) + 1), "a.py", "The limit for a helper is 1 MiB"), (b"caf\xe9", "a.py", "not a text in UTF-8"),
    (b"a\0b", "a.py", "not a text in UTF-8"), (None, "a.py", "No such file"), (b"", "a-b.py", "has no name that Python can import"),
    (b"", "host_tools.py", "the name of a module of holt"), (b"", "a.py:holt_x", "the name of a module of holt"),
    (b"", ":a", "has no file"), (b"", "9.py", "has no name"), (b"", "a" * 65 + ".py", "has no name"), (b"", "~/a.py", "only a shell expands"),
))
def test_refused_helpers(content: "bytes | None", name: str, why: str, holt: Holt) -> None:
    if content is not None and name[0] not in ":~":
        (holt.cwd / name.partition(":")[0]).write_bytes(content)
    result = holt.sh("echo started", "--helper", name)
    assert why in result.refusal() + result.cure and result.out == ""


def test_other_mistakes(holt: Holt, helper: Path) -> None:
    os.mkfifo(holt.cwd / "pipe.py")
    assert "not a regular file" in holt.sh("true", "--helper", "pipe.py").cure
    assert "two helpers are called acme" in holt.sh("true", "--helper", helper, "--helper", "/other/acme.py").refusal()
    many = [word for number in range(33) for word in ("--helper", f"{helper}:m{number}")]
    assert "more than 32 helpers" in holt.sh("true", *many).refusal()


# --- sessions ---


@pytest.mark.identities("user", "root", "nested")
def test_a_session_keeps_a_copy(sessions: Sessions, helper: Path) -> None:
    session = sessions.create("w", "--helper", helper)
    helper.write_text("NAME = 'two'\n")
    assert session("exec", "--", *IMPORT).ok().out == INSIDE
    session.stop()
    helper.unlink()
    assert session("python", "-c", "import acme\nprint(acme.NAME, acme.__file__)").ok().out == INSIDE
    assert "Read-only" in session.sh("echo x >>/etc/holt/python/acme.py").err
    assert session("exec", "--", "python3", "-c", "import host_tools; print(host_tools.__file__)").ok().out == "/run/holt/python/host_tools.py\n"


def test_a_session_protects_the_file_in_its_workspace(sessions: Sessions, helper: Path) -> None:
    session = sessions.create("w", "--workspace", helper.parent, "--helper", helper)
    session.sh("cd /workspace; echo x >>acme.py; rm -f acme.py; ln -sf /etc/passwd acme.py")
    assert helper.read_text() == "NAME = 'one'\n" and not helper.is_symlink()


@pytest.mark.identities("user", "root")
def test_composios_own_helper_runs_unmodified(sessions: Sessions, place: Path, identity: Identity) -> None:
    with backend() as service:
        check_generated(service, sessions, place, identity)


def check_generated(service: Backend, sessions: Sessions, place: Path, identity: Identity) -> None:
    (place / "generated.py").write_text(GENERATED)
    (place / "p.json").write_text(json.dumps(
        {"holt": 1, "bridge": {"routes": [{**json.loads(PROVIDER.read_text()), "upstream": service.url}]}}))
    sessions.env.update({"COMPOSIO_API_KEY": KEY, "COMPOSIO_TOOLROUTER_SESSION_ID": SESSION})
    session = sessions.create("w", "--policy", identity.own(place / "p.json"), "--helper", f"{identity.own(place / 'generated.py')}:composio_helper")

    code = "response, error = run_composio_tool('acme_find', {'q': 1})\nprint(response['data']['slug'], repr(error))"
    for start in (["exec", "--", "python3", "-c", f"from composio_helper import *\n{code}"], ["python", "-c", code]):
        result = session(*start).ok()
        assert result.out == "ACME_FIND ''\n" and KEY not in result.out
    assert [seen["key"] for seen in service.seen] == [KEY, KEY]
    assert session("python", "-c", "print(web_search('otters'))").ok().out == "('about otters', '')\n", "it has no such function"
    assert KEY not in session.out("env; cat /proc/*/environ 2>/dev/null | tr -d '\\0'")
