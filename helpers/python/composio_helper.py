# SPDX-License-Identifier: Apache-2.0
"""Composio's tools, models and files for code inside a sandbox.

    from composio_helper import run_composio_tool, invoke_llm, smart_file_extract

    response, error = run_composio_tool("GMAIL_FETCH_EMAILS", {"max_results": 5})
    emails = response["data"] if not error else []

The functions report failures as their second value, which is "" on success. In the interpreter of a session that has
the route composio, they need no import.

The API key is not inside. The route composio sets the variables, and holt-gateway adds the key to each request:

    BACKEND_URL                     URL of the backend; here, of the route
    COMPOSIO_API_KEY                token of the sandbox
    COMPOSIO_TOOLROUTER_SESSION_ID  id of the tool router's session
    COMPOSIO_SESSION_PATH           path of the sessions at the backend; default /api/v3/tool_router/session
    COMPOSIO_LLM_MODEL              model of invoke_llm()
"""

import http.client
import json
import os
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

from host_tools import ToolResult

__all__ = [
    "run_composio_tool", "invoke_llm", "web_search", "proxy_execute",
    "upload_local_file", "smart_file_extract", "get_mount_file_url", "get_mount_file_s3_key",
]

BACKEND = "https://backend.composio.dev"
SESSION_PATH = "/api/v3/tool_router/session"
LLM_TOOL, LLM_MODEL, LLM_TEMPERATURE = "COMPOSIO_SEARCH_GROQ_CHAT", "openai/gpt-oss-120b", 0.2
SEARCH_TOOL = "COMPOSIO_SEARCH_EXA_ANSWER"

RETRIES = {"max_retries": 3, "initial_delay": 2.0, "max_delay": 60.0}  # delays in seconds; each is twice the last one
TIMEOUT = 300.0  # seconds without a byte of a response
RESPONSE_MAX = 64 << 20  # bytes
RATE_LIMITED = re.compile(r"rate.?limit|too many requests|quota exceeded|throttl", re.IGNORECASE)
BODY_METHODS = ("POST", "PUT", "PATCH")
METHODS = (*BODY_METHODS, "GET", "DELETE")

SHAPE_DEPTH, SHAPE_KEYS, SHAPE_MAX = 4, 30, 10_000  # of the printed shape of a response; SHAPE_MAX in characters


# --- the backend ---


def _setting(name, default=None):
    value = os.environ.get(name) or default
    if value is None:
        raise RuntimeError(f"{name} is not set. The sandbox needs the route composio, and your own {name} where holt is started.")
    return value


class _Failure(Exception):
    """A request has failed. body: what the backend has answered, or None; again: another try may succeed."""

    def __init__(self, message, body=None, again=False):
        super().__init__(message)
        self.body, self.again = body, again


def _decoded(data):
    """Returns the JSON of a response, or its text."""
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text, object_hook=ToolResult)
    except (ValueError, RecursionError):
        return text


def _said(body):
    """Returns the message in an error's body."""
    if isinstance(body, dict):
        error = body.get("error", body.get("message"))
        return str(error.get("message", error)) if isinstance(error, dict) else str(error or "")
    return str(body)[:500]


