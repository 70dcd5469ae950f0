# SPDX-License-Identifier: Apache-2.0
"""The options that mount files of the host. Each works as its help says, alone and with the others, and leaves no stub
on the host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.sandbox import Holt
from lib.sessions import Sessions
from lib.tools import needs

Make = Callable[..., Path]


def tree(path: Path) -> list[str]:
    return sorted(str(p.relative_to(path)) for p in path.rglob("*"))


@pytest.fixture
def other(place: Path, put: Make) -> Path:
    """A directory of the host beside the workspace, with a file "old" and a directory "sub" in it."""
    put(place / "other" / "old", "old\n")
    put(place / "other" / "sub" / "file", "deep\n")
    return place / "other"


@pytest.fixture(autouse=True)
def no_stubs(place: Path) -> Iterator[Callable[..., None]]:
    """After the test, its directories contain only what they contained before, and the paths that the test expects:
    no_stubs("workspace/new", ...)."""
    expected: list[str] = []
    before: list[str] = []

    def expect(*names: str) -> None:
        if not before:
            before.extend(["", *tree(place)])
        expected.extend(names)

    yield expect
    if before:
        assert set(tree(place)) - set(before) == set(expected)


# --- the workspace ---


def test_the_workspace_is_the_current_directory_at_its_own_path(holt: Holt) -> None:
    assert holt.sh("pwd; echo new > new").ok().out == f"{holt.cwd}\n"
    assert (holt.cwd / "new").read_text() == "new\n"


def test_below_the_workspace_the_command_starts_where_the_caller_is(holt: Holt, mkdir: Make) -> None:
    below = mkdir("a") and mkdir("a/b")

    result = holt.sh("pwd; cd ..; ls", "--workspace", holt.cwd, cwd=below).ok()

    assert result.out == f"{below}\nb\n"


@pytest.mark.parametrize("cwd, starts", ((".", "a/b"), ("./c", "a/b/c"), ("..", "a"), ("../../.git", ".git"), ("a", "a"), (".git", ".git")))
def test_a_dot_in_cwd_is_where_the_caller_is(cwd: str, starts: str, holt: Holt, mkdir: Make) -> None:
    """A person expects that "holt run --workspace ../.. --cwd ." starts here."""
    for name in (".git", "a", "a/b", "a/b/c"):
        mkdir(name)

    result = holt(["run", "--workspace", "../..", "-w", cwd, "--", "pwd"], cwd=holt.cwd / "a/b").ok()
    assert result.out == f"{holt.cwd}/{starts}\n"
    result = holt(["run", "--workspace", "../..:/work", "-w", cwd, "--", "pwd"], cwd=holt.cwd / "a/b").ok()
    assert result.out == f"/work/{starts}\n"


def test_a_dot_in_cwd_is_the_workspace_if_the_caller_is_elsewhere(holt: Holt, mkdir: Make, place: Path) -> None:
    mkdir("a")

    assert holt(["run", "--workspace", holt.cwd, "-w", "./a", "--", "pwd"], cwd=place).ok().out == f"{holt.cwd}/a\n"


def test_a_subdirectory_as_the_current_one_is_all_there_is(holt: Holt, put: Make, mkdir: Make) -> None:
    put("above", "x")

    assert holt.sh("pwd; cat ../above; ls -A ..", cwd=mkdir("sub")).out == f"{holt.cwd}/sub\nsub\n"


def test_a_link_to_the_workspace_leads_to_its_real_place(holt: Holt, place: Path, put: Make) -> None:
    put("file", "found\n")
    (place / "link").symlink_to(holt.cwd)

    assert holt.sh("cat file", cwd=place / "link").ok().out == "found\n"
    assert holt.sh(f"cat {place}/link/file", "--workspace", place / "link").ok().out == "found\n"


@pytest.mark.parametrize("target", ("/workspace", "/srv/a/b", "/home/agent/project", "/tmp/w", "/opt/x", "/mnt"))
def test_the_workspace_may_be_elsewhere_inside(target: str, holt: Holt, other: Path) -> None:
    result = holt.sh("pwd; cat old; echo new > new", "--workspace", f"{other}:{target}").ok()

    assert result.out == f"{target}\nold\n"
    assert (other / "new").read_text() == "new\n"


def test_the_last_workspace_counts(holt: Holt, other: Path) -> None:
    assert holt.sh("pwd", "--workspace", "/nowhere", "--workspace", other).ok().out == f"{other}\n"
    assert holt.sh("pwd", "--workspace", other, "--workspace", "none").ok().out == "/home/agent\n"
    assert holt.sh("pwd", "--workspace", "none", "--workspace", other).ok().out == f"{other}\n"


def test_without_a_workspace_nothing_of_the_host_is_writable(holt: Holt) -> None:
    result = holt.sh(f"pwd; ls {holt.cwd}; echo x > {holt.cwd}/new", "--workspace", "none")

    assert result.out == "/home/agent\n"
    assert result.err.count("No such file or directory") == 2
    assert tree(holt.cwd) == []


def test_a_read_only_workspace_can_be_read_alone(holt: Holt, put: Make) -> None:
    put("file", "text\n")
    put("policy.json", '{"holt": 1, "filesystem": {"workspace": {"mode": "ro"}}}')
    for flags in (["--workspace-mode", "ro"], ["--policy", "policy.json"]):
        result = holt.sh("cat file; echo x > file; rm file; touch new; mkdir d", *flags)

        assert result.out == "text\n"
        assert result.err.count("Read-only file system") == 4
    assert tree(holt.cwd) == ["file", "policy.json"]


def test_a_path_with_blanks_and_colons(holt: Holt, place: Path, put: Make) -> None:
    put(place / "a b: c" / "fi le", "odd\n")

    assert holt.sh("cat 'fi le'", "--workspace", f"{place}/a b: c:/work").ok().out == "odd\n"
    assert holt.sh("cat '/odd/fi le'", "--ro", f"{place}/a b: c:/odd").ok().out == "odd\n"


# --- --ro, --rw, --files ---


def test_ro_can_be_read_alone(holt: Holt, other: Path, no_stubs: Callable[..., None]) -> None:
    no_stubs()
    result = holt.sh(f"cat {other}/old {other}/sub/file; echo x > {other}/old; touch {other}/new", "--ro", other)

    assert result.out == "old\ndeep\n"
    assert result.err.count("Read-only file system") == 2


def test_rw_can_be_written(holt: Holt, other: Path, no_stubs: Callable[..., None]) -> None:
    no_stubs("other/new")
    holt.sh(f"echo x > {other}/new; rm {other}/sub/file; mv {other}/sub {other}/s2; mv {other}/s2 {other}/sub",
            "--rw", other).ok()

    assert (other / "new").read_text() == "x\n"
    assert not (other / "sub" / "file").exists()


@pytest.mark.parametrize("option", ("--ro", "--rw"))
@pytest.mark.parametrize("target", (
    "/data", "/srv/a/b/c", "/home/agent/x", "/tmp/x/y", "/opt/tool", "/var/lib/x", "/root",
))
def test_a_directory_may_be_elsewhere_inside(option: str, target: str, holt: Holt, other: Path) -> None:
    result = holt.sh(f"cat {target}/old; stat -c %F {target}", option, f"{other}:{target}").ok()

    assert result.out == "old\ndirectory\n"


@pytest.mark.parametrize("directory", ("/tmp", "/var/tmp", "/var/run", "/run", "/dev/shm", "/bin", "/lib"))
def test_a_target_is_made_inside_alone(directory: str, holt: Holt, other: Path, place: Path) -> None:
    """Some of these are links in the sandbox's tree, and the host has directories of their names."""
    target = f"{directory}/{place.name}-target"

    assert holt(["run", "--ro", f"{other}:{target}/a", "--", "true"]).code in (0, 125)
    for parent in ("/tmp", "/var/tmp", "/run", "/dev/shm", "/bin", "/lib"):
        assert not Path(parent, Path(target).name).exists()


