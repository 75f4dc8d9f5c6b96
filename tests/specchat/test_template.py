"""A template that came with a download can neither reach out nor run away, and ordinary ones work."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest

from specchat.template import CHATML, Limits, Template, TemplateError

HELLO = [{"role": "user", "content": "Hello"}]
DOUBLED = "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
GROWING = "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set n.x = STEP %}{% endfor %}"
MANY = "{% for i in range(99999) %}{% for j in range(99999) %}BODY{% endfor %}{% endfor %}"
ENDLESS = MANY.replace("BODY", "")
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc, and limits on memory")


def render(source: str) -> str:
    return Template(source, bos="<s>", eos="</s>").render(HELLO)


def children() -> set[int]:
    """The processes that this one has started and not yet waited for."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for path in lists for pid in path.read_text().split()}


@pytest.fixture(autouse=True, scope="module")
def _no_process_is_left() -> Iterator[None]:
    before = children()
    yield
    gc.collect()
    assert children() <= before


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
def test_what_would_fill_the_memory_or_never_end_is_stopped(source: str) -> None:
    began = time.monotonic()

    with pytest.raises(TemplateError):
        Template(source, limits=Limits(seconds=0.5, memory_bytes=100_000_000)).render(HELLO)

    assert time.monotonic() - began < 10


@pytest.mark.parametrize("body", ["", "{% set x = messages['no'] %}", "{% if 0 %}x{% endif %}"])
def test_loops_that_write_nothing_meet_the_time_cap(body: str) -> None:
    template = Template(MANY.replace("BODY", body), limits=Limits(seconds=0.3))

    with pytest.raises(TemplateError, match=r"more than 0\.3 seconds"):
        template.render(HELLO)


@pytest.mark.parametrize(
    "source",
    [
        DOUBLED + DOUBLED.replace("n.x", "m.x").replace("set n ", "set m ") + "{{ n.x in [m.x] }}",
        "{% set n = namespace(x=7) %}{{ n.x ** (n.x ** 9) }}",
    ],
    ids=["in", "power"],
)
def test_a_loop_in_c_that_no_watch_from_python_could_interrupt_is_stopped(source: str) -> None:
    with pytest.raises(TemplateError, match=r"more than 0\.3 seconds"):
        Template(source, limits=Limits(seconds=0.3)).render(HELLO)


def test_what_is_computed_while_compiling_is_limited_too() -> None:
    began = time.monotonic()

    with suppress(TemplateError):
        Template("{% if false %}{{ 7 ** (7 ** 9) }}{% endif %}", limits=Limits(seconds=0.3))

    assert time.monotonic() - began < 5


def test_endless_output_meets_the_cap_on_characters() -> None:
    template = Template(MANY.replace("BODY", "{{ messages[0].content }}"), limits=Limits(characters=10_000))

    with pytest.raises(TemplateError, match="more than 10,000 characters"):
        template.render(HELLO)


@linux
def test_memory_kept_in_many_small_steps_meets_the_cap() -> None:
    source = "{% set n = namespace(x=[], s='a' * 9999) %}" + MANY.replace("BODY", "{% set n.x = n.x + [n.s.upper()] %}")

    with pytest.raises(TemplateError, match="too much memory"):
        Template(source, limits=Limits(memory_bytes=50_000_000)).render(HELLO)


@pytest.mark.parametrize(
    "bomb",
    [
        ENDLESS,
        MANY.replace("BODY", "x"),
        "{{ 'a' * 99999999 }}",
        "{{ 'a' * 99999999999 }}",
        GROWING.replace("STEP", "n.x ~ n.x"),
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ raise_exception('no') }}",
    ],
)
def test_after_a_bomb_harmless_messages_render(bomb: str) -> None:
    source = "{% if messages[0].content == 'bomb' %}" + bomb + "{% endif %}{{ messages[0].content }}"
    template = Template(source, limits=Limits(seconds=1.0, memory_bytes=100_000_000))

    for _ in range(2):
        with pytest.raises(TemplateError):
            template.render([{"role": "user", "content": "bomb"}])
        assert template.render(HELLO) == "Hello"


@linux
def test_a_process_that_was_killed_is_replaced() -> None:
    before = children()
    template = Template("{{ messages[0].content }}")
    (pid,) = children() - before

    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    assert template.render(HELLO) == "Hello"
    assert pid not in children()


@linux
def test_a_process_that_is_killed_while_it_renders_is_an_error() -> None:
    before = children()
    template = Template(ENDLESS)
    (pid,) = children() - before
    threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()

    with pytest.raises(TemplateError, match="broke the process"):
        template.render(HELLO)


@linux
def test_the_process_ends_with_its_template() -> None:
    before = children()
    closed, dropped = Template(CHATML), Template(CHATML)
    assert len(children() - before) == 2

    closed.close()
    del dropped

    assert children() <= before
    assert closed.render(HELLO).startswith("<|im_start|>user")


@linux
def test_a_template_that_does_not_parse_leaves_no_process() -> None:
    before = children()

    with pytest.raises(TemplateError) as _error:  # whose traceback holds the template
        Template("{% if %}")

    assert children() <= before


@linux
def test_an_interrupt_from_the_keyboard_passes_and_what_comes_next_gets_its_own_answer() -> None:
    source = "{% if messages[0].content == 'bomb' %}" + ENDLESS + "{% endif %}{{ messages[0].content }}"
    template = Template(source)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        template.render([{"role": "user", "content": "bomb"}])

    assert time.monotonic() - began < Limits().seconds - 1
    assert template.render(HELLO) == "Hello"


def test_threads_that_share_a_template_get_their_own_texts() -> None:
    template, got = Template("{{ messages[0].content }}"), dict[str, set[str]]()

    def work(name: str) -> None:
        got[name] = {template.render([{"role": "user", "content": name}]) for _ in range(20)}

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert got == {name: {name} for name in "abcd"}


@pytest.mark.parametrize("text", ["é😀", "\ud800", "\x00\r\n\u2028", '"\\'])
def test_any_text_arrives_as_it_is(text: str) -> None:
    assert Template("{{ messages[0].content }}").render([{"role": "user", "content": text}]) == text


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


def test_a_long_conversation_takes_a_tenth_of_the_time_cap() -> None:
    turn = [{"role": "user", "content": "x" * 10_000}, {"role": "assistant", "content": "y" * 10_000}]

    text = Template(CHATML, limits=Limits(seconds=Limits().seconds / 10)).render(turn * 100)

    assert text.count("<|im_start|>") == 201
    assert text.endswith("<|im_start|>assistant\n")
