# SPDX-License-Identifier: Apache-2.0
"""Composio's helpers inside a session. The key stays in holt-gateway."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.composio_backend import MOUNT, SESSION, Backend, backend
from lib.identity import Identity
from lib.links import curl
from lib.sandbox import Result
from lib.sessions import Session, Sessions
from lib.tools import needs_peer
from lib.upstream import KEY

PROVIDER = Path(__file__).parents[2] / "policy/routes/providers/composio.json"
ENV = {"COMPOSIO_API_KEY": KEY, "COMPOSIO_TOOLROUTER_SESSION_ID": SESSION}

Python = Callable[..., Result]


@pytest.fixture(name="backend")
def make_backend() -> Iterator[Backend]:
    with backend() as server:
        yield server


@pytest.fixture
def session(sessions: Sessions, backend: Backend, place: Path, identity: Identity) -> Session:
    policy = place / "policy.json"
    policy.write_text(json.dumps({"holt": 1, "bridge": {"routes": [{**json.loads(PROVIDER.read_text()), "upstream": backend.url}]}}))
    return sessions.create("w", "--policy", identity.own(policy))


@pytest.fixture
def python(sessions: Sessions, session: Session) -> Python:
    """Runs code in the interpreter, or in a python3 of its own. Prints a value as JSON."""

    def python(code: str, own: bool = False, env: "dict[str, str] | None" = None) -> Result:
        where = ["exec", "w", "--", "python3"] if own else ["python", "w"]
        return sessions([*where, "-c", f"import json\n{code}"], env=ENV if env is None else env)

    return python


def value(result: Result) -> Any:
    return json.loads(result.ok().out.splitlines()[-1])


# --- tools ---


@pytest.mark.identities("user", "root")
@pytest.mark.parametrize("own", (False, True))
def test_a_tool(python: Python, backend: Backend, own: bool) -> None:
    start = "from composio_helper import run_composio_tool\n" if own else ""
    result = python(f"{start}response, error = run_composio_tool('acme_find', {{'q': 1}}, account='me')\nprint(json.dumps([response, error]))", own)
    response, error = value(result)
    [seen] = backend.seen

    assert error == "" and response["log_id"] == "log_1"
    assert response["data"] == {"slug": "ACME_FIND", "arguments": {"q": 1}, "account": "me", "items": [{"id": 1}]}
    assert result.out.startswith("ACME_FIND: {data: {slug: str, arguments: {q: int}, account: str, items: [{id: int}] * 1}, error: null, log_id: str}\n")
    assert seen["path"] == f"/api/v3/tool_router/session/{SESSION}/execute" and len(seen["id"]) == 36
    assert seen["key"] == KEY and KEY not in result.out + python("import os; print(dict(os.environ))", own).out


FAST = "{'initial_delay': 0.01}"


@pytest.mark.parametrize("slug, requests", (("ACME_BUSY", 2), ("ACME_LIMITED", 2), ("ACME_CUT", 2), ("ACME_SLOW", 1)))
def test_a_busy_backend_is_asked_again(python: Python, backend: Backend, slug: str, requests: int) -> None:
    response, error = value(python(f"print(json.dumps(run_composio_tool({slug!r}, retry_params={FAST}, print_schema_for_tool=False)))"))
    assert error == "" and response["data"] and len(backend.seen) == requests


@pytest.mark.parametrize("slug, message, requests", (
    ("ACME_ALWAYS_BUSY", "Too many requests: HTTP 429", 4), ("ACME_BROKEN", "Internal error: HTTP 500", 1),
    ("ACME_FAILS", "the tool has failed", 1), ("ACME_TEXT", "has not answered with a JSON object", 1),
    ("ACME_DEEP", "has not answered with a JSON object", 1), ("ACME_MOVED", "HTTP 302", 1),
    ("ACME_BROKEN_OFF", "cannot reach", 4),
))
def test_errors(python: Python, backend: Backend, slug: str, message: str, requests: int) -> None:
    response, error = value(python(f"print(json.dumps(run_composio_tool({slug!r}, None, {FAST}, False)))"))
    assert message in error and len(backend.seen) == requests
    assert isinstance(response, dict)


def test_the_shape_of_a_large_response_is_short(python: Python) -> None:
    assert len(python("run_composio_tool('ACME_LARGE')[1]").ok().out) < 20_000


def test_a_model_and_a_search(python: Python) -> None:
    code = "print(json.dumps([invoke_llm('hi'), invoke_llm('json', 'low'), web_search('otters'), web_search('')]))"
    assert value(python(code)) == [
        ["you said hi to openai/gpt-oss-120b", ""], ['{"a": 1}', ""], ["about otters", ""], ["", "the search found no answer"],
    ]


def test_requests_to_the_api_of_a_toolkit(python: Python) -> None:
    code = """
