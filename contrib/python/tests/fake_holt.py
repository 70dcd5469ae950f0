# SPDX-License-Identifier: Apache-2.0
"""A `holt serve` that is played: conftest.py puts the steps of a test in the place of the word below."""
import json
import sys


def say(message, **more):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message, **more}) + "\n")
    sys.stdout.flush()


waiting = []


def hear(wanted=lambda message: True):
    """The next message that is wanted; others wait for who wants them."""
    for message in waiting:
        if wanted(message):
            waiting.remove(message)
            return message
    while True:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        message = json.loads(line)
        if message.get("method") == "session.connect":
            say({"id": message["id"], "error": {"code": -32601, "message": "none is to be had", "data": {}}})
            continue
        if wanted(message):
            return message
        waiting.append(message)


def request():
    return hear(lambda message: "method" in message)


def value():
    """What a call of a tool was answered."""
    return hear(lambda message: "method" not in message)


def answer(result):
    """The next request; it is answered so."""
    asked = request()
    say({"id": asked["id"], "result": result})
    return asked


def call(name, payload, number="t1", session="s"):
    """Asks for a tool's call, as holt serve does; what it is answered is not waited for."""
    say({"id": number, "method": "tool.call", "params": {
        "session": session, "name": name, "payload": payload, "call": "c" + number, "exec": "p1", "timeout_ms": 30000,
    }})


def echo_forever():
    while True:
        asked = hear()
        if "method" in asked:
            say({"id": asked["id"], "result": asked})


SCRIPT
