# SPDX-License-Identifier: Apache-2.0
"""Signed, expiring links to files of a session, used by curl on the host."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lib.sessions import Json, Session, Sessions, until


class Reply:
    """A response, as curl has read it."""

    def __init__(self, url: str, *args: str, stdin: bytes = b"") -> None:
        done = subprocess.run(
            ["curl", "-q", "-sS", "--max-time", "60", "--noproxy", "*", "-D", "/dev/stderr", *args, url], input=stdin,
            capture_output=True, check=False,
        )
        self.code, self.body = done.returncode, done.stdout
        heads = done.stderr.decode(errors="replace").replace("\r", "").split("\n\n")
        lines = next((h for h in heads if h.startswith("HTTP/") and " 100 " not in h.split("\n")[0]), "HTTP/1.1 0").split("\n")
        self.status = int(lines[0].split()[1])
        self.fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}


def link(session: Session, *words: str) -> str:
    return session("link", *words).ok().out.strip()


def links(session: Session) -> list[Json]:
    return list(json.loads(session("link", "--list", "--json").ok().out)["links"])


@pytest.fixture
def report(session: Session) -> Session:
    session.sh("printf 0123456789 > /mnt/files/report.pdf").ok()
    return session


# --- downloads ---

@pytest.mark.identities("user", "root", "nested")
def test_a_file_by_a_link(report: Session) -> None:
    reply = Reply(link(report, "report.pdf", "--for", "1h"))

    assert (reply.code, reply.status, reply.body) == (0, 200, b"0123456789")
    assert reply.fields["content-length"] == "10"
    assert reply.fields["content-type"] == "application/octet-stream"
    assert reply.fields["content-disposition"] == "attachment; filename=\"report.pdf\"; filename*=UTF-8''report.pdf"
    assert reply.fields["x-content-type-options"] == "nosniff"
    assert reply.fields["content-security-policy"].startswith("sandbox")
    assert reply.fields["referrer-policy"] == "no-referrer"
    assert reply.fields["cache-control"] == "no-store"
