"""Server-sent events: bytes as they come from the network -> the data of each event. Knows no HTTP and no JSON.

Lines are put together as bytes and decoded whole, so that no character is cut where two reads meet. The format is that
of the HTML standard, section 9.2; only `data` matters here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specchat.remote.errors import StreamBroken

_MARK = b"\xef\xbb\xbf"  # a byte order mark, which may stand in front of the first line


@dataclass(frozen=True, slots=True)
class Limits:
    """What one reply may send, in bytes, so that no server fills the memory."""

    line: int = 1 << 20
    event: int = 4 << 20
    total: int = 256 << 20


class Events:
    """Feed it what was read; it gives the data of every event that is whole."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._half = bytearray()  # of the line that is being read
        self._after_return = False  # the last byte was a carriage return, to which a line feed may belong
        self._data: list[str] = []
        self._event_bytes = self._total = 0
        self._is_first = True

    def feed(self, data: bytes) -> Iterator[str]:
        """Raises StreamBroken past a limit."""
        self._total += len(data)
        if self._total > self._limits.total:
            raise StreamBroken(f"the server sends without end: more than {self._limits.total >> 20} MB for one reply")
        for line in self._lines(data):
            if line:
                self._take(line)
            elif self._data:
                event, self._data, self._event_bytes = "\n".join(self._data), [], 0
                yield event

    @property
    def is_between(self) -> bool:
        """Whether nothing is left of an event that was begun."""
        return not self._half and not self._data

    def _lines(self, data: bytes) -> Iterator[bytes]:
        belongs = self._after_return and data[:1] == b"\n"
        if data:
            self._after_return = data.endswith(b"\r")
        data = data[belongs:]
        *whole, half = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            self._half += line
            self._check_line()
            yield self._taken()
        self._half += half
        self._check_line()

    def _taken(self) -> bytes:
        line = bytes(self._half)
        self._half.clear()
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_MARK)
        return line

    def _check_line(self) -> None:
        if len(self._half) > self._limits.line:
            raise StreamBroken(f"the server sends a line of more than {self._limits.line} bytes, which no reply has")

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name != b"data":  # a comment, or a field that says nothing of the text
            return
        value = value.removeprefix(b" ")
        self._event_bytes += len(value)
        if self._event_bytes > self._limits.event:
            raise StreamBroken(f"the server sends an event of more than {self._limits.event} bytes, which no reply has")
        self._data.append(value.decode("utf-8", "replace"))
