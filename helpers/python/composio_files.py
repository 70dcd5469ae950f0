# SPDX-License-Identifier: Apache-2.0
"""The files of composio_helper: it stores them for the host, and extracts their text.

Office documents are zip archives of XML. Both are read with limits, because a document may come from a stranger.
"""

import mimetypes
import os
import re
import secrets
import shutil
import subprocess
import urllib.parse
import zipfile

FILES = "/mnt/files"
STORED = "uploads"  # the directory for files from other places

TEXT_MAX = 16 << 20  # bytes of a document's text
PART_MAX = 64 << 20  # bytes of one unpacked part of an office document
ALL_MAX = 256 << 20  # bytes of all unpacked parts that are read
PARTS_MAX = 2000
TIMEOUT = 120  # seconds of a program that reads a document
PREVIEW_LINES, PREVIEW_COLUMNS = 10, 200


class Unreadable(Exception):
    """A file cannot be stored or read. The message says why."""


# --- storing ---


def key_of(path):
    """Returns the path below /mnt/files."""
    full = os.path.realpath(path)
    if os.path.commonpath((full, os.path.realpath(FILES))) != os.path.realpath(FILES) or full == os.path.realpath(FILES):
        raise Unreadable(f"{path} is not below {FILES}; upload_local_file() stores a file there")
    return os.path.relpath(full, os.path.realpath(FILES))


def url_of(path):
    """Returns the URL of a file below /mnt/files. The host makes a link to it with "holt link"."""
    return "file://" + urllib.parse.quote(f"{FILES}/{key_of(path)}")


def describe(path, make):
    """Returns (make(path), "") for a file, or ("", error)."""
    try:
        found = _place(path)
        if not os.path.isfile(found):
            return "", f"{path} is not a file below {FILES}"
        return make(found), ""
    except (OSError, Unreadable) as error:
        return "", str(error)


def _place(path):
    """A relative path lies below /mnt/files, unless the file is in the working directory."""
    path = os.fspath(path)
    return path if os.path.isabs(path) or os.path.exists(path) else os.path.join(FILES, path)


def _free(name):
    """Returns a path for a new file, in a directory of its own."""
    directory = os.path.join(FILES, STORED, secrets.token_hex(6))
    os.makedirs(directory)
    return os.path.join(directory, name)


def _stored(paths):
    """Returns the path below /mnt/files of a copy of the files. One that lies there already is not copied."""
    for path in paths:
        if not os.path.isfile(path):
            raise Unreadable(f"{path} is not a file")
    if len(paths) == 1:
        try:
            key_of(paths[0])
            return os.path.realpath(paths[0])
        except Unreadable:
            return shutil.copyfile(paths[0], _free(os.path.basename(paths[0])))
    target, names = _free("files.zip"), set()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in paths:
            archive.write(path, _unique(os.path.basename(path), names))
    return target


def _unique(name, names):
    """Returns the name, with a number if another file of the archive has it."""
    stem, suffix = os.path.splitext(name)
    number = 1
    while name in names:
        number += 1
        name = f"{stem}-{number}{suffix}"
    names.add(name)
    return name


def store(paths):
    """See upload_local_file()."""
    try:
        if not paths:
            raise Unreadable("upload_local_file() needs a path")
        path = _stored([os.fspath(each) for each in paths])
        key = key_of(path)
    except (OSError, TypeError, ValueError, Unreadable) as error:
        return {}, str(error)
    return {
        "s3_url": url_of(path), "uploaded_file": os.path.basename(path), "type": mimetypes.guess_type(path)[0] or "application/octet-stream",
        "id": key.split("/")[-2] if key.startswith(f"{STORED}/") else key, "s3key": key, "message": f"stored as {path}",
    }, ""


# --- programs that read documents ---


def _run(argv, package):
    """Runs a program of the system, and returns its output. package: the Debian package that has it."""
    if not shutil.which(argv[0]):
        raise Unreadable(f"{argv[0]} is missing; install the package {package} on the host")
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise Unreadable(f"{argv[0]} needed more than {TIMEOUT} seconds") from None
    if done.returncode != 0:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Unreadable(f"{argv[0]} cannot read the file: {why[-1] if why else f'exit code {done.returncode}'}")
    return _text(done.stdout)


def _pdf(path):
    return _run(["pdftotext", "-layout", os.path.abspath(path), "-"], "poppler-utils")


def _image(path):
    return _run(["tesseract", os.path.abspath(path), "stdout"], "tesseract-ocr")


def _old_office(path):
    raise Unreadable(f"{path} has an old binary format; convert it to docx, xlsx, pptx or PDF")


# --- texts ---


def _text(data):
    """Decodes text, which may be in UTF-8, UTF-16 with a mark, or Latin-1."""
    if len(data) > TEXT_MAX:
        data = data[:TEXT_MAX]
    for encoding in ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "latin-1"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and error.start > len(data) - 4:  # cut by TEXT_MAX
                return data[: error.start].decode(encoding)
    return data.decode("utf-8", "replace")


def _plain(path):
    with open(path, "rb") as file:
        data = file.read(TEXT_MAX + 1)
    if b"\0" in data[:8192] and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise Unreadable(f"{path} is a binary file of an unknown type")
    return _text(data)


