"""What was collected for heads: damaged files of it are dropped, the rest is used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specchat.errors import UsageError
from specchat.heads import command
from specchat.heads.collected import Collected
from specchat.heads.file import write_arrays
from specchat.heads.places import (
    Source,
)
from specchat.heads.training import learn
from specchat.heads.writing import Written
from tests.specchat.heads.making import texts, train


def some_text(n: int = 30) -> Written:
    return Written(np.arange(n, dtype=np.int32), np.zeros((n, 400), dtype=np.float16))


def kept(n_files: int, weights: str = "w") -> list[Path]:
    """Files of thirty positions each, collected for a model m."""
    collected = Collected("m", Source.WRITTEN, weights)
    for _ in range(n_files):
        collected.add([some_text()])
        collected.keep()
    return sorted(collected.folder.glob("text-*"))


def test_what_was_collected_for_other_weights_is_refused_and_stays(own: Path) -> None:
    (path,) = kept(1)

    with pytest.raises(UsageError, match=r"another file of that name: `specchat heads rm --texts m` deletes it"):
        Collected("m", Source.WRITTEN, "others")

    assert path.exists()
    assert Collected("m", Source.WRITTEN, "w").positions == 30


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "checksum":
        at = data.index(b"hidden.npy") + 200
        data[at] ^= 1
        path.write_bytes(data)
    elif how == "shape":  # one that asks for more memory than there is
        before, after = b"(30, 400), }" + b" " * 13, b"(30, 400" + b"0" * 13 + b"), }"
        path.write_bytes(data.replace(before, after, 1))
        assert after in path.read_bytes()
    elif how == "size":  # more bytes than the file has
        at = data.rindex(b"PK\x01\x02")
        data[at + 23] = data[at + 27] = 0x7F
        path.write_bytes(data)
    elif how == "locked":  # a bit claims that a password is needed
        data[data.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(data)
    elif how == "lengths":
        with np.load(path) as found:
            arrays = {name: found[name].copy() for name in found.files}
        write_arrays(path, arrays | {"lengths": arrays["lengths"] + 1})
    else:
        write_arrays(path, {"tokens": np.arange(3)})


DAMAGES = ["cut", "empty", "checksum", "shape", "size", "locked", "lengths", "lacking"]


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_text_is_dropped_and_the_rest_is_used(how: str, own: Path) -> None:
    broken, sound = kept(2)
    damage(broken, how)

    found = Collected("m", Source.WRITTEN, "w")

    assert (found.positions, broken.exists(), sound.exists()) == (30, False, True)
    assert found.rounds == 2


@pytest.mark.parametrize("how", DAMAGES)
def test_text_that_is_damaged_while_a_training_runs_is_left_out(how: str, own: Path) -> None:
    broken, _ = kept(2)
    one, other = Collected("m", Source.WRITTEN, "w"), Collected("m", Source.WRITTEN, "w")
    damage(broken, how)

    assert len(one.examples()) == 30
    assert len(other.texts()) == 1


def test_without_sound_text_there_are_no_examples(own: Path) -> None:
    (broken,) = kept(1)
    damage(broken, "cut")

    assert len(Collected("m", Source.WRITTEN, "w").examples()) == 0


@pytest.mark.parametrize("how", ["cut", "empty", "lacking"])
def test_damaged_progress_of_learning_is_dropped(
    how: str, own: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "learn", lambda learner, progress, keep: learn(learner, lambda done: False, keep))
    assert train(model) == 130
    noted = texts(own) / "learned-eagle.npz"
    damage(noted, how)
    monkeypatch.setattr(command, "learn", lambda learner, progress, keep: False)

    assert train(model, "--resume") == 130

    assert not noted.exists()
