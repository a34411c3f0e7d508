"""What a sound bank can still do badly (BANK.md): balance, prompts, options, shared questions. No model is asked here.

An `error` breaks a rule that scores depend on; a `warning` is for an author to look at. A bank of a dozen tests is
judged by what can be seen in a dozen.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from torus_ray.bank.load import Bank
from torus_ray.bank.order import letter_of, shown_options
from torus_ray.bank.schema import (
    AUDIO_TYPES,
    FAMILIES,
    LETTERS,
    STAGES,
    Question,
    Stage,
    StageName,
    Test,
)
from torus_ray.folding import fold, has_phrase

Severity = Literal["error", "warning"]

# Chi-square with 5 degrees of freedom: the value that chance exceeds once in 20 and once in 1000 banks.
CHI_SQUARE_WARNING, CHI_SQUARE_ERROR = 11.070, 20.515
LEAST_QUESTIONS = 30
PROMPT_WORDS = (15, 60)
FAMILY_SLACK = 0.4
LENGTH_RATIO = 1.5
LONGEST_SHARE = 0.3

_QUOTED = re.compile('"[^"]+"|\u201c[^\u201d]+\u201d')


@dataclass(frozen=True)
class Finding:
    """One thing to look at. test, stage, question: where, as far as it is about one."""

    severity: Severity
    message: str
    mend: str
    test: str | None = None
    stage: StageName | None = None
    question: str | None = None

    def render(self) -> str:
        where = ".".join(part for part in (self.test, self.stage, self.question) if part) or "bank"
        return f"{self.severity}: {where}: {self.message}; mend: {self.mend}"


@dataclass(frozen=True)
class BankReport:
    """The findings, errors first, and the counts behind them. letters: of the right options as they are shown."""

    findings: tuple[Finding, ...]
    tests: int
    questions: int
    letters: Mapping[str, int]
    letters_chi_square: float
    families: Mapping[str, int]
    audio_types: Mapping[str, int]


def check_bank(bank: Bank) -> BankReport:
    """Look at a whole bank by every rule of BANK_RULES, TEST_RULES, STAGE_RULES and QUESTION_RULES."""
    found = [finding for bank_rule in BANK_RULES for finding in bank_rule(bank)]
    for test in bank.tests:
        found += [finding for test_rule in TEST_RULES for finding in test_rule(test)]
        for name in STAGES:
            stage = test.stage(name)
            found += [finding for stage_rule in STAGE_RULES for finding in stage_rule(test, name, stage)]
            for question in stage.questions:
                found += [f for question_rule in QUESTION_RULES for f in question_rule(test, name, stage, question)]
    found.sort(key=lambda finding: finding.severity)
    letters = right_letters(bank)
    return BankReport(
        findings=tuple(found),
        tests=len(bank.tests),
        questions=sum(letters.values()),
        letters=letters,
        letters_chi_square=chi_square_even(letters),
        families=_families(bank),
        audio_types=_audio_types(bank),
    )


def questions_of(bank: Bank) -> Iterator[tuple[Test, StageName, Question]]:
    """Every question with where it stands, in the order of the bank."""
    for test in bank.tests:
        for stage in STAGES:
            for question in test.stage(stage).questions:
                yield test, stage, question


def right_letters(bank: Bank) -> dict[str, int]:
    """How often each letter is the right one, options ordered by the bank's seed."""
    counts: Counter[str] = Counter()
    for test, stage, question in questions_of(bank):
        item = f"{test.id}.{stage}.{question.id}"
        shown = shown_options(seed=bank.card.order_seed, item=item, options=question.options)
        counts[letter_of(question.answer, shown)] += 1
    return {letter: counts[letter] for letter in LETTERS}


def chi_square_even(counts: Mapping[str, int]) -> float:
    """Pearson's chi-square of counts against an even share; degrees of freedom are one less than the counts."""
    even = sum(counts.values()) / len(counts)
    return sum((count - even) ** 2 / even for count in counts.values()) if even else 0.0


def _families(bank: Bank) -> dict[str, int]:
    counts = Counter(question.family for _, _, question in questions_of(bank))
    return {family: counts[family] for family in FAMILIES}


