# SPDX-License-Identifier: Apache-2.0
"""An index that git reads but would not write: however it contains a gitlink, git on the host enters none."""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib import hosts
from lib.identity import Identity
from lib.repository import AS_A, Plant, Repository, config, evil, make, make_sparse
from lib.sandbox import Holt


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
    """git writes to such a path (`git checkout .`), or adds files from it (`git add -u`, `git commit -a`)."""
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
def test_long_names_in_the_index_are_accepted(holt: Holt, repository: Repository) -> None:
    """A clone may have files with names that no file system accepts."""
    assert holt.sh(f"/usr/bin/python3 forge.py file {'n' * 300}").ok().set_aside == []
    holt(["run", "--", "true"]).ok()


@pytest.fixture
def in_memory(place: Path, identity: Identity) -> Iterator[Path]:
    """A workspace on a tmpfs, such as /tmp on many hosts."""
    if identity.name == "root" and not hosts.maps_tmpfs():
        pytest.skip("this kernel can't id-map a tmpfs, so root can't have a workspace there")
    path = place / "memory"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(path)], check=True)
    workspace = path / "ws"
    identity.own(path)
    identity.run(["mkdir", workspace]).check_returncode()
    yield workspace
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.root_host
@pytest.mark.parametrize("large", (False, True), ids=("small", "large"))
@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
def test_an_index_in_memory_keeps_no_change_for_itself(
    sandboxed: bool, large: bool, holt: Holt, in_memory: Path, identity: Identity
) -> None:
    """Writing by a mapping leaves the file's times unchanged there."""
    repository = Repository(in_memory, identity).init()
    if large:
        repository.enlarge()
    code = (
        "import mmap, os; m = mmap.mmap(os.open('.git/index', os.O_RDWR), 0); d = bytes(m);"
        "at = d.index(b'file\\0') - 62; m[at + 24:at + 28] = bytes([0, 0, 0xe0, 0])"
    )
    (in_memory / "map.py").write_text(code)
    index = in_memory / ".git/index"
    # Nothing is assumed about an index that is as young as the run.
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


# Replaces the index's entry of "file" by a gitlink, and writes the time of the last change back.
REPLACE = {
    "mapped": "m = mmap.mmap(os.open('.git/index', os.O_RDWR), 0); m[:] = n",
    "written": "os.pwrite(os.open('.git/index', os.O_RDWR), n, 0)",
    "renamed": "open('.git/new', 'wb').write(n); os.rename('.git/new', '.git/index')",
}
REPLACER = (
    "import hashlib, mmap, os; st = os.stat('.git/index'); d = open('.git/index', 'rb').read();"
    "at = d.index(b'file\\0') - 62; n = d[:at + 24] + bytes([0, 0, 0xe0, 0]) + d[at + 28:-20];"
    "n += hashlib.sha1(n).digest(); {}; os.utime('.git/index', ns=(st.st_atime_ns, st.st_mtime_ns))"
)


@pytest.mark.parametrize("way", REPLACE.values(), ids=REPLACE)
def test_a_large_index_that_changes_is_read_again(way: str, holt: Holt, repository: Repository) -> None:
    """holt reads a large index only once while its size, inode and change time stay the same."""
    repository.enlarge()
    (repository.path / "replace.py").write_text(REPLACER.format(way))
    before = (repository.path / ".git/index").stat()
    result = holt.sh(f"/usr/bin/python3 replace.py; rm file; {make('file')}; {evil(repository, 'file')}")
    after = (repository.path / ".git/index").stat()

    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert result.set_aside == ["file/.git.holt-untrusted"], str(result)
    assert not repository.use(), str(result)


# Writes a large index whose last extension contains the text of another one, which adds the gitlink "sub". Its size has its
# high bytes at the end of one block and its low bytes at the beginning of the next. Without these, the text counts.
HIDE_LINK = """
import hashlib, os, struct
d = open(".git/index", "rb").read()[:-20]
at = d.index(b"file\\0") - 62
shared = d[:at + 24] + bytes([0, 0, 0xe0, 0]) + d[at + 28:at + 60] + b"\\0\\3sub" + bytes(7)
name = hashlib.sha1(shared).digest()
open(".git/sharedindex." + name.hex(), "wb").write(shared + name)
link = b"link" + struct.pack(">I", 60) + name + 2 * struct.pack(">IIQI", 0, 1, 0, 0)
fill = -(len(d) + 14) % 4096
d += b"FILL" + struct.pack(">I", fill) + bytes(fill) + b"HIDE" + struct.pack(">I", 0x10000 + len(link)) + bytes(0x10000) + link
open(".git/new", "wb").write(d + hashlib.sha1(d).digest())
os.rename(".git/new", ".git/index")
"""
# Makes one block of the index zero by EXT4_IOC_MOVE_EXT, which leaves the change time as it was.
EXCHANGE = """
import fcntl, os, struct
block = open(".git/index", "rb").read().index(b"HIDE") // 4096 + 1
open("new", "wb").write(b"text" * 65536)
fds = [os.open(name, os.O_RDWR) for name in ("new", ".git/index")]
for fd in fds:
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
fcntl.ioctl(fds[0], 0xc028660f, struct.pack("IIQQQQ", 0, fds[1], block, block, 1, 0))
"""


