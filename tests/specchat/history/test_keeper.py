"""Chats that the app deletes from its list: what held their words goes with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.folders import texts_folder
from specchat.history.keeper import Keeper
from tests.specchat.history.making import said


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of what was read from chats for heads."""
    monkeypatch.setenv("SPECCHAT_CACHE_DIR", str(tmp_path / "cache"))
    path = texts_folder() / "m" / "chats" / "text-00001.npz"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"words")
    return path


def test_what_heads_read_from_chats_goes_with_a_chat_deleted_in_the_app(tmp_path: Path, read: Path) -> None:
    keeper = Keeper(tmp_path / "chats.db", lambda text: pytest.fail(text))
    record = keeper.store().load(keeper.store().put(said("one", "two")))

    keeper.delete(record)

    assert not read.exists()
    keeper.close()


def test_words_that_cannot_be_deleted_are_told_of_and_the_chat_can_still_be_had_back(
    tmp_path: Path, read: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    trouble: list[str] = []
    keeper = Keeper(tmp_path / "chats.db", trouble.append)
    record = keeper.store().load(keeper.store().put(said("one", "two")))
    monkeypatch.setattr("specchat.heads.places.discard", refused)

    keeper.delete(record)

    assert [text.split(":")[0] for text in trouble] == ["the chats are deleted, and what heads read from chats is not"]
    assert keeper.undelete() == record
    keeper.close()
