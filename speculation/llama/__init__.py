"""The only package that imports llama_cpp: GGUF files, their vocabularies and caches, by low-level functions.

The high-level `Llama` class is not used: it drops the text of long tokens, keeps a score for every token of
the context and ignores a failed rollback.
"""

from __future__ import annotations

import llama_cpp

from speculation.llama.eagle3 import Eagle3Layers, target_facts
from speculation.llama.log import EngineLog
from speculation.llama.model import CACHE_TYPES, ROLLBACK, LlamaModel
from speculation.llama.multi_token import MultiTokenLayers
from speculation.llama.parallel import ParallelTexts, Part, Read
from speculation.llama.vocabulary import Vocabulary
from speculation.llama.weights import LlamaWeights, back_ends, features, gpus

ENGINE_VERSION = f"llama-cpp-python {llama_cpp.__version__}"

__all__ = [
    "CACHE_TYPES",
    "ENGINE_VERSION",
    "ROLLBACK",
    "Eagle3Layers",
    "EngineLog",
    "LlamaModel",
    "LlamaWeights",
    "MultiTokenLayers",
    "ParallelTexts",
    "Part",
    "Read",
    "Vocabulary",
    "back_ends",
    "features",
    "gpus",
    "target_facts",
]
