"""A copy that is followed through edits: where it stands, where it goes on after one, and which edits repeat.

When the text leaves the copy, the copy is looked for again near the place where it was lost. What stood in between,
old tokens -> new tokens, is remembered, and once it has happened twice the copy is offered with the edit applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from speculation.guessers.suffix_index import SuffixIndex
from speculation.survival import Kind

_WINDOW = 24  # how far behind the place where it was lost a copy is looked for
_GIVEN_UP = 48  # tokens after which it is no longer looked for
_FIRM = 8  # a match this long is followed although an older copy is still looked for
_NEAR = 3  # an edit of at most so many tokens
_LONG = 12  # a copy of so many tokens before an edit is one that will go on
_ASKED_FOR = 24  # the run that a copy is credited with which was asked for
_SETTLED = 6  # tokens after an edit until the copy counts as one again
_MAX_OLD, _MAX_NEW = 3, 4  # tokens of an edit that is remembered
_TRUSTED = 1.5  # right minus wrong from which on an edit is applied
_KEEP = 0.8  # of an edit's counts at each look


@dataclass(slots=True)
class Edit:
    """What replaced some tokens, and how often that was right or wrong lately."""

    new: tuple[int, ...]
    right: float = 1.0
    wrong: float = 0.0

    @property
    def trust(self) -> float:
        return self.right - self.wrong


class Place(NamedTuple):
    """Where a copy stands."""

    at: int  # index of the next token to copy
    run: int  # tokens that were right in a row
    before: float  # the run before the last edit; 0 when there was none
    new: tuple[int, ...] = ()  # the rest of an edit that is being applied
    after: int = 0  # where the copy goes on behind that edit


class Guess(NamedTuple):
    """One token, what speaks for it, and where the copy stands when it is right."""

    token: int
    kind: Kind
    run: float
    then: Place
    edit: Edit | None = None  # the edit whose first token this is


class Hypothesis(NamedTuple):
    """text[old] was replaced by text[new]; true once the copy goes on."""

    old: tuple[int, int]
    new: tuple[int, int]


Key = tuple[int | None, tuple[int, ...]]  # the token to the left, or None for any, and the old tokens


class Copying:
    """Follows one copy in a growing text that it shares with the lookup."""

    def __init__(self, text: list[int], index: SuffixIndex) -> None:
        self._text = text
        self._index = index
        self.place: Place | None = None
        self.given = 0  # tokens of the text that were given, not written
        self._gap = 0  # tokens of the last edit
        self._inserted = False  # it only added tokens, and many
        self._before = 0.0  # the run before it
        self._lost: tuple[int, int] | None = None  # copy and text index where they parted
        self._hypothesis: Hypothesis | None = None
        self._edits: dict[Key, Edit] = {}
        self._edited_tokens: set[int] = set()  # the first old token of every edit: nearly all others are passed by

    def guess(self, place: Place, drafted: Sequence[int] = ()) -> Guess | None:
        """The token that the copy offers at a place, `drafted` tokens ahead; None at the end of the text."""
        if place.new:
            rest = place.new[1:]
            then = place._replace(run=place.run + 1, new=rest)
            return Guess(place.new[0], Kind.EDIT, 40, then if rest else Place(place.after, place.run + 1, place.before))
        text, at = self._text, place.at
        if at >= len(text) + len(drafted):
            return None
        edit, n = self._known(at)
        if edit is not None and edit.trust >= _TRUSTED:
            then = _edited(place, edit, n)
            if edit.wrong < 0.5:
                return Guess(edit.new[0], Kind.EDIT, min(7, edit.right), then, edit)
            return Guess(edit.new[0], Kind.EDIT_DISPUTED, max(0, round(4 + 2 * edit.trust)), then, edit)
        token = text[at] if at < len(text) else drafted[at - len(text)]
        kind, run = self._evidence(place, edit)
        return Guess(token, kind, run, Place(at + 1, place.run + 1, place.before))

    def expect(self, at: int) -> None:
        """Follow the copy of what begins at an index of the text, before any of it was written.

        Differences between passages of what was given are no edits of this copy.
        """
        self._edits.clear()
        self._edited_tokens.clear()
        self.place = Place(at, _ASKED_FOR, 0.0)
        self._lost = self._hypothesis = None

    def follow(self, token: int, guess: Guess | None) -> None:
        """The text has grown by `token`, for which `guess` was the offer."""
        length = len(self._text)
        place = self.place
        if place is not None and guess is not None:
            if not place.new:
                self._judge_edits(place.at, token)
            if guess.token == token:
                self.place = guess.then
                if self.place.run >= 2:
                    self._confirm()
                return
            if guess.edit is not None and self._text[place.at] == token:
                self.place = Place(place.at + 1, place.run + 1, place.before)
                return
            edit, n = (None, 0) if place.new else self._known(place.at)
            if edit is not None and edit.new[0] == token:  # not trusted enough to be offered, but it came
                unhurt = Place(place.at, 0, place.run + place.before / 2)
                self.place, self._gap, self._inserted = _edited(unhurt, edit, n), 1, False
                return
            self._lose(place, length - 1)
        elif place is not None:
            self.place = None
        if not self._find_again(length):
            self._take_up_match()

    def _evidence(self, place: Place, edit: Edit | None) -> tuple[Kind, float]:
        if edit is not None:
            return Kind.TORN, round(2 * max(0.0, min(6.0, 2 + edit.trust)))
        if not place.before or place.run >= _SETTLED:
            return Kind.COPY, place.run + place.before / 4
        if place.run == 0:
            return Kind.REPLACED, place.before
        if self._inserted:
            return (Kind.INSERTED if place.before < _LONG else Kind.INSERTED_LONG), place.run
        if self._gap > _NEAR:
            return (Kind.FAR if place.before < _LONG else Kind.FAR_LONG), place.run
        return (Kind.NEAR if place.before < _LONG else Kind.NEAR_LONG), place.run

    def _known(self, at: int) -> tuple[Edit | None, int]:
        """The edit that is known for the tokens here, longest first and the one with its left neighbour first."""
        text, edits = self._text, self._edits
        if at < len(text) and text[at] in self._edited_tokens:
            left = text[at - 1] if at else -1
            for n in range(min(_MAX_OLD, len(text) - at), 0, -1):
                old = tuple(text[at : at + n])
                edit = edits.get((left, old)) or edits.get((None, old))
                if edit is not None:
                    return edit, n
        return None, 0

    def _judge_edits(self, at: int, token: int) -> None:
        """Count for every edit that is known here whether it was right, used or not."""
        text, edits = self._text, self._edits
        if at >= len(text) - 1 or text[at] not in self._edited_tokens:
            return
        left, apart = (text[at - 1] if at else -1), None
        for n in range(1, _MAX_OLD + 1):
            old = tuple(text[at : at + n])
            for key in ((left, old), (None, old)):
                edit = edits.get(key)
                if edit is None:
                    continue
                if edit.new[0] == token:
                    edit.right, edit.wrong = edit.right * _KEEP + 1, edit.wrong * _KEEP
                elif text[at] == token:
                    edit.right, edit.wrong = edit.right * _KEEP, edit.wrong * _KEEP + 1
                apart = apart or (old, edit.new)
        if apart is not None and text[at] == token:
            edits.setdefault((left, apart[0]), Edit(apart[1], 0.0, 1.0))  # with this neighbour it does not hold

    def _lose(self, place: Place, at: int) -> None:
        if self._hypothesis is None:
            self._lost = (place.at, at)
            self._before = place.run + place.before / 2
        self._hypothesis = None
        self.place = None

    def _find_again(self, length: int) -> bool:
        """Whether the copy is found near the place where it was lost; the longest tail of three tokens decides."""
        if self._lost is None:
            return False
        text = self._text
        copy_from, text_from = self._lost
        written = length - text_from
        end = self.given if copy_from < self.given <= text_from else text_from  # not out of what was given
        for n in range(min(3, written), 0, -1):
            tail = text[length - n :]
            for at in range(copy_from + n, min(copy_from + n + _WINDOW - 1, end) + 1):
                if text[at - n : at] == tail:
                    self.place = Place(at, n, self._before)
                    self._gap = max(written - n, at - n - copy_from)
                    self._inserted = at - n == copy_from and self._gap > _NEAR
                    self._hypothesis = Hypothesis((copy_from, at - n), (text_from, length - n))
                    if n >= 2:
                        self._confirm()
                    return True
        if written > _GIVEN_UP:
            self._lost = None
        elif written == 1:
            self.place = Place(copy_from + 1, 0, self._before)
            self._gap, self._inserted = 1, False
            self._hypothesis = Hypothesis((copy_from, copy_from + 1), (text_from, length))
            return True
        return False

    def _take_up_match(self) -> None:
        match, source = self._index.longest_match()
        if (match >= 2 and self._lost is None) or match >= _FIRM:
            self.place = Place(source, match, 0.0)
            self._hypothesis = self._lost = None

    def _confirm(self) -> None:
        """The copy goes on behind an edit: remember it, when it is short and really one."""
        hypothesis, self._hypothesis = self._hypothesis, None
        if hypothesis is None:
            return
        self._lost = None
        start = hypothesis.old[0]
        old, new = tuple(self._text[slice(*hypothesis.old)]), tuple(self._text[slice(*hypothesis.new)])
        if 1 <= len(old) <= _MAX_OLD and 1 <= len(new) <= _MAX_NEW and old != new:
            self._edited_tokens.add(old[0])
            for left in (self._text[start - 1] if start else -1, None):
                known = self._edits.get((left, old))
                if known is not None and known.new == new:
                    known.right += 1
                else:
                    self._edits[(left, old)] = Edit(new)


def _edited(place: Place, edit: Edit, n: int) -> Place:
    """Where the copy stands behind the first token of an edit of n tokens here."""
    rest = edit.new[1:]
    return Place(place.at if rest else place.at + n, place.run + 1, place.before, rest, place.at + n)
