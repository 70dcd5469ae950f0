# SPDX-License-Identifier: Apache-2.0
"""Protection lasts as long as the sandbox: if the host replaces a protected or hidden file, the sandbox is stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Sessions, until

pytestmark = pytest.mark.identities("user", "root")

# A person's action on the host, and the path inside the workspace that it replaces.
REPLACED = {
    "sed -i": ("sed -i s/a/b/ .env", ".env"),
    "sed with a backup": ("sed -i.bak s/a/b/ .env", ".env"),
    "removed": ("rm .env", ".env"),
    "moved away": ("mv .env other", ".env"),
    "hidden below": ("cp keys/key k; mv k keys/key", "keys/key"),
    "directory above": ("mv keys old; cp -r old keys", "keys"),
    "git config": ("cp .git/config c; mv c .git/config", ".git/config"),
    "repository": ("mv .git .gone; cp -r .gone .git", ".git"),
}
HIDES = ("--hide", ".env", "--hide", "keys/key")
# The command looks for the secret all the time.
LOOK = "echo ready; touch ready; while :; do cat .env keys/key; sleep 0.01; done"


@pytest.fixture
def secret(put: Callable[..., Path], workspace: Path) -> Path:
    put(".git/HEAD", "ref: refs/heads/main\n")
    put(".git/config", "[core]\n")
    put(".env", "secret a\n")
    put("keys/key", "secret a\n")
    return workspace


@pytest.mark.parametrize("how", REPLACED)
def test_a_run_is_stopped(how: str, holt: Holt, secret: Path, identity: Identity) -> None:
    script, path = REPLACED[how]
    with holt.start(["run", *HIDES, "--", "bash", "-c", LOOK]) as running:
        assert running.readline() == "ready"
        identity.run(["bash", "-c", script], cwd=secret).check_returncode()
        result = running.wait(timeout=20)

    assert (result.cause, result.code) == ("killed", 137), str(result)
    assert result.report and result.report["replaced"].endswith("/" + path)
    assert f"{path} was replaced or created" in result.err
    assert path != ".git/config" or "a command could have changed it" in result.err, str(result)


@pytest.mark.parametrize("how", ("sed with a backup", "git config"))
def test_a_session_is_stopped(how: str, sessions: Sessions, secret: Path, identity: Identity) -> None:
    script, path = REPLACED[how]
    session = sessions.create("w", "--workspace", secret, *HIDES)
    with session.start("bash", "-c", LOOK) as running:
        until(lambda: (secret / "ready").exists(), "the command runs")
        identity.run(["bash", "-c", script], cwd=secret).check_returncode()
        result = running.wait(timeout=20)

    assert result.code == 137, str(result)
    assert f"stopped the session because {path_inside(path)} was replaced or created" in result.err, str(result)
    rows = [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "guard"]
    assert [row["replaced"].endswith("/" + path) for row in rows if "replaced" in row] == [True], str(rows)
    assert session.sh("cat .env keys/key 2>&1").out.count("secret") == 0


def path_inside(path: str) -> str:
    return f"/workspace/{path}"


@pytest.mark.parametrize("lasting", (False, True))
def test_the_message_says_that_a_replaced_file_may_be_the_caller_s(
    lasting: bool, holt: Holt, sessions: Sessions, secret: Path, identity: Identity
) -> None:
    session = sessions.create("w", "--workspace", secret)
    with session.start("bash", "-c", LOOK) if lasting else holt.start(["run", "--", "bash", "-c", LOOK]) as running:
        until(lambda: (secret / "ready").exists(), "the command runs", 10)
        identity.run(["bash", "-c", REPLACED["git config"][0]], cwd=secret).check_returncode()
        result = running.wait(timeout=20)

    aside, config = secret / ".git/config.holt-untrusted", secret / ".git/config"
    assert "the new file at a protected path; it is now .git/config.holt-untrusted" in result.err, str(result)
    assert "a new entry" not in result.err and f"  mv -T {aside} {config}\n" in result.err


@pytest.mark.root_host
@pytest.mark.identities("root")
def test_a_new_file_of_another_owner_is_told(holt: Holt, secret: Path) -> None:
    """The id map of the workspace has one owner, so the kernel renames no file of another owner there."""
    for path in (secret, *secret.rglob("*")):
        os.chown(path, 1000, 1000)
    with holt.start(["run", "--", "bash", "-c", LOOK]) as running:
        until(lambda: (secret / "ready").exists(), "the command runs")
        shutil.copyfile(secret / ".git/config", secret / "c")
        os.chown(secret / "c", 0, 0)
        (secret / "c").rename(secret / ".git/config")
        result = running.wait(timeout=20)

    assert "cannot set aside .git/config" in result.err and "it has another owner than the workspace" in result.err
    assert "chown --reference=DIRECTORY FILE" in result.err and "the command has made" not in result.err


def test_the_result_of_an_exec_names_the_path(sessions: Sessions, secret: Path, identity: Identity) -> None:
    """The report, and the reply to another waiting client, contain the output up to that point."""
    session = sessions.create("w", "--workspace", secret, *HIDES)
    script = "echo here; touch ready; sleep 60"
    with session.start("bash", "-c", script, flags=("--json", "--output", "1KiB")) as running:
        until(lambda: (secret / "ready").exists(), "the command runs")
        client = session.rpc()
        wait = client.send("process.wait", id="p1")
        client.call("session.show")
        identity.run(["bash", "-c", REPLACED["git config"][0]], cwd=secret).check_returncode()
        answer = client.result(wait)
        result = running.wait(timeout=20)

    report = json.loads(result.err)
    assert (report["cause"], report["exit_code"], report["signal"]) == ("killed", 137, "SIGKILL"), str(result)
    assert report["replaced"] == path_inside(".git/config")
    assert "here" in result.out
    assert (answer["cause"], answer["replaced"]) == ("killed", path_inside(".git/config"))
    assert json.loads(session("exec", "--json", "true").ok().err)["replaced"] is None


def test_the_result_of_a_run_of_python_names_the_path(sessions: Sessions, secret: Path, identity: Identity) -> None:
    session = sessions.create("w", "--workspace", secret, *HIDES)
    code = "import time; open('ready', 'w').close(); time.sleep(60)"
    with sessions.start(["python", "w", "--json", "-c", code]) as running:
        until(lambda: (secret / "ready").exists(), "the code runs")
        identity.run(["bash", "-c", REPLACED["git config"][0]], cwd=secret).check_returncode()
        result = running.wait(timeout=20)

    answer = json.loads(result.out)
    assert (answer["cause"], answer["state_kept"]) == ("killed", False), str(result)
    assert answer["replaced"] == path_inside(".git/config")


RENAME = """
import os
os.close(os.open('a', os.O_CREAT, 0o600))
def rename(times):
    for _ in range(times): os.rename('a', 'b'); os.rename('b', 'a')
