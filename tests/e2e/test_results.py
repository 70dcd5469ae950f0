# SPDX-License-Identifier: Apache-2.0
"""The exit code of holt tells how the command ended. The report tells the reason and the usage."""

from __future__ import annotations

import json
import platform
import re
import signal
import time
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.paths import PROJECT
from lib.sandbox import Holt, Result
from lib.sessions import Sessions

Put = Callable[..., Path]


def ending(result: Result) -> tuple[int, str, Any]:
    assert result.report, result
    # A SIGINT that ended the command ends holt, too.
    assert result.code in (result.report["exit_code"], -signal.SIGINT)
    return result.report["exit_code"], result.cause, result.report["signal"]


@pytest.mark.alike
@pytest.mark.parametrize("code", (0, 1, 3, 124, 125, 126, 127, 128, 137, 255))
def test_the_command_s_own_code_is_holt_s(code: int, holt: Holt) -> None:
    """Even codes that holt uses itself are passed on. The report tells whose they are."""
    result = holt.sh(f"exit {code}")

    assert ending(result) == (code, "exited", None)
    assert result.report and result.report["error"] is None
    assert result.err == ""


@pytest.mark.alike
@pytest.mark.parametrize("name", (
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "XCPU", "SYS",
))
def test_a_signal_that_ends_the_command_is_128_and_its_number(name: str, holt: Holt) -> None:
    number = signal.Signals[f"SIG{name}"]

    result = holt(["run", "--", "sh", "-c", f"ulimit -c 0; kill -{name} $$"])

    assert ending(result) == (128 + number, "signaled", f"SIG{name}")


FOREIGN = "import ctypes; ctypes.CDLL(None).syscall(39 | 1 << 30)"  # getpid of x32


@pytest.mark.skipif(platform.machine() != "x86_64", reason="another machine has other foreign ABIs")
def test_a_foreign_abi_is_told(holt: Holt) -> None:
    result = holt(["run", "--", "python3", "-c", FOREIGN])

    assert result.code == 128 + signal.SIGSYS
    assert "holt: refused a foreign ABI (1x, SIGSYS); no sandbox runs programs that were built for another ABI" in result.err
    denial = result.denials["a foreign ABI"]
    assert denial["grant"] is None and "64-bit" in denial["why_not"]


def test_other_ends_tell_of_no_foreign_abi(holt: Holt) -> None:
    for end in ("kill -SEGV $$", "exit 159"):
        result = holt.sh(end)

        assert not result.denials and "ABI" not in result.err


def test_the_time_has_that_of_the_processor_in_it(holt: Holt) -> None:
    """Wall time and processor time both start when the sandbox is made."""
    for _ in range(20):
        result = holt(["run", "--", "true"])

        assert result.report
        used = result.report["usage"]
        assert used["wall_us"] >= used["user_us"] + used["system_us"] - 1000, used  # some machines count it in ticks


def test_a_real_time_signal_too(holt: Holt) -> None:
    code, cause, name = ending(holt.sh("kill -40 $$"))

    assert (code, cause) == (168, "signaled")
    assert "40" in name or "RT" in name


@pytest.mark.parametrize("trap", (
    "", "trap 'exit 0' TERM; ", "trap '' TERM; ", "trap 'echo caught' TERM; ",
), ids=("none", "exits", "ignores", "goes on"))
def test_a_timeout_is_124_whatever_the_command_makes_of_term(trap: str, holt: Holt) -> None:
    script = f"{trap}while :; do sleep 0.05; done"
    result = holt.sh(script, "--timeout", "300ms", "--kill-after", "200ms")

    assert ending(result)[:2] == (124, "timeout")
    assert result.report and result.report["usage"]["wall_us"] >= 300_000
    assert "--timeout" in result.err


