# SPDX-License-Identifier: Apache-2.0
"""A failed command makes holt look at paths of the host. The command must learn nothing from that, and gain nothing."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import Holt, Result

Make = Callable[..., Path]

# Mounts an automounter for any name below DIRECTORY, runs the command, and prints what names the kernel asked for.
AUTOMOUNTER = r"""
import ctypes, os, subprocess, sys
reader, writer = os.pipe()
os.set_inheritable(writer, True)
options = f"fd={writer},pgrp={os.getpgrp()},minproto=5,maxproto=5,indirect"
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"holt-test", sys.argv[1].encode(), b"autofs", 0, options.encode()) < 0:
    sys.exit(f"autofs: {os.strerror(ctypes.get_errno())}")
os.set_blocking(reader, False)
code = subprocess.run(sys.argv[2:], start_new_session=True).returncode
libc.umount2(sys.argv[1].encode(), 2)
try:
    print("asked for", os.read(reader, 4096))
except BlockingIOError:
    print("asked for nothing")
sys.exit(code)
"""


def told(result: Result) -> list[dict[str, object]]:
    assert result.report
    return [d for d in result.report["denials"] if d["layer"] == "filesystem"]


def complain(*paths: object) -> str:
    return "".join(f"echo 'cat: {path}: No such file or directory' >&2; " for path in paths) + "exit 1"


@pytest.mark.identities("root")
@pytest.mark.skipif("autofs" not in Path("/proc/filesystems").read_text(), reason="this kernel has no autofs")
def test_a_name_reaches_no_automounter(holt: Holt, mkdir: Make) -> None:
    """By an automounter, a command without a network could send any text to a name server: cat /net/TEXT.example.org/x."""
    net = mkdir(holt.cwd.parent / "net")
    prefix = ["unshare", "--mount", sys.executable, "-c", AUTOMOUNTER, net]
    # The control: this automounter notices a look-up, which then waits.
    stat = ["timeout", "1", "stat", f"{net}/name/x"]
    assert "asked for b" in holt.identity.run([*prefix, *stat]).stdout
    result = holt(["run", "--", "bash", "-c", complain(f"{net}/name.example.org/x")], prefix=prefix)
    assert "asked for nothing" in result.out, str(result)


def test_secrets_of_the_host_are_neither_confirmed_nor_suggested(holt: Holt, put: Make) -> None:
    base = holt.cwd.parent
    names = (
        ".ssh/id_ed25519", ".aws/credentials", ".netrc", "key.pem", "private/x", "a/secrets.json", ".env", "a/.git-credentials",
        "tls/server.key", ".config/gh/hosts.yml", "id_rsa",
    )
    for name in names:
        put(base / name, "key\n")
    assert told(holt.sh(complain(*(base / name for name in names)))) == []
    beside = complain(*(f"../{name}" for name in names), "../../../../../../../../etc/shadow")
    assert told(holt.sh(beside, "--workspace", f"{holt.cwd}:/inner/tree")) == []
    for path in ("/root", "/home", "/sys/kernel", "/boot", "/var/log"):
        # The result says only that no sandbox shows such a place. It is the same for a file that the host does not have.
        said = [told(holt.sh(complain(name))) for name in (path, f"{path}/none-such")]
        assert [len(each) for each in said] == [1, 1] and said[0][0]["grant"] is said[0][0]["policy"] is None, path
        assert {**said[0][0], "path": "", "what": ""} == {**said[1][0], "path": "", "what": ""}
    for path in ("/", "/etc/shadow", "/proc/1/environ", "/dev/mem", "/run/docker.sock"):
        assert told(holt.sh(complain(path))) == [], path


@pytest.mark.parametrize("name", [".cargo", ".gradle/init.d", ".nvm/versions", ".venv/lib"])
def test_a_directory_of_programs_is_suggested_for_reading_alone(holt: Holt, put: Make, name: str) -> None:
    """The caller's own tools would later run files that a command has written there."""
    file = put(holt.cwd.parent / "tools" / name / "file", "x\n")
    assert told(holt.sh(complain(file)))[0]["grant"] == f"--ro {file.parent}"
    assert told(holt.sh(f"touch {file.parent}/new")) == []