"""
MANY = 20000


def wakes(pid: int) -> int:
    """How often a process has waited."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("voluntary_ctxt_switches:")[1].split()[0])


def test_a_command_that_renames_all_the_time_does_not_keep_holt_busy(holt: Holt, secret: Path) -> None:
    script = f"{RENAME}\nprint('ready', flush=True); input(); rename({MANY}); print('done', flush=True); input()"
    with holt.start(["run", *HIDES, "--", "/usr/bin/python3", "-c", script], stdin=-1) as running:
        assert running.readline() == "ready"
        before = wakes(running.pid)
        running.send("\n")
        assert running.readline() == "done"
        after = wakes(running.pid)
        running.wait(b"\n")

    assert after - before < MANY // 10


def test_renames_do_not_keep_the_keeper_busy(sessions: Sessions, secret: Path) -> None:
    session = sessions.create("w", "--workspace", secret, *HIDES)
    session.out("true")
    keeper = session.keeper()
    before = wakes(keeper)
    session.exec("/usr/bin/python3", "-c", f"{RENAME}\nrename({MANY})").ok()

    assert wakes(keeper) - before < MANY // 10


def test_a_replacement_is_seen_among_many_changes(holt: Holt, secret: Path, identity: Identity) -> None:
    script = f"{RENAME}\nprint('ready', flush=True)\nwhile True: rename(1000)"
    with holt.start(["run", *HIDES, "--", "/usr/bin/python3", "-c", script]) as running:
        assert running.readline() == "ready"
        identity.run(["bash", "-c", REPLACED["sed -i"][0]], cwd=secret).check_returncode()
        result = running.wait(timeout=20)

    assert result.report and result.report["replaced"].endswith("/.env"), str(result)


