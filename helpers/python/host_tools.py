# SPDX-License-Identifier: Apache-2.0
"""Tools of the host, called from inside a session.

    from host_tools import call, search

    call("lookup", {"name": "ada"})
    search("find a person")

What they are and what they take, clients of the session say (holt-serve(1), tools.register). Each process has one
connection, on which the calls of all its threads go on at the same time: whichever thread waits reads for all.
"""

import json
import math
import os
import re
import socket
import sys
import threading

__all__ = ["call", "search", "ToolResult"]

NAME_WEIGHT, DESCRIPTION_WEIGHT, SCHEMA_WEIGHT = 6.0, 2.0, 1.0
SATURATION, LENGTH_SHARE = 1.2, 0.75  # BM25's k1 and b
NAMED = ("properties", "$defs")  # of a schema
BRIEF_MAX = 240  # characters of a description


# --- results ---


def _plain(key):
    return key.replace("_", "").replace("-", "").lower()


def _say(text):
    """On stderr, whatever the program has made of it."""
    try:
        if sys.stderr is not None:  # print() would take stdout
            print(f"host_tools: {text}", file=sys.stderr)
    except Exception:
        pass


class ToolResult(dict):
    """A dict in which a key is found as well by another spelling of it: result["apiKey"] finds "api_key", where it is
    the only one that differs by no more than case, dashes and underscores. It says so on stderr. get() does as [] does,
    and a pattern of match by it; "in", pop() and the rest take a key as it is."""

    def __missing__(self, key):
        if isinstance(key, str):
            found = [k for k in self if isinstance(k, str) and _plain(k) == _plain(key)]
            if len(found) == 1:
                _say(f"the result has no {key!r}; taken for {found[0]!r}")
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
        self.leads = False  # it reads for all
        self.wake = threading.Lock()
        self.wake.acquire()


class _Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(None)  # whatever the program's default is
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
        # The id comes first: a line that is refused as a whole is answered by it.
        try:
            line = json.dumps({"id": number, **members}, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except RecursionError:
            raise ValueError("the payload has too many objects and arrays in each other") from None
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
            raise RuntimeError(f"[internal_error] the bridge has gone: {error}") from None
        except BaseException:  # an interrupt, which may have cut a line in two
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
        """The next that waits reads on, if there is one."""
        self.reading = False
        for other in self.slots.values():
            if other is not slot and other.waits and other.answer is None:
                self.reading = other.leads = True
                other.wake.release()
                return

    def _read_until(self, slot):
        while slot.answer is None:
            data = self.socket.recv(1 << 20 if self.buffer else 1 << 16)  # the larger one is mapped anew each time
            if not data:
                raise ConnectionError("it was closed")
            self.buffer += data
            if b"\n" not in data:
                continue
            *lines, rest = self.buffer.split(b"\n")
            self.buffer = rest
            for line in lines:
                self._take(json.loads(line, object_hook=ToolResult))

    def _take(self, answer):
        if answer.get("id") is None:  # about the connection
            raise ConnectionError(answer.get("error", {}).get("message", "no answer"))
        with self.lock:
            slot = self.slots.get(answer["id"])
            if slot is None or slot.answer is not None:
                return
            slot.answer = answer
            if not slot.leads:
                slot.wake.release()

    def _end(self):
        """For all that wait."""
        with self.lock:
            self.ended = True
            slots = [s for s in self.slots.values() if s.answer is None]
            for slot in slots:
                slot.answer = {"error": {"type": "internal_error", "message": "the bridge has gone"}}
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
    """The parent's connection is not ours, and its locks may be held by threads that are not here."""
    global _current, _choosing
    if _current is not None:
        _current.socket.close()
    _current, _choosing = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _connection():
    global _current
    path = os.environ.get("HOLT_BRIDGE")
    if not path:
        raise RuntimeError("[internal_error] HOLT_BRIDGE is not set: tools are called from inside a session")
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


# --- what programs use ---


def call(name, payload=None):
    """Calls a tool of the host and returns what it returns.

    payload: a dict that can be JSON, checked by the tool's schema; an empty one without it. Raises TypeError or
    ValueError for arguments that can't be sent, and RuntimeError("[type] message") for a call that failed, type being
    validation_error, permission_error, timeout or internal_error.
    """
    if not isinstance(name, str):
        raise TypeError(f"a tool's name is a str, not {type(name).__name__}")
    if not name:
        raise ValueError("a tool's name is not empty")
    if payload is not None and not isinstance(payload, dict):
        raise TypeError(f"a payload is a dict, not {type(payload).__name__}")
    return _ask({"call": name, "payload": {} if payload is None else payload})["value"]


def _words(text):
    """Of any text: getUserName, get_user_name and "user names" have words in common."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text)
    words = (w.lower() for w in re.findall(r"\w+", split))
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words]


def _schema_words(schema, named=False):
    """Its values' and, in those that are named, the names': not those that each schema has."""
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
    """BM25 with weighted fields: (score, tool), the best first; those that have no word of the query are left out."""
    fields = [_fields(tool) for tool in tools]
    counts = [{} for _ in tools]  # how often a word is there, weighted and by the field's length
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
    """A description's first paragraph in one line; an ellipsis stands for what is left out."""
    first, *more = re.split(r"\n\s*\n", text.strip(), maxsplit=1)
    line = " ".join(first.split())
    if len(line) > BRIEF_MAX:
        return line[:BRIEF_MAX].rstrip() + "\u2026"
    return line + " \u2026" if more else line


def search(query, detail="brief", limit=10):
    """The tools that may be called from here and fit the query, the best first.

    detail "brief": name, description (of a long one the beginning, with an ellipsis), score; "full": the whole
    description, input_schema, output_schema and timeout_ms as well.
    """
    if not isinstance(query, str) or not isinstance(detail, str):
        raise TypeError("query and detail are str")
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise TypeError(f"limit is an int, not {type(limit).__name__}")
    if not query.strip():
        raise ValueError("query is empty")
    if detail not in ("brief", "full"):
        raise ValueError(f'detail is "brief" or "full", not {detail!r}')
    if limit < 1:
        raise ValueError("limit is at least 1")
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
