"""Which server it is and what it is known to understand: answers of a server in, facts out. No network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

_TAKES_PREDICTION = ("api.openai.com", "api.cerebras.ai")  # hosts whose documentation says so


class Kind(StrEnum):
    """A server program."""

    LLAMA = "llama-server"
    VLLM = "vLLM"
    SGLANG = "SGLang"
    LM_STUDIO = "LM Studio"
    OTHER = "a server"


_OWNERS = {"llamacpp": Kind.LLAMA, "vllm": Kind.VLLM, "sglang": Kind.SGLANG, "organization_owner": Kind.LM_STUDIO}
# What stands in requests beside the common fields: name of the setting -> name of the field.
_FIELDS: Mapping[Kind, Mapping[str, str]] = {
    Kind.LLAMA: {
        "top_k": "top_k",
        "min_p": "min_p",
        "repeat_penalty": "repeat_penalty",
        "repeat_last_n": "repeat_last_n",
    },
    Kind.VLLM: {"top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"},
    Kind.SGLANG: {"top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"},
    Kind.LM_STUDIO: {"top_k": "top_k", "repeat_penalty": "repeat_penalty"},
    Kind.OTHER: {},
}


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is known of a server before it writes."""

    kind: Kind
    model: str  # as requests name it
    n_ctx: int | None = None  # tokens
    claims: bool | None = None  # whether it says that it guesses ahead; None: it says nothing

    @property
    def title(self) -> str:
        """The model's name for people: of a file only its name."""
        name = PurePosixPath(self.model.replace("\\", "/")).name if self.model.endswith(".gguf") else self.model
        return name.removesuffix(".gguf")

    @property
    def fields(self) -> Mapping[str, str]:
        """Settings that it takes beside temperature, top_p, seed, stop and max_tokens, and what it calls them."""
        return _FIELDS[self.kind]

    @property
    def continues(self) -> Mapping[str, bool] | None:
        """What to send so that it goes on with a reply that was begun; None where it is not known to."""
        if self.kind in (Kind.LLAMA, Kind.VLLM, Kind.SGLANG):
            return {"continue_final_message": True, "add_generation_prompt": False}
        return None


def read_models(listed: object, wanted: str | None) -> ServerFacts:
    """The server behind a list of models, and which of them is meant: the wanted one, or the first.

    A name that is not in the list may be one that the server understands all the same.
    """
    data = listed.get("data") if isinstance(listed, dict) else None
    entries = [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []
    named = {str(each["id"]): each for each in entries if isinstance(each.get("id"), str)}
    for entry in entries:
        aliases = entry.get("aliases")
        for alias in aliases if isinstance(aliases, list) else []:
            named.setdefault(str(alias), entry)
    if not named:
        return ServerFacts(Kind.OTHER, wanted or "")
    model = wanted or next(iter(named))
    kind = _OWNERS.get(str(entries[0].get("owned_by")), Kind.OTHER)
    return ServerFacts(kind, model, _context(named.get(model, {})))


def claims_of_llama_server(slots: object, props: object) -> bool | None:
    """Whether a llama-server says that it guesses. Its slots know; its properties have said "none" while it guessed."""
    said = [each.get("speculative") for each in slots if isinstance(each, dict)] if isinstance(slots, Sequence) else []
    if any(isinstance(each, bool) for each in said):
        return any(each is True for each in said)
    found: Any = props
    for key in ("default_generation_settings", "params", "speculative.types"):
        found = found.get(key) if isinstance(found, dict) else None
    return None if not isinstance(found, str) else found != "none"


def claims_of_sglang(info: object) -> bool | None:
    """Whether an SGLang server was started with an algorithm that guesses (documentation)."""
    if not isinstance(info, dict) or "speculative_algorithm" not in info:
        return None
    return info["speculative_algorithm"] not in (None, "", "NONE")


def takes_prediction(url: str) -> bool:
    """Whether the host of an address is known to take an old text as a prediction."""
    return urlsplit(url).hostname in _TAKES_PREDICTION


def _context(model: Mapping[str, Any]) -> int | None:
    """Tokens of context: vLLM and SGLang say max_model_len, llama-server meta.n_ctx, LM Studio the third."""
    meta = model.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    for value in (model.get("max_model_len"), meta.get("n_ctx"), model.get("loaded_context_length")):
        if type(value) is int and value > 0:
            return value
    return None
