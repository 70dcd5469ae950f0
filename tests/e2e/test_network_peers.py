# SPDX-License-Identifier: Apache-2.0
"""Real servers and their clients, at both levels of the network: web servers, databases, git, SSH, rsync and websockets."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from lib import identity as identities
from lib import netlab, netpeers
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netpeers import AtLevel, at_level  # noqa: F401
from lib.netprobe import probe
from lib.sandbox import Holt
from lib.sessions import until
from lib.tools import needs, needs_peer

pytestmark = [pytest.mark.identities("user"), needs("python3")]

PEER = "peer.example.org"
MIB, GIB = 1 << 20, 1 << 30

needs_six = pytest.mark.skipif(not socket.has_ipv6, reason="this host has no IPv6")


def put_ca(lab: Lab, holt: Holt) -> None:
    shutil.copy(lab.ca, holt.cwd / "ca.pem")


# --- web servers ---


@pytest.fixture(scope="module")
def nginx(lab: Lab) -> None:
    netpeers.nginx(lab)


VERSIONS = {
    "--http1.1 --tls-max 1.2": "HTTP/1.1 TLSv1.2", "--http1.1": "HTTP/1.1 TLSv1.3", "--http2 --tls-max 1.2": "HTTP/2.0 TLSv1.2",
    "--http2": "HTTP/2.0 TLSv1.3", "--http2 -4": "HTTP/2.0 TLSv1.3", "--http2 -6": "HTTP/2.0 TLSv1.3",
}


@needs("curl")
@needs_peer("nginx")
def test_versions_of_http_and_tls(at_level: AtLevel, lab: Lab, nginx: None) -> None:
    put_ca(lab, at_level)
    script = "; ".join(f"curl -sS --cacert ca.pem {options} https://{PEER}/protocol" for options in VERSIONS)

    assert at_level.sh(script, "--net", PEER).ok().out.splitlines() == list(VERSIONS.values())


@needs_six
@needs("curl")
@needs_peer("nginx")
def test_a_server_that_has_only_ipv6(at_level: AtLevel, lab: Lab, nginx: None) -> None:
    put_ca(lab, at_level)
    url = "https://peer-six.example.org/protocol"

    assert at_level.sh(f"curl -sS --http2 --cacert ca.pem {url}", "--net", "peer-six.example.org").ok().out == "HTTP/2.0 TLSv1.3\n"
    assert at_level.sh(f"curl -sS -4 --cacert ca.pem {url}", "--net", "peer-six.example.org").code == 6


@needs("curl")
@needs_peer("nginx")
def test_a_connection_is_used_for_many_requests(at_level: AtLevel, lab: Lab, nginx: None) -> None:
    result = at_level.sh(f"curl -sS 'http://{PEER}/connection?[1-100]'", "--net", PEER)

    assert len(result.ok().out.splitlines()) == 100 and len(set(result.out.splitlines())) == 1


@pytest.mark.slow
@needs("curl")
@needs_peer("nginx")
@pytest.mark.parametrize("option", ("--http1.1", "--http2"))
def test_many_requests_at_once(option: str, at_level: AtLevel, lab: Lab, nginx: None) -> None:
    put_ca(lab, at_level)
    data = bytes(range(256)) * 400
    (lab.files / "data").write_bytes(data)
    script = f"curl -sS --fail {option} --parallel --parallel-max 50 --cacert ca.pem 'https://{PEER}/data?[1-200]' -o 'got-#1'; cat got-*"
    result = at_level.sh(script, "--net", PEER)

    assert result.ok().out_bytes == data * 200, result.err


@pytest.mark.slow
@needs("curl")
@needs_peer("nginx")
def test_a_large_upload(at_level: AtLevel, lab: Lab, nginx: None) -> None:
    put_ca(lab, at_level)
    size, digest = netlab.bytes_and_digest(64 * MIB)
    result = at_level.sh(f"curl -sS http://web.example.org/bytes/{size} | curl -sS --cacert ca.pem --http2 -T - https://{PEER}/received",
                         "--net", f"web.example.org,{PEER}")

    assert f'"body": "{digest}", "size": {size}' in result.ok().out


STREAM = """
import sys, urllib.request
events = urllib.request.urlopen(sys.argv[1] + "/events", timeout=60)
print(events.readline().decode(), end="", flush=True)
urllib.request.urlopen(sys.argv[1] + "/continue").read()
print(events.read().decode().strip())
"""


def test_events_arrive_one_by_one(at_level: AtLevel) -> None:
    """The server sends the second event only when the first one has arrived."""
    result = at_level(["run", "--net", "web.example.org", "--", "python3", "-c", STREAM, "http://web.example.org"])

    assert result.ok().out.split() == ["data:", "1", "data:", "2"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/websockets").exists(),
                    reason="not on this host: python3-websockets; contrib/packages peers installs it")
@pytest.mark.parametrize("url", (f"ws://{PEER}:8080", f"wss://{PEER}:8443"))
def test_websockets(url: str, at_level: AtLevel, lab: Lab, web_sockets: None) -> None:
    put_ca(lab, at_level)
    program = """
