# SPDX-License-Identifier: Apache-2.0
"""A stub of OpenAI's responses API, whose model says what the test wants."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Item = dict[str, Any]

USAGE = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}


def message(text: str) -> Item:
    return {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


class Responses:
    """Replies to each request with the next of `items`, as a stream of events. `asked` has the bodies of the requests."""

    def __init__(self, *items: Item) -> None:
        self.left, self.asked = list(items), list[Item]()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                stub.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                events: "list[Item]" = [
                    {"type": "response.created", "response": {"id": "r"}},
                    {"type": "response.output_item.done", "output_index": 0, "item": stub.left.pop(0) if stub.left else message("done")},
                    {"type": "response.completed", "response": {"id": "r", "usage": USAGE}},
                ]
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write("".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode())

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def __enter__(self) -> Responses:
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
