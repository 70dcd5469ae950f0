# SPDX-License-Identifier: Apache-2.0
"""The parts of /etc and /var that packages of distributions need are inside, and nothing private is."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib.identity import Identity
from lib.rootfs import make_rootfs
from lib.sandbox import Holt, Result
from lib.sessions import Sessions
from lib.tools import needs

Tree = Callable[..., Path]
tree = needs("busybox")

# One file for each kind of package. They stand in for the packages themselves, which hosts may not have.
SHOWN = (
    "etc/chromium.d/flags", "etc/libreoffice/sofficerc", "etc/maven/m2.conf", "etc/java-17-openjdk/security/policy",
    "etc/R/Renviron", "etc/php/8.2/cli/conf.d/xml.ini", "etc/ImageMagick-6/type.xml", "etc/emacs/site-start.el",
    "etc/xml/catalog", "etc/sgml/catalog", "etc/texmf/web2c/texmf.cnf", "etc/mime.types", "etc/nginx/mime.types",
    "etc/manpath.config", "etc/shells", "etc/pki/ca-trust/bundle", "etc/ca-certificates/extracted/bundle",
    "var/lib/ghc/package.conf.d/base", "var/lib/texmf/web2c/pdftex.fmt", "var/lib/aspell/en.rws", "var/lib/php/modules/x",
    "var/lib/dpkg/status", "var/cache/fontconfig/fonts.cache",
)


@pytest.fixture
def rootfs(place: Path, identity: Identity) -> Tree:
    """Makes a system tree with these files in it; each contains its own path. modes: the mode of some paths."""

    def make(*paths: str, modes: dict[str, int] | None = None) -> Path:
        root = make_rootfs(place / "rootfs", identity)
        for path in paths:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"{path}\n")
        subprocess.run(["chown", "-Rh", f"{identity.uid}:{identity.gid}", root], check=True)
        for path, mode in (modes or {}).items():
            (root / path).chmod(mode)
        return root

    return make


def words(paths: tuple[str, ...]) -> str:
    return " ".join(f"/{path}" for path in paths)


@tree
def test_settings_and_databases_of_packages_are_shown(holt: Holt, rootfs: Tree) -> None:
    result = holt(["run", "--rootfs", rootfs(*SHOWN), "--", "sh", "-c", f"cat {words(SHOWN)}"]).ok()
    assert result.out.split() == list(SHOWN)


@tree
def test_shown_settings_are_read_only(holt: Holt, rootfs: Tree) -> None:
    top = rootfs(*SHOWN)
    script = f"for f in {words(SHOWN)}; do echo x >>$f && echo $f; busybox mkdir ${{f}}.d && echo $f; done"
    holt(["run", "--rootfs", top, "--", "sh", "-c", script])
    assert all((top / path).read_text() == f"{path}\n" for path in SHOWN)
    assert not list(top.rglob("*.d.d")) and not list(top.rglob("catalog.d"))


@tree
def test_other_names_are_not_shown(holt: Holt, rootfs: Tree) -> None:
    hidden = ("etc/other/x", "etc/environment", "etc/machine-id", "etc/hostname", "etc/ssh/config", "var/lib/other/x",
              "var/cache/other/x", "var/log/x", "etc/phpmyadmin/x", "etc/java-x/x")
    result = holt(["run", "--rootfs", rootfs(*hidden), "--", "sh", "-c", f"cat {words(hidden)}; ls /var /var/lib /var/cache"])
    assert result.out.split() == ["/var:", "cache", "lib", "run", "tmp", "/var/cache:", "/var/lib:"]


@tree
@pytest.mark.parametrize("path, mode", (
    ("etc/php", 0o750), ("etc/php", 0o754), ("etc/php/8.2/ini", 0o600), ("etc/shells", 0o640), ("var/lib", 0o750),
    ("var", 0o700), ("etc", 0o750), ("var/lib/ghc", 0o700), ("etc/ssl/private", 0o710),
))
@pytest.mark.identities("root")
def test_root_shows_nothing_that_others_may_not_read(path: str, mode: int, holt: Holt, rootfs: Tree) -> None:
    """Root of the host could read it all. The command, which has another uid, must not."""
    files = ("etc/php/8.2/ini", "etc/shells", "var/lib/ghc/db", "etc/ssl/private/key")
    gone = [f for f in files if f == path or f.startswith(f"{path}/")]
    top = rootfs(*files, modes={path: mode, **({} if path == "etc/ssl/private" else {"etc/ssl/private": 0o710})})
    result = holt(["run", "--rootfs", top, "--", "sh", "-c", f"cat {words(files)}"])
    assert result.out.split() == [f for f in files[:3] if f not in gone]


@tree
@pytest.mark.identities("user", "root", "nested")
def test_a_private_entry_is_left_out_even_if_the_caller_owns_it(holt: Holt, rootfs: Tree) -> None:
    top = rootfs("etc/php/ini", "etc/shells", "etc/xml/catalog", modes={"etc/php": 0o700, "etc/shells": 0o600})
    result = holt(["run", "--rootfs", top, "--", "sh", "-c", "cat /etc/php/ini /etc/shells /etc/xml/catalog; ls -d /etc/p*"])
    assert result.out.split() == ["etc/xml/catalog", "/etc/passwd"]


MASKED = ("etc/ssl/private/key", "etc/pki/tls/private/key", "etc/pki/CA/private/key", "etc/nginx/sites-enabled/site",
          "etc/nginx/sites-available/site", "etc/nginx/conf.d/site", "var/lib/php/sessions/s", "var/lib/php/session/s")


@tree
@pytest.mark.identities("user", "root", "nested")
def test_keys_and_sites_in_shown_directories_are_masked(holt: Holt, rootfs: Tree) -> None:
    """The caller owns the files here, like a member of the group ssl-cert or root of a container."""
    top = rootfs(*MASKED, "etc/ssl/certs/ca", "etc/nginx/mime.types")
    script = f"cat {words(MASKED)}; ls /etc/ssl/private; cat /etc/ssl/certs/ca /etc/nginx/mime.types; busybox chmod 755 /etc/ssl/private"
    result = holt(["run", "--rootfs", top, "--", "sh", "-c", script])
    assert result.out.split() == ["etc/ssl/certs/ca", "etc/nginx/mime.types"]
    assert result.code != 0


@tree
@pytest.mark.parametrize("link", ("etc", "var", "var/lib", "var/cache"))
def test_a_symlink_of_the_tree_does_not_lead_to_the_host(link: str, holt: Holt, rootfs: Tree, place: Path, put: Tree) -> None:
    top = rootfs()
    for name in ("ghc", "fontconfig", "php", "lib/ghc", "cache/fontconfig"):
        put(place / "outside" / name / "file", "secret\n")
    subprocess.run(["rm", "-rf", top / link], check=True)
    (top / link).parent.mkdir(parents=True, exist_ok=True)
    (top / link).symlink_to(place / "outside")
    result = holt(["run", "--rootfs", top, "--", "sh", "-c", "cat /etc/*/file /var/*/*/file /var/*/file"])
    assert "secret" not in result.out


@tree
def test_a_mount_of_the_policy_may_lie_in_a_shown_place(holt: Holt, rootfs: Tree, put: Tree, workspace: Path) -> None:
    """holt makes the mount's target. If the host's directory has no such name, the sandbox leaves that directory out."""
    put("given/file", "given\n")
    top = rootfs("etc/php/8.2/ini", "etc/xml/catalog", "var/lib/texmf/ls-R")
    mounts = [":/etc/php/8.2", ":/etc/xml/new/place", ":/var/lib/texmf/own", ":/var/lib/dpkg", ":/var/cache/mine"]
    flags = [word for target in mounts for word in ("--ro", f"{workspace}/given{target}")]
    script = "cat /etc/php/8.2/file /etc/xml/new/place/file /var/lib/texmf/own/file /var/lib/dpkg/file /var/cache/mine/file"
    assert holt(["run", "--rootfs", top, *flags, "--", "sh", "-c", script]).ok().out == "given\n" * 5


@tree
def test_a_mount_of_the_policy_may_take_the_place_of_an_entry(holt: Holt, rootfs: Tree, put: Tree, workspace: Path) -> None:
    """The host's entry may be of another type than the mount, or a symlink."""
    put("given", "given\n")
    top = rootfs("etc/php/ini")
    (top / "etc/shells").symlink_to("/no/such")
    flags = ["--ro", f"{workspace}/given:/etc/php", "--ro", f"{workspace}/given:/etc/shells"]
    assert holt(["run", "--rootfs", top, *flags, "--", "cat", "/etc/php", "/etc/shells"]).ok().out == "given\n" * 2


