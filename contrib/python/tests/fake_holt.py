# SPDX-License-Identifier: Apache-2.0
"""A fake `holt serve`: conftest.py replaces the word below by the steps of a test."""
import json
import sys


def say(message, **more):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message, **more}) + "\n")
    sys.stdout.flush()


waiting = []


def hear(wanted=lambda message: True):
    """Returns the next matching message. Other messages are kept for later calls."""
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
    """Returns the reply to a call of a tool."""
    return hear(lambda message: "method" not in message)


def answer(result):
    """Replies to the next request, and returns it."""
    asked = request()
    say({"id": asked["id"], "result": result})
    return asked


def call(name, payload, number="t1", session="s"):
    """Requests a call of a tool, like holt serve, and does not wait for the reply."""
    say({"id": number, "method": "tool.call", "params": {
        "session": session, "name": name, "payload": payload, "call": "c" + number, "exec": "p1", "timeout_ms": 30000,
    }})


def echo_forever():
    while True:
        asked = hear()
        if "method" in asked:
            say({"id": asked["id"], "result": asked})


SCRIPT
