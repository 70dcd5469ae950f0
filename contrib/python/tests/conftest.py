# SPDX-License-Identifier: Apache-2.0
"""Gives each test its own directory for sessions, and checks that it leaves none.

    HOLT=build/runner/holt /usr/bin/python3 -m pytest contrib/python/tests

Tests run as the current user; identities/test_python_sdk.py runs them under each identity. MUST_RUN=1 makes a skip a
failure.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Iterator

import pytest

from holt import Sandbox, Server, _connection, _message
from holt._hints import GROUPS, hint_for_python
from holt.localsandbox import LocalSandbox

PROJECT = Path(__file__).resolve().parents[3]
FAKE = Path(__file__).with_name("fake_holt.py")

WITHIN = float(os.environ.get("HANGS", "120"))


def until(condition: Callable[[], Any], what: str) -> Any:
    """Waits for a condition, and returns its last value."""
    deadline = time.monotonic() + WITHIN
    while not (value := condition()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.005)
    return value


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Makes every KeyboardInterrupt reach the test. Python drops one that is raised in the callback of a weak reference.

    The threading module has such a callback for each thread that is collected as garbage. A shell starts background jobs,
    which the tests may be, with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("MUST_RUN") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped under MUST_RUN=1: {report.longrepr}"


@pytest.fixture(scope="session")
def holt() -> str:
    """The program under test."""
    path = Path(os.environ.get("HOLT") or PROJECT / "build" / "runner" / "holt").resolve()
    if not path.is_file():
        pytest.skip(f"no holt at {path}: build it first, or set HOLT")
    return str(path)


@pytest.fixture(autouse=True)
def place(holt: str) -> Iterator[Path]:
    """The directory for sessions of this test. At the end, no session and no `holt serve` may be left. A test's
    monkeypatch does not undo this, so that the cleanup never touches the developer's own sessions."""
    with pytest.MonkeyPatch.context() as environment:
        yield from placed(holt, environment)


def placed(holt: str, environment: pytest.MonkeyPatch) -> Iterator[Path]:
    # The path is short, and not below a directory that only its owner can enter.
    path = Path(tempfile.mkdtemp(prefix="holt-sdk-", dir=os.environ.get("TMPDIR", "/var/tmp")))
    path.chmod(0o755)
    environment.setenv("HOLT", holt)
    environment.setenv("XDG_DATA_HOME", str(path / "data"))
    (path / "data").mkdir()
    yield path
    left = session_names(holt)
    for name in left:
        subprocess.run([holt, "stop", name], check=False)
        subprocess.run([holt, "rm", name], check=False)
    shutil.rmtree(path, ignore_errors=True)
    assert not left, f"sessions are left: {left}"
    # The server of a killed program ends by itself. In a container, this process may be PID 1 and become its parent.
    until(lambda: not any("serve" in line for line in children()), "nothing serves")


def session_names(holt: str) -> "list[str]":
    answer = subprocess.run([holt, "ls", "--json"], stdout=subprocess.PIPE, check=True).stdout
    return [each["name"] for each in json.loads(answer)]


