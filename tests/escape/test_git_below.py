# SPDX-License-Identifier: Apache-2.0
"""git on the host runs nothing by a repository below the workspace's own, which it enters unasked.

`git status` asks each gitlink of the index that has a .git, by running git there. The attacks are on how the index
says it, on the .git of submodules that were there before, and on the places where the index itself lies elsewhere.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.repository import Repository, config, hook
from lib.sandbox import Holt

Plant = Callable[[Repository], str]

AS_A = "git -c user.name=a -c user.email=a@b"
PYTHON = "/usr/bin/python3 -c '{}'"


@pytest.fixture
def repository(workspace: Path, identity: Identity) -> Repository:
    return Repository(workspace, identity).init()


def make(path: str = "sub", init: str = "git init -q") -> str:
    """A repository with a commit, so that it can be added."""
    return f"{init} {path}; (cd {path}; {AS_A} commit -q --allow-empty -m x)"



def evil(r: Repository, path: str = "sub") -> str:
    return config(r, f"{path}/.git/config")


# Each adds a repository of its own to the index, and has its config run the payload.
ADDED: dict[str, Plant] = {
    "plain": lambda r: f"{make()}; git add sub; {evil(r)}",
    "deep": lambda r: f"mkdir -p a/b; {make('a/b/c')}; git add a; {evil(r, 'a/b/c')}",
    "hook path": lambda r: (
        f"{make()}; git add sub; {hook(r, 'sub/h')}; git -C sub config core.fsmonitor ./h"
    ),
    "two": lambda r: f"{make('one')}; {make('two')}; git add one two; {evil(r, 'two')}",
    "version 4": lambda r: f"{make()}; git add sub; git update-index --index-version 4; {evil(r)}",
    "version 3": lambda r: f"{make()}; touch n; git add -N n; git add sub; {evil(r)}",
    "split": lambda r: f"{make()}; git add sub; git update-index --split-index; {evil(r)}",
    "split, added later": lambda r: f"git update-index --split-index; {make()}; git add sub; {evil(r)}",
    # The file's entry is in the shared part; what replaces it has a mode and no name.
    "split, replacing a file": lambda r: (
        f"git update-index --split-index; rm file; {make('file')}; git add file; {evil(r, 'file')}"
    ),
    "in conflict": lambda r: (
        f"{make()}; id=$(git -C sub rev-parse HEAD);"
        f"printf '160000 %s 2\\tsub\\n160000 %s 3\\tsub\\n' $id $id | git update-index --index-info; {evil(r)}"
    ),
    "many entries": lambda r: (
        "mkdir d; (cd d; seq 30000 | xargs touch); git -c index.threads=2 add d;"
        f"{make()}; git -c index.threads=2 add sub; {evil(r)}"
    ),
    "by a file": lambda r: (
        f"{make('real')}; mv real/.git hidden; rm -r real; mkdir sub; echo 'gitdir: ../hidden' >sub/.git;"
        f"git add sub; {config(r, 'hidden/config', f'worktree = {r.path}/sub')}"
    ),
    "by a link": lambda r: (
        f"{make()}; mv sub/.git hidden; ln -s ../hidden sub/.git; git add sub; {config(r, 'hidden/config')}"
    ),
    "in a closed directory": lambda r: f"{make()}; git add sub; {evil(r)}; chmod 300 sub",
    "with the index a link": lambda r: f"{make()}; git add sub; mv .git/index .git/i; ln -s i .git/index; {evil(r)}",
    "with the old index's times": lambda r: (
        f"cp -p .git/index saved; {make()}; git add sub; touch -r saved .git/index; {evil(r)}"
    ),
    "written in place": lambda r: (
        f"{make()}; cp .git/index i; GIT_INDEX_FILE=i git add sub; cat i >.git/index; {evil(r)}"
    ),
}


@pytest.mark.parametrize("plant", ADDED.values(), ids=ADDED.keys())
def test_a_repository_that_is_added_is_set_aside(plant: Plant, holt: Holt, repository: Repository) -> None:
    result = holt.sh(plant(repository))

    assert not repository.use(), str(result)
    assert result.set_aside
    # What git wrote is understood, and stays.
    assert ".git/index.holt-untrusted" not in result.set_aside or (repository.path / ".git/i").exists()


@pytest.mark.parametrize("plant", ADDED.values(), ids=ADDED.keys())
def test_each_way_to_add_one_works_without_holt(plant: Plant, repository: Repository) -> None:
    repository.identity.run(["bash", "-c", plant(repository)], cwd=repository.path)

    assert repository.use()


def test_what_is_added_in_one_run_and_made_in_the_next(holt: Holt, repository: Repository) -> None:
    """After the first run the gitlink is the caller's, but there is no .git to it yet."""
    holt.sh(f"{make()}; git add sub; rm -rf sub/.git").ok()
    result = holt.sh(f"git init -q sub; {evil(repository)}")

    assert not repository.use(), str(result)
    assert result.set_aside == ["sub/.git.holt-untrusted"]


