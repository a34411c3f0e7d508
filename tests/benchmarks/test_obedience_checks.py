"""Every measurement of benchmarks/obedience against signals whose truth is known, right ones and wrong ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.obedience import checks, expect, words
from benchmarks.obedience import pitch as tones
from tests.benchmarks.known import EDITS, heard


def scene(seconds: float, *sources: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"seconds": seconds, "sources": list(sources), **rest}


def knocks(*times: float, **rest: Any) -> Any:
    return heard(scene(5, {"is": "knock", "times": list(times), "db": -12}, **rest))


def held(kind: str, wave: Any, base: Any = None, **limits: Any) -> bool:
    return bool(expect.judge({"kind": kind, **limits}, wave, base)[0])


def hum(**rest: Any) -> Any:
    return heard(scene(6, {"is": "hum", "hz": 110, "for": 6.0, "db": -12, **rest}))


def tune(*hz: float, each: float = 0.5) -> Any:
    return heard(
        scene(6, *({"is": "tone", "hz": h, "at": 0.3 + i * each, "for": each * 0.8} for i, h in enumerate(hz)))
    )


def beats(period: float, loud_every: int = 1, n: int = 16) -> Any:
    ticks = {"is": "click", "times": [0.3 + i * period for i in range(n)], "db": -18}
    blows = {"is": "thud", "times": [0.3 + i * period for i in range(0, n, loud_every)], "db": -8}
    return heard(scene(0.6 + n * period, ticks, blows))


# --- events -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["onsets", "bumps", "spans"])
@pytest.mark.parametrize("background_db", [None, -45])
def test_counts_events_and_their_times(how: str, background_db: float | None) -> None:
    times = [0.5, 1.2, 1.9, 3.1]
    bed = [] if background_db is None else [{"is": "noise", "for": 5.0, "db": background_db}]
    wave = heard(scene(5, {"is": "knock", "times": times, "db": -12}, *bed))
    found = expect.event_times(wave, {"how": how, "below_db": 20} if how == "spans" else {"how": how})
    assert len(found) == 4
    assert np.abs(np.array(found) - times).max() < 0.05


@pytest.mark.parametrize("how", ["onsets", "bumps", "spans"])
def test_count_fails_on_another_number(how: str) -> None:
    wave = knocks(0.5, 1.2, 1.9)
    assert held("count", wave, want=3, how=how)
    assert not held("count", wave, want=4, how=how)
    assert held("count", wave, want=[2, 3], how=how)


def test_onsets_sees_struck_notes_that_ring_into_each_other() -> None:
    ringing = heard(
        scene(5, *({"is": "bell", "hz": h, "at": 0.5 + i, "for": 2.0} for i, h in enumerate((500, 610, 720))))
    )
    assert len(checks.onsets(ringing)) == 3


def test_onsets_sees_a_sound_that_opens_the_clip() -> None:
    assert checks.onsets(knocks(0.0, 1.0))[0] == pytest.approx(0.0, abs=0.02)


def test_nothing_happens_in_steady_noise() -> None:
    assert len(checks.onsets(heard(scene(5, {"is": "noise", "for": 5.0})), apart_s=0.2)) <= 1


def test_band_keeps_one_of_two_sources() -> None:
    both = heard(scene(5, {"is": "thud", "times": [1.0, 2.0]}, {"is": "click", "times": [0.5, 1.5, 2.5, 3.5]}))
    assert held("count", both, want=2, how="bumps", high_hz=300)
    assert held("count", both, want=4, how="bumps", low_hz=2000)
    assert not held("count", both, want=2, how="bumps", low_hz=2000)


def test_gap_and_duration() -> None:
    wave = heard(scene(6, {"is": "beep", "times": [1.0, 3.3], "for": 0.3}))
    assert checks.longest_gap_s(wave) == pytest.approx(2.0, abs=0.08)
    assert checks.sounding_s(wave) == pytest.approx(2.6, abs=0.08)
    assert held("gap", wave, min=1.8, max=2.2)
    assert not held("gap", wave, max=1.5)
    assert held("duration", wave, min=2.4, max=2.8)
    assert not held("duration", wave, min=3)
    assert checks.longest_gap_s(hum()) == 0.0


# --- level and room ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("want", ["rising", "falling", "steady", "swell"])
def test_level_names_one_course_and_no_other(want: str) -> None:
    swell = heard(scene(6, {"is": "hum", "hz": 110, "for": 6.0}))
    swell = swell * np.interp(np.linspace(0, 1, len(swell)), [0, 0.5, 1], [0.03, 1, 0.03])
    courses = {"rising": hum(ramp_db=[-20, 0]), "falling": hum(ramp_db=[0, -20]), "steady": hum(), "swell": swell}
    assert {name for name, wave in courses.items() if held("level", wave, want=want)} == {want}


def test_level_of_separate_blows() -> None:
    times = [0.3 + 0.5 * i for i in range(9)]
    louder = heard(scene(5, {"is": "knock", "times": times, "db": -40, "step_db": 3}))
    assert held("level", louder, want="rising")
    assert not held("level", louder, want="steady")


def test_tail_is_longer_in_a_hall() -> None:
    dry, hall = knocks(0.5, 1.5), knocks(0.5, 1.5, room_s=2.4, wet=0.6)
    assert checks.tail_s(dry) < 0.2
    assert 0.5 < checks.tail_s(hall) < 1.6
    assert held("tail_change", hall, dry, min=0.35)
    assert not held("tail_change", dry, dry, min=0.35)


def test_bed_tells_rain_from_silence_between_events() -> None:
    with_rain = heard(scene(5, {"is": "knock", "times": [1, 2, 3]}, {"is": "noise", "for": 5.0, "db": -30}))
    assert held("bed", with_rain, min=-35)
    assert not held("bed", knocks(1, 2, 3), min=-35)


# --- pitch ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hz", [82, 123, 210, 330, 880, 1760])
def test_pitch_is_right_to_a_percent(hz: float) -> None:
    wave = heard(scene(2, {"is": "tone", "hz": hz, "at": 0.2, "for": 1.5}))
    assert tones.median_pitch(wave, low_hz=65, high_hz=2500) == pytest.approx(hz, rel=0.01)


def test_pitch_by_part_and_its_failures() -> None:
    wave = tune(110, 110, 220, 220)
    assert held("pitch", wave, part="first", max=120)
    assert not held("pitch", wave, part="last", max=120)
    assert held("pitch_step", wave, min=11, max=13)
    assert not held("pitch_step", wave[::-1], min=5)
    assert math.isnan(tones.median_pitch(heard(scene(3, {"is": "noise", "for": 3.0}))))
    assert not held("pitch", heard(scene(3, {"is": "noise", "for": 3.0})), min=1)


def test_pitch_trend() -> None:
    up = tune(262, 294, 330, 349, 392, 440, 494, 523)
    assert held("pitch_trend", up, want="rising")
    assert not held("pitch_trend", up, want="falling")
    assert not held("pitch_trend", tune(330, 330, 330, 330), want="rising")


def test_pitch_trend_of_a_whistle_with_two_partials() -> None:
    high = {"is": "sweep", "hz": 1500, "to_hz": 2600, "for": 4.0, "count": 1}
    whistle = heard(scene(4, high, {**high, "hz": 2360, "to_hz": 4100, "db": -20}))
    limits = {"by": "peak", "track_low": 150, "track_high": 4500}
    assert held("pitch_trend", whistle, want="rising", **limits)
    assert not held("pitch_trend", whistle, want="falling", **limits)
    assert not held("pitch_trend", heard(scene(4, {**high, "to_hz": 1500})), want="rising", **limits)


def test_pitch_kept_compares_moment_by_moment() -> None:
    base = tune(200, 250, 300)
    swelling = base * np.linspace(0.05, 1, len(base))
    assert held("pitch_kept", swelling, base)
    assert held("pitch_kept", tune(300, 375, 450), base, ratio=1.5)
    assert not held("pitch_kept", tune(300, 250, 200), base)
    assert not held("pitch_kept", heard(scene(6, {"is": "noise", "for": 5.0})), base)


def test_pitched_share_tells_voice_from_breath() -> None:
    assert held("pitched_share", tune(150, 160), min=0.7)
    assert held("pitched_share", heard(scene(3, {"is": "noise", "for": 2.5})), max=0.15)


def test_pitch_ratio() -> None:
    low, high = tune(200, 220, 240), tune(300, 330, 360)
    assert held("pitch_ratio", high, low, min=1.45, max=1.55)
    assert not held("pitch_ratio", low, low, min=1.25)


# --- rhythm -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bpm", "accent"), [(60, 1), (60, 2), (80, 2), (100, 2), (120, 1), (120, 2), (140, 2), (150, 1)]
)
def test_tempo_is_within_two_percent_and_no_octave_off(bpm: float, accent: int) -> None:
    wave = beats(60 / bpm, loud_every=accent)
    assert checks.tempo_bpm(wave) == pytest.approx(bpm, rel=0.02)
    assert held("tempo", wave, bpm=bpm)
    assert not held("tempo", wave, bpm=bpm * 1.08)
    assert not held("tempo", wave, bpm=bpm * 2)
    assert held("tempo", wave, bpm=bpm, how="spacing", apart_s=0.2)


def test_octaves_are_allowed_only_when_named() -> None:
    wave = beats(0.5)
    assert held("tempo", wave, bpm=60, octaves=[2])
    assert not held("tempo", wave, bpm=60)


@pytest.mark.parametrize("meter", [3, 4])
def test_meter(meter: int) -> None:
    wave = beats(0.45, loud_every=meter, n=meter * 5)
    assert held("meter", wave, bpm=133.3, want=meter)
    assert not held("meter", wave, bpm=133.3, want=7 - meter)


def test_tempo_ratio() -> None:
    assert held("tempo_ratio", beats(0.5), beats(0.6), min=1.14, max=1.26)
    assert not held("tempo_ratio", beats(0.6), beats(0.6), min=1.14)


# --- spectrum, order, key ---------------------------------------------------------------------------------------------


def test_order_of_low_and_high() -> None:
    low_first = heard(scene(5, {"is": "thud", "times": [0.5, 1.0]}, {"is": "bell", "hz": 1800, "at": 3.0, "for": 1.0}))
    assert held("order", low_first, kinds=["low", "high"])
    assert not held("order", low_first, kinds=["high", "low"])
    assert not held("order", knocks(1, 2), kinds=["low", "high"], split_hz=3000), "one kind is missing"


def test_order_of_tone_and_noise() -> None:
    wave = heard(scene(5, {"is": "noise", "for": 1.5, "at": 0.3}, {"is": "tone", "hz": 300, "for": 1.5, "at": 3.0}))
    assert held("order", wave, kinds=["noise", "tonal"])
    assert not held("order", wave, kinds=["tonal", "noise"])


def test_noisiness() -> None:
    assert checks.noisiness(tune(300, 400)) < 0.15
    assert checks.noisiness(heard(scene(3, {"is": "noise", "for": 3.0}))) > 0.4


def test_centroid_falls_behind_a_door() -> None:
    open_, shut = knocks(1, 2), knocks(1, 2, low_pass_hz=300)
    assert held("centroid_ratio", shut, open_, max=0.8)
    assert not held("centroid_ratio", open_, open_, max=0.8)


def test_key() -> None:
    d_minor = heard(
        scene(6, *({"is": "tone", "hz": 440 * 2 ** ((k - 69) / 12), "at": 0.2 + 1.3 * i, "for": 1.2}
                   for i, chord in enumerate(((62, 65, 69), (67, 70, 74), (69, 73, 76), (62, 65, 69))) for k in chord))
    )  # fmt: skip
    assert held("key", d_minor, want="D minor")
    assert not held("key", d_minor, want="C major")
    assert not held("key", d_minor, want="D major")


# --- base and result --------------------------------------------------------------------------------------------------


def test_onsets_kept() -> None:
    base = knocks(0.5, 1.5, 2.5)
    assert held("onsets_kept", knocks(0.5, 1.5, 2.5, 3.5), base)
    assert not held("onsets_kept", knocks(0.5, 1.62, 2.5), base)
    assert held("onsets_kept", knocks(1.0, 2.0, 3.0), base, shift=0.5)


def test_spectrum_kept_and_changed() -> None:
    base = heard(scene(4, {"is": "bell", "hz": 600, "times": [0.5, 2.0]}))
    quieter, other = 0.4 * base, heard(scene(4, {"is": "noise", "for": 1.0, "at": 1.0}))
    assert held("spectrum_kept", quieter, base)
    assert not held("spectrum_kept", other, base)
    assert held("spectrum_changed", other, base)
    assert not held("spectrum_changed", quieter, base)


def test_level_change_in_window_and_band() -> None:
    base = hum()
    result = np.where(np.arange(len(base)) < 3 * checks.RATE, base, 0.1 * base)
    assert held("level_change", result, base, **{"from": 0.1, "to": 2.9}, min=-2, max=2)
    assert held("level_change", result, base, **{"from": 3.1, "to": 5.9}, min=-21, max=-19)
    assert not held("level_change", result, base, min=-2, max=2)
    assert held("level_change", checks.band(base, None, 600), base, low_hz=1500, max=-15)


def test_reversed() -> None:
    base = heard(EDITS["known-07"]["scene"])
    assert held("reversed", base[::-1], base)
    assert not held("reversed", base, base)


def test_length_ratio_and_count_change() -> None:
    assert held("length_ratio", knocks(0.5, 1.0, 1.5), knocks(0.5, 1.5, 2.5), min=0.45, max=0.6)
    assert held("count_change", knocks(0.5, 1.5), knocks(0.5), want=1)
    assert not held("count_change", knocks(0.5), knocks(0.5), want=1)


def test_a_comparison_needs_a_base() -> None:
    with pytest.raises(ValueError, match="there is none"):
        expect.judge({"kind": "reversed"}, knocks(1))


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "heard_", "rate"),
    [
        ("The library closes at nine.", "the library closes at 9", 0.0),
        ("I will come back", "I'll come back!", 0.0),
        ("one two three four", "1, 2, 3, 4", 0.0),
        ("twenty one grey cats", "21 gray cats", 0.0),
        ("a b c d", "a b x d", 0.25),
        ("a b c d", "a c d", 0.25),
        ("a b", "a b c d", 1.0),
        ("", "ghost", 1.0),
    ],
)
def test_word_error_rate(said: str, heard_: str, rate: float) -> None:
    assert words.word_error_rate(said, heard_) == pytest.approx(rate)


def test_words_said_kept_and_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        words, "transcribe", lambda wave: "I bought a green coat." if wave[0] else "I bought a red coat."
    )
    red, green = np.zeros(8000), np.ones(8000)
    assert held("words", green, text="I bought a green coat", rate=0.1)
    assert not held("words", red, text="I bought a green coat", rate=0.1)
    assert held("unsaid", green, text="red")
    assert not held("unsaid", red, text="red")
    assert held("words_kept", red, red, rate=0.1)
    assert not held("words_kept", green, red, rate=0.1)


def test_speech_before_other_sound_and_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    times = np.arange(0, 5, 0.032)
    talk_first = np.where((times > 0.4) & (times < 2.4), 0.9, 0.1)
    wave = heard(scene(5, {"is": "tone", "hz": 150, "at": 0.4, "for": 2.0}, {"is": "knock", "times": [3.2, 3.8]}))
    monkeypatch.setattr(words, "speech_frames", lambda wave: (times, talk_first))
    monkeypatch.setattr(words, "transcribe", lambda wave: "one two three four five six")
    assert held("order", wave, kinds=["speech", "other"])
    assert not held("order", wave, kinds=["other", "speech"])
    assert held("speaking_rate", wave, min=2.7, max=3.3)
    assert not held("speaking_rate", wave, min=4)
    assert held("speech_share", wave, min=0.35, max=0.45)
    assert not held("speech_share", wave, min=0.9)