def children() -> "list[str]":
    """The command lines of this process's children."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.append((path / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def load_openrpc() -> ModuleType:
    """tests/lib/openrpc.py, or its copy beside a copy of these tests."""
    beside = Path(__file__).with_name("openrpc.py")
    path = beside if beside.exists() else PROJECT / "tests" / "lib" / "openrpc.py"
    spec = importlib.util.spec_from_file_location("openrpc", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


openrpc = load_openrpc()


def foreign_words(hint: str, document: Any) -> "list[str]":
    """Returns the words of a hint of the SDK that its users do not know.

    These are methods of holt serve, fields of a policy without policy=, and verbs and options of the command line."""
    methods = "|".join(re.escape(each["name"]) for each in document["methods"] if "." in each["name"])
    calls = re.findall(r"\b(?:Server\(\)\.call\(\"[a-z_.]+\"|(?:files|kv|mount|routes)\.[a-z_]+\()", hint)
    for each in calls:
        hint = hint.replace(each, "")
    words = re.findall(rf"(?<![\w./-])(?:{methods}|(?:{'|'.join(GROUPS)})\.[a-z_]+|policy_name|with argv)\b", hint)
    return words + openrpc.command_words(hint)


class Watch:
    """Checks sent and received messages, in place of the functions that connections use.

    All connections of a test are checked together. Each request has a checker. If several requests have the same id, a
    reply is valid if it is valid for one of them. Messages without a session belong to a connection to its keeper.
    """

    def __init__(self, document: Any) -> None:
        self.document = document
        self.wrong: "list[str]" = []
        self.seen = 0
        self._lock = threading.Lock()
        self._checkers: "dict[Any, list[Any]]" = {}

    def _checker(self, params: Any) -> Any:
        return openrpc.Checker(self.document, alone="session" not in params)

    def line_of(self, number: int, method: str, params: Any) -> bytes:
        line = _message.line_of(number, method, params)
        checker = self._checker(params)
        checker.sent(line)
        with self._lock:
            self._checkers.setdefault(number, []).append(checker)
        return line

    def decode(self, text: str, start: int) -> Any:
        message, end = json.JSONDecoder().raw_decode(text, start)
        self.came(message)
        return message, end

    def came(self, message: "dict[str, Any]") -> None:
        hint = ((message.get("error") or {}).get("data") or {}).get("hint") or ""
        left = foreign_words(hint_for_python(hint) or "", self.document.root) if hint else []
        with self._lock:
            self.seen += 1
            self.wrong += [f"{hint!r} becomes {hint_for_python(hint)!r}, with {left}"] if left else []
            asked = [] if "method" in message else self._checkers.get(message.get("id"), [])
            found = []
            for checker in list(asked) or [self._checker(message.get("params", {}))]:
                try:
                    checker.came(message)
                except openrpc.Mismatch as mismatch:
                    found.append(str(mismatch))
                    continue
                if checker in asked:
                    asked.remove(checker)
                elif "method" in message and "id" in message:
                    self._checkers.setdefault(("reply", message["id"]), []).append(checker)
                return
            self.wrong += found

    def answered(self, line: bytes) -> None:
        """Checks a reply to a request of the server. Several connections may have had one with this id."""
        with self._lock:
            found = []
            for checker in self._checkers.get(("reply", json.loads(line)["id"]), []):
                try:
                    checker.sent(line)
                    return
                except openrpc.Mismatch as mismatch:
                    found.append(str(mismatch))
            self.wrong += found


class WatchedJson:
    """The module json, which checks every message that it loads."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(json, name)

    def loads(self, text: Any) -> Any:
        message = json.loads(text)
        self.watch.came(message)
        return message


@pytest.fixture(autouse=True)
def watched(holt: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """Every message agrees with the OpenRPC document, unless a fake server sends it."""
    if "fake" in request.fixturenames or hasattr(request.module, "played"):
        yield
        return
    watch = Watch(openrpc.document_of(holt))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_connection, "line_of", watch.line_of)
        patch.setattr(_connection, "_decode", watch.decode)
        patch.setattr(_connection, "json", WatchedJson(watch))
        answer = _connection.Connection.answer
        patch.setattr(_connection.Connection, "answer", lambda self, line: (watch.answered(line), answer(self, line))[1])
        yield
    assert not watch.wrong, "\n".join(watch.wrong)
    assert watch.seen or "box" not in request.fixturenames, "no message was seen"


@pytest.fixture
def box() -> Iterator[Sandbox]:
    """A throwaway sandbox."""
    with Sandbox(timeout=60) as box:
        yield box


@pytest.fixture
def local() -> Iterator[LocalSandbox]:
    with LocalSandbox() as local:
        yield local


@pytest.fixture
def bridge(holt: str) -> None:
    """Skips a test that needs tools if this holt has none."""
    reference = subprocess.run([holt, "serve", "--methods", "--json"], stdout=subprocess.PIPE, check=True).stdout
    if "tools.register" not in json.loads(reference):
        pytest.skip("this holt has no tools.register")


@pytest.fixture
def fake(place: Path) -> Iterator[Callable[..., Server]]:
    """A fake server that runs a script: fake("script"); see fake_holt.py."""
    servers = []

    def make(script: str) -> Server:
        program = place / f"fake-{len(servers)}"
        program.write_text(f"#!{sys.executable}\n" + FAKE.read_text().replace("SCRIPT", script))
        program.chmod(0o755)
        servers.append(Server(str(program)))
        return servers[-1]

    yield make
    for each in servers:
        each.close()
