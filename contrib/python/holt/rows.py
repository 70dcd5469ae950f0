# SPDX-License-Identifier: Apache-2.0
"""What lists have: of sessions, of a session's history, of its audit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class HistoryRow:
    """A call that the session has had; times in ms since 1970, ended_ms None while it goes on."""

    id: int
    name: str
    started_ms: int
    ended_ms: Optional[int]
    params: Any
    result: Any


@dataclass(frozen=True)
class AuditRow:
    """Something that was refused, killed, limited or granted; at_ms since 1970."""

    id: int
    at_ms: int
    kind: str
    detail: Any


@dataclass(frozen=True)
class SessionInfo:
    """state is "live" or "at rest"."""

    name: str
    state: str


def parsed(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:  # cut to what a row may have
        return text
