# SPDX-License-Identifier: Apache-2.0
"""Sessions on Debian's kernel: a keeper must not need features of newer kernels."""

from __future__ import annotations

from lib.sessions import Sessions


def test_a_session_starts_again_and_again(sessions: Sessions) -> None:
    session = sessions.create()
    for number in range(3):
        assert session.sh(f"echo {number} >>~/kept; cat ~/kept").ok().out.split() == [str(n) for n in range(number + 1)]
        session.stop()


def test_a_session_has_all_that_it_has_elsewhere(sessions: Sessions) -> None:
    session = sessions.create()
    with session.rpc() as rpc:
        rpc.call("files.write", path="/mnt/files/a", content="text")
        assert rpc.call("exec", argv=["cat", "/mnt/files/a"])["stdout"] == "text"
        rpc.call("kv.set", key="k", value="v")
        process = rpc.call("process.spawn", argv=["sleep", "1000"])["id"]
        rpc.call("process.kill", id=process)
        assert rpc.call("process.wait", id=process)["cause"] == "killed"
        assert rpc.call("python.run", code="1 + 1")["result"] == "2"
    assert session.exec("unshare", "-U", "true").code != 0
    session.kill_keeper()
    with session.rpc() as rpc:
        assert rpc.call("kv.get", key="k")["value"] == "v"
