"""The figures of replies that a server wrote, for people and for programs. What it does not report is not made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from specchat.remote.figures import ServerFigures
from specchat.reply import Reply

NOT_REPORTED = "not reported"


def is_remote(replies: Sequence[Reply]) -> bool:
    """Whether a server wrote any of them."""
    return any(reply.server is not None for reply in replies)


def figures_line(reply: Reply) -> str:
    """One line that says what a reply took."""
    return _line(figures_of(reply))


def figures_of(reply: Reply) -> list[tuple[int, str]]:
    """Its parts, each behind a number, small for what is missed most where there is not room for all."""
    figures = reply.server or ServerFigures()
    read = f"read {reply.read_tokens}, reused {reply.reused_tokens}"
    read = f"prompt {NOT_REPORTED}" if figures.prompt_tokens is None else read
    return [*_spoken(figures), (5, f"seed {reply.seed}"), (6, read)]


def figures_page(reply: Reply, n_ctx: int | None) -> list[str]:
    """The same in several lines; `n_ctx` is the context of the server in tokens."""
    figures = reply.server or ServerFigures()
    used = None if figures.prompt_tokens is None else figures.prompt_tokens + (figures.output_tokens or 0)
    return [
        figures_line(reply),
        f"drafted {_or_not(figures.drafted)}, accepted {_or_not(figures.accepted)}, "
        f"tokens per step {_or_not(figures.tokens_per_step)}",
        f"seconds by the server: read {_or_not(figures.read_s)}, write {_or_not(figures.write_s)}",
        f"seconds as seen here: first text {_or_not(reply.first_token_s)}, the rest {_or_not(figures.elapsed_s)}",
        f"context {_or_not(used)} of {_or_not(n_ctx)} tokens",
    ]


def rewrite_line(replies: Sequence[Reply]) -> str:
    """One line that says what a rewrite took. No speed-up: nobody measured how long it takes without guesses."""
    figures = summed(replies)
    seconds = sum((reply.first_token_s or 0.0) for reply in replies) + (figures.elapsed_s or 0.0)
    return _line([(0, f"{seconds:.1f} s as seen here"), *_spoken(figures)])


def as_json(replies: Sequence[Reply]) -> dict[str, Any]:
    """The block "speculation" of replies: the names of the local one, null for what is not reported."""
    figures = summed(replies)
    return {
        "guesser": "server",
        "steps": figures.steps,
        "output_tokens": figures.output_tokens,
        "drafted": figures.drafted,
        "checked": None,
        "accepted": figures.accepted,
        "tokens_per_step": _rounded(figures.tokens_per_step),
        "hit_rate": None,
        "draft_acceptance": _rounded(figures.draft_acceptance),
        "prediction_accepted": figures.prediction_accepted,
        "prediction_rejected": figures.prediction_rejected,
        "draft_model": figures.draft_model,
        "seconds": {
            "prefill": _rounded(figures.read_s),
            "decode": _rounded(figures.write_s),
            "decode_seen": _rounded(figures.elapsed_s),
        },
        "speedup": None,
    }


def summed(replies: Sequence[Reply]) -> ServerFigures:
    """What several replies come to; a figure that one of them lacks is not known of all."""
    told = [reply.server or ServerFigures() for reply in replies]
    found: dict[str, Any] = {}
    for name in (each.name for each in fields(ServerFigures)):
        values = [getattr(each, name) for each in told]
        if not values or any(value is None for value in values):
            continue
        found[name] = values[-1] if isinstance(values[-1], str) else sum(values)
    return ServerFigures(**found)


def _line(parts: Sequence[tuple[int, str]]) -> str:
    return " · ".join(text for _, text in parts)


def _spoken(figures: ServerFigures) -> list[tuple[int, str]]:
    parts = [(3, f"tokens {NOT_REPORTED}" if figures.output_tokens is None else f"{figures.output_tokens} tokens")]
    if figures.tokens_per_s is not None:
        parts.append((0, f"{figures.tokens_per_s:.1f} tok/s by the server"))
    elif figures.seen_tokens_per_s is not None:
        parts.append((0, f"{figures.seen_tokens_per_s:.1f} tok/s as seen here"))
    if figures.tokens_per_step is not None:
        parts.append((1, f"{figures.tokens_per_step:.2f} tokens/step"))
    parts.append((2, _guesses(figures)))
    if figures.prediction_accepted is not None:
        said = f"prediction: {figures.prediction_accepted} used, {_or_not(figures.prediction_rejected)} not"
        parts.append((4, said))
    return parts


def _guesses(figures: ServerFigures) -> str:
    if figures.accepted is None:
        return f"guesses {NOT_REPORTED}"
    if figures.drafted is None:
        return f"{figures.accepted} guesses accepted"
    if figures.drafted == 0:
        return "nothing drafted"
    share = figures.draft_acceptance
    return f"accepted {figures.accepted} of {figures.drafted} drafted" + ("" if share is None else f" ({share:.0%})")


def _or_not(value: float | None) -> str:
    if value is None:
        return NOT_REPORTED
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
