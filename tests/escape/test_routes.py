# SPDX-License-Identifier: Apache-2.0
"""A route gives its credential to nobody inside, and its token is worth nothing elsewhere."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib.identity import Identity
from lib.routes import WITH_KEY, memory, policy_maker
from lib.sandbox import Holt
from lib.sessions import Sessions
from lib.tools import needs
from lib.upstream import KEY, read_head

pytestmark = needs("curl", "python3")

GET = 'curl -sS -i -m 10 -H "authorization: Bearer $ACME_TOKEN"'
SECRET = KEY.encode()

# Answers of a hostile service. Each would give the credential away, or break something, in a careless gateway.
ANSWERS = {
    "early": b"HTTP/1.1 100 Continue\r\nx: %s\r\n\r\nHTTP/1.1 103 Hints\r\nlink: %s\r\n\r\nHTTP/1.1 200 %s\r\ncontent-length: 2\r\n\r\nok" % ((SECRET,) * 3),
    "trailer": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;%s\r\nhello\r\n0\r\nx: %s\r\n\r\n" % (SECRET, SECRET),
    "folded": b"HTTP/1.1 200 OK\r\nx: a\r\n %s\r\ncontent-length: 2\r\n\r\nok" % SECRET,
    "cookie": b"HTTP/1.1 200 OK\r\nset-cookie: k=%s; path=/\r\nlocation: http://x/?k=%s\r\ncontent-length: 2\r\n\r\nok" % (SECRET, SECRET),
    "switch": b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n%s" % SECRET,
    "status": b"HTTP/1.1 999 %s\r\n\r\n" % SECRET,
    "no-http": b"%s\r\n\r\n" % SECRET,
    "chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n%s" % SECRET,
    "length": b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n%s" % SECRET,
    "control": b"HTTP/1.1 200 OK\r\nx-\x01: %s\r\n: y\r\ncontent-length: 2\r\n\r\nok" % SECRET,
    "extra": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n%s" % SECRET,
}


@pytest.fixture
def hostile() -> Iterator[Callable[[bytes], str]]:
    """Returns a function that starts a server with one answer, and returns its URL. Each connection gets it once."""
    servers: "list[socket.socket]" = []
    threads: "list[threading.Thread]" = []

    def serve(server: socket.socket, answer: bytes) -> None:
        while True:
            try:
                with server.accept()[0] as client:
                    client.settimeout(10)
                    read_head(client)
                    client.sendall(answer)
            except OSError:
                if server.fileno() < 0:
                    return

    def start(answer: bytes) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        threads.append(threading.Thread(target=serve, args=(server, answer), daemon=True))
        threads[-1].start()
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    for thread in threads:
        thread.join(5)


@pytest.fixture
def policy(place: Path, identity: Identity) -> Callable[..., Path]:
    return lambda url, credential="Bearer {env:ACME_KEY}": policy_maker(place, identity, url)(header={"authorization": credential})


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_hostile_service(answer: str, holt: Holt, policy: Callable[[str], Path], hostile: Callable[[bytes], str]) -> None:
    result = holt.sh(f"for i in 1 2; do {GET} $ACME_URL/x; echo; done; exit 1", "--policy", policy(hostile(ANSWERS[answer])), env=WITH_KEY)
    assert KEY not in result.out + result.err and KEY not in json.dumps(result.report)
    assert result.out.count("HTTP/1.1 ") == 2, "the gateway goes on"


@pytest.mark.identities("user", "root", "nested")
def test_the_token_is_worth_nothing_elsewhere(holt: Holt, policy: Callable[[str], Path], hostile: Callable[[bytes], str]) -> None:
    path = policy(hostile(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"))
    with holt.start(["run", "--policy", path, "--", "sh", "-c", "echo $ACME_TOKEN; sleep 60"], env=WITH_KEY) as running:
        token = running.readline()
        assert token.startswith("holt-")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 8474))
        other = holt.sh(f"ACME_TOKEN={token}; {GET} $ACME_URL/x", "--policy", path, env=WITH_KEY)
        assert "HTTP/1.1 401" in other.out
        assert holt.sh("curl -sS -m 5 http://127.0.0.1:8474/acme/x").code == 7
        running.kill()


def test_a_command_cannot_take_the_place_of_the_gateway(holt: Holt, policy: Callable[[str], Path], hostile: Callable[[bytes], str]) -> None:
    program = """