def test_a_command_has_the_time_of_kill_after_to_end_well(holt: Holt) -> None:
    """The command gets TERM, and its output after that arrives."""
    script = "trap 'echo bye > said; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    result = holt.sh(script, "--timeout", "500ms", "--kill-after", "60s")

    assert ending(result)[:2] == (124, "timeout")
    assert (holt.cwd / "said").read_text() == "bye\n"


def test_without_kill_after_the_end_of_the_time_is_the_end(holt: Holt) -> None:
    result = holt.sh("trap '' TERM; while :; do sleep 0.05; done", "--timeout", "2s", "--kill-after", "0")

    assert ending(result) == (124, "timeout", "SIGKILL")


def test_a_command_that_ends_in_time_has_not_timed_out(holt: Holt) -> None:
    assert ending(holt.sh("exit 5", "--timeout", "60s")) == (5, "exited", None)


def test_a_stopped_command_times_out_too(holt: Holt) -> None:
    assert ending(holt.sh("kill -STOP $$", "--timeout", "300ms", "--kill-after", "100ms"))[:2] == (124, "timeout")


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT), ids=str)
def test_a_signal_to_holt_reaches_the_command(sig: signal.Signals, holt: Holt) -> None:
    name = sig.name.removeprefix("SIG")
    script = f"trap 'exit 9' {name}; echo ready; while :; do sleep 0.02; done"
    with holt.start(["run", "--", "sh", "-c", script]) as running:
        assert running.readline() == "ready"
        running.kill(sig)

        assert ending(running.wait())[0] == 9


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT), ids=str)
def test_a_command_that_holt_was_told_to_end_was_killed(sig: signal.Signals, holt: Holt) -> None:
    with holt.start(["run", "--", "sh", "-c", "ulimit -c 0; echo ready; exec sleep 1000"]) as running:
        assert running.readline() == "ready"
        running.kill(sig)

        assert ending(running.wait()) == (128 + sig, "killed", sig.name)


@pytest.mark.parametrize("pause,code", ((0, 9), (1.1, 137)), ids=("one-request", "impatient"))
def test_a_second_signal_kills_unless_it_follows_at_once(pause: float, code: int, holt: Holt) -> None:
    """timeout(1) sends a signal to its command, and then to its process group."""
    script = "trap 'echo told; sleep 0.4; [ $PAUSE = 0 ] || sleep 60; exit 9' TERM; echo ready; while :; do sleep 0.02; done"
    with holt.start(["run", "--env", f"PAUSE={pause}", "--kill-after", "50s", "--", "sh", "-c", script]) as running:
        assert running.readline() == "ready"
        running.kill(signal.SIGTERM)
        assert running.readline() == "told"
        time.sleep(pause)
        running.kill(signal.SIGTERM)

        assert ending(running.wait())[0] == code


# --- usage ---


def usage(result: Result) -> dict[str, int]:
    assert result.report, result
    return dict(result.report["usage"])


def test_the_time_of_the_processor_is_counted(holt: Holt) -> None:
    script = "import time\nwhile time.process_time() < 0.6: pass"
    used = usage(holt(["run", "--", "python3", "-c", script]).ok())

    assert 500_000 < used["user_us"] + used["system_us"] < 2_000_000
    assert used["wall_us"] >= 500_000


def test_the_time_of_children_is_counted(holt: Holt) -> None:
    script = "python3 -c 'import time\nwhile time.process_time() < 0.4: pass'; true"
    used = usage(holt.sh(script).ok())

    assert used["user_us"] + used["system_us"] > 350_000


def test_sleeping_takes_wall_time_alone(holt: Holt) -> None:
    used = usage(holt(["run", "--", "sleep", "0.4"]).ok())

    assert used["wall_us"] >= 400_000
    assert used["user_us"] + used["system_us"] < 300_000


def test_the_largest_process_is_measured(holt: Holt) -> None:
    used = usage(holt(["run", "--", "python3", "-c", "b = bytearray(b'x') * 200_000_000"]).ok())

    assert 200_000_000 <= used["max_rss_bytes"] < 300_000_000
    assert usage(holt(["run", "--", "true"]).ok())["max_rss_bytes"] < 50_000_000


