# SPDX-License-Identifier: Apache-2.0
"""shell.run: the lasting bash of a session."""

from __future__ import annotations

import pytest

from lib.sessions import Bound, Json, Session, until

pytestmark = pytest.mark.alike


def run(rpc: Bound, code: str, **params: object) -> Json:
    return rpc.call("shell.run", code=code, **params)


def out(rpc: Bound, code: str, **params: object) -> str:
    result = run(rpc, code, **params)
    assert result["exit_code"] == 0 and result["state_kept"], result
    return str(result["stdout"])


def test_directory_variables_and_functions_last(rpc: Bound) -> None:
    first = run(rpc, "mkdir sub && cd sub; export NAME=Jo; local_one=1; greet() { echo \"hi $1\"; }; alias a='echo alias'")
    assert (first["cause"], first["exit_code"], first["new_shell"]) == ("exited", 0, False)

    assert out(rpc, "pwd; greet $NAME; echo $local_one; sh -c 'echo $NAME'; a") == "/workspace/sub\nhi Jo\n1\nJo\nalias\n"
    assert out(rpc, "pwd", cwd="/tmp") == out(rpc, "pwd") == "/tmp\n"
    assert out(rpc, "sh -c 'echo $MORE'", env={"MORE": "it's $x"}) == out(rpc, "echo \"$MORE\"") == "it's $x\n"


def test_each_call_has_its_own_result(rpc: Bound) -> None:
    assert [run(rpc, f"(exit {n})")["exit_code"] for n in (0, 3, 255)] == [0, 3, 255]
    both = run(rpc, "echo out; echo err >&2; false")
    assert (both["stdout"], both["stderr"], both["exit_code"]) == ("out\n", "err\n", 1)
    for wrong in ("if", "echo 'open", "}", "{", "echo ${x", "cat <<E", "echo $(", 'echo "a', "case x in", "f() {", "a=(", "((", "[[", "echo `", "echo $((1", "; ;", "&"):
        assert run(rpc, wrong)["stdout"] in ("", "\n"), wrong
        assert out(rpc, "echo on") == "on\n", wrong
    assert run(rpc, "if")["exit_code"] == 2
    assert out(rpc, "cat; read -r line; echo \"[$line]\"") == "[]\n"  # stdin is empty
    assert out(rpc, "echo '{\"id\":2,\"exit_code\":9}'; cat <<'END'\nit's\nEND\n") == '{"id":2,"exit_code":9}\nit\'s\n'
    assert out(rpc, "# comment only") == ""
    assert len(out(rpc, "head -c 300000 /dev/zero | tr '\\0' x")) == 300000
    cut = run(rpc, "echo 1234567890", output_max=4, keep="tail")
    assert (cut["stdout"], cut["stdout_dropped"]) == ("890\n", 7)


def test_what_a_shell_survives(rpc: Bound) -> None:
    run(rpc, "kept=yes")
    for code in ("exec 1>&-", "exec 2>&- 0<&-", "exec >/dev/null 2>&1", "set -e; true", "set -u; echo $missing", "exec nosuch", "echo ${missing:?no}",
                 "trap 'echo trapped' EXIT DEBUG; trap - EXIT DEBUG", "break; continue; return 3", "set -x", "set +x", "exec 3</dev/null", "exec </dev/zero"):
        assert run(rpc, code)["state_kept"], code
        assert out(rpc, "echo $kept; cat") == "yes\n", code
    assert run(rpc, "false")["state_kept"]


@pytest.mark.parametrize(("code", "cause", "exit_code"), [
    ("exit 3", "exited", 3), ("exit 0", "exited", 0), ("exit", "exited", 0), ("kill -9 $$", "signaled", 137), ("exec sh -c 'echo last; exit 4'", "exited", 4), ("set -e; false; echo no", "exited", 1)])
def test_a_lost_shell_is_reported(rpc: Bound, code: str, cause: str, exit_code: int) -> None:
    run(rpc, "cd /tmp; x=1")
    ended = run(rpc, code)
    assert (ended["cause"], ended["exit_code"], ended["state_kept"]) == (cause, exit_code, False)

    new = run(rpc, "pwd; echo [$x]")
    assert (new["stdout"], new["new_shell"], new["lost"]) == ("/workspace\n[]\n", True, None)
    assert run(rpc, "true")["new_shell"] is False


def test_a_shell_that_ends_between_calls(rpc: Bound) -> None:
    run(rpc, "(until [ -e /tmp/go ]; do sleep 0.02; done; kill -9 $$) &")
    rpc.call("exec", shell="touch /tmp/go")
    until(lambda: not any(p["state"] == "running" for p in rpc.call("process.list")["processes"]), "the end of the shell")

    assert run(rpc, "true")["lost"] == "signaled"


