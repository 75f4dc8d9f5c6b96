"""What a server reports of a reply, as rows of the panel of figures. What it does not report is said to be so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specchat.session import Reply


def server_rows(reply: Reply, n_ctx: int | None) -> list[tuple[str, str]]:
    """Names and values; `n_ctx` is the context of the server in tokens."""
    from specchat.remote.figures import ServerFigures
    from specchat.remote.telling import NOT_REPORTED

    def told(value: float | None, form: str) -> str:
        return NOT_REPORTED if value is None else format(value, form)

    figures = reply.server or ServerFigures()
    seen, by_server = figures.seen_tokens_per_s, figures.tokens_per_s
    used = None if figures.prompt_tokens is None else figures.prompt_tokens + (figures.output_tokens or 0)
    rows = [
        ("tokens/step", told(figures.tokens_per_step, ".2f")),
        ("tokens", told(figures.output_tokens, ",d")),
        ("drafted", told(figures.drafted, ",d")),
        ("accepted", told(figures.accepted, ",d")),
        ("tok/s", told(by_server, ".1f")),
        ("tok/s seen", told(seen, ".1f")),
        ("prompt", told(figures.prompt_tokens, ",d")),
        ("  cached", told(figures.cached_tokens, ",d")),
        ("first text", NOT_REPORTED if reply.first_token_s is None else f"{reply.first_token_s:.1f} s"),
        ("context", told(used, ",d")),
        ("  of", told(n_ctx, ",d")),
    ]
    if figures.prediction_accepted is not None:
        rows += [("prediction", f"{figures.prediction_accepted:,d} used")]
    return rows
