# SPDX-License-Identifier: Apache-2.0
"""If a command fails on a path, the result names the path and the cure. Every cure is tried: with it, the same command
succeeds."""

from __future__ import annotations

import base64
import json
import os
import platform
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.sandbox import Holt, Result
from lib.sessions import Bound, Session, Sessions
from lib.terminal import Terminal

Make = Callable[..., Path]


@pytest.fixture
def extra(holt: Holt, put: Make) -> Path:
    """A directory of the host beside the workspace, with a file "d"."""
    return put(holt.cwd.parent / "extra" / "d", "data\n").parent


FILES = "python3 -c 'f = [open(\"/dev/null\") for i in range(100)]'"


def only(result: Result) -> dict[str, Any]:
    """Returns the one refused path in the report."""
    assert result.report
    (denial,) = [d for d in result.report["denials"] if d["layer"] == "filesystem"]
    return dict(denial)


def lines(result: Result) -> list[str]:
    return [line for line in result.err.splitlines() if line.startswith("holt: refused")]


# --- paths with a cure ---


@pytest.mark.parametrize(
    "script, answer, option, words",
    [
        ("cat ../extra/d", "ENOENT", "--ro", "../extra"),
        ("cat {extra}/d", "ENOENT", "--ro", "{extra}"),
        ("ls {extra}", "ENOENT", "--ro", "{extra}"),
        ("python3 -c 'open(\"{extra}/d\")'", "ENOENT", "--ro", "{extra}"),
        ("touch {extra}/new", "ENOENT", "--rw", "{extra}"),
        ("touch ../extra/d", "ENOENT", "--rw", "../extra"),
        ("echo x >own; cp own {extra}/d", "ENOENT", "--rw", "{extra}"),
        ("mkdir -p {extra}/new", "EROFS", "--rw", "{extra}"),
    ],
)
def test_a_missing_path_gets_a_cure_that_helps(
    holt: Holt, extra: Path, script: str, answer: str, option: str, words: str
) -> None:
    script, words = script.format(extra=extra), words.format(extra=extra)
    if "mkdir" in script:  # the workspace is a sibling, so the parent exists inside, read-only
        script, words = f"mkdir {extra}2/new", f"{extra}2"
        (extra.parent / "extra2").mkdir()
        holt.identity.own(extra.parent / "extra2")
        answer = "ENOENT"
    result = holt.sh(script)

    denial = only(result)
    assert denial["answer"] == answer and denial["grant"] == f"{option} {words}" and denial["why_not"] is None
    field = "read_only" if option == "--ro" else "read_write"
    source = str((holt.cwd / words).resolve())
    assert denial["policy"] == {"filesystem": {field: [source]}}
    (line,) = lines(result)
    assert f"{option} {words} allows it" in line
    holt.sh(script, *shlex.split(denial["grant"])).ok()


def test_a_read_only_mount_gets_a_cure_that_helps(holt: Holt, extra: Path, mkdir: Make) -> None:
    below = mkdir(extra / "sub")
    result = holt.sh(f"touch {below}/new", "--ro", extra)

    denial = only(result)
    assert denial["answer"] == "EROFS" and denial["grant"] == f"--rw {below}"
    holt.sh(f"touch {below}/new", "--ro", extra, *shlex.split(denial["grant"])).ok()


def test_a_mount_elsewhere_keeps_its_target(holt: Holt, extra: Path) -> None:
    denial = only(holt.sh("touch /data/new", "--ro", f"{extra}:/data"))
    assert denial["grant"] == f"--rw {extra}:/data" and "--ro" in denial["reason"]
    assert denial["policy"] == {"filesystem": {"read_write": [f"{extra}:/data"]}}
    holt.sh("touch /data/new", *shlex.split(denial["grant"])).ok()


def test_a_read_only_workspace(holt: Holt) -> None:
    denial = only(holt.sh("touch new", "--workspace-mode", "ro"))
    assert denial["grant"] == "--workspace-mode rw"
    assert denial["policy"] == {"filesystem": {"workspace": {"mode": "rw"}}}


