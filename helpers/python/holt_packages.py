# SPDX-License-Identifier: Apache-2.0
"""Installs what code of the session imports and nobody has, from where the policy lets pip look.

Loaded by the interpreter (holt_interpreter.py) when a name is first not found. What a library tries to import on its
own account is not installed: it has another way to go.
"""

import importlib
import importlib.machinery
import os
import socket
import sys

HERE = os.path.dirname(__file__) + "/"

# Names that a module and what it is installed as do not share.
DISTRIBUTIONS = {
    "PIL": "pillow", "cv2": "opencv-python", "yaml": "pyyaml", "sklearn": "scikit-learn", "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil", "dotenv": "python-dotenv", "docx": "python-docx", "pptx": "python-pptx",
    "fitz": "pymupdf", "skimage": "scikit-image", "serial": "pyserial", "Crypto": "pycryptodome", "jwt": "pyjwt",
    "OpenSSL": "pyopenssl", "git": "gitpython", "attr": "attrs", "markdown_it": "markdown-it-py",
}

failed = {}  # why, by name: until the next run, when there may be more to install from


def find_spec(name, namespace):
    """What the import of a name finds that nobody has; namespace is the code's. Raises ModuleNotFoundError."""
    if not is_asked_by_code(namespace):
        return None
    if name not in failed:
        failed[name] = refusal() or install(DISTRIBUTIONS.get(name, name))
    spec = None if failed[name] else importlib.machinery.PathFinder.find_spec(name)
    if spec is None:
        why = failed[name] or f"{DISTRIBUTIONS.get(name, name)} was installed, and has no such module"
        raise ModuleNotFoundError(f"No module named {name!r}; {why}", name=name)
    return spec


def is_asked_by_code(namespace):
    """Whether the import stands in what was run, or in a file that belongs to no installation. importlib.util.find_spec()
    is no import: who asks whether a module is there is told so, and nothing is installed."""
    frame = sys._getframe(3)  # past find_spec(), and the finder that asks it
    while frame and "importlib" in frame.f_code.co_filename:
        if frame.f_globals.get("__name__") == "importlib.util":
            return False
        frame = frame.f_back
    if frame is None:
        return False
    file = frame.f_code.co_filename
    installed = any(part in file for part in ("/lib/python", "/site-packages/", "/dist-packages/", HERE))
    return frame.f_globals is namespace or (file.startswith("/") and not installed)


def refusal():
    """Why pip need not be asked, or None."""
    if os.environ.get("PIP_FIND_LINKS"):
        return None
    index = os.environ.get("PIP_INDEX_URL")
    if not index:
        return "packages can be installed where the session has them to install from: holt create --wheels DIR"
    if index.startswith(("http:", "https:")) and not has_network():
        return (
            f"the index {without_secrets(index)} can't be reached, since the session has no network; packages can be"
            " installed from a folder of wheels: holt create --wheels DIR"
        )
    return None


def install(package):
    """None, or why not."""
    import site
    import subprocess

    own = sys.prefix == sys.base_prefix  # a venv has no other place than itself
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", package],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env={**os.environ, "PIP_USER": str(int(own)), "PIP_BREAK_SYSTEM_PACKAGES": "1"},
    )
    if done.returncode != 0:
        said = [line for line in done.stdout.splitlines() if line.strip()] or ["no word why"]
        why = [line for line in said if line.startswith("ERROR: ")] or said  # there may be hints behind it
        return f"pip cannot install {package!r}: {why[-1]}"
    print(f"holt: installed {package}", file=sys.stderr)
    importlib.invalidate_caches()
    if (users := site.getusersitepackages()) not in sys.path:
        sys.path.append(users)
    return None


def has_network():
    """Whether there is a way out of this machine at all: nothing is sent by this."""
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((address, 9))
            return True
        except OSError:
            continue
    return False


def without_secrets(url):
    """Without the user and the password that an index's URL may have."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
