"""What servers say of a reply, as figures: plain data in, numbers out. What is not said is None, never a guess.

Seen from a real server by our own tests: `usage` and `timings` of llama-server, and its lists of slots and properties.
Only from documentation and source, with answers written after them in the tests: vLLM, SGLang, LM Studio, OpenAI.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

ENOUGH_TOKENS = 32  # of a reply, from which on the absence of guesses is worth a word


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """One reply, as the server that wrote it tells; None: not reported."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None  # of the prompt
    output_tokens: int | None = None
    read_s: float | None = None
    write_s: float | None = None
    drafted: int | None = None
    accepted: int | None = None
    steps: int | None = None  # in which the target ran, where the server counts them
    prediction_accepted: int | None = None  # tokens of a prediction that stand in the reply ...
    prediction_rejected: int | None = None  # ... and that do not
    draft_model: str | None = None
    elapsed_s: float | None = None  # from the first text to the last, measured here, network and waiting included

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens of the reply / steps of the target; a step emits its accepted tokens and one more."""
        output = self.output_tokens
        if output is None:
            return None
        steps = self.steps if self.accepted is None else output - self.accepted
        return output / steps if steps is not None and 0 < steps <= output else None

    @property
    def draft_acceptance(self) -> float | None:
        """Accepted / drafted: which guesses were examined is known to no client."""
        if self.accepted is None or not self.drafted:
            return None
        return self.accepted / self.drafted

    @property
    def tokens_per_s(self) -> float | None:
        """Speed of writing by the server's clock."""
        return None if self.output_tokens is None or not self.write_s else self.output_tokens / self.write_s

    @property
    def seen_tokens_per_s(self) -> float | None:
        """Speed of writing as it was seen here; the first token began the measurement."""
        if self.output_tokens is None or self.output_tokens < 2 or not self.elapsed_s:
            return None
        return (self.output_tokens - 1) / self.elapsed_s


def read_figures(answer: Mapping[str, Any]) -> ServerFigures:
    """All that one piece of an answer says, whichever kind of server it is from."""
    parts = (
        from_stats(_table(answer.get("stats"))),
        from_usage(_table(answer.get("usage"))),
        from_meta_info(_sglang(answer)),
        from_vllm(_table(_table(answer.get("metrics")).get("speculative_decoding"))),
        from_timings(_table(answer.get("timings"))),
    )
    found = ServerFigures()
    for part in parts:
        found = merged(found, part)
    return found


def merged(before: ServerFigures, after: ServerFigures) -> ServerFigures:
    """What both say; what comes later holds."""
    told = {each.name: getattr(after, each.name) for each in fields(ServerFigures)}
    return replace(before, **{name: value for name, value in told.items() if value is not None})