def test_a_link_of_the_host_to_a_missing_file(holt: Holt, extra: Path, mkdir: Make) -> None:
    tree = mkdir(holt.cwd.parent / "tree")
    (tree / "link").symlink_to(extra / "d")
    denial = only(holt.sh(f"cat {tree}/link", "--ro", tree))
    assert denial["grant"] == f"--ro {extra}"
    holt.sh(f"cat {tree}/link", "--ro", tree, *shlex.split(denial["grant"])).ok()


def test_a_write_of_a_path_that_is_not_shown(holt: Holt, extra: Path, put: Make) -> None:
    put(extra / "writer" / "d", "data\n")
    assert only(holt.sh(f"touch {extra}/new"))["reason"] == "the sandbox does not show its directory"
    assert only(holt.sh(f"cat {extra}/writer/d"))["grant"] == f"--ro {extra}/writer"


@pytest.mark.parametrize(
    "script, words",
    [
        ("echo hi >../extra/new", "../extra"),
        ("echo hi >{extra}/new", "{extra}"),
        ("echo hi | tee {extra}/new", "{extra}"),
        ("dd if=/dev/null of={extra}/new", "{extra}"),
        ("python3 -c 'open(\"{extra}/new\", \"w\")'", "{extra}"),
    ],
)
def test_a_new_file_in_a_directory_that_is_not_shown(holt: Holt, extra: Path, script: str, words: str) -> None:
    """These programs name the file, and not what they wanted to do with it."""
    script, words = f"set -o pipefail; {script.format(extra=extra)}", words.format(extra=extra)
    denial = only(holt.sh(script))
    assert denial["grant"] == f"--rw {words}" and denial["answer"] == "ENOENT"
    assert denial["reason"] == "the host has no such file, and the sandbox does not show its directory"
    holt.sh(script, *shlex.split(denial["grant"])).ok()
    assert (extra / "new").exists()


@pytest.mark.parametrize(
    "script",
    [
        "echo hi >../none/new",
        "echo hi >../extra/none/new",
        "echo hi >{extra}/d/new",
        "echo hi >/etc/none",
        "cat ../extra/none",
        "head ../extra/none",
        "echo hi >out/new",
    ],
)
def test_a_file_that_no_grant_would_make(holt: Holt, extra: Path, script: str) -> None:
    (holt.cwd / "out").symlink_to("../none")
    assert "--rw" not in holt.sh(script.format(extra=extra)).err


@pytest.mark.parametrize("shell", ("bash", "sh"))
def test_a_script_whose_interpreter_is_at_another_path(holt: Holt, sessions: Sessions, put: Make, shell: str) -> None:
    """A shell names only the script, as if that were missing. A virtual environment has such scripts."""
    python = holt.cwd / ".venv" / "python"
    put(python, "#!/bin/sh\necho ran\n").chmod(0o755)
    put("tool", f"#!{python} -I\n").chmod(0o755)
    result = holt(["run", "--workspace", f"{holt.cwd}:/work", "--", shell, "-c", "./tool"])
    denial = only(result)
    assert denial["path"] == str(python) and "inside it is /work/.venv/python." in denial["why_not"]
    way = f"--workspace {holt.cwd}:{holt.cwd}"
    assert denial["why_not"].endswith(f": {way}")
    holt(["run", *shlex.split(way), "--", shell, "-c", "./tool"]).ok()

    session = sessions.create("w", "--workspace", f"{holt.cwd}:/work")
    assert f": holt create {way}\n" in session.exec(shell, "-c", "./tool", flags=["--output", "1M"]).err


def test_a_session_names_what_its_policy_hides(sessions: Sessions, put: Make, workspace: Path) -> None:
    put(".env", "secret\n")
    session = sessions.create("w", "--workspace", workspace, "--hide", "*.{env,key}")
    assert "it is hidden; the session's policy hides *.{env,key}\n" in session.sh("cat .env", "--output", "1M").err


# --- paths without one ---


