# SPDX-License-Identifier: Apache-2.0
"""Descriptors, signal dispositions and mounts that a caller hands over give no more than the policy says."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from lib.hostile import SYSCALLS
from lib.sandbox import Holt
from lib.sessions import Session

OTHER_USE = "import socket; s = socket.socket(fileno=0); s.connect(('127.0.0.1', {port})); print('reached')"


@pytest.mark.parametrize("kind", (socket.SOCK_STREAM, socket.SOCK_DGRAM))
def test_an_internet_socket_is_no_stdin(kind: socket.SocketKind, holt: Holt) -> None:
    """Such a socket belongs to the host's network, and can be connected again there."""
    with socket.socket(socket.AF_INET, kind) as handed, socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        control = subprocess.run(["python3", "-c", OTHER_USE.format(port=port)], stdin=handed, capture_output=True)
        assert b"reached" in control.stdout

    with socket.socket(socket.AF_INET, kind) as handed:
        assert "stdin" in holt(["run", "--", "true"], stdin=handed).refusal()


def test_a_local_datagram_socket_is_no_stdin(holt: Holt) -> None:
    """Such a socket can send to any socket of the host, even to abstract ones."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as handed:
        assert "stdin" in holt(["run", "--", "true"], stdin=handed).refusal()


def test_a_pidfd_is_no_stdin(holt: Holt) -> None:
    handed = os.pidfd_open(os.getpid())
    try:
        assert "stdin" in holt(["run", "--", "true"], stdin=handed).refusal()
    finally:
        os.close(handed)


# Asks for the namespace that owns it: a step towards the host's.
OWNER = "import fcntl, os; print('reached', fcntl.ioctl(0, 0xB701))"


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("name", ("user", "net", "mnt"))
def test_a_namespace_is_no_stdin(name: str, holt: Holt) -> None:
    """The file of a namespace is a regular one, and read-only to everybody."""
    with open(f"/proc/self/ns/{name}", "rb") as handed:
        assert stat.S_ISREG(os.fstat(handed.fileno()).st_mode)
        control = subprocess.run(["python3", "-c", OWNER], stdin=handed, capture_output=True)
        assert b"reached" in control.stdout or b"PermissionError" in control.stderr

        assert "stdin" in holt(["run", "--", "true"], stdin=handed).refusal()


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("path", ("/proc/self/mem", "/proc/self/environ"))
def test_a_private_file_of_proc_is_no_stdin(path: str, holt: Holt) -> None:
    """Such a file shows the memory of the process that opened it."""
    with open(path, "rb") as handed:
        assert "stdin" in holt(["run", "--", "true"], stdin=handed).refusal()


@pytest.mark.identities("user", "root")
def test_a_setting_of_the_kernel_is_no_stdin(holt: Holt) -> None:
    """Opened for writing, it can be written inside by every holder of the descriptor."""
    with open("/proc/self/comm", "r+b", buffering=0) as handed:
        assert "stdin" in holt(["run", "--", "true"], stdin=handed).refusal()


# Files that their owner may write: some belong to the caller's own process, and root may also write the kernel's.
WRITABLE = ("/proc/self/coredump_filter", "/proc/self/oom_score_adj", "/proc/sys/kernel/core_pattern", "/proc/self/comm")


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("number", (0, 1, 2))
@pytest.mark.parametrize("path", WRITABLE)
def test_files_of_proc_that_could_be_written_are_refused(path: str, number: int, holt: Holt) -> None:
    """Landlock, if in force, would stop that."""
    shell = f'exec "$@" {number}<{path}'
    argv = holt.argv(["run", "--landlock", "off", "--", "true"])
    result = holt.identity.run(["bash", "-c", shell, "bash", *argv])
    assert result.returncode == 125
    if number != 2:
        assert ("stdin", "stdout")[number] in result.stderr


@pytest.mark.identities("user", "root")
def test_sessions_refuse_files_of_proc_that_could_be_written(session: Session) -> None:
    with session.rpc() as rpc, open("/proc/self/coredump_filter", "rb") as handed:
        error = rpc.refused("process.spawn", [handed.fileno()], argv=["true"], fds=1)
    assert "stdin" in str(error)


def opens(device: str) -> int | None:
    """Opens it for reading; root may have it open already."""
    try:
        return os.open(f"/dev/{device}", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None


def is_there(device: str) -> bool:
    handed = opens(device)
    if handed is not None:
        os.close(handed)
    return handed is not None


INTERFACES = ("ptmx", "fuse", "kvm", "net/tun", "kmsg", "loop-control", "autofs", "hwrng", "btrfs-control", "cpu_dma_latency")


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("device", filter(is_there, INTERFACES))
def test_an_interface_of_the_kernel_is_no_stdin(device: str, holt: Holt, session: Session) -> None:
    handed = opens(device)
    assert handed is not None
    try:
        for result in (holt(["run", "--", "true"], stdin=handed), session.exec("true", stdin=handed)):
            assert "stdin" in result.refusal() and "pipe between" in result.cure
        with session.rpc() as rpc:
            assert "stdin" in str(rpc.refused("process.spawn", [handed], argv=["true"], fds=1))
    finally:
        os.close(handed)


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("number", (0, 1, 2))
def test_the_master_of_a_terminal_is_refused(number: int, holt: Holt) -> None:
    """Through the master, the command would type into the terminal."""
    master, slave = os.openpty()
    streams = {("stdin", "stdout", "stderr")[number]: master}
    try:
        assert holt(["run", "--", "true"], **streams).code == 125
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("device", ("null", "zero", "full", "random", "urandom"))
def test_harmless_devices_are_accepted_as_stdin(device: str, holt: Holt, session: Session) -> None:
    handed = opens(device)
    assert handed is not None
    try:
        holt(["run", "--", "head", "-c", "1"], stdin=handed).ok()
        session.exec("head", "-c", "1", stdin=handed).ok()
    finally:
        os.close(handed)


def test_a_terminal_that_was_hung_up_is_a_stdin(holt: Holt) -> None:
    """A job that goes on after its terminal has gone has such a stdin."""
    master, slave = os.openpty()
    os.close(master)
    try:
        holt(["run", "--", "true"], stdin=slave).ok()
    finally:
        os.close(slave)


def test_a_message_queue_is_no_stdin(holt: Holt) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    name = f"/holt-test-{os.getpid()}".encode()
    handed = libc.mq_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644, None)
    if handed < 0:
        pytest.skip("this host has no message queues")
    libc.mq_unlink(name)
    try:
        assert stat.S_ISREG(os.fstat(handed).st_mode)
        assert "stdin" in holt(["run", "--", "true"], stdin=handed).refusal()
    finally:
        os.close(handed)


def test_public_files_of_proc_are_accepted_as_stdin(holt: Holt) -> None:
    with open("/proc/version", "rb") as handed:
        assert holt(["run", "--", "cat"], stdin=handed).ok().out == Path("/proc/version").read_text()


def test_a_memory_file_is_a_stdin(holt: Holt) -> None:
    handed = os.memfd_create("text")
    try:
        os.write(handed, b"text\n")
        os.lseek(handed, 0, os.SEEK_SET)
        assert holt(["run", "--", "cat"], stdin=handed).ok().out == "text\n"
    finally:
        os.close(handed)


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("number", (0, 1, 2))
def test_a_keeper_hands_no_namespace_over(number: int, session: Session) -> None:
    """process.spawn with descriptors obeys the same rule, even if its client has checked nothing."""
    with session.rpc() as rpc, open("/proc/self/ns/user", "rb") as handed:
        error = rpc.refused("process.spawn", [handed.fileno()], argv=["true"], fds=1 << number)

    assert ("stdin", "stdout", "stderr")[number] in str(error)


def test_a_connected_local_socket_is_a_stdin(holt: Holt) -> None:
    """Node, for example, hands one to its children."""
    ours, handed = socket.socketpair()
    with ours, handed:
        ours.sendall(b"hello\n")
        ours.shutdown(socket.SHUT_WR)
        assert holt(["run", "--", "cat"], stdin=handed).ok().out == "hello\n"


# The names of the network's interfaces, by a request that any socket allows.
INTERFACES_OF = """
import fcntl, socket, struct
names = set()
for number in range(1, 200):
    for request in (0x8910, 0x8910 | 1 << 31):
        try: names.add(fcntl.ioctl({fd}, request, struct.pack("16si20s", b"", number, b"")).split(b"\\0")[0].decode())
        except OSError: pass
