"""Which lines a request is about when it names a function or a class of the file, and which changes lie elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specchat.rewrite.hunks import Hunk

# A word is taken for a name only where it is written as one: `name`, name(), "the function name".
_NAMED = re.compile(
    r"`([A-Za-z_]\w*)(?:\(\))?`|\b([A-Za-z_]\w*)\(\)|\b(?:function|method|class|struct|procedure)s?\s+([A-Za-z_]\w*)\b"
)
_DEFINES = (
    r"\s*(?:(?:export|default|public|private|protected|static|final|abstract|async|pub|inline|extern|const|unsafe)\s+)*"
    r"(?:(?:def|class|struct|enum|trait|impl|interface|func|fn|function|sub|macro|procedure)\s+(?:\([^)]*\)\s*)?{name}\b"
    r"|[A-Za-z_][\w<>:,\[\]]*(?:\s+[A-Za-z_]\w*)*[\s*&]+{name}\s*\([^;]*$)"
)
_GOES_ON = re.compile(r"\s*[{})\]]|\s*$")  # lines that, as little indented as a definition, still belong to it
_BRINGS_IN = re.compile(r"\s*(?:import|from|use|using|require|#\s*include)\b")


def elsewhere(texts: Sequence[str], hunk: Hunk, instruction: str) -> str:
    """The name that the request is about, where a hunk neither lies in its definition nor mentions it; else ""."""
    blocks = {name: found for name in _names(instruction) if (found := definitions(texts, name))}
    if not blocks:
        return ""
    if any(start <= hunk.start and hunk.end <= end for found in blocks.values() for start, end in found):
        return ""
    changed = [*texts[hunk.start : hunk.end], *(line.text for each in hunk.changes for line in each.lines)]
    if any(re.search(rf"\b{name}\b", line) for name in blocks for line in changed):
        return ""
    if all(_BRINGS_IN.match(line) for line in changed if line.strip()):  # what the new lines may need
        return ""
    return next(iter(blocks))


def definitions(texts: Sequence[str], name: str) -> list[tuple[int, int]]:
    """Where a name is defined: old lines [start, end), with the comments and decorators right above them."""
    opens = re.compile(_DEFINES.format(name=re.escape(name)))
    found = []
    for i, line in enumerate(texts):
        if not opens.match(line) or line.lstrip().startswith(("return", "else", "#", "//", "*")):
            continue
        indent = _indent(line)
        start, end = i, i + 1
        while start > 0 and texts[start - 1].strip() and _indent(texts[start - 1]) == indent:
            start -= 1
        while end < len(texts) and (_GOES_ON.match(texts[end]) or _indent(texts[end]) > indent):
            end += 1
        while not texts[end - 1].strip():
            end -= 1
        found.append((start, end))
    return found


def _names(instruction: str) -> list[str]:
    return list(dict.fromkeys(name for match in _NAMED.finditer(instruction) for name in match.groups() if name))


def _indent(line: str) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())
