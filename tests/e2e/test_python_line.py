# SPDX-License-Identifier: Apache-2.0
"""holt python: the interpreter on the command line."""

from __future__ import annotations

import json
import signal

import pytest

from lib.python import pending
from lib.sandbox import HANGS, Holt, Result
from lib.sessions import Session, Sessions, until
from lib.terminal import Terminal

pytestmark = pytest.mark.alike

CTRL_C = "\x03"
IGNORES = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(100)"
ON = "print('on', flush=True)\n"


def python(session: Session, *args: str, **options: object) -> Result:
    return session("python", *args, **options)


def test_the_command_line(session: Session, holt: Holt) -> None:
    (holt.cwd / "script.py").write_text("print('printed')\nx = 4\nx\n")

    assert python(session, "script.py", cwd=holt.cwd).ok().out == "printed\n4\n"
    assert python(session, "-c", "x").ok().out == "4\n"
    assert python(session, "-", stdin=b"x + 1\n").ok().out == "5\n"
    failed = python(session, "-c", "1/0")
    assert failed.code == 1 and failed.err.endswith("ZeroDivisionError: division by zero\n")
    for code, number, message in (("7", 7, ""), ("'no'", 1, "no\n"), ("None", 0, ""), ("-1", 255, ""), ("'5'", 1, "5\n"), ("True", 1, ""), ("'2024-01-01'", 1, "2024-01-01\n")):
        ended = python(session, "-c", f"import sys; sys.exit({code})")
        assert (ended.code, ended.err) == (number, message)
    assert python(session, "--timeout", "100ms", "-c", "while True: pass").code == 124
    result = json.loads(python(session, "--json", "-c", "print(1); x").ok().out)
    assert (result["stdout"], result["result"]) == ("1\n", "4")
    assert "x: int = 4" in python(session, "--variables").out
    assert python(session, "--restart").ok().out == ""
    assert "NameError" in python(session, "-c", "x").err


def test_a_file_has_its_name(session: Session, holt: Holt) -> None:
    script = holt.cwd / "script.py"
    script.write_text("def f():\n    return 1 / 0\ndef g():\n    return __file__\nprint(g())\nf()\n")
    failed = python(session, "./script.py", cwd=holt.cwd)

    assert failed.out == "./script.py\n"
    assert failed.err.startswith('Traceback (most recent call last):\n  File "./script.py", line 6, in <module>\n    f()\n')
    assert '  File "./script.py", line 2, in f\n    return 1 / 0\n' in failed.err
    assert python(session, "-c", "g()").ok().out == "'./script.py'\n"
    assert 'File "./script.py", line 2, in f' in python(session, "-c", "f()").err
    assert 'File "<python 4>", line 1\n' in python(session, "-", stdin=b"1 +").err
    script.write_text("1 +")
    assert f'File "{script}", line 1\n' in python(session, script, cwd=holt.cwd).err
    # A spawned process would look for __main__.__file__ inside.
    script.write_text("import multiprocessing as m\np = m.get_context('spawn').Process(target=print, args=('spawned',)); p.start(); p.join()")
    assert python(session, script).ok().out == "spawned\n"


@pytest.mark.parametrize("method", ("spawn", "forkserver"))
def test_a_script_of_the_workspace_has_processes_of_its_own(sessions: Sessions, workspace: Path, method: str) -> None:
    """The processes import the script to find its definitions. If no file of that name exists inside, nothing is imported."""
    session = sessions.create("w", "--workspace", workspace)
    script = workspace / "script.py"
    script.write_text(
        "import multiprocessing\nif __name__ != '__main__': print('imported', flush=True)\ndef double(x):\n    return 2 * x\nif __name__ == '__main__':\n"
        f"    with multiprocessing.get_context('{method}').Pool(1) as pool: print(pool.map(double, [21]))\n"
    )
    printed = python(session, "--timeout", "30s", "script.py", cwd=workspace).ok().out.splitlines()
    assert set(printed) == {"imported", "[42]"}
    code = f"p = multiprocessing.get_context('{method}').Process(target=print, args=('started',)); p.start(); p.join()"
    assert python(session, "-c", code).ok().out == "started\n"


def test_displays_that_are_not_printed_are_counted(session: Session) -> None:
    kinds = "class Plot:\n    def _repr_png_(self): return b'PNG'\nclass Table:\n    def _repr_html_(self): return '<table>'\n"
    python(session, "-c", kinds).ok()
    one, two = python(session, "-c", "Plot()").ok(), python(session, "-c", "display(Plot()); display(Table())").ok()

    assert one.err == "holt: 1 display (image/png) not printed; --json prints it\n"
    assert two.err == "holt: 2 displays (image/png and others) not printed; --json prints them\n"
    # A table has text, too, which is printed as the result.
    assert python(session, "-c", "Table()").ok().err == ""
    assert python(session, "--json", "-c", "Plot()").ok().err == ""


