# SPDX-License-Identifier: Apache-2.0
"""Requests that cannot be fulfilled get one clear line and 125, 126 or 127, before anything has run. They leave nothing
behind."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.sandbox import Holt

pytestmark = pytest.mark.alike

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def nothing_ran(holt: Holt) -> Iterator[None]:
    """Every command line below would touch "ran"."""
    yield
    assert not (holt.cwd / "ran").exists()


TOUCH = ["--", "touch", "ran"]


@pytest.mark.parametrize("flags, words", (
    # options
    (["--no-such-option"], ("--no-such-option",)),
    (["--network", "nat"], ("--network", '"none", "allow" or "host"')),
    (["--net", "nat:0"], ("--net", "no valid port")),
    (["--net", "a.example,https://b.example"], ("--net", "is a URL")),
    (["--net", "@pyton"], ("--net", "did you mean @python?")),
    (["--net", "@nosuchset"], ("--net", "the sets are @alpine,", "@python", "@ubuntu")),
    (["--net", "a.example", "--network", "none"], ("--net", "contradict")),
    (["--network", "none", "--net", "a.example"], ("--net", "contradict")),
    (["--network", "host", "--net", "a.example"], ("--net", "contradict")),
    (["--sni", "yes"], ("--sni", '"optional" or "required"')),
    (["--publish", "8080"], ("--publish", "HOSTPORT:PORT")),
    (["--publish", "8080:80/udp"], ("--publish", "only TCP")),
    (["--import", "0"], ("--import", "HOSTPORT")),
    (["--allow-syscall", "unshar"], ("--allow-syscall", 'did you mean "unshare"')),
    (["--deny-syscall", "@nonesuch"], ("--deny-syscall", "@mount")),
    (["--deny-syscall", "@basic"], ('--deny-syscall: "@basic" is a group',)),
    (["--deny-syscall", "execve"], ('--deny-syscall: "execve" is in the group @basic',)),
    (["--worksapce", "."], ("--worksapce", "did you mean --workspace")),
    (["-x"], ("-x",)),
    (["--read-only", "/x"], ("--read-only", "--ro PATH", "--workspace-mode ro")),
    (["-v", "/no/such:/x"], ("/no/such", "ENOENT")),
    (["--volume=/no/such:/x"], ("/no/such", "ENOENT")),
    (["--workdir"], ("--cwd needs a value",)),
    (["--verbose"], ("--verbose", "did you mean --report or --json?")),
    (["--timeout=10m=3"], ("--timeout", "10m=3")),
    (["--json=yes"], ("--json", "takes no value")),
    (["--allow-degraded", "nonesuch"], ("nonesuch", "landlock")),
    (["--allow-degraded", "user"], ("user",)),
    (["--landlock", "maybe"], ("--landlock", "maybe", "require")),
    (["--syscalls", "none"], ("--syscalls", "strict")),
    # sizes, times, numbers
    *((["--timeout", value], ("--timeout", value)) for value in
      ("x", "-1", "10x", "1e3", "99999d", "10 m", "0x10", "1h30m", "NaN", "99999999999999999999s")),
    *((["--memory", value], ("--memory", value)) for value in
      ("x", "-1", "1XB", "1.5.5G", "99999999999999TiB", "1G 1")),
    *((["--pids", value], ("--pids", value)) for value in ("x", "-1", "1.5", "99999999999999999999", "1k", "0x10")),
    (["--tmp-size", "1"], ("--tmp-size", "64KiB")),
    # host paths
    (["--ro", "/no/such"], ("/no/such", "ENOENT")),
    (["--rw", "/no/such"], ("/no/such", "ENOENT")),
    (["--files", "/no/such"], ("/no/such", "ENOENT")),
    (["--workspace", "/no/such"], ("/no/such", "ENOENT")),
    (["--ro", "/etc/os-release/x"], ("/etc/os-release/x", "ENOTDIR")),
    (["--ro", ":/x"], ("--ro", ":/x")),
    (["--ro", "~/x"], ("~/x", "shell")),
    (["--ro", "/" + "x" * 5000], ("--ro", "4095")),
    (["--ro", "/" + "x" * 300], ("ENAMETOOLONG",)),
    (["--ro", "/a\nb"], (r"/a\x0ab", "control character")),
    # targets
    (["--ro", "/usr:relative"], ("/usr:relative", "absolute")),
    (["--tmpfs", "relative"], ("relative", "absolute")),
    (["--ro", "/usr:/a/../b"], ("/usr:/a/../b", "..")),
    (["--tmpfs", "/a/../b"], ("/a/../b", "..")),
    (["--ro", "/usr:/"], ("/usr:/", "root")),
    (["--tmpfs", "/"], ("root",)),
    *((["--ro", f"/usr:{target}"], (f"/usr:{target}",)) for target in
      ("/proc", "/proc/1", "/proc/sys", "/dev", "/dev/null", "/dev/shm", "/etc")),
    *((["--tmpfs", target], (target,)) for target in ("/proc", "/proc/self", "/dev", "/etc")),
    (["--hide", "../x"], ("../x", "..")),
    (["--hide", "/"], ("whole file tree",)),
    (["--protect", "/etc"], ("/etc", "absolute")),
    (["--protect", "a/../b"], ("a/../b", "..")),
    # environment
    (["--env", "=x"], ("=x",)),
    (["--env", "1A=x"], ("1A=x",)),
    (["--env", "A-B"], ("A-B",)),
    # policies
    (["--policy", "nonesuch"], ("nonesuch", "no preset")),
    (["--policy", "/no/such.json"], ("/no/such.json", "ENOENT")),
    (["--policy", "/"], ("directory",)),
    (["--policy", "/etc/os-release"], ("/etc/os-release:1:1",)),
), ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "")
def test_an_option_that_means_nothing(flags: list[str], words: tuple[str, ...], holt: Holt) -> None:
    result = holt(["run", *flags, *TOUCH])
    said = result.refusal()

    for word in words:
        assert word in f"{said}\n{result.cure}"
    assert len(said) < 600


@pytest.mark.parametrize("option", ("--workspace", "--files", "--rootfs"))
def test_a_file_where_a_directory_should_be(option: str, holt: Holt, put: Make) -> None:
    put("file")
    result = holt(["run", option, "file", *TOUCH])

    assert "Not a directory (ENOTDIR)" in result.refusal()
    assert result.cure
    assert "Not a directory (ENOTDIR)" in holt(["run", option, "/etc/passwd", *TOUCH]).refusal()  # and not "too wide"


@pytest.mark.parametrize("flags", (
    ["--report", "/no/such/x"], ["--report", "/usr"], ["--report", "/dev/null/x"], ["--policy", "./no.json"],
    ["--rootfs", "/no/such"], ["--rootfs", "/dev"], ["--workspace", "/no/such"],
), ids=" ".join)
def test_a_path_that_leads_nowhere_has_a_cure(flags: list[str], holt: Holt) -> None:
    result = holt(["run", *flags, *TOUCH])

    assert flags[1] in result.refusal()
    assert result.cure or "name the top of a system tree" in result.refusal()


def test_a_rootfs_that_is_not_there_is_where_it_was_asked_for(holt: Holt, put: Make) -> None:
    put("policy.json", '{"holt": 1, "filesystem": {"rootfs": "/no/such"}}')
    result = holt(["run", "--policy", "policy.json", *TOUCH])

    assert result.refusal().startswith("policy.json: $.filesystem.rootfs: /no/such: ")


@pytest.mark.parametrize("flags, said, cure", (
    (["--cwd", "/no/such"], "--cwd: ", "exists inside"),
    (["--cwd", "no-such"], "--cwd: ", "starts at the workspace"),
    (["--ro", "/etc/os-release:/usr/no-such"], "--ro /etc/os-release:/usr/no-such needs an existing mount point", "Create the mount point"),
    (["--tmpfs", "/usr/no-such"], "--tmpfs /usr/no-such needs an existing mount point", "Create the mount point"),
), ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_a_missing_target_inside(flags: list[str], said: str, cure: str, holt: Holt) -> None:
    result = holt(["run", *flags, *TOUCH])

    assert result.refusal().startswith(said)
    assert "(to " not in result.refusal()
    assert cure in result.cure


def test_a_link_in_the_place_of_a_mount_point(holt: Holt) -> None:
    (holt.cwd / "link").symlink_to("/usr")
    result = holt(["run", "--tmpfs", f"{holt.cwd}/link/x", *TOUCH])

    assert "has a symlink on the way to its mount point" in result.refusal()
    assert "Replace the symlink by a directory" in result.cure


@pytest.mark.parametrize("option", ("--workspace", "--ro", "--timeout", "--policy", "--report", "--env", "--cwd"))
def test_an_option_without_its_value(option: str, holt: Holt) -> None:
    assert option in holt(["run", option], report=False).refusal()
    assert option in holt(["run", f"{option}=", *TOUCH], report=False).refusal()


@pytest.mark.parametrize("option", ("--ro", "--timeout", "--policy", "--report", "--env", "--cwd"))
@pytest.mark.parametrize("next_word, cure", (("--", "ends the options"), ("--allow-wide", "=--allow-wide")))
def test_an_option_does_not_swallow_the_next(option: str, next_word: str, cure: str, holt: Holt) -> None:
    """If it did, "--" could become a value, and the command would mean something else."""
    result = holt(["run", option, next_word, "touch", "ran"], report=False)

    assert f"{option} needs a value" in result.refusal()
    assert cure in result.cure
    assert list(holt.cwd.iterdir()) == []


@pytest.mark.parametrize("words", (["--report", "-"], ["--report=-"], ["--no-such", "--report", "-"]))
def test_a_report_to_a_dash_makes_no_file_of_that_name(words: list[str], holt: Holt) -> None:
    result = holt(["run", *words, *TOUCH], report=False)

    assert "--no-such" in words or "--report" in result.refusal() and "--json" in result.cure
    assert result.code == 125
    assert list(holt.cwd.iterdir()) == []


def test_an_unknown_verb(holt: Holt) -> None:
    result = holt(["rnu", "--", "true"])

    assert "rnu" in result.refusal()
    assert "holt run" in result.cure


@pytest.mark.parametrize("args, meant", (
    (["rum"], "holt run"), (["docter"], "holt doctor"), (["--versoin"], "holt --version"), (["--hlep"], "holt --help"),
    (["policy", "lst"], "holt policy list"), (["policy", "shwo"], "holt policy show"), (["help", "rnu"], "holt run"),
))
def test_a_verb_that_is_nearly_one(args: list[str], meant: str, holt: Holt) -> None:
    result = holt(args)

    assert args[-1] in result.refusal()
    assert f'Did you mean "{meant}"?' in result.cure


# --- policy files ---


@pytest.mark.parametrize("text, where", (
    (b'{"holt": 1}\0', ":1:12"),
    (b'{"holt": 1, "env": {"set": {"A": "\\u0000"}}}', ":1:35"),
    (b'{"holt": 1, "env": {"set": {"A": "x\0y"}}}', ":1:"),
    (b'{"holt": 1} {}', ":1:"),
    (b'{"holt": 1,}', ':1:12: remove the ","'),
    (b'{"holt": 1, "limits": {"pids": 1, "pids": 2}}', "pids"),
    (b'{"holt": 1, "Limits": {}}', "$.Limits"),
    (b'{"holt": 1, "limits": {"pidz": 1}}', "$.limits.pidz"),
    (b'{"holt": 1, "limits": {"pids": "many"}}', "$.limits.pids"),
    (b'{"holt": 1, "limits": {"pids": 1.5}}', "$.limits.pids: a number that is not whole; write 1 to 4194304"),
    (b'{"holt": 1, "limits": []}', "$.limits"),
    (b'{"holt": 1, "limits": {"timeout": 600}}', '$.limits.timeout: expected a time like "10m"'),
    (b'{"holt": 1, "filesystem": {"read_only": ["/x", 3]}}', "$.filesystem.read_only[1]"),
    (b'{"holt": 1, "filesystem": {"read_only": ["/usr:/proc"]}}', "$.filesystem.read_only[0]"),
    (b'{"holt": 1, "extends": "nonesuch"}', "$.extends"),
    (b'{"holt": 2}', "$.holt"),
    (b"{}", "$.holt"),
    (b"[]", "$"),
    (b"", "the document is empty"),
    (b"\xff\xfe", ":1:1"),
    (b'{"holt": 1, "description": "\xc3\x28"}', ":1:"),
    (b"[" * 100_000, ":1:"),
    (b'{"holt": 1, "network": {"mode": "nat"}}', "$.network.mode"),
    (b'{"holt": 1, "network": {"allow": ["a.example", "*:443"]}}', "$.network.allow[1]"),
    (b'{"holt": 1, "network": {"publish": ["80"]}}', "$.network.publish[0]"),
    (b'{"holt": 1, "syscalls": {"allow": ["nonesuch"]}}', "nonesuch"),
    (b'{"holt": 1, "syscalls": {"deny": ["@basic"]}}', "$.syscalls.deny[0]"),
), ids=lambda value: value.decode(errors="replace")[:40] if isinstance(value, bytes) else "")
def test_a_policy_file_that_is_wrong(text: bytes, where: str, holt: Holt, put: Make) -> None:
    put("policy.json", text)
    said = holt(["run", "--policy", "policy.json", *TOUCH]).refusal()

    assert where in said
    assert "policy.json" in said


@pytest.mark.parametrize("files, words", (
    ({"policy": "./missing.json"}, ("policy.json: $.extends: cannot open policy file /", "/missing.json", "ENOENT")),
    ({"policy": "./policy.json"}, ("policy.json: $.extends", "circle: policy.json extends ./policy.json")),
    ({"policy": "./1.json", "1": "././policy.json"}, ("circle: policy.json extends ./1.json extends ./policy.json",)),
    ({"policy": "conf/a.json", "conf/a": "../b.json", "b": "./conf/../policy.json"}, ("policy.json: $.extends", "circle")),
    ({"policy": "./1.json", **{str(i): f"{i + 1}.json" for i in range(1, 12)}}, ("8.json: $.extends", "more than 8")),
    ({"policy": "~/x.json"}, ("policy.json: $.extends", "not the path of a file")),
    ({"policy": "./dir/"}, ("dir/", "policy file")),
), ids=("missing", "itself", "two", "circle", "long", "tilde", "directory"))
def test_a_policy_extends_a_file_that_is_wrong(
    files: "dict[str, str]", words: "tuple[str, ...]", holt: Holt, put: Make
) -> None:
    put("dir/x", "")
    for name, extends in files.items():
        put(f"{name}.json", json.dumps({"holt": 1, "extends": extends}))
    said = holt(["run", "--policy", "policy.json", *TOUCH]).refusal()

    assert all(word in said for word in words), said
    assert said in holt(["policy", "check", "policy.json"]).err


def test_a_policy_file_that_never_ends(holt: Holt) -> None:
    os.mkfifo(holt.cwd / "fifo.json")
    for path in ("./fifo.json", "/dev/zero"):
        assert path in holt(["run", "--policy", path, *TOUCH]).refusal()
    (holt.cwd / "fifo.json").unlink()


def test_a_policy_file_that_is_too_long(holt: Holt, put: Make) -> None:
    put("policy.json", '{"holt": 1, "description": "' + "x" * (2 << 20) + '"}')

    assert "policy.json" in holt(["run", "--policy", "policy.json", *TOUCH]).refusal()


# --- commands ---


def test_an_argument_of_200_kib_is_the_kernel_s_to_refuse(holt: Holt) -> None:
    """execve(2) refuses such an argument before holt starts, but a policy can have a variable of that length."""
    with pytest.raises(OSError) as refused:
        holt(["run", *TOUCH, "x" * (200 << 10)])
    assert refused.value.errno == errno.E2BIG


def test_a_variable_of_200_kib(holt: Holt, put: Make) -> None:
    put("policy.json", json.dumps({"holt": 1, "env": {"set": {"LONG": "x" * (200 << 10)}}}))
    result = holt(["run", "--policy", "policy.json", *TOUCH])

    assert "204805 bytes" in result.refusal()
    assert result.cure


def test_the_longest_arguments_that_the_kernel_takes_go_through(holt: Holt) -> None:
    longest = "x" * (128 * 1024 - 1)

    assert holt(["run", "--", "sh", "-c", "echo ${#1} ${#2}", "sh", longest, longest]).ok().out == "131071 131071\n"


def test_more_arguments_than_fit(holt: Holt) -> None:
    """Two megabytes exceed, or nearly exceed, the room for arguments and environment."""
    arguments = ["x" * 100_000] * 19
    result = holt(["run", "--", "sh", "-c", "echo $#", "sh", *arguments], report=False)

    assert result.out == "19\n" or "E2BIG" in result.refusal(126)


def test_more_variables_than_fit(holt: Holt, put: Make) -> None:
    """holt's own command line is short. But all that init gets must fit into a quarter of the stack's limit, together
    with the command."""
    variables = {f"LONG{i}": "x" * 100_000 for i in range(3)}
    put("policy.json", json.dumps({"holt": 1, "env": {"set": variables}}))
    result = holt(["run", "--policy", "policy.json", *TOUCH], prefix=("prlimit", "--stack=1048576:1048576"))

    assert result.refusal() == "cannot execute init: Argument list too long (E2BIG)."
    assert "a quarter of the stack's limit" in result.cure and "stdin or in a file" in result.cure


# --- the directory in which holt is started ---


def test_a_working_directory_that_is_gone(holt: Holt) -> None:
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" "$@"'
    result = holt(["run", *TOUCH], prefix=["bash", "-c", script])

    assert "working directory" in result.refusal()
    assert result.cure


@pytest.fixture
def root_directory() -> Iterator[int]:
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("stream", ("stdin", "stdout", "stderr"))
def test_a_directory_as_a_stream(stream: str, holt: Holt, root_directory: int) -> None:
    """With an open directory, a command could leave the sandbox: openat(0, "..")."""
    result = holt(["run", *TOUCH], **{stream: root_directory})

    assert result.code == 125
    assert stream == "stderr" or f"{stream} may " in result.refusal()


@pytest.fixture
def closed(place: Path) -> Path:
    """A directory that belongs to root, and that the caller cannot enter."""
    path = place / "closed"
    path.mkdir()
    (path / "policy.json").write_text('{"holt": 1}')
    path.chmod(0o700)
    return path


@pytest.mark.root_host
@pytest.mark.identities("user", "nested")
@pytest.mark.parametrize("option", ("--workspace", "--ro", "--policy"))
def test_a_policy_file_that_cannot_be_read(option: str, holt: Holt, closed: Path) -> None:
    assert "Permission denied (EACCES)" in holt(["run", option, closed / "policy.json", *TOUCH]).refusal()


@pytest.mark.identities("user")
@pytest.mark.parametrize("option", ("--ro", "--rw"))
@pytest.mark.parametrize("kind", ("file", "directory"))
def test_a_mount_without_permissions_is_an_error(kind: str, option: str, holt: Holt, put: Make, workspace: Path) -> None:
    given = put("given/file", "text\n")
    source = given if kind == "file" else given.parent
    source.chmod(0)
    result = holt(["run", option, f"{source}:/mnt/given", *TOUCH])
    source.chmod(0o700)

    assert "Permission denied (EACCES)" in result.refusal()
    assert str(source) in result.err


def test_a_run_works_with_any_value_of_the_home_variable(holt: Holt) -> None:
    """A HOME that is unset, empty or nonsense is no reason to fail."""
    for home in ("", "relative", "/no/such", "/" * 5000):
        assert holt(["run", "--", "true"], env={"HOME": home}).code == 0


@pytest.mark.not_sanitized
@pytest.mark.parametrize("limit", (6, 12, 20, 30))
def test_a_full_table_of_descriptors(limit: int, holt: Holt) -> None:
    """The caller has hardly any free descriptors. Wherever they run out, no layer is blamed."""
    result = holt(["run", "--", "true"], prefix=["bash", "-c", f'ulimit -n {limit}; exec "$0" "$@"'])

    assert result.code == 0 or "EMFILE" in result.refusal() and "ulimit -n" in result.cure
    assert "[layer" not in result.err
    assert not result.report or not result.report["error"] or result.report["error"]["kind"] == "setup"


@pytest.mark.not_sanitized
def test_no_room_for_files_of_holt_s_own(holt: Holt) -> None:
    result = holt(["run", "--", "true"], prefix=["bash", "-c", 'ulimit -f 2; exec "$0" "$@"'])

    assert "EFBIG" in result.refusal()
    assert "ulimit -f" in result.cure


def test_all_descriptors_may_be_closed(holt: Holt) -> None:
    done = subprocess.run(
        holt.identity.as_user(["bash", "-c", '"$@" <&- >&- 2>&-', "bash", *holt.argv(["run", "--", "touch", "made"])]),
        cwd=holt.cwd, env=holt.identity.environment(),
    )

    assert done.returncode == 0
    assert (holt.cwd / "made").exists()


@pytest.mark.parametrize("mode", ["ro", "rw,z", "Z"])
@pytest.mark.parametrize("option", ["--ro", "--rw", "--workspace"])
def test_a_target_that_ends_in_a_mode(option: str, mode: str, holt: Holt, workspace: Path) -> None:
    """-v takes a mode. With --rw, a read-write mount would be the opposite of what was meant."""
    assert f"/d:{mode}\" ends in a mode" in holt(["run", option, f"{workspace}:/d:{mode}", "--", "true"]).refusal()


@pytest.mark.parametrize("option", ("--workspace", "--ro", "--rw"))
@pytest.mark.parametrize("value", ("a:rel", "a:../x"))
def test_a_target_that_is_not_absolute(option: str, value: str, holt: Holt, workspace: Path) -> None:
    assert "a target that is not absolute" in holt(["run", option, value, "--", "true"]).refusal()


@pytest.mark.parametrize("path", ("/proc", "/proc/self", "//dev/./null"))
def test_proc_and_dev_cannot_be_hidden(path: str, holt: Holt) -> None:
    assert "/proc or /dev" in holt(["run", "--hide", path, "--", "true"]).refusal()
