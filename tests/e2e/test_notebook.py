# SPDX-License-Identifier: Apache-2.0
"""A notebook's day in a session: files in, pandas, a plot, tools in a pool of threads, a report out, a night in between."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.bridge import LATER, Host
from lib.identity import Identity
from lib.sessions import Json, Session

MODULES = ("pandas", "matplotlib", "reportlab", "PIL")
missing = [m for m in MODULES if not importlib.util.find_spec(m)]
pytestmark = [
    pytest.mark.alike,
    pytest.mark.skipif(bool(missing), reason=f"the host's python3 has no {', '.join(missing)}"),
]

ROWS, WORKERS = 500, 25
WAIT = 120000  # ms: importing pandas is slow on a busy machine


@pytest.fixture
def host(session: Session) -> Iterator[Host]:
    with session.rpc() as rpc:
        yield Host(rpc, {})


def run(host: Host, code: str, **params: object) -> Json:
    result = host.python(code, **{"timeout_ms": WAIT, **params})
    assert (result["error"], result["exit_code"], result["state_kept"]) == (None, 0, True), result
    return result


def value(host: Host, code: str) -> str:
    return run(host, code)["result"]


@pytest.fixture
def sales(session: Session, place: Path, identity: Identity) -> Session:
    """Returns the session with a table in its files."""
    text = "region,units,price,note\n" + "".join(
        f"{('north', 'south', 'east')[n % 3]},{n % 7 + 1},{n % 11}.50,\"Bestellung {n}, größer\"\n" for n in range(ROWS)
    )
    (place / "sales.csv").write_text(text)
    session.cp(identity.own(place / "sales.csv"), "w:/mnt/files/sales.csv").ok()
    return session


# --- pictures ---

PLOT = """
import matplotlib.pyplot as plt
figure = plt.figure(figsize=(4, 3), dpi=100, facecolor="white")
axes = figure.add_axes([0, 0, 1, 1])
axes.set_axis_off(); axes.set_xlim(0, 1); axes.set_ylim(0, 1)
axes.fill_between([0, .5], 0, 1, color="#ff0000")
axes.fill_between([.5, 1], 0, .5, color="#0000ff")
"""


# Matplotlib adds these inches around the drawing ("tight"), so that nothing is cut off.
PAD = 10


def is_square(image: object, inches: int) -> bool:
    return all(abs(side - (100 * inches + 2 * PAD)) <= 2 for side in image.size)


def pictures(result: Json) -> list[bytes]:
    return [base64.b64decode(d["image/png"]) for d in result["displays"] if "image/png" in d]


def decode(png: bytes) -> object:
    from PIL import Image

    image = Image.open(io.BytesIO(png))
    image.load()
    assert image.format == "PNG"
    return image.convert("RGB")


def test_a_plot_has_the_size_and_the_colours_that_it_was_given(host: Host) -> None:
    (png,) = pictures(run(host, PLOT))
    image = decode(png)

    assert abs(image.width - 400 - 2 * PAD) <= 2 and abs(image.height - 300 - 2 * PAD) <= 2
    colours = {(x, y): image.getpixel((x + PAD, y + PAD)) for x, y in ((100, 50), (100, 250), (300, 250), (300, 50))}
    assert colours == {(100, 50): (255, 0, 0), (100, 250): (255, 0, 0), (300, 250): (0, 0, 255), (300, 50): (255, 255, 255)}


def test_every_figure_comes_once_and_in_order(host: Host) -> None:
    """A figure may be shown, left open, or closed early. Figures of an earlier run do not come again."""
    result = run(host, "import matplotlib.pyplot as plt\n"
                       "def show(side): plt.figure(figsize=(side, side), dpi=100).add_axes([0, 0, 1, 1]).axis('off')\n"
                       "show(1); plt.show(); show(2); show(3); show(4); plt.close(); display('between'); show(5);")
    shown = [decode(png) for png in pictures(result)]

    assert len(shown) == 4 and all(map(is_square, shown, (1, 2, 3, 5))), [image.size for image in shown]
    assert [("image/png" in d, d["text/plain"]) for d in result["displays"]] == [
        (True, "<Figure 100x100>"), (False, "'between'"), *((True, f"<Figure {n}x{n}>") for n in (200, 300, 500)),
    ]
    assert run(host, "1")["displays"] == []


def test_a_plot_of_a_run_that_fails_comes_all_the_same(host: Host) -> None:
    result = host.python(PLOT + "1/0", timeout_ms=WAIT)

    assert result["error"]["name"] == "ZeroDivisionError" and len(pictures(result)) == 1


def test_a_figure_that_cannot_be_drawn_is_an_error_once(host: Host) -> None:
    result = host.python("import matplotlib.pyplot as plt\nplt.title(r'$\\frac{1$')\nplt.figure(); plt.plot([1]);", timeout_ms=WAIT)

    assert (result["exit_code"], result["error"]["name"]) == (1, "ValueError") and len(pictures(result)) == 1
    assert run(host, "1")["displays"] == []


def test_a_plot_of_pandas_is_not_blank(host: Host, sales: Session) -> None:
    result = run(host, "import pandas as pd\ndf = pd.read_csv('/mnt/files/sales.csv')\n"
                       "df.groupby('region').units.sum().plot.bar(title='Units', color='#2ca02c');")
    (png,) = pictures(result)
    counts = {colour: count for count, colour in decode(png).getcolors(1 << 24)}

    assert counts[(0x2C, 0xA0, 0x2C)] > 10_000 and counts[(255, 255, 255)] > 10_000 and len(counts) > 10


# --- reports ---

REPORT = """
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen import canvas
page = canvas.Canvas("/mnt/files/report.pdf", pagesize=A4)
for title in ("Sales by region", "Units"):
    page.drawString(72, 720, f"{title}: {int(df.units.sum())}")
    page.showPage()
