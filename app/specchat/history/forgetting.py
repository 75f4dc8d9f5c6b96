"""Deleting chats with everything that holds their words: their rows, states of the model's cache, texts of heads."""

from __future__ import annotations

from collections.abc import Sequence

from specchat.attachments import label
from specchat.errors import Refusal
from specchat.heads.places import forget_texts_of_chats
from specchat.history.store import Store
from specchat.states import StateFiles


class TextsRefused(Refusal):
    """Texts of chats that cannot be deleted; the text says where they are."""


def forget_chats(store: Store, states: StateFiles, chat_ids: Sequence[int]) -> int:
    """Delete chats for good; how many there were. Raises StoreRefused, and then all of them may still be there.

    Raises TextsRefused where the chats are gone and words of them may still be there.
    """
    keys = store.keys(chat_ids)
    count = store.delete(chat_ids)
    for key in keys:
        states.drop(key)
    forget_texts()
    return count


def forget_texts() -> None:
    """Delete all that heads were to learn from chats: it is not known which chat a text is of. Raises TextsRefused."""
    try:
        forget_texts_of_chats()
    except OSError as error:
        raise TextsRefused(
            f"the chats are deleted, and what heads read from chats is not: {label(str(error.filename))}: "
            f"{error.strerror or error}"
        ) from error
