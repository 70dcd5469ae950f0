# SPDX-License-Identifier: Apache-2.0
"""The errors of requests whose server hangs, has ended or is not started."""

from __future__ import annotations

from typing import Any, Mapping

from .errors import NoProcessError, SetupError

AGAIN = "Repeat the request; it starts holt serve again. Sessions and their files are still there."


def hangs(who: str) -> TimeoutError:
    return TimeoutError(f"{who} does not answer; reply_timeout= of Server sets how long to wait for it")


def gone(session: str) -> SetupError:
    return SetupError(
        f'the keeper of session "{session}" has ended', hint="Repeat the request; holt then starts the session again.", data={"gone": True}
    )


def at_rest(session: str, params: Mapping[str, Any]) -> NoProcessError:
    return NoProcessError(
        f"process {params.get('id')!r} does not exist, because the session {session!r} is at rest",
        hint="history() shows how its commands ended.",
    )