def test_kills_for_lack_of_memory_are_counted(holt: Holt) -> None:
    """The number is 0, or null: the command may be over before the counter is read. tests/vm has cgroups in which
    there are kills."""
    for command in ("true", "no-such-program"):
        assert usage(holt(["run", "--", command]))["oom_kills"] in (0, None)


def test_a_report_says_lost_until_there_is_more_to_say(holt: Holt, identity: Identity) -> None:
    """The file is never empty, and never keeps the report of an earlier run."""
    report = identity.tmp / "lost.json"
    report.write_text('{"cause": "exited", "exit_code": 0, "and": "much more than the new one has to say"}')
    identity.own(report)
    with holt.start(["run", "--report", report, "--", "sh", "-c", "echo started; exec sleep 1000"]) as running:
        assert running.readline() == "started"
        running.kill()
        running.wait()

    left = json.loads(report.read_text())
    report.unlink()
    assert left == {"holt": 1, "cause": "lost", "exit_code": 137}


# --- limits ---


@pytest.mark.parametrize("flags, script, complaint", (
    (("--memory", "200MiB"), "b = bytearray(400_000_000)", "MemoryError"),
    (("--open-files", "64"), "f = [open('/dev/null') for _ in range(100)]", "Too many open files"),
    (("--file-size", "1MiB"), "import signal as s; s.signal(s.SIGXFSZ, s.SIG_IGN); open('f', 'wb').write(b'x' * 2**21)",
     "File too large"),
    (("--pids", "20"), "import threading as t; e = t.Event(); [t.Thread(target=e.wait, daemon=True).start() "
     "for _ in range(50)]", "can't start new thread"),
    (("--tmp-size", "1MiB"), "open('/tmp/f', 'wb').write(b'x' * 2**21)", "No space left on device"),
), ids=("memory", "open files", "file size", "pids", "tmp size"))
def test_a_limit_holds(flags: tuple[str, ...], script: str, complaint: str, holt: Holt) -> None:
    assert holt(["run", "--", "python3", "-c", script]).code == 0
    result = holt(["run", *flags, "--", "python3", "-c", script])

    assert result.code == 1
    assert complaint in result.err


def test_a_command_that_the_file_size_ends_says_so(holt: Holt) -> None:
    """SIGXFSZ alone tells little, and the program prints nothing."""
    result = holt(["run", "--file-size", "4KiB", "--", "dd", "if=/dev/zero", "of=f", "bs=8k", "count=1"])

    assert ending(result) == (128 + signal.SIGXFSZ, "signaled", "SIGXFSZ")
    assert "reached the size limit of 4KiB (--file-size)" in result.err
    assert "--file-size" not in holt.sh("kill -XFSZ $$").err


def test_a_limit_of_one_process_is_an_error(holt: Holt) -> None:
    result = holt(["run", "--pids", "1", "--", "true"])

    assert "EAGAIN" in result.refusal()
    assert "This is the limit of --pids." in result.cure and "init" in result.cure
    holt(["run", "--pids", "2", "--", "true"]).ok()


def test_the_report_has_the_limits(holt: Holt) -> None:
    flags = ("--timeout", "60s", "--memory", "1GiB", "--pids", "100", "--open-files", "64", "--file-size", "1MiB",
             "--output", "3MiB", "--tmp-size", "2MiB")
    result = holt(["run", *flags, "--", "true"]).ok()

    assert result.report and result.report["limits"] == {
        "timeout_us": 60_000_000, "memory_per_process_bytes": 1 << 30, "pids": 100, "open_files": 64,
        "file_size_bytes": 1 << 20, "output_bytes": 3 << 20, "tmp_size_bytes": 2 << 20,
    }


