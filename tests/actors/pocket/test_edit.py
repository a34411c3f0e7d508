"""Edits are heard in the signal, and what they do not name stays."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")
pytest.importorskip("tokenizers")
pytest.importorskip("pedalboard")

import numpy as np

from actors.pocket import edit, edit_events, edit_music, edit_speech, edit_words, english, sound, speech
from actors.pocket.ears.music import Note
from torus_ray.audio import Clip

RATE = 44100


def clip(*parts: tuple[str, float], seconds: float = 8.0, bed: str | None = None, channels: int = 1) -> Clip:
    out = np.zeros(int(seconds * RATE))
    for k, (phrase, at) in enumerate(parts):
        wave = sound.render_event(phrase, None, np.random.default_rng(k))
        start = int(at * RATE)
        out[start : start + len(wave)] += wave[: len(out) - start]
    if bed:
        out += 0.3 * sound.render_event(bed, seconds, np.random.default_rng(9))
    return Clip(np.tile(out, (channels, 1)).astype(np.float32), RATE)


THREE = clip(("three dog barks", 0.3), ("a door slamming", 3.5), ("a doorbell", 5.5))
STEPS = clip(("two knocks on a door", 0.4), ("six footsteps on gravel", 3.0))
RAINY = clip(("two car horn honks", 1.0), seconds=6.0, bed="rain")
TICKS = clip(("twelve clock ticks, half a second apart", 0.1), seconds=7.0)


def edited(source: Clip, prompt: str, kind: str = "sound", seed: int = 1) -> Clip:
    return edit.apply_edit(source, prompt, kind, seed)


def onsets(source: Clip) -> list[float]:
    return [e.start / RATE for e in edit_events.analyse(source.wave.astype(float)).events]


def groups(source: Clip) -> list[list[float]]:
    scene = edit_events.analyse(source.wave.astype(float))
    return [[scene.events[i].start / RATE for i in g] for g in scene.groups]


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))


def span(source: Clip, start: float, stop: float) -> np.ndarray:
    return source.wave[:, int(start * RATE) : int(stop * RATE)]


def centroid(source: Clip) -> float:
    power = np.abs(np.fft.rfft(source.wave[0].astype(float))) ** 2
    return float((power * np.fft.rfftfreq(source.frames, 1 / RATE)).sum() / power.sum())


def likeness(source: Clip, start: float, stop: float, phrase: str) -> float:
    template = sound.render_event(phrase, None, np.random.default_rng(3)).astype(float)
    piece = span(source, start, stop).mean(axis=0).astype(float)
    return edit_events.likeness(edit_events.spectrum(piece), edit_events.spectrum(template))


# --- what happens -----------------------------------------------------------------------------------------------------


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


# --- tone, level, time, space -----------------------------------------------------------------------------------------


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


# --- music ------------------------------------------------------------------------------------------------------------


def tune(program: int = 0, bpm: float = 120.0, seconds: float = 8.0) -> Clip:
    steps = [0, 4, 7, 4, 5, 9, 7, 4, 0, 2, 4, 7, 5, 4, 2, 0] * 3
    beat = 60 / bpm
    notes = [
        Note(k * beat, (k + 0.9) * beat, 60 + step, 0.6) for k, step in enumerate(steps) if (k + 1) * beat < seconds
    ]
    return Clip(edit_music.played(tuple(notes), program, int(seconds * RATE)).astype(np.float32), RATE)


@pytest.mark.parametrize(
    ("prompt", "bpm"), [("Slow the tempo to 90 bpm", 90.0), ("What if the pianist had played it 30 bpm faster?", 150.0)]
)
def test_tempo(prompt: str, bpm: float) -> None:
    assert edit_music.tempo_of(edited(tune(), prompt, "music").wave.astype(float)) == pytest.approx(bpm, rel=0.03)


def test_key_moves() -> None:
    before = edit_music.key_of(tune().wave.astype(float)).tonic
    after = edit_music.key_of(edited(tune(), "transpose it up two semitones", "music").wave.astype(float)).tonic
    assert (after - before) % 12 == 2


def test_another_instrument_keeps_the_tempo() -> None:
    out = edited(tune(), "Imagine the piece were played on a flute instead of a piano", "music")
    assert edit_music.tempo_of(out.wave.astype(float)) == pytest.approx(120, rel=0.03)
    assert out.frames == tune().frames
    assert not np.allclose(out.wave, tune().wave, atol=0.01)


def test_drums_are_taken_out() -> None:
    rng = np.random.default_rng(0)
    clean = tune().wave.astype(float)
    drums = np.zeros_like(clean)
    for k in range(16):
        at = int(k * 0.5 * RATE)
        drums[0, at : at + 2000] = 0.3 * rng.standard_normal(2000) * np.exp(-np.arange(2000) / 400)
    out = edited(Clip((clean + drums).astype(np.float32), RATE), "remove the drums", "music").wave
    high = [np.abs(np.fft.rfft(x[0])[60000:]) for x in (out, clean + drums)]
    assert (high[0] ** 2).sum() < 0.3 * (high[1] ** 2).sum()


# --- speech -----------------------------------------------------------------------------------------------------------


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


# --- which one, how much, how fast ------------------------------------------------------------------------------------


def tones(pitches: tuple[float, ...], times: tuple[float, ...], seconds: float = 8.0, decay_s: float = 0.15) -> Clip:
    out = np.zeros(int(seconds * RATE))
    t = np.arange(int(min(6 * decay_s, 3.0) * RATE)) / RATE
    for hz, at in zip(pitches, times, strict=True):
        x = 0.25 * np.minimum(1, t / 0.004) * np.exp(-t / decay_s) * (np.sin(2 * np.pi * hz * t))
        start = int(at * RATE)
        out[start : start + len(x)] += x[: len(out) - start]
    return Clip(out[np.newaxis].astype(np.float32), RATE)


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


@pytest.mark.parametrize("bpm", [40, 60, 90, 150, 200])
def test_the_tempo_of_even_notes_is_no_octave_off(bpm: float) -> None:
    times = tuple(np.arange(0.1, 9.0, 60 / bpm))
    row = tones(tuple(440.0 + 40 * (k % 4) for k in range(len(times))), times, 9.5, min(0.1, 8 / bpm))
    assert edit_music.tempo_of(row.wave.astype(float)) == pytest.approx(bpm, rel=0.02)


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