@pytest.mark.parametrize(
    "script, words",
    [
        ("touch /usr/new", "the system is read-only"),
        ("touch /new", "read-only in the sandbox"),
        ("touch /etc/new", "too wide to be made writable"),
        ("echo x > /proc/sys/kernel/hostname", "every sandbox masks it"),
    ],
)
def test_a_refused_path_without_a_cure(holt: Holt, script: str, words: str) -> None:
    result = holt.sh(script)
    denial = only(result)
    assert denial["answer"] == "EROFS" and denial["grant"] is denial["policy"] is None
    (line,) = lines(result)
    assert words in line and denial["why_not"] in line


@pytest.mark.identities("user", "root")
def test_a_directory_of_root_is_only_for_root(holt: Holt) -> None:
    """No option lets a command write where its caller may not."""
    for script, path in (("touch /opt/new", "/opt"), ("echo 'touch: /srv/new: Read-only file system' >&2; false", "/srv")):
        (line,) = lines(holt.sh(script))
        root = f"pass --rw {path}/DIR, or pass --rw {path} --allow-wide"
        assert (root if holt.identity.uid == 0 else "too wide to be made writable") in line


@pytest.mark.identities("user")
def test_a_directory_that_the_caller_may_not_write(holt: Holt, extra: Path) -> None:
    extra.chmod(0o555)
    for script in (f"touch {extra}/new", f"touch {extra}/sub/new"):
        denial = only(holt.sh(script))
        assert denial["reason"] == "the user who runs holt may not write in its directory"
        assert denial["grant"] is denial["policy"] is None
    assert only(holt.sh(f"touch {extra}/d"))["grant"] == f"--rw {extra}"  # the file itself may be written
    assert not lines(holt.sh(f"cat {extra}/none"))
    denial = only(holt(["run", "--ro", extra, "--", "touch", extra / "new"]))
    assert denial["grant"] is None


def test_protected_paths(holt: Holt) -> None:
    subprocess.run(holt.identity.as_user(["git", "init", "-q", str(holt.cwd)]), check=True)
    for script, answer, path in (
        ("git config a.b c", "EBUSY", ".git/config"),
        ("echo x >> .git/config", "EROFS", ".git/config"),
        ("rm .git/config", "EBUSY", ".git/config"),
        ("cd .git && rm -r hooks", "EROFS", "hooks/"),
        ("mv .git away", "EBUSY", ".git"),
    ):
        result = holt.sh(script)
        if path == "hooks/":  # relative to a directory that nobody knows
            continue
        denial = only(result)
        assert denial["path"] == path and denial["answer"] == answer and denial["grant"] is None, script
        assert "holt protects it" in lines(result)[0]


def test_many_paths_below_one_protected_directory_are_one_line(holt: Holt) -> None:
    subprocess.run(holt.identity.as_user(["git", "init", "-q", str(holt.cwd)]), check=True)
    result = holt.sh("rm -r .git/hooks")
    assert only(result)["count"] > 1 and len(lines(result)) == 1


def test_a_hidden_file_and_a_policy_file(holt: Holt, put: Make) -> None:
    put(".env", "secret\n")
    put(".holt.json", '{"holt": 1}\n')
    for pattern in (".env", "**/.env", "*.{env,key}", str(holt.cwd / ".env")):
        hidden = only(holt.sh("cat .env", "--hide", pattern))
        assert hidden["answer"] == "EACCES" and hidden["why_not"] == f"the reason is --hide {pattern}"
    put("hiding.json", '{"holt": 1, "filesystem": {"hide": ["*.env"]}}\n')
    hidden = only(holt.sh("cat .env", "--policy", "hiding.json"))
    assert hidden["why_not"] == "the reason is hiding.json: $.filesystem.hide[0]: *.env"
    policy = only(holt.sh("rm -f .holt.json"))
    assert policy["grant"] is None and "outside" in policy["why_not"]


