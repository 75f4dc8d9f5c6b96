"""What servers say of a reply: literal answers in, figures out.

The answers of llama-server are as one sent them to our tests; the others are written after documentation and source.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.remote.figures import (
    ServerFigures,
    doubt,
    from_counters,
    merged,
    or_none_drafted,
    read_counters,
    read_figures,
)
from specchat.remote.telling import NOT_REPORTED, as_json, figures_line, figures_page, rewrite_line, summed
from specchat.reply import Reply
from speculation.stats import Totals
from speculation.types import Finish

LLAMA: dict[str, Any] = {
    "choices": [],
    "usage": {
        "completion_tokens": 16,
        "prompt_tokens": 49,
        "total_tokens": 65,
        "prompt_tokens_details": {"cached_tokens": 0},
    },
    "timings": {
        "cache_n": 0,
        "prompt_n": 49,
        "prompt_ms": 679.537,
        "prompt_per_token_ms": 13.868102040816327,
        "prompt_per_second": 72.10792054001475,
        "predicted_n": 16,
        "predicted_ms": 524.118,
        "predicted_per_token_ms": 34.9412,
        "predicted_per_second": 28.61950934713175,
        "draft_n": 16,
        "draft_n_accepted": 10,
    },
}
VLLM: dict[str, Any] = {
    "choices": [],
    "usage": {"prompt_tokens": 120, "completion_tokens": 53, "total_tokens": 173},
    "metrics": {
        "speculative_decoding": {
            "mean_acceptance_length": 1.2325581395348837,
            "draft_acceptance_rate": 0.07751937984496124,
            "acceptance_histogram": [39, 1, 0, 3],
            "num_spec_steps": 43,
            "num_accepted_draft_tokens": 10,
            "num_draft_tokens": 129,
            "num_spec_tokens": 3,
        }
    },
}
SGLANG_OLD = {"choices": [{"index": 0, "meta_info": {"completion_tokens": 200, "spec_verify_ct": 50}}]}
SGLANG = {
    "usage": {"prompt_tokens": 171, "completion_tokens": 200},
    "metadata": {"weight_version": "default"},
    "sglext": {
        "spec_tokens_details": {
            "spec_accept_rate": 0.0117,
            "spec_accept_length": 1.0638,
            "spec_verify_ct": 188,
            "spec_num_correct_drafts": 11,
            "spec_num_proposed_drafts": 940,
        }
    },
}
SGLANG_META = {
    "usage": {"completion_tokens": 200},
    "choices": [{"meta_info": {"spec_verify_ct": 188, "spec_accept_token_num": 11, "spec_draft_token_num": 940}}],
}
LM_STUDIO = {
    "usage": {"prompt_tokens": 24, "completion_tokens": 53, "total_tokens": 77},
    "stats": {
        "tokens_per_second": 51.43,
        "time_to_first_token": 0.111,
        "generation_time": 0.954,
        "stop_reason": "eosFound",
        "draft_model": "small",
        "total_draft_tokens_count": 50,
        "accepted_draft_tokens_count": 30,
        "rejected_draft_tokens_count": 20,
        "ignored_draft_tokens_count": 0,
    },
}
OPENAI = {
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 90,
        "completion_tokens_details": {"accepted_prediction_tokens": 60, "rejected_prediction_tokens": 8},
    }
}


def counts(figures: ServerFigures) -> tuple[int | None, int | None, int | None]:
    return figures.output_tokens, figures.drafted, figures.accepted


@pytest.mark.parametrize(
    ("answer", "wanted", "per_step"),
    [
        (LLAMA, (16, 16, 10), 16 / 6),
        (VLLM, (53, 129, 10), 53 / 43),
        (SGLANG, (200, 940, 11), 200 / 189),
        (SGLANG_META, (200, 940, 11), 200 / 189),
        (LM_STUDIO, (53, 50, 30), 53 / 23),
        (OPENAI, (90, None, None), None),
    ],
)
def test_each_server_is_read_by_the_names_it_uses(
    answer: dict[str, Any], wanted: tuple[int | None, ...], per_step: float | None
) -> None:
    figures = read_figures(answer)
    assert counts(figures) == wanted
    assert figures.tokens_per_step == (None if per_step is None else pytest.approx(per_step))


def test_an_older_sglang_that_counts_only_steps_gives_tokens_per_step_and_no_acceptance() -> None:
    figures = merged(read_figures(SGLANG_OLD), read_figures({"usage": {"completion_tokens": 200}}))
    assert (figures.tokens_per_step, figures.draft_acceptance) == (4.0, None)


def test_seconds_and_models_are_taken_where_they_are_told() -> None:
    llama, studio, openai = (read_figures(answer) for answer in (LLAMA, LM_STUDIO, OPENAI))
    assert llama.read_s == pytest.approx(0.679537)
    assert llama.write_s == pytest.approx(0.524118)
    assert llama.tokens_per_s == pytest.approx(16 / 0.524118)
    assert (studio.draft_model, studio.write_s) == ("small", 0.954)
    assert (openai.prediction_accepted, openai.prediction_rejected) == (60, 8)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 100) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["draft_n", "draft_n_accepted", "predicted_n", "predicted_ms", "spec_verify_ct", "meta_info"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["usage", "timings", "stats", "metrics", "choices", "sglext", "meta_info"]), VALUES, max_size=4
    )
)
def test_whatever_stands_in_an_answer_no_figure_is_impossible(answer: dict[str, Any]) -> None:
    figures = read_figures(answer)
    assert figures.tokens_per_step is None or figures.tokens_per_step >= 1.0
    assert figures.draft_acceptance is None or 0.0 <= figures.draft_acceptance <= 1.0
    assert figures.tokens_per_s is None or figures.tokens_per_s >= 0.0


def test_counts_that_contradict_each_other_are_not_reported() -> None:
    assert counts(read_figures({"timings": {"predicted_n": 9, "draft_n": 3, "draft_n_accepted": 4}})) == (9, None, None)


def test_counters_are_summed_over_engines_and_read_by_their_names() -> None:
    page = (
        "# HELP vllm:spec_decode_num_draft_tokens_total Number of draft tokens.\n"
        'vllm:spec_decode_num_draft_tokens_total{engine="0"} 1.2e+02\n'
        'vllm:spec_decode_num_draft_tokens_total{engine="1"} 3.0 1700000000\n'
        'vllm:spec_decode_num_accepted_tokens_total{engine="0"} 7.0\n'
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 99.0\n'
        "vllm:num_requests_running 0.0\nvllm:num_requests_running NaNsense\nother_request_success_total 4\n"
    )
    assert read_counters(page) == {
        "spec_decode_num_draft_tokens": 123.0,
        "spec_decode_num_accepted_tokens": 7.0,
        "num_requests_running": 0.0,
    }


BEFORE = {
    "spec_decode_num_draft_tokens": 10.0,
    "spec_decode_num_accepted_tokens": 5.0,
    "request_success": 3.0,
    "num_requests_running": 0.0,
}


def test_the_difference_of_counters_is_one_replys_only_where_one_request_ran() -> None:
    after = {**BEFORE, "spec_decode_num_draft_tokens": 30.0, "spec_decode_num_accepted_tokens": 9.0}
    assert counts(from_counters(BEFORE, {**after, "request_success": 4.0})) == (None, 20, 4)
    assert from_counters(BEFORE, {**after, "request_success": 5.0}) == ServerFigures()
    assert from_counters(BEFORE, {**after, "request_success": 4.0, "num_requests_running": 1.0}) == ServerFigures()
    assert from_counters({**BEFORE, "num_requests_running": 1.0}, {**after, "request_success": 4.0}) == ServerFigures()
    assert from_counters(BEFORE, {}) == ServerFigures()


def test_a_llama_server_that_says_whether_it_guesses_left_out_a_zero() -> None:
    figures = read_figures({"timings": {"predicted_n": 40, "predicted_ms": 1000.0}})
    assert or_none_drafted(None, figures).drafted is None
    for claims in (True, False):
        assert or_none_drafted(claims, figures).tokens_per_step == 1.0
    assert or_none_drafted(True, ServerFigures()).drafted is None
    assert or_none_drafted(True, read_figures(LLAMA)).drafted == 16


@pytest.mark.parametrize(
    ("claims", "figures", "said"),
    [
        (False, ServerFigures(output_tokens=40, drafted=16, accepted=14), "guesses nothing, but 14 of 16"),
        (False, ServerFigures(output_tokens=40, accepted=14), "guesses nothing, but 14 guesses"),
        (False, ServerFigures(output_tokens=40, drafted=0, accepted=0), ""),
        (False, ServerFigures(output_tokens=40), ""),
        (True, ServerFigures(output_tokens=40, drafted=16, accepted=0), "none of its 16 guesses was accepted"),
        (True, ServerFigures(output_tokens=40), "reports no guess for this reply"),
        (True, ServerFigures(output_tokens=40, drafted=0, accepted=0), "reports no guess for this reply"),
        (True, ServerFigures(output_tokens=8), ""),
        (True, ServerFigures(), ""),
        (True, ServerFigures(output_tokens=40, drafted=16, accepted=1), ""),
        (None, ServerFigures(output_tokens=40, drafted=16, accepted=0), ""),
    ],
)
def test_a_warning_comes_where_the_reply_belies_the_server_and_nowhere_else(
    claims: bool | None, figures: ServerFigures, said: str
) -> None:
    found = doubt(claims, figures)
    assert bool(found) == bool(said)
    assert said in found


def reply_of(figures: ServerFigures) -> Reply:
    return Reply("text", Finish.END, 7, Totals(), (), 49, 9, 40, 0.5, 0.25, None, figures)


def test_what_no_server_reported_is_said_to_be_so_and_never_a_number() -> None:
    nothing = reply_of(ServerFigures())
    assert figures_line(nothing) == "tokens not reported · guesses not reported · seed 7 · prompt not reported"
    page = "\n".join(figures_page(nothing, None))
    assert page.count(NOT_REPORTED) == 11
    found = as_json([nothing])
    assert found["seconds"] == {"prefill": None, "decode": None, "decode_seen": None}
    assert {found[name] for name in ("steps", "drafted", "accepted", "tokens_per_step", "speedup")} == {None}


def test_a_figure_that_one_reply_lacks_is_not_known_of_all() -> None:
    full = read_figures(LLAMA)
    assert summed([reply_of(full), reply_of(full)]).accepted == 20
    assert summed([reply_of(full), reply_of(ServerFigures())]).accepted is None
    assert summed([]) == ServerFigures()


def test_a_rewrite_is_never_said_to_be_so_many_times_faster() -> None:
    line = rewrite_line([reply_of(read_figures(LLAMA))])
    assert "accepted 10 of 16 drafted (62%)" in line
    assert "x" not in line.replace("text", "")


def test_speed_is_the_servers_where_it_says_so_and_else_as_seen_here() -> None:
    assert "tok/s by the server" in figures_line(reply_of(read_figures(LLAMA)))
    seen = ServerFigures(output_tokens=21, elapsed_s=2.0)
    assert "21 tokens · 10.0 tok/s as seen here" in figures_line(reply_of(seen))
