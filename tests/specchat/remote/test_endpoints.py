"""Endpoints: only of the user's own settings, with errors that show no key."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.errors import UsageError
from specchat.settings.endpoints import (
    Endpoint,
    api_key,
    checked_url,
    endpoint_problems,
    find_endpoint,
    load_endpoints,
    read_endpoints,
)
from specchat.settings.file import SettingsFile
from specchat.settings.text import SettingsError, SettingsText

GOOD = """\
[guess]
mode = "auto"

[endpoints.work]
url = "https://llm.example:8000/v1/"
api_key_env = "WORK_KEY"
model = "big"
prediction = true

[endpoints."at home"]
url = "http://localhost:8080"
"""


def read(text: str) -> dict[str, Endpoint]:
    return read_endpoints(SettingsText.read(Path("config.toml"), text))


def test_endpoints_are_read_beside_all_other_settings() -> None:
    found = read(GOOD)
    assert found == {
        "work": Endpoint("https://llm.example:8000/v1", "work", "big", "WORK_KEY", True),
        "at home": Endpoint("http://localhost:8080/v1", "at home"),
    }
    assert read("") == {}


def test_no_file_has_no_endpoints(tmp_path: Path) -> None:
    assert load_endpoints(SettingsFile(tmp_path / "none.toml")) == {}
    (tmp_path / "some.toml").write_text(GOOD)
    assert list(load_endpoints(SettingsFile(tmp_path / "some.toml"))) == ["work", "at home"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[endpoints.work]\nurl = 3\n", "line 2: endpoints.work.url: must be a text"),
        ("[endpoints.work]\nmodel = 'm'\n", "line 1: endpoints.work.url: is missing"),
        ("[endpoints.work]\nurl = 'ftp://x'\n", "line 2: endpoints.work.url: must be http://HOST:PORT"),
        ("[endpoints.work]\nurl = 'http://x'\nurI = 'y'\n", "line 3: endpoints.work.urI: unknown key"),
        ("[endpoints.work]\nurl = 'http://x'\nprediction = 'yes'\n", "line 3: endpoints.work.prediction: must be true"),
        ("[endpoints]\nwork = 'http://x'\n", "line 2: endpoints.work: must be a table"),
        ("endpoints = 3\n", "line 1: endpoints: must be a table"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_key(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(text)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("key", ["sk-proj-abc", "hf_AbCdEf", "0123", ""])
def test_a_key_in_the_place_of_a_variables_name_is_not_repeated(key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(f"[endpoints.work]\nurl = 'http://x'\napi_key_env = '{key}'\n")
    assert "must be the name of an environment variable" in str(caught.value)
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize("url", ["http://me:pa55word@x/v1", "https://:pa55word@x", "http://pa55word@x:1"])
def test_a_password_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="without a name, a password") as caught:
        checked_url(url)
    assert "pa55word" not in str(caught.value)
    with pytest.raises(UsageError) as usage:
        find_endpoint(url, {})
    assert "pa55word" not in str(usage.value)


def test_a_key_behind_an_address_or_a_password_without_a_scheme_is_not_repeated() -> None:
    for asked in ("http://x/v1?key=pa55word", "http://x/v1#pa55word", "me:pa55word@x"):
        with pytest.raises(UsageError, match="must be") as usage:
            find_endpoint(asked, {})
        assert "pa55word" not in str(usage.value)


def test_an_address_without_its_scheme_says_how_one_begins() -> None:
    for asked in ("127.0.0.1:8080", "localhost:8080/v1", "llm.example"):
        with pytest.raises(UsageError, match="an address begins with http://"):
            find_endpoint(asked, {})


def test_each_wrong_endpoint_has_its_line() -> None:
    text = "[endpoints]\na = 3\n[endpoints.b]\nurl = 'http://x'\n[endpoints.c]\nurl = 'ftp://x'\n"

    first, second = endpoint_problems(SettingsText.read(Path("config.toml"), text))

    assert "line 2: endpoints.a" in first
    assert "line 6: endpoints.c.url" in second
    (third,) = endpoint_problems(SettingsText.read(Path("config.toml"), "endpoints = 3\n"))
    assert "endpoints" in third


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
        ("https://x/openai/v1/", "https://x/openai/v1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
    ],
)
def test_an_address_without_a_path_gets_the_usual_one(given: str, taken: str) -> None:
    assert checked_url(given) == taken


@pytest.mark.parametrize(
    "wrong",
    ["http://", "x", "http://x?y=1", "http://x#y", "http://x:port", "http://a b", "http://[::1", "http://a/\x1b[31m"],
)
def test_what_is_no_address_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="must be http://HOST:PORT"):
        checked_url(wrong)


def test_an_address_has_the_key_of_a_known_endpoint_only_where_it_is_the_same() -> None:
    known = read(GOOD)
    assert find_endpoint("https://llm.example:8000/v1", known).name == "work"
    assert find_endpoint("https://llm.example:8001/v1", known) == Endpoint("https://llm.example:8001/v1")
    assert find_endpoint("work", known).name == "work"


def test_a_name_that_is_not_known_says_which_are() -> None:
    known = read(GOOD)
    with pytest.raises(UsageError, match=r"no endpoint is named 'wrok'; did you mean work\?"):
        find_endpoint("wrok", known)
    with pytest.raises(UsageError, match="there are work, at home"):
        find_endpoint("zzz", known)
    with pytest.raises(UsageError, match=r"name one in your settings: \[endpoints.NAME\]"):
        find_endpoint("work", {})


def test_a_key_comes_from_its_variable_and_is_never_shown() -> None:
    work = read(GOOD)["work"]
    assert api_key(work, {"WORK_KEY": " sk-secret\n"}) == "sk-secret"
    assert api_key(Endpoint("http://x/v1"), {"WORK_KEY": "sk-secret"}) == ""
    with pytest.raises(UsageError, match="the variable WORK_KEY is not set"):
        api_key(work, {})
    with pytest.raises(UsageError) as caught:
        api_key(work, {"WORK_KEY": "sk-secret\nsecond"})
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:80/v1", "a server on this machine (127.0.0.1:80)"),
        ("http://[::1]:80/v1", "a server on this machine ([::1]:80)"),
        ("http://LocalHost/v1", "a server on this machine (LocalHost)"),
        ("http://127.0.0.1.example/v1", "127.0.0.1.example"),
        ("https://10.0.0.5:8000/v1", "10.0.0.5:8000"),
    ],
)
def test_only_a_server_on_this_machine_is_called_one(url: str, told: str) -> None:
    assert Endpoint(url).told == told
