"""Settings as the doctor sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.doctor.finding import Verdict
from specchat.doctor.network import ENDPOINT, HUB, states
from specchat.doctor.settings import check_settings, known_endpoints, why_offline


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"SPECCHAT_CONFIG": str(tmp_path / "config.toml"), "SPECCHAT_STATE_DIR": str(tmp_path / "state")}


def put(environ: dict[str, str], text: str) -> None:
    Path(environ["SPECCHAT_CONFIG"]).write_text(text)


def verdicts(environ: dict[str, str], folder: Path) -> list[tuple[Verdict, str]]:
    return [(finding.verdict, finding.said) for finding in check_settings(environ, folder)]


def test_no_file_and_a_good_file_are_ok(environ: dict[str, str], tmp_path: Path) -> None:
    ((verdict, said),) = verdicts(environ, tmp_path)
    assert (verdict, "as built in" in said) == (Verdict.OK, True)

    put(environ, "[guess]\nmode = 'off'\n")

    assert verdicts(environ, tmp_path) == [(Verdict.OK, environ["SPECCHAT_CONFIG"])]


def test_a_wrong_value_an_unknown_key_and_a_wrong_endpoint_are_problems(
    environ: dict[str, str], tmp_path: Path
) -> None:
    put(environ, "[guess]\nmode = 3\n")
    assert [each for each, _ in verdicts(environ, tmp_path)] == [Verdict.PROBLEM]

    put(environ, "modell = 'x'\n[endpoints.work]\nurl = 'no address'\n")

    found = verdicts(environ, tmp_path)
    assert [each for each, _ in found] == [Verdict.PROBLEM, Verdict.PROBLEM]
    assert "modell" in found[0][1]


def test_a_wrong_variable_is_a_problem_and_an_unknown_one_a_note(environ: dict[str, str], tmp_path: Path) -> None:
    environ |= {"SPECCHAT_GUESS_MODE": "perhaps", "SPECCHAT_GUES_MODE": "off"}

    found = verdicts(environ, tmp_path)

    assert [each for each, _ in found] == [Verdict.PROBLEM, Verdict.NOTE]
    assert "SPECCHAT_GUESS_MODE" in found[0][1]


def test_endpoints_of_the_settings_are_named_with_their_hosts_and_none_is_chosen(
    environ: dict[str, str],
) -> None:
    put(environ, "offline = true\n[endpoints.work]\nurl = 'https://models.example/v1'\n")

    found = {state.way.name: state for state in states({}, known_endpoints(environ), why_offline(environ))}

    assert not found[HUB].is_open
    assert environ["SPECCHAT_CONFIG"] in found[HUB].why
    assert not found[ENDPOINT].is_open
    assert "work (models.example)" in found[ENDPOINT].why


def test_a_switch_that_cannot_be_read_shuts_every_way_and_says_why(environ: dict[str, str]) -> None:
    put(environ, "offline = 'perhaps'\n")

    found = {state.way.name: state for state in states({}, [], why_offline(environ))}

    assert not found[HUB].is_open
    assert "offline" in found[HUB].why
