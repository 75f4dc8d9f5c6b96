"""What llama.cpp says while it works: its lines, its reasons, and where it put a model."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence

_INFO, _ERROR = 2, 4  # ggml_log_level; below is debug output, thousands of lines a load


class LogLines:
    """Lines made of what llama.cpp says piece by piece."""

    def __init__(self, sink: Callable[[str], None] | None = None) -> None:
        self.lines: deque[str] = deque(maxlen=2000)
        self.error = ""  # the first error line; later ones say less and less
        self._sink = sink
        self._begun = ""

    def clear(self) -> None:
        """Begin anew."""
        self.lines.clear()
        self.error = ""

    def reason(self) -> str:
        """The engine's own words for the last failure, without function names."""
        return re.sub(r"^(?:[\w()]+: |error loading model: )*", "", self.error).strip() or "no reason given"

    def take(self, level: int, text: bytes) -> None:
        """A piece of text, which may be part of a line or several."""
        if level < _INFO:
            return
        self._begun += text.decode("utf-8", "replace")
        *whole, self._begun = self._begun.split("\n")
        for line in whole:
            self.lines.append(line)
            if level == _ERROR:
                self.error = self.error or line
            if self._sink is not None:
                self._sink(line)


def back_end_in(lines: Sequence[str]) -> str:
    """What the weights were placed on, from what llama.cpp said while loading: devices and layers, or CPU."""
    text = "\n".join(lines)
    devices = re.findall(r"(?<!already )using device (\S+) \(([^)]*)\)", text)
    offloaded = re.search(r"offloaded (\d+/\d+) layers to GPU", text)
    if devices and offloaded:
        return f"{', '.join(f'{name} ({title})' for name, title in devices)}, {offloaded[1]} layers"
    return "CPU"


def mapped_bytes_in(lines: Sequence[str]) -> int:
    """Bytes that stay in the file's pages, from what llama.cpp said while loading: not those that it copied."""
    found = re.findall(r"(\w+) model buffer size = +([\d.]+) MiB", "\n".join(lines))
    mapped, copied = (sum(float(mib) for name, mib in found if name.endswith(end)) for end in ("_Mapped", "_REPACK"))
    return max(int((mapped - copied) * 2**20), 0)
