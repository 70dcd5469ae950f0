# SPDX-License-Identifier: Apache-2.0
"""The text of office documents, which are zip archives of XML.

A document may come from a stranger. So its XML is parsed as a stream: a tree would need twenty times the memory of the text.
The sizes of unpacked parts and of the text are limited, and a document type is refused.
"""

import os
import re
import zipfile
import zlib
from xml.parsers import expat

TEXT_MAX = 16 << 20  # characters of a document's text
PART_MAX = 64 << 20  # bytes of one unpacked part of an office document
ALL_MAX = 256 << 20  # bytes of all unpacked parts that are read
TOKEN_MAX = 1 << 20  # bytes of one tag or comment: expat reads an incomplete one again for each piece, so the time grows with the square
PARTS_MAX = 2000
DEPTH_MAX = 1000  # nested elements
STRINGS_MAX = 1 << 20  # texts in the table of a workbook
COLUMNS_MAX = 16384


class Unreadable(Exception):
    """A file cannot be stored or read. The message says why."""


class _Full(Exception):
    """The text has reached its limit."""


class _Collected:
    """A text in pieces, up to TEXT_MAX."""

    def __init__(self):
        self.pieces, self.left = [], TEXT_MAX

    def add(self, text):
        self.pieces.append(text[: self.left])
        self.left -= len(text)
        if self.left < 0:
            raise _Full

    def text(self):
        return "".join(self.pieces)


# --- XML ---


def _local(name):
    return name.rpartition(" ")[2]


class _Walk:
    """Parses XML as a stream. Subclasses get each element by its local name, except those in an element of SKIPPED. They also
    get the text that is in an element of TEXTS."""

    TEXTS = SKIPPED = frozenset()

    def __init__(self, out):
        self.out, self.depth, self.inside, self.skipping = out, 0, 0, 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse

    def _refuse(self, *_):
        raise Unreadable("the document has a document type, which office programs do not write")  # entities could expand without end

    def _start(self, name, attributes):
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Unreadable("the elements of the document are nested too deeply")
        name = _local(name)
        self.skipping += name in self.SKIPPED
        if not self.skipping:
            self.inside += name in self.TEXTS
            self.begin(name, {_local(key): value for key, value in attributes.items()})

    def _end(self, name):
        self.depth -= 1
        name = _local(name)
        if not self.skipping:
            self.finish(name)
            self.inside -= name in self.TEXTS
        self.skipping -= name in self.SKIPPED

    def _text(self, text):
        if self.inside and not self.skipping:
            self.take(text)

    def begin(self, name, attributes):
        """Handles the start of an element."""

    def finish(self, name):
        """Handles the end of an element."""

    def take(self, text):
        self.out.add(text)


class _Prose(_Walk):
    """Word processing and slides of Microsoft Office. Cells of a table are separated by tabs."""

    TEXTS = frozenset(("t",))
    SKIPPED = frozenset(("tabs", "Fallback"))  # positions of tabs, and copies for old programs

    def __init__(self, out):
        super().__init__(out)
        self.cells, self.is_first = 0, True  # open cells of tables; whether no cell of the row has begun

    def begin(self, name, attributes):
        if name in ("tc", "table-cell"):
            self.out.add("" if self.is_first else "\t")
            self.cells, self.is_first = self.cells + 1, False
        elif name in ("tr", "table-row"):
            self.is_first = True
        elif name == "tab":
            self.out.add("\t")
        elif name in ("br", "line-break"):
            self.out.add("\n")

    def finish(self, name):
        if name in ("tc", "table-cell"):
            self.cells -= 1
        elif name in ("p", "h"):
            self.out.add(" " if self.cells else "\n")
        elif name in ("tr", "table-row"):
            self.out.add("\n")


class _OpenProse(_Prose):
    """All documents of OpenDocument, whose text is directly in paragraphs and headings."""

    TEXTS = frozenset(("p", "h"))
    SKIPPED = frozenset(("tracked-changes", "annotation"))

    def begin(self, name, attributes):
        if name == "s":  # repeated spaces
            count = attributes.get("c", "1")
            self.out.add(" " * (min(int(count), 1000) if count.isdecimal() and len(count) < 9 else 1))
        super().begin(name, attributes)


