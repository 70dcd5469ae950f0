# SPDX-License-Identifier: Apache-2.0
"""Calls tools of the host from inside a session.

    from host_tools import call, search

    call("lookup", {"name": "ada"})
    search("find a person")

Clients of the session define the tools and their payloads (holt-serve(1), tools.register). Each process has one connection,
which the calls of all its threads share: any waiting thread reads for all of them.
"""

import json
import math
import os
import re
import socket
import sys
import threading

__all__ = ["call", "search", "link", "ToolResult"]

NAME_WEIGHT, DESCRIPTION_WEIGHT, SCHEMA_WEIGHT = 6.0, 2.0, 1.0
SATURATION, LENGTH_SHARE = 1.2, 0.75  # BM25's k1 and b
NAMED = ("properties", "$defs")  # members of a schema whose keys are names
BRIEF_MAX = 240  # characters of a description


# --- results ---


def _plain(key):
    return key.replace("_", "").replace("-", "").lower()


def _say(text):
    """Prints to stderr, even if the program has replaced sys.stderr."""
    try:
        if sys.stderr is not None:  # otherwise print() would use stdout
            print(f"host_tools: {text}", file=sys.stderr)
    except Exception:
        pass


class ToolResult(dict):
    """A dict that also finds a key by another spelling: result["apiKey"] finds "api_key". It finds the other key only if that
    is the only one with the same text apart from case, dashes and underscores. A note on stderr reports each such use. get()
    and patterns of match work like []; "in", pop() and all other methods use the exact key."""

    def __missing__(self, key):
        if isinstance(key, str):
            found = [k for k in self if isinstance(k, str) and _plain(k) == _plain(key)]
            if len(found) == 1:
                _say(f"the result has no {key!r}; using {found[0]!r}")
                return self[found[0]]
        raise KeyError(key)

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default

    def copy(self):
        return ToolResult(self)


# --- the connection ---


class _Slot:
    """A request that waits for its answer."""

    def __init__(self):
        self.answer = None
        self.waits = False  # its line has been sent
        self.leads = False  # it reads for all slots
        self.wake = threading.Lock()
        self.wake.acquire()


