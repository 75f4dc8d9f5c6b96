"""What `specchat ask --json` says of a reply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specchat.ask import as_json
from specchat.session import Reply
from speculation.types import Step
from tests.specchat.fake_target import model_on, session_on


def test_each_accepted_token_counts_for_the_place_that_it_was_copied_from(tmp_path: Path) -> None:
    session = session_on(model_on(tmp_path), seed=1, max_tokens=4)
    *_, reply = session.reply("what is it?")
    assert isinstance(reply, Reply)
    end = reply.prompt_tokens
    plain = Step("plain", 0, 0, 0, (1,), end, 0.0, 0.0, 0.0)
    drafted = Step("draft", 2, 2, 2, (1, 2, 3), end + 1, 0.0, 0.0, 0.0)
    lengthened = Step("draft", 5, 5, 5, (1, 2, 3, 4, 5, 6), end + 4, 0.0, 0.0, 0.0, sources=(None, None, 3, 4, end))
    copied = Step("lookup", 3, 3, 2, (1, 2, 3), end + 10, 0.0, 0.0, 0.0, source=1)

    found = as_json(session, replace(reply, steps=(plain, drafted, lengthened, copied)))

    assert found["speculation"]["accepted_by_source"] == {"draft": 4, "prompt": 4, "reply": 1}