# Symlinks in the workspace, and a person's replacement of their targets.
LINKED = {
    "file": ("ln -s real .env2", ".env2", "real"),
    "absolute": ("ln -s $PWD/real .env2", ".env2", "real"),
    "chain": ("ln -s real a; ln -s ./a b; ln -s keys/../b .env2", ".env2", "real"),
    "directory": ("mkdir -p deep/d; ln -s deep/d k; echo secret >k/key2", "k/key2", "deep/d/key2"),
    "directory above": ("mkdir -p deep/d; ln -s deep/d k; echo secret >k/key2", "k/key2", "deep"),
    "the link": ("ln -s real .env2; echo secret >other", ".env2", ".env2"),
}


@pytest.mark.parametrize("how", LINKED)
def test_a_file_that_is_hidden_through_a_link_is_watched(
    how: str, holt: Holt, secret: Path, identity: Identity
) -> None:
    links, hidden, path = LINKED[how]
    identity.run(["bash", "-ec", f"echo secret >real; {links}"], cwd=secret).check_returncode()
    with holt.start(["run", "--hide", hidden, "--", "bash", "-c", "echo ready; while :; do sleep 0.01; done"]) as running:
        assert running.readline() == "ready"
        script = f"cp -r {path} c; mv {path} gone; mv c {path}" if path != ".env2" else "ln -sfn other .env2"
        identity.run(["bash", "-ec", script], cwd=secret).check_returncode()
        result = running.wait(timeout=20)

    assert result.cause == "killed", str(result)
    assert result.report and result.report["replaced"].endswith("/" + path)


@pytest.mark.root_host
def test_a_hidden_file_of_the_system_tree_is_watched(holt: Holt) -> None:
    place = Path(f"/usr/share/holt-test-{os.getpid()}")
    place.mkdir()
    try:
        (place / "key").write_text("secret\n")
        script = f"echo ready; while :; do cat {place}/key; sleep 0.01; done"
        with holt.start(["run", "--hide", place / "key", "--", "bash", "-c", script]) as running:
            assert running.readline() == "ready"
            (place / "new").write_text("secret\n")
            (place / "new").rename(place / "key")
            result = running.wait(timeout=20)
    finally:
        shutil.rmtree(place)

    assert result.report and result.report["replaced"] == str(place / "key"), str(result)


def test_hiding_a_directory_and_a_file_in_it_works(holt: Holt, secret: Path) -> None:
    with holt.start(["run", "--hide", "keys", "--hide", "keys/key", "--", "bash", "-c", "echo ready; touch x; mv x y"]) as running:
        assert running.wait().cause == "exited"


# While no command runs: the host's action, and the state of the workspace afterwards.
QUIET = {
    "git config": ("echo '#new' >.git/c; mv .git/c .git/config", "grep -q new .git/config"),
    "twice": ("for i in 1 2; do echo \"#$i\" >.git/c; mv .git/c .git/config; done", "grep -q 2 .git/config"),
    "sed -i": ("sed -i s/a/b/ .env", "grep -q b .env"),
    "repository": ("mv .git .gone; cp -r .gone .git", "test -f .git/config"),
    "new file": ("echo /x >.git/commondir.new; mv .git/commondir.new .git/commondir", "test -f .git/commondir"),
    "removed": ("rm .git/config", "test ! -e .git/config"),
}


