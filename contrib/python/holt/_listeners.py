# SPDX-License-Identifier: Apache-2.0
"""Listeners: the functions that get the notifications of a server."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

Note = Callable[[Mapping[str, Any]], None]

ANY = ""
"""The id of a listener that gets the notifications about all ids without a listener of their own."""


class Listeners:
    """Functions that get notifications, by the method, the session and the id in them.

    want  is called with a session and 1 before its first notification of a kind may come, and with -1 after the last one
    """

    def __init__(self, want: Callable[[str, int], None]) -> None:
        self._want, self._lock = want, threading.Lock()
        self._notes: Dict[Tuple[str, str, str], Tuple[Note, ...]] = {}

    def add(self, method: str, session: str, name: str, note: Note) -> None:
        """Adds a listener: note is called with each notification of the method about the id (name), in the reader's
        thread."""
        key = method, session, name
        with self._lock:
            before = self._notes.get(key, ())
            self._notes[key] = (*before, note)
        if not before:
            self._want(session, 1)

    def remove(self, method: str, session: str, name: str, note: Optional[Note] = None) -> None:
        """Removes a listener, or all listeners of this kind if note is None."""
        key = method, session, name
        with self._lock:
            before = self._notes.pop(key, ())
            left = tuple(each for each in before if note is not None and each != note)
            if left:
                self._notes[key] = left
        if before and not left:
            self._want(session, -1)

    def count(self, session: str) -> int:
        """The number of kinds of notifications that the session's listeners wait for."""
        with self._lock:
            return sum(session == each for _, each, _ in self._notes)

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Passes a notification on."""
        session = params.get("session", "")
        with self._lock:
            notes = self._notes.get((method, session, params.get("id", ""))) or self._notes.get((method, session, ANY))
        for note in notes or ():
            note(params)

    def lose(self, session: Optional[str]) -> None:
        """Tells the listeners of a session, or of all sessions if None, that no more notifications will come."""
        with self._lock:
            lost = [key for key in self._notes if session in (None, key[1])]
            notes = [note for key in lost for note in self._notes.pop(key)]
        for note in notes:
            note({"lost": True})
