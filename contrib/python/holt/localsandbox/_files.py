# SPDX-License-Identifier: Apache-2.0
"""Makes /data the root: maps paths to files of the session, and makes snapshots.

Theory of operation. /data/x and /x are one file. It stays at the place where it was made. names.bash puts a symlink to it at the
other place before and after each line of bash, and after Python. While Python runs, names.py makes such symlinks. Calls from this
module do not need the symlinks, because they look at both places.

Names in the session's original root belong to the system. Writable ones (SHARED) appear in /data, too: /data/tmp/x is
/tmp/x, unless the program has made its own directory /data/tmp. For the other names, the two places are
different files: /lib belongs to the system, and /data/lib to the program.
"""

from __future__ import annotations

import posixpath
import secrets
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

from .._operations import Steps
from ..errors import HoltError, MissingError, UsageError
from ..files import FilesApi
from ..results import Result
from ..sandbox import SandboxApi
from .exceptions import TimeoutError

HERE = "/home/agent/.localsandbox"
"""Directory of our scripts inside."""

SCRIPTS = ("call.bash", "limits.bash", "names.bash")

PYTHON = f"{HERE}/python"
"""Directory of names.py, which is in the PYTHONPATH of all processes inside."""

SNAPSHOT_MAX = 256 << 20
"""Maximum bytes of a file, and of a snapshot's files, which must fit in this program's memory."""

CODE = f"{HERE}/code.py"
"""Code that is too long for a message."""

MONTY = f"{HERE}/monty.json"
"""Names and descriptions of the functions that monty.py makes. Only the runtime Monty has this file."""

OTHER_TIMEOUT_MS = 60000
"""Limit of packing and unpacking."""

HOME = "/home/user"

SHARED = ("home", "mnt", "opt", "tmp", "var", "workspace")
"""The system's names that a program may write to. A snapshot includes them, except the session's own /home/agent."""

# Read-only mounts below SHARED, such as /var/lib/dpkg, belong to the host.
_FOREIGN = r"""
foreign=(./home/agent)
while read -r _ _ _ _ where options _; do
	printf -v where %b "$where"
	[[ ,$options, != *,ro,* || $where == / ]] || foreign+=(".$where")
done </proc/self/mountinfo
"""

# tar can read only entries with permissions. So entries of mode 000 get some while tar runs, and have them in the snapshot. tar
# finds all files itself, because it fails if a file that its arguments name is removed meanwhile.
PACK = _FOREIGN + r"""
cd /; target=$1; ulimit -f "$2"; shift 2
for each in $__LOCALSANDBOX_SYSTEM; do [[ " $* " == *" $each "* ]] || foreign+=("./$each"); done
shut=(-type d ! -perm -500 -printf '%m %p\0' -exec chmod u+rx '{}' ';' , -type f ! -perm -400 -printf '%m %p\0' -exec chmod u+r '{}' ';')
pruned=(-false); for each in "${foreign[@]}"; do pruned+=(-o -path "${each//[[\\*?]/?}"); done
mapfile -d '' opened < <(find . '(' "${pruned[@]}" ')' -prune -o -user "$EUID" '(' "${shut[@]}" ')')
tar --sparse --anchored --no-wildcards "${foreign[@]/#/--exclude=}" -cf "$target" .; status=$?
for ((i = ${#opened[@]} - 1; i >= 0; i--)); do chmod "${opened[i]%% *}" "${opened[i]#* }"; done
((status != 153)) || exit 99  # SIGXFSZ
((status <= 1))
"""


# Existing directories of the system are not changed. The snapshot may have files where this host has a mount.
UNPACK = _FOREIGN + r"""
tar -xpf "$1" -C / --no-overwrite-dir --no-same-owner --anchored --no-wildcards "${foreign[@]/#/--exclude=}"
"""


def _check_time(result: Result, what: str) -> None:
    if result.cause == "timeout":
        raise TimeoutError(f"{what} took longer than {OTHER_TIMEOUT_MS} ms", OTHER_TIMEOUT_MS)


