# SPDX-License-Identifier: Apache-2.0
"""Times, given as numbers of seconds or as text with a unit."""

from __future__ import annotations

import contextlib
import math
import re
from typing import Any, Optional, Union

from .errors import UsageError

Time = Union[str, int, float]
"""Seconds, or text with a unit, such as "500ms" or "10m". A text without a unit has seconds, too."""

_UNITS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""The units of the command line in seconds; see str_to_usec() in runner/base/strings.c."""

_TEXT = re.compile(r"([0-9]+(?:\.[0-9]{1,6})?)([a-z]*)", re.A)


def _seconds_of_text(text: str) -> Optional[float]:
    if text == "none":
        return math.inf
    match = _TEXT.fullmatch(text)
    return float(match[1]) * _UNITS[match[2]] if match and match[2] in _UNITS else None


def seconds_of(value: Any) -> Optional[float]:
    """Returns a timeout as seconds; None: no limit. Raises UsageError for anything that is not a time."""
    if value is None:
        return None
    seconds: Optional[float] = None
    if isinstance(value, str):
        seconds = _seconds_of_text(value)
    else:
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            seconds = float(value)
    if seconds == math.inf:
        return None
    if seconds is None or not math.isfinite(seconds):
        raise UsageError(
            f"a timeout must be a number of seconds or text with a unit, not {value!r}",
            hint='Write 1.5, "500ms", "10s", "2m" or "1h". The units are us, ms, s, m, h and d; "none" means no limit.',
        )
    return seconds


def milliseconds_of(time: Optional[Time]) -> Optional[int]:
    """Returns a timeout in milliseconds. 0 or less becomes 1 ms, so that the command ends at once."""
    seconds = seconds_of(time)
    return None if seconds is None else max(1, round(seconds * 1000))
