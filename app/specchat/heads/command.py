"""`specchat heads`: train guessers that sit on a model's own states, list them, delete them."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from specchat.console import Bar, on_interrupt, printable, say, size
from specchat.errors import NotHere, Refusal, UsageError
from specchat.exit_codes import ExitCode
from specchat.folders import heads_folder, history_path, texts_folder
from specchat.heads.collected import Collected
from specchat.heads.file import About, BadHead, load, path_of, save, weights_of
from specchat.heads.matrices import Matrices
from specchat.heads.training import about, collect, learn, untrained
from specchat.heads.writing import LENGTH, Replies, Written, frame_of, read_again
from specchat.history.store import Store
from specchat.machine import decoding_threads
from specchat.opening import harmless
from specchat.shelf import Shelf
from specchat.statistics.past import Reader, last_written
from speculation.heads.fitting import Learner, Recipe
from speculation.heads.head import Kind
from speculation.llama import EngineLog, LlamaWeights, ParallelTexts

_FEWEST = 1000  # positions
_TEXTS = 48  # that grow at once
_MOST_CHATS = 100_000  # replies
_OF_CHATS = ".chats"  # behind a model's name, for what was collected from chats: it never mixes with other text


class Stopped(Refusal):
    """The user stopped a training; the text says what is kept."""

    exit_code = ExitCode.INTERRUPTED


class _Wanted:
    """Whether the user still wants it."""

    def __init__(self) -> None:
        self.yes = True

    def stop(self) -> None:
        self.yes = False


def train(args: Namespace) -> int:
    """Train a head and keep it. Raises UsageError, Stopped, NotHere and what loading does."""
    if args.positions < _FEWEST:
        raise UsageError(f"--positions {args.positions}: a head learns nothing from fewer than {_FEWEST}")
    if args.epochs < 1 or args.seed < 0:
        raise UsageError("--epochs is 1 or more, and --seed 0 or more")
    kind, shelf = Kind(args.kind), Shelf()
    path = harmless(shelf, shelf.locate(args.name, agreed=args.yes))
    matrices = Matrices(path)
    identity = weights_of(path)
    log = EngineLog()
    weights = LlamaWeights(path, log)
    try:
        collected = Collected(weights.name + _OF_CHATS * args.from_chats, identity)
        if collected.positions and not args.resume:
            raise UsageError(
                f"{collected.positions} positions of {weights.name} were collected before: --resume goes on with "
                f"them, `specchat heads rm {weights.name}` deletes them"
            )
        wanted = _Wanted()
        with on_interrupt(wanted.stop):
            _collect(args, shelf, weights, log, collected, wanted)
            return _learn(args, kind, weights, collected, matrices, identity, wanted)
    finally:
        weights.close()


def _collect(
    args: Namespace, shelf: Shelf, weights: LlamaWeights, log: EngineLog, collected: Collected, wanted: _Wanted
) -> None:
    if collected.positions >= args.positions:
        return
    n_texts, n_ctx = (1, _TEXTS * LENGTH) if args.from_chats else (_TEXTS, LENGTH)
    n_threads = args.threads or decoding_threads()
    texts = ParallelTexts(weights, log, n_texts=n_texts, n_ctx=n_ctx, n_threads=n_threads)
    reader = Reader(weights)
    source: Iterator[list[Written]]
    try:
        if args.from_chats:
            known = collected.texts()
            chats = _chats(reader, weights.name)
            source = read_again(texts, (each for each in chats if np.array(each[1], np.int32).tobytes() not in known))
        else:
            frame = frame_of(reader.format.prompt, weights.vocabulary.ends)
            source = Replies(texts, frame, np.random.default_rng([args.seed, collected.rounds]))
        with Bar("collecting text", "tokens") as bar:
            bar.start(args.positions)

            def progress(done: float) -> bool:
                bar.move_to(done)
                return wanted.yes

            finished = collect(collected, source, args.positions, progress)
    finally:
        texts.close()
    if not finished:
        raise Stopped(f"stopped; {collected.positions} positions are kept, and --resume goes on with them")
    if args.from_chats and collected.positions < _FEWEST:
        raise NotHere(f"the kept chats have {collected.positions} tokens of {weights.name}; {_FEWEST} are too few")


def _learn(
    args: Namespace,
    kind: Kind,
    weights: LlamaWeights,
    collected: Collected,
    matrices: Matrices,
    identity: str,
    wanted: _Wanted,
) -> int:
    examples = collected.examples()
    recipe = Recipe(epochs=args.epochs)
    head, width = untrained(kind, examples, matrices, weights.size_bytes, weights.vocabulary.n_tokens, args.seed)
    learner = Learner(head, examples, recipe, args.seed)
    plan = f"{kind} {len(examples)} {args.epochs} {args.seed} {width} {len(head.ids)}"
    with Bar(f"learning, {len(examples)} positions", "parts") as bar:
        bar.start(1)
        if not collected.take_up(kind, plan, learner):
            learner.solve()

        def progress(done: float) -> bool:
            bar.move_to(done)
            return wanted.yes

        finished = learn(learner, progress)
    collected.note(kind, plan, learner)
    if not finished:
        raise Stopped(f"stopped at {learner.step / learner.steps:.0%}; --resume goes on from there")
    told = about(learner.present, width, examples, recipe, weights.name, identity, tied=matrices.are_tied)
    path = save(learner.present, told)
    if args.from_chats:
        collected.remove()  # or deleting a chat would leave its words there
    print(path)
    say(f"{_words(told)}; {size(path.stat().st_size)}")
    return 0


def list_heads(args: Namespace) -> int:
    """A line a head, or JSON."""
    found = list(_all())
    if args.json:
        json.dump(
            [
                {"path": str(path), "problem": str(each)}
                if isinstance(each, BadHead)
                else {"path": str(path), **asdict(each)}
                for path, each in found
            ],
            sys.stdout,
            indent=2,
        )
        print()
        return 0
    for _, each in found:
        print(printable(str(each) if isinstance(each, BadHead) else f"{each.model}  {_words(each)}"))
    if not found:
        say("no heads are here; `specchat heads train MODEL` makes one")
    return 0


def remove_heads(args: Namespace) -> int:
    """Delete heads and what was collected for them."""
    there = {path.name.removesuffix(f".{kind}.npz") for kind in Kind for path in heads_folder().glob(f"*.{kind}.npz")}
    collected = texts_folder()
    there |= {path.name.removesuffix(_OF_CHATS) for path in collected.glob("*") if path.is_dir()}
    for name in args.names:
        if name not in there:
            raise NotHere(f"no head of {printable(name)} is here; see: specchat heads list")
    for name in args.names:
        for kind in Kind:
            path_of(name, kind).unlink(missing_ok=True)
        for folder in (name, name + _OF_CHATS):
            if (collected / folder).is_dir():
                Collected(folder, "").remove()
        say(f"the heads of {name} are deleted")
    return 0


def _all() -> Iterator[tuple[Path, About | BadHead]]:
    for path in sorted(heads_folder().glob("*.npz")):
        try:
            yield path, load(path)[1]
        except BadHead as error:
            yield path, error


def _chats(reader: Reader, model: str) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    with Store.open(history_path()) as store:
        for each in last_written(store, _MOST_CHATS, model=model):
            if prompt := reader.prompt(each):
                yield prompt, each.tokens


def _words(told: About) -> str:
    right = ", ".join(f"{each:.0%}" for each in told.accuracy)
    return (
        f"{told.kind}: right in {right} of new text, 1 to {len(told.accuracy)} tokens ahead; {told.positions} positions"
    )
