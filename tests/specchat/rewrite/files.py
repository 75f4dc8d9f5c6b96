"""Files of every awkward kind, and a model that copies them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from specchat.rewrite.prompt import Asked
from speculation.types import Finish

AWKWARD = [
    "",
    " ",
    "\t",
    "x = 1",
    "    return x  ",
    "\tindented\t",
    " " * 40 + "'key': {",
    "# " + "-" * 64,
    "=" * 78,
    "- item",
    "# Title",
    "```",
    "```python",
    "````",
    "~~~",
    "  ```",
    "Here is the rewritten file:",
    "Sure! Here you go:",
    "... rest unchanged ...",
    "<file>",
    "</file>",
    "<file>x</file>",
    "<FILE>",
    "</file >",
    "<document>",
    "</content>",
    "<file-2>",
    "</file-3>",
    "<think>",
    "</think>",
    "<think>hm</think>",
    "<|im_start|>user",
    "<|im_end|>",
    "</s>",
    "[INST] x [/INST]",
    "<start_of_turn>model",
    "a\u2028b",
    "a\x0bb\x0cc",
    "a\x85b",
    "\ufeffx",
    "[red]x[/red]",
    "{instruction} {tag} %s",
    "\\n \\1 \\g<0>",
    "é",
    "naïve café “quoted” – €",
    "日本語",
    "🙂 e\u0301",
    "\x1b[31mred",
    "\x7f",
]
LATIN = [line for line in AWKWARD if all(c < "\x80" or "\xa0" <= c <= "\xff" for c in line)]
ENDS = ["\n", "\r\n", "\r"]
ENCODINGS = {
    "utf-8": (b"", "utf-8"),
    "utf-8 with mark": (codecs.BOM_UTF8, "utf-8"),
    "utf-16-le": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": (codecs.BOM_UTF16_BE, "utf-16-be"),
    "latin-1": (b"", "latin-1"),
}


@st.composite
def texts(draw: st.DrawFn, encoding: str = "utf-8") -> str:
    """A text with line ends of one or of several kinds, with or without one at the end."""
    if encoding == "latin-1":
        characters = st.characters(max_codepoint=0xFF, categories=["L", "N", "P", "S", "Zs"])
        known = st.sampled_from(LATIN)
    else:
        characters = st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0")
        known = st.sampled_from(AWKWARD)
    lines = draw(st.lists(known | st.text(characters, max_size=20), max_size=12))
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\r"], ENDS]))
    whole = "".join(line + draw(st.sampled_from(ends)) for line in lines)
    return whole + draw(known) if draw(st.booleans()) else whole


@st.composite
def encoded(draw: st.DrawFn) -> bytes:
    """The bytes of a text in an encoding that is understood."""
    mark, encoding = ENCODINGS[draw(st.sampled_from(sorted(ENCODINGS)))]
    return mark + draw(texts(encoding)).encode(encoding)


def spoilt() -> st.SearchStrategy[bytes]:
    """Bytes that may be no text: with NUL, cut in half, or random."""
    with_nul = st.tuples(encoded(), st.integers(0, 200)).map(
        lambda each: each[0][: each[1]] + b"\0" + each[0][each[1] :]
    )
    return with_nul | encoded().map(lambda data: data[:-1]) | st.binary(max_size=60)


def files() -> st.SearchStrategy[bytes]:
    """Files of any kind."""
    return st.one_of(encoded(), encoded(), encoded(), spoilt())


def copied(asked: Asked) -> str:
    """What a model copies that reads nothing but the message."""
    found = re.search(rf"^<{asked.tag}>\n(.*?)^</{asked.tag}>$", asked.message, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


Reply = Callable[[Asked, str], tuple[str, Finish]]

REPLIES: Mapping[str, Reply] = {
    "as asked": lambda asked, text: (asked.opening + text + asked.closing, Finish.END),
    "cut at the closing mark": lambda asked, text: (asked.opening + text, Finish.STOP),
    "begun for the model": lambda asked, text: (text + asked.closing + "\n", Finish.END),
    "begun and cut": lambda asked, text: (text, Finish.STOP),
    "no marks": lambda asked, text: (text, Finish.END),
    "no closing mark": lambda asked, text: (asked.opening + text, Finish.END),
    "other line ends": lambda asked, text: ((asked.opening + text + asked.closing).replace("\n", "\r\n"), Finish.END),
    "greeting and farewell": lambda asked, text: (
        f"Sure! Here is the file:\n\n{asked.opening}{text}{asked.closing}\n\nLet me know if you need more.",
        Finish.END,
    ),
    "marks inside a fence": lambda asked, text: (
        f"```\n{asked.opening}{text}{asked.closing}\n```\n",
        Finish.END,
    ),
    "fence inside marks": lambda asked, text: (
        f"{asked.opening}```python\n{text}```\n{asked.closing}",
        Finish.END,
    ),
    "greeting and fence": lambda asked, text: (f"Here is the rewritten file:\n\n```md\n{text}```\n", Finish.END),
    "thinking of the marks": lambda asked, text: (
        f"<think>\nFrom\n<{asked.tag}>\nto </{asked.tag}>.\n</think>\n\n{asked.opening}{text}{asked.closing}",
        Finish.END,
    ),
    "thinking inside marks": lambda asked, text: (
        f"{asked.opening}<think>\nhm\n</think>\n{text}{asked.closing}",
        Finish.END,
    ),
    "thinking without marks": lambda asked, text: (f"<think>\nhm\n</think>\n\n{text}", Finish.END),
}
