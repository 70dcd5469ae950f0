# SPDX-License-Identifier: Apache-2.0
"""One text for both faces of the SDK.

Theory of operation. What a method does is written once, as a generator that yields futures (concurrent.futures) and
gets their results: most of them answers of holt serve, which one thread reads (see _server.py). A SyncFace waits for
each future in the caller's thread; an AsyncFace awaits it in the caller's event loop. No other code knows which of
both it serves, and neither face holds a thread while it waits.

What is to be undone when the caller gives up (Ctrl-C, a cancelled task) is undone by the generator: the exception is
raised in it where it waits.
"""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Generator, Generic, Optional, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
else:
    P = TypeVar("P")

T = TypeVar("T")

Steps = Generator["Future[Any]", Any, T]


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


async def drive_async(steps: "Steps[T]") -> T:
    """Takes all the steps, and lets the event loop go on meanwhile."""
    try:
        future = next(steps)
        while True:
            try:
                value = await asyncio.wrap_future(future)
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

    @overload
    def __get__(self, instance: None, owner: Any = None) -> "operation[P, T]": ...
    @overload
    def __get__(self, instance: AsyncFace, owner: Any = None) -> "Callable[P, Awaitable[T]]": ...
    @overload
    def __get__(self, instance: SyncFace, owner: Any = None) -> "Callable[P, T]": ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        driver: Callable[[Any], Any] = drive_async if isinstance(instance, AsyncFace) else drive

        def method(*args: Any, **kwargs: Any) -> Any:
            return driver(self.steps(instance, *args, **kwargs))

        method.__name__, method.__doc__ = self.steps.__name__, self.steps.__doc__
        method.__wrapped__ = functools.partial(self.steps, instance)  # type: ignore[attr-defined]
        return method


def done(value: Optional[T] = None) -> "Future[Optional[T]]":
    """A future that has its result."""
    future: Future[Optional[T]] = Future()
    future.set_result(value)
    return future
