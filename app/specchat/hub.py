"""The model hub as a source of model files, through huggingface-hub in a process of its own."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from specchat.catalogue import COMMIT, SHA256, HubSource, Model
from specchat.exit_codes import ExitCode
from specchat.offline import refuse_when_offline
from specchat.partfile import PartFile
from specchat.transfer import DiskFull, DownloadError, Positions
from specchat.workers import worker_command

POLL_S = 0.2
ENDPOINT = "https://huggingface.co"
_WORKER = Path(__file__).with_name("hub_worker.py")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The rest of one file; `part` holds its beginning."""

    repo: str
    revision: str
    file: str
    part: str
    size: int  # bytes, of the whole
    sha256: str


HubFetch = Callable[[Wanted, Callable[[int], None]], Mapping[str, Any]]  # (what, heard of sizes) -> {} or the error

Ask = Callable[[Mapping[str, Any], Callable[[], None]], Mapping[str, Any]]  # (request, called meanwhile) -> answer


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository."""

    name: str  # with its folders
    size: int  # bytes
    sha256: str  # "" where the hub has no checksum of it


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as it is at one commit."""

    name: str
    commit: str
    licence: str  # "" where none is stated
    files: tuple[HubFile, ...]
    gated: bool = False  # whether somebody has to accept its terms before a file is given


class HubError(DownloadError):
    """The hub did not give a file or a list; the text says why and what to do."""

    def __init__(self, answer: Mapping[str, Any], repo: str, revision: str = "", file: str = "") -> None:
        self.kind = str(answer["error"])
        super().__init__(_sentence(self.kind, answer, repo, revision, file))
        refused = self.kind in ("no-repository", "no-revision", "no-file", "gated", "disabled")
        self.exit_code = ExitCode.MODEL if refused else ExitCode.NETWORK


class HubTransfer:
    """One file of a model from one source."""

    def __init__(self, model: Model, file: PartFile, source: HubSource, fetch: HubFetch | None) -> None:
        self._file = file
        self._source = source
        self._fetch = fetch or fetch_in_child
        # The parts of a split model lie beside its first.
        path = PurePosixPath(source.file)
        self._path = str(path.with_name(file.part.name) if model.file.split else path)

    def run(self, bar: Positions) -> bool:
        """Fetches what is missing; whether it went on from what was there. Raises DownloadError, OSError."""
        source, part = self._source, self._file.part
        start = self._file.resume_stream()
        bar.reach(start)
        full = self.disk_full()
        if full.free_bytes < full.needed_bytes and start < part.size:
            raise full
        bar.progress.note("from the model hub")
        wanted = Wanted(source.repo, source.revision, self._path, str(self._file.path), part.size, part.sha256)
        answer = self._fetch(wanted, bar.reach)
        if answer.get("error") == "disk-full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if "error" in answer:
            raise HubError(answer, source.repo, source.revision, self._path)
        return start > 0

    def disk_full(self) -> DiskFull:
        """What is missing of the space for the rest."""
        folder = self._file.path.parent
        needed_bytes = self._file.part.size - self._file.size
        return DiskFull(folder, needed_bytes=needed_bytes, free_bytes=shutil.disk_usage(folder).free)


def fetch_in_child(wanted: Wanted, seen: Callable[[int], None]) -> Mapping[str, Any]:
    """Appends the rest of a file; hears its size a few times a second, and ends with what `seen` raises."""
    part = Path(wanted.part)
    return ask_worker({"do": "fetch", **asdict(wanted)}, lambda: seen(part.stat().st_size))


