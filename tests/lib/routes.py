# SPDX-License-Identifier: Apache-2.0
"""Policies with routes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lib.identity import Identity
from lib.upstream import KEY

WITH_KEY = {"ACME_KEY": KEY}

MakePolicy = Callable[..., Path]


def acme(service: str, **members: Any) -> "dict[str, Any]":
    """Returns the route acme to the URL, with the variable ACME_KEY as its credential."""
    return {"name": "acme", "upstream": service, "header": {"authorization": "Bearer {env:ACME_KEY}"},
            "env": {"ACME_URL": "{url}", "ACME_TOKEN": "{token}", "ACME_AT": "{address}"}, **members}


def policy_maker(place: Path, identity: Identity, service: str, **always: Any) -> MakePolicy:
    """Returns a function that writes a policy with the route acme, and returns its path.

    always   members of the route
    """

    def make(network: Any = None, **members: Any) -> Path:
        path = place / "policy.json"
        document = {"holt": 1, "bridge": {"routes": [acme(service, **{**always, **members})]}, **({"network": network} if network else {})}
        path.write_text(json.dumps(document))
        return identity.own(path)

    return make


# The shadow memory of a sanitizer has terabytes, and nothing that a program has stored.
_SHADOW = 1 << 36


def memory(pid: int) -> bytes:
    """Returns the writable memory of a process. The test must run as root."""
    found = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("rw") and end - start < _SHADOW:
                mem.seek(start)
                found += mem.read(end - start)
    return found
