"""The heads that are loaded beside a model."""

from __future__ import annotations

from pathlib import Path

from specchat.heads.file import BadHead, load, path_of, weights_of
from specchat.heads.places import BadName
from specchat.reply import Guess
from speculation.heads.head import Head, Kind
from speculation.llama import LlamaModel


def heads_beside(target: LlamaModel, path: Path, notices: list[str]) -> dict[Guess, Head]:
    """The heads that were trained for a model in a file; what is wrong with others is added to the notices."""
    name, found = target.weights.name, dict[Guess, Head]()
    weights = None
    try:
        places = {kind: place for kind in Kind if (place := path_of(name, kind)).exists()}
    except BadName:
        return found  # no head can have been kept for it
    for kind, place in places.items():
        try:
            weights = weights or weights_of(path)
            head, _ = load(place, weights)
        except BadHead as error:
            notices.append(str(error))
            continue
        except OSError:
            break  # the model cannot be read, of which the engine has its own words
        if head.ids.max() >= target.n_vocab or head.n_features != target.n_hidden:
            notices.append(f"{place.name} does not fit {name}")
        else:
            found[Guess(kind)] = head
    return found
