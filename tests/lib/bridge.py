# SPDX-License-Identifier: Apache-2.0
"""A client of a session that offers tools. It answers their calls while it waits for another reply."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from lib.sandbox import HANGS
from lib.sessions import Json, Rpc, RpcError

Handler = Callable[[Json], Any]

LATER = object()  # the return value of a handler that answers later, or never
OPEN: Json = {"type": "object"}  # a schema that takes any payload


class Refused(Exception):
    """An error of a handler, with its data."""

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.data = data


class Host:
    """more holds parameters of each request, such as session for holt serve."""

    def __init__(self, rpc: Rpc, more: Json) -> None:
        self.rpc, self.more = rpc, more
        self.handlers: dict[str, Handler] = {}
        self.calls: list[Json] = []  # all calls so far: {"id", "params"}

    def call(self, method: str, **params: Any) -> Json:
        return self.rpc.call(method, **self.more, **params)

    def send(self, method: str, **params: Any) -> int:
        return self.rpc.send(method, **self.more, **params)

    def refused(self, method: str, **params: Any) -> RpcError:
        return self.rpc.refused(method, **self.more, **params)

    def tool(self, name: str, handler: Handler, schema: Json = OPEN, **members: Any) -> None:
        members = {"description": f"The tool {name}.", **members}
        self.call("tools.register", name=name, input_schema=schema, **members)
        self.handlers[name] = handler

    def answer(self, call: Json, **members: Any) -> None:
        self.rpc.raw(json.dumps({"jsonrpc": "2.0", "id": call["id"], **members}).encode() + b"\n")

    def _serve(self) -> None:
        for note in [n for n in self.rpc.notes if n["method"] == "tool.call"]:
            self.rpc.notes.remove(note)
            self.calls.append(note)
            try:
                value = self.handlers[note["params"]["name"]](note["params"]["payload"])
            except Refused as error:
                self.answer(note, error={"code": -1, "message": str(error), "data": error.data})
            else:
                if value is not LATER:
                    self.answer(note, result={"value": value})

    def until(self, condition: Callable[[], Any], what: str, timeout: float = HANGS) -> Any:
        """Serves calls until the condition holds."""
        deadline = time.monotonic() + timeout
        self._serve()
        while not (value := condition()):
            assert time.monotonic() < deadline, f"never: {what}"
            self.rpc.read(deadline - time.monotonic())
            self._serve()
        return value

    def result(self, number: int) -> Json:
        self.until(lambda: number in self.rpc._answers, "an answer")
        return self.rpc.result(number)

    def run(self, method: str, **params: Any) -> Json:
        """Returns the result of a request whose code calls the client's tools."""
        return self.result(self.send(method, **params))

    def python(self, code: str, **params: Any) -> Json:
        return self.run("python.run", code=f"from host_tools import call, search\n{code}", **params)

    def sh(self, script: str, **params: Any) -> Json:
        return self.run("exec", shell=script, **params)
