# SPDX-License-Identifier: Apache-2.0
"""Real tools do their work inside as they do outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import Holt
from lib.tools import needs

Put = Callable[..., Path]

GIT_IDENTITY = (
    "--env", "GIT_AUTHOR_NAME=A", "--env", "GIT_AUTHOR_EMAIL=a@example.org",
    "--env", "GIT_COMMITTER_NAME=A", "--env", "GIT_COMMITTER_EMAIL=a@example.org",
)


@needs("git")
def test_git_makes_commits_clones_and_diffs(holt: Holt, workspace: Path) -> None:
    result = holt.sh(
        """
        set -e
        git init -q -b main first
        cd first
        echo one > file
        git add file
        git commit -qm 'the first'
        git clone -q "$PWD" ../second
        cd ../second
        echo two >> file
        git diff --stat
        git commit -qam 'the second'
        git log --format=%s
        git push -q origin HEAD:other
        git -C ../first log --format=%s other
        git gc -q && git fsck
        """,
        *GIT_IDENTITY,
    ).ok()

    assert result.out.splitlines() == [
        " file | 1 +", " 1 file changed, 1 insertion(+)", "the second", "the first", "the second", "the first",
    ]
    assert (workspace / "second" / "file").read_text() == "one\ntwo\n"


@needs("gcc", "make")
def test_make_and_gcc_build_a_program_that_runs(holt: Holt, put: Put) -> None:
    put("Makefile", "all: a.o b.o\n\t$(CC) -o all a.o b.o -lm -pthread\n")
    put("a.c", '#include <stdio.h>\n#include <math.h>\ndouble b(void);\n'
               'int main(void) { printf("%.0f\\n", sqrt(b())); }\n')
    put("b.c", "double b(void) { return 1764; }\n")

    result = holt.sh("make -s -j4 && ./all").ok()

    assert (result.out, result.err) == ("42\n", "")


@needs("gcc")
def test_a_program_with_a_sanitizer_runs(holt: Holt, put: Put) -> None:
    """AddressSanitizer reads /proc/self/maps, and reserves terabytes."""
    put("a.c", '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { free(malloc(1)); puts("fine"); }\n')

    assert holt.sh("gcc -fsanitize=address -o a a.c && ASAN_OPTIONS=detect_leaks=0 ./a").ok().out == "fine\n"


@needs("node")
def test_node_starts_processes_and_workers(holt: Holt) -> None:
    script = """
        const { execFileSync, spawn } = require('child_process');
        const { Worker, isMainThread } = require('worker_threads');
        const fs = require('fs'), net = require('net');
        console.log(execFileSync('echo', ['child']).toString().trim());
        const worker = new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true });
        worker.on('message', m => {
            console.log('worker', m);
            const server = net.createServer(s => s.end('loopback'));
            server.listen(0, '127.0.0.1', () => net.connect(server.address().port)
                .on('data', d => { console.log(d.toString()); server.close(); }));
        });
        fs.writeFileSync('made', 'x');
    """
    result = holt(["run", "--", "node", "-e", script]).ok()

    assert result.out.splitlines() == ["child", "worker 42", "loopback"]
    assert (holt.cwd / "made").read_text() == "x"


@needs("node")
def test_node_sleeps_and_ends_by_itself(holt: Holt) -> None:
    script = "fs.promises.readFile('/etc/hosts').then(() => setTimeout(() => process.exit(7), 20))"

    assert holt(["run", "--", "node", "-e", f"const fs = require('fs'); {script}"]).code == 7


PYTHON = {
    "multiprocessing by fork": """
import multiprocessing as m
with m.get_context('fork').Pool(3) as p: print(sum(p.map(abs, range(-100, 0))))
""",
    "multiprocessing by spawn": """
import multiprocessing as m
if __name__ == '__main__':
    with m.get_context('spawn').Pool(2) as p: print(sum(p.map(abs, range(-100, 0))))
""",
    "multiprocessing's queues, locks and shared memory": """
import multiprocessing as m
from multiprocessing import shared_memory
def work(q, lock, name):
    with lock:
        s = shared_memory.SharedMemory(name); s.buf[0] += 1; s.close(); q.put(1)
s = shared_memory.SharedMemory(create=True, size=16); s.buf[0] = 47
q, lock = m.Queue(), m.Lock()
ps = [m.Process(target=work, args=(q, lock, s.name)) for _ in range(3)]
[p.start() for p in ps]; [q.get() for _ in ps]; [p.join() for p in ps]
print(s.buf[0] * 101); s.close(); s.unlink()
""",
    "threads": """
