# SPDX-License-Identifier: Apache-2.0
"""Two runs at once in one repository, or a run and its caller: neither weakens the protection of the other."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lib.repository import Repository, config, evil, make, make_sparse, with_submodule
from lib.sandbox import Holt, Result

AWAIT = "while [ ! -e {} ]; do sleep 0.05; done;"


def test_two_runs_do_not_give_each_other_a_repository(holt: Holt, repository: Repository) -> None:
    """The first run adds a repository. The second finds it guarded at its start, and unguarded when the first has
    ended."""
    first = f"{make()}; git add sub; echo added; {AWAIT.format('second')}"
    second = f"touch second; {AWAIT.format('sub/.git.holt-untrusted')} {make()}; {evil(repository)}"
    with holt.start(["run", "--", "bash", "-c", first]) as running:
        assert running.readline() == "added"
        result = holt.sh(second)
        assert running.wait().set_aside == ["sub/.git.holt-untrusted"]

    assert not repository.use(), str(result)
    assert result.set_aside == ["sub/.git.holt-untrusted.2"] or result.cause == "killed"


LEASE = (
    "import fcntl, os, sys, time\nfd = os.open(sys.argv[1], os.O_RDONLY)\n"
    "fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nprint('leased', flush=True)\n"
    "while not os.path.exists('end'): time.sleep(0.05)"
)


@pytest.mark.parametrize("path", (".git/config", ".git/index", ".git/modules/sub/config", "sub/.git"))
def test_a_run_does_not_keep_another_from_what_it_has_to_read(
    path: str, holt: Holt, place: Path, repository: Repository
) -> None:
    """A process with a lease on a file delays everybody who opens it, even if the file is read-only inside."""
    with_submodule(repository, place)
    repository.git("config", "core.hooksPath", ".husky")
    first = f"trap '' IO; exec /usr/bin/python3 -c \"{LEASE}\" {path}"
    with holt.start(["run", "--", "bash", "-c", first]) as running:
        assert running.readline() == "leased"
        assert "another process holds a lease" in holt(["run", "--", "true"]).refusal()
        (repository.path / "end").touch()
        running.wait().ok()
    holt(["run", "--", "true"]).ok()


def run_below_and_above(sandboxed: bool, holt: Holt, repository: Repository, above: str, below: str) -> tuple[Result, Result] | None:
    """Starts a run in lib/, then another in the repository, and lets the first go on. Returns the results of the one above
    and the one below, or None for the control, which runs both scripts on the host."""
    below = f"echo ready; {AWAIT.format('go')} {below}"
    repository.identity.run(["mkdir", repository.path / "lib"]).check_returncode()
    if not sandboxed:
        repository.identity.run(["bash", "-c", f"{above}; touch lib/go; cd lib; {below}"], cwd=repository.path)
        return None
    with holt.start(["run", "--", "bash", "-c", below], cwd=repository.path / "lib") as running:
        assert running.readline() == "ready"
        result = holt.sh(above).ok()
        (repository.path / "lib/go").touch()
        return result, running.wait()


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_run_above_gives_one_below_no_repository(
    sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    """The run below cannot write the index. That run began before the other run changed the index."""
    above = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib/sub"
    results = run_below_and_above(sandboxed, holt, repository, above, f"{make()}; {evil(repository)}")

    assert not results or results[1].set_aside == ["sub/.git.holt-untrusted"]
    assert repository.use() is not sandboxed


@pytest.mark.usefixtures("forge")
@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_run_above_hides_no_repository_from_one_below(
    sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    make_sparse(repository)
    above = f"{make('d/sub')}; /usr/bin/python3 forge.py sparse-below; mv d lib/e"
    results = run_below_and_above(sandboxed, holt, repository, above, f"mv e d; {evil(repository, 'd/sub')}")

    assert not results or [result.set_aside for result in results] == [[], ["d.holt-untrusted"]]
    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_run_in_a_submodule_gives_one_above_no_repository(
    sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    """One run can write the index of the submodule, and the other the files in it."""
    repository.identity.run(["bash", "-c", f"{make()}; git add sub"], cwd=repository.path)
    inner = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),inner"
    outer = f"echo ready; {AWAIT.format('go')} {make('sub/inner')}; {evil(repository, 'sub/inner')}"
    if sandboxed:
        with holt.start(["run", "--", "bash", "-c", outer]) as running:
            assert running.readline() == "ready"
            holt.sh(inner, cwd=repository.path / "sub").ok()
            (repository.path / "go").touch()
            assert running.wait().set_aside == ["sub/inner/.git.holt-untrusted"]
    else:
        script = f"touch go; (cd sub; {inner}); {outer}"
        repository.identity.run(["bash", "-c", script], cwd=repository.path)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("large", (False, True), ids=("small", "large"))
def test_an_index_that_another_run_has_mapped_is_read_again(
    large: bool, holt: Holt, repository: Repository
) -> None:
    """The index was written before this run began, and is written again later. The file's times do not show that."""
    if large:
        repository.enlarge()
    code = (
        "import hashlib, mmap, os, time; m = mmap.mmap(os.open('.git/index', os.O_RDWR), 0); d = bytes(m);"
        "m[:] = d; at = d.index(b'file\\0') - 62; n = d[:at + 24] + bytes([0, 0, 0xe0, 0]) + d[at + 28:-20];"
        "open('ready', 'w');\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
        "m[:] = n + hashlib.sha1(n).digest();\nwhile not os.path.exists('end'): time.sleep(0.05)"
    )
    (repository.path / "map.py").write_text(code)
    repository.identity.own(repository.path / "map.py")
    first = f"/usr/bin/python3 map.py & {AWAIT.format('ready')} echo ready; wait"
    second = f"rm file; {make('file')}; {evil(repository, 'file')}; touch go; sleep 0.2"
    with holt.start(["run", "--", "bash", "-c", first]) as running:
        assert running.readline() == "ready"
        time.sleep(3.1)  # A younger index would be read again anyway.
        result = holt.sh(second)
        (repository.path / "end").touch()
        running.wait()

    assert result.set_aside == ["file/.git.holt-untrusted"]
    assert not repository.use(), str(result)


def test_files_that_the_host_replaces_do_not_run_code_of_the_command(holt: Holt, repository: Repository) -> None:
    """git replaces its config by a new file, and the mount on the old one goes with it."""
    script = f"echo ready; until {{ {config(repository, '.git/config')}; }} 2>/dev/null; do sleep 0.05; done"
    with holt.start(["run", "--", "bash", "-c", script]) as running:
        assert running.readline() == "ready"
        repository.git("config", "user.name", "Somebody")
        result = running.wait()

    assert not repository.use(), str(result)
    assert result.set_aside == [".git/config.holt-untrusted"] or result.cause == "killed"
