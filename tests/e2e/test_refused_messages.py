# SPDX-License-Identifier: Apache-2.0
"""Refused paths in the messages of real programs: of shells, of sed, and of make."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.sandbox import Holt, Result
from lib.sessions import Sessions

pytestmark = pytest.mark.alike

Make = Callable[..., Path]


@pytest.fixture
def extra(holt: Holt, put: Make) -> Path:
    """A directory of the host beside the workspace, with a file "d"."""
    return put(holt.cwd.parent / "extra" / "d", "data\n").parent


def told(result: Result) -> list[dict[str, Any]]:
    """Returns the refused paths in the report."""
    assert result.report
    return [d for d in result.report["denials"] if d["layer"] == "filesystem"]


def run(holt: Holt, command: list[str], *flags: object) -> Result:
    """Runs the command, or skips the test if the host does not have it."""
    if not shutil.which(command[0]):
        pytest.skip(f"this host has no {command[0]}")
    return holt(["run", *flags, "--", *command])


SHELLS = (["sh"], ["/bin/sh"], ["dash"], ["bash"], ["busybox", "sh"], ["zsh"])


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_shell_that_cannot_open_a_path(holt: Holt, extra: Path, put: Make, shell: list[str]) -> None:
    put("t.mk", "a:\n\tcat < ../extra/d\n")
    commands = [[*shell, "-c", "cat < ../extra/d"], [*shell, "-c", "cd ../extra"], [*shell, "../extra/d"]]
    if shutil.which("make"):
        commands.append(["make", "-f", "t.mk", f"SHELL={shutil.which(shell[0])}"] if len(shell) == 1 else commands[0])
    for command in commands:
        (denial,) = told(run(holt, command))
        assert (denial["answer"], denial["grant"]) == ("ENOENT", "--ro ../extra"), command


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_shell_itself_is_not_blamed(holt: Holt, shell: list[str]) -> None:
    for script, path, flags in (("echo > /opt/q", "/opt/q", []), ("echo > x", "x", ["--workspace-mode", "ro"])):
        (denial,) = told(run(holt, [*shell, "-c", script], *flags))
        assert (denial["answer"], denial["path"]) == ("EROFS", path)


def test_a_directory_that_is_written_with_a_slash(holt: Holt, extra: Path, put: Make) -> None:
    """If the directory is missing, cp says that it is not a directory."""
    put("t", "x\n")
    (denial,) = told(holt(["run", "--", "cp", "t", "../extra/"]))
    assert denial["grant"] == "--rw ../extra/"
    holt(["run", "--rw", "../extra/", "--", "cp", "t", "../extra/"]).ok()
    assert told(holt(["run", "--", "ls", "t/x"])) == []


@pytest.mark.identities("root")
@pytest.mark.parametrize(
    "script, grant",
    [
        ("cp t ../extra", "--rw ../extra"),
        ("python3 -c 'import os; os.makedirs(\"../extra/new/a\")'", "--rw ../extra"),
        ("touch ../own.json", "--rw ../own.json"),
        ("touch ../new", None),
        ("touch ../key.pem", None),
    ],
)
def test_a_path_beside_the_workspace(holt: Holt, extra: Path, put: Make, script: str, grant: "str | None") -> None:
    """The sandbox has the directory above the workspace, read-only and without its other files. In /tmp, where this test
    lies, it could be written."""
    put("t", "x\n")
    for name in ("own.json", "key.pem"):
        put(holt.cwd.parent / name, "{}\n")
    inner = 'mount --bind "$0" /srv && cd "/srv/$1" && shift && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", inner, holt.cwd.parent.parent, f"{holt.cwd.parent.name}/{holt.cwd.name}"]
    (denial,) = told(holt.sh(script, prefix=prefix))
    assert (denial["answer"], denial["grant"]) == ("EROFS", grant)
    if grant:
        assert denial["reason"] == "the host has it, but the sandbox does not show it"
        source = f"/srv/{holt.cwd.parent.name}/{Path(grant).name}"
        assert denial["policy"] == {"filesystem": {"read_write": [source]}}
        holt.sh(script, *shlex.split(grant), prefix=prefix).ok()
    else:
        assert denial["why_not"].startswith("no option makes its directory writable: write in the workspace")


@pytest.mark.parametrize(
    "script, grant, words",
    [
        ("cat {extra}/d", "--ro {extra}", "--ro {extra} may help, or --rw if it writes there"),
        ("touch {extra}/d", "--rw {extra}", "--rw {extra} may help. "),
        ("mkdir {extra}/new", "--rw {extra}", "--rw {extra} may help. "),
        ("test -e {extra}/d && true", "--ro {extra}", "may help"),
    ],
)
def test_a_word_of_the_command_is_only_a_guess(holt: Holt, extra: Path, script: str, grant: str, words: str) -> None:
    """holt sees no message in /dev/null, so nobody knows what failed, or with which errno."""
    script, grant, words = (text.format(extra=extra) for text in (script, grant, words))
    command = ["bash", "-c", script] if "&&" in script else script.split()
    (denial,) = told(holt(["run", "--", *command], stderr=subprocess.DEVNULL))
    assert (denial["answer"], denial["grant"]) == ("", grant)
    # With stdin as the same socket, holt sees no message either, but the caller sees holt's.
    ours, theirs = socket.socketpair()
    with ours, theirs:
        holt(["run", "--", *command], stdin=theirs, stderr=theirs)
        (line,) = [line for line in ours.recv(65536).decode().splitlines() if line.startswith("holt: ")]
    assert line.startswith("holt: maybe refused ") and words in line and "ENOENT" not in line


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", "cd sub; cat ../../extra/d"],
        ["bash", "-c", "cd sub && (cd deep && cat ../../../extra/d)"],
        ["sh", "-c", 'pushd . 2>&-; cd "sub"; cat < ../../extra/d'],
        ["make", "-C", "sub"],
    ],
)
def test_a_relative_path_after_cd(holt: Holt, extra: Path, put: Make, command: list[str]) -> None:
    put("sub/deep/x", "x\n")
    put("sub/Makefile", "a:\n\tcat ../../extra/d\n")
    (denial,) = told(run(holt, command))
    assert denial["grant"] == f"--ro {extra}"
    run(holt, command, *shlex.split(denial["grant"])).ok()
    (denial,) = told(holt(["run", "--", *command], stderr=subprocess.DEVNULL)) or [{"grant": "make"}]
    assert denial["grant"] == (f"--ro {extra}" if "-c" in command else "make")


def test_a_relative_path_out_of_a_workspace_at_another_path(
    holt: Holt, sessions: Sessions, extra: Path, put: Make, mkdir: Make, workspace: Path
) -> None:
    """From /workspace, ../extra is /extra: the grant puts the host's directory there."""
    beside = put(workspace.parent / "beside" / "d", "data\n").parent
    mkdir(workspace / "sub")
    session = sessions.create("w", "--workspace", workspace)
    grant = f"--ro {beside}:/beside"
    for result in (
        session.exec("cat", "../beside/d", flags=["--output", "1M"]),
        session("python", "-c", "open('../beside/d')"),
        session.exec("bash", "-c", "cd sub; cat ../../beside/d", flags=["--output", "1M"]),
    ):
        assert f"holt create {grant} allows it" in result.err, str(result)
    granted = sessions.create("w2", "--workspace", workspace, *grant.split())
    granted.exec("cat", "../beside/d").ok()

    at = ["--workspace", f"{holt.cwd}:/work/tree"]
    (denial,) = told(holt(["run", *at, "--", "cat", "../extra/d"]))
    assert denial["grant"] == f"--ro {extra}:/work/extra"
    holt(["run", *at, *shlex.split(denial["grant"]), "--", "cat", "../extra/d"]).ok()


