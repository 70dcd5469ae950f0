# SPDX-License-Identifier: Apache-2.0
"""README.md: its commands print what it shows, its agent runs, and its picture is there. Links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lib import netpackages
from lib.identity import Identity
from lib.netlab import Lab, lab  # noqa: F401
from lib.paths import PROJECT, reachable_by_all
from lib.sandbox import HANGS, Holt
from lib.tools import INSIDE, needs

README = (PROJECT / "README.md").read_text()

SVG = "{http://www.w3.org/2000/svg}"

# Parts of an output that differ from run to run.
VARYING = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "DATE"),
    (r"\d\d/[A-Z][a-z]{2}/\d{4} \d\d:\d\d:\d\d", "DATE"),
    (r"\d+\.\d{3}s", "TIME"),
    (r"127\.0\.0\.1:\d{5}", "ADDRESS"),
    (r"in \d+m?s\b", "in TIME"),
)


def test_the_installs_of_the_readmes_leave_nothing_untracked(place: Path) -> None:
    """pip builds in the checkout, and contrib/python/README.md makes a virtual environment there."""
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    shutil.copy(PROJECT / ".gitignore", place)
    made = ["contrib/python/build/lib/holt/__init__.py", "contrib/python/holt.egg-info/PKG-INFO", "venv/bin/pip", "build/build.ninja"]
    ignored = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(place), "check-ignore", *made], capture_output=True, text=True)
    assert ignored.stdout.split() == made


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def commands() -> list[tuple[str, str]]:
    """Each command of the README's console blocks, with the output that the README shows."""
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output.strip("\n")))
    return found


def pattern(shown: str) -> str:
    """A regular expression for the output; "..." stands for anything."""
    return ".*".join(re.escape(part) for part in shown.split("..."))


@dataclass
class Reader:
    """Somebody who types the README's commands in a project of their own."""

    identity: Identity
    binary: Path
    home: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    def bash(self, line: str, cwd: Path | None = None) -> str:
        path = f"{self.binary.parent}:{INSIDE}"
        done = subprocess.run(
            self.identity.as_user(self.identity.argv(["bash", "-c", line])), cwd=cwd or self.project,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANGS,
            env=self.identity.environment(
                {"HOME": str(self.home), "PATH": path, "XDG_DATA_HOME": str(self.home / "data")}
            ),
        )
        return done.stdout + done.stderr

    def shown(self, output: str) -> str:
        """An output as the README has it."""
        output = output.replace(str(self.project), "/home/you/project").strip("\n")
        for varying, name in VARYING:
            output = re.sub(varying, name, output)
        return output

    def cwd(self, command: str) -> Path:
        """Two commands need another directory than the project: a linked worktree, and one further down."""
        if "--git-common-dir" in command:
            return self.home / "tree"
        return self.project / "sub" if "--workspace .." in command else self.project


# npm trusts the CA of the test network by a setting of the project.
PREPARE = r"""
git config --global user.name You
git config --global user.email you@example.org
git init -q .
mkdir sub
echo 'cafile=/etc/ssl/certs/ca-certificates.crt' >.npmrc
echo '{"dependencies": {"otter-one": "1.0.0", "otter-two": "1.0.0"}}' >package.json
if type npm >/dev/null; then holt run --net @npm -- npm install --silent --package-lock-only; fi
printf 'check:\n\t@true\n' >Makefile
echo 'assert sum([1, 2]) == 4' >test.py
echo '<p>hi' >index.html
head -c 48213 /dev/zero >report.pdf
sed s/timeout/timeuot/ policy.json >typo.json
touch train.py out.json .env
mkdir -p ~/.ssh ~/tools ~/.local/python3.12/bin
echo key >~/.ssh/id_ed25519
ln -s /usr/bin/python3 ~/.local/python3.12/bin/python3
printf '#!/bin/sh\necho 3.5\n' >~/tools/price.py
chmod +x ~/tools/price.py
git add .
git commit -qm first
git clone -q . ~/other
git -C ~/other worktree add ~/tree
echo '#' >>Makefile
"""


@pytest.fixture(scope="module")
def internet(lab: Lab) -> Lab:
    """The test network, with the hosts that the README names."""
    lab.add_sites()
    netpackages.put_wheel(lab.files / "pypi.org" / "simple", "requests", "")
    for name in ("otter-one", "otter-two"):
        netpackages.put_npm_package(lab.files / "registry.npmjs.org", "https://registry.npmjs.org/", name, "")
    for name in ("github.com/acme/app.git", "gitlab.com/acme/web.git"):
        subprocess.run(["git", "init", "-q", "--bare", lab.files / name], check=True)
    return lab


