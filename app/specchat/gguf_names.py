"""Names of what a GGUF file says in numbers, and of the architectures that the pinned engine knows."""

from __future__ import annotations

# number -> (name, elements of a block, bytes of a block)
TENSOR_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18),
}  # fmt: skip
REMOVED_TENSOR_TYPES = frozenset((4, 5, 31, 32, 33, 36, 37, 38))  # that older engines could read

# general.file_type
FILE_TYPES: dict[int, str] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS",
    20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M",
    28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
    39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}  # fmt: skip

# What general.architecture may be for the engine that pyproject.toml pins: the list of its llama-arch.cpp.
ARCHITECTURES = frozenset(
    """
    afmoe apertus arcee arctic arwkv7 baichuan bailingmoe bailingmoe2 bailingmoe3 bert bitnet bloom chameleon
    chatglm clip codeshell cogvlm cohere2 cohere2moe command-r dbrx deci deepseek deepseek2 deepseek2-ocr
    deepseek32 deepseek4 dflash dots1 dots3note dream eagle3 ernie4_5 ernie4_5-moe eurobert exaone exaone-moe
    exaone4 falcon falcon-h1 gemma gemma-embedding gemma2 gemma3 gemma3n gemma4 gemma4-assistant glm-dsa glm4
    glm4moe glm5-next gpt-oss gpt2 gptj gptneox granite granite_swa granitehybrid granitemoe graniteswitch grok
    grovemoe hrm_text hunyuan-dense hunyuan-moe hunyuan_vl hy_v3 hy_v4 internlm2 jais jais2 jamba jina-bert-v2
    jina-bert-v3 kimi-k3 kimi-linear laguna lfm2 lfm2moe llada llada-moe llama llama-embed llama4 maincoder mamba
    mamba2 maple mellum mimo2 minicpm minicpm3 minimax-01 minimax-m2 minimax-m3 mistral3 mistral4 modern-bert mpt
    muse-glimmer nanbeige nemotron nemotron_h nemotron_h_moe neo-bert nomic-bert nomic-bert-moe olmo olmo2 olmoe
    openelm orion paddleocr pangu-embedded phi2 phi3 phimoe plamo plamo2 plamo3 plm pockettts qwen qwen2 qwen2moe
    qwen2vl qwen3 qwen35 qwen35moe qwen3moe qwen3next qwen3tts qwen3vl qwen3vlmoe qwen4exp refact rnd1 rwkv6
    rwkv6qwen2 rwkv7 seed_oss smallthinker smollm3 spark2_5 stablelm starcoder starcoder2 step35 t5 t5encoder
    talkie wavtokenizer-dec xverse
    """.split()  # noqa: SIM905 # words are easier to compare with the engine's list
)

# Of those, what writes no text by itself: encoders, embeddings, voices, and heads that hang on another model.
NOT_FOR_CHAT = frozenset(
    """
    bert clip dflash eagle3 eurobert gemma-embedding gemma4-assistant jina-bert-v2 jina-bert-v3 llama-embed
    modern-bert neo-bert nomic-bert nomic-bert-moe pockettts qwen3tts t5encoder wavtokenizer-dec
    """.split()  # noqa: SIM905 # words are easier to compare with the engine's list
)

# How caches let go of tokens, as the engine has it. Of the rest, every layer attends to what it remembers.
RECURRENT = frozenset(("arwkv7", "mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7"))  # one state, no way back
HYBRID = frozenset(
    """
    bailingmoe3 deepseek4 falcon-h1 glm5-next granitehybrid jamba kimi-k3 kimi-linear lfm2 lfm2moe minimax-01
    nemotron_h nemotron_h_moe plamo2 qwen35 qwen35moe qwen3next qwen4exp
    """.split()  # noqa: SIM905 # words are easier to compare with the engine's list
)
GOING_BACK = frozenset(  # hybrids whose states can be kept for some tokens
    """
    bailingmoe3 deepseek4 glm5-next kimi-k3 lfm2 lfm2moe nemotron_h nemotron_h_moe qwen35 qwen35moe qwen4exp
    """.split()  # noqa: SIM905 # words are easier to compare with the engine's list
)
