"""Edits of tone, level, time and space, of all or of one named event."""

from __future__ import annotations

import numpy as np
import pytest

from tests.actors.pocket.edited import (
    RAINY,
    RATE,
    STEPS,
    THREE,
    TICKS,
    centroid,
    clip,
    edited,
    onsets,
    rms,
    span,
    tones,
)
from torus_ray.audio import Clip


@pytest.mark.parametrize(
    "prompt",
    [
        "Make it muffled",
        "as if heard through a thick wall",
        "Apply a low-pass filter at 500 Hz",
        "Imagine you were hearing this from the next room",
    ],
)
def test_highs_are_lost(prompt: str) -> None:
    assert centroid(edited(THREE, prompt)) < 0.6 * centroid(THREE)


def test_brighter_and_thinner() -> None:
    assert centroid(edited(THREE, "make it brighter")) > 1.15 * centroid(THREE)
    assert centroid(edited(THREE, "cut the low frequencies below 800 Hz")) > 1.15 * centroid(THREE)


@pytest.mark.parametrize(
    "prompt",
    [
        "As if it had been recorded in a cathedral",
        "add a lot of reverb",
        "What if all of this took place in a huge cave?",
    ],
)
def test_a_room_fills_the_gaps(prompt: str) -> None:
    assert rms(span(edited(THREE, prompt), 1.7, 2.2)) > 30 * rms(span(THREE, 1.7, 2.2)) + 1e-4


@pytest.mark.parametrize(
    ("prompt", "factor"),
    [
        ("Make it twice as fast", 2.0),
        ("slow it down to half speed", 0.5),
        ("speed it up by 25 percent", 1.25),
        ("If the clock had been ticking 20 bpm slower", 100 / 120),
    ],
)
def test_speed(prompt: str, factor: float) -> None:
    out = edited(TICKS, prompt)
    assert np.median(np.diff(onsets(out))) == pytest.approx(0.5 / factor, rel=0.04)
    assert out.duration_s == pytest.approx(min(10.0, 7.0 / factor), rel=0.02)


@pytest.mark.parametrize(
    ("prompt", "ratio"),
    [("raise the pitch by an octave", 2.0), ("shift the pitch down by five semitones", 2 ** (-5 / 12))],
)
def test_pitch(prompt: str, ratio: float) -> None:
    t = np.arange(3 * RATE) / RATE
    tone = Clip((0.3 * np.sin(2 * np.pi * 440 * t)).astype(np.float32), RATE)
    out = edited(tone, prompt)
    peak = np.argmax(np.abs(np.fft.rfft(out.wave[0]))) * RATE / out.frames
    assert peak == pytest.approx(440 * ratio, rel=0.02)
    assert out.duration_s == pytest.approx(3.0, abs=0.02)


def test_level_of_the_whole_and_of_a_part() -> None:
    assert rms(edited(STEPS, "make it 6 dB quieter").wave) == pytest.approx(rms(STEPS.wave) * 0.501, rel=0.02)
    assert rms(edited(STEPS, "turn the volume up").wave) > 1.3 * rms(STEPS.wave)
    out = edited(THREE, "make the doorbell much quieter")
    assert np.array_equal(span(out, 0.0, 5.3), span(THREE, 0.0, 5.3))
    assert rms(span(out, 5.6, 7.0)) < 0.4 * rms(span(THREE, 5.6, 7.0))
    half = edited(THREE, "make the second half louder by 4 dB")
    assert np.array_equal(span(half, 0.0, 3.9), span(THREE, 0.0, 3.9))
    assert rms(span(half, 5.5, 7.0)) > 1.3 * rms(span(THREE, 5.5, 7.0))


def test_the_background_is_raised_alone() -> None:
    out = edited(RAINY, "make the rain much louder")
    assert rms(span(out, 4.0, 6.0)) > 1.6 * rms(span(RAINY, 4.0, 6.0))


@pytest.mark.parametrize(
    ("prompt", "rising"),
    [
        ("gradually louder towards the end, like a crescendo", True),
        ("let it get quieter and quieter", False),
        ("the steps are coming closer and closer", True),
        ("the walker is walking away into the distance", False),
    ],
)
def test_level_slope(prompt: str, rising: bool) -> None:
    out = edited(clip(("footsteps on wood", 0.0), ("footsteps on wood", 3.0), seconds=6.0), prompt)
    first, last = rms(span(out, 0.0, 1.5)), rms(span(out, 4.0, 5.5))
    assert last > 2 * first if rising else first > 2 * last


def test_fades_are_local() -> None:
    out = edited(RAINY, "Fade out over the last two seconds.")
    assert np.array_equal(span(out, 0.0, 3.9), span(RAINY, 0.0, 3.9))
    assert rms(span(out, 5.8, 6.0)) < 0.1 * rms(span(RAINY, 5.8, 6.0))
    assert rms(span(edited(RAINY, "fade in slowly"), 0.0, 0.2)) < 0.1 * rms(span(RAINY, 0.0, 0.2))


def test_sides() -> None:
    left = edited(STEPS, "pan it to the left")
    assert left.channels == 2
    assert rms(left.wave[0]) > 3 * rms(left.wave[1])
    crossing = edited(RAINY, "The sound moves from left to right")
    assert rms(crossing.wave[0, :RATE]) > 2 * rms(crossing.wave[1, :RATE])


def test_two_wishes_are_both_obeyed() -> None:
    out = edited(THREE, "Remove the door slam and then fade out at the end; keep the rest.")
    assert rms(span(out, 3.4, 4.6)) < 0.02 * rms(span(THREE, 3.4, 4.6))
    assert rms(span(out, 7.0, 8.0)) <= rms(span(THREE, 7.0, 8.0))


