"""What can go wrong between here and a server, as one line each. No text here ever holds a key."""

from __future__ import annotations

from specchat.errors import InputRefused, Refusal
from specchat.exit_codes import ExitCode

MOST_SHOWN = 300  # characters of what a server says that a message repeats


class RemoteError(Refusal):
    """A server that cannot be used, or that broke off; the text names it and says what to do."""

    exit_code = ExitCode.NETWORK


class StreamBroken(RemoteError):
    """An answer that is not what it should be; what came before it is kept."""


class ServerFull(InputRefused):
    """A conversation that is longer than the server's context."""


def clipped(text: str) -> str:
    """What a server says, in one line of a length that can be shown."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]}..."
