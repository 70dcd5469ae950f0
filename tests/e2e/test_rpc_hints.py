# SPDX-License-Identifier: Apache-2.0
"""Errors for clients of holt serve name methods, parameters and fields of a policy. The command line's own words stay there.

Each client of the suites looks for such words in every error (lib/openrpc.py). These tests know what must be in their place.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lib.openrpc import Checker, Mismatch, command_words, document_of
from lib.paths import built_holt
from lib.sessions import Json, Rpc, RpcError, Sessions

pytestmark = pytest.mark.alike


def refused(rpc: Rpc, method: str, **params: object) -> RpcError:
    with pytest.raises(RpcError) as error:
        rpc.call(method, **params)
    return error.value


def test_hints_for_a_command_show_it_as_argv(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        rpc.call("session.create", name="w")
        assert 'Use it: exec with argv: ["COMMAND"]\n' in refused(rpc, "session.create", name="w").hint
        for argv, hint in (
            (["ls -l"], 'To pass its words separately: exec with argv: ["ls", "-l"]\n'
                        'For a shell: exec with argv: ["bash", "-c", "ls -l"]'),
            (["cd"], 'exec with argv: ["bash", "-c", "cd ..."]'),
            (["ubuntu", "ls"], 'Write only the command: exec with argv: ["COMMAND"]'),
            (["A=b"], 'To set a variable: env.set: {"A": "b"}'),
            (["A=b c", "x"], 'To set a variable: env.set: {"A": "b c"}'),
        ):
            assert hint in refused(rpc, "exec", session="w", argv=argv).hint
        assert "session.create takes them" in refused(rpc, "exec", session="w", argv=["/root/x"]).hint


def test_the_command_line_keeps_its_own_words(sessions: Sessions) -> None:
    sessions(["create", "w"]).ok()
    assert "holt exec w -- COMMAND" in sessions(["create", "w"]).cure
    assert "holt exec w -- bash -c 'ls -l'" in sessions(["exec", "w", "--", "ls -l"]).cure
    assert "--env 'A=b c'" in sessions(["exec", "w", "--", "A=b c", "x"]).cure


def test_errors_of_policies_name_their_place(sessions: Sessions, workspace: Path) -> None:
    project = workspace / ".holt.json"

    def create(**params: object) -> RpcError:
        return refused(rpc, "session.create", name="w", cwd=workspace.as_posix(), **params)

    def with_project(**document: object) -> RpcError:
        project.write_text(json.dumps({"holt": 1, **document}))
        error = create(workspace=".")
        project.unlink()
        return error

    def with_filesystem(**fields: object) -> RpcError:
        return create(policy={"holt": 1, "filesystem": fields})

    with sessions.serve() as rpc:
        assert 'policy_name: "FILE"' in with_project(filesystem={"read_write": ["/opt"]}).hint
        assert 'policy_name: "NAME"' in with_project(extends="strict").hint
        assert create(policy_name="strct").message.startswith('policy_name: no preset is called "strct"')
        assert "The presets are" in create(policy_name="./none.json").hint
        assert 'filesystem.read_only: ["/etc/NAME"]' in with_filesystem(etc=["shadow"]).hint
        both = with_filesystem(read_only=["/opt:/workspace"]).message
        assert both.startswith("the session's own workspace and policy: $.filesystem.read_only[0]"), both
        commas = with_filesystem(hide=[".env,*.pem"]).hint
        assert commas == 'Name each path separately: filesystem.hide: [".env"] filesystem.hide: ["*.pem"]'


@pytest.mark.parametrize("params, path", (
    ({"policy": {"holt": 1, "limits": {"timeout": "x"}}}, "$.params.policy.limits.timeout"),
    ({"policy": {"holt": 1, "filesystem": {"hide": [3]}}}, "$.params.policy.filesystem.hide[0]"),
    ({"policy": {"holt": 1, "filesystem": {"read_write": ["/none"]}}}, "$.params.policy.filesystem.read_write[0]"),
    ({"policy": {"limits": {}}}, "$.params.policy.holt"),
    ({"policy_name": "strct"}, "$.params.policy_name"),
    ({"workspace": "/none"}, "$.params.workspace"),
    ({"idle": "x"}, "$.params.idle"),
    ({"idle": "100ms"}, "$.params.idle"),
    ({"cwd": "relative"}, "$.params.cwd"),
    ({"name": "B!"}, "$.params.name"),
    ({"name": "exists"}, "$.params.name"),
    ({"allow_degraded": ["x"]}, "$.params.allow_degraded"),
    ({"tier": "x"}, "$.params.tier"),
))
def test_errors_have_the_path_of_the_wrong_parameter(params: Json, path: str, sessions: Sessions) -> None:
    sessions.create("exists")
    with sessions.serve() as rpc:
        assert refused(rpc, "session.create", **{"name": "w", **params}).data.get("path") == path


@pytest.mark.parametrize("method, params, message, hint", (
    ("session.create", {"name": "B!"}, 'session.create: "B!" is not a valid session name', "the first must be"),
    ("session.create", {"name": ""}, 'session.create: "" is not a valid session name', "Use 1 to 64"),
    ("session.create", {"name": "w", "idle": "x"}, 'session.create: "x" is not a valid time', "at least 1s; or none"),
    ("session.remove", {"session": "../w"}, 'session.remove: "../w" is not a valid session name', "letter or a digit"),
    ("kv.get", {"session": ".w", "key": "k"}, 'kv.get: ".w" is not a valid session name', "letter or a digit"),
))
def test_the_form_of_a_parameter_is_in_its_schema(
    method: str, params: Json, message: str, hint: str, sessions: Sessions
) -> None:
    """The client's checker compares: it raises if a refused value fits the pattern, or an accepted one does not."""
    with sessions.serve() as rpc:
        error = refused(rpc, method, **params)
        assert (error.data["name"], error.message) == ("invalid-params", message) and hint in error.hint

        (sound,) = [p for p in rpc.checker.document.methods[method]["params"] if p["name"] in ("name", "session")]
        assert sound["schema"]["pattern"] == "^[A-Za-z0-9][A-Za-z0-9._-]*$"
        for idle in ("none", "1s", "2.5", "1d", "3000000us"):
            rpc.call("session.create", name=f"w{idle}", idle=idle)


