# SPDX-License-Identifier: Apache-2.0
"""Real agents use holt mcp by the configuration that README.md gives. Their model is a stub."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.paths import PROJECT
from lib.responses import Responses, message
from lib.sandbox import HANGS, Holt
from lib.sessions import Sessions, until
from lib.tools import needs

MODULES = PROJECT / "tests/peers/node_modules"
CODEX = MODULES / ".bin/codex"

pytestmark = [
    needs("node"), pytest.mark.alike,
    pytest.mark.skipif(not CODEX.exists(), reason="not on this host: codex; npm ci --prefix tests/peers installs it"),
]


def documented(agent: str) -> "list[str]":
    """The pieces of code in the row of this agent."""
    (row,) = re.findall(rf"^\| {agent} \| (.*) \|$", (PROJECT / "README.md").read_text(), flags=re.MULTILINE)
    return re.findall(r"`([^`]+)`", row)


class Codex:
    def __init__(self, sessions: Sessions, holt: Holt, identity: Identity, place: Path) -> None:
        self.identity, self.sessions, self.home = identity, sessions, place / "codex"
        self.workspace = place / "ws"
        for path in (self.home, self.workspace):
            path.mkdir()
            identity.own(path)
        self.holt = holt.binary

    def run(self, responses: Responses, *lines: str) -> str:
        """Runs codex with these lines for its MCP server."""
        server = "\n".join(lines).replace('"holt"', json.dumps(str(self.holt)))
        config = self.home / "config.toml"
        config.write_text(f"""
            model = "stub"
            model_provider = "stub"
            approval_policy = "never"
            [model_providers.stub]
            name = "stub"
            base_url = "{responses.url}"
            {server}
            env_vars = ["XDG_DATA_HOME"]
        """)
        self.identity.own(config)
        env = self.identity.environment({"CODEX_HOME": str(self.home), **self.sessions.env})
        argv = self.identity.as_user(self.identity.argv([CODEX, "exec", "--skip-git-repo-check", "-C", self.workspace, "do it"]))
        done = subprocess.run(argv, env=env, cwd=self.workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANGS)
        assert done.returncode == 0 and done.stdout == "finished\n", done
        return done.stderr


@pytest.fixture
def codex(sessions: Sessions, holt: Holt, identity: Identity, place: Path) -> Codex:
    return Codex(sessions, holt, identity, place)


def call(name: str, **arguments: object) -> "dict[str, Any]":
    return {"type": "function_call", "id": f"f-{name}", "call_id": f"c-{name}", "namespace": "mcp__holt", "name": name, "arguments": json.dumps(arguments)}


def results(responses: Responses) -> "list[str]":
    """Returns the results of calls that the model gets."""
    outputs = [item["output"] for item in responses.asked[-1]["input"] if item["type"] == "function_call_output"]
    return [output if isinstance(output, str) else json.dumps(output) for output in outputs]


def test_codex_calls_bash(codex: Codex, sessions: Sessions, identity: Identity) -> None:
    sessions.create("agent", "--workspace", str(codex.workspace))
    (codex.workspace / "file").write_text("of the host\n")
    identity.own(codex.workspace / "file")
    path, *lines = documented("Codex")
    assert path == "~/.codex/config.toml" and '"agent"' in " ".join(lines)
    calls = [call("bash", command="cat file; cd /tmp; x=kept"), call("bash", command="echo $x $PWD; touch /usr/x"), message("finished")]
    with Responses(*calls) as responses:
        codex.run(responses, *lines)
    (tools,) = [tool for tool in responses.asked[0]["tools"] if tool.get("name") == "mcp__holt"]
    assert "bash" in [tool["name"] for tool in tools["tools"]] and "sandbox" in tools["description"]
    first, second = (json.loads(text[text.index("{"):]) for text in results(responses))
    assert first["stdout"] == "of the host\n" and first["note"] == "holt: exited, exit code 0"
    # Codex shows its model the structured content alone.
    assert second["stdout"] == "kept /tmp\n" and second["note"].startswith("holt: exited, exit code 1; refused /usr/x: "), second


def test_codex_has_a_session_of_its_own(codex: Codex, sessions: Sessions) -> None:
    """It lists no roots, so its folder must be named. It ends its servers by a signal."""
    named, unnamed = 'args = ["mcp", "agent"]', 'args = ["mcp", "--workspace", "."]'
    assert f"`{unnamed}`" in (PROJECT / "README.md").read_text()
    lines = [line.replace(named, unnamed) for line in documented("Codex")[1:]]
    assert unnamed in lines
    with Responses(call("bash", command="touch made; pwd"), message("finished")) as responses:
        codex.run(responses, *lines)
    assert "/workspace" in results(responses)[0] and (codex.workspace / "made").exists()
    until(lambda: not sessions.names(), "the end of the session")


# --- Mastra ---

MASTRA = PROJECT / "contrib/mastra/node_modules"

PROGRAM = """
import { MCPClient } from "MODULES/@mastra/mcp/dist/index.js";
const client = CLIENT;
const tools = await client.listTools();
const bash = (command, more) => tools.holt_bash.execute({ command, ...more }, {});
const seen = [Object.keys(tools)];
try {
  seen.push(await bash("cat file; cd /tmp; x=kept"), await bash("echo $x $PWD; touch /usr/x"));
  seen.push(await bash("sleep 1000", { timeout_ms: 1 }).catch((error) => error.message));
} finally {
  await client.disconnect();
}
console.log("SEEN " + JSON.stringify(seen));
"""


@pytest.mark.skipif(not (MASTRA / "@mastra/mcp").is_dir(), reason="not on this host: @mastra/mcp; npm ci --prefix contrib/mastra installs it")
def test_mastra_calls_bash(sessions: Sessions, holt: Holt, identity: Identity, place: Path) -> None:
    """It throws an error if isError is set, so an exit code must not set it."""
    sessions.create("agent", "--workspace", str(holt.cwd))
    (holt.cwd / "file").write_text("of the host\n")
    identity.own(holt.cwd / "file")
    (client,) = documented("Mastra")
    client = client.replace('"holt"', json.dumps(str(holt.binary))).replace('"agent"]', f'"agent"], env: {json.dumps(sessions.env)}')
    assert "env" in client
    program = place / "agent.mjs"
    program.write_text(PROGRAM.replace("MODULES", str(MASTRA)).replace("CLIENT", client))
    identity.own(program)
    done = subprocess.run(identity.as_user(identity.argv(["node", program])), env=identity.environment({}), cwd=place, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=4 * HANGS)
    assert done.returncode == 0, done
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    names, first, second, late = json.loads(line.removeprefix("SEEN "))
    assert "holt_bash" in names and first["stdout"] == "of the host\n"
    assert second["stdout"] == "kept /tmp\n" and second["note"].startswith("holt: exited, exit code 1; refused /usr/x: ")
    assert late == "holt: timeout, exit code 124"
