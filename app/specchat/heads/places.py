"""Where heads and the text that they learn from stand, by the name of their model; importing this loads no numbers."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from specchat.console import printable
from specchat.errors import Refusal, UsageError
from specchat.exit_codes import ExitCode
from specchat.folders import texts_folder
from specchat.partfile import locked
from specchat.rewrite.disk import private_folder
from specchat.transfer import DownloadError

_LOCK = "lock"  # beside the folders of texts, so that it is none of another model's names


class Source(StrEnum):
    """What a text comes from; each has a folder of its own, so that the two never mix."""

    WRITTEN = "written"  # by the model, for this alone
    CHATS = "chats"  # that are kept


class BadName(UsageError):
    """A name that a model can have and no folder or file."""


class Busy(Refusal):
    """Another process works on what is collected for a model."""

    exit_code = ExitCode.MODEL


def checked(model: str) -> str:
    """The name, under which heads can be kept. Raises BadName."""
    if model in ("", os.curdir, os.pardir) or "/" in model or "\\" in model:
        raise BadName(
            f'heads are kept under the name of the model file, and "{printable(model)}" can be none: rename the file'
        )
    return model


def texts_of(model: str, source: Source) -> Path:
    """The folder of what was collected for a model. Raises BadName."""
    return texts_folder() / checked(model) / source


def models_with_texts() -> set[str]:
    """The names of the models for which something was collected."""
    folders = (path for path in texts_folder().glob("*") if path.is_dir())
    return {folder.name for folder in folders if any(each.name != _LOCK for each in folder.iterdir())}


def remove_texts(model: str) -> None:
    """Delete what was collected for a model. Raises BadName, OSError."""
    for path in (texts_folder() / checked(model)).glob("*"):
        if path.is_dir():
            discard(path)
        elif path.name != _LOCK:
            path.unlink(missing_ok=True)


def forget_texts_of_chats() -> None:
    """Delete what was read from chats for any model; a training that has read it ends. Raises OSError."""
    for folder in texts_folder().glob(f"*/{Source.CHATS}*"):  # also those whose deletion was cut off
        discard(folder)


def discard(folder: Path) -> None:
    """Delete a folder, if it is there, so that nobody who still writes into it brings it back. Raises OSError."""
    gone = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.gone")
    with suppress(FileNotFoundError):  # somebody else deletes it
        folder.rename(gone)
        shutil.rmtree(gone)


@contextmanager
def alone_with(model: str) -> Iterator[None]:
    """Keep others off what is collected for a model. Raises BadName, Busy, OSError."""
    folder = texts_folder() / checked(model)
    busy = f"another specchat trains a head for {printable(model)} or deletes one; wait for it or stop it"
    try:
        with private_folder(folder), ExitStack() as stack:
            try:
                stack.enter_context(locked(folder / _LOCK, busy))
            except DownloadError as error:
                raise Busy(busy) from error
            yield
    finally:
        with suppress(OSError):  # something is in it
            folder.rmdir()
