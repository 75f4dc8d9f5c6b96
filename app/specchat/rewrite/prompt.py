"""The message that asks a model to write a whole file again, and the marks by which its reply is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

from specchat.rewrite.source import joined

_TAGS = ("file", "document", "content")

_MESSAGE = """\
{instruction}

Do this to the file that stands below between <{tag}> and </{tag}>. Write the whole file again, from its first line to \
its last.
- Copy every line that needs no change exactly: the same words, indentation, blank lines and comments.
- Leave nothing out. Do not shorten anything, and do not write that some part stays the same.
- Begin your reply with the line <{tag}> and end it with the line </{tag}>. Write nothing before, nothing after, and \
put no fence around the file.

{title}<{tag}>
"""
_REMINDER = """\
</{tag}>

Now write this whole file again between <{tag}> and </{tag}>, with this change and no other: {instruction}"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A message, and how the reply to it is marked."""

    message: str
    tag: str
    start: int  # where the file's text begins in the message, in characters
    end: int

    @property
    def opening(self) -> str:
        """What the reply begins with, so that it may be begun for the model."""
        return f"<{self.tag}>\n"

    @property
    def closing(self) -> str:
        """What the reply ends with, so that it can be a stop string."""
        return f"</{self.tag}>"


def ask_for(lines: Sequence[str], instruction: str, title: str = "", elsewhere: str = "") -> Asked:
    """Ask for lines to be written again. `title` is what the model is told of the file, such as its name.

    The same instruction begins the same way for every file, so that its beginning has to be read only once; with the
    whole file as `elsewhere`, also for all of its parts.
    """
    text = joined(lines)
    instruction = instruction.strip()
    tag = unused_tag([text, instruction, title, elsewhere])
    title = f"{title}\n" if title else ""
    head = _MESSAGE.format(instruction=instruction, tag=tag, title=title)
    return Asked(
        message=head + text + _REMINDER.format(instruction=instruction, tag=tag),
        tag=tag,
        start=len(head),
        end=len(head) + len(text),
    )


def unused_tag(texts: Iterable[str]) -> str:
    """A tag that stands in none of the texts, neither opened nor closed, not even as the beginning of another."""
    used = "\n".join(texts).lower()
    return next(tag for tag in _tags() if f"<{tag}" not in used and f"</{tag}" not in used)


def _tags() -> Iterator[str]:
    return chain(_TAGS, (f"file-{number}" for number in count(2)))