print(json.dumps([
    proxy_execute("get", "/me", "acme", {"a": 1}, None, {"x": "y"}), proxy_execute("POST", "/me", "acme", body={"b": 2}),
    proxy_execute("GET", "/missing", "acme"), proxy_execute("GET", "/image", "acme"),
    proxy_execute("GET", "/me", "acme", body={}), proxy_execute("POST", "/me", "acme"), proxy_execute("HEAD", "/", "acme"), proxy_execute("GET", "/", "acme", 5),
]))"""
    got, posted, missing, image, *wrong = value(python(code))

    assert got == [{"toolkit_slug": "acme", "endpoint": "/me", "method": "GET", "parameters": [
        {"name": "a", "value": "1", "type": "query"}, {"name": "x", "value": "y", "type": "header"}]}, ""]
    assert posted[0]["body"] == {"b": 2} and posted[1] == ""
    assert missing == [{"message": "no such page"}, "GET /missing: no such page: HTTP 404"]
    assert image == [{"url": "https://files.example/1"}, ""]
    assert [error for _, error in wrong] == [
        "GET has no body", "POST needs a body", "the method must be one of POST, PUT, PATCH, GET, DELETE, not HEAD", "'int' object is not iterable"]


def test_keys_in_another_spelling(python: Python) -> None:
    result = python("response, error = run_composio_tool('ACME_FIND')\nprint(response['logId'])")
    assert result.ok().out.endswith("\nlog_1\n") and "the result has no 'logId'; using 'log_id'" in result.err


def test_an_api_that_is_busy_or_not_connected(python: Python, backend: Backend) -> None:
    busy, unconnected = value(python("import composio_helper\ncomposio_helper.RETRIES['initial_delay'] = 0.01\n"
                                     "print(json.dumps([proxy_execute('GET', '/busy', 'acme'), proxy_execute('GET', '/', 'unconnected')]))"))
    assert busy[1] == "" and unconnected[1] == "No account is connected for the toolkit unconnected: HTTP 400" and len(backend.seen) == 3


def test_no_proxy_and_no_other_path(python: Python, backend: Backend) -> None:
    """A proxy of the environment is not asked for loopback, and a session's id is one part of the path."""
    code = """
import os
os.environ["http_proxy"] = "http://127.0.0.1:9"
for name in ("no_proxy", "NO_PROXY"): os.environ.pop(name, None)
first = run_composio_tool("ACME_FIND")[1]
os.environ["COMPOSIO_TOOLROUTER_SESSION_ID"] = "a/b?c"
print(json.dumps([first, run_composio_tool("ACME_FIND")[1]]))"""
    assert value(python(code))[0] == "" and len(backend.seen) <= 2
    assert not [seen for seen in backend.seen if "?" in seen["path"] or "/a/b" in seen["path"]]


def test_the_files_of_the_backend(python: Python, backend: Backend) -> None:
    """Programs inside use the files of the session through the route, too."""
    code = f"""
import os, urllib.error, urllib.request
def ask(what, body=None):
    request = urllib.request.Request(os.environ["BACKEND_URL"] + {MOUNT!r} + what, headers={{"x-api-key": os.environ["COMPOSIO_API_KEY"]}},
                                     data=body and json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request) as response: return response.status, json.load(response)
    except urllib.error.HTTPError as error: return error.code, json.load(error)
file = {{"mount_relative_path": "/a/b.txt"}}
print(json.dumps([ask("/upload_url", file), ask("/items?limit=1"), ask("/items?limit=1&cursor=1"), ask("/items?limit=501"),
    ask("/download_url", file), ask("/download_url", {{"mount_relative_path": "none"}}), ask("/delete", {{"mount_relative_path": "a"}}), ask("/items")]))"""
    backend.files = {"a/b.txt": b"one", "a/c.txt": b"two"}
    upload, first, second, many, download, missing, deleted, rest = value(python(code))

    assert upload[0] == download[0] == 201 and upload[1]["upload_url"] == download[1]["download_url"] == f"{backend.url}/link/a/b.txt"
    assert [item["mount_relative_path"] for item in first[1]["items"]] == ["a/b.txt"] and first[1]["next_cursor"] == "1"
    assert "next_cursor" not in second[1] and (many[0], missing[0]) == (400, 404)
    assert deleted == [200, {"mount_relative_path": "a", "sandbox_mount_prefix": "/mnt/files"}] and rest[1]["items"] == []
    assert {seen["key"] for seen in backend.seen} == {KEY}


