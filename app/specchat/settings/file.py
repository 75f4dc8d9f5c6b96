"""The settings file on disk: found, read, and replaced in one step."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specchat.settings.keys import Place, SamplingSettings, Settings, flattened
from specchat.settings.text import SettingsError, SettingsText, template

if TYPE_CHECKING:  # numpy takes longer to import than settings to be read
    from speculation.sampling import SamplingConfig

_MOST_BYTES = 1 << 20  # of a file of settings, which has some kilobytes


class SettingsFile:
    """The settings of one file, which others may edit while the program runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []  # a line for each key of the file that was ignored
        self.known: Mapping[Place, Any] = {}  # the settings that the file has
        self._seen: Settings | None = None  # what the program takes the file to say

    def load(self) -> Settings:
        """The settings; the defaults where there is no file. Raises SettingsError."""
        self._seen = Settings()  # what the program goes on with when the file cannot be used
        self.warnings, self.known = [], {}
        if (contents := self.contents()) is not None:
            self.warnings = list(contents.warnings().values())
            self._seen, self.known = contents.settings, contents.known
        return self._seen

    def contents(self) -> SettingsText | None:
        """What the file says; None where there is none. Raises SettingsError."""
        text = self.read()
        return None if text is None else SettingsText.read(self.path, text)

    def save(self, settings: Settings) -> None:
        """Write what changed since the last load or save, so that what was edited by hand meanwhile stays.

        Waits for the disk. Raises SettingsError, also for a file that `load` would refuse; the file is then as it was.
        """
        target = Path(os.path.realpath(self.path))  # so that a link stays one
        self._check_replaceable(target)
        text = self.read()
        present = SettingsText.read(self.path, template() if text is None else text)
        seen = flattened(Settings() if text is None else self._seen or present.settings)
        current = flattened(present.settings)
        wanted = flattened(settings)
        edits = {at: value for at, value in wanted.items() if value != seen.get(at) and value != current.get(at)}
        removed = [at for at in present.known if at in seen and at not in wanted]
        if edits or removed or text is None:
            self._write(target, present.edited(edits, removed).text.encode())
        self._seen = settings

    def read(self) -> str | None:
        """The text of the file; None where there is none. Raises SettingsError."""
        try:
            if stat.S_ISFIFO(self.path.stat().st_mode):  # which would wait for a writer
                raise SettingsError(self.path, "", "is a pipe, not a file")
            with self.path.open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise SettingsError(self.path, "", f"is larger than {_MOST_BYTES >> 20} MiB")
            return data.decode("utf-8-sig")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SettingsError(self.path, "", f"cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise SettingsError(self.path, "", f"is not UTF-8 text (byte {error.start})") from error

    def _check_replaceable(self, target: Path) -> None:
        try:
            mode = target.stat().st_mode
        except OSError:
            return  # missing; or reading it will say why not
        # A device such as /dev/null would become a file, and a file that somebody locked an open one.
        if not stat.S_ISREG(mode):
            raise SettingsError(self.path, "", "is not a file, so nothing can be saved in it")
        if not mode & stat.S_IWUSR:
            raise SettingsError(self.path, "", "is read-only, so nothing can be saved in it")

    def _write(self, target: Path, data: bytes) -> None:
        try:
            write_private(target, data)
        except OSError as error:
            raise SettingsError(self.path, "", f"cannot be written: {error.strerror}") from error


def write_private(target: Path, data: bytes) -> None:
    """Replace a file in one step, by one that its owner alone may read. Waits for the disk. Raises OSError."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=".settings-", dir=target.parent)  # with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise


def to_sampling_config(settings: SamplingSettings) -> SamplingConfig:
    """The part of the settings that cuts and sharpens a row of logits."""
    from speculation.sampling import SamplingConfig

    return SamplingConfig(
        temperature=settings.temperature,
        top_k=settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repeat_penalty=settings.repeat_penalty,
        repeat_last_n=settings.repeat_last_n,
    )
