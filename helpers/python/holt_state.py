# SPDX-License-Identifier: Apache-2.0
"""Lists, saves and restores the variables of a session's interpreter. holt_interpreter loads this module for such a request,
and passes its guarded(), which runs the code's own methods."""

import errno
import importlib
import io
import json
import os
import pickle
import sys
import types

VARIABLES_MAX = 6 * 1024 * 1024  # bytes of the encoded list, not counting names and types


def size_of(value):
    shape = getattr(value, "shape", None)  # numpy itself has a shape, which is a function
    if isinstance(shape, tuple):
        return str(shape)
    return str(len(value)) if isinstance(value, (str, bytes, list, dict, tuple, set)) else None


def short(text):
    text = text if len(text) <= 200 else f"{text[:200]}..."
    return sys.modules["holt_displays"].clean(text)


def variables(request, own, namespace, guarded):
    """Lists name, type and short repr of each variable. A value's own code may fail or exit at any time."""
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
        """Refuses values that exist only in __main__, because another interpreter could not find them."""

        def reducer_override(self, value):
            if isinstance(value, (type, types.FunctionType)) and getattr(value, "__module__", None) == "__main__":
                raise pickle.PicklingError("only its source code can be saved, because it is defined in the session and not in a module")
            return NotImplemented

    return Pickler


def save(request, own, namespace, guarded):
    """Saves each variable separately, so that a failure affects only that variable."""
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
    if os.path.isdir(path):  # otherwise the mistake would show only after everything is written to a file beside it
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
        file = open(request["path"], "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))  # opening a FIFO would block
    except FileNotFoundError:
        return {"error": {"message": f"no variables were saved in {request['path']}", "kind": "missing"}}
    with file:
        try:
            state = pickle.load(file)
        except (OSError, MemoryError):
            raise
        except Exception:  # a file that is no pickle may raise any exception: "c" begins an import, even in "country,town"
            pass
    if not isinstance(state, dict) or state.get("holt") != 1:
        return {"error": {"message": f"{request['path']} was not written by python.save", "kind": "data"}}
    loaded, failed = [], {}
    for name, module in state["modules"].items():
        value, error, _ = guarded(lambda module=module: importlib.import_module(module))
        (failed.__setitem__(name, error["message"][:200]) if error else (namespace.__setitem__(name, value), loaded.append(name)))
    for name, data in state["variables"].items():
        value, error, _ = guarded(lambda data=data: pickle.loads(data))
        (failed.__setitem__(name, error["message"][:200]) if error else (namespace.__setitem__(name, value), loaded.append(name)))
    return {"answer": {"loaded": sorted(loaded), "failed": failed, "path": request["path"]}}