@pytest.mark.parametrize("option", ("--ro", "--rw"))
@pytest.mark.parametrize("target", ("", ":/data/file", ":/etc/extra.conf", ":/home/agent/.config/x", ":/tmp/f"))
def test_a_single_file_may_be_mounted(option: str, target: str, holt: Holt, other: Path) -> None:
    inside = target.removeprefix(":") or str(other / "old")
    result = holt.sh(f"cat {inside}; echo new > {inside}; true", option, f"{other}/old{target}").ok()

    assert result.out == "old\n"
    assert (other / "old").read_text() == ("new\n" if option == "--rw" else "old\n")


def test_a_relative_path_is_the_caller_s(holt: Holt, other: Path) -> None:
    assert holt.sh(f"cat {other}/old", "--ro", "../other").ok().out == "old\n"
    assert holt.sh("cat /x/old", "--ro", "../other:/x").ok().out == "old\n"


def test_options_repeat(holt: Holt, place: Path, put: Make) -> None:
    flags: list[str] = []
    for i in range(40):
        put(place / f"d{i}" / "file", f"{i}\n")
        flags += ["--rw" if i % 2 else "--ro", f"{place}/d{i}:/data/{i}"]

    assert holt.sh("cat /data/*/file | sort -n | paste -sd' '", *flags).ok().out.split() == list(map(str, range(40)))


