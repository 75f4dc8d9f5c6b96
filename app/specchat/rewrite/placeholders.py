"""Remarks that models write instead of the lines that they leave out: "... rest unchanged ..."."""

from __future__ import annotations

import re

_LONGEST_REMARK = 200  # characters
_PART = (
    r"(?:of|the|this|your|all|code|files?|functions?|methods?|class(?:es)?|contents?|text|lines?|implementations?|"
    r"sections?|document|script|body|imports?|is|are|as|in)"
)
_REST = (
    r"(?:the\s+)?(?:(?:rest|remainder|everything\s+else|same)|"
    rf"(?:remaining|others?|existing|previous|original|all\s+other)\s+{_PART})(?:\s+{_PART})*"
)
_SAME = (
    r"(?:stays?|remains?|continues?|goes|go|is|are|be|kept|will|here|the|same|unchanged|untouched|unmodified|"
    r"omitted|as|it|was|were|before|above|identical|unaltered|for|brevity)"
)
_ABROAD = (
    r"(?:der\s+)?rest\s+(?:bleibt\s+|ist\s+)?(?:unverändert|gleich|wie\s+(?:oben|zuvor))|"
    r"(?:le\s+)?reste\s+(?:est\s+)?inchangé|(?:el\s+)?resto\s+(?:sigue\s+)?(?:sin\s+cambios|igual)|"
    r"其余\S{0,8}不变|(?:代码|内容)?省略|以下(?:同じ|省略)"
)
_UNCHANGED = (
    r"(?:unchanged|no\s+(?:further\s+)?changes?(?:\s+(?:here|below|needed))?|"
    r"(?:code\s+)?omitted(?:\s+for\s+brevity)?|snip)"
)
_PHRASE = rf"(?:(?:keep\s+)?{_REST}(?:\s+{_SAME})+|{_UNCHANGED}|{_ABROAD})"
_DOTS = r"(?:\.{3,}|…)"
_ALONE = re.compile(rf"\W*{_PHRASE}\W*\Z", re.IGNORECASE)
_WITH_DOTS = re.compile(rf"\W*(?:{_DOTS}.{{0,40}}(?:{_PHRASE}|{_REST}\W*\Z)|{_PHRASE}.{{0,20}}{_DOTS})", re.IGNORECASE)
_DOTS_ALONE = re.compile(rf"\s*(?:#|//|/\*|<!--|--|;|%|\(\*|\{{/\*|\*|\[|\()?\s*{_DOTS}\W*\Z")


def is_placeholder(line: str) -> bool:
    """Whether a line says that some part is as it was, instead of being that part."""
    return len(line) <= _LONGEST_REMARK and any(pattern.match(line) for pattern in (_ALONE, _WITH_DOTS))


def is_ellipsis(line: str) -> bool:
    """Whether a line is nothing but dots, perhaps as a comment: a placeholder where lines went, code elsewhere."""
    return len(line) <= _LONGEST_REMARK and _DOTS_ALONE.match(line) is not None
