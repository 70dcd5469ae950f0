# SPDX-License-Identifier: Apache-2.0
"""Signed, expiring links to files of a session, used by curl on the host."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pytest

from lib.leaks import descendants
from lib.links import Peer, curl, link, links, parts
from lib.sessions import Session, Sessions, until


@pytest.fixture
def report(session: Session) -> Session:
    session.sh("printf 0123456789 > /mnt/files/report.pdf").ok()
    return session


# --- downloads ---


@pytest.mark.identities("user", "root", "nested")
def test_a_file_by_a_link(report: Session) -> None:
    reply = curl(link(report, "report.pdf", "--for", "1h"))

    assert (reply.code, reply.status, reply.body) == (0, 200, b"0123456789")
    assert reply.fields["content-length"] == "10"
    assert reply.fields["content-type"] == "application/octet-stream"
    assert reply.fields["content-disposition"] == "attachment; filename=\"report.pdf\"; filename*=UTF-8''report.pdf"
    assert reply.fields["x-content-type-options"] == "nosniff"
    assert reply.fields["content-security-policy"].startswith("sandbox")
    assert reply.fields["referrer-policy"] == "no-referrer"
    assert reply.fields["cache-control"] == "no-store"


def test_ranges(report: Session) -> None:
    url = link(report, "/mnt/files/report.pdf")

    for range, body, field in (("2-4", b"234", "bytes 2-4/10"), ("7-", b"789", "bytes 7-9/10"), ("-2", b"89", "bytes 8-9/10")):
        reply = curl(url, "-r", range)
        assert (reply.status, reply.body, reply.fields["content-range"]) == (206, body, field)
    assert curl(url, "-r", "10-").status == 416
    assert curl(url, "-r", "0-1,4-5").body == b"0123456789"
    assert curl(url, "-r", "0-1", "-H", 'If-Range: "x"').body == b"0123456789"


def test_head(report: Session) -> None:
    url = link(report, "report.pdf")
    for target, status, length in ((url, 200, "10"), (url + "x", 403, "28")):
        with Peer(target) as peer:
            peer.ask("HEAD")
            reply = peer.reply()
        assert (reply.status, reply.fields["content-length"], reply.body) == (status, length, b"")


def test_a_link_serves_the_content_of_the_moment(report: Session) -> None:
    url = link(report, "report.pdf")
    report.sh("echo new > /mnt/files/new; mv /mnt/files/new /mnt/files/report.pdf").ok()
    assert curl(url).body == b"new\n"
    report.sh("rm /mnt/files/report.pdf").ok()
    assert curl(url).status == 404


@pytest.mark.parametrize("name", ("a b.txt", "ä%41.txt", "quote\".txt", "d/e/f", "new\nline", ".hidden", "-f"))
def test_names(name: str, session: Session) -> None:
    session.sh(f"mkdir -p /mnt/files/d/e && printf x > '/mnt/files/{name}'").ok()
    url = session("link", "--", name).ok().out.strip() if name[0] == "-" else link(session, name)

    assert unquote(url).endswith(f"/{name}")
    reply = curl(url)
    assert (reply.status, reply.body) == (200, b"x")
    assert unquote(reply.fields["content-disposition"].partition("''")[2]) == name.rpartition("/")[2]


def test_a_large_file_arrives_whole(session: Session, place: Path) -> None:
    session.sh("head -c 30000000 /dev/urandom > /mnt/files/large").ok()
    url = link(session, "large")
    with ThreadPoolExecutor(4) as pool:
        assert len({reply.body for reply in pool.map(curl, [url] * 4)}) == 1
    assert len(curl(url).body) == 30000000


def test_an_empty_file(session: Session) -> None:
    session.sh(": > /mnt/files/empty").ok()
    url = link(session, "empty")
    assert (curl(url).code, curl(url).status, curl(url).body) == (0, 200, b"")
    assert curl(url, "-r", "0-").status == 416


# --- uploads ---


@pytest.mark.identities("user", "root", "nested")
def test_an_upload_works_once(session: Session, place: Path) -> None:
    session.sh("mkdir /mnt/files/incoming").ok()
    url = link(session, "--upload", "incoming/data.csv", "--for", "10m")
    large = os.urandom(3_000_000)

    reply = curl(url, "-T", "-", "-H", "Transfer-Encoding:", "-H", f"Content-Length: {len(large)}", stdin=large)
    assert (reply.code, reply.status) == (0, 201)
    assert curl(url, "--data-binary", "again").status == 410
    session.cp("w:/mnt/files/incoming/data.csv", place / "back").ok()
    assert (place / "back").read_bytes() == large
    assert session.out("cd /mnt/files/incoming; ls -A; stat -c '%U %a' *").split() == ["data.csv", "agent", "644"]
    [made] = links(session)
    assert made["used"] and made["upload"] and made["requests"] == 2


def test_an_upload_replaces_a_file_and_keeps_its_mode(report: Session) -> None:
    report.sh("chmod 600 /mnt/files/report.pdf").ok()
    assert curl(link(report, "report.pdf", "--upload"), "-X", "PUT", "-d", "new").status == 201
    assert report.out("cd /mnt/files; cat report.pdf; stat -c ' %a' report.pdf").strip() == "new 600"


def test_an_empty_upload(session: Session) -> None:
    assert curl(link(session, "empty", "--upload"), "-d", "").status == 201
    assert session.out("stat -c %s /mnt/files/empty").strip() == "0"


def test_the_largest_upload(session: Session) -> None:
    url = link(session, "data", "--upload", "--max-size", "4B")
    assert curl(url, "-d", "12345").status == 413
    assert curl(url, "-T", "-", stdin=b"12345").status == 413
    assert curl(url, "-T", "-", stdin=b"1234").status == 201


def test_an_upload_without_a_length(session: Session, place: Path) -> None:
    """curl sends it in chunks."""
    url = link(session, "data", "--upload")
    large = os.urandom(3_000_000)
    assert curl(url, "-X", "PUT").status == 411
    assert curl(url, "-T", "-", "-H", "Transfer-Encoding: gzip", stdin=b"x").status == 501
    assert curl(url, "-T", "-", stdin=large).status == 201
    session.cp("w:/mnt/files/data", place / "back").ok()
    assert (place / "back").read_bytes() == large
    assert curl(link(session, "empty", "--upload"), "-T", "-").status == 201
    assert session.out("stat -c %s /mnt/files/empty").strip() == "0"


def test_a_failed_upload_can_be_repeated(session: Session) -> None:
    url = link(session, "data", "--upload")
    with Peer(url) as peer:
        peer.ask("PUT", "Content-Length: 10", body=b"12345")
    until(lambda: links(session)[0]["requests"] == 1, "the keeper knows the end")
    assert session.out("ls -A /mnt/files") == ""
    assert curl(url, "-d", "1234567890").status == 201


def test_methods(report: Session) -> None:
    get, put = link(report, "report.pdf"), link(report, "new", "--upload")
    for url, methods, allowed in ((get, ("PUT", "POST", "DELETE", "OPTIONS"), "GET, HEAD"), (put, ("GET", "DELETE", "PATCH"), "PUT, POST")):
        for method in methods:
            reply = curl(url, "-X", method)
            assert (reply.status, reply.fields["allow"]) == (405, allowed), method
    assert curl(put, "-d", "x").status == 201


# --- the end of links ---


def test_a_link_expires(report: Session) -> None:
    url = link(report, "report.pdf", "--for", "700ms")
    assert curl(url).status == 200
    until(lambda: curl(url).status == 410, "the link expires")
    assert time.time() * 1000 >= int(parts(url)[1].split("/")[4])
    assert links(report) == []


def test_revoking(report: Session) -> None:
    urls = [link(report, "report.pdf") for _ in range(3)]
    assert [each["url"] for each in links(report)] == urls
    report("link", "--revoke", str(links(report)[1]["id"])).ok()
    assert [curl(url).status for url in urls] == [200, 410, 200]
    assert json.loads(report("link", "--revoke", "all", "--json").ok().out) == {"revoked": 2}
    assert [curl(url).status for url in urls] == [410] * 3
    assert "no link 2" in report("link", "--revoke", "2").refusal()


def test_revoking_ends_requests(session: Session) -> None:
    session.sh("truncate -s 1G /mnt/files/large").ok()
    get, put = link(session, "large"), link(session, "data", "--upload")
    with Peer(get) as reader, Peer(put) as writer:
        reader.ask()
        assert reader.socket.recv(1)
        writer.ask("PUT", "Content-Length: 10", "Expect: 100-continue")
        assert writer.socket.recv(100).startswith(b"HTTP/1.1 100")
        session("link", "--revoke", "all").ok()
        assert len(reader.reply().body) < 1 << 30
        assert writer.reply().status == 0
    assert session.out("ls -A /mnt/files").split() == ["large"]


def test_links_end_with_the_session(report: Session) -> None:
    url = link(report, "report.pdf")
    report.stop()
    assert curl(url).code == 7
    assert report("link", "--list", "--json").ok().out.strip() == '{"links": []}'
    assert report.show()["state"] == "at rest"
    assert curl(link(report, "report.pdf")).status == 200


@pytest.mark.slow
def test_a_session_with_a_link_does_not_go_to_rest(sessions: Sessions) -> None:
    session = sessions.create("w", "--idle", "1s")
    session.sh("echo > /mnt/files/a").ok()
    expires = int(parts(link(session, "a", "--for", "2500ms"))[1].split("/")[4])
    keeper = session.keeper()
    until(lambda: is_gone(keeper), "the session rests")
    assert time.time() * 1000 >= expires


def test_an_upload_link_holds_until_it_is_used(sessions: Sessions) -> None:
    session = sessions.create("w", "--idle", "1s")
    assert curl(link(session, "a", "--upload"), "-d", "x").status == 201
    keeper = session.keeper()
    until(lambda: is_gone(keeper), "the session rests")


def is_gone(pid: int) -> bool:
    return all(p.pid != pid or p.ended for p in descendants())


def serving(session: Session) -> list[int]:
    keeper = session.keeper()
    return [p.pid for p in descendants() if p.parent == keeper and p.name == "holt-links"]


def test_the_process_starts_with_the_first_link_and_ends_with_the_keeper(report: Session) -> None:
    assert serving(report) == []
    url = link(report, "report.pdf")
    [pid] = serving(report)
    assert link(report, "report.pdf") != url and serving(report) == [pid]
    os.kill(report.keeper(), signal.SIGKILL)
    until(lambda: is_gone(pid), "the process ends")


def test_a_lost_process_loses_the_links(report: Session) -> None:
    url = link(report, "report.pdf")
    os.kill(serving(report)[0], signal.SIGKILL)
    until(lambda: links(report) == [], "the keeper notices")
    assert curl(url).code == 7
    assert curl(link(report, "report.pdf")).status == 200


# --- the audit ---


def test_the_audit(report: Session) -> None:
    url = link(report, "report.pdf")
    curl(url)
    curl(link(report, "new", "--upload"), "-d", "x")
    for _ in range(3):
        curl(url + "x")
    report("link", "--revoke", "1").ok()
    rows = [json.loads(row["detail"]) for row in reversed(report.audit()) if row["kind"] == "link"]

    assert [row["event"] for row in rows] == ["made", "request", "made", "stored", "refused", "revoked"]
    assert rows[1] == {
        "event": "request", "id": 1, "path": "report.pdf", "upload": False, "inside": False,
        "expires_ms": rows[0]["expires_ms"],
        "status": 200, "bytes": 10,
    }
    assert (rows[3]["status"], rows[3]["bytes"], rows[3]["path"]) == (201, 1, "new")
    assert rows[4]["status"] == 403


# --- mistakes ---


@pytest.mark.parametrize("words, refusal", (
    ((), "missing PATH"),
    (("none",), 'cannot link to none'),
    (("../etc/passwd",), "not the path of a file below /mnt/files"),
    (("/etc/passwd",), "not the path of a file below /mnt/files"),
    (("d",), 'cannot link to d'),
    (("none/new", "--upload"), 'cannot link to none/new'),
    (("a", "--for", "8d"), "--for"),
    (("a", "--for", "0"), "--for"),
    (("a", "--max-size", "1"), "--max-size needs --upload"),
    (("a", "--upload", "--max-size", "x"), "--max-size"),
    (("a", "--list"), "--list takes no PATH"),
    (("--revoke", "x"), "--revoke"),
    (("--revoke", "9"), "no link 9"),
))
def test_mistakes(words: tuple[str, ...], refusal: str, session: Session) -> None:
    session.sh("mkdir /mnt/files/d; echo > /mnt/files/a").ok()
    assert refusal in session("link", *words).refusal()


def test_the_number_of_links(session: Session) -> None:
    session.sh("echo > /mnt/files/a").ok()
    with session.rpc() as rpc:
        for _ in range(256):
            rpc.call("links.make", path="a")
        assert rpc.refused("links.make", path="a").kind == "limit"
        assert len(rpc.call("links.list")["links"]) == 256
        rpc.call("links.revoke", id=1)
        rpc.call("links.make", path="a")
