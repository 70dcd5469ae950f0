# SPDX-License-Identifier: Apache-2.0
"""The errors of requests whose server hangs or has ended."""

from __future__ import annotations

from .errors import SetupError

AGAIN = "Repeat the request; it starts holt serve again. Sessions and their files are still there."


def hangs(who: str) -> TimeoutError:
    return TimeoutError(f"{who} does not answer; reply_timeout= of Server sets how long to wait for it")


def gone(session: str) -> SetupError:
    return SetupError(
        f'the keeper of session "{session}" has ended', hint="Repeat the request; holt then starts the session again.", data={"gone": True}
    )