def test_missing_settings(python: Python, backend: Backend) -> None:
    result = python("run_composio_tool('ACME_FIND')", env={"COMPOSIO_API_KEY": KEY})
    assert "RuntimeError: COMPOSIO_TOOLROUTER_SESSION_ID is not set" in result.err and not backend.seen
    assert value(python("print(json.dumps(invoke_llm('hi')))", env={"COMPOSIO_API_KEY": KEY}))[1].startswith("COMPOSIO_TOOLROUTER_SESSION_ID is not set")


def test_a_wrong_key_and_names_of_the_code(python: Python) -> None:
    response, error = value(python("print(json.dumps(run_composio_tool('ACME_FIND')))", env={**ENV, "COMPOSIO_API_KEY": "another-key"}))
    assert error == "Invalid API key: HTTP 401" and response["error"]["slug"] == "HTTP_Unauthorized"
    assert python("def web_search(): return 'mine'\nprint(web_search())").ok().out == "mine\n"


def test_without_the_route_nothing_is_offered(sessions: Sessions) -> None:
    session = sessions.create("w")
    assert "NameError" in session("python", "-c", "invoke_llm").err
    assert session.sh("python3 -c 'import composio_helper; composio_helper.run_composio_tool(\"A\")'").err.endswith(
        "RuntimeError: COMPOSIO_TOOLROUTER_SESSION_ID is not set. The sandbox needs the route composio, and your own "
        "COMPOSIO_TOOLROUTER_SESSION_ID where holt is started.\n")


# --- files ---


def test_files_are_stored(python: Python, session: Session) -> None:
    code = """
open("a b.csv", "w").write("1,2")
open("/mnt/files/there.txt", "w").write("x")
import os; os.makedirs("d", exist_ok=True); open("d/a b.csv", "w").write("3")
print(json.dumps([upload_local_file("a b.csv"), upload_local_file("/mnt/files/there.txt"), upload_local_file("a b.csv", "d/a b.csv"),
    upload_local_file("missing"), upload_local_file(), get_mount_file_url("there.txt"), get_mount_file_s3_key("/mnt/files/there.txt"),
    get_mount_file_url("/etc/passwd"), get_mount_file_url("missing"), upload_local_file("/mnt/files/../../etc/passwd")]))"""
    one, there, both, missing, none, url, key, outside, absent, passwd = value(python(code))

    assert one[1] == "" and set(one[0]) == {"s3_url", "uploaded_file", "type", "id", "s3key", "message"}
    assert one[0]["uploaded_file"] == "a b.csv" and one[0]["type"] == "text/csv" and one[0]["s3_url"].endswith("/a%20b.csv")
    assert session.sh(f"cat '/mnt/files/{one[0]['s3key']}'").out == "1,2"
    assert there[0]["s3key"] == "there.txt" and there[0]["s3_url"] == url[0] == "file:///mnt/files/there.txt" and key == ["there.txt", ""]
    assert both[0]["uploaded_file"] == "files.zip"
    assert session.sh(f"python3 -m zipfile -l /mnt/files/{both[0]['s3key']}").out.count("a b") == 2
    assert missing[1] == "missing is not a file" and none[1] == "upload_local_file() needs a path"
    assert outside == ["", "/etc/passwd is not below /mnt/files; upload_local_file() stores a file there"]
    assert absent == ["", "missing is not a file below /mnt/files"]
    assert passwd[0]["s3key"].endswith("/passwd"), "a copy"


def test_stored_files_have_links(sessions: Sessions) -> None:
    """If the policy allows links, the host can fetch a stored file."""
    session = sessions.create("w", "--links")
    code = "import composio_helper as c, json; open('a b.csv', 'w').write('1,2'); print(json.dumps([c.upload_local_file('a b.csv'), c.get_mount_file_url('missing')]))"
    (stored, error), missing = json.loads(session.exec("python3", "-c", code).ok().out)

    assert error == "" and stored["s3_url"].startswith("http://127.0.0.1:") and curl(stored["s3_url"]).body == b"1,2"
    assert missing[0] == ""


