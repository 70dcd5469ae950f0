# SPDX-License-Identifier: Apache-2.0
"""A session's lasting interpreter.

Runs inside, without authority: what it says to the keeper is checked there as an attacker's, since the code that it
runs can say the same. It is executed with the channel as stdin, a stream socket: one JSON object a line each way, one
request at a time. What the code prints goes to fds 1 and 2 and does not pass here.

A request:  {"id", "code", "cwd"?, "env"?}          or  {"id", "do": "variables" | "save" | "load", "path"?}
The answer: {"id", "result", "displays", "error", "exit_code", "usage"}  or  {"id", "answer"} or {"id", "error"}
Each has "spent", what was used up to then in all, from which the keeper tells what a run has used that took the
interpreter with it.

The code runs in the main thread as the module __main__. SIGINT, which the keeper sends to interrupt it, is a
KeyboardInterrupt while code runs, or before it does where it has been asked for, and nothing otherwise.
"""

import _signal  # what signal is made of, without the enums, which cost a short run more than all else
import ast
import builtins
import inspect
import io
import json
import linecache
import os
import resource
import socket
import sys
import traceback
import types
from time import monotonic, sleep

REPR_MAX = 256 * 1024  # characters of a result's repr, or of a traceback
DISPLAYS_MAX = 6 * 1024 * 1024  # bytes of all that one run displays, as the channel has them

channel = socket.socket(fileno=os.dup(0))
channel.set_inheritable(False)
null = os.open("/dev/null", os.O_RDONLY)
os.dup2(null, 0)
os.close(null)
saved = [os.dup(fd) for fd in (1, 2)]  # not inheritable
owner = os.getpid()
running = waiting = broken_off = False
in_hand = early = False  # there is a request, whose code has not begun; an interrupt that came before it has
interrupts = 0  # that have come, as the keeper counts those that it sends
cells = 0

