# SPDX-License-Identifier: Apache-2.0
"""A program that is missing, or that cannot be executed, gets one clear line with its cure, and 126 or 127."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.sandbox import Holt, Result

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def nothing_ran(holt: Holt) -> Iterator[None]:
    """Every script below that must not run would make "ran"."""
    yield
    assert not (holt.cwd / "ran").exists()


@pytest.mark.parametrize("name", ("no-such-program", "./no-such", "/no/such", "./ran/x"))
def test_a_missing_program_is_named(name: str, holt: Holt) -> None:
    assert name in holt(["run", "--", name]).refusal(127)


def test_an_option_before_the_verb(holt: Holt) -> None:
    """The option may be one that no verb has, so the cure does not repeat it."""
    for option in ("--memory", "--verbose"):
        cure = holt([option, "run", "--", "id"]).cure
        assert "The options of a verb follow it: holt run [OPTIONS] -- COMMAND" in cure


def test_an_empty_command(holt: Holt) -> None:
    assert "The first word of the command is empty." in holt(["run", "--", ""]).cure


def test_a_program_of_the_host_that_is_not_inside(holt: Holt, place: Path, put: Make) -> None:
    tool = put(place / "bin" / "tool", "#!/bin/sh\ntouch ran\n", 0o755)
    result = holt(["run", "--", tool])

    assert str(tool) in result.refusal(127)
    assert "--ro" in result.cure


def cure(result: Result, code: int = 127) -> str:
    result.refusal(code)
    return result.cure


def test_a_program_missing_in_the_workspace_gets_no_mount_hint(holt: Holt) -> None:
    for name in ("./no-such", "no/such"):
        said = cure(holt(["run", "--", name]))
        assert f"{holt.cwd}/{name.removeprefix('./')} does not exist" in said
        assert "--ro" not in said


def test_a_program_missing_on_the_host_gets_no_mount_hint(holt: Holt) -> None:
    for name in ("/no/such", "/usr/bin/no-such"):
        assert "The host does not have it either" in cure(holt(["run", "--", name]))
    assert "starts at /home/agent" in cure(holt(["run", "--workspace", "none", "--", "./x"]))


@pytest.mark.parametrize(("word", "said"), [
    ("--net", 'It is an option of holt; write it before the "--": holt run --net ... -- COMMAND'),
    ("--report=r.json", 'If it is an option of holt, write it before the "--": holt run --report ... -- COMMAND'),
])
def test_an_option_after_the_dashes(word: str, said: str, holt: Holt) -> None:
    assert said in cure(holt(["run", "--", word, "x", "true"]))


def test_a_path_of_nothing_is_told_from_a_program_that_is_not_there(holt: Holt) -> None:
    for path in ("PATH=", "PATH=bin"):
        assert "PATH names no absolute directory" in cure(holt(["run", "--env", path, "--", "ls"]))
    assert "Install it" in cure(holt(["run", "--", "no-such-program"]))


@pytest.mark.identities("user", "nested")  # root has erased its environment by then (runner/child/identity.c)
def test_a_program_in_the_caller_s_path_is_named(holt: Holt, place: Path, put: Make) -> None:
    put(place / "tools" / "mytool", "#!/bin/sh\necho ran\n", 0o755)
    put("own/owntool", "#!/bin/sh\necho ran\n", 0o755)
    put(place / "venv" / "pyvenv.cfg", "")
    put(place / "venv" / "bin" / "venvtool", "#!/bin/sh\necho ran\n", 0o755)
    env = {"PATH": f"{place}/tools:{holt.cwd}/own:{place}/venv/bin:{os.environ['PATH']}"}
    for program, options in (
        ("mytool", ["--ro", f"{place}/tools", "--env", f"PATH={place}/tools:/usr/local/bin:/usr/bin:/bin"]),
        ("owntool", ["--env", f"PATH={holt.cwd}/own:/usr/local/bin:/usr/bin:/bin"]),
        ("venvtool", ["--ro", f"{place}/venv", "--env", f"PATH={place}/venv/bin:/usr/local/bin:/usr/bin:/bin"]),
    ):
        assert cure(holt(["run", "--", program], env=env)).rstrip().endswith(": " + " ".join(options))
        assert holt(["run", *options, "--", program], env=env).ok().out == "ran\n"


@pytest.mark.identities("root")
def test_a_program_in_root_s_path_gets_the_general_cure(holt: Holt, place: Path, put: Make) -> None:
    put(place / "tools" / "mytool", "#!/bin/sh\necho ran\n", 0o755)
    env = {"PATH": f"{place}/tools:{os.environ['PATH']}"}
    hint = cure(holt(["run", "--", "mytool"], env=env))
    assert "mount its directory (--ro DIR) and set PATH (--env PATH=...)" in hint and str(place) not in hint

    options = ["--ro", place / "tools", "--env", f"PATH={place}/tools"]
    assert holt(["run", *options, "--", "mytool"], env=env).ok().out == "ran\n"


def test_a_word_that_the_shell_has_made_gets_its_own_cure(holt: Holt, put: Make) -> None:
    put("a.pem", "")
    put("key.pem", "")
    assert "To set a variable: --env 'FOO=1'" in cure(holt(["run", "--", "FOO=1", "env"]))
    assert "Quote the pattern" in cure(holt(["run", "--hide", "a.pem", "key.pem", "--", "ls"]))
    assert "Quote" not in cure(holt(["run", "--", "no-such-program", "--", "ls"]))


def test_a_link_that_leads_out_is_told_from_a_program_that_is_not_there(holt: Holt, place: Path, put: Make) -> None:
    tool = put(place / "bin" / "tool", "#!/bin/sh\ntouch ran\n", 0o755)
    (holt.cwd / "link").symlink_to(tool)

    assert f"It is a symlink to {tool}" in cure(holt(["run", "--", "./link"]))
    (holt.cwd / "d").mkdir()
    (holt.cwd / "d" / "python").symlink_to("../d/python3")
    (holt.cwd / "d" / "python3").symlink_to(tool)
    (holt.cwd / "first").symlink_to("d/python")
    for chain in ("./d/python", "./first"):
        assert f"It is a symlink to {tool}" in cure(holt(["run", "--", chain]))


def test_a_directory_is_no_program(holt: Holt, mkdir: Make) -> None:
    mkdir("directory")

    result = holt(["run", "--", "./directory"])
    assert "./directory" in result.refusal(126)
    assert "It is a directory" in result.cure
    assert "regular file" in cure(holt(["run", "--", "/usr"]), 126)


@pytest.mark.parametrize("argv, words", (
    (["ls -la"], "holt run -- ls -la"), (["./no-such -x"], "holt run -- ./no-such -x"), (["export", "A=b"], "bash -c"),
    (["source", "x"], "bash -c 'source ...'"),
))
def test_a_command_that_needs_a_shell_has_a_cure(argv: list[str], words: str, holt: Holt) -> None:
    assert words in cure(holt(["run", "--", *argv]))


@pytest.mark.parametrize("line, word", (
    ("curl x | sh; rm -rf y", "'curl x | sh; rm -rf y'"), ("echo $(id)", "'echo $(id)'"), ("ls >x", "'ls >x'"),
    ("a `b`", "'a `b`'"), ("ls ~", "'ls ~'"), ("a\nb c", "'...'"),
    pytest.param("ls x " * 60, "'...'", id="long"),
))
def test_hints_quote_words_that_a_shell_would_expand(line: str, word: str, holt: Holt) -> None:
    """A model may have written the line, so a hint quotes it, or leaves it out."""
    hint = cure(holt(["run", "--", line]), 127 if len(line) < 256 else 126)

    assert "apart" not in hint
    assert hint.strip().endswith(f"holt run -- bash -c {word}")


def test_an_empty_program_name(holt: Holt) -> None:
    assert '""' in holt(["run", "--", ""]).refusal(127)


def test_a_script_without_its_interpreter(holt: Holt, put: Make) -> None:
    put("script", "#!/no/such/interpreter -x\ntouch ran\n", 0o755)
    result = holt(["run", "--", "./script"])

    assert '"./script" exists, but its interpreter "/no/such/interpreter" does not' in result.refusal(126)
    assert "--ro" not in result.cure


def test_a_script_whose_interpreter_has_moved(holt: Holt, put: Make, mkdir: Make) -> None:
    """The programs of a virtual environment are such scripts: its directory has another path inside."""
    top = mkdir("project")
    put("project/bin/python", "", 0o755)
    put("project/script", f"#!{top}/bin/python\n", 0o755)
    hint = cure(holt(["run", "--workspace", f"{top}:/workspace", "--", "./script"]), 126)

    assert "Inside it is /workspace/bin/python." in hint
    assert hint.strip().endswith(f"--workspace {top}:{top}")


def test_a_script_with_the_line_ends_of_windows(holt: Holt, put: Make) -> None:
    put("script", "#!/bin/sh\r\ntouch ran\r\n", 0o755)
    result = holt(["run", "--", "./script"])

    assert r'interpreter "/bin/sh\x0d"' in result.refusal(126)
    assert "CR LF" in result.cure and "./script" in result.cure


def test_a_script_whose_interpreter_is_not_mounted(holt: Holt, place: Path, put: Make) -> None:
    interpreter = put(place / "bin" / "interpreter", "#!/bin/sh\ntouch ran\n", 0o755)
    put("script", f"#!{interpreter} -x\n", 0o755)
    result = holt(["run", "--", "./script"])

    assert str(interpreter) in result.refusal(126)
    assert "--ro" in result.cure


def test_a_script_gives_no_reason_to_mount_what_is_no_program(holt: Holt, place: Path, put: Make) -> None:
    """A command may have written the script's first line. Otherwise holt would recommend to mount somebody's keys."""
    key = put(place / ".ssh" / "id_rsa", "a key\n", 0o600)
    put("script", f"#!{key}\n", 0o755)

    result = holt(["run", "--", "./script"])
    assert str(key) in result.refusal(126)
    assert "--ro" not in result.cure


def test_a_script_that_may_not_be_executed(holt: Holt, put: Make) -> None:
    put("script", "#!/bin/sh\ntouch ran\n", 0o644)

    result = holt(["run", "--", "./script"])
    assert "Permission denied (EACCES)" in result.refusal(126)
    assert "chmod +x" in result.cure


def elf(machine: int) -> bytes:
    """Returns the header of a program for another machine, padded to a plausible size."""
    ident = b"\x7fELF" + bytes((2, 1, 1, 0)) + bytes(8)
    rest = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0x400078, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    return (ident + rest).ljust(400, b"\0")


@pytest.mark.parametrize(
    "text", (elf(0xF3), elf(0x3E)[:20], b"\0" * 100), ids=("another machine's", "a torn one", "zeros")
)
def test_a_program_that_the_machine_can_not_run(text: bytes, holt: Holt, put: Make) -> None:
    put("program", text, 0o755)
    result = holt(["run", "--", "./program"])

    assert "./program" in result.refusal(126)
    assert "ENOEXEC" in result.err
    assert "#!" in result.cure


def test_an_empty_file_is_an_empty_script(holt: Holt, put: Make) -> None:
    """Every shell does the same."""
    put("empty", "", 0o755)

    assert holt(["run", "--", "./empty"]).code == 0
