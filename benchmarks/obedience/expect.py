"""Expectations: what was asked for, as data, held against what a clip has.

An expectation is {"kind": a key of ONE or TWO, ...its limits}. ONE looks at one wave, TWO at the base and the result of
an edit. Each function returns (holds, what was measured). A limit left out does not bind. `from` and `to` (s) cut any
wave of ONE before it is measured; `low_hz` and `high_hz` filter it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.obedience import checks, words
from benchmarks.obedience import pitch as tones

Array = Any
Limits = Mapping[str, Any]
Verdict = tuple[bool, str]


def within(value: float, e: Limits, unit: str = "") -> Verdict:
    """Whether a number lies in [min, max]; nan never does."""
    holds = not math.isnan(value) and e.get("min", -math.inf) <= value <= e.get("max", math.inf)
    return holds, f"{value:.4g}{unit}"


def event_times(wave: Array, e: Limits) -> list[float]:
    """Events by `how`: onsets (beginnings), bumps (level peaks with dips between), spans (sounds with pauses)."""
    how = e.get("how", "onsets")
    named = {
        k: v for k, v in e.items() if k in ("apart_s", "least_db", "share", "dip_db", "range_db", "below_db", "join_s")
    }
    if how == "spans":
        return [start for start, _ in checks.spans(wave, **named)]
    return {"onsets": checks.onsets, "bumps": checks.bumps}[how](wave, **named)


def show_times(times: list[float]) -> str:
    return f"{len(times)} at " + " ".join(f"{t:.2f}" for t in times)


# --- one wave ---------------------------------------------------------------------------------------------------------


def count(wave: Array, e: Limits) -> Verdict:
    times = event_times(wave, e)
    wanted = e["want"] if isinstance(e["want"], list) else [e["want"]]
    return len(times) in wanted, show_times(times)


def order(wave: Array, e: Limits) -> Verdict:
    """Each kind before the next, with probability `sure`. Kinds: low, high, tonal, noise, speech, other."""

    def moments(kind: str) -> tuple[Array, Array]:
        if kind not in ("speech", "other"):
            return checks.kind_weights(wave, kind, e.get("split_hz", 1000.0))
        times, score = words.speech_frames(wave)
        if kind == "speech":
            return times, (score > 0.6).astype(float)
        db = checks.levels(wave)[np.minimum((times / checks.HOP_S).astype(int), len(wave) // 160 - 1)]
        return times, ((score < 0.3) & (db > db.max() - 25)).astype(float)

    sure = []
    for first, second in zip(e["kinds"], e["kinds"][1:], strict=False):
        ta, a = moments(first)
        tb, b = moments(second)
        grid = np.arange(0, len(wave) / checks.RATE, 0.016)
        sure.append(checks.earlier(grid, np.interp(grid, ta, a), np.interp(grid, tb, b)))
    return all(p >= e.get("sure", 0.85) for p in sure), "P(before) " + " ".join(f"{p:.2f}" for p in sure)


def tempo(wave: Array, e: Limits) -> Verdict:
    """Within 5 % of `bpm`, or of the multiples in `octaves` that the wording leaves open; `how`: spacing of events."""
    if e.get("how") == "spacing":
        found = 60 / checks.spacing_s(event_times(wave, {**e, "how": e.get("events", "onsets")}))
    else:
        found = checks.tempo_bpm(wave)
    near = [abs(found / (e["bpm"] * f) - 1) <= e.get("off", 0.05) for f in [1, *e.get("octaves", [])]]
    return any(near), f"{found:.1f} bpm"


def pitch(wave: Array, e: Limits) -> Verdict:
    found = tones.median_pitch(wave, e.get("part", "all"), e.get("track_low", 65.0), e.get("track_high", 500.0))
    return within(found, e, " Hz")


def pitch_step(wave: Array, e: Limits) -> Verdict:
    """Semitones from the first third's median F0 to the last third's."""
    a, b = (
        tones.median_pitch(wave, p, e.get("track_low", 65.0), e.get("track_high", 500.0)) for p in ("first", "last")
    )
    return within(12 * math.log2(b / a) if a > 0 and b > 0 else math.nan, e, f" st ({a:.0f} to {b:.0f} Hz)")


def pitch_trend(wave: Array, e: Limits) -> Verdict:
    sign = {"rising": 1, "falling": -1}[e["want"]]
    follow, step = tones.pitch_trend(wave, e.get("track_low", 65.0), e.get("track_high", 1500.0), e.get("by", "period"))
    return sign * follow >= e.get("sure", 0.6) and sign * step >= e.get("step", 2), f"rank {follow:.2f}, {step:+.1f} st"


def level(wave: Array, e: Limits) -> Verdict:
    """rising, falling: the last third `db` (6) from the first; steady: within 3; swell: middle 6 above both ends."""
    sixths = checks.sixths_db(wave)
    a, b, c = (max(sixths[i : i + 2]) for i in (0, 2, 4))
    holds = {
        "rising": c - a >= e.get("db", 6) and b <= c + 1,
        "falling": a - c >= e.get("db", 6) and b <= a + 1,
        "steady": max(a, b, c) - min(a, b, c) <= e.get("db", 3),
        "swell": b - max(sixths[0], sixths[5]) >= e.get("db", 6),
    }[e["want"]]
    return holds, "sixths " + " ".join(f"{s:.0f}" for s in sixths) + " dB"


def said(wave: Array, e: Limits) -> Verdict:
    heard = words.transcribe(wave)
    rate = words.word_error_rate(e["text"], heard)
    return rate <= e.get("rate", 0.2), f"WER {rate:.2f} “{heard}”"


def unsaid(wave: Array, e: Limits) -> Verdict:
    """None of the words of `text` is heard."""
    heard = words.transcribe(wave)
    left = sorted(set(words.fold(e["text"])) & set(words.fold(heard)))
    return not left, f"heard “{heard}”"


def speaking_rate(wave: Array, e: Limits) -> Verdict:
    """Words a second from the first to the last moment of speech."""
    times, score = words.speech_frames(wave)
    talk = times[score > 0.5]
    n = len(words.fold(words.transcribe(wave)))
    return within(n / (talk[-1] - talk[0]) if len(talk) > 10 else math.nan, e, " words/s")


def key(wave: Array, e: Limits) -> Verdict:
    """The named key fits best, or within 0.05 of the best (a relative key shares its notes)."""
    fit = tones.key_fit(wave)
    best = max(fit, key=lambda k: fit[k])
    return fit[e["want"]] >= fit[best] - e.get(
        "slack", 0.05
    ), f"{best} {fit[best]:.2f}, wanted one {fit[e['want']]:.2f}"


def meter(wave: Array, e: Limits) -> Verdict:
    """Repeats better after three beats than after two or four, or the other way round."""
    three = checks.beat_strength(wave, e["bpm"], 3)
    four = max(checks.beat_strength(wave, e["bpm"], 4), checks.beat_strength(wave, e["bpm"], 2))
    return (three > four) == (e["want"] == 3), f"3: {three:.2f}, 2 or 4: {four:.2f}"


ONE: dict[str, Callable[[Array, Limits], Verdict]] = {
    "count": count,
    "order": order,
    "tempo": tempo,
    "pitch": pitch,
    "pitch_step": pitch_step,
    "pitch_trend": pitch_trend,
    "level": level,
    "words": said,
    "unsaid": unsaid,
    "speaking_rate": speaking_rate,
    "key": key,
    "meter": meter,
    "gap": lambda w, e: within(checks.longest_gap_s(w, e.get("below_db", 32.0)), e, " s"),
    "duration": lambda w, e: within(checks.sounding_s(w), e, " s"),
    "tail": lambda w, e: within(checks.tail_s(w), e, " s"),
    "bed": lambda w, e: within(checks.bed_db(w), e, " dB"),
    "centroid": lambda w, e: within(checks.centroid_hz(w), e, " Hz"),
    "noisiness": lambda w, e: within(checks.noisiness(w), e),
    "pitched_share": lambda w, e: within(tones.pitched_share(w), e),
    "loudness": lambda w, e: within(checks.rms_db(w), e, " dB"),
    "speech_share": lambda w, e: within(float((words.speech_frames(w)[1] > 0.5).mean()), e),
}


# --- an edit's base and result ----------------------------------------------------------------------------------------


def window(wave: Array, e: Limits) -> Array:
    return checks.cut(wave, e.get("from", 0.0), e.get("to"))


def filtered(wave: Array, e: Limits) -> Array:
    return checks.band(wave, e.get("low_hz"), e.get("high_hz"))


def both(measure: Callable[[Array], float], ratio: bool) -> Callable[[Array, Array, Limits], Verdict]:
    """result / base, or result - base, of one measurement, in the window and band of the expectation."""

    def compare(base: Array, result: Array, e: Limits) -> Verdict:
        a, b = (measure(filtered(window(w, e), e)) for w in (base, result))
        found = (b / a if a else math.nan) if ratio else b - a
        holds, text = within(found, e)
        return holds, f"{text} ({a:.4g} to {b:.4g})"

    return compare


def pitch_ratio(base: Array, result: Array, e: Limits) -> Verdict:
    part, low, high = e.get("part", "all"), e.get("track_low", 65.0), e.get("track_high", 500.0)
    a, b = (tones.median_pitch(window(w, e), part, low, high) for w in (base, result))
    holds, text = within(b / a, e)
    return holds, f"{text} ({a:.0f} to {b:.0f} Hz)"


def pitch_kept(base: Array, result: Array, e: Limits) -> Verdict:
    """F0 times `ratio` (1) within `off` (3 %) in at least `share` (0.8) of the moments pitched in both."""
    ratios = tones.aligned_ratios(
        window(base, e), window(result, e), e.get("track_low", 65.0), e.get("track_high", 500.0)
    )
    if len(ratios) < 20:
        return False, f"{len(ratios)} moments pitched in both"
    near = float((np.abs(ratios / e.get("ratio", 1.0) - 1) < e.get("off", 0.03)).mean())
    return near >= e.get("share", 0.8), f"{near:.2f} of {len(ratios)} moments, median {np.median(ratios):.3f}"


def onsets_kept(base: Array, result: Array, e: Limits) -> Verdict:
    """Each of `times` (or each onset of the base) has an onset of the result within `off` (0.05) s, `shift` s later."""
    wanted = e.get("times") or event_times(filtered(base, e), e)
    found = event_times(filtered(result, e), e)
    lost = [t for t in wanted if not any(abs(t + e.get("shift", 0.0) - f) <= e.get("off", 0.05) for f in found)]
    return not lost, f"{len(wanted) - len(lost)} of {len(wanted)} kept; result {show_times(found)}"


def count_change(base: Array, result: Array, e: Limits) -> Verdict:
    a, b = event_times(base, e), event_times(result, e)
    return len(b) - len(a) == e["want"], f"{len(a)} to {len(b)}"


def tempo_ratio(base: Array, result: Array, e: Limits) -> Verdict:
    a, b = checks.tempo_bpm(base), checks.tempo_bpm(result)
    holds, text = within(b / a, e)
    return holds, f"{text} ({a:.1f} to {b:.1f} bpm)"


def words_kept(base: Array, result: Array, e: Limits) -> Verdict:
    """The result says what the base said (or `text`), word error rate at most 0.2."""
    return said(result, {**e, "text": e.get("text") or words.transcribe(base)})


def spectrum_kept(base: Array, result: Array, e: Limits) -> Verdict:
    """Band levels over time correlate above `like` (0.9) in the window; `shift` s: where it lies in the result."""
    moved = {
        "from": e.get("from", 0.0) + e.get("shift", 0.0),
        "to": e["to"] + e.get("shift", 0.0) if "to" in e else None,
    }
    found = checks.spectrum_likeness(window(base, e), window(result, moved))
    return found > e.get("like", 0.9), f"r {found:.3f}"


def spectrum_changed(base: Array, result: Array, e: Limits) -> Verdict:
    """The opposite: below `like` (0.85)."""
    found = checks.spectrum_likeness(window(base, e), window(result, e))
    return found < e.get("like", 0.85), f"r {found:.3f}"


def reversed_kept(base: Array, result: Array, e: Limits) -> Verdict:
    forwards, backwards = checks.level_likeness(base, result), checks.level_likeness(base[::-1], result)
    return backwards > 0.9 and backwards > forwards, f"r backwards {backwards:.2f}, forwards {forwards:.2f}"


TWO: dict[str, Callable[[Array, Array, Limits], Verdict]] = {
    "pitch_ratio": pitch_ratio,
    "pitch_kept": pitch_kept,
    "onsets_kept": onsets_kept,
    "count_change": count_change,
    "tempo_ratio": tempo_ratio,
    "words_kept": words_kept,
    "spectrum_kept": spectrum_kept,
    "spectrum_changed": spectrum_changed,
    "reversed": reversed_kept,
    "length_ratio": both(checks.sounding_s, True),
    "level_change": both(checks.rms_db, False),
    "centroid_ratio": both(checks.centroid_hz, True),
    "tail_change": both(checks.tail_s, False),
    "bed_change": both(checks.bed_db, False),
    "noisiness_change": both(checks.noisiness, False),
}


def judge(e: Limits, result: Array, base: Array | None = None) -> Verdict:
    """Whether one expectation holds. KeyError: an unknown kind. ValueError: a comparison without a base."""
    if e["kind"] in TWO:
        if base is None:
            raise ValueError(f"{e['kind']} compares with a base clip, and there is none")
        return TWO[e["kind"]](base, result, e)
    return ONE[e["kind"]](filtered(window(result, e), e), e)