main = types.ModuleType("__main__")
main.__builtins__ = builtins
sys.modules["__main__"] = main
namespace = main.__dict__
hidden = {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__builtins__", "__annotations__"}


# --- what the code finds ---


class NoInput(io.TextIOBase):
    """In the place of stdin: nobody is there to type."""

    encoding = "utf-8"

    def readable(self):
        return True

    def _refuse(self, *_):
        raise EOFError("there is no input: code in a session's interpreter has no stdin; put the value into the code")

    read = readline = readlines = __next__ = _refuse


def no_input(prompt=""):
    NoInput()._refuse()


class Displays:
    """What a run shows besides its output: mime bundles, bounded."""

    def __init__(self):
        self.items, self.size = [], 0

    def add(self, bundle):
        size = sum(len(text) for text in bundle.values())
        if self.size + size > DISPLAYS_MAX:
            bundle = {"text/plain": f"left out: {size} bytes, {self.size} displayed before, of {DISPLAYS_MAX} in a run"}
            size = len(bundle["text/plain"])
            if self.items and self.items[-1].get("text/plain", "").startswith("left out: "):
                return
        self.size += size
        self.items.append(bundle)


displays = Displays()

MIMES = {
    "_repr_html_": "text/html", "_repr_markdown_": "text/markdown", "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png", "_repr_jpeg_": "image/jpeg", "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex", "_repr_json_": "application/json", "_repr_javascript_": "application/javascript",
}


def clean(text):
    """As strict JSON takes it: no lone surrogates, and no NUL, which ends strings elsewhere."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def text_of(value):
    """What a mime type's data is on the channel, always text: bytes in base64, objects as JSON."""
    import base64

    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    return clean(value if isinstance(value, str) else json.dumps(value))


def texts_of(bundle):
    return {clean(str(mime)): text_of(data) for mime, data in bundle.items()}


def bundle_of(value):
    """The rich forms of a value, each asked of its type; one that fails is left out."""
    bundle = {}
    if isinstance(value, type):
        return bundle
    whole = getattr(value, "_repr_mimebundle_", None)
    if callable(whole):
        try:
            found = whole()
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
    """Shows values richly: the host gets a mime bundle of each."""
    for value in values:
        bundle = bundle_of(value)
        bundle.setdefault("text/plain", shorten(repr(value)))
        displays.add(bundle)


class IPythonDisplay:
    """Makes display() of IPython ours where code imports it: without a shell of IPython's own it would only print."""

    PLACES = ("IPython.core.display_functions", "IPython.core.display")  # before IPython 7.23 the second alone

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
            if raw:  # it is a bundle
                displays.add(texts_of(value))
            else:
                display(value)


def take_figures():
    """Every figure of matplotlib that is open, which is closed by it."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not pyplot:
        return
    failed = None
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        data = io.BytesIO()
        try:
            figure.savefig(data, format="png", bbox_inches="tight")
        except Exception as error:  # a formula that cannot be drawn: the others can
            failed = failed or error
            continue
        finally:
            pyplot.close(figure)
        width, height = (round(side) for side in figure.get_size_inches() * figure.dpi)
        displays.add({"image/png": text_of(data.getvalue()), "text/plain": f"<Figure {width}x{height}>"})
    if failed:
        raise failed


def backend():
    """matplotlib's backend, by which plt.show() is a display (MPLBACKEND=module://holt_matplotlib)."""
    from matplotlib.backends import backend_agg

    module = types.ModuleType("holt_matplotlib")
    module.FigureCanvas = backend_agg.FigureCanvasAgg
    module.FigureManager = backend_agg.FigureManagerBase if hasattr(backend_agg, "FigureManagerBase") else None
    module.show = lambda *args, **kwargs: take_figures()
    return module


class BackendFinder:
    """Makes that module when it is asked for, and matplotlib is not loaded for nothing."""

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


# --- packages ---


class Installer:
    """Asks holt_packages about what is not there, which is not loaded for nothing."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is not None or name.startswith("_"):
            return None
        return beside("holt_packages").find_spec(name, namespace)

    @staticmethod
    def forget():
        """There may be more to install from by the next run."""
        if "holt_packages" in sys.modules:
            sys.modules["holt_packages"].failed.clear()


def beside(name):
    """A module of ours, wherever sys.path leads."""
    if name in sys.modules:
        return sys.modules[name]
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, f"{os.path.dirname(__file__)}/{name}.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:  # an interrupt: half of it is worth nothing
        del sys.modules[name]
        raise
    return module


# --- running code ---


def interrupted(number, frame):
    global broken_off, early, interrupts
    if os.getpid() != owner:
        return
    interrupts += 1
    early = not running and (early or in_hand or is_asked())
    broken_off = early and waiting
    if running or broken_off:
        raise KeyboardInterrupt


def is_asked():
    """Whether there is a request, which is not read while a task that an earlier run has left holds the loop."""
    import select

    return bool(select.select([channel], [], [], 0)[0])


def split(tree):
    """The statements, and the last of them where it is an expression, whose value is the result."""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        return ast.Module(tree.body[:-1], []), ast.Expression(tree.body[-1].value)
    return tree, None


def names_in(part):
    """Those that code uses at its top, in comprehensions too."""
    names = set(part.co_names)
    for inner in part.co_consts:
        if isinstance(inner, types.CodeType) and inner.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"):
            names |= names_in(inner)
    return names


def needs_loop(parts):
    """Whether code awaits, or makes tasks for a loop that it does not run itself."""
    if any(part.co_flags & inspect.CO_COROUTINE for part in parts):
        return True
    names = set().union(*map(names_in, parts))
    return bool(names & {"create_task", "ensure_future"}) and not names & {"run", "run_until_complete", "run_forever"}


def run_parts(parts):
    """Compiled code, one after the other, and the value of the last. One that awaits is a coroutine, and then all runs in
    the loop, which lasts as the rest does."""
    if not needs_loop(parts):
        return [eval(part, namespace) for part in parts][-1]

    async def whole():
        value = None
        for part in parts:
            value = eval(part, namespace)
            if part.co_flags & inspect.CO_COROUTINE:
                value = await value
        return value

    return beside("holt_loop").run(whole())


def parse(source, name):
    try:
        return compile(source, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        hint = beside("holt_hints").hint_of(source, error.lineno)
        if hint:
            error.msg += f" ({hint})"
        raise


def run_source(source, name):
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    body, last = split(parse(source, name))
    parts = [(body, "exec")] if body.body or not last else []
    parts += [(last, "eval")] if last else []
    value = run_parts([compile(tree, name, mode, flags, dont_inherit=True) for tree, mode in parts])
    if value is None or source.rstrip().endswith(";"):
        return None
    namespace["_"] = value
    bundle = bundle_of(value)
    if bundle:
        displays.add(bundle | {"text/plain": shorten(repr(value))})
    return shorten(repr(value))


def format_error(error):
    """As a traceback has it, without what led to the code that was run; those of what it came from, too."""
    whole = traceback.TracebackException.from_exception(error)
    left, seen = [whole], set()
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        frames = [f for f in each.stack if f.filename != __file__]
        first = next((n for n, f in enumerate(frames) if f.filename.startswith("<python ")), 0)
        each.stack = traceback.StackSummary.from_list(frames[first:])
        left += [each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())]
    return "".join(line for line in whole.format() if whole.stack or not line.startswith("Traceback "))


def describe(error):
    try:
        text = format_error(error)
    except BaseException as failed:  # what is in it is the code's
        text = f"{type(error).__name__} that cannot be shown: {type(failed).__name__}\n"
    try:
        message = str(error)
    except BaseException:  # its __str__ is the code's, too, and may exit
        message = "<exception str() failed>"  # as in a traceback
    return {"name": type(error).__name__, "message": shorten(message), "traceback": shorten(text)}


def exit_code(error):
    """What the code would have ended a program with."""
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 255 if isinstance(error.code, int) else 1


def guarded(function):
    """Runs what is the code's own: its result, its error, the code it would exit with."""
    global running, in_hand, early
    try:
        _signal.signal(_signal.SIGINT, interrupted)  # whatever the code before has made of it
        running, in_hand = True, False
        if early:
            early = False
            raise KeyboardInterrupt
        value = function()
        running = False
        return value, None, 0
    except BaseException as error:
        running = False
        if os.getpid() != owner:
            os._exit(exit_code(error))
        return None, None if isinstance(error, SystemExit) and exit_code(error) == 0 else describe(error), exit_code(error)
    finally:
        running = False
        if os.getpid() != owner:  # a fork that has come back from the code
            os._exit(0)


def settle_output():
    """What is buffered leaves; the fds are what they were, whatever the code has made of them."""
    for stream in {id(s): s for s in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)}.values():
        try:
            stream.flush()
        except Exception:
            pass
    for fd, own in zip((1, 2), saved):
        try:
            if os.path.sameopenfile(fd, own):
                continue
        except OSError:
            pass
        os.dup2(own, fd)


