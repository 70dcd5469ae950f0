# SPDX-License-Identifier: Apache-2.0
"""box.shell: the lasting shell."""

from __future__ import annotations

import asyncio

import pytest

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


def test_output_comes_while_commands_run(box: holt.Sandbox) -> None:
    seen = []

    def answer(chunk: holt.Chunk) -> None:
        seen.append((chunk.stream, chunk.text))
        box.files.write("go", "")

    done = box.shell.run("echo first; until test -e go; do sleep 0.01; done; echo last >&2", on_output=answer)
    assert (done.stdout, done.stderr) == ("first\n", "last\n")
    assert seen == [("stdout", "first\n"), ("stderr", "last\n")]


def test_commands_end_if_on_output_fails(box: holt.Sandbox) -> None:
    def fail(chunk: holt.Chunk) -> None:
        raise ValueError(chunk.text)

    with pytest.raises(ValueError, match="first"):
        box.shell.run("x=kept; echo first; sleep 1000", on_output=fail)
    seen: "list[str]" = []
    assert box.shell.run("echo $x", on_output=lambda chunk: seen.append(chunk.text)).ok
    assert seen == ["kept\n"]


def test_output_of_the_shell_and_of_python_stays_apart() -> None:
    async def both() -> "tuple[list[str], list[str]]":
        shell: "list[str]" = []
        python: "list[str]" = []
        async with holt.AsyncSandbox() as box:
            await asyncio.gather(*(
                call for n in range(5) for call in (
                    box.shell.run(f"echo shell{n}", on_output=lambda chunk: shell.append(chunk.text)),
                    box.python(f"print('python{n}')", on_output=lambda chunk: python.append(chunk.text)),
                )
            ))
        return shell, python

    shell, python = asyncio.run(both())
    assert shell == [f"shell{n}\n" for n in range(5)] and python == [f"python{n}\n" for n in range(5)]