def test_an_index_that_git_did_not_write_is_set_aside(holt: Holt, repository: Repository) -> None:
    result = holt.sh("head -c 40 .git/index >i; mv i .git/index")

    assert result.set_aside == [".git/index.holt-untrusted"]


def test_one_that_was_there_before_the_run_is_refused(holt: Holt, repository: Repository) -> None:
    """It is the caller's, and not the command's to be set aside for."""
    index = repository.path / ".git/index"
    index.write_bytes(index.read_bytes()[:40])
    result = holt(["run", "--", "true"])

    assert ".git/index" in result.refusal()
    assert "rm .git/index && git reset" in result.cure
    index.unlink()
    repository.git("reset")
    holt(["run", "--", "true"]).ok()


def test_a_path_in_the_index_leads_nowhere_else(
    holt: Holt, place: Path, repository: Repository, identity: Identity
) -> None:
    """The names in the index are the command's, and holt renames by them."""
    identity.run(["git", "init", "-q", place / "other"]).check_returncode()
    code = (
        'd = open(".git/index", "rb").read(); at = d.index(b"zzzzzzzzzz");'
        'open(".git/index", "wb").write(d.replace(b"zzzzzzzzzz", b"../other//"[:10]))'
    )
    script = f"{make('zzzzzzzzzz')}; git add zzzzzzzzzz; {PYTHON.format(code)}; ln -s ../other link"
    holt.sh(script).ok()

    assert (place / "other" / ".git" / "config").exists()


# --- two runs at once ---

AWAIT = "while [ ! -e {} ]; do sleep 0.05; done;"


def test_two_runs_do_not_give_each_other_a_repository(holt: Holt, repository: Repository) -> None:
    """The first adds one, which the second finds guarded at its start, and free when the first has ended."""
    first = f"{make()}; git add sub; echo added; {AWAIT.format('second')}"
    second = f"touch second; {AWAIT.format('sub/.git.holt-untrusted')} {make()}; {evil(repository)}"
    with holt.start(["run", "--", "bash", "-c", first]) as running:
        assert running.readline() == "added"
        result = holt.sh(second)
        assert running.wait().set_aside == ["sub/.git.holt-untrusted"]

    assert not repository.use(), str(result)
    assert result.set_aside == ["sub/.git.holt-untrusted.2"]


LEASE = (
    "import fcntl, os, sys, time\nfd = os.open(sys.argv[1], os.O_RDONLY)\n"
    "fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nprint('leased', flush=True)\n"
    "while not os.path.exists('end'): time.sleep(0.05)"
)


