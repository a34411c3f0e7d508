"""Edits of a spoken line: words, speaker, manner, place."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")
pytest.importorskip("tokenizers")
pytest.importorskip("pedalboard")

import numpy as np

from actors.pocket import edit_speech, english, speech
from tests.actors.pocket.edited import RATE, centroid, edited, rms
from torus_ray.audio import Clip


@pytest.fixture(scope="module")
def spoken() -> Clip:
    rng = np.random.default_rng(0)
    voice = speech.cast((english.speaker("a man"),), rng)[0]
    said = speech.render(speech.Line("Please close the red door.", voice), rng)
    return Clip(np.concatenate([np.zeros(RATE // 5, np.float32), said, np.zeros(RATE // 2, np.float32)]), RATE)


def heard(source: Clip) -> str:
    import soxr

    return edit_speech.recognizer()(soxr.resample(source.wave.mean(axis=0), RATE, 16000))[0].lower()


def test_words_are_changed_in_the_same_voice(spoken: Clip) -> None:
    out = edited(spoken, 'Change the word "red" to "green".', "speech")
    assert "green door" in heard(out)
    assert edit_speech.pitch_hz(out.wave.astype(float)) == pytest.approx(
        edit_speech.pitch_hz(spoken.wave.astype(float)), rel=0.1
    )


def test_another_speaker_says_the_same(spoken: Clip) -> None:
    out = edited(spoken, "What if a woman had said it?", "speech")
    assert edit_speech.pitch_hz(out.wave.astype(float)) > 165
    assert out.frames == spoken.frames
    assert "door" in heard(out)


def test_a_whisper_has_no_voice(spoken: Clip) -> None:
    out = edited(spoken, "The speaker whispers the line instead", "speech")
    assert rms(out.wave) < rms(spoken.wave)
    assert centroid(out) > 1.3 * centroid(spoken)


@pytest.mark.parametrize(
    ("prompt", "low", "high"),
    [("What if her grandfather had said it?", 75, 130), ("had a small child read it out", 260, 380)],
)
def test_another_speaker_has_the_pitch_of_his_age(spoken: Clip, prompt: str, low: float, high: float) -> None:
    out = edited(spoken, prompt, "speech")
    assert low <= edit_speech.pitch_hz(out.wave.astype(float)) <= high
    assert "door" in heard(out)


def test_a_state_of_mind_changes_pace_and_level(spoken: Clip) -> None:
    worn = edited(spoken, "Suppose he had been utterly exhausted and far slower", "speech")
    assert worn.duration_s > 1.25 * spoken.duration_s
    assert rms(worn.wave) < 0.8 * rms(spoken.wave)
    assert edited(spoken, "as if he were in a great hurry", "speech").duration_s < 0.85 * spoken.duration_s
    furious = edited(spoken, "Imagine he had said it angrily", "speech")
    assert rms(furious.wave) > 1.2 * rms(spoken.wave)
    assert centroid(furious) > 1.2 * centroid(spoken)


def test_speech_far_down_a_corridor_is_understood(spoken: Clip) -> None:
    out = edited(spoken, "as heard from far down a corridor", "speech")
    assert rms(out.wave) < 0.3 * rms(spoken.wave)
    assert "close the red door" in heard(out)
