# SPDX-License-Identifier: Apache-2.0
"""The key-value store of a session. Keys are text; values are text or bytes."""

from __future__ import annotations

import binascii
from typing import List, Optional

from ._face import Content, Part, as_bytes, encoded
from ._operations import AsyncFace, Steps, SyncFace, operation
from .errors import NoKeyError


class KvApi(Part):
    """A key has 1 to 1024 bytes. A value must fit in a message of 1 MiB: nearly 1 MiB of text, or 760 KiB of
    bytes."""

    @operation
    def get(self, key: str, default: Optional[str] = None) -> "Steps[Optional[str]]":
        """Returns a value as text, or default if the key is missing. Raises UnicodeDecodeError if it is not UTF-8."""
        try:
            answer = yield self._server.ask(self._session, "kv.get", {"key": key, "base64": True})
        except NoKeyError:
            return default
        return binascii.a2b_base64(answer["value"]).decode()

    @operation
    def get_bytes(self, key: str, default: Optional[bytes] = None) -> "Steps[Optional[bytes]]":
        """Returns a value as bytes, or default if the key is missing."""
        try:
            answer = yield self._server.ask(self._session, "kv.get", {"key": key, "base64": True})
        except NoKeyError:
            return default
        return binascii.a2b_base64(answer["value"])

    @operation
    def set(self, key: str, value: Content) -> "Steps[None]":
        """Sets a key to text or bytes. An existing value is replaced."""
        if isinstance(value, str):
            yield self._ask("kv.set", {"key": key, "value": value})
        else:
            yield self._ask("kv.set", {"key": key, "base64": encoded(as_bytes(value))})

    @operation
    def delete(self, key: str) -> "Steps[bool]":
        """Removes a key. Returns whether it existed."""
        return bool((yield self._ask("kv.delete", {"key": key}))["deleted"])

    @operation
    def keys(self, prefix: str = "") -> "Steps[List[str]]":
        """Returns all keys that start with prefix, in byte order."""
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
