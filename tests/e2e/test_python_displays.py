# SPDX-License-Identifier: Apache-2.0
"""The displays of a run beside its text: values, figures, tables."""

from __future__ import annotations

import base64

import pytest

from lib.python import needs_module, run, value
from lib.sandbox import HANGS
from lib.sessions import Bound

pytestmark = pytest.mark.alike


def test_values_with_a_rich_form_are_displayed(rpc: Bound) -> None:
    result = run(rpc, "class H:\n  def _repr_html_(self): return '<b>é</b>'\n  def _repr_png_(self): return b'\\x89PNG'\n"
                      "  def _repr_svg_(self): raise ValueError\n  def _repr_latex_(self): return object()\n  def __repr__(self): return 'H'\ndisplay(H())\nH()")

    bundle = {"text/html": "<b>é</b>", "image/png": base64.b64encode(b"\x89PNG").decode(), "text/plain": "H"}
    assert result["displays"] == [bundle, bundle]
    assert result["result"] == "H"


def test_displays_are_bounded(rpc: Bound) -> None:
    result = run(rpc, "class H:\n  def _repr_html_(self): return 'x' * 4000000\nfor _ in range(5): display(H())")

    assert [len(d.get("text/html", "")) for d in result["displays"]] == [4000000, 0]
    assert "left out" in result["displays"][1]["text/plain"]


@pytest.mark.parametrize("code", (
    "class H:\n  def _repr_html_(self): return '中' * 4000000\nH()", "for _ in range(700000): display('')",
), ids=("not ASCII", "many"))
@pytest.mark.slow
def test_displays_are_bounded_as_they_are_sent(code: str, rpc: Bound) -> None:
    result = run(rpc, f"kept = 1\n{code}", timeout_ms=int(900 * HANGS))

    assert (result["error"], result["state_kept"]) == (None, True)
    assert "left out" in result["displays"][-1]["text/plain"]


@pytest.mark.parametrize("parameters", ("self", "self, include, exclude", "self, **options"))
def test_a_whole_bundle_is_asked_for_as_ipython_does(parameters: str, rpc: Bound) -> None:
    result = run(rpc, f"class B:\n  def _repr_mimebundle_({parameters}): return {{'text/html': '<b>'}}\n  def __repr__(self): return 'B'\nB()")
    assert result["displays"] == [{"text/html": "<b>", "text/plain": "B"}]


def test_a_value_whose_attributes_all_fail_has_no_display(rpc: Bound) -> None:
    result = run(rpc, "class Odd:\n  def __getattr__(self, name): raise ValueError(name)\n  def __repr__(self): return 'odd'\nOdd()")
    assert (result["error"], result["result"], result["displays"]) == (None, "odd", [])


def test_a_warning_is_told_in_each_run(rpc: Bound) -> None:
    for _ in range(2):
        assert "UserWarning: late" in run(rpc, "import warnings; warnings.warn('late')")["stderr"]


def test_ipython_s_display_is_a_display(rpc: Bound) -> None:
    """Uses an imitation that prints as IPython does without a shell."""
    core = "/workspace/IPython/core"
    rpc.call("files.write", path=f"{core}/__init__.py", content="", make_parents=True)
    rpc.call("files.write", path=f"{core}/display_functions.py", content="def display(*objs, **kw): print(*objs)\n")
    rpc.call("files.write", path="/workspace/IPython/__init__.py", content="")
    rpc.call("files.write", path="/workspace/IPython/display.py", content="from IPython.core.display_functions import *\n")
    code = """import sys; sys.path.insert(0, "/workspace")
from IPython.display import display
class Bold:
    def __repr__(self): return "b"
    def _repr_html_(self): return "<b>"
display(Bold(), 5, metadata={}); display({"text/plain": "raw"}, raw=True)"""
    result = run(rpc, code)
    assert (result["error"], result["stdout"]) == (None, "")
    assert result["displays"] == [{"text/html": "<b>", "text/plain": "b"}, {"text/plain": "5"}, {"text/plain": "raw"}]


@needs_module("matplotlib")
def test_figures_shown_and_left_open(rpc: Bound) -> None:
    result = run(rpc, "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nplt.figure(); plt.plot([2, 1]);", timeout_ms=60000)

    assert result["error"] is None, result
    assert [base64.b64decode(d["image/png"])[:4] for d in result["displays"]] == [b"\x89PNG"] * 2
    assert value(rpc, "plt.get_fignums()") == "[]"


@needs_module("matplotlib")
def test_a_figure_is_a_value(rpc: Bound) -> None:
    kinds = lambda code: [sorted(d) for d in run(rpc, code, timeout_ms=60000)["displays"]]  # noqa: E731
    plot = ["image/png", "text/plain"]
    use = "import matplotlib.pyplot as plt\nfrom matplotlib.figure import Figure\n"

    assert kinds(use + "fig, ax = plt.subplots(); fig") == [plot]  # once
    assert kinds("plt.figure(); fig") == [plot, plot]  # the new figure has the former number of fig
    assert kinds("fig;") == []
    assert kinds("display(fig, Figure(figsize=(1, 1)))") == [plot, plot]
    assert kinds("fig.text(0, 0, '$\\\\nothing$'); fig") == []
    assert value(rpc, "display(fig); fig") == "<Figure size 640x480 with 1 Axes>"


@needs_module("pandas")
def test_a_data_frame_is_a_table(rpc: Bound) -> None:
    result = run(rpc, "import pandas as pd\npd.DataFrame({'a': [1, 2]})", timeout_ms=60000)

    assert "<table" in result["displays"][0]["text/html"] and "a\n0  1" in result["result"]


def test_display_takes_what_that_of_ipython_does(rpc: Bound) -> None:
    result = run(rpc, "display({'text/html': '<b>'}, raw=True)\ndisplay(1, 2, display_id='a', clear=True)")

    assert (result["error"], result["displays"]) == (None, [{"text/html": "<b>"}, {"text/plain": "1"}, {"text/plain": "2"}])