import asyncio, ssl, sys, websockets
async def main(url):
    context = ssl.create_default_context(cafile="ca.pem") if url.startswith("wss") else None
    async with websockets.connect(url, ssl=context, max_size=None) as connection:
        for size in (1, 1000, 100_000, 1_000_000):
            await connection.send(bytes(size))
            assert await connection.recv() == bytes(size)
        for i in range(500):
            await connection.send(str(i))
        assert [await connection.recv() for i in range(500)] == [str(i) for i in range(500)]
        await (await connection.ping())
    print("closed", connection.close_code)
asyncio.run(main(sys.argv[1]))
"""
    result = at_level(["run", "--net", f"{PEER}:8080,{PEER}:8443", "--", "/usr/bin/python3", "-c", program, url])

    assert result.ok().out == "closed 1000\n"


@pytest.fixture(scope="module")
def web_sockets(lab: Lab) -> None:
    netpeers.websockets(lab)


# --- databases ---


@pytest.fixture(scope="module")
def redis(lab: Lab) -> None:
    netpeers.redis(lab)


@needs_peer("redis-cli", "redis-server")
def test_redis(at_level: AtLevel, redis: None) -> None:
    script = f"""
        redis-cli -h {PEER} ping
        for i in $(seq 1000); do echo "SET key$i $i"; done | redis-cli -h {PEER} --pipe | tail -1
        redis-cli -h {PEER} mget key1 key1000
        redis-benchmark -h {PEER} -t set,get -n 2000 -c 50 -P 10 --csv | tail -2 | cut -d, -f1
    """
    result = at_level.sh(script, "--net", f"{PEER}:6379")

    assert result.ok().out.splitlines() == ["PONG", "errors: 0, replies: 1000", "1", "1000", '"SET"', '"GET"']


@pytest.fixture(scope="module")
def postgres(lab: Lab) -> None:
    netpeers.postgres(lab)


@pytest.mark.slow
@needs_peer("psql", "postgres")
def test_postgres(at_level: AtLevel, lab: Lab, postgres: None) -> None:
    """The client first asks for TLS in plain text, so holt does not know the greeting."""
    put_ca(lab, at_level)
    login = "host=peer.example.org user=postgres dbname=postgres"
    script = f"""
        psql -At '{login} sslmode=disable' -c 'select 6 * 7'
        psql -At '{login} sslmode=verify-full sslrootcert=ca.pem' -c 'select ssl, version from pg_stat_ssl where pid = pg_backend_pid()'
        psql -At '{login}' -c "select repeat(md5(i::text), 100) from generate_series(1, 5000) i" | wc -c
    """
    result = at_level.sh(script, "--net", f"{PEER}:5432")

    assert result.ok().out.split() == ["42", "t|TLSv1.3", str(5000 * 3201)]


@needs_peer("psql", "postgres")
def test_postgres_is_refused(holt: Holt) -> None:
    refused = holt.sh("psql -h peer.example.org -U postgres", "--net", PEER)

    assert refused.code == 2 and "Connection refused" in refused.err and f"--net {PEER}:5432 allows it" in refused.err


# --- git and SSH ---


def make_repository(place: Path) -> None:
    """Makes "app.git", with one commit of some megabytes."""
    (place / "work").mkdir()
    (place / "work" / "otter").write_bytes(os.urandom(5 * MIB))
    for argv in (["init", "-q", "-b", "main", "work"], ["-C", "work", "add", "otter"], ["-C", "work", "commit", "-q", "-m", "first"],
                 ["clone", "-q", "--bare", "work", "app.git"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *argv], check=True, cwd=place)


# Clones a repository, and pushes a commit to a branch that exists only meanwhile.
CLONE_AND_PUSH = """
    git clone -q {url} app && cd app && git log --format=%s && head -c 3000000 /dev/urandom > young && git add young
    git -c user.name=x -c user.email=x@example.org commit -q -m second && git push -q origin HEAD:other
    git ls-remote origin refs/heads/other | cut -f2 && git push -q origin :other