@pytest.mark.parametrize("path", (".git/config", ".git/index", ".git/modules/sub/config", "sub/.git"))
def test_a_run_does_not_keep_another_from_what_it_has_to_read(
    path: str, holt: Holt, place: Path, repository: Repository
) -> None:
    """Whoever has leased a file is asked before it is opened, also where it is read-only inside."""
    with_submodule(repository, place)
    repository.git("config", "core.hooksPath", ".husky")
    first = f"trap '' IO; exec /usr/bin/python3 -c \"{LEASE}\" {path}"
    with holt.start(["run", "--", "bash", "-c", first]) as running:
        assert running.readline() == "leased"
        assert "a lease of another process" in holt(["run", "--", "true"]).refusal()
        (repository.path / "end").touch()
        running.wait().ok()
    holt(["run", "--", "true"]).ok()


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_run_above_gives_one_below_no_repository(
    sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    """The index is out of reach for the one below, which began before the other changed it."""
    repository.identity.run(["mkdir", repository.path / "lib"]).check_returncode()
    above = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib/sub"
    below = f"echo ready; {AWAIT.format('go')} {make()}; {evil(repository)}"
    if sandboxed:
        with holt.start(["run", "--", "bash", "-c", below], cwd=repository.path / "lib") as running:
            assert running.readline() == "ready"
            holt.sh(f"{above}; touch lib/go").ok()
            assert running.wait().set_aside == ["sub/.git.holt-untrusted"]
    else:
        script = f"{above}; touch lib/go; cd lib; {below}"
        repository.identity.run(["bash", "-c", script], cwd=repository.path)

    assert repository.use() is not sandboxed


@pytest.mark.usefixtures("forge")
@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_run_above_hides_no_repository_from_one_below(
    sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    make_sparse(repository)
    repository.identity.run(["mkdir", repository.path / "lib"]).check_returncode()
    above = f"{make('d/sub')}; /usr/bin/python3 forge.py sparse-below; mv d lib/e"
    below = f"echo ready; {AWAIT.format('go')} mv e d; {evil(repository, 'd/sub')}"
    if sandboxed:
        with holt.start(["run", "--", "bash", "-c", below], cwd=repository.path / "lib") as running:
            assert running.readline() == "ready"
            assert holt.sh(above).ok().set_aside == []
            (repository.path / "lib/go").touch()
            assert running.wait().set_aside == ["d.holt-untrusted"]
    else:
        script = f"{above}; touch lib/go; cd lib; {below}"
        repository.identity.run(["bash", "-c", script], cwd=repository.path)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_run_in_a_submodule_gives_one_above_no_repository(
    sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    """The index of the submodule is the one's to write, and what lies in it is the other's."""
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


def test_an_index_that_another_run_has_mapped_is_read_again(holt: Holt, repository: Repository) -> None:
    """It was written before this run began, and is once more later, which no time of the file shows."""
    code = (
        "import hashlib, mmap, os, time; m = mmap.mmap(os.open('.git/index', os.O_RDWR), 0); d = bytes(m);"
        "m[:1] = d[:1]; at = d.index(b'file\\0') - 62; n = d[:at + 24] + bytes([0, 0, 0xe0, 0]) + d[at + 28:-20];"
        "open('ready', 'w');\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
        "m[:] = n + hashlib.sha1(n).digest();\nwhile not os.path.exists('end'): time.sleep(0.05)"
    )
    (repository.path / "map.py").write_text(code)
    repository.identity.own(repository.path / "map.py")
    first = f"/usr/bin/python3 map.py & {AWAIT.format('ready')} echo ready; wait"
    second = f"rm file; {make('file')}; {evil(repository, 'file')}; touch go; sleep 0.2"
    with holt.start(["run", "--", "bash", "-c", first]) as running:
        assert running.readline() == "ready"
        time.sleep(2.1)  # or the index would be young enough to be read again for that
        result = holt.sh(second)
        (repository.path / "end").touch()
        running.wait()

    assert result.set_aside == ["file/.git.holt-untrusted"]
    assert not repository.use(), str(result)


def test_what_the_host_replaces_is_not_the_commands_to_write(holt: Holt, repository: Repository) -> None:
    """git writes its config anew, and what is mounted on the old one goes with that."""
    script = f"echo ready; until {{ {config(repository, '.git/config')}; }} 2>/dev/null; do sleep 0.05; done"
    with holt.start(["run", "--", "bash", "-c", script]) as running:
        assert running.readline() == "ready"
        repository.git("config", "user.name", "Somebody")
        result = running.wait()

    assert not repository.use(), str(result)
    assert result.set_aside == [".git/config.holt-untrusted"]


# --- an index that git reads and would not write ---

FORGE = Path(__file__).with_name("forge-index.py")


def forged(kind: str, path: str = "sub") -> Plant:
    return lambda r: f"mkdir -p d; {make(path)}; /usr/bin/python3 forge.py {kind}; {evil(r, path)}"


FORGED: dict[str, Plant] = {
    "a path with a dot": forged("dot"),
    "a path that ends in a slash": forged("slash"),
    "a path with two slashes": forged("slashes"),
    "a path that goes up": forged("up"),
    "an absolute path": forged("absolute"),
    "a name longer than it says": forged("length"),
    "another list with longer hashes": forged("hashes"),
}


@pytest.fixture
def forge(repository: Repository) -> None:
    (repository.path / "forge.py").write_text(FORGE.read_text())
    repository.identity.own(repository.path / "forge.py")


@pytest.mark.usefixtures("forge")
@pytest.mark.parametrize("plant", FORGED.values(), ids=FORGED.keys())
def test_a_forged_index_is_set_aside(plant: Plant, holt: Holt, repository: Repository) -> None:
    result = holt.sh(plant(repository))

    assert not repository.use(), str(result)
    assert ".git/index.holt-untrusted" in result.set_aside


@pytest.mark.usefixtures("forge")
@pytest.mark.parametrize("plant", FORGED.values(), ids=FORGED.keys())
def test_each_forged_index_works_without_holt(plant: Plant, repository: Repository) -> None:
    repository.identity.run(["bash", "-c", plant(repository)], cwd=repository.path)

    assert repository.use()


OUTSIDE = ("../precious", "{place}/precious", ".git/hooks/post-checkout", "sub/.GIT/config")
SECRET = "nobody else knows\n"


@pytest.mark.usefixtures("forge")
@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("rest", ("", "; git update-index --split-index"), ids=("whole", "split"))
@pytest.mark.parametrize(
    "path, use", (*((path, "checkout") for path in OUTSIDE), *((path, "add") for path in OUTSIDE[:2]))
)
def test_a_file_in_the_index_lies_nowhere_else(
    path: str, use: str, rest: str, sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    """git writes there, as `git checkout .` does, or takes in what is there, as `git add -u` and `git commit -a`."""
    precious = place / "precious"
    precious.write_text(SECRET)
    repository.identity.own(precious)
    repository.identity.run(["bash", "-c", "rm -rf .git/hooks; mkdir -p sub"], cwd=repository.path)
    script = f"/usr/bin/python3 forge.py file {path.format(place=place)}{rest}"
    if sandboxed:
        assert ".git/index.holt-untrusted" in holt.sh(script).ok().set_aside
    else:
        repository.identity.run(["bash", "-c", script], cwd=repository.path).check_returncode()
    if use == "add":
        repository.git("add", "-u")
        blob = hashlib.sha1(b"blob %d\0" % len(SECRET) + SECRET.encode()).hexdigest()
        happened = "blob" in repository.git("cat-file", "-t", blob).split()
    else:
        repository.git("checkout", "-q", ".")
        happened = precious.read_text() != SECRET or any((repository.path / p).exists() for p in OUTSIDE[2:])

    assert happened is not sandboxed


@pytest.mark.usefixtures("forge")
def test_a_long_name_in_the_index_is_in_nobodys_way(holt: Holt, repository: Repository) -> None:
    """As it comes with a clone whose files no file system takes."""
    assert holt.sh(f"/usr/bin/python3 forge.py file {'n' * 300}").ok().set_aside == []
    holt(["run", "--", "true"]).ok()


@pytest.fixture
def in_memory(place: Path, identity: Identity) -> Iterator[Path]:
    """A workspace on a tmpfs, as /tmp is on many a host."""
    path = place / "memory"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(path)], check=True)
    workspace = path / "ws"
    identity.own(path)
    identity.run(["mkdir", workspace]).check_returncode()
    yield workspace
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.root_host
@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_an_index_in_memory_keeps_no_change_for_itself(
    sandboxed: bool, holt: Holt, in_memory: Path, identity: Identity
) -> None:
    """What is written by a mapping there leaves the file's times as they were."""
    repository = Repository(in_memory, identity).init()
    code = (
        "import mmap, os; m = mmap.mmap(os.open('.git/index', os.O_RDWR), 0); d = bytes(m);"
        "at = d.index(b'file\\0') - 62; m[at + 24:at + 28] = bytes([0, 0, 0xe0, 0])"
    )
    (in_memory / "map.py").write_text(code)
    index = in_memory / ".git/index"
    # Of one that is as young as the run nothing is taken for granted anyway.
    time.sleep(max(0.0, index.stat().st_ctime + 2.1 - time.time()))
    before = index.stat()
    script = f"{make()}; /usr/bin/python3 map.py; rm file; mv sub file; {evil(repository, 'file')}"
    if sandboxed:
        result = holt.sh(script, cwd=in_memory)
        assert result.set_aside == ["file/.git.holt-untrusted"]
    else:
        identity.run(["bash", "-c", script], cwd=in_memory)

    assert index.stat().st_ctime_ns == before.st_ctime_ns
    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_longer_hashes_are_read(sandboxed: bool, holt: Holt, workspace: Path, identity: Identity) -> None:
    repository = Repository(workspace, identity)
    repository.git("init", "-q", "--object-format=sha256")
    script = f"{make(init='git init -q --object-format=sha256')}; git add sub;" + config(
        repository,
        "sub/.git/config",
        "\\n[extensions]\\n\\tobjectformat = sha256\\n[core]\\n\\trepositoryformatversion = 1\\n",
    )
    if sandboxed:
        assert holt.sh(script).set_aside == ["sub/.git.holt-untrusted"]
    else:
        identity.run(["bash", "-c", script], cwd=workspace)

    assert repository.use() is not sandboxed


def make_sparse(repository: Repository) -> None:
    for name in ("core.sparseCheckout", "core.sparseCheckoutCone"):
        repository.git("config", name, "true")


@pytest.mark.usefixtures("forge")
@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("runs", (1, 2))
def test_a_gitlink_in_a_sparse_directory_is_not_entered(
    runs: int, sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    """It is in a tree then, and not in the index. In two runs the index is an old one when the directory is made."""
    make_sparse(repository)
    script = forged("sparse", "d/sub")(repository)
    scripts = [script] if runs == 1 else [f"{script}; mv d e", "mv e d"]
    for one in scripts:
        if sandboxed:
            holt.sh(one)
        else:
            repository.identity.run(["bash", "-c", one], cwd=repository.path)

    assert repository.use() is not sandboxed


def test_a_sparse_directory_is_in_nobodys_way(holt: Holt, repository: Repository) -> None:
    """Of git's own making, and with what is not git's left in it."""
    repository.identity.run(
        ["bash", "-c", f"mkdir -p d/e k; touch d/e/f k/f; git add d k; {AS_A} commit -qm d"], cwd=repository.path
    )
    repository.git("sparse-checkout", "set", "--cone", "--sparse-index", "k")
    assert "d/" in repository.git("ls-files", "--sparse").split()
    assert holt.sh(f"echo 1 >k/f; git add k; {AS_A} commit -qm k").ok().set_aside == []


def test_a_sparse_directory_that_is_there_is_refused(holt: Holt, repository: Repository) -> None:
    """What is not git's was left in it, and git would enter what its tree names. The cure cures."""
    repository.identity.run(
        ["bash", "-c", f"mkdir -p d/e k; touch d/e/f k/f; git add d k; {AS_A} commit -qm d"], cwd=repository.path
    )
    repository.git("sparse-checkout", "set", "--cone", "--sparse-index", "k")
    repository.identity.run(["bash", "-c", "mkdir d; touch d/left"], cwd=repository.path)

    for below in (".", "d"):
        result = holt(["run", "--", "true"], cwd=repository.path / below)
        assert "sparse directory" in result.refusal()
        assert "git sparse-checkout reapply --no-sparse-index" in result.cure
    repository.git("sparse-checkout", "reapply", "--no-sparse-index")
    assert holt.sh("touch d/left").ok().set_aside == []


# "itself" would have the host's git start itself without end, "long" is a path that no run could look at, "blocks"
# take hours to check.
@pytest.mark.usefixtures("forge")
@pytest.mark.parametrize("kind", ("itself", "long", "blocks"))
def test_a_forged_index_is_in_nobodys_way(kind: str, holt: Holt, repository: Repository) -> None:
    result = holt.sh(f"{make()}; /usr/bin/python3 forge.py {kind}").ok()

    assert result.set_aside == [".git/index.holt-untrusted"]
    holt(["run", "--", "true"]).ok()


# --- submodules that are the caller's own ---


def with_submodule(repository: Repository, place: Path, nested: bool = False) -> Repository:
    """The repository with a submodule at sub, and one in that at sub/inner."""
    other = Repository(place / "other", repository.identity)
    repository.identity.run(["mkdir", other.path]).check_returncode()
    other.init()
    if nested:
        inner = Repository(place / "inner", repository.identity)
        repository.identity.run(["mkdir", inner.path]).check_returncode()
        inner.init()
        other.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "inner")
        other.git("commit", "-q", "-m", "inner")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.path), "sub")
    repository.git("commit", "-q", "-m", "sub")
    repository.git("-c", "protocol.file.allow=always", "submodule", "update", "--init", "--recursive", "-q")
    assert (repository.path / "sub/inner/.git" if nested else repository.path / "sub/.git").is_file()
    return repository


