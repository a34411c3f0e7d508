"""Events and sources are edited as asked, heard in the signal, and what an edit does not name stays."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")
pytest.importorskip("tokenizers")
pytest.importorskip("pedalboard")

import numpy as np

from actors.pocket import edit_words
from tests.actors.pocket.edited import (
    RAINY,
    RATE,
    STEPS,
    THREE,
    TICKS,
    clip,
    edited,
    groups,
    likeness,
    onsets,
    rms,
    span,
)
from torus_ray.audio import Clip


@pytest.mark.parametrize(
    "prompt",
    [
        "Remove the second dog bark.",
        "Take out the second bark, leaving everything else as it is",
        "What would it sound like if the second dog bark had never happened?",
    ],
)
def test_one_event_is_removed_and_the_rest_stays(prompt: str) -> None:
    out = edited(THREE, prompt)
    assert out.frames == THREE.frames
    assert rms(span(out, 0.78, 1.05)) < 0.02 * rms(span(THREE, 0.78, 1.05))
    assert np.array_equal(span(out, 1.25, 8.0), span(THREE, 1.25, 8.0))
    assert np.array_equal(span(out, 0.0, 0.6), span(THREE, 0.0, 0.6))


@pytest.mark.parametrize(
    "prompt",
    ["Delete the door slam.", "Suppose the door had never slammed.", "Imagine the scene without the door slam"],
)
def test_a_source_is_removed(prompt: str) -> None:
    out = edited(THREE, prompt)
    assert rms(span(out, 3.4, 4.6)) < 0.02 * rms(span(THREE, 3.4, 4.6))
    assert np.array_equal(span(out, 5.6, 8.0), span(THREE, 5.6, 8.0))
    assert np.array_equal(span(out, 0.0, 3.0), span(THREE, 0.0, 3.0))


def test_a_background_is_removed_and_events_stay() -> None:
    out = edited(RAINY, "remove the rain")
    assert rms(span(out, 4.0, 6.0)) < 0.1 * rms(span(RAINY, 4.0, 6.0))
    assert rms(span(out, 1.0, 1.6)) == pytest.approx(rms(span(RAINY, 1.0, 1.6)), rel=0.3)
    assert len(onsets(out)) == 2


def test_a_sound_is_added_at_the_end() -> None:
    out = edited(THREE, "Add a cow mooing at the end")
    assert 8.0 < out.duration_s <= 10.0
    assert np.array_equal(out.wave[:, : int(6.9 * RATE)], span(THREE, 0.0, 6.9))
    assert rms(span(out, 7.3, 8.5)) > 0.03


def test_a_sound_is_added_at_the_start() -> None:
    out = edited(STEPS, "Put a church bell at the very beginning")
    assert likeness(out, 0.0, 2.0, "a church bell") > 0.8
    assert len(onsets(out)) >= len(onsets(STEPS)) + 1


def test_a_sound_is_added_after_the_named_event() -> None:
    out = edited(STEPS, "Insert a cat meow after the second knock")
    assert len(groups(out)) >= 3
    assert likeness(out, 1.1, 1.9, "a cat meow") > 0.6


def test_a_background_is_added_under_everything() -> None:
    out = edited(THREE, "Add steady rain in the background")
    assert out.frames == THREE.frames
    assert rms(span(out, 2.2, 3.2)) > 0.005 > rms(span(THREE, 2.2, 3.2))
    assert np.abs(out.wave - THREE.wave).max() < 0.5


@pytest.mark.parametrize(
    "prompt",
    [
        "Replace the doorbell with a sheep bleating.",
        "Imagine the doorbell had been a sheep",
        "A sheep bleats instead of the doorbell",
    ],
)
def test_a_source_is_replaced_at_its_place(prompt: str) -> None:
    out = edited(THREE, prompt)
    assert likeness(out, 5.4, 7.0, "a sheep bleating") > 0.75
    assert likeness(out, 5.4, 7.0, "a doorbell") < likeness(THREE, 5.4, 7.0, "a doorbell") - 0.2
    assert np.array_equal(span(out, 0.0, 5.3), span(THREE, 0.0, 5.3))


@pytest.mark.parametrize(
    "prompt",
    [
        "Had the footsteps been on a wooden floor instead of gravel, how would it sound?",
        "Suppose the same steps were taken on a wooden floor",
        "Change the footsteps to a wooden floor",
    ],
)
def test_steps_keep_their_times_on_another_ground(prompt: str) -> None:
    out = edited(STEPS, prompt)
    before, after = [t for t in onsets(STEPS) if t > 2.5], [t for t in onsets(out) if t > 2.5]
    assert len(after) == len(before) == 6
    assert after == pytest.approx(before, abs=0.04)
    assert likeness(out, 3.0, 6.3, "footsteps on a wooden floor") > 0.8
    assert np.array_equal(span(out, 0.0, 2.8), span(STEPS, 0.0, 2.8))


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        ("What if the dog had barked five times?", 5),
        ("The dog barks only once", 1),
        ("Add one more bark", 4),
        ("Suppose there had been two more dog barks", 5),
    ],
)
def test_another_number_of_barks(prompt: str, count: int) -> None:
    assert len([t for t in onsets(edited(THREE, prompt)) if t < 3.3]) == count


@pytest.mark.parametrize(
    "prompt",
    [
        "Swap the order of the sounds.",
        "Imagine the sounds had happened in the opposite order",
        "What if the doorbell had rung before the dog barked?",
    ],
)
def test_the_order_is_swapped(prompt: str) -> None:
    out = edited(THREE, prompt)
    found = groups(out)
    assert len(found) == 3
    assert len(found[-1]) == 3
    assert likeness(out, found[0][0], found[0][0] + 1.2, "a doorbell") > 0.8


def test_halves_are_swapped() -> None:
    out = edited(STEPS, "swap the first and second half")
    half = STEPS.frames // 2
    assert np.allclose(out.wave[:, 2000 : half - 2000], STEPS.wave[:, half + 2000 : -2000], atol=1e-4)


def test_a_source_is_moved() -> None:
    out = edited(THREE, "Move the doorbell to the beginning")
    assert likeness(out, 0.0, 1.2, "a doorbell") > 0.8
    assert len([t for t in onsets(out) if 1.3 < t < 3.2]) == 3


def test_backwards() -> None:
    assert np.allclose(edited(STEPS, "Play the whole thing backwards").wave, STEPS.wave[:, ::-1])


def test_a_pause_moves_what_follows() -> None:
    out = edited(STEPS, "Insert a one-second pause after the knocks")
    assert out.duration_s == pytest.approx(9.0, abs=0.01)
    assert next(t for t in onsets(out) if t > 2) == pytest.approx(4.0, abs=0.03)


def test_cut_and_extend() -> None:
    assert edited(STEPS, "trim it to the first four seconds").duration_s == pytest.approx(4.0, abs=0.02)
    assert edited(TICKS, "extend it to nine seconds").duration_s == pytest.approx(9.0, abs=0.02)
    assert edited(THREE, "remove the first two seconds").duration_s == pytest.approx(6.0, abs=0.02)
    muted = edited(THREE, "mute the first two seconds")
    assert muted.frames == THREE.frames
    assert rms(span(muted, 0.0, 1.95)) < 1e-3


def test_repeat() -> None:
    short = Clip(span(THREE, 0.0, 2.0), RATE)
    out = edited(short, "repeat the whole clip three times")
    assert out.duration_s == pytest.approx(6.0, abs=0.05)
    assert len(onsets(out)) == 9


# --- contract ---------------------------------------------------------------------------------------------------------

PROMPTS = (
    "Add a bell at the end",
    "as if in a cathedral",
    "make it faster",
    "remove the rain",
    "make it whispered by ghosts under the sea",
    "!!!",
    "x" * 3000,
)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_same_seed_same_bytes_and_the_form_is_kept(prompt: str) -> None:
    stereo = clip(("two car horn honks", 1.0), seconds=4.0, bed="rain", channels=2)
    one, two = edited(stereo, prompt), edited(stereo, prompt)
    assert np.array_equal(one.wave, two.wave)
    assert one.rate_hz == RATE
    assert one.channels == 2
    assert 0.1 < one.duration_s <= 10.0
    assert np.isfinite(one.wave).all()
    assert np.abs(one.wave).max() <= 1.0


def test_silence_and_other_rates_are_taken() -> None:
    silent = Clip(np.zeros((1, RATE), np.float32), RATE)
    for prompt in ("remove the dog", "swap the order", "add a bell", "what if it rained", "make it louder"):
        assert edited(silent, prompt).frames > 0
    low = Clip(STEPS.wave[:, ::2], 22050)
    assert edited(low, "make it muffled").rate_hz == 22050


def test_clauses() -> None:
    said = [
        c.text
        for c in edit_words.clauses("Imagine that the dog barked, then make it louder; keep everything else the same.")
    ]
    assert said == ["the dog barked", "make it louder"]
