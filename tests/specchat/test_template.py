"""A template that came with a download can neither reach out nor run away, and ordinary ones work."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from types import FrameType
from typing import Any

import pytest

import specchat.template
from specchat.template import CHATML, Template, TemplateError

HELLO = [{"role": "user", "content": "Hello"}]
DOUBLED = "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
GROWING = "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set n.x = STEP %}{% endfor %}"
MANY = "{% for i in range(99999) %}{% for j in range(99999) %}BODY{% endfor %}{% endfor %}"


def render(source: str) -> str:
    return Template(source, bos="<s>", eos="</s>").render(HELLO)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specchat.template, "MAX_SECONDS", 0.3)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ''['__class__'].x }}",
        "{{ (''|attr('__class__')).x }}",
        "{{ '{0.__class__.__name__}'.format(messages) }}",
        "{{ '{x.__class__.__name__}'.format_map({'x': 1}) }}",
        "{{ raise_exception.__globals__.sys }}",
        "{{ strftime_now.__closure__[0] }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({}) }}",
        "{{ unknown() }}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_what_leads_out_of_the_template_is_refused(source: str) -> None:
    with pytest.raises(TemplateError):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 300000000 }}",
        "{{ 300000000 * 'a' }}",
        "{{ [0] * 300000000 }}",
        "{{ 2 ** 99999999 }}",
        "{{ ((((10 ** 64) ** 64) ** 64) ** 64) ** 64 }}",
        "{{ range(10 ** 9)|list }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '%*d' % (999999999, 1) }}",
        "{{ '%999999999d'|format(1) }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ '{:>{}}'.format(1, 999999999) }}",
        "{{ '{x:>999999999}'.format_map({'x': 1}) }}",
        "{{ 'a'|center(10 ** 9) }}",
        "{{ 'a'.center(10 ** 9) }}",
        "{{ 'a'.ljust(10 ** 9) }}",
        "{{ 'a'['zfill'](10 ** 9) }}",
        "{{ ('\t' * 1000).expandtabs(10 ** 9) }}",
        "{{ (1).to_bytes(10 ** 9) }}",
        "{{ ['a']|batch(10 ** 9, 'x')|list }}",
        "{{ ('a\n' * 100000)|indent(10 ** 6) }}",
        "{{ 'a\nb'|indent('a' * 30000000) }}",
        "{{ messages|tojson(indent=10 ** 9) }}",
        "{{ ('a' * 10 ** 6)|replace('a', 'a' * 10 ** 6) }}",
        "{{ ('a' * 10 ** 6).replace('a', 'a' * 10 ** 6) }}",
        "{{ range(99)|join('a' * 10 ** 6) }}",
        "{{ ('a' * 10 ** 6).join(['x'] * 99) }}",
        "{{ lipsum(n=10 ** 5) }}",
        "{% set s = 'a' * 30000000 %}{{ " + " ~ ".join(["s"] * 1000) + " }}",
        "{% set s = 'a' * 30000000 %}{{ [" + "s, " * 1000 + "] }}",
        "{% set s = 'a' * 30000000 %}{% set t %}" + "{{ s }}" * 1000 + "{% endset %}",
        GROWING.replace("STEP", "n.x ~ n.x"),
        GROWING.replace("STEP", "n.x + n.x"),
        GROWING.replace("STEP", "[n.x, n.x]|join"),
        GROWING.replace("STEP", "'{0}{0}'.format(n.x)"),
        GROWING.replace("STEP", "'%s%s' % (n.x, n.x)"),
        "{% set n = namespace(x=3) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}",
        DOUBLED + "{{ n.x }}",
        DOUBLED + "{{ n }}",
        DOUBLED + "{{ n.x ~ '' }}",
        DOUBLED + "{{ n.x|string }}",
        DOUBLED + "{{ n.x|tojson }}",
        DOUBLED + "{{ [n.x]|join }}",
        DOUBLED + "{{ '%s' % (n.x,) }}",
        DOUBLED + "{{ '{}'.format(n.x) }}",
        DOUBLED.replace("[n.x, n.x]", "dict(a=n.x, b=n.x)") + "{{ n.x.items() }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ " + "(" * 9000 + "1" + ")" * 9000 + " }}",
        "{{ " + "9" * 9000 + " }}",
        "{{ -9e999|int }}",
    ],
    ids=lambda source: source[-60:],
)
@pytest.mark.usefixtures("short")
def test_what_would_fill_the_memory_or_never_end_is_refused(source: str) -> None:
    tracemalloc.start()

    with pytest.raises(TemplateError):
        render(source)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * specchat.template.MAX_BYTES


@pytest.mark.parametrize("body", ["", "{% set x = messages['no'] %}", "{% if 0 %}x{% endif %}"])
def test_loops_that_write_nothing_meet_the_time_cap(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.setattr(specchat.template, "MAX_SECONDS", 0.1)

    with pytest.raises(TemplateError, match=r"more than 0\.1 seconds"):
        render(MANY.replace("BODY", body))


def test_nothing_is_computed_while_compiling() -> None:
    Template(
        "{{ ['a', 'b']|join(raise_exception('no')) }}{{ 'a'|replace('a', 1 // 0) }}{{ [1 // 0]|tojson }}"
    )
    Template("{% set x = 'a'|indent(10 ** 12) %}{{ 'a\nb'|indent(100000000) }}{{ [1]|tojson(indent=101) }}")

    with pytest.raises(TemplateError, match="refuses"):
        render("{{ 'a\nb'|indent(100000000) }}")


def test_endless_output_meets_the_cap_on_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specchat.template, "MAX_CHARACTERS", 10_000)

    with pytest.raises(TemplateError, match="more than 10,000 characters"):
        render(MANY.replace("BODY", "{{ messages[0].content }}"))


def test_memory_kept_in_many_small_steps_meets_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specchat.template, "MAX_BYTES", 10_000_000)
    source = "{% set n = namespace(x=[], s='a' * 9999) %}" + MANY.replace(
        "BODY", "{% set n.x = n.x + [n.s.upper()] %}"
    )

    with pytest.raises(TemplateError, match="too much memory"):
        render(source)


@pytest.fixture
def tracer() -> Iterator[Any]:
    """A trace function of somebody else, such as a debugger or a coverage report."""
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, value: Any) -> None:
        return None

    sys.settrace(trace)
    yield trace
    sys.settrace(before)


@pytest.mark.parametrize(
    "source", ["{{ 1 }}", "{{ 1 // 0 }}", "{% if %}", MANY, "{{ raise_exception('no') }}"]
)
@pytest.mark.usefixtures("short")
def test_the_trace_function_is_restored_whatever_happens(source: str, tracer: object) -> None:
    with suppress(TemplateError):
        render(source)
    after = sys.gettrace()

    assert after is tracer
    assert not tracemalloc.is_tracing()


def test_an_interrupt_from_the_keyboard_passes_and_restores_the_trace_function(
    monkeypatch: pytest.MonkeyPatch, tracer: object
) -> None:
    def interrupted() -> datetime:
        raise KeyboardInterrupt

    template = Template("{{ strftime_now('%Y') }}", now=interrupted)

    with pytest.raises(KeyboardInterrupt):
        template.render(HELLO)
    assert sys.gettrace() is tracer


def test_a_syntax_error_names_its_line() -> None:
    with pytest.raises(TemplateError, match="line 3"):
        Template("one\ntwo\n{% if %}\nfour")


def test_what_the_template_raises_is_what_the_user_reads() -> None:
    with pytest.raises(TemplateError, match="System role not supported"):
        render("{{ raise_exception('System role not supported') }}")


def test_the_date_is_the_clock_s() -> None:
    template = Template("{{ strftime_now('%d %b %Y') }}", now=lambda: datetime(2024, 7, 26))

    assert template.render(HELLO) == "26 Jul 2024"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ {'b': '<é>', 'a': [1, none]}|tojson }}", '{"b": "<é>", "a": [1, null]}'),
        ("{{ {'b': 1, 'a': 2}|tojson(sort_keys=true, separators=(',', ':')) }}", '{"a":2,"b":1}'),
        ("{{ [1]|tojson(indent=2) }}", "[\n  1\n]"),
        ("{{ 'é'|tojson(ensure_ascii=true) }}", '"\\u00e9"'),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% for i in range(4) %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "013"),
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "Hello"),
        ("{{ bos_token }}{{ eos_token }}", "<s></s>"),
        ("  {% if true %}\nx\n  {% endif %}\n", "x\n"),
        ("{{ none }} {{ true }} {{ 1.5 }} {{ [1, 'a'] }} {{ nothing }}", "None True 1.5 [1, 'a'] "),
        ("{{ 1 ~ none ~ 'x' }}", "1Nonex"),
        ("{{ messages|map(attribute='content')|join(', ') }}", "Hello"),
        ("{{ messages|join('-', 'role') }}", "user"),
        ("{{ ', '.join(['a', 'b']) }}", "a, b"),
        ("{% for x in ['a'] %}{{ x.replace('a', 'b') }}{{ x.join('cd') }}{% endfor %}", "bcad"),
        ("{{ 'aaa'.replace('a', 'b', 2) }}{{ 'aaa'|replace('a', 'b') }}", "bbabbb"),
        ("{{ 'a\nb'|indent(2) }}{{ 'a\nb'|indent(1, true) }}", "a\n  b a\n b"),
        ("{{ '{:>3}|{x}'.format(1, x=2) }}{{ '%03d' % 7 }}", "  1|2007"),
        ("{{ 7 % 2 }}{{ 2 ** 10 }}{{ 7 // 2 }}{{ '=' * 3 }}", "110243==="),
        ("{% macro m(x) %}[{{ x }}]{% endmacro %}{% set y %}{{ m(1) }}{% endset %}{{ y }}", "[1]"),
        ("{% set n = namespace(x=1) %}{% macro m(o) %}{{ o.x }}{% endmacro %}{{ m(n) }}", "1"),
        ("{{ ' a '|trim }}{{ 'a<think>b'.split('<think>')[-1] }}{{ messages[1:]|length }}", "ab0"),
    ],
    ids=lambda text: text[:50],
)
def test_what_known_templates_use_works(source: str, expected: str) -> None:
    assert render(source) == expected


def test_a_long_conversation_takes_a_tenth_of_the_time_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specchat.template, "MAX_SECONDS", specchat.template.MAX_SECONDS / 10)
    turn = [{"role": "user", "content": "x" * 10_000}, {"role": "assistant", "content": "y" * 10_000}]

    text = Template(CHATML).render(turn * 100)

    assert text.count("<|im_start|>") == 201
    assert text.endswith("<|im_start|>assistant\n")
