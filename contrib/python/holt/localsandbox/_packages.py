# SPDX-License-Identifier: Apache-2.0
"""Installs packages inside, when a LocalSandbox starts."""

from __future__ import annotations

from typing import List, Sequence

from .._face import list_of
from .._operations import Steps
from ..errors import UsageError
from ..sandbox import SandboxApi
from ._files import Names
from .exceptions import LocalSandboxError

_INSTALL = """
import sys
from importlib import metadata
sys.path.insert(0, "/run/holt/python")
import holt_packages
for name in sys.argv[1:]:
    package = holt_packages.DISTRIBUTIONS.get(name, name)
    try:
        metadata.distribution(package)
    except (metadata.PackageNotFoundError, ValueError):
        why = holt_packages.refusal() or holt_packages.install(package)
        if why:
            sys.exit(f"{name}: {why}")
"""


def packages_of(packages: Sequence[str]) -> List[str]:
    """Returns names of packages. Raises TypeError for text, and ValueError for an option of pip."""
    try:
        names = list_of(packages, "packages")
    except UsageError as error:
        raise TypeError(str(error)) from error
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a package must be str, not {type(name).__name__}")
        if not name or name.startswith("-"):
            raise ValueError(f"{name!r} is not the name of a package")
    return names


def install(names: Names, packages: Sequence[str]) -> "Steps[None]":
    """Installs the packages that the host's python3 does not have. Raises LocalSandboxError."""
    if not packages:
        return
    done = yield from SandboxApi.exec.steps(
        names.box, ["python3", "-c", _INSTALL, *packages], cwd="/", env=names.environment()
    )
    if not done.ok:
        reason = (done.stderr.strip().splitlines() or [done.cause])[-1]
        raise LocalSandboxError(
            f"cannot install the package {reason}\n  Pass wheels=\"DIR\", a directory of the host that has its wheel."
        )
