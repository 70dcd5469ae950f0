# SPDX-License-Identifier: Apache-2.0
"""Rows of lists: sessions, a session's history, and its audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional


@dataclass(frozen=True)
class HistoryRow:
    """A call in the session's history. Times are in milliseconds since 1970; ended_ms and result are None while the call
    runs."""

    id: int
    name: str
    started_ms: int
    ended_ms: Optional[int]
    params: Optional[Dict[str, Any]]
    result: Optional[Dict[str, Any]]


@dataclass(frozen=True)
class AuditRow:
    """An event of the audit log, such as a denial, kill, grant or connection. at_ms is its time in milliseconds since 1970."""

    id: int
    at_ms: int
    kind: str
    detail: Dict[str, Any]


@dataclass(frozen=True)
class SessionInfo:
    """A session in a listing. state is "live" or "at rest"."""

    name: str
    state: str
