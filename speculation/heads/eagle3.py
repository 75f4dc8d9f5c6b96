"""Which targets an EAGLE-3 head can guess for, told from what both files say, before the engine is asked.

Over most of what is refused here the engine would end the process.
"""

from __future__ import annotations

from dataclasses import dataclass

ARCHITECTURE = "eagle3"  # general.architecture of such a file
N_LAYERS = 3  # of the target, whose inputs the head reads

# Architectures whose graphs show what each layer is given, one row of the model's width a token, as the pinned engine
# has them (`t_layer_inp`). Of any other it ends the process; so it does of qwen4exp, which shows wider rows.
SHOWS_LAYER_INPUTS = frozenset(
    """
    bailingmoe3 deepseek4 gemma4 gpt-oss hunyuan-dense hunyuan_vl lfm2 lfm2moe llama mimo2 minimax-01 minimax-m2
    muse-glimmer nanbeige nemotron_h nemotron_h_moe qwen3 qwen35 qwen35moe qwen3moe qwen3next
    """.split()  # noqa: SIM905 # words are easier to compare with the engine's list
)


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What a head's target is like."""

    name: str
    architecture: str
    n_layers: int
    width: int  # numbers between two layers
    n_tokens: int  # of its vocabulary


@dataclass(frozen=True, slots=True)
class HeadFacts:
    """What a head's file says of it."""

    name: str
    layers: tuple[int, ...]  # of the target, whose inputs it reads
    target_width: int
    width: int
    n_blocks: int  # layers of its own
    n_tokens: int  # of its vocabulary, which is the target's
    n_embeddings: int | None  # rows of its own input table; None: it borrows the target's
    n_outputs: int | None  # rows of its own output matrix; None: likewise
    n_mapped: int | None  # tokens in its list of those that it can guess; None: all


def why_unfit(target: TargetFacts, head: HeadFacts) -> str | None:
    """One sentence that says why a head cannot guess for a target; None when nothing speaks against it."""
    reason = _why_not_these_layers(target, head) or _why_not_these_tables(target, head)
    return f"{head.name} cannot guess for {target.name}: {reason}" if reason else None


def _why_not_these_layers(target: TargetFacts, head: HeadFacts) -> str | None:
    if target.architecture not in SHOWS_LAYER_INPUTS:
        return f"the engine does not show what the layers of a {target.architecture} model are given"
    if len(head.layers) != N_LAYERS:
        return f"it reads {len(head.layers)} layers of its target, and the engine knows only heads that read {N_LAYERS}"
    if outside := [layer for layer in head.layers if not 0 <= layer < target.n_layers]:
        return f"it reads layer {outside[0]}, and the target has layers 0 to {target.n_layers - 1}"
    if head.target_width != target.width:
        return f"its target has a width of {head.target_width} numbers, this one of {target.width}"
    if head.n_blocks != 1:
        return f"it has {head.n_blocks} layers of its own, and the engine knows only heads that have one"
    return None


def _why_not_these_tables(target: TargetFacts, head: HeadFacts) -> str | None:
    if head.n_mapped is None and head.n_tokens != target.n_tokens:
        return f"it guesses any of {head.n_tokens} tokens, and the target has {target.n_tokens}"
    borrows = head.n_embeddings is None or head.n_outputs is None
    if borrows and head.width != target.width:
        return f"it borrows a matrix of the target, whose width is {target.width} numbers, and its own is {head.width}"
    if head.n_embeddings is not None and head.n_embeddings < max(head.n_tokens, target.n_tokens):
        return f"its table of tokens has {head.n_embeddings} rows for {max(head.n_tokens, target.n_tokens)} tokens"
    n_outputs = target.n_tokens if head.n_outputs is None else head.n_outputs
    n_guessed = head.n_tokens if head.n_mapped is None else head.n_mapped
    if n_outputs != n_guessed:
        return f"its output matrix has {n_outputs} rows for the {n_guessed} tokens that it guesses"
    return None
