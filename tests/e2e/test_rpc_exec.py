# SPDX-License-Identifier: Apache-2.0
"""exec by JSON-RPC, over "holt serve" and at a keeper's own socket."""

from __future__ import annotations

import base64

import pytest

from lib.sessions import Bound, Json, RpcError, Session, Sessions, until

pytestmark = pytest.mark.alike


def test_exec_has_output_cause_and_usage(rpc: Bound) -> None:
    result = rpc.sh("echo out; echo err >&2; exit 3")

    assert (result["stdout"], result["stderr"], result["exit_code"]) == ("out\n", "err\n", 3)
    assert result["cause"] == "exited" and result["signal"] is None
    assert result["usage"]["wall_us"] > 0 and result["usage"]["max_rss_bytes"] > 100_000
    assert result["stdout_bytes"] == 4 and result["stdout_dropped"] == 0


def test_printed_nuls_become_a_replacement_character(rpc: Bound) -> None:
    """Text has a replacement; base64 has the original bytes. The connection, and with it the owned process, stays."""
    process = rpc.spawn("exec sleep 1000", owned=True)
    assert rpc.sh("printf 'a\\0b'")["stdout"] == "a\ufffdb"
    assert base64.b64decode(rpc.sh("printf 'a\\0b'", base64=True)["stdout"]) == b"a\0b"
    rpc.sh("printf 'a\\0b' > /tmp/nul")
    assert rpc.call("files.read", path="/tmp/nul")["content"] == "a\ufffdb"
    assert rpc.call("process.list")["processes"][-1]["id"] == process


def test_bytes_that_are_no_text_are_output(rpc: Bound) -> None:
    """The bytes come even if a process that the command has left keeps the stream open."""
    assert base64.b64decode(rpc.sh(r"sleep 1000 & printf 'a\xff'", base64=True)["stdout"]) == b"a\xff"


def test_exec_by_a_signal(rpc: Bound) -> None:
    result = rpc.sh("kill -SEGV $$")

    assert (result["cause"], result["signal"], result["exit_code"]) == ("signaled", 11, 139)


def test_exec_takes_stdin_cwd_and_env(rpc: Bound) -> None:
    result = rpc.call("exec", argv=["sh", "-c", "cat; pwd; echo $A"], stdin="in\n", cwd="/tmp", env={"A": "ä"})

    assert result["stdout"] == "in\n/tmp\nä\n"


def test_exec_without_stdin_is_at_its_end(rpc: Bound) -> None:
    assert rpc.call("exec", argv=["cat"])["stdout"] == ""


def test_exec_takes_much_stdin(rpc: Bound) -> None:
    assert rpc.call("exec", argv=["wc", "-c"], stdin="x" * 900_000)["stdout"] == "900000\n"


@pytest.mark.parametrize("params, said", (
    ({"argv": ["touch", "ran", "ä\n" * 50_000]}, r'argument 2 ("ä\x0aä\x0a'),
    ({"argv": ["touch", "ran"], "env": {"LONG": "x" * 150_000}}, '("LONG=xxxx'),
), ids=("argument", "variable"))
def test_arguments_that_are_too_long_get_a_hint(params: Json, said: str, rpc: Bound) -> None:
    for method in ("exec", "process.spawn"):
        error = rpc.refused(method, **params)

        assert said in error.message and "the kernel accepts at most 131071" in error.message
        assert (error.errno, error.hint) == ("E2BIG", "Pass it on stdin or in a file.")
    assert rpc.sh("ls")["stdout"] == ""
    assert rpc.call("exec", argv=["sh", "-c", "echo ${#1}", "sh", "x" * 131_071])["stdout"] == "131071\n"


def test_more_words_than_execve_takes_are_told_with_what_to_do(session: Session) -> None:
    """The limit applies to all words together. It is that of the process that started the session."""
    session.exec("true", prefix=("prlimit", "--stack=1048576:1048576")).ok()
    with session.rpc() as keeper:
        result = keeper.refused("exec", argv=["touch", "ran", *["x" * 100_000] * 3])

    assert (result.kind, result.errno) == ("not-executable", "E2BIG")
    assert "a quarter of the stack's limit" in result.hint and "stdin or in a file" in result.hint


@pytest.mark.parametrize("keep", ("head", "tail"))
@pytest.mark.parametrize("most", (0, 1, 1000, 65536))
def test_dropped_output_is_counted(keep: str, most: int, rpc: Bound) -> None:
    result = rpc.sh("seq 100000; seq 50000 >&2", output_max=most, keep=keep)
    for stream, last in (("stdout", 100000), ("stderr", 50000)):
        whole = "".join(f"{i}\n" for i in range(1, last + 1))
        text = result[stream]
        assert result[f"{stream}_bytes"] == len(whole)
        assert result[f"{stream}_dropped"] == len(whole) - len(text)
        assert len(text) <= most
        if keep == "head":
            assert text == whole[:most]
        else:
            assert text == whole[len(whole) - most :]


def test_the_tail_is_as_long_as_was_asked_for(keeper: Bound) -> None:
    assert len(keeper.sh("seq 100000", output_max=1000, keep="tail")["stdout"]) == 1000


def test_five_thousand_lines_arrive_whole(rpc: Bound) -> None:
    expected = "".join(f"line {i} äöü日本🦦\n" for i in range(5000))
    result = rpc.sh("for i in {0..4999}; do echo \"line $i äöü日本🦦\"; done")

    assert result["stdout"] == expected
    process = rpc.spawn("for i in {0..4999}; do echo \"line $i äöü日本🦦\"; done")
    rpc.call("process.watch", id=process)
    rpc.note("process.exited", id=process)
    assert rpc.text(process) == expected
    notes = [n["params"] for n in rpc.rpc.notes if n["method"] == "process.output"]
    assert "".join(n["text"] for n in notes) == expected