def test_files_are_at_mnt_files(holt: Holt, other: Path) -> None:
    assert holt.sh("cat /mnt/files/old; echo x > /mnt/files/new", "--files", other).ok().out == "old\n"
    assert (other / "new").read_text() == "x\n"


def test_a_link_stands_for_what_it_leads_to(holt: Holt, other: Path, place: Path) -> None:
    (place / "link").symlink_to(other)

    assert holt.sh(f"cat {place}/link/old", "--ro", place / "link").ok().out == "old\n"
    holt.sh(f"echo x > {place}/link/new", "--rw", place / "link").ok()
    assert (other / "new").read_text() == "x\n"


# --- one in another ---


def test_ro_inside_the_workspace(holt: Holt, put: Make, no_stubs: Callable[..., None]) -> None:
    put("sub/file", "text\n")
    no_stubs("workspace/new")
    result = holt.sh("cat sub/file; echo x > sub/file; touch sub/new; mv sub other; touch new", "--ro", "sub")

    assert result.out == "text\n"
    assert result.err.count("Read-only file system") == 2
    assert "busy" in result.err
    assert (holt.cwd / "sub" / "file").read_text() == "text\n"


def test_rw_inside_ro(holt: Holt, other: Path, no_stubs: Callable[..., None]) -> None:
    no_stubs("other/sub/new")
    result = holt.sh(f"touch {other}/new; touch {other}/sub/new", "--ro", other, "--rw", other / "sub")

    assert result.err.count("Read-only file system") == 1


def test_the_order_of_the_options_does_not_matter(holt: Holt, other: Path, no_stubs: Callable[..., None]) -> None:
    no_stubs("other/sub/new")
    holt.sh(f"touch {other}/sub/new && ! touch {other}/new", "--rw", other / "sub", "--ro", other).ok()


def test_tmpfs_inside_the_workspace(holt: Holt, put: Make, no_stubs: Callable[..., None]) -> None:
    """node_modules of the host are not those of the sandbox."""
    put("node_modules/host", "x")
    no_stubs()
    result = holt.sh("ls node_modules; echo x > node_modules/inside; ls node_modules", "--tmpfs",
                     holt.cwd / "node_modules").ok()

    assert result.out == "inside\n"
    assert tree(holt.cwd) == ["node_modules", "node_modules/host"]


def test_another_directory_in_place_of_one_in_the_workspace(
    holt: Holt, other: Path, mkdir: Make, no_stubs: Callable[..., None]
) -> None:
    mkdir("vendor")
    no_stubs()

    assert holt.sh("cat vendor/old", "--ro", f"{other}:{holt.cwd}/vendor").ok().out == "old\n"