@pytest.mark.parametrize(
    "command, answer",
    [
        (["python3", "-c", 'import os; os.rename(".git/config", "a")'], "EXDEV"),
        (["node", "-e", 'fs.renameSync(".git/config", "a")'], "EXDEV"),
        (["ln", "-f", "t", ".git/config"], "EXDEV"),
        (["sed", "-i", "s/a/b/", ".git/config"], "EBUSY"),
        (["bash", "-c", "cd .git && sed -i s/a/b/ config"], "EBUSY"),
    ],
)
def test_a_rename_or_link_of_a_protected_file(holt: Holt, put: Make, command: list[str], answer: str) -> None:
    """sed names only its own temporary file."""
    subprocess.run(holt.identity.as_user(["git", "init", "-q", str(holt.cwd)]), check=True)
    put("t", "x\n")
    (denial,) = told(run(holt, command))
    assert (denial["answer"], denial["grant"]) == (answer, None)
    assert denial["reason"].startswith("holt protects it")
    assert denial["path"] == ("config" if "cd" in command[-1] else ".git/config")


@pytest.mark.parametrize(
    "message, grant",
    [
        ('Error: unable to open database "{extra}/d": unable to open database file', "--ro"),
        ('Error: unable to open database "{extra}/new": unable to open database file', "--rw"),
        ("Error: Unable to access jarfile {extra}/d", "--ro"),
    ],
)
def test_messages_without_the_text_of_an_errno(holt: Holt, extra: Path, message: str, grant: str) -> None:
    (denial,) = told(holt(["run", "--", "sh", "-c", 'echo "$0" >&2; exit 1', message.format(extra=extra)]))
    assert (denial["answer"], denial["grant"]) == ("ENOENT", f"{grant} {extra}")
    named = message.format(extra=holt.cwd)
    assert told(holt(["run", "--", "sh", "-c", 'echo "$0" >&2; exit 1', named])) == []


