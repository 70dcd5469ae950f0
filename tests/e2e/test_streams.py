# SPDX-License-Identifier: Apache-2.0
"""stdin, stdout and stderr go through holt as they would go to the command itself."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt, Result
from lib.sessions import Sessions

Make = Callable[..., Path]

MEGABYTE = 1 << 20

ALL_BYTES = bytes(range(256))


def through_shell(holt: Holt, script: str, *args: str) -> Result:
    """Runs holt ARGS by a shell of the caller's: script has it as "$0" "$@"."""
    return holt(args, prefix=["bash", "-c", script], report=False)


@pytest.fixture
def large(place: Path, identity: Identity) -> Path:
    """A file of 100 MB of random data, in which any error shows."""
    path = place / "large"
    with path.open("wb") as file:
        for i in range(100):
            file.write(hashlib.shake_128(b"%d" % i).digest(MEGABYTE))
    return identity.own(path)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def test_dev_null_as_stdin_can_be_opened_again(holt: Holt) -> None:
    assert holt(["run", "--", "cat", "/dev/stdin"]).ok().out == ""


def test_dev_null_can_be_opened_again_if_output_goes_to_a_file(holt: Holt, place: Path) -> None:
    with (place / "log").open("w") as log:
        holt(["run", "--", "cat", "/dev/stdin"], stdout=log).ok()
        holt(["run", "--", "bash", "-c", "echo x > /dev/stderr"], stdout=log, stderr=subprocess.DEVNULL).ok()


FILES = "import os, stat\nprint([stat.S_ISREG(os.fstat(fd).st_mode) for fd in (1, 2)], flush=True)\nos.write(2, b'last\\n')"


@pytest.mark.parametrize(
    "redirection, option, files",
    [
        ("2>>{0}/err", "", "[False, False]"),
        (">>{0}/err 2>&1", "", "[False, False]"),
        (">{0}/out 2>>{0}/err", "", "[True, True]"),
        (">{0}/out", "", "[True, False]"),
        ("2>>{0}/err", "--file-size=1M", "[False, True]"),
    ],
)
def test_stderr_in_a_file_becomes_a_pipe(holt: Holt, mkdir: Make, redirection: str, option: str, files: str) -> None:
    """With a file, each open(2) would be checked twice. A file that is only stdout stays, because programs may seek in it."""
    logs = mkdir(holt.cwd.parent / "logs")
    (logs / "err").touch()
    holt.identity.own(logs / "err")
    options = ["run", *([option] if option else []), "--", "python3", "-c", FILES]
    result = through_shell(holt, f'"$0" "$@" {redirection.format(logs)}', *options).ok()

    said = result.out + result.err + "".join(path.read_text() for path in logs.iterdir())
    assert sorted(said.splitlines()) == [files, "last"]


@pytest.mark.identities("user", "root")
def test_100_megabytes_go_through_pipes_unchanged(holt: Holt, large: Path) -> None:
    result = through_shell(holt, f'cat {large} | "$0" "$@" | sha256sum', "run", "--", "cat").ok()

    assert result.out.split()[0] == sha256(large)


@pytest.mark.identities("user")
def test_100_megabytes_go_through_files_unchanged(holt: Holt, large: Path, place: Path) -> None:
    copy = place / "copy"
    with large.open("rb") as source, copy.open("wb") as target:
        holt(["run", "--", "cat"], stdin=source, stdout=target).ok()

    assert sha256(copy) == sha256(large)


def test_every_byte_goes_through(holt: Holt) -> None:
    assert holt(["run", "--", "cat"], stdin=ALL_BYTES).ok().out_bytes == ALL_BYTES


def test_every_byte_of_an_argument_and_a_variable_goes_through(holt: Holt) -> None:
    everything = ALL_BYTES[1:].decode(errors="surrogateescape")
    result = holt(["run", "--env", f"V={everything}", "--", "printf", "%s", everything, "", "  "]).ok()

    assert result.out_bytes == ALL_BYTES[1:] + b"  "
    assert holt.sh('printf %s "$V"', "--env", f"V={everything}").ok().out_bytes == ALL_BYTES[1:]


