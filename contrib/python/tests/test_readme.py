# SPDX-License-Identifier: Apache-2.0
"""The examples of README.md do what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List

import pytest

from holt import Sandbox

README = Path(__file__).resolve().parents[1] / "README.md"

EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.M | re.S)

(AGENT,) = (each for each in EXAMPLES if "def bash_tool" in each)


def shown(example: str) -> List[str]:
    """Returns the comments behind calls of print(), which are the expected output."""
    return re.findall(r"^ *print\(.*\)  # (.*)$", example, re.M)


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each is not AGENT])
@pytest.mark.usefixtures("bridge")
def test_an_example_prints_what_its_comments_say(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example, str(README), "exec"), {})
    assert shown(example)
    assert [line for line in capsys.readouterr().out.splitlines() if line] == shown(example)


@pytest.mark.usefixtures("bridge")
def test_the_tools_of_an_agent() -> None:
    found: Dict[str, Any] = {}
    code, _, last = AGENT.rpartition("\nbash_tool(")
    exec(compile(code, str(README), "exec"), found)
    try:
        call = "from host_tools import call, search\ncall('lookup', {'city': 'Oslo'})"
        assert found["python_tool"](call) == "[21.5, 21.5, 21.5]" and "box.close()" in last
        assert found["bash_tool"]("echo hi; exit 3") == "hi\n\n[exited, exit code 3]"
        assert "namespaces are not available" in found["bash_tool"]("unshare --map-root-user true")
        assert found["bash_tool"]("seq 100000").startswith("[")
        assert "ZeroDivisionError" in found["python_tool"]("1/0")
        assert found["write_file_tool"]("a/b", "text") == "4 bytes written" and found["read_file_tool"]("a/b") == "text"
        assert found["write_file_tool"]("/usr/x", "").startswith("not written: ")
        assert "no file" in found["read_file_tool"]("none")
        found["box"].files.write("raw", b"\xff")
        assert found["read_file_tool"]("raw") == "raw is not text: 1 bytes"
        assert found["read_file_tool"]("a").startswith("not read: ")
        assert found["python_tool"]("import sys; print('e', file=sys.stderr); 1") == "e\n1"
        assert "[exited, exit code 3: " in found["python_tool"]("import os; os._exit(3)")
    finally:
        box = found["box"]
        box.remove()
        box.close()
    assert isinstance(box, Sandbox)
