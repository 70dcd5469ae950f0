# SPDX-License-Identifier: Apache-2.0
"""A small internet for tests: a network namespace with public-looking addresses, a DNS server and servers.

    def test_x(lab):
        lab.run(["curl", "http://web.example.org/"])     without a sandbox
        lab.holt(...)                                    holt, for which the lab is the host's network
        lab.log("dns")                                   the queries that arrived there

Nothing of it leaves the machine: the namespace has only its loopback. netlab_host.py is its process. A test module takes the
fixture holt from here: "from lib.netlab import holt".
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lib import identity as identities
from lib.identity import Identity
from lib.netlab_host import ENDS_WITH_PARENT, parts
from lib.sandbox import Holt

Json = dict[str, Any]

WEB4, WEB6 = "203.0.113.10", "2001:db8::10"
OTHER4, OTHER6 = "203.0.113.11", "2001:db8::11"
PEER4, PEER6 = "203.0.113.20", "2001:db8::20"  # Only servers of Lab.serve() listen there.
REFUSING4, REFUSING6 = "203.0.113.77", "2001:db8::77"  # No server listens there.
DROPPED4, DROPPED6 = "192.0.2.66", "2001:db8:dead::66"  # Packets vanish there.
UNREACHABLE4 = "198.51.100.66"
RESOLVER = "203.0.113.53"

# Names that a page for users may mention. Lab.add_sites() makes them exist.
SITES = ("pypi.org", "registry.npmjs.org", "github.com", "gitlab.com")

# Addresses that a name must not lead to. Each has servers, so that a connection would succeed.
FORBIDDEN = {
    "loopback": "127.0.0.1", "loopback-2": "127.0.0.2", "loopback6": "::1", "private-10": "10.1.0.5",
    "private-172": "172.16.0.5", "private-192": "192.168.7.5", "cgnat": "100.64.0.1",
    "metadata": "169.254.169.254", "metadata6": "fd00:ec2::254", "unique-local": "fd12:3456::5",
    "nat64": "64:ff9b::a01:5", "sixtofour": "2002:a01:5::1", "benchmark": "198.18.0.9",
}
# Addresses of the same kind, which have no servers.
FORBIDDEN_BARE = {
    "any": "0.0.0.0", "any6": "::", "broadcast": "255.255.255.255", "multicast": "224.0.0.251", "multicast6": "ff02::fb",
    "mapped": "::ffff:10.1.0.5", "mapped-loopback": "::ffff:127.0.0.1", "link-local6": "fe80::1",
    "compatible": "::10.1.0.5", "nat64-local": "64:ff9b:1::a01:5", "teredo": "2001:0:a01:5::1", "reserved": "240.0.0.1",
}

# The servers at each address, by port. netlab_host.servers() has their code.
SERVERS = {
    80: "http", 443: "https", 8080: "http", 8081: "http-keeps", 8443: "https", 9443: "tls-echo", 25: "smtp", 22: "ssh", 3306: "mysql",
    7: "echo", 9000: "digest", 9001: "download", 9002: "reset", 9003: "reset-later", 9004: "hold", 9005: "deaf",
    3128: "proxy", 3129: "proxy-login",
}


def _zone() -> dict[str, Json]:
    """Names of the lab. An entry has "answers"; or "turns", one list of answers for each query, of which the last one
    stays; or "alias". "rcode", "delay" in seconds, "dead" (no reply), "garbage" and "ttl" change the reply."""
    zone: dict[str, Json] = {
        name: {"answers": [WEB4, WEB6]}
        for name in ("web.example.org", "api.example.org", "git.example.org", "example.com", "*.wild.example.com",
                     "wild.example.com", "xn--bcher-kva.example.org", "under_score.example.org")
    }
    zone |= {
        "other.example.org": {"answers": [OTHER4, OTHER6]}, "peer.example.org": {"answers": [PEER4, PEER6]},
        "peer-six.example.org": {"answers": [PEER6]}, "four.example.org": {"answers": [WEB4]},
        "six.example.org": {"answers": [WEB6]}, "ten.corp.example.org": {"answers": ["10.1.0.5"]},
        "www.example.org": {"alias": "web.example.org"}, "chain.example.org": {"alias": "www.example.org"},
        "loop.example.org": {"alias": "loop.example.org"},
        "slow.example.org": {"answers": [WEB4], "delay": 1.0}, "dead.example.org": {"answers": [WEB4], "dead": True},
        "failing.example.org": {"answers": [], "rcode": 2}, "refusing-dns.example.org": {"answers": [], "rcode": 5},
        "garbage.example.org": {"answers": [WEB4], "garbage": True}, "empty.example.org": {"answers": []},
        "many.example.org": {"answers": [f"203.0.113.{n}" for n in range(10, 120)]},
        "refused.example.org": {"answers": [REFUSING4, REFUSING6]},
        "dropped.example.org": {"answers": [DROPPED4]}, "unreachable.example.org": {"answers": [UNREACHABLE4]},
        "dead-six.example.org": {"answers": [DROPPED6, WEB4]}, "refused-six.example.org": {"answers": [REFUSING6, WEB4]},
        "second.example.org": {"answers": [REFUSING4, WEB4]}, "dead-first.example.org": {"answers": [DROPPED4, WEB4]},
        "rebind.example.org": {"turns": [[WEB4], ["127.0.0.1"]], "ttl": 0},
        "moving.example.org": {"turns": [[WEB4], [OTHER4]], "ttl": 0},
        "mixed.example.org": {"answers": [WEB4, "10.1.0.5"]}, "alias-to-private.example.org": {"alias": "private-10.bad.example.org"},
        "alias-to-other.example.org": {"alias": "other.example.org"},
    }
    return zone | {f"{name}.bad.example.org": {"answers": [a]} for name, a in (FORBIDDEN | FORBIDDEN_BARE).items()}


ZONE = _zone()


def _settings(directory: Path, own_user: bool) -> Json:
    hosts = [WEB4, WEB6, OTHER4, OTHER6, *FORBIDDEN.values()]
    return {
        "directory": str(directory), "own_user": own_user, "zone": ZONE, "servers": SERVERS, "hosts": hosts,
        "resolvers": [RESOLVER, "127.0.0.53"],
        # 203.0.113.1 and 2001:db8::1 are the host's own addresses, which resolvers look for (AI_ADDRCONFIG).
        "routes": {
            "address": ["203.0.113.1/24", "2001:db8::1/128", f"{PEER6}/128"],
            "local": ["2001:db8::/48", "fd00:ec2::/64", "fd12:3456::/64", "64:ff9b::/96", "2002:a01:5::/48", "10.1.0.0/16",
                      "172.16.0.0/24", "192.168.7.0/24", "100.64.0.0/24", "169.254.169.254/32", "198.18.0.0/24"],
            "dropped": ["192.0.2.0/24", "2001:db8:dead::/48"], "unreachable": ["198.51.100.0/24"],
        },
        "files": {
            "resolv.conf": f"nameserver {RESOLVER}\noptions timeout:5 attempts:1\n",
            "hosts": "127.0.0.1 localhost\n::1 localhost\n",
            "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
        },
        "certificate": ["*.example.org", "example.com", "*.example.com", "*.wild.example.com", "*.bad.example.org",
                        "*.corp.example.org", *SITES],
    }


# nsenter(1) ends in the root directory of the mount namespace, so the working directory is passed on by name.
ENTER = 'exec nsenter {} -- env --chdir="$PWD" -- "$@"'


@dataclass(frozen=True)
class LabIdentity(Identity):
    """An identity whose commands run in the lab."""

    process: int = 0

    def argv(self, argv: Sequence[str | os.PathLike[str]]) -> list[str]:
        # Without root, entering the lab also enters its user namespace.
        return super().argv(argv) if identities.is_root() else [os.fspath(a) for a in argv]

    def as_user(self, argv: Sequence[str | os.PathLike[str]]) -> list[str]:
        names = ("net", "mnt") if identities.is_root() else ("user", "net", "mnt")
        options = " ".join(f"--{n.replace('mnt', 'mount')}=/proc/{self.process}/ns/{n}" for n in names)
        options += "" if identities.is_root() else " --preserve-credentials"
        return ["sh", "-c", ENTER.format(options), "lab", *super().as_user(argv)]


def as_user(user: str) -> list[str]:
    """Returns a prefix with which root starts a command as another user; an empty one if user is ""."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *ENDS_WITH_PARENT, "--"] if user else []