import socket
for address in ("127.0.0.1", "0.0.0.0", "::1", "::"):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try: s.bind((address, 8474)); s.listen()
    except OSError as error: print(address, error.errno)
"""
    result = holt(["run", "--policy", policy(hostile(b"")), "--", "python3", "-c", program], env=WITH_KEY).ok()
    assert "127.0.0.1 98" in result.out and "0.0.0.0 98" in result.out


@pytest.mark.identities("user", "root", "nested")
def test_a_keeper_erases_the_credential(sessions: Sessions, policy: Callable[[str], Path], hostile: Callable[[bytes], str]) -> None:
    sessions.env.update(WITH_KEY)
    session = sessions.create("w", "--policy", policy(hostile(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")))
    assert "ok" in session.out(f"{GET} $ACME_URL/x; env; true")
    keeper = Path(f"/proc/{session.keeper()}/environ").read_bytes()
    assert SECRET not in keeper and b"HOLT_CALLER_" not in keeper
    assert KEY not in session.out("env; cat /proc/*/environ 2>/dev/null; true")
    assert "ACME_KEY" not in session.out("env") and os.environ.get("ACME_KEY") is None


@pytest.mark.identities("user", "root", "nested")
def test_a_run_erases_the_credential(holt: Holt, policy: Callable[[str], Path], hostile: Callable[[bytes], str], identity: Identity) -> None:
    """The launcher reads bytes from inside, and its memory would be in its core dump."""
    path = policy(hostile(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"))
    with holt.start(["run", "--policy", path, "--", "sh", "-c", f"{GET} -o /dev/null $ACME_URL/x; echo; exec sleep 60"], env=WITH_KEY) as running:
        running.readline()
        environment = Path(f"/proc/{running.pid}/environ").read_bytes()
        assert b"ACME_KEY=" in environment or identity.name == "root", "this process had the credential"
        assert SECRET not in environment
        if os.geteuid() == 0:
            assert SECRET not in memory(running.pid)
        running.kill()


# --- files and programs that holt obeys ---

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
# A command that tries to put its own program or a symlink in the place of the policy's, and then makes holt use it.
SWAP = """
for name in key d/key bin/key; do
    mkdir -p ${name%/*} 2>/dev/null
    printf '#!/bin/sh\\nid > %s; echo owned\\n' "$1" > new; chmod 755 new
    cat new > $name; mv -f new $name; rm -f $name; ln -sf /etc/hostname $name
done
mv d e; mkdir d; ln -s /etc/hostname d/key
""" + f"{GET} $ACME_URL/x; true"


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("lies", ("key", "d/key", "missing/key"))
@pytest.mark.parametrize("kind", ("file", "program", "argument", "assigned", "code", "option", "interpreter", "interpreter of env"))
@pytest.mark.parametrize("session", (False, True))
def test_a_command_cannot_change_the_source_of_a_credential(
    session: bool, kind: str, lies: str, holt: Holt, sessions: Sessions, policy: Callable[..., Path], hostile: Callable[[bytes], str],
    place: Path, identity: Identity,
) -> None:
    path = holt.cwd / lies
    if not lies.startswith("missing"):
        for made in ([path.parent] if path.parent != holt.cwd else []):
            made.mkdir()
            identity.own(made)
        path.write_text("the-first-key\n" if kind == "file" else "#!/bin/sh\necho the-first-key\n")
        identity.own(path).chmod(0o755)
    script = place / "outside" / "script"
    script.parent.mkdir()
    script.parent.chmod(0o755)
    script.write_text(f"#!{path}\n" if kind == "interpreter" else f"#!/usr/bin/env {path}\n")
    script.chmod(0o755)
    credential = {"file": {"file": str(path)}, "program": {"command": [str(path)]}, "argument": {"command": ["sh", str(path)]},
                  "assigned": {"command": ["env", f"FILE={path}", "sh", "-c", '. "$FILE"']}, "code": {"command": ["sh", "-c", f". {path}; true"]},
                  "option": {"command": ["env", f"-S{path}"]}, "interpreter": {"command": [str(script)]},
                  "interpreter of env": {"command": ["env", str(script)]}}[kind]
    document, flag = policy(hostile(OK), credential), place / "flags" / "owned"
    flag.parent.mkdir()
    flag.parent.chmod(0o777)
    if session:
        made_session = sessions("create w --policy".split() + [document, "--workspace", holt.cwd])
        result = sessions.start(["exec", "w", "--", "bash", "-c", SWAP, "sh", flag]).wait() if made_session.code == 0 else made_session
    else:
        result = holt(["run", "--policy", document, "--", "bash", "-c", SWAP, "sh", flag])
    assert not flag.exists(), result
    if result.code == 125:
        assert "but the command could change it" in result.err, result
    else:
        assert lies in ("key", "d/key") and path.read_text().rstrip().endswith("the-first-key"), result
        assert "HTTP/1.1 200" in result.out, "the credential is still read"


@pytest.mark.identities("user", "root", "nested")
def test_a_command_cannot_put_a_program_into_the_path(holt: Holt, policy: Callable[..., Path], hostile: Callable[[bytes], str], place: Path) -> None:
    document = policy(hostile(OK), {"command": ["true"]})
    path = f"{holt.cwd}/bin:{os.environ['PATH']}"
    assert f"holt obeys {holt.cwd}/bin/true, but the command could change it" in holt.sh("true", "--policy", document, env={"PATH": path}).refusal()
    document = policy(hostile(OK), {"command": ["/usr/bin/env", "A=b", "true"]})
    assert f"holt obeys {holt.cwd}/bin/true, but the command could change it" in holt.sh("true", "--policy", document, env={"PATH": path}).refusal()
    script = place / "outside" / "script"
    script.parent.mkdir()
    script.parent.chmod(0o755)
    script.write_text("#!/usr/bin/env true\n")
    script.chmod(0o755)
    document = policy(hostile(OK), {"command": [str(script)]})
    assert f"holt obeys {holt.cwd}/bin/true, but the command could change it" in holt.sh("true", "--policy", document, env={"PATH": path}).refusal()
    assert "relative path" in holt.sh("true", "--policy", policy(hostile(OK), {"command": ["bin/key"]})).refusal()


def test_a_command_cannot_change_the_trusted_certificates(holt: Holt, policy: Callable[..., Path], hostile: Callable[[bytes], str]) -> None:
    env = {**WITH_KEY, "SSL_CERT_FILE": f"{holt.cwd}/ca/ca.pem"}
    assert "but the command could change it" in holt.sh("true", "--policy", policy(hostile(OK)), env=env).refusal()


@pytest.mark.identities("user", "root", "nested")
@pytest.mark.parametrize("session", (False, True))
def test_a_command_cannot_read_the_file_of_a_credential(
    session: bool, holt: Holt, sessions: Sessions, policy: Callable[..., Path], hostile: Callable[[bytes], str], place: Path, identity: Identity,
) -> None:
    """The file is hidden in the workspace and in other mounts, but holt-gateway reads it."""
    folder = place / "more"
    folder.mkdir()
    for path in (holt.cwd / "key", folder / "key"):
        path.write_text(f"the-key-in-{path.parent.name}\n")
        identity.own(path)
    script = f"cat key {folder}/key; cp key copy; ln key link; cat copy link; {GET} $ACME_URL/x; exit 1"
    for path in (holt.cwd / "key", folder / "key"):
        document = policy(hostile(OK), {"file": str(path)})
        if session:
            sessions.create("w", "--policy", document, "--workspace", holt.cwd, "--ro", folder)
            result = sessions.start(["exec", "w", "--", "sh", "-c", script]).wait()
            sessions(["rm", "w", "--force"])
        else:
            result = holt(["run", "--policy", document, "--ro", folder, "--", "sh", "-c", script])
        assert "HTTP/1.1 200" in result.out, result
        assert path.read_text() not in result.out and "the reason is the credential of a route" in result.err, result
        assert "the-key-in-" in result.out, "the other file is no credential"
        for name in ("copy", "link"):
            (holt.cwd / name).unlink(missing_ok=True)
