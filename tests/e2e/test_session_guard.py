# SPDX-License-Identifier: Apache-2.0
"""Files that a session sets aside at protected paths are reported after the command, as by holt run."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Session, Sessions, until

Make = Callable[..., Path]

MAKES = "echo ../x > .git/commondir; echo '{}' > .holt.json"
MADE = [".git/commondir.holt-untrusted", ".holt.json.holt-untrusted"]


@pytest.fixture
def guarded(sessions: Sessions, put: Make, workspace: Path) -> Session:
    put(".git/HEAD", "ref: refs/heads/main\n")
    put(".git/config", "[core]\n")
    return sessions.create("w", "--workspace", workspace)


def test_exec_reports_set_aside_files_like_run(guarded: Session, holt: Holt, workspace: Path) -> None:
    told = guarded.sh(MAKES).ok().err
    assert sorted(name for name in MADE if (workspace / name).exists()) == MADE
    subprocess.run(["rm", *MADE], cwd=workspace, check=True)

    assert told == holt.sh(MAKES).ok().err
    assert [f"it is now {name}\n" in told for name in MADE] == [True, True]
    assert f"  mv -T {workspace}/.git/commondir.holt-untrusted {workspace}/.git/commondir\n" in told


def test_exec_reports_nothing_if_nothing_was_set_aside(guarded: Session) -> None:
    guarded.sh(MAKES).ok()
    result = guarded.sh("mkdir .git/refs; echo x >new", "--json").ok()

    assert json.loads(result.err.splitlines()[-1])["set_aside"] == []
    assert guarded.exec("true").ok().err == ""


def test_json_and_report_list_set_aside_files(guarded: Session, place: Path) -> None:
    result = guarded.sh(MAKES + "; exit 3", "--json", "--report", place / "report.json")
    assert result.code == 3

    for text in (result.err, (place / "report.json").read_text()):
        assert sorted(json.loads(text)["set_aside"]) == MADE


@pytest.mark.parametrize("ask", ("exec", "wait", "wait at the end"))
def test_replies_list_set_aside_files(ask: str, guarded: Session) -> None:
    rpc = guarded.rpc()
    if ask == "exec":
        answer = rpc("exec", shell=MAKES)
    else:
        process = rpc("process.spawn", shell=MAKES)["id"]
        if ask == "wait at the end":
            until(lambda: guarded.ps()[process]["state"] == "ended", "it has ended")
        answer = rpc("process.wait", id=process)

    assert sorted(answer["set_aside"]) == MADE


def test_wait_reports_set_aside_files_of_a_detached_command(guarded: Session, workspace: Path) -> None:
    process = guarded.detach(MAKES)
    result = guarded("wait", process).ok()

    assert f"  mv -T {workspace}/.holt.json.holt-untrusted {workspace}/.holt.json\n" in result.err
    assert sorted(json.loads(guarded("wait", process, "--json").ok().out)["set_aside"]) == MADE


def test_files_of_a_running_command_are_reported_by_the_next_that_ends(guarded: Session, workspace: Path) -> None:
    goes_on = guarded.detach(f"{MAKES}; touch made; exec sleep 1000")
    until(lambda: (workspace / "made").exists(), "it has made them")
    result = guarded.exec("true").ok()

    assert "it is now .git/commondir.holt-untrusted\n" in result.err
    guarded("kill", goes_on).ok()
    assert guarded("wait", goes_on).err == ""
    rows = [json.loads(row["detail"])["set_aside"] for row in guarded.audit() if row["kind"] == "guard"]
    assert sorted(rows) == MADE


def test_a_workspace_of_its_own_is_not_guarded(session: Session) -> None:
    assert session.sh(f"mkdir .git; {MAKES}").ok().err == ""
    assert session.out("ls .git") == "commondir\n"


@pytest.mark.parametrize("path", (".git/commondir", ".git/hooks/post-checkout", ".holt.json"))
def test_a_client_makes_no_file_at_a_protected_path(path: str, guarded: Session, workspace: Path) -> None:
    """The next command would set it aside, and the client would have believed that it is there."""
    guarded.sh("mkdir made; echo x > made/file").ok()
    with guarded.rpc() as rpc:
        for method, params in (
            ("files.write", {"path": path, "content": "x", "make_parents": True}), ("files.mkdir", {"path": path}),
            ("files.copy", {"from": "made/file", "to": path}), ("files.move", {"from": "made/file", "to": f"./{path}"}),
            ("files.write", {"path": f"/workspace/{path}", "content": "x", "make_parents": True}),
        ):
            error = rpc.refused(method, **params)
            assert error.errno == "EROFS" and "protects it" in str(error), (method, error)
        assert rpc.call("exec", argv=["true"])["set_aside"] == []
    assert not (workspace / path).exists() and not (workspace / ".git/hooks").exists()
    assert "protects it" in guarded.cp("made/file", f"w:{path}").err


def test_a_client_brings_no_file_to_a_protected_path(sessions: Sessions, workspace: Path, place: Path) -> None:
    """The directory itself may be made, but it contains a file for a protected path below."""
    guarded = sessions.create("w", "--workspace", workspace)
    guarded.sh("mkdir -p made/hooks; echo x > made/hooks/post-checkout; mkdir -p empty").ok()
    with guarded.rpc() as rpc:
        for method, params in (("files.copy", {"recursive": True}), ("files.move", {})):
            error = rpc.refused(method, **{"from": "made", "to": ".git", **params})
            assert error.errno == "EROFS" and ".git/hooks" in str(error) and "protects it" in str(error), (method, error)
        assert not (workspace / ".git").exists()
        rpc.call("files.move", **{"from": "empty", "to": ".git"})
        rpc.call("files.mkdir", path=".git", make_parents=True)
        assert rpc.call("exec", argv=["true"])["set_aside"] == []
    shutil.rmtree(workspace / ".git")
    refused = guarded.cp("-r", "w:made", place / "made").ok() and guarded.cp("-r", place / "made", "w:.git")
    assert "protects it" in refused.err and not (workspace / ".git").exists()


def test_dots_are_no_text_of_a_protected_path(guarded: Session, workspace: Path) -> None:
    guarded.sh("mkdir -p /tmp/far/near; ln -s /tmp/far/near link").ok()
    with guarded.rpc() as rpc:
        rpc.call("files.write", path="link/../.git/hooks/new", content="x", make_parents=True)
    assert guarded.out("cat /tmp/far/.git/hooks/new") == "x" and not (workspace / ".git/hooks").exists()


def test_files_made_by_python_are_set_aside(guarded: Session, workspace: Path) -> None:
    with guarded.rpc() as rpc:
        ran = rpc("python.run", code="open('.git/commondir', 'w').write('../x')")
        assert ran["error"] is None, ran
        until((workspace / ".git" / "commondir.holt-untrusted").exists, "it is set aside")
        rows = [row for row in rpc("audit.list")["rows"] if row["kind"] == "guard"]
    assert [row["detail"]["set_aside"] for row in rows] == [".git/commondir.holt-untrusted"]


@pytest.mark.root_host
def test_files_that_cannot_be_set_aside_are_reported_and_audited(guarded: Session, workspace: Path) -> None:
    stuck = workspace / ".git" / "commondir"
    with guarded.start("bash", "-c", "echo ../x >.git/commondir; while [ ! -e go ]; do sleep 0.01; done") as running:
        until(stuck.exists, "it is there")
        subprocess.run(["mount", "--bind", stuck, stuck], check=True)
        (workspace / "go").touch()
        first = running.wait()
    try:
        told = [first.ok().err, guarded.exec("true").ok().err]
    finally:
        subprocess.run(["umount", stuck], check=True)
    assert all("was left there: " in text and ".git/commondir" in text for text in told), told
    (row,) = [row for row in guarded.audit() if "failed" in row["detail"]]
    assert row["kind"] == "guard" and ".git/commondir" in row["detail"]

    assert "it is now .git/commondir.holt-untrusted\n" in guarded.exec("true").ok().err
    assert guarded.exec("true").ok().err == ""


PLANT = "echo 1 >.holt.json; echo planted; sleep 1000"


def test_stop_tells_what_it_has_set_aside(guarded: Session, workspace: Path) -> None:
    with guarded.start("bash", "-c", PLANT) as running:
        assert running.readline() == "planted"
        result = guarded("stop").ok()
    assert ".holt.json.holt-untrusted" in result.err


def test_the_answer_to_stop_has_what_was_set_aside(guarded: Session, workspace: Path) -> None:
    with guarded.start("bash", "-c", PLANT) as running:
        assert running.readline() == "planted"
        with guarded.rpc() as rpc:
            answer = rpc.result(rpc.send("session.stop"))
    assert answer == {"set_aside": [".holt.json.holt-untrusted"], "set_aside_omitted": 0}


def test_stop_fails_after_a_keeper_that_was_killed_before_its_last_look(guarded: Session, workspace: Path) -> None:
    with guarded.start("bash", "-c", PLANT) as running:
        assert running.readline() == "planted"
        guarded.kill_keeper()
    (workspace / ".holt.json").unlink()
    result = guarded("stop")
    assert result.code == 125 and "protected paths" in result.err
    # Only the next command reports it. A keeper that ends normally leaves no check due.
    assert "protected paths" in guarded.exec("true").err
    assert "protected paths" not in guarded.exec("true").err
    guarded("stop").ok()
    guarded("stop").ok()
    assert not (guarded.directory / "sweep.due").exists()


@pytest.fixture
def replaced(guarded: Session, workspace: Path, identity: Identity) -> Path:
    """Like git, the host has renamed a new file over the config of a busy session. Nobody waits for the command."""
    aside = workspace / ".git/config.holt-untrusted"
    guarded.detach("exec sleep 1000")
    identity.run(["bash", "-c", "echo '[user]' > new; mv new .git/config"], cwd=workspace).check_returncode()
    until(aside.exists, "it is set aside")
    return aside


def test_a_file_of_the_host_is_told_until_it_is_moved_back(
    guarded: Session, replaced: Path, workspace: Path, identity: Identity
) -> None:
    config = workspace / ".git/config"
    until(config.exists, "the earlier config is back")
    assert (config.read_text(), replaced.read_text()) == ("[core]\n", "[user]\n")
    back = f"  mv -T {replaced} {config}\n"

    assert back in guarded.exec("true").ok().err
    assert json.loads(guarded.exec("true", flags=("--json",)).err)["still_aside"] == [".git/config.holt-untrusted"]
    assert back in guarded("python", "-c", "1").ok().err
    guarded.stop()
    told = guarded.exec("true").ok().err
    assert "the host replaced a protected file" in told and back in told and "the command" not in told
    assert "  So holt killed everything that ran in the session; see holt history w.\n" in told
    assert "killed" in guarded("history").ok().out
    guarded.stop()
    identity.run(["bash", "-c", back], cwd="/").check_returncode()
    assert guarded.exec("true").ok().err == ""
    assert "still_aside" not in json.loads(guarded.exec("true", flags=("--json",)).err)
    assert config.read_text() == "[user]\n"


def test_a_removed_file_of_the_host_is_told_no_more(guarded: Session, replaced: Path) -> None:
    assert replaced.name in guarded.exec("true").ok().err
    replaced.unlink()
    assert guarded.exec("true").ok().err == ""


def test_the_next_change_of_the_host_has_the_earlier_config(
    guarded: Session, replaced: Path, workspace: Path, identity: Identity
) -> None:
    """Without the earlier config, git would make one with only its own change."""
    until((workspace / ".git/config").exists, "the earlier config is back")
    until(lambda: guarded.show()["state"] == "at rest", "the session is at rest")
    identity.run(["git", "config", "--file", ".git/config", "a.b", "c"], cwd=workspace).check_returncode()
    assert replaced.name in guarded.exec("true").ok().err
    assert (workspace / ".git/config").read_text() == "[core]\n[a]\n\tb = c\n"


def test_the_next_result_says_why_background_commands_are_gone(
    sessions: Sessions, workspace: Path, identity: Identity
) -> None:
    """The host has saved a hidden file. Nobody waited for the command that holt killed then."""
    (workspace / ".env").write_text("old")
    session = sessions.create("w", "--workspace", str(workspace), "--hide", ".env")

    def stop() -> None:
        session.detach("exec sleep 1000")
        identity.run(["bash", "-c", "echo new > new; mv new .env"], cwd=workspace).check_returncode()
        until(lambda: session.show()["state"] == "at rest", "the session is at rest")

    stop()
    told = session.exec("true").ok().err
    assert told.startswith("holt: /workspace/.env was replaced or created on the host, or created by a command inside; the policy protects or hides")
    assert "  So holt killed everything that ran in the session before this command." in told
    assert session.exec("true").ok().err == ""
    stop()
    assert json.loads(session.exec("true", flags=("--json",)).err)["stopped_for"] == "/workspace/.env"
    assert "stopped_for" not in json.loads(session.exec("true", flags=("--json",)).err)
    stop()
    assert "holt killed everything" in session("python", "-c", "1").ok().err
    assert "holt killed everything" not in session("python", "-c", "1").ok().err
    session("python", "--restart").ok()


def test_a_reason_that_was_told_is_not_told_again(
    sessions: Sessions, workspace: Path, identity: Identity
) -> None:
    (workspace / ".env").write_text("old")
    session = sessions.create("w", "--workspace", str(workspace), "--hide", ".env")
    killed = session.start("sh", "-c", "echo > up; exec sleep 1000")
    until((workspace / "up").exists, "the command runs")
    identity.run(["bash", "-c", "echo new > new; mv new .env"], cwd=workspace).check_returncode()
    assert "stopped the session because /workspace/.env was replaced" in killed.wait().err
    assert session.exec("true").ok().err == ""


def test_several_versions_of_one_file_are_merged(
    guarded: Session, replaced: Path, workspace: Path, identity: Identity
) -> None:
    """Pasting one mv for each version would lose the changes of all except the last."""
    config, second = workspace / ".git/config", Path(f"{replaced}.2")
    guarded.detach("exec sleep 1000")
    identity.run(["bash", "-c", "echo '[branch]' > new; mv new .git/config"], cwd=workspace).check_returncode()
    until(second.exists, "it is set aside, too")
    told = guarded.exec("true").ok().err
    back = f"  mv -T {replaced} {config}\n"

    assert told.index("holt stop w.\n") < told.index(f"  diff {config} {replaced}\n  diff {config} {second}\n"), told
    assert told.count("mv -T") == 1 and told.index("Merge them into this one before you move it:\n" + back) > 0, told
    replaced.unlink()
    told = guarded.exec("true").ok().err
    assert "several versions" in told and f"  mv -T {second} {config}\n" in told, told


def test_a_file_that_the_command_has_made_is_told_once(guarded: Session) -> None:
    assert "set aside a new entry" in guarded.sh(MAKES).ok().err
    assert guarded.exec("true").ok().err == ""


def test_a_run_restores_the_earlier_file(holt: Holt, put: Make, workspace: Path, identity: Identity) -> None:
    config = put(".git/config", "[core]\n")
    put(".git/HEAD", "ref: refs/heads/main\n")
    with holt.start(["run", "--", "bash", "-c", "touch ready; exec sleep 1000"]) as running:
        until((workspace / "ready").exists, "it runs")
        identity.run(["bash", "-c", "echo '[user]' > new; mv new .git/config"], cwd=workspace).check_returncode()
        result = running.wait()
    assert (result.code, config.read_text()) == (137, "[core]\n"), str(result)
    assert f"  diff {config} {config}.holt-untrusted\n  mv -T {config}.holt-untrusted {config}\n" in result.err


def test_the_config_is_there_at_every_moment(guarded: Session, workspace: Path, identity: Identity) -> None:
    """git remote add writes it twice. Without a config, the second time would make one with a part of the remote."""
    config, aside = workspace / ".git/config", workspace / ".git/config.holt-untrusted"
    guarded.detach("exec sleep 1000")
    identity.run(["bash", "-c", "echo '[user]' > new; mv new .git/config"], cwd=workspace).check_returncode()
    seen = set()
    while not aside.exists() or "[core]\n" not in seen:
        seen.add(config.read_text())
    assert seen <= {"[user]\n", "[core]\n"}