def test_a_file_in_place_of_one_in_the_workspace(holt: Holt, other: Path, put: Make) -> None:
    put("config", "host\n")

    assert holt.sh("cat config", "--ro", f"{other}/old:{holt.cwd}/config").ok().out == "old\n"
    assert (holt.cwd / "config").read_text() == "host\n"


@pytest.mark.parametrize("option", ("--ro", "--rw", "--tmpfs"))
def test_a_target_that_the_workspace_lacks_is_not_made_there(
    option: str, holt: Holt, other: Path, no_stubs: Callable[..., None]
) -> None:
    no_stubs()
    target = f"{holt.cwd}/not/there"
    value = target if option == "--tmpfs" else f"{other}:{target}"

    assert target in holt(["run", option, value, "--", "true"]).refusal()


def test_a_mount_in_a_private_directory_needs_no_target(holt: Holt, other: Path) -> None:
    flags = ["--tmpfs", "/data", "--ro", f"{other}:/data/a/b", "--ro", f"{other}/old:/data/c/file"]

    assert holt.sh("cat /data/a/b/old /data/c/file; touch /data/new", *flags).ok().out == "old\nold\n"


def test_two_mounts_with_one_target_are_an_error(holt: Holt, other: Path) -> None:
    said = holt(["run", "--ro", f"{other}:/data", "--rw", f"{other}/sub:/data", "--", "true"]).refusal()

    assert "/data" in said and "--ro" in said and "--rw" in said


def test_a_directory_on_a_file_is_an_error(holt: Holt, other: Path, put: Make) -> None:
    put("file")

    assert str(holt.cwd / "file") in holt(["run", "--ro", f"{other}:{holt.cwd}/file", "--", "true"]).refusal()


@pytest.mark.identities("user", "nested")
def test_mounts_of_the_host_below_come_along(holt: Holt) -> None:
    """/dev/shm is a mount of its own on every host, and lies below a --ro of /dev."""
    here = Path("/dev/shm")
    assert here.is_mount()

    assert holt.sh("stat -c %m /x/shm", "--ro", "/dev:/x").ok().out == "/x/shm\n"


# --- --tmpfs, --tmp-size ---


@pytest.mark.parametrize("target", ("/data", "/srv/a/b", "/home/agent/x", "/tmp/x", "/opt"))
def test_tmpfs_is_private_empty_and_writable(target: str, holt: Holt) -> None:
    result = holt.sh(f"ls -A {target}; echo x > {target}/f && cat {target}/f", "--tmpfs", target).ok()

    assert result.out == "x\n"


@pytest.mark.parametrize("directory", ("/tmp", "/run", "/dev/shm", "/home/agent", "/var/tmp", "$TMPDIR", "$HOME"))
def test_the_private_directories_are_writable_and_fresh(directory: str, holt: Holt) -> None:
    script = f"ls -A {directory}; echo x > {directory}/f && chmod +x {directory}/f && cat {directory}/f"
    for _ in range(2):
        assert holt.sh(script, "--workspace", "none").ok().out == "x\n"


def test_private_files_have_one_size_together(holt: Holt) -> None:
    script = (
        "for d in /tmp /dev/shm /home/agent /data; do head -c 700K /dev/zero > $d/f || echo full $d; done; "
        "df --output=size -k /tmp | tail -n 1"
    )
    result = holt.sh(script, "--tmpfs", "/data", "--tmp-size", "2MiB")

    assert result.out.split() == ["full", "/home/agent", "full", "/data", "2048"]


# --- --hide ---


def test_hidden_files_and_directories_are_empty(holt: Holt, put: Make, no_stubs: Callable[..., None]) -> None:
    put(".env", "SECRET\n")
    put("keys/key", "SECRET\n")
    no_stubs()
    result = holt.sh("cat .env keys/key; ls keys; echo x > .env; touch keys/x; rm -f .env; echo done",
                     "--hide", ".env", "--hide", "keys")

    assert result.out == "done\n"
    assert (holt.cwd / ".env").read_text() == "SECRET\n"


