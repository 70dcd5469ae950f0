# SPDX-License-Identifier: Apache-2.0
"""One implementation for both faces of the SDK, synchronous and asynchronous.

Theory of operation. The steps of a method are written once, as a generator. It yields futures (concurrent.futures) and
receives their results; most of them are replies (_connection.py). A SyncFace waits for each future in the caller's
thread. An AsyncFace awaits it in the caller's event loop. All other code is the same for both, and neither face
occupies a thread of its own.

If the caller gives up (Ctrl-C, a cancelled task), the exception is raised in the generator at its current yield. The
generator then cleans up.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import types
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, Generator, Generic, NoReturn, Optional, Type, TypeVar, Union, overload

from ._request import AWAITED, Request

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
else:
    P = TypeVar("P")

T = TypeVar("T")

Steps = Generator["Union[Future[Any], Request, Answer]", Any, T]


class Answer:
    """An awaitable that the caller's function has returned. Only drive_async() can wait for it."""

    def __init__(self, awaitable: "Awaitable[Any]") -> None:
        self.awaitable = awaitable

    def done(self) -> bool:
        return False

    def result(self) -> NoReturn:
        close = getattr(self.awaitable, "close", None)
        if close:
            close()  # otherwise Python warns that nobody has awaited the coroutine
        raise TypeError(NOT_ASYNC)


NOT_ASYNC = "on_output must be a plain function, because Sandbox has no event loop: leave out async, or use AsyncSandbox"


class SyncFace:
    """A base class whose operations block."""


class AsyncFace:
    """A base class whose operations are coroutines."""


def drive(steps: "Steps[T]") -> T:
    """Runs all steps, and waits in this thread. Returns their result."""
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


def _awaitable(future: "Union[Future[Any], Request, Answer]") -> "Awaitable[Any]":
    if isinstance(future, Answer):
        return future.awaitable
    if isinstance(future, Request):
        return future.in_loop(asyncio.get_running_loop())
    return asyncio.wrap_future(future)


def _read_soon(request: Request) -> None:
    """Blocks for a reply that comes sooner than a turn of the event loop would take. It does so only if the last reply to
    this method was as quick, and if nothing else in the loop can go on meanwhile. asyncio keeps what can go on in _ready;
    with a loop that hides this, it never blocks."""
    connection = request.connection
    if connection and request.method in connection.quick and not AWAITED:
        if not getattr(asyncio.get_running_loop(), "_ready", True):
            connection.read_soon(request)


async def drive_async(steps: "Steps[T]") -> T:
    """Runs all steps in the running event loop. Returns their result."""
    try:
        future = next(steps)
        while True:
            try:
                if type(future) is Request:
                    _read_soon(future)
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

    Another operation can run the bare steps: `yield from Class.method.steps(self, ...)`.
    """

    def __init__(self, steps: "Callable[Concatenate[Any, P], Steps[T]]") -> None:
        self.steps = steps
        functools.update_wrapper(self, steps)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return drive(steps(self, *args, **kwargs))

        async def method_async(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await drive_async(steps(self, *args, **kwargs))

        self._sync, self._async = _disguised(method, steps), _disguised(method_async, steps)

    def __set_name__(self, owner: type, name: str) -> None:
        # Python puts this name into a TypeError for wrong arguments. Callers do not know the class, which both faces share.
        part = owner.__name__[: -len("Api")].lower()
        self.steps.__qualname__ = f"{part}.{name}" if part in ("files", "kv", "mount", "routes") else name

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
    """Returns the type of the steps' result: "int" for "Steps[int]"."""
    text = str(hint).strip("'\"")
    return text[len("Steps[") : -1] if text.startswith("Steps[") else hint


def _disguised(method: Callable[..., Any], steps: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a method the name, docstring, hints and parameters of its steps, for help() and for Tool.of()."""
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
    """Marks parameters that only the program may set, and neither code inside nor a model. See Tool.of()."""

    def mark(steps: F) -> F:
        steps.host_only = names  # type: ignore[attr-defined]
        return steps

    return mark


def done(value: Optional[T] = None) -> "Future[Optional[T]]":
    """Returns a future that is done and has the result value."""
    future: Future[Optional[T]] = Future()
    future.set_result(value)
    return future