page.save()
"""


def check_pdf(data: bytes) -> str:
    """Returns the drawing commands of a PDF's pages, and asserts that the file is complete."""
    assert data.startswith(b"%PDF-1.") and data.rstrip().endswith(b"%%EOF")
    start = int(re.search(rb"startxref\s+(\d+)", data)[1])
    assert data[start : start + 4] == b"xref"
    texts = []
    for head, stream in re.findall(rb"<<([^>]*)>>\s*stream\r?\n(.*?)\s*endstream", data, re.S):
        encoded = stream.strip()
        if b"/ASCII85Decode" in head:
            encoded = base64.a85decode(encoded.removesuffix(b"~>"))
        texts.append((zlib.decompress(encoded) if b"/FlateDecode" in head else encoded).decode("latin-1"))
    assert len(re.findall(rb"/Type\s*/Page\b", data)) == len(texts)
    return "\n".join(texts)


def download(session: Session, path: str, place: Path) -> bytes:
    """Copies a file into a directory of the caller."""
    target = place / "home" / Path(path).name
    session.cp(f"w:{path}", target).ok()
    return target.read_bytes()


def test_a_report_is_downloaded(host: Host, sales: Session, place: Path, identity: Identity) -> None:
    (place / "home").mkdir()
    identity.own(place / "home")
    run(host, "import pandas as pd\ndf = pd.read_csv('/mnt/files/sales.csv')\n" + REPORT)
    text = check_pdf(download(sales, "/mnt/files/report.pdf", place))
    total = sum(n % 7 + 1 for n in range(ROWS))

    assert f"(Sales by region: {total}) Tj" in text and f"(Units: {total}) Tj" in text


# --- a model on the host ---

CLASSIFY = f"""
from concurrent.futures import ThreadPoolExecutor
def classify(row):
    answer = call("llm", {{"prompt": row.note, "n": row.Index}})
    return answer["verdictLabel"]
with ThreadPoolExecutor({WORKERS}) as pool:
    df["label"] = list(pool.map(classify, df.itertuples()))
"""


