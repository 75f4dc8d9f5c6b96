"""Deleting chats with everything that holds their words: their rows, and the states of the model's cache."""

from __future__ import annotations

from collections.abc import Sequence

from specchat.history.store import Store
from specchat.states import StateFiles


def forget_chats(store: Store, states: StateFiles, chat_ids: Sequence[int]) -> int:
    """Delete chats for good; how many there were. Raises StoreRefused, and then all of them may still be there."""
    keys = store.keys(chat_ids)
    count = store.delete(chat_ids)
    for key in keys:
        states.drop(key)
    return count
