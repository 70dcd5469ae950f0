# SPDX-License-Identifier: Apache-2.0
"""Real servers in the test network (netlab.py): each listens at netlab.PEER4 and PEER6, which are peer.example.org.

"contrib/packages peers" installs them. A test names the programs that it needs (lib/tools.py), because other hosts may not have them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lib import identity as identities
from lib.hostile import Hostile
from lib.netlab import PEER4, PEER6, WEB4, Lab, as_user
from lib.sandbox import Arg, Holt, Running
from lib.tools import POSTGRES

NGINX = """
daemon off; master_process off; pid nginx.pid; error_log stderr;
events {{ worker_connections 2048; }}
http {{
    access_log off; client_max_body_size 0; keepalive_requests 100000; types {{ text/html html; }} default_type text/plain;
    client_body_temp_path nginx-body; proxy_temp_path nginx-proxy; fastcgi_temp_path nginx-fastcgi;
    uwsgi_temp_path nginx-uwsgi; scgi_temp_path nginx-scgi;
    server {{
        {listen}
        ssl_certificate ca.pem; ssl_certificate_key key.pem; ssl_protocols TLSv1.2 TLSv1.3;
        location / {{ root files; }}
        location /protocol {{ return 200 "$server_protocol $ssl_protocol\\n"; }}
        location /connection {{ return 200 "$connection\\n"; }}
        location ~ ^/(received|events|continue|told)$ {{ proxy_pass http://{web}:80; proxy_buffering off; proxy_http_version 1.1; }}
    }}
}}
"""

SSHD = """
ListenAddress {four}:22
ListenAddress {six}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
LogLevel ERROR
Subsystem sftp internal-sftp
"""

# sshd looks up the account, its shell and its own unprivileged user, and insists on /run/sshd.
SSHD_AS_ROOT = """
mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && mount --bind {directory}/passwd /etc/passwd &&
exec /usr/sbin/sshd -D -e -f {directory}/sshd_config
"""


def directory(lab: Lab, name: str) -> Path:
    path = lab.directory / name
    path.mkdir()
    path.chmod(0o755)
    return path


def nginx(lab: Lab) -> None:
    """HTTP and HTTPS, with HTTP/2. Shows the lab's files. Passes some paths on to the lab's own server (netlab_host.Http)."""
    listen = " ".join(f"listen {a}:80; listen {a}:443 ssl http2;" for a in (PEER4, f"[{PEER6}]"))
    (lab.directory / "nginx.conf").write_text(NGINX.format(listen=listen, web=WEB4))
    lab.serve(["/usr/sbin/nginx", "-p", lab.directory, "-c", "nginx.conf"], 443)


def sshd(lab: Lab, home: Path) -> Path:
    """Serves git repositories below home over SSH, for an account "git" of the lab's identity. Returns the client's private key. Needs
    a suite that runs as root."""
    place = directory(lab, "ssh")
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / name], check=True)
    (place / "sshd_config").write_text(SSHD.format(directory=place, four=PEER4, six=f"[{PEER6}]:22"))
    account = f"git:x:{lab.identity.uid}:{lab.identity.gid}::{home}:/bin/sh\n"
    (place / "passwd").write_text(Path("/etc/passwd").read_text() + account)
    lab.serve(["unshare", "--mount", "sh", "-c", SSHD_AS_ROOT.format(directory=place)], 22)
    return lab.identity.own(place / "key")


def redis(lab: Lab) -> None:
    lab.serve(["redis-server", "--port", "6379", "--bind", PEER4, PEER6, "--save", "", "--protected-mode", "no"], 6379)


def postgres(lab: Lab) -> None:
    """A database "postgres" whose user "postgres" needs no password. PostgreSQL does not run as root."""
    place, user = directory(lab, "postgres"), "postgres" if identities.is_root() else ""
    if user:
        shutil.chown(place, user)
    programs = POSTGRES.rpartition(":")[2]
    initdb = [f"{programs}/initdb", "-D", place / "data", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
    subprocess.run([*as_user(user), *initdb], check=True, capture_output=True, cwd=place)
    with (place / "data" / "pg_hba.conf").open("a") as rules:
        rules.write("host all all all trust\n")
    settings = {"listen_addresses": f"{PEER4},{PEER6}", "unix_socket_directories": "", "ssl": "on", "fsync": "off",
                "ssl_cert_file": place / "server.pem", "ssl_key_file": place / "server.key", "autovacuum": "off"}
    for source, target in ((lab.ca, "server.pem"), (lab.directory / "key.pem", "server.key")):
        shutil.copy(source, place / target)
        os.chmod(place / target, 0o600)
        if user:
            shutil.chown(place / target, user)
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    lab.serve([f"{programs}/postgres", "-D", place / "data", *options], 5432, user)


def rsync(lab: Lab) -> None:
    """The daemon's own protocol, in which the server speaks first. Its module "files" can be written."""
    place = directory(lab, "rsync")
    (place / "rsyncd.conf").write_text(
        f"use chroot = no\nuid = {os.getuid()}\ngid = {os.getgid()}\n[files]\npath = {lab.files}\nread only = no\n")
    lab.serve(["rsync", "--daemon", "--no-detach", "--config", place / "rsyncd.conf", "--address", PEER4], 873)


WEBSOCKETS = """
import asyncio, ssl, sys, websockets
async def echo(connection, path=None):
    async for message in connection:
        await connection.send(message)
async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("ca.pem", "key.pem")
    async with websockets.serve(echo, sys.argv[1], 8080), websockets.serve(echo, sys.argv[1], 8443, ssl=context):
        await asyncio.Future()
asyncio.run(main())
"""


def websockets(lab: Lab) -> None:
    """Echoes messages: port 8080 without TLS, and 8443 with it."""
    lab.serve(["/usr/bin/python3", "-c", WEBSOCKETS, PEER4], 8443)


# --- levels ---


class AtLevel(Holt):
    """holt on a host that gives its networks a level."""

    def __init__(self, holt: Holt, level: int, prefix: Sequence[Arg]) -> None:
        super().__init__(holt.binary, holt.identity, holt.cwd)
        self.level, self.prefix = level, prefix

    def start(self, args: Sequence[Arg], *, prefix: Sequence[Arg] = (), **options: Any) -> Running:
        return super().start(args, prefix=[*self.prefix, *prefix], **options)


@pytest.fixture(params=(1, 2), ids=("level-1", "level-2"))
def at_level(request: pytest.FixtureRequest, holt: Holt, hostile: Hostile) -> AtLevel:
    """holt at both levels: on a host whose kernel cannot queue packets, and on one that can."""
    chosen = AtLevel(holt, request.param, hostile.refusing_packet_filter() if request.param == 1 else ())
    report = chosen(["run", "--net", "web.example.org", "--", "true"]).report
    assert report
    if report["network"]["level"] != request.param:
        pytest.skip("the kernel cannot queue packets of a network namespace, or a container forbids it")
    return chosen
