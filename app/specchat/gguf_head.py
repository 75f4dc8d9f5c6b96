"""What the header of an EAGLE-3 head says of it and of the model that it was made for."""

from __future__ import annotations

from specchat.gguf_reader import Reader
from speculation.heads.eagle3 import ARCHITECTURE, HeadFacts

_EMBEDDINGS, _OUTPUT, _MAPPED = "token_embd.weight", "output.weight", "d2t"


def head_of(reader: Reader, name: str) -> HeadFacts:
    """The facts of a head; 0 or nothing where its header does not say. Raises BrokenFile."""

    def number(key: str) -> int:
        return reader.whole_number(f"{ARCHITECTURE}.{key}", 0)

    return HeadFacts(
        name=name,
        layers=reader.numbers(f"{ARCHITECTURE}.target_layers"),
        target_width=number("target_hidden_size"),
        width=number("embedding_length"),
        n_blocks=number("block_count"),
        n_tokens=reader.n_tokens,
        n_embeddings=reader.rows.get(_EMBEDDINGS),
        n_outputs=reader.rows.get(_OUTPUT),
        n_mapped=reader.rows.get(_MAPPED),
    )