@pytest.mark.parametrize("name", (".npm", ".cache/pip", ".nuget", ".ivy2", ".m2", ".cargo/registry", "go/pkg/mod"))
def test_a_cache_of_the_host_is_not_to_be_written(holt: Holt, extra: Path, mkdir: Make, name: str) -> None:
    """Programs of the host run or trust what lies there."""
    cache = extra
    for part in name.split("/"):
        cache = mkdir(cache / part)
    (cache / "package").write_text("x\n")
    denial = only(holt.sh(f"touch {cache}/new", "--ro", cache))
    assert denial["grant"] is denial["policy"] is None and "programs on the host" in denial["why_not"]
    for script in (f"touch {cache}/new", f"echo x >> {cache}/package"):
        assert "--rw" not in holt.sh(script).err
    assert only(holt.sh(f"cat {cache}/package"))["grant"] == f"--ro {cache}"


@pytest.mark.identities("root")
def test_a_file_of_another_owner(holt: Holt, everyone: "dict[str, Identity]", put: Make) -> None:
    put("theirs", "x\n")
    everyone["user"].own(holt.cwd)
    everyone["user"].own(put("own", "x\n"))
    for script in ("rm theirs", "mv own theirs", "python3 -c 'import os; os.unlink(\"theirs\")'"):
        denial = only(holt.sh(script))
        assert (denial["path"], denial["answer"], denial["grant"]) == ("theirs", "EOVERFLOW", None)
        assert denial["reason"] == "another user owns it" and "chown" in denial["why_not"]
    for script in ("touch theirs", "sh -c 'echo > theirs'", "python3 -c 'open(\"theirs\", \"w\")'"):
        denial = only(holt.sh(script))
        assert (denial["path"], denial["answer"], denial["reason"]) == ("theirs", "EACCES", "another user owns it")
    (holt.cwd / "above").mkdir(mode=0o755)
    assert only(holt.sh("touch above/new"))["reason"] == "another user owns its directory"
    put("own", "x\n").chmod(0o400)
    everyone["user"].own(holt.cwd / "own")
    assert not lines(holt.sh("touch own; echo x > own"))
    said = "Error: EOVERFLOW: value too large for defined data type, unlink"
    assert only(holt.sh(f"echo \"{said} 'theirs'\" >&2; exit 1"))["path"] == "theirs"
    assert not lines(holt.sh(f"echo \"{said} 'own'\" >&2; exit 1"))


# --- quiet ---


def test_nothing_is_said_after_success_or_about_ordinary_errors(holt: Holt, put: Make) -> None:
    put("closed", "x\n").chmod(0)
    assert not lines(holt.sh("touch /opt/x; true").ok())
    for script in ("cat nope", "cat sub/nope; exit 3", "false", "echo /opt/x; exit 1", "cat /tmp/nope", "no-such-command"):
        assert not lines(holt.sh(script)), script


def test_at_most_five_lines_and_sixteen_entries(holt: Holt, extra: Path, mkdir: Make) -> None:
    for i in range(20):
        mkdir(extra / f"s{i}") / "f"
        (extra / f"s{i}" / "f").write_text("")
    result = holt.sh(f"cat {extra}/s*/f " + " ".join(f"{extra}/s{i}/f" for i in range(20)))
    assert result.report
    assert len(lines(result)) == 5
    assert len(result.report["denials"]) == 16


# --- every way in which stderr may go ---


def test_stderr_may_be_a_file_or_a_terminal(holt: Holt, extra: Path) -> None:
    for mode in ("w", "a"):
        with (holt.cwd.parent / "err").open(mode) as err:
            result = holt.sh("cat ../extra/d", stderr=err)
            assert only(result)["grant"] == "--ro ../extra"
    # Messages of an earlier run in the same file do not count.
    with (holt.cwd.parent / "err").open("a") as err:
        result = holt.sh("exit 1", stderr=err)
        assert result.report and result.report["denials"] == []
    with Terminal(holt.identity, holt.argv(["run", "--", "cat", "../extra/d"]), cwd=holt.cwd) as terminal:
        terminal.expect("--ro ../extra allows it")


def test_both_streams_in_one_pipe_keep_their_order(holt: Holt, extra: Path) -> None:
    result = holt.sh(
        "for i in 1 2 3 4 5 6 7 8; do echo out $i; echo err $i >&2; done; cat ../extra/d", stderr=subprocess.STDOUT
    )
    assert result.out.splitlines()[:16] == [f"{s} {i}" for i in range(1, 9) for s in ("out", "err")]


