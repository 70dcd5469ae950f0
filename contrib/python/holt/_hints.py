# SPDX-License-Identifier: Apache-2.0
"""Rewrites the hints of holt serve for users of this package.

holt serve writes a hint with its methods ("session.remove"), and with fields of a policy as JSON
('limits.pids: 64'). Here they become methods and arguments of Sandbox.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

METHODS: Dict[str, str] = {
    "session.create": "Sandbox(name)", "session.list": "Sandbox.sessions()", "session.show": "Sandbox(name).show()",
    "session.stop": "Sandbox(name).stop()", "session.remove": "Sandbox(name).remove()",
    "session.rebind": 'Server().call("session.rebind", ...)', "session.set_tier": 'Server().call("session.set_tier", ...)',
    "tools.list": 'Server().call("tools.list", ...)',
    "process.list": "processes()", "process.spawn": "spawn()", "python.run": "python()", "python.save": "save_variables()",
    "python.load": "load_variables()", "python.variables": "variables()", "python.interrupt": "interrupt_python()",
    "python.restart": "restart_python()", "history.list": "history()", "audit.list": "audit()",
    "tools.register": "add_tool()", "tools.unregister": "remove_tool()", "files.open": "files.save()",
    "files.receive": "files.write()", "kv.get": "kv.get()", "mount.list": "mount.list()",
    "route.add": "routes.add()", "route.list": "routes.list()", "route.remove": "routes.remove()",
    "session.allow": "allow()", "ports.forward": "forward()", "ports.close": "close_port()",
    "links.make": "files.link()", "links.list": "files.links()", "links.revoke": "files.revoke_link()",
}
"""The method of this package for each method of holt serve whose name or place differs."""

SAME = ("files", "mount", "kv")
"""Groups of methods that have the same names in this package, except for those in METHODS."""

PROCESS = ("read", "write", "close_stdin", "resize", "signal", "kill", "wait")
"""Methods of Process that are methods of holt serve, too."""

ARGUMENTS: Dict[str, str] = {
    "limits.timeout": "timeout", "limits.memory": "memory", "filesystem.read_only": "read_only",
    "filesystem.read_write": "read_write", "filesystem.workspace.source": "workspace", "env.set": "env", "network.allow": "net",
    "tier": "tier", "idle": "idle", "allow_degraded": "allow_degraded",
    "policy_name": "policy",
}
"""The argument of Sandbox for each field that has one of its own. Other fields are passed by policy=."""

GROUPS = ("bridge", "env", "filesystem", "layers", "limits", "network", "python", "syscalls")

_AREAS = "session|process|python|files|mount|kv|history|audit|tools|ports|links|route"
_METHOD = re.compile(rf"(?<![\w./\"-])({_AREAS})\.([a-z_]+)\b(?![\w(/-]|\.[a-z])")
_FIELD = re.compile(
    rf"(?<![\w./\"-])((?:{'|'.join(GROUPS)})(?:\.[a-z_]+)+|(?:tier|idle|allow_degraded|cwd|policy_name"
    r"|exec with argv)(?=: [\"\[]))\b(?![\w(/-])"
)
_TIMEOUT = re.compile(r"\btimeout_ms\b")

_decode = json.JSONDecoder().raw_decode


def _literal(value: Any) -> str:
    """Writes a value as Python, with double quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_literal(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if value is None or isinstance(value, bool):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _value_behind(text: str, at: int) -> Tuple[Optional[str], int]:
    """Returns the JSON value behind ": " as Python, and where it ends. Returns None if no value follows."""
    if text.startswith(": ", at):
        try:
            value, end = _decode(text, at + 2)
            return _literal(value), end
        except ValueError:
            pass
    return None, at


def _argument(path: str, value: Optional[str]) -> str:
    """Returns the argument that sets a field."""
    if path == "cwd":
        return f"cwd={value}"
    if path == "exec with argv":
        return f"exec({value})"
    if path in ARGUMENTS:
        return f"Sandbox({ARGUMENTS[path]}={value or '...'})"
    made = value or "..."
    for name in reversed(path.split(".")):
        made = f'{{"{name}": {made}}}'
    return f"Sandbox(policy={made})"


def argument_of(policy: Mapping[str, Any]) -> str:
    """Returns the argument for a part of a policy. For one field, such as {"filesystem": {"read_only": ["/x"]}}, it may
    be an argument of its own."""
    path: List[str] = []
    value: Any = policy
    while isinstance(value, Mapping) and len(value) == 1:
        name, value = next(iter(value.items()))
        path.append(name)
    return _argument(".".join(path), _literal(value)) if path else f"Sandbox(policy={_literal(value)})"


def call_of(call: Mapping[str, Any]) -> str:
    """Returns the call of Sandbox for a request to holt serve whose parameters are one list, such as session.allow."""
    (values,) = call["params"].values()
    return f"{METHODS[call['method']][:-2]}({', '.join(map(_literal, values))})"


def argument_for(field: str) -> str:
    """Returns the argument that sets a field, without a value."""
    return _argument(field, None)


def _method(area: str, name: str) -> str:
    method = f"{area}.{name}"
    if method in METHODS:
        return METHODS[method]
    if area == "process" and name in PROCESS:
        return f"Process.{name}()"
    if area in SAME:
        return f"{method}()"
    return method


def hint_for_python(hint: Optional[str]) -> Optional[str]:
    """Returns a hint of holt serve with the words of this package."""
    if not hint:
        return hint
    parts: List[str] = []
    at = 0
    for match in _FIELD.finditer(hint):
        if match.start() < at or match[1] in METHODS:  # within the value of the field before, or no field
            continue
        value, end = _value_behind(hint, match.end())
        parts += [hint[at : match.start()], _argument(match[1], value)]
        at = end
    text = "".join(parts) + hint[at:]
    text = _METHOD.sub(lambda match: _method(match[1], match[2]), text)
    return _TIMEOUT.sub("timeout=", text)


def hint_beside(hint: Optional[str], policy: Any) -> Optional[str]:
    """Returns a hint for a caller who already passes a policy: the hint must add to that policy, and not replace it."""
    if not hint or policy is None or "Sandbox(policy={" not in hint:
        return hint
    if isinstance(policy, str) and "/" not in policy and not policy.endswith(".json"):
        return hint.replace("Sandbox(policy={", f'Sandbox(policy={{"extends": {_literal(policy)}, ')
    where = "the dict" if isinstance(policy, Mapping) else f"the file {os.fspath(policy)}"
    return f"{hint}\nAdd this to {where} that you pass as policy, rather than replacing it."
