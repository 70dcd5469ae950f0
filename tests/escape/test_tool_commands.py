# SPDX-License-Identifier: Apache-2.0
"""No process inside can write the program that --tool NAME=COMMAND runs on the host."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt, Result
from lib.sessions import Session, Sessions, until
from lib.tools import needs

USER_AND_ROOT = pytest.mark.identities("user", "root")

# Both verbs check a command in the same way, before anything runs.
VERBS = {"exec": ["touch", "/workspace/ran"], "python": ["-c", "open('/workspace/ran', 'w')"]}


@pytest.fixture
def work(sessions: Sessions, workspace: Path) -> Session:
    return sessions.create("work", "--workspace", str(workspace))


def used(session: Session, command: str, **options: object) -> None:
    result = session.exec("holt-tool", "price", "{}", flags=["--tool", f"price={command}"], **options).ok()
    assert result.out == "3.5\n"


def refuse(session: Session, command: str, **options: object) -> list[Result]:
    results = []
    for verb, args in VERBS.items():
        words = ["--", *args] if verb == "exec" else args
        result = session(verb, "--tool", f"price={command}", *words, **options)
        assert "--tool price: " in result.refusal(), f"{command}: {result}"
        results.append(result)
    assert session.exec("test", "-e", "/workspace/ran").code == 1
    return results


def refused(session: Session, command: str, **options: object) -> None:
    """Asserts a refusal because a path leads to a place that the session can write."""
    for result in refuse(session, command, **options):
        assert "can write" in result.err, f"{command}: {result}"
        assert "Move it out of the workspace" in result.cure or "Name another directory" in result.cure, str(result)


def refused_as_shell(session: Session, command: str, **options: object) -> None:
    """Asserts a refusal because the command needs a shell, or is one."""
    for result in refuse(session, command, **options):
        assert "script outside the workspace" in result.cure or "env NAME=VALUE" in result.cure, f"{command}: {result}"


# --- words that lead into the workspace ---

# <W> is the workspace, <w> the same without its first slash, and <P> the directory above it, which is also the caller's
# HOME.
COMMANDS = {
    "relative": "./price",
    "absolute": "<W>/price",
    "in quotes": "'<W>/price'",
    "in half quotes": '<W>/"price"',
    "by a backslash": "<W>/pr\\ice",
    "in the home": "~/workspace/price",
    "by an interpreter": "sh <W>/price",
    "without a slash, after the interpreter": "sh price",
    "of an interpreter in the home": "python3 ~/workspace/price",
    "from the root": "env <w>/price",
    "by a starter": "env -i A=1 <W>/price",
    "by several starters": "nice -n 1 timeout 5 env A=1 sh <W>/price",
    "of an option": "cat --file=<W>/price",
    "of a short option": "cat -C<W>/price",
    "in a variable": "env PYTHONPATH=<W> python3 -c 'print(3)'",
    "in a list": "env PYTHONPATH=/nowhere:<W> python3 -c 'print(3)'",
    "after a home in a list": "env PYTHONPATH=/nowhere:~/workspace cat",
    "by a module": "env PYTHONPATH=<P> python3 -m workspace.price",
    "by a module in code": "env PYTHONPATH=<P> python3 -c 'import workspace.price'",
    "in code": "python3 -c 'exec(open(\"<W>/price\").read())'",
    "in code, with a home": "python3 -c 'import os; os.system(\". ~/workspace/price\")'",
    "in code, with HOME": "python3 -c 'import os; os.system(\". $HOME/workspace/price\")'",
    "in code, with HOME in braces": "perl -e 'system q(${HOME}/workspace/price)'",
    "in code, behind HOME": "python3 -c 'import os; os.system(os.environ[\"HOME\"] + \"/workspace/price\")'",
    "in code, after cd": "python3 -c 'import os; os.system(\"cd; workspace/price\")'",
    "in code, after cd ~": "python3 -c 'import os; os.system(\"cd ~ && ./workspace/price\")'",
    "in code, after chdir": "python3 -c 'import os; os.chdir(\"<P>\"); os.system(\"workspace/price\")'",
    "in code, by a glob": "python3 -c 'import os; os.system(\"cat ~/work*/price | sh\")'",
    "in code, by a glob in a directory": "python3 -c 'import os; os.system(\". <P>/*/price\")'",
    "in code, by a format": "python3 -c 'import os; os.system(\". <P>/%s/price\" % \"workspace\")'",
    "in a variable that bash expands": "env 'BASH_ENV=$HOME/workspace/price' bash <P>/tools/price",
    "relative to a directory": "git -C <P> --exec-path=workspace/price",
    "below a directory to run from": "git -C <P> log",
    "below a directory in one word": "python3 <P>",
    "as a URL": "cat file://<W>/price",
    "behind an @": "cat @<W>/price",
    "in braces": "cat '{<W>/price}'",
    "with a letter before it": "sed -n -ew<W>/price",
    "not there yet": "<W>/not-yet",
    "not there yet, to an interpreter": "sh <W>/not-yet",
    "up and down": "<W>/../workspace/price",
    "a link out of it": "./link",
    "the directory": "python3 <W>",
}


@USER_AND_ROOT
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_tool_in_the_workspace(command: str, work: Session, workspace: Path, program: Callable[..., Path]) -> None:
    program("workspace/price")
    (workspace / "link").symlink_to(program("tools/price"))
    for mark, path in {"<W>": workspace, "<w>": str(workspace)[1:], "<P>": workspace.parent}.items():
        command = command.replace(mark, str(path))
    refused(work, command, env={"HOME": str(workspace.parent)})


@USER_AND_ROOT
def test_paths_relative_to_a_directory_that_a_word_names(work: Session, place: Path, program: Callable[..., Path]) -> None:
    """The commands are programs that holt does not know, and code."""
    program("workspace/price")
    (place / "link").symlink_to("workspace")
    for command in (
        f"cat -C {place} workspace/price",
        f"cat --directory={place} --file=link/price",
        f"cat -C{place} ./workspace/not-yet",
        f"cat --path=/nowhere:{place} -m workspace.price",
        f"""python3 -c 'import sys; sys.path[0] = "{place}"; import workspace.price'""",
        f"""python3 -c 'import os; os.chdir("{place}"); os.execv("workspace/price", [])'""",
        f"""python3 -c 'import os; os.chdir("{place}"); import workspace'""",
    ):
        refused(work, command, env={"HOME": "/"})


# --- commands that only a shell understands, or that start one ---

SHELL = {
    "a glob": "P/work*/price",
    "a glob of one character": "P/workspac?/price",
    "a glob of a set": "P/workspac[e]/price",
    "braces": "P/{workspace,x}/price",
    "a variable of HOME": "$HOME/workspace/price",
    "a quoted variable of HOME": '"$HOME"/workspace/price',
    "a variable with a default": "${HOME:-x}/workspace/price",
    "another variable": "/home/$USER/workspace/price",
    "a variable of its own": "P=/x; $P/workspace/price",
    "an assignment": "A=1 /bin/cat",
    "the home of a user": "~root/workspace/price",
    "a change of directory": "cd ~/workspace && ./price",
    "a change to the home": "cd; workspace/price",
    "a pipe": "printf '%s/workspace/price' ~ | sh",
    "a pipe into the program": "true | ./price",
    "a subshell": "(cat; ./price)",
    "a command in $()": "echo $(./price)",
    "a command in ``": "echo `./price`",
    "a redirection": "sh <./price",
    "a background": "./price & true",
    "a line": "true\n./price",
    "quoted code": "sh -c '. ~/workspace/price'",
    "quoted code, with a variable": "sh -c 'exec $HOME/workspace/price'",
    "quoted code that changes the directory": 'bash -c "cd ~/workspace; ./price"',
    "code behind options": "bash -eo pipefail -c ./price",
    "code of a login shell": "/bin/bash -lc ./price",
    "code of a starter's shell": "env -i nice -n 1 timeout -k 1 5 sh -c ./price",
    "code of a shell behind a program": "setpriv --no-new-privs sh -c ./price",
    "code of busybox": "env sh -ec ./price",
    "a directory of env": "env -C ~ workspace/price",
    "a long directory of env": "env --chdir=/ workspace/price",
    "an abbreviated directory of env": "env --ch=/ workspace/price",
    "a line of env": "env -S 'sh -c ./price'",
    "a line of env among its letters": "env -iS 'sh -c ./price'",
    "find": "find /etc/hostname -exec sh -c ./price ';'",
    "the payload as a script": "sh",
    "the payload as a script by a path": "bash /dev/stdin",
    "the payload as code": "perl",
    "the payload as code by a starter": "env perl -",
    "the payload as words": "xargs env",
    "the payload as words of find": "xargs find /tmp -maxdepth 0 -name",
    "the payload as code behind a module": "perl -Mstrict",
}


@USER_AND_ROOT
@pytest.mark.parametrize("command", SHELL.values(), ids=SHELL)
def test_a_command_for_a_shell(command: str, work: Session, place: Path, program: Callable[..., Path]) -> None:
    program("workspace/price")
    refused_as_shell(work, command.replace("P/", f"{place}/"), env={"HOME": str(place), "USER": "workspace"})


@USER_AND_ROOT
@needs("bash")
def test_a_shell_by_another_name(work: Session, place: Path, program: Callable[..., Path]) -> None:
    (place / "shell").symlink_to(shutil.which("bash") or "")
    refused_as_shell(work, f"{place}/shell -c ./price")
    refused_as_shell(work, f"env {place}/shell")
    used(work, f"{place}/shell {program('tools/price')}")


@USER_AND_ROOT
def test_quoted_characters_are_as_they_are(work: Session) -> None:
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    words = r"""'a b' "c * d" e\ f '$HOME' \$HOME '~/x' '' x~ "\"" \;"""
    result = work.exec("holt-tool", "price", "{}", flags=["--tool", f"price=python3 -Ic '{code}' {words}"]).ok()
    assert result.out == '["a b", "c * d", "e f", "$HOME", "$HOME", "~/x", "", "x~", "\\"", ";"]\n'


@USER_AND_ROOT
@pytest.mark.parametrize("path", ["/proc/self/cwd<W>/price", "//proc/self/root<W>/price", "/proc/./thread-self/cwd<W>/price"])
def test_paths_that_mean_something_else_in_the_tool(
    path: str, work: Session, workspace: Path, program: Callable[..., Path]
) -> None:
    program("workspace/price")
    for command in (path, f"timeout 5 {path}", f"cat --file={path}"):
        for result in refuse(work, command.replace("<W>", str(workspace)), cwd="/usr"):
            assert "the tool's process" in result.err or "can write" in result.err


# --- programs that lead there ---


@USER_AND_ROOT
def test_tools_that_only_lead_into_the_workspace(
    work: Session, workspace: Path, place: Path, program: Callable[..., Path], holt: Holt
) -> None:
    price = program("workspace/price")
    link = place / "link"
    link.symlink_to(price)
    refused(work, str(link))
    hard = place / "hard"
    os.link(price, hard)
    result = work.exec("true", flags=["--tool", f"price={hard}"])
    assert "hard links" in result.refusal() and "copy" in result.cure
    price.unlink()
    refused(work, str(program("tools/script", f"#!{price}\n")))
    refused(work, str(program("tools/script", f"#! {str(price)[1:]} x\n")))
    refused(work, str(program("tools/script", f"#!/usr/bin/env {price}\n")))
    between = program("tools/between", f"#!{price}\n")
    refused(work, str(program("tools/script", f"#!{between}\n")))
    (program("bin/other").parent / "linked").symlink_to(program("workspace/price"))
    path = {"PATH": f"{between.parent.parent}/bin:{os.environ['PATH']}"}
    for line in ("#!/usr/bin/env linked\n", "#!/usr/bin/env -S linked -x\n"):
        refused(work, str(program("tools/script", line)), env=path)


@pytest.mark.identities("nested")
def test_a_hard_link_to_a_file_that_the_sandbox_can_never_write(work: Session, workspace: Path, place: Path) -> None:
    """It is root's on the host, so that the uid has no number in the user namespace. Some hosts have such programs."""
    hard = workspace / "hard"
    script = place / "price.sh"
    script.write_text("#!/bin/sh\necho 3.5\n")
    script.chmod(0o755)
    os.link(script, hard)
    used(work, str(script))
    script.chmod(0o777)
    assert "hard links" in work.exec("true", flags=["--tool", f"price={script}"]).refusal()


