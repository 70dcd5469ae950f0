# SPDX-License-Identifier: Apache-2.0
"""A session's lasting interpreter.

It runs inside, without authority. Code that it runs can write to the channel too, so the keeper treats every answer like an
attacker's. Its stdin is the channel, a stream socket: each line in either direction is one JSON object, and there is one
request at a time. Output of the code goes directly to fds 1 and 2.

A request:  {"id", "code", "file"?, "cwd"?, "env"?}          or  {"id", "do": "variables" | "save" | "load", "path"?}
The answer: {"id", "result", "displays", "error", "exit_code", "usage"}  or  {"id", "answer"} or {"id", "error"}

Each answer has "spent", the interpreter's total usage so far. If a run kills the interpreter, the keeper computes the run's
usage from it.

Code runs in the main thread as the module __main__. The keeper interrupts it with SIGINT. While code runs, that becomes a
KeyboardInterrupt. If it arrives between a request and the start of its code, the code is interrupted at its start. At other
times, it has no effect.
"""

import _signal  # the core of signal; importing signal itself with its enums would dominate a short run
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

HERE = os.path.dirname(__file__)

channel = socket.socket(fileno=os.dup(0))
channel.set_inheritable(False)
null = os.open("/dev/null", os.O_RDWR)
os.dup2(null, 0)
saved = [(fd, os.dup(fd)) for fd in (1, 2)]  # not inheritable
own_streams = sys.stdout, sys.stderr
owner = os.getpid()
running = waiting = broken_off = False
in_hand = early = False  # in_hand: a request was read, but its code has not begun; early: an interrupt came in that time
interrupts = 0  # number of interrupts received; the keeper counts those that it sends
cells, files = 0, set()  # the number of cells, and the file names of code that has one