def test_files_as_other_systems_write_them(session: Session) -> None:
    assert python(session, "-", stdin=b"\xef\xbb\xbfx = 'a'\r\nx\r\n").ok().out == "'a'\n"
    assert "not UTF-8" in python(session, "-", stdin=b"# coding: latin-1\nprint('\xe9')").refusal()
    assert "not UTF-8" in python(session, "-c", "print('\udce9')").refusal()


@pytest.mark.parametrize("flags", ((), ("--fresh",)), ids=("lasting", "fresh"))
def test_all_of_a_long_output_is_printed(flags: tuple[str, ...], session: Session) -> None:
    """The output comes fast, and far exceeds the amount that the session keeps."""
    code = "import sys\nfor i in range(30): sys.stdout.write(chr(97 + i % 26) * (1 << 20)); sys.stderr.write('x' * 1000)"
    result = python(session, *flags, "-c", code).ok()

    assert result.out == "".join(chr(97 + i % 26) * (1 << 20) for i in range(30))
    assert result.err == "x" * 30000
    assert python(session, *flags, "-c", "import os; os.system('seq 300000');").ok().out == "".join(f"{i}\n" for i in range(1, 300001))


@pytest.mark.slow
@pytest.mark.parametrize("flags", ((), ("--fresh",)), ids=("lasting", "fresh"))
def test_a_run_that_did_not_end_by_itself_is_explained(flags: tuple[str, ...], sessions: Sessions) -> None:
    session = sessions.create("w", "--timeout", "2s", "--kill-after", "100ms")
    gone = "" if flags else "  Its variables are lost. The next run has a new interpreter.\n"
    for more, code, err in (
        (("--timeout", "500ms"), "import time; time.sleep(100)", "holt: timed out after 500ms (--timeout)\n"),
        ((), "import time; time.sleep(100)", "holt: timed out after 2s (the session's policy; holt create --timeout sets it)\n"),
        (("--timeout", "500ms"), IGNORES, f"holt: timed out after 500ms (--timeout)\n{gone}"),
        ((), "import os; os._exit(3)", f"holt: the interpreter ended (exited, 3)\n{gone}"),
        ((), "import os; os.abort()", f"holt: the interpreter ended (signaled, 134)\n{gone}"),
    ):
        assert python(session, *flags, *more, "-c", code).err.endswith(err)
    assert python(session, *flags, "-c", "1").ok().err == ""


def test_a_run_says_that_earlier_variables_are_lost(session: Session) -> None:
    python(session, "-c", "x = 1").ok()
    session.sh("pkill -9 -f holt_interpreter.py")
    until(lambda: not session.ps() or all(p["state"] == "ended" for p in session.ps().values()), "it has ended")
    said = python(session, "-c", "2").ok()

    assert said.out == "2\n"
    assert said.err == (
        "holt: the interpreter ended after the last run (signaled)\n"
        "  Its variables are lost. This run had a new interpreter.\n"
    )


def test_an_unknown_name_after_a_stop_is_explained(session: Session) -> None:
    lost = "holt: the variables of earlier runs are lost, because the session or its interpreter has ended since\n"
    for command in (["stop"], ["python", "--restart"]):
        python(session, "-c", "x = 1").ok()
        session(*command).ok()
        assert python(session, "-c", "x").err.endswith(lost)
        assert lost not in python(session, "-c", "x").err
    session("stop").ok()
    assert lost not in python(session, "-c", "1 / 0").err


def test_the_output_of_a_result_has_a_limit(session: Session) -> None:
    code = "print('x' * 2000000)"
    for flags, most in (((), 1 << 20), (("--output", "1K"), 1024), (("--output", "4M"), 2000001)):
        result = json.loads(python(session, "--json", *flags, "-c", code).ok().out)
        assert (len(result["stdout"]), result["stdout_dropped"]) == (most, 2000001 - most)
    refused = python(session, "--json", "--output", "9M", "-c", code)
    assert refused.code == 125 and "is not a valid size" in refused.out + refused.err
    assert "--output needs --json" in python(session, "--output", "1K", "-c", code).refusal()


def test_code_that_is_too_long_for_a_request_is_refused(session: Session) -> None:
    """The code is short enough, but not as JSON. The reply cannot name its request."""
    result = session("python", "-", stdin="x = '" + "\x01" * 400_000 + "'")
    assert "the line is longer than 1024 KiB" in result.refusal()


