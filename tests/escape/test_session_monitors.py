# SPDX-License-Identifier: Apache-2.0
"""Attacks of a session's command on init, its own monitor, that of another command, and the keeper. The command can neither enter
them, nor borrow from them, nor speak in their name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lib.hostile import Attack, Hostile, Outcome
from lib.sessions import Session, Sessions, until

# Further calls that a debugger needs. With them, the kernel's own check refuses.
GRANTED = [f for call in ("ptrace", "process_vm_writev", "pidfd_open", "pidfd_getfd") for f in ("--allow-syscall", call)]

Try = Callable[[Attack], Outcome]


@pytest.fixture(params=((), GRANTED), ids=("all layers", "a debugger's calls granted"))
def victim(request: pytest.FixtureRequest, sessions: Sessions, hostile: Hostile) -> Session:
    """A session with a running command, p1."""
    session = sessions.create("w", "--ro", str(hostile.directory), *request.param)
    session.detach("exec sleep 2000")
    return session


@pytest.fixture
def holds_in(victim: Session, hostile: Hostile) -> Try:
    """Asserts that the attack succeeds on the host and fails in the session, which goes on unchanged."""

    def run(attack: Attack) -> Outcome:
        hostile.show_that_it_can_succeed(attack)
        outcome = hostile.attack_in(victim, attack)
        assert outcome.verdict == "HOLDS", f"{attack} inside: {outcome}"
        assert victim.ps()["p1"]["state"] == "running"
        return outcome

    return run


# Another command's monitor is the parent of its processes.
WHOM = {"init": "1", "its monitor": "$PPID", "another's monitor": "$(ps -o ppid= -C sleep | tr -d ' ')"}


@pytest.mark.parametrize("whom", WHOM)
@pytest.mark.parametrize("name", ("trace", "open-memory", "write-memory", "list-fds", "borrow-fd", "forge"))
def test_init_and_monitors_can_not_be_taken_over(name: str, whom: str, holds_in: Try) -> None:
    outcome = holds_in(Attack("monitors", name, (WHOM[whom],), control_args=("child",)))

    assert outcome.detail in ("EPERM", "EACCES", "ENOSYS", "SIGSYS")


@pytest.mark.parametrize("whom", WHOM)
@pytest.mark.parametrize("file", ("environ", "maps", "auxv", "exe", "stack", "syscall"))
def test_nothing_of_init_and_monitors_is_read(file: str, whom: str, holds_in: Try) -> None:
    root = file in ("stack", "syscall")  # only root may read these, even of its own processes
    control = {"control": "root"} if root else {}
    holds_in(Attack("files", "read", (f"/proc/{WHOM[whom]}/{file}",), control_args=(f"/proc/self/{file}",), **control))


@pytest.mark.parametrize("whom", WHOM)
@pytest.mark.parametrize("directory", ("fd", "root", "cwd", "map_files"))
def test_nothing_is_reached_through_init_and_monitors(directory: str, whom: str, holds_in: Try) -> None:
    inside, control = f"/proc/{WHOM[whom]}/{directory}/", f"/proc/self/{directory}/"

    holds_in(Attack("files", "list", (inside,), control_args=(control,)))


def test_forged_messages_on_a_command_s_descriptors_have_no_effect(victim: Session, hostile: Hostile) -> None:
    """These descriptors lead to the keeper, which treats every byte from them as output. Sending succeeds inside as it does on
    the host; only the effect counts."""
    attack = Attack("monitors", "forge-own", control="none", why_none="it has no keeper there that could believe it")
    with victim.rpc() as rpc:
        for terminal in (0, 7):
            argv = [str(hostile.path("monitors")), "forge-own"]
            more = {"terminal": terminal} if terminal else {"input": True}
            process = rpc.call("process.spawn", argv=argv, **more)["id"]
            result = rpc.call("process.wait", id=process, output=True)
            assert result["cause"] == "exited" and result["exit_code"] == 1, result
            # None of them was lost: its stderr contains as many messages as it claims.
            assert Outcome.of(attack, result["stdout"], str(result)).verdict == "BROKEN"
            until(lambda: rpc.call("process.list")["processes"][0]["state"] == "ended", "its end")
    assert victim.ps()["p1"]["state"] == "running"
    assert victim.exec("echo", "next").ok().out == "next\n"


def test_the_keeper_s_socket_can_not_be_called(victim: Session, hostile: Hostile) -> None:
    path = victim.directory / "keeper.sock"
    identity = victim.sessions.holt.identity
    control = "root" if identity.name == "root" else "user"
    attack = Attack("monitors", "call-socket", (str(path),), control=control)

    hostile.show_that_it_can_succeed(attack)
    outcome = hostile.attack_in(victim, attack)
    assert (outcome.verdict, outcome.detail) == ("HOLDS", "ENOENT")


def test_the_database_can_not_be_opened(victim: Session, hostile: Hostile) -> None:
    control = "root" if victim.sessions.holt.identity.name == "root" else "user"
    attack = Attack("files", "read", (str(victim.directory / "session.db"),), control=control)

    hostile.show_that_it_can_succeed(attack)
    assert hostile.attack_in(victim, attack).detail == "ENOENT"