@USER_AND_ROOT
def test_a_tool_that_path_finds_in_the_workspace(work: Session, workspace: Path, program: Callable[..., Path]) -> None:
    program("workspace/bin/price")
    program("workspace/bin/env")
    path = f"{workspace}/bin:{os.environ['PATH']}"
    for command in ("price", "env price", "timeout 5 price"):
        refused(work, command, env={"PATH": path})
    # The tool's own programs are not looked up there either.
    code = "import os; print(3.5 if 'workspace' not in os.environ['PATH'] else 1)"
    used(work, str(program("tools/price", f"#!/usr/bin/python3\n{code}\n")), env={"PATH": path})


@USER_AND_ROOT
def test_a_tool_in_another_writable_mount(sessions: Sessions, place: Path, program: Callable[..., Path]) -> None:
    price = program("shared/price")
    session = sessions.create("shared", "--rw", str(price.parent))
    refused(session, str(price))
    own = session.directory / "workspace" / "price"
    session.exec("cp", "/bin/true", "/workspace/price").ok()
    refused(session, str(own))
    session.exec("mkdir", "-p", "/opt/tool").ok()
    session.exec("cp", "/bin/true", "/opt/tool/price").ok()
    refused(session, str(session.directory / "root" / "opt" / "tool" / "price"))