def _audio_types(bank: Bank) -> dict[str, int]:
    counts = Counter(test.audio_type for test in bank.tests)
    return {audio_type: counts[audio_type] for audio_type in AUDIO_TYPES}


# --- the bank as a whole ----------------------------------------------------------------------------------------------


def letter_balance(bank: Bank) -> Iterator[Finding]:
    """A listener that always says one letter must not gain by it."""
    letters = right_letters(bank)
    chi_square = chi_square_even(letters)
    if sum(letters.values()) >= LEAST_QUESTIONS and chi_square > CHI_SQUARE_WARNING:
        severity: Severity = "error" if chi_square > CHI_SQUARE_ERROR else "warning"
        counts = " ".join(f"{letter}{count}" for letter, count in letters.items())
        message = f"right letters are uneven: {counts} (chi-square {chi_square:.1f} with 5 degrees of freedom)"
        yield Finding(severity, message, "choose another order_seed in bank.json, once and before any run")


def family_balance(bank: Bank) -> Iterator[Finding]:
    """About a fifth of the questions each, and every family in every audio type."""
    families = _families(bank)
    even = sum(families.values()) / len(families)
    if sum(families.values()) < LEAST_QUESTIONS:
        return
    for family, count in families.items():
        if abs(count - even) > FAMILY_SLACK * even:
            message = f"{count} questions of family {family}, an even share is {even:.0f}"
            yield Finding("warning", message, "write more or fewer questions of it")
    pairs = {(test.audio_type, question.family) for test, _, question in questions_of(bank)}
    for audio_type in (name for name, count in _audio_types(bank).items() if count):
        for family in FAMILIES:
            if (audio_type, family) not in pairs:
                yield Finding("warning", f"no {audio_type} test asks for {family}", "write such a question")


def type_balance(bank: Bank) -> Iterator[Finding]:
    """As many tests of each audio type."""
    counts = _audio_types(bank)
    if max(counts.values()) - min(counts.values()) > 1:
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        yield Finding("warning", f"audio types are uneven: {told}", "write tests of the type that is short")


def longest_answers(bank: Bank) -> Iterator[Finding]:
    """A solver that always takes the longest option must stay near chance."""
    questions = [question for _, _, question in questions_of(bank)]
    if len(questions) < LEAST_QUESTIONS:
        return
    for what, pick in (("longest", max), ("shortest", min)):
        lengths = [[len(option) for option in question.options] for question in questions]
        hits = sum(
            len(question.answer) == pick(each) and each.count(pick(each)) == 1
            for question, each in zip(questions, lengths, strict=True)
        )
        if hits > LONGEST_SHARE * len(questions):
            message = f"the right option is the {what} in {hits} of {len(questions)} questions, chance is 1 in 6"
            yield Finding("warning", message, "even out the lengths of the options")


def one_sided_answers(bank: Bank) -> Iterator[Finding]:
    """A question that is asked often must not always have the same answer."""
    asked: dict[str, list[str]] = defaultdict(list)
    for _, _, question in questions_of(bank):
        asked[fold(question.text)].append(fold(question.answer))
    for text, answers in asked.items():
        answer, count = Counter(answers).most_common(1)[0]
        if len(answers) >= 4 and count > len(answers) / 2:
            message = f'"{answer}" answers {count} of the {len(answers)} questions "{text}"'
            yield Finding("warning", message, "let the right value range over the options")


def repeated_prompts(bank: Bank) -> Iterator[Finding]:
    """No two renders of a bank are asked for in the same words."""
    seen: dict[str, str] = {}
    for test in bank.tests:
        for name in STAGES:
            text = fold(test.stage(name).prompt)
            if text in seen:
                yield Finding("error", f"the prompt is that of {seen[text]} too", "write another", test.id, name)
            seen.setdefault(text, f"{test.id}.{name}")


# --- one test ---------------------------------------------------------------------------------------------------------


def shared_question(test: Test) -> Iterator[Finding]:
    """One question can be asked of the edit and the counterfactual clip and has different right answers."""
    before = {fold(question.text): fold(question.answer) for question in test.stages.edit.questions}
    after = [(fold(question.text), fold(question.answer)) for question in test.stages.counterfactual.questions]
    if not any(text in before and before[text] != answer for text, answer in after):
        message = "no question of the edit stage comes again with another right answer"
        mend = "ask one of the edit stage's questions word for word, where the changed attribute turns the answer"
        yield Finding("error", message, mend, test.id, "counterfactual")


