"""Functions of the engine that its stable interface does not list, looked up by the names that compilers give them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import llama_cpp

Calls = tuple[Callable[..., Any], Callable[..., Any]]  # what asks for numbers, and what gives a pointer to them
NUMBERS = ctypes.POINTER(ctypes.c_float)
_CONTEXT = llama_cpp.llama_context_p_ctypes


def symbol(names: Sequence[str], restype: Any, argtypes: Sequence[Any]) -> Callable[..., Any] | None:
    """The exported function that has one of these names; None where the installed engine has none of them.

    Give its plain name and the ones that C++ compilers make of it: Itanium's and Microsoft's. Results and arguments
    are ctypes.
    """
    library = llama_cpp.llama_cpp._lib
    for name in names:
        try:
            function = library[name]  # a new object each time: no other binding of the name is changed
        except AttributeError:
            continue
        function.restype, function.argtypes = restype, list(argtypes)
        return function  # type: ignore[no-any-return]
    return None


def next_state_calls() -> Calls | None:
    """Show the states that the next token is guessed from: (context, whether, whether only of rows), (context)."""
    return _both(
        (
            "llama_set_embeddings_nextn",
            "_Z26llama_set_embeddings_nextnP13llama_contextbb",
            "?llama_set_embeddings_nextn@@YAXPEAUllama_context@@_N1@Z",
        ),
        (_CONTEXT, ctypes.c_bool, ctypes.c_bool),
        (
            "llama_get_embeddings_nextn",
            "_Z26llama_get_embeddings_nextnP13llama_context",
            "?llama_get_embeddings_nextn@@YAPEAMPEAUllama_context@@@Z",
        ),
        (_CONTEXT,),
    )


def layer_input_calls() -> Calls | None:
    """Show what a layer is given: (context, layer, whether), (context, layer); each aborts where a model cannot."""
    return _both(
        (
            "llama_set_embeddings_layer_inp",
            "_Z30llama_set_embeddings_layer_inpP13llama_contextjb",
            "?llama_set_embeddings_layer_inp@@YAXPEAUllama_context@@I_N@Z",
        ),
        (_CONTEXT, ctypes.c_uint32, ctypes.c_bool),
        (
            "llama_get_embeddings_layer_inp",
            "_Z30llama_get_embeddings_layer_inpP13llama_contextj",
            "?llama_get_embeddings_layer_inp@@YAPEAMPEAUllama_context@@I@Z",
        ),
        (_CONTEXT, ctypes.c_uint32),
    )


def _both(
    show_names: Sequence[str], show_types: Sequence[Any], shown_names: Sequence[str], shown_types: Sequence[Any]
) -> Calls | None:
    show, shown = symbol(show_names, None, show_types), symbol(shown_names, NUMBERS, shown_types)
    return None if show is None or shown is None else (show, shown)