@tree
def test_a_session_can_have_more_of_etc(sessions: Sessions, rootfs: Tree, put: Tree, workspace: Path) -> None:
    """A session makes /etc anew at each start, so the place of the mount is made there too."""
    put("given", "given\n")
    flags = ["--ro", f"{workspace}/given:/etc/php", "--ro", f"{workspace}/given:/etc/new/place"]
    session = sessions.create("w", "--rootfs", rootfs("etc/php/ini"), *flags)
    for _ in range(2):
        assert session.exec("cat", "/etc/php", "/etc/new/place").ok().out == "given\n" * 2
        session.stop()


@tree
def test_a_shown_path_can_be_hidden(holt: Holt, rootfs: Tree) -> None:
    flags = ["--hide", "/var/lib/dpkg", "--hide", "/etc/php/8.2"]
    result = holt(["run", "--rootfs", rootfs("var/lib/dpkg/status", "etc/php/8.2/ini"), *flags, "--", "sh", "-c",
                   "cat /var/lib/dpkg/status /etc/php/8.2/ini; ls -d /etc/php"])
    assert result.out == "/etc/php\n" and "warning" not in result.err and "does not exist" not in result.err


@tree
def test_a_session_shows_settings_and_keeps_its_own_files(sessions: Sessions, rootfs: Tree) -> None:
    top = rootfs("var/lib/ghc/db", "var/lib/texmf/ls-R", "var/cache/fontconfig/cache", "etc/php/ini")
    session = sessions.create("w", "--rootfs", top)
    script = "cat /var/lib/ghc/db /var/lib/texmf/ls-R /var/cache/fontconfig/cache /etc/php/ini; echo x >/var/lib/ghc/new"
    assert session.exec("sh", "-c", script).out.split() == ["var/lib/ghc/db", "var/lib/texmf/ls-R", "var/cache/fontconfig/cache", "etc/php/ini"]
    session.exec("sh", "-c", "busybox mkdir -p /var/lib/dpkg /var/lib/own && echo mine >/var/lib/dpkg/status && echo own >/var/lib/own/x").ok()
    session.stop()
    (top / "var/lib/dpkg").mkdir()
    (top / "var/lib/dpkg/status").write_text("host\n")
    assert session.exec("sh", "-c", "cat /var/lib/dpkg/status /var/lib/own/x /var/lib/ghc/db").ok().out == "mine\nown\nvar/lib/ghc/db\n"
    assert not (top / "var/lib/ghc/new").exists()


