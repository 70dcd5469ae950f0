# SPDX-License-Identifier: Apache-2.0
"""Counts sentences that are hard to read, in comments, docstrings, Markdown pages and man pages.

    python3 tests/lib/english.py [PATH…]        prints the numbers of each folder; default: the whole project
    python3 tests/lib/english.py -v [PATH…]     prints each of these sentences, too

A sentence may have these faults:

odd      It begins with "what", "who", "of", "where" or "as": with a clause or a fragment. Plain English names the thing first.
long     It has more than 25 words.
twice    One of its clauses negates twice.
private  It uses a common word in a rare sense: "nothing but", "all but", "other than", "has to be" or "lacks".
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import sys
import textwrap
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import Iterator, NamedTuple

ROOT = Path(__file__).resolve().parents[2]

# The largest allowed share of sentences with one fault in a folder or page, and the largest number of words in a sentence.
SHARE_MAX, WORDS_MAX = 0.01, 25

TOPS = (
    ".ci", "check", "contrib", "helpers", "man", "meson.build", "meson_options.txt", "policy", "runner", "setup", "tests",
    *sorted(path.name for path in ROOT.glob("*.md")),
)
C_LIKE, HASH_LIKE, PAGES = {".c", ".h", ".S", ".ts", ".mjs"}, {".sh", ".bash", ".zsh", ".fish"}, {".md", ".scd"}

# Files and directories that nobody edits. protocol.ts has its sentences from tables in C.
SKIPPED = {"__pycache__", "corpus", "node_modules", "dist", "out", "protocol.ts"}

ODD_START = re.compile(r"\W*\b(?<!`)(what|who|of|where|as)\b", re.IGNORECASE)
PRIVATE = re.compile(
    r"\b(?:nothing|nobody|none|all|any(?:thing|body)?|every(?:thing|body)?) but\b|\bother than\b|\bha(?:s|ve) to be\b|\black(?:s|ing)?\b",
    re.IGNORECASE,
)

# A negation. "None" in Python, words in quotes and options such as --no-config are none; "neither … nor" counts once.
NEGATION = re.compile(r"(?<![-\w`\"'$=])(?:no|not|never|nobody|nothing|none|neither|without|cannot|unless|[a-z]+n't)(?![-\w`\"'=])")
QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`|\([^)]*\)")
CLAUSE_END = re.compile(r"[,;:]| (?:and|or|but|if|that|which|because|so|than|while|when) ")

# Headings, pictures, and code that is indented; items of a list and cells of a table in scdoc.
PAGE_SKIPPED = re.compile(r"#|!\[| {4}|\t?\$ |\t?\{|\tholt (?:cp|exec|files) |\tfrom |.*\+\+$")
PAGE_ITEM = re.compile(r"\s*([-*•]|\d+\.)\s|[:|\]]")

LICENCE = re.compile(r"SPDX-License-Identifier|clang-format (on|off)|NOLINT|^!/|fall ?through", re.IGNORECASE)
LIST_ITEM = re.compile(r"\s*([-*•]|\d+[.)])\s+")
TABLE_ROW = re.compile(r".*\S {2,}(?=\S)")
SENTENCE_END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<!cf\.)(?<=[.!?])[\"')*\]]*\s+")

# The patterns also match literals, so that comment signs inside them do not count.
C_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL)
HASH_TOKEN = re.compile(r"""'''.*?'''|'[^']*'|"(?:\\.|[^"\\])*"|\\.|\$#|\$\{[^}]*\}|(?<!\S)\#[^\n]*""", re.DOTALL)


class Sentence(NamedTuple):
    path: Path
    line: int
    text: str

    @property
    def odd(self) -> bool:
        return " " in self.text and ODD_START.match(self.text) is not None

    @property
    def long(self) -> bool:
        return sum(1 for word in self.text.split() if re.search(r"\w", word)) > WORDS_MAX

    @property
    def twice(self) -> bool:
        return any(len(NEGATION.findall(clause)) > 1 for clause in CLAUSE_END.split(QUOTED.sub("", self.text)))

    @property
    def private(self) -> bool:
        return PRIVATE.search(QUOTED.sub("", self.text)) is not None


FAULTS = ("odd", "long", "twice", "private")


class Piece(NamedTuple):
    """One comment token: its line and column, whether code stands before it, and its text."""

    line: int
    column: int
    trailing: bool
    text: str