class _Strings(_Walk):
    """The shared strings of a workbook."""

    TEXTS = frozenset(("t",))
    SKIPPED = frozenset(("rPh",))  # a reading aid, which repeats the text

    def __init__(self, out):
        super().__init__(out)
        self.strings = []

    def finish(self, name):
        if name == "si":
            self.strings.append(self.out.text())
            self.out.pieces.clear()
            if len(self.strings) > STRINGS_MAX:
                raise Unreadable("the workbook has too many strings")


class _Sheet(_Walk):
    """The cells of a worksheet: a line for each row, with tabs between columns."""

    TEXTS = frozenset(("v", "t"))

    def __init__(self, out, strings):
        super().__init__(out)
        self.strings, self.kind, self.value, self.column = strings, "", [], -1

    def begin(self, name, attributes):
        if name == "row":
            self.column = -1
        elif name == "c":
            self.kind, self.value = attributes.get("t", ""), []
            column = self._column(attributes.get("r", ""))
            self.out.add("\t" * (column - max(0, self.column)))
            self.column = column

    def _column(self, reference):
        """The number of a cell's column; "C5" is in column 2."""
        number = 0
        for letter in re.match("[A-Z]{0,3}", reference)[0]:
            number = number * 26 + ord(letter) - 64
        return min(number - 1, COLUMNS_MAX) if number else self.column + 1

    def take(self, text):
        self.value.append(text)

    def finish(self, name):
        if name == "c":
            self.out.add(self._shown("".join(self.value)))
        elif name == "row":
            self.out.add("\n")

    def _shown(self, value):
        if self.kind == "s":
            return self.strings[int(value)] if value.isdecimal() and len(value) < 9 and int(value) < len(self.strings) else ""
        return {"1": "TRUE", "0": "FALSE"}.get(value, value) if self.kind == "b" else value


# --- archives ---


class _Parts:
    """The parts of an office document. Their unpacked bytes are counted, whatever the archive says about them."""

    def __init__(self, path, archive):
        self.path, self.archive, self.left = path, archive, ALL_MAX
        if len(archive.infolist()) > PARTS_MAX:
            raise Unreadable(f"{path} has more than {PARTS_MAX} parts")

    def like(self, pattern):
        """The names that match, in the order of the numbers in them."""
        names = [name for name in self.archive.namelist() if re.fullmatch(pattern, name)]
        return sorted(names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])

    def walk(self, name, walk):
        """Parses a part. The methods of walk get its elements and texts."""
        if self.archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Unreadable(f"{self.path} is compressed in a way that office programs do not use")
        left = most = min(PART_MAX, self.left)
        with self.archive.open(name) as part:
            while data := part.read(1 << 16):
                left -= len(data)
                if left < 0:
                    raise Unreadable(f"{self.path} is too large: unpacked, {name} has more than {most >> 20} MiB")
                walk.parser.Parse(data, False)
                if most - left - walk.parser.CurrentByteIndex > TOKEN_MAX:
                    raise Unreadable(f"a tag or a comment in {name} has more than {TOKEN_MAX >> 20} MiB")
        walk.parser.Parse(b"", True)
        self.left -= most - left
        return walk


def _reader(read):
    """Makes a function that returns the text of the file at a path, from one that adds the text of parts."""

    def reader(path):
        out = _Collected()
        try:
            with zipfile.ZipFile(path) as archive:
                read(_Parts(path, archive), out)
        except _Full:
            pass
        except (expat.ExpatError, zlib.error, EOFError) as error:
            raise Unreadable(f"{path} is damaged: {error}") from None
        return re.sub(r"\n{3,}", "\n\n", out.text()).strip("\n") + "\n"

    return reader


def _prose(*patterns, walk=_Prose):
    def read(parts, out):
        for pattern in patterns:
            for name in parts.like(pattern):
                parts.walk(name, walk(out))
                out.add("\n")

    return _reader(read)


def _sheets(parts, out):
    strings = []
    for name in parts.like(r"xl/sharedStrings\.xml"):
        strings = parts.walk(name, _Strings(_Collected())).strings
    for name in parts.like(r"xl/worksheets/sheet\d+\.xml"):
        out.add(f"# {os.path.basename(name)[:-4]}\n")
        parts.walk(name, _Sheet(out, strings))


word = _prose(r"word/document\.xml", r"word/(footnotes|endnotes)\.xml")
slides = _prose(r"ppt/slides/slide\d+\.xml", r"ppt/notesSlides/notesSlide\d+\.xml")
open_document = _prose(r"content\.xml", walk=_OpenProse)
workbook = _reader(_sheets)