def test_mistakes_in_options_are_refused(session: Session, holt: Holt) -> None:
    for args in ([], ["-c", "1", "file"], ["--restart", "-c", "1"], ["no-such-file"], ["--timeout", "x", "-c", "1"]):
        assert python(session, *args, cwd=holt.cwd).refusal()
    for args in (["--fresh"], ["--cwd", "/tmp"], ["--env", "A=b"], ["--timeout", "1s"], ["--output", "1M"], ["--tool", "a=cat"]):
        assert "need code to run" in python(session, "--variables", *args).refusal()


def test_ctrl_c_is_the_code_s(sessions: Sessions, session: Session, terminal: object) -> None:
    caller = terminal(["python", session.name, "-c", "print('ready', flush=True)\nimport time\ntime.sleep(100)"], env=sessions.env)
    caller.expect("ready")
    caller.send(CTRL_C)
    caller.expect("KeyboardInterrupt")

    assert caller.wait() == -signal.SIGINT


@pytest.mark.parametrize("signals", ((signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGINT, signal.SIGINT)))
def test_a_signal_ends_holt_python_even_if_nobody_reads_its_output(
    signals: tuple[signal.Signals, ...], sessions: Sessions, session: Session
) -> None:
    code = "print('x' * 500_000, flush=True); open('on', 'w').close()\nwhile True: print('x' * 1000)"
    with sessions.start(["python", session.name, "-c", code]) as running:
        until((session.directory / "workspace/on").exists, "there is more than a pipe takes")
        for each in signals:
            running.kill(each)
            until(lambda: not pending(running.pid, each), "it was taken")
        assert running.process.wait(HANGS) == -signals[-1]
    assert python(session, "-c", "5").ok().out == "5\n"


def test_a_reader_that_leaves_ends_the_run(sessions: Sessions, session: Session) -> None:
    with sessions.start(["python", session.name, "-c", "while True: print('x' * 1000)"]) as running:
        running.readline()
        assert running.process.stdout
        running.process.stdout.close()
        assert running.process.wait(HANGS) == -signal.SIGPIPE
    assert python(session, "-c", "5").ok().out == "5\n"


def test_a_result_that_nobody_reads_is_no_reason_to_stay(sessions: Sessions, session: Session) -> None:
    with sessions.start(["python", session.name, "-c", "'r' * 500_000"]) as running:
        until(lambda: any(row["name"] == "python.run" for row in session.history()), "it has run")
        running.kill(signal.SIGTERM)
        assert running.process.wait(HANGS) == -signal.SIGTERM


@pytest.mark.parametrize("signal_of, code", ((None, -signal.SIGINT), (signal.SIGTERM, 137)))
def test_the_end_of_a_fresh_run_is_its_own(signal_of: signal.Signals | None, code: int, sessions: Sessions, session: Session, terminal: object) -> None:
    """The code that the lasting interpreter runs meanwhile continues."""
    with session.rpc() as rpc:
        number = rpc.send("python.run", code=f"{ON}import os\nwhile not os.path.exists('/tmp/go'): pass\n5", watch=True)
        rpc.note("process.output")
        caller = terminal(["python", session.name, "--fresh", "-c", f"{ON}import time\ntime.sleep(100)"], env=sessions.env)
        caller.expect("on")
        if signal_of:
            caller.interrupt(signal_of)
        else:
            caller.send(CTRL_C)
        assert caller.wait() == code
        rpc.call("files.write", path="/tmp/go", content="")
        assert rpc.result(number)["result"] == "5"


def test_ctrl_c_ends_the_shell_s_loop(session: Session) -> None:
    """bash ends a loop only if SIGINT killed the program in it, here holt. Code that catches Ctrl-C goes on."""
    sessions, code = session.sessions, "import time\ntry: print('ru' + 'nning', flush=True); time.sleep(1000)\nfinally: print('e' + 'nd')"
    for more, loops in (("", 1), ("\nexcept KeyboardInterrupt: pass", 2)):
        text = code.replace("\nfinally", f"{more}\nfinally")
        loop = 'for i in 1 2; do "$@"; done; echo af""ter'
        argv = ["bash", "-c", loop, "bash", *sessions.holt.argv(["python", session.name, "-c", text])]
        with Terminal(sessions.holt.identity, argv, cwd=sessions.holt.cwd, env=sessions.env) as shell:
            for _ in range(loops):
                shell.expect("running")
                shell.send(CTRL_C)
                shell.expect("end")
            assert shell.wait() == (-signal.SIGINT if loops == 1 else 0)
            assert ("after" in shell.output) is (loops == 2)
