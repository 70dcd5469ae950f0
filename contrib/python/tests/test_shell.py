# SPDX-License-Identifier: Apache-2.0
"""box.shell: the lasting shell."""

from __future__ import annotations

import asyncio

import holt


def test_the_shell_keeps_its_state(box: holt.Sandbox) -> None:
    assert box.shell.run("cd /tmp; x=1; f() { echo f $x; }").ok
    result = box.shell.run("pwd; f; echo err >&2; (exit 3)")
    assert (result.exit_code, result.stdout, result.stderr, result.state_kept) == (3, "/tmp\nf 1\n", "err\n", True)

    assert box.shell.run("exit 4").state_kept is False
    new = box.shell.run("pwd")
    assert (new.stdout, new.new_shell, new.lost) == ("/workspace\n", True, "")
    assert box.shell.restart() and not box.shell.interrupt()


def test_a_cancelled_call_is_interrupted() -> None:
    async def cancel() -> str:
        async with holt.AsyncSandbox() as box:
            await box.shell.run("x=kept")
            call = asyncio.ensure_future(box.shell.run("touch begun; sleep 1000"))
            while not await box.files.exists("begun"):
                await asyncio.sleep(0.01)
            call.cancel()
            return (await box.shell.run("echo $x")).stdout

    assert asyncio.run(cancel()) == "kept\n"