@pytest.mark.parametrize("how", QUIET)
def test_a_session_in_which_nothing_runs_keeps_the_host_s_file(
    how: str, sessions: Sessions, secret: Path, identity: Identity
) -> None:
    """Nothing could write it while it did not exist, so it stays, and the next command finds it protected."""
    session = sessions.create("w", "--workspace", secret, *HIDES)
    session.out("echo kept >/tmp/x")
    keeper = session.keeper()
    script, then = QUIET[how]
    rest(keeper)
    identity.run(["bash", "-c", script], cwd=secret).check_returncode()
    until(lambda: state(keeper) == "Z", "the keeper has ended", timeout=5)

    assert session.out("cat /tmp/x") == "kept\n"
    identity.run(["bash", "-c", then], cwd=secret).check_returncode()
    assert not list(secret.rglob("*.holt-untrusted*"))
    assert session.sh("cat .env").out == ""
    for name in ("config", "commondir"):
        assert session.sh(f"[ -e .git/{name} ] && echo x >>.git/{name}").code != 0
    rows = [json.loads(row["detail"]) for row in session.audit() if row["kind"] == "guard"]
    assert ["renewed" in row for row in rows] == [True], str(rows)


def rest(keeper: int) -> None:
    """Waits until the keeper has looked for changes after the last call, and is idle."""
    for _ in range(3):
        until(lambda: state(keeper) == "S", "the keeper rests", timeout=5)
        time.sleep(0.02)


