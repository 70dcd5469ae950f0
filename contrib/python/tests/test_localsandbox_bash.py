# SPDX-License-Identifier: Apache-2.0
"""localsandbox's limits of loops and commands, and /data as the root, in a real bash."""

from __future__ import annotations

import asyncio

import pytest
from conftest import until

from holt.localsandbox import CommandError, ExecutionLimitError, ExecutionPreset, LocalSandbox

PRESETS = {"strict": (100, 500), "normal": (1000, 5000), "permissive": (10000, 50000)}


@pytest.fixture
def strict() -> "LocalSandbox":
    with LocalSandbox(preset=ExecutionPreset.STRICT) as local:
        yield local  # type: ignore[misc]


def refused(local: LocalSandbox, command: str) -> "tuple[str, int]":
    with pytest.raises(ExecutionLimitError) as error:
        local.bash(command)
    return error.value.limit_type, error.value.limit_value


def test_the_presets() -> None:
    for preset in ExecutionPreset:
        assert (preset.loop_iterations, preset.command_count) == PRESETS[preset.value]
    with LocalSandbox() as local:
        assert local.preset is ExecutionPreset.NORMAL
        assert refused(local, "while :; do :; done") == ("loop_iterations", 1000)


@pytest.mark.parametrize("loop", [
    "for i in $(seq {n}); do :; done",
    "for ((i = 0; i < {n}; i++)); do :; done",
    "i=0; while ((i < {n})); do ((++i)); done",
    "i=0; until ((i == {n})); do ((++i)); done",
    "seq {n} | while read -r x; do :; done",
    "while read -r x; do :; done < <(seq {n})",
    "f() {{ for i in $(seq {n}); do :; done; }}; f",
    "(for i in $(seq {n}); do :; done)",
    "x=$(for i in $(seq {n}); do :; done)",
    "eval 'for i in $(seq {n}); do :; done'",
    "bash -c 'for i in $(seq {n}); do :; done'",
    "echo 'for i in $(seq {n}); do :; done' > s; bash s",
])
def test_a_loop_goes_round_a_hundred_times(strict: LocalSandbox, loop: str) -> None:
    strict.bash(loop.format(n=100) + "; echo through")
    assert refused(strict, loop.format(n=101) + "; echo through") == ("loop_iterations", 100)


@pytest.mark.parametrize("command", [
    "for i in $(seq 20); do for j in $(seq 15); do :; done; done",
    "for i in $(seq 10); do j=0; while ((j < 10)); do ((++j)); done; done",
    "f() { for i in $(seq 60); do :; done; }; f; f; f",
    "for i in $(seq 60); do :; done\nfor i in $(seq 60); do :; done",
    "for i in $(seq 50); do if ((i % 2)); then echo odd; else echo even; fi; done",
])
def test_each_loop_is_counted_by_itself(strict: LocalSandbox, command: str) -> None:
    strict.bash(command)


@pytest.mark.parametrize("command", [
    "for i in $(seq 90); do :; :; :; :; :; :; done",
    "f() { g; g; g; g; g; }; g() { h; h; h; h; h; }; h() { for i in 1 2 3 4 5 6 7 8 9 10; do :; :; done; }; f",
    "f() { f; }; f",
    "for i in $(seq 40); do (:; :; :; :; :; :; :; :); x=$(:; :; :; :; :; :); done",
    "for i in $(seq 50); do bash -c ':; :; :; :; :; :; :; :; :; :; :'; done",
])
def test_commands_are_counted_wherever_they_run(strict: LocalSandbox, command: str) -> None:
    assert refused(strict, command) == ("command_count", 500)


def test_the_last_command_that_fits(strict: LocalSandbox) -> None:
    several = "; ".join(f"echo {n}" for n in range(499))
    assert strict.bash(several + "; echo last").stdout.endswith("last\n")
    assert refused(strict, several + "; echo last; echo too much") == ("command_count", 500)


def test_a_limit_keeps_earlier_output_and_kills_background_processes(strict: LocalSandbox) -> None:
    with pytest.raises(ExecutionLimitError) as error:
        strict.bash("setsid sleep 1000 & echo before; while :; do :; done")
    assert error.value.stdout == "before\n"
    until(lambda: "sleep 1000" not in strict.bash("ps -eo args").stdout, "all of it is killed")
    assert strict.bash("ls -A /home/agent/.localsandbox").stdout.count("limit-") == 0


def test_common_settings_of_bash_keep_the_limits(strict: LocalSandbox) -> None:
    for off in ("trap - DEBUG", "trap '' DEBUG", "set +x", "set -euo pipefail", "exec 199<&-; true"):
        with pytest.raises((ExecutionLimitError, CommandError)):
            strict.bash(off + "; while :; do :; done")
    assert refused(strict, "trap - DEBUG; while :; do :; done") == ("loop_iterations", 100)


