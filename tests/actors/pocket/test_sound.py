"""Sounds from phrases: the right source, the right number, the traits in the signal, and how many a tagger
recognises."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("scipy")
pytest.importorskip("tokenizers")
pytest.importorskip("pedalboard")

import numpy as np
import soxr

from actors.pocket import edit_events, sound
from actors.pocket.ears.tags import Tagger
from actors.pocket.sound_catalogue import CATALOGUE
from actors.pocket.sound_traits import Traits, traits_of
from tests.actors.pocket.sound_labels import CASES

RATE = 44100


def render(phrase: str, seconds: float | None = None, seed: int = 5) -> np.ndarray:
    return sound.render_event(phrase, seconds, np.random.default_rng(seed))


def onsets(wave: np.ndarray) -> list[float]:
    return [e.start / RATE for e in edit_events.analyse(wave[np.newaxis, :].astype(float)).events]


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def centroid(x: np.ndarray) -> float:
    power = np.abs(np.fft.rfft(x)) ** 2
    return float((power * np.fft.rfftfreq(len(x), 1 / RATE)).sum() / power.sum())


@pytest.mark.parametrize(("phrase", "name"), [(phrase, name) for phrase, name, _ in CASES])
def test_words_name_their_source(phrase: str, name: str) -> None:
    assert sound.match(phrase).source.name == name


@pytest.mark.parametrize(
    ("phrase", "names"),
    [
        ("the family canine alerts its owners to an intruder", {"dog"}),
        ("a feline begging for food", {"cat", "purr"}),
        ("spectators expressing their approval by bringing their palms together", {"applause", "clapping"}),
        ("someone enters text on a laptop", {"typing"}),
        ("a timepiece on the mantelpiece", {"clock"}),
        ("champagne is opened", {"cork"}),
    ],
)
def test_a_paraphrase_finds_a_source_by_meaning(phrase: str, names: set[str]) -> None:
    assert sound.match(phrase).source.name in names


@pytest.mark.parametrize(
    ("phrase", "count"),
    [
        ("three dog barks", 3),
        ("two knocks on a wooden door", 2),
        ("a single hammer blow on wood", 1),
        ("five hand claps", 5),
        ("four footsteps on a wooden floor", 4),
        ("a car horn honks twice", 2),
        ("six water drips, one second apart", 6),
        ("three beeps", 3),
    ],
)
def test_a_number_is_heard(phrase: str, count: int) -> None:
    assert len(onsets(render(phrase))) == count


def test_spacing_is_kept() -> None:
    gaps = np.diff(onsets(render("four hand claps, one second apart")))
    assert gaps == pytest.approx(np.ones(3), abs=0.03)
    beats = np.diff(onsets(render("a metronome ticking at 90 bpm", 5.0)))
    assert np.median(beats) == pytest.approx(60 / 90, rel=0.03)


def test_speed_and_its_change() -> None:
    slow, fast = len(onsets(render("slow footsteps on wood", 5.0))), len(onsets(render("fast footsteps on wood", 5.0)))
    assert fast > 1.6 * slow
    gaps = np.diff(onsets(render("knocking that gets faster and faster, eight knocks")))
    assert np.mean(gaps[-2:]) < 0.7 * np.mean(gaps[:2])


def test_force_is_level() -> None:
    assert rms(render("a loud knock")) > 2 * rms(render("a very soft knock"))
    assert rms(render("heavy rain", 2.0)) > 2 * rms(render("light rain", 2.0))


def test_size_is_pitch() -> None:
    assert centroid(render("a huge bell")) < 0.8 * centroid(render("a bell"))
    assert centroid(render("a tiny dog barks")) > 1.15 * centroid(render("a huge dog barks"))


def test_material_is_timbre() -> None:
    long_tail = {m: len(render(f"a {m} bowl is struck")) for m in ("metal", "wooden")}
    assert long_tail["metal"] > 3 * long_tail["wooden"]
    assert centroid(render("footsteps on gravel", 3.0)) > 2 * centroid(render("footsteps on carpet", 3.0))


def test_level_over_time() -> None:
    for phrase, rises in (("wind getting louder and louder", True), ("rain dying away", False)):
        wave = render(phrase, 4.0)
        first, last = rms(wave[:RATE]), rms(wave[-RATE:])
        assert (last > 2 * first) if rises else (first > 2 * last)


@pytest.mark.parametrize("source", CATALOGUE, ids=lambda s: s.name)
def test_every_source_renders_well(source: sound.Source) -> None:
    traits = traits_of(source.name)
    started = time.process_time()
    wave = sound.render_source(source, traits, None, np.random.default_rng(1))
    assert time.process_time() - started < 1.0
    assert wave.dtype == np.float32
    assert wave.ndim == 1
    assert np.isfinite(wave).all()
    assert 0.02 < np.abs(wave).max() <= 1.0
    assert np.abs(wave[: RATE // 4]).max() > 0.02 * np.abs(wave).max()
    assert len(wave) <= 10 * RATE
    assert len(sound.render_source(source, traits, 2.5, np.random.default_rng(1))) == round(2.5 * RATE)
    assert np.array_equal(wave, sound.render_source(source, traits, None, np.random.default_rng(1)))


def test_seeds_differ() -> None:
    assert not np.array_equal(render("heavy rain", 1.0, 1), render("heavy rain", 1.0, 2))


def test_most_sources_are_recognised_by_a_tagger() -> None:
    """YAMNet's five strongest tags of a render hold one of the labels meant; the share is in docs/."""
    tagger = Tagger({}, 1)
    hits = []
    for phrase, _, labels in CASES:
        wave = soxr.resample(render(phrase, seed=7), RATE, 16000, quality="HQ")
        top = {label for label, _ in tagger(np.asarray(wave, dtype=np.float32)).top(5)}
        hits.append(bool(top & set(labels)))
    assert np.mean(hits) >= 0.5


def test_three_of_a_thing_are_three_onsets() -> None:
    """Things that sound once (no ding-dongs, no shards) are counted right by an onset detector, for most kinds."""
    right = []
    for source in CATALOGUE:
        if source.kind != "texture":
            wave = sound.render_source(source, Traits(count=3), None, np.random.default_rng(4))
            right.append(len(onsets(wave)) == 3)
    assert np.mean(right) >= 0.7
