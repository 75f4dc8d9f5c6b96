"""What stands against a rewrite, in words."""

from __future__ import annotations

from collections.abc import Iterable

from specchat.rewrite.checks import Finding
from specchat.rewrite.hunks import Decision, Review
from specchat.rewrite.outcome import Outcome

MOST_REASONS = 4  # that are spelled out


def told(finding: Finding) -> str:
    """One finding, with its line."""
    return f"line {finding.line}: {finding.reason}"


def doubts(outcome: Outcome) -> list[str]:
    """Every flag, with its line."""
    return [f"line {each.line}: {each}" for each in outcome.flags]


def accepted_doubts(review: Review, outcome: Outcome) -> list[str]:
    """Those of hunks that were accepted, whole or in parts."""
    accepted = [hunk.id for hunk in review.hunks if hunk.decision is Decision.ACCEPTED]
    return [
        f"line {flag.line}: {flag}"
        for flag in outcome.flags
        if any(hunk_id == flag.hunk or hunk_id.startswith(f"{flag.hunk}.") for hunk_id in accepted)
    ]


def several(reasons: Iterable[str]) -> str:
    """Reasons in one line, the first of them where they are many."""
    found = list(dict.fromkeys(reasons))
    more = f"; and {len(found) - MOST_REASONS} more" if len(found) > MOST_REASONS else ""
    return "; ".join(found[:MOST_REASONS]) + more
