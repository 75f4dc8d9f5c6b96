"""Runs as a process of its own, between specchat and the model hub; imports nothing of specchat.

It reads one request from its standard input, a line of JSON, writes one answer, a line of JSON, and ends when its
standard input does: then the process that asked is gone. Everything of HTTP is huggingface-hub's: the addresses,
HF_ENDPOINT, HF_TOKEN, proxies, redirects, ranges. A process, because that library blocks while nothing arrives,
and because nothing of it can then hold up a screen, its threads or its file descriptors.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any

MAGIC = b"GGUF"
WAITS_S = (1.0, 2.0, 4.0)  # between attempts that brought nothing
CHUNK_BYTES = 1 << 16  # what is lost of a connection that breaks, and how smoothly a bar moves
LIST_TIMEOUT_S = 30.0
TRANSIENT = ("network", "server", "short")

Pause = Callable[[float], None]


class Refused(Exception):
    """An answer that cannot be used; `kind` is one of the words that `explain` uses."""

    def __init__(self, kind: str, detail: str = "", seconds: int | None = None) -> None:
        super().__init__(detail or kind)
        self.kind = kind
        self.seconds = seconds


def fetch(request: dict[str, Any], pause: Pause = time.sleep) -> dict[str, Any]:
    """Append to the file `part` what it lacks of `file`, a file of `size` bytes. Raises what `explain` explains."""
    _prepare()
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined] # it is, for all but mypy

    endpoint, size = request.get("endpoint"), int(request["size"])
    url = hf_hub_url(request["repo"], request["file"], revision=request["revision"], endpoint=endpoint)

    def look() -> None:
        found = get_hf_file_metadata(url, library_name="specchat", endpoint=endpoint)
        if found.etag is None or (found.commit_hash is None and found.size != size):
            raise Refused("not-the-hub")
        if found.size not in (None, size):
            raise Refused("changed", f"it has {found.size} bytes, expected {size}")
        if re.fullmatch("[0-9a-f]{64}", found.etag) and found.etag != request["sha256"]:
            raise Refused("changed", f"its sha256 is {found.etag}, expected {request['sha256']}")

    _patiently(look, pause)
    headers = build_hf_headers(library_name="specchat", headers={"Accept-Encoding": "identity"})
    with open(request["part"], "rb+") as file:
        waits = list(WAITS_S)
        while (at := file.seek(0, os.SEEK_END)) < size:
            _refuse_to_wait()
            try:
                http_get(url, _Guarded(file, size), resume_size=at, headers=headers, expected_size=size)  # type: ignore[arg-type]
            except Exception as error:
                if explain(error)["error"] not in TRANSIENT:
                    raise
                if file.seek(0, os.SEEK_END) > at:
                    waits = list(WAITS_S)
                elif not waits:
                    raise
                pause(waits.pop(0))
    return {}


def listing(request: dict[str, Any], pause: Pause = time.sleep) -> dict[str, Any]:
    """The commit, the licence and the files of a repository. Raises what `explain` explains."""
    _prepare()
    from huggingface_hub import HfApi

    api = HfApi(endpoint=request.get("endpoint"), library_name="specchat")

    def ask() -> Any:
        return api.model_info(
            request["repo"], revision=request.get("revision"), files_metadata=True, timeout=LIST_TIMEOUT_S
        )

    info = _patiently(ask, pause)
    licences = [tag.removeprefix("license:") for tag in info.tags or () if tag.startswith("license:")]
    files = [
        {
            "name": each.rfilename,
            "size": each.lfs.size if each.lfs else each.size,
            "sha256": each.lfs.sha256 if each.lfs else "",
        }
        for each in info.siblings or ()
    ]
    return {"commit": info.sha, "licence": licences[0] if licences else "", "gated": bool(info.gated), "files": files}


def explain(error: BaseException) -> dict[str, Any]:
    """What went wrong, in one word that people's sentences are made from, and the details."""
    import httpx2
    from huggingface_hub import errors

    kinds: list[tuple[type[BaseException], str]] = [
        (errors.OfflineModeIsEnabled, "offline"),
        (errors.GatedRepoError, "gated"),
        (errors.DisabledRepoError, "disabled"),
        (errors.RevisionNotFoundError, "no-revision"),
        (errors.EntryNotFoundError, "no-file"),
        (errors.RepositoryNotFoundError, "no-repository"),
        (errors.HFValidationError, "no-repository"),
        (json.JSONDecodeError, "not-the-hub"),
        (httpx2.TooManyRedirects, "not-the-hub"),
        (httpx2.TransportError, "network"),
        (httpx2.InvalidURL, "not-the-hub"),
        (httpx2.DecodingError, "network"),
    ]
    detail = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, Refused):
        return {"error": error.kind, "detail": str(error), "seconds": error.seconds}
    for known, kind in kinds:
        if isinstance(error, known):
            if kind == "no-repository" and "Invalid credentials" in detail:
                kind = "bad-token"
            return {"error": kind, "detail": detail}
    if isinstance(error, errors.HfHubHTTPError):
        return {"error": _kind_of_status(error.response.status_code), "detail": detail}
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return {"error": "disk-full", "detail": detail}
    if isinstance(error, OSError) and "Consistency check failed" in detail:
        return {"error": "short", "detail": "fewer bytes came than the file has"}
    if isinstance(error, ValueError) and "too large" in detail:
        return {"error": "too-large", "detail": detail}
    return {"error": "fault", "detail": f"{type(error).__name__}: {detail}"}