main = types.ModuleType("__main__")
elsewhere = type(json.__spec__)("__main__", None)  # prevents multiprocessing from looking for __file__, which is a host path
main.__spec__ = elsewhere
main.__builtins__ = builtins
sys.modules["__main__"] = main
namespace = main.__dict__
hidden = {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__builtins__", "__annotations__"}


def beside(name, file=None):
    """Imports a module of holt's, regardless of sys.path. file: the name of its file, if that is another one."""
    if name in sys.modules:
        return sys.modules[name]
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, f"{HERE}/{file or name}.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:  # after an interrupt, a half-loaded module is useless
        del sys.modules[name]
        raise
    return module


displays = beside("holt_displays")


# --- the code's environment ---


class NoInput(io.TextIOBase):
    """Replaces stdin, because nobody can type."""

    encoding = "utf-8"

    def readable(self):
        return True

    def close(self):
        """Does nothing: exit() closes sys.stdin, but the interpreter goes on."""

    def _refuse(self, *_):
        raise EOFError("code in a session's interpreter has no stdin: put the value into the code")

    read = readline = readlines = __next__ = _refuse


def no_input(prompt=""):
    NoInput()._refuse()


# --- helpers of Composio ---

COMPOSIO = (
    "run_composio_tool", "invoke_llm", "web_search", "proxy_execute",
    "upload_local_file", "smart_file_extract", "get_mount_file_url", "get_mount_file_s3_key",
)


def composio_function(name):
    """Returns a stand-in for a function of composio_helper, which loads the module only when it is called."""
    def call(*args, **kwargs):
        import composio_helper

        function = getattr(composio_helper, name, None)  # a --helper may replace the module, and have fewer functions
        return (function or getattr(beside("holt_composio", "composio_helper"), name))(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"See composio_helper.{name}()."
    return call


def offer_composio():
    """With the route composio, its functions need no import. They are builtins, so names of the code's own come first."""
    if os.environ.get("COMPOSIO_API_KEY"):
        for name in COMPOSIO:
            setattr(builtins, name, composio_function(name))


# --- packages ---


class Installer:
    """Calls holt_packages for a missing module, and loads it only then."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is not None or name.startswith("_"):
            return None
        return beside("holt_packages").find_spec(name, namespace)

    @staticmethod
    def forget():
        """Forgets failed installations, because more packages may be available in the next run."""
        if "holt_packages" in sys.modules:
            sys.modules["holt_packages"].failed.clear()


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
    """Whether a request has arrived. It stays unread while a task of an earlier run blocks the event loop."""
    import select

    return bool(select.select([channel], [], [], 0)[0])


def split(tree):
    """Splits code into its statements and its last expression, if there is one; that expression's value is the result."""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        return ast.Module(tree.body[:-1], []), ast.Expression(tree.body[-1].value)
    return tree, None


def names_in(part):
    """The names that code uses at its top level, including those in comprehensions."""
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
    """Runs compiled parts in order and returns the value of the last. If a part awaits, all parts run in the event loop, which
    lasts between runs."""
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


def compiled(tree, name, mode):
    try:
        return compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:  # for example a "return" outside functions, which only compile() finds; the tree has no source lines
        error.text = linecache.getline(name, error.lineno or 0) or None
        raise


def run_source(source, name):
    body, last = split(parse(source, name))
    parts = [(body, "exec")] if body.body or not last else []
    parts += [(last, "eval")] if last else []
    value = run_parts([compiled(tree, name, mode) for tree, mode in parts])
    if value is None or source.rstrip().endswith(";"):
        return None
    namespace["_"] = value
    bundle = {} if displays.is_open(value) else displays.bundle_of(value)
    if bundle:
        displays.shown.add(bundle | {"text/plain": displays.shorten(repr(value))})
    return displays.shorten(repr(value))


def format_error(error):
    """Formats an error like a traceback, without the frames above the code. Causes and contexts are formatted in the same way."""
    whole = traceback.TracebackException.from_exception(error)
    left, seen = [whole], set()
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        frames = [f for f in each.stack if f.filename in files or f.filename.rpartition("/")[0] != HERE]
        first = next((n for n, f in enumerate(frames) if f.filename in files or f.filename.startswith("<python ")), 0)
        each.stack = traceback.StackSummary.from_list(frames[first:])
        left += [each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())]
    return "".join(line for line in whole.format() if whole.stack or not line.startswith("Traceback "))


def describe(error):
    try:
        text = format_error(error)
    except BaseException as failed:  # attributes of the error are the code's own
        text = f"{type(error).__name__} that cannot be shown: {type(failed).__name__}\n"
    try:
        number = isinstance(error, SystemExit) and isinstance(error.code, int)  # True counts as an int
        message = str(int(error.code) if number else error)
    except BaseException:  # __str__ is the code's own too, and may exit
        message = "<exception str() failed>"  # the same text as in a traceback
    name = displays.shorten(type(error).__name__)
    return {"name": name, "message": displays.shorten(message), "traceback": displays.shorten(text)}


def exit_code(error):
    """The exit code with which the error would have ended a program."""
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 255 if isinstance(error.code, int) else 1


def guarded(function):
    """Calls a function that runs the code's own parts. Returns its result, its error, and the exit code that it asked for."""
    global running, in_hand, early
    try:
        _signal.signal(_signal.SIGINT, interrupted)  # earlier code may have changed the handler
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
            leave(error)
        return None, None if isinstance(error, SystemExit) and exit_code(error) == 0 else describe(error), exit_code(error)
    finally:
        running = False
        if os.getpid() != owner:
            leave()


def leave(error=None):
    """Ends a forked child that has returned from the code, after writing its buffered output."""
    try:
        if error and not isinstance(error, SystemExit):
            print(format_error(error), end="", file=sys.stderr)
        elif error and exit_code(error) and not isinstance(error.code, int):  # a text
            print(error, file=sys.stderr)
        flush((sys.stdout, sys.stderr))
    finally:
        os._exit(exit_code(error) if error else 0)


def flush(streams):
    """Flushes streams and returns those that still hold buffered data."""
    stuck = []
    for stream in {id(s): s for s in streams}.values():
        try:
            stream.flush()
        except Exception:
            stuck.append(stream)
    return stuck


def settle_output():
    """Writes out buffered output, and restores fds 1 and 2 if code or a program that it ran has changed them. Buffered output
    that cannot be written is dropped, or it would appear in the next run. Causes are an interrupt, the code's own
    flush(), or an fd that accepts nothing. Returns the error that prevented writing."""
    stuck = own_streams

    def empty():
        nonlocal stuck
        for _, own in saved:
            os.set_blocking(own, True)
        flush((sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__))
        stuck = flush(own_streams)

    _, error, _ = guarded(empty)
    try:
        if stuck:
            for fd, _ in saved:
                os.dup2(null, fd)
            guarded(lambda: flush(stuck))
        for fd, own in saved:
            os.dup2(own, fd)
    except OSError:  # the code has closed them
        pass
    return error


def apply_env(changes):
    """Sets environment variables for a run, and returns the previous values."""
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
    """The usage of the interpreter and its ended children: user and system time in microseconds, and peak memory in bytes."""
    own, others = (resource.getrusage(who) for who in WHO)
    return {
        "user_us": round((own.ru_utime + others.ru_utime) * 1e6), "system_us": round((own.ru_stime + others.ru_stime) * 1e6),
        "max_rss_bytes": max(own.ru_maxrss, others.ru_maxrss) * 1024,
    }


def is_inside(name, source):
    """Whether a file's name leads to the same file inside, so that a process of multiprocessing can import it."""
    try:
        with open(name, encoding="utf-8", newline="") as file:
            return file.read(len(source) + 1) == source
    except (OSError, ValueError):
        return False


def run(request):
    global cells
    cells += 1
    name = f"<python {cells}>"
    source = request["code"]
    if request.get("file"):
        namespace["__file__"] = name = request["file"]
        files.add(name)
    main.__spec__ = None if name in files and is_inside(name, source) else elsewhere
    if source.startswith("\ufeff"):  # a byte order mark, which python3 accepts, too
        source = source[1:]
    lines = io.StringIO(source, newline=None).readlines()  # converts all line ends to "\n"
    linecache.cache[name] = (len(source), None, lines, name)
    displays.begin()
    Installer.forget()
    namespace.pop("__warningregistry__", None)  # otherwise a warning of another run, on the same line, would hide this one
    before_usage = used()
    before, here = apply_env(request.get("env") or {}), None
    result, error, code = None, None, 0
    try:
        if request.get("cwd"):
            here = os.open(".", os.O_PATH | os.O_DIRECTORY)
            os.chdir(request["cwd"])
        result, error, code = guarded(lambda: customized_run(source, name))
        if "matplotlib.pyplot" in sys.modules:
            _, failed, _ = guarded(displays.take_figures)
            error, code = (error, code) if error or not failed else (failed, 1)
    except OSError as failed:
        error, code = describe(failed), 1
    finally:
        restore_env(before)
        if here is not None:
            os.fchdir(here)
            os.close(here)
    failed = settle_output()
    error, code = (error, code) if error or not failed else (failed, 1)
    spent = used()
    usage = spent | {name: spent[name] - before_usage[name] for name in ("user_us", "system_us")}
    return {
        "result": result, "displays": displays.shown.items, "error": error, "exit_code": code, "usage": usage, "spent": spent,
    }


# --- variables ---


def own_variables():
    return {
        name: value for name, value in namespace.items()
        if isinstance(name, str) and name not in hidden and not name.startswith("_") and name not in ("display",)
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
    except (TypeError, ValueError) as error:  # a _repr_*_ method of the code returned data that is not JSON
        line = json.dumps({**message, "displays": [], "error": message.get("error") or describe(error)})
    channel.sendall(line.encode() + b"\n")


def wait():
    """Waits for a request, while tasks of earlier runs go on. If such a task never yields, an interrupt for the requested run
    stops the task instead, and an error for that run is returned."""
    global waiting, broken_off
    waiting, broken_off = True, False
    stopped = sys.modules["holt_loop"].wait(channel.fileno())
    waiting = False
    if not broken_off or not isinstance(stopped, KeyboardInterrupt):
        return None
    return {**describe(stopped), "message": "a task of an earlier run blocked this one"}


def settle_interrupts(sent):
    """Waits for all interrupts that were sent to earlier runs. They travel separately from requests, and several may arrive as
    one. Code that signals itself adds to the count."""
    global interrupts, early
    end = monotonic() + 1
    while interrupts < sent and monotonic() < end:
        sleep(0.001)
    early = early and interrupts > sent
    interrupts = interrupts if early else sent


def requests():
    """Yields each request, and an error if the request must fail without running. in_hand is set before the request is read,
    so that no interrupt gets lost in between."""
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
        data = channel.recv(1 << 20 if left else 1 << 16)  # malloc() maps and unmaps a large buffer for each read
        if not data:
            return
        left += data


def serve():
    global in_hand, early
    for request, error in requests():
        done = {"error": error, "exit_code": 1} if error else answer(request)
        in_hand = early = False
        send({"id": request["id"], "spent": done.get("spent") or used(), **done})


def add_paths():
    """Adds the paths that -E and -s omit, so that imports find modules there. Nothing in them runs automatically (.pth files,
    usercustomize)."""
    import site

    own = sys.prefix == sys.base_prefix  # a venv does not use the user's site-packages
    users = site.getusersitepackages() if own else ""
    if users and os.path.isdir(users) and users not in sys.path:
        system = (n for n, path in enumerate(sys.path) if path.endswith(("/site-packages", "/dist-packages")))
        sys.path.insert(next(system, len(sys.path)), users)
    sys.path[1:1] = named_paths


customized = False
named_paths = [os.path.abspath(path) for path in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]


def customize():
    """Imports sitecustomize from PYTHONPATH, which -E omits. It counts as a part of the first run, with its time limit."""
    global customized
    if customized:
        return
    customized = True
    if others := [path for path in named_paths if path != HERE]:
        from importlib.machinery import PathFinder
        from importlib.util import module_from_spec

        spec = PathFinder.find_spec("sitecustomize", others)
        if spec and spec.loader:
            spec.loader.exec_module(module_from_spec(spec))


def customized_run(source, name):
    customize()
    return run_source(source, name)


def prepare():
    _signal.signal(_signal.SIGINT, interrupted)
    os.environ.setdefault("MPLBACKEND", "module://holt_matplotlib")
    sys.meta_path[:] = [displays.IPythonDisplay, *sys.meta_path, displays.BackendFinder, Installer]
    sys.stdin = NoInput()
    builtins.input = no_input
    offer_composio()
    sys.argv = [""]
    sys.path[0] = ""
    add_paths()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")
    os.register_at_fork(before=lambda: flush((sys.stdout, sys.stderr)))  # otherwise both processes would print the buffered output
    namespace["display"] = displays.IPythonDisplay.display


prepare()
send({"id": 0, "spent": used()})
serve()
