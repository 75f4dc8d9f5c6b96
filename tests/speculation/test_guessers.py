"""Each guesser against a slow, obvious version of itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import rule_named
from speculation.context import Bookmark, Context, recent
from speculation.guessers.base import Chains
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.sampling import GREEDY, SamplingConfig
from speculation.testing import HistoryModel, ScriptedGuesser
from speculation.types import Draft
from speculation.vocabulary import VocabularyFacts, why_incompatible
from tests.speculation.examples import examples

RULE = rule_named("coupled", 0)
texts = st.lists(st.integers(0, 3), min_size=1, max_size=60)


def longest_most_recent(text: list[int]) -> tuple[int, int]:
    """(match, index behind it) by trying everything."""
    for length in range(len(text) - 1, 0, -1):
        suffix = text[-length:]
        for start in range(len(text) - length - 1, -1, -1):
            if text[start : start + length] == suffix:
                return length, start + length
    return 0, -1


def copied(text: list[int], source: int, k: int) -> list[int]:
    grown = list(text)
    for i in range(k):
        grown.append(grown[source + i])
    return grown[len(text) :]


@given(text=texts, k=st.integers(1, 20))
@examples(400)
def test_lookup_takes_the_longest_match_at_its_most_recent_place(text: list[int], k: int) -> None:
    match, source = longest_most_recent(text)

    draft = PromptLookup().propose(Context(text), k, RULE)

    assert draft.match == match
    if match:
        assert draft.source == source
        assert list(draft.tokens) == copied(text, source, k)
    else:
        assert draft.tokens == ()


@given(edits=st.lists(st.tuples(st.integers(0, 40), texts), min_size=1, max_size=6), k=st.integers(1, 8))
@examples(200)
def test_lookup_follows_a_context_that_is_cut_and_grows_again(edits: list[tuple[int, list[int]]], k: int) -> None:
    context, guesser = Context(), PromptLookup()

    for keep, more in edits:
        context.truncate(keep)
        context.extend(more)
        warm = guesser.propose(context, k, RULE)

        fresh = PromptLookup().propose(Context(context.tokens.tolist()), k, RULE)
        assert (warm.tokens, warm.match, warm.source) == (fresh.tokens, fresh.match, fresh.source)


def test_a_run_of_one_token_is_indexed_in_linear_time_and_copied_on() -> None:
    context = Context([7] * 20_000)  # quadratic work would take minutes

    draft = PromptLookup().propose(context, 5, RULE)

    assert draft.tokens == (7, 7, 7, 7, 7)
    assert draft.match == 19_999


def test_a_match_that_is_too_short_is_not_offered() -> None:
    context = Context([1, 2, 3, 1, 2])

    assert PromptLookup(min_match=3).candidates(context, 4) == ()
    assert PromptLookup(min_match=2).candidates(context, 4)[0].tokens == (3, 1, 2, 3)


@given(first=texts, keep=st.integers(0, 60), more=texts)
def test_a_bookmark_knows_how_much_still_stands(first: list[int], keep: int, more: list[int]) -> None:
    context = Context(first)
    mark = context.bookmark()

    context.truncate(keep)
    context.extend(more)

    assert context.unchanged_since(mark) == min(len(first), keep)
    assert context.unchanged_since(Bookmark()) == 0
    assert context.tokens.tolist() == first[:keep] + more


@given(text=texts, drafted=st.lists(st.integers(0, 3), max_size=8), n=st.integers(-1, 70))
def test_the_penalty_window_counts_the_draft(text: list[int], drafted: list[int], n: int) -> None:
    everything = text + drafted

    expected = everything if n < 0 else everything[max(0, len(everything) - n) :]

    assert recent(Context(text), drafted, n).tolist() == expected


def test_a_draft_model_reads_only_what_it_lacks() -> None:
    model = HistoryModel(6, 1)
    guesser, context = DraftModel(model, GREEDY, 6), Context([1, 2, 3])
    guesser.propose(context, 4, RULE)
    assert model.evaluated == 3 + 3  # the context, and all drafted tokens but the last

    context.extend([*guesser.propose(context, 2, RULE).tokens, 5])
    before = model.evaluated
    guesser.propose(context, 1, RULE)

    assert model.evaluated - before <= 2


def test_ids_beyond_the_smaller_vocabulary_are_never_proposed() -> None:
    guesser = DraftModel(HistoryModel(9, 1, spread=5.0), SamplingConfig(temperature=1.5, top_k=0), n_target_vocab=4)
    context = Context([0, 1])

    for seed in range(60):
        drafted = guesser.propose(context, 6, rule_named("coupled", seed)).tokens
        assert len(drafted) == 6
        assert max(drafted) < 4


def test_a_context_with_ids_the_draft_model_lacks_gets_no_guess() -> None:
    guesser = DraftModel(HistoryModel(4, 1), GREEDY, n_target_vocab=9)

    assert guesser.propose(Context([1, 8]), 3, RULE).tokens == ()


def test_a_draft_model_with_a_shorter_context_sits_out_instead_of_failing() -> None:
    guesser = DraftModel(HistoryModel(6, 1, n_ctx=8), GREEDY, 6)

    assert len(guesser.propose(Context([1] * 6), 5, RULE).tokens) == 2
    assert guesser.propose(Context([1] * 9), 5, RULE).tokens == ()


@pytest.mark.parametrize("sampling", [GREEDY, SamplingConfig(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)])
def test_drafting_stops_where_the_model_is_not_sure(sampling: SamplingConfig) -> None:
    sure = DraftModel(HistoryModel(6, 1), sampling, 6, min_p=0.7)
    keen = DraftModel(HistoryModel(6, 1), sampling, 6)
    context = Context([1, 2, 3])

    stopped, all_of_it = sure.propose(context, 8, RULE).tokens, keen.propose(context, 8, RULE).tokens

    assert 1 <= len(stopped) < len(all_of_it) == 8
    assert all_of_it[: len(stopped)] == stopped


def facts(name: str, texts: list[str], kind: str = "BPE", bos: int | None = None) -> VocabularyFacts:
    return VocabularyFacts(name, kind, len(texts), bos, None, lambda token: texts[token].encode())


BASE = [f"t{i}" for i in range(300)]


def edited(at: int, text: str) -> list[str]:
    return [*BASE[:at], text, *BASE[at + 1 :]]


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (facts("d", BASE), None),
        (facts("d", BASE + ["[PAD]"] * 128), None),
        (facts("d", BASE[:-128]), None),
        (facts("d", BASE + ["[PAD]"] * 129), "it has 429 tokens, the target 300"),
        (facts("d", edited(139, "odd")), "token 139 is 'odd' in it and 't139' in the target"),
        (facts("d", edited(4, "odd")), None),
        (facts("d", BASE, kind="SPM"), "its tokenizer is SPM, the target's is BPE"),
        (facts("d", BASE, bos=1), "it adds token 1 at the begin of a text, the target adds no token"),
    ],
)
def test_a_draft_fits_or_the_reason_names_the_first_difference(draft: VocabularyFacts, reason: str | None) -> None:
    said = why_incompatible(facts("t", BASE), draft)

    if reason is None:
        assert said is None
    else:
        assert said is not None
        assert reason in said
        assert said.startswith("d cannot draft for t: ")


def test_context_tokens_cannot_be_written_through_the_view() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Context([1, 2]).tokens[0] = np.int32(5)


def chains(drafts: Sequence[Draft]) -> list[Draft]:
    """Without the tree, whose order depends on what was learned."""
    return [draft for draft in drafts if draft.sources is None]


@given(edits=st.lists(st.tuples(st.integers(0, 40), texts), min_size=1, max_size=6), k=st.integers(1, 8))
@examples(200)
def test_what_a_warm_lookup_offers_a_fresh_one_would_up_to_where_either_gives_up(
    edits: list[tuple[int, list[int]]], k: int
) -> None:
    context, guesser = Context(), PromptLookup()

    for keep, more in edits:
        context.truncate(keep)
        context.extend(more)
        warm = chains(guesser.candidates(context, k))

        fresh = chains(PromptLookup().candidates(Context(context.tokens.tolist()), k))
        assert [draft.source for draft in warm] == [draft.source for draft in fresh]
        for ours, theirs in zip(warm, fresh, strict=True):
            shorter = min(len(ours.tokens), len(theirs.tokens))
            assert ours.tokens[:shorter] == theirs.tokens[:shorter]
            assert len(ours.chances) == len(ours.tokens)


def offered(context: Context, k: int) -> tuple[int, ...]:
    return PromptLookup().candidates(context, k)[0].tokens


ORIGINAL = [*range(100, 140)]


def test_a_copy_that_was_asked_for_is_offered_before_any_of_it_was_written() -> None:
    context = Context(range(100))
    context.given = 100
    lookup = PromptLookup()
    assert lookup.candidates(context, 8) == ()

    lookup = PromptLookup()
    lookup.expect_copy(40)
    (draft,) = lookup.candidates(context, 8)
    assert draft.tokens == tuple(range(40, 48))
    assert min(draft.chances) > 0.9

    late = PromptLookup()
    context.extend([7])  # a reply that has begun already is not begun anew
    late.expect_copy(40)
    assert {token for draft in late.candidates(context, 1) for token in draft.tokens} == {8}


def test_a_copy_of_what_stands_behind_the_end_is_none_and_spoils_no_other() -> None:
    context = Context(range(100))
    context.given = 100
    lookup = PromptLookup()
    lookup.expect_copy(100)
    assert lookup.candidates(context, 8) == ()

    context.extend([7, 8])

    assert lookup.candidates(context, 3)[0].tokens == (9, 10, 11)


def test_what_a_chain_of_a_guesser_shows_is_the_trunk_of_what_the_guesser_shows() -> None:
    class Shows(ScriptedGuesser):
        def candidates(self, context: Context, k: int, least: float = 0.0) -> tuple[Draft, ...]:
            return (Draft("x", (1, 2, 3), parents=(-1, -1, 0)),)

    (draft,) = Chains(Shows([])).candidates(Context([1]), 3)

    assert (draft.tokens, draft.parents) == ((1, 3), None)


def test_a_draft_model_shows_nothing_for_free_and_follows_a_change_of_sampling() -> None:
    guesser = DraftModel(HistoryModel(6, 1), SamplingConfig(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0), 6)
    context = Context([1, 2, 3])
    assert guesser.candidates(context, 4) == ()
    drawn = {guesser.propose(context, 1, rule_named("coupled", seed)).tokens for seed in range(40)}

    guesser.sampling = GREEDY

    assert guesser.sampling == GREEDY
    assert {guesser.propose(context, 1, rule_named("coupled", seed)).tokens for seed in range(40)} < drawn
    assert 0.0 < guesser.confidence.chance(0.9) <= 1.0


def test_a_copy_is_offered_again_right_behind_a_replaced_token() -> None:
    assert offered(Context([*ORIGINAL, 1, *ORIGINAL[:10], 2]), 4) == tuple(ORIGINAL[11:15])


def test_a_copy_is_found_again_behind_an_insertion_and_an_omission() -> None:
    assert offered(Context([*ORIGINAL, 1, *ORIGINAL[:10], 2, 3, 4, ORIGINAL[10]]), 4) == tuple(ORIGINAL[11:15])
    assert offered(Context([*ORIGINAL, 1, *ORIGINAL[:10], ORIGINAL[15]]), 4) == tuple(ORIGINAL[16:20])


def test_an_edit_that_happened_twice_is_applied_to_the_copy() -> None:
    renamed, name, new = [], 7, (8, 9)
    original = []
    for block in range(3):
        words = [*range(100 + 10 * block, 108 + 10 * block)]
        original += [*words, name]
        renamed += [*words, *new]
    written = len(renamed) - 6  # into the third block, in front of the name

    tokens = offered(Context([*original, 1, 2, 3, *renamed[:written]]), 6)

    assert tokens == tuple(renamed[written:])
