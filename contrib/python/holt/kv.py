# SPDX-License-Identifier: Apache-2.0
"""A session's memory beside its files: keys, which are text, and values, which are text or any bytes."""

from __future__ import annotations

import binascii
from typing import List, Optional

from ._face import Content, Part, as_bytes, encoded
from ._operations import AsyncFace, Steps, SyncFace, operation
from .errors import MissingError


class KvApi(Part):
    """A key has 1 to 1024 bytes, a value up to 1 MiB as a message has it: bytes are a third longer there."""

    @operation
    def get(self, key: str, default: Optional[str] = None) -> "Steps[Optional[str]]":
        """The value as text, or default where there is none. Raises UnicodeDecodeError where it is no UTF-8."""
        value = yield from self._value(key)
        return default if value is None else value.decode()

    @operation
    def get_bytes(self, key: str, default: Optional[bytes] = None) -> "Steps[Optional[bytes]]":
        """The value, or default where there is none."""
        value = yield from self._value(key)
        return default if value is None else value

    def _value(self, key: str) -> "Steps[Optional[bytes]]":
        try:
            return binascii.a2b_base64((yield self._ask("kv.get", {"key": key, "base64": True}))["value"])
        except MissingError as error:
            if "no key" not in error.message:  # but no session, for instance
                raise
            return None

    @operation
    def set(self, key: str, value: Content) -> "Steps[None]":
        """Sets a key, whether or not it is there, to text or bytes."""
        if isinstance(value, str):
            yield self._ask("kv.set", {"key": key, "value": value})
        else:
            yield self._ask("kv.set", {"key": key, "base64": encoded(as_bytes(value))})

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
