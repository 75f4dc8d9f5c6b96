"""Writes GGUF files of random weights that llama.cpp loads in milliseconds.

Knows file formats and tensor shapes; runs no model. What such a model says is noise, but its logits are
spread out and depend on the whole history, so caches, rollbacks and refusals behave as in real ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType
from numpy.typing import NDArray

D = 64  # hidden width
HEADS = 2
LAYERS = 2
FEED_FORWARD = 128
CONTEXT_LENGTH = 2048
QUIET = 0.25  # of what a layer adds, against the tokens themselves, in models whose next token is easy to guess
WINDOW = 32  # positions that a sliding-window layer sees

BOS, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
LONGEST_TOKEN = "-" * 64  # one token; longer than the 32 bytes that a caller may have reserved for a piece

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

# fmt: off
WORDS = (
    " the", " and", " a", " of", " to", " in", " is", " you", " that", " it", " for", " with", " this", " I",
    " hello", " world", "Hello", "system", "user", "assistant", "def", " return", "self", "print", "import",
    "    ", "\n\n", "ing", "er", "re", "on", "at", "en", "é", "ü", "ß", "“", "”", "’", "…", "😀", "日本",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A byte-level BPE vocabulary; texts are spelled in the GPT-2 alphabet, where every byte is a letter."""

    tokens: tuple[str, ...]
    types: tuple[int, ...]
    merges: tuple[str, ...]
    bos: int
    eos: int
    pre: str = "qwen2"  # the name of the rule that cuts text into words; "gpt-2" also fits

    def with_token(self, token: int, text: str) -> Vocabulary:
        """The same vocabulary with one text edited; merges are left alone."""
        if not 0 <= token < len(self.tokens):
            raise ValueError(f"token {token} is not one of the {len(self.tokens)} tokens")
        # Two tokens of one text do not make llama.cpp refuse the file: they abort the process.
        if text in self.tokens:
            raise ValueError(f"token {self.tokens.index(text)} already is {text!r}; choose another text")
        return replace(self, tokens=(*self.tokens[:token], text, *self.tokens[token + 1 :]))

    def padded(self, n: int) -> Vocabulary:
        """The same vocabulary with n unused tokens at its end."""
        pads = tuple(f"[PAD{len(self.tokens) + i}]" for i in range(n))
        types = (*self.types, *[int(TokenType.UNUSED)] * n)
        return replace(self, tokens=self.tokens + pads, types=types)


def _byte_letters() -> list[str]:
    """The GPT-2 alphabet: a printable letter for each byte."""
    kept = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    moved = sorted(set(range(256)) - kept)
    return [chr(byte) if byte in kept else chr(256 + moved.index(byte)) for byte in range(256)]


def byte_level_vocabulary() -> Vocabulary:
    """All bytes, a few words and runs, some halves of UTF-8 characters, and three control tokens."""
    letters = _byte_letters()
    merges: dict[tuple[str, str], None] = {}
    for word in WORDS:
        spelled = [letters[byte] for byte in word.encode()]
        merges |= {("".join(spelled[:i]), spelled[i]): None for i in range(1, len(spelled))}
    for letter, longest in ((letters[ord("-")], len(LONGEST_TOKEN)), (letters[ord("=")], 8)):
        merges |= {(letter * 2**i, letter * 2**i): None for i in range(longest.bit_length() - 1)}

    words = list(dict.fromkeys([*letters, *(left + right for left, right in merges)]))
    tokens = (*words, BOS, IM_START, IM_END)
    return Vocabulary(
        tokens=tokens,
        types=(*[int(TokenType.NORMAL)] * len(words), *[int(TokenType.CONTROL)] * 3),
        merges=tuple(f"{left} {right}" for left, right in merges),
        bos=tokens.index(BOS),
        eos=tokens.index(IM_END),
    )


VOCABULARY = byte_level_vocabulary()


