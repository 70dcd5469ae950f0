# SPDX-License-Identifier: Apache-2.0
"""Runs programs that were written for the package localsandbox. Change only the import line:

    from holt.localsandbox import LocalSandbox
"""

from . import core, exceptions
from .core import *
from .core import KVStore as KeyValueStore

__all__ = [*core.__all__, "KeyValueStore", "core"]