@tree
def test_a_session_cannot_lead_the_mounts_elsewhere(sessions: Sessions, rootfs: Tree, place: Path, put: Tree) -> None:
    put(place / "outside" / "keep", "")
    session = sessions.create("w", "--rootfs", rootfs("var/lib/ghc/db"))
    script = f"busybox mv /var/lib /var/old; busybox ln -s {place}/outside /var/lib; readlink /var/lib"
    assert session.exec("sh", "-c", script).ok().out == f"{place}/outside\n"
    session.stop()
    session.exec("echo").ok()
    assert [path.name for path in (place / "outside").iterdir()] == ["keep"]


# --- --etc ---


@tree
def test_a_name_is_added(holt: Holt, rootfs: Tree) -> None:
    top = rootfs("etc/other/sub/x", "etc/one.conf", "etc/two.conf")
    (top / "etc/link").symlink_to("one.conf")
    flags = ["--etc", "other", "--etc", "one.conf", "--etc", "link"]
    script = "cat /etc/other/sub/x /etc/one.conf /etc/link /etc/two.conf; echo x >>/etc/other/sub/x; echo x >>/etc/one.conf"
    result = holt(["run", "--rootfs", top, *flags, "--", "sh", "-c", script])
    assert result.out.split() == ["etc/other/sub/x", "etc/one.conf", "etc/one.conf"]
    assert (top / "etc/one.conf").read_text() == "etc/one.conf\n"