"""


@pytest.mark.slow
@needs("git")
def test_git_over_https(at_level: AtLevel, lab: Lab) -> None:
    if not (lab.files / "app.git").exists():
        make_repository(lab.files)
    put_ca(lab, at_level)
    result = at_level.sh(CLONE_AND_PUSH.format(url="https://git.example.org/git/app.git"), "--net", "git.example.org",
                         "-e", f"GIT_SSL_CAINFO={at_level.cwd}/ca.pem")

    assert result.ok().out.split() == ["first", "refs/heads/other"]


@pytest.fixture(scope="module")
def ssh_key(lab: Lab, scratch: Path) -> Path:
    """Starts the server, with a repository "app.git". Returns the private key of its user "git"."""
    home = netpeers.directory(lab, "home")
    make_repository(home)
    for path in (home, *home.rglob("*")):
        lab.identity.own(path)
    return netpeers.sshd(lab, home)


only_root = pytest.mark.skipif(not identities.is_root(), reason="sshd needs root to have a user git")


def ssh_options(key: Path, holt: Holt) -> list[str]:
    own = holt.identity.own(Path(shutil.copy(key, holt.cwd)))
    own.chmod(0o600)
    return ["--net", f"{PEER}:22", "-e", f"GIT_SSH_COMMAND=ssh -i {own} -o StrictHostKeyChecking=accept-new"]


@pytest.mark.slow
@needs("git", "ssh")
@needs_peer("sshd")
@only_root
def test_git_over_ssh(at_level: AtLevel, ssh_key: Path) -> None:
    result = at_level.sh(CLONE_AND_PUSH.format(url=f"git@{PEER}:app.git"), *ssh_options(ssh_key, at_level))

    assert result.ok().out.split() == ["first", "refs/heads/other"]


@needs("git", "ssh")
@needs_peer("sshd")
@only_root
def test_the_end_of_input_reaches_a_command_over_ssh(at_level: AtLevel, ssh_key: Path) -> None:
    script = f"head -c 3000000 /dev/zero | $GIT_SSH_COMMAND git@{PEER} 'wc -c; echo and more'"

    assert at_level.sh(script, *ssh_options(ssh_key, at_level)).ok().out == "3000000\nand more\n"


# --- other protocols ---


@pytest.fixture(scope="module")
def rsync(lab: Lab) -> None:
    netpeers.rsync(lab)


@needs("rsync")
def test_rsync_s_own_protocol(at_level: AtLevel, rsync: None) -> None:
    script = f"""
        mkdir -p up && seq 200000 > up/numbers && rsync -a up/ rsync://{PEER}/files/up/
        rsync -a rsync://{PEER}/files/up/ down/ && cmp up/numbers down/numbers && echo same
    """
    assert at_level.sh(script, "--net", f"{PEER}:873").ok().out == "same\n"


@needs_peer("nc")
def test_netcat_closes_one_direction(at_level: AtLevel) -> None:
    script = "echo hello | nc -N web.example.org 7; echo hi | nc -N web.example.org 9000 | cut -d' ' -f1; nc -z web.example.org 8; echo $?"
    result = at_level.sh(script, "--net", "web.example.org:7,web.example.org:9000")

    assert result.out.split() == ["hello", "3", "1"]


# --- errors, and addresses that fail ---


@pytest.mark.slow
@needs("curl", "node")
def test_another_address_is_tried(at_level: AtLevel) -> None:
    """One address of each name is silent, or refuses."""
    names = [f"{name}.example.org" for name in ("second", "dead-first", "refused-six", "dead-six")]
    node = "fetch(process.argv[1]).then(reply => reply.json()).then(about => console.log(about.address))"
    script = f'for name in {" ".join(names)}; do curl -sS http://$name/ | cut -d\'"\' -f4; node -e "{node}" http://$name/; done'
    result = at_level.sh(script, "--net", ",".join(names))

    assert result.ok().out.split() == [netlab.WEB4] * 8


@needs("node")
@pytest.mark.parametrize("at_level", [2], indirect=True)
def test_node_fails_over_to_the_next_address(at_level: AtLevel) -> None:
    """The addresses are node's own. Node only tries the next one if the first connect fails."""
    program = f"""
        const lookup = (name, options, done) => done(null, [
            {{address: "{netlab.REFUSING4}", family: 4}}, {{address: "{netlab.UNREACHABLE4}", family: 4}}, {{address: "{netlab.WEB4}", family: 4}}]);
        const end = require("net").connect({{host: "x.example.org", port: 25, lookup, autoSelectFamily: true}});
        end.once("data", data => {{ console.log(data.toString().slice(0, 3)); end.destroy(); }});
    """
    result = at_level(["run", "--net", "203.0.113.0/24:25,198.51.100.0/24:25", "--", "node", "-e", program])

    assert result.ok().out == "220\n"


def test_a_peer_that_resets(at_level: AtLevel) -> None:
    at_once, later = probe(
        at_level, ["say", "web.example.org", 9002], ["say", "web.example.org", 9003, "x"], net="web.example.org:9000-9010")

    assert at_once in ("ECONNRESET", "EPIPE") and later in ("ECONNRESET", "EPIPE")


# --- long connections ---


@needs("ss")
def test_a_silent_connection_is_kept_alive_outside(at_level: AtLevel, lab: Lab) -> None:
    """Routers forget silent connections. A program's own keepalive only reaches its sandbox's kernel."""
    program = "import socket; end = socket.create_connection(('web.example.org', 9004)); print('up', flush=True); end.recv(1)"
    with at_level.start(["run", "--net", "web.example.org:9004", "--", "python3", "-c", program]) as running:
        assert running.readline() == "up"
        found = until(lambda: lab.run(["ss", "-tnoH", "state", "established", "dport", "9004"]).stdout, "the connection outside")

    assert "timer:(keepalive," in found


@pytest.mark.slow
def test_a_gibibyte_each_way(holt: Holt) -> None:
    sums, got = probe(
        holt, ["digest", "web.example.org", 9000, GIB], ["download", "web.example.org", 9001, GIB],
        net="web.example.org:9000-9001")

    assert sums[0] == sums[1]
    assert tuple(got.value) == netlab.bytes_and_digest(GIB)
