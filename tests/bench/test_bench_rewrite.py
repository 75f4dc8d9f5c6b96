"""What guessing is worth when a file with few edits is rewritten: against plain, the ceiling, and the forecast."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from specchat.kept import Kept
from specchat.loading import EngineOptions, load_engines
from specchat.rewrite.forecast import forecast
from specchat.rewrite.generate import Rewriting
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.source import read_source, source_of
from specchat.session import ChatSession, Guess, ReplySettings
from speculation.llama import EngineLog
from tests.bench.tasks import PARAGRAPHS
from tests.conftest import THREADS, model_file

pytestmark = [pytest.mark.bench, pytest.mark.gguf, pytest.mark.pair]

FILES = Path(__file__).parents[1] / "gguf" / "files"
ROUNDS = 3
ROOT = Path(__file__).parents[2]
# Files of the length that people have, of our own.
LONG = {
    ROOT / "app" / "specchat" / "rewrite" / "prompt.py": "Rename the function `unused_tag` to `free_tag`.",
    ROOT / "speculation" / "cost.py": "Rename the method `observe` to `learn`.",
    ROOT / "speculation" / "theory.py": "Rename the function `best_k` to `best_length`.",
}
SHORT = {
    "stock.py": "Rename the parameter `minimum` of the function `count` to `at_least`.",
    "matrix.c": "Rename the parameter `x` of the function `multiply` to `vector`.",
    "settings.json": 'Rename the key "color" to "colour".',
    "letter.txt": "fix spelling, change nothing else",
    "guide.md": "fix spelling, change nothing else",
}


def test_bench_rewrites_with_few_edits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    prices = Kept(tmp_path / "prices.json")
    options = EngineOptions(n_threads=THREADS)
    engines = load_engines(model_file("qwen2.5-coder-1.5b"), options, EngineLog(), prices=prices)
    assert engines.cost is not None
    sources = {name: (read_source(FILES / name), asked) for name, asked in SHORT.items()}
    essay = "\n\n".join(PARAGRAPHS).replace("receive", "recieve").replace("which", "wich", 1)
    sources["essay.txt"] = (source_of(essay.encode(), "essay.txt"), "fix spelling, change nothing else")
    sources |= {path.name: (read_source(path), asked) for path, asked in LONG.items()}
    ratios: dict[str, float] = {}
    shares: dict[str, float] = {}
    with capsys.disabled():
        print("\nwriting the file, reading left out; the ceiling is reading speed over plain speed")
        for name, (source, asked) in sources.items():
            found: dict[Guess, list[Outcome]] = {Guess.OFF: [], Guess.AUTO: []}
            took: list[float] = []
            foreseen = None
            for turn in range(ROUNDS):
                for guess in list(found)[:: 1 if turn % 2 else -1]:
                    session = ChatSession(engines, ReplySettings())  # which has learned nothing
                    session.guess = guess
                    engines.target.rewind(0)
                    rewriting = Rewriting(session, source, asked)
                    if guess is Guess.AUTO:
                        foreseen = forecast(session, rewriting)
                    started = perf_counter()
                    *_, outcome = rewriting.run()
                    assert isinstance(outcome, Outcome)
                    found[guess].append(outcome)
                    if guess is Guess.AUTO:
                        took.append(perf_counter() - started)
            plain, guessed = found[Guess.OFF], found[Guess.AUTO]
            plain_s, auto_s = (median(each.totals.seconds for each in runs) for runs in (plain, guessed))
            replies = [each.record.replies[0] for each in plain]
            read_token_s = median(reply.read_s / reply.read_tokens for reply in replies)
            ceiling = plain_s / plain[0].totals.emitted / read_token_s
            assert foreseen is not None
            ratio, whole_s = plain_s / auto_s, median(took)
            ratios[name], shares[name] = ratio, ratio / ceiling
            print(
                f"{name:14} {plain[0].totals.emitted:4} tokens, {guessed[0].changed_lines:2} lines changed, "
                f"{guessed[0].totals.tokens_per_step:5.2f} tokens per step, {ratio:5.2f} x plain, ceiling "
                f"{ceiling:5.2f} ({ratio / ceiling:4.2f} of it), took {whole_s:5.1f} s, foreseen "
                f"{foreseen.unchanged_s:5.1f} to {foreseen.changed_s:5.1f} s ({foreseen.unchanged_s / whole_s:4.2f}), "
                f"{'same text' if plain[0].lines == guessed[0].lines else 'other text'}"
            )
        few = [path.name for path in LONG]
        for told, names in ("files of a screen or less", sources.keys() - few), ("longer files", few):
            speed, share = (median(each[name] for name in names) for each in (ratios, shares))
            print(f"{told}: median {speed:.2f} x plain, {share:.2f} of the ceiling")
    engines.close()
