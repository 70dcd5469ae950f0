# SPDX-License-Identifier: Apache-2.0
"""Routes of a sandbox: commands use a service with a key of this program."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from holt import PolicyError, Sandbox, UsageError

KEY = "sk-a-real-key-0123456789"


@pytest.fixture
def service() -> "Iterator[tuple[str, list[str]]]":
    """A service that notes which keys it gets, and answers "ok"."""
    seen: "list[str]" = []

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["authorization"])
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
        server.shutdown()
        thread.join()


def test_a_route(service: "tuple[str, list[str]]", monkeypatch: pytest.MonkeyPatch) -> None:
    url, seen = service
    monkeypatch.setenv("ACME_KEY", KEY)
    route = {"name": "acme", "upstream": url, "header": {"authorization": "Bearer {env:ACME_KEY}"}, "allow": ["/v1/*"],
             "env": {"ACME_URL": "{url}", "ACME_KEY": "{token}"}}
    with Sandbox(routes=[route]) as box:
        get = "import os, urllib.request as u\n" \
              "def get(p): return u.urlopen(u.Request(os.environ['ACME_URL'] + p, headers={'authorization': 'Bearer ' + os.environ['ACME_KEY']}))"
        assert box.python(f"{get}\nprint(get('/v1/x').read(), os.environ['ACME_KEY'])").stdout.startswith("b'ok' holt-")
        assert seen == [f"Bearer {KEY}"]
        refused = box.bash('curl -sS -f -H "x: $ACME_KEY" $ACME_URL/v2')
        [denial] = refused.denials
        assert (denial.layer, denial.what, denial.answer) == ("route", "GET /v2 of the route acme", "403")
        assert not denial.grant and "route" in (denial.hint or denial.why_not or "")
        assert [row.detail["status"] for row in box.audit(kind="route")] == [200]


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="routes must be a list"):
        Sandbox(routes="openai")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="is a credential in plain text"):
        Sandbox(routes=[{"name": "acme", "upstream": "https://api.acme.example", "header": {"authorization": "Bearer sk-plain"}}]).bash("true")
