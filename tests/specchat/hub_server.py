"""A model hub on this machine that speaks what huggingface-hub asks, and breaks it where it is told to.

Two addresses, as the real one has: the hub, which knows repositories and answers requests for files with a
redirect, and a store behind it, which has the bytes. Also answers as a proxy: whole addresses in requests will do.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34
PAGE = b"<!DOCTYPE html><html><body>Please log in to the guest network</body></html>"


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request: `where` is "look", "list" or "bytes", `at` a count of bytes sent before."""

    where: str
    kind: str  # reset, close, short, long, flip, page, ignore-range, wrong-range, slow, stall, size, etag, or a status
    at: int = 0


@dataclass
class Repo:
    """A repository: its files, and who may see it."""

    files: dict[str, bytes]
    token: str = ""  # that it takes to see it
    gated: bool = False
    moved_to: str = ""
    checksums: bool = True


@dataclass
class Hub:
    """What is served, what goes wrong, and what was asked."""

    repos: dict[str, Repo] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)  # each spoils one request, the first one of its kind
    always: Mapping[str, Fault] = field(default_factory=dict)  # by place: spoils every request
    seen: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)  # (method, path, headers)
    url: str = ""
    store_url: str = ""
    released: threading.Event = field(default_factory=threading.Event)  # ends the stalls

    def fault(self, where: str) -> Fault:
        """What is wrong with the request that has come."""
        for fault in self.faults:
            if fault.where == where:
                self.faults.remove(fault)
                return fault
        return self.always.get(where, Fault(where, ""))

    def ranges(self) -> list[str]:
        """The ranges that the store was asked for."""
        return [headers.get("range", "") for method, path, headers in self.seen if path.startswith("/bytes/")]


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub, answering."""
    servers = [_Server(hub), _Server(hub)]
    threads = [threading.Thread(target=each.serve_forever, args=(0.02,), daemon=True) for each in servers]
    for thread in threads:
        thread.start()
    hub.url, hub.store_url = (f"http://127.0.0.1:{each.server_address[1]}" for each in servers)
    try:
        yield hub
    finally:
        hub.released.set()
        for server in servers:
            server.shutdown()
            server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away in the middle are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:
        """The tests look at what was seen instead."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.hub.seen.append((self.command, path, headers))
        if path.startswith("/bytes/"):
            self._bytes(path.removeprefix("/bytes/"))
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            self._list(match[1], match[2] or "main")
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._look(match[1], match[2], match[3])
        else:
            self._fail(404, "EntryNotFound", "not here")

    def _look(self, name: str, revision: str, file: str) -> None:
        hub = self.server.hub
        fault = hub.fault("look")
        if self._spoiled(fault):
            return
        repo = self._repo(name, revision)
        if repo is None:
            return
        if file not in repo.files:
            self._fail(404, "EntryNotFound", "Entry not found")
            return
        content = repo.files[file]
        sha256 = hashlib.sha256(content).hexdigest()
        self._start(302, b"Found. Redirecting", {
            "Location": f"{hub.store_url}/bytes/{sha256}",
            "X-Repo-Commit": COMMIT,
            "X-Linked-Size": str(len(content) + (1 if fault.kind == "size" else 0)),
            "X-Linked-ETag": f'"{"0" * 64 if fault.kind == "etag" else sha256}"',
            "ETag": '"pointer"',
            "Accept-Ranges": "bytes",
        })  # fmt: skip

    def _list(self, name: str, revision: str) -> None:
        if self._spoiled(self.server.hub.fault("list")):
            return
        repo = self._repo(name, revision)
        if repo is None:
            return
        siblings = [
            {
                "rfilename": file,
                "size": len(content),
                "blobId": hashlib.sha1(content).hexdigest(),
                **(
                    {
                        "lfs": {
                            "size": len(content),
                            "sha256": hashlib.sha256(content).hexdigest(),
                            "pointerSize": 130,
                        }
                    }
                    if repo.checksums
                    else {}
                ),
            }
            for file, content in repo.files.items()
        ]
        info = {
            "id": name,
            "modelId": name,
            "sha": COMMIT,
            "private": bool(repo.token),
            "gated": "auto" if repo.gated else False,
            "downloads": 1,
            "likes": 1,
            "tags": ["gguf", "license:apache-2.0"],
            "siblings": siblings,
        }
        self._start(200, json.dumps(info).encode(), {"Content-Type": "application/json; charset=utf-8"})

    def _repo(self, name: str, revision: str) -> Repo | None:
        repo = self.server.hub.repos.get(name)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token == "bad":
            self._fail(401, "", "Invalid credentials in Authorization header")
        elif repo is None or (repo.token and token != repo.token and not repo.gated):
            # The hub does not tell strangers which private repositories there are.
            self._fail(404 if token else 401, "RepoNotFound", "Repository not found")
        elif repo.moved_to:
            path = self.path.replace(name, repo.moved_to, 1)
            self._start(307, b"", {"Location": path, "X-Repo-Commit": COMMIT})
        elif repo.gated and token != repo.token:
            self._fail(403 if token else 401, "GatedRepo", f"Access to model {name} is restricted.")
        elif revision not in ("main", COMMIT):
            self._fail(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return repo
        return None

    def _bytes(self, sha256: str) -> None:
        hub = self.server.hub
        fault = hub.fault("bytes")
        if "authorization" in {name.lower() for name in self.headers}:
            self._fail(400, "", "a token was sent beyond the hub")
            return
        if self._spoiled(fault):
            return
        found = [
            file for repo in hub.repos.values() for file in repo.files.values()
            if hashlib.sha256(file).hexdigest() == sha256
        ]  # fmt: skip
        if not found:
            self._fail(404, "", "no such object")
            return
        content = found[0]
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        if start >= len(content):
            self._start(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        partial = "Range" in self.headers and fault.kind != "ignore-range"
        body = content[start:] if partial and fault.kind != "wrong-range" else content
        if fault.kind == "flip":
            at = fault.at % len(body)
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        if fault.kind == "short":
            body = body[: fault.at % len(body)]
        if fault.kind == "long":
            body += bytes(fault.at + 1)
        headers = {"ETag": f'"{sha256}"', "Accept-Ranges": "bytes", "Content-Type": "binary/octet-stream"}
        if partial:
            headers["Content-Range"] = f"bytes {start}-{start + len(body) - 1}/{len(content)}"
        self._start(206 if partial else 200, body, headers, fault)

    def _spoiled(self, fault: Fault) -> bool:
        """Whether the fault has answered already."""
        if fault.kind.isdecimal():
            headers = {"Retry-After": "900"} if fault.kind == "429" else {}
            self._start(int(fault.kind), b'{"error":"told to fail"}', {"Content-Type": "application/json", **headers})
        elif fault.kind == "page":
            self._start(200, PAGE, {"Content-Type": "text/html"})
        elif fault.kind == "reset" and fault.where != "bytes":
            self._break_off()
        else:
            return False
        return True

    def _fail(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Code": code} if code else {}
        body = json.dumps({"error": message}).encode()
        self._start(status, body, {"Content-Type": "application/json", "X-Error-Message": message, **headers})

    def _start(self, status: int, body: bytes, headers: Mapping[str, str], fault: Fault | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        kind = fault.kind if fault else ""
        if fault and kind in ("reset", "close", "stall"):
            self.wfile.write(body[: fault.at % len(body)])
            self.wfile.flush()
            if kind == "stall":
                self.server.hub.released.wait(60)
            if kind == "reset":
                self._break_off()
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        elif kind == "slow":
            for at in range(0, len(body), 2000):
                self.wfile.write(body[at : at + 2000])
                self.wfile.flush()
                self.server.hub.released.wait(0.002)
        else:
            self.wfile.write(body)

    def _break_off(self) -> None:
        """The connection ends as when a cable is pulled: what is under way is lost."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True