W = 'xmlns:w="http://w"'
WORD = (f'<w:document {W}><w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:t>one</w:t><w:tab/><w:t> two</w:t><w:delText>gone</w:delText></w:p>'
        "<w:tr><w:tc><w:p><w:t>a</w:t></w:p></w:tc><w:tc><w:p><w:t>b</w:t></w:p></w:tc></w:tr></w:document>")
SHEET = ('<s><row><c r="A1" t="s"><v>0</v></c><c r="D1" t="b"><v>1</v></c></row><row><c r="B2"><f>1+1</f><v>2</v></c><c t="s"><v>99</v></c></row></s>')
OPEN = ('<d xmlns:text="t"><text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:p>one<text:s text:c="2"/>two</text:p>'
        '<table-row><table-cell number-columns-repeated="999999999"><text:p>a</text:p></table-cell></table-row></d>')
DOCUMENTS = {
    "a.docx": ({"word/document.xml": f"<w:document {W}><w:p><w:r><w:t>Hello</w:t></w:r><w:r><w:t> world</w:t></w:r></w:p><w:p><w:t>two</w:t></w:p></w:document>"},
               "Hello world\ntwo\n"),
    "a.pptx": ({"ppt/slides/slide10.xml": "<s><p><t>last</t></p></s>", "ppt/slides/slide2.xml": "<s><p><t>first</t></p></s>"}, "first\n\nlast\n"),
    "a.odt": ({"content.xml": '<d xmlns:text="t"><text:h>Title</text:h><text:p>one <text:span>two</text:span> three</text:p></d>'}, "Title\none two three\n"),
    "a.xlsx": ({"xl/sharedStrings.xml": "<sst><si><t>name</t></si></sst>",
                "xl/worksheets/sheet1.xml": '<s><row><c t="s"><v>0</v></c><c><v>4.5</v></c></row><row><c t="inlineStr"><is><t>in</t></is></c></row></s>'},
               "# sheet1\nname\t4.5\nin\n"),
    "tables.docx": ({"word/document.xml": WORD}, "one\t two\na \tb \n"),
    "gaps.xlsx": ({"xl/sharedStrings.xml": "<sst><si><t>na</t><t>me</t><rPh><t>no</t></rPh></si></sst>", "xl/worksheets/sheet1.xml": SHEET},
                  "# sheet1\nname\t\t\tTRUE\n\t2\t\n"),
    "spaces.odt": ({"content.xml": OPEN}, "one  two\na \n"),
}


