"""What rewrites would take, and what there is to go on with: on the engine's thread, before the model writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.message import Message

from specchat.errors import in_one_line
from specchat.rewrite.errors import ChangedOnDisk
from specchat.tui.rewrite_messages import ForecastMade
from specchat.tui.rewrite_words import RewriteWanted, Target

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.dialogue import Dialogue
    from specchat.rewrite.forecast import Forecast
    from specchat.rewrite.long import AnyRewriting
    from specchat.rewrite.partial import Partial
    from specchat.rewrite.unfinished import UnfinishedStore

Post = Callable[[Message], object]


class ForecastJob:
    """What a rewrite would take, by the prices of the loaded model. Nothing is evaluated."""

    def __init__(self, wanted: RewriteWanted, unfinished: UnfinishedStore) -> None:
        self._wanted = wanted
        self._unfinished = unfinished
        self._dropped = False

    def drop(self) -> None:
        """Nobody waits for it any more."""
        self._dropped = True

    def refuse(self, post: Post, text: str) -> None:
        """It cannot be made."""
        post(ForecastMade(self._wanted.targets, text))

    def run(self, session: Dialogue, post: Post, between_steps: Callable[[], None]) -> None:
        """Plan each file and add up what it will take."""
        planned: list[AnyRewriting] = []
        problems: list[str] = []
        for target in self._wanted.targets:
            between_steps()
            if self._dropped:
                return
            try:
                planned.append(begun(session, self._wanted, target))
            except Exception as error:
                problems.append(in_one_line(error))
        if len(problems) > 2:
            problems = [problems[0], f"and {len(problems) - 1} more files cannot be rewritten"]
        said = forecast_of(session, planned)
        targets = self._wanted.targets
        is_one = len(targets) == len(planned) == 1
        kept = _kept(self._unfinished, targets[0], planned[0]) if is_one else None
        post(ForecastMade(targets, "\n".join(filter(None, [said, *problems])), bool(problems), kept))


def begun(session: Dialogue, wanted: RewriteWanted, target: Target) -> AnyRewriting:
    """Read a file and plan its rewrite. Raises what both do, and ChangedOnDisk where its path leads elsewhere now."""
    from specchat.rewrite.long import rewriting_of
    from specchat.rewrite.part import part_of
    from specchat.rewrite.source import read_source

    partial = wanted.goes_on
    source = replace(read_source(target.path, None if partial is None else partial.encoding), name=target.name)
    if source.place is None or source.place.real != target.real:
        raise ChangedOnDisk(f"{target.name} leads to another file than when it was named")
    if partial is not None:
        parts = list(partial.parts)
        return rewriting_of(session, source, wanted.instruction, parts, wanted.guard, partial=partial)
    part = part_of(source, target.lines) if target.lines else None
    return rewriting_of(session, source, wanted.instruction or "do it", part, wanted.guard)


def forecast_of(session: Dialogue, planned: list[AnyRewriting]) -> str:
    """What some rewrites will take, in one line; "" where nothing is known."""
    if session.model.is_remote:
        return f"sent to {session.model.where}; how long it takes is not known here"
    from specchat.rewrite.forecast import Forecast, forecast

    found: list[Forecast] = [each for each in (forecast(session, one) for one in planned) if each is not None]
    if not found:
        return ""
    total = Forecast(
        prompt_tokens=sum(each.prompt_tokens for each in found),
        file_tokens=sum(each.file_tokens for each in found),
        read_s=sum(each.read_s for each in found),
        unchanged_s=sum(each.unchanged_s for each in found),
        changed_s=sum(each.changed_s for each in found),
    )
    return str(total)


def _kept(unfinished: UnfinishedStore, target: Target, planned: AnyRewriting) -> Partial | None:
    """What there is to go on with in a file: of the same bytes, and of the same lines where some are named."""
    from specchat.rewrite.partial import sha256_of

    place = planned.source.place
    found = None if place is None else unfinished.get(place)
    if found is None or found.sha256 != sha256_of(planned.source):
        return None
    return found if not target.lines or found.parts == (planned.part,) else None
