# SPDX-License-Identifier: Apache-2.0
"""Collects the displays of a run: mime bundles of values, figures of matplotlib, and display() for libraries. holt_interpreter
loads this module at its start. Methods of values may be hostile code."""

import io
import json
import sys
import types

REPR_MAX = 256 * 1024  # characters of a result's repr, or of a traceback
DISPLAYS_MAX = 6 * 1024 * 1024  # bytes of all displays of one run, in their encoded form


class Displays:
    """The displays of a run: mime bundles, with a limit on their size."""

    def __init__(self):
        self.items, self.size = [], 0

    def add(self, bundle):
        size = len(json.dumps(bundle))
        if self.size + size > DISPLAYS_MAX:
            bundle = {"text/plain": f"left out: {size} bytes, after {self.size} displayed of at most {DISPLAYS_MAX} in a run"}
            size = len(json.dumps(bundle))
            if self.items and self.items[-1].get("text/plain", "").startswith("left out: "):
                return
        self.size += size
        self.items.append(bundle)


shown = Displays()  # the displays of the current run


def begin():
    global shown
    shown = Displays()


MIMES = {
    "_repr_html_": "text/html", "_repr_markdown_": "text/markdown", "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png", "_repr_jpeg_": "image/jpeg", "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex", "_repr_json_": "application/json", "_repr_javascript_": "application/javascript",
}


def clean(text):
    """Makes a text fit for strict JSON: without lone surrogates, and without NUL, which ends strings elsewhere."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def text_of(value):
    """Encodes data of a mime type as text for the channel: bytes in base64, objects as JSON."""
    import base64

    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    return clean(value if isinstance(value, str) else json.dumps(value))


def texts_of(bundle):
    return {clean(str(mime)): text_of(data) for mime, data in bundle.items()}


def whole_bundle(whole):
    """Calls the method with IPython's arguments. IPython requires that the method accepts them, but some methods do not."""
    try:
        return whole(include=None, exclude=None)
    except TypeError:
        return whole()


def bundle_of(value):
    """Collects the rich forms of a value. Each method is looked up on the type, and one that fails is skipped."""
    bundle = {}
    if isinstance(value, type):
        return bundle
    if is_figure(value):
        try:
            bundle = drawn(value)
        except Exception:
            pass
        return bundle
    try:
        whole = getattr(value, "_repr_mimebundle_", None)
        if callable(whole):
            found = whole_bundle(whole)
            bundle.update(texts_of(found[0] if isinstance(found, tuple) else found))
    except Exception:
        pass
    for name, mime in MIMES.items():
        if mime in bundle or not callable(getattr(type(value), name, None)):
            continue
        try:
            found = getattr(value, name)()
            if isinstance(found, tuple):
                found = found[0]
            if found is not None:
                bundle[mime] = text_of(found)
        except Exception:
            continue
    return bundle


def shorten(text):
    text = clean(text)
    return text if len(text) <= REPR_MAX else f"{text[:REPR_MAX]}... ({len(text)} characters)"


def display(*values):
    """Shows values. The host gets a mime bundle of each, for example with text and an image."""
    for value in values:
        bundle = bundle_of(value)
        bundle.setdefault("text/plain", shorten(repr(value)))
        shown.add(bundle)


class IPythonDisplay:
    """Replaces IPython's display() with holt's when code imports it. Outside of an IPython shell, the original
    only prints."""

    PLACES = ("IPython.core.display_functions", "IPython.core.display")  # before IPython 7.23 only the second exists

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.PLACES:
            return None
        import importlib.machinery

        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and spec.loader:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (load(module), cls.take(module))
        return spec

    @classmethod
    def take(cls, module):
        if "display" in vars(module):
            module.display = cls.display

    @staticmethod
    def display(*values, raw=False, **_options):
        for value in values:
            if raw:  # the value is a bundle already
                shown.add(texts_of(value))
            else:
                display(value)


def is_figure(value):
    return isinstance(value, getattr(sys.modules.get("matplotlib.figure"), "Figure", ()))


def is_open(value):
    """Whether a value is an open figure of pyplot. Such a figure is shown at the end of the run."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not pyplot or not is_figure(value):
        return False
    number = getattr(value, "number", None)
    return number in pyplot.get_fignums() and pyplot.figure(number) is value


def drawn(figure):
    data = io.BytesIO()
    figure.savefig(data, format="png", bbox_inches="tight")
    width, height = (round(side) for side in figure.get_size_inches() * figure.dpi)
    return {"image/png": text_of(data.getvalue()), "text/plain": f"<Figure {width}x{height}>"}


def take_figures():
    """Returns and closes every open figure of matplotlib."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not pyplot:
        return
    failed = None
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            shown.add(drawn(figure))
        except Exception as error:  # for example, a formula cannot be drawn; goes on with the other figures
            failed = failed or error
        finally:
            pyplot.close(figure)
    if failed:
        raise failed


def backend():
    """The backend module of matplotlib that makes plt.show() a display (MPLBACKEND=module://holt_matplotlib)."""
    from matplotlib.backends import backend_agg

    module = types.ModuleType("holt_matplotlib")
    module.FigureCanvas = backend_agg.FigureCanvasAgg
    module.FigureManager = backend_agg.FigureManagerBase if hasattr(backend_agg, "FigureManagerBase") else None
    module.show = lambda *args, **kwargs: take_figures()
    return module


class BackendFinder:
    """Creates the backend module on its first import, so that matplotlib is loaded only if code needs it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "holt_matplotlib":
            return None
        import importlib.machinery

        return importlib.machinery.ModuleSpec(name, BackendFinder)

    @staticmethod
    def create_module(spec):
        return backend()

    @staticmethod
    def exec_module(module):
        pass
