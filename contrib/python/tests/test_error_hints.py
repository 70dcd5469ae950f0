# SPDX-License-Identifier: Apache-2.0
"""Hints of exceptions name methods and arguments of this package. conftest.py checks this for each error of a test."""

from __future__ import annotations

import asyncio
import os
import platform
import tempfile
from pathlib import Path
from typing import Any, Dict

import pytest
from conftest import foreign_words, openrpc

from holt import AsyncSandbox, CommandFailed, ExistsError, HoltError, MissingError, PolicyError, Sandbox
from holt._hints import ARGUMENTS, METHODS, hint_for_python
from holt.results import Denial, LimitHit, Result

HINTS = {
    'Mount the directory in which it lies: filesystem.read_only: ["/opt/x"]': 'Mount the directory in which it lies: '
    'Sandbox(read_only=["/opt/x"])',
    'Name the directory in it that the command needs: filesystem.read_write.': 'Name the directory in it that the command '
    "needs: Sandbox(read_write=...).",
    'Allow it: network.allow: ["example.org"]': 'Allow it: Sandbox(net=["example.org"])',
    'To run without this protection: filesystem.protect: ["none"]': 'To run without this protection: '
    'Sandbox(policy={"filesystem": {"protect": ["none"]}})',
    'Raise limits.pids: 512, or limits.timeout: "5s".': 'Raise Sandbox(policy={"limits": {"pids": 512}}), or '
    'Sandbox(timeout="5s").',
    'PATH names no absolute directory: env.set: {"PATH": "/bin"}': 'PATH names no absolute directory: '
    'Sandbox(env={"PATH": "/bin"})',
    'Or run without it: allow_degraded: ["landlock"]': 'Or run without it: Sandbox(allow_degraded=["landlock"])',
    'Use it, or remove it: session.remove': "Use it, or remove it: Sandbox(name).remove()",
    "Remove one: session.remove. session.list lists them.": "Remove one: Sandbox(name).remove(). Sandbox.sessions() lists "
    "them.",
    "List the processes with process.list and end that one with process.kill, or use session.stop": "List the processes "
    "with processes() and end that one with Process.kill(), or use Sandbox(name).stop()",
    "let the session accept the new one: session.rebind": "let the session accept the new one: "
    'Server().call("session.rebind", ...)',
    "Copy them: files.read or files.write SESSION": "Copy them: files.read() or files.write() SESSION",
    "Name a directory that exists inside: cwd: \"DIR\"": 'Name a directory that exists inside: cwd="DIR"',
    "Run it with python.run, and stop it with python.interrupt.": "Run it with python(), and stop it with "
    "interrupt_python().",
    'Choose it: policy_name: "strict".': 'Choose it: Sandbox(policy="strict").',
    'For a shell: exec with argv: ["bash", "-c", "ls -l"]': 'For a shell: exec(["bash", "-c", "ls -l"])',
    "holt doctor tests every layer": "holt doctor tests every layer",
    "Look at /etc/holt/limits.pids.d, tools.py and http://session.list": "Look at /etc/holt/limits.pids.d, tools.py and "
    "http://session.list",
    "x: filesystem.hide: [tru": 'x: Sandbox(policy={"filesystem": {"hide": ...}}): [tru',
}


@pytest.fixture(scope="module")
def document(holt: str) -> Any:
    return openrpc.document_of(holt).root


@pytest.mark.parametrize("hint", HINTS)
def test_a_hint_names_methods_and_arguments(hint: str, document: Dict[str, Any]) -> None:
    assert hint_for_python(hint) == HINTS[hint]
    if not hint.startswith("Look"):
        assert not foreign_words(HINTS[hint], document)


def test_foreign_words_are_noticed(document: Dict[str, Any]) -> None:
    for hint in ("holt rm w", "Pass --ro DIR", "session.remove", "Set limits.pids: 5", "use files.read"):
        assert foreign_words(hint, document), hint


def test_no_method_and_no_argument_is_invented(document: Dict[str, Any]) -> None:
    import inspect

    assert {name for name in METHODS} <= {each["name"] for each in document["methods"]}
    assert set(ARGUMENTS.values()) <= set(inspect.signature(Sandbox.__init__).parameters)
    for text in METHODS.values():
        if text.startswith("Server().call("):
            continue
        name = text.rpartition(".")[2].partition("(")[0]
        area = text.partition(".")[0] if text.startswith(("files.", "kv.", "mount.", "routes.")) else ""
        place: Any = type(getattr(Sandbox, area, None)) if not area else __import__(f"holt.{area}", fromlist=[""])
        found = hasattr(Sandbox, name) or name == "Sandbox" or (area and hasattr(getattr(place, area.title()), name))
        assert found, text


def test_exceptions_show_these_hints(tmp_path: Path) -> None:
    with Sandbox("w", timeout="20s") as box:
        with pytest.raises(ExistsError, match=r"Sandbox\(name\).remove\(\)"):
            Sandbox("w", timeout="5s")
        with pytest.raises(MissingError, match=r"processes\(\)"):
            box.process("p999")
        box.remove()
    with pytest.raises(HoltError) as wide:
        Sandbox(read_write=["/var"])
    assert 'Sandbox(policy={"filesystem": {"allow_wide": True}})' in str(wide.value.hint) and "--rw" not in str(wide.value)
    with pytest.raises(PolicyError):
        Sandbox(policy={"limits": {"pids": "many"}})