# --- office documents ---


def _parts(path, pattern):
    """Yields the unpacked XML of the parts whose names match, in the order of the numbers in their names."""
    with zipfile.ZipFile(path) as archive:
        if len(archive.infolist()) > PARTS_MAX:
            raise Unreadable(f"{path} has more than {PARTS_MAX} parts")
        names = [name for name in archive.namelist() if re.fullmatch(pattern, name)]
        left = ALL_MAX
        for name in sorted(names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]):
            with archive.open(name) as part:
                data = part.read(PART_MAX + 1)
            left -= len(data)
            if len(data) > PART_MAX or left < 0:
                raise Unreadable(f"{path} is too large: unpacked, {name} has more than {min(PART_MAX, left + len(data)) >> 20} MiB")
            yield name, data


def _xml(data):
    """Parses XML without a document type: entities could make it grow without bounds."""
    import xml.etree.ElementTree as ElementTree

    if re.search(rb"<!\s*(DOCTYPE|ENTITY)", data) or b"<\0!" in data or b"\0<\0!" in data:
        raise Unreadable("the document has a document type, which office programs do not write")
    return ElementTree.fromstring(data)


def _local(element):
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


ENDS = {"p": "\n", "h": "\n", "br": "\n", "line-break": "\n", "tr": "\n", "table-row": "\n", "tab": "\t", "tc": "\t", "table-cell": "\t"}
TEXTS = ("t", "p", "h", "span", "a")  # elements whose own text counts


def _walk(root):
    """Yields the text of a document, with line ends after paragraphs. It uses no recursion, because a document may nest deeply."""
    stack = [(root, False)]
    while stack:
        element, done = stack.pop()
        name = _local(element)
        if done:
            yield ENDS.get(name, "")
            continue
        if element.text and name in TEXTS:
            yield element.text
        stack.append((element, True))
        for child in reversed(element):
            if child.tail and name in TEXTS and child.tail.strip():
                stack.append((_tail(child.tail), False))
            stack.append((child, False))


def _tail(text):
    import xml.etree.ElementTree as ElementTree

    element = ElementTree.Element("t")
    element.text = text
    return element


def _document(pattern):
    def read(path):
        pieces, size = [], 0
        for _, data in _parts(path, pattern):
            for piece in _walk(_xml(data)):
                size += len(piece)
                if size > TEXT_MAX:
                    return "".join(pieces)
                pieces.append(piece)
            pieces.append("\n")
        return re.sub(r"\n{3,}", "\n\n", "".join(pieces)).strip() + "\n"

    return read


def _strings(path):
    """Returns the table of a workbook's texts."""
    return [
        "".join(each.text or "" for each in item.iter() if _local(each) == "t")
        for _, data in _parts(path, r"xl/sharedStrings\.xml") for item in _xml(data) if _local(item) == "si"
    ]


def _cell(cell, strings):
    value = next((each.text or "" for each in cell if _local(each) == "v"), None)
    if cell.get("t") == "s" and value is not None and value.isdigit():
        return strings[int(value)] if int(value) < len(strings) else ""
    if cell.get("t") == "inlineStr":
        return "".join(each.text or "" for each in cell.iter() if _local(each) == "t")
    return value or ""


def _workbook(path):
    strings, lines, size = _strings(path), [], 0
    for name, data in _parts(path, r"xl/worksheets/sheet\d+\.xml"):
        lines.append(f"# {os.path.basename(name)[:-4]}")
        for row in (each for each in _xml(data).iter() if _local(each) == "row"):
            lines.append("\t".join(_cell(cell, strings) for cell in row if _local(cell) == "c"))
            size += len(lines[-1])
            if size > TEXT_MAX:
                return "\n".join(lines) + "\n"
    return "\n".join(lines) + "\n"


# --- extraction ---

READERS = {
    ".pdf": _pdf,
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"), _image),
    ".docx": _document(r"word/(document|footnotes|endnotes)\.xml"),
    ".pptx": _document(r"ppt/(slides|notesSlides)/\w+\d+\.xml"),
    **dict.fromkeys((".odt", ".odp", ".ods"), _document(r"content\.xml")),
    ".xlsx": _workbook,
    **dict.fromkeys((".doc", ".xls", ".ppt"), _old_office),
}
STARTS = {b"%PDF-": ".pdf", b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif"}


def _reader(path):
    """Chooses by the suffix, or else by the first bytes."""
    found = READERS.get(os.path.splitext(path)[1].lower())
    if found:
        return found
    with open(path, "rb") as file:
        start = file.read(8)
    return next((READERS[kind] for mark, kind in STARTS.items() if start.startswith(mark)), _plain)


def extract(path, show_preview):
    """See smart_file_extract()."""
    try:
        path = _place(path)
        if not os.path.isfile(path):
            raise Unreadable(f"{path} is not a file")
        text = _reader(path)(path)
    except (OSError, ValueError, SyntaxError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile, Unreadable) as error:
        return "", f"cannot extract the text: {error}"
    if show_preview:
        for line in text.splitlines()[:PREVIEW_LINES]:
            print(line[:PREVIEW_COLUMNS])
    return text, ""
