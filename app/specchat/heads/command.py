"""`specchat heads`: train guessers that sit on a model's own states, list them, delete them."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from specchat.console import Bar, end_interrupts, on_interrupt, printable, say, size
from specchat.errors import NotHere, Refusal, UsageError
from specchat.exit_codes import ExitCode
from specchat.folders import heads_folder, history_path
from specchat.headers import read_header
from specchat.heads.collected import Collected
from specchat.heads.file import About, BadHead, load, path_of, save, weights_of
from specchat.heads.matrices import Matrices
from specchat.heads.places import Source, alone_with, checked, models_with_texts, remove_texts
from specchat.heads.training import FEWEST, about, collect, learn, too_few, untrained
from specchat.heads.writing import Replies, Written, frame_of, read_again, room_for
from specchat.history.store import Store
from specchat.machine import decoding_threads
from specchat.opening import harmless
from specchat.shelf import Shelf
from specchat.statistics.past import Reader, last_written
from speculation.heads.fitting import Learner, Recipe
from speculation.heads.head import Kind
from speculation.llama import EngineLog, LlamaWeights, ParallelTexts

_TEXTS = 48  # that grow at once
_ROOM = 400 * _TEXTS  # tokens of all of them; where a template writes much, fewer grow
_MOST_CHATS = 100_000  # replies
_MOST_THREADS = 512


class Stopped(Refusal):
    """The user stopped a training; the text says what is kept."""

    exit_code = ExitCode.INTERRUPTED


class _Wanted:
    """Whether the user still wants it."""

    def __init__(self) -> None:
        self.yes = True

    def stop(self) -> None:
        self.yes = False


@end_interrupts()
def train(args: Namespace) -> int:
    """Train a head and keep it.

    Raises UsageError, Stopped, NotHere, BadName, Busy, Gone, NoFrame, and what finding and loading a model does.
    """
    _check_numbers(args)
    kind, source, shelf = Kind(args.kind), Source.CHATS if args.from_chats else Source.WRITTEN, Shelf()
    path = harmless(shelf, shelf.locate(args.name, agreed=args.yes))
    checked(path.stem)
    _check_model(path)
    matrices = Matrices(path)
    identity = weights_of(path)
    log = EngineLog()
    with alone_with(path.stem):
        weights = LlamaWeights(path, log)
        try:
            collected = Collected(weights.name, source, identity)
            if collected.positions and not args.resume:
                raise UsageError(
                    f"{collected.positions} positions of {weights.name} were collected before: --resume goes on with "
                    f"them, `specchat heads rm --texts {weights.name}` deletes them"
                )
            wanted = _Wanted()
            with on_interrupt(wanted.stop):
                _collect(args, weights, log, collected, wanted)
                return _learn(args, kind, weights, collected, matrices, wanted)
        finally:
            weights.close()


def _check_numbers(args: Namespace) -> None:
    """Raises UsageError for numbers that make no sense."""
    if args.positions < FEWEST:
        raise UsageError(f"--positions {args.positions}: a head learns nothing from fewer than {FEWEST}")
    if args.epochs < 1 or args.seed < 0:
        raise UsageError("--epochs is 1 or more, and --seed 0 or more")
    if args.threads is not None and not 1 <= args.threads <= _MOST_THREADS:
        raise UsageError(f"--threads is {args.threads}; it must be a whole number from 1 to {_MOST_THREADS}")


def _check_model(path: Path) -> None:
    """Raises UsageError, NotHere for a model that no head can be made for or guess for, HeaderError."""
    header = read_header(path)
    if header.split is not None:
        raise UsageError(
            f"{printable(path.name)} is one of {header.split[1]} files of its model, and heads are trained for models "
            "of one: join them with llama-gguf-split --merge"
        )
    if header.shape is not None and not header.shape.can_guess:
        raise NotHere(f"{printable(path.stem)} cannot take tokens back, so no head can guess for it")


class _Plan(NamedTuple):
    """How many texts are read at once, how long each may be, and what they are."""

    n_texts: int
    n_ctx: int
    begin: Callable[[ParallelTexts], Iterator[list[Written]]]


def _of_chats(reader: Reader, collected: Collected, wanted: _Wanted) -> _Plan:
    """The kept replies that were not read yet."""
    known = collected.texts()
    chats = takewhile(lambda _: wanted.yes, _chats(reader, collected.model))
    new = (each for each in chats if np.array(each[1], np.int32).tobytes() not in known)
    return _Plan(1, _ROOM, lambda texts: read_again(texts, new))


def _of_its_own(reader: Reader, collected: Collected, most: int, seed: int) -> _Plan:
    """What the model writes, of which a text may take `most` tokens. Raises NoFrame, TemplateError."""
    frame = frame_of(reader.format.prompt, reader.vocabulary.ends)
    n_ctx = room_for(frame, most)
    rng = np.random.default_rng([seed, collected.rounds])
    return _Plan(min(_TEXTS, max(1, _ROOM // n_ctx)), n_ctx, lambda texts: Replies(texts, frame, rng))


def _collect(args: Namespace, weights: LlamaWeights, log: EngineLog, collected: Collected, wanted: _Wanted) -> None:
    if collected.positions >= args.positions:
        return
    reader = Reader(weights)
    if collected.source is Source.CHATS:
        plan = _of_chats(reader, collected, wanted)
    else:
        plan = _of_its_own(reader, collected, weights.n_ctx_train or _ROOM, args.seed)
    n_threads = args.threads or decoding_threads()
    texts = ParallelTexts(weights, log, n_texts=plan.n_texts, n_ctx=plan.n_ctx, n_threads=n_threads)
    try:
        with Bar("collecting text", "tokens") as bar:
            bar.start(args.positions)

            def progress(done: float) -> bool:
                bar.move_to(done)
                return wanted.yes

            finished = collect(collected, plan.begin(texts), args.positions, progress)
    finally:
        texts.close()
    if not finished or not wanted.yes:
        raise Stopped(f"stopped; {collected.positions} positions are kept, and --resume goes on with them")


def _learn(
    args: Namespace, kind: Kind, weights: LlamaWeights, collected: Collected, matrices: Matrices, wanted: _Wanted
) -> int:
    examples, recipe = collected.examples(), Recipe(epochs=args.epochs)
    if lacking := too_few(examples, recipe, weights.name):
        if collected.source is Source.CHATS:
            collected.remove()  # or their words would stay there for nothing
            raise NotHere(f"the kept chats have {lacking}: chat more, or leave --from-chats out")
        raise NotHere(f"{lacking}: --resume with more --positions goes on")
    head, width = untrained(kind, examples, matrices, weights.size_bytes, weights.vocabulary.n_tokens, args.seed)
    learner = Learner(head, examples, recipe, args.seed)
    plan = f"{kind} {len(examples)} {args.epochs} {args.seed} {width} {len(head.ids)}"
    with Bar(f"learning, {len(examples)} positions", "parts") as bar:
        bar.start(1)
        if not collected.take_up(kind, plan, learner) and wanted.yes:
            learner.solve()

        def progress(done: float) -> bool:
            bar.move_to(done)
            return wanted.yes

        finished = wanted.yes and learn(learner, progress, lambda: collected.note(kind, plan, learner))
    if not finished:
        raise Stopped(f"stopped at {learner.step / learner.steps:.0%}; --resume goes on from there")
    told = about(learner.present, width, examples, recipe, weights.name, collected.weights, tied=matrices.are_tied)
    path = save(learner.present, told)
    if collected.source is Source.CHATS:
        collected.remove()  # or deleting a chat would leave its words there
    else:
        collected.forget_learned(kind)
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
    """Delete heads and what was collected for them, or that alone. Raises BadName, NotHere, Busy."""
    names = list(dict.fromkeys(args.names))
    there = models_with_texts()
    if not args.texts:
        there |= {path.name.removesuffix(f".{kind}.npz") for kind in Kind for path in _files(kind)}
    for name in names:
        if checked(name) not in there:
            what, way = ("text", "paths texts") if args.texts else ("head", "heads list")
            raise NotHere(f"no {what} of {printable(name)} is here; see: specchat {way}")
    with ExitStack() as stack:
        for name in names:  # all of them before anything is deleted
            stack.enter_context(alone_with(name))
        for name in names:
            remove_texts(name)
            if args.texts:
                say(f"the text that was collected for {name} is deleted")
                continue
            for kind in Kind:
                path_of(name, kind).unlink(missing_ok=True)
            say(f"the heads of {name} are deleted")
    return 0


def _files(kind: Kind) -> Iterator[Path]:
    return heads_folder().glob(f"*.{kind}.npz")


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