def state(pid: int) -> str:
    """The state of the process; Z if it has ended, even if its parent has reaped it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "Z"


def test_other_changes_stop_nothing(holt: Holt, secret: Path, identity: Identity) -> None:
    """Changes by the command or the host in the same directories, or a write without a new file."""
    script = "echo ready; for i in $(seq 300); do touch x keys/x .git/x; mv x y; rm y keys/x .git/x; done; read -r _"
    with holt.start(["run", *HIDES, "--", "bash", "-c", script], stdin=-1) as running:
        assert running.readline() == "ready"
        identity.run(["bash", "-c", "touch z .git/z; echo b >>.env; echo >>.git/config; rm z"], cwd=secret)
        result = running.wait(b"\n")

    assert (result.cause, result.code) == ("exited", 0), str(result)
    assert result.report and result.report["replaced"] is None


# A mount point in the workspace: its option, a person's action, and the path that is replaced.
AT = ("--workspace", ".:/workspace")
PLACES = {
    "file": (("--ro", "./in"), "sed -i s/a/b/ in", "in"),
    "directory": (("--ro", "./tools"), "cp -r tools t.new; mv tools t.old; mv t.new tools", "tools"),
    "directory above": (("--ro", "./tools/a"), "cp -r tools t.new; mv tools t.old; mv t.new tools", "tools"),
    "another place": ((*AT, "--ro", "./tools/a:/workspace/in"), "sed -i s/a/b/ in", "in"),
    "policy": (("--ro", "./in", "--policy", "in.json"), "sed -i s/a/b/ in", "in"),
    "in memory": ((*AT, "--tmpfs", "/workspace/tools"), "cp -r tools t.new; mv tools t.old; mv t.new tools", "tools"),
    "writable": (("--rw", "./tools"), "cp -r tools t.new; mv tools t.old; mv t.new tools", "tools"),
}
WRITE = "echo ready; touch ready; while :; do echo evil >>in; echo evil >>tools/a; sleep 0.01; done 2>/dev/null"


@pytest.fixture
def places(put: Callable[..., Path], workspace: Path) -> Path:
    put("in", "a\n")
    put("tools/a", "a\n")
    put("in.json", '{"holt": 1}')
    return workspace


@pytest.mark.parametrize("how", PLACES)
def test_a_run_is_stopped_when_a_mount_point_is_replaced(
    how: str, holt: Holt, places: Path, identity: Identity
) -> None:
    mounts, script, path = PLACES[how]
    with holt.start(["run", *mounts, "--", "bash", "-c", WRITE]) as running:
        assert running.readline() == "ready"
        identity.run(["bash", "-c", script], cwd=places).check_returncode()
        result = running.wait(timeout=20)

    assert (result.cause, result.code) == ("killed", 137), str(result)
    assert result.report and result.report["replaced"].endswith("/" + path)


@pytest.mark.parametrize("mount", ("./in:/workspace/in", "./tools:/workspace/tools"))
def test_a_session_is_stopped_when_a_mount_point_is_replaced(
    mount: str, sessions: Sessions, places: Path, identity: Identity
) -> None:
    session = sessions.create("w", "--workspace", places, "--ro", mount)
    name = mount.split("/")[-1]
    with session.start("bash", "-c", WRITE) as running:
        until(lambda: (places / "ready").exists(), "the command runs")
        identity.run(["bash", "-c", f"cp -r {name} new; mv {name} old; mv new {name}"], cwd=places).check_returncode()
        result = running.wait(timeout=20)

    assert result.code == 137, str(result)
    assert f"because {path_inside(name)} was replaced or created" in result.err, str(result)


# unlink(2) and link(2) on the host: another name restores the same file, but the mount is gone.
AGAIN = "import os, sys; os.unlink(sys.argv[1]); os.link(sys.argv[2], sys.argv[1])"
APPEND = "echo ready; touch ready; while :; do echo evil >>.git/config; cat .env; sleep 0.01; done 2>/dev/null"


def link_again(identity: Identity, secret: Path, path: str) -> None:
    identity.run(["ln", path, "../again"], cwd=secret).check_returncode()
    identity.run(["/usr/bin/python3", "-c", AGAIN, path, "../again"], cwd=secret).check_returncode()


def has_nothing_of_the_command(workspace: Path) -> bool:
    """The file need not be set aside: holt may have killed the command after the unlink and before the link."""
    config = workspace / ".git/config"
    return not config.exists() or "evil" not in config.read_text()


@pytest.fixture
def again(secret: Path, identity: Identity) -> Iterator[Path]:
    """The directory above the workspace is writable, for a second name there."""
    identity.own(secret.parent)
    yield secret
    (secret.parent / "again").unlink(missing_ok=True)


@pytest.mark.parametrize("path", (".env", ".git/config"))
def test_the_same_file_by_a_new_name_stops_a_run(path: str, holt: Holt, again: Path, identity: Identity) -> None:
    with holt.start(["run", *HIDES, "--", "bash", "-c", APPEND]) as running:
        assert running.readline() == "ready"
        link_again(identity, again, path)
        result = running.wait(timeout=20)

    assert (result.cause, result.code) == ("killed", 137), str(result)
    assert result.report and result.report["replaced"].endswith("/" + path)
    assert has_nothing_of_the_command(again), str(result)


@pytest.mark.parametrize("path", (".env", ".git/config"))
def test_the_same_file_by_a_new_name_stops_a_session(
    path: str, sessions: Sessions, again: Path, identity: Identity
) -> None:
    session = sessions.create("w", "--workspace", again, *HIDES)
    with session.start("bash", "-c", APPEND) as running:
        until(lambda: (again / "ready").exists(), "the command runs")
        link_again(identity, again, path)
        result = running.wait(timeout=20)

    assert result.code == 137, str(result)
    assert f"because {path_inside(path)} was replaced or created" in result.err, str(result)
    assert has_nothing_of_the_command(again), str(result)


@pytest.mark.parametrize("session", (False, True))
def test_the_same_file_is_set_aside_if_the_command_ends_first(
    session: bool, holt: Holt, sessions: Sessions, again: Path, identity: Identity
) -> None:
    """holt can look only after the command has written the file and ended."""
    script = "touch ready; until echo evil >>.git/config; do sleep 0.01; done 2>/dev/null; touch done"
    started = sessions.create("w", "--workspace", again) if session else None
    with (
        started.start("bash", "-c", script) if started else holt.start(["run", "--", "bash", "-c", script])
    ) as running:
        until(lambda: (again / "ready").exists(), "the command runs")
        pid = started.keeper() if started else running.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            link_again(identity, again, ".git/config")
            until(lambda: (again / "done").exists(), "the command has written")
            time.sleep(0.1)
        finally:
            os.kill(pid, signal.SIGCONT)
        running.wait(timeout=20)
    if started:
        started("stop").ok()

    assert (again / ".git/config.holt-untrusted").exists()
    assert "evil" not in (again / ".git/config").read_text()


def test_paths_in_a_hidden_directory_need_no_mount(holt: Holt, secret: Path, identity: Identity) -> None:
    """Nothing below the hidden directory can be seen inside. The directory stays protected, and its names are watched."""
    identity.run(["bash", "-ec", "mkdir -p deep/d; ln -s deep k; echo s >deep/d/key"], cwd=secret).check_returncode()
    hides = [word for path in (".git", "keys", "keys/key", "k", "deep/d/key") for word in ("--hide", path)]
    script = "echo ready; for i in $(seq 20); do touch x; mv x y; done; read -r _"
    with holt.start(["run", *hides, "--", "bash", "-c", script], stdin=-1) as running:
        assert running.readline() == "ready"
        result = running.wait(b"\n")

    assert (result.cause, result.set_aside) == ("exited", []), str(result)
    assert (secret / ".git/config").exists()


# A hidden path that does not exist at the start: the option, the file that appears on the host, and the path.
LATER = {
    "file": ("later", "echo secret >new; mv new later", "later"),
    "written": ("later", "echo secret >later", "later"),
    "in a new directory": ("new/deep/key", "mkdir -p new/deep; sleep 0.1; echo secret >new/deep/key", "new/deep/key"),
    "by a new link": ("new/key", "mkdir d; echo secret >d/key; ln -s d new", "new/key"),
    "directory": ("new", "mkdir new; echo secret >new/key", "new"),
    "behind a link": ("dangling", "mkdir d; echo secret >d/key", "dangling"),
}


@pytest.fixture
def dangling(secret: Path, identity: Identity) -> Path:
    identity.run(["ln", "-s", "./d//key", "dangling"], cwd=secret).check_returncode()
    return secret


@pytest.mark.parametrize("how", LATER)
def test_a_hidden_path_that_appears_stops_a_run(how: str, holt: Holt, dangling: Path, identity: Identity) -> None:
    hide, script, path = LATER[how]
    with holt.start(["run", "--hide", hide, "--", "bash", "-c", LOOK]) as running:
        assert running.readline() == "ready"
        identity.run(["bash", "-ec", script], cwd=dangling).check_returncode()
        result = running.wait(timeout=20)

    assert (result.cause, result.code) == ("killed", 137), str(result)
    assert result.report and result.report["replaced"].endswith("/" + path)
    assert "was replaced or created on the host" in result.err


@pytest.mark.parametrize("how", ("written", "in a new directory"))
def test_a_hidden_path_that_appears_stops_a_session(
    how: str, sessions: Sessions, dangling: Path, identity: Identity
) -> None:
    hide, script, path = LATER[how]
    session = sessions.create("w", "--workspace", dangling, "--hide", hide)
    with session.start("bash", "-c", LOOK) as running:
        until(lambda: (dangling / "ready").exists(), "the command runs")
        identity.run(["bash", "-ec", script], cwd=dangling).check_returncode()
        result = running.wait(timeout=20)

    assert result.code == 137, str(result)
    assert f"because {path_inside(path)} was replaced or created" in result.err
    assert "secret" not in session.sh(f"cat {path}").out


def test_a_session_in_which_nothing_runs_hides_a_path_that_appears(
    sessions: Sessions, secret: Path, identity: Identity
) -> None:
    """The sandbox starts again, with the path hidden."""
    session = sessions.create("w", "--workspace", secret, "--hide", "later")
    session.out("echo kept >/tmp/x")
    keeper = session.keeper()
    rest(keeper)
    identity.run(["bash", "-c", "echo secret >later"], cwd=secret).check_returncode()
    until(lambda: state(keeper) == "Z", "the keeper has ended", timeout=5)

    assert "secret" not in session.sh("cat later").out
    assert session.out("cat /tmp/x") == "kept\n"


def test_the_command_may_make_what_lies_beside_a_hidden_path(holt: Holt, secret: Path) -> None:
    """The command makes the directories on the way, files in them, and the same directories again. Only the path itself ends the
    sandbox."""
    script = "for i in 1 2 3; do mkdir -p a/b; touch a/x a/b/x; rm -r a; touch a; rm a; done; mkdir a; sleep 0.2; echo made"
    result = holt(["run", "--hide", "a/b/key", "--", "bash", "-c", script])
    assert (result.cause, result.out) == ("exited", "made\n"), str(result)

    result = holt(["run", "--hide", "a/b/key", "--", "bash", "-c", "mkdir -p a/b; touch a/b/key; sleep 20"])
    assert result.cause == "killed", str(result)
    assert result.report and result.report["replaced"].endswith("/a/b/key")


# A protected or hidden directory stays so, whatever the host does with files in it: the mount is on the directory.
DIRECTORIES = ("--protect", ".git", "--hide", "keys", "--hide", "keys/key")
INSIDE_THEM = {
    "git config": "echo '#new' >.git/c; mv .git/c .git/config",
    "new file": "echo /x >.git/commondir",
    "sed -i": "sed -i s/a/b/ keys/key",
    "hidden anew": "echo secret >keys/new; rm keys/key; mv keys/new keys/key",
}
TRY = "for f in .git/config .git/commondir .git/HEAD keys/key; do echo evil >>$f; cat keys/*; done 2>/dev/null"


@pytest.mark.parametrize("how", INSIDE_THEM)
def test_a_directory_holds_for_a_run(how: str, holt: Holt, secret: Path, identity: Identity) -> None:
    script = f"echo ready; for i in $(seq 20); do {TRY}; sleep 0.01; done; read -r _; {TRY}; exit 0"
    with holt.start(["run", *DIRECTORIES, "--", "bash", "-c", script], stdin=-1) as running:
        assert running.readline() == "ready"
        identity.run(["bash", "-ec", INSIDE_THEM[how]], cwd=secret).check_returncode()
        result = running.wait(b"\n")

    assert (result.cause, result.set_aside) == ("exited", []), str(result)
    untouched(secret, result.out)


@pytest.mark.parametrize("how", INSIDE_THEM)
def test_a_directory_holds_for_a_session(how: str, sessions: Sessions, secret: Path, identity: Identity) -> None:
    session = sessions.create("w", "--workspace", secret, *DIRECTORIES)
    script = f"touch ready; until [ -e go ]; do {TRY}; sleep 0.01; done; {TRY}; exit 0"
    with session.start("bash", "-c", script) as running:
        until(lambda: (secret / "ready").exists(), "the command runs")
        identity.run(["bash", "-ec", f"{INSIDE_THEM[how]}; sleep 0.1; touch go"], cwd=secret).check_returncode()
        result = running.wait(timeout=20)
    session("stop").ok()

    assert result.code == 0, str(result)
    untouched(secret, result.out)


def untouched(secret: Path, out: str) -> None:
    assert "secret" not in out
    assert not list(secret.rglob("*.holt-untrusted*"))
    for path in [*(secret / ".git").iterdir(), secret / "keys/key"]:
        assert not path.is_file() or "evil" not in path.read_text()


def test_a_protected_directory_is_watched_itself(holt: Holt, secret: Path, identity: Identity) -> None:
    """Another directory in its place is not protected, so no file of the command stays there."""
    script = f"echo ready; while :; do {TRY}; sleep 0.01; done"
    with holt.start(["run", *DIRECTORIES, "--", "bash", "-c", script]) as running:
        assert running.readline() == "ready"
        identity.run(["bash", "-ec", "cp -r .git new; mv .git old; mv new .git"], cwd=secret).check_returncode()
        result = running.wait(timeout=20)

    assert result.cause == "killed", str(result)
    assert result.report and result.report["replaced"].endswith("/.git")
    config = secret / ".git/config"
    assert not config.exists() or "evil" not in config.read_text()