def test_stdout_and_stderr_stay_apart(holt: Holt) -> None:
    result = holt.sh("echo out; echo err >&2").ok()

    assert (result.out, result.err) == ("out\n", "err\n")


def test_output_comes_as_it_is_written(holt: Holt) -> None:
    with holt.start(["run", "--", "cat"], stdin=subprocess.PIPE) as running:
        running.send("first\n")
        assert running.readline() == "first"
        running.send("second\n")
        assert running.readline() == "second"
        running.wait(b"").ok()


def test_stdin_ends_where_it_ends(holt: Holt) -> None:
    assert holt.sh("wc -c", stdin=b"x" * 70000).ok().out == "70000\n"
    assert holt.sh("wc -c", stdin=b"").ok().out == "0\n"


def test_unread_input_is_left_to_the_next_program(holt: Holt) -> None:
    result = through_shell(holt, 'seq 3 | ("$0" "$@"; cat)', "run", "--", "sh", "-c", "read line; echo got $line").ok()

    assert result.out == "got 1\n2\n3\n"


def test_a_file_as_stdin_can_be_sought_in(holt: Holt, large_enough: Path) -> None:
    script = "import sys; f = sys.stdin.buffer; f.seek(-3, 2); print(f.read())"
    with large_enough.open("rb") as source:
        assert holt(["run", "--", "python3", "-c", script], stdin=source).ok().out == "b'end'\n"


@pytest.fixture
def large_enough(place: Path, identity: Identity) -> Path:
    path = place / "input"
    path.write_text("x" * 1000 + "end")
    return identity.own(path)


@pytest.mark.parametrize("redirection", ("<&-", "</dev/null"))
def test_stdin_may_be_closed_or_empty(redirection: str, holt: Holt) -> None:
    script = 'wc -c; exec 9< /etc/hosts; echo "<$(readlink /proc/self/fd/0)>"'

    result = through_shell(holt, f'"$0" "$@" {redirection}', "run", "--", "bash", "-c", script).ok()

    assert result.out == "0\n</dev/null>\n"


def test_stdout_and_stderr_may_be_closed(holt: Holt) -> None:
    """A file that the command opens must not get the number of its closed stdout."""
    script = "echo lost; echo lost >&2; exec 9> file; echo lost; echo kept >&9"

    result = through_shell(holt, '"$0" "$@" >&- 2>&-', "run", "--", "bash", "-c", script).ok()

    assert (result.out, result.err) == ("", "")
    assert (holt.cwd / "file").read_text() == "kept\n"


def test_a_reader_that_leaves_ends_the_command(holt: Holt) -> None:
    """"holt run -- yes | head -n 1" ends, with SIGPIPE's code, and holt says nothing."""
    result = through_shell(holt, '"$0" "$@" | head -n 1; echo ${PIPESTATUS[0]}', "run", "--", "yes").ok()

    assert (result.out, result.err) == ("y\n141\n", "")


def test_a_reader_that_leaves_does_not_hide_the_end_of_a_command_that_goes_on(holt: Holt) -> None:
    script = "trap '' PIPE; while echo x; do :; done 2>/dev/null; exit 9"

    result = through_shell(holt, '"$0" "$@" | :; echo ${PIPESTATUS[0]}', "run", "--", "bash", "-c", script).ok()

    assert result.out == "9\n"


@pytest.mark.parametrize("holder", ("sleep 1000 &", "setsid sleep 1000 &", "nohup sleep 1000 &", "(sleep 1000 &);"))
def test_a_grandchild_that_holds_stdout_does_not_outlive_the_run(holder: str, holt: Holt) -> None:
    """The reader sees the end of the output as soon as the command has ended. The fixture nothing_left looks for
    the grandchild."""
    assert holt.sh(f"{holder} echo done").ok().out == "done\n"


