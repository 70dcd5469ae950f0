# SPDX-License-Identifier: Apache-2.0
"""AsyncSandbox, the asynchronous face of Sandbox."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Coroutine, List

import pytest
from conftest import WITHIN, session_names

from holt import AsyncSandbox, Chunk, CommandNotFoundError, Sandbox, UsageError


def run(main: "Callable[[AsyncSandbox], Coroutine[Any, Any, None]]") -> None:
    async def whole() -> None:
        async with AsyncSandbox(timeout=60) as box:
            await main(box)

    asyncio.run(whole())


def test_everything_is_awaited() -> None:
    async def main(box: AsyncSandbox) -> None:
        assert (await box.bash("echo hi")).check().stdout == "hi\n"
        assert (await box.python("6 * 7")).result == "42"
        await box.files.write("x", "text")
        assert await box.files.read("x") == "text"
        await box.kv.set("a", "b")
        assert await box.kv.get("a") == "b"
        with pytest.raises(UsageError, match="download"):
            (await box.mount.upload(b"data", "m")).buffer()
        assert (await box.mount.download("m")).buffer() == b"data"
        assert [row.name for row in await box.history(1)] == ["mount.download"]
        with pytest.raises(CommandNotFoundError):
            await box.exec(["no-such-program"])

    run(main)


def test_a_thousand_commands_at_once() -> None:
    async def main(box: AsyncSandbox) -> None:
        done = await asyncio.gather(*[box.bash(f"echo {n}") for n in range(1000)])
        assert [each.stdout for each in done] == [f"{n}\n" for n in range(1000)]

    run(main)


def test_a_cancelled_task_kills_its_command() -> None:
    async def main(box: AsyncSandbox) -> None:
        async def cancel(call: "Coroutine[Any, Any, Any]") -> None:
            """Waits until the command has made the file "on"."""
            task = asyncio.ensure_future(call)
            while not await box.files.exists("on"):
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await box.files.remove("on")

        await cancel(box.bash("touch on; sleep 1357"))
        while "sleep 1357" in (await box.bash("ps -eo args")).stdout:
            await asyncio.sleep(0.01)
        await cancel(box.python("x = 1\nopen('on', 'w').close()\nwhile True: pass"))
        assert (await box.python("x")).result == "1"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(box.bash("sleep 1357"), 0.01)

    run(main)


def test_a_cancelled_run_is_the_one_that_ends() -> None:
    async def main(box: AsyncSandbox) -> None:
        async def until(condition: "Callable[[], Coroutine[Any, Any, bool]]") -> None:
            async def whole() -> None:
                while not await condition():
                    await asyncio.sleep(0.005)

            await asyncio.wait_for(whole(), WITHIN)

        async def is_gone() -> bool:
            return "sleep 1357" not in (await box.bash("ps -eo args")).stdout

        async def is_on() -> bool:
            return await box.files.exists("on")

        fresh = asyncio.ensure_future(box.python("open('on', 'w').close()\nimport os; os.execlp('sleep', 'sleep', '1357')", fresh=True))
        await until(is_on)
        fresh.cancel()
        await until(is_gone)
        # Cancel a run that waits for another; the other continues.
        await box.files.remove("on")
        first = asyncio.ensure_future(box.python("import os\nopen('on', 'w').close()\nwhile not os.path.exists('go'): pass\n5"))
        await until(is_on)
        second = asyncio.ensure_future(box.python("y = 1"))
        await asyncio.sleep(0)  # the request is sent
        second.cancel()
        await asyncio.wait([second])  # before that, the cancellation is not sent
        await box.files.write("go", "")
        assert (await first).check().result == "5"
        assert (await box.python("'y' in globals()")).result == "False"

    run(main)


def test_output_of_code_as_it_comes() -> None:
    async def main(box: AsyncSandbox) -> None:
        seen: "list[str]" = []
        wait = "print('s', flush=True)\nwhile True: pass"
        runs = [asyncio.ensure_future(box.python(wait, on_output=lambda c: seen.append(c.text))) for _ in range(3)]
        while not seen:
            await asyncio.sleep(0.005)
        for each in runs:
            each.cancel()
        assert all(isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*runs, return_exceptions=True))
        assert (await box.python("print(1); 2", on_output=lambda c: seen.append(c.text))).result == "2"
        assert seen == ["s\n", "1\n"]

    run(main)


def test_on_output_may_be_a_coroutine_function() -> None:
    seen: List[str] = []

    async def on_output(chunk: Chunk) -> None:
        await asyncio.sleep(0)
        seen.append(chunk.text)

    async def fail(chunk: Chunk) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("enough")

    async def main(box: AsyncSandbox) -> None:
        assert (await box.bash("echo a", on_output=on_output)).stdout == "a\n"
        assert (await box.python("print('b')", on_output=on_output)).ok
        assert seen == ["a\n", "b\n"]
        with pytest.raises(RuntimeError, match="enough"):
            await box.bash("while :; do echo; done", on_output=fail)

    run(main)
    with Sandbox() as box:
        for call in (box.bash, box.python):
            for function in (on_output, lambda chunk: on_output(chunk)):
                with pytest.raises(TypeError, match="plain function.*AsyncSandbox"):
                    call("print(1)" if call == box.python else "while :; do echo; done", on_output=function)
        assert box.bash("echo on").ok


def test_the_event_loop_runs_while_output_is_read() -> None:
    async def main(box: AsyncSandbox) -> None:
        process = await box.spawn("for i in 1 2 3; do echo $i; read x; done", input=True)
        seen = []
        async for chunk in process:
            seen.append(chunk.text)
            ticks = await asyncio.gather(asyncio.sleep(0, "tick"), process.write("\n"))
            assert ticks[0] == "tick"
        assert seen == ["1\n", "2\n", "3\n"]
        assert (await process.wait()).exit_code == 1 or process.poll() == 0

    run(main)


def test_an_async_sandbox_must_be_opened_first(holt: str) -> None:
    box = AsyncSandbox()
    with pytest.raises(UsageError, match="async with"):
        box.files
    with pytest.raises(UsageError, match="async with"):
        asyncio.run(box.bash("true"))  # type: ignore[arg-type]
    assert session_names(holt) == []


def test_both_faces_have_the_same_methods() -> None:
    def methods(of: type) -> "set[str]":
        return {name for name in dir(of) if not name.startswith("_")}

    assert methods(AsyncSandbox) - methods(Sandbox) == {"open", "files", "mount", "kv", "routes", "shell"}
    assert methods(Sandbox) - methods(AsyncSandbox) == set()