def _kind_of_status(status: int) -> str:
    if status >= 500 or status == 408:
        return "server"
    return {401: "bad-token", 403: "forbidden", 404: "no-repository", 416: "changed", 429: "rate-limited"}.get(
        status, "not-the-hub"
    )


class _Guarded:
    """A part file as huggingface-hub writes to it: never longer than the whole, never the beginning of a web page."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._size = size
        self._at = file.tell()

    def tell(self) -> int:
        return self._at

    def seek(self, at: int) -> int:
        self._at = at
        return at

    def truncate(self) -> None:
        """Put off until there is something to write: a login page must not cost what has been fetched."""

    def write(self, chunk: bytes) -> int:
        if self._at == 0 and not chunk.startswith(MAGIC[: len(chunk)]):
            raise Refused("not-a-model")
        if self._at + len(chunk) > self._size:
            raise Refused("changed", f"it has more than {self._size} bytes")
        self._file.seek(self._at)
        self._file.write(chunk)
        self._file.flush()
        self._file.truncate()
        self._at += len(chunk)
        return len(chunk)


def _prepare() -> None:
    """huggingface-hub without bars, without reports of who calls, and in small chunks."""
    from huggingface_hub import constants
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined] # as above

    disable_progress_bars()
    constants.HF_HUB_DISABLE_TELEMETRY = True
    constants.DOWNLOAD_CHUNK_SIZE = CHUNK_BYTES
    _refuse_to_wait()


def _refuse_to_wait() -> None:
    """A hub that is asked too often is believed at once; huggingface-hub would sit out its wait, many minutes."""
    from huggingface_hub import get_session

    def look(response: Any) -> None:
        if response.status_code == 429:
            asked = response.headers.get("Retry-After", "")
            limit = re.search(r"\bt\s*=\s*(\d+)", response.headers.get("RateLimit", ""))
            seconds = int(asked) if asked.isdecimal() else int(limit[1]) if limit else None
            raise Refused("rate-limited", seconds=seconds)

    session = get_session()  # another one after some errors
    session.event_hooks = {**session.event_hooks, "response": [look]}


def _patiently(call: Callable[[], Any], pause: Pause) -> Any:
    """The answer of a call that may fail for a moment."""
    for wait in (*WAITS_S[:2], None):
        _refuse_to_wait()
        try:
            return call()
        except Exception as error:
            if wait is None or explain(error)["error"] not in TRANSIENT:
                raise
        pause(wait)
    raise AssertionError  # the last wait is None


def main() -> None:
    """One request, one answer."""
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = os.environ["HF_HUB_DISABLE_XET"] = "1"
    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    try:
        answer = {"fetch": fetch, "list": listing}[request["do"]](request)
    except Exception as error:
        answer = explain(error)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _end_with_the_asker() -> None:
    while os.read(0, 100):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