def language(path: Path) -> str:
    """The kind of comments in a file: "c", "hash" or "python"; "page" for a page of text, and "" for other files."""
    if path.suffix in PAGES:
        return "page"
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


def page_blocks(source: str) -> "Iterator[tuple[int, str]]":
    """The paragraphs, list items and table cells of a page in Markdown or scdoc, without code, headings and terms."""
    code, start = False, 0
    lines: "list[str]" = []
    page = [*source.split("\n"), "", ""]
    for number, (text, following) in enumerate(zip(page, page[1:]), 1):
        fence = text.startswith("```")
        cells = [cell.strip() for cell in text.strip("|").split(" | ")] if text.startswith("|") else []
        is_term = not text.startswith("\t") and following.startswith("\t")
        skipped = code or fence or cells or is_term or not text.strip() or PAGE_SKIPPED.match(text)
        if lines and (skipped or PAGE_ITEM.match(text)):
            yield start, "\n".join(lines)
            lines = []
        yield from ((number, cell) for cell in cells)
        if not skipped:
            start = start if lines else number
            lines.append(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text.strip()))
        code ^= fence


def comments_of(kind: str, source: str) -> "list[tuple[int, str]]":
    if kind == "c":
        return [*blocks(pieces_by(C_TOKEN, ("//", "/*"), source))]
    if kind == "page":
        return [*page_blocks(source)]
    if kind == "hash":
        return [*blocks(pieces_by(HASH_TOKEN, ("#",), source))]
    return sorted([*blocks(python_pieces(source)), *docstrings(source)])


def sentences(path: Path, kind: str, source: str) -> "Iterator[Sentence]":
    for line, comment in comments_of(kind, source):
        for paragraph in paragraphs(line, comment):
            for start, text in sentences_of(paragraph):
                yield Sentence(path, start, text)


def below(directory: Path) -> "Iterator[Path]":
    for place, directories, names in os.walk(directory):
        directories[:] = sorted({*directories} - SKIPPED)
        yield from (Path(place, name) for name in sorted({*names} - SKIPPED))


def files(paths: "list[Path]") -> "Iterator[Path]":
    for path in paths:
        for each in below(path) if path.is_dir() else [path]:
            if each.is_file() and not each.is_symlink() and language(each):
                yield each


def folder(path: Path) -> str:
    """Returns a page itself, and of a source the two outer folders, or one if its inner folders are not separate subjects."""
    if path.suffix in PAGES:
        return str(path.resolve().relative_to(ROOT))
    parts = path.resolve().relative_to(ROOT).parts[:-1]
    return "/".join(parts[: 2 if parts and parts[0] in ("runner", "tests", "contrib") else 1]) or "."


def files_by_folder(paths: "list[Path] | None" = None) -> "dict[str, list[Path]]":
    found: "dict[str, list[Path]]" = defaultdict(list)
    for path in files(paths or [ROOT / top for top in TOPS if (ROOT / top).exists()]):
        found[folder(path)].append(path)
    return dict(sorted(found.items()))


def sentences_in(paths: "list[Path]") -> "list[Sentence]":
    return [sentence for path in paths for sentence in sentences(path, language(path), path.read_text())]


def too_many(found: "list[Sentence]", fault: str) -> "list[Sentence]":
    """Returns the sentences with this fault if there are more than a share of SHARE_MAX; one is always allowed."""
    faulty = [sentence for sentence in found if getattr(sentence, fault)]
    return faulty if len(faulty) > max(1, SHARE_MAX * len(found)) else []


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the sentences that are hard to read.")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each of these sentences")
    parser.add_argument("paths", nargs="*", type=Path)
    options = parser.parse_args()
    found = {name: sentences_in(paths) for name, paths in files_by_folder(options.paths).items()}
    for name, of_folder in found.items():
        for sentence in of_folder if options.verbose else ():
            for fault in (fault for fault in FAULTS if getattr(sentence, fault)):
                print(f"{sentence.path.resolve().relative_to(ROOT)}:{sentence.line}: {fault}: {sentence.text}")
        counts = ", ".join(f"{sum(getattr(each, fault) for each in of_folder):3} {fault}" for fault in FAULTS)
        print(f"{name:24} {len(of_folder):5} sentences: {counts}")
    return any(too_many(of_folder, fault) for of_folder in found.values() for fault in FAULTS)


if __name__ == "__main__":
    sys.exit(main())
