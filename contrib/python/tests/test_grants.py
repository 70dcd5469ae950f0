# SPDX-License-Identifier: Apache-2.0
"""Grants to a sandbox that runs."""

from __future__ import annotations

import json

import pytest

from holt import Sandbox, Server, UsageError


def test_allow_a_host() -> None:
    with Sandbox(net=["example.org:80"]) as box:
        box.bash("true")
        box.allow("net:example.com:443", "net:@npm")

        granted = [json.loads(row.detail)["grant"] if isinstance(row.detail, str) else row.detail["grant"] for row in box.audit()]
        assert sorted(granted) == ["net:@npm", "net:example.com:443"]


def test_a_grant_that_is_none(box: Sandbox) -> None:
    with pytest.raises(UsageError, match="not a grant"):
        box.allow("example.org:443")


def test_a_sandbox_at_rest_gets_a_grant_without_a_start(holt: str) -> None:
    with Server(holt) as server, Sandbox("lasting", net=["example.org:80"], server=server) as box:
        box.bash("true")
        box.stop()

        box.allow("net:example.com:443")
        assert box.show()["state"] == "at rest"
        assert box.show()["network"]["allow"] == ["example.org:80", "example.com:443"]
        box.remove()
