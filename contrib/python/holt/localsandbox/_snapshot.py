# SPDX-License-Identifier: Apache-2.0
"""The format of snapshots: a tar archive of the state as JSON, and of the files' own archive."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zlib
from typing import IO, Any, Dict, Mapping, Tuple, cast

from ._files import SNAPSHOT_MAX
from .exceptions import LocalSandboxError

VERSION = 1

_STATE, _FILES = "state.json", "files.tar"

_ENTRY: Dict[str, Any] = {
    "id": int, "name": str, "started_at": int, "completed_at": (int, type(None)), "parameters": dict,
    "result": (dict, type(None)),
}
"""Types of the fields of a history entry."""


def pack_snapshot(files: bytes, state: Mapping[str, Any]) -> bytes:
    """Returns a snapshot. files is a tar archive. Raises LocalSandboxError if it would be too large to be read again."""
    whole = io.BytesIO()
    text = json.dumps({"holt_localsandbox": VERSION, **state})
    if len(text) > SNAPSHOT_MAX:
        raise LocalSandboxError(
            f"keys, values and history are too large for a snapshot, which has at most {SNAPSHOT_MAX >> 20} MiB of them"
        )
    with tarfile.open(fileobj=whole, mode="w:gz", compresslevel=1) as archive:
        for name, data in ((_STATE, text.encode()), (_FILES, files)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return whole.getvalue()


def unpack_snapshot(snapshot: bytes) -> Tuple[bytes, Dict[str, Any]]:
    """Returns the files' archive, and the state with kv and history. Raises ValueError for invalid data."""
    if snapshot.startswith(b"SQLite format 3"):
        raise ValueError("this snapshot is a database, as the original makes them; holt reads only its own snapshots")
    try:
        whole = cast(IO[bytes], gzip.GzipFile(fileobj=io.BytesIO(snapshot)))
        with whole, tarfile.open(fileobj=whole, mode="r:") as archive:
            state = json.loads(_member(archive, _STATE))
            _check(state)
            files = _member(archive, _FILES)
            while whole.read(1 << 20):  # the checksum is at the end
                if whole.tell() > 3 * SNAPSHOT_MAX:
                    raise ValueError("it is too long")
            return files, state
    except (tarfile.TarError, KeyError, EOFError, OSError, ValueError, zlib.error, RecursionError) as error:
        raise ValueError(f"this is not a snapshot of a LocalSandbox, or it is damaged: {error}") from error


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is not a file")
    data = file.read(SNAPSHOT_MAX + 1)
    if len(data) > SNAPSHOT_MAX:
        raise ValueError(f"it has more than {SNAPSHOT_MAX} bytes")
    return data


def _check(state: Any) -> None:
    """Raises ValueError if the state was not made by pack_snapshot()."""
    version = state.get("holt_localsandbox") if isinstance(state, dict) else None
    if version != VERSION:
        raise ValueError(f"its version is {version}, and this holt reads version {VERSION}")
    kv, history = state.get("kv"), state.get("history")
    if not isinstance(kv, dict) or not all(isinstance(value, str) for value in kv.values()):
        raise ValueError("its keys and values are not text")
    if not isinstance(history, list) or not all(map(_is_entry, history)):
        raise ValueError("its history is invalid")


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.keys() == _ENTRY.keys() and all(
        isinstance(entry[name], kind) for name, kind in _ENTRY.items()
    )
