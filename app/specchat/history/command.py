"""`specchat chats`: what is kept, on the command line."""

from __future__ import annotations

import json
import re
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from specchat.attachments import label
from specchat.console import can_ask, confirmed, printable, say
from specchat.errors import Declined, UsageError
from specchat.folders import history_path
from specchat.history.choosing import chosen
from specchat.history.records import ChatSummary, Hit
from specchat.history.store import Store
from specchat.history.telling import moment
from specchat.rewrite.disk import Folder, create

if TYPE_CHECKING:
    from rich.text import Text

_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}
_DAY_S = 86_400
_MOST_TITLES = 5  # named in a question


def list_chats(args: Namespace) -> int:
    """One line for each chat, the newest first."""
    with opened_store() as store:
        found = store.chats(limit=_limit(args, -1))
    if hasattr(args, "json"):
        json.dump([asdict(chat) for chat in found], sys.stdout, indent=1)
        print()
        return 0
    if not found:
        say("no chat is kept yet")
    width = max((len(str(chat.id)) for chat in found), default=0)
    for chat in found:
        worth = "-" if chat.tokens_per_step is None else f"{chat.tokens_per_step:.2f}"
        messages = f"{chat.messages} message{'' if chat.messages == 1 else 's'}"
        mark = "*" if chat.is_pinned else " "
        print(f"{chat.id:>{width}} {mark} {moment(chat.changed)}  {messages:>13}  {worth:>5}  {_line(chat.title)}")
    return 0


def show_chat(args: Namespace) -> int:
    """A chat as Markdown."""
    from specchat.history.export import exported

    with opened_store() as store:
        print(exported(store.load(chosen(store, args.chat).id), "md"), end="")
    return 0


def search_chats(args: Namespace) -> int:
    """One line for each place that holds the words."""
    with opened_store() as store:
        words = (f'"{word}"' if " " in word and '"' not in word else word for word in args.words)
        found = store.search(" ".join(words), limit=_limit(args, 50))
    if hasattr(args, "json"):
        json.dump([asdict(hit) for hit in found], sys.stdout, indent=1)
        print()
        return 0
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for hit in found:
        console.print(_hit(hit))
    if not found:
        say("nothing found")
    return 0


def rename_chat(args: Namespace) -> int:
    """Give a chat a title."""
    title = " ".join(args.title.split())
    if not title:
        raise UsageError("a title must hold a word")
    with opened_store() as store:
        store.rename(chosen(store, args.chat).id, title)
    return 0


def delete_chats(args: Namespace) -> int:
    """Delete chats for good."""
    with opened_store() as store:
        _delete(store, list({chat.id: chat for chat in (chosen(store, each) for each in args.chats)}.values()), args)
    return 0


def purge_chats(args: Namespace) -> int:
    """Delete chats that were not changed for long."""
    age = re.fullmatch(r"(\d{1,5})([dwmy])", args.older_than)
    if age is None:
        raise UsageError(f"--older-than {label(args.older_than)}: must be a number of days, weeks or years, like 90d")
    with opened_store() as store:
        old = store.older_than(time.time() - int(age[1]) * _DAYS[age[2]] * _DAY_S)
        if old:
            _delete(store, old, args)
        else:
            say("no chat is as old as that")
    return 0


def export_chat(args: Namespace) -> int:
    """Write a chat to a file or to stdout."""
    from specchat.history.export import FORMS, exported

    suffix = "" if args.output is None else Path(args.output).suffix.lower().lstrip(".")
    with opened_store() as store:
        text = exported(store.load(chosen(store, args.chat).id), args.format or (suffix if suffix in FORMS else "md"))
    if args.output is None:
        sys.stdout.write(text)
        return 0
    _write(Path(args.output), text.encode())
    say(f"written to {label(args.output)}")
    return 0


def import_chats(args: Namespace) -> int:
    """Take up the chats of a file, "-": of standard input; those that are here already are left as they are."""
    from specchat.history.taking import take_up

    with opened_store() as store:
        taken = take_up(store, None if args.file == "-" else Path(args.file))
    if taken.problem is not None:
        if taken.new:
            say(f"{_count(taken.new)} taken up before this:")
        raise taken.problem
    say(taken.line)
    return 0


def _delete(store: Store, chats: Sequence[ChatSummary], args: Namespace) -> None:
    if not args.yes:
        titles = ", ".join(f'{chat.id} "{_line(chat.title)}"' for chat in chats[:_MOST_TITLES])
        more = f" and {len(chats) - _MOST_TITLES} more" if len(chats) > _MOST_TITLES else ""
        if not can_ask():
            raise Declined(f"nothing deleted: no terminal to ask on about {titles}{more}; add -y")
        if not confirmed(f"Delete {titles}{more} for good?", by_enter=False):
            raise Declined("nothing deleted")
    from specchat.history.forgetting import forget_chats
    from specchat.states import kept_states

    gone = forget_chats(store, kept_states(), [chat.id for chat in chats])
    say(f"{_count(gone)} deleted")


def _write(path: Path, data: bytes) -> None:
    """Write a file that only the user may read, whole or not at all. Raises OSError."""
    if path.exists() and not path.is_file():  # a device
        path.write_bytes(data)
    else:
        with Folder(path.parent) as folder:
            create(folder, path.name, data)


def _hit(hit: Hit) -> Text:
    from rich.text import Text

    line = Text(f"{hit.chat}  {moment(hit.when)}  ")
    line.append(_line(hit.title), "bold")
    if hit.turn is not None:
        line.append(f"  {hit.turn}: ")
        # Each piece by itself: a mark for a character that could steer the terminal is as long as the character.
        snippet = Text(_line(hit.snippet))
        for start, end in hit.marks:
            snippet.stylize("reverse", start, end)
        line.append_text(snippet)
    return line


def opened_store() -> Store:
    """The store of this user; what there is to know of how it was opened is said. Raises StoreRefused."""
    store = Store.open(history_path())
    for notice in store.notices:
        say(f"note: {notice}")
    return store


def _limit(args: Namespace, absent: int) -> int:
    limit: int = getattr(args, "limit", absent)
    if limit < 1 and limit != absent:
        raise UsageError(f"--limit {limit}: must be 1 or more")
    return limit


def _line(text: str) -> str:
    """A text on one line, a character for each of its characters."""
    return re.sub(r"\s", " ", printable(text))


def _count(number: int) -> str:
    return f"{number} chat{'' if number == 1 else 's'}"
