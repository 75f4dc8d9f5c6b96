"""What is written down when specchat breaks: where in the code, in which versions. Never what was said.

The messages of exceptions are left out, ours too: they quote what they stumbled over. So are values of variables, and
the names of files that are not of the code. Nothing is sent anywhere.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib import metadata
from pathlib import Path
from traceback import print_exception, walk_tb

from specchat import __version__
from specchat.console import say
from specchat.exit_codes import ExitCode
from specchat.folders import crash_folder
from specchat.workers import frozen

KEPT = 10
_FRAMES = 200
_CHAIN = 8
_PACKAGES = ("llama-cpp-python", "textual", "rich", "numpy", "jinja2", "huggingface-hub", "tomlkit")
_OURS = ("specchat", "speculation")
_ELSEWHERE = "(other code)"
_HEAD = """\
specchat crash report
It holds no text of yours: no messages, no values of variables, no names of your files. Nothing was sent anywhere.
"""


def tell(error: BaseException, command: str) -> int:
    """Write a report of an error that nobody caught and name it on stderr, in one line. Returns the exit code.

    Whoever works on specchat sees more with `python -X dev -m specchat`.
    """
    if sys.flags.dev_mode:
        print_exception(error)
    path = write(error, command, datetime.now())
    where = "no report could be written" if path is None else f"a report without any of your text is {path}"
    say(f"specchat: a fault of specchat itself ({type(error).__name__}); {where}")
    return ExitCode.CHECK_FAILED


def write(error: BaseException, command: str, now: datetime, folder: Path | None = None) -> Path | None:
    """Write a report and let the oldest ones go; None where that cannot be done."""
    folder = crash_folder() if folder is None else folder
    path = folder / f"crash-{now:%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write("\n".join(report(error, command, now)) + "\n")
        for old in reports(folder)[:-KEPT]:
            old.unlink(missing_ok=True)
        return path
    return None


def reports(folder: Path | None = None) -> Sequence[Path]:
    """The reports that are kept, the oldest first."""
    return sorted((crash_folder() if folder is None else folder).glob("crash-*.txt"))


def report(error: BaseException, command: str, now: datetime) -> Iterator[str]:
    """The lines of a report."""
    release = re.match(r"[\d.]*", platform.release())
    versions = [f"{name} {version}" for name in _PACKAGES if (version := _version(name))]
    yield _HEAD
    yield f"time      {now:%Y-%m-%d %H:%M:%S}"
    yield f"command   {command}"
    yield f"specchat  {__version__}"
    yield f"python    {platform.python_version()} ({platform.python_implementation()})"
    yield f"system    {platform.system()} {release[0] if release else ''} {platform.machine()}"
    yield f"packages  {', '.join(versions)}"
    yield from _told(error, "", [])


@contextmanager
def threads_watched(command: str) -> Iterator[None]:
    """While inside, an error that ends a thread is written down; what the thread was for says that it ended."""
    before = threading.excepthook

    def heard(what: threading.ExceptHookArgs) -> None:
        if what.exc_value is not None and not isinstance(what.exc_value, SystemExit):
            tell(what.exc_value, command)

    threading.excepthook = heard
    try:
        yield
    finally:
        threading.excepthook = before


def _told(error: BaseException, how: str, seen: list[int]) -> Iterator[str]:
    """An error, and those that it came from."""
    if id(error) in seen or len(seen) >= _CHAIN:
        return
    seen.append(id(error))
    number = f" (errno {error.errno})" if isinstance(error, OSError) and isinstance(error.errno, int) else ""
    yield ""
    yield f"{how}{_kind(error)}{number}"
    for count, (frame, line) in enumerate(walk_tb(error.__traceback__)):
        if count == _FRAMES:
            yield "  ..."
            break
        file = _in_the_code(frame.f_code.co_filename)
        yield f"  {file}:{line} {frame.f_code.co_qualname}" if file != _ELSEWHERE else f"  {file}"
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _told(each, "one of them: ", seen)
    if error.__cause__ is not None:
        yield from _told(error.__cause__, "because of: ", seen)
    elif error.__context__ is not None and not error.__suppress_context__:
        yield from _told(error.__context__, "while handling: ", seen)


def _kind(error: BaseException) -> str:
    """The name of its type, where that stands in code."""
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def _in_the_code(name: str) -> str:
    """The file of a frame, relative to its package; nothing of where that lies, nor of files that are not code."""
    if name.startswith("<frozen "):
        return name
    if frozen() and name.endswith(".py") and not Path(name).is_absolute():
        return Path(name).as_posix()  # a stand-alone build keeps no other names of its files
    parts = Path(name).parts
    for root in ("site-packages", "dist-packages"):
        if root in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(root) :])
    here = Path(__file__).resolve().parent
    for package, folder in zip(_OURS, (here, _folder_of("speculation")), strict=True):
        if folder is not None and Path(name).resolve().is_relative_to(folder):
            return f"{package}/{Path(name).resolve().relative_to(folder).as_posix()}"
    stdlib = Path(sysconfig.get_path("stdlib"))
    if Path(name).is_relative_to(stdlib):
        return f"python/{Path(name).relative_to(stdlib).as_posix()}"
    return _ELSEWHERE


def _folder_of(package: str) -> Path | None:
    module = sys.modules.get(package)
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).resolve().parent


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
