# SPDX-License-Identifier: Apache-2.0
"""Users of docker type its options and verbs. holt understands some, and names its own word for the others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import Holt, Result
from lib.sessions import Sessions

pytestmark = pytest.mark.alike

Put = Callable[..., Path]


def failed(result: Result, *words: str) -> None:
    assert result.code == 125, result
    for word in words:
        assert word in result.err, result


def test_e_sets_and_passes_variables(holt: Holt) -> None:
    result = holt(["run", "-e", "SET=1 2", "-e", "MINE", "--", "sh", "-c", 'echo "$SET-$MINE"'], env={"MINE": "yours"})

    assert result.ok().out == "1 2-yours\n"


@pytest.mark.parametrize("option", ("-w", "--workdir"))
def test_w_is_the_directory_inside(option: str, holt: Holt) -> None:
    assert holt(["run", option, "/usr/lib", "--", "pwd"]).ok().out == "/usr/lib\n"


@pytest.mark.parametrize("mode, writes", (("", True), (":rw", True), (":ro", False), (":ro,z", False), (":Z", True)))
def test_v_mounts_a_directory(mode: str, writes: bool, holt: Holt, put: Put) -> None:
    directory = put("given/file", "text\n").parent

    result = holt(["run", "-v", f"{directory}:/data{mode}", "--workspace", "none", "--", "sh", "-c",
                   "cat /data/file; touch /data/new"])
    assert result.out == "text\n"
    assert (result.code == 0, (directory / "new").exists()) == (writes, writes)


def test_v_may_be_the_workspace(holt: Holt, sessions: Sessions, workspace: Path) -> None:
    """Users of docker type -v $PWD:$PWD -w $PWD."""
    here = ["-v", f"{holt.cwd}:{holt.cwd}", "-w", str(holt.cwd)]
    assert holt(["run", *here, "--", "sh", "-c", "touch new; pwd"]).ok().out == f"{holt.cwd}\n"
    assert (holt.cwd / "new").exists()
    sessions.create("w", "--workspace", f"{workspace}:/project", "-v", f"{workspace}:/project/")
    failed(holt(["run", "-v", f"{holt.cwd}:{holt.cwd}:ro", "--", "true"]), "both have the target")
    failed(holt(["run", "-v", f"{holt.cwd.parent}:{holt.cwd}", "--", "true"]), "both have the target")


@pytest.mark.parametrize("value", ("/opt", "name:", ":/x", "/opt:/x:shared", "/opt:relative"))
def test_v_needs_a_source_and_a_target(value: str, holt: Holt) -> None:
    failed(holt(["run", "-v", value, "--", "true"]), f'-v: "{value}" is not SRC:DST[:ro]', "no named volumes")


# --- limits and mounts ---


@pytest.mark.parametrize("option, field, value", (("-m", "memory", "512m"), ("--pids-limit", "pids", "50")))
def test_a_limit_has_the_name_of_docker(option: str, field: str, value: str, holt: Holt) -> None:
    shown = json.loads(holt(["policy", "show", "--json", option, value]).ok().out)

    assert shown["limits"][field] in ("512MiB", 50)
    assert holt(["run", option, value, "--", "true"]).ok().err == ""


@pytest.mark.parametrize("mode", ("none", "host"))
def test_net_takes_a_mode(mode: str, holt: Holt) -> None:
    shown = [json.loads(holt(["policy", "show", "--json", option, mode]).ok().out) for option in ("--net", "--network")]

    assert shown[0] == shown[1] and shown[0]["network"]["mode"] == mode


def test_p_is_publish(holt: Holt) -> None:
    shown = json.loads(holt(["policy", "show", "--json", "-p", "8080:80"]).ok().out)

    assert shown["network"]["publish"] == ["8080:80"]


def test_tmpfs_has_no_options(holt: Holt) -> None:
    holt(["run", "--tmpfs", "/x:y", "--", "test", "-d", "/x:y"]).ok()
    for value in ("/x:size=64m", "/x:rw,noexec", "/x:ro"):
        failed(holt(["run", "--tmpfs", value, "--", "true"]), f'--tmpfs: "{value}"', "--tmp-size SIZE")


def test_taskset_limits_the_processors(holt: Holt) -> None:
    """The hint for docker's --cpus names taskset(1)."""
    assert holt(["run", "--", "nproc"], prefix=["taskset", "-c", "0"]).ok().out == "1\n"