def test_an_ordinary_cross_device_link_is_no_refusal(holt: Holt, put: Make) -> None:
    put("t", "x\n")
    result = holt(["run", "--", "python3", "-c", 'import os; os.rename("t", "/tmp/t")'])
    assert "cross-device" in result.err and told(result) == []


def test_places_that_no_sandbox_shows(holt: Holt) -> None:
    for script in ("ls /var/log", "ls /boot /sys/kernel", "cat /root/x /home/none/x"):
        denials = told(holt.sh(script))
        assert [d["path"] for d in denials] == script.split()[1:]
        for denial in denials:
            assert denial["reason"] == "the sandbox does not show it" and denial["grant"] is None
            assert denial["why_not"] == "holt suggests no option, because such a place may hold secrets"
    for script in ("cat /home/agent/none", "cat /tmp/none"):
        assert told(holt.sh(script)) == []
    assert told(holt(["run", "--", "cat", "/var/log/x"], stderr=subprocess.DEVNULL)) == []  # a guess would be noise


def test_a_path_that_the_host_does_not_have(holt: Holt) -> None:
    """The result would tell that the host has it, so it may also be silent. Behind a symlink, or in a place that may
    hold secrets, it tells nothing."""
    if not os.access("/home", os.W_OK):
        pytest.skip("only root can make a directory in /home")
    with tempfile.TemporaryDirectory(dir="/home") as home:
        os.chmod(home, 0o755)
        os.symlink(".none", f"{home}/link")
        for path in ("none", "none/x", "none/sub/x"):
            result = holt(["run", "--", "cat", f"{home}/{path}"])
            assert told(result) == [] and "secrets" not in result.err, path
        for path in (".ssh/x", "none/id_rsa", "link", "link/x", ""):
            (denial,) = told(holt(["run", "--", "cat", f"{home}/{path}"]))
            assert denial["why_not"] == "holt suggests no option, because such a place may hold secrets", path


def test_the_limits_of_a_sandbox_without_limits(holt: Holt) -> None:
    """The file exists if --memory is given, or if the caller's own cgroup has a limit."""
    if holt.sh("cat /sys/fs/cgroup/memory.max").code == 0:
        pytest.skip("the caller's cgroup has a limit")
    (denial,) = told(holt.sh("cat /sys/fs/cgroup/memory.max"))
    assert denial["why_not"].startswith("the sandbox shows only its limits of memory and processors there")