def test_a_missing_module_names_the_policy(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        rpc.call("session.create", name="w")
        assert "python.wheels" in rpc.call("python.run", session="w", code="import nothing_here")["error"]["message"]


@pytest.mark.parametrize("text, words", (
    ("Use it: holt exec w", ["holt exec"]),
    ("Use it: exec -- COMMAND", ["exec -- "]),
    ("Use a flag or (--policy FILE)", ["--policy"]),
    ("any --new-option of a verb", ["--new-option"]),
    ("git config --global user.name X\nholt doctor tests every layer", []),
    ("docker run --security-opt x\nwith --security-opt y\nholt run --allow-degraded idmap", []),
    ('"--ro": the sandbox has no such program', []),
    ("holt keeps them, and --- is no option", []),
))
def test_the_checker_knows_the_words_of_the_command_line(text: str, words: list[str]) -> None:
    assert command_words(text) == words


@pytest.mark.parametrize("answer", (
    {"error": {"code": -32007, "message": "", "data": {
        "name": "exists", "kind": "exists", "errno": None, "hint": "Use it: exec -- COMMAND"}}},
    {"error": {"code": -32007, "message": "--policy: no preset", "data": {
        "name": "exists", "kind": "exists", "errno": None, "hint": None}}},
    {"error": {"code": -32007, "message": "", "data": {
        "name": "exists", "kind": "exists", "errno": None, "hint": None, "command_hint": "x"}}},
))
def test_the_checker_looks_at_errors(answer: Json) -> None:
    checker = Checker(document_of(str(built_holt())), alone=False)
    checker.sent(b'{"jsonrpc": "2.0", "id": 1, "method": "session.create", "params": {"name": "w"}}\n')
    with pytest.raises(Mismatch, match="command line"):
        checker.came({"jsonrpc": "2.0", "id": 1, **answer})


# --- warnings, and the directory of a command ---


def test_a_new_session_tells_its_likely_mistakes(sessions: Sessions, workspace: Path) -> None:
    (workspace / "sub" / ".git" / "hooks").mkdir(parents=True)
    policy = {
        "holt": 1, "filesystem": {"hide": ["nofile"]}, "env": {"pass": ["NOT_THERE", "PATH"]}, "syscalls": {"allow": ["mount"]},
    }
    with sessions.serve() as rpc:
        for kind in ({}, {"find": True}, {"owned": True}):
            made = rpc.call("session.create", name="w", workspace=workspace.as_posix(), policy=policy, **kind)
            unset, hidden, vain, below = made["warnings"]
            assert unset.startswith("policy: $.env.pass[0]: NOT_THERE: the variable is not set here")
            assert hidden.startswith("policy: $.filesystem.hide[0]: nofile: the path does not exist inside")
            assert 'Use filesystem.protect: ["sub/.git"], or filesystem.workspace.source: "./sub"' in below
            assert vain.startswith("policy: $.syscalls.allow[0]: mount: it needs a capability")
            if kind.get("find"):
                again = rpc.call("session.create", name="w", find=True, workspace=workspace.as_posix(), policy=policy)
                assert again == {"name": "w", "made": False, "warnings": []}
            if not kind.get("owned"):
                rpc.call("session.remove", session="w")
        assert rpc.call("session.create", name="other")["warnings"] == []


def test_a_policy_file_serves_many_places(sessions: Sessions, workspace: Path) -> None:
    (workspace / "p.json").write_text('{"holt": 1, "env": {"pass": ["NOT_THERE"]}}')
    with sessions.serve() as rpc:
        made = rpc.call("session.create", name="w", cwd=workspace.as_posix(), policy_name="./p.json")
        assert made["warnings"] == []


def test_a_missing_program_is_looked_up_from_the_cwd_of_its_call(sessions: Sessions) -> None:
    with sessions.serve() as rpc:
        rpc.call("session.create", name="w")
        assert "The path starts at /tmp," in refused(rpc, "exec", session="w", argv=["./none"], cwd="/tmp").hint
        own = refused(rpc, "exec", session="w", argv=["./none"]).hint
        assert "/w/workspace/none does not exist" in own
        rpc.call("exec", session="w", shell="mkdir d")
        assert "/w/workspace/d/none does not exist" in refused(rpc, "exec", session="w", argv=["./none"], cwd="d").hint
