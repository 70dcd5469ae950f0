# SPDX-License-Identifier: Apache-2.0
"""git's own server for HTTP in the test network: git-http-backend(1), by CGI (RFC 3875)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


def backend(root: Path, method: str, target: str, fields: Mapping[str, str], body: bytes) -> tuple[str, bytes, bytes]:
    """Lets git reply to a request of "/REPOSITORY/...", with or without "/git" in front. Everybody may push. Returns the status, the
    header and the body."""
    path, _, query = target.partition("?")
    names = {"content-type": "CONTENT_TYPE", "content-encoding": "HTTP_CONTENT_ENCODING", "git-protocol": "GIT_PROTOCOL"}
    env = {
        **os.environ, "GIT_PROJECT_ROOT": str(root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path.removeprefix("/git"),
        "QUERY_STRING": query, "REQUEST_METHOD": method, "CONTENT_LENGTH": str(len(body)), "REMOTE_USER": "otter",
        **{variable: fields[name] for name, variable in names.items() if name in fields},
    }
    # The repositories may belong to another user than the server.
    done = subprocess.run(["git", "-c", "safe.directory=*", "http-backend"], input=body, env=env, stdout=subprocess.PIPE, check=True)
    head, _, data = done.stdout.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    status = next((line.partition(b": ")[2].decode() for line in lines if line.startswith(b"Status: ")), "200 OK")
    return status, b"\r\n".join(line for line in lines if not line.startswith(b"Status: ")), data
