# SPDX-License-Identifier: Apache-2.0
"""The sitecustomize of each python3 inside: it makes /NAME and /data/NAME one file while the code runs. With the runtime
Monty, it also lets monty.py make functions of the tools.

Theory of operation. names.bash runs before and after a call. During a call, Python tells an audit hook about each use
of a path in advance. Just before a file is made at one place, the hook makes the symlink at the other. Just before a
file is removed or renamed through its symlink, the hook moves the file to the symlink's place. If a file was not made
in the end, names.bash removes the dangling symlink.
"""

from __future__ import annotations

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would slow down each python3 inside
    from typing import Any, Callable, Dict, Optional, Tuple

SHARED = {"home", "mnt", "opt", "tmp", "var", "workspace"}


def install(here: str) -> None:
    with open(here + "/system") as file:
        system = {*file.read().split(), "data"}
    state: Any = _thread._local()  # type: ignore[attr-defined]

    def both(path: Any) -> "Optional[Tuple[str, str, bool]]":
        """Returns both places of a path's first name, the used one first, and whether the path ends with that name.
        Returns None for a name with only one place."""
        path = os.fspath(path)
        path = os.path.normpath(os.path.join(os.getcwd(), path if isinstance(path, str) else os.fsdecode(path)))
        first, *rest = path.lstrip("/").split("/")
        if first == "data" and rest and rest[0] not in system:
            return f"/data/{rest[0]}", f"/{rest[0]}", len(rest) == 1
        if first == "data" and rest and rest[0] in SHARED and not os.path.lexists(f"/data/{rest[0]}"):
            os.symlink(f"/{rest[0]}", f"/data/{rest[0]}")
        return None if first in system or not first else (f"/{first}", f"/data/{first}", not rest)

    def seen(path: Any, making: bool = False) -> None:
        """Handles a path that is about to be used or made."""
        places = None if path is None or isinstance(path, int) else both(path)
        if not places:
            return
        one, other, whole = places
        there, elsewhere = os.path.lexists(one), os.path.lexists(other)
        if elsewhere and not there:
            os.symlink(other, one)
        elif not elsewhere and (there or making and whole):
            os.symlink(one, other)

    def leaving(path: Any) -> None:
        """Handles a path that is about to be removed or renamed."""
        places = both(path)
        if not places or not places[2]:
            return
        one, other, _ = places
        if os.path.islink(one) and os.readlink(one) == other and os.path.lexists(other):
            os.unlink(one)  # rename() cannot replace a symlink by a directory
            os.rename(other, one)
        elif os.path.islink(other) and os.readlink(other) == one:
            os.unlink(other)

    def renamed(source: Any, target: Any, *_: Any) -> None:
        leaving(source)
        leaving(target)
        seen(target, True)

    hooks: Dict[str, Callable[..., Any]] = {
        "open": lambda path, _, flags: seen(path, bool(flags & os.O_CREAT)),
        "os.mkdir": lambda path, *_: seen(path, True), "os.link": lambda _, target, *__: seen(target, True),
        "os.symlink": lambda _, target, *__: seen(target, True), "os.rename": renamed,
        "os.remove": lambda path, *_: leaving(path), "os.rmdir": lambda path, *_: leaving(path),
        "shutil.rmtree": lambda path, *_: leaving(path), "sqlite3.connect": lambda path: seen(path, True),
    }
    for name in ("os.listdir", "os.scandir", "os.chdir", "os.truncate", "os.chmod", "os.utime"):
        hooks[name] = lambda path, *_: seen(path)

    def hook(event: str, arguments: Tuple[Any, ...]) -> None:
        what = hooks.get(event)
        if what is None or getattr(state, "busy", False):
            return
        state.busy = True
        try:
            what(*arguments)
        except (OSError, TypeError, ValueError):  # the call itself will report the error
            pass
        finally:
            state.busy = False

    sys.addaudithook(hook)


HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

try:
    install(HERE)
except OSError:
    pass

if "holt_displays" in sys.modules and os.path.exists(HERE + "/monty.json"):  # in holt's own interpreter
    __import__("holt_monty").install(HERE + "/monty.json")