def test_a_slow_reader_gets_all(holt: Holt) -> None:
    with holt.start(["run", "--", "head", "-c", "1000000", "/dev/zero"]) as running:
        assert running.process.stdout
        pieces = []
        while piece := os.read(running.process.stdout.fileno(), 1000):
            pieces.append(len(piece))
        running.wait().ok()

    assert sum(pieces) == 1000000


def test_no_descriptor_of_the_caller_comes_along(holt: Holt) -> None:
    script = "ls /proc/self/fd | wc -l"

    result = through_shell(holt, 'exec 5< /etc/passwd 9>&1; "$0" "$@"', "run", "--", "sh", "-c", script).ok()

    assert result.out == "4\n"  # 0, 1, 2, and the one that ls has open


# --- flags and locks that the command leaves on the caller's open files ---

MEDDLE = """
import fcntl, os
for fd in (0, 1, 2):
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags ^ os.O_NONBLOCK ^ os.O_APPEND)
    assert fcntl.fcntl(fd, fcntl.F_GETFL) != flags
"""

LOCK = """
import fcntl, struct
fcntl.flock(0, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.fcntl(0, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
assert open("/proc/self/fdinfo/0").read().count("lock:") == 2
"""

LEASE = "import fcntl; fcntl.fcntl(0, fcntl.F_SETLEASE, fcntl.F_RDLCK)"


@pytest.fixture(params=("run", "exec"))
def verb(request: pytest.FixtureRequest) -> list[str]:
    """The first words of a command line that hands the caller's own stdin, stdout and stderr to a command."""
    if request.param == "run":
        return ["run", "--"]
    return ["exec", request.getfixturevalue("session").name, "--"]


def locks(fd: int) -> str:
    """The kinds of locks on the open file description."""
    lines = Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines()
    return " ".join(line.split()[2] for line in lines if line.startswith("lock:"))


@pytest.fixture
def owned(place: Path, identity: Identity) -> Path:
    path = place / "owned"
    path.write_text("text\n")
    identity.own(path)
    path.chmod(0o666)
    return path


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("kind", ("files", "pipes"))
def test_the_flags_of_the_caller_s_streams_are_put_back(
    kind: str, verb: list[str], sessions: Sessions, owned: Path
) -> None:
    """Somebody else's write would fail with EAGAIN, or overwrite a log that was opened to append."""
    if kind == "files":
        fds = [os.open(owned, os.O_RDWR | flag) for flag in (0, os.O_APPEND, os.O_NONBLOCK)]
        others = []
    else:
        pipes = [os.pipe() for _ in range(3)]
        fds = [pipes[0][0], pipes[1][1], pipes[2][1]]
        others = [pipes[0][1], pipes[1][0], pipes[2][0]]
    before = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in fds]
    try:
        result = sessions([*verb, "python3", "-c", MEDDLE], stdin=fds[0], stdout=fds[1], stderr=fds[2])

        assert result.code == 0
        assert [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in fds] == before
    finally:
        for fd in (*fds, *others):
            os.close(fd)


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("script", (
    pytest.param(LOCK, id="locks"),
    # Root's sandbox has a uid that owns no file, so the command can take no lease.
    pytest.param(LEASE, id="lease", marks=pytest.mark.identities("user")),
))
def test_the_command_s_locks_on_stdin_do_not_outlive_it(
    script: str, verb: list[str], sessions: Sessions, owned: Path
) -> None:
    with owned.open("rb" if script == LEASE else "r+b") as handed:
        sessions([*verb, "python3", "-c", script], stdin=handed).ok()

        assert locks(handed.fileno()) == ""


@pytest.mark.identities("user", "root")
def test_the_caller_s_own_lock_on_stdin_stays(verb: list[str], sessions: Sessions, owned: Path) -> None:
    with owned.open("r+b") as handed:
        fcntl.flock(handed, fcntl.LOCK_SH)
        sessions([*verb, "python3", "-c", LOCK], stdin=handed).ok()

        assert locks(handed.fileno()) == "FLOCK"
