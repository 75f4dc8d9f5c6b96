"""Which chat somebody means: its number, the beginning of its title, or the last one."""

from __future__ import annotations

from specchat.attachments import label
from specchat.history.errors import NoSuchChat
from specchat.history.records import ChatSummary
from specchat.history.store import Store

LAST = "last"


def chosen(store: Store, wanted: str) -> ChatSummary:
    """The chat that is meant. Raises NoSuchChat where there is none, or more than one."""
    if wanted == LAST:
        newest = max(store.chats(), key=lambda chat: (chat.changed, chat.id), default=None)
        if newest is None:
            raise NoSuchChat(wanted, "names nothing: no chat is kept yet")
        return newest
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 19:
        return store.summary(int(wanted))
    words = wanted.casefold()
    found = [chat for chat in store.chats() if words and chat.title.casefold().startswith(words)]
    exact = [chat for chat in found if chat.title.casefold() == words]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise NoSuchChat(wanted)
    numbers = ", ".join(str(chat.id) for chat in found[:8])
    raise NoSuchChat(wanted, f"begins the titles of {len(found)} chats ({label(numbers)}): give a number")
