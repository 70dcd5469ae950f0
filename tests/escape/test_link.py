# SPDX-License-Identifier: Apache-2.0
"""Attacks on signed links: by code inside, which changes the files, and by strangers on the host, who have a link or none."""

from __future__ import annotations

import json
import os
import re
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lib.leaks import descendants
from lib.links import Peer, curl, link, links, parts, status
from lib.sandbox import Result
from lib.sessions import Session, Sessions, until


@pytest.fixture
def report(session: Session) -> Session:
    session.sh("printf 0123456789 > /mnt/files/report").ok()
    return session


# --- code inside: what is at the path ---

# Each command runs after the link was made, and puts something else at /mnt/files/report.
SWAPS = {
    "a symlink to a file of the system": "ln -sf /etc/passwd report",
    "a symlink to a file beside it": "mv report other; ln -s other report",
    "a symlink to a magic link": "ln -sf /proc/1/root/etc/passwd report",
    "a symlink upwards": "ln -sf ../../../../../../../../etc/passwd report",
    "a directory": "rm report; mkdir report",
    "a fifo": "rm report; mkfifo report",
    "a socket": "rm report; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"report\")'",
}


@pytest.mark.parametrize("what", SWAPS)
def test_a_download_of_another_thing(what: str, report: Session) -> None:
    url = link(report, "report")
    report.sh(f"cd /mnt/files; {SWAPS[what]}").ok()
    assert curl(url).status == 409
    assert report("link", "report").code == 125


@pytest.mark.parametrize("what", SWAPS)
def test_an_upload_to_another_thing(what: str, report: Session) -> None:
    """Neither the target of a symlink nor the thing itself changes."""
    url = link(report, "report", "--upload")
    report.sh(f"cd /mnt/files; {SWAPS[what]}").ok()
    before = report.out("cd /mnt/files; ls -lA --time-style=+; md5sum /etc/passwd")
    assert curl(url, "-d", "attack").status == 409
    assert report.out("cd /mnt/files; ls -lA --time-style=+; md5sum /etc/passwd") == before
    report.sh("cd /mnt/files; rm -rf report").ok()
    assert curl(url, "-d", "fine").status == 201


@pytest.mark.parametrize("target", ("/etc", "../../../../etc", "/proc/1/root/etc", "."))
def test_a_directory_on_the_way_that_is_a_symlink(target: str, session: Session) -> None:
    session.sh("cd /mnt/files; mkdir d; echo > d/passwd").ok()
    get, put = link(session, "d/passwd"), link(session, "d/new", "--upload")
    session.sh(f"cd /mnt/files; mv d e; ln -s {target} d").ok()
    assert curl(get).status == 409
    assert curl(put, "-d", "x").status == 409
    assert session.out("cd /mnt/files; ls -A . e").split() == [".:", "d", "e", "e:", "passwd"]


def test_a_symlink_that_appears_during_an_upload(report: Session) -> None:
    url = link(report, "report", "--upload")
    with Peer(url) as peer:
        peer.ask("PUT", "Content-Length: 6", body=b"att")
        until(lambda: status(url, "PUT", "Content-Length: 0") == 423, "the upload has begun")
        report.sh("cd /mnt/files; echo safe > victim; ln -sf victim report").ok()
        peer.socket.sendall(b"ack")
        assert peer.reply().status == 409
    assert report.out("cd /mnt/files; cat victim; readlink report; ls -A").split() == ["safe", "victim", "report", "victim"]


def test_a_directory_that_moves_during_an_upload(session: Session) -> None:
    session.sh("mkdir -p /mnt/files/d /mnt/files/e").ok()
    url = link(session, "d/file", "--upload")
    with Peer(url) as peer:
        peer.ask("PUT", "Content-Length: 6", body=b"att")
        until(lambda: status(url, "PUT", "Content-Length: 0") == 423, "the upload has begun")
        session.sh("cd /mnt/files; mv d moved; mv e d").ok()
        peer.socket.sendall(b"ack")
        assert peer.reply().status == 409
    assert session.out("cd /mnt/files; find . -type f") == ""


