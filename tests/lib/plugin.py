# SPDX-License-Identifier: Apache-2.0
"""The fixtures and options of every suite.

    /usr/bin/python3 -m pytest tests/escape                     the default lane
    /usr/bin/python3 -m pytest tests/escape --full              each test as each identity, slow ones too
    /usr/bin/python3 -m pytest tests/escape --identity user     one of user, root, nested (repeatable)
    /usr/bin/python3 -m pytest tests/escape -n 4                four workers; only as root (lib/isolate.py)
    HOLT=build-asan/runner/holt MUST_RUN=1 ...                  another binary; a skip is a failure

A test that takes the fixture identity (or holt, workspace, ..., which depend on it) must leave nothing behind: see
lib/leaks.py. lib/selection.py chooses the tests of a lane and their identities.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib import identity as identities
from lib import leaks, paths
from lib.hostile import Attack, Hostile, Outcome, Run
from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Session, Sessions, sessions_of
from lib.tap import Tap, library
from lib.terminal import Terminal

Make = Callable[..., Path]

MUST_RUN = os.environ.get("MUST_RUN") == "1"


def pytest_configure(config: pytest.Config) -> None:
    leaks.become_subreaper()
    # SIGTERM ends a job like Ctrl-C does, so that its files are removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A background job of a script starts with these signals ignored, and tested programs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if MUST_RUN or reason.removeprefix("Skipped: ").strip() in ("", "unconditional skip"):
        report.outcome = "failed"
        report.longrepr = f"skipped under MUST_RUN=1, or without a reason: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    outcome = yield
    _forbid_skip(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    outcome = yield
    _forbid_skip(outcome.get_result())


_silent: dict[str, str] = {}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists attacks for which this kernel has no target. They held without proving anything, so nobody should count on them."""
    if _silent:
        terminalreporter.section("controls that could show nothing here")
        for attack, why in sorted(_silent.items()):
            terminalreporter.line(f"{attack}: {why}")


# --- fixtures of the pytest session ---


def _remove(path: Path) -> None:
    """Removes a tree that a sandbox has used, including directories that cannot be entered."""

    def make_enterable(function: Callable[[str], object], name: str, _: object) -> None:
        # Only directories inside the tree are changed, because others use its parents.
        for above in (os.path.dirname(name), name):
            if Path(above).is_relative_to(path) and not os.path.islink(above):
                os.chmod(above, stat.S_IRWXU)
        if os.path.isdir(name) and not os.path.islink(name):
            shutil.rmtree(name, ignore_errors=True)
        else:
            function(name)

    shutil.rmtree(path, onerror=make_enterable)


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A directory of this session that every user can enter."""
    # /tmp is not used, because many machines mount it nosuid and nodev, and a control for such files would show nothing.
    base = os.environ.get("TMPDIR", "/var/tmp")
    path = Path(tempfile.mkdtemp(prefix=leaks.SCRATCH_PREFIX, dir=base)).resolve()
    path.chmod(0o755)
    yield path
    _remove(path)


@pytest.fixture(scope="session")
def everyone(scratch: Path) -> dict[str, Identity]:
    """All applicable identities by name."""
    uid = identities.free_uid() if os.geteuid() == 0 else os.getuid()
    gid = uid if os.geteuid() == 0 else os.getgid()
    found = {}
    for name in identities.applicable():
        root = name == "root"
        found[name] = Identity(name, 0 if root else uid, 0 if root else gid, scratch / name)
        found[name].make_directories()
        if name == "nested":
            identities.hold_namespace(found[name])
    return found


@pytest.fixture(scope="session")
def holt_binary(scratch: Path) -> Path:
    """The binary under test, at a path where every identity can execute it."""
    try:
        return paths.holt_for_all(scratch)
    except paths.NoBinary as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def tap(scratch: Path, holt_binary: Path) -> Tap | None:
    """Notes the messages of holt's verbs. None if the build has no library for that."""
    if not library(paths.built_holt()).exists():
        return None
    tap = Tap(paths.built_holt(), scratch)
    identities.watching.update(tap.environment())
    return tap


@pytest.fixture(scope="session")
def hostile(scratch: Path, everyone: dict[str, Identity]) -> Iterator[Hostile]:
    """The hostile programs, compiled."""
    directory, controls = scratch / "programs", scratch / "controls"
    directory.mkdir(mode=0o755)
    controls.mkdir(mode=0o755)
    everyone["user"].own(controls)
    programs = Hostile(directory, controls, everyone["user"], everyone.get("root"))
    programs.compile()
    yield programs
    _silent.update(programs.silent)


# --- fixtures of the identity ---


