# SPDX-License-Identifier: Apache-2.0
"""Which server answers a method: `holt serve`, or the keeper of the session."""

from __future__ import annotations

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
