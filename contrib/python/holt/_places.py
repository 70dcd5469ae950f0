# SPDX-License-Identifier: Apache-2.0
"""Which server answers a method: `holt serve`, or the keeper of the session."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

OF_SERVE = frozenset(
    f"session.{verb}" for verb in ("create", "list", "remove", "rebind", "set_tier", "stop", "connect")
) | {"route.add"}
"""Methods that only holt serve has; session.stop, which must not start a session at rest; and route.add, for which holt serve
sends the credential along."""

AT_REST = frozenset(
    (
        "session.show", "session.allow", "process.list", "kv.get", "kv.keys", "history.list", "audit.list", "mount.list",
        "mount.download", "tools.list", "route.list", "route.remove",
        *(f"files.{verb}" for verb in ("read", "open", "list", "glob", "grep", "stat", "exists")),
    )
)
"""Methods that only read or store. holt serve answers them without starting a session at rest."""

RESTING: Mapping[str, Optional[Dict[str, Any]]] = {
    "process.kill": {"killed": False},
    "process.unwatch": {},
    "python.interrupt": {"interrupted": False},
    "shell.interrupt": {"interrupted": False},
    **dict.fromkeys(f"process.{verb}" for verb in ("wait", "watch", "signal", "write", "close_stdin", "resize")),
}
"""Methods about what runs in a session. They do not start a session at rest, where nothing runs: their result is then this,
or, if None, a NoProcessError."""
