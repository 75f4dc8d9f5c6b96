"""The log: a line of figures for each command, load and reply, in rotating files. No text, by the form of a line.

A line is an event of ours and numbers under names of ours; anything else that comes to the handler is left out, so
that no library and no slip can write down what was said, a name or a path.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from specchat.folders import log_folder

if TYPE_CHECKING:
    from specchat.reply import Reply

OFF = "off"
MOST_BYTES, OLD_FILES = 500_000, 3
_LOGGER = "specchat.figures"
_FIGURES = "figures"  # the attribute of a record
_EVENT = re.compile("[a-z][a-z_]{0,31}([.][a-z_]{1,31})?")


def log_path(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file: what SPECCHAT_LOG names, or one in the folder for logs; None where that is "off"."""
    chosen = environ.get("SPECCHAT_LOG", "")
    if chosen.lower() == OFF:
        return None
    return Path(os.path.expanduser(chosen)) if chosen else log_folder(environ) / "specchat.log"


def note(event: str, **figures: float | None) -> None:
    """Write a line where a log is open: an event, which is a word of the code, and figures; None is left out."""
    logging.getLogger(_LOGGER).info(event, extra={_FIGURES: figures})


def note_reply(reply: Reply) -> None:
    """Write what a reply took."""
    totals = reply.totals
    note(
        f"reply.{reply.finish or 'interrupted'}",
        prompt=reply.prompt_tokens,
        reused=reply.reused_tokens,
        read=reply.read_tokens,
        read_s=reply.read_s,
        first_s=reply.first_token_s,
        tokens=totals.emitted,
        steps=totals.steps,
        drafted=totals.drafted,
        examined=totals.examined,
        accepted=totals.accepted,
        draft_s=totals.draft_s,
        verify_s=totals.verify_s,
    )


@contextmanager
def opened_log(path: Path | None) -> Iterator[None]:
    """While inside, what `note` is told goes into a file; nowhere where there is none or it cannot be written."""
    logger = logging.getLogger(_LOGGER)
    logger.propagate = False
    handler: logging.Handler = logging.NullHandler()
    if path is not None:
        with suppress(OSError):
            if not path.parent.exists():
                path.parent.mkdir(mode=0o700, parents=True)
            handler = _PrivateFile(path)
    handler.setFormatter(_Line())
    handler.addFilter(lambda record: isinstance(getattr(record, _FIGURES, None), dict))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        with suppress(OSError):  # what is still to be written has no room either
            handler.close()


class _PrivateFile(RotatingFileHandler):
    """A log that only its owner can read, and whose troubles are nobody's."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=MOST_BYTES, backupCount=OLD_FILES, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        return TextIOWrapper(open(self.baseFilename, "ab", opener=_private), self.encoding, line_buffering=True)

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk must not break a chat, nor print a traceback over it."""


def _private(name: str, flags: int) -> int:
    handle = os.open(name, flags, 0o600)
    if sys.platform != "win32" and os.path.isfile(name):
        os.fchmod(handle, 0o600)  # where it was there before
    return handle


class _Line(logging.Formatter):
    """The form of a line."""

    def format(self, record: logging.LogRecord) -> str:
        event = record.msg if isinstance(record.msg, str) and _EVENT.fullmatch(record.msg) else "?"
        figures = getattr(record, _FIGURES)
        numbers = [f"{name}={value:.6g}" for name, value in figures.items() if isinstance(value, int | float)]
        return " ".join([f"{self.formatTime(record)}", str(record.process), event, *numbers])