print(*names)
"""


@pytest.mark.identities("user", "root")
def test_strict_refuses_ioctls_on_a_socket_as_stdin(holt: Holt) -> None:
    ours, handed = socket.socketpair()
    with ours, handed:
        command = ["python3", "-c", INTERFACES_OF.format(fd=0)]
        control = subprocess.run(command, stdin=handed, capture_output=True, text=True, check=True)
        assert control.stdout.split(), "this host has no interface"
        assert holt(["run", "--policy", "strict", "--", *command], stdin=handed).ok().out == "\n"


@pytest.mark.identities("user", "root")
def test_a_pipe_in_front_hides_the_host_s_interfaces(holt: Holt) -> None:
    """SECURITY.md recommends such a pipe."""
    command = ["python3", "-c", INTERFACES_OF.format(fd="socket.socket()")]
    assert holt(["run", "--", *command], stdin=b"").ok().out == "lo\n"


@pytest.mark.parametrize("change", ("os.chmod(path, 0o600)", "os.utime(path)", "os.chown(path, 1000, 1000)"))
@pytest.mark.parametrize("device", ("null", "zero", "tty", "urandom"))
def test_the_host_s_device_nodes_do_not_change(change: str, device: str, holt: Holt) -> None:
    before = os.stat(f"/dev/{device}")
    result = holt(["run", "--", "python3", "-c", f"import os; path = '/dev/{device}'; {change}"])
    after = os.stat(f"/dev/{device}")

    assert result.code == 1
    assert (before.st_mode, before.st_uid, before.st_mtime_ns) == (after.st_mode, after.st_uid, after.st_mtime_ns)


CORE = """
import ctypes, mmap, resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
libc = ctypes.CDLL(None, use_errno=True)
# A pointer whose low half is 0: seccomp sees 64 bits, a filter that looks at 32 sees none.
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
where = libc.mmap(0x100000000, 4096, 3, 0x32, -1, 0)
assert where == 0x100000000
libc.syscall(PRLIMIT64, 0, 4, ctypes.c_void_p(where), None)
print(resource.getrlimit(resource.RLIMIT_CORE))
""".replace("PRLIMIT64", str(SYSCALLS[os.uname().machine]["prlimit64"]))


def test_a_crash_starts_no_core_handler_of_the_host(holt: Holt) -> None:
    """A piped core_pattern runs as root on the host, unless the core limit is exactly 1 (core(5))."""
    control = subprocess.run(["python3", "-c", CORE], capture_output=True, text=True)
    assert control.stdout == "(0, 0)\n"

    assert holt(["run", "--", "python3", "-c", CORE]).ok().out == "(1, 1)\n"


@pytest.mark.identities("root")
def test_private_files_of_root_are_not_shown(holt: Holt, place: Path) -> None:
    """--ro shows a directory with the rights of a stranger."""
    shown = place / "shown"
    shown.mkdir(0o755)
    (shown / "open").write_text("open\n")
    (shown / "secret").write_text("secret\n")
    (shown / "secret").chmod(stat.S_IRUSR)
    result = holt.sh("cat /shown/open; cat /shown/secret", "--ro", f"{shown}:/shown")

    assert result.out == "open\n"


@pytest.mark.identities("root")
@pytest.mark.parametrize("kind", ("file", "directory"))
def test_private_paths_that_are_named_are_shown(kind: str, holt: Holt, place: Path) -> None:
    """A ~/.gitconfig of mode 0600, or a toolchain in a directory of mode 0700, was passed in order to be used."""
    given = place / "given"
    given.mkdir(0o700)
    (given / "secret").write_text("text\n")
    (given / "secret").chmod(stat.S_IRUSR)
    source = given if kind == "directory" else given / "secret"
    script = "cat /given/secret /given 2>/dev/null; echo x >>/given/secret; echo x >>/given; exit 0"
    result = holt.sh(script, "--ro", f"{source}:/given").ok()

    assert result.out == "text\n"
    assert (given / "secret").read_text() == "text\n"


def test_a_caller_that_ignores_sigchld_is_told_the_end(holt: Holt) -> None:
    """Ignored signals are inherited, and a parent that ignores SIGCHLD cannot wait for its children."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        result = holt.sh("true | true; exit 3", prefix=["env", "--ignore-signal=CHLD"], timeout=20)
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert result.code == 3


SIGNALS = """
import os, resource, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
count = 0
while count < 5000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0:
    count += 1
print(count)
"""


@pytest.mark.identities("user", "root")
def test_the_caller_s_queue_of_signals_is_not_used_up(holt: Holt) -> None:
    """All processes of the user share one count, and holt itself needs a part of it."""
    control = int(subprocess.run(["python3", "-c", SIGNALS], capture_output=True, text=True).stdout)
    if control <= 1024:
        pytest.skip("this host's own limit is as low")

    assert int(holt(["run", "--", "python3", "-c", SIGNALS]).ok().out) <= 1024
