"""A chat on its way into a file: the name is asked for, and nothing is written over without a word."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from specchat.attachments import label, typed_path
from specchat.errors import Refusal
from specchat.history.export import FORMS, exported
from specchat.history.records import ChatRecord
from specchat.rewrite.disk import Folder, create
from specchat.tui.actions import Actions
from specchat.tui.screens.ask_line import AskLine
from specchat.tui.screens.question import Question

_NAME_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Told:
    """How it went."""

    text: str
    is_problem: bool = False


async def export_chat(app: Actions, load: Callable[[], ChatRecord], path: str) -> Told | None:
    """Write a chat to a file, asking for what is not said; None where the user left. To be run in a worker.

    `load` reads the chat, in a thread, and may raise a Refusal.
    """
    try:
        record = await asyncio.to_thread(load)
    except Refusal as error:
        return Told(str(error), is_problem=True)
    named = path or free_name(record.title, app.folder)
    asks = not path
    while True:
        if asks:
            answer = await app.push_screen_wait(AskLine("Export to (.md, .json or .html)", named))
            if answer is None:
                return None
            named = answer
        asks = True
        target = typed_path(app.folder, named)
        form = target.suffix.lower().lstrip(".")
        if form not in FORMS:
            app.tell(f"{label(named)} must end with .md, .json or .html", "warning")
            continue
        if target.exists():
            question = Question(
                "Write over it?", f"{label(named)} is there already.", ["Another name", "Write over it"]
            )
            replaces = await app.push_screen_wait(question)
            if replaces is None:
                return None
            if replaces == 0:
                continue
        try:
            await asyncio.to_thread(_write, target, record, form)
        except OSError as error:
            return Told(f"{label(named)} cannot be written: {error.strerror or error}", is_problem=True)
        return Told(f"written to {label(named)}")


def free_name(title: str, folder: Path) -> str:
    """A name for the file of a chat that nothing in the folder has."""
    words = "-".join("".join(c if c.isalnum() else " " for c in title.casefold()).split())
    stem = words[:_NAME_LENGTH].strip("-") or "chat"
    name, number = f"{stem}.md", 1
    while (folder / name).exists():
        number += 1
        name = f"{stem}-{number}.md"
    return name


def _write(target: Path, record: ChatRecord, form: str) -> None:
    with Folder(target.parent) as folder:
        create(folder, target.name, exported(record, form).encode())
