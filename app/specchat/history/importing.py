"""Files of chats on their way into the store: our own JSON and ChatGPT's, one chat after the other."""

from __future__ import annotations

import codecs
import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from specchat.errors import in_one_line
from specchat.history.chatgpt import from_chatgpt, is_conversation
from specchat.history.errors import ImportRefused
from specchat.history.portable import from_json
from specchat.history.records import ChatRecord

BLOCK = 1 << 20  # bytes read at once, and doubled while one chat is longer than what was read
_MOST_DIGITS = 1000  # of a number; none of ours has more than twenty
_STANDARD_INPUT = "standard input"
_MOST_IN_MEMORY = 64 << 20  # bytes of it
_CONVERSATIONS = "conversations*.json"  # in the archive that ChatGPT sends


def read_chats(path: Path | None) -> Iterator[ChatRecord]:
    """The chats of a file, None: of standard input, as they are read. Raises ImportRefused, which names the place."""
    shown = _STANDARD_INPUT if path is None else str(path)
    try:
        with ExitStack() as opened:
            begun = opened.enter_context(_piped() if path is None else path.open("rb"))
            for name, file in _files(begun, shown, opened):
                for number, (line, found) in enumerate(_objects(file, name), 1):
                    place = f"chat {number}, line {line}"
                    try:
                        yield from_chatgpt(found) if is_conversation(found) else from_json(found)
                    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
                        raise ImportRefused(name, place, in_one_line(error)) from error
    except OSError as error:
        raise ImportRefused(shown, "", f"cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ImportRefused(shown, "", f"is no archive that can be read: {error}") from error


def _piped() -> IO[bytes]:
    """Standard input where one can go back and forth in it, as archives are read: a copy that has no name."""
    copy = SpooledTemporaryFile(_MOST_IN_MEMORY)  # noqa: SIM115 # whoever asked closes it
    shutil.copyfileobj(sys.stdin.buffer, copy)
    copy.seek(0)
    return copy


def _files(file: IO[bytes], shown: str, opened: ExitStack) -> Iterator[tuple[str, IO[bytes]]]:
    if not zipfile.is_zipfile(file):
        if file.seekable():
            file.seek(0)
        yield shown, file
        return
    archive = opened.enter_context(zipfile.ZipFile(file))
    names = sorted(name for name in archive.namelist() if fnmatch(name.rpartition("/")[2], _CONVERSATIONS))
    if not names:
        raise ImportRefused(shown, "", f"is an archive without {_CONVERSATIONS}")
    for name in names:
        yield f"{shown}, {name}", opened.enter_context(archive.open(name))


def _objects(file: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object of a JSON file, or those of the list that it holds, each with the line where it begins."""
    source = _Source(file, name)
    if source.next() == "{":
        yield source.value()
    elif source.next() == "[":
        source.skip()
        while source.next() != "]":
            yield source.value()
            if source.next() == ",":
                source.skip()
            elif source.next() != "]":
                raise source.error("there must be a comma or the end of the list")
        source.skip()
    else:
        raise source.error("this is no file of chats: it must hold a JSON object or a list of them")
    if source.next():
        raise source.error("there is more behind the end")


class _Source:
    """JSON text that is read as far as it is needed, and forgotten when it was understood."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder(parse_constant=_refuse, parse_int=_whole)
        self._text = ""
        self._at = 0
        self._line = 1
        self._passed = 0  # characters of the line on which the text begins, in front of it
        self._more = True
        self._bytes = 0

    def next(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            while self._at < len(self._text):
                character = self._text[self._at]
                if character not in " \t\r\n":
                    return character
                self._line += character == "\n"
                self._at += 1
            if not self._read(BLOCK):
                return ""

    def skip(self) -> None:
        """Pass a character."""
        self._at += 1

    def value(self) -> tuple[int, dict[str, Any]]:
        """The next value, which must be an object, and its line."""
        self.next()
        while True:
            try:
                found, end = self._json.raw_decode(self._text, self._at)
                break
            except json.JSONDecodeError as error:
                # It may only be cut off. Twice as much each time, so that the whole stays linear.
                if not self._read(max(BLOCK, len(self._text) - self._at)):
                    raise self.error(error.msg, error.pos) from error
            except RecursionError as error:
                raise self.error("its lists and objects are nested too deeply") from error
            except ValueError as error:
                raise self.error(in_one_line(error)) from error
        if not isinstance(found, dict):
            raise self.error("a chat must be an object")
        line = self._line
        self._line += self._text.count("\n", self._at, end)
        self._at = end
        return line, found

    def error(self, problem: str, at: int | None = None) -> ImportRefused:
        """A complaint about a place of the text."""
        at = self._at if at is None else at
        line = self._line + self._text.count("\n", min(self._at, at), at)
        before = self._text.rfind("\n", 0, at)
        column = at - before if before >= 0 else self._passed + at + 1
        return ImportRefused(self._name, f"line {line}, column {column}", problem)

    def _read(self, n_bytes: int) -> bool:
        if not self._more:
            return False
        block = self._file.read(n_bytes)
        self._more = bool(block)
        before = self._text.rfind("\n", 0, self._at)
        self._passed = self._at - before - 1 if before >= 0 else self._passed + self._at
        self._text, self._at = self._text[self._at :], 0
        try:
            self._text += self._utf8.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise ImportRefused(self._name, "", f"is not UTF-8 text (byte {self._bytes + error.start})") from error
        self._bytes += len(block)
        return True


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number of JSON")


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)
