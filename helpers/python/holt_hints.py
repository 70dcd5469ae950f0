# SPDX-License-Identifier: Apache-2.0
"""Suggests Python code in place of notebook commands. holt_interpreter loads this module when code has a syntax error."""

import re


def hint_of(source, number):
    """Suggests a replacement for a line that only IPython understands. Returns None for any other mistake."""
    lines = source.split("\n")
    line = lines[number - 1].strip() if number and number <= len(lines) else ""
    found = re.match(r"(?:[\w, ]+=\s*)?(!{1,2}|%{1,2})\s*(\w\S*)(.*)", line)
    if found and found[1][0] == "!":
        command = (found[2] + found[3]).strip()
        if re.match(r"(python\S* -m )?pip3? install\b", command):
            return "this is Python, without IPython's \"!\": imports install missing packages"
        return f"this is Python, without IPython's \"!\": use the bash tool, or subprocess.run({command!r}, shell=True)"
    if found:
        return f"this is Python, without IPython's magics: leave {found[1]}{found[2]} out, or use the bash tool or subprocess"
    if re.match(r"\?{1,2}\w|[\w.]+\?{1,2}$", line):
        return f"this is Python, without IPython's \"?\": use help({line.strip('?')})"
    return None
