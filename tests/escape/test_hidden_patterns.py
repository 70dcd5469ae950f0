# SPDX-License-Identifier: Apache-2.0
"""An earlier run prepares the workspace so that a pattern of hidden files fails. holt hides the files nevertheless, or
refuses to start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import Holt

Make = Callable[..., Path]

HIDE = ("--hide", "**/.env")


@pytest.fixture
def secret(put: Make) -> Path:
    return put("config/.env", "secret\n")


def hidden(holt: Holt, secret: Path) -> None:
    result = holt.sh(f"cat {secret}; cat config/.env", *HIDE)
    assert "secret" not in result.out + result.err


def test_the_file_is_hidden(holt: Holt, secret: Path) -> None:
    assert holt.sh(f"cat {secret}").ok().out == "secret\n"
    hidden(holt, secret)


@pytest.mark.parametrize("target", ["/", "/usr", "/run", "/proc/self", "..", ".", "/tmp", "sub"])
def test_a_planted_symlink_hides_nothing_else(holt: Holt, secret: Path, target: str) -> None:
    holt.sh(f"mkdir -p a sub; touch sub/file; ln -sfn {target} a/.env").ok()
    assert holt.sh("ls / /usr /run /proc/self . sub/file > /dev/null && echo ok", *HIDE).ok().out == "ok\n"
    hidden(holt, secret)


def test_a_symlink_to_a_file_of_the_workspace_hides_that_file(holt: Holt, put: Make) -> None:
    put("keys/real", "secret\n")
    put("a/x", "")
    for target in ("../keys/real", holt.cwd / "keys" / "real"):
        (holt.cwd / "a" / ".env").unlink(missing_ok=True)
        (holt.cwd / "a" / ".env").symlink_to(target)
        result = holt.sh("cat a/.env; cat keys/real", *HIDE)
        assert "secret" not in result.out, target


def test_a_tree_that_is_too_deep_is_refused(holt: Holt, secret: Path) -> None:
    holt.sh("for i in $(seq 200); do mkdir d && cd d || exit 1; done").ok()
    assert "nested more than 128 deep" in holt.sh("cat config/.env", *HIDE).refusal()


def test_too_many_matches_are_refused(holt: Holt, secret: Path) -> None:
    holt.sh("for i in $(seq 200); do mkdir d$i && touch d$i/.env || exit 1; done").ok()
    assert "match more than 128 files" in holt.sh("cat config/.env", *HIDE).refusal()


@pytest.mark.parametrize("mode", ["0311", "0"])
def test_a_directory_that_cannot_be_listed_hides_nothing(holt: Holt, secret: Path, mode: str) -> None:
    """The command may enter it, or may change its mode because it is the owner. holt refuses to start, unless it can
    list it as root."""
    holt.sh(f"chmod {mode} config").ok()
    try:
        result = holt.sh("chmod 0755 config; cat config/.env", *HIDE)
        assert "secret" not in result.out
    finally:
        secret.parent.chmod(0o755)


def test_a_hidden_file_cannot_be_moved_or_uncovered(holt: Holt, secret: Path) -> None:
    result = holt.sh(
        "mv config/.env x; rm -f config/.env; ln config/.env y; mv config z; umount config/.env; cp config/.env w; "
        "cat x y z/.env w config/.env", *HIDE,
    )
    assert "secret" not in result.out
    assert secret.read_text() == "secret\n"


def test_moved_files_are_hidden_at_the_next_start(holt: Holt, put: Make) -> None:
    """A pattern is searched at each start, so a file that was moved in between is hidden at its new place."""
    put("a/.env", "secret\n")
    holt.sh("mv a b").ok()
    result = holt.sh("cat a/.env b/.env", *HIDE)
    assert "secret" not in result.out
