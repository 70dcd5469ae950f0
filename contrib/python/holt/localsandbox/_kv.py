# SPDX-License-Identifier: Apache-2.0
"""LocalSandbox.kv."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional, TypeVar

from .._operations import Steps, drive, drive_async

T = TypeVar("T")


def check_text(what: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be str, not {type(value).__name__}")


class KVStore:
    """LocalSandbox.kv: a store of text values. It is in this object's memory, so only snapshots limit its size."""

    def __init__(self, ready: "Callable[[], Steps[None]]") -> None:
        self._ready = ready
        self._lock = threading.Lock()
        self._values: Dict[str, str] = {}

    def _run(self, what: Callable[[], T]) -> "Steps[T]":
        yield from self._ready()
        with self._lock:
            return what()

    def _get(self, key: str) -> "Steps[Optional[str]]":
        check_text("a key", key)
        return (yield from self._run(lambda: self._values.get(key)))

    def _set(self, key: str, value: str) -> "Steps[None]":
        check_text("a key", key)
        check_text("a value", value)
        yield from self._run(lambda: self._values.__setitem__(key, value))

    def _delete(self, key: str) -> "Steps[None]":
        check_text("a key", key)
        yield from self._run(lambda: self._values.pop(key, None))

    def _keys(self, prefix: str) -> "Steps[List[str]]":
        check_text("a prefix", prefix)
        return (yield from self._run(lambda: sorted(k for k in self._values if k.startswith(prefix))))

    def _copy(self) -> Dict[str, str]:
        """Returns all keys and values, for a snapshot."""
        with self._lock:
            return dict(self._values)

    def _update(self, values: Dict[str, str]) -> None:
        """Adds the keys and values of a snapshot."""
        with self._lock:
            self._values.update(values)

    def get(self, key: str) -> Optional[str]:
        """Returns a value, or None."""
        return drive(self._get(key))

    def set(self, key: str, value: str) -> None:
        """Sets a key. An existing value is replaced."""
        drive(self._set(key, value))

    def delete(self, key: str) -> None:
        """Removes a key, if it exists."""
        drive(self._delete(key))

    def keys(self, prefix: str = "") -> List[str]:
        """Returns the keys that start with prefix, sorted."""
        return drive(self._keys(prefix))

    async def aget(self, key: str) -> Optional[str]:
        return await drive_async(self._get(key))

    async def aset(self, key: str, value: str) -> None:
        await drive_async(self._set(key, value))

    async def adelete(self, key: str) -> None:
        await drive_async(self._delete(key))

    async def akeys(self, prefix: str = "") -> List[str]:
        return await drive_async(self._keys(prefix))