def put_document(session: Session, place: Path, name: str, parts: "dict[str, str]") -> None:
    with zipfile.ZipFile(place / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, text in parts.items():
            archive.writestr(part, text)
    session.cp(place / name, f"w:{name}").ok()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_text_of_office_documents(python: Python, session: Session, place: Path, name: str) -> None:
    parts, text = DOCUMENTS[name]
    put_document(session, place, name, parts)
    assert value(python(f"print(json.dumps(smart_file_extract({name!r}, False)))")) == [text, ""]


def test_texts_and_what_has_none(python: Python, session: Session) -> None:
    session.sh("echo grün >a.txt; printf 'gr\\374n' >latin; printf '\\1\\0\\2' >binary; printf 'x' >bad.docx; mkfifo pipe").ok()
    code = "print(json.dumps([smart_file_extract(p, False) for p in ('a.txt', 'latin', 'binary', 'bad.docx', 'pipe', 'missing')]))"
    texts = value(python(code))

    assert texts[:2] == [["grün\n", ""], ["grün", ""]]
    assert [error for _, error in texts[2:]] == [f"cannot extract the text: {why}" for why in (
        "binary is a binary file of an unknown type",
        "File is not a zip file", "pipe is not a file", "/mnt/files/missing is not a file")]
    assert python("smart_file_extract('a.txt')").ok().out.startswith("grün\n")


# Made only when they are needed: they have 200 MB.
BOMBS = {
    "entities.docx": lambda: {"word/document.xml": '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><d><p><t>&b;</t></p></d>'},
    "deep.docx": lambda: {"word/document.xml": "<p>" * 100_000 + "<t>x</t>" + "</p>" * 100_000},
    "large.docx": lambda: {"word/document.xml": "<d>" + " " * (65 << 20) + "</d>"},
    "attribute.docx": lambda: {"word/document.xml": "<p a='" + "x" * (60 << 20) + "'/>"},
    "attributes.docx": lambda: {"word/document.xml": "<p " + " ".join(f"a{i}='x'" for i in range(1_000_000)) + "/>"},
    "comment.docx": lambda: {"word/document.xml": "<p><!--" + "x" * (60 << 20) + "--></p>"},
    "encoding.docx": lambda: {"word/document.xml": "<?xml version='1.0' encoding='no-such'?><p/>"},
    "many.pptx": lambda: {f"ppt/slides/slide{i}.xml": "<p/>" for i in range(2001)},
}


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_documents(python: Python, session: Session, place: Path, name: str) -> None:
    put_document(session, place, name, BOMBS[name]())
    text, error = value(python(f"print(json.dumps(smart_file_extract({name!r}, False)))"))
    assert text == "" and error


@needs_peer("pdftotext")
def test_a_small_pdf_cannot_fill_the_disk(python: Python, session: Session) -> None:
    """If a program writes too much, the text is the part up to the limit."""
    session.sh("cat >pdftotext <<'E'\n#!/bin/sh\nexec yes text\nE\nchmod +x pdftotext; echo %PDF- >a.pdf").ok()
    code = "import os\nos.environ['PATH'] = os.getcwd() + ':' + os.environ['PATH']\ntext, error = smart_file_extract('a.pdf', False)\nprint(len(text), error)"
    assert python(code).ok().out.split() == [str(16 << 20)]


@pytest.mark.slow
def test_a_small_document_does_not_need_much_memory(python: Python, session: Session, place: Path) -> None:
    """It has 80 KB, and as a tree it would take more than a GiB."""
    put_document(session, place, "a.docx", {"word/document.xml": f"<d>{'<t>a</t>' * (7 << 20)}</d>"})
    code = "text, error = smart_file_extract('a.docx', False)\nimport resource\nprint(len(text), error, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)"
    size, memory = python(code).ok().out.split()
    assert int(size) == (7 << 20) + 1 and int(memory) < 200


@needs_peer("pdftotext")
def test_the_text_of_a_pdf(python: Python, session: Session) -> None:
    pdf = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj " \
          b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>endobj " \
          b"4 0 obj<</Length 41>>stream\nBT /F1 18 Tf 10 100 Td (Hello PDF) Tj ET\nendstream endobj trailer<</Root 1 0 R>>"
    session.sh(f"printf %s {pdf.hex()} | python3 -c 'import sys; open(\"-a\", \"wb\").write(bytes.fromhex(sys.stdin.read()))'").ok()
    text, error = value(python("print(json.dumps(smart_file_extract('-a', False)))"))
    assert "Hello PDF" in text and error == ""


@needs_peer("tesseract")
def test_the_text_of_an_image(python: Python) -> None:
    text, error = value(python("""
from PIL import Image, ImageDraw, ImageFont
image = Image.new("RGB", (600, 120), "white")
ImageDraw.Draw(image).text((20, 30), "Hello image", fill="black", font=ImageFont.truetype("DejaVuSans.ttf", 48))
image.save("page.dat", "PNG")
print(json.dumps(smart_file_extract("page.dat", False)))"""))
    assert "Hello image" in text and error == ""


def test_a_missing_program_is_named(python: Python, session: Session) -> None:
    session.sh("printf '%%PDF-1.4' >a.pdf").ok()
    code = "import os; os.environ['PATH'] = '/nowhere'\nprint(json.dumps([smart_file_extract('a.pdf', False), smart_file_extract('a.pdf', False)]))"
    assert value(python(code))[0] == ["", "cannot extract the text: pdftotext is missing; install the package poppler-utils on the host"]


# --- scanned documents ---

SCAN = """
from PIL import Image, ImageDraw, ImageFont
import composio_files, os, time
def page(text):
    image = Image.new("L", (1240, 600), "white")
    ImageDraw.Draw(image).text((60, 80), text, fill="black", font=ImageFont.truetype("DejaVuSans.ttf", 60))
    return image
def scan(*texts):
    first, *others = map(page, texts)
    first.save("scan.pdf", "PDF", save_all=True, append_images=others)
"""


@needs_peer("pdftotext", "pdftoppm", "tesseract")
def test_the_text_of_a_scanned_pdf(python: Python) -> None:
    text, error = value(python(SCAN + 'scan("First page", "", "Third page")\nprint(json.dumps(smart_file_extract("scan.pdf", False)))'))
    first, second, third, rest = text.split("\f")
    assert ("First page" in first, second.strip(), "Third page" in third, rest, error) == (True, "", True, "", "")


@needs_peer("pdftotext", "pdftoppm", "tesseract")
def test_limits_of_scanned_pages(python: Python) -> None:
    texts = value(python(SCAN + """
scan("First page", "Second page", "Third page")
composio_files.SCANS_MAX = 1
texts = [smart_file_extract("scan.pdf", False)]
composio_files.SCANS_TIME = 0
print(json.dumps([*texts, smart_file_extract("scan.pdf", False)]))"""))
    assert "First page" in texts[0][0] and texts[0][1] == ""
    assert "\f[2 of 3 pages, from page 2 on, have no text and were not read: holt reads at most 1 pages of a document as images]\n\f" in texts[0][0]
    assert texts[1] == ["", "cannot extract the text: all images together needed more than 0 seconds"]


def tools(session: Session, **programs: str) -> str:
    """Puts programs into the directory tools, and returns code that leaves no other ones."""
    for name, script in programs.items():
        session.sh(f"mkdir -p tools; cat >tools/{name} <<'E'\n#!/bin/sh\n{script}\nE\nchmod +x tools/{name}").ok()
    return "import os; os.environ['PATH'] = os.path.abspath('tools')\n"


def test_a_scanned_pdf_without_the_programs(python: Python, session: Session) -> None:
    session.sh("printf '%%PDF-1.4' >a.pdf").ok()
    code = "print(json.dumps(smart_file_extract('a.pdf', False)))"
    empty = "printf ' \\f\\f'"
    assert value(python(tools(session, pdftotext=empty) + code)) == [
        "", "cannot extract the text: pdftoppm is missing; install the package poppler-utils on the host"]
    assert value(python(tools(session, pdftoppm=": >page.pgm") + code)) == [
        "", "cannot extract the text: tesseract is missing; install the package tesseract-ocr on the host"]
    text, error = value(python(tools(session, pdftotext="printf 'text\\f \\f'") + code))
    assert text == ("text\f[1 of 2 pages, from page 2 on, have no text and were not read: tesseract is missing; install the package "
                    "tesseract-ocr on the host]\n\f") and error == ""


@pytest.mark.slow
def test_a_page_that_takes_too_long(python: Python, session: Session) -> None:
    """The program and its children end, and the pages before it are kept."""
    session.sh("printf '%%PDF-1.4' >a.pdf").ok()
    code = tools(session, pdftotext="printf 'text\\f \\f'", pdftoppm="/bin/sleep 77 & wait") + (
        "import composio_files; composio_files.SCANS_TIME = 1\nprint(json.dumps(smart_file_extract('a.pdf', False)))")
    text, error = value(python(code))
    assert text.endswith("have no text and were not read: all images together needed more than 1 seconds]\n\f") and error == ""
    assert "sleep 77" not in session.sh("ps ax -o args || cat /proc/[0-9]*/cmdline | tr '\\0' ' '").out


# --- old office documents ---

@pytest.mark.parametrize("suffix, program", (("doc", "catdoc"), ("xls", "xls2csv"), ("ppt", "catppt")))
def test_an_old_office_document(python: Python, session: Session, suffix: str, program: str) -> None:
    session.sh(f"printf x >old.{suffix}").ok()
    code = f"print(json.dumps(smart_file_extract('old.{suffix}', False)))"
    assert value(python("import os; os.environ['PATH'] = '/nowhere'\n" + code)) == [
        "", f"cannot extract the text: {program} is missing; install the package catdoc or libreoffice on the host"]
    assert value(python(tools(session, **{program: 'echo "$@"'}) + code)) == [f"-d utf-8 /workspace/old.{suffix}\n", ""]
    assert value(python(tools(session, **{program: ":"}) + code)) == ["", f"cannot extract the text: {program} has found no text"]


def test_libreoffice_converts_an_old_office_document(python: Python, session: Session, place: Path) -> None:
    parts, text = DOCUMENTS["a.docx"]
    put_document(session, place, "new.docx", parts)
    session.sh("printf x >old.doc; printf x >bad.doc").ok()
    convert = 'echo "$*" >asked; [ "${7##*/}" = bad.doc ] || /bin/cp new.docx "$6/old.docx"'
    code = tools(session, soffice=convert) + "print(json.dumps([smart_file_extract(p, False) for p in ('bad.doc', 'old.doc')]))"
    assert value(python(code)) == [["", "cannot extract the text: soffice cannot read the file"], [text, ""]]
    asked = session.sh("cat asked").ok().out.split()
    assert asked[0] == "--headless" and asked[2:5] == ["--convert-to", "docx", "--outdir"] and asked[6] == "/workspace/old.doc"