def test_without_stderr_the_words_of_the_command_count(holt: Holt, extra: Path) -> None:
    for command in (["cat", "../extra/d"], ["bash", "-c", "true; cat '../extra/d'|cat"], ["env", "A=../extra/d", "false"]):
        result = holt(["run", "--", "bash", "-c", '"$@"; exit 1', "-", *command], stderr=subprocess.DEVNULL)
        assert only(result)["grant"] == "--ro ../extra", command


@pytest.mark.parametrize("limit", ([], ["--output", "1M"]), ids=("no limit", "a limit"))
def test_messages_in_one_pipe_with_stdout_are_read(holt: Holt, extra: Path, limit: "list[str]") -> None:
    """Programs that run others often read both streams from one pipe."""
    result = holt.sh("head -c 100000 /dev/zero; cat ../extra/d; exit 1", *limit, stderr=subprocess.STDOUT)
    assert only(result)["grant"] == "--ro ../extra"
    result = holt.sh("echo \"can't start new thread\" >&2; exit 1", *limit, "--pids", "9", stderr=subprocess.STDOUT)
    assert result.report and [hit["limit"] for hit in result.report["limits_hit"]] == ["processes"]


def test_refused_paths_are_named_with_an_output_limit(holt: Holt, extra: Path) -> None:
    assert only(holt.sh("cat ../extra/d", "--output", "1M"))["grant"] == "--ro ../extra"


# --- sessions ---


def test_a_session_names_refused_paths(sessions: Sessions, extra: Path) -> None:
    session = sessions.create("w", "--ro", f"{extra}:/data")
    result = session.sh("touch /data/new", "--output", "1M")
    (line,) = lines(result)
    assert f"holt create --rw {extra}:/data allows it" in line
    result = session("python", "-c", f"open('{extra}/d')")
    (line,) = lines(result)
    assert f"holt create --ro {extra} allows it" in line


def test_a_session_says_that_its_mounts_are_fixed(sessions: Sessions, extra: Path) -> None:
    """An option of holt create does not change a session that exists."""
    session = sessions.create("w", "--open-files", "64")
    fixed = 'The mounts and limits of session "w" are fixed when it is created'
    for result in (session.sh(f"cat {extra}/d"), session("python", "-c", f"open('{extra}/d')"), session.sh(FILES, "--output", "1M")):
        assert result.err.count(fixed) == 1 and "holt rm w would delete" in result.err, str(result)
    assert fixed not in session.sh("cat /none; exit 3").err

    result = sessions(["create", "w", "--ro", extra])
    assert "Its mounts and limits are fixed" in result.err and "with its files and keys" in result.err, str(result)


def test_exec_with_files_and_terminals_of_the_caller(sessions: Sessions, holt: Holt, extra: Path) -> None:
    """The command writes there itself, so that holt exec reads the text and asks the keeper."""
    session = sessions.create("w")
    with (holt.cwd.parent / "err").open("w+") as err:
        session.sh(f"cat {extra}/d", stderr=err)
        err.seek(0)
        assert f"holt create --ro {extra} allows it" in err.read()
    argv = holt.argv(["exec", "w", "--", "cat", f"{extra}/d"])
    with Terminal(holt.identity, argv, cwd=holt.cwd, env={"XDG_DATA_HOME": str(sessions.data)}) as terminal:
        terminal.expect(f"holt create --ro {extra} allows it")
    # In /dev/null, nobody sees it, so holt knows only the words of the command.
    document = json.loads(session.sh(f"cat {extra}/d 2> /dev/null", "--json").err.splitlines()[-1])
    assert document["denials"] == []
    report = holt.cwd.parent / "report"
    session.sh(f"cat {extra}/d", "--report", report, stderr=subprocess.DEVNULL)
    (denial,) = json.loads(report.read_text())["denials"]
    assert denial["path"] == f"{extra}/d" and denial["answer"] == ""
    assert not lines(session.sh("cat /opt/none; exit 3"))
    document = json.loads(session.sh(f"cat {extra}/d", "--json").err.splitlines()[-1])
    assert [d["path"] for d in document["denials"]] == [f"{extra}/d"]
    assert {json.loads(row["detail"])["path"] for row in session.audit()} == {f"{extra}/d"}


