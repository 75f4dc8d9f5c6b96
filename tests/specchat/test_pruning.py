"""What is left over of downloads is found and deleted; what is in use, linked or somebody's stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specchat.catalogue import LINKED, Model, ModelFile
from specchat.kept import Kept
from specchat.partfile import held, locked
from specchat.pruning import Leftover, delete, leftovers, stale_trials
from tests.specchat.test_models_commands import Run, content, env, files_in, hub, run  # noqa: F401 # fixtures

BIG = Model("big", "Big", ("target",), None, "llama", 1, "MIT", ModelFile("big.gguf", "Q8_0", 9, "a" * 64), ())


def put(path: Path, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return path


def find(folder: Path, *known: Path) -> dict[str, Leftover]:
    return {each.path.relative_to(folder).as_posix(): each for each in leftovers(folder, [BIG], known)}


def test_parts_notes_folders_and_locks_of_downloads_are_left_over_and_whole_models_are_not(tmp_path: Path) -> None:
    whole = put(tmp_path / "big.gguf")
    put(tmp_path / "big.gguf.part", 100)
    put(tmp_path / "big.gguf.part.json")
    put(tmp_path / "big.gguf.part-x1" / "wheel", 30)
    put(tmp_path / "old.gguf.part")
    put(tmp_path / "old.gguf.lock")
    put(tmp_path / "own.json")
    put(tmp_path / "notes.txt")

    found = find(tmp_path, whole)

    assert sorted(found) == [
        "big.gguf.part",
        "big.gguf.part-x1",
        "big.gguf.part.json",
        "old.gguf.lock",
        "old.gguf.part",
    ]
    assert found["big.gguf.part"].what == "an unfinished download of big, which can go on"
    assert (found["big.gguf.part"].size, found["big.gguf.part-x1"].size) == (100, 30)
    assert found["old.gguf.part"].what == "an unfinished download"
    assert not any(each.is_doubtful for each in found.values())


def test_a_download_that_runs_is_left_alone_with_all_parts_of_its_model(tmp_path: Path) -> None:
    names = ["a-00001-of-00002.gguf.part", "a-00002-of-00002.gguf.part", "a-00002-of-00002.gguf.part.json"]
    for name in (*names, "b.gguf.part"):
        put(tmp_path / name)

    with locked(tmp_path / "a-00001-of-00002.gguf.lock", ""):
        assert sorted(find(tmp_path)) == ["b.gguf.part"]
        left = Leftover("", tmp_path / names[0], 0, tmp_path / "a-00001-of-00002.gguf.lock")
        assert not delete(left)

    assert sorted(find(tmp_path)) == [*names, "b.gguf.part"]
    assert delete(left)
    assert not (tmp_path / names[0]).exists()


def test_folders_of_the_hub_on_no_list_go_whole_and_those_on_it_stay(tmp_path: Path) -> None:
    listed = put(tmp_path / "hub" / "o--n@c1" / "m.gguf")
    gone = put(tmp_path / "hub" / "o--n@c2" / "m.gguf")

    (found,) = leftovers(tmp_path, [], [listed])

    assert (found.path, found.what, found.is_doubtful) == (gone, "fetched, and on no list any more", False)
    assert delete(found)
    assert [path.name for path in (tmp_path / "hub").iterdir()] == ["o--n@c1"]


def test_a_file_in_the_folder_that_no_list_knows_may_be_the_users(tmp_path: Path) -> None:
    put(tmp_path / "mine.gguf")

    (found,) = leftovers(tmp_path, [], [])

    assert found.is_doubtful


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_links_and_what_they_lead_to_are_never_touched(tmp_path: Path) -> None:
    elsewhere = put(tmp_path / "elsewhere" / "x.gguf")
    folder = tmp_path / "models"
    (folder / "hub").mkdir(parents=True)
    (folder / "x.gguf").symlink_to(elsewhere)
    (folder / "x.gguf.part").symlink_to(elsewhere)
    (folder / "hub" / "o--n@c1").symlink_to(elsewhere.parent)

    assert leftovers(folder, [], []) == []


def test_a_linked_model_in_the_folder_itself_is_known(tmp_path: Path) -> None:
    place = put(tmp_path / "x.gguf")
    linked = Model("x", "X", ("target",), None, "", 0, "", ModelFile("x.gguf", "", 10, ""), (), LINKED, place)

    assert leftovers(tmp_path, [linked], [place]) == []


def test_looking_at_a_lock_changes_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "x.gguf.lock"
    assert not held(lock)
    with locked(lock, ""):
        assert held(lock)
        assert lock.exists()
    put(lock)
    assert not held(lock)
    assert lock.exists()


def test_records_of_trials_go_with_their_files(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "trials.json")
    here = put(tmp_path / "here.gguf")
    kept.put(str(here), {"engine": "x", "files": [[str(here), 1, 2, 3]]})
    kept.put("/gone.gguf", {"engine": "x", "files": [["/gone.gguf", 1, 2, 3]]})
    kept.put("/odd.gguf", [])

    assert stale_trials(kept) == ["/gone.gguf", "/odd.gguf"]


def test_prune_says_what_it_would_delete_asks_and_keeps_doubtful_files_until_told(
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    folder = tmp_path / "models"
    put(folder / "smollm2.gguf.part", 5000)
    put(folder / "mine.gguf")

    tried_out = run("models", "prune", "--dry-run")
    unasked = run("models", "prune")

    assert tried_out.returncode == 0
    assert tried_out.stdout.splitlines()[1].startswith("   5 kB ")
    assert "1 of these may be files of your own and stay" in tried_out.stderr
    assert (unasked.returncode, "add -y" in unasked.stderr) == (6, True)
    assert files_in(folder) == ["mine.gguf", "smollm2.gguf.part"]
    done = run("models", "prune", "-y")
    assert (done.returncode, files_in(folder)) == (0, [])
    assert "2 of 2 deleted" in done.stderr
    again = run("models", "prune", "-y")
    assert (again.returncode, again.stderr) == (0, "nothing is left over\n")
