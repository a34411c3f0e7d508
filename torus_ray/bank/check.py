"""What a sound bank can still do badly (BANK.md): rates of deaf solvers, echo, balance, near-duplicates, wording.

No model is asked here. A bank of a dozen tests is judged by what can be seen in a dozen.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import chdtrc

from torus_ray.bank.asked import Embed, Vectors, all_texts, asked, questions_of
from torus_ray.bank.deaf import BY_MEANING, deaf_rates
from torus_ray.bank.duplicates import compared, near_duplicates
from torus_ray.bank.echo import MEANING, echo_rates
from torus_ray.bank.findings import Finding as Finding
from torus_ray.bank.findings import Severity
from torus_ray.bank.load import Bank
from torus_ray.bank.memory import no_collections
from torus_ray.bank.order import letter_of, shown_options
from torus_ray.bank.rates import Rate
from torus_ray.bank.rates import finding as rate_finding
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
from torus_ray.folding import fold as fold_anew
from torus_ray.folding import has_phrase

# What chance exceeds once in 20 and once in 1000 banks.
WARNING_P, ERROR_P = 0.05, 0.001
LEAST_QUESTIONS = 30
PROMPT_WORDS = (15, 60)
FAMILY_SLACK = 0.2
LENGTH_RATIO = 1.5

# Several rules look at the same prompts and options.
fold = lru_cache(maxsize=1 << 16)(fold_anew)

_QUOTED = re.compile('"[^"]+"|\u201c[^\u201d]+\u201d')


@dataclass(frozen=True)
class BankReport:
    """The findings, errors first, and the numbers behind them.

    letters: of the right options as they are shown. solvers, echoes: rates of rules that hear nothing. not_made: the
    checks that need the sentence embeddings, where there are none.
    """

    findings: tuple[Finding, ...]
    tests: int
    questions: int
    human_verified: int
    letters: Mapping[str, int]
    families: Mapping[str, int]
    audio_types: Mapping[str, int]
    solvers: tuple[Rate, ...]
    echoes: tuple[Rate, ...]
    not_made: tuple[str, ...]


def check_bank(bank: Bank, *, embed: Embed | None = None) -> BankReport:
    """Look at a whole bank by every rule of BANK_RULES, TEST_RULES, STAGE_RULES and QUESTION_RULES, by the deaf solvers
    and the echo rules, and for near-duplicates; without `embed` by words and letters only."""
    with no_collections():
        return _checked(bank, embed)


def _checked(bank: Bank, embed: Embed | None) -> BankReport:
    found = list(_by_rules(bank))
    table = asked(bank)
    kinds = compared(bank, table)
    texts = [text for kind in kinds[1:] for text in kind.texts]
    vectors = Vectors(embed, [*all_texts(table), *texts]) if embed else None
    solvers, echoes = tuple(deaf_rates(table, vectors)), tuple(echo_rates(table, vectors))
    found += [rate_finding(rate, table.names, SOLVER_MEND) for rate in solvers if rate.too_high]
    found += [rate_finding(rate, table.names, ECHO_MEND) for rate in echoes if rate.too_high]
    for kind in kinds:
        found += near_duplicates(kind, vectors)
    found.sort(key=lambda finding: finding.severity)
    return BankReport(
        findings=tuple(found),
        tests=len(bank.tests),
        questions=len(table),
        human_verified=sum(test.provenance.human_verified_by is not None for test in bank.tests),
        letters=right_letters(bank),
        families=_families(bank),
        audio_types=_audio_types(bank),
        solvers=solvers,
        echoes=echoes,
        not_made=() if embed else NEEDS_EMBEDDINGS,
    )


SOLVER_MEND = "even out the options of these questions, or draw the right one by lot"
ECHO_MEND = "word prompts or right options of these questions otherwise, or let wrong options echo the prompts too"
NEEDS_EMBEDDINGS = (*BY_MEANING, MEANING, "near-duplicates by cosine")


def _by_rules(bank: Bank) -> Iterator[Finding]:
    for bank_rule in BANK_RULES:
        yield from bank_rule(bank)
    for test in bank.tests:
        for test_rule in TEST_RULES:
            yield from test_rule(test)
        for name in STAGES:
            stage = test.stage(name)
            for stage_rule in STAGE_RULES:
                yield from stage_rule(test, name, stage)
            for question in stage.questions:
                for question_rule in QUESTION_RULES:
                    yield from question_rule(test, name, stage, question)


def shown_letters(bank: Bank) -> Iterator[tuple[str, str]]:
    """(question, right letter) of every question, options ordered by the bank's seed."""
    for test, stage, question in questions_of(bank):
        item = f"{test.id}.{stage}.{question.id}"
        shown = shown_options(seed=bank.card.order_seed, item=item, options=question.options)
        yield item, letter_of(question.answer, shown)