def test_a_limit_of_the_caller_s_own_is_not_blamed_on_the_policy(holt: Holt) -> None:
    result = holt(["run", "--", "dd", "if=/dev/zero", "of=f", "bs=8192", "count=1"],
                  prefix=("prlimit", "--fsize=4096:unlimited"))

    assert result.cause == "signaled"
    assert "file-size" not in result.err


def test_the_report_has_the_limits_that_the_caller_is_held_to(holt: Holt) -> None:
    """If the hard limit is lower than the policy's, it applies."""
    prefix = ("prlimit", "--nofile=100:200", "--fsize=4096:unlimited")
    result = holt(["run", "--", "bash", "-c", "ulimit -n; ulimit -f"], prefix=prefix).ok()

    assert result.out.split() == ["200", "4"]
    assert result.report
    assert result.report["limits"]["open_files"] == 200
    assert result.report["limits"]["file_size_bytes"] == 4096


def test_a_limit_of_nothing_at_all_is_one(holt: Holt) -> None:
    """"ulimit -S -f 0" sets this limit, which holt raises for itself."""
    prefix = ("prlimit", "--fsize=0:unlimited")
    result = holt(["run", "--", "sh", "-c", "echo text >file"], prefix=prefix, report=False)

    assert result.code == 128 + signal.SIGXFSZ
    assert len((holt.cwd / "file").read_text()) <= 1


def test_the_callers_file_size_is_not_laid_to_the_policy(holt: Holt) -> None:
    prefix = ("prlimit", "--fsize=4096:unlimited")
    result = holt(["run", "--", "sh", "-c", "exec head -c 9999 /dev/zero >file"], prefix=prefix, report=False)

    assert result.code == 128 + signal.SIGXFSZ
    assert "--file-size" not in result.err


# --- the report's file ---


def test_the_report_says_all(holt: Holt) -> None:
    result = holt(["run", "--", "sh", "-c", "exit 3", "an argument"])

    assert result.report
    assert result.report["holt"] == 1
    assert result.report["command"] == ["sh", "-c", "exit 3", "an argument"]
    assert set(result.report) == {
        "holt", "command", "cause", "exit_code", "signal", "error", "usage", "layers", "limits", "limits_hit", "output", "denials",
        "network", "published", "routes", "set_aside", "replaced", "warnings",
    }
    on = {name for name, state in result.layers.items() if state.startswith("on")}
    assert {"user", "mount", "pid", "net", "ipc", "uts", "cgroup", "proc", "dev", "capabilities", "seccomp", "notify",
            "limits"} <= on
    assert ("idmap" in on) == (holt.identity.name == "root")


def test_the_report_names_the_cause_of_a_failure(holt: Holt) -> None:
    result = holt(["run", "--ro", "/no/such", "--", "true"])

    assert ending(result)[:2] == (125, "error")
    assert result.report
    assert result.report["error"]["kind"] == "policy"
    assert "/no/such" in result.report["error"]["message"]
    assert result.err.splitlines()[0] == f"holt: {result.report['error']['message']}"
    assert result.report["error"]["errno"] == "ENOENT"
    assert result.report["error"]["cure"]


def test_json_goes_to_stderr_in_one_line(holt: Holt) -> None:
    result = holt(["run", "--json", "--", "sh", "-c", "echo out; exit 3"], report=False)

    assert (result.code, result.out) == (3, "out\n")
    assert result.err.count("\n") == 1
    assert json.loads(result.err)["exit_code"] == 3


@pytest.mark.parametrize("argv, code", (
    (["--", "true", "x"], 0), (["--", "nonesuch"], 127), (["--ro", "/no", "true"], 125), (["--no-such-option"], 125),
    (["--timeout", "x", "true"], 125),
), ids=("exited", "not found", "no path", "no option", "no time"))
@pytest.mark.alike
def test_json_is_all_that_holt_says_on_stderr(argv: list[str], code: int, holt: Holt) -> None:
    """Errors of holt itself are JSON, too, so that a program needs to parse only one form."""
    result = holt(["run", "--json", *argv], report=False)

    assert result.code == code
    assert json.loads(result.err)["exit_code"] == code