@USER_AND_ROOT
def test_a_tool_elsewhere_is_used(
    sessions: Sessions, work: Session, workspace: Path, place: Path, program: Callable[..., Path], holt: Holt
) -> None:
    price = program("tools/price")
    program("tools/code", "print(3.5)")
    used(work, str(price))
    used(work, f"../tools/{price.name}")
    used(work, "./price", cwd=price.parent)
    used(work, "sh price", cwd=price.parent)
    used(work, "env A=1 ./price", cwd=price.parent)
    used(work, "~/tools/price", env={"HOME": str(place)})
    used(work, "python3 ~/tools/code", env={"HOME": str(place)})
    read_only = sessions.create("ro", "--workspace", str(workspace), "--workspace-mode", "ro")
    program("workspace/price")
    used(read_only, "./price")


@USER_AND_ROOT
def test_a_tool_starts_in_the_root_and_with_a_clean_environment(work: Session) -> None:
    code = "import json, os; print(json.dumps([os.getcwd(), sorted(os.environ)]))"
    variables = {"SECRET": "x", "PYTHONPATH": ".", "LD_PRELOAD": "", "BASH_ENV": "x", "ENV": "x", "LANG": "C.UTF-8"}
    flags = ["--tool", f"price=python3 -I -c '{code}'"]
    result = work.exec("holt-tool", "price", "{}", flags=flags, env=variables).ok()
    assert result.out.startswith('["/", [') and '"LANG"' in result.out and '"HOME"' in result.out
    assert not [name for name in variables if name != "LANG" and f'"{name}"' in result.out], result.out




