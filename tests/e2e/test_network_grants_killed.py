# SPDX-License-Identifier: Apache-2.0
"""Grants while a process is killed that carries them out: afterwards, each grant is in force and stored, or neither."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time

import pytest

from lib.leaks import descendants
from lib.netlab import holt, lab  # noqa: F401
from lib.sessions import RpcError, Session, Sessions, alive, until
from lib.tools import needs

pytestmark = needs("python3")

VICTIMS = ("keeper", "holt-egress", "maker")
GRANTS = 60  # More than there is time for.
LATEST = 0.06  # Seconds after the first grant at which the victim is killed, at most.

CONNECTS = """
import json, socket, sys
def reached(host):
    try: socket.create_connection((host, 80), timeout=20).close()
    except OSError: return False
    return True
print(json.dumps({host: reached(host) for host in sys.argv[1:]}))
"""


def victims(session: Session) -> dict[str, int]:
    keeper = session.keeper()
    serving = {process.pid: process.parent for process in descendants(keeper) if process.name == "holt-egress"}
    (egress,) = (pid for pid, parent in serving.items() if parent == keeper)
    (maker,) = (pid for pid, parent in serving.items() if parent == egress)
    return {"keeper": keeper, "holt-egress": egress, "maker": maker}


def grant_until_killed(session: Session, victim: int, after: float) -> dict[str, bool | None]:
    """Returns the hosts for which grants were asked: whether the grant was made, or None if nobody could tell."""
    told: dict[str, bool | None] = {}

    def kill() -> None:
        time.sleep(after)
        os.kill(victim, signal.SIGKILL)

    with session.sessions.serve() as rpc:
        rpc.call("session.start", session="w")
        killing = threading.Thread(target=kill)
        killing.start()
        last = False
        for n in range(GRANTS):
            last = not killing.is_alive()
            host = f"g{n}.wild.example.com"
            try:
                rpc.call("session.allow", session="w", grants=[f"net:{host}:80"])
                told[host] = True
            except RpcError as error:
                told[host] = None if "has ended" in error.message else False
            if last:
                break
        killing.join()
    return told


def reached(session: Session, hosts: dict[str, bool | None]) -> set[str]:
    answers = json.loads(session.exec("python3", "-c", CONNECTS, *hosts).ok().out)
    return {host for host, answer in answers.items() if answer}


def attack(sessions: Sessions, name: str, after: float) -> None:
    session = sessions.create("w", "--net", "web.example.org:80")
    session.out("true")
    victim = victims(session)[name]
    told = grant_until_killed(session, victim, after)
    until(lambda: not alive([victim]), "the victim has ended")
    stored = {rule.removesuffix(":80") for rule in session.show()["network"]["allow"]} - {"web.example.org"}

    assert all(made is None or made == (host in stored) for host, made in told.items()), (told, stored)
    assert stored <= told.keys()
    if name != "keeper":
        until(lambda: not reached(session, {"web.example.org": None}), "the network is gone")
        assert not reached(session, told)
    session.stop()
    assert reached(session, told) == stored
    sessions(["rm", "w"]).ok()


@pytest.mark.parametrize("rounds", (1, pytest.param(15, marks=pytest.mark.slow)))
@pytest.mark.parametrize("name", VICTIMS)
def test_a_grant_is_in_force_and_stored_or_neither(name: str, rounds: int, sessions: Sessions) -> None:
    for _ in range(rounds):
        attack(sessions, name, random.uniform(0, LATEST))
