"""A chat server on this machine that speaks what others speak, and breaks it where it is told to."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-Very-Secret_0123456789"
MODELS: Mapping[str, Any] = {
    "object": "list",
    "data": [{"id": "tiny", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}],
}
# What llama-server sent at the end of a reply to one of our tests.
LAST: Mapping[str, Any] = {
    "choices": [],
    "object": "chat.completion.chunk",
    "usage": {
        "completion_tokens": 16,
        "prompt_tokens": 49,
        "total_tokens": 65,
        "prompt_tokens_details": {"cached_tokens": 9},
    },
    "timings": {
        "cache_n": 9,
        "prompt_n": 40,
        "prompt_ms": 679.5,
        "predicted_n": 16,
        "predicted_ms": 500.0,
        "draft_n": 16,
        "draft_n_accepted": 10,
    },
}


@dataclass
class ChatServer:
    """What it answers, and what it was asked."""

    models: object = field(default_factory=lambda: dict(MODELS))
    pages: dict[str, object] = field(default_factory=dict)  # path -> data, or a text as it is
    answers: list[Answer] = field(default_factory=list)  # one a reply; the last one for all that follow
    url: str = ""
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # path and headers of every request
    bodies: list[dict[str, Any]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)  # set when the test ends
    left: threading.Event = field(default_factory=threading.Event)  # a client went away in the middle of a reply

    def answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """The tests look at what was seen instead."""

    def do_GET(self) -> None:
        chat = self._noted()
        path = self.path.removeprefix("/v1")
        if path == "/models" and isinstance(chat.models, int):
            self.send(chat.models, b"{}")
        elif path == "/models":
            self.send(200, json.dumps(chat.models).encode())
        elif self.path in chat.pages:
            page = chat.pages[self.path]
            self.send(200, page.encode() if isinstance(page, str) else json.dumps(page).encode())
        else:
            self.send(404, b'{"error": {"message": "File Not Found"}}')

    def do_POST(self) -> None:
        chat = self._noted()
        chat.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        chat.answer()(self)

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin(self, kind: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        try:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        except OSError:
            self.server.chat.left.set()
            raise

    def end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Break the connection off."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def wait(self) -> None:
        """Say nothing until the client leaves or the test ends."""
        self.connection.settimeout(0.02)
        while not self.server.chat.released.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.server.chat.left.set()
        self.close_connection = True

    def _noted(self) -> ChatServer:
        chat = self.server.chat
        chat.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        return chat


Answer = Callable[[Handler], None]


def event(data: object) -> bytes:
    return f"data: {data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)}\n\n".encode()


def delta(text: str, **more: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None, **more}]}


def ends(finish: str = "stop", **more: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": finish, **more}]}


def says(*texts: str, finish: str = "stop", last: Mapping[str, Any] | None = LAST) -> Answer:
    """A reply in these pieces, with figures at its end."""
    events = [*map(delta, texts), ends(finish), *([dict(last)] if last is not None else []), "[DONE]"]
    return sends(b"".join(map(event, events)))


def sends(*chunks: bytes, kind: str = "text/event-stream") -> Answer:
    """These bytes, whole."""

    def answer(handler: Handler) -> None:
        handler.begin(kind)
        for each in chunks:
            handler.chunk(each)
        handler.end()

    return answer


def breaks_off(*chunks: bytes) -> Answer:
    """These bytes, and then nothing: the connection is gone."""

    def answer(handler: Handler) -> None:
        handler.begin()
        for each in chunks:
            handler.chunk(each)
        handler.connection.shutdown(socket.SHUT_WR)  # what was sent arrives before that
        handler.wait()

    return answer


def falls_silent(*chunks: bytes) -> Answer:
    """These bytes, and then nothing, for as long as anybody waits."""

    def answer(handler: Handler) -> None:
        handler.begin()
        for each in chunks:
            handler.chunk(each)
        handler.wait()

    return answer


def never_ends(piece: bytes) -> Answer:
    """The same bytes until the client has had enough."""

    def answer(handler: Handler) -> None:
        handler.begin()
        with suppress(OSError):
            while not handler.server.chat.released.is_set():
                handler.chunk(piece)
        handler.close_connection = True

    return answer


def refuses(status: int, body: object = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """A status that is not 200."""
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda handler: handler.send(status, said, headers)


@contextmanager
def serving(chat: ChatServer) -> Iterator[ChatServer]:
    """The server, answering."""
    server = _Server(chat)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    chat.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield chat
    finally:
        chat.released.set()
        server.shutdown()
        server.server_close()


def free_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def texts(messages: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, chat: ChatServer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.chat = chat

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away in the middle are what this is for."""
