"""What became of each file of a rewrite, while they are written, reviewed and summed up. Knows no screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from specchat.attachments import label
from specchat.rewrite.hunks import Decision
from specchat.tui.reviewed import ReviewedFile
from specchat.tui.rewrite_words import RewriteWanted
from specchat.tui.rewritten import reviewed_file

if TYPE_CHECKING:  # loads the engine, which no screen needs
    from specchat.rewrite.outcome import Outcome

UNCHANGED = "nothing to change"
_NOT_BEGUN = "not begun"
_DROPPED = "dropped"


@dataclass
class Results:
    """Grows while files end."""

    wanted: RewriteWanted
    outcomes: dict[int, Outcome] = field(default_factory=dict)  # that can be reviewed, by the number of their file
    others: dict[int, str] = field(default_factory=dict)  # what is said of the rest
    refused: dict[int, Path] = field(default_factory=dict)  # where one can look at what cannot be written

    @property
    def is_one(self) -> bool:
        """Whether it is about one file only."""
        return len(self.wanted.targets) == 1

    @property
    def numbers(self) -> list[int]:
        """Of the files to review, in the order in which they were named."""
        return sorted(self.outcomes)

    def name(self, number: int) -> str:
        """A file as it was named, fit to be shown."""
        return self.wanted.targets[number].name

    def take(self, number: int, outcome: Outcome, refused: Path | None = None) -> None:
        """A file that came to its end, or whose rest is taken as it is."""
        self.others.pop(number, None)
        if refused is not None:
            self.refused[number] = refused
        if outcome.review.hunks:
            self.outcomes[number] = outcome
        else:
            self.others[number] = UNCHANGED if outcome.complete else outcome.findings[0].reason

    def fail(self, number: int, why: str) -> None:
        """A file that was not rewritten."""
        self.outcomes.pop(number, None)
        self.others[number] = label(why)

    def drop(self, number: int) -> None:
        """A file that the user does not want any more."""
        self.fail(number, _DROPPED)

    def so_far(self) -> str:
        """What there is yet, in a few words."""
        unchanged = sum(text == UNCHANGED for text in self.others.values())
        parts = [(len(self.outcomes), "changed"), (unchanged, "unchanged"), (len(self.others) - unchanged, "not done")]
        return ", ".join(f"{n} {what}" for n, what in parts if n)

    def reviewed(self, folder: Path) -> list[ReviewedFile]:
        """The files to review; those elsewhere than below `folder` say so."""
        return [reviewed_file(self.outcomes[number], folder, self.refused.get(number)) for number in self.numbers]

    def rows(
        self, files: tuple[ReviewedFile, ...] = (), written: Mapping[int, str] | None = None
    ) -> list[tuple[str, str]]:
        """Each file, and what became of it: `files` are those that were reviewed, `written` the ids to undo with."""
        said = dict(self.others)
        for at, number in enumerate(self.numbers[: len(files)]):
            hunks = len(files[at].review.hunks)
            undo = (written or {}).get(at)
            if undo is None:
                said[number] = f"not written; it had {hunks} change{'s' if hunks > 1 else ''}"
            else:
                taken = len(files[at].of(Decision.ACCEPTED))
                way_back = f"; /undo {undo} takes it back" if undo else ""
                said[number] = f"written, {taken} of {hunks} change{'s' if hunks > 1 else ''}{way_back}"
        return [(self.name(i), said.get(i, _NOT_BEGUN)) for i in range(len(self.wanted.targets))]


def summed_up(rows: list[tuple[str, str]]) -> str:
    """How many files came to which end: "5 files: 3 written, 1 nothing to change, 1 not rewritten"."""
    known = ("written", "not written", UNCHANGED, _DROPPED, _NOT_BEGUN)
    ends = Counter(next((each for each in known if text.startswith(each)), "not rewritten") for _, text in rows)
    return f"{len(rows)} files: " + ", ".join(f"{ends[end]} {end}" for end in (*known, "not rewritten") if ends[end])
