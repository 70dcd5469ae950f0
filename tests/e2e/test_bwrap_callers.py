# SPDX-License-Identifier: Apache-2.0
"""Programs that call bwrap run unchanged with holt in its place. They must see what they see with the host's bubblewrap."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lib.bwrap import PEER
from lib.identity import Identity, is_root
from lib.paths import PROJECT
from lib.responses import Responses, message
from lib.sandbox import HANGS, Holt
from lib.tools import needs

MODULES = Path(__file__).parents[2] / "tests/peers/node_modules"
CALLERS = [MODULES / ".bin" / name for name in ("codex", "srt")]
# srt needs ripgrep, which codex brings.
RIPGREP = sorted(MODULES.glob("@openai/codex-linux-*/vendor/*/codex-path"))

pytestmark = [
    needs("node", "bwrap", "socat", "python3"), pytest.mark.identities("user", "root"),
    pytest.mark.skipif(not all(c.exists() for c in CALLERS) or not RIPGREP,
                       reason="not on this host: the npm programs that call bwrap; npm ci --prefix tests/peers installs them"),
]


@dataclass
class Ended:
    code: int
    out: str
    err: str


class Caller:
    """Runs a program that finds one of the two bwraps first in its PATH."""

    def __init__(self, script: str, kind: str, identity: Identity, place: Path) -> None:
        self.kind, self.identity, self.place = kind, identity, place
        self.workspace, self.report = place / "ws", place / "report.json"
        for name in ("bin", "ws", "codex", "secret", "tmp"):
            (place / name).mkdir()
            identity.own(place / name)
        # codex executes what a symlink leads to, so that holt would not learn that it is called bwrap.
        (place / "bin/bwrap").write_text(f'#!/bin/sh\nexec {script} "$@"\n')
        (place / "bin/bwrap").chmod(0o755)
        (place / "secret/key").write_text("secret\n")
        identity.own(place / "secret/key")

    def __call__(self, *words: object, env: "dict[str, str] | None" = None) -> Ended:
        more = {"PATH": f"{self.place}/bin:/usr/local/bin:/usr/bin:/bin:{RIPGREP[0]}", "CODEX_HOME": str(self.place / "codex"),
                "TMPDIR": str(self.place / "tmp"),
                "HOLT_BWRAP_REPORT": str(self.report), **(env or {})}
        # codex covers its files in /tmp, under each path where mountinfo says that they are. Here that names a mount that is hidden.
        own = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=1777 none /tmp && exec "$@"', "sh") if is_root() else ()
        argv = [*own, *self.identity.as_user([str(w) for w in words])]
        done = subprocess.run(argv, env=self.identity.environment(more), cwd=self.workspace, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=HANGS)
        assert self.report.exists() == (self.kind == "holt"), "the caller has used another bwrap"
        return Ended(done.returncode, done.stdout, done.stderr)

    def codex(self, script: str, *options: str, env: "dict[str, str] | None" = None) -> Ended:
        return self(CALLERS[0], "sandbox", *options, "--", "sh", "-c", script, env=env)

    def srt(self, script: str, env: "dict[str, str] | None" = None, **settings: object) -> Ended:
        path = self.place / "srt.json"
        network = {"allowedDomains": ["127.0.0.1"], "deniedDomains": []}
        files = {"denyRead": [str(self.place / "secret")], "allowWrite": [str(self.workspace)], "denyWrite": [str(self.workspace / "kept")]}
        path.write_text(json.dumps({"network": network, "filesystem": files, **settings}))
        self.identity.own(path)
        return self(CALLERS[1], "-s", path, "-c", script, env=env)


@pytest.fixture(params=("holt", "bubblewrap"))
def caller(request: pytest.FixtureRequest, holt: Holt, place: Path) -> Caller:
    return Caller(f"{holt.binary} bwrap" if request.param == "holt" else str(PEER), request.param, holt.identity, place)


# --- codex ---

WRITES = ("-c", 'sandbox_mode="workspace-write"')


def test_codex_reads_only(caller: Caller) -> None:
    done = caller.codex("cat /etc/hostname >/dev/null && echo read; touch x; touch /etc/x; exit 7")
    assert (done.code, done.out) == (7, "read\n") and done.err.count("Read-only file system") == 2, done
    assert list(caller.workspace.iterdir()) == []


def test_codex_writes_the_workspace(caller: Caller) -> None:
    """Its .git stays as it is."""
    (caller.workspace / ".git").mkdir()
    caller.identity.own(caller.workspace / ".git")
    done = caller.codex("touch x && echo wrote; touch .git/x; touch ../x; id -u; exit 3", *WRITES)
    assert done.code == 3 and done.out.split() == ["wrote", str(caller.identity.uid)] and done.err.count("Read-only file system") == 2, done
    assert sorted(p.name for p in caller.workspace.rglob("*")) == [".git", "x"]


def test_codex_has_no_network_and_no_other_processes(caller: Caller) -> None:
    script = ("grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; ls /proc | grep -c '^[0-9]'; wc -l < /proc/net/dev; "
              "python3 -c 'import socket; socket.socket()'")
    done = caller.codex(script, *WRITES)
    words = done.out.split()
    assert words[:4] == ["NoNewPrivs:", "1", "Seccomp:", "2"] and int(words[4]) < 10 and words[5] == "3", done
    assert done.code == 1 and "Operation not permitted" in done.err, done


@pytest.mark.parametrize("script,code", (("kill -9 $$", 137), ("kill -TERM $$", 143), ("exit 0", 0), ("exit 255", 255)))
def test_codex_gets_the_exit_code(script: str, code: int, caller: Caller) -> None:
    assert caller.codex(script, *WRITES).code == code


# --- sandbox-runtime ---


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page\n")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def page() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_srt_files(caller: Caller) -> None:
    (caller.workspace / "kept").mkdir()
    caller.identity.own(caller.workspace / "kept")
    script = f"touch x && echo wrote; touch kept/x; touch {caller.place}/x; cat {caller.place}/secret/key; touch .bashrc; id -u; exit 5"
    done = caller.srt(script)
    assert done.code == 5 and done.out.split() == ["wrote", str(caller.identity.uid)], done
    assert done.err.count("Read-only file system") == 2 and "secret/key: No such file" in done.err, done
    assert (caller.workspace / "x").exists() and list((caller.workspace / "kept").iterdir()) == []


def test_srt_confines(caller: Caller) -> None:
    script = "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; python3 -c 'import socket; socket.socket(socket.AF_UNIX)'"
    done = caller.srt(script)
    assert done.out.split() == ["NoNewPrivs:", "1", "Seccomp:", "2"] and "Operation not permitted" in done.err, done


def test_srt_network(caller: Caller, page: int) -> None:
    """Only its proxy, to which socat leads inside, connects to an allowed host."""
    script = (f"curl -sS --noproxy '' http://127.0.0.1:{page}/; "
              f"curl -sS --noproxy '' http://other.invalid:{page}/ | grep -o 'blocked[a-z -]*'; curl -sS --noproxy '*' http://127.0.0.1:{page}/")
    done = caller.srt(script)
    assert done.out.splitlines()[0] == "page" and "blocked" in done.out and "Failed to connect" in done.err, done


@pytest.mark.parametrize("script,code", (("kill -9 $$", 137), ("exit 255", 255), ("true", 0)))
def test_srt_gets_the_exit_code(script: str, code: int, caller: Caller) -> None:
    assert caller.srt(script).code == code


# --- a policy of holt ---


@pytest.fixture
def confined(holt: Holt, place: Path) -> Caller:
    return Caller(f"{holt.binary} bwrap", "holt", holt.identity, place)


@pytest.mark.parametrize("preset", ("standard", "strict"))
def test_codex_under_a_policy(preset: str, confined: Caller) -> None:
    done = confined.codex("touch x && echo wrote; unshare -U true; exit 3", *WRITES, env={"HOLT_BWRAP_POLICY": preset})
    assert (done.code, done.out) == (3, "wrote\n") and "unshare failed" in done.err, done
    assert json.loads(confined.report.read_text())["layers"]["seccomp"] == "on"


def test_srt_under_a_policy(confined: Caller, page: int) -> None:
    """It makes namespaces inside. A preset refuses that; the policy of holt-bwrap(1) allows it, and still limits the command."""
    script = f"curl -sS --noproxy '' http://127.0.0.1:{page}/; grep ^NoNewPrivs: /proc/self/status; ulimit -n"
    refused = confined.srt(script, env={"HOLT_BWRAP_POLICY": "standard"})
    assert refused.code == 1 and "holt: refused unshare" in refused.err and refused.out == "", refused

    [text] = re.findall(r"^```\n(\{.*?\n\})\n```$", (PROJECT / "man/holt-bwrap.1.scd").read_text(), re.M | re.S)
    path = confined.place / "policy.json"
    path.write_text(json.dumps({**json.loads(text), "limits": {"open_files": 123}}))
    done = confined.srt(script, env={"HOLT_BWRAP_POLICY": str(confined.identity.own(path))})
    assert (done.code, done.out.split()) == (0, ["page", "NoNewPrivs:", "1", "123"]), done
    assert {layer: json.loads(confined.report.read_text())["layers"][layer] for layer in ("seccomp", "limits")} == {"seccomp": "on", "limits": "on"}


def test_codex_as_an_agent(confined: Caller) -> None:
    """Its model, a stub, runs a command, as contrib/agents/README.md describes. The command has holt's filter."""
    command = {"cmd": "id -u; touch made ../out; unshare -U true"}
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "exec_command", "arguments": json.dumps(command)}
    with Responses(call, message("finished")) as model:
        provider = f'model_providers.stub={{name="stub", base_url="{model.url}"}}'
        done = confined(CALLERS[0], "exec", "--skip-git-repo-check", *WRITES, "-c", 'model="stub"', "-c", 'model_provider="stub"', "-c", provider, "do it",
                        env={"HOLT_BWRAP_POLICY": "strict"})
    (output,) = [str(item["output"]) for item in model.asked[-1]["input"] if item["type"] == "function_call_output"]

    assert (done.code, done.out) == (0, "finished\n"), done
    assert str(confined.identity.uid) in output and "unshare failed: Operation not permitted" in output and "holt: refused unshare" in output, output
    assert (confined.workspace / "made").exists() and not (confined.place / "out").exists()
    assert json.loads(confined.report.read_text())["layers"]["seccomp"] == "on"