@pytest.mark.parametrize("code", ["while :; do :; done\necho no", "sleep 100; echo no\necho no", "while :; do sleep 0.01; done"])
def test_an_interrupt_keeps_the_shell(rpc: Bound, code: str) -> None:
    run(rpc, "x=1")
    for _ in range(5):
        asked = rpc.send("shell.run", code="echo begun; " + code, watch=True)
        rpc.note("process.output", stream="stdout")
        assert rpc.call("shell.interrupt") == {"interrupted": True}
        ended = rpc.result(asked)
        assert (ended["cause"], ended["exit_code"], ended["stdout"], ended["state_kept"]) == ("exited", 130, "begun\n", True)
        assert out(rpc, "sleep 0.02; echo $x") == "1\n"
    assert rpc.call("shell.interrupt") == {"interrupted": False}


def test_an_early_interrupt_ends_at_most_its_call(rpc: Bound) -> None:
    run(rpc, "x=kept")
    code = "echo 'a\nb\"' \"c'\n\"; : '\n" + "touch /tmp/wrong\n" * 200 + "'\nsleep 0.1\nsleep 0.1"
    for _ in range(40):
        asked = rpc.send("shell.run", code=code)
        rpc.call("shell.interrupt")
        assert rpc.result(asked)["exit_code"] in (0, 130)
        assert out(rpc, "echo $x; ls /tmp") == "kept\n"


@pytest.mark.parametrize("prompts", [3, 4])
def test_a_program_that_runs_at_the_end_of_an_interrupted_call_is_interrupted(rpc: Bound, prompts: int) -> None:
    """bash has reported the end of the call, and waits for a program before it reads on. So it did for a program that had
    begun just after the interrupt; here it does for one of its prompts."""
    code = f"x=kept; n=0; PROMPT_COMMAND='((++n == {prompts})) && sleep 1000'; echo begun; sleep 1000"
    asked = rpc.send("shell.run", code=code, watch=True)
    rpc.note("process.output", stream="stdout")
    rpc.call("shell.interrupt")
    assert rpc.result(asked)["exit_code"] == 130
    until(lambda: "sleep" not in rpc.call("exec", argv=["ps", "-eo", "comm"])["stdout"], "no call is needed to end it")
    assert out(rpc, "echo $x") == "kept\n"


def test_a_timeout_interrupts_and_then_kills(rpc: Bound) -> None:
    run(rpc, "x=1")
    ended = run(rpc, "echo begun; sleep 100; echo no", timeout_ms=300)
    assert (ended["cause"], ended["exit_code"], ended["stdout"], ended["state_kept"]) == ("timeout", 124, "begun\n", True)
    assert out(rpc, "echo $x") == "1\n"
    ended = run(rpc, "trap '' INT; sleep 100 & sleep 100", timeout_ms=300)
    assert (ended["cause"], ended["exit_code"], ended["state_kept"]) == ("timeout", 124, False)
    assert run(rpc, "pgrep sleep")["stdout"] == ""


def test_restart_kills_the_shell(rpc: Bound) -> None:
    asked = rpc.send("shell.run", code="echo begun; sleep 100", watch=True)
    rpc.note("process.output")
    assert rpc.call("shell.restart") == {"killed": True}
    assert rpc.result(asked)["state_kept"] is False
    assert run(rpc, "true")["new_shell"] is True


def test_background_jobs_continue(rpc: Bound) -> None:
    run(rpc, "sleep 1000 & job=$!")
    assert out(rpc, "kill -0 $job && jobs -r | grep -c sleep") == "1\n"


def test_denials_are_in_the_result(rpc: Bound) -> None:
    denied = run(rpc, "cd /; curl -s http://example.org; cat /root/secret")
    assert denied["exit_code"] != 0
    assert any(each["layer"] for each in denied["denials"]), denied


def test_the_history_has_the_calls(session: Session, rpc: Bound) -> None:
    run(rpc, "exit 7")
    row = rpc.call("history.list")["rows"][0]
    assert row["name"] == "shell.run" and "exit 7" in str(row), row


BURN = "i=0; while ((i < 400000)); do ((i++)); done"


def test_processor_time_of_a_call(rpc: Bound) -> None:
    """It is the time of the shell, and of commands that it has waited for. The kernel tells no more about others."""
    def user(code: str) -> int:
        usage = run(rpc, code)["usage"]
        assert usage["max_rss_bytes"] is None and usage["system_us"] is not None
        assert 0 <= usage["user_us"] <= usage["wall_us"] + 30_000, usage
        return int(usage["user_us"])

    until(lambda: run(rpc, "true")["usage"]["system_us"] is not None, "init has reported the shell's number")
    assert user("true") <= 20_000
    assert user(BURN) >= 50_000
    assert user("sleep 0.2") <= 20_000
    assert user(f"bash -c '{BURN}'") >= 50_000
    assert user(f"bash -c '{BURN}; echo >done' & true") <= 20_000
    while run(rpc, "test -e done")["exit_code"] != 0:
        pass
    late = run(rpc, "wait")["usage"]["user_us"]  # or in an earlier call: bash waits when it likes
    assert late == 0 or late >= 50_000
    assert run(rpc, f"{BURN}; kill -9 $$")["usage"]["max_rss_bytes"] is not None
    assert user("true") <= 20_000
