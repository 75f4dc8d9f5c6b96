"""Which weights make guesses dear to check on a CPU. Figures: 2 cores with AVX-512, llama-cpp-python 0.3.36."""

from __future__ import annotations

from collections.abc import Mapping

PLAIN_TYPES = ("F32", "I8", "I16", "I32", "I64", "F64")  # of norms and tables, in files of any quantization
# A step of 8 tokens took 7.2 plain steps with Q4_K_M, 4.9 with Q4_0, 2.9 with Q8_0 (0.5B and 1.5B models).
_DEAR = frozenset(("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"))
# Of these no kernel of the engine takes several tokens at once: a check costs as many steps as it has tokens.
_ONE_BY_ONE = frozenset(
    ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS", "TQ1_0", "TQ2_0")
)


def dear_checks(tensors: Mapping[str, int]) -> str:
    """A hint where most weights are of types whose batches are expensive on a CPU; "" where they are not.

    `tensors` counts the tensors of each type.
    """
    counted = {kind: count for kind, count in tensors.items() if kind not in PLAIN_TYPES}
    total = sum(counted.values())
    if not total:
        return ""
    dear, single = (sum(counted.get(kind, 0) for kind in kinds) for kinds in (_DEAR, _ONE_BY_ONE))
    if 2 * (dear + single) <= total:
        return ""
    kind = max((kind for kind in counted if kind in _DEAR | _ONE_BY_ONE), key=lambda kind: counted[kind])
    cost = "about as much as 7 plain steps" if kind in _DEAR else "nearly as much as 8 plain steps"
    return f"its weights are mostly {kind}: on a CPU, checking 7 guesses costs {cost}; with Q8_0 about 3, with Q4_0 5"