# --- one stage --------------------------------------------------------------------------------------------------------


def prompt_length(test: Test, name: StageName, stage: Stage) -> Iterator[Finding]:
    words, (least, most) = len(stage.prompt.split()), PROMPT_WORDS
    if not least <= words <= most:
        message = f"the prompt has {words} words, expected {least} to {most}"
        yield Finding("warning", message, "write what a person would type", test.id, name)


def speech_is_quoted(test: Test, name: StageName, stage: Stage) -> Iterator[Finding]:
    """A model that speaks words only is given the quoted ones: a speech test has some from its first stage on."""
    if test.audio_type == "speech" and name == "generation" and not _QUOTED.search(stage.prompt):
        yield Finding("warning", "the prompt quotes no words to speak", "put them in double quotes", test.id, name)
    if stage.transcript is None and (stage.spec.voices or _QUOTED.search(stage.prompt)):
        message = "somebody speaks, and there is no transcript"
        yield Finding("warning", message, "write the words heard into `transcript`", test.id, name)


def spec_times(test: Test, name: StageName, stage: Stage) -> Iterator[Finding]:
    """Sources sound inside the clip."""
    for source in stage.spec.sources:
        if source.onset_s < 0 or source.duration_s <= 0 or source.onset_s >= stage.spec.duration_s:
            message = f"the source {source.what!r} does not sound inside the clip of {stage.spec.duration_s:g} s"
            yield Finding("error", message, "mend its onset_s or duration_s", test.id, name)


# --- one question -----------------------------------------------------------------------------------------------------


def prompt_wording(test: Test, name: StageName, stage: Stage, question: Question) -> Iterator[Finding]:
    """The prompt implies the answer and never has the wording of an option."""
    prompt = fold(stage.prompt)
    for option in question.options:
        text = fold(option)
        if has_phrase(prompt, text):
            right = option == question.answer
            severity: Severity = "error" if right and " " in text else "warning"
            message = f'the prompt has the wording of the {"right" if right else "wrong"} option "{option}"'
            yield Finding(severity, message, "word the prompt or the option otherwise", test.id, name, question.id)


def question_wording(test: Test, name: StageName, stage: Stage, question: Question) -> Iterator[Finding]:
    """The stem does not name its answer, and no option can be taken for a letter."""
    if has_phrase(fold(question.text), fold(question.answer)):
        message = f'the question names its answer "{question.answer}"'
        yield Finding("error", message, "ask without it", test.id, name, question.id)
    letters = [option for option in question.options if option.strip(" .").upper() in set(LETTERS)]
    if letters:
        message = f"option {letters[0]!r} cannot be told from a letter of the answer sheet"
        yield Finding("error", message, "write it out, such as `the note C`", test.id, name, question.id)


def odd_one_out(test: Test, name: StageName, stage: Stage, question: Question) -> Iterator[Finding]:
    """The right option is neither much longer nor much shorter than all others."""
    right, others = len(question.answer), [len(o) for o in question.options if o != question.answer]
    longer = right > LENGTH_RATIO * max(others) and right - max(others) >= 6
    shorter = right * LENGTH_RATIO < min(others) and min(others) - right >= 6
    if longer or shorter:
        message = f'the right option "{question.answer}" stands out by its {"length" if longer else "shortness"}'
        yield Finding("warning", message, "even out the options", test.id, name, question.id)


BANK_RULES: tuple[Callable[[Bank], Iterator[Finding]], ...] = (
    letter_balance,
    family_balance,
    type_balance,
    longest_answers,
    one_sided_answers,
    repeated_prompts,
)
TEST_RULES: tuple[Callable[[Test], Iterator[Finding]], ...] = (shared_question,)
STAGE_RULES: tuple[Callable[[Test, StageName, Stage], Iterator[Finding]], ...] = (
    prompt_length,
    speech_is_quoted,
    spec_times,
)
QUESTION_RULES: tuple[Callable[[Test, StageName, Stage, Question], Iterator[Finding]], ...] = (
    prompt_wording,
    question_wording,
    odd_one_out,
)