def test_the_report_replaces_what_was_in_the_file(holt: Holt, identity: Identity, nothing_left: None) -> None:
    path = identity.tmp / "report"
    path.write_text("x" * 100_000)
    identity.own(path)
    try:
        holt(["run", "--report", path, "--", "true"]).ok()

        assert json.loads(path.read_text())["cause"] == "exited"
    finally:
        path.unlink()


def test_the_report_goes_to_a_descriptor(holt: Holt) -> None:
    script = '("$0" "$@" 3>&1 >/dev/null) | cat'
    result = holt(["run", "--report", "/dev/fd/3", "--", "echo", "out"], prefix=["bash", "-c", script]).ok()

    assert json.loads(result.out)["command"] == ["echo", "out"]


def test_the_report_is_hidden_in_the_workspace(holt: Holt) -> None:
    """The command can neither read the last report nor forge its own."""
    report = holt.cwd / "out.json"
    script = "cat out.json; echo forged > out.json; rm -f out.json; mv out.json x; mv forged out.json; ls"
    for _ in range(2):
        result = holt.sh(f"echo forged > forged; {script}", "--report", "out.json")

        assert "cause" not in result.out
        assert json.loads(report.read_text())["exit_code"] == result.code
    assert not (holt.cwd / "x").exists()


@pytest.mark.parametrize("path", ("/proc/report", "no/such/directory/report", "."))
def test_a_report_that_can_not_be_written_is_an_error_before_the_run(path: str, holt: Holt) -> None:
    assert "--report" in holt(["run", "--report", path, "--", "touch", "ran"]).refusal()
    assert not (holt.cwd / "ran").exists()


@pytest.mark.root_host
@pytest.mark.identities("user", "nested")
def test_a_report_in_an_unwritable_directory_is_an_error_before_the_run(holt: Holt, place: Path) -> None:
    directory = place / "closed"
    directory.mkdir()

    assert "Permission denied (EACCES)" in holt(["run", "--report", directory / "r", "--", "touch", "ran"]).refusal()
    assert not (holt.cwd / "ran").exists()


def test_the_report_follows_no_link_of_the_workspace(holt: Holt, place: Path) -> None:
    """A command may have left a symlink there, to a file that the caller can write."""
    (holt.cwd / "report").symlink_to(place / "victim")

    holt(["run", "--report", "report", "--", "true"]).refusal()
    assert not (place / "victim").exists()


# --- 126 and 127 ---


def test_a_missing_command_is_127(holt: Holt) -> None:
    for name in ("no-such-program", "./no-such-program", "/no/such/program"):
        assert name in holt(["run", "--", name]).refusal(127)


def test_a_command_that_cannot_be_executed_is_126(holt: Holt, put: Put) -> None:
    put("plain", "echo no\n", 0o644)

    assert "Permission denied (EACCES)" in holt(["run", "--", "./plain"]).refusal(126)
    assert "/" in holt(["run", "--", "/usr"]).refusal(126)


def test_the_cause_is_an_error_where_the_command_never_ran(holt: Holt) -> None:
    result = holt(["run", "--", "no-such-program"])

    assert ending(result) == (127, "error", None)
    assert result.report and result.report["error"]["kind"] == "not-found"


def test_text_for_people_is_short(holt: Holt) -> None:
    """Nothing is printed after a success, or if the command has reported its own error."""
    assert holt(["run", "--", "true"]).err == ""
    assert holt(["run", "--", "false"]).err == ""


def test_a_call_that_no_option_makes_work_is_told(holt: Holt) -> None:
    def warned(*flags: str) -> list[str]:
        result = holt(["run", *flags, "--", "true"]).ok()
        assert result.report
        return list(result.report["warnings"])

    (said,) = warned("--allow-syscall", "swapon", "--allow-syscall", "ptrace")
    assert said.startswith("--allow-syscall swapon: it needs a capability")
    (said,) = warned("--allow-syscall", "@mount")
    assert said.startswith("--allow-syscall @mount: ")
    assert warned("--landlock", "off", "--allow-syscall", "@mount", "--allow-syscall", "@namespace") == []