def test_noise_goes() -> None:
    hiss = 0.02 * np.random.default_rng(0).standard_normal(STEPS.frames)
    noisy = Clip(STEPS.wave + hiss.astype(np.float32), RATE)
    out = edited(noisy, "remove the background noise")
    assert rms(span(out, 1.8, 2.8)) < 0.2 * rms(span(noisy, 1.8, 2.8))
    assert rms(span(out, 0.4, 0.9)) > 0.6 * rms(span(STEPS, 0.4, 0.9))


def test_a_wish_read_by_meaning() -> None:
    out = edited(THREE, "Picture the microphone wrapped in layers of thick wool")
    assert centroid(out) < centroid(THREE)


def test_nothing_asked_changes_nothing() -> None:
    assert np.array_equal(edited(THREE, "Keep everything exactly as it is.").wave, THREE.wave)


# --- which one, how much, how fast ------------------------------------------------------------------------------------

BEEPS = tones((880, 660, 880, 990, 700), (0.3, 1.5, 2.7, 4.0, 5.5))
MIXED = clip(
    ("a dog bark", 0.3),
    ("a single knock on a door", 1.5),
    ("a dog bark", 2.8),
    ("a single knock on a door", 4.0),
    ("a dog bark", 5.2),
)


@pytest.mark.parametrize(
    ("source", "times", "prompt", "touched"),
    [
        (BEEPS, (0.3, 1.5, 2.7, 4.0, 5.5), "erase the last but one beep", {3}),
        (BEEPS, (0.3, 1.5, 2.7, 4.0, 5.5), "make the middle one louder", {2}),
        (BEEPS, (0.3, 1.5, 2.7, 4.0, 5.5), "take the first two tones out", {0, 1}),
        (BEEPS, (0.3, 1.5, 2.7, 4.0, 5.5), "turn beep number two down", {1}),
        (BEEPS, (0.3, 1.5, 2.7, 4.0, 5.5), "remove all but the first beep", {1, 2, 3, 4}),
        (MIXED, (0.3, 1.5, 2.8, 4.0, 5.2), "get rid of the second bark", {2}),
        (MIXED, (0.3, 1.5, 2.8, 4.0, 5.2), "make the last knock much quieter", {3}),
    ],
)
def test_the_numbered_event_alone_is_changed(
    source: Clip, times: tuple[float, ...], prompt: str, touched: set[int]
) -> None:
    out = edited(source, prompt)
    edges = [t - 0.07 for t in times] + [8.0]
    moved = {
        k
        for k in range(len(times))
        if not np.array_equal(span(out, edges[k], edges[k + 1]), span(source, edges[k], edges[k + 1]))
    }
    assert moved == touched


def test_hiss_behind_bells_goes_and_the_bells_stay() -> None:
    bells = tones((880, 660, 1046), (0.4, 2.0, 4.2), 7.0, 0.7)
    hiss = 0.02 * np.random.default_rng(0).standard_normal(bells.frames).astype(np.float32)
    out = edited(Clip(bells.wave + hiss, RATE), "Strip away the hissing behind the bells")
    assert rms(span(out, 0.0, 0.3)) < 0.25 * rms(hiss[: RATE // 3])
    assert rms(out.wave - bells.wave) < 0.1 * rms(bells.wave)


@pytest.mark.parametrize(
    ("prompt", "factor"),
    [
        ("Bring the overall level down by half", 0.5),
        ("What if everything had been only half as loud?", 0.5),
        ("reduce the volume to a quarter", 0.25),
    ],
)
def test_a_share_of_the_level_is_a_plain_gain(prompt: str, factor: float) -> None:
    assert np.allclose(edited(THREE, prompt).wave, THREE.wave * factor, atol=1e-4)


@pytest.mark.parametrize(
    ("prompt", "kept", "gone"),
    [
        ("Filter out everything over three kilohertz.", 1500, 6000),
        ("Take away all that lies under six hundred hertz", 1200, 300),
        ("Keep only the frequencies below 1.2 kHz", 600, 2400),
    ],
)
def test_a_cut_at_a_frequency_in_words(prompt: str, kept: float, gone: float) -> None:
    noise = Clip((0.1 * np.random.default_rng(0).standard_normal((1, 2 * RATE))).astype(np.float32), RATE)
    power = [np.abs(np.fft.rfft(c.wave[0])) ** 2 for c in (edited(noise, prompt), noise)]
    hz = np.fft.rfftfreq(noise.frames, 1 / RATE)
    change = [
        10 * np.log10(power[0][near].mean() / power[1][near].mean())
        for near in ((np.abs(hz / f - 1) < 0.05) for f in (kept, gone))
    ]
    assert change[0] > -1.5
    assert change[1] < -20


def test_slowed_to_a_tempo() -> None:
    out = edited(TICKS, "slow the ticking down to eighty beats per minute")
    assert np.median(np.diff(onsets(out))) == pytest.approx(0.75, rel=0.02)


@pytest.mark.parametrize(
    "prompt", ["Had there been a second knock right after the first", "as if they had knocked once more"]
)
def test_a_supposed_repetition_adds_one_copy(prompt: str) -> None:
    knock = clip(("a single knock on a door", 1.0), seconds=5.0)
    out = edited(knock, prompt)
    assert len(onsets(out)) == 2 * len(onsets(knock))
    assert np.array_equal(span(out, 0.0, 1.15), span(knock, 0.0, 1.15))
    assert 1.2 < onsets(out)[-1] < 2.5
