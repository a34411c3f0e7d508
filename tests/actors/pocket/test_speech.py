"""Speech: the words are said, voices and manners differ in what can be measured, the same line gives the same
samples."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest
import soxr

from actors.pocket import english, speech, voices, weights
from actors.pocket.speech import Line

RATE_HZ = speech.RATE_HZ
WORDS = "Bring the blue chairs to the garden."


@functools.cache
def said(kind: str, *manners: str, words: str = WORDS, **more: Any) -> np.ndarray:
    return speech.render(Line(words, voices.VOICES[kind][0], manners, **more), np.random.default_rng(0))


def pitch_hz(wave: np.ndarray) -> float:
    """Median F0 of the voiced frames, by autocorrelation."""
    x = soxr.resample(wave, RATE_HZ, 8000)
    found = []
    for at in range(0, len(x) - 400, 160):
        frame = x[at : at + 400] - x[at : at + 400].mean()
        if frame.std() < 0.5 * x.std():
            continue
        correlation = np.correlate(frame, frame, "full")[399:]
        lag = 16 + int(correlation[16:130].argmax())
        if correlation[lag] > 0.5 * correlation[0]:
            found.append(8000 / lag)
    return float(np.median(found)) if found else 0.0


def seconds(wave: np.ndarray) -> float:
    return wave.size / RATE_HZ


def level_db(wave: np.ndarray) -> float:
    return float(20 * np.log10(np.sqrt((wave**2).mean())))


@functools.cache
def transcriber() -> Any:
    from faster_whisper import WhisperModel

    return WhisperModel(str(weights.path("asr.tiny.model").parent), compute_type="int8", cpu_threads=1)


def heard(wave: np.ndarray) -> list[str]:
    x = np.pad(soxr.resample(wave, RATE_HZ, 16000), (1600, 4800))
    text = " ".join(s.text for s in transcriber().transcribe(x, language="en", beam_size=1, without_timestamps=True)[0])
    return re.findall(r"[a-z']+", text.lower())


@pytest.mark.parametrize("kind", ["woman", "man", "girl", "old man"])
def test_the_words_are_said(kind: str) -> None:
    assert len(set(heard(said(kind))) & set(re.findall("[a-z]+", WORDS.lower()))) >= 5


def test_kinds_of_speakers_differ_in_pitch() -> None:
    hz = {kind: pitch_hz(said(kind)) for kind in ("man", "old man", "woman", "old woman", "girl")}
    assert hz["old man"] < hz["man"] < 140 < hz["old woman"] < hz["woman"] < 250 < hz["girl"]


def test_rate() -> None:
    slow, plain, fast = (seconds(said("woman", *m)) for m in (("slow",), (), ("fast",)))
    assert slow > 1.3 * plain
    assert 0.68 * plain < fast < 0.87 * plain


def test_loud_and_soft_and_mood() -> None:
    assert level_db(said("man", "shout")) > level_db(said("man")) + 5
    assert level_db(said("man", "soft")) < level_db(said("man")) - 5
    assert pitch_hz(said("woman", "excited")) > 1.1 * pitch_hz(said("woman"))
    assert pitch_hz(said("woman", "tired")) < 0.9 * pitch_hz(said("woman"))
    assert seconds(said("woman", "tired")) > 1.2 * seconds(said("woman"))


def test_a_whisper_has_no_pitch_but_has_the_words() -> None:
    def periodic(wave: np.ndarray) -> float:
        x = soxr.resample(wave, RATE_HZ, 8000)
        frames = [x[a : a + 400] for a in range(0, len(x) - 400, 400) if x[a : a + 400].std() > 0.5 * x.std()]
        best = [(np.correlate(f, f, "full")[399:] / (f @ f))[20:100].max() for f in frames]
        return float(np.median(best))

    assert periodic(said("woman")) > 0.6
    assert periodic(said("woman", "whisper")) < 0.5
    assert {"blue", "garden"} <= set(heard(said("woman", "whisper")))


def test_pause_and_stress() -> None:
    wave = said("man", words="Please wait. I am coming.", pause_s=1.5)
    quiet = np.convolve(np.abs(wave), np.ones(2205) / 2205, "same") < 0.003
    longest = max(len(run) for run in "".join("x" if q else " " for q in quiet).split()) / RATE_HZ
    assert 1.3 < longest < 1.9
    plain = said("woman", words="I want the red one.")
    assert seconds(said("woman", words="I want the RED one.")) > 1.15 * seconds(plain)


def test_a_telephone_is_narrow() -> None:
    def above(wave: np.ndarray) -> float:
        power = np.abs(np.fft.rfft(wave)) ** 2
        hz = np.fft.rfftfreq(wave.size, 1 / RATE_HZ)
        return float(power[(hz > 4500) | (hz < 200)].sum() / power.sum())

    assert above(said("woman", "telephone")) < 0.02 < above(said("man"))


def test_same_line_same_samples() -> None:
    line = Line("Good morning.", voices.VOICES["old woman"][0], ("afraid",))
    one, two = (speech.render(line, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(one, two)


def test_two_men_are_two_voices() -> None:
    man = english.speaker("a man")
    first, second = speech.cast([man, man], np.random.default_rng(0))
    assert first != second


def test_without_kokoro_piper_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    present = weights.available
    monkeypatch.setattr(weights, "available", lambda *roles: not any("kokoro" in r for r in roles) and present(*roles))
    woman = speech.render(Line(WORDS, voices.VOICES["woman"][0]), np.random.default_rng(0))
    man = speech.render(Line(WORDS, voices.VOICES["man"][1]), np.random.default_rng(0))
    assert pitch_hz(woman) > 1.3 * pitch_hz(man)
    assert {"blue", "garden"} <= set(heard(woman))


def test_haste_is_bounded_and_keeps_the_ends() -> None:
    hurried = said("woman", "fast", "urgent", "excited")
    assert seconds(hurried) > 0.66 * seconds(said("woman"))
    for wave in (said("woman"), hurried):
        start, end = speech.active(wave, RATE_HZ)
        assert start > 0.03 * RATE_HZ
        assert wave.size - end > 0.03 * RATE_HZ


def gaps_s(wave: np.ndarray) -> list[float]:
    level = np.sqrt(np.convolve(wave**2, np.ones(441) / 441, "same"))
    quiet = "".join("." if q else "x" for q in level < 0.02 * level.max())
    return [len(run) / RATE_HZ for run in quiet.strip(".").replace("x", " ").split() if len(run) > 0.3 * RATE_HZ]


def test_a_pause_after_every_word() -> None:
    found = gaps_s(said("man", words="Pack, lift, walk.", pause_s=0.8, pause_each="item"))
    assert found == pytest.approx([0.8, 0.8], rel=0.2)
    assert len(gaps_s(said("man", words="Red sky again", pause_s=0.5, pause_each="word"))) == 2


def test_a_line_that_grows() -> None:
    wave = said("man", "whisper", "shout", words="Let me in, let me in, let me in!", curve=((0.0, -20.0), (1.0, 0.0)))
    third = wave.size // 3
    assert level_db(wave[-third:]) > level_db(wave[:third]) + 8


def test_open_sexes_differ() -> None:
    nurse, doctor = english.speaker("a nurse"), english.speaker("a doctor")
    for seed in range(3):
        one, two = speech.cast([nurse, doctor], np.random.default_rng(seed))
        assert one.name.startswith("woman") != two.name.startswith("woman")
