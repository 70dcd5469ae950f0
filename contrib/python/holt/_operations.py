# SPDX-License-Identifier: Apache-2.0
"""One text for both faces of the SDK.

Theory of operation. What a method does is written once, as a generator that yields futures (concurrent.futures) and
gets their results: most of them are replies (_connection.py). A SyncFace waits for each future in the caller's thread;
an AsyncFace awaits it in the caller's event loop. No other code knows which of both it serves, and neither face holds a
thread while it waits.

What is to be undone when the caller gives up (Ctrl-C, a cancelled task) is undone by the generator: the exception is
raised in it where it waits.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import types
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, Generator, Generic, Optional, Type, TypeVar, Union, overload

from ._request import Request

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
else:
    P = TypeVar("P")

T = TypeVar("T")

PROMPT = frozenset(("kv.get", "kv.keys"))
"""Methods that a keeper answers at once, sooner than an event loop turns."""

Steps = Generator["Union[Future[Any], Request]", Any, T]


class SyncFace:
    """Its operations return when they are done."""


class AsyncFace:
    """Its operations are awaited."""


def drive(steps: "Steps[T]") -> T:
    """Takes all the steps, and waits in this thread."""
    try:
        future = next(steps)
        while True:
            try:
                value = future.result()
            except BaseException as error:
                future = steps.throw(error)
            else:
                future = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        steps.close()


def _awaitable(future: "Union[Future[Any], Request]") -> "asyncio.Future[Any]":
    if isinstance(future, Request):
        return future.in_loop(asyncio.get_running_loop())
    return asyncio.wrap_future(future)


async def drive_async(steps: "Steps[T]") -> T:
    """Takes all the steps, and lets the event loop go on meanwhile."""
    try:
        future = next(steps)
        while True:
            try:
                if isinstance(future, Request) and future.method in PROMPT and future.connection:
                    future.connection.read_soon(future)
                value = future.result() if future.done() else await _awaitable(future)
            except BaseException as error:
                future = steps.throw(error)
            else:
                future = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        steps.close()


class operation(Generic[P, T]):
    """Makes a method of both faces from its steps.

    `Class.method.steps(self, ...)` are the bare steps, for another operation to take by `yield from`.
    """

    def __init__(self, steps: "Callable[Concatenate[Any, P], Steps[T]]") -> None:
        self.steps = steps
        functools.update_wrapper(self, steps)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return drive(steps(self, *args, **kwargs))

        async def method_async(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await drive_async(steps(self, *args, **kwargs))

        self._sync, self._async = _disguised(method, steps), _disguised(method_async, steps)

    @overload
    def __get__(self, instance: None, owner: Type[AsyncFace]) -> "Callable[Concatenate[Any, P], Awaitable[T]]": ...
    @overload
    def __get__(self, instance: None, owner: Type[SyncFace]) -> "Callable[Concatenate[Any, P], T]": ...
    @overload
    def __get__(self, instance: None, owner: Any = None) -> "operation[P, T]": ...
    @overload
    def __get__(self, instance: AsyncFace, owner: Any = None) -> "Callable[P, Awaitable[T]]": ...
    @overload
    def __get__(self, instance: SyncFace, owner: Any = None) -> "Callable[P, T]": ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        face = owner if instance is None else type(instance)
        if instance is None and not issubclass(face, (AsyncFace, SyncFace)):
            return self
        function = self._async if issubclass(face, AsyncFace) else self._sync
        return function if instance is None else types.MethodType(function, instance)


def _result_hint(hint: Any) -> Any:
    """What the steps return in the end: of "Steps[int]" it is "int"."""
    text = str(hint).strip("'\"")
    return text[len("Steps[") : -1] if text.startswith("Steps[") else hint


def _disguised(method: Callable[..., Any], steps: Callable[..., Any]) -> Callable[..., Any]:
    """As if it had been written where its steps are: its name, text, hints and parameters, for help() and for who makes
    a tool of it."""
    hints: Dict[str, Any] = dict(steps.__annotations__)
    hints["return"] = _result_hint(hints.get("return"))
    functools.update_wrapper(method, steps)
    method.__annotations__ = hints
    method.__signature__ = inspect.signature(steps).replace(  # type: ignore[attr-defined]
        return_annotation=hints["return"]
    )
    method.steps = steps  # type: ignore[attr-defined]
    return method


F = TypeVar("F", bound=Callable[..., Any])


def host_only(*names: str) -> "Callable[[F], F]":
    """Marks parameters that a program may give, but no code inside and no model: see Tool.of()."""

    def mark(steps: F) -> F:
        steps.host_only = names  # type: ignore[attr-defined]
        return steps

    return mark


def done(value: Optional[T] = None) -> "Future[Optional[T]]":
    """A future that has its result."""
    future: Future[Optional[T]] = Future()
    future.set_result(value)
    return future
