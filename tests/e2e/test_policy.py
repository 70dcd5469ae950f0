# SPDX-License-Identifier: Apache-2.0
"""A policy comes from a preset, files and flags, in this order; the project's own file may narrow it and no more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.paths import PROJECT
from lib.sandbox import Holt
from lib.tools import needs

pytestmark = pytest.mark.alike

Make = Callable[..., Path]

PRESETS = ("strict", "standard", "permissive", "ci")


def shown(holt: Holt, *args: str | Path) -> dict[str, Any]:
    """Returns the policy to which "holt policy show" resolves the arguments."""
    return json.loads(holt(["policy", "show", "--json", *args]).ok().out)


@pytest.fixture
def policy(put: Make, place: Path) -> Callable[..., Path]:
    """Writes a policy file beside the workspace: policy(limits={...}, NAME=...)."""

    def write(name: str = "policy.json", **fields: Any) -> Path:
        return put(place / name, json.dumps({"holt": 1, **fields}))

    return write


# --- presets ---


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_runs_commands(name: str, holt: Holt) -> None:
    holt.sh("echo x > made && cat made", "--policy", name).ok()


def test_ci_sets_ci(holt: Holt) -> None:
    assert holt.sh("echo $CI", "--policy", "ci").ok().out == "true\n"


def test_strict_has_limits_and_needs_landlock(holt: Holt) -> None:
    result = holt(["run", "--policy", "strict", "--", "sh", "-c", "ulimit -n"]).ok()

    assert result.out == "1024\n"
    assert result.report and result.report["limits"]["timeout_us"] == 600_000_000
    assert result.layers["landlock"].startswith("on")


def test_list_names_the_presets(holt: Holt) -> None:
    listed = json.loads(holt(["policy", "list", "--json"]).ok().out)
    names = {p["name"] for p in listed if "route" not in p}
    assert {name for name in names if not name.startswith("@")} == set(PRESETS)


# --- sets of network rules ---


def test_every_set_is_listed_and_shown(holt: Holt) -> None:
    listed = [p for p in json.loads(holt(["policy", "list", "--json"]).ok().out) if p["name"].startswith("@")]
    files = {f"@{path.stem}" for path in (PROJECT / "policy" / "net" / "sets").glob("*.json")}

    assert {p["name"] for p in listed} == files and len(files) > 10
    for each in listed:
        assert json.loads(holt(["policy", "show", "--json", each["name"]]).ok().out) == each
        shown = holt(["policy", "show", each["name"]]).ok().out
        assert each["description"] in shown and all(rule in shown.split() for rule in each["allow"])
        assert f"{each['name']} " in holt(["policy", "list"]).ok().out


def test_an_unknown_set_has_a_hint(holt: Holt) -> None:
    assert "For example: holt policy show @npm" in holt(["policy", "show", "@npm", "@go"]).cure
    result = holt(["policy", "show", "@pyton"])
    assert result.code == 125 and 'did you mean "@python"' in result.err and "holt policy list" in result.err


def test_the_project_narrows_the_rules(holt: Holt, put: Make) -> None:
    project(put, network={"allow": ["files.pythonhosted.org", "x.example.org:*", "other.example"]})
    document = shown(holt, "--net", "@python,*.example.org:443")

    assert document["network"]["mode"] == "allow"
    assert document["network"]["allow"] == ["files.pythonhosted.org:443", "x.example.org:443"]


# --- routes ---

ACME = {"name": "acme", "upstream": "https://api.acme.example", "header": {"authorization": "Bearer {env:ACME_KEY}"}}


def test_every_known_route_is_listed_and_valid(holt: Holt, policy: Make) -> None:
    listed = [p for p in json.loads(holt(["policy", "list", "--json"]).ok().out) if "route" in p]
    files = {path.stem: json.loads(path.read_text()) for path in (PROJECT / "policy" / "routes" / "providers").glob("*.json")}
    text = holt(["policy", "list"]).ok().out

    assert {p["name"]: p["route"] for p in listed} == files and len(files) >= 5
    for each in listed:
        assert f"--route {each['name']} " in text and each["description"] in text
        assert shown(holt, "--route", each["name"])["bridge"]["routes"] == [each["name"]]
        assert shown(holt, "--policy", policy(bridge={"routes": [each["route"]]}))["bridge"]["routes"] == [each["route"]]


def test_a_route_is_shown_as_its_document_has_it(holt: Holt, policy: Make) -> None:
    path = policy(bridge={"routes": [ACME, "openai"]})

    assert shown(holt, "--policy", path, "--route", "github")["bridge"]["routes"] == [ACME, "openai", "github"]
    assert '"upstream":"https://api.acme.example"' in holt(["policy", "show", "--policy", path]).ok().out


def test_mistakes_in_routes_have_their_path(holt: Holt, policy: Make) -> None:
    path = policy(bridge={"routes": ["openai", {**ACME, "upstream": "api.acme.example"}]})
    assert ": $.bridge.routes[1].upstream: the URL must begin with https://" in holt(["policy", "check", path]).err
    path = policy(bridge={"routes": [ACME, {**ACME, "upstream": "https://other.example"}]})
    assert 'route "acme" is given twice' in holt(["policy", "check", path]).err


def test_an_unknown_route_has_a_hint(holt: Holt) -> None:
    """The launcher does not know the routes. So this also shows that it leaves them to holt-full."""
    result = holt(["run", "--route", "opnai", "--", "true"])

    assert result.code == 125 and "did you mean openai?" in result.err


def test_a_project_gets_no_route(holt: Holt, put: Make) -> None:
    project(put, bridge={"routes": ["openai"]})
    result = holt(["run", "--", "true"])

    assert result.code == 125 and "bridge.routes must not be set in the project's own file" in result.err


# --- files ---


def test_a_file_stands_on_the_preset_that_it_extends(holt: Holt, policy: Make) -> None:
    path = policy(extends="ci", limits={"pids": 77})
    document = shown(holt, "--policy", path)

    assert document["extends"] == "ci"
    assert document["limits"]["pids"] == 77
    assert document["limits"]["timeout"] == "1h"
    assert document["env"]["set"]["CI"] == "true"


def test_a_file_stands_on_the_files_that_it_extends(holt: Holt, put: Make) -> None:
    """Each path is relative to the file that names it, not to the working directory."""
    put("conf/base/root.json", '{"holt": 1, "extends": "ci", "limits": {"pids": 1, "timeout": "1m", "open_files": 99}}')
    put("conf/base/team.json", '{"holt": 1, "extends": "./root.json", "limits": {"pids": 2}, "env": {"set": {"A": "1"}}}')
    put("conf/mine.json", '{"holt": 1, "extends": "base/team.json", "limits": {"pids": 3}}')

    document = shown(holt, "--policy", "conf/mine.json", "--timeout", "2m")
    assert document["extends"] == "ci"
    limits = document["limits"]
    assert (limits["pids"], limits["timeout"], limits["open_files"]) == (3, "2m", 99)
    assert document["env"]["set"]["A"] == "1"
    assert holt(["policy", "check", "conf/mine.json"]).ok().out == "conf/mine.json: ok\n"


def test_every_field_of_a_file_takes_effect(holt: Holt, policy: Make, place: Path, put: Make) -> None:
    put(place / "ro" / "file", "read\n")
    put(place / "rw" / "file", "")
    put("hidden", "SECRET\n")
    put("kept", "kept\n")
    path = policy(
        filesystem={
            "workspace": {"source": str(holt.cwd), "target": "/work", "mode": "rw"},
            "files": {"source": str(place / "rw")},
            "read_only": [f"{place}/ro:/ro"], "read_write": [f"{place}/rw:/rw"], "tmpfs": ["/data"], "hide": ["hidden"],
            "protect": ["kept"], "tmp_size": "2MiB",
        },
        env={"set": {"SET": "set"}, "pass": ["PASSED"]},
        limits={"timeout": "50s", "pids": 50, "open_files": 99, "memory": "1GiB", "file_size": "1MiB"},
    )
    script = (
        "pwd; cat /ro/file hidden kept; echo x > /rw/new; echo x > /data/new; echo x > kept; ls /mnt/files;"
        'echo "$SET $PASSED"; ulimit -n; df --output=size -k /tmp | tail -n 1'
    )
    result = holt(["run", "--policy", path, "--", "bash", "-c", script], env={"PASSED": "passed"}, cwd=place)

    assert result.out.split() == ["/work", "read", "kept", "file", "new", "set", "passed", "99", "2048"]
    assert result.report and result.report["limits"]["pids"] == 50


def test_later_files_and_flags_come_on_top(holt: Holt, policy: Make) -> None:
    first = policy("a.json", extends="strict", limits={"timeout": "1m", "pids": 10}, env={"set": {"A": "1", "B": "1"}})
    second = policy("b.json", limits={"pids": 20}, env={"set": {"B": "2", "C": "2"}})
    document = shown(holt, "--policy", first, "--policy", second, "--env", "C=3", "--timeout", "2m")

    assert document["extends"] == "strict"
    assert (document["limits"]["timeout"], document["limits"]["pids"]) == ("2m", 20)
    assert document["env"]["set"] == {"A": "1", "B": "2", "C": "3"}


def test_flags_count_wherever_they_stand(holt: Holt, policy: Make) -> None:
    path = policy(limits={"pids": 10})

    assert shown(holt, "--pids", "20", "--policy", path)["limits"]["pids"] == 20


def test_a_preset_and_a_file(holt: Holt, policy: Make) -> None:
    document = shown(holt, "--policy", "permissive", "--policy", policy(limits={"pids": 10}))

    assert (document["extends"], document["limits"]["pids"]) == ("permissive", 10)


def test_two_policies_with_a_preset_say_what_to_do(holt: Holt, policy: Make) -> None:
    path = policy(extends="strict")
    over = holt(["run", "--policy", "ci", "--policy", path, "--", "true"])
    assert 'remove "extends" from it to put it on top of ci' in over.cure, over
    late = holt(["run", "--policy", path, "--policy", "ci", "--", "true"])
    assert "--policy ci --policy FILE" in late.cure, late


def test_two_presets_are_one_too_many(holt: Holt, policy: Make) -> None:
    for second in ("ci", policy(extends="ci")):
        assert "preset" in holt(["run", "--policy", "strict", "--policy", second, "--", "true"]).refusal()


@pytest.mark.parametrize("fields, where", (
    ({"read_only": ["/usr/share:/x", "/no/such"]}, "$.filesystem.read_only[1]: /no/such: "),
    ({"read_write": ["/no/such"]}, "$.filesystem.read_write[0]: /no/such: "),
    ({"files": {"source": "/no/such"}}, "$.filesystem.files.source: /no/such: "),
    ({"workspace": {"source": "/etc/os-release"}}, "$.filesystem.workspace.source: /etc/os-release"),
    ({"read_only": ["/usr:/x"], "tmpfs": ["/x"]}, "$.filesystem.tmpfs[0]: /x"),
), ids=lambda value: "" if isinstance(value, str) else json.dumps(value))
def test_a_path_of_a_file_is_blamed_on_the_file(fields: dict[str, Any], where: str, holt: Holt, policy: Make) -> None:
    path = policy(filesystem=fields)
    said = holt(["run", "--policy", path, "--", "true"]).refusal()

    assert f"{path}: {where}" in said
    assert "--" not in said


def test_a_policy_may_come_from_stdin(holt: Holt) -> None:
    result = holt(["run", "--policy", "-", "--", "cat"], stdin='{"holt": 1, "limits": {"pids": 12}}').ok()

    assert result.report and result.report["limits"]["pids"] == 12
    assert result.out == ""


# --- show, check, schema ---

FLAGS: list[list[str]] = [
    [], ["--policy", "strict"], ["--policy", "ci", "--timeout", "none"], ["--protect", "none"], ["--workspace", "none"],
    ["--ro", "/etc/hosts:/x", "--rw", "/dev/shm:/y", "--tmpfs", "/z", "--hide", "a b", "--env", "A=b=c\n\"d\"",
     "--env", "P"],
    ["--memory", "1537KiB", "--timeout", "1.5", "--kill-after", "0", "--pids", "none", "--tmp-size", "64KiB"],
    ["--syscalls", "strict", "--allow-syscall", "@namespace", "--deny-syscall", "uname", "--landlock", "off"],
    ["--net", "@python,a.example", "--net", "[2001:db8::]/32:22 # a, b", "--sni", "required", "-p", "0:80", "--import", "1"],
    ["--network", "host"], ["--network", "allow"],
]


@pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: " ".join(flags[:2]) or "none")
def test_the_shown_policy_means_the_same(flags: list[str], holt: Holt, place: Path, put: Make) -> None:
    document = shown(holt, *flags)
    path = put(place / "shown.json", json.dumps(document))

    assert shown(holt, "--policy", path) == document
    holt(["policy", "check", path]).ok()


def test_show_for_people_has_every_field(holt: Holt) -> None:
    lines = [line.split()[0] for line in holt(["policy", "show"]).ok().out.splitlines() if not line.startswith(" ")]

    assert {"extends", "filesystem.protect", "limits.pids", "syscalls.preset", "layers.landlock"} <= set(lines)


def test_show_for_people_says_what_is_unset(holt: Holt) -> None:
    lines = holt(["policy", "show"]).ok().out.splitlines()

    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("filesystem.workspace.")] == [
        "(the working directory)", "(its own path)", "rw",
    ]


def test_show_takes_a_policy_without_its_option(holt: Holt, policy: Make) -> None:
    path = policy(limits={"pids": 33})

    assert shown(holt, "strict") == shown(holt, "--policy", "strict")
    assert shown(holt, "ci", path) == shown(holt, "--policy", "ci", "--policy", path)
    assert "nonesuch" in holt(["policy", "show", "nonesuch"]).refusal()


def test_check_says_for_each_file_what_is_wrong(holt: Holt, policy: Make) -> None:
    good, bad = policy("good.json"), policy("bad.json", limits={"pidz": 3})
    result = holt(["policy", "check", "--json", good, bad])
    first, second = json.loads(result.out)

    assert result.code == 125
    assert (first["ok"], second["ok"]) == (True, False)
    assert "$.limits.pidz" in second["error"]["message"]
    assert "pids" in second["error"]["message"] + second["error"]["cure"]
    assert "$.limits.pidz" in holt(["policy", "check", good, bad]).err + holt(["policy", "check", good, bad]).out


@pytest.mark.parametrize(("items", "kept"), [([], True), (["none"], False)])
def test_the_item_none_drops_the_protected_paths_of_the_preset(holt: Holt, put: Make, items: list[str], kept: bool) -> None:
    """An empty list adds nothing. Hints for clients of holt serve therefore say ["none"]."""
    file = put("p.json", json.dumps({"holt": 1, "filesystem": {"protect": items}}))
    shown = holt(["policy", "show", "--policy", file]).ok().out

    assert (".git/hooks" in shown) == kept


def test_the_schema_is_json_and_knows_the_fields(holt: Holt) -> None:
    schema = json.loads(holt(["policy", "schema"]).ok().out)

    assert set(schema["properties"]) >= {
        "holt", "extends", "filesystem", "network", "env", "limits", "syscalls", "layers",
    }
    assert schema["additionalProperties"] is False


# --- the project's own file ---


def project(put: Make, **fields: Any) -> Path:
    return put(".holt.json", json.dumps({"holt": 1, **fields}))


def test_the_project_narrows(holt: Holt, put: Make) -> None:
    put("secret", "SECRET\n")
    project(put, filesystem={"hide": ["secret"]}, limits={"pids": 50, "timeout": "50s"})
    result = holt.sh("cat secret")

    assert "SECRET" not in result.out
    assert result.report and result.report["limits"]["pids"] == 50
    assert result.report["limits"]["timeout_us"] == 50_000_000


def test_the_lower_limit_of_caller_and_project_holds(holt: Holt, put: Make) -> None:
    project(put, limits={"pids": 50, "kill_after": "1h", "timeout": "none"}, filesystem={"tmp_size": "100GiB"})
    result = holt(["run", "--pids", "20", "--timeout", "1m", "--", "true"]).ok()

    assert result.report
    limits = result.report["limits"]
    assert (limits["pids"], limits["timeout_us"], limits["tmp_size_bytes"]) == (20, 60_000_000, 1 << 30)


@pytest.mark.parametrize("fields", (
    {"filesystem": {"read_only": ["/usr/share:/x"]}},
    {"filesystem": {"read_write": ["/usr/share:/x"]}},
    {"filesystem": {"etc": ["all"]}},
    {"filesystem": {"workspace": {"source": "/etc"}}},
    {"filesystem": {"allow_wide": True}},
    {"filesystem": {"protect": ["none"]}},
    {"filesystem": {"rootfs": "/x"}},
    {"env": {"pass": ["SECRET"]}},
    {"env": {"set": {"PATH": "/tmp"}}},
    {"syscalls": {"allow": ["ptrace"]}},
    {"layers": {"landlock": "off"}},
    {"network": {"mode": "host"}},
    {"network": {"mode": "allow"}},
    {"network": {"publish": ["80:80"]}},
    {"network": {"import": ["80"]}},
    {"extends": "permissive"},
), ids=lambda fields: json.dumps(fields))
def test_the_project_can_not_widen(fields: dict[str, Any], holt: Holt, put: Make) -> None:
    project(put, **fields)
    result = holt(["run", "--", "true"])

    assert ".holt.json" in result.refusal()
    assert result.cure


def test_a_timeout_message_names_where_the_limit_was_set(holt: Holt, policy: Make, put: Make) -> None:
    """The cure depends on the origin of the limit."""
    def said(*flags: str | Path) -> str:
        result = holt(["run", *flags, "--", "sleep", "1000"])
        assert (result.code, result.err.count("\n")) == (124, 1)
        return result.err

    path = policy(limits={"timeout": "0.2s"})
    assert "$.limits.timeout; raise it there, or with --timeout TIME" in said("--policy", path)
    assert "after 100ms (--timeout)" in said("--policy", path, "--timeout", "100ms")

    project(put, limits={"timeout": "50ms"})
    by_project = said("--timeout", "10m")
    assert f"after 50ms (the workspace's {holt.cwd}/.holt.json: $.limits.timeout" in by_project
    assert "no option can" in by_project and "--timeout" not in by_project
    project(put, limits={"timeout": "10m"})
    assert "--timeout" in said("--timeout", "100ms")


def test_a_limit_of_one_process_names_its_origin(holt: Holt, put: Make) -> None:
    assert "This is the limit of --pids." in holt(["run", "--pids", "1", "--", "true"]).cure
    project(put, limits={"pids": 1})
    result = holt(["run", "--pids", "100", "--", "true"])

    assert result.code == 125
    assert ".holt.json: $.limits.pids; raise it there, because no option can" in result.cure


def test_the_project_may_be_left_unread(holt: Holt, put: Make) -> None:
    """Without a workspace, its policy file is not read."""
    project(put, limits={"pids": "none"})

    holt(["run", "--workspace", "none", "--", "true"]).ok()


def test_the_project_s_file_is_no_link(holt: Holt, place: Path, put: Make) -> None:
    (holt.cwd / ".holt.json").symlink_to(put(place / "elsewhere.json", '{"holt": 1}'))

    for args in (["run", "--", "true"], ["policy", "show"], ["policy", "check", ".holt.json"]):
        result = holt(args)
        assert ".holt.json" in result.refusal()
        assert "It is a symlink" in result.cure


def test_the_project_s_file_has_its_full_name(holt: Holt, place: Path, put: Make) -> None:
    project(put, limits={"pids": "many"})
    result = holt(["run", "--workspace", holt.cwd, "--", "true"], cwd=place)

    assert result.refusal().startswith(f"{holt.cwd}/.holt.json: $.limits.pids")


# --- system calls ---

UNAME = "import os; os.uname()"
UNSHARE = "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.unshare(0), ctypes.get_errno())"
FANOTIFY = (
    "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.fanotify_init(0x200, 0) > 0, ctypes.get_errno())"
)


@needs("python3")
def test_a_denied_call_is_reported_with_its_grant(holt: Holt) -> None:
    result = holt(["run", "--", "python3", "-c", FANOTIFY]).ok()

    assert result.out == "False 1\n"
    denial = result.denials["fanotify_init"]
    assert (denial["layer"], denial["count"], denial["answer"]) == ("seccomp", 1, "EPERM")
    assert denial["why_not"] is None
    assert denial["policy"] == {"syscalls": {"allow": ["fanotify_init"]}}
    assert not holt(["run", *denial["grant"].split(), "--", "python3", "-c", FANOTIFY]).denials


MOUNT = "import ctypes; c = ctypes.CDLL(None); c.mount(0, 0, 0, 0, 0); c.chroot(0); exit(1)"


@needs("python3")
def test_set_id_bits_have_no_grant(holt: Holt) -> None:
    """A grant of chmod by its name would also allow set-id programs, which the host runs as their owner."""
    result = holt.sh("touch x; chmod u+s x")

    assert {d["grant"] for d in result.denials.values()} == {None}
    assert all("set-user-ID" in d["why_not"] for d in result.denials.values())
    assert "set-user-ID" in result.err
    assert "--allow-syscall" not in result.err


def test_calls_that_the_policy_denies_have_no_grant(holt: Holt) -> None:
    """A denial has the last word, so that allowing would not help."""
    for flags in (("--deny-syscall", "unshare"), ("--deny-syscall", "@namespace", "--allow-syscall", "unshare")):
        result = holt(["run", *flags, "--", "python3", "-c", f"{UNSHARE}; exit(1)"])

        assert result.denials["unshare"]["grant"] is None
        assert "syscalls.deny" in result.err


def test_calls_that_need_a_capability_have_no_grant(holt: Holt) -> None:
    """The kernel refuses it too, so that no option of holt would be of use."""
    result = holt(["run", "--", "python3", "-c", MOUNT])

    assert [result.denials[name]["grant"] for name in ("mount", "chroot")] == [None, None]
    assert "holt: refused mount (1x, EPERM); it needs a capability" in result.err
    assert "--allow-syscall" not in result.err


@needs("python3")
def test_calls_that_need_a_capability_have_a_grant_if_namespaces_are_allowed(holt: Holt) -> None:
    flags = ("--allow-syscall", "unshare", "--landlock", "off")
    result = holt(["run", *flags, "--", "python3", "-c", MOUNT])

    assert result.denials["chroot"]["grant"] == "--allow-syscall chroot"


@needs("python3")
def test_a_group_can_be_allowed(holt: Holt) -> None:
    assert holt(["run", "--allow-syscall", "@namespace", "--", "python3", "-c", UNSHARE]).ok().out == "0 0\n"


@needs("python3")
def test_a_call_can_be_denied(holt: Holt) -> None:
    result = holt(["run", "--deny-syscall", "uname", "--", "python3", "-c", UNAME])

    assert result.code == 1
    assert result.denials["uname"]["count"] == 1


def test_calls_that_holt_needs_cannot_be_denied(holt: Holt) -> None:
    for name in ("execve", "close_range", "@basic"):
        assert name in holt(["run", "--deny-syscall", name, "--", "true"]).refusal()


@pytest.mark.parametrize("name", (
    "umask", "chdir", "@file", "@memory", "@process", "@time", "@io", "@signal", "@sched",
))
def test_a_program_that_lacks_what_it_needs_fails_and_ends(name: str, holt: Holt) -> None:
    """Whichever call is denied, holt starts, notices the end of the command, and reports it."""
    result = holt(["run", "--deny-syscall", name, "--", "true"], timeout=20)

    assert result.report and result.report["exit_code"] == result.code


@needs("python3")
def test_denying_beats_allowing(holt: Holt) -> None:
    flags = ["--allow-syscall", "@namespace", "--deny-syscall", "unshare"]

    assert holt(["run", *flags, "--", "python3", "-c", UNSHARE]).ok().out == "-1 1\n"


@needs("python3")
def test_the_strict_set_refuses_what_the_default_allows(holt: Holt) -> None:
    script = "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.shmget(0, 4096, 0o1600) >= 0)"

    assert holt(["run", "--", "python3", "-c", script]).ok().out == "True\n"
    assert holt(["run", "--syscalls", "strict", "--", "python3", "-c", script]).ok().out == "False\n"


def test_a_call_that_is_no_call_is_an_error(holt: Holt) -> None:
    for option in ("--allow-syscall", "--deny-syscall"):
        assert "ptracee" in holt(["run", option, "ptracee", "--", "true"]).refusal()
        assert "@nonesuch" in holt(["run", option, "@nonesuch", "--", "true"]).refusal()