def test_mnt_is_renamed_before_the_first_link(sessions: Sessions) -> None:
    """The directory is the one of the session's start, not what has its name now."""
    session = sessions.create("w")
    session.sh("echo right > /mnt/files/a").ok()
    session.sh("cd /; mv mnt old && mkdir -p mnt/files && echo wrong > mnt/files/a")
    assert curl(link(session, "a")).body == b"right\n"


# --- code inside: a file that changes while it is served ---


def begun(session: Session, url: str) -> Peer:
    """Begins a download that waits for its client."""
    peer = Peer(url)
    peer.ask()
    assert peer.socket.recv(16, socket.MSG_PEEK)
    return peer


def test_a_file_that_shrinks(session: Session) -> None:
    session.sh("truncate -s 1G /mnt/files/a").ok()
    with begun(session, link(session, "a")) as peer:
        session.sh("truncate -s 1 /mnt/files/a").ok()
        reply = peer.reply()
    assert reply.fields["content-length"] == str(1 << 30) and len(reply.body) < 1 << 30
    assert b"HTTP/1.1" not in reply.body


def test_a_file_that_grows(session: Session) -> None:
    session.sh("truncate -s 64M /mnt/files/a").ok()
    with begun(session, link(session, "a")) as peer:
        session.sh("truncate -s 1G /mnt/files/a; printf x | dd of=/mnt/files/a bs=1 seek=64M conv=notrunc").ok()
        reply = peer.reply()
    assert len(reply.body) == int(reply.fields["content-length"]) == 64 << 20


def test_a_file_that_is_replaced_while_served(session: Session) -> None:
    session.sh("truncate -s 64M /mnt/files/a").ok()
    with begun(session, link(session, "a")) as peer:
        session.sh("cd /mnt/files; yes | head -c 64M > b; mv b a").ok()
        assert peer.reply().body == bytes(64 << 20)