import threading
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(32) as pool: print(sum(pool.map(abs, range(-100, 0))))
""",
    "processes of concurrent.futures": """
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(2) as pool: print(sum(pool.map(abs, range(-100, 0))))
""",
    "subprocess": """
import subprocess
out = subprocess.run('seq 100 | paste -sd+ | tr + "\\n"', shell=True, capture_output=True, text=True).stdout
print(sum(map(int, out.split())))
""",
    "asyncio": """
import asyncio
async def one(n):
    p = await asyncio.create_subprocess_exec('echo', str(n), stdout=asyncio.subprocess.PIPE)
    return int((await p.communicate())[0])
async def main():
    server = await asyncio.start_server(lambda r, w: (w.write(b'4950'), w.close()), '127.0.0.1', 0)
    reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
    print(int(await reader.read()) + sum(await asyncio.gather(*map(one, [1] * 10))) * 10)
asyncio.run(main())
""",
    "modules that load libraries": """
import ctypes, decimal, hashlib, json, lzma, sqlite3, ssl, tempfile, uuid, zoneinfo
with tempfile.NamedTemporaryFile() as f: f.write(b'x')
ssl.create_default_context(); uuid.uuid4()
print(sqlite3.connect(':memory:').execute('select 5050').fetchone()[0])
""",
    "a pty": """
import os, pty
pid, fd = pty.fork()
if pid == 0: os.execvp('echo', ['echo', '5050'])
print(os.read(fd, 100).decode().strip())
""",
    "names and users": """
import getpass, os, pwd, socket
assert getpass.getuser() == pwd.getpwuid(os.getuid()).pw_name == 'agent', pwd.getpwuid(os.getuid())
assert socket.gethostname() == 'holt' and socket.gethostbyname('localhost') == '127.0.0.1'
print(5050)
""",
}


@needs("python3")
@pytest.mark.parametrize("what", PYTHON)
def test_parts_of_the_standard_library_work(what: str, holt: Holt, put: Put) -> None:
    put("script.py", PYTHON[what])
    result = holt(["run", "--", "python3", "script.py"]).ok()

    assert (result.out, result.err) == ("5050\n", "")


@pytest.mark.parametrize("command, output", (
    pytest.param("perl -e 'print join(q(-), map { $_ * 2 } 1..3), qq(\\n)'", "2-4-6\n", id="perl",
                 marks=needs("perl")),
    pytest.param("seq 10 | awk '{ s += $1 } END { print s }'", "55\n", id="awk", marks=needs("awk")),
    pytest.param("echo abc > f && sed -i s/b/B/ f && cat f", "aBc\n", id="sed -i"),
    pytest.param("mkdir -p a/b && touch a/b/c && find . -name c", "./a/b/c\n", id="find"),
    pytest.param("mkdir d && echo x > d/f && tar cz d | (mkdir e && tar xzC e) && cat e/d/f", "x\n", id="tar"),
    pytest.param("sqlite3 db 'pragma journal_mode=wal; create table t(x); insert into t values(42); select x from t'",
                 "wal\n42\n", id="sqlite3", marks=needs("sqlite3")),
    pytest.param("seq 3 | xargs -P3 -I{} sh -c 'echo {}' | sort", "1\n2\n3\n", id="xargs -P"),
    pytest.param("mkfifo p && (echo through > p &) && cat p", "through\n", id="fifo"),
    pytest.param("diff <(seq 3) <(seq 4); cat <<< here", "3a4\n> 4\nhere\n", id="bash's substitutions"),
    pytest.param("exec {l}>lock; flock $l; ! flock -n lock true && echo held", "held\n", id="flock",
                 marks=needs("flock")),
    pytest.param("timeout 0.1 sleep 100; echo $?", "124\n", id="timeout"),
    pytest.param("sleep 987 & until ps -eo comm= | grep -x sleep; do :; done", "sleep\n", id="ps", marks=needs("ps")),
    pytest.param("echo x > f; cp --preserve=all f g; ln f h; ln -s f l; stat -c %h f; readlink l", "2\nf\n",
                 id="links"),
))
def test_features_of_bash_work(command: str, output: str, holt: Holt) -> None:
    assert holt.sh(command).ok().out == output


def test_a_shell_script_without_its_first_line_is_run_by_the_shell(holt: Holt, put: Put) -> None:
    put("script", 'echo "$0 $1"\n', 0o755)

    assert holt(["run", "--", "./script", "one"]).ok().out == "./script one\n"