# --- --env-file ---


LINES = "A=1\r\n# B=2\n\n  C= with blanks \nD=\"quoted\"\nA=3=3\nEMPTY=\nlast=no newline"
SHOWN = "3=3|| with blanks |\"quoted\"||no newline\n"
SHOW = ["--", "sh", "-c", 'echo "$A|$B|$C|$D|$EMPTY|$last"']


def test_an_env_file_sets_variables(holt: Holt, put: Put) -> None:
    put("vars.env", LINES)

    assert holt(["run", "--env-file", "vars.env", *SHOW]).ok().out == SHOWN
    assert holt(["run", "--env-file", "vars.env", "-e", "A=4", *SHOW]).ok().out == SHOWN.replace("3=3", "4")
    assert "LAST" not in holt(["policy", "show", "--env-file", "vars.env"]).ok().out


def test_an_env_file_is_for_sessions_too(sessions: Sessions, put: Put) -> None:
    file = str(put("vars.env", LINES))
    sessions.create("w", "--env-file", file)

    assert sessions(["exec", "w", *SHOW]).out == SHOWN
    put("vars.env", "A=new")
    assert sessions(["exec", "w", "--env-file", file, "-e", "C=mine", *SHOW]).out == SHOWN.replace("3=3", "new").replace(
        " with blanks ", "mine")
    code = "import os; print(os.environ['A'])"
    assert sessions(["python", "w", "--env-file", file, "-c", code]).out == "new\n"


@pytest.mark.parametrize("text, words", (
    ("SECRET\n", ("line 1: a name without a value", "use --env NAME")),
    ("A=1\nexport B=2\n", ("line 2: not a valid variable name",)),
    ("A =1\n", ("line 1: not a valid variable name", "without blanks")),
    ("=1\n", ("line 1: not a valid variable name",)),
    ("A=1\nB=a\0b\n", ("line 2: a zero byte",)),
    ("A=1\n" * 1025, ("line 1025: too many variables",)),
    ("A=" + "x" * (256 << 10), ("EFBIG", "256 KiB")),
), ids=("a name", "export", "blank", "no name", "zero", "many", "long"))
def test_a_bad_env_file_is_an_error(text: str, words: "tuple[str, ...]", holt: Holt, put: Put) -> None:
    put("vars.env", text)

    result = holt(["run", "--env-file", "vars.env", "--", "env"], env={"SECRET": "secret-value"})
    failed(result, "--env-file vars.env", *words)
    assert "secret-value" not in result.out + result.err


def test_an_env_file_is_a_file(holt: Holt) -> None:
    failed(holt(["run", "--env-file", ".", "--", "true"]), "is not a regular file")
    failed(holt(["run", "--env-file", "missing", "--", "true"]), "--env-file missing", "ENOENT", "correct the path")


def test_no_symlink_leads_to_an_env_file(holt: Holt, put: Put) -> None:
    """A command could make one, and then read a file of the caller as variables."""
    put("secret/vars.env", "A=secret-value\n")
    holt.sh("ln -s secret/vars.env file; ln -s secret directory").ok()
    for path in ("file", "directory/vars.env"):
        result = holt(["run", "--env-file", path, "--", "env"])
        failed(result, "ELOOP", "a command may have made")
        assert "secret-value" not in result.out + result.err


