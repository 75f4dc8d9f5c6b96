"""Which models can guess for a target, told from their headers, and what that would be worth by measured prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from specchat.catalogue import Catalogue, Model
from specchat.gguf_vocabulary import vocabulary_facts
from specchat.headers import Header
from speculation.cost import CostTable
from speculation.heads.eagle3 import TargetFacts, why_unfit
from speculation.theory import tokens_per_step
from speculation.vocabulary import VocabularyFacts, why_incompatible

ASSUMED_ALPHA = 0.7  # guesses that are right, of those looked at: 0.69 (prose) to 0.90 (code) were measured
LONGEST = 16  # tokens of a draft
CANNOT_GO_BACK = "cannot take tokens back out of its cache"
CANNOT_DRAFT = "its cache cannot drop any number of tokens, as a draft model has to"


@dataclass(frozen=True, slots=True)
class Gain:
    """What a draft model would be worth at its best length, by prices that were measured here."""

    draft_tokens: int  # k; 0: guessing loses at every length
    tokens_per_step: float
    speed_up: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a model can guess for the target."""

    usable: bool | None  # None: not known before it is here
    reason: str = ""  # why not, or why that is not known


@dataclass(frozen=True, slots=True)
class Side:
    """A target or a draft: what the catalogue and, if it is here, its file say."""

    name: str
    model: Model | None = None  # None: a file that nobody has listed
    header: Header | None = None  # None: not here, or broken
    trouble: str = ""  # why there is no header

    @property
    def size(self) -> int:
        return self.model.file.size if self.model is not None else self.header.size if self.header is not None else 0


@dataclass
class Vocabularies:
    """Texts of tokens, read once for each vocabulary that is looked at."""

    known: dict[str, Callable[[int], bytes]] = field(default_factory=dict)

    def facts(self, name: str, path: Path, header: Header) -> VocabularyFacts | None:
        """What has to agree; None for a file without a vocabulary."""
        tokenizer = header.tokenizer
        if tokenizer is None:
            return None
        facts = vocabulary_facts(name, path, tokenizer)
        text = self.known.setdefault(tokenizer.sha256, facts.text)
        return VocabularyFacts(name, facts.kind, facts.n_tokens, facts.bos, facts.eos, text)


def judge(target: Side, draft: Side, catalogue: Catalogue, vocabularies: Vocabularies) -> Verdict:
    """Whether `draft` can guess for `target`, and the exact reason where it cannot. Raises HeaderError."""
    rules = (
        partial(_why_target_not, target),
        partial(_why_draft_not, draft),
        partial(_why_head_not, target, draft),
        partial(_why_size_not, target, draft),
    )
    for rule in rules:
        if reason := rule():
            return Verdict(False, reason)
    if target.header is not None and draft.header is not None:
        facts = [
            vocabularies.facts(side.name, side.header.path, side.header) for side in (target, draft) if side.header
        ]
        if facts[0] is None or facts[1] is None:
            return Verdict(False, "one of the two has no vocabulary")
        difference = why_incompatible(facts[0], facts[1])
        return Verdict(difference is None, difference or "")
    return _by_catalogue(target, draft, catalogue)


def gain(target: CostTable, draft_step_s: float, alpha: float = ASSUMED_ALPHA) -> Gain:
    """The expected tokens of a step and the speed-up over plain decoding, at the length that is best."""
    best = Gain(0, 1.0, 1.0)
    for k in range(1, LONGEST + 1):
        tokens = tokens_per_step(alpha, k)
        speed_up = tokens * target.forward_s(1) / (target.forward_s(k + 1) + k * draft_step_s)
        if speed_up > best.speed_up:
            best = Gain(k, tokens, speed_up)
    return best


def _why_target_not(target: Side) -> str:
    shape = None if target.header is None else target.header.shape
    recurrent = target.model is not None and target.model.memory == "recurrent"
    if (shape is not None and not shape.can_guess) or (shape is None and recurrent):
        return f"{target.name} {CANNOT_GO_BACK}, so nothing can guess for it"
    return ""


def _why_draft_not(draft: Side) -> str:
    shape = None if draft.header is None else draft.header.shape
    stateful = draft.model is not None and not draft.model.can_draft
    if (shape is not None and not shape.can_draft) or (shape is None and stateful):
        return f"{draft.name} cannot draft: {CANNOT_DRAFT}"
    return draft.trouble


def _why_head_not(target: Side, draft: Side) -> str:
    """Where the draft is an EAGLE-3 head, which is made for one model."""
    head = None if draft.header is None else draft.header.head
    header = target.header
    if head is None or header is None or header.shape is None or header.tokenizer is None:
        return ""
    n_tokens = header.tokenizer.n_tokens
    return (
        why_unfit(TargetFacts(target.name, header.architecture, header.layers, header.shape.width, n_tokens), head)
        or ""
    )


def _why_size_not(target: Side, draft: Side) -> str:
    if not target.size or draft.size < target.size:
        return ""
    return "it is the target itself" if draft.name == target.name else "it is no smaller than the target"


def _by_catalogue(target: Side, draft: Side, catalogue: Catalogue) -> Verdict:
    ours, theirs = _tokenizer(target, catalogue), _tokenizer(draft, catalogue)
    missing = "the target is not here" if target.header is None else "not here"
    if not ours or not theirs:
        unknown = draft if not theirs else target
        return Verdict(None, f"{missing}, and the catalogue does not know the tokenizer of {unknown.name}")
    if ours != theirs:
        return Verdict(False, f"{missing}: the catalogue says that its tokenizer is {theirs}, the target's is {ours}")
    return Verdict(None, f"{missing}: the catalogue says that both have the tokenizer {ours} (not verified)")


def _tokenizer(side: Side, catalogue: Catalogue) -> str:
    """Id of a tokenizer of the catalogue, by its word for a model or by the file itself; "" where not known."""
    header = side.header
    if header is not None and header.tokenizer is not None:
        for known in catalogue.tokenizers:
            if known.tokens_sha256 == header.tokenizer.sha256:
                return known.id
    return "" if side.model is None else side.model.tokenizer
