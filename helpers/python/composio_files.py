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
import time
import urllib.parse
import zipfile

import composio_office
from composio_office import Unreadable

FILES = "/mnt/files"
STORED = "uploads"  # the directory for files from other places

TEXT_MAX = 16 << 20  # bytes of a document's text
OUTPUT_MAX = 4 * TEXT_MAX  # bytes that a program may write
TIMEOUT = 120  # seconds of a program that reads a document
SCANS_MAX, SCANS_TIME = 50, 240  # pages of a PDF that are read as images, and the seconds for all of them
SCAN_PIXELS = 3000  # of the longer side of such a page: the text of an A4 page has 250 dots per inch
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


def _ended(argv, timeout, **streams):
    """Runs a program and returns its exit code. After an exception, the processes that it has started have ended, too."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_limit, **streams)
    try:
        return child.wait(timeout)
    except BaseException as error:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise Unreadable(f"{os.path.basename(argv[0])} needed more than {round(timeout)} seconds") from None
        raise


def _run(argv, package, timeout=TIMEOUT):
    """Runs a program of the system, and returns its output. package: the Debian package that has it."""
    if not shutil.which(argv[0]):
        raise Unreadable(f"{argv[0]} is missing; install the package {package} on the host")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:  # in memory, both could grow without bounds
        code = _ended(argv, timeout, stdout=out, stderr=err)
        out.seek(0)
        err.seek(0)
        if code not in (0, -signal.SIGXFSZ):
            why = err.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
            raise Unreadable(f"{argv[0]} cannot read the file: {why[-1] if why else f'exit code {code}'}")
        return _text(out.read(TEXT_MAX + 1))


def _pdf(path):
    *pages, rest = _run(["pdftotext", "-layout", os.path.abspath(path), "-"], "poppler-utils").split("\f")
    _read_scans(path, pages)
    return "\f".join([*pages, rest])


def _image(path, timeout=TIMEOUT):
    return _run(["tesseract", os.path.abspath(path), "stdout"], "tesseract-ocr", timeout)


def _scan(path, number, end):
    """Returns the text in the image of a page. end: when the time for it ends."""
    with tempfile.TemporaryDirectory() as directory:
        image = os.path.join(directory, "page")
        page = ["-f", str(number), "-l", str(number), "-singlefile", "-gray", "-scale-to", str(SCAN_PIXELS)]
        _run(["pdftoppm", *page, os.path.abspath(path), image], "poppler-utils", end - time.monotonic())
        return _image(image + ".pgm", end - time.monotonic())


def _read_scans(path, pages):
    """Replaces each page without text by the text in its image. If that fails, a line in the text says which pages are missing.
    Raises Unreadable if there is no other text."""
    scans = [number for number, text in enumerate(pages, 1) if not text.strip()]
    end = time.monotonic() + SCANS_TIME
    for done, number in enumerate(scans):
        try:
            if done == SCANS_MAX:
                raise Unreadable(f"holt reads at most {SCANS_MAX} pages of a document as images")
            pages[number - 1] = _scan(path, number, end).rstrip("\f")
        except Unreadable as error:
            why = error if time.monotonic() < end else f"all images together needed more than {SCANS_TIME} seconds"
            if done == 0 and len(scans) == len(pages):
                raise Unreadable(why) from None
            pages[number - 1] = f"[{len(scans) - done} of {len(pages)} pages, from page {number} on, have no text and were not read: {why}]\n"
            return


# --- old office documents ---

# Suffixes: the format into which LibreOffice converts, and a program that reads the text without LibreOffice.
OLD = {".doc": ("docx", "catdoc"), ".xls": ("xlsx", "xls2csv"), ".ppt": ("pptx", "catppt")}


def _old_office(path):
    suffix, program = OLD[os.path.splitext(path)[1].lower()]
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if not office:
        text = _run([program, "-d", "utf-8", os.path.abspath(path)], "catdoc or libreoffice")
        if not text:  # The programs of catdoc exit with 0 even if the file is of another type.
            raise Unreadable(f"{program} has found no text")
        return text
    with tempfile.TemporaryDirectory() as directory:
        options = ["--headless", f"-env:UserInstallation=file://{directory}/profile", "--convert-to", suffix, "--outdir", directory]
        _run([office, *options, os.path.abspath(path)], "libreoffice")
        made = os.path.join(directory, os.path.splitext(os.path.basename(path))[0] + "." + suffix)
        if not os.path.isfile(made):
            raise Unreadable(f"{os.path.basename(office)} cannot read the file")
        return READERS["." + suffix](made)


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
    **dict.fromkeys(OLD, _old_office),
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
