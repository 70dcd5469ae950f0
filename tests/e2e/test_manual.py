# SPDX-License-Identifier: Apache-2.0
"""The manual has what "holt --help" sends its reader there for."""

from __future__ import annotations

import re

from lib.paths import PROJECT, built_holt
from lib.sandbox import Holt
from lib.tools import needs


@needs("scdoc")
def test_each_verb_has_a_page(holt: Holt) -> None:
    verbs = re.findall(r"^  ([a-z]+) {2}", holt(["--help"]).ok().out.partition("Options:")[0], re.M)
    pages = built_holt().parent.parent / "man"

    assert {"run", "sh", "help"} <= set(verbs)
    for verb in verbs:
        shared = re.fullmatch(r"\.so man1/(\S+)\n", (pages / f"holt-{verb}.1").read_text())
        page = shared[1] if shared else f"holt-{verb}.1"
        assert (pages / page).is_file()
        assert f"*holt {verb}" in (PROJECT / "man" / f"{page}.scd").read_text()