@pytest.fixture
def reader(holt: Holt, place: Path, identity: Identity, internet: Lab) -> Iterator[Reader]:
    reader = Reader(internet.identity, holt.binary, place / "home")
    for path in (reader.home, reader.project, reader.home / "data"):
        path.mkdir(mode=0o755)
        identity.own(path)
    (policy,) = (output for command, output in commands() if command == "cat policy.json")
    identity.own(_written(reader.project / "policy.json", policy + "\n"))
    assert "HEAD is now at" in reader.bash(PREPARE)
    yield reader
    reader.bash("holt stop work; holt rm work")


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@needs("bash", "git", "make", "curl", "python3")
@pytest.mark.identities("user")
def test_the_commands_print_what_the_readme_shows(reader: Reader) -> None:
    assert len(commands()) > 30
    for command, expected in commands():
        if "npm ci" in command and not shutil.which("npm", path=INSIDE):
            continue  # Debian's nodejs does not contain it.
        got = reader.shown(reader.bash(command, reader.cwd(command)))
        assert re.fullmatch(pattern(reader.shown(expected)), got, re.S), f"$ {command}\n{got}\n--- README\n{expected}"


@needs("python3")
@pytest.mark.identities("user")
def test_the_agent_runs_as_it_stands(reader: Reader, place: Path) -> None:
    script = _agent(place)
    answer = reader.bash(f"PYTHONPATH={_package(place)} /usr/bin/python3 -B {script} look around")

    assert "report.pdf\n" in answer and "\n[refused: unshare: namespaces are not" in answer
    assert answer.endswith("\n[exited, exit code 1, 0 bytes left out]\n")


SCRIPTED = r"""
import sys
source = open(sys.argv[1]).read().rpartition("\nprint(")[0]
names = {}
exec(compile(source, sys.argv[1], "exec"), names)
calls = iter([{"line": "cat test.py; sleep 1000 & exit 3"}, {"line": "seq 100000"}, {"command": "ls"}, {"line": "a\0b"},
              {"line": "echo x > .git/config.worktree"}, {"line": "echo done > result"}])
def model(messages):
    arguments = next(calls, None)
    turns = [{"id": "7", "name": "bash", "arguments": arguments}] if arguments else []
    return {"role": "assistant", "text": "\n--\n".join(m["text"] for m in messages if m["role"] == "tool"), "calls": turns}
names["model"] = model
print(names["agent"]("task"))
"""


@needs("python3")
@pytest.mark.identities("user")
def test_the_agent_gives_a_model_what_its_calls_have_come_to(reader: Reader, place: Path) -> None:
    script, driver = _agent(place), _written(place / "driver.py", SCRIPTED)
    answer = reader.bash(f"PYTHONPATH={_package(place)} /usr/bin/python3 -B {driver} {script}")
    first, long, unknown, refused, made, last = answer.split("\n--\n")

    assert first == "assert sum([1, 2]) == 4\n\n[exited, exit code 3, 0 bytes left out]"
    assert long.endswith("100000\n\n[exited, exit code 0, 568895 bytes left out]") and len(long) < 21_000
    assert unknown == "[not run: KeyError('line')]" and refused.startswith("[not run: UsageError(")
    aside = ".git/config.worktree.holt-untrusted"
    assert made == f"\n[the path is protected, so your file was renamed to {aside}]\n[exited, exit code 0, 0 bytes left out]"
    last, _, seen = last.partition("look at ")
    assert seen == f"'{aside}': a protected path was written\n"
    assert last == "\n[exited, exit code 0, 0 bytes left out]\n" and (reader.project / "result").read_text() == "done\n"


def _agent(place: Path) -> Path:
    (text,) = blocks("python")
    assert len(text.splitlines()) <= 40
    return _written(place / "agent.py", text)


def _package(place: Path) -> Path:
    """contrib/python where every identity can read it."""
    source = PROJECT / "contrib" / "python"
    return source if reachable_by_all(source) else Path(shutil.copytree(source, place / "python"))


def test_the_picture_is_well_formed_and_shown() -> None:
    (name,) = re.findall(r"!\[[^]]+\]\((\S+\.svg)\)", README)
    picture = ElementTree.parse(PROJECT / name).getroot()
    words = {"".join(text.itertext()) for text in picture.iter(f"{SVG}text")}

    assert picture.tag == f"{SVG}svg" and picture.findtext(f"{SVG}title") and picture.findtext(f"{SVG}desc")
    assert {"keeper", "init", "exec", "interpreter", "workspace", "network: by name", "bridge to your tools"} <= words
    assert "prefers-color-scheme: dark" in (picture.findtext(f"{SVG}style") or "")


PAGES = (*sorted(PROJECT.glob("*.md")), *sorted((PROJECT / "contrib").glob("*/README.md")))


def anchors(page: Path) -> set[str]:
    """The anchors that a renderer of Markdown makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_to_what_is_there(page: Path) -> None:
    for name, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        target = page.parent / name if name else page
        assert target.exists(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


def test_setup_builds_nothing_for_a_wrong_word() -> None:
    """setup takes no option, so --help must not install packages."""
    setup = str(PROJECT / "setup")
    done = subprocess.run([setup, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("Usage: ./setup\n")
    done = subprocess.run([setup, "--bogus"], capture_output=True, text=True)
    assert done.returncode == 1 and "./setup takes no arguments: --bogus" in done.stderr and not done.stdout