@tree
def test_a_policy_adds_names_to_a_run_and_to_a_session(holt: Holt, sessions: Sessions, rootfs: Tree, put: Tree) -> None:
    top = rootfs("etc/other/x", "etc/third/x")
    policy = put("policy.json", json.dumps({"holt": 1, "filesystem": {"rootfs": str(top), "etc": ["other"]}}))
    result = holt(["run", "--policy", policy, "--etc", "third", "--", "cat", "/etc/other/x", "/etc/third/x"])
    assert result.ok().out.split() == ["etc/other/x", "etc/third/x"]
    session = sessions.create("w", "--policy", policy, "--etc", "third")
    assert session.exec("cat", "/etc/other/x", "/etc/third/x").ok().out.split() == ["etc/other/x", "etc/third/x"]


PUBLIC = ("etc/other/sub/x", "etc/one.conf", "etc/ssh/config", "etc/certs/ca.pem", "etc/hostname")
SECRET = (
    "etc/shadow-", "etc/gshadow", "etc/sudoers", "etc/sudoers.d/x", "etc/machine-id", "etc/server.key", "etc/krb5.keytab",
    "etc/passwd", "etc/passwd-", "etc/group-", "etc/group-private", "etc/web/site.key", "etc/web/public", "etc/own/file",
    "etc/own/open", "etc/box/in/file", "etc/keys/host_key", "etc/pem/server.pem",
)


@tree
@pytest.mark.identities("user", "root", "nested")
def test_all_shows_the_public_part_alone(holt: Holt, rootfs: Tree) -> None:
    top = rootfs(*PUBLIC, *SECRET, modes={"etc/group-private": 0o640, "etc/own/file": 0o600, "etc/box/in": 0o700})
    (top / "etc/pem/server.pem").write_text("-----BEGIN CERTIFICATE-----\n-----BEGIN RSA PRIVATE KEY-----\n")
    result = holt(["run", "--rootfs", top, "--etc", "all", "--", "sh", "-c", f"cat {words(PUBLIC)}; cat {words(SECRET)}; id -un"])
    # Root's sandbox has a uid that owns no file, so private files in a directory are no reason to leave it out.
    opened = ["etc/own/open"] if holt.identity.name == "root" else []
    shown = [line for line in result.out.splitlines() if line.startswith("etc/")]
    assert shown == [*PUBLIC, *opened]
    assert "root:x:0:0" in result.out and "secret" not in result.out, "holt's own files stay"
    assert "--etc all leaves out" in result.err and "web (site.key)" in result.err


@tree
@pytest.mark.identities("user", "nested")
@pytest.mark.parametrize("name, words", (
    ("closed", "not every user may read /etc/closed"), ("closed-file", "not every user may read"),
    ("web", "contains a key or another private file: site.key"), ("deep", "private file: file"),
))
def test_a_private_name_is_refused(name: str, words: str, holt: Holt, rootfs: Tree) -> None:
    modes = {"etc/closed": 0o750, "etc/closed-file": 0o640, "etc/deep/in/file": 0o600}
    top = rootfs("etc/closed/x", "etc/closed-file", "etc/web/site.key", "etc/deep/in/file", modes=modes)
    result = holt(["run", "--rootfs", top, "--etc", name, "--", "true"])
    assert words in result.refusal() and f"--etc {name}" in result.refusal()
    assert result.cure == f"To show it nevertheless: --ro /etc/{name}"