def test_an_absolute_path_is_hidden_inside(holt: Holt, other: Path) -> None:
    result = holt.sh(f"cat {other}/old; cat {other}/sub/file; cat /etc/hosts", "--ro", other, "--hide", f"{other}/old",
                     "--hide", "/etc/hosts")

    assert result.out == "deep\n"


def test_hiding_missing_paths_makes_no_stub(holt: Holt, no_stubs: Callable[..., None]) -> None:
    no_stubs()
    holt(["run", "--hide", ".env", "--hide", "no/such", "--hide", "/no/such", "--", "true"]).ok()


# --- --protect ---


def test_protected_paths_are_read_only(holt: Holt, put: Make, no_stubs: Callable[..., None]) -> None:
    put("Makefile", "all:\n")
    put("ci/run", "true\n")
    no_stubs()
    result = holt.sh("cat Makefile; echo x > Makefile; rm -f ci/run; mv ci x; touch ci/new; true",
                     "--protect", "Makefile", "--protect", "ci")

    assert result.out == "all:\n"
    assert result.err.count("Read-only file system") + result.err.count("busy") == 4
    assert tree(holt.cwd) == ["Makefile", "ci", "ci/run"]


# --- --cwd, --env ---


def test_the_command_starts_in_cwd(holt: Holt, mkdir: Make) -> None:
    mkdir("sub")

    for directory, expected in (("sub", f"{holt.cwd}/sub"), ("/tmp", "/tmp"), (f"{holt.cwd}/sub", f"{holt.cwd}/sub")):
        assert holt.sh("pwd; echo $PWD", "--cwd", directory).ok().out == f"{expected}\n{expected}\n"


def test_a_cwd_that_is_not_there_is_an_error(holt: Holt) -> None:
    assert f"{holt.cwd}/no/such" in holt(["run", "--cwd", "no/such", "--", "true"]).refusal()


def test_the_environment_is_small_and_its_own(holt: Holt) -> None:
    result = holt(["run", "--", "env", "-0"], env={"SECRET": "x", "LD_PRELOAD": "/x.so", "LANG": "C.UTF-8"}).ok()

    assert {line.split("=")[0] for line in result.out.split("\0") if line} == {
        "PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR", "PIP_RETRIES", "npm_config_fetch_retries",
    }


COMMIT = """
git init -q . && git config user.name a && git config user.email a@b
echo '*.bin filter=lfs' >.gitattributes
echo large >x.bin
git add . && git commit -qm large && git show HEAD:x.bin
"""


@needs("git")
def test_git_lfs_keeps_large_files_out_of_commits(holt: Holt) -> None:
    """The user's settings are not inside, so git would commit the file itself."""
    asked = holt.sh("git config --system --get filter.lfs.clean; exit 0").ok().out
    installed = os.access("/usr/bin/git-lfs", os.X_OK)
    assert asked == ("git-lfs clean -- %f\n" if installed else "")

    committed = holt.sh(COMMIT).ok().out
    assert committed.startswith("version https://git-lfs" if installed else "large\n"), committed



@needs("git")
def test_a_missing_filter_of_git_is_told(holt: Holt, sessions: Sessions, put: Make) -> None:
    """git would commit the files unfiltered, without any message."""
    holt.identity.run(["git", "init", "--quiet"], cwd=holt.cwd)
    put(".gitattributes", "# filter=no\n*.a filter=lfs\n*.b -filter\n*.c text filter=strip eol=lf\n*.d filter=strip\n")
    put(".git/info/attributes", "*.e filter=own")

    def told(*flags: str) -> "list[str]":
        lines = holt(["run", *flags, "--", "true"]).ok().err.splitlines()
        return [line.split('"')[1] for line in lines if "no filter" in line]

    lfs = [] if os.access("/usr/bin/git-lfs", os.X_OK) else ["lfs"]
    assert told() == [*lfs, "strip", "own"]
    assert 'no filter "strip"' in sessions(["create", "w", "--workspace", holt.cwd]).ok().err
    config = put("mine", "[user]\n")
    assert told("--ro", f"{config}:/home/agent/.gitconfig") == [] == told("--workspace", "none")
    holt.identity.run(["git", "config", "filter.strip.clean", "cat"], cwd=holt.cwd)
    assert told() == [*lfs, "own"]
    holt.identity.run(["git", "config", "include.path", "other"], cwd=holt.cwd)
    assert told() == []