def right_letters(bank: Bank) -> dict[str, int]:
    """How often each letter is the right one."""
    counts = Counter(letter for _, letter in shown_letters(bank))
    return {letter: counts[letter] for letter in LETTERS}


def chi_square_even(counts: Mapping[str, int]) -> float:
    """Pearson's chi-square of counts against an even share; degrees of freedom are one less than the counts."""
    even = sum(counts.values()) / len(counts)
    return sum((count - even) ** 2 / even for count in counts.values()) if even else 0.0


def chance_of(counts: Mapping[str, int]) -> float:
    """How often chance makes counts at least as uneven: the p of :func:`chi_square_even`."""
    return float(chdtrc(len(counts) - 1, chi_square_even(counts)))


def _families(bank: Bank) -> dict[str, int]:
    counts = Counter(question.family for _, _, question in questions_of(bank))
    return {family: counts[family] for family in FAMILIES}


def _audio_types(bank: Bank) -> dict[str, int]:
    counts = Counter(test.audio_type for test in bank.tests)
    return {audio_type: counts[audio_type] for audio_type in AUDIO_TYPES}


# --- the bank as a whole ----------------------------------------------------------------------------------------------


def letter_balance(bank: Bank) -> Iterator[Finding]:
    """A listener that always says one letter must not gain by it: chi-square with 5 degrees of freedom, p >= 0.05."""
    letters = right_letters(bank)
    p = chance_of(letters)
    if sum(letters.values()) >= LEAST_QUESTIONS and p < WARNING_P:
        severity: Severity = "error" if p < ERROR_P else "warning"
        counts = " ".join(f"{letter}{count}" for letter, count in letters.items())
        chi_square = chi_square_even(letters)
        message = f"right letters are uneven: {counts} (chi-square {chi_square:.1f}, 5 degrees of freedom, p {p:.2g})"
        most = max(letters, key=letters.__getitem__)
        names = tuple(item for item, letter in shown_letters(bank) if letter == most)
        mend = "choose another order_seed in bank.json, once and before any run"
        yield Finding(severity, message, mend, questions=names)


def family_balance(bank: Bank) -> Iterator[Finding]:
    """Every family in every audio type, and about a fifth of the questions each: chi-square with 4 degrees of freedom,
    p >= 0.05, or within a fifth of an even share."""
    families = _families(bank)
    even = sum(families.values()) / len(families)
    if sum(families.values()) < LEAST_QUESTIONS:
        return
    p = chance_of(families)
    for family, count in families.items():
        if p < WARNING_P and abs(count - even) > FAMILY_SLACK * even:
            message = f"{count} questions of family {family}, an even share is {even:.0f} (chi-square, p {p:.2g})"
            names = tuple(f"{t.id}.{stage}.{q.id}" for t, stage, q in questions_of(bank) if q.family == family)
            yield Finding("warning", message, "write more or fewer questions of it", questions=names)
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


def one_sided_answers(bank: Bank) -> Iterator[Finding]:
    """A question that is asked often must not always have the same answer."""
    answers: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for test, stage, question in questions_of(bank):
        answers[fold(question.text)].append((fold(question.answer), f"{test.id}.{stage}.{question.id}"))
    for text, given in answers.items():
        answer, count = Counter(answer for answer, _ in given).most_common(1)[0]
        if len(given) >= 4 and count > len(given) / 2:
            message = f'"{answer}" answers {count} of the {len(given)} questions "{text}"'
            names = tuple(name for each, name in given if each == answer)
            yield Finding("warning", message, "let the right value range over the options", questions=names)


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


def length_stands_out(test: Test, name: StageName, stage: Stage, question: Question) -> Iterator[Finding]:
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
    length_stands_out,
)
