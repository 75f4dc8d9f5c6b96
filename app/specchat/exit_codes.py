"""The exit codes of all commands, in the order of the documents."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended; `meaning` is what the man page says."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        made = int.__new__(cls, code)
        made._value_ = code
        made.meaning = meaning
        return made

    DONE = 0, "done; also when there was nothing to change"
    CHECK_FAILED = 1, "a check failed, rewrite --check would change something, or an unexpected fault"
    USAGE = 2, "wrong usage, or a wrong value in the settings"
    INPUT = 3, "input refused: missing, not text, or longer than the context"
    MODEL = 4, "model or engine: not here, not known, does not fit, damaged"
    OUTPUT = 5, "output refused (cut off, empty, against a guard rail) or not writable"
    DECLINED = 6, "you said no; nothing was written"
    CHANGED_ON_DISK = 7, "the file changed on disk meanwhile; nothing was written"
    SOME_FAILED = 8, "some of several files failed"
    NETWORK = 9, "network or download"
    INTERRUPTED = 130, "interrupted"
    BROKEN_PIPE = 141, "the reader of a pipe left"