# --- changes after the check ---

SWAP = """
set -e
holt-tool price '{}'
read go
holt-tool price '{}' || true
"""


def swapped(work: Session, command: str, swap: Callable[[], object], **options: object) -> list[str]:
    """A tool's output before and after an action of the host."""
    with work.start("bash", "-c", SWAP, flags=["--tool", f"price={command}"], stdin=subprocess.PIPE, **options) as running:
        assert running.process.stdin and running.process.stdout
        first = running.process.stdout.readline()
        swap()
        running.process.stdin.write(b"\n")
        running.process.stdin.flush()
        result = running.wait()
    return [first.decode().strip() if isinstance(first, bytes) else first.strip(), result.out.strip(), result.err.strip()]


@USER_AND_ROOT
@pytest.mark.parametrize("starter", ["", "sh ", "timeout 5 "], ids=["itself", "script", "started"])
def test_a_tool_that_leads_into_the_workspace_later(
    starter: str, work: Session, place: Path, holt: Holt, program: Callable[..., Path]
) -> None:
    """The host replaces the tool by a symlink, and the next call checks the tool again."""
    evil, price = program("workspace/evil", "#!/bin/sh\necho 6.6\n"), program("tools/price")

    def swap() -> None:
        price.unlink()
        price.symlink_to(evil)

    first, second, said = swapped(work, f"{starter}{price}", swap)
    assert (first, second) == ("3.5", ""), (first, second, said)
    assert "can write" in said