class Lab:
    """A running test network."""

    def __init__(self, directory: Path, identity: Identity) -> None:
        self.directory = directory
        (directory / "files").mkdir(parents=True)
        for path in (directory, directory / "files"):
            path.chmod(0o755)
        argv: list[str] = [sys.executable, "-m", "lib.netlab_host"]
        alone = not identities.is_root()
        self.process = subprocess.Popen(
            identity.argv(argv) if alone else argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[1],
        )
        identities.count_as_helper(self.process.pid)
        self._ask(_settings(directory, alone and identity.name != "nested"))
        self.identity = LabIdentity(identity.name, identity.uid, identity.gid, identity.base, self.process.pid)

    def _ask(self, message: Json) -> Any:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the test network has ended"
        return json.loads(line)

    def serve(self, argv: Sequence[str | os.PathLike[str]], port: int, user: str = "") -> None:
        """Starts a server in the lab, as the suite's own user or as another one. Waits until it listens at PEER4 or PEER6. It runs
        until the lab ends."""
        words = [os.fspath(word) for word in (*as_user(user), *argv)]
        failure = self._ask({"do": "serve", "argv": words, "addresses": [PEER4, PEER6], "port": port})["failure"]
        assert not failure, f"{' '.join(words)}: {failure}"

    @property
    def ca(self) -> Path:
        """The certificate of the lab's CA, which everybody can read."""
        return self.directory / "ca.pem"

    @property
    def files(self) -> Path:
        """The directory that the web servers show below /files/."""
        return self.directory / "files"

    def log(self, what: str = "") -> list[Json]:
        """Takes the log: rows about "dns", "tcp", "tls", "http", "udp" and "broken". If `what` is given, it takes one kind of row and
        drops the others."""
        return [row for row in self._ask({"do": "log"}) if not what or row["what"] == what]

    def name(self, name: str, **entry: Any) -> str:
        """Adds or replaces a name of the DNS server; _zone() describes the entry."""
        self._ask({"do": "name", "name": name, "entry": entry})
        return name

    def add_sites(self) -> None:
        """Makes SITES exist, and programs trust their certificate. A directory of files/ with the name of a site has its files and
        repositories."""
        for name in SITES:
            self.name(name, answers=[WEB4, WEB6])
            (self.files / name).mkdir()
        self._ask({"do": "trust"})

    def run(self, argv: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs a command in the lab, without holt."""
        return self.identity.run(argv, **options)

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self._ask({"do": "stop"})
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.directory)


def bytes_and_digest(size: int) -> tuple[int, str]:
    """Returns the size and the SHA-256 of what the servers send for this size."""
    digest = hashlib.sha256()
    for part in parts(size):
        digest.update(part)
    return size, digest.hexdigest()


@pytest.fixture(scope="module")
def lab(identity: Identity, scratch: Path) -> Iterator[Lab]:
    """The test network of this module's tests."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is missing, which makes the certificate of the test network")
    lab = Lab(scratch / f"lab-{secrets.token_hex(4)}", identity)
    yield lab
    lab.close()


@pytest.fixture
def holt(holt_binary: Path, lab: Lab, workspace: Path) -> Holt:
    """holt, for which the lab is the network of the host."""
    lab.log()
    return Holt(holt_binary, lab.identity, workspace)
