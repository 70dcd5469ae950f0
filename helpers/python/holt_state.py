# SPDX-License-Identifier: Apache-2.0
"""The variables of a session's interpreter: listed, kept in a file, taken back. Loaded by holt_interpreter where that is
asked for; guarded is its way to run what is the code's own."""

import errno
import importlib
import io
import json
import os
import pickle
import sys
import types

VARIABLES_MAX = 6 * 1024 * 1024  # bytes of a list of them, as the channel has them, but for names and types


def size_of(value):
    shape = getattr(value, "shape", None)  # numpy itself has one, a function
    if isinstance(shape, tuple):
        return str(shape)
    return str(len(value)) if isinstance(value, (str, bytes, list, dict, tuple, set)) else None


def short(text):
    text = text if len(text) <= 200 else f"{text[:200]}..."
    return sys.modules["holt_displays"].clean(text)


def variables(request, own, namespace, guarded):
    """Name, type and a short repr of each; no value's own code is trusted to end well."""
    listed, room = [], VARIABLES_MAX
    for name, value in own.items():
        text, _, _ = guarded(lambda value=value: repr(value))
        size, _, _ = guarded(lambda value=value: size_of(value))
        entry = {"name": short(name), "type": short(type(value).__name__), "size": size and short(size)}
        entry["repr"] = short(text) if isinstance(text, str) else "?"
        room -= len(json.dumps(entry))
        listed.append(entry if room >= 0 else {**entry, "repr": "?"})
    return {"answer": {"variables": listed}}


def pickler():
    class Pickler(pickle.Pickler):
        """What lives in __main__ alone would not be found by another interpreter."""

        def reducer_override(self, value):
            if isinstance(value, (type, types.FunctionType)) and getattr(value, "__module__", None) == "__main__":
                raise pickle.PicklingError(f"{value.__qualname__} was defined in the session: keep its code")
            return NotImplemented

    return Pickler


def save(request, own, namespace, guarded):
    """Each variable by itself, so that one that can't be kept takes none with it."""
    Pickler, kept, left, modules = pickler(), {}, {}, {}
    for name, value in own.items():
        if isinstance(value, types.ModuleType):
            modules[name] = value.__name__
            continue
        data = io.BytesIO()
        _, error, _ = guarded(lambda value=value, data=data: Pickler(data, protocol=5).dump(value))
        if error:
            left[name] = (error["message"] or error["name"])[:200]
        else:
            kept[name] = data.getvalue()
    path = request["path"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(path):  # where it would come to light only once all is written, beside it
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    with open(f"{path}.new", "wb") as file:
        pickle.dump({"holt": 1, "modules": modules, "variables": kept}, file, protocol=5)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)
    return {"answer": {"saved": sorted([*kept, *modules]), "left_out": left, "path": path}}


def load(request, own, namespace, guarded):
    state = None
    try:
        file = open(request["path"], "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))  # a FIFO has no end
    except FileNotFoundError:
        return {"error": {"message": f"nothing was saved in {request['path']}", "kind": "missing"}}
    with file:
        try:
            state = pickle.load(file)
        except (OSError, MemoryError):
            raise
        except Exception:  # of another file's bytes anything: "country,town" is to import "ountry,town"
            pass
    if not isinstance(state, dict) or state.get("holt") != 1:
        return {"error": {"message": f"{request['path']} is no file of python.save", "kind": "data"}}
    loaded, failed = [], {}
    for name, module in state["modules"].items():
        value, error, _ = guarded(lambda module=module: importlib.import_module(module))
        (failed.__setitem__(name, error["message"][:200]) if error else (namespace.__setitem__(name, value), loaded.append(name)))
    for name, data in state["variables"].items():
        value, error, _ = guarded(lambda data=data: pickle.loads(data))
        (failed.__setitem__(name, error["message"][:200]) if error else (namespace.__setitem__(name, value), loaded.append(name)))
    return {"answer": {"loaded": sorted(loaded), "failed": failed, "path": request["path"]}}