def test_explain_judges_only_facts(keeper: Bound, extra: Path) -> None:
    number = keeper.call("process.spawn", argv=["false"])["id"]
    keeper.call("process.wait", id=number)
    text = base64.b64encode(f"cat: {extra}/d: No such file or directory\n\0/nope: Permission denied".encode()).decode()
    (denial,) = keeper.call("process.explain", id=number, stderr=text)["denials"]
    assert denial["path"] == f"{extra}/d"
    assert keeper.call("process.explain", id=number, stderr="") == {"denials": [], "limits_hit": []}
    # Without a text, it returns the one that the keeper has read.
    number = keeper.call("exec", shell="printf 'a\\0b' >&2; exit 1")["id"]
    assert keeper.call("process.explain", id=number)["stderr"] == base64.b64encode(b"a b").decode()
    assert keeper.refused("process.explain", id=number, stderr="?").kind == "usage"


def test_a_reply_and_the_audit_have_refused_paths(keeper: Bound, session: Session, extra: Path) -> None:
    for call in (
        lambda: keeper.call("exec", shell=f"cat {extra}/d"),
        lambda: keeper.call("python.run", code=f"open('{extra}/d')"),
    ):
        (denial,) = call()["denials"]
        assert denial["layer"] == "filesystem" and denial["path"] == denial["what"] == f"{extra}/d"
        assert denial["policy"] == {"filesystem": {"read_only": [str(extra)]}}
    rows = [row["detail"] for row in keeper.call("audit.list", kind="denial")["rows"]]
    assert [row["path"] for row in rows] == [f"{extra}/d"] * 2
    assert all(row["execs"] for row in rows)
    assert keeper.call("exec", shell="true")["denials"] == []


def test_system_calls_have_a_typed_grant_too(holt: Holt) -> None:
    number = {"x86_64": 250, "aarch64": 219}[platform.machine()]
    result = holt.sh(f"python3 -c 'import ctypes; ctypes.CDLL(None).syscall({number}, 0, 0, 0)'; exit 1")
    denial = result.denials["keyctl"]
    assert denial["path"] is None and denial["policy"] == {"syscalls": {"allow": ["keyctl"]}}


def test_a_sandbox_inside_is_told_that_there_are_no_namespaces(holt: Holt) -> None:
    """Allowing the call would not help: such a program then mounts file systems, which Landlock refuses."""
    for command in ("unshare --map-root-user true", "bwrap --ro-bind / / true"):
        result = holt.sh(command)
        denial = result.denials.get("unshare") or result.denials.get("clone")
        if "bwrap" in command and not denial:  # bwrap is not installed
            continue
        assert denial and denial["grant"] is denial["policy"] is None
        assert "--no-sandbox" in denial["why_not"] and "--allow-syscall" not in result.err


def test_a_word_of_the_command_that_is_its_own_file_in_tmp_is_no_refusal(holt: Holt) -> None:
    """The host has a file of that name, too, but the sandbox has a /tmp of its own."""
    with tempfile.NamedTemporaryFile(dir="/tmp") as own:
        script = f"head -c 5000000 /dev/zero >{own.name}"
        words = ["run", "--tmp-size", "1MiB", "--", "bash", "-c", script]
        result = holt.start(words, stderr=subprocess.STDOUT).wait()
    assert result.report and result.report["denials"] == [] and result.code != 0


@pytest.mark.parametrize("name", ["hosts", "resolv.conf", "passwd"])
def test_files_that_holt_writes_itself_are_not_missing(holt: Holt, name: str) -> None:
    """The command's output goes to a file, so holt looks only at the words of the command."""
    result = holt(["run", "--", "sh", "-c", f"cat /etc/{name} 2>&1; exit 1"])

    assert (result.code, result.denials) == (1, {})
    assert holt(["run", "--", "sh", "-c", f"cat /etc/{name} >&2; exit 1"], stderr=subprocess.STDOUT).denials == {}
