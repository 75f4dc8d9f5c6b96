"""May this draft model guess for that target? Vocabularies compared token by token, with the reason for a no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

MAX_SIZE_DIFFERENCE = 128  # llama.cpp's limit: beyond it the extra ids are more than padding
FIRST_COMPARED = 5  # llama.cpp skips the first ids, where families place their own special tokens


class VocabularyKind(IntEnum):
    """llama_vocab_type."""

    NONE = 0
    SPM = 1
    BPE = 2
    WPM = 3
    UGM = 4
    RWKV = 5
    PLAMO2 = 6
    TEST = 7


@dataclass(frozen=True, slots=True)
class VocabularyFacts:
    """What has to agree between two models; `text` gives a token's text as it stands in the file."""

    name: str
    kind: str  # "BPE", "SPM", ...
    n_tokens: int
    bos: int | None  # added in front of a prompt; None: not added
    eos: int | None  # added behind one; None: not added
    text: Callable[[int], bytes]


def why_incompatible(target: VocabularyFacts, draft: VocabularyFacts) -> str | None:
    """One sentence that says why `draft` cannot guess for `target`; None when it can.

    The rules are llama.cpp's own: same kind, same added tokens, sizes within 128, same texts from id 5 on.
    """
    pair = f"{draft.name} cannot draft for {target.name}"
    if target.kind != draft.kind:
        return f"{pair}: its tokenizer is {draft.kind}, the target's is {target.kind}"
    for word, ours, theirs in (("begin", target.bos, draft.bos), ("end", target.eos, draft.eos)):
        if ours != theirs:
            return f"{pair}: it adds {_named(theirs)} at the {word} of a text, the target adds {_named(ours)}"
    difference = abs(target.n_tokens - draft.n_tokens)
    if difference > MAX_SIZE_DIFFERENCE:
        return (
            f"{pair}: it has {draft.n_tokens} tokens, the target {target.n_tokens}; "
            f"at most {MAX_SIZE_DIFFERENCE} apart is padding"
        )
    for token in range(FIRST_COMPARED, min(target.n_tokens, draft.n_tokens)):
        ours_text, theirs_text = target.text(token), draft.text(token)
        if ours_text != theirs_text:
            return f"{pair}: token {token} is {_shown(theirs_text)} in it and {_shown(ours_text)} in the target"
    return None


def _named(token: int | None) -> str:
    return "no token" if token is None else f"token {token}"


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "replace"))