@pytest.fixture(scope="session")
def identity(request: pytest.FixtureRequest, everyone: dict[str, Identity]) -> Identity:
    """The identity that runs holt in this test."""
    return everyone[request.param]


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Asserts after each test that no new process, mount, fd, file or cgroup is left."""
    if "identity" not in request.fixturenames:
        yield
        return
    who = request.getfixturevalue("identity")
    before = leaks.Snapshot.take(who)
    yield
    left = leaks.settle(before, who)
    assert not left, "left behind:\n" + "\n".join(left)


@pytest.fixture(autouse=True)
def messages_fit(request: pytest.FixtureRequest, nothing_left: None) -> Iterator[None]:
    """Asserts after each test that all messages between holt's verbs and keepers fit the OpenRPC document."""
    tap = request.getfixturevalue("tap") if "holt_binary" in request.fixturenames else None
    yield
    wrong = tap.look() if tap else []
    assert not wrong, "messages of the command line:\n" + "\n".join(wrong)


@pytest.fixture
def place(nothing_left: None, identity: Identity, scratch: Path) -> Iterator[Path]:
    """A directory on the host for this test alone, which belongs to the identity. The sandbox sees only the parts that a test
    mounts; the workspace is below it."""
    path = scratch / f"test-{secrets.token_hex(4)}"
    path.mkdir(mode=0o755)
    yield identity.own(path)
    _remove(path)


@pytest.fixture
def workspace(place: Path, identity: Identity) -> Path:
    """A fresh, empty directory that belongs to the identity."""
    path = place / "workspace"
    path.mkdir(mode=0o755)
    return identity.own(path)


def make_file(identity: Identity, path: Path, text: str | bytes, mode: int) -> Path:
    """Creates a file of the caller's, with its parent directories."""
    for parent in [p for p in reversed(path.parents) if not p.exists()]:
        parent.mkdir(mode=0o755)
        identity.own(parent)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return identity.own(path)


@pytest.fixture
def put(workspace: Path, identity: Identity) -> Make:
    """Creates a file of the caller's, with its parent directories: put(NAME, TEXT, MODE). NAME is relative to the workspace."""

    def make(name: str | os.PathLike[str], text: str | bytes = "", mode: int = 0o644) -> Path:
        return make_file(identity, workspace / name, text, mode)

    return make


@pytest.fixture
def program(place: Path, identity: Identity) -> Make:
    """Creates a program of the caller's: program(NAME, TEXT). NAME is relative to the place, so the program is outside the
    workspace unless NAME leads there. The default text is a tool that answers 3.5."""

    def make(name: str, text: str = "#!/bin/sh\necho 3.5\n") -> Path:
        return make_file(identity, place / name, text, 0o755)

    return make


@pytest.fixture
def mkdir(workspace: Path, identity: Identity) -> Make:
    """Creates a directory of the caller's, relative to the workspace."""

    def make(name: str | os.PathLike[str], mode: int = 0o755) -> Path:
        path = workspace / name
        path.mkdir(mode=mode)
        return identity.own(path)

    return make


@pytest.fixture
def holt(holt_binary: Path, identity: Identity, workspace: Path) -> Holt:
    """holt, run by the identity from its workspace."""
    return Holt(holt_binary, identity, workspace)


@pytest.fixture
def sessions(holt: Holt, place: Path) -> Iterator[Sessions]:
    """holt with its own place for sessions. At the end they are removed, and no part of them may be left."""
    yield from sessions_of(holt, place)


@pytest.fixture
def session(sessions: Sessions) -> Session:
    """A session with default settings, at rest."""
    return sessions.create()


@pytest.fixture
def terminal(holt: Holt) -> Iterator[Callable[..., Terminal]]:
    """Starts "holt ARGS" on a pty: terminal(["run"], env=...)."""
    opened: list[Terminal] = []

    def start(args: list[str], **options: object) -> Terminal:
        options.setdefault("cwd", holt.cwd)
        opened.append(Terminal(holt.identity, holt.argv(args), **options))
        return opened[-1]

    yield start
    for each in opened:
        each.__exit__()


@pytest.fixture
def secret(place: Path) -> Path:
    """A file of the host outside the sandbox, whose mode lets everybody read and write it."""
    path = place / "secret"
    path.write_text(f"secret-{secrets.token_hex(16)}\n")
    path.chmod(0o644)
    return path


@pytest.fixture
def stranger(hostile: Hostile) -> Iterator[str]:
    """The PID of a host process, which belongs to the ordinary user of the controls."""
    process = subprocess.Popen(hostile.caller.as_user(["sleep", "1000"]))
    yield str(process.pid)
    process.kill()
    process.wait()


@pytest.fixture
def assault(hostile: Hostile, holt: Holt) -> Run:
    """Runs an attack inside, after its control on the host has shown that it can succeed:
    assault(attack, FLAGS...)."""

    def run(attack: Attack, *flags: str | os.PathLike[str], **options: object) -> Outcome:
        hostile.show_that_it_can_succeed(attack)
        return hostile.attack(holt, attack, *flags, **options)

    return run


@pytest.fixture
def holds(assault: Run) -> Run:
    """Asserts that the boundary holds against an attack. Returns the outcome for more checks."""

    def run(attack: Attack, *flags: str | os.PathLike[str], **options: object) -> Outcome:
        outcome = assault(attack, *flags, **options)
        assert outcome.verdict == "HOLDS", f"{attack} inside: {outcome}"
        return outcome

    return run
