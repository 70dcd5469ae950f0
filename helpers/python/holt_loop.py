# SPDX-License-Identifier: Apache-2.0
"""The event loop of a session's interpreter. It lasts between runs, and tasks that a run leaves behind go on, like in a
notebook. holt_interpreter loads this module when code first needs a loop."""

import asyncio
import os

loop = None


def run(coroutine):
    """Runs a coroutine to its end. An interrupt cancels it; otherwise it would continue in the next run that awaits."""
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
    """Runs the loop until fd is readable, or until the loop fails; the caller then reads without it. Returns the error that
    stopped it, or None."""
    if loop is None or loop.is_closed():
        return None
    owner, readable = os.getpid(), loop.create_future()
    try:
        loop.add_reader(fd, lambda: readable.done() or readable.set_result(None))
        loop.run_until_complete(readable)
        return None
    except BaseException as error:  # a task has stopped or closed the loop or tries to exit; the interpreter stays
        return error
    finally:
        if os.getpid() != owner:  # a forked child that has returned; the loop belongs to its parent
            os._exit(0)
        try:
            loop.remove_reader(fd)
        except Exception:
            pass