def apply_env(changes):
    """Sets variables for a run; what they were before."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    return before


def restore_env(before):
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def used():
    """Of the interpreter and of the processes that have ended below it: microseconds of two kinds, and bytes at most."""
    own, others = (resource.getrusage(who) for who in WHO)
    return {
        "user_us": round((own.ru_utime + others.ru_utime) * 1e6), "system_us": round((own.ru_stime + others.ru_stime) * 1e6),
        "max_rss_bytes": max(own.ru_maxrss, others.ru_maxrss) * 1024,
    }


def run(request):
    global displays, cells
    cells += 1
    name = f"<python {cells}>"
    source = request["code"]
    if source.startswith("\ufeff"):  # as files of other systems begin, which python3 takes, too
        source = source[1:]
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    displays = Displays()
    Installer.forget()
    before_usage = used()
    before, here = apply_env(request.get("env") or {}), None
    result, error, code = None, None, 0
    try:
        if request.get("cwd"):
            here = os.open(".", os.O_PATH | os.O_DIRECTORY)
            os.chdir(request["cwd"])
        result, error, code = guarded(lambda: run_source(source, name))
        if "matplotlib.pyplot" in sys.modules:
            _, failed, _ = guarded(take_figures)
            error, code = (error, code) if error or not failed else (failed, 1)
    except OSError as failed:
        error, code = describe(failed), 1
    finally:
        restore_env(before)
        if here is not None:
            os.fchdir(here)
            os.close(here)
    guarded(settle_output)
    usage = used()
    for name in ("user_us", "system_us"):
        usage[name] -= before_usage[name]
    return {"result": result, "displays": displays.items, "error": error, "exit_code": code, "usage": usage}


# --- variables ---


def own_variables():
    return {
        name: value for name, value in namespace.items()
        if name not in hidden and not name.startswith("_") and name not in ("display",)
    }


# --- serving ---


def of_state(name):
    return lambda request: getattr(beside("holt_state"), name)(request, own_variables(), namespace, guarded)


DOES = {name: of_state(name) for name in ("variables", "save", "load")}


def answer(request):
    if "code" in request:
        return run(request)
    value, error, _ = guarded(lambda: DOES[request["do"]](request))
    return value or {"error": error}


def send(message):
    try:
        line = json.dumps(message)
    except (TypeError, ValueError) as error:  # a _repr_*_ of the code's gave what is no JSON
        line = json.dumps({**message, "displays": [], "error": message.get("error") or describe(error)})
    channel.sendall(line.encode() + b"\n")


def wait():
    """Until there is something to read, while tasks that runs have left go on. An error where it took an interrupt, which
    was for the run that is asked for, to come back from them."""
    global waiting, broken_off
    waiting, broken_off = True, False
    stopped = sys.modules["holt_loop"].wait(channel.fileno())
    waiting = False
    if not broken_off or not isinstance(stopped, KeyboardInterrupt):
        return None
    return {**describe(stopped), "message": "a task of an earlier run did not let this one begin"}


def settle_interrupts(sent):
    """Until all have come that were for earlier runs: they go another way than requests do, and some may come as one.
    There are more where code has signalled itself, while it ran."""
    global interrupts, early
    end = monotonic() + 1
    while interrupts < sent and monotonic() < end:
        sleep(0.001)
    early = early and interrupts > sent
    interrupts = interrupts if early else sent


def requests():
    """Each, with the error that is its answer or None. What is read is never more than is waited for, and only once it is
    known to be in hand."""
    global in_hand
    left, error = b"", None
    while True:
        line, end, rest = left.partition(b"\n")
        if end:
            left, request = rest, json.loads(line)
            if "interrupts" in request:
                settle_interrupts(request["interrupts"])
                error = error if early else None
                continue
            yield request, error
            error = None
            continue
        if "holt_loop" in sys.modules:
            error = wait() or error
        channel.recv(1, socket.MSG_PEEK)
        in_hand = True
        data = channel.recv(1 << 20)
        if not data:
            return
        left += data


def serve():
    global in_hand, early
    for request, error in requests():
        done = {"error": error, "exit_code": 1} if error else answer(request)
        in_hand = early = False
        send({"id": request["id"], **done, "spent": used()})


def prepare():
    _signal.signal(_signal.SIGINT, interrupted)
    os.environ.setdefault("MPLBACKEND", "module://holt_matplotlib")
    sys.meta_path[:] = [IPythonDisplay, *sys.meta_path, BackendFinder, Installer]
    sys.stdin = NoInput()
    builtins.input = no_input
    sys.argv = [""]
    sys.path[0] = ""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")
    namespace["display"] = display


prepare()
send({"id": 0, "spent": used()})
serve()