@pytest.mark.parametrize("more", ((), ("--allow-syscall", "ioctl")), ids=("checked", "unchecked"))
def test_an_index_does_not_change_by_an_exchange_of_blocks(more: tuple[str, ...], holt: Holt, repository: Repository) -> None:
    """By default, holt refuses this ioctl. If ioctl is allowed by its name, holt reads the index again."""
    (repository.path / "hide.py").write_text(HIDE_LINK)
    (repository.path / "exchange.py").write_text(EXCHANGE)
    holt.sh("/usr/bin/python3 hide.py").ok()
    before = repository.age_index()
    result = holt.sh(f"/usr/bin/python3 exchange.py; {make()}; {evil(repository)}", *more)
    after = (repository.path / ".git/index").stat()

    assert (after.st_size, after.st_ctime_ns) == (before.st_size, before.st_ctime_ns)
    assert not repository.use(), str(result)


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


@pytest.mark.usefixtures("forge")
@pytest.mark.parametrize("sandboxed", (True, False), ids=("holt", "control"))
@pytest.mark.parametrize("runs", (1, 2))
def test_a_gitlink_in_a_sparse_directory_is_not_entered(
    runs: int, sandboxed: bool, holt: Holt, repository: Repository
) -> None:
    """The gitlink is in a tree then, and not in the index. With two runs, it is old when the directory is made."""
    make_sparse(repository)
    script = forged("sparse", "d/sub")(repository)
    scripts = [script] if runs == 1 else [f"{script}; mv d e", "mv e d"]
    for one in scripts:
        if sandboxed:
            holt.sh(one)
        else:
            repository.identity.run(["bash", "-c", one], cwd=repository.path)

    assert repository.use() is not sandboxed


def test_a_sparse_directory_of_git_is_accepted(holt: Holt, repository: Repository) -> None:
    """git made the directory, and files that are not git's are left in it."""
    repository.identity.run(
        ["bash", "-c", f"mkdir -p d/e k; touch d/e/f k/f; git add d k; {AS_A} commit -qm d"], cwd=repository.path
    )
    repository.git("sparse-checkout", "set", "--cone", "--sparse-index", "k")
    assert "d/" in repository.git("ls-files", "--sparse").split()
    assert holt.sh(f"echo 1 >k/f; git add k; {AS_A} commit -qm k").ok().set_aside == []


def test_a_sparse_directory_that_is_there_is_refused(holt: Holt, repository: Repository) -> None:
    """The directory contains other files, so git would enter the gitlinks of its tree. The cure works."""
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


# "itself" would make the host's git start itself without end. "long" is a path that no run can look at. "blocks" would
# take hours to check.
@pytest.mark.usefixtures("forge")
@pytest.mark.parametrize("kind", ("itself", "long", "blocks"))
def test_a_forged_index_does_not_stop_the_next_run(kind: str, holt: Holt, repository: Repository) -> None:
    result = holt.sh(f"{make()}; /usr/bin/python3 forge.py {kind}").ok()

    assert result.set_aside == [".git/index.holt-untrusted"]
    holt(["run", "--", "true"]).ok()


@pytest.mark.identities("user", "root")
def test_a_directory_that_a_command_has_closed_has_a_cure(holt: Holt, repository: Repository) -> None:
    """A killed keeper may leave such a directory, because it could not restore the rights."""
    repository.identity.run(["bash", "-c", f"mkdir -p d; {make('d/sub')}; git add d/sub; chmod 0 d"], cwd=repository.path)
    result = holt(["run", "--", "true"])

    if result.code:
        assert f"chmod -R u+rwX {repository.path}" in result.cure
        repository.identity.run(["chmod", "-R", "u+rwX", repository.path])
    holt(["run", "--", "true"]).ok()