def test_a_hint_keeps_the_policy_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"holt": 1}')
    wide = '{"filesystem": {"allow_wide": True}}'
    for policy, said in (
        ("strict", f'Sandbox(policy={{"extends": "strict", {wide[1:]})'),
        ({"extends": "ci"}, "Add this to the dict that you pass as policy"),
        (tmp_path / "mine.json", f"Add this to the file {tmp_path}/mine.json that you pass as policy"),
    ):
        with pytest.raises(HoltError) as error:
            Sandbox(policy=policy, read_write=["/var"])  # type: ignore[arg-type]
        assert said in str(error.value.hint)
    with pytest.raises(HoltError, match=r'^policy: no preset is called "strct"; did you mean "strict"\?'):
        Sandbox(policy="strct")
    with Sandbox(policy={"extends": "strict", "filesystem": {"allow_wide": True}}) as box:
        assert box.show()["preset"] == "strict"


@pytest.mark.parametrize("rule, said", (
    ("localhost:5432", 'import it: Sandbox(policy={"network": {"import": ["PORT"]}})'),
    ("*", 'use Sandbox(policy={"network": {"mode": "host"}})'),
))
def test_the_hint_for_a_rule_has_words_of_this_package(rule: str, said: str) -> None:
    with pytest.raises(PolicyError) as error:
        Sandbox(net=[rule])
    assert "--" not in str(error.value) and said in str(error.value.hint)


def test_likely_mistakes_are_warnings() -> None:
    async def opened() -> None:
        async with AsyncSandbox(policy={"filesystem": {"hide": ["nofile"]}}):
            pass

    with pytest.warns(RuntimeWarning, match="nofile: the path does not exist inside") as issued:
        with Sandbox(policy={"filesystem": {"hide": ["nofile"]}}) as box:
            (warning,) = box.warnings
        asyncio.run(opened())
    assert [each.filename for each in issued] == [__file__] * 2
    assert warning.startswith("policy: $.filesystem.hide[0]: nofile")
    with Sandbox() as box:
        assert box.warnings == []


def test_a_failed_command_has_a_hint_in_words_of_this_package(box: Sandbox) -> None:
    """`check()` raises the exception that a program shows to its user or model."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:  # pytest's own directories are closed to a session's uid
        os.chmod(place, 0o755)
        Path(place, "d").write_text("data")
        with pytest.raises(CommandFailed) as failed:
            box.exec(["cat", f"{place}/d"]).check()
        cure = f'Sandbox(read_only=["{place}"]) allows it'
        assert failed.value.hint and cure in failed.value.hint and cure in str(failed.value)
        with Sandbox(read_only=[place]) as other:
            assert other.exec(["cat", f"{place}/d"]).check().hint is None

    keyctl = {"x86_64": 250, "aarch64": 219}[platform.machine()]
    with pytest.raises(CommandFailed) as failed:
        box.exec(["python3", "-c", f"import ctypes; exit(ctypes.CDLL(None).syscall({keyctl}, 0, 0, 0) < 0)"]).check()
    assert 'Sandbox(policy={"syscalls": {"allow": ["keyctl"]}}) allows it' in str(failed.value)
    assert failed.value.hint and "--" not in failed.value.hint


def test_a_program_that_needs_two_arguments() -> None:
    """Its directory must be shown, and PATH must name it."""
    policy = {"filesystem": {"read_only": ["/opt/x"]}, "env": {"set": {"PATH": "/opt/x:/bin"}}}
    hint = Denial(layer="filesystem", what="tool", count=1, answer="ENOENT", policy=policy).hint
    cure = '{"filesystem": {"read_only": ["/opt/x"]}, "env": {"set": {"PATH": "/opt/x:/bin"}}}'
    assert hint == f"Sandbox(policy={cure}) allows it"


def test_a_command_that_needs_a_network_is_told(box: Sandbox) -> None:
    failed = box.exec(["python3", "-c", "import urllib.request; urllib.request.urlopen('http://a.invalid')"])
    assert failed.network_missed and "Sandbox(net=" in str(failed.hint)
    code = box.python("import urllib.request; urllib.request.urlopen('http://a.invalid')")
    assert code.network_missed and "Sandbox(net=" in str(code.hint)
    assert not box.exec(["sh", "-c", "echo fails; exit 1"]).network_missed


def test_a_timeout_of_the_project_is_named(tmp_path: Path) -> None:
    with Sandbox(workspace=tmp_path, timeout="0.2s") as box:
        done = box.exec(["sleep", "60"])
        assert done.cause == "timeout" and not done.timeout_by_project and done.hint is None
    (tmp_path / ".holt.json").write_text('{"holt": 1, "limits": {"timeout": "0.2s"}}')
    with Sandbox(workspace=tmp_path) as box:
        done = box.exec(["sleep", "60"])
        assert done.cause == "timeout" and done.timeout_by_project and ".holt.json" in str(done.hint)
        shorter = box.exec(["sleep", "60"], timeout="0.1s")
        assert shorter.cause == "timeout" and not shorter.timeout_by_project and shorter.hint is None
        slow = box.python("import time; time.sleep(60)")
        assert slow.cause == "timeout" and slow.timeout_by_project and ".holt.json" in str(slow.hint)


def test_a_reached_limit_has_a_hint_in_words_of_this_package() -> None:
    for field, words in (("limits.memory", "Sandbox(memory=...)"), ("limits.pids", 'Sandbox(policy={"limits": {"pids": ...}})')):
        hit = LimitHit("x", True, "it needed more", 1, "--x", field)
        failed = CommandFailed(Result("1", "exited", 1, limits_hit=(hit,)))
        assert str(failed) == f"exit code 1\n  it needed more; {words} raises it"
    assert LimitHit("x", True, "it needed more").hint == "no argument raises it"