def test_an_option_that_has_no_effect_is_told(holt: Holt, put: Put) -> None:
    put("there", "x")
    flags = ("--env", "NO_SUCH", "--env", "THERE", "--env", "LANG", "--hide", "there", "--hide", "no/such",
             "--hide", "/no/such")
    result = holt(["run", *flags, "--", "true"], env={"THERE": "x"}).ok()
    said = ["--env NO_SUCH: the variable is not set here, so it cannot be passed on",
            "--hide /no/such: the path does not exist inside, so nothing is hidden", "--hide no/such: the path does not exist inside, so nothing is hidden"]

    assert result.err.splitlines() == [f"holt: {line}" for line in said]
    assert result.report and result.report["warnings"] == said
    assert holt(["run", "--json", *flags, "--", "true"], env={"THERE": "x"}, report=False).err.count("\n") == 1


@pytest.mark.parametrize(
    "flags, cure",
    [(["--links"], "--links"), (["--python", "python3"], "--python PROGRAM"), (["--install=never"], "--install auto|ask|never")],
)
def test_an_option_that_only_a_session_uses_is_told(holt: Holt, sessions: Sessions, put: Put, flags: list[str], cure: str) -> None:
    option = cure.split()[0]
    line = f"holt: {option} has no effect on holt run, only on a session: holt create NAME {cure}\n"
    assert holt(["run", *flags, "--", "true"]).ok().err == line
    assert sessions(["create", "w", *flags]).ok().err == ""
    put("policy.json", '{"holt": 1, "bridge": {"links": true}, "python": {"program": "python3", "install": "never"}}')
    assert holt(["run", "--policy", "policy.json", "--", "true"]).ok().err == ""


def test_a_policy_file_warns_only_of_missing_hidden_paths(holt: Holt, put: Put) -> None:
    """A typo in a hidden path would reveal the file."""
    put("policy.json", json.dumps({"holt": 1, "env": {"pass": ["NO_SUCH"]}, "filesystem": {"hide": ["no-such"]}}))
    result = holt(["run", "--policy", "policy.json", "--", "true"]).ok()

    (line,) = result.err.splitlines()
    assert "$.filesystem.hide[0]: no-such: the path does not exist inside, so nothing is hidden" in line
    assert result.report and [f"holt: {text}" for text in result.report["warnings"]] == [line]


def test_the_help_of_create_has_the_workspace_of_a_session(holt: Holt) -> None:
    assert "(default: a directory of the session)" in holt(["create", "--help"], report=False).ok().out


def test_help_and_version(holt: Holt) -> None:
    for args in (["--help"], ["run", "--help"], ["doctor", "--help"], ["policy", "--help"], ["--version"]):
        assert "holt" in holt(args, report=False).ok().out
    assert holt([], report=False).code == 125


@pytest.mark.parametrize("verb", ("run", "doctor", "policy", "policy show", "policy check", "policy schema", "policy list",
                                  "policy syscalls"))
@pytest.mark.alike
def test_help_of_a_verb(verb: str, holt: Holt) -> None:
    text = holt([*verb.split(), "--help"], report=False).ok().out

    assert holt(["help", *verb.split()]).ok().out == text
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.alike
def test_the_manual_has_each_option_where_the_help_has_it(holt: Holt) -> None:
    """The option is below the same heading in both."""
    heading = ""
    places: dict[str, str] = {}
    for line in (PROJECT / "man" / "holt-run.1.scd").read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif option := re.match(r"\*(--[a-z-]+)\*", line):
            places.setdefault(option[1], heading)
    for line in holt(["help", "run"]).ok().out.splitlines():
        if line.endswith(":") and line[0].isalpha():
            heading = line[:-1]
        elif option := re.match(r"  (--[a-z-]+)", line):
            assert places[option[1]] == {"Options": "OPTIONS"}.get(heading, heading), option[1]


