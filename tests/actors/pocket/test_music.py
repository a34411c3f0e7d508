"""Music: the plan obeys the prompt, the notes obey the plan, the sound obeys the notes."""

from __future__ import annotations

import numpy as np
import pytest

from actors.pocket import music, music_compose, music_names, music_plan, weights
from actors.pocket.music_compose import Score
from actors.pocket.music_plan import DRUMS, Plan

MAJOR = np.array([6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88])
MINOR = np.array([6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17])


def planned(prompt: str, seed: int = 1) -> tuple[Plan, Score]:
    rng = np.random.default_rng(seed)
    plan = music_plan.make_plan(prompt, rng)
    return plan, music_compose.compose(plan, rng)


def names(plan: Plan, section: int = 0) -> set[str]:
    return {part.name for part in plan.sections[section].parts}


def key_of(score: Score) -> tuple[int, str]:
    weight = np.zeros(12)
    for note in score.notes:
        if score.parts[note.part].program != DRUMS:
            weight[note.pitch % 12] += note.duration
    fits = [
        (float(np.corrcoef(np.roll(profile, tonic), weight)[0, 1]), tonic, mode)
        for tonic in range(12)
        for profile, mode in ((MAJOR, "major"), (MINOR, "minor"))
    ]
    return max(fits)[1:]


def pulse_bpm(wave: np.ndarray, near: float) -> float:
    """The pulse of the onset strength near a tempo, as bpm: the beat and its halves, quarters and eighths together."""
    mono = wave.mean(axis=0)
    hop = 441
    frames = np.abs(np.fft.rfft(np.lib.stride_tricks.sliding_window_view(mono, 1024)[::hop] * np.hanning(1024), axis=1))
    onset = np.maximum(0, np.diff(np.log1p(20 * frames), axis=0)).sum(axis=1)
    onset = onset - onset.mean()
    spectrum = np.abs(np.fft.rfft(onset, 1 << 17))
    resolution = 60 * 44100 / hop / (1 << 17)
    tempos = np.arange(near * 0.85, near * 1.15, 0.05)
    fits = [sum(spectrum[round(k * t / resolution)] for k in (1, 2, 4, 8)) for t in tempos]
    return float(tempos[int(np.argmax(fits))])


@pytest.mark.parametrize(
    ("prompt", "bpm"),
    [
        ("a rock beat on drums at 140 bpm", 140),
        ("a piano waltz at 150 bpm", 150),
        ("techno at 128 beats per minute", 128),
        ("marimba ostinato, 96 bpm", 96),
    ],
)
def test_tempo_is_heard(prompt: str, bpm: float) -> None:
    wave = music.render(prompt, None, np.random.default_rng(2))
    assert pulse_bpm(wave, bpm) == pytest.approx(bpm, rel=0.03)


@pytest.mark.parametrize(
    ("prompt", "key"),
    [
        ("a piano piece in D minor", (2, "minor")),
        ("a string quartet in E-flat major", (3, "major")),
        ("acoustic guitar arpeggios in C major", (0, "major")),
        ("a solo flute melody in A minor", (9, "minor")),
        ("jazz with piano and upright bass in B-flat major", (10, "major")),
    ],
)
def test_key_is_clear(prompt: str, key: tuple[int, str]) -> None:
    assert key_of(planned(prompt)[1]) == key


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("a duet of violin and cello", {"violin", "cello"}),
        ("erhu over a harmonium drone", {"violin", "reed organ"}),
        ("a pop song without drums", {"piano", "synth lead", "bass guitar"}),
        ("steel pans and ukulele", {"steel drums", "ukulele"}),
        ("a distorted electric guitar riff with double bass", {"distorted guitar", "upright bass"}),
    ],
)
def test_instruments(prompt: str, expected: set[str]) -> None:
    found = {n.replace("contrabass", "upright bass").replace("bass", "bass") for n in names(planned(prompt)[0])}
    assert found == expected or found == {e.replace("upright bass", "bass") for e in expected}


def test_meter_and_bars() -> None:
    plan, score = planned("a waltz in 3/4 at 120 bpm for piano")
    assert plan.sections[0].meter.beats == 3
    assert score.end == pytest.approx(plan.sections[0].bars * 1.5)


def test_form() -> None:
    plan, _ = planned("Solo piano at 120 bpm, then drums enter")
    assert names(plan) == {"piano"}
    assert names(plan, 1) == {"piano", "drum kit"}
    plan, score = planned("Trumpet and trombone in call and response at 120 bpm")
    bars = {
        p.name: {int(n.start / 2.0 + 1e-6) % 2 for n in score.notes if score.parts[n.part] is p and n.start < score.end}
        for p in score.parts
    }
    assert bars["trumpet"] == {0}
    assert bars["trombone"] == {1}
    plan, _ = planned("A piano melody at 100 bpm that modulates up two semitones")
    first, second = plan.sections
    assert (second.key.tonic - first.key.tonic) % 12 == 2


