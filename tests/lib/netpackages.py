# SPDX-License-Identifier: Apache-2.0
"""Small registries of packages, as files that a web server of the test network shows."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def zip_of(files: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return data.getvalue()


def put_wheel(simple: Path, name: str, code: str, requires: Sequence[str] = ()) -> None:
    """Adds a package of one module to an index of Python packages."""
    info = f"{name}-1.0.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {r}" for r in requires)]
    wheel = zip_of({
        f"{name}.py": code, f"{info}/METADATA": "\n".join(lines) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
    })
    (simple / name).mkdir(parents=True)
    (simple / name / f"{name}-1.0-py3-none-any.whl").write_bytes(wheel)


def tarball_of(files: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


def put_npm_package(registry: Path, url: str, name: str, code: str) -> None:
    """Adds a package to an npm registry, which a server shows at the URL."""
    about = {"name": name, "version": "1.0.0"}
    tarball = tarball_of({"package.json": json.dumps({**about, "main": "index.js"}), "index.js": code})
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    version = {**about, "dist": {"tarball": f"{url}{name}-1.0.0.tgz", "integrity": integrity}}
    registry.mkdir(exist_ok=True)
    (registry / f"{name}-1.0.0.tgz").write_bytes(tarball)
    (registry / name).write_text(json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))


def put_go_module(proxy: Path, module: str, code: str) -> None:
    """Adds version 1.0.0 of a module of one file to a Go module proxy."""
    place, mod = proxy / module / "@v", f"module {module}\n"
    place.mkdir(parents=True)
    (place / "list").write_text("v1.0.0\n")
    (place / "v1.0.0.info").write_text('{"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}')
    (place / "v1.0.0.mod").write_text(mod)
    (place / "v1.0.0.zip").write_bytes(zip_of({f"{module}@v1.0.0/go.mod": mod, f"{module}@v1.0.0/otter.go": code}))


def put_deb(archive: Path, name: str, text: str) -> None:
    """Makes an archive of one Debian package, which contains one file."""
    tree = archive / "tree"
    for directory in (tree / "DEBIAN", tree / "opt"):
        directory.mkdir(parents=True)
        directory.chmod(0o755)
    control = f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: for a test\n"
    (tree / "DEBIAN" / "control").write_text(control)
    (tree / "opt" / name).write_text(text)
    deb = archive / f"{name}_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, deb], check=True, capture_output=True)
    data = deb.read_bytes()
    (archive / "Packages").write_text(
        f"{control}Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n")