class Names:
    """The files of one sandbox. Methods are steps; see _operations.py."""

    def __init__(self, box: SandboxApi) -> None:
        self.box = box
        self.files = FilesApi(box._server, box.name)
        self.system: Set[str] = set()
        self.links_stale = self.names_stale = False

    def prepare(self) -> "Steps[None]":
        """Prepares a new session."""
        entries = yield from FilesApi.list.steps(self.files, "/")
        self.system = {each.name for each in entries}
        texts = {name: Path(__file__).with_name(name).read_text() for name in SCRIPTS}
        texts.update({"system": " ".join(sorted(self.system)) + "\n", "links": ""})
        for name, module in (("sitecustomize", "names.py"), ("holt_monty", "monty.py")):
            texts[f"python/{name}.py"] = Path(__file__).with_name(module).read_text()
        for name, text in texts.items():
            yield from FilesApi.write.steps(self.files, f"{HERE}/{name}", text)
        for directory in ("/data", HOME):
            yield from FilesApi.mkdir.steps(self.files, directory)

    def environment(self) -> Dict[str, str]:
        return {
            "HOME": HOME, "LC_ALL": "C.UTF-8", "PYTHONUSERBASE": "/home/agent/.local", "XDG_CACHE_HOME": "/home/agent/.cache",
            "XDG_CONFIG_HOME": "/home/agent/.config", "XDG_DATA_HOME": "/home/agent/.local/share",
            "__LOCALSANDBOX_SYSTEM": " ".join(sorted(self.system)), "__LOCALSANDBOX_SHARED": " ".join(SHARED),
        }

    def settle(self, names: bool = False) -> "Steps[None]":
        """Updates the symlinks inside, if they are stale. With names, includes files that this module has written."""
        if self.links_stale or (names and self.names_stale):
            self.links_stale = self.names_stale = False
            yield from SandboxApi.exec.steps(self.box, ["bash", f"{HERE}/names.bash"], cwd="/")

    @staticmethod
    def parts(path: str) -> Tuple[List[str], bool]:
        """Returns the parts of a path below the root, and whether it starts with /data or is relative."""
        parts = [p for p in posixpath.normpath(posixpath.join("/data", path)).split("/") if p]
        return (parts[1:], True) if parts[:1] == ["data"] else (parts, False)

    def place(self, path: str) -> "Steps[str]":
        """Returns the real path of a file, or the one that it would get."""
        yield from self.settle()
        parts, by_data = self.parts(path)
        if not parts:
            return "/data"
        if parts[0] in self.system:
            own = by_data and (parts[0] not in SHARED or (yield from self._has_own(parts[0])))
            return ("/data/" if own else "/") + "/".join(parts)
        roots = ("/data", "") if by_data else ("", "/data")
        for root in roots:
            other = roots[1] if root == roots[0] else roots[0]
            try:
                info = yield from FilesApi.stat.steps(self.files, f"{root}/{parts[0]}", follow=False)
            except MissingError:
                continue
            if info.type != "link" or info.target != f"{other}/{parts[0]}":
                return f"{root}/" + "/".join(parts)
        return f"{roots[0]}/" + "/".join(parts)

    def _has_own(self, name: str) -> "Steps[bool]":
        """Whether /data/NAME belongs to the program, and is not a symlink to the system's name."""
        try:
            return (yield from FilesApi.stat.steps(self.files, f"/data/{name}", follow=False)).type != "link"
        except MissingError:
            return False

    def directory(self, path: str) -> "Steps[str]":
        """Returns the real path of an existing directory, or else /data."""
        for each in (path, "/data"):
            place = yield from self.place(each)
            try:
                if (yield from FilesApi.stat.steps(self.files, place)).type == "directory":
                    return place
            except (MissingError, UsageError):
                pass
        yield from FilesApi.mkdir.steps(self.files, "/data")  # code has removed it
        return "/data"

    def write(self, path: str, data: bytes) -> "Steps[None]":
        place = yield from self.place(path)
        self.names_stale = True
        yield from FilesApi.write.steps(self.files, place, data)

    def read(self, path: str) -> "Steps[bytes]":
        place = yield from self.place(path)
        return (yield from FilesApi.read_bytes.steps(self.files, place, max_bytes=SNAPSHOT_MAX))

    def list(self, path: str) -> "Steps[List[str]]":
        place = yield from self.place(path)
        yield from self.settle(names=place == "/data")
        entries = yield from FilesApi.list.steps(self.files, place)
        names = [each.name for each in entries]
        if place == "/home":
            names = [n for n in names if n != "agent"]
            if not (yield from FilesApi.list.steps(self.files, HOME)):
                names = [n for n in names if n != "user"]
        return sorted(names)

    def exists(self, path: str) -> "Steps[bool]":
        try:
            place = yield from self.place(path)
            if place == "/home":
                return bool((yield from self.list("/home")))
            return (yield from FilesApi.exists.steps(self.files, place))
        except UsageError:  # an invalid name, or one below a closed directory
            return False

    def delete(self, path: str) -> "Steps[None]":
        place = yield from self.place(path)
        yield from FilesApi.remove.steps(self.files, place)
        parts, _ = self.parts(path)
        if len(parts) == 1 and parts[0] not in self.system:
            mirror = f"/{parts[0]}" if place.startswith("/data/") else f"/data/{parts[0]}"
            try:
                yield from FilesApi.remove.steps(self.files, mirror)
            except MissingError:
                pass

    # --- snapshots ---

    def pack(self) -> "Steps[bytes]":
        """Returns a tar archive of all files that the program has made."""
        yield from self.settle(names=True)
        path = f"{HERE}/{secrets.token_hex(8)}.tar"
        shared = [name for name in SHARED if name in self.system]
        argv = ["bash", "-c", PACK, "bash", path, str(SNAPSHOT_MAX >> 10), *shared]
        try:
            result = yield from SandboxApi.exec.steps(
                self.box, argv, cwd="/", env=self.environment(), timeout=OTHER_TIMEOUT_MS / 1000
            )
            if result.exit_code == 99:
                raise HoltError(f"the files are too large for a snapshot, which has at most {SNAPSHOT_MAX >> 20} MiB")
            _check_time(result, "packing the files")
            if not result.ok:
                raise HoltError(f"cannot pack the files: {result}")
            return (yield from FilesApi.read_bytes.steps(self.files, path, max_bytes=SNAPSHOT_MAX))
        finally:
            self.box._ask_and_forget("files.remove", path=path)

    def unpack(self, data: bytes) -> "Steps[None]":
        path = f"{HERE}/{secrets.token_hex(8)}.tar"
        yield from FilesApi.write.steps(self.files, path, data)
        result = yield from SandboxApi.exec.steps(self.box, ["bash", "-c", UNPACK, "bash", path], cwd="/", timeout=OTHER_TIMEOUT_MS / 1000)
        yield from FilesApi.remove.steps(self.files, path)
        _check_time(result, "unpacking the files")
        if not result.ok:
            raise ValueError(f"the files in this snapshot of a LocalSandbox are damaged: {result}")
        self.links_stale = True


def seed_bytes(content: Any) -> bytes:
    """Returns the bytes of a value in files={...}: text, bytes, or the Path of a host file."""
    if isinstance(content, Path):
        return content.read_bytes()
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise TypeError(f"a file must be str, bytes or pathlib.Path, not {type(content).__name__}")
