"""An HTTP server that answers each path as it is told, and remembers what it was asked."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    path: str
    query: dict[str, str]
    body: dict[str, Any]
    authorization: str


Answer = tuple[int, Any]
"""A status and a body: text as it is, an iterator's bytes until its end or the client's, else JSON."""
Told = Answer | Callable[[Asked], Answer]


class AnsweringServer:
    """Serves `answers` by path on a port of its own; everything else is 404. Its clock may be set ahead."""

    def __init__(self) -> None:
        self.answers: dict[str, Told] = {}
        self.asked: list[Asked] = []
        self.clock_ahead = 0.0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, body: dict[str, Any]) -> None:
                parts = urlsplit(self.path)
                query = dict(parse_qsl(parts.query))
                asked = Asked(parts.path, query, body, self.headers.get("Authorization", ""))
                owner.asked.append(asked)
                told = owner.answers.get(parts.path, (404, "404 page not found"))
                status, answer = told(asked) if callable(told) else told
                if isinstance(answer, Iterator):
                    self._stream(status, answer)
                    return
                content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def _stream(self, status: int, chunks: Iterator[bytes]) -> None:
                self.send_response(status)
                self.end_headers()
                with suppress(ConnectionError):
                    for chunk in chunks:
                        self.wfile.write(chunk)

            def date_time_string(self, timestamp: float | None = None) -> str:
                return formatdate(time.time() + owner.clock_ahead, usegmt=True)

            def log_message(self, format: str, *args: object) -> None:
                """Silent."""

        return Handler
