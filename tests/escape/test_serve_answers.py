# SPDX-License-Identifier: Apache-2.0
"""holt serve repeats requests whose keeper or reader has ended. Each reply still belongs to its request."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.sessions import Json, RpcError, Sessions, readers, until

SECONDS = 25
NAMES = ("s0", "s1", "s2")
READ = {"files.read": {"path": "/opt/f"}, "files.list": {"path": "/"}, "files.grep": {"path": "/opt", "pattern": "."}}
REST: dict[str, Json] = {
    "session.show": {}, "history.list": {}, "session.remove": {}, "session.create": {}, "session.stop": {},
    "process.spawn": {"argv": ["sleep", "0.05"]},
}


def request(rnd: random.Random) -> tuple[str, Json]:
    name = rnd.choice(NAMES)
    method = rnd.choice([*READ] * 3 + [*REST, "exec"])
    if method == "exec":
        return method, {"session": name, "argv": ["sh", "-c", f"echo {name} >/opt/new; mv /opt/new /opt/f"]}
    return method, {"name" if method == "session.create" else "session": name, **(READ.get(method) or REST.get(method) or {})}


def ask(sessions: Sessions, seed: int, end: float) -> None:
    """Sends requests together. Every reply is checked against the schema of its method (lib/openrpc.py)."""
    rnd = random.Random(seed)
    while time.monotonic() < end:
        with sessions.serve() as rpc:
            calls = [request(rnd) for _ in range(rnd.randint(1, 25))]
            for number, (method, params) in zip(rpc.send_together(*calls), calls):
                try:
                    answer = rpc.result(number)
                except RpcError:
                    continue
                if method == "files.read":
                    assert answer["content"] == params["session"] + "\n"


@pytest.mark.slow
@pytest.mark.identities("user")
def test_each_reply_belongs_to_its_request(sessions: Sessions) -> None:
    """Clients create, use, stop and remove the same few sessions."""
    end = time.monotonic() + SECONDS
    with ThreadPoolExecutor(4) as pool:
        for work in [pool.submit(ask, sessions, seed, end) for seed in range(4)]:
            work.result()
    until(lambda: not readers(), "no reader is left")