def from_usage(usage: Mapping[str, Any]) -> ServerFigures:
    """OpenAI's block, which all servers send; its counts of a prediction are OpenAI's own (documentation)."""
    prompt, output = _table(usage.get("prompt_tokens_details")), _table(usage.get("completion_tokens_details"))
    return ServerFigures(
        prompt_tokens=_count(usage, "prompt_tokens"),
        cached_tokens=_count(prompt, "cached_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        prediction_accepted=_count(output, "accepted_prediction_tokens"),
        prediction_rejected=_count(output, "rejected_prediction_tokens"),
    )


def from_timings(timings: Mapping[str, Any]) -> ServerFigures:
    """llama-server's block (seen). It leaves out the counts of guesses where none was made."""
    drafted, accepted = _both(_count(timings, "draft_n"), _count(timings, "draft_n_accepted"))
    return ServerFigures(
        cached_tokens=_count(timings, "cache_n"),
        output_tokens=_count(timings, "predicted_n"),
        read_s=_seconds(timings, "prompt_ms", 1e-3),
        write_s=_seconds(timings, "predicted_ms", 1e-3),
        drafted=drafted,
        accepted=accepted,
    )


def from_vllm(found: Mapping[str, Any]) -> ServerFigures:
    """vLLM's block of one request, with --per-request-spec-decode-metrics summary (documentation)."""
    drafted, accepted = _both(_count(found, "num_draft_tokens"), _count(found, "num_accepted_draft_tokens"))
    return ServerFigures(drafted=drafted, accepted=accepted)


def from_meta_info(found: Mapping[str, Any]) -> ServerFigures:
    """SGLang's counts, whose names changed with its releases (source and documentation)."""
    accepted = _count(found, "spec_accept_token_num", "spec_num_correct_drafts")
    drafted, accepted = _both(_count(found, "spec_draft_token_num", "spec_num_proposed_drafts"), accepted)
    steps = _count(found, "spec_verify_ct")
    return ServerFigures(drafted=drafted, accepted=accepted, steps=steps or None)


def from_stats(stats: Mapping[str, Any]) -> ServerFigures:
    """LM Studio's block (documentation)."""
    drafted, accepted = _both(_count(stats, "total_draft_tokens_count"), _count(stats, "accepted_draft_tokens_count"))
    model = stats.get("draft_model")
    return ServerFigures(
        write_s=_seconds(stats, "generation_time", 1.0),
        drafted=drafted,
        accepted=accepted,
        draft_model=model if isinstance(model, str) and model else None,
    )


_COUNTED = (
    "spec_decode_num_draft_tokens",
    "spec_decode_num_accepted_tokens",
    "request_success",
    "num_requests_running",
)
_SAMPLE = re.compile(r"vllm:(\w+?)(?:_total)?(?:\{[^\n]*\})?\s+([0-9.eE+-]+)(?:\s+\d+)?\s*$", re.MULTILINE)


def read_counters(text: str) -> dict[str, float]:
    """vLLM's counters of a page of metrics, each summed over engines and labels (documentation)."""
    found: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        if name in _COUNTED:
            try:
                found[name] = found.get(name, 0.0) + float(value)
            except ValueError:
                continue
    return found


def from_counters(before: Mapping[str, float], after: Mapping[str, float]) -> ServerFigures:
    """What one reply added to vLLM's counters; nothing where another request may have added to them too."""
    alone = before.get("num_requests_running") == 0 == after.get("num_requests_running")
    if not alone or after.get("request_success", 0) - before.get("request_success", 0) != 1:
        return ServerFigures()
    names = ("spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens")
    if any(name not in after for name in names):
        return ServerFigures()
    drafted, accepted = _both(*(int(after[name] - before.get(name, 0)) for name in names))
    return ServerFigures(drafted=drafted, accepted=accepted)


def or_none_drafted(claims: bool | None, figures: ServerFigures) -> ServerFigures:
    """The figures of a llama-server, which leaves out the counts of a reply without guesses (seen).

    `claims` is None for a server that does not say whether it guesses, of which that is not known.
    """
    if claims is None or figures.write_s is None or figures.drafted is not None:
        return figures
    return replace(figures, drafted=0, accepted=0)


def doubt(claims: bool | None, figures: ServerFigures) -> str:
    """Where a reply belies what its server says of itself, in a line; empty where it does not."""
    drafted, accepted, output = figures.drafted, figures.accepted, figures.output_tokens
    if claims is False and accepted:
        of = f" of {drafted}" if drafted else ""
        return f"the server says that it guesses nothing, but {accepted}{of} guesses were accepted"
    if claims and output is not None and output >= ENOUGH_TOKENS and not accepted:
        what = f"none of its {drafted} guesses was accepted" if drafted else "it reports no guess for this reply"
        return f"the server says that it guesses ahead, but {what}"
    return ""


def _sglang(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table that has SGLang's counts, wherever the release puts it."""
    choices = answer.get("choices")
    choice = _table(choices[0]) if isinstance(choices, list) and choices else {}
    for owner in (answer, choice):
        extra = _table(owner.get("sglext"))
        for found in (extra.get("spec_tokens_details"), owner.get("meta_info"), owner.get("metadata")):
            if any(name.startswith("spec_") for name in _table(found)):
                return _table(found)
    return {}


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(table: Mapping[str, Any], *names: str) -> int | None:
    """The first of these that is a count."""
    for name in names:
        value = table.get(name)
        if type(value) is int and value >= 0:
            return value
    return None


def _seconds(table: Mapping[str, Any], name: str, unit_s: float) -> float | None:
    value = table.get(name)
    if type(value) not in (int, float):
        return None
    seconds = float(value or 0) * unit_s
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _both(drafted: int | None, accepted: int | None) -> tuple[int | None, int | None]:
    """Two counts that go together; what contradicts itself was not reported."""
    is_wrong = drafted is not None and accepted is not None and not 0 <= accepted <= drafted
    return (None, None) if is_wrong else (drafted, accepted)