def test_help_says_what_the_values_are(holt: Holt) -> None:
    words = holt(["help", "run"]).ok().out.split("Values:")[1].split()

    assert {"TIME", "10m,", "SIZE", "512MiB", "@GROUP", "@namespace", "LAYER", "landlock"} <= set(words)


def test_a_full_disk_where_the_help_goes_is_no_success(holt: Holt) -> None:
    with open("/dev/full", "wb") as full:
        assert subprocess.run(holt.argv(["policy", "schema"]), stdout=full, stderr=subprocess.DEVNULL).returncode == 125


@pytest.mark.alike
@pytest.mark.parametrize("mistake", ("--timout=5", "--timeout=5x", "--policy=nofile.json", "--policy=nopreset"))
def test_an_early_error_leaves_no_older_report(mistake: str, holt: Holt, workspace: Path) -> None:
    """A reader of the file must not mistake an earlier run for this one."""
    report = workspace / "out.json"
    holt(["run", "--report", report, "--", "true"]).ok()
    result = holt(["run", mistake, "--report", report, "--", "true"])

    assert result.code == 125
    assert json.loads(report.read_text())["cause"] == "error"


def test_an_early_error_follows_no_link_to_its_report(holt: Holt, workspace: Path, identity: Identity) -> None:
    identity.run(["sh", "-c", "echo kept >target; ln -s target out.json"], cwd=workspace).check_returncode()
    holt(["run", "--timout=5", "--report", workspace / "out.json", "--", "true"])

    assert (workspace / "target").read_text() == "kept\n"


@pytest.fixture
def script(workspace: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = workspace / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    return write


def test_a_cure_is_one_word_to_the_shell(holt: Holt, place: Path, script: Callable[[str, str], Path]) -> None:
    """An earlier command may have chosen these names."""
    tool = place / "x;touch${IFS}ran;y" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    script("s", f"#!{tool}\n")
    script("x;touch ran", "#!/bin/sh\r\n")

    assert f"--ro '{tool.parent}'" in holt(["run", "--", "./s"]).cure
    assert "sed -i 's/\\r$//' './x;touch ran'" in holt(["run", "--", "./x;touch ran"]).cure


def test_no_script_has_the_home_mounted(holt: Holt, place: Path, script: Callable[[str, str], Path]) -> None:
    tool = place / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    script("s", f"#!{tool}\n")

    for home in (place, place / "home"):
        result = holt(["run", "--", "./s"], env={"HOME": str(home)})
        assert "your home" in result.cure and f"--ro {place}" not in result.cure
    assert f"--ro {place}" in holt(["run", "--", "./s"], env={"HOME": "/nowhere"}).cure


def test_the_cure_for_a_program_that_is_a_link_names_the_link_s_directory(holt: Holt, place: Path) -> None:
    """A virtual environment's python3 is a symlink to the system's, so nothing of /usr is missing inside."""
    venv, tools, real = place / "venv", place / "tools", place / "real"
    for directory in (venv / "bin", tools, real):
        directory.mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (venv / "bin" / "python3").symlink_to("/usr/bin/env")
    (tools / "plain").symlink_to("/usr/bin/env")
    (real / "x").write_text("#!/bin/sh\n")
    (real / "x").chmod(0o755)
    (tools / "x").symlink_to(real / "x")

    for program, flags in ((venv / "bin/python3", ["--ro", venv]), (tools / "plain", ["--ro", tools]),
                           (real / "x", ["--ro", real]), (tools / "x", ["--ro", tools, "--ro", real])):
        result = holt(["run", "--", program])
        assert result.code == 127 and result.err.rstrip().endswith(" " + " ".join(map(str, flags))), str(result)
        holt(["run", *flags, "--", program]).ok()
