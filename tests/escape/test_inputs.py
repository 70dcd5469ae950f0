# SPDX-License-Identifier: Apache-2.0
"""No process inside can write the files that holt runs or obeys: policy files and holt itself. For tools see
test_tool_commands.py."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.sessions import Sessions, until

USER_AND_ROOT = pytest.mark.identities("user", "root")


# --- policies ---

POLICY = '{"holt": 1, "env": {"set": {"MARK": "good"}}}'
TAMPER = """
for way in 'echo evil > F' 'echo evil >> F' 'rm -f F' 'mv F F.old' 'ln -sf /tmp/x F' 'cp /etc/passwd F' \
    'mv D D.old' 'rm -rf D' 'chmod 777 F'; do
    (eval "$way") 2>/dev/null && echo "$way"
done
cat F
"""


def tamper(path: str) -> list[str]:
    parent = os.path.dirname(path)
    # The only directory above a file at the top is the workspace.
    script = TAMPER.replace("F", path) if parent else TAMPER.replace("'mv D D.old' 'rm -rf D'", "").replace("F", path)
    return ["sh", "-c", script.replace("D", parent or ".")]


@USER_AND_ROOT
@pytest.mark.parametrize("preset", [[], ["--policy", "strict"], ["--protect", "none"]], ids=["plain", "strict", "unprotected"])
@pytest.mark.parametrize("name", ["policy.json", "conf/deep/policy.json"])
def test_a_policy_file_in_the_workspace(name: str, preset: list[str], holt: Holt, program: Callable[..., Path]) -> None:
    path = program(f"workspace/{name}", POLICY)
    for spelled in (f"./{name}", str(path)):
        result = holt(["run", *preset, "--policy", spelled, "--", *tamper(name)])
        assert result.out == POLICY, str(result)
    assert path.read_text() == POLICY
    assert sorted(p.name for p in path.parent.iterdir()) == ["policy.json"]


@USER_AND_ROOT
@pytest.mark.parametrize("name", ["acme.py", "lib/deep/acme.py"])
def test_a_helper_in_the_workspace(name: str, holt: Holt, program: Callable[..., Path]) -> None:
    """A symlink in its place would show the next run another file of the host."""
    path = program(f"workspace/{name}", "A = 1\n")
    for spelled in (f"./{name}", str(path)):
        assert holt(["run", "--helper", spelled, "--", *tamper(name)]).out == "A = 1\n" == path.read_text()
    assert "A = 1\n" == holt(["run", "--helper", name, "--", *tamper("/etc/holt/python/acme.py")]).out


@USER_AND_ROOT
def test_a_helper_in_the_workspace_of_a_session(sessions: Sessions, workspace: Path, program: Callable[..., Path]) -> None:
    path = program("workspace/acme.py", "A = 1\n")
    session = sessions.create("w", "--workspace", workspace, "--helper", path)
    for _ in range(2):
        assert session("exec", "--", *tamper("acme.py")).out == "A = 1\n" == path.read_text()
        session.stop()


def test_a_path_through_a_directory_that_the_command_can_move(holt: Holt, workspace: Path, program: Callable[..., Path]) -> None:
    """Its ".." would lead to another policy.json afterwards. The absolute path leads to the protected one."""
    path = program("workspace/policy.json", POLICY)
    (workspace / "sub").mkdir(mode=0o777)
    below = ["--workspace", str(workspace), "--", "true"]

    result = holt(["run", "--policy", "../policy.json", *below], cwd=workspace / "sub")
    assert f"the command could move {workspace}/sub" in result.refusal()
    assert f"Write the absolute path: {path}" in result.cure
    holt(["run", "--policy", str(path), *below], cwd=workspace / "sub").ok()


@USER_AND_ROOT
def test_a_policy_file_that_another_extends(holt: Holt, program: Callable[..., Path]) -> None:
    program("workspace/conf/policy.json", '{"holt": 1, "extends": "./deep/base.json"}')
    path = program("workspace/conf/deep/base.json", POLICY)

    result = holt(["run", "--policy", "conf/policy.json", "--", *tamper("conf/deep/base.json")])
    assert result.out == POLICY == path.read_text(), str(result)


def test_a_command_may_not_write_a_policy_file_that_another_extends(holt: Holt, program: Callable[..., Path]) -> None:
    base = program("elsewhere/base.json", POLICY)
    path = program("policies/policy.json", f'{{"holt": 1, "extends": "{base}"}}')

    result = holt(["run", "--policy", str(path), "--rw", str(base.parent), "--", "true"])
    assert "holt obeys" in result.refusal() and "base.json" in result.refusal()


@USER_AND_ROOT
@pytest.mark.parametrize("protect", [[], ["--protect", "none"]], ids=["protected", "unprotected"])
def test_the_project_s_own_file(protect: list[str], holt: Holt, program: Callable[..., Path]) -> None:
    path = program("workspace/.holt.json", '{"holt": 1}')
    result = holt(["run", *protect, "--", *tamper(".holt.json")])
    assert result.out == '{"holt": 1}' == path.read_text(), str(result)


@USER_AND_ROOT
def test_a_policy_file_that_no_guard_keeps(holt: Holt, place: Path, workspace: Path, program: Callable[..., Path]) -> None:
    policy = program("shared/policy.json", POLICY)
    link = workspace / "link.json"
    link.symlink_to(program("elsewhere/policy.json", POLICY))
    through = workspace / "through"
    through.symlink_to(place / "elsewhere")
    for flags in (
        ["--rw", str(policy.parent), "--policy", str(policy)],
        ["--rw", str(policy.parent), "--policy", f"{workspace}/../shared/policy.json"],
        ["--policy", "link.json"],
        ["--policy", "./through/policy.json"],
    ):
        result = holt(["run", *flags, "--", "touch", "ran"])
        assert "the command could change it" in result.refusal() and "Move it" in result.cure, str(result)
    hard = workspace / "hard.json"
    os.link(policy, hard)
    result = holt(["run", "--policy", str(policy), "--", "touch", "ran"])
    assert "hard links" in result.refusal()
    assert holt(["run", "--policy", str(hard), "--", "touch", "ran"]).code == 125
    assert not (workspace / "ran").exists()
    hard.unlink()
    holt(["run", "--policy", str(policy), "--", "true"]).ok()
    holt(["run", "--ro", str(policy.parent), "--policy", str(policy), "--", "true"]).ok()


@USER_AND_ROOT
def test_a_policy_file_that_is_stdin(holt: Holt, program: Callable[..., Path]) -> None:
    """The command could write the policy by its path, or by the open file."""
    path = program("workspace/policy.json", POLICY)
    for way in ("/proc/self/fd/0", "/dev/stdin", "policy.json"):
        for name in ("-", "/dev/stdin"):
            with path.open() as stdin:
                holt(["run", "--policy", name, "--", "sh", "-c", f"echo evil > {way}; echo $MARK"], stdin=stdin)
            assert path.read_text() == POLICY, (way, name)


EXCHANGES = {
    "another file": lambda path, other: os.replace(other, path),
    "a link": lambda path, other: (path.unlink(), path.symlink_to(other)),
    "nothing": lambda path, other: path.unlink(),
}


@USER_AND_ROOT
@pytest.mark.parametrize("flags", ([], ["--output", "1KiB"], ["--protect", "none"]), ids=("plain", "counted", "unprotected"))
@pytest.mark.parametrize("stream", ("stdout", "stderr"))
@pytest.mark.parametrize("name", (".holt.json", "policy.json", "link.json", "../elsewhere.json"))
def test_a_policy_file_is_no_output(
    name: str, stream: str, flags: list[str], holt: Holt, program: Callable[..., Path]
) -> None:
    """The command's output would be the next run's policy."""
    before = '{"holt": 1}'
    path = program(f"workspace/{name}" if "link" not in name else "real.json", before)
    if "link" in name:
        (holt.cwd / name).symlink_to(path)
    given = [] if name == ".holt.json" else ["--policy", f"./{name}"]
    with path.open("a") as output:
        result = holt(["run", *given, *flags, "--", "sh", "-c", "echo evil; echo evil >&2"], **{stream: output})
    assert result.code == 125
    told = result.err if stream == "stdout" else path.read_text().removeprefix(before)
    assert f"{stream} goes to the policy file" in told and f"Redirect {stream}" in told
    assert path.read_text() == before + (told if stream == "stderr" else "") and "evil" not in told


@USER_AND_ROOT
def test_a_policy_file_that_can_only_be_read_is_an_output(holt: Holt, program: Callable[..., Path]) -> None:
    """The command gets a copy, as for a protected file."""
    path = program("workspace/policy.json", POLICY)
    with path.open() as output:
        holt(["run", "--policy", "./policy.json", "--", "sh", "-c", "echo x >>/proc/self/fd/1; true"], stdout=output).ok()
    assert path.read_text() == POLICY


@USER_AND_ROOT
@pytest.mark.parametrize("verb", ["run", "create"])
@pytest.mark.parametrize("where", ["workspace", "elsewhere"])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_policy_file_that_is_exchanged_after_it_was_read(
    exchange: str, where: str, verb: str, holt: Holt, sessions: Sessions, program: Callable[..., Path], workspace: Path
) -> None:
    """A command in another sandbox exchanges it, so the next start would obey another file than the one that was read
    and protected. The second policy is a pipe, which makes holt wait in between."""
    path, other = program(f"{where}/policy.json", POLICY), program(f"{where}/other", POLICY.replace("good", "evil"))
    words = ["--policy", str(path), "--policy", "-"]
    argv = ["run", *words, "--", "touch", "ran"] if verb == "run" else ["create", "made", "--workspace", workspace, *words]
    with (holt if verb == "run" else sessions).start(argv, stdin=subprocess.PIPE) as running:
        until(lambda: str(path) in opened(running.process.pid), "it has read the first")
        EXCHANGES[exchange](path, other)
        result = running.wait(b'{"holt": 1}')

    assert result.code == 125 and "this file was replaced" in result.err, str(result)
    assert not (workspace / "ran").exists()


def opened(pid: int) -> set[str]:
    found = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(os.readlink(fd))
    return found


@USER_AND_ROOT
@pytest.mark.parametrize("name", ["policy.json", "conf/deep/policy.json"])
def test_a_session_s_policy_file_in_its_workspace(
    name: str, sessions: Sessions, workspace: Path, program: Callable[..., Path]
) -> None:
    path = program(f"workspace/{name}", POLICY)
    session = sessions.create("made", "--workspace", str(workspace), "--policy", f"./{name}")
    for _ in range(2):
        assert session.exec(*tamper(name)).out == POLICY
        session.stop()
    assert path.read_text() == POLICY
    shared = program("shared/policy.json", POLICY)
    result = sessions(["create", "no", "--rw", str(shared.parent), "--policy", str(shared)])
    assert result.code == 125 and "the command could change it" in result.err, str(result)


# --- holt itself ---


@USER_AND_ROOT
def test_holt_in_the_workspace(holt: Holt, workspace: Path) -> None:
    """Holt works in its own checkout, and the command cannot change it."""
    build = workspace / "build" / "runner"
    build.mkdir(parents=True)
    for program in ("holt", "holt-full"):
        shutil.copy(holt.binary.parent / program, build / program)
        holt.identity.own(build / program)
    for path in (build.parent, build):
        holt.identity.own(path)
    own = Holt(build / "holt", holt.identity, workspace)
    before = (build / "holt").read_bytes(), (build / "holt-full").read_bytes()
    script = "cd build/runner; for p in holt holt-full; do echo x >> $p; rm -f $p; mv $p $p.old; cp /bin/true $p; done; cd; mv build b; true"
    own(["run", "--", "sh", "-c", script])
    assert ((build / "holt").read_bytes(), (build / "holt-full").read_bytes()) == before
    own(["run", "--", "sh", "-c", "echo ok > made && cat made"]).ok()
    data = workspace.parent / "data"
    sessions = Sessions(own, data)
    data.mkdir()
    holt.identity.own(data)
    try:
        sessions.create("own", "--workspace", str(workspace)).sh(script.replace("cd;", "cd /workspace;"))
    finally:
        assert not sessions.clean_up()
    assert ((build / "holt").read_bytes(), (build / "holt-full").read_bytes()) == before


@pytest.fixture
def mounted(place: Path) -> Iterator[Callable[[Path], Path]]:
    """Mounts a directory a second time, which only root can do, and returns the place."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    points: list[Path] = []

    def mount(directory: Path) -> Path:
        point = place / f"mounted{len(points)}"
        point.mkdir()
        subprocess.run(["mount", "--bind", directory, point], check=True)
        points.append(point)
        return point

    yield mount
    for point in reversed(points):
        subprocess.run(["umount", point], check=True)