class _Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(None)  # the program may have set another default
        try:
            self.socket.connect(path)
        except BaseException:
            self.socket.close()
            raise
        self.path, self.pid, self.ended = path, os.getpid(), False
        self.sending, self.lock = threading.Lock(), threading.Lock()
        self.slots, self.last_id, self.reading, self.buffer = {}, 0, False, bytearray()

    def ask(self, members):
        slot = _Slot()
        with self.lock:
            self.last_id += 1
            number = self.last_id
        # The id comes first, because the answer to a refused line names it.
        try:
            line = json.dumps({"id": number, **members}, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except RecursionError:
            raise ValueError("the payload nests objects and arrays too deeply") from None
        with self.lock:
            self.slots[number] = slot
        sent = False
        try:
            with self.sending:
                self.socket.sendall(line)
                sent = True
            self._wait(slot)
        except OSError as error:
            self._end()
            raise RuntimeError(f"[internal_error] the bridge is gone: {error}") from None
        except BaseException:  # an interrupt may have cut the line in two
            if not sent or slot.leads:
                self._end()
            raise
        finally:
            with self.lock:
                self.slots.pop(number, None)
        return slot.answer

    def _wait(self, slot):
        with self.lock:
            if slot.answer is not None:
                return
            slot.waits, slot.leads = True, not self.reading
            self.reading = True
        try:
            if not slot.leads:
                slot.wake.acquire()
            if slot.answer is None:
                self._read_until(slot)
        finally:
            with self.lock:
                if slot.leads:
                    self._hand_over(slot)

    def _hand_over(self, slot):
        """Lets the next waiting slot read, if there is one."""
        self.reading = False
        for other in self.slots.values():
            if other is not slot and other.waits and other.answer is None:
                self.reading = other.leads = True
                other.wake.release()
                return

    def _read_until(self, slot):
        while slot.answer is None:
            data = self.socket.recv(1 << 20 if self.buffer else 1 << 16)  # malloc() maps and unmaps a large buffer for each read
            if not data:
                raise ConnectionError("connection closed")
            self.buffer += data
            if b"\n" not in data:
                continue
            *lines, rest = self.buffer.split(b"\n")
            self.buffer = rest
            for line in lines:
                self._take(json.loads(line, object_hook=ToolResult))

    def _take(self, answer):
        if answer.get("id") is None:  # an error about the connection itself
            raise ConnectionError(answer.get("error", {}).get("message", "no answer"))
        with self.lock:
            slot = self.slots.get(answer["id"])
            if slot is None or slot.answer is not None:
                return
            slot.answer = answer
            if not slot.leads:
                slot.wake.release()

    def _end(self):
        """Ends all waiting requests."""
        with self.lock:
            self.ended = True
            slots = [s for s in self.slots.values() if s.answer is None]
            for slot in slots:
                slot.answer = {"error": {"type": "internal_error", "message": "the bridge is gone"}}
                if not slot.leads:
                    slot.wake.release()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


_current = None
_choosing = threading.Lock()


def _after_fork():
    """Drops the parent's connection in a forked child, with its locks: threads that exist only in the parent may hold them."""
    global _current, _choosing
    if _current is not None:
        _current.socket.close()
    _current, _choosing = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _connection():
    global _current
    path = os.environ.get("HOLT_BRIDGE")
    if not path:
        raise RuntimeError("[internal_error] HOLT_BRIDGE is not set: tools can be called only inside a session")
    with _choosing:
        if _current is None or _current.ended or _current.path != path:
            try:
                _current = _Connection(path)
            except OSError as error:
                raise RuntimeError(f"[internal_error] cannot reach the bridge at {path}: {error}") from None
        return _current


def _ask(members):
    answer = _connection().ask({"token": os.environ.get("HOLT_BRIDGE_TOKEN", ""), **members})
    error = answer.get("error")
    if error is not None:
        raise RuntimeError(f"[{error.get('type')}] {error.get('message')}")
    return answer


# --- the public functions ---


def call(name, payload=None):
    """Calls a tool of the host and returns its result.

    payload is a dict of JSON values that the tool's schema checks; the default is an empty one. Raises TypeError or ValueError
    for arguments that cannot be sent. A failed call raises RuntimeError("[type] message"); the types are validation_error,
    permission_error, timeout and internal_error.
    """
    if not isinstance(name, str):
        raise TypeError(f"the tool's name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("the tool's name must not be empty")
    if payload is not None and not isinstance(payload, dict):
        raise TypeError(f"the payload must be a dict, not {type(payload).__name__}")
    return _ask({"call": name, "payload": {} if payload is None else payload})["value"]


def _words(text):
    """Splits a text into words, so that those of getUserName, get_user_name and "user names" can be compared."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text)
    words = (w.lower() for w in re.findall(r"\w+", split))
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words]


def _schema_words(schema, named=False):
    """The words in a schema: its values, and names of properties and definitions, but not JSON Schema's own keywords."""
    if isinstance(schema, dict):
        return [
            w
            for key, value in schema.items()
            for w in (_words(key) if named else []) + _schema_words(value, not named and key in NAMED)
        ]
    if isinstance(schema, list):
        return [w for value in schema for w in _schema_words(value)]
    return _words(schema) if isinstance(schema, str) else []


def _fields(tool):
    return (
        (NAME_WEIGHT, _words(tool["name"])),
        (DESCRIPTION_WEIGHT, _words(tool["description"])),
        (SCHEMA_WEIGHT, _schema_words(tool["input_schema"]) + _schema_words(tool["output_schema"])),
    )


def _rank(query, tools):
    """Ranks tools by BM25 with weighted fields. Returns (score, tool), best first, without tools that share no word with the
    query."""
    fields = [_fields(tool) for tool in tools]
    counts = [{} for _ in tools]  # how often each word occurs, weighted by field and its length
    for place in range(3):
        mean = sum(len(f[place][1]) for f in fields) / len(fields) or 1
        for count, field in zip(counts, fields):
            weight, words = field[place]
            for word in words:
                share = 1 - LENGTH_SHARE + LENGTH_SHARE * len(words) / mean
                count[word] = count.get(word, 0) + weight / share
    ranked = []
    for tool, count in zip(tools, counts):
        score = 0.0
        for word in set(_words(query)):
            having = sum(word in c for c in counts)
            rarity = math.log(1 + (len(tools) - having + 0.5) / (having + 0.5))
            score += rarity * count.get(word, 0) / (SATURATION + count.get(word, 0))
        if score > 0:
            ranked.append((score, tool))
    return sorted(ranked, key=lambda pair: (-pair[0], pair[1]["name"]))


def _brief(text):
    """A description's first paragraph in one line; an ellipsis marks the omitted rest."""
    first, *more = re.split(r"\n\s*\n", text.strip(), maxsplit=1)
    line = " ".join(first.split())
    if len(line) > BRIEF_MAX:
        return line[:BRIEF_MAX].rstrip() + "\u2026"
    return line + " \u2026" if more else line


def link(path, seconds=3600):
    """Makes a link to a file of /mnt/files, and returns its URL, which programs of the host can fetch until it expires.

    seconds is from 60 to 86400. Raises RuntimeError("[permission_error] ...") if the policy does not allow links (bridge.links),
    and RuntimeError("[validation_error] ...") for a path that no link can have.
    """
    return _ask({"link": os.fspath(path), "for_ms": int(seconds * 1000)})["value"]["url"]


def search(query, detail="brief", limit=10):
    """Finds the callable tools that fit the query, best first. An empty query fits none.

    With detail "brief", each has name, description and score; an ellipsis marks a shortened description. With "full", each has
    the whole description, and also input_schema, output_schema and timeout_ms.
    """
    if not isinstance(query, str) or not isinstance(detail, str):
        raise TypeError("query and detail must be str")
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise TypeError(f"limit must be an int, not {type(limit).__name__}")
    if detail not in ("brief", "full"):
        raise ValueError(f'detail must be "brief" or "full", not {detail!r}')
    if limit < 1:
        raise ValueError("limit must be at least 1")
    tools = _ask({"list": True})["tools"]
    found = _rank(query, tools)[:limit] if tools else []
    full = detail == "full"
    more = ("input_schema", "output_schema", "timeout_ms") if full else ()
    return [
        {
            "name": tool["name"],
            "description": tool["description"] if full else _brief(tool["description"]),
            "score": round(score, 4),
            **{key: tool[key] for key in more},
        }
        for score, tool in found
    ]