def test_scripts_do_not_notice(strict: LocalSandbox) -> None:
    script = r"""
        true a b; echo "$_"
        false; echo $?
        true | false | true; echo ${PIPESTATUS[@]}
        [[ abc =~ b(.) ]]; echo ${BASH_REMATCH[1]}
        IFS=:; read -r a b <<< "1:2"; echo "$a-$b"
        trap 'echo bye' EXIT
        set -euo pipefail -f
        f() { local x=$1; echo "$x ${FUNCNAME[0]}"; }; f y
        cat <<X
while true; do
X
        case $- in *e*) echo strict ;; esac
        set -x; echo traced
    """
    done = strict.bash(script)
    assert done.stdout == "b\n1\n0 1 0\nc\n1-2\ny f\nwhile true; do\nstrict\ntraced\nbye\n"
    assert done.stderr == "+ echo traced\n+ echo bye\n"


# --- /data is the root ---


@pytest.mark.parametrize("command, out", [
    ("echo a > /x; cat /data/x", "a\n"),
    ("echo a > /data/x; cat /x", "a\n"),
    ("mkdir -p /deep/er; echo a > /deep/er/x; cat /data/deep/er/x", "a\n"),
    ("mkdir sub; echo a > sub/x; cat /sub/x", "a\n"),
    ("echo a > ~/x; cat /home/user/x", "a\n"),
    ("mkdir -p /home/user/d; echo a > /home/user/d/x; find /home/user -name x", "/home/user/d/x\n"),
    ("mkdir /p; touch /p/x; find /p -name x; ls /", None),
    ("ls -A", ""),
    ("echo a > /tmp/x; cat /data/tmp/x", "a\n"),
    ("mkdir lib; echo a > lib/x; cat /data/lib/x", "a\n"),
    ("d=/x; echo a > $d; [[ -e $d ]] && cat \"/data$d\" '/data/x'", "a\na\n"),
])
def test_both_names_in_one_line(local: LocalSandbox, command: str, out: str) -> None:
    done = local.bash(command)
    assert done.stdout == out or out is None and done.stdout.startswith("/p/x\n")


def test_both_names_from_call_to_call(local: LocalSandbox) -> None:
    local.write_file("/made/by/api", "1")
    local.bash("echo 2 > /by-bash; mkdir -p /data/d; echo 3 > /data/d/x")
    local.execute_python("open('/by-python', 'w').write('4'); open('rel', 'w').write('5')")
    for path, text in (
        ("made/by/api", "1"), ("by-bash", "2\n"), ("d/x", "3\n"), ("by-python", "4"), ("rel", "5"),
    ):
        for name in (path, f"/{path}", f"/data/{path}"):
            assert local.read_file(name) == text and local.bash(f"cat {name}").stdout == text
            assert local.execute_python(f"print(open({name!r}).read(), end='')").stdout == text
    assert local.list_files("/") == local.list_files("/data") == ["by-bash", "by-python", "d", "made", "rel"]


@pytest.mark.parametrize("code, out", [
    ("open('/data/x', 'w').write('a'); print(open('/x').read())", "a\n"),
    ("open('/x', 'w').write('a'); print(os.path.exists('/data/x'), os.listdir('/data'))", "True ['x']\n"),
    ("os.makedirs('/deep/er'); open('/deep/er/x', 'w').write('a'); print(open('/data/deep/er/x').read())", "a\n"),
    ("open('x', 'w').write('a'); os.remove('/x'); print(os.path.lexists('x'), os.path.lexists('/x'))", "False False\n"),
    ("open('x', 'w').write('a'); os.rename('/x', '/y'); print(open('y').read(), os.listdir('.'))", "a ['y']\n"),
    ("os.mkdir('/d'); open('/data/d/x', 'w'); shutil.rmtree('/data/d'); print(os.path.lexists('/d'))", "False\n"),
    ("pathlib.Path('/p').write_text('a'); print(pathlib.Path('/data/p').read_text())", "a\n"),
    ("open('/tmp/t', 'w').write('a'); print(open('/data/tmp/t').read())", "a\n"),
    ("try: open('/none/x', 'w')\nexcept OSError as e: print(e.errno, os.listdir('.'))", "2 []\n"),
    ("try: open('/none')\nexcept OSError as e: print(e.errno, os.listdir('.'))", "2 []\n"),
    ("try: open('\\0x')\nexcept ValueError as e: print(e)", "embedded null byte\n"),
])
@pytest.mark.parametrize("how", ("execute_python", "bash"))
def test_both_names_in_one_program_of_python(local: LocalSandbox, how: str, code: str, out: "str | None") -> None:
    code = "import os, pathlib, shutil\n" + code
    if how == "bash":
        local.write_file("/opt/code", code)
        assert local.bash("python3 /opt/code").stdout == out
    else:
        assert local.execute_python(code).stdout == out
    for name in local.list_files("/"):
        assert local.exists(f"/{name}") and local.exists(f"/data/{name}")
    assert local.bash("find / /data -maxdepth 1 -xtype l").stdout == ""