def test_tempo_change_and_registers() -> None:
    _, score = planned("piano chords, pulsing, at 100 bpm, gradually speeding up")
    starts = sorted({round(n.start, 3) for n in score.notes})
    assert starts[1] - starts[0] > 1.25 * (starts[-2] - starts[-3])
    low, high = (
        np.mean([n.pitch for n in planned(p)[1].notes]) for p in ("a low cello melody", "a high violin melody")
    )
    assert low < 55 < 72 < high
    rising = [n.pitch for n in planned("a flute plays an ascending scale")[1].notes]
    assert rising[:8] == sorted(rising[:8])


def test_dynamics_and_endings() -> None:
    def halves_db(prompt: str) -> float:
        wave = music.render(prompt, None, np.random.default_rng(0))
        third = wave.shape[1] // 3
        a, b = wave[:, :third], wave[:, 2 * third : 2 * third + third // 2]
        return float(10 * np.log10((b**2).mean() / (a**2).mean()))

    assert halves_db("a string crescendo, steady chords") > 6
    assert halves_db("an organ chord that fades out") < -6
    wave = music.render("a guitar strums chords and ends abruptly", None, np.random.default_rng(0))
    assert np.sqrt((wave[:, -4410:-441] ** 2).mean()) > 0.02


def test_staccato_is_shorter_than_legato() -> None:
    short, long = (
        np.mean([n.duration for n in planned(f"a {word} violin melody at 100 bpm")[1].notes])
        for word in ("staccato", "legato")
    )
    assert short < 0.6 * long


def test_same_seed_same_samples_another_seed_another_tune() -> None:
    one, two, other = (music.render("a jazz trio", None, np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_without_the_soundfont_the_notes_still_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "available", lambda *_: False)
    wave = music.render("a rock beat at 140 bpm on drums", None, np.random.default_rng(0))
    assert pulse_bpm(wave, 140) == pytest.approx(140, rel=0.03)


def test_what_is_music() -> None:
    assert music_names.is_music("soft piano music")
    assert music_names.is_music("a melody in C minor")
    assert not music_names.is_music("a car horn honks")
    assert not music_names.is_music("a dog barks")


@pytest.mark.parametrize(
    ("prompt", "count", "steps"),
    [
        ("an oboe plays a rising scale of eight notes", 8, [1] * 7),
        ("a tuba plays four long falling notes", 4, [-1] * 3),
        ("a bell-like vibraphone repeats the same note five times", 5, [0] * 4),
        ("a clarinet plays a scale up and then back down", 15, [1] * 7 + [-1] * 7),
        ("six octave leaps... six notes of octave leaps on a piano", 6, [1, -1, 1, -1, 1]),
    ],
)
def test_a_described_pattern_is_obeyed(prompt: str, count: int, steps: list[int]) -> None:
    plan, score = planned(prompt)
    pitches = [n.pitch for n in score.notes]
    assert len(plan.sections[0].parts) == 1
    assert len(pitches) == count
    assert list(np.sign(np.diff(pitches))) == steps


@pytest.mark.parametrize(
    "prompt", ["a cello tune in G minor", "a slow organ piece in E minor", "a sad waltz for piano in B minor"]
)
@pytest.mark.parametrize("seed", range(3))
def test_minor_sounds_minor(prompt: str, seed: int) -> None:
    plan, score = planned(prompt, seed)
    tonic = plan.sections[0].key.tonic
    weight = np.zeros(12)
    for note in score.notes:
        weight[(note.pitch - tonic) % 12] += note.duration
    assert weight[4] == 0
    assert weight[3] > 0
    first = {(n.pitch - tonic) % 12 for n in score.notes if n.start < 0.02}
    last = {(n.pitch - tonic) % 12 for n in score.notes if n.start > score.notes[-1].start - 0.02}
    assert first <= {0, 3, 7}
    assert last <= {0, 3, 7}


def test_a_second_solo_takes_over() -> None:
    plan, score = planned("A lone oboe plays, and halfway through a trombone takes over")
    assert [sorted(names(plan, i)) for i in (0, 1)] == [["oboe"], ["trombone"]]
    swap = plan.sections[0].bars / sum(s.bars for s in plan.sections)
    assert 0.4 <= swap <= 0.6
    assert {score.parts[n.part].name for n in score.notes} == {"oboe", "trombone"}


def test_swell_and_sink() -> None:
    wave = music.render("strings that swell and then sink back", None, np.random.default_rng(0))
    parts = [float(np.sqrt((p**2).mean())) for p in np.array_split(wave[:, : int(8.5 * 44100)].mean(axis=0), 5)]
    assert parts[2] > 2.5 * parts[0]
    assert parts[2] > 2.5 * parts[4]
