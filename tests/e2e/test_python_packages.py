# SPDX-License-Identifier: Apache-2.0
"""Imports of missing modules in a session: wheels, indexes, and the errors without them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.python import needs_module, run, value
from lib.registry import registry
from lib.sandbox import Holt
from lib.sessions import Bound, Json, Sessions
from lib.upstream import KEY


@pytest.fixture
def wheels(place: Path, identity: Identity) -> Path:
    """A folder with one wheel, of a module that needs nothing."""
    folder = place / "wheels"
    folder.mkdir()
    info = "tinypkg-1.0.dist-info"
    with zipfile.ZipFile(folder / "tinypkg-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinypkg/__init__.py", "value = 41\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: holt\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"tinypkg/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return folder


def run_slowly(rpc: Bound, code: str) -> Json:
    return run(rpc, code, timeout_ms=120000)


@needs_module("pip")
def test_a_missing_package_is_installed_from_the_wheels(sessions: Sessions, wheels: Path) -> None:
    session = sessions.create("w", "--wheels", wheels)
    result = run_slowly(Bound(session.rpc(), {}), "import tinypkg\ntinypkg.value")
    session.stop()

    assert result["result"] == "41" and "holt: installed tinypkg" in result["stderr"]
    assert session.out("python3 -c 'import tinypkg; print(tinypkg.value)'") == "41\n"
    assert "installed" not in session("python", "-c", "import tinypkg").ok().err
    assert "cannot install" in session("python", "-c", "import no_such_module").err
    assert "cannot install" not in session("python", "-c", "try:\n  import json.nothing\nexcept ImportError: 5").err


@needs_module("pip")
def test_imports_of_code_install_packages_and_those_of_libraries_do_not(sessions: Sessions, wheels: Path) -> None:
    """Imports in every file that belongs to no installed package install packages, too. A library handles a missing optional
    module itself."""
    rpc = Bound(sessions.create("w", "--wheels", wheels).rpc(), {})
    mine = "/workspace/mine.py", "import tinypkg\nvalue = tinypkg.value"
    library = "/opt/lib/python3/site-packages/library.py", "try:\n    import tinypkg\nexcept ImportError as e:\n    value = str(e)"
    for path, content in (mine, library):
        rpc.call("files.write", path=path, content=content, make_parents=True)

    assert value(rpc, "import sys; sys.path.append('/opt/lib/python3/site-packages')\nimport library\nlibrary.value") == repr("No module named 'tinypkg'")
    result = run_slowly(rpc, "import mine\nmine.value")
    assert (result["result"], result["stderr"]) == ("41", "holt: installed tinypkg\n")


@needs_module("pip")
@pytest.mark.parametrize("given", (True, False), ids=("wheels", "none"))
def test_looking_for_a_module_installs_nothing(sessions: Sessions, wheels: Path, given: bool) -> None:
    """Much code does this before it imports an optional module."""
    rpc = Bound(sessions.create("w", *(("--wheels", wheels) if given else ())).rpc(), {})
    result = run_slowly(rpc, "import importlib.util, pkgutil\n"
                             "importlib.util.find_spec('tinypkg'), pkgutil.find_loader('tinypkg'), importlib.util.find_spec('json') is None")

    assert (result["result"], result["stderr"], result["error"]) == ("(None, None, False)", "", None)


@needs_module("pip")
def test_a_package_that_comes_later_is_found(sessions: Sessions, wheels: Path) -> None:
    """One run asks pip only once, however often it imports the module; the next run asks again."""
    wheel = wheels / "tinypkg-1.0-py3-none-any.whl"
    wheel.rename(wheels / "away")
    rpc = Bound(sessions.create("w", "--wheels", wheels).rpc(), {})
    twice = "errors = []\nfor _ in range(2):\n  try: import tinypkg\n  except ImportError as e: errors.append(str(e))"
    run_slowly(rpc, twice + "\nimport holt_packages\nasked = dict(holt_packages.failed)")

    assert "No matching distribution found for tinypkg" in value(rpc, "errors[0]")
    assert value(rpc, "len(errors), len(set(errors)), list(asked)") == "(2, 1, ['tinypkg'])"
    (wheels / "away").rename(wheel)
    assert run_slowly(rpc, "import tinypkg; tinypkg.value")["result"] == "41"


def test_an_index_needs_a_network(sessions: Sessions) -> None:
    """A session has no network. The error says so at once, without the index's password."""
    session = sessions.create("w", "--env", "PIP_INDEX_URL=https://me:secret@pypi.example/simple")
    error = session("python", "-c", "import tinypkg").err

    assert "the index https://pypi.example/simple can't be reached, since the session has no network" in error
    assert "python.wheels in its policy" in error and "secret" not in error


