# SPDX-License-Identifier: Apache-2.0
"""Warnings that name the caller's own line."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Optional

_PACKAGE = __name__.partition(".")[0]


def warn(message: str) -> None:
    """Issues a RuntimeWarning for the line that has called this package."""
    level = 2
    frame: Optional[FrameType] = sys._getframe(1)
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)
