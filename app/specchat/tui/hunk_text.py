"""The lines of a hunk as a text to type in, and back, though some characters can be neither shown nor typed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specchat.console import printable

_LOST = "\ufffd"  # stands for characters of which nothing else is left


def text_of(lines: Iterable[str]) -> str:
    """Lines as they are typed, with an end behind each, so that no line differs from an empty one."""
    return "".join(f"{printable(line)}\n" for line in lines)


def lines_of(text: str, known: Sequence[str]) -> list[str]:
    """The lines that a typed text means, where `known` are those that it was made of.

    Marks become the characters again that they stand for in the known lines. Raises ValueError for a changed line with
    a mark that could stand for several.
    """
    typed = text.split("\n")
    if typed[-1] == "":
        typed.pop()
    whole = {printable(line): line for line in reversed(known)}
    present = set("".join(known))
    back = {printable(each): each for each in present if printable(each) not in (each, _LOST)}
    meant = str.maketrans({mark: each for mark, each in back.items() if mark not in present})
    is_lost = any(printable(each) == _LOST for each in present if each != _LOST)
    lines = []
    for number, line in enumerate(typed, 1):
        if line not in whole and is_lost and _LOST in line:
            raise ValueError(f"line {number} holds a character that cannot be typed, so it must stay as it was, or go")
        lines.append(whole[line] if line in whole else line.translate(meant))
    return lines