def own(path: str) -> Plant:
    """Puts a repository of the attacker's where a submodule is."""
    return lambda r: f"cp -r .git evil; rm -rf {path}/.git; mv evil {path}/.git; {config(r, f'{path}/.git/config')}"


SUBMODULE: dict[str, Plant] = {
    "config": lambda r: config(r, ".git/modules/sub/config"),
    "by git": lambda r: f"git -C sub config core.fsmonitor '{r.payload}; false'",
    ".git replaced": own("sub"),
    ".git leads elsewhere": lambda r: (
        f"cp -r .git evil; {config(r, 'evil/config')}; echo 'gitdir: ../evil' >sub/new; mv -f sub/new sub/.git"
    ),
    "directory replaced": lambda r: f"mv sub gone; cp -r gone sub; {own('sub')(r)}",
    "directory exchanged": lambda r: (
        f"cp -r sub new; {own('new')(r)};"
        "python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"sub\", -100, b\"new\", 2)'"
    ),
    "commondir": lambda r: f"cp -r .git evil; {config(r, 'evil/config')}; echo ../../../evil >.git/modules/sub/commondir",
}


@pytest.mark.parametrize("plant", SUBMODULE.values(), ids=SUBMODULE.keys())
def test_a_submodule_is_not_turned_against_its_owner(
    plant: Plant, holt: Holt, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place)
    result = holt.sh(plant(repository))

    assert not repository.use(), str(result)
    assert (repository.path / "sub/.git").read_text() == "gitdir: ../.git/modules/sub\n"