@needs_module("pip")
def test_an_index_that_is_files(sessions: Sessions, wheels: Path) -> None:
    session = sessions.create("w", "--env", "PIP_INDEX_URL=file:///workspace/index")
    wheel = "tinypkg-1.0-py3-none-any.whl"
    session.sh("mkdir -p index/tinypkg").ok()
    session.cp(wheels / wheel, f"w:/workspace/index/tinypkg/{wheel}").ok()
    session.sh(f"echo '<a href={wheel}>{wheel}</a>' >index/tinypkg/index.html").ok()

    assert session("python", "-c", "import tinypkg; tinypkg.value").ok().out == "41\n"


ROUTE = {"name": "acme", "header": {"authorization": {"basic": "agent", "env": "ACME_KEY"}},
         "env": {"PIP_INDEX_URL": "http://any:{token}@{address}/acme/simple/"}}


@needs_module("pip")
@pytest.mark.parametrize("install", (None, "ask", "never"))
def test_an_index_with_a_password(sessions: Sessions, place: Path, identity: Identity, install: "str | None") -> None:
    """A route adds the password, so the session needs no network."""
    with registry(place) as server:
        server.publish_wheel("acmelib")
        policy = place / "policy.json"
        python = {"python": {"install": install}} if install else {}
        policy.write_text(json.dumps({"holt": 1, **python, "bridge": {"routes": [{**ROUTE, "upstream": server.url}]}}))
        sessions.create("w", "--policy", identity.own(policy))
        result = sessions(["python", "w", "-c", "import acmelib; acmelib.text"], env={"ACME_KEY": KEY})

        assert (result.out == "'from pip'\n") == (install is None), result
        assert bool(server.seen) == (install is None)
        if install == "ask":
            assert "to install it, run in the session: pip install acmelib" in result.err
            assert sessions(["exec", "w", "--", "sh", "-c", "pip install -q acmelib"], env={"ACME_KEY": KEY}).code == 0
            assert sessions(["python", "w", "-c", "import acmelib; acmelib.text"], env={"ACME_KEY": KEY}).ok().out == "'from pip'\n"
        elif install == "never":
            assert "the policy forbids installing packages (python.install)" in result.err


@needs_module("pip")
def test_an_index_in_a_file_of_the_route(sessions: Sessions, place: Path, identity: Identity) -> None:
    with registry(place) as server:
        server.publish_wheel("acmelib")
        policy, files = place / "policy.json", {"/etc/pip.conf": "[global]\nindex-url = http://any:{token}@{address}/acme/simple/\n"}
        policy.write_text(json.dumps({"holt": 1, "bridge": {"routes": [{**ROUTE, "env": {}, "files": files, "upstream": server.url}]}}))
        sessions.create("w", "--policy", identity.own(policy))
        assert sessions(["python", "w", "-c", "import acmelib; acmelib.text"], env={"ACME_KEY": KEY}).ok().out == "'from pip'\n"


def test_the_index_of_the_policy(sessions: Sessions) -> None:
    session = sessions.create("w", "--index", "https://pypi.example/simple", "--install", "ask")
    assert session.out("echo $PIP_INDEX_URL $UV_DEFAULT_INDEX") == "https://pypi.example/simple https://pypi.example/simple\n"
    error = session("python", "-c", "import tinypkg").err
    assert "the index https://pypi.example/simple can't be reached, since the session has no network" in error


@pytest.mark.parametrize("index, why", (
    ("pypi.org", "must begin with https:// or http://"), ("https://", "has no host"), ("https://a b/", "a space"),
    ("https://me:pw@pypi.example/", "contains a password, which commands could read"),
))
def test_a_wrong_index(holt: Holt, index: str, why: str) -> None:
    assert why in holt(["run", "--index", index, "--", "true"]).refusal()