@pytest.mark.parametrize("name, words", (
    ("a/b", 'contains a "/"'), ("/etc/nginx", 'contains a "/"'), ("..", "not the name"), (".", "not the name"),
    ("x" * 256, "not the name"), ("a*", "is a pattern"), ("passwd", "holt writes itself"), ("mtab", "holt writes itself"),
    ("passwd-", "holt writes itself"),
    ("shadow", "secrets"), ("sudoers.d", "secrets"), ("machine-id", "secrets"), ("ssl.key", "secrets"), ("a\tb", "control"),
))
def test_a_bad_name_is_refused(name: str, words: str, holt: Holt, put: Tree) -> None:
    assert words in holt(["run", "--etc", name, "--", "true"]).refusal()
    policy = put("policy.json", json.dumps({"holt": 1, "filesystem": {"etc": ["fine", name]}}))
    assert f"{policy}: $.filesystem.etc[1]: " in holt(["run", "--policy", policy, "--", "true"]).refusal()


def test_an_empty_name_is_refused(holt: Holt, put: Tree) -> None:
    assert "needs a value" in holt(["run", "--etc", "", "--", "true"]).refusal()
    policy = put("policy.json", '{"holt": 1, "filesystem": {"etc": [""]}}')
    assert "$.filesystem.etc[0]: " in holt(["run", "--policy", policy, "--", "true"]).refusal()


def test_a_name_that_the_host_does_not_have_is_a_warning(holt: Holt, sessions: Sessions) -> None:
    warning = "holt: --etc no-such: this name does not exist in /etc, so nothing is shown\n"
    result = holt(["run", "--etc", "no-such", "--", "true"], report=True).ok()
    assert result.err == warning and result.report and result.report["warnings"] == [warning[6:-1]]
    assert sessions(["create", "w", "--etc", "no-such"]).ok().err == warning


# --- a failed program whose settings are missing ---


def denials(result: Result) -> list[dict[str, Any]]:
    assert result.report
    return [denial for denial in result.report["denials"] if denial["layer"] == "filesystem"]


