"""Which files bring a layer for the token after the next one that the engine can run, told from what they hold.

llama.cpp calls such layers nextn. It ends the process where it is asked for one that it cannot run.
"""

from __future__ import annotations

# Architectures whose every condition is known, and the tensors that the layer needs there beside those that it needs
# everywhere; as the pinned engine has them. It can run such layers of others too.
_TENSORS: dict[str, tuple[str, ...]] = {
    "glm4moe": ("ffn_gate_inp.weight",),
    "qwen35": (),
    "qwen35moe": ("ffn_gate_inp.weight",),
    "qwen3next": ("ffn_gate_inp.weight",),
}
_EVERYWHERE = ("attn_norm.weight", "nextn.eh_proj.weight", "nextn.enorm.weight", "nextn.hnorm.weight")


def tensors_of_next_layer(architecture: str, n_layers: int, n_next: int) -> frozenset[str] | None:
    """The tensors without which one of n_next layers behind the model's own n_layers cannot run.

    None where the engine has no way to run it, whatever the file holds, or there is none.
    """
    if architecture not in _TENSORS or n_next != 1:
        return None
    return frozenset(f"blk.{n_layers}.{name}" for name in (*_EVERYWHERE, *_TENSORS[architecture]))