OTHER_ID = """
import errno, os
open("/tmp/x", "w").close()
calls = {"chown": (os.chown, "/tmp/x", 0, -1), "lchown": (os.lchown, "/tmp/x", -1, 123), "setuid": (os.setuid, 0),
         "setgid": (os.setgid, 5), "setreuid": (os.setreuid, -1, 0), "setresgid": (os.setresgid, 1000, 1000, 0),
         "own": (os.chown, "/tmp/x", 1000, 1000)}
for name, (call, *args) in calls.items():
    try:
        call(*args)
        print(name, "done")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
"""


@needs("python3")
@pytest.mark.identities("user", "root", "nested")
def test_an_id_of_another_is_refused_as_to_an_ordinary_user(holt: Holt) -> None:
    """The kernel answers EINVAL, because the user namespace has only one id. fakeroot and libuv expect EPERM."""
    lines = holt(["run", "--", "python3", "-c", OTHER_ID]).ok().out.splitlines()

    assert lines.pop() == "own done"
    assert len(lines) == 6 and all(line.endswith(" EPERM") for line in lines), lines


@needs("python3")
def test_namespaces_of_the_command_have_their_own_ids(holt: Holt) -> None:
    flags = ("--allow-syscall", "@namespace", "--landlock", "off")
    script = 'unshare -r python3 -c "import os; os.setuid(0); os.chown(\'/tmp\', 0, 0); print(os.getuid())"'

    assert holt.sh(script, *flags).ok().out == "0\n"


def test_package_managers_do_not_wait_for_a_network(holt: Holt) -> None:
    """The policy can set other values, for example for a registry that runs inside."""
    script = 'echo "$PIP_RETRIES $npm_config_fetch_retries"'

    assert holt.sh(script).ok().out == "0 0\n"
    assert holt.sh(script, "--env", "PIP_RETRIES=3", "--env", "npm_config_fetch_retries=2").ok().out == "3 2\n"
    assert holt.sh(script, "--env", "PIP_RETRIES", env={"PIP_RETRIES": "5"}).ok().out == "5 0\n"


def test_npm_asks_again_soon_for_a_refused_name(holt: Holt) -> None:
    script = 'echo "$PIP_RETRIES|$npm_config_fetch_retries|$npm_config_fetch_retry_mintimeout|$npm_config_fetch_retry_maxtimeout"'

    assert holt.sh(script, "--net", "example.invalid").ok().out == "||500|2000\n"
    assert holt.sh(script, "--network", "host").ok().out == "|||\n"


def test_variables_are_set_and_passed(holt: Holt) -> None:
    flags = ["--env", "A=1", "--env", "A=two words", "--env", "PASSED", "--env", "UNSET", "--env", "EMPTY=",
             "--env", "EQUALS=a=b", "--env", "LINES=a\nb", "--env", "HOME=/tmp"]
    script = 'printf "%s|" "$A" "$PASSED" "${UNSET-unset}" "${EMPTY-unset}" "$EQUALS" "$LINES" "$HOME"'

    result = holt(["run", *flags, "--", "sh", "-c", script], env={"PASSED": "from outside", "OTHER": "x"}).ok()

    assert result.out == "two words|from outside|unset||a=b|a\nb|/tmp|"


def test_the_path_inside_is_where_programs_are_looked_for(holt: Holt, put: Make) -> None:
    put("bin/tool", "#!/bin/sh\necho found\n", 0o755)

    assert holt(["run", "--env", f"PATH={holt.cwd}/bin:/usr/bin", "--", "tool"]).ok().out == "found\n"
    holt(["run", "--", "tool"]).refusal(127)


