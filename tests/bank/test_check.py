"""What the linter of a bank sees."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.canary import make_canary_bank
from torus_ray.bank.check import BankReport, check_bank, chi_square_even, right_letters
from torus_ray.bank.load import load_bank
from torus_ray.bank.order import shown_options

Change = Callable[[dict[str, Any]], Any]


def checked(folder: Path, how: Change | None = None, tests: int = 6, every: bool = False) -> BankReport:
    """The report on a canary bank whose first test (a speech test), or every test, was changed."""
    make_canary_bank(folder, tests=tests)
    for file in sorted(folder.glob("canary-*.json"))[: None if every else 1]:
        content = json.loads(file.read_text())
        if how:
            how(content)
        file.write_text(json.dumps(content))
    return check_bank(load_bank(folder))


def question(content: dict[str, Any], stage: str = "generation") -> dict[str, Any]:
    found: dict[str, Any] = content["stages"][stage]["questions"][0]
    return found


def answer_in_prompt(content: dict[str, Any]) -> None:
    content["stages"]["generation"]["prompt"] += f" It has {question(content)['answer'].upper()}!"


def wrong_option_in_prompt(content: dict[str, Any]) -> None:
    wrong = next(option for option in question(content)["options"] if option != question(content)["answer"])
    content["stages"]["generation"]["prompt"] += f" It has {wrong}."


def same_answer(content: dict[str, Any]) -> None:
    question(content, "counterfactual")["answer"] = question(content, "edit")["answer"]


def long_answer(content: dict[str, Any]) -> None:
    asked = question(content)
    longer = asked["answer"] + " that goes on for very much longer than any of the others"
    asked["options"][asked["options"].index(asked["answer"])] = longer
    asked["answer"] = longer


def letter_option(content: dict[str, Any]) -> None:
    asked = question(content)
    asked["options"][next(i for i, option in enumerate(asked["options"]) if option != asked["answer"])] = "c."


LOCAL: dict[str, tuple[Change, str, str, str]] = {
    "right option in prompt": (answer_in_prompt, "error", "wording of the right option", "canary-000.generation.q1"),
    "wrong option in prompt": (
        wrong_option_in_prompt,
        "warning",
        "wording of the wrong option",
        "canary-000.generation.q1",
    ),
    "no shared question": (same_answer, "error", "comes again", "canary-000.counterfactual"),
    "long answer": (long_answer, "warning", "stands out by its length", "canary-000.generation.q1"),
    "letter as option": (letter_option, "error", "cannot be told from a letter", "canary-000.generation.q1"),
    "answer in question": (
        lambda c: question(c).update(text=f"Is it {question(c)['answer']}?"),
        "error",
        "names its answer",
        "canary-000.generation.q1",
    ),
    "short prompt": (
        lambda c: c["stages"]["edit"].update(prompt='Add a "hello".'),
        "warning",
        "3 words, expected 15 to 60",
        "canary-000.edit",
    ),
    "no quotes": (
        lambda c: c["stages"]["generation"].update(prompt=c["stages"]["generation"]["prompt"].replace('"', "")),
        "warning",
        "quotes no words",
        "canary-000.generation",
    ),
    "no transcript": (
        lambda c: c["stages"]["edit"].update(transcript=None),
        "warning",
        "no transcript",
        "canary-000.edit",
    ),
    "late source": (
        lambda c: c["stages"]["edit"]["spec"]["sources"][0].update(onset_s=9.5),
        "error",
        "does not sound inside the clip",
        "canary-000.edit",
    ),
    "same prompt": (
        lambda c: c["stages"]["edit"].update(prompt=c["stages"]["generation"]["prompt"]),
        "error",
        "that of canary-000.generation too",
        "canary-000.edit",
    ),
}


@pytest.mark.parametrize("case", LOCAL)
def test_a_local_fault_is_found_once_and_named(case: str, tmp_path: Path) -> None:
    how, severity, message, where = LOCAL[case]
    found = checked(tmp_path, how).findings
    assert [finding.severity for finding in found] == [severity]
    assert message in found[0].message
    assert found[0].mend
    assert found[0].render().startswith(f"{severity}: {where}: ")


def test_counts_of_a_dozen_tests(tmp_path: Path) -> None:
    report = checked(tmp_path, tests=12)
    assert (report.tests, report.questions) == (12, 108)
    assert sum(report.letters.values()) == sum(report.families.values()) == 108
    assert report.audio_types == {"speech": 4, "sound": 4, "music": 4}
    assert report.findings == ()


def test_chi_square_of_an_even_and_a_one_letter_bank() -> None:
    assert chi_square_even(dict.fromkeys("ABCDEF", 72)) == 0
    assert chi_square_even({**dict.fromkeys("ABCDE", 0), "F": 432}) == pytest.approx(2160)
    assert chi_square_even(dict.fromkeys("ABCDEF", 0)) == 0


def test_uneven_right_letters_are_an_error(tmp_path: Path) -> None:
    make_canary_bank(tmp_path, tests=6)
    bank = load_bank(tmp_path)
    for file in tmp_path.glob("canary-*.json"):
        content = json.loads(file.read_text())
        for stage, body in content["stages"].items():
            for asked in body["questions"]:
                item = f"{content['id']}.{stage}.{asked['id']}"
                asked["answer"] = shown_options(seed=bank.card.order_seed, item=item, options=asked["options"])[2]
        file.write_text(json.dumps(content))
    bank = load_bank(tmp_path)
    assert right_letters(bank) == {"A": 0, "B": 0, "C": 54, "D": 0, "E": 0, "F": 0}
    assert any(f.severity == "error" and "right letters are uneven" in f.message for f in check_bank(bank).findings)


def test_uneven_families_and_types_are_warned_of(tmp_path: Path) -> None:
    def one_family(content: dict[str, Any]) -> None:
        content["audio_type"] = "speech"
        for stage in content["stages"].values():
            for asked in stage["questions"]:
                asked["family"] = "expression"

    messages = [finding.message for finding in checked(tmp_path, one_family, every=True).findings]
    assert any(m.startswith("54 questions of family expression, an even share is 11 (chi-square, p ") for m in messages)
    assert "no speech test asks for scene_acoustics" in messages
    assert "audio types are uneven: 6 speech, 0 sound, 0 music" in messages


def test_uneven_families_name_their_questions(tmp_path: Path) -> None:
    def mostly_one(content: dict[str, Any]) -> None:
        for stage in content["stages"].values():
            stage["questions"][0]["family"] = stage["questions"][1]["family"] = "expression"

    found = [f for f in checked(tmp_path, mostly_one, every=True).findings if "of family expression" in f.message]
    assert len(found) == 1
    assert {"canary-000.edit.q1", "canary-005.counterfactual.q2"} <= set(found[0].questions)
    assert "and " in found[0].render()


def test_an_answer_that_is_always_the_longest_or_always_the_same_is_warned_of(tmp_path: Path) -> None:
    def tell(content: dict[str, Any]) -> None:
        for stage in content["stages"].values():
            asked = stage["questions"][1]
            asked["text"] = "How many knocks?"
            asked["options"], asked["answer"] = ["one", "two", "three or so", "four", "five", "six"], "three or so"
            other = stage["questions"][2]
            other["options"][other["options"].index(other["answer"])] = other["answer"] = other["answer"] + " too"

    findings = {finding.message: finding for finding in checked(tmp_path, tell, every=True, tests=12).findings}
    same = findings['"three or so" answers 36 of the 36 questions "how many knocks"']
    assert len(same.questions) == 36
    longest = next(
        finding for message, finding in findings.items() if message.startswith("the longest option is right")
    )
    assert "canary-000.edit.q2" in longest.questions
    assert longest.severity == "warning"
    assert any(message.startswith("the most frequent right option of other tests is right") for message in findings)


def test_without_embeddings_it_says_what_was_not_checked(tmp_path: Path) -> None:
    report = checked(tmp_path)
    assert "near-duplicates by cosine" in report.not_made
    assert len(report.not_made) == 6
    assert len(report.solvers) == 6
    assert len(report.echoes) == 1


def test_with_vectors_nothing_is_left_out(tmp_path: Path) -> None:
    make_canary_bank(tmp_path, tests=6)
    report = check_bank(load_bank(tmp_path), embed=letters)
    assert report.not_made == ()
    assert (len(report.solvers), len(report.echoes)) == (10, 2)
    assert all(rate.questions == 54 for rate in (*report.solvers, *report.echoes))


def letters(texts: Sequence[str]) -> NDArray[np.float16]:
    """How often each letter occurs, as unit vectors."""
    counts = np.array([[text.lower().count(letter) for letter in string.ascii_lowercase] for text in texts], float)
    return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float16)