@pytest.mark.parametrize("name", ["/dev/fd/0", "/dev/stdin"])
def test_an_env_file_may_be_a_descriptor(name: str, holt: Holt) -> None:
    """Bash passes such a descriptor for <(...)."""
    reader, writer = os.pipe()
    os.write(writer, b"A=piped\n")
    os.close(writer)
    with os.fdopen(reader) as stdin:
        result = holt(["run", "--env-file", name, "--", "sh", "-c", "echo $A"], stdin=stdin)
    assert result.ok().out == "piped\n"


# --- rm -f ---


def test_rm_f_removes_what_exists(sessions: Sessions) -> None:
    sessions.create("w")
    sessions(["exec", "w", "--detach", "--", "sleep", "1000"]).ok()

    for _ in range(2):
        result = sessions(["rm", "-f", "w", "missing"])
        assert (result.code, result.out, result.err) == (0, "", "")
    assert "w" not in sessions(["ls"]).out.split()
    failed(sessions(["rm", "w"]), "w")


def test_rm_f_reports_other_errors(sessions: Sessions) -> None:
    failed(sessions(["rm", "-f", "../x"]))


# --- hints ---


@pytest.mark.parametrize("image", ("ubuntu", "python:3.12", "node:20-slim"))
def test_holt_has_no_images(image: str, holt: Holt) -> None:
    result = holt(["run", "--", image, "bash"])
    assert result.code == 127 and "holt has none" in result.cure


@pytest.mark.parametrize("line, hint", (
    ("run -it -- bash", "a command gets a terminal"),
    ("exec -it w -- bash", "a command gets a terminal"),
    ("run -itd -- bash", "--detach"),
    ("run -P -- true", "--publish HOSTPORT:PORT"),
    ("stats", "holt run --json"),
    ("copy a b", "holt cp"),
    ("rename a b", "holt cp -r NAME:PATH DIR"),
    ("port w", "--publish HOSTPORT:PORT"),
    ("run --rm -- true", "holt run keeps nothing"),
    ("exec -p 8080:80 w -- true", "holt create"),
    ("exec --publish=8080:80 w -- true", "holt create"),
    ("run --name x -- true", "holt create NAME"),
    ("create --name x", "holt create NAME"),
    ("run -u root -- true", 'user "agent"'),
    ("exec --user=0 w -- true", 'user "agent"'),
    ("run -d -- true", "--detach"),
    ("inspect w", "holt show NAME"),
    ("-v", "holt --version"),
    ("ps w -a", "holt ps also lists processes that have ended"),
    ("run --hostname x -- true", "same host name"),
    ("create x --pull=always", "no images"),
    ("create x --restart always", "its commands do not"),
    ("start w", "holt exec NAME"),
    ("attach w", "holt sh NAME"),
    ("destroy w", "holt rm NAME"),
    ("run --cpus 2 -- true", "taskset"),
    ("create x --cpus=2", "--tier medium"),
    ("run --ulimit nofile=100 -- true", "--open-files"),
    ("run --privileged -- true", "Leave it out"),
    ("exec --privileged w -- true", "Leave it out"),
    ("run --cap-add SYS_PTRACE -- true", "no option gives a command capabilities"),
    ("run --cap-drop=ALL -- true", "no capabilities"),
    ("run --security-opt seccomp=unconfined -- true", "--allow-syscall"),
    ("run --entrypoint bash -- true", "holt run [OPTIONS] -- PROGRAM"),
    ("run --shm-size 64m -- true", "--tmp-size SIZE"),
    ("run --read-only -- true", "--workspace-mode ro"),
    ("run --memory-swap 1g -- true", "cgroup"),
    ("create x -w /tmp", "holt exec NAME -w DIR"),
    ("create x --cwd /tmp", "holt exec NAME --cwd DIR"),
    ("exec -v /opt:/opt w -- true", "holt create NAME -v"),
    ("exec -m 1g w -- true", "holt create NAME"),
))
def test_a_word_of_docker_gets_a_hint(line: str, hint: str, holt: Holt) -> None:
    failed(holt(line.split()), f'unknown {"option" if "-" in line else "verb"} "', hint)
