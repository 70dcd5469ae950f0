# SPDX-License-Identifier: Apache-2.0
"""Installs missing modules that the session's code imports, from the sources that the policy allows pip.

The interpreter (holt_interpreter.py) loads this module when an import first fails. Optional imports inside libraries are not
installed, because libraries have a fallback.
"""

import importlib
import importlib.machinery
import os
import socket
import sys

HERE = os.path.dirname(__file__) + "/"

# Modules whose package has another name.
DISTRIBUTIONS = {
    "PIL": "pillow", "cv2": "opencv-python", "yaml": "pyyaml", "sklearn": "scikit-learn", "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil", "dotenv": "python-dotenv", "docx": "python-docx", "pptx": "python-pptx",
    "fitz": "pymupdf", "skimage": "scikit-image", "serial": "pyserial", "Crypto": "pycryptodome", "jwt": "pyjwt",
    "OpenSSL": "pyopenssl", "git": "gitpython", "attr": "attrs", "markdown_it": "markdown-it-py",
}

failed = {}  # why each name could not be installed; reset for the next run, when packages may be available


def find_spec(name, namespace):
    """Finds a missing module for an import, installing it if possible. namespace is the code's. Raises ModuleNotFoundError."""
    if not is_asked_by_code(namespace):
        return None
    if found := find_installed(name):
        return found
    if name not in failed:
        package = DISTRIBUTIONS.get(name, name)
        failed[name] = refusal() or question(package) or install(package)
    spec = None if failed[name] else importlib.machinery.PathFinder.find_spec(name)
    if spec is None:
        why = failed[name] or f"{DISTRIBUTIONS.get(name, name)} was installed, but does not contain the module"
        raise ModuleNotFoundError(f"No module named {name!r}; {why}", name=name)
    return spec


def find_installed(name):
    """Finds a module that pip has installed for the user. If the user's directory was missing when the interpreter started, Python
    does not look there."""
    import site

    users = site.getusersitepackages()
    if users in sys.path or sys.prefix != sys.base_prefix or not os.path.isdir(users):
        return None
    sys.path.append(users)
    importlib.invalidate_caches()
    return importlib.machinery.PathFinder.find_spec(name)


def is_asked_by_code(namespace):
    """Whether the import statement is in the code itself, or in a file that belongs to no installed package.
    importlib.util.find_spec() does not count as an import: it reports the missing module, and nothing is installed."""
    frame = sys._getframe(3)  # skips find_spec(), and the finder that called it
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
    """The reason not to run pip, or None."""
    if os.environ.get("HOLT_PYTHON_INSTALL") == "never":
        return "the policy forbids installing packages (python.install)"
    if not os.environ.get("PIP_FIND_LINKS"):
        index = os.environ.get("PIP_INDEX_URL")
        if not index and not os.path.exists("/etc/pip.conf"):  # of a route, or of the host with --etc
            return "the session has no source of packages: create it with an index or a folder of wheels (python.index or python.wheels in its policy)"
        if index and index.startswith(("http:", "https:")) and not is_own(index) and not has_network():
            return (
                f"the index {without_secrets(index)} can't be reached, since the session has no network; packages can be"
                " installed from a folder of wheels (python.wheels in its policy)"
            )
    return None


def question(package):
    """Returns why an import does not install the package by itself, or None."""
    if os.environ.get("HOLT_PYTHON_INSTALL") != "ask":
        return None
    return f"its package is not installed; to install it, run in the session: pip install {package}"


def install(package):
    """Installs a package. Returns None, or the reason for the failure."""
    import site
    import subprocess

    own = sys.prefix == sys.base_prefix  # in a venv, pip refuses --user
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", package],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env={**os.environ, "PIP_USER": str(int(own)), "PIP_BREAK_SYSTEM_PACKAGES": "1"},
    )
    if done.returncode != 0:
        said = [line for line in done.stdout.splitlines() if line.strip()] or ["pip gave no reason"]
        why = [line for line in said if line.startswith("ERROR: ")] or said  # hints may follow the errors
        return f"pip cannot install {package!r}: {why[-1]}"
    print(f"holt: installed {package}", file=sys.stderr)
    importlib.invalidate_caches()
    if (users := site.getusersitepackages()) not in sys.path:
        sys.path.append(users)
    return None


def has_network():
    """Whether the session has a network: its resolver for --net, or a route that leads out of this machine. Sends nothing."""
    for family, address in ((socket.AF_INET, "198.18.0.1"), (socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((address, 9))
            return True
        except OSError:
            continue
    return False


def is_own(url):
    """Whether the index is at the sandbox's own loopback, such as a route."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return host.partition(":")[0] in ("127.0.0.1", "localhost")


def without_secrets(url):
    """Removes a user name and password from an index's URL."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