@pytest.mark.identities("user")
def test_no_home_directory_is_suggested(holt: Holt, mkdir: Make) -> None:
    """Homes of other users are not suggested, and neither is that of the caller's account if HOME names another directory."""
    homes = [home for home in Path("/home").iterdir() if home.is_dir()]
    account = Path(pwd.getpwuid(holt.identity.uid).pw_dir) if holt.identity.uid in {p.pw_uid for p in pwd.getpwall()} else None
    env = {"HOME": os.fspath(mkdir(holt.cwd.parent / "elsewhere"))}
    for home in [*homes, *([account] if account else [])]:
        script = f"echo 'mkdir: {home}/new: Read-only file system' >&2; {complain(home)}"
        assert [d["grant"] for d in told(holt.sh(script, env=env)) if d["grant"]] == [], home
    if not homes and not account:
        pytest.skip("this host has no home directory")


def test_a_planted_symlink_is_not_followed_on_the_host(holt: Holt, put: Make) -> None:
    """If holt followed the link, the command could make it report and suggest a place that the link hides."""
    outside = put(holt.cwd.parent / "outside" / "file", "x\n")
    holt.sh(f"ln -s {outside.parent} out; ln -s {outside} file").ok()
    for path in ("out/file", "file", holt.cwd / "out" / "file", holt.cwd / "out" / "none"):
        assert told(holt.sh(complain(path))) == [], path
    for path in ("out/new", holt.cwd / "out" / "new", "sub/../out/new"):
        for words in (f"bash: line 1: {path}", f"touch: cannot touch '{path}'"):
            assert told(holt.sh(f'echo "{words}: No such file or directory" >&2; exit 1')) == [], path
    inside = holt.sh(complain("/work/out/file"), "--workspace", f"{holt.cwd}:/work")
    assert told(inside) == []


def test_a_planted_script_reveals_no_more_than_a_message(holt: Holt, put: Make) -> None:
    """holt reads the first line of a script that the command names. For that, holt must not follow links, wait, or call
    itself."""
    secret = put(holt.cwd.parent / "secret" / "file", "x\n")
    script = f"""printf '#!{secret}\\n' > key; printf '#!%s\\n' "$PWD/self" > self; mkfifo pipe; ln -s {secret.parent} link
        printf '#!link/file\\n' > relative; printf '#!%s/link/file\\n' "$PWD" > linked"""
    holt.sh(script).ok()
    for name in ("key", "self", "pipe", "relative", "linked", "link/file", "none"):
        assert told(holt.sh(complain(name))) == [], name
        moved = told(holt.sh(complain(f"/work/{name}"), "--workspace", f"{holt.cwd}:/work"))
        assert [d["path"] for d in moved] == [f"{holt.cwd}/self"] * (name == "self"), name


@pytest.mark.parametrize("name", ["a b; rm -rf x", "$(id)", "`id`", "x\u202egnp", "a\x1b[31mb", "-rf", "a'b", "a\\b", "a:b"])
def test_a_suggested_option_is_one_harmless_word(holt: Holt, put: Make, name: str) -> None:
    base = holt.cwd.parent / "odd"
    put(base / name / "file", "x\n")
    result = holt(["run", "--", "cat", base / name / "file"])
    for denial in told(result):
        grant = denial["grant"]
        assert grant is None or os.fspath(base) in str(grant)
        if grant:
            words = holt.identity.run(["bash", "-c", f"printf '%s\\n' {grant}"]).stdout.splitlines()
            assert words == ["--ro", f"{base / name}"], grant
    assert "\x1b" not in result.err.replace("cat: ", "", 1).split("holt: ")[-1]
    assert "\u202e" not in result.err.split("holt: ")[-1]


def test_a_flood_of_messages_costs_little(holt: Holt, put: Make) -> None:
    put(holt.cwd.parent / "extra" / "d", "x\n")
    result = holt.sh("for i in $(seq 100000); do echo \"cat: /opt/$i: Permission denied\"; done >&2; cat ../extra/d")
    assert [d["path"] for d in told(result)] == ["../extra/d"]
    result = holt.sh("head -c 50M /dev/zero >&2; printf \"\\n'%.0s\" $(seq 5000) >&2; exit 1")
    assert told(result) == []