def _may_pass(status, body):
    """Whether another try may succeed. With 502 and 504, holt-gateway says that it did not reach the backend."""
    holt = isinstance(body, dict) and isinstance(body.get("error"), dict) and body["error"].get("type") == "holt"
    return status == 429 or (holt and status in (502, 504) and "credential" not in _said(body))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error, because the key would go to the other place, too."""

    def redirect_request(self, *_):
        return None


def _open(request):
    """Sends a request. A proxy of the environment does not apply to loopback, where a route is."""
    local = urllib.parse.urlsplit(request.full_url).hostname in ("127.0.0.1", "::1", "localhost")
    handlers = [_NoRedirect, *([urllib.request.ProxyHandler({})] if local else [])]
    return urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT)


def _read(response):
    data = response.read(RESPONSE_MAX + 1)
    if len(data) > RESPONSE_MAX:
        raise _Failure(f"the response has more than {RESPONSE_MAX >> 20} MiB")
    return _decoded(data)


def _send(request):
    """Returns (status, reason, body). The body of an error can break off, too."""
    try:
        response = _open(request)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return response.status, response.reason, _read(response)


def _post(action, payload):
    """Sends one request to the session, and returns the JSON of the response. Raises _Failure, or RuntimeError for a missing
    setting."""
    session, key = _setting("COMPOSIO_TOOLROUTER_SESSION_ID"), _setting("COMPOSIO_API_KEY")
    base = os.environ.get("BACKEND_URL", BACKEND).rstrip("/")
    path = os.environ.get("COMPOSIO_SESSION_PATH", SESSION_PATH).rstrip("/")
    request = urllib.request.Request(
        f"{base}{path}/{urllib.parse.quote(session, safe='')}/{action}", json.dumps(payload).encode(), method="POST",
        headers={"content-type": "application/json", "x-api-key": key, "x-request-id": str(uuid.uuid4())},
    )
    try:
        status, reason, body = _send(request)
    except (OSError, EOFError, http.client.HTTPException) as error:
        raise _Failure(f"cannot reach {base}: {getattr(error, 'reason', error)}", again=True) from None
    except ValueError as error:  # a URL that is none
        raise _Failure(f"cannot reach {base}: {error}") from None
    if status >= 300:
        raise _Failure(f"{_said(body) or reason}: HTTP {status}", body, _may_pass(status, body))
    if not isinstance(body, dict):
        raise _Failure("the backend has not answered with a JSON object", body)
    return body


def _retries(given):
    unknown = set(given or ()) - set(RETRIES)
    if unknown:
        raise ValueError(f"retry_params has no {sorted(unknown)[0]!r}; it may have {', '.join(RETRIES)}")
    return {**RETRIES, **(given or {})}


def _persistent(action, payload, retry_params=None):
    """Sends a request, and again if the backend is busy or was not reached. Returns the envelope, in which "error" may say
    that the tool has failed."""
    retries = _retries(retry_params)
    delay, left = float(retries["initial_delay"]), int(retries["max_retries"])
    while True:
        try:
            envelope = _post(action, payload)
            if not left or not RATE_LIMITED.search(str(envelope.get("error") or "")):
                return envelope
        except _Failure as failure:
            if not failure.again or not left:
                raise
        time.sleep(delay * random.uniform(0.5, 1.5))
        delay, left = min(delay * 2, float(retries["max_delay"])), left - 1


# --- tools ---


def run_composio_tool(tool_slug, arguments=None, retry_params=None, print_schema_for_tool=True, *, account=None):
    """Executes a tool. Returns (response, error).

    tool_slug              name of the tool, in any case
    arguments              dict of the tool's arguments
    retry_params           dict: max_retries (3), initial_delay (2.0) and max_delay (60.0), in seconds
    print_schema_for_tool  whether to print the shape of the response
    account                connected account to use, if there are several

    response is the whole envelope, with the payload in response["data"]; error is "" on success. Raises RuntimeError if the
    session id or the key is not set.
    """
    slug = str(tool_slug).upper()
    payload = {"tool_slug": slug, "arguments": dict(arguments or {}), **({"account": account} if account else {})}
    try:
        envelope = _persistent("execute", payload, retry_params)
    except _Failure as failure:
        return failure.body if isinstance(failure.body, dict) else {}, str(failure)
    if print_schema_for_tool:
        print(f"{slug}: {_shape(envelope)[:SHAPE_MAX]}")
    return envelope, str(envelope.get("error") or "")


def _shape(value, depth=0):
    """Describes the types in a response."""
    if isinstance(value, dict):
        if depth == SHAPE_DEPTH:
            return "{...}"
        parts = [f"{key}: {_shape(each, depth + 1)}" for key, each in list(value.items())[:SHAPE_KEYS]]
        return "{" + ", ".join([*parts, *(["..."] if len(value) > SHAPE_KEYS else [])]) + "}"
    if isinstance(value, list):
        return f"[{_shape(value[0], depth + 1)}] * {len(value)}" if value else "[]"
    return "null" if value is None else type(value).__name__


def _data_of(slug, arguments):
    """Executes a tool, and returns (data, error)."""
    try:
        response, error = run_composio_tool(slug, arguments, print_schema_for_tool=False)
    except RuntimeError as missing:
        return {}, str(missing)
    data = response.get("data")
    return (data if isinstance(data, dict) else {}), error


def _unfenced(text):
    """Removes a code fence around JSON."""
    fenced = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", text, re.DOTALL | re.IGNORECASE)
    return fenced[1] if fenced else text


def invoke_llm(query, reasoning_effort=None):
    """Asks a model. Returns (text, error). A code fence around JSON is removed. reasoning_effort: "low", "medium" or "high"."""
    arguments = {
        "model": os.environ.get("COMPOSIO_LLM_MODEL", LLM_MODEL), "messages": [{"role": "user", "content": str(query)}],
        "temperature": LLM_TEMPERATURE, **({"reasoning_effort": reasoning_effort} if reasoning_effort else {}),
    }
    data, error = _data_of(LLM_TOOL, arguments)
    if error:
        return "", error
    try:
        return _unfenced(str(data["choices"][0]["message"]["content"])), ""
    except (KeyError, IndexError, TypeError):
        return "", "the model's response has no text"


def web_search(query):
    """Asks a search engine a question. Returns (answer, error)."""
    data, error = _data_of(SEARCH_TOOL, {"content": str(query)})
    if error:
        return "", error
    return (str(data["answer"]), "") if data.get("answer") else ("", "the search found no answer")


# --- requests to a toolkit's own API ---


def _parameters(query_params, headers):
    return [
        {"name": str(name), "value": str(value), "type": kind}
        for kind, given in (("query", query_params), ("header", headers)) for name, value in dict(given or {}).items()
    ]


def proxy_execute(method, endpoint, toolkit, query_params=None, body=None, headers=None):
    """Sends a request to a toolkit's own API with the credentials of the connected account. Returns (data, error), and never
    raises an exception.

    method    GET, DELETE, POST, PUT or PATCH; the last three need a body, and the first two have none
    endpoint  path or URL of the API
    toolkit   name of the toolkit, such as "gmail"
    """
    try:
        method = str(method).upper()
        if method not in METHODS:
            return {}, f"the method must be one of {', '.join(METHODS)}, not {method}"
        if (method in BODY_METHODS) != (body is not None):
            return {}, f"{method} {'needs a' if method in BODY_METHODS else 'has no'} body"
        answer = _persistent("proxy_execute", {
            "toolkit_slug": str(toolkit), "endpoint": str(endpoint), "method": method, "parameters": _parameters(query_params, headers),
            **({"body": body} if body is not None else {}),
        })
    except Exception as error:
        return getattr(error, "body", None) or {}, str(error) or type(error).__name__
    data = answer.get("data") if answer.get("data") is not None else answer.get("binary_data")
    status = answer.get("status")
    if isinstance(status, int) and status >= 400:
        return data, f"{method} {endpoint}: {_said(data) or 'the API has refused the request'}: HTTP {status}"
    return data, str(answer.get("error") or "")


# --- files ---


def upload_local_file(*paths):
    """Stores files below /mnt/files, where the host finds them. Several files become one zip archive. Returns (file, error);
    file has s3_url, uploaded_file, type, id, s3key and message."""
    import composio_files

    return composio_files.store(paths)


def smart_file_extract(sandbox_file_path, show_preview=True):
    """Returns (text, error): the text of a PDF, an image, an office document or a text file. show_preview: print the first
    lines."""
    import composio_files

    return composio_files.extract(sandbox_file_path, show_preview)


def get_mount_file_url(path):
    """Returns (URL, error) of a file below /mnt/files."""
    import composio_files

    return composio_files.describe(path, composio_files.url_of)


def get_mount_file_s3_key(path):
    """Returns (key, error) of a file below /mnt/files."""
    import composio_files

    return composio_files.describe(path, composio_files.key_of)
