# SPDX-License-Identifier: Apache-2.0
"""A session's memory beside its files: keys and values, which are text."""

from __future__ import annotations

from typing import List, Optional

from ._face import Part
from ._operations import AsyncFace, Steps, SyncFace, operation
from .errors import MissingError


class KvApi(Part):
    """A key has 1 to 1024 bytes, a value up to 1 MiB as a message has it."""

    @operation
    def get(self, key: str, default: Optional[str] = None) -> "Steps[Optional[str]]":
        """The value, or default where there is none."""
        try:
            return str((yield self._ask("kv.get", {"key": key}))["value"])
        except MissingError as error:
            if "no key" not in error.message:  # but no session, for instance
                raise
            return default

    @operation
    def set(self, key: str, value: str) -> "Steps[None]":
        """Sets a key, whether or not it is there."""
        yield self._ask("kv.set", {"key": key, "value": value})

    @operation
    def delete(self, key: str) -> "Steps[bool]":
        """Takes a key away; whether it was there."""
        return bool((yield self._ask("kv.delete", {"key": key}))["deleted"])

    @operation
    def keys(self, prefix: str = "") -> "Steps[List[str]]":
        """All keys that start so, in byte order."""
        found, after = [], None  # type: List[str], Optional[str]
        while True:
            page = yield self._ask("kv.keys", {"prefix": prefix or None, "after": after, "limit": 1000})
            found += page["keys"]
            after = page["next"]
            if after is None:
                return found


class Kv(KvApi, SyncFace):
    """Sandbox.kv"""


class AsyncKv(KvApi, AsyncFace):
    """AsyncSandbox.kv"""