# The host's action on the tool's directory between two calls; afterwards the program is the session's.
MOVES = {
    "a link to the workspace": "rm price; ln -s ../workspace/price price",
    "a directory that is a link": "cd ..; mv tools old; ln -s workspace tools",
    "a hard link": "rm price; ln ../workspace/price price",
    "an interpreter of the workspace": "printf '#!%s\\n' $PWD/../workspace/price >price",
}


@USER_AND_ROOT
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_a_tool_that_moves_into_the_workspace(
    move: str, work: Session, place: Path, workspace: Path, program: Callable[..., Path]
) -> None:
    """Each call finds out again which files the session can write."""
    tool = program("tools/price")
    program("workspace/price", "#!/bin/sh\ntouch $HOME/pwned\necho 6\n")
    calls = "holt-tool price {}; touch called; while [ ! -e moved ]; do sleep 0.01; done; holt-tool price {}"
    argv = ["exec", work.name, "--tool", f"price={tool}", "--", "sh", "-c", calls]
    with work.sessions.start(argv, env={"HOME": str(place)}) as running:
        until(lambda: (workspace / "called").exists(), "the first call")
        work.sessions.holt.identity.run(["sh", "-ec", move], cwd=tool.parent).check_returncode()
        (workspace / "moved").touch()
        result = running.wait()

    assert result.out == "3.5\n" and not (place / "pwned").exists(), str(result)
    assert "--tool price: " in result.err, str(result)


@USER_AND_ROOT
def test_a_tool_that_its_owner_edits_goes_on(work: Session, workspace: Path, program: Callable[..., Path]) -> None:
    tool = program("tools/price")
    other = program("tools/other", "#!/bin/sh\necho 4.5\n")
    calls = "holt-tool price {}; touch called; while [ ! -e moved ]; do sleep 0.01; done; holt-tool price {}"
    with work.sessions.start(["exec", work.name, "--tool", f"price={tool}", "--", "sh", "-c", calls]) as running:
        until(lambda: (workspace / "called").exists(), "the first call")
        other.replace(tool)
        (workspace / "moved").touch()
        assert running.wait().out == "3.5\n4.5\n"


# --- modules of the home ---


@USER_AND_ROOT
def test_modules_of_a_writable_home_are_not_loaded(
    sessions: Sessions, place: Path, holt: Holt, program: Callable[..., Path]
) -> None:
    """With --rw ~/.local, the session could give a usercustomize to each tool in Python."""
    version = subprocess.run(["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                             check=True, capture_output=True, text=True).stdout.strip()
    code = program(f".local/lib/python{version}/site-packages/usercustomize.py", f"open('{place}/HOST', 'w')")
    price = program("tools/price", "#!/usr/bin/python3\nprint(3.5)\n")
    session = sessions.create("home", "--rw", str(place / ".local"), env={"HOME": str(place)})
    plain = sessions.create("plain", env={"HOME": str(place)})
    assert plain.exec("true", flags=["--tool", f"price={price}"], env={"HOME": str(place)}).ok().err == ""
    used(session, str(price), env={"HOME": str(place)})
    used(session, f"/usr/bin/python3 {price}", env={"HOME": str(place)})
    assert code.exists() and not (place / "HOST").exists()
    result = session.exec("true", flags=["--tool", f"price={price}"], env={"HOME": str(place)}).ok()
    assert f"can write {place}/.local/lib " in result.err and "a tool may load" in result.err


# --- overlays ---


@pytest.fixture
def overlay(place: Path, identity: Identity) -> Iterator[Callable[..., Path]]:
    """Mounts an overlay: overlay(LOWER, UPPER), with paths below the place. Returns its path."""
    top = place / "merged"

    def make(lower: str | Path, upper: str | Path, directory: Path = Path("/")) -> Path:
        for path in (top, place / "work"):
            path.mkdir(exist_ok=True)
            identity.own(path)
        options = f"lowerdir={lower},upperdir={upper},workdir={place}/work"
        result = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(top)], cwd=directory, capture_output=True)
        if result.returncode != 0:
            pytest.skip(f"no overlay can be mounted here: {result.stderr!r}")
        return top

    yield make
    subprocess.run(["umount", "-l", str(top)], check=False)


