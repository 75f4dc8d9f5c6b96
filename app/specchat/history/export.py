"""A stored chat as a file for people and other programs: Markdown, JSON or HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from specchat.console import printable
from specchat.history.html import to_html
from specchat.history.portable import to_json
from specchat.history.records import ChatRecord
from specchat.history.telling import figures, who

_FENCE = re.compile("^ {0,3}(`{3,})", re.MULTILINE)


def exported(chat: ChatRecord, form: str) -> str:
    """The chat as a text file of a form, one of `FORMS`."""
    return FORMS[form](chat)


def to_markdown(chat: ChatRecord) -> str:
    """The path of the chat, with a line of figures under each reply."""
    parts = [f"# {_in_one_line(chat.title)}"]
    if chat.system:
        parts += ["## System prompt", chat.system]
    for turn in chat.path():
        parts += [f"## {who(turn)}", turn.text]
        parts += [_attached(attachment.name, attachment.text) for attachment in turn.attachments]
        if line := figures(turn):
            parts.append(f"*{line}*")
    return printable("\n\n".join(part.rstrip() for part in parts)) + "\n"


def _attached(name: str, text: str) -> str:
    """A file in a code block whose fence the file does not hold."""
    fence = "`" * max(3, *(len(found) + 1 for found in _FENCE.findall(text)), 3)
    return f"{_in_one_line(name)}:\n\n{fence}\n{text.rstrip()}\n{fence}"


def _as_json(chat: ChatRecord) -> str:
    return json.dumps(to_json(chat), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


FORMS: Mapping[str, Callable[[ChatRecord], str]] = {"md": to_markdown, "json": _as_json, "html": to_html}
