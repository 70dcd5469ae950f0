# SPDX-License-Identifier: Apache-2.0
"""The event loop of a session's interpreter, which lasts as all else does, and goes on between runs: what a run has
left in it does, as in a notebook. Loaded by holt_interpreter where code first needs a loop."""

import asyncio
import os

loop = None


def run(coroutine):
    """To its end, whatever ends it: what is interrupted while it waits would go on with the next that awaits."""
    global loop
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        if task.done():
            raise
        task.cancel()
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError as cancelled:
            raise KeyboardInterrupt().with_traceback(cancelled.__traceback__) from None


def wait(fd):
    """Runs the loop until fd is readable, or until the loop can't: who reads waits without it then. What has stopped it,
    or None."""
    if loop is None or loop.is_closed():
        return None
    owner, readable = os.getpid(), loop.create_future()
    try:
        loop.add_reader(fd, lambda: readable.done() or readable.set_result(None))
        loop.run_until_complete(readable)
        return None
    except BaseException as error:  # a task has stopped or closed the loop, or exits, which is no end of ours
        return error
    finally:
        if os.getpid() != owner:  # a fork that has come back, whose loop is its parent's
            os._exit(0)
        try:
            loop.remove_reader(fd)
        except Exception:
            pass
