"""Where files are kept: one source of folders, moved by variables, told by `specchat paths`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.cli import main
from specchat.folders import mark_as_cache
from specchat.kept import Kept
from specchat.paths import places, taken
from specchat.states import Owner, StateFiles

SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"
ROOTS = {
    "SPECCHAT_CONFIG": "/x/config/config.toml",
    "SPECCHAT_DATA_DIR": "/x/data",
    "SPECCHAT_STATE_DIR": "/x/state",
    "SPECCHAT_CACHE_DIR": "/x/cache",
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that all places are in."""
    for name, value in ROOTS.items():
        monkeypatch.setenv(name, value.replace("/x", str(tmp_path)))
    for name in ("SPECCHAT_MODELS_DIR", "SPECCHAT_CATALOGUE", "SPECCHAT_LOG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def by_name(environ: Mapping[str, str]) -> dict[str, Path]:
    return {place.name: place.path for place in places(environ)}


def test_four_variables_move_everything() -> None:
    assert [str(path) for path in by_name(ROOTS).values() if not path.is_relative_to("/x")] == []


@pytest.mark.parametrize(
    ("variable", "moved"),
    [
        ("SPECCHAT_CONFIG", {"config", "settings", "catalogue", "recipes"}),
        ("SPECCHAT_DATA_DIR", {"data", "models", "chats", "heads"}),
        ("SPECCHAT_STATE_DIR", {"state", "trusted", "undo", "unfinished", "refused", "crashes", "log"}),
        ("SPECCHAT_CACHE_DIR", {"cache", "states", "texts", "prices", "survival", "trials"}),
        ("SPECCHAT_MODELS_DIR", {"models"}),
        ("SPECCHAT_CATALOGUE", {"catalogue"}),
        ("SPECCHAT_LOG", {"log"}),
    ],
)
def test_a_variable_moves_its_places_and_no_other(variable: str, moved: set[str]) -> None:
    before, after = by_name({}), by_name({variable: "/elsewhere/it"})

    assert {name for name in before if before[name] != after[name]} == moved


def test_the_home_may_be_a_tilde_and_an_empty_variable_is_none() -> None:
    assert by_name({"SPECCHAT_DATA_DIR": "~/here"})["data"] == Path.home() / "here"
    assert by_name({"SPECCHAT_DATA_DIR": ""}) == by_name({})


def test_a_log_that_is_off_has_no_place() -> None:
    assert "log" not in by_name({"SPECCHAT_LOG": "off"})


def test_what_may_be_deleted_without_loss_is_never_around_what_may_not() -> None:
    known = places(ROOTS)
    kept, spare = ([place.path for place in known if place.may_go is may_go] for may_go in (False, True))

    assert [(inner, outer) for outer in spare for inner in kept if inner.is_relative_to(outer)] == []


def test_paths_prints_a_line_a_place(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paths"]) == 0

    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert {name: Path(path) for name, path in lines} == {place.name: place.path for place in places()}
    assert ["chats", str(own / "data" / "chats" / "chats.db")] in lines


def test_one_place_is_printed_alone_for_scripts(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paths", "models"]) == 0
    assert capsys.readouterr().out == f"{own / 'data' / 'models'}\n"


def test_an_unknown_place_is_refused_with_the_nearest_one(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paths", "modles"]) == 2
    assert capsys.readouterr().err == 'specchat: no place is named "modles"; did you mean "models"?\n'


def test_all_adds_sizes_and_what_may_go(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "data" / "models").mkdir(parents=True)
    (own / "data" / "models" / "a.gguf").write_bytes(bytes(1500))
    (own / "cache").mkdir()

    assert main(["paths", "--all"]) == 0

    lines = capsys.readouterr().out.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("models "))
    assert lines[at].split() == ["models", "2", "kB", str(own / "data" / "models")]
    assert "may be deleted" not in lines[at + 1]
    (at,) = (number for number, line in enumerate(lines) if line.startswith("cache "))
    assert lines[at + 1].endswith("may be deleted without loss")
    assert [line.split()[1] for line in lines if line.startswith("undo ")] == ["-"]


def test_json_has_bytes_and_null_for_what_is_not_there(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "config").mkdir()
    (own / "config" / "config.toml").write_text("# mine")

    assert main(["paths", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "specchat.paths/1"
    known = {place["name"]: place for place in told["places"]}
    assert known["settings"] == {
        "name": "settings",
        "path": str(own / "config" / "config.toml"),
        "holds": "your settings",
        "bytes": 6,
        "may_be_deleted": False,
    }
    assert known["undo"]["bytes"] is None
    assert known["cache"]["may_be_deleted"] is True


@given(sizes=st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "e/f/g"]), st.integers(0, 3000)))
def test_a_folder_takes_what_its_files_take(tmp_path_factory: pytest.TempPathFactory, sizes: dict[str, int]) -> None:
    folder = tmp_path_factory.mktemp("sized")
    for name, n_bytes in sizes.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes(n_bytes))

    assert taken(folder) == sum(sizes.values())


def test_links_are_counted_as_links(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(100_000))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "large")
    (tmp_path / "folder" / "loop").symlink_to(tmp_path)

    assert (taken(tmp_path / "folder") or 0) < 1000


def test_folders_of_the_cache_are_marked_as_one(tmp_path: Path) -> None:
    Kept(tmp_path / "cache" / "prices.json").put("key", 1)
    owner, state = Owner("m.gguf", "weights", "engine", "kind"), np.zeros(8, dtype=np.uint8)
    StateFiles(tmp_path / "cache" / "states").put("7", owner, np.arange(3, dtype=np.int32), state)

    for folder in (tmp_path / "cache", tmp_path / "cache" / "states"):
        assert (folder / "CACHEDIR.TAG").read_text().startswith(SIGNATURE)


def test_facts_that_cannot_be_kept_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        Kept(folder / "prices.json").put("key", 1)

    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_mark_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "CACHEDIR.TAG").write_text("mine")
    mark_as_cache(tmp_path)

    assert (tmp_path / "CACHEDIR.TAG").read_text() == "mine"
