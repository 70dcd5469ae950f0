# SPDX-License-Identifier: Apache-2.0
"""Counts sentences in comments and docstrings that begin with "what", "who", "of", "where" or "as".

    python3 tests/lib/english.py [PATH…]        prints the share of each folder; default: the whole project
    python3 tests/lib/english.py -v [PATH…]     prints each of these sentences too, and each that is too long

Such a sentence starts with a clause or a fragment, and names its subject late or never. Plain English names the thing first.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import textwrap
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import Iterator, NamedTuple

ROOT = Path(__file__).resolve().parents[2]

# The largest allowed share of odd sentences in a folder, and the largest number of words in a sentence.
SHARE_MAX, WORDS_MAX = 0.03, 25

TOPS = (".ci", "check", "contrib", "helpers", "meson.build", "meson_options.txt", "policy", "runner", "setup", "tests")
C_LIKE, HASH_LIKE = {".c", ".h", ".S"}, {".sh", ".bash", ".zsh", ".fish"}

ODD_START = re.compile(r"\W*\b(?<!`)(what|who|of|where|as)\b", re.IGNORECASE)
LICENCE = re.compile(r"SPDX-License-Identifier|clang-format (on|off)|NOLINT|^!/|fall ?through", re.IGNORECASE)
LIST_ITEM = re.compile(r"\s*([-*•]|\d+[.)])\s+")
TABLE_ROW = re.compile(r".*\S {2,}(?=\S)")
SENTENCE_END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<!cf\.)(?<=[.!?])[\"')\]]*\s+")

# The patterns also match literals, so that comment signs inside them do not count.
C_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
HASH_TOKEN = re.compile(r"""'''.*?'''|'[^']*'|"(?:\\.|[^"\\])*"|\\.|\$#|\$\{[^}]*\}|(?<!\S)\#[^\n]*""", re.DOTALL)


class Sentence(NamedTuple):
    path: Path
    line: int
    text: str

    @property
    def odd(self) -> bool:
        return ODD_START.match(self.text) is not None

    @property
    def long(self) -> bool:
        return sum(1 for word in self.text.split() if re.search(r"\w", word)) > WORDS_MAX


class Piece(NamedTuple):
    """One comment token: its line and column, whether code stands before it, and its text."""

    line: int
    column: int
    trailing: bool
    text: str


def language(path: Path) -> str:
    """The kind of comments in a file: "c", "hash" or "python"; "" for a file without code."""
    if path.suffix in C_LIKE:
        return "c"
    if path.suffix == ".py":
        return "python"
    if path.suffix in HASH_LIKE or path.name in ("meson.build", "meson_options.txt"):
        return "hash"
    if path.suffix:
        return ""
    with path.open("rb") as file:
        first = file.readline(80)
    return "" if not first.startswith(b"#!") else "python" if b"python" in first else "hash"


def pieces_by(pattern: "re.Pattern[str]", opening: "tuple[str, ...]", source: str) -> "Iterator[Piece]":
    for match in pattern.finditer(source):
        if not match[0].startswith(opening):
            continue
        start = source.rfind("\n", 0, match.start()) + 1
        before = source[start : match.start()]
        yield Piece(source.count("\n", 0, match.start()) + 1, len(before), bool(before.strip()), match[0])


def python_pieces(source: str) -> "Iterator[Piece]":
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            yield Piece(line, column, bool(token.line[:column].strip()), token.string)


def blocks(pieces: "Iterator[Piece]") -> "Iterator[tuple[int, str]]":
    """Joins comments on consecutive lines, and removes the comment signs."""
    line, lines, last = 0, [], None
    for piece in pieces:
        text = re.sub(r"^(//+[!<]?|/\*+|#+:?)|\*+/$", "", piece.text)
        text = re.sub(r"\n\s*\*(?!\*)", "\n", text)
        follows = last and piece.line == last.line + 1 and not piece.trailing and piece.column == last.column
        if follows and not piece.text.startswith("/*"):
            lines.append(text)
        else:
            if lines:
                yield line, "\n".join(lines)
            line, lines = piece.line, [text]
        last = piece
    if lines:
        yield line, "\n".join(lines)


def docstrings(source: str) -> "Iterator[tuple[int, str]]":
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, holders) and node.body and isinstance(node.body[0], ast.Expr):
            value = node.body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.lineno, value.value