def test_bytes_that_are_no_text(rpc: Bound) -> None:
    """In text, each is replaced; base64 has the original bytes."""
    process = rpc.spawn(r"printf '\x00\xff\xfea\xc3'")
    rpc.call("process.wait", id=process)
    chunks = until(lambda: rpc.call("process.read", id=process, base64=True)["chunks"], "output")
    until(lambda: rpc.call("process.list")["processes"][0]["state"] == "ended", "its end")
    chunks = rpc.call("process.read", id=process, base64=True)["chunks"]

    assert b"".join(base64.b64decode(c["base64"]) for c in chunks) == b"\0\xff\xfea\xc3"
    assert rpc.sh(r"printf '\xffa\xc3'")["stdout"] == "\ufffda\ufffd"


def test_exec_in_base64(keeper: Bound) -> None:
    result = keeper.sh(r"printf '\xff\x00'", base64=True)

    assert base64.b64decode(result["stdout"]) == b"\xff\0"


def test_all_that_may_be_kept_arrives(rpc: Bound) -> None:
    result = rpc.sh("head -c 8388608 /dev/zero; head -c 8388608 /dev/zero >&2", output_max=8 << 20, base64=True)
    for stream in ("stdout", "stderr"):
        assert base64.b64decode(result[stream]) == bytes(8 << 20)


def test_a_result_that_is_too_large_fails_only_its_own_call(rpc: Bound) -> None:
    """Each control character is six bytes of JSON. Everything that the client has begun before continues."""
    other = rpc.spawn("exec sleep 1000", owned=True)
    rpc.call("tools.register", name="t", description="", input_schema={})
    error = rpc.refused("exec", shell="head -c 8388608 /dev/zero | tr '\\0' '\\1'", output_max=8 << 20)
    assert (error.kind, error.errno) == ("limit", "EMSGSIZE") and "49 MiB" in error.message
    assert [t["name"] for t in rpc.call("tools.list")["tools"]] == ["t"]
    assert rpc.call("process.kill", id=other)["killed"]


@pytest.mark.parametrize("params", ({}, {"argv": ["true"], "shell": "true"}, {"argv": []}, {"argv": [""]}, {"shell": "true", "keep": "middle"}))
def test_exec_without_a_command_or_with_two_is_refused(params: Json, keeper: Bound) -> None:
    assert keeper.refused("exec", **params).kind == "usage"


def test_a_missing_command_is_an_error(rpc: Bound) -> None:
    error = rpc.refused("exec", argv=["no-such-command"])

    assert "no-such-command" in error.message
    assert rpc.sh("no-such-command")["exit_code"] == 127


def test_timeouts(rpc: Bound) -> None:
    result = rpc.sh("echo before; sleep 1000", timeout_ms=150)

    assert (result["cause"], result["exit_code"], result["stdout"]) == ("timeout", 124, "before\n")


def test_a_call_can_not_have_more_time_than_the_policy(sessions: Sessions) -> None:
    session = sessions.create("v", "--timeout", "200ms", "--kill-after", "100ms")
    with session.rpc() as rpc:
        for asked in (0, 60000):
            assert rpc.call("exec", argv=["sleep", "1000"], timeout_ms=asked)["cause"] == "timeout"


def test_wait_settles_although_a_grandchild_holds_stdout(rpc: Bound) -> None:
    result = rpc.sh("sleep 1000 & echo done")
    assert (result["exit_code"], result["stdout"]) == (0, "done\n")
    process = rpc.spawn("sleep 1000 & echo done; exit 4")

    assert rpc.call("process.wait", id=process, output=True)["exit_code"] == 4
    assert rpc.call("process.list")["processes"][0]["state"] == "background"
    rpc.call("process.kill", id=process)
    until(lambda: rpc.call("process.list")["processes"][0]["state"] == "ended", "it is killed")


def test_a_process_without_children_has_ended_when_wait_replies(rpc: Bound) -> None:
    """The command's monitor ends a moment later."""
    for _ in range(60):
        process = rpc.spawn("true")
        rpc.call("process.wait", id=process)
        assert rpc.call("process.read", id=process)["state"] == "ended"


def test_all_that_was_printed_before_the_end_is_there(rpc: Bound) -> None:
    for _ in range(20):
        assert rpc.sh("head -c 60000 /dev/zero | tr '\\0' x; exit 1")["stdout"] == "x" * 60000


def test_many_calls_of_one_client_at_once(rpc: Bound) -> None:
    numbers = [rpc.send("exec", argv=["echo", str(i)]) for i in range(50)]

    assert [rpc.result(n)["stdout"] for n in numbers] == [f"{i}\n" for i in range(50)]


def test_past_the_limit_of_processes_comes_an_error(keeper: Bound) -> None:
    """Either limits.pids or PROCESSES_LIVE_MAX is reached first. Neither makes the client wait."""
    error = None
    for _ in range(300):
        try:
            keeper.spawn("exec sleep 1000")
        except RpcError as refused:
            error = refused
            break
    assert error and error.kind in ("limit", "setup"), error
    for process in keeper.call("process.list")["processes"]:
        keeper.call("process.kill", id=process["id"])
    until(lambda: all(p["state"] == "ended" for p in keeper.call("process.list")["processes"]), "all end")
    assert keeper.sh("echo again")["stdout"] == "again\n"
