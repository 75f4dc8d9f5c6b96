"""Only the file that the user named is ever written, whatever its path holds and whatever happens to it meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from specchat.errors import InputRefused
from specchat.rewrite.disk import Folder
from specchat.rewrite.errors import ChangedOnDisk
from specchat.rewrite.source import read_source
from specchat.rewrite.undo import UndoStore

OLD, NEW = b"old\n", b"new\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, another one beside it with a file of the same name and contents, and links of both kinds."""
    for name in ("work", "work/sub", "elsewhere", "elsewhere/sub"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_bytes(OLD)
    (tmp_path / "work" / "out").symlink_to("../elsewhere")
    (tmp_path / "work" / "out.txt").symlink_to("../elsewhere/a.txt")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def contents(tree: Path) -> dict[str, bytes]:
    """Every file outside the store, links not followed."""
    found = (path for path in sorted(tree.rglob("*")) if "undo" not in path.parts)
    return {
        str(path.relative_to(tree)): path.read_bytes() for path in found if path.is_file() and not path.is_symlink()
    }


def changed(tree: Path, act: Callable[[], object]) -> set[str]:
    """The files that differ, appear or vanish."""
    before = contents(tree)
    act()
    after = contents(tree)
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@pytest.mark.parametrize(
    ("named", "written"),
    [
        ("a.txt", "work/a.txt"),
        ("./sub/../a.txt", "work/a.txt"),
        ("../elsewhere/a.txt", "elsewhere/a.txt"),
        ("out/a.txt", "elsewhere/a.txt"),
        ("out.txt", "elsewhere/a.txt"),
        ("out/sub/../a.txt", "elsewhere/a.txt"),
        ("out/../elsewhere/sub/a.txt", "elsewhere/sub/a.txt"),
    ],
)
def test_a_path_writes_and_takes_back_the_file_that_it_leads_to(tree: Path, named: str, written: str) -> None:
    store = UndoStore(tree / "undo")
    for path in (Path(named), tree / "work" / named):
        source = read_source(path)
        assert changed(tree, partial(store.save, source, NEW)) == {written}
        assert changed(tree, store.undo) == {written}


@pytest.mark.parametrize("named", ["a.txt", "sub/a.txt", "out.txt", "out/a.txt"])
def test_a_relative_path_is_the_same_file_from_another_folder(
    tree: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = read_source(Path(named))
    expected = {str((tree / "work" / named).resolve().relative_to(tree.resolve()))}
    monkeypatch.chdir(tree / "elsewhere")

    assert changed(tree, lambda: UndoStore(tree / "undo").save(source, NEW)) == expected


def relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def exchange(path: Path, away: Path, other: Path) -> None:
    path.rename(away)
    other.rename(path)


def link_instead(path: Path, away: Path, target: str) -> None:
    path.rename(away)
    path.symlink_to(target)


SWAPS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a link to a file": ("out.txt", lambda tree: relink(tree / "work/out.txt", "a.txt")),
    "a link to a folder": ("out/a.txt", lambda tree: relink(tree / "work/out", "sub")),
    "a file that becomes a link": ("sub/a.txt", lambda tree: relink(tree / "work/sub/a.txt", "../a.txt")),
    "a folder that becomes a link": (
        "sub/a.txt",
        lambda tree: link_instead(tree / "work/sub", tree / "moved", "../elsewhere"),
    ),
    "a folder that becomes another one": (
        "sub/a.txt",
        lambda tree: exchange(tree / "work/sub", tree / "moved", tree / "elsewhere"),
    ),
}


@pytest.mark.parametrize("swap", SWAPS)
def test_what_is_swapped_between_reading_and_writing_is_noticed(tree: Path, swap: str) -> None:
    named, act = SWAPS[swap]
    source = read_source(Path(named))
    act(tree)

    def save() -> None:
        with pytest.raises(ChangedOnDisk):
            UndoStore(tree / "undo").save(source, NEW)

    assert changed(tree, save) == set()


def test_a_folder_that_is_swapped_after_the_last_look_takes_no_write(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is held open, so the file is replaced where it was read, not where its path leads by then."""
    source = read_source(Path("sub/a.txt"))
    real = Folder.replace

    def swapped(self: Folder, source: str, target: str) -> None:
        if target == "a.txt":
            SWAPS["a folder that becomes a link"][1](tree)
        real(self, source, target)

    monkeypatch.setattr(Folder, "replace", swapped)
    UndoStore(tree / "undo").save(source, NEW)

    assert (tree / "elsewhere/a.txt").read_bytes() == OLD
    assert (tree / "moved/a.txt").read_bytes() == NEW


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "[red]x", "$(touch x)", "-w", "\udcff", "a b", "*", "…"])
def test_a_strange_name_is_just_a_name(tree: Path, name: str) -> None:
    (tree / "work" / name).write_bytes(OLD)
    store = UndoStore(tree / "undo")

    assert changed(tree, lambda: store.save(read_source(Path(name)), NEW)) == {f"work/{name}"}
    assert changed(tree, store.undo) == {f"work/{name}"}


@pytest.mark.parametrize("named", ["", ".", "..", "/", "out", "a.txt/", "a.txt/.", "missing", "\0", "x" * 5000])
def test_what_names_no_file_is_refused_before_anything_is_read(tree: Path, named: str) -> None:
    with pytest.raises(InputRefused):
        read_source(Path(named) if "\0" not in named and not named.endswith(("/", "/.")) else Path(f"{named}/x"))


@pytest.mark.parametrize("name", ["../a.txt", "sub/a.txt", "..", ".", ""])
def test_a_folder_opens_nothing_but_its_own_names(tree: Path, name: str) -> None:
    with Folder(tree / "work") as folder, pytest.raises(ValueError, match="not the name of a file"):
        folder.open(name, os.O_RDONLY)


def test_a_folder_follows_no_link(tree: Path) -> None:
    with Folder(tree / "work") as folder, pytest.raises(OSError, match="symbolic links"):
        folder.open("out.txt", os.O_RDONLY)
