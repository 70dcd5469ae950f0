# SPDX-License-Identifier: Apache-2.0
"""Comments, docstrings and pages of text are plain English, as far as tests/lib/english.py can count."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib import english

SAMPLE = """\
// SPDX-License-Identifier: Apache-2.0
// Of one. Two is fine. "What" is this? `as` is code; who is in the middle.
//
//     where this is an example
//
// - who is an item
//   that goes on. As it goes.
const char *x = "// what"; // of x
const char c = '"'; // Something, as C has it.
"""

FILES = english.files_by_folder()


@pytest.mark.parametrize("folder", sorted(FILES))
def test_few_sentences_are_hard_to_read(folder: str) -> None:
    found = english.sentences_in(FILES[folder])
    odd = [(fault, each) for fault in english.FAULTS for each in english.too_many(found, fault)]
    assert not odd, "\n".join(f"{each.path.relative_to(english.ROOT)}:{each.line}: {fault}: {each.text}" for fault, each in odd)


def test_the_counter_finds_them() -> None:
    sentences = [*english.sentences(Path("sample.c"), "c", SAMPLE)]
    found = [(sentence.line, sentence.text.split()[0]) for sentence in sentences if sentence.odd]
    assert found == [(2, "Of"), (2, '"What"'), (6, "who"), (7, "As"), (8, "of")]
    assert len(sentences) == 8


@pytest.mark.parametrize("words, is_long", [(english.WORDS_MAX, False), (english.WORDS_MAX + 1, True)])
def test_the_counter_finds_long_sentences(words: int, is_long: bool) -> None:
    source = '"""' + " ".join(["word"] * words) + '."""\n'
    assert [sentence.long for sentence in english.sentences(Path("sample.py"), "python", source)] == [is_long]


@pytest.mark.parametrize("fault, text", (
    ("twice", "A file that is not open cannot be read without a lock."),
    ("twice", "It does nothing unless asked."),
    ("private", "It takes nothing but time."),
    ("private", "A status other than 0 is an error."),
    ("private", "It lacks a name."),
    ("", "It takes neither the file nor the link."),
    ("", "Without a network, it does not start."),
    ("", "The option --no-config is not read."),
    ("", 'It prints "no session, nothing but dust", and not more.'),
))
def test_the_counter_finds_other_faults(fault: str, text: str) -> None:
    (sentence,) = english.sentences(Path("sample.c"), "c", f"// {text}\n")
    assert [name for name in english.FAULTS if getattr(sentence, name)] == [fault] * bool(fault)


PAGE = """\
# What is this
The *first* part is here. **Bold text.** Of the second part.

| of a cell | text |
|---|---|

- an item
  that goes on
- where another is

```
as code
```

*--option* _X_
\tWho reads this. It ends.
"""


def test_the_counter_reads_pages() -> None:
    sentences = [*english.sentences(Path("sample.scd"), "page", PAGE)]
    assert [(each.line, each.text.split()[0]) for each in sentences if each.odd] == [(2, "Of"), (4, "of"), (9, "where"), (16, "Who")]
    assert len(sentences) == 9
