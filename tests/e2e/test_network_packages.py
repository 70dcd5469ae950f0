# SPDX-License-Identifier: Apache-2.0
"""Package managers of several languages fetch many packages at once, by the user's own settings, at both levels of the network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lib import netpackages
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netpeers import AtLevel, at_level  # noqa: F401
from lib.tools import needs, needs_peer

pytestmark = [pytest.mark.identities("user"), pytest.mark.slow]

WEB = "web.example.org"
FILES = f"https://{WEB}/files/"


def settings(at_level: AtLevel, lab: Lab, name: str, text: str) -> list[str]:
    """Writes a file of the user's settings, and returns the options that show it, and the lab's CA, to programs inside."""
    for path in (Path(shutil.copy(lab.ca, at_level.cwd.parent)), at_level.cwd.parent / name):
        if path.name == name:
            path.write_text(text)
        at_level.identity.own(path)
    return ["--net", WEB, "--ro", f"{at_level.cwd.parent}/{name}:/home/agent/{name}", "--ro", f"{at_level.cwd.parent}/ca.pem:/home/agent/ca.pem"]


@pytest.fixture(scope="module")
def index(lab: Lab) -> None:
    for i in range(12):
        netpackages.put_wheel(lab.files / "simple", f"otter{i}", f"value = {i}\n", [f"otter{i + 1}"] if i < 11 else [])


@needs("python3")
def test_pip_installs_packages_that_need_others(at_level: AtLevel, lab: Lab, index: None) -> None:
    """Each package names the next one, so pip keeps its connection for many requests."""
    shown = settings(at_level, lab, ".pip.conf", f"[global]\nindex-url = {FILES}simple/\ncert = /home/agent/ca.pem\n")
    result = at_level.sh("python3 -m pip install -q --disable-pip-version-check --target lib otter0 && ls lib/otter*.py | wc -l",
                         *shown, "-e", "PIP_CONFIG_FILE=/home/agent/.pip.conf")

    assert result.ok().out == "12\n"


@pytest.fixture(scope="module")
def registry(lab: Lab) -> list[str]:
    names = [f"otter-{i}" for i in range(50)]
    for i, name in enumerate(names):
        netpackages.put_npm_package(lab.files / "npm", f"{FILES}npm/", name, f"module.exports = {i}\n")
    return names


@needs_peer("npm")
def test_npm_installs_fifty_packages(at_level: AtLevel, lab: Lab, registry: list[str]) -> None:
    about = {"name": "x", "version": "1.0.0", "dependencies": {name: "1.0.0" for name in registry}}
    (at_level.cwd / "package.json").write_text(json.dumps(about))
    at_level.identity.own(at_level.cwd / "package.json")
    shown = settings(at_level, lab, ".npmrc", f"registry={FILES}npm/\ncafile=/home/agent/ca.pem\naudit=false\nfund=false\n")
    script = """
        npm install --silent --no-update-notifier --package-lock-only && npm ci --no-update-notifier
        node -p 'Object.keys(require("./package.json").dependencies).reduce((sum, name) => sum + require(name), 0)'
    """
    result = at_level.sh(script, *shown)

    assert result.ok().out.splitlines()[-1] == str(sum(range(50))) and "added 50 packages" in result.out


@needs_peer("go")
def test_go_downloads_modules(at_level: AtLevel, lab: Lab) -> None:
    if not (lab.files / "go").exists():
        netpackages.put_go_module(lab.files / "go", f"{WEB}/otter", "package otter\n")
    shown = settings(at_level, lab, ".goenv", f"GOPROXY={FILES}go\nGONOSUMDB=*\nGOFLAGS=-mod=mod\n")
    script = f"go mod init x 2>/dev/null; go mod edit -require={WEB}/otter@v1.0.0 && go mod download -json && cat go.sum | wc -l"
    result = at_level.sh(script, *shown, "-e", "GOENV=/home/agent/.goenv", "-e", "SSL_CERT_FILE=/home/agent/ca.pem")

    assert '"Version": "v1.0.0"' in result.ok().out and result.out.endswith("\n1\n")


APT = """
mkdir -p a/etc/apt a/lists/partial a/archives/partial && touch a/status
echo 'deb [trusted=yes] {url} ./' > a/sources.list
apt="apt-get -qq -o Dir=$PWD/a -o Dir::State::status=$PWD/a/status -o Dir::State::lists=$PWD/a/lists -o Dir::Cache=$PWD/a \
    -o Dir::Etc::sourcelist=$PWD/a/sources.list -o Acquire::https::CaInfo=$HOME/ca.pem"
$apt update && $apt download otter && dpkg-deb -x otter_1.0_all.deb out && cat out/opt/otter
"""


@needs("apt-get", "dpkg-deb")
@pytest.mark.parametrize("scheme", ("http", "https"))
def test_apt_downloads_a_package(scheme: str, at_level: AtLevel, lab: Lab) -> None:
    if not (lab.files / "apt").exists():
        netpackages.put_deb(lab.files / "apt", "otter", "an otter\n")
    result = at_level.sh(APT.format(url=f"{scheme}://{WEB}/files/apt/"), *settings(at_level, lab, ".none", ""))

    assert result.ok().out == "an otter\n"