def test_a_symlink_that_leads_out_of_the_sandbox(holt: Holt) -> None:
    """The result repeats the link's text, and holt never looks at the target: a command could have made the link."""
    targets = ("/srv/none", "/root", "../../../../../../../../opt/none")
    for target in targets:
        holt.sh(f"ln -sfn {target} out").ok()
        for path in ("out/d", str(holt.cwd / "out" / "d")):
            (denial,) = told(holt.sh(f"cat {path}"))
            assert denial["path"] == path and denial["grant"] is denial["policy"] is None
            assert denial["reason"] == "a symlink in the path leads out of the sandbox"
            assert denial["why_not"].startswith(f"the link is {target}, and holt does not look at its target")
    for target in ("inner", "/tmp/x", "/usr/none", "loop"):
        holt.sh(f"ln -sfn {target} loop").ok()
        assert told(holt.sh("cat loop")) == [], target


def test_a_symlink_to_a_place_that_is_read_only(holt: Holt) -> None:
    holt.sh("ln -sfn /opt out; ln -sfn /usr/bin bin").ok()
    denials = told(holt.sh("touch out/x bin/y"))
    assert [d["path"] for d in denials] == ["out/x", "bin/y"]
    for denial, target in zip(denials, ("/opt", "/usr/bin"), strict=True):
        assert denial["reason"] == "a symlink in the path leads to a place that is read-only in the sandbox"
        assert denial["why_not"] == f"the link is {target}: write to another place, or replace the link"


def test_a_symlink_to_a_protected_or_hidden_path(holt: Holt, put: Make) -> None:
    subprocess.run(holt.identity.as_user(["git", "init", "-q", str(holt.cwd)]), check=True)
    put("key", "x\n")
    holt.sh("ln -s .git/hooks hooks; ln -s .git/config config; ln -s key link").ok()
    for script in ("echo > hooks/pre-push", "echo > config"):
        (denial,) = told(holt.sh(script))
        assert denial["reason"].startswith("holt protects it")
    (denial,) = told(holt(["run", "--hide", "key", "--", "cat", "link"]))
    assert (denial["path"], denial["reason"]) == ("link", "it is hidden")


def test_several_places_are_all_named(holt: Holt) -> None:
    denials = told(holt.sh("touch /opt/x /opt/y /var/z"))
    assert [d["path"].rsplit("/", 1)[0] for d in denials] == ["/opt", "/var"]
    assert [d["count"] for d in denials] == [2, 1]


def test_a_part_of_a_path_with_blanks_is_not_named(holt: Holt) -> None:
    for command in (["cat", "/root/a b/f"], ["python3", "-c", 'open("/root/a b/f")'], ["bash", "-c", '< "/root/a b/f"']):
        (denial,) = told(run(holt, command))
        assert (denial["path"], denial["count"]) == ("/root/a b/f", 1), command


@pytest.mark.identities("root")
def test_a_directory_that_holt_may_not_enter(holt: Holt) -> None:
    """holt has left its rights before it looks for the reason, and so cannot say whether the file exists. Such a file
    in /tmp would be the command's own."""
    with tempfile.TemporaryDirectory(dir="/srv") as private:
        (Path(private) / "d").write_text("data\n")
        for path in (f"{private}/d", f"{private}/none"):
            (denial,) = told(holt(["run", "--", "cat", path]))
            assert denial["reason"] == "the sandbox does not show it" and denial["grant"] is None


@pytest.mark.parametrize(
    "message",
    [
        "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)",
        "W: Unable to read /etc/apt/sources.list.d/ - DirectoryExists (2: No such file or directory)",
        "E: List directory /var/lib/apt/lists/partial is missing. - Acquire (2: No such file or directory)",
    ],
)
def test_packages_of_the_system_are_installed_outside(holt: Holt, message: str) -> None:
    """Writable settings and locks would not help a package manager, because it needs root."""
    result = holt(["run", "--", "sh", "-c", 'echo "$0" >&2; exit 100', message])
    (denial,) = told(result)
    assert denial["grant"] is None and "install them on the host" in denial["why_not"]
    assert "--ro" not in result.err


def test_a_program_that_becomes_root_is_left_out(holt: Holt) -> None:
    missing = [name for name in ("sudo", "doas", "pkexec") if not shutil.which(name)]
    if not missing:
        pytest.skip("this host has all of them")
    result = holt(["run", "--", missing[0], "make", "install"])
    assert result.code == 127 and "Leave it out: no command inside becomes root." in result.err
