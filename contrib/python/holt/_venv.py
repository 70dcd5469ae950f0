# SPDX-License-Identifier: Apache-2.0
"""Makes the packages of a virtual environment importable inside.

Only the environment's site-packages is shown, read-only. Its interpreter is not: that is a symlink to a Python of the
host, which may lie anywhere. Code inside runs with the sandbox's own python3, so both versions must agree.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from typing import Optional, Tuple, Union

from ._warnings import warn
from .errors import UsageError

Venv = Union[bool, str, "os.PathLike[str]", None]

_PATH = "/usr/local/bin:/usr/bin:/bin"  # the directories that python3 inside comes from

_TARGET = "/opt/venv"


def _place_of(venv: Venv) -> Optional[str]:
    """Returns the directory of the environment, or None for no environment. Raises UsageError."""
    if venv is None or venv is False:
        return None
    if venv is True:
        if sys.prefix == sys.base_prefix:
            raise UsageError(
                "venv=True needs a virtual environment, and this program does not run in one",
                hint='Start it with the python of the environment, or pass its directory: venv="DIR".',
            )
        return sys.prefix
    if not isinstance(venv, (str, os.PathLike)) or not os.path.isfile(os.path.join(venv, "pyvenv.cfg")):
        raise UsageError(
            f"venv={venv!r} is not a virtual environment: it has no pyvenv.cfg",
            hint="Pass the directory that python3 -m venv has made.",
        )
    return os.fspath(venv)


def _site_of(place: str) -> Tuple[str, str]:
    """Returns the environment's site-packages, and its version of Python, such as "3.11"."""
    found = sorted(glob.glob(os.path.join(glob.escape(place), "lib", "python3.*", "site-packages")))
    if len(found) != 1:
        raise UsageError(f"{place}: a virtual environment must have one lib/python3.*/site-packages, not {len(found)}")
    site, top = os.path.realpath(found[0]), os.path.realpath(place)
    if not site.startswith(f"{top.rstrip('/')}/"):
        raise UsageError(
            f"{found[0]} leads out of the virtual environment",
            hint="holt shows only packages that are in the environment itself.",
        )
    return site, os.path.basename(os.path.dirname(found[0]))[len("python") :]


def _version_inside() -> Optional[str]:
    """Returns the version of the python3 that the sandbox has, or None if it is unknown."""
    program = shutil.which("python3", path=_PATH)
    if not program:
        return None
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-I", "-c", code], stdout=subprocess.PIPE, timeout=30, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def shown(venv: Venv) -> Optional[Tuple[str, str]]:
    """Returns the mount (PATH:TARGET) and the directory inside for PYTHONPATH, or None. Raises UsageError. Warns if the
    environment is for another version of Python than the one inside."""
    place = _place_of(venv)
    if place is None:
        return None
    site, version = _site_of(place)
    inside = _version_inside()
    if inside and inside != version:
        warn(
            f"the virtual environment {place} is for Python {version}, and the sandbox has Python {inside}: compiled packages "
            f"cannot be imported there. Make the environment with /usr/bin/python3."
        )
    target = f"{_TARGET}/lib/python{version}/site-packages"
    return f"{site}:{target}", target