PROGRAMS = ("holt", "holt-full", "holt-egress", "holt-gateway")


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("which", ["holt by another mount", "the workspace by another mount", "a mount below it"])
def test_holt_by_another_mount(
    which: str, holt: Holt, workspace: Path, place: Path, mounted: Callable[[Path], Path]
) -> None:
    """A second mount shows holt at a path that is not below the first one."""
    outside = place / "outside"
    build = (outside if which == "a mount below it" else workspace) / "build"
    build.mkdir(parents=True)
    for program in PROGRAMS:
        shutil.copy(holt.binary.parent / program, build / program)
    for path in (*build.iterdir(), build, build.parent):
        holt.identity.own(path)
    before = [(build / program).read_bytes() for program in PROGRAMS]
    inside = "build"
    if which == "holt by another mount":
        own = Holt(mounted(build) / "holt", holt.identity, workspace)
    elif which == "the workspace by another mount":
        own = Holt(build / "holt", holt.identity, mounted(workspace))
    else:
        inside = "below"
        (workspace / inside).mkdir()
        holt.identity.own(workspace / inside)
        subprocess.run(["mount", "--bind", build, workspace / inside], check=True)
        own = Holt(build / "holt", holt.identity, workspace)
    try:
        programs = " ".join(PROGRAMS)
        script = f"cd {inside}; for p in {programs}; do echo x >>$p; rm -f $p; mv $p $p.old; cp /bin/true $p; done; true"
        own(["run", "--", "sh", "-c", script])
        assert [(build / program).read_bytes() for program in PROGRAMS] == before
        assert own(["run", "--", "echo", "ok"]).out == "ok\n"
    finally:
        if inside == "below":
            subprocess.run(["umount", workspace / inside], check=True)


