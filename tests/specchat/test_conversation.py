"""Prompts hold what was said, as the template wants it; only the template writes control tokens."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import llama_cpp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.conversation import Message, PromptFormat, Role, prompt_format
from specchat.template import CHATML, Template, TemplateError
from speculation.llama import EngineLog, LlamaWeights, Vocabulary
from speculation.types import Tokens
from tests.gguf import tiny

START, END, BOS = 1, 2, 3
CONTROLS = {"<|im_start|>": START, "<|im_end|>": END, "<s>": BOS, "|><|": 4, "\n": 5}
GUARD = "\ue000"

QWEN25 = """\
{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""  # noqa: E501
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TRIMMING = CHATML.replace("m.content", "m.content|trim")
WITHOUT_THOUGHTS = CHATML.replace(
    "{{ m.content }}",
    "{{ m.content.split('</think>')[-1] if '</think>' in m.content else m.content }}",
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + CHATML
)


@dataclass
class Letters:
    """A vocabulary of one token a letter; `fuses` are texts that it, wrongly, turns into control tokens.

    Of other tokens it knows those of `replies`, whole.
    """

    controls: Mapping[str, int] = field(default_factory=lambda: CONTROLS)
    adds_bos: bool = False
    bos: int = BOS
    fuses: tuple[str, ...] = ()
    replies: Mapping[tuple[int, ...], str] = field(default_factory=dict)

    def encode(self, text: str) -> Tokens:
        for fused in self.fuses:
            text = text.replace(fused, chr(self.controls[fused]))
        return np.array([ord(c) if ord(c) < 9 else ord(c) + 100 for c in text], dtype=np.int32)

    def decode(self, tokens: Sequence[int]) -> bytes:
        if tuple(tokens) not in self.replies:
            raise ValueError(f"tokens {tokens}")
        return self.replies[tuple(tokens)].encode()

    def spell(self, ids: Tokens) -> str:
        """The text, with control tokens and ids that were given as they are in braces."""
        names = {token: text for text, token in self.controls.items()}
        return "".join(
            f"{{{names[int(i)]}}}" if int(i) in names else chr(i - 100) if i < 2_000_000 else f"{{{i}}}" for i in ids
        )


def user(text: str) -> Message:
    return Message(Role.USER, text)


def system(text: str) -> Message:
    return Message(Role.SYSTEM, text)


def said(text: str, *tokens: int) -> Message:
    return Message(Role.ASSISTANT, text, tokens or None)


@cache
def compiled(template: str) -> Template:
    """One process a template: starting one takes longer than all the rest of most tests."""
    return Template(template, bos="<s>")


def spelled(template: str, *messages: Message, vocabulary: Letters | None = None) -> str:
    own = {message.tokens: message.text for message in messages if message.tokens}
    vocabulary = vocabulary or Letters(replies=own)
    return vocabulary.spell(PromptFormat(compiled(template), vocabulary).prompt(messages))


def turn(role: str, text: str) -> str:
    return f"{{<|im_start|>}}{role}\n{text}{{<|im_end|>}}\n"


ASKS = "{<|im_start|>}assistant\n"
OWN = 3_000_000  # an id that encoding never gives
fragments = [
    "<",
    "|",
    ">",
    "im_",
    "end",
    "|>",
    "<|",
    "<|im_start|>",
    "<|im_end|>",
    "<s>",
    "<|im_",
    "|><|",
    "system\n",
    "é",
    "\n",
]
typed = st.lists(st.sampled_from([*fragments, GUARD, "\ue001"]), min_size=1, max_size=9).map("".join)


@settings(deadline=None, max_examples=60)
@given(typed)
def test_control_texts_that_a_user_types_are_text(text: str) -> None:
    assert spelled(CHATML, user(text)) == turn("user", text) + ASKS


@settings(deadline=None, max_examples=60)
@given(typed, typed, typed)
def test_control_texts_in_any_role_are_text(asked: str, replied: str, rules: str) -> None:
    prompt = spelled(CHATML, system(rules), user(asked), said(replied), user("x"))

    assert prompt == turn("system", rules) + turn("user", asked) + turn("assistant", replied) + turn("user", "x") + ASKS


def test_a_tokenizer_that_fuses_letters_to_a_control_token_is_kept_from_it() -> None:
    vocabulary = Letters(fuses=("<s>",))

    assert spelled(CHATML, user("a<s>b"), vocabulary=vocabulary) == turn("user", "a<s>b") + ASKS


def test_a_vocabulary_without_control_tokens_gets_plain_text() -> None:
    assert (
        spelled(CHATML, user("<s>"), vocabulary=Letters({}))
        == "<|im_start|>user\n<s><|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_text_of_many_control_texts_is_guarded_in_time_linear_in_its_length() -> None:
    text = "<|im_end|>" * 50_000  # minutes, if each of them meant a search from the beginning

    assert CONTROLS["<|im_end|>"] not in PromptFormat(Template("{{ messages[0].content }}"), Letters()).prompt(
        [user(text)]
    )


def test_every_private_character_in_a_message_survives() -> None:
    text = "".join(map(chr, range(0xE000, 0xF900))) + "<s>"

    assert spelled(CHATML, user(text)) == turn("user", text) + ASKS


def test_a_private_character_in_the_template_survives() -> None:
    assert spelled(GUARD + "{{ messages[0].content }}", user("<s>")) == f"{GUARD}<s>"


def test_a_reply_stands_in_the_prompt_with_its_own_ids() -> None:
    prompt = spelled(CHATML, user("a"), said("b", OWN, OWN + 1), user("c"), said("d", OWN + 2), user("e"))

    replies = turn("assistant", f"{{{OWN}}}{{{OWN + 1}}}"), turn("assistant", f"{{{OWN + 2}}}")
    assert prompt == turn("user", "a") + replies[0] + turn("user", "c") + replies[1] + turn("user", "e") + ASKS


@pytest.mark.parametrize("text", ["<|im_end|>", "a<s>b", f"{GUARD}{GUARD}0{GUARD}{GUARD}", "0", "assistant\n", "a"])
def test_own_ids_are_used_whatever_the_texts_spell(text: str) -> None:
    prompt = spelled(CHATML, user(text), said(text, OWN), user(text))

    assert prompt == turn("user", text) + turn("assistant", f"{{{OWN}}}") + turn("user", text) + ASKS


def test_a_reply_that_the_template_trims_is_encoded_from_its_text() -> None:
    prompt = spelled(TRIMMING, user("a"), said(" b\n", OWN), user("c"))

    assert prompt == turn("user", "a") + turn("assistant", "b") + turn("user", "c") + ASKS


def test_a_reply_that_trimming_does_not_change_keeps_its_own_ids() -> None:
    assert f"{{{OWN}}}" in spelled(TRIMMING, user(" a "), said("b", OWN), user("c"))


def test_a_reply_whose_thoughts_the_template_drops_is_encoded_from_its_text() -> None:
    prompt = spelled(WITHOUT_THOUGHTS, user("a"), said("<think>x</think>b", OWN), user("c"))

    assert prompt == turn("user", "a") + turn("assistant", "b") + turn("user", "c") + ASKS


@pytest.mark.parametrize(
    "content",
    [
        "{% if m.content.startswith('b') %}B{% endif %}{{ m.content }}",
        "{{ m.content|upper }}",
        "{{ m.content }}{{ m.content }}",
        "{{ m.content|tojson }}",
        "{{ m.content|length }}",
        "{% if m.content|length > 4 %}{{ raise_exception('too long') }}{% endif %}{{ m.content }}",
    ],
)
def test_templates_that_look_into_replies_give_the_prompt_that_their_text_gives(content: str) -> None:
    template = CHATML.replace("{{ m.content }}", content)

    assert spelled(template, user("a"), said("b", OWN), user("c")) == spelled(template, user("a"), said("b"), user("c"))


def test_a_reply_that_plain_text_follows_is_encoded_with_it() -> None:
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"

    assert spelled(template, user("a"), said("b", OWN), user("c")) == "user: a\nassistant: b\nuser: c\n"


@pytest.mark.parametrize("adds_bos", [False, True])
@pytest.mark.parametrize("written", ["", "{{ bos_token }}"])
def test_the_first_token_is_there_once(adds_bos: bool, written: str) -> None:
    prompt = spelled(written + CHATML, user("a"), vocabulary=Letters(adds_bos=adds_bos))

    assert prompt == ("{<s>}" if adds_bos or written else "") + turn("user", "a") + ASKS


def test_a_first_token_that_the_vocabulary_lacks_is_not_added() -> None:
    assert spelled(CHATML, user("a"), vocabulary=Letters(adds_bos=True, bos=-1)) == turn("user", "a") + ASKS


@pytest.mark.parametrize("known", [{}, {(OWN,): "another text"}])
def test_ids_of_another_vocabulary_are_not_read_but_the_text_is(known: Mapping[tuple[int, ...], str]) -> None:
    prompt = spelled(CHATML, user("a"), said("b", OWN), user("c"), vocabulary=Letters(replies=known))

    assert prompt == spelled(CHATML, user("a"), said("b"), user("c"))


def test_a_refused_system_prompt_stands_in_front_of_the_first_message_with_a_notice() -> None:
    prompts = PromptFormat(Template(NO_SYSTEM), Letters(replies={(OWN,): "b"}))

    ids = prompts.prompt([system("Be brief."), user("a"), said("b", OWN), user("c")])

    reply = turn("assistant", f"{{{OWN}}}")
    assert Letters().spell(ids) == turn("user", "Be brief.\n\na") + reply + turn("user", "c") + ASKS
    assert "no system prompt" in prompts.notice


def test_other_refusals_are_errors() -> None:
    with pytest.raises(TemplateError, match="no"):
        spelled("{{ raise_exception('no') }}", user("a"))


def test_two_turns_of_one_role_become_one() -> None:
    prompt = spelled(CHATML, user("a"), user("b"), said("c", OWN), said("d", OWN), user("e"))

    assert prompt == turn("user", "a\n\nb") + turn("assistant", "c\n\nd") + turn("user", "e") + ASKS


def test_an_empty_reply_is_dropped_and_its_neighbours_become_one() -> None:
    assert spelled(CHATML, user("a"), said(""), user("b")) == turn("user", "a\n\nb") + ASKS


@pytest.mark.parametrize(
    ("source", "reason"),
    [(None, "brings no chat template"), ("{% if %}", "line 1"), ("{{ unknown() }}", "unknown")],
)
def test_a_template_that_is_missing_or_broken_is_replaced_by_chatml_with_a_notice(
    source: str | None, reason: str
) -> None:
    prompts = prompt_format(source, Letters(), {})

    assert Letters().spell(prompts.prompt([user("a")])) == turn("user", "a") + ASKS
    assert reason in prompts.notice
    assert "ChatML" in prompts.notice


def test_a_good_template_is_used_without_a_notice() -> None:
    prompts = prompt_format(
        "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}",
        Letters(),
        {"bos": "<s>", "eos": "<|im_end|>"},
    )

    assert Letters().spell(prompts.prompt([user("a")])) == "{<s>}a{<|im_end|>}"
    assert prompts.notice == ""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> LlamaWeights:
    return LlamaWeights(tiny.write_attention(tmp_path_factory.mktemp("tiny") / "tiny.gguf"), EngineLog())


@pytest.fixture(scope="module")
def vocabulary(weights: LlamaWeights) -> Vocabulary:
    return weights.vocabulary


@pytest.fixture(scope="module")
def parsed(weights: LlamaWeights) -> Callable[[str], list[int]]:
    """What llama.cpp makes of a whole prompt in which control texts are control tokens."""

    def parse(text: str) -> list[int]:
        data, ids = text.encode(), (ctypes.c_int32 * (len(text.encode()) + 8))()
        handle = llama_cpp.llama_model_get_vocab(weights.handle)
        n = llama_cpp.llama_tokenize(handle, data, len(data), ids, len(ids), False, True)
        return list(ids[:n])

    return parse


words = (
    st.lists(
        st.sampled_from(["Hello", " world", "\n", "  ", "é", "😀", "<", "|", "def", "---", "1", "'s"])
        | st.text(max_size=3),
        min_size=1,
        max_size=8,
    )
    .map("".join)
    .filter(bool)
)


@pytest.mark.parametrize("template", [QWEN25, SMOLLM2, CHATML, TRIMMING])
@settings(deadline=None, max_examples=60)
@given(asked=words, replied=words)
def test_ordinary_text_gets_the_ids_of_the_whole_prompt(
    vocabulary: Vocabulary, parsed: Callable[[str], list[int]], template: str, asked: str, replied: str
) -> None:
    messages = [user(asked), said(replied), user("x")]

    ids = PromptFormat(compiled(template), vocabulary).prompt(messages)

    rendered = compiled(template).render([{"role": m.role, "content": m.text} for m in messages])
    assert ids.tolist() == parsed(rendered)


@settings(deadline=None, max_examples=60)
@given(text=st.lists(st.sampled_from([*fragments, tiny.BOS, "<|endof"]), min_size=1, max_size=9).map("".join))
def test_with_a_real_tokenizer_typed_control_texts_are_text(vocabulary: Vocabulary, text: str) -> None:
    before, after = [vocabulary.controls[tiny.IM_START]], [vocabulary.controls[tiny.IM_END]]

    ids = PromptFormat(compiled(CHATML), vocabulary).prompt([user(text)]).tolist()

    assert [i for i in ids if i in vocabulary.controls.values()] == before + after + before
    assert vocabulary.decode(ids).decode() == f"user\n{text}\nassistant\n"


def test_with_a_real_tokenizer_ids_that_encoding_would_not_give_survive(vocabulary: Vocabulary) -> None:
    letters = tuple(int(vocabulary.encode(letter)[0]) for letter in "Hello")
    assert len(vocabulary.encode("Hello")) == 1

    ids = PromptFormat(Template(QWEN25), vocabulary).prompt([user("a"), said("Hello", *letters), user("b")]).tolist()

    assert any(tuple(ids[i : i + 5]) == letters for i in range(len(ids)))


@pytest.mark.parametrize("token", [-1, 10**6])
def test_with_a_real_tokenizer_ids_that_it_does_not_have_are_not_read(vocabulary: Vocabulary, token: int) -> None:
    prompts = PromptFormat(compiled(QWEN25), vocabulary)

    ids = prompts.prompt([user("a"), said("Hello", token), user("b")])

    assert ids.tolist() == prompts.prompt([user("a"), said("Hello"), user("b")]).tolist()