def test_a_program_mounted_from_elsewhere_runs(holt: Holt, place: Path, put: Make) -> None:
    """holt run --ro ~/.pyenv -- ~/.pyenv/bin/tool"""
    tool = put(place / "tools" / "bin" / "tool", "#!/bin/sh\necho found $0\n", 0o755)

    assert holt(["run", "--ro", place / "tools", "--", tool]).ok().out == f"found {tool}\n"


# --- the system ---


@pytest.mark.parametrize("path", (
    "/usr", "/usr/bin", "/etc", "/", "/bin", "/opt", "/mnt", "/home", "/var", "/dev",
))
def test_the_system_is_read_only(path: str, holt: Holt) -> None:
    result = holt.sh(f"touch {path}/new")

    assert result.code == 1
    assert "Read-only file system" in result.err or "Permission denied" in result.err


def test_the_directories_of_etc_are_read_only(holt: Holt) -> None:
    """Tests the directories that this host has, and one that is made for hosts without any."""
    script = 'for d in /etc/*/; do if touch "$d/new"; then echo "$d"; fi; done'
    result = holt.sh(script, "--ro", "/usr/share:/etc/given", "--tmpfs", "/etc/writable")

    assert result.out == "/etc/writable/\n"
    assert "/etc/given/" in result.err
    assert {line.split(": ")[-1] for line in result.err.splitlines()} <= {"Read-only file system", "Permission denied"}


@pytest.mark.parametrize("device", (
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "fd", "pts", "shm",
))
def test_the_devices_are_there(device: str, holt: Holt) -> None:
    holt(["run", "--", "test", "-e", f"/dev/{device}"]).ok()


def test_the_devices_do_what_they_do(holt: Holt) -> None:
    script = "echo x > /dev/null; head -c 3 /dev/zero | tr '\\0' z; head -c 8 /dev/urandom | wc -c; echo x > /dev/full"
    result = holt.sh(script)

    assert result.out == "zzz8\n"
    assert "No space left on device" in result.err


def test_uids_names_and_hosts_are_the_sandbox_s(holt: Holt) -> None:
    result = holt.sh("id -u; id -g; id -un; id -G; hostname; getent hosts localhost > /dev/null").ok()

    assert result.out.split() == ["1000", "1000", "agent", "1000", "holt"]


@pytest.mark.parametrize("umask", ("022", "077", "000"))
def test_the_umask_is_the_caller_s_and_spoils_nothing(umask: str, holt: Holt) -> None:
    script = f'umask {umask}; exec "$0" "$@"'
    inside = "umask; cat /etc/passwd > /dev/null && ls / > /dev/null && stat -c %a /tmp /home/agent"
    result = holt.sh(inside, prefix=["bash", "-c", script]).ok()

    assert result.out.split() == [f"0{umask}", "1777", "755"]


def test_large_files_grow_and_sparse_ones_stay_so(holt: Holt) -> None:
    holt.sh("truncate -s 10G sparse; rm sparse; truncate -s 1M file; fallocate -l 2M file && stat -c %s file").ok()

    assert os.stat(holt.cwd / "file").st_size == 2 << 20


def test_no_workspace_is_not_made_one_by_its_mode(holt: Holt, put: Make) -> None:
    put("secret", "text\n")
    flags = ("--workspace", "none", "--workspace-mode", "ro")

    assert "--workspace-mode ro" in holt(["run", *flags, "--", "cat", "secret"]).refusal()
    assert holt(["run", *flags[2:], *flags[:2], "--", "ls", "secret"]).code == 2
    assert holt(["run", *flags, "--workspace", ".", "--", "true"]).code == 125
    assert holt(["run", *flags[:2], "--workspace", ".", *flags[2:], "--", "cat", "secret"]).ok().out == "text\n"


def test_write_only_files_can_be_passed_read_write(holt: Holt, place: Path, identity: Identity) -> None:
    log = place / "log"
    log.touch()
    identity.own(log)
    log.chmod(0o222)
    holt.sh("echo x >>/mnt/log", "--rw", f"{log}:/mnt/log").ok()
    log.chmod(0o644)

    assert log.read_text() == "x\n"
