# SPDX-License-Identifier: Apache-2.0
"""contrib/agents as its users have it, and the agents that npm installs, on a stub of a model."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib.identity import is_root
from lib.paths import PROJECT
from lib.sandbox import HANGS, Holt

SOURCE = PROJECT / "contrib" / "agents"
MODULES = PROJECT / "tests/peers/node_modules"
CLAUDE = MODULES / "@anthropic-ai/claude-code/cli.js"
OPENCODE = MODULES / "opencode-linux-x64-baseline/bin/opencode"

README = (SOURCE / "README.md").read_text()
HOOK, SHELL, PLUGIN = re.findall(r"^```json\n(.*?)^```$", README, re.M | re.S)
"""The examples of README.md: Claude Code's settings for the hook and for the shell, and OpenCode's settings."""

Done = subprocess.CompletedProcess[str]


@dataclass
class Told:
    """The results that the agent has sent to the model: the text of each, and whether it counts as an error."""

    texts: list[str]
    errors: list[bool]
    printed: str


class Agents:
    """A project of the identity's, with a copy of contrib/agents that it can read."""

    def __init__(self, holt: Holt, place: Path) -> None:
        self.holt, self.place, self.project, self.folder = holt, place, holt.cwd, place / "agents"
        shutil.copytree(SOURCE, self.folder, symlinks=True)
        for name in ("home", "tmp"):
            (place / name).mkdir()
            holt.identity.own(place / name)

    def environment(self, **more: str) -> "dict[str, str]":
        path = f"{self.holt.binary.parent}:/usr/local/bin:/usr/bin:/bin"
        return self.holt.identity.environment({"PATH": path, "HOME": str(self.place / "home"), "TMPDIR": str(self.place / "tmp"), **more})

    def run(self, *words: object, stdin: str = "", cwd: "Path | None" = None, **env: str) -> Done:
        """Runs a program of the host in the project."""
        argv = self.holt.identity.as_user(self.holt.identity.argv([str(w) for w in words]))
        return subprocess.run(argv, input=stdin, cwd=cwd or self.project, env=self.environment(**env), capture_output=True, timeout=HANGS,
                              text=True, errors="surrogateescape")

    # --- the hook, with input in the documented format ---

    def ask_hook(self, tool_input: Any, *options: str, tool: str = "Bash", cwd: "Path | None" = None, **env: str) -> Done:
        call = {"session_id": "s", "transcript_path": "/t", "hook_event_name": "PreToolUse", "permission_mode": "default",
                "cwd": str(cwd or self.project), "tool_name": tool, "tool_input": tool_input}
        return self.run(self.folder / "claude-hook", *options, stdin=json.dumps(call), cwd=cwd, **{"CLAUDE_PROJECT_DIR": str(self.project), **env})

    def hooked(self, command: str, *options: str, shell: str = "bash", cwd: "Path | None" = None, **env: str) -> Done:
        """Runs the command that the hook answers, as Claude Code does."""
        answered = self.ask_hook({"command": command, "description": "d", "timeout": 5}, *options, cwd=cwd, **env)
        assert answered.returncode == 0, answered
        output = json.loads(answered.stdout)["hookSpecificOutput"]
        assert output["hookEventName"] == "PreToolUse" and {**output["updatedInput"], "command": ""} == {"command": "", "description": "d", "timeout": 5}
        return self.run(shell, "-c", output["updatedInput"]["command"], cwd=cwd, **env)

    # --- real agents ---

    def with_model(self, calls: "Sequence[dict[str, Any]]", argv: "Sequence[object]", **env: str) -> Told:
        """Runs an agent on a model that makes these calls of tools. Both are alone in a network namespace."""
        script, record = self.place / "script.json", self.place / "record.json"
        script.write_text(json.dumps(list(calls)))
        # An agent leaves files in /tmp, whatever TMPDIR says.
        own = ("unshare", *(() if is_root() else ("--map-root-user",)), "--net", "--mount", "sh", "-c",
               'mount -t tmpfs -o mode=1777 none /tmp && exec "$@"', "sh")
        words = [*own, "/usr/bin/python3", PROJECT / "tests/lib/model.py", script, record, "--", *self.holt.identity.as_user([str(w) for w in argv])]
        done = subprocess.run([str(w) for w in words], cwd=self.project, env=self.environment(**env), stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=HANGS, text=True)
        assert record.exists(), done
        results = json.loads(record.read_text())["results"]
        assert len(results) == len(calls), (results, done)
        return Told([r["text"] for r in results], [r["error"] for r in results], done.stdout + done.stderr)

    def example(self, text: str) -> "dict[str, Any]":
        """Settings of README.md, with the paths of this test."""
        found: dict[str, Any] = json.loads(text.replace("/usr/local/share/holt/agents", str(self.folder)).replace("/usr/local/bin/holt", str(self.holt.binary)))
        return found

    def settings(self, way: str, options: str = "", **more: Any) -> "dict[str, Any]":
        """Claude Code's settings. way is "hook" or "shell"."""
        hook = self.example(HOOK.replace(" || exit 2", f" {options} || exit 2"))
        return {**hook, **(self.example(SHELL) if way == "shell" else {}), **more}

    def claude(self, *commands: "str | dict[str, Any]", settings: "dict[str, Any]", options: "Sequence[str]" = ("--allowedTools", "Bash"),
               **env: str) -> Told:
        """Runs Claude Code on a model that runs these commands by its tool Bash."""
        directory = self.place / "home/.claude"
        directory.mkdir(exist_ok=True)
        self.holt.identity.own(directory)
        (directory / "settings.json").write_text(json.dumps(settings))
        calls = [{"name": "Bash", "input": {"description": "d", **(c if isinstance(c, dict) else {"command": c})}} for c in commands]
        return self.with_model(calls, ["node", CLAUDE, "-p", "go", *options], ANTHROPIC_API_KEY="none", DISABLE_AUTOUPDATER="1",
                               CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", **env)

    def opencode(self, *commands: "str | dict[str, Any]", way: str, **more: Any) -> Told:
        """Runs OpenCode with the plugin on a model that runs these commands by its tool bash. way is "hook" or "shell"."""
        config = self.place / "opencode-config.json"
        provider = {"anthropic": {"options": {"baseURL": "{env:ANTHROPIC_BASE_URL}/v1", "apiKey": "none"}}}
        config.write_text(json.dumps({**self.example(PLUGIN), "permission": "allow", "provider": provider, **more}))
        calls = [{"name": "bash", "input": {"description": "d", **(c if isinstance(c, dict) else {"command": c})}} for c in commands]
        offline = {f"OPENCODE_DISABLE_{name}": "1" for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE")}
        shell = {"SHELL": str(self.folder / "holt-sh")} if way == "shell" else {"SHELL": "/bin/bash"}
        return self.with_model(calls, [OPENCODE, "run", "--model", "anthropic/claude-sonnet-4-5", "go"], OPENCODE_CONFIG=str(config),
                               HOLT_SH_HOLT=str(self.holt.binary), npm_config_offline="true", **offline, **shell)


NASTY = (
    "echo 'single' \"double\" \\'", r"printf '%s\n' '\' \\ \" '\\'", "echo \"it's\" 'a \"b\"' $'tab\\t'", "echo $((1 << 2)) `echo back` $(echo sub)",
    "cat <<EOF\nline 'one'\n$((6 * 7))\nEOF", "cat <<'EOF'\nno $HOME `x` \\\nEOF", "cat <<-E\n\ttab\n\tE\necho after", "cd sub && pwd | sed 's/.*\\///'; ls",
    "for i in 1 2; do\n  echo $i\ndone", "echo a; # comment's\necho b", "echo a\\\nb", "! true; echo $?", "echo '!' !x '$!'", "(exit 3)", "exit 42",
    "false || echo or && echo and", "echo out; echo err >&2", "sleep 0 & wait; echo $?", "echo {a,b}{1..3} ~root *.txt [x]*", "x=1; x=$x'2'; echo \"$x\"",
    "printf 'no newline'", "echo \u2028 \u00e9 \U0001f600", "f() { echo \"$1\"; }; f 'a  b'", "cat < file.txt | tr a-z A-Z", "read x; echo \"<$x>\"",
    "set -euo pipefail; false; echo no", "echo 'a\r\nb\tc'", "exec 3>&1; echo three >&3", "trap 'echo bye' EXIT; echo hi", "echo \"$0\" | grep -c bash",
    "true; }", "echo 'unclosed", "echo $'\\x27;id;\\x27'", "echo \"${x:-'}'}\"", "alias q=echo\nq hi", "test -t 0; echo $?", "kill -TERM $$",
)
"""Commands whose output a wrong quoting would change. "sub" and "file.txt" are in the working directory."""


def put_files(agents: Agents) -> None:
    """Makes the files of NASTY."""
    (agents.project / "sub").mkdir()
    (agents.project / "file.txt").write_text("text of file\n")
    for name in ("sub", "file.txt"):
        agents.holt.identity.own(agents.project / name)