class _File:
    """A GGUF file being written: metadata that all architectures share, and named random tensors."""

    def __init__(
        self,
        path: Path,
        architecture: str,
        vocabulary: Vocabulary,
        seed: int,
        drift: float = 0.0,
        layers: int = LAYERS,
    ) -> None:
        self.path, self.seed, self.drift = path, seed, drift
        self.missing = ""  # what the names of tensors hold that are left out
        self.n_vocab = len(vocabulary.tokens)
        self.writer = GGUFWriter(path, architecture)
        self.writer.add_name(f"tiny-{architecture}")
        self.writer.add_context_length(CONTEXT_LENGTH)
        self.writer.add_embedding_length(D)
        self.writer.add_block_count(layers)
        self.writer.add_layer_norm_rms_eps(1e-5)
        self.writer.add_tokenizer_model("gpt2")
        self.writer.add_tokenizer_pre(vocabulary.pre)
        self.writer.add_token_list(vocabulary.tokens)
        self.writer.add_token_types(vocabulary.types)
        self.writer.add_token_merges(vocabulary.merges)
        self.writer.add_bos_token_id(vocabulary.bos)
        self.writer.add_eos_token_id(vocabulary.eos)
        self.writer.add_pad_token_id(vocabulary.bos)
        self.writer.add_add_bos_token(False)

    def attention_heads(self, kv: int | Sequence[int] = HEADS) -> None:
        self.writer.add_feed_forward_length(FEED_FORWARD)
        self.writer.add_head_count(HEADS)
        self.writer.add_head_count_kv(kv)

    def normal(self, name: str, shape: tuple[int, ...], scale: float) -> None:
        """A tensor of random numbers that depend on its name and the seed, whatever else is in the file."""
        values = self._draw(0, name, shape)
        if self.drift:
            values = np.sqrt(1 - self.drift**2) * values + self.drift * self._draw(1, name, shape)
        self.tensor(name, scale * values)

    def _draw(self, stream: int, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        # Row by row from one stream: a longer vocabulary extends the rows of a shorter one.
        return np.random.default_rng([self.seed, stream, zlib.crc32(name.encode())]).standard_normal(shape)

    def matrix(self, name: str, rows: int, columns: int, gain: float = 1.0) -> None:
        """Weights that map unit-variance inputs to outputs of deviation `gain`."""
        self.normal(f"{name}.weight", (rows, columns), gain / columns**0.5)

    def ones(self, name: str, n: int) -> None:
        self.tensor(name, np.ones(n))

    def tensor(self, name: str, values: NDArray[np.float64]) -> None:
        if self.missing and self.missing in name:
            return
        self.writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))

    def embeddings(self, deviation: float = 1.0, output_norm: str = "output_norm") -> None:
        """Input and output tables; untied, or each token would predict itself."""
        self.normal("token_embd.weight", (self.n_vocab, D), deviation)
        self.ones(f"{output_norm}.weight", D)
        self.matrix("output", self.n_vocab, D, gain=2.5)

    def attention(self, block: str, queries: int = D, gain: float = 2.0) -> None:
        self.ones(f"{block}.attn_norm.weight", D)
        # Sharp attention: with flat weights a long history averages out and stops mattering.
        self.matrix(f"{block}.attn_q", queries, D, gain=1.5)
        self.matrix(f"{block}.attn_k", D, D, gain=1.5)
        self.matrix(f"{block}.attn_v", D, D)
        self.matrix(f"{block}.attn_output", D, D, gain=gain)

    def query_key_norms(self, block: str) -> None:
        self.tensor(f"{block}.attn_q_norm.weight", np.full(D // HEADS, 1.5))
        self.tensor(f"{block}.attn_k_norm.weight", np.full(D // HEADS, 1.5))

    def feed_forward(self, block: str, norm: str = "ffn_norm", gain: float = 2.0) -> None:
        self.ones(f"{block}.{norm}.weight", D)
        self.matrix(f"{block}.ffn_gate", FEED_FORWARD, D)
        self.matrix(f"{block}.ffn_up", FEED_FORWARD, D)
        self.matrix(f"{block}.ffn_down", D, FEED_FORWARD, gain=gain)

    def experts(self, block: str, gain: float) -> None:
        """Two experts, of which one is used for a token, and one that all tokens share."""
        self.matrix(f"{block}.ffn_gate_inp", 2, D)
        self.tensor(f"{block}.exp_probs_b.bias", np.zeros(2))
        for kind, shape, scale in (
            ("gate", (FEED_FORWARD, D), 1.0),
            ("up", (FEED_FORWARD, D), 1.0),
            ("down", (D, FEED_FORWARD), gain),
        ):
            self.normal(f"{block}.ffn_{kind}_exps.weight", (2, *shape), scale / shape[1] ** 0.5)
            self.matrix(f"{block}.ffn_{kind}_shexp", *shape, gain=scale)

    def next_layer(self, block: str) -> None:
        """How a layer for the token after the next joins a token with a state: it looks at the token nearly alone."""
        self.ones(f"{block}.nextn.enorm.weight", D)
        self.ones(f"{block}.nextn.hnorm.weight", D)
        joined = np.concatenate([np.eye(D), 0.2 * self._draw(0, f"{block}.nextn", (D, D)) / D**0.5], axis=1)
        self.tensor(f"{block}.nextn.eh_proj.weight", joined)

    def close(self) -> Path:
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        return self.path


def _open(
    path: Path,
    architecture: str,
    seed: int,
    vocabulary: Vocabulary,
    replace_token: tuple[int, str] | None,
    padding: int,
    chat_template: str | None,
    drift: float = 0.0,
    next_layers: int = 0,
) -> _File:
    if replace_token is not None:
        vocabulary = vocabulary.with_token(*replace_token)
    file = _File(path, architecture, vocabulary.padded(padding), seed, drift, LAYERS + next_layers)
    if next_layers:
        file.writer.add_nextn_predict_layers(next_layers)
    if chat_template is not None:
        file.writer.add_chat_template(chat_template)
    return file


def write_attention(
    path: Path,
    *,
    seed: int = 0,
    vocabulary: Vocabulary = VOCABULARY,
    replace_token: tuple[int, str] | None = None,
    padding: int = 0,
    chat_template: str | None = CHATML,
    drift: float = 0.0,
    architecture: str = "llama",
) -> Path:
    """A model whose cache drops any tail: every layer attends to everything.

    Two seeds make unrelated models of one vocabulary. `drift` (0 to 1) mixes other weights into those of the
    seed: at 0.05 the best token stays the same at about 70 of 100 positions, at 0.2 at about 20.
    """
    file = _open(path, architecture, seed, vocabulary, replace_token, padding, chat_template, drift)
    file.attention_heads()
    file.writer.add_rope_dimension_count(D // HEADS)
    file.embeddings()
    for layer in range(LAYERS):
        file.attention(f"blk.{layer}")
        file.feed_forward(f"blk.{layer}")
    return file.close()


def write_sliding_window(
    path: Path,
    *,
    seed: int = 0,
    vocabulary: Vocabulary = VOCABULARY,
    replace_token: tuple[int, str] | None = None,
    padding: int = 0,
    chat_template: str | None = CHATML,
) -> Path:
    """A model (gemma3) whose first layer sees the last `WINDOW` positions and whose second sees all.

    llama.cpp forgets positions outside the window only when it needs their cells: it keeps at least 256.
    """
    file = _open(path, "gemma3", seed, vocabulary, replace_token, padding, chat_template)
    file.attention_heads()
    file.writer.add_key_length(D // HEADS)
    file.writer.add_value_length(D // HEADS)
    file.writer.add_sliding_window(WINDOW)
    file.writer.add_sliding_window_pattern(2)
    file.embeddings(deviation=1 / D**0.5)  # gemma multiplies what it reads from the table by sqrt(d)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        file.attention(block)
        file.query_key_norms(block)
        file.feed_forward(block)
        file.ones(f"{block}.post_attention_norm.weight", D)
        file.ones(f"{block}.post_ffw_norm.weight", D)
    return file.close()


def write_recurrent(
    path: Path,
    *,
    seed: int = 0,
    vocabulary: Vocabulary = VOCABULARY,
    replace_token: tuple[int, str] | None = None,
    padding: int = 0,
    chat_template: str | None = CHATML,
) -> Path:
    """A model (mamba) that folds its history into one state and so cannot drop its last token."""
    inner, state, kernel, rank = 2 * D, 16, 4, 4
    file = _open(path, "mamba", seed, vocabulary, replace_token, padding, chat_template)
    file.writer.add_feed_forward_length(0)
    file.writer.add_head_count(0)
    file.writer.add_ssm_conv_kernel(kernel)
    file.writer.add_ssm_inner_size(inner)
    file.writer.add_ssm_state_size(state)
    file.writer.add_ssm_time_step_rank(rank)
    file.embeddings()
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        file.ones(f"{block}.attn_norm.weight", D)
        file.matrix(f"{block}.ssm_in", 2 * inner, D)
        file.matrix(f"{block}.ssm_conv1d", inner, kernel)
        file.normal(f"{block}.ssm_conv1d.bias", (inner,), 0.1)
        file.matrix(f"{block}.ssm_x", rank + 2 * state, inner, gain=2.0)
        file.matrix(f"{block}.ssm_dt", inner, rank)
        file.tensor(f"{block}.ssm_dt.bias", np.full(inner, -2.0))  # softplus: a step of about 0.13
        file.tensor(f"{block}.ssm_a", -np.tile(np.linspace(0.1, 4.0, state), (inner, 1)))
        file.ones(f"{block}.ssm_d", inner)
        file.matrix(f"{block}.ssm_out", D, inner, gain=2.0)
    return file.close()


def write_hybrid(
    path: Path,
    *,
    seed: int = 0,
    vocabulary: Vocabulary = VOCABULARY,
    replace_token: tuple[int, str] | None = None,
    padding: int = 0,
    chat_template: str | None = CHATML,
) -> Path:
    """A model (lfm2) of one short convolution and one attention layer; it goes back some tokens if asked before."""
    kernel = 3
    file = _open(path, "lfm2", seed, vocabulary, replace_token, padding, chat_template)
    file.attention_heads(kv=[0, HEADS])  # no key-value heads: that layer is recurrent
    file.writer.add_shortconv_l_cache(kernel)
    file.embeddings(output_norm="token_embd_norm")
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        if layer == 0:
            file.ones(f"{block}.attn_norm.weight", D)
            file.matrix(f"{block}.shortconv.conv", D, kernel)
            file.matrix(f"{block}.shortconv.in_proj", 3 * D, D)
            file.matrix(f"{block}.shortconv.out_proj", D, D, gain=2.0)
        else:
            file.attention(block)
            file.query_key_norms(block)
        file.feed_forward(block)
    return file.close()


def write_delta(
    path: Path,
    *,
    seed: int = 0,
    vocabulary: Vocabulary = VOCABULARY,
    replace_token: tuple[int, str] | None = None,
    padding: int = 0,
    chat_template: str | None = CHATML,
    next_layers: int = 0,
) -> Path:
    """A model (qwen35) of one layer of linear attention and one of full attention, with both kinds of state.

    With a layer for the token after the next its own layers say little, so that this one is often right.
    """
    gain = QUIET if next_layers else 2.0
    kernel, state, groups, value_heads = 4, 16, 2, 4
    inner, channels = state * value_heads, 2 * state * groups + state * value_heads
    file = _open(path, "qwen35", seed, vocabulary, replace_token, padding, chat_template, next_layers=next_layers)
    file.attention_heads()
    file.writer.add_key_length(D // HEADS)
    file.writer.add_value_length(D // HEADS)
    file.writer.add_rope_dimension_count(D // HEADS)
    file.writer.add_rope_dimension_sections([8, 4, 4, 0])
    file.writer.add_uint32("qwen35.full_attention_interval", 2)
    file.writer.add_ssm_conv_kernel(kernel)
    file.writer.add_ssm_inner_size(inner)
    file.writer.add_ssm_state_size(state)
    file.writer.add_ssm_time_step_rank(value_heads)
    file.writer.add_ssm_group_count(groups)
    file.embeddings()
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        if layer == 0:
            file.ones(f"{block}.attn_norm.weight", D)
            file.matrix(f"{block}.attn_qkv", channels, D, gain=1.5)
            file.matrix(f"{block}.attn_gate", inner, D)
            file.matrix(f"{block}.ssm_conv1d", channels, kernel)
            file.tensor(f"{block}.ssm_dt.bias", np.full(value_heads, -2.0))  # softplus: a step of about 0.13
            file.tensor(f"{block}.ssm_a", -np.linspace(0.1, 4.0, value_heads))
            file.matrix(f"{block}.ssm_beta", value_heads, D)
            file.matrix(f"{block}.ssm_alpha", value_heads, D)
            file.ones(f"{block}.ssm_norm.weight", state)
            file.matrix(f"{block}.ssm_out", D, inner, gain=gain)
        else:
            file.attention(block, queries=2 * D, gain=gain)  # with a gate for each
            file.query_key_norms(block)
        file.feed_forward(block, norm="post_attention_norm", gain=gain)
    for layer in range(LAYERS, LAYERS + next_layers):
        file.attention(f"blk.{layer}", queries=2 * D, gain=gain)
        file.query_key_norms(f"blk.{layer}")
        file.feed_forward(f"blk.{layer}", norm="post_attention_norm", gain=gain)
        file.next_layer(f"blk.{layer}")
    return file.close()


def write_multi_token(
    path: Path,
    *,
    seed: int = 0,
    vocabulary: Vocabulary = VOCABULARY,
    chat_template: str | None = CHATML,
    next_layers: int = 1,
    missing: str = "",
) -> Path:
    """A model (glm4moe) of full attention with a layer for the token after the next, which is often right.

    `missing`: tensors whose names hold this are left out, though the header promises the layer.
    """
    file = _open(path, "glm4moe", seed, vocabulary, None, 0, chat_template, next_layers=next_layers)
    file.missing = missing
    file.attention_heads()
    file.writer.add_key_length(D // HEADS)
    file.writer.add_value_length(D // HEADS)
    file.writer.add_rope_dimension_count(D // HEADS)
    file.writer.add_leading_dense_block_count(LAYERS)
    file.writer.add_expert_count(2)
    file.writer.add_expert_used_count(1)
    file.writer.add_expert_shared_count(1)
    file.writer.add_expert_feed_forward_length(FEED_FORWARD)
    file.embeddings()
    for layer in range(LAYERS + next_layers):
        block = f"blk.{layer}"
        file.attention(block, gain=QUIET)
        if layer < LAYERS:
            file.feed_forward(block, norm="post_attention_norm", gain=QUIET)
        else:
            file.ones(f"{block}.post_attention_norm.weight", D)
            file.experts(block, gain=QUIET)
            file.next_layer(block)
    return file.close()


def write_eagle3(
    path: Path,
    *,
    seed: int = 0,
    vocabulary: Vocabulary = VOCABULARY,
    target_layers: Sequence[int] = (0, 1, 1),
    target_width: int = D,
    guessed: Sequence[int] | None = None,
    own_tables: bool = False,
    own_layers: int = 1,
) -> Path:
    """An EAGLE-3 head for `write_attention`: one layer that reads what three layers of its target are given.

    `guessed`: the tokens that it can guess, for which it has an output matrix of its own; None: all. With `own_tables`
    it borrows none of the target's.
    """
    file = _File(path, "eagle3", vocabulary, seed, layers=own_layers)
    file.attention_heads()
    file.writer.add_rope_dimension_count(D // HEADS)
    file.writer.add_array("eagle3.target_layers", list(target_layers))
    file.writer.add_uint32("eagle3.target_hidden_size", target_width)
    file.matrix("fc", D, len(target_layers) * target_width)
    file.ones("output_norm.weight", D)
    if guessed is not None:
        file.writer.add_tensor("d2t", np.asarray(guessed, dtype=np.int64))
    if guessed is not None or own_tables:
        file.matrix("output", file.n_vocab if guessed is None else len(guessed), D, gain=2.5)
    if own_tables:
        file.normal("token_embd.weight", (file.n_vocab, D), 1.0)
    for layer in range(own_layers):
        block = f"blk.{layer}"
        file.ones(f"{block}.attn_norm.weight", D)
        file.ones(f"{block}.attn_norm_2.weight", D)
        for name in ("attn_q", "attn_k", "attn_v"):
            file.matrix(f"{block}.{name}", D, 2 * D, gain=1.5)
        file.matrix(f"{block}.attn_output", D, D, gain=2.0)
        file.feed_forward(block)
    return file.close()


def write_unknown_architecture(path: Path) -> Path:
    """A sound file of a kind of model that no release of llama.cpp knows."""
    return write_attention(path, architecture="tiny-unknown")


def truncate(path: Path, keep_bytes: int) -> Path:
    """A copy beside the file that ends early, as an interrupted download leaves it."""
    copy = path.with_name(f"{path.stem}-first-{keep_bytes}{path.suffix}")
    copy.write_bytes(path.read_bytes()[:keep_bytes])
    return copy