class Model:
    """A slow tool: it replies when no further calls come, the last call first. So only code with many calls at a time
    makes progress."""

    def __init__(self, host: Host) -> None:
        self.host, self.most, self.answered = host, 0, 0
        host.tool("llm", lambda payload: LATER, {
            "type": "object", "properties": {"prompt": {"type": "string"}, "n": {"type": "integer"}}, "required": ["prompt", "n"],
        }, timeout_ms=WAIT)

    def answer(self) -> None:
        waiting = self.host.calls[self.answered :]
        self.most = max(self.most, len(waiting))
        if len(waiting) < min(WORKERS, ROWS - self.answered):
            return
        for asked in reversed(waiting):
            payload = asked["params"]["payload"]
            label = "even" if payload["n"] % 2 == 0 else "odd"
            self.host.answer(asked, result={"value": {"verdict_label": label, "said": payload["prompt"]}})
        self.answered += len(waiting)

    def run(self, code: str) -> Json:
        number = self.host.send("python.run", code=f"from host_tools import call\n{code}", timeout_ms=WAIT)

        def served() -> bool:
            self.answer()
            return number in self.host.rpc._answers

        self.host.until(served, "the run has ended")
        return self.host.rpc.result(number)


def test_a_pool_of_threads_asks_a_model_about_each_row(host: Host, sales: Session) -> None:
    run(host, "import pandas as pd\ndf = pd.read_csv('/mnt/files/sales.csv')")
    model = Model(host)
    result = model.run(CLASSIFY)

    assert result["error"] is None, result
    assert (model.answered, model.most) == (ROWS, WORKERS)
    assert {c["params"]["payload"]["n"]: c["params"]["payload"]["prompt"] for c in host.calls} == {n: f"Bestellung {n}, größer" for n in range(ROWS)}
    assert result["stderr"].count("using 'verdict_label'") == ROWS
    assert value(host, "list(df.label) == ['even', 'odd'] * 250") == "True"


# --- a day ---


def test_a_day_with_a_notebook(host: Host, sales: Session, place: Path, identity: Identity) -> None:
    """Twenty runs on one state, a timeout in the middle of it, and a stop at the end."""
    (place / "home").mkdir()
    identity.own(place / "home")
    run(host, "import pandas as pd, math, threading\ndf = pd.read_csv('/mnt/files/sales.csv')\nlog = []")
    for n in range(20):
        assert value(host, f"df['c{n}'] = df.units * {n}; log.append({n})\nlen(log), int(df.c{n}.sum())") == str(
            (n + 1, n * sum(i % 7 + 1 for i in range(ROWS)))
        )
        if n == 10:
            result = host.python("df['half'] = 1\nwhile True: math.sqrt(2)", timeout_ms=200)
            assert (result["cause"], result["exit_code"], result["state_kept"]) == ("timeout", 124, True)
            assert value(host, "len(log), 'half' in df") == "(11, True)"
    run(host, "lock = threading.Lock()\ndef helper(): pass\ndf.to_csv('/mnt/files/out.csv', index=False)")

    saved = json.loads(sales("python", "--save", "--json").ok().out)
    assert {"df", "log", "pd", "math"} <= set(saved["saved"]) and {"lock", "helper"} <= set(saved["left_out"])
    host.rpc.close()
    sales.stop()

    assert "NameError" in sales("python", "-c", "df").err
    loaded = sales("python", "--load").ok()
    assert {"loaded df", "loaded log", "loaded pd"} <= set(loaded.out.splitlines())
    assert sales("python", "-c", "df.shape, len(log), math.floor(pd.Series([1.5]).sum())").ok().out == "((500, 25), 20, 1)\n"
    assert download(sales, "/mnt/files/out.csv", place).count(b"\n") == ROWS + 1