@pytest.fixture
def package(rootfs: Tree) -> Tree:
    """Makes a tree with a package whose program fails without its settings: package(PROGRAM, LINK, TARGET)."""

    def make(program: str, link: str, target: str, script: str = "#!/bin/sh\nset -e\ntest -e {link}\n") -> Path:
        top = rootfs(f"{target[1:]}/file")
        for path in (program, link):
            (top / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (top / program[1:]).write_text(script.format(link=link))
        (top / program[1:]).chmod(0o755)
        (top / link[1:]).symlink_to(target)
        if not (top / "usr/bin/tool").exists():
            (top / "usr/bin/tool").symlink_to(program)
        return top

    return make


LAYOUTS = {
    "named like the program": ("/usr/bin/tool", "/usr/share/tool/conf"),
    "with a version": ("/usr/bin/tool-9.2", "/usr/lib/tool/etc/deep/conf"),
    "where the program lies": ("/usr/lib/package/program/start", "/usr/lib/package/share/conf"),
    "in the script": ("/usr/libexec/start", "/usr/lib/other/conf"),
    "for one architecture": ("/usr/libexec/start", "/usr/lib/x86_64-linux-gnu/other/conf"),
}
COMMANDS = (["tool"], ["/usr/bin/tool"], ["sh", "-c", "cd /; tool && echo done"], ["env", "A=b", "tool"])


@tree
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_result_names_the_missing_settings(layout: str, holt: Holt, package: Tree) -> None:
    """The cure is tried: with it, the program works."""
    program, link = LAYOUTS[layout]
    top = package(program, link, "/etc/settings")
    result = holt(["run", "--rootfs", top, "--", "tool"], report=True)
    (denial,) = denials(result)
    assert (result.code, denial["path"], denial["grant"]) == (1, link, "--etc settings")
    assert denial["policy"] == {"filesystem": {"etc": ["settings"]}}
    assert f"holt: refused {link} (ENOENT): the sandbox does not show the target of this symlink" in result.err and "--etc settings allows it" in result.err
    holt(["run", "--rootfs", top, "--etc", "settings", "--", "tool"]).ok()


@tree
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.identities("user", "root")
def test_a_session_names_the_missing_settings(layout: str, sessions: Sessions, package: Tree) -> None:
    """The keeper cannot read the host's /usr, so it searches the sandbox's own."""
    program, link = LAYOUTS[layout]
    session = sessions.create("w", "--rootfs", package(program, link, "/etc/settings"))
    for command in (["tool"], ["sh", "-c", "tool || exit 7"]):
        result = session.exec(*command, flags=["--json"])
        (denial,) = json.loads(result.err)["denials"]
        assert (denial["path"], denial["grant"]) == (link, "--etc settings")


@tree
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_program_of_a_command_line_is_found(command: list[str], holt: Holt, package: Tree) -> None:
    top = package("/usr/bin/tool", "/usr/share/tool/conf", "/etc/settings")
    assert [denial["grant"] for denial in denials(holt(["run", "--rootfs", top, "--", *command], report=True))] == ["--etc settings"]


@tree
@pytest.mark.parametrize("case", ("success", "shown", "missing on the host", "private", "secret", "another program", "elsewhere"))
def test_nothing_is_named_without_reason(case: str, holt: Holt, package: Tree) -> None:
    target = {"secret": "/etc/shadow", "elsewhere": "/opt/settings", "shown": "/etc/php"}.get(case, "/etc/settings")
    if case == "secret":
        target += ".d"
    top = package("/usr/bin/tool", "/usr/share/tool/conf", target, script="#!/bin/sh\nexit 1\n")
    if case == "missing on the host":
        subprocess.run(["rm", "-r", top / target[1:]], check=True)
    if case == "private":
        (top / target[1:]).chmod(0o700)
    command = {"success": ["sh", "-c", "tool || true"], "another program": ["sh", "-c", "exit 3"]}.get(case, ["tool"])
    assert denials(holt(["run", "--rootfs", top, "--", *command], report=True)) == []


# Settings of users and services, which no program of a package needs to start.
NOT_SHOWN = ("/etc/environment",)


def links_out_of_usr() -> dict[str, str]:
    """The symlinks below /usr to public places in /etc, /var/lib and /var/cache, and where they lead."""
    found = {}
    for directory, names, files in os.walk("/usr"):
        for name in (*names, *files):
            path = os.path.join(directory, name)
            target = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path))) if os.path.islink(path) else ""
            if target.startswith(("/etc/", "/var/lib/", "/var/cache/")) and os.path.lexists(target):
                found[path] = target
    return found


def is_public(path: str) -> bool:
    parents = [str(parent) for parent in Path(path).parents]
    return all(os.stat(parent).st_mode & 0o1 for parent in parents) and bool(os.lstat(path).st_mode & 0o4)


@pytest.mark.alike
@pytest.mark.slow
def test_no_link_of_usr_dangles_only_inside(holt: Holt) -> None:
    """If this fails, a package of this host needs another name in policy/tree.c, or has settings that are private."""
    links = {path: target for path, target in links_out_of_usr().items() if is_public(target) and target not in NOT_SHOWN}
    script = 'while IFS= read -r path; do [ -e "$path" ] || [ -L "$path" ] || printf "%s\\n" "$path"; done'
    result = holt(["run", "--", "bash", "-c", script], stdin="".join(f"{target}\n" for target in links.values()))
    missing = set(result.ok().out.splitlines())
    assert not [f"{path} -> {target}" for path, target in links.items() if target in missing]


def test_each_etc_takes_one_name(holt: Holt) -> None:
    """A second name after --etc would be the command, and the sandbox rarely has such a program."""
    if not Path("/etc/profile").exists():
        pytest.skip("this host has no /etc/profile")
    result = holt(["run", "--etc", "fstab", "profile"])
    assert result.code == 127 and 'each --etc takes one name, so write --etc profile, and a "--"' in result.err
    for options in ([], ["--etc", "fstab"]):
        assert "each --etc" not in holt(["run", *options, "--", "no-such-program"]).err
