"""Reads what `specchat manual` writes."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:\[u([0-9A-F]{4,6})\]|\((..)|(f.|.))")
_CHARACTERS = {"aq": "'", "dq": '"', "ga": "`", "ha": "^", "ti": "~"}
_SHORT = {"-": "-", "e": "\\"}  # fonts and what keeps a dot from being a request show nothing


def between(text: str, begin: str, end: str) -> str:
    """What stands behind a mark, up to the next end."""
    _, _, behind = text.partition(begin)
    return behind.partition(end)[0]


def plain(text: str) -> str:
    """Roff of ours as it is shown."""
    return _ESCAPE.sub(lambda found: _shown(found[1], found[2], found[3]), text)


def bold_flags(text: str) -> set[str]:
    """The options that stand in bold."""
    return {flag for flag in map(plain, re.findall(r"\\fB(.*?)\\fR", text)) if flag.startswith("-")}


def _shown(code: str | None, name: str | None, short: str | None) -> str:
    if code is not None:
        return chr(int(code, 16))
    return _CHARACTERS[name] if name is not None else _SHORT.get(short or "", "")