@pytest.mark.parametrize("plant", SUBMODULE.values(), ids=SUBMODULE.keys())
def test_each_way_to_turn_a_submodule_works_without_holt(
    plant: Plant, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place)
    repository.identity.run(["bash", "-c", plant(repository)], cwd=repository.path)

    assert repository.use()


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_submodule_of_a_submodule_is_guarded(
    sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place, nested=True)
    script = own("sub/inner")(repository)
    if sandboxed:
        holt.sh(script)
    else:
        repository.identity.run(["bash", "-c", script], cwd=repository.path)

    assert repository.use() is not sandboxed


# While it is not in the index: an earlier run, or one beside this, took it out.
TAKEN_OUT = {
    "sub": ("git rm -q --cached sub", own("sub")),
    "inner": ("git rm -q --cached sub", own("sub/inner")),
    "no index": ("rm .git/index", own("sub/inner")),
}


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize(("before", "plant"), TAKEN_OUT.values(), ids=TAKEN_OUT.keys())
def test_a_submodule_is_guarded_while_no_index_names_it(
    before: str, plant: Plant, sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place, nested=True)
    for script in (before, plant(repository)):
        if sandboxed:
            holt.sh(script)
        else:
            repository.identity.run(["bash", "-c", script], cwd=repository.path)
    repository.git("reset", "-q")

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_one_with_its_repository_in_it_is_guarded(
    sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    """As a submodule was before git 1.7.8, and as `git add` of a repository makes it."""
    repository.identity.run(["bash", "-c", f"{make()}; git add sub"], cwd=repository.path)
    if sandboxed:
        assert holt.sh(evil(repository)).set_aside == []
        assert (repository.path / "sub/.git/HEAD").exists()
    else:
        repository.identity.run(["bash", "-c", evil(repository)], cwd=repository.path)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_one_that_is_not_initialised_is_not_initialised_for_its_owner(
    sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    with_submodule(repository, place)
    repository.git("submodule", "deinit", "-f", "-q", "sub")
    script = f"git init -q sub; {evil(repository)}"
    if sandboxed:
        assert holt.sh(script).set_aside == ["sub/.git.holt-untrusted"]
    else:
        repository.identity.run(["bash", "-c", script], cwd=repository.path)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_workspace_below_the_top_guards_the_submodules_in_it(
    sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    """The index is out of the command's reach then, and names what is in it."""
    repository.identity.run(["bash", "-c", f"mkdir -p lib; {make('lib/sub')}; git add lib"], cwd=repository.path)
    script, cwd = evil(repository), repository.path / "lib"
    if sandboxed:
        holt.sh(script, cwd=cwd)
    else:
        repository.identity.run(["bash", "-c", script], cwd=cwd)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("between", ("lib", "lib/deep"))
@pytest.mark.parametrize("first", ("mkdir .git", "git init -q"))
def test_a_git_directory_between_hides_no_submodule(
    first: str, between: str, holt: Holt, repository: Repository
) -> None:
    """git passes over one that is no repository, from where it stands, or is asked at the top."""
    script = f"mkdir -p lib/deep; {make('lib/deep/sub')}; git add lib"
    repository.identity.run(["bash", "-c", script], cwd=repository.path)
    holt.sh(first, cwd=repository.path / between).ok()
    holt.sh(evil(repository), cwd=repository.path / "lib/deep")

    assert not repository.use()


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_a_worktree_guards_the_submodules_in_it(
    sandboxed: bool, holt: Holt, place: Path, repository: Repository
) -> None:
    """Its index lies in the repository that it is a worktree of."""
    tree = Repository(place / "tree", repository.identity)
    repository.git("worktree", "add", "-q", str(tree.path))
    repository.identity.run(["bash", "-c", f"{make()}; git add sub"], cwd=tree.path)
    tree.marker = place / "pwned"
    if sandboxed:
        holt.sh(evil(tree), cwd=tree.path)
    else:
        repository.identity.run(["bash", "-c", evil(tree)], cwd=tree.path)

    assert tree.use() is not sandboxed


def test_git_goes_on_in_a_repository_with_submodules(holt: Holt, place: Path, repository: Repository) -> None:
    with_submodule(repository, place, nested=True)
    script = (
        "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b;"
        "echo more >>file && git status --porcelain && git commit -qam second && git -C sub log --oneline"
    )
    result = holt.sh(script).ok()

    assert "first" in result.out
    assert result.set_aside == []
    assert repository.git("status", "--porcelain") == ""


# --- git falls back to the directory itself as a bare repository when .git is none ---


def bare(r: Repository) -> str:
    return (
        "git init -q --bare tmp.git; mv tmp.git/HEAD tmp.git/objects tmp.git/refs .; rm -f .git/HEAD;"
        + config(r, "config", "\\tbare = false\\n\\tworktree = .\\n")
    )


def test_the_workspace_does_not_become_a_bare_repository(holt: Holt, repository: Repository) -> None:
    result = holt.sh(bare(repository))

    assert not repository.use(), str(result)


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("plant", ("hook", "config"))
def test_a_workspace_that_is_a_bare_repository_is_guarded(
    plant: str, sandboxed: bool, holt: Holt, place: Path, workspace: Path, identity: Identity
) -> None:
    """What is protected in .git has no .git before it here."""
    identity.run(["git", "init", "-q", "--bare", "."], cwd=workspace).check_returncode()
    marker = place / "pwned"
    where = {"hook": "hooks", "config": f"{workspace}/h"}[plant]
    script = (
        f"mkdir -p {where}; printf '#!/bin/sh\\ntouch {marker}\\n' >{where}/pre-receive;"
        f"chmod +x {where}/pre-receive"
    )
    if plant == "config":
        script += f"; git config core.hooksPath {where}"
    if sandboxed:
        holt.sh(f"{script}; exit 0")
    else:
        identity.run(["bash", "-c", script], cwd=workspace)
    identity.run(["bash", "-c", f"git clone -q {workspace} ../clone; cd ../clone; {AS_A} commit -q --allow-empty -m x;"
                  "git push -q origin HEAD"], cwd=workspace)

    assert marker.exists() is not sandboxed


def test_becoming_a_bare_repository_works_without_holt(repository: Repository) -> None:
    repository.identity.run(["bash", "-c", bare(repository)], cwd=repository.path)

    assert repository.use()


# What of a bare repository may be there: the command makes the rest.
HALVES = {"no refs": "rm -rf refs", "no objects": "rm -rf objects", "only HEAD": "rm -rf refs objects config hooks"}


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES.keys())
def test_half_a_bare_repository_is_not_made_whole(
    half: str, sandboxed: bool, holt: Holt, workspace: Path, identity: Identity
) -> None:
    identity.run(["bash", "-c", f"git init -q --bare -b main .; {half}"], cwd=workspace).check_returncode()
    repository = Repository(workspace, identity)
    script = (
        "git init -q --bare x; mkdir -p refs objects; cp -r x/refs x/objects .; "
        + config(repository, "c", "\\tbare = false\\n\\tworktree = .\\n") + "; mv -f c config"
    )
    if sandboxed:
        holt.sh(script)
    else:
        identity.run(["bash", "-c", script], cwd=workspace)

    assert repository.use() is not sandboxed


@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("there", (True, False), ids=("there", "made"))
def test_a_workspace_that_is_a_git_directory_keeps_its_index(
    there: bool, sandboxed: bool, holt: Holt, repository: Repository, place: Path
) -> None:
    """The work tree lies elsewhere, and a gitlink of it leads back into the workspace."""
    git = repository.path / ".git"
    inner = Repository(git, repository.identity)
    inner.marker = repository.marker
    (git / "forge.py").write_text(FORGE.read_text().replace('open(".git/index"', 'open("index"'))
    repository.identity.own(git / "forge.py")
    if not there:
        (git / "index").unlink()
    script = f"{make('evil')}; /usr/bin/python3 forge.py git-directory; {evil(inner, 'evil')}"
    if sandboxed:
        result = holt.sh(script, cwd=git)
        assert result.set_aside == ([] if there else ["index.holt-untrusted"])
    else:
        repository.identity.run(["bash", "-c", script], cwd=git)

    assert repository.use() is not sandboxed