def repository(name: str, revision: str | None, waiting: Callable[[], None], ask: Ask | None = None) -> Repository:
    """What a repository holds; `waiting` is called a few times a second meanwhile. Raises HubError."""
    answer = (ask or ask_worker)({"do": "list", "repo": name, "revision": revision}, waiting)
    if "error" in answer:
        raise HubError(answer, name, revision or "")
    try:
        files = tuple(HubFile(str(f["name"]), int(f["size"]), str(f["sha256"])) for f in answer["files"] if f["size"])
        gated = bool(answer.get("gated"))
        found = Repository(name, str(answer["commit"]), str(answer["licence"]), files, gated)
    except (KeyError, TypeError, ValueError) as error:
        raise HubError({"error": "not-the-hub"}, name) from error
    checked = all(not file.sha256 or SHA256.fullmatch(file.sha256) for file in files)
    if not checked or not COMMIT.fullmatch(found.commit):
        raise HubError({"error": "not-the-hub"}, name)
    return found


def ask_worker(request: Mapping[str, Any], tick: Callable[[], None]) -> Mapping[str, Any]:
    """The answer of a worker, which does not outlive the question. Raises Offline."""
    file = request.get("file")
    refuse_when_offline(f"{file} of {request['repo']}" if file else f"the list of {request['repo']}")
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as log:
        worker = subprocess.Popen(
            worker_command(_WORKER),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=log,
            start_new_session=True,  # Ctrl-C in the terminal is not meant for it
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # the same, on Windows
        )
        assert worker.stdin is not None
        try:
            with suppress(OSError):  # it has ended, which its answer shows too
                worker.stdin.write(json.dumps(request).encode() + b"\n")
                worker.stdin.flush()
            while worker.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    worker.wait(POLL_S)
                tick()
        finally:
            worker.kill()
            worker.wait()
            with suppress(OSError):
                worker.stdin.close()
        output.seek(0)
        with suppress(ValueError):
            answer = json.loads(output.read())
            if isinstance(answer, dict):
                return answer
        log.seek(0)
        said = log.read().decode("utf-8", "replace").strip().splitlines()
        return {"error": "fault", "detail": said[-1] if said else f"its process ended with {worker.returncode}"}


def _sentence(kind: str, answer: Mapping[str, Any], repo: str, revision: str, file: str) -> str:
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or ENDPOINT
    detail, seconds = " ".join(str(answer.get("detail", "")).split()), answer.get("seconds")
    what = f"{file} of {repo}" if file else repo
    again = "run the same command again later, it goes on where it stopped" if file else "try again later"
    sentences = {
        "offline": f"cannot fetch {what}: HF_HUB_OFFLINE forbids it; unset it to reach the model hub",
        "gated": f"{repo} is gated: accept its terms at {hub}/{repo}, then log in with HF_TOKEN or `hf auth login`",
        "bad-token": f"the hub does not accept your token: renew it at {hub}/settings/tokens, or unset HF_TOKEN",
        "no-repository": f"the hub shows no repository {repo}: check the name; "
        "for a private one set HF_TOKEN to a token that may read it",
        "no-revision": f"{repo} has no revision {revision}: it was removed or never there",
        "no-file": f"{repo} has no file {file} at revision {revision[:12]}",
        "forbidden": f"the hub refuses {what} (403): check at {hub}/{repo} what your token may read",
        "disabled": f"the hub has disabled {repo}: choose another repository",
        "rate-limited": f"the hub is asked too often from here (429): wait "
        f"{f'{seconds} seconds' if seconds else 'some minutes'}, or log in with HF_TOKEN for a higher limit",
        "network": f"cannot reach the hub for {what} ({detail}): check network and proxy; {again}",
        "server": f"the hub failed on {what} ({detail}): {again}",
        "short": f"the hub broke off {what} again and again ({detail}): {again}",
        "not-the-hub": f"what answers at {hub} is no model hub, perhaps a login page of this network: "
        f"open {hub}/{repo} in a browser, or check HF_ENDPOINT",
        "not-a-model": f"{what} came without the mark of a GGUF file, perhaps as a login page of this network: "
        f"open {hub}/{repo} in a browser",
        "changed": f"the hub has another file as {what} than the one that is wanted: {detail}",
        "too-large": f"{what} is over 50 GB in one piece, which the hub gives to no plain download: choose a split one",
    }
    return sentences.get(kind, f"fetching {what} from the hub failed: {detail}")
