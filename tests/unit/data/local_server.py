"""A local web server that misbehaves as a test tells it to."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.data.web import Patience

CONTENT = bytes(range(256)) * 3000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
QUICK = Patience(attempts=4, first_wait_s=0.01, connect_s=2.0, read_s=2.0)

Answer = Callable[["Handler", int], None]


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by the script of the path asked for; remembers every request."""

    protocol_version = "HTTP/1.1"
    scripts: dict[str, Answer]
    requests: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        number = sum(asked == path for asked, _ in self.requests)
        self.requests.append((path, self.headers.get("Range")))
        self.close_connection = True
        if path not in self.scripts:
            self.answer(404, b"no such file", "text/plain")
            return
        self.scripts[path](self, number)

    def answer(
        self,
        code: int,
        body: bytes,
        kind: str = "application/octet-stream",
        *,
        length: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def answer_range(self, *, cut: int | None = None) -> None:
        """The content from where the client asks, with a tag; cut short after so many bytes."""
        tag = {"ETag": '"v1"'}
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        body = CONTENT[start:]
        if asked:
            tag["Content-Range"] = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
        shown = body if cut is None else body[:cut]
        self.answer(206 if asked else 200, shown, length=len(body), headers=tag)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server:
    """The address of a running server, and its handler's script."""

    def __init__(self, url: str, handler: type[Handler]) -> None:
        self.url = url
        self.handler = handler

    def serve(self, path: str, answer: Answer) -> str:
        self.handler.scripts[path] = answer
        return self.url + path

    def ranges(self, path: str) -> list[str | None]:
        return [asked for name, asked in self.handler.requests if name == path]


@contextmanager
def running_server() -> Iterator[Server]:
    handler = type("OwnHandler", (Handler,), {"scripts": {}, "requests": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield Server(f"http://127.0.0.1:{running.server_address[1]}", handler)
        running.shutdown()
        thread.join()