def test_symlinks_for_names_do_not_count_as_commands(strict: LocalSandbox) -> None:
    """Commands that make symlinks for names are not counted, because they do not belong to the program."""
    strict.bash("seq -f n%g 1000 | xargs touch; seq -f /m%g 500 | xargs touch")
    assert strict.bash("echo a > /x; cat /data/x").stdout == "a\n"
    assert strict.bash("ls / | grep -c ^n; ls /data | grep -c ^m").stdout == "1000\n500\n"
    strict.bash("rm /n7 /data/m7; mv /n8 /data/8; echo b > n9; sed -i s/b/c/ /n9")
    assert not strict.exists("/data/n7") and not strict.exists("/m7") and strict.read_file("/data/n9") == "c\n"
    assert len(strict.list_files("/")) == 1000 + 500 + 1 - 2 and strict.exists("/8")


def test_names_made_by_many_at_once() -> None:
    async def main() -> None:
        async with LocalSandbox() as local:
            done = await asyncio.gather(*[local.abash(f"echo {n} > f{n}; cat /f{n}") for n in range(30)])
            assert [each.stdout for each in done] == [f"{n}\n" for n in range(30)]
            assert await local.alist_files("/") == sorted(f"f{n}" for n in range(30))

    asyncio.run(main())


@pytest.mark.parametrize("make, change, left", [
    ("echo 1 > /data/x", "rm /x", {}),
    ("echo 1 > /x", "rm /data/x", {}),
    ("mkdir /p; echo 1 > /p/f", "rm -rf /data/p", {}),
    ("echo 1 > /data/x", "mv /x /y", {"y": "1\n"}),
    ("echo 1 > /data/x", "mv /data/x /data/y", {"y": "1\n"}),
    ("echo 1 > /x", "sed -i s/1/2/ /data/x", {"x": "2\n"}),
    ("echo 1 > /x", "rm /x; echo 3 > /data/x", {"x": "3\n"}),
    ("echo 1 > /x", "cp /data/x /y; echo 4 >> /data/y", {"x": "1\n", "y": "1\n4\n"}),
])
def test_changes_by_one_name_show_at_the_other(
    local: LocalSandbox, make: str, change: str, left: "dict[str, str]"
) -> None:
    local.bash(make)
    local.bash(change)
    assert local.list_files("/") == sorted(left)
    for name, text in left.items():
        assert local.read_file("/" + name) == local.read_file("/data/" + name) == text
        assert local.bash(f"cat /{name} /data/{name}").stdout == text * 2


@pytest.mark.parametrize("made, moved", [("/p", "/data/p"), ("/data/p", "/p")])
def test_moving_a_linked_name_moves_the_file_itself(made: str, moved: str, local: LocalSandbox) -> None:
    local.bash(f"mkdir {made} sub; echo 1 > {made}/f; echo 2 > {made}.txt")
    local.bash(f"mv {moved} /data/sub/q; mv {moved}.txt sub/; echo new > {moved}.txt")
    assert local.list_files("/data") == ["p.txt", "sub"] and local.list_files("/data/sub") == ["p.txt", "q"]
    assert local.bash("find /sub/ -type l; cat /data/sub/q/f sub/p.txt p.txt").stdout == "1\n2\nnew\n"


def test_links_of_the_program_s_own_are_its_own(local: LocalSandbox) -> None:
    local.bash("mkdir sub; echo 1 > /data/f; ln -s /data/f sub/link")
    local.bash("rm /f; echo 2 > /f")
    assert local.bash("readlink sub/link; cat sub/link").stdout == "/data/f\n2\n"


def test_deleting_and_writing_from_outside(local: LocalSandbox) -> None:
    local.bash("echo 1 > /x; echo 2 > /data/y")
    local.delete_file("/data/x")
    local.delete_file("/y")
    assert local.list_files("/") == [] and local.bash("ls -A; ls -d /x /y 2> /dev/null || echo none").stdout == "none\n"
    local.write_file("/data/x", "new")
    assert local.bash("cat /x").stdout == "new"


def test_a_directory_to_start_in_that_is_not_there() -> None:
    with LocalSandbox(cwd="/project/src") as local:
        assert local.bash("pwd; touch here").stdout == "/project/src\n"
        assert local.list_files("/data/project/src") == ["here"]
        local.bash("rm -rf /project")
        assert local.bash("ls -A").stdout == ""
    with LocalSandbox(cwd="/") as local:
        assert local.bash("pwd").stdout == "/data\n"


def test_a_line_longer_than_an_argument_may_be(strict: LocalSandbox) -> None:
    text = "".join(f"/data/line {n}: it's \"$HOME\" \\n /*\n" for n in range(40000))
    assert len(text) > 1 << 20
    strict.write_file("/project/x", "there")
    assert strict.bash(f"cat > big <<'END'\n{text}END\ncat /data/project/x; wc -l < big").stdout == "there40000\n"
    assert strict.read_file("big") == text
    with pytest.raises(CommandError) as error:
        strict.bash(f": '{text.replace(chr(39), '')}'; nothing")
    assert error.value.stderr == "bash: line 40001: nothing: command not found\n"
    assert refused(strict, f": <<'END'\n{text}END\nwhile :; do :; done") == ("loop_iterations", 100)
    left = "ls /home/agent/.localsandbox | grep -c line-"
    until(lambda: strict.bash(left + " || :").stdout == "0\n", "the lines are taken away")
