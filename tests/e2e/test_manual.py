# SPDX-License-Identifier: Apache-2.0
"""The manual and "holt --help" describe the same verbs and options."""

from __future__ import annotations

import re

from lib.paths import PROJECT, built_holt
from lib.sandbox import Holt
from lib.tools import needs


def verbs_of(holt: Holt) -> list[str]:
    return re.findall(r"^  ([a-z]+) {2}", holt(["--help"]).ok().out.partition("Options:")[0], re.M)


def options_of(holt: Holt, verb: str) -> set[str]:
    return set(re.findall(r"^  (--?[a-z][a-z0-9-]*)", holt([verb, "--help"]).ok().out, re.M))


def source_of(verb: str) -> str:
    """The source of the verb's page, which other verbs may share."""
    page = (built_holt().parent.parent / "man" / f"holt-{verb}.1").read_text()
    shared = re.fullmatch(r"\.so man1/(\S+)\n", page)
    return (PROJECT / "man" / f"{shared[1] if shared else f'holt-{verb}.1'}.scd").read_text()


def test_the_usage_of_a_verb_has_its_options(holt: Holt) -> None:
    """It names each option by one of its forms, or says OPTIONS."""
    for verb in set(verbs_of(holt)) - {"help", "bwrap"}:
        text = holt([verb, "--help"]).ok().out
        usage = text.partition("\n\n")[0]
        short = dict(re.findall(r"^  (-[a-z]) .* short for (--[a-z-]+)$", text, re.M))
        forms = [{long, *(s for s, of in short.items() if of == long)} for long in options_of(holt, verb) - {"--help", *short}]
        assert "OPTIONS" in usage or not [names for names in forms if not any(name in usage for name in names)], verb


@needs("scdoc")
def test_each_verb_has_a_page(holt: Holt) -> None:
    verbs = verbs_of(holt)

    assert {"run", "sh", "help"} <= set(verbs)
    for verb in verbs:
        assert f"*holt {verb}" in source_of(verb)


@needs("scdoc")
def test_each_option_is_on_its_page(holt: Holt) -> None:
    """holt create has the policy's options, which holt-run(1) describes."""
    for verb in set(verbs_of(holt)) - {"help"}:
        text = source_of(verb) + (source_of("run") if verb == "create" else "")
        assert not [o for o in options_of(holt, verb) if f"*{o}*" not in text], verb


@needs("scdoc")
def test_each_option_of_a_page_exists(holt: Holt) -> None:
    """holt policy show takes the options of holt run; the options of holt itself are in holt(1)."""
    options: dict[str, set[str]] = {}
    for verb in set(verbs_of(holt)) - {"help", "policy"}:
        options.setdefault(source_of(verb), {"--help"}).update(options_of(holt, verb))

    for text, known in options.items():
        terms = re.findall(r"^\*-.*", text, re.M)
        described = {option for term in terms for option in re.findall(r"\*(--?[a-z0-9-]+)\*", term)}
        assert described <= known