@USER_AND_ROOT
@pytest.mark.parametrize("below", ["", "/deep/er"], ids=["top", "below"])
@pytest.mark.parametrize("layer", ["lower", "upper"])
def test_a_tool_on_an_overlay_of_the_workspace(
    layer: str, below: str, work: Session, workspace: Path, place: Path, program: Callable[..., Path], overlay: Callable[..., Path]
) -> None:
    """A write to a layer shows on the overlay."""
    program(f"workspace{below}/price")
    above = place / "empty"
    above.mkdir()
    (place / "second").mkdir()
    lower, upper = (f"{above}:{workspace}", place / "second") if layer == "lower" else (above, workspace)
    top = overlay(lower, upper)
    refused(work, f"{top}{below}/price")
    refused(work, f"sh {top}{below}/price")
    refused(work, f"{top}{below}/not-yet")
    price = program("tools/price")
    used(work, str(price))


@pytest.mark.identities("user")  # Root needs a workspace that can be mapped to other ids.
def test_a_tool_below_an_overlay_that_is_the_workspace(
    sessions: Sessions, place: Path, program: Callable[..., Path], overlay: Callable[..., Path]
) -> None:
    """A write of the session to the overlay goes to its upper directory."""
    price = program("upper/price")
    lower = program("lower/other")
    top = overlay(str(lower.parent), str(price.parent))
    session = sessions.create("merged", "--workspace", str(top))
    refused(session, str(price))
    refused(session, str(top / "other"))
    # A write to an overlay never reaches its lower directory.
    used(session, str(lower))


def escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


@USER_AND_ROOT
def test_a_tool_on_an_overlay_elsewhere(
    work: Session, workspace: Path, place: Path, program: Callable[..., Path], overlay: Callable[..., Path]
) -> None:
    lower, upper = program("lower, : \\ x/price"), program("up,per: \\ x/other")
    top = overlay(escaped(lower.parent), escaped(upper.parent))
    used(work, str(top / "price"))
    used(work, str(top / "other"))


@USER_AND_ROOT
def test_a_tool_on_an_overlay_by_a_link(
    work: Session, workspace: Path, place: Path, program: Callable[..., Path], overlay: Callable[..., Path]
) -> None:
    """The session changes the symlink after it has led the overlay to the workspace."""
    program("workspace/real/price")
    (workspace / "link").symlink_to("real")
    (place / "upper").mkdir()
    top = overlay(workspace / "link", place / "upper")
    work.exec("ln", "-sfn", "/usr", "link").ok()
    for result in refuse(work, str(top / "price")):
        assert "lies on FUSE or an overlay" in result.err


@USER_AND_ROOT
def test_a_tool_on_an_overlay_that_does_not_tell(
    work: Session, place: Path, program: Callable[..., Path], overlay: Callable[..., Path]
) -> None:
    """The layers of this overlay are relative to an unknown directory."""
    program("workspace/price")
    (place / "upper").mkdir()
    top = overlay("workspace", "upper", place)
    for result in refuse(work, str(top / "price")):
        assert "lies on FUSE or an overlay" in result.err and "Copy it" in result.cure
