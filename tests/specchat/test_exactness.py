"""A reply under a rule that is not exact says so wherever it is shown, kept or printed; no other does."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from specchat.ask import as_json
from specchat.console import figures
from specchat.context_policy import Policy
from specchat.exactness import INEXACT, follows_exactly
from specchat.history.export import to_markdown
from specchat.history.keeper import Keeper
from specchat.history.restore import to_chat
from specchat.history.store import Store
from specchat.plain import LineChat
from specchat.session import ChatSession, Reply
from specchat.settings import RULES
from specchat.talk import Talk
from speculation.sampling import GREEDY, SamplingConfig
from tests.specchat.fake_target import model_on, session_on

HOT = SamplingConfig(temperature=0.9)


def session(folder: Path, rule: str, sampling: SamplingConfig = HOT) -> ChatSession:
    return session_on(model_on(folder), seed=1, max_tokens=12, rule=rule, sampling=sampling)


def replied(session: ChatSession) -> Reply:
    *_, reply = session.reply("what is it?")
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.parametrize("rule", RULES)
def test_only_typical_above_temperature_0_leaves_the_model(tmp_path: Path, rule: str) -> None:
    assert replied(session(tmp_path, rule)).exact == follows_exactly(rule, 0.9) == (rule != "typical")
    assert replied(session(tmp_path, rule, GREEDY)).exact
    assert follows_exactly(rule, 0)


def test_at_temperature_0_typical_writes_what_the_model_alone_writes(tmp_path: Path) -> None:
    texts = {replied(session(tmp_path, rule, GREEDY)).text for rule in ("coupled", "typical")}

    assert len(texts) == 1


@pytest.mark.parametrize(("rule", "exact"), [("coupled", True), ("typical", False)])
def test_figures_and_json_of_a_reply_say_whether_it_is_exact(tmp_path: Path, rule: str, exact: bool) -> None:
    talking = session(tmp_path, rule)
    reply = replied(talking)

    assert ("not exact" in figures(reply)) is not exact
    assert (as_json(talking, reply)["speculation"]["rule"], as_json(talking, reply)["speculation"]["exact"]) == (
        rule,
        exact,
    )


@pytest.mark.parametrize(("rule", "times"), [("coupled", 0), ("typical", 1)])
def test_line_mode_says_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rule: str, times: int
) -> None:
    lines = iter(["one?", "two?", "/quit"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    talking = session(tmp_path, rule)

    assert LineChat(talking, Namespace(on_full=None), Talk(talking, Keeper())).run() == 0

    said = capsys.readouterr().err
    assert said.count(f"note: {INEXACT}") == times
    assert said.count("not exact") == 2 * times  # the figures of each reply


@pytest.mark.parametrize(("rule", "exact"), [("coupled", True), ("typical", False)])
def test_a_kept_reply_knows_it_and_so_do_its_exports(tmp_path: Path, rule: str, exact: bool) -> None:
    talking, keeper = session(tmp_path, rule), Keeper(tmp_path / "chats.db", lambda text: pytest.fail(text))
    talk = Talk(talking, keeper)
    talk.ask("what is it?", (), Policy.STOP)
    list(talk.answer())
    assert keeper.flush()
    with Store.open(tmp_path / "chats.db") as store:
        record = store.load(store.chats()[0].id)
    keeper.close()

    reply = to_chat(record).turns[-1].reply

    assert reply is not None
    assert reply.exact is exact
    assert (INEXACT in to_markdown(record)) is not exact