@pytest.mark.slow
def test_a_file_that_never_stays_the_same(session: Session) -> None:
    """A response is refused, or is one of the contents, with a right length, or breaks off."""
    session.sh("echo secret > /tmp/secret; : > /mnt/files/a").ok()
    url = link(session, "a")
    session.detach(
        "cd /mnt/files; while :; do rm -rf a; yes | head -c 9000 > a; ln -sf /tmp/secret a; rm a; mkfifo a; rm a; mkdir a; done"
    )
    seen = set()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with Peer(url) as peer:
            peer.ask()
            reply = peer.reply()
        seen.add(reply.status)
        assert reply.status in (200, 404, 409) and b"secret" not in reply.body
        assert reply.status != 200 or reply.body == b"y\n" * (len(reply.body) // 2)
    assert len(seen) > 1


# --- code inside: the port, the key, the link ---


def test_code_inside_cannot_make_or_use_links(report: Session) -> None:
    url = link(report, "report")
    port, _ = parts(url)
    script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
    assert "ConnectionRefusedError" in report.exec("python3", "-c", script).err
    assert report.exec("sh", "-c", "ls /proc/*/exe; cat /proc/*/cmdline").out.find("holt-links") < 0


def test_no_file_has_the_link_or_its_signature(report: Session) -> None:
    signature = parts(link(report, "report"))[1].split("/")[5].encode()
    for top, _, names in os.walk(report.directory):
        for name in names:
            path = Path(top, name)
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                assert signature not in data and bytes.fromhex(signature.decode()) not in data, path


# --- strangers: forged links ---


def edits(url: str) -> Iterator[str]:
    """Yields targets that differ from the link's in one respect."""
    _, target = parts(url)
    head, mode, number, expires, signature, name = re.fullmatch(r"(/v1/)(\w+)/(\d+)/(\d+)/(\w+)/(.*)", target).groups()  # type: ignore[union-attr]
    yield f"{head}{'put' if mode == 'get' else 'get'}/{number}/{expires}/{signature}/{name}"
    yield f"{head}{mode}/{int(number) + 1}/{expires}/{signature}/{name}"
    yield f"{head}{mode}/{number}/{int(expires) + 1}/{signature}/{name}"
    for at in (0, 31, 63):
        digit = "0" if signature[at] != "0" else "1"
        yield f"{head}{mode}/{number}/{expires}/{signature[:at]}{digit}{signature[at + 1:]}/{name}"
    yield f"{head}{mode}/{number}/{expires}/{signature.upper()}/{name}"
    yield f"{head}{mode}/{number}/{expires}/{signature[:-1]}/{name}"
    yield f"{head}{mode}/{number}/{expires}/{signature}0/{name}"
    yield f"{head}{mode}/{number}/{expires}//{name}"
    yield f"{head}{mode}/0{number}/{expires}/{signature}/{name}"
    yield f"{head}{mode}/{number}/{expires}/{signature}/other"
    for other in ("x", "?x", "#x", "/", "%00", "/../secret", "/..", "%2f..%2fsecret"):
        yield f"{head}{mode}/{number}/{expires}/{signature}/{name}{other}"
    for other in ("../report", "./report", "/report", "%72eport", "..", "%2e%2e/report", "x/../report"):
        yield f"{head}{mode}/{number}/{expires}/{signature}/{other}"
    yield f"/x/..{target}"
    yield f"/{target}"
    yield f"http://127.0.0.1:{parts(url)[0]}{target}"
    yield "/"
    yield "*"


def test_edited_links(report: Session) -> None:
    report.sh("echo > /mnt/files/secret").ok()
    for url, method, fields in ((link(report, "report"), "GET", ()), (link(report, "new", "--upload"), "PUT", ("Content-Length: 0",))):
        for target in edits(url):
            assert status(url, method, *fields, target=target) in (400, 403, 404), target
        assert status(url, method, *fields) in (200, 201)
    assert report.out("cd /mnt/files; ls -A").split() == ["new", "report", "secret"]


def test_links_of_another_session(sessions: Sessions) -> None:
    urls = []
    for name in ("a", "b"):
        session = sessions.create(name)
        session.sh("echo > /mnt/files/report").ok()
        urls.append(link(session, "report"))
    assert status(urls[0], target=parts(urls[1])[1]) == 403
    assert status(urls[1], target=parts(urls[0])[1]) == 403
    assert [status(url) for url in urls] == [200, 200]


def test_links_of_an_earlier_start(report: Session) -> None:
    old = parts(link(report, "report", "--for", "7d"))[1]
    report.stop()
    assert status(link(report, "report"), target=old) == 403


# --- strangers: requests ---


@pytest.mark.parametrize("host", (
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", "localhost.evil.example:{port}", "127.1:{port}",
    "[::1]:{port}", "0.0.0.0:{port}", "2130706433:{port}", "user@127.0.0.1:{port}",
))
def test_other_hosts(host: str, report: Session) -> None:
    url = link(report, "report")
    assert status(url, host=host.format(port=parts(url)[0])) in (400, 421)


def test_the_hosts_that_are_allowed(report: Session) -> None:
    url = link(report, "report")
    assert status(url, host=f"localhost:{parts(url)[0]}") == status(url, host=f"LocalHost:{parts(url)[0]}") == 200
    with Peer(url) as peer:
        peer.socket.sendall(f"GET {peer.target} HTTP/1.1\r\n\r\n".encode())
        assert peer.reply().status == 421
    with Peer(url) as peer:
        peer.ask("GET", f"Host: 127.0.0.1:{peer.port}")
        assert peer.reply().status == 400


@pytest.mark.parametrize("fields, code", (
    (("Content-Length: 3", "Content-Length: 3"), 400),
    (("Content-Length: 3", "Transfer-Encoding: chunked"), 400),
    (("Transfer-Encoding: chunked, chunked",), 501),
    (("Transfer-Encoding: identity",), 501),
    (("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), 400),
    (("Content-Length: -1",), 400),
    (("Content-Length: +3",), 400),
    (("Content-Length: 3,3",), 400),
    (("Content-Length: 0x3",), 400),
    (("Content-Length:",), 400),
    (("Content-Length : 3",), 400),
    (("Content-Length: 99999999999999999999999",), 400),
    (("Content-Length: 9223372036854775807",), 413),
    (("Content-Length: 3", " folded"), 400),
))
def test_lengths_of_uploads(fields: tuple[str, ...], code: int, session: Session) -> None:
    url = link(session, "a", "--upload")
    assert status(url, "PUT", *fields, body=b"abc") == code
    assert session.out("ls -A /mnt/files") == ""
    assert status(url, "PUT", "Content-Length: 3", body=b"abc") == 201


CHUNKS = {
    b"3\r\nabc\r\n0\r\n\r\n": 201,
    b"1;x=\"y\"\r\na\r\n002\r\nbc\r\n0\r\nA: b\r\n\r\nGET / HTTP/1.1\r\n\r\n": 201,
    b"-3\r\nabc\r\n": 400, b"+3\r\nabc\r\n": 400, b"0x3\r\nabc\r\n": 400, b" 3\r\nabc\r\n": 400, b"3 \r\nabc\r\n": 400,
    b"\r\nabc": 400, b"3\nabc\n0\n\n": 400, b"3\r\nabcd\r\n": 400, b"3\r\nabc\n0": 400, b"g\r\n": 400,
    b"10000000000000003\r\nabc": 400, b"3;\x01\r\nabc\r\n": 400, b"0\r\na\nb\r\n\r\n": 400,
    b"3;" + b"a" * 20000: 400, b"0\r\n" + b"A: b\r\n" * 4000: 400,
    b"11\r\n" + b"a" * 17: 413, b"8\r\naaaaaaaa\r\n" * 3: 413, b"fffffffffffffff\r\n" + b"a" * 17: 413,
}


@pytest.mark.parametrize("chunks", CHUNKS, ids=lambda chunks: str(chunks[:24]))
def test_chunks_of_uploads(chunks: bytes, session: Session) -> None:
    url = link(session, "a", "--upload", "--max-size", "16B")
    assert status(url, "PUT", "Transfer-Encoding: chunked", body=chunks) == CHUNKS[chunks]
    assert session.out("cat /mnt/files/a 2>/dev/null; ls -A /mnt/files") == ("abca\n" if CHUNKS[chunks] == 201 else "")


def test_chunks_in_pieces(session: Session) -> None:
    with Peer(link(session, "a", "--upload")) as peer:
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.ask("PUT", "Transfer-Encoding: chunked", "Expect: 100-continue")
        for byte in b"3;x\r\nabc\r\n00a\r\n0123456789\r\n0\r\nA: b\r\n\r\n":
            peer.socket.sendall(bytes([byte]))
        assert peer.reply().status == 201
    assert session.out("cat /mnt/files/a") == "abc0123456789"


def test_an_upload_in_chunks_that_does_not_end(session: Session) -> None:
    url = link(session, "a", "--upload")
    with Peer(url) as peer:
        peer.ask("PUT", "Transfer-Encoding: chunked", body=b"3\r\nabc\r\n")
    until(lambda: status(url, "PUT", "Content-Length: 0") == 201, "an upload works again")
    assert session.out("cat /mnt/files/a") == ""


def test_bytes_after_a_request_are_no_request(report: Session) -> None:
    url = link(report, "report")
    with Peer(url) as peer:
        peer.ask("GET", body=f"GET {peer.target} HTTP/1.1\r\nHost: 127.0.0.1:{peer.port}\r\n\r\n".encode())
        assert peer.reply().body == b"0123456789"
    put = link(report, "new", "--upload")
    with Peer(put) as peer:
        peer.ask("PUT", "Content-Length: 3", body=b"abcdef")
        assert peer.reply().status == 201
    assert report.out("cat /mnt/files/new") == "abc"


@pytest.mark.parametrize("data, code", (
    (b"\r\n\r\n", 400), (b"GET\r\n\r\n", 400), (b"GET / HTTP/2.0\r\n\r\n", 400), (b"\x16\x03\x01\x00\xa5\x01\x00\n", 400),
    (b"GET / HTTP/1.1\nHost: x\n\n", 400), (b"GET /\x00 HTTP/1.1\r\n\r\n", 400), (b"A" * 9000, 431),
    (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 2000, 431),
))
def test_malformed_heads(data: bytes, code: int, report: Session) -> None:
    url = link(report, "report")
    with Peer(url) as peer:
        peer.socket.sendall(data)
        assert peer.reply().status == code
    assert status(url) == 200


def test_a_head_in_pieces(report: Session) -> None:
    with Peer(link(report, "report")) as peer:
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in f"GET {peer.target} HTTP/1.1\r\nHost: 127.0.0.1:{peer.port}\r\n\r\n".encode():
            peer.socket.sendall(bytes([byte]))
        assert peer.reply().body == b"0123456789"


# --- strangers: many requests, slow requests ---


def test_uploads_at_the_same_time(session: Session) -> None:
    """One of them is stored whole; the others are refused."""
    for number in range(8):
        url = link(session, f"a{number}", "--upload")
        with ThreadPoolExecutor(8) as pool:
            bodies = [bytes([65 + i]) * 100_000 for i in range(8)]
            codes = list(pool.map(lambda body: status(url, "PUT", f"Content-Length: {len(body)}", body=body), bodies))
        assert codes.count(201) == 1 and set(codes) <= {201, 410, 423}, codes
        content = session.out(f"cat /mnt/files/a{number}").encode()
        assert content == bodies[codes.index(201)]


def test_the_second_upload_waits_for_nobody(session: Session) -> None:
    url = link(session, "a", "--upload")
    with Peer(url) as peer:
        peer.ask("PUT", "Content-Length: 6", body=b"abc")
        until(lambda: status(url, "PUT", "Content-Length: 0") == 423, "the upload has begun")
        peer.socket.sendall(b"def")
        assert peer.reply().status == 201
    assert status(url, "PUT", "Content-Length: 0") == 410
    assert session.out("cat /mnt/files/a") == "abcdef"


@pytest.mark.slow
def test_slow_heads_end(report: Session) -> None:
    """Each byte that arrives gives no more time, and other clients are served again."""
    url = link(report, "report")
    peers = [Peer(url) for _ in range(64)]
    try:
        for peer in peers:
            peer.socket.sendall(b"GET")
        begin = time.monotonic()
        assert status(url) == 200
        assert time.monotonic() - begin < 30
        assert all(peer.socket.recv(1) == b"" for peer in peers)
    finally:
        for peer in peers:
            peer.socket.close()


def is_open(peer: Peer) -> bool:
    """Whether holt-links has neither answered nor ended the connection."""
    return not select.select([peer.socket], [], [], 0)[0]


@pytest.mark.parametrize("start", (b"", b"GET"))
def test_strangers_keep_nobody_out(start: bytes, report: Session) -> None:
    """The connections of strangers make room before their time is over. Those with a valid link stay."""
    url, put = link(report, "report"), link(report, "new", "--upload")
    with Peer(put) as used:
        used.ask("PUT", "Content-Length: 6", body=b"abc")
        until(lambda: status(put, "PUT", "Content-Length: 0") == 423, "the upload has begun")
        peers = [Peer(url) for _ in range(64)]
        try:
            for peer in peers:
                peer.socket.sendall(start)
            for _ in range(20):
                assert status(url) == 200
            assert 32 < sum(map(is_open, peers)) < 64
        finally:
            for peer in peers:
                peer.socket.close()
        used.socket.sendall(b"def")
        assert used.reply().status == 201


@pytest.mark.slow
def test_a_download_that_nobody_reads_ends(session: Session) -> None:
    session.sh("truncate -s 1G /mnt/files/a").ok()
    url = link(session, "a")
    with begun(session, url):
        until(lambda: links(session)[0]["requests"] == 1, "the request ends")
    assert status(url, "HEAD") == 200


def test_an_abandoned_upload_leaves_nothing(session: Session) -> None:
    url = link(session, "a", "--upload")
    for _ in range(20):
        with Peer(url) as peer:
            peer.ask("PUT", "Content-Length: 100", body=b"abc")
    until(lambda: status(url, "PUT", "Content-Length: 0") == 201, "an upload works again")
    assert session.out("ls -A /mnt/files").split() == ["a"]


def test_a_flood_of_forged_links_does_not_fill_the_audit(report: Session) -> None:
    url = link(report, "report")
    for _ in range(100):
        assert status(url, target=parts(url)[1] + "x") == 403
    rows = [json.loads(row["detail"]) for row in report.audit() if row["kind"] == "link"]
    assert [row["event"] for row in rows].count("refused") == 1


# --- the process ---


def test_the_process_is_confined(report: Session) -> None:
    link(report, "report")
    keeper = report.keeper()
    [pid] = [p.pid for p in descendants() if p.parent == keeper and p.name == "holt-links"]
    fields = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)

    assert fields["Seccomp"] == "2" and int(fields["Seccomp_filters"]) >= 2 and fields["NoNewPrivs"] == "1"
    assert all(int(fields[f"Cap{name}"], 16) == 0 for name in ("Inh", "Prm", "Eff", "Amb"))
    assert set(fields["Uid"].split()) == set(Path(f"/proc/{keeper}/status").read_text().partition("Uid:\t")[2].partition("\n")[0].split())
    opened = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert all(name == "/dev/null" or name.startswith(("socket:", "anon_inode:")) for name in opened), opened


# --- links that code inside makes ---

MAKE = "from host_tools import link\nprint(link({path!r}, {seconds}))"


def made(session: Session, path: str, seconds: int = 60, code: str = MAKE) -> Result:
    return session.exec("python3", "-c", code.format(path=path, seconds=seconds))


def fetched(url: str) -> bytes:
    answer = curl(url.strip())
    assert answer.status == 200, answer
    return answer.body


@pytest.mark.identities("user", "root", "nested")
def test_code_inside_makes_links_only_if_the_policy_says_so(sessions: Sessions) -> None:
    refused, allowed = sessions.create("no"), sessions.create("yes", "--links")
    for session in (refused, allowed):
        session.sh("echo report > /mnt/files/r.txt").ok()
    assert "[permission_error] the policy does not let code inside make links (bridge.links)" in made(refused, "r.txt").err
    assert sessions(["link", "no", "--list", "--json"]).ok().out.count("url") == 0

    url = made(allowed, "r.txt").ok().out.strip()
    assert fetched(url) == b"report\n"
    assert fetched(made(allowed, "/mnt/files/r.txt").ok().out.strip()) == b"report\n"
    assert [row["inside"] for row in (json.loads(row["detail"]) for row in allowed.audit() if row["kind"] == "link") if row["event"] == "made"] == [True] * 2


def test_links_of_code_inside_are_bounded(sessions: Sessions) -> None:
    session = sessions.create("w", "--links")
    session.sh("echo x > /mnt/files/a; ln -s /etc/passwd /mnt/files/l; mkfifo /mnt/files/p; mkdir /mnt/files/d").ok()
    for path, seconds, why in (
        ("l", 60, "cannot link to"), ("p", 60, "link to"), ("d", 60, "link to"), ("../x", 60, "is not the path of a file"), ("", 60, "is not the path"),
        ("a", 59, "for_ms must be from 60000"), ("a", 86401, "for_ms must be from 60000"), ("missing", 60, "link to"),
    ):
        refused = made(session, path, seconds)
        assert refused.code == 1 and "[validation_error]" in refused.err and why in refused.err, (path, refused)
    flood = made(session, "a", 60, "from host_tools import link\nfor i in range(64): link({path!r}, {seconds})\nlink({path!r}, {seconds})")
    assert "the session has 64 links of code inside already" in flood.err
    assert fetched(sessions(["link", "w", "a"]).ok().out.strip()) == b"x\n", "the host still can"