def installed(holt: Holt, prefix: Path, workspace: Path) -> Holt:
    """holt as meson install leaves it, but with the workspace above its prefix."""
    light = prefix / "bin" / "holt"
    for path in (light, *(prefix / "libexec" / "holt" / name for name in ("holt-full", "holt-egress", "holt-gateway"))):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(holt.binary.parent / path.name, path)
    for path in (prefix, *prefix.rglob("*")):
        holt.identity.own(path)
    return Holt(light, holt.identity, workspace)


# Places that holt searches for holt-full before the right one, the programs, and their directories.
PLANT = """
for p in bin/holt-full bin/holt-egress bin/holt-gateway bin/holt libexec/holt/holt-full libexec/holt/holt-egress \
        libexec/holt/holt-gateway; do
    printf '#!/bin/sh\\necho planted\\n' > $p; chmod +x $p; ln -s /bin/true $p; rm -f $p; mv $p $p.old; cp /bin/true $p
done
for d in bin libexec libexec/holt; do mv $d $d.old; done
"""


@USER_AND_ROOT
@pytest.mark.parametrize("flags", [[], ["--policy", "./p.json"], ["--protect", "none"]])
@pytest.mark.parametrize("prefix", ["usr", "."])
def test_holt_below_a_prefix_in_the_workspace(
    prefix: str, flags: list[str], holt: Holt, workspace: Path, program: Callable[..., Path]
) -> None:
    """holt executes the first holt-full that it finds: the command cannot put one there."""
    program("workspace/p.json", POLICY)
    top = workspace / prefix
    own = installed(holt, top, workspace)
    before = {path: path.is_file() and path.read_bytes() for path in top.rglob("*")}
    own(["run", *flags, "--", "sh", "-c", f"cd {prefix}; {PLANT} cd; echo ok > made; true"]).ok()
    after = {path: path.is_file() and path.read_bytes() for path in top.rglob("*")}
    assert {path: text for path, text in after.items() if path.name != "made"} == before
    assert own(["run", "--policy", "./p.json", "--", "echo", "still"]).out == "still\n"


def test_a_holt_that_would_take_its_other_program_from_the_command(holt: Holt, workspace: Path) -> None:
    """No directory can be made read-only here: it would be the workspace itself."""
    shutil.copy(holt.binary.parent / "holt", workspace / "holt")
    holt.identity.own(workspace / "holt")
    result = Holt(workspace / "holt", holt.identity, workspace)(["run", "--", "touch", "ran"])
    assert "would execute" in result.refusal() and "holt-full" in result.err, str(result)
    assert not (workspace / "ran").exists()