def prose(comment: str) -> "list[str]":
    """The lines of a comment without the indentation that they share; the first line of a docstring has none."""
    first, newline, rest = comment.partition("\n")
    if first.startswith(" "):
        return textwrap.dedent(comment).split("\n")
    return [first, *textwrap.dedent(rest).split("\n")] if newline else [first]


def paragraphs(line: int, comment: str) -> "Iterator[list[tuple[int, str]]]":
    """The numbered lines of each paragraph, list item and row of a table; indented code is left out."""
    found: "list[tuple[int, str]]" = []
    item = False
    for number, text in enumerate(prose(comment), line):
        starts = LIST_ITEM.match(text) or TABLE_ROW.match(text)
        skipped = not text.strip() or LICENCE.search(text) or (not starts and not item and not found and text.startswith("  "))
        if found and (starts or skipped):
            yield found
            found = []
        item = bool(starts) or (item and not skipped)
        if not skipped:
            found.append((number, (text[starts.end() :] if starts else text).strip()))
    if found:
        yield found


def sentences_of(paragraph: "list[tuple[int, str]]") -> "Iterator[tuple[int, str]]":
    text = " ".join(part for _, part in paragraph)
    starts = [0, *(match.end() for match in SENTENCE_END.finditer(text))]
    for start, end in zip(starts, [*starts[1:], len(text)]):
        offset, line = 0, paragraph[0][0]
        for number, part in paragraph:
            if offset > start:
                break
            line, offset = number, offset + len(part) + 1
        if re.search(r"[A-Za-z]", text[start:end]):
            yield line, text[start:end].strip()


def comments_of(kind: str, source: str) -> "list[tuple[int, str]]":
    if kind == "c":
        return [*blocks(pieces_by(C_TOKEN, ("//", "/*"), source))]
    if kind == "hash":
        return [*blocks(pieces_by(HASH_TOKEN, ("#",), source))]
    return sorted([*blocks(python_pieces(source)), *docstrings(source)])


def sentences(path: Path, kind: str, source: str) -> "Iterator[Sentence]":
    for line, comment in comments_of(kind, source):
        for paragraph in paragraphs(line, comment):
            for start, text in sentences_of(paragraph):
                yield Sentence(path, start, text)


def files(paths: "list[Path]") -> "Iterator[Path]":
    for path in paths:
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if each.is_file() and not each.is_symlink() and not {"__pycache__", "corpus"} & {*each.parts}:
                yield each


def folder(path: Path) -> str:
    """Returns the two outer folders of a source, or one if its inner folders are not separate subjects."""
    parts = path.resolve().relative_to(ROOT).parts[:-1]
    return "/".join(parts[: 2 if parts and parts[0] in ("runner", "tests", "contrib") else 1]) or "."


def by_folder(paths: "list[Path] | None" = None) -> "dict[str, list[Sentence]]":
    found: "dict[str, list[Sentence]]" = defaultdict(list)
    for path in files(paths or [ROOT / top for top in TOPS if (ROOT / top).exists()]):
        kind = language(path)
        if kind:
            found[folder(path)] += sentences(path, kind, path.read_text())
    return dict(sorted(found.items()))


def share(found: "list[Sentence]") -> float:
    return sum(sentence.odd for sentence in found) / len(found) if found else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the comment sentences that begin oddly.")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each odd or long sentence")
    parser.add_argument("paths", nargs="*", type=Path)
    options = parser.parse_args()
    found = by_folder(options.paths)
    for name, of_folder in found.items():
        for sentence in of_folder if options.verbose else ():
            for fault in ("odd",) * sentence.odd + ("long",) * sentence.long:
                print(f"{sentence.path.resolve().relative_to(ROOT)}:{sentence.line}: {fault}: {sentence.text}")
        odd, long = sum(each.odd for each in of_folder), sum(each.long for each in of_folder)
        print(f"{name:24} {share(of_folder):6.1%}  {odd:4} of {len(of_folder):5} sentences, {long:4} over {WORDS_MAX} words")
    total = [sentence for of_folder in found.values() for sentence in of_folder]
    print(f"{'all':24} {share(total):6.1%}  {sum(each.odd for each in total):4} of {len(total):5} sentences")
    return share(total) > SHARE_MAX


if __name__ == "__main__":
    sys.exit(main())
