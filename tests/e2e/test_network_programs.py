# SPDX-License-Identifier: Apache-2.0
"""Programs as users start them: each reaches an allowed host unchanged, and fails for others as it does without a network by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lib import netpackages
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sandbox import Holt, Result
from lib.sessions import Sessions
from lib.tools import INSIDE, needs

pytestmark = pytest.mark.alike

WEB = "web.example.org"
INDEX = f"https://{WEB}/files/simple/"
REGISTRY = f"https://{WEB}/files/npm/"


def optional(*programs: str) -> list[Any]:
    """Parameters for programs that contrib/packages does not install. A missing one is skipped; where every test must run, it is
    left out."""
    return [pytest.param(p, marks=needs(p)) for p in programs
            if shutil.which(p, path=INSIDE) or not os.environ.get("MUST_RUN")]


def make_repository(directory: Path) -> None:
    """A bare repository that plain HTTP can serve."""

    def git(*argv: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *identity, *argv], check=True, capture_output=True)

    work = directory.with_suffix(".work")
    git("init", "--quiet", str(work))
    (work / "README").write_text("an otter\n")
    git("-C", str(work), "add", ".")
    git("-C", str(work), "commit", "--quiet", "-m", "first")
    git("clone", "--quiet", "--bare", str(work), str(directory))
    git("-C", str(directory), "update-server-info")
    shutil.rmtree(work)


@pytest.fixture(scope="module")
def content(lab: Lab) -> Iterator[Lab]:
    """The lab, with an index of Python packages, an npm registry and a git repository at WEB."""
    netpackages.put_wheel(lab.files / "simple", "otterlib", "value = 42\n")
    netpackages.put_npm_package(lab.files / "npm", REGISTRY, "otterpad", "module.exports = () => 42\n")
    make_repository(lab.files / "app.git")
    yield lab


@pytest.fixture
def ca(lab: Lab, holt: Holt) -> list[str]:
    """Options that make programs inside trust the lab's CA."""
    shutil.copy(lab.ca, holt.cwd / "ca.pem")
    path = f"{holt.cwd}/ca.pem"
    names = ("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NPM_CONFIG_CAFILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "SSL_CERT_FILE")
    return [word for name in names for word in ("-e", f"{name}={path}")]


def run(holt: Holt, options: list[str], rules: str, script: str) -> Result:
    return holt(["run", "--net", rules, *options, "-e", "HOME=/tmp", "--", "bash", "-ec", script])


# --- package managers and git ---


@pytest.mark.slow
@needs("git", "python3")
@pytest.mark.identities("user", "root", "nested")
def test_pip_installs_from_an_index(holt: Holt, content: Lab, ca: list[str]) -> None:
    pip = f"python3 -m pip install --quiet --disable-pip-version-check --index-url {INDEX} --target t otterlib"

    assert run(holt, ca, WEB, f"{pip}; PYTHONPATH=t python3 -c 'import otterlib; print(otterlib.value)'").ok().out == "42\n"
    refused = run(holt, ca, "other.example.org", f"{pip} --retries 0")
    assert refused.code == 1 and f"--net {WEB} allows it" in refused.err


@pytest.mark.slow
@needs("git", "python3")
@pytest.mark.identities("user")
def test_holt_python_installs_a_missing_module(sessions: Sessions, content: Lab) -> None:
    session = sessions.create("p", "--net", f"{WEB}:80", "-e", f"PIP_INDEX_URL=http://{WEB}/files/simple/", "-e",
                              f"PIP_TRUSTED_HOST={WEB}")

    assert session("python", "-c", "import otterlib; otterlib.value").ok().out == "42\n"


@pytest.mark.slow
@needs("git")
@pytest.mark.parametrize("program", optional("npm"))
def test_npm_installs_from_a_registry(holt: Holt, content: Lab, ca: list[str], program: str) -> None:
    (holt.cwd / "package.json").write_text('{"name": "x", "version": "1.0.0"}')
    holt.identity.own(holt.cwd / "package.json")
    npm = f"--silent --no-audit --no-fund --no-update-notifier --registry {REGISTRY}"
    script = f"{program} install {npm} otterpad; rm -r node_modules; {program} ci {npm}; node -e 'console.log(require(\"otterpad\")())'"

    assert run(holt, ca, WEB, script).ok().out == "42\n"


@needs("git")
@pytest.mark.parametrize("scheme", ["https", "http"])
def test_git_clones(holt: Holt, content: Lab, ca: list[str], scheme: str) -> None:
    url = f"{scheme}://git.example.org/files/app.git"

    assert run(holt, ca, "git.example.org", f"git clone --quiet {url} a; cat a/README").ok().out == "an otter\n"
    refused = run(holt, ca, WEB, f"git clone --quiet {url} b")
    assert refused.code == 128
    assert "Could not resolve host: git.example.org" in refused.err and "--net git.example.org allows it" in refused.err


@needs("ssh", "git")
def test_git_over_ssh_reaches_its_server(holt: Holt, lab: Lab) -> None:
    """The lab's server has only a greeting, so git ends after it. The server speaks first."""
    lab.log()
    run(holt, [], "git.example.org:22", "ssh -o BatchMode=yes -o StrictHostKeyChecking=no git@git.example.org true || true").ok()

    assert [row["port"] for row in lab.log("tcp")] == [22]


# --- clients of HTTP ---

CLIENTS = {
    "curl": "curl -sS {url}",
    "wget": "wget -qO- --ca-certificate=ca.pem {url}",
    "node": "node -e 'fetch(\"{url}\").then(r => r.text()).then(t => process.stdout.write(t))'",
    "urllib": "python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\").read().decode())'",
}


@needs("curl", "node", "python3")
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("client", ["curl", "node", "urllib", *optional("wget")])
def test_a_client_of_http(holt: Holt, lab: Lab, ca: list[str], client: str, scheme: str) -> None:
    script = CLIENTS[client]
    reply = run(holt, ca, WEB, script.format(url=f"{scheme}://{WEB}/")).ok()
    refused = run(holt, ca, WEB, script.format(url=f"{scheme}://other.example.org/"))

    assert json.loads(reply.out)["host"] == WEB
    assert refused.code != 0 and "--net other.example.org allows it" in refused.err, str(refused)


ASYNC = """
import asyncio
async def main():
    reader, writer = await asyncio.open_connection("{0}", 80)
    writer.write(b"GET / HTTP/1.0\\r\\nHost: {0}\\r\\n\\r\\n")
    print((await reader.readline()).split()[1].decode())
asyncio.run(main())
"""


@needs("python3")
def test_asyncio(holt: Holt, lab: Lab) -> None:
    assert holt(["run", "--net", WEB, "--", "python3", "-c", ASYNC.format(WEB)]).ok().out == "200\n"


@needs("bash")
def test_the_shell_s_own_connections(holt: Holt, lab: Lab) -> None:
    script = f"exec 3<>/dev/tcp/{WEB}/80; printf 'GET / HTTP/1.0\\r\\nHost: {WEB}\\r\\n\\r\\n' >&3; head -1 <&3"

    assert run(holt, [], WEB, script).ok().out.startswith("HTTP/1.1 200")


# --- resolvers ---


@needs("getent")
@pytest.mark.parametrize("resolver", [
    pytest.param("getent ahosts {0} | grep -q 198.18.1.0", id="glibc"),
    pytest.param("busybox nslookup {0} | grep -q 'Address: 198.18.1.0'", id="busybox", marks=needs("busybox")),
    pytest.param("dig +short {0} A | grep -qx 198.18.1.0", id="dig", marks=needs("dig")),
    pytest.param("dig +tcp +short {0} AAAA | grep -qx fd00:686f:6c74::100", id="dig-tcp", marks=needs("dig")),
    pytest.param("dig +short -x 198.18.1.0 | grep -qx {0}.", id="reverse", marks=needs("dig")),
    pytest.param("node -e 'require(\"dns\").resolve4(\"{0}\", (e, a) => process.exit(a[0] === \"198.18.1.0\" ? 0 : 1))'", id="c-ares",
                 marks=needs("node")),
])
def test_resolvers_find_an_allowed_name(holt: Holt, lab: Lab, resolver: str) -> None:
    run(holt, [], WEB, resolver.format(WEB)).ok()
