"""Determinism, odd clips, odd questions, words."""

from __future__ import annotations

import numpy as np
import pytest

from torus_ray.audio import Clip, silence
from torus_ray.heads import Question

from . import signals as s

ODD = [
    Question("", ("", " ", "?", "...", "1", "\u00e9"), ""),
    Question("WHAT??", ("YES", "NO", "maybe", "none of these", "all of these", "42"), ""),
    Question("If \u201cit\u201d isn't heard, what is?", ("a", "the", "of", "then, then", ", ,", "- -"), ""),
    Question("How many?", ("more than twenty-one", "a hundred and ten", "half", "-3", "1e9", "zero"), ""),
    Question("What word follows 'xyzzy'?", ("one", "two", "three", "four", "five", "six"), ""),
    Question(
        "How does the second compare with the ninth?", ("louder", "softer", "same", "higher", "lower", "none"), ""
    ),
]


@pytest.mark.parametrize(
    "clip",
    [
        silence(1.0),
        s.clip(s.hiss(0.1)),
        Clip(np.zeros((1, 1), np.float32), 16_000),
        Clip(np.stack([s.siren(2), s.hiss(2)])[:, ::1].astype(np.float32), 48_000),
        Clip(np.full((1, 8_000), 0.3, np.float32), 8_000),
    ],
    ids=["silence", "a tenth of a second", "one sample", "48 kHz stereo", "constant"],
)
def test_any_clip_gets_a_letter_and_a_caption(ears, clip) -> None:  # type: ignore[no-untyped-def]
    letters = ears.answer(clip, ODD)
    assert len(letters) == len(ODD)
    assert set(letters) <= set("ABCDEF")
    assert ears.caption(clip, "Describe the clip.").strip()
    evidence = ears.hear(clip)
    for part in ("scene", "tags", "pitch", "speech", "voice", "space", "music", "kind", "backdrop"):
        getattr(evidence, part)  # any question may ask for any of them


def test_same_clip_same_text(ears) -> None:  # type: ignore[no-untyped-def]
    clip = s.clip(np.concatenate([s.siren(2), s.strokes([0.3, 0.8, 1.3])]))
    assert ears.caption(clip) == ears.caption(clip)
    assert ears.answer(clip, ODD) == ears.answer(clip, ODD)


def test_a_question_does_not_change_another(ears) -> None:  # type: ignore[no-untyped-def]
    clip = s.clip(s.strokes([0.3, 0.8, 1.3]))
    assert ears.answer(clip, ODD) == [ears.answer(clip, [q])[0] for q in ODD]


def test_evidence_is_reused_and_equals_a_fresh_hearing(ears) -> None:  # type: ignore[no-untyped-def]
    clip = s.clip(s.siren(3))
    evidence = ears.hear(clip)
    assert ears.caption(evidence) == ears.caption(clip)
    assert evidence.tags is evidence.tags


def test_silence_is_called_silence(ears) -> None:  # type: ignore[no-untyped-def]
    assert "ilence" in ears.caption(silence(2.0))


def test_level_of_the_whole_clip_does_not_hide_the_sound(ears) -> None:  # type: ignore[no-untyped-def]
    options = ("a siren", "rain", "a dog", "a piano", "footsteps", "laughter")
    assert ears.answer(s.clip(s.siren(4), peak=0.02), [Question("Which sound is heard?", options, "")]) == ["A"]


def test_missing_file_says_which(ears) -> None:  # type: ignore[no-untyped-def]
    from actors.pocket.ears.listen import Ears

    with pytest.raises(FileNotFoundError, match="yamnet"):
        Ears({"yamnet": "/nowhere/model.zip"}).hear(s.clip(s.siren(1))).tags  # noqa: B018


def test_class_names_in_the_tables_exist(ears) -> None:  # type: ignore[no-untyped-def]
    from actors.pocket.ears.source_words import CLASSES

    known = set(ears.models.tagger.labels)
    assert {name for _, names in CLASSES for name in names} <= known
