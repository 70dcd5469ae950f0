# SPDX-License-Identifier: Apache-2.0
"""The files of composio_helper: it stores them for the host, and extracts their text."""

import mimetypes
import os
import resource
import secrets
import shutil
import signal
import subprocess
import tempfile
import urllib.parse
import zipfile

import composio_office
from composio_office import Unreadable

FILES = "/mnt/files"
STORED = "uploads"  # the directory for files from other places

TEXT_MAX = 16 << 20  # bytes of a document's text
OUTPUT_MAX = 4 * TEXT_MAX  # bytes that a program may write
TIMEOUT = 120  # seconds of a program that reads a document
PREVIEW_LINES, PREVIEW_COLUMNS = 10, 200


# --- storing ---


def key_of(path):
    """Returns the path below /mnt/files."""
    full = os.path.realpath(path)
    if os.path.commonpath((full, os.path.realpath(FILES))) != os.path.realpath(FILES) or full == os.path.realpath(FILES):
        raise Unreadable(f"{path} is not below {FILES}; upload_local_file() stores a file there")
    return os.path.relpath(full, os.path.realpath(FILES))


def url_of(path):
    """Returns the URL of a file below /mnt/files. Without links in the policy, it is only a name: "holt link" makes a link."""
    import host_tools

    key = key_of(path)
    try:
        return host_tools.link(key)
    except RuntimeError as error:
        if not str(error).startswith(("[permission_error]", "[internal_error]")):
            raise Unreadable(str(error).partition("] ")[2]) from None
        return "file://" + urllib.parse.quote(f"{FILES}/{key}")


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


def _limit():
    """Limits a program before it starts. A small document can have very much text."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_MAX, OUTPUT_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _run(argv, package):
    """Runs a program of the system, and returns its output. package: the Debian package that has it."""
    if not shutil.which(argv[0]):
        raise Unreadable(f"{argv[0]} is missing; install the package {package} on the host")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:  # in memory, both could grow without bounds
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=TIMEOUT, preexec_fn=_limit)
        except subprocess.TimeoutExpired:
            raise Unreadable(f"{argv[0]} needed more than {TIMEOUT} seconds") from None
        out.seek(0)
        err.seek(0)
        if done.returncode not in (0, -signal.SIGXFSZ):
            why = err.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
            raise Unreadable(f"{argv[0]} cannot read the file: {why[-1] if why else f'exit code {done.returncode}'}")
        return _text(out.read(TEXT_MAX + 1))


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


# --- extraction ---

READERS = {
    ".pdf": _pdf,
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"), _image),
    ".docx": composio_office.word,
    ".pptx": composio_office.slides,
    ".xlsx": composio_office.workbook,
    **dict.fromkeys((".odt", ".odp", ".ods"), composio_office.open_document),
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
    except (OSError, ValueError, SyntaxError, LookupError, NotImplementedError, RuntimeError, zipfile.BadZipFile, Unreadable) as error:
        return "", f"cannot extract the text: {error}"
    if show_preview:
        for line in text.splitlines()[:PREVIEW_LINES]:
            print(line[:PREVIEW_COLUMNS])
    return text, ""
