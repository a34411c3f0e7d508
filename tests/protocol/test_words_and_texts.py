"""What heads are sent: templates filled in one pass, and words to speak that are never the transcript."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torus_ray.protocol.texts import Texts, texts_of
from torus_ray.protocol.words import quoted_words, words_to_speak

OPTIONS = ("one", "two", "three", "four", "five", "six")


# --- texts ------------------------------------------------------------------------------------------------------------


def test_the_shipped_question_shows_each_option_after_its_letter() -> None:
    lines = texts_of().ask("Which is it?", OPTIONS).splitlines()
    assert any("Which is it?" in line for line in lines)
    assert [line for line in lines if line[:3] in {f"{letter}. " for letter in "ABCDEF"}] == [
        f"{letter}. {option}" for letter, option in zip("ABCDEF", OPTIONS, strict=True)
    ]


def test_the_shipped_edit_holds_the_caption_and_then_the_prompt() -> None:
    filled = texts_of().edit_by_caption(" A dog barks.\n", "Make it two dogs.")
    assert filled.index("A dog barks.") < filled.index("Make it two dogs.")
    assert "{" not in filled


def test_braces_in_what_is_filled_in_are_text() -> None:
    nasty = ("{question}", "{a}", "{", "}", "{{b}}", "{0}")
    filled = texts_of().ask("What of {a} and {f}?", nasty)
    assert "What of {a} and {f}?" in filled
    for letter, option in zip("ABCDEF", nasty, strict=True):
        assert f"{letter}. {option}" in filled.splitlines()
    assert "{caption}" in texts_of().edit_by_caption("a sign that reads {edit_prompt}", "{caption}")


field_free = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]))


@given(before=field_free, after=field_free, question=st.text(), options=st.tuples(*[st.text()] * 6))
def test_only_the_templates_own_fields_are_filled(
    before: str, after: str, question: str, options: tuple[str, ...]
) -> None:
    texts = Texts(before + "{question}|{a}{b}{c}{d}{e}{f}" + after, "", "")
    assert texts.ask(question, options) == before + question + "|" + "".join(options) + after


def test_unknown_fields_and_lone_braces_of_a_template_stay() -> None:
    assert Texts("{x} {question {question} }{", "", "").ask("Q", OPTIONS) == "{x} {question Q }{"


def test_a_card_replaces_one_text_and_leaves_the_others() -> None:
    own = texts_of(caption_instruction="Say what you hear.")
    assert own.caption_instruction == "Say what you hear."
    assert own.question == texts_of().question
    assert own.self_caption == texts_of().self_caption


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('A man says "good day".', "good day"),
        ('"One" and then "two\n three".', "One two three"),
        ("She says \u201cwell, well\u201d.", "well, well"),
        ("It's a dog's bark.", None),
        ('An empty "" quote, and " ".', None),
        ('A lone " mark', None),
    ],
)
def test_quoted_words(text: str, words: str | None) -> None:
    assert quoted_words(text) == words


def test_the_prompts_own_words_come_first_then_those_before_then_those_of_the_caption() -> None:
    assert words_to_speak(prompt='Say "now".', before="then", caption='A voice says "there".') == "now"
    assert words_to_speak(prompt="Slower.", before="then", caption='A voice says "there".') == "then"
    assert words_to_speak(prompt="Slower.", before=None, caption='A voice says "there".') == "there"
    assert words_to_speak(prompt="Slower.", before=None, caption="A voice.") is None
    assert words_to_speak(prompt="Slower.", before=None, caption=None) is None
