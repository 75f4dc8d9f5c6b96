"""What a model remembers of each token, from the keys of its header: as many numbers as the engine makes room for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specchat.gguf_names import GOING_BACK, HYBRID, RECURRENT
from specchat.gguf_reader import Reader
from speculation.next_layers import tensors_of_next_layer

_Number = Callable[..., int]
_EVERY = 4  # qwen35 and the like: one layer in so many attends to everything, where the file does not say


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes that decide how much memory a model takes beside its weights."""

    width: int  # numbers between two layers
    feed_forward: int  # numbers inside a layer, at most
    vocabulary: int  # tokens
    per_token: int  # numbers that a token adds to the cache, in all layers together
    state: int  # 32-bit numbers of the recurrent states of all layers together
    memory: str  # "attention", "sliding window", "hybrid" or "recurrent"
    can_guess: bool  # whether it can take back what a guess got wrong, as a target
    can_draft: bool  # whether it can go back any way, as a draft model has to
    next_per_token: int = 0  # numbers that a layer for the token after the next adds to a cache of its own


def shape_of(reader: Reader, architecture: str) -> Shape | None:
    """The shape of a model; None where the header does not say enough. Raises BrokenFile."""

    def number(key: str, default: int = 0) -> int:
        found = reader.numbers(f"{architecture}.{key}")
        return max(found) if found else default

    def layered(key: str, default: int) -> list[int]:
        found = reader.numbers(f"{architecture}.{key}") or (default,)
        return [found[min(i, len(found) - 1)] for i in range(layers)]

    layers, width = number("block_count") - number("nextn_predict_layers"), number("embedding_length")
    if not 0 < layers <= 1 << 10 or not width:
        return None
    heads = number("attention.head_count")
    head = number("attention.key_length", width // heads if heads else 0)
    values = number("attention.value_length", width // heads if heads else 0)
    if number("attention.key_length_mla"):
        values = 0  # they are made from the keys
    window = number("attention.sliding_window")
    pattern = reader.numbers(f"{architecture}.attention.sliding_window_pattern")
    slides = [bool(window) and len(pattern) > i and bool(pattern[i]) for i in range(layers)]
    remembering = layers - number("attention.shared_kv_layers")  # the later ones look at what these hold
    key_value_heads = layered("attention.head_count_kv", heads)
    recurrent = _recurrent_layers(reader, architecture, key_value_heads)
    per_token = 0
    for i in range(remembering):
        if recurrent[i] and architecture != "falcon-h1":  # whose layers are both
            continue
        inside = slides[i] and len(pattern) > 1
        key = number("attention.key_length_swa", head) if inside else head
        value = number("attention.value_length_swa", values) if inside and values else values
        per_token += key_value_heads[i] * (key + value)
    is_recurrent, is_hybrid = architecture in RECURRENT, architecture in HYBRID
    runs_next_layer = tensors_of_next_layer(architecture, layers, number("nextn_predict_layers")) is not None
    return Shape(
        width=width,
        feed_forward=number("feed_forward_length"),
        vocabulary=reader.n_tokens,
        per_token=per_token,
        state=sum(recurrent) * _state(number, width, heads) if is_recurrent or is_hybrid else 0,
        memory="recurrent" if is_recurrent else "hybrid" if is_hybrid else "sliding window" if window else "attention",
        can_guess=not is_recurrent and (not is_hybrid or architecture in GOING_BACK),
        can_draft=not is_recurrent and not is_hybrid,
        next_per_token=max(key_value_heads) * (head + values) if runs_next_layer else 0,
    )


def _recurrent_layers(reader: Reader, architecture: str, key_value_heads: list[int]) -> list[bool]:
    layers = len(key_value_heads)
    if architecture in RECURRENT or architecture == "falcon-h1":
        return [True] * layers
    if architecture not in HYBRID:
        return [False] * layers
    listed = reader.numbers(f"{architecture}.attention.recurrent_layers")
    if len(listed) >= layers:
        return [bool(is_recurrent) for is_recurrent in listed[:layers]]
    if 0 in key_value_heads:
        return [heads == 0 for heads in key_value_heads]
    every = (reader.numbers(f"{architecture}.full_attention_interval") or (_EVERY,))[0]
    return [every == 0 or (i + 1) % every != 0 for i in range(layers)]


def _state(number: _Number, width: int, heads: int) -> int:
    """Numbers in the state of one recurrent layer: of its convolution, and of what it sums up."""
    if kernel := number("shortconv.l_cache"):
        return width * (kernel - 1)
    if size := number("wkv.head_size"):
        return width * (number("token_shift_count", 2) + size)
    if size := number("kda.head_dim"):
        return 3 * (number("ssm.conv_kernel", 4) - 1) * heads * size + heads * size * size
    inner, state = number("ssm.inner_size"), number("ssm.state_size")
    convolution = max(number("ssm.conv_kernel") - 1, 0) * (inner + 2 * number("ssm.group_count") * state)
    return convolution + inner * state
