"""Edits of music: tempo, key, an instrument for another, a layer in the clip's own tempo and key, drums in or out,
register.

Tempo is estimated here with plain numpy; notes, for the key and for another instrument, by Basic Pitch; a General MIDI
font plays them again.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np
import soxr
from scipy import ndimage, signal

from . import edit_tone as tone
from . import english, music_names, weights
from .ears import music as ears_music
from .ears.music import Note, NoteTranscriber
from .edit_events import RATE, Wave, flux, levels_db, mono
from .edit_work import Work, _scene_element, loudness_db, mixed, peak, with_fades

NAMES = ("C", "C sharp", "D", "E flat", "E", "F", "F sharp", "G", "A flat", "A", "B flat", "B")
DRUMS = r"drum\w*|percussion|beats?\b|hi-?hats?|cymbals?|snare|kick"


@dataclass(frozen=True)
class Key:
    """Tonic as a pitch class (C = 0) and mode."""

    tonic: int
    mode: str

    @property
    def name(self) -> str:
        return f"{NAMES[self.tonic]} {self.mode}"


def tempo_of(wave: Wave) -> float | None:
    """Beats a minute of (channels, frames), 40 to 200: see :func:`pulse_of`."""
    found = pulse_of(wave)
    return found[0] if found else None


def pulse_of(wave: Wave) -> tuple[float, bool] | None:
    """(beats a minute, whether every onset is a beat) of (channels, frames); None without a pulse. Even onsets give the
    tempo by a line through their times, others by autocorrelation of the onset strength, 40 to 200."""
    x = mono(wave)
    rise = flux(x)
    even = _even_tempo(rise, levels_db(x))
    if even is not None:
        return even, True
    rise = np.maximum(rise - ndimage.uniform_filter1d(rise, 60), 0)
    n = len(rise)
    if n < 200 or rise.max() < 0.5:
        return None
    spectrum = np.abs(np.fft.rfft(rise - rise.mean(), 2 * n)) ** 2
    auto = np.fft.irfft(spectrum)[:n] / np.arange(n, 0, -1)
    if auto[0] <= 0:
        return None
    bpm = np.arange(40.0, 200.5, 0.5)
    lags = 6000.0 / bpm
    at = np.arange(n)
    score = sum(
        w * np.interp(lags * m, at, auto)
        for m, w in ((1, 1.0), (2, 0.7), (4, 0.4))
        if (lags * m).max() < n * 0.9 or m == 1
    )
    score = np.asarray(score) * np.exp(-0.5 * (np.log2(bpm / 112.0) / 0.75) ** 2)
    best = int(np.argmax(score))
    return (float(bpm[best]), False) if score[best] > 0.05 * auto[0] else None


def _even_tempo(rise: Wave, level: Wave) -> float | None:
    """The tempo of onsets that keep one distance (a click, a row of equal notes); None when they do not."""
    top = float(np.quantile(rise, 0.999)) if len(rise) else 0.0
    if top < 0.5:
        return None
    peaks, _ = signal.find_peaks(np.pad(rise, 1), height=0.3 * top, distance=12)
    # A note that is cut off makes a rise of the spectrum too, but not of the level.
    peaks = np.array(
        [p for p in peaks - 1 if level[p : p + 8].max() > level[max(0, p - 8) : max(p - 1, 1)].mean() + 1.2]
    )
    if len(peaks) < 4:
        return None
    gaps = np.diff(peaks)
    step = float(np.median(gaps))
    number = np.concatenate([[0], np.cumsum(np.maximum(np.round(gaps / step), 1))])
    if np.mean(np.abs(gaps - step) <= max(0.07 * step, 1.5)) < 0.75:
        return None
    period, start = np.polyfit(number, peaks, 1)
    if np.mean(np.abs(peaks - start - period * number) < max(0.12 * step, 2.0)) < 0.8:
        return None
    strength = rise[peaks]
    bpm = 6000.0 / float(period)
    accents = max(strength[::2].mean(), strength[1::2].mean()) / (
        min(strength[::2].mean(), strength[1::2].mean()) + 1e-9
    )
    if bpm > 205 or (bpm > 140 and accents > 1.6):
        bpm /= 2
    return bpm * 2 if bpm < 38 else bpm


def key_of(wave: Wave) -> Key:
    """Key by the transcribed notes and the pitch classes (ears.music)."""
    x = mono(wave).astype(np.float32)
    notes = transcriber()(soxr.resample(x, RATE, 22050, quality="HQ"))
    tonic, mode, _ = ears_music.key_of(ears_music.chroma_of(soxr.resample(x, RATE, 16000, quality="HQ")), notes)
    return Key(tonic, mode)


_PACE = r"(?:tempo|speed|pace|bpm|rate of play\w*)"
_SHARES: tuple[tuple[str, float], ...] = (
    (r"two[- ]thirds", 2 / 3),
    (r"three[- ]quarters", 0.75),
    (r"(?:one|a) third", 1 / 3),
    (r"(?:one|a) quarter", 0.25),
    (r"half|halv(?:e|es|ed|ing)", 0.5),
    (r"one and a half times|1\.5 times|one and a half", 1.5),
    (r"double|doubles|doubled|doubling|twice|two times", 2.0),
    (r"triple|three times", 3.0),
)


def tempo_share(text: str) -> float | None:
    """A named share of the clip's own tempo: "to half the tempo" 0.5, "at twice its speed" 2, "halve the tempo"; None
    when it names none."""
    for pattern, factor in _SHARES:
        if re.search(rf"\b(?:{pattern}) (?:(?:the|its|of|that|original|current|own|present|normal) )*{_PACE}\b", text):
            return factor
    return None


def tempo_factor(text: str, wave: Wave) -> float | None:
    """How much faster the clip must be played for the tempo that the text names ("at 90 bpm", "20 bpm slower", "to half
    the tempo"); None when it names none."""
    text = re.sub(r"\bhundred and (?=[a-z])", "hundred ", text.replace("beats-per-minute", "beats per minute"))
    share = tempo_share(text)
    named = english.amount(text, "bpm")
    tempo = english.tempo(text)
    if named is None and share is not None:
        return share
    if named is None and (tempo is None or not tempo.exact):
        return None
    value = named if named is not None else (tempo.bpm if tempo else 0.0)
    found = pulse_of(wave)
    if found is None or value <= 0:
        return None
    now, even = found
    slow = bool(re.search(r"\bslow\w*|\bdown\b|\bdrop\w*|\breduc\w*|\bdecreas\w*|\blower\w*", text))
    quick = bool(re.search(r"\bspe?ed\w*[^.]*\bup\b|\bfaster\b|\bquick\w*|\bincreas\w*|\brais\w*|\bup to\b", text))
    fixed = re.search(rf"\b(?:to|at|into)(?: \w+)? {english.NUMBER} ?(?:bpm|beats)", text)
    lower = re.search(r"\b(?:slower|lower|less|fewer|down by|(?:reduc|decreas|drop|slow)\w*\b.*? by)\b", text)
    higher = re.search(r"\b(?:faster|higher|more|up by|quicker|(?:increas|rais|speed)\w*\b.*? by)\b", text)
    if (lower or higher) and not fixed:
        return max(now + (-value if lower else value), 20.0) / now
    # A pulse among other onsets may be half or twice the one that is meant; "slow down" tells them apart.
    fitting = [value / (now * k) for k in ((1.0,) if even else (1.0, 0.5, 2.0))]
    right = [f for f in fitting if not (slow and f > 1.02) and not (quick and f < 0.98)]
    return min(right or fitting, key=lambda f: abs(np.log2(f)))


def key_shift(text: str, wave: Wave) -> float | None:
    """Semitones to the key that the text names ("to D major", same mode or not); None when it names none."""
    wanted = english.keys(text)
    if not wanted:
        return None
    target = wanted[-1]
    now = key_of(wave)
    tonic = target.tonic
    if target.mode == "minor" and now.mode == "major":
        tonic = (target.tonic + 3) % 12
    elif target.mode == "major" and now.mode == "minor":
        tonic = (target.tonic - 3) % 12
    shift = (tonic - now.tonic) % 12
    return float(shift - 12 if shift > 6 else shift)


def separated(wave: Wave) -> tuple[Wave, Wave]:
    """(harmonic, percussive) by median filters along time and frequency (Fitzgerald 2010); they add up to the clip."""
    _, _, z = signal.stft(wave, RATE, nperseg=2048, noverlap=1536)
    size = np.abs(z)
    steady = np.stack([ndimage.median_filter(s, (1, 23)) for s in size])
    sharp = np.stack([ndimage.median_filter(s, (23, 1)) for s in size])
    mask = steady**2 / (steady**2 + sharp**2 * 1.3 + 1e-12)
    _, harmonic = signal.istft(z * mask, RATE, nperseg=2048, noverlap=1536)
    out = np.asarray(harmonic)[:, : wave.shape[1]]
    out = np.pad(out, ((0, 0), (0, wave.shape[1] - out.shape[1])))
    return out, wave - out


def without_part(work: Work, target: str) -> Wave | None:
    """Music without its drums, its bass or its melody; None for anything else."""
    if re.search(rf"\b(?:{DRUMS})", target):
        return separated(work.wave)[0]
    if re.search(r"\bbass\b", target):
        return np.asarray(signal.sosfiltfilt(signal.butter(4, 180, "high", fs=RATE, output="sos"), work.wave, axis=-1))
    if re.search(r"\b(?:everything|all|others?)\b.*\b(?:except|but|besides)\b.*" + rf"(?:{DRUMS})", work.text):
        return separated(work.wave)[1]
    return None


def layer(work: Work, phrase: str, where: str | None) -> Wave | None:
    """Another instrument in the clip's own tempo and key, under all of it or from the place named; None for what
    is no instrument."""
    found = music_names.find(phrase)
    if not found or re.search(r"\b(?:single|one|final|crash|hit|strike|stroke|note)\b", phrase):
        return None
    bpm = english.amount(phrase, "bpm") or tempo_of(work.wave)
    said = (
        phrase
        + (f" at {bpm:.0f} bpm" if bpm else "")
        + (f" in {key_of(work.wave).name}" if english.key(phrase) is None and found[0].instrument else "")
    )
    n = work.wave.shape[1]
    half = {"middle": n // 2, "end": int(n * 0.7)}.get(where or "", 0)
    made = _scene_element(said, "music", work.seed + work.step, (n - half) / RATE)
    if made is None:
        return None
    extra = np.tile(made[: n - half], (work.wave.shape[0], 1))
    quiet = {True: -7.0, False: -1.0}[bool(re.search(r"\b(?:soft|quiet|gentle|subtle|faint|background)\w*", phrase))]
    quiet += 0.0 if found[0].instrument else 5.0  # short strokes carry little energy
    extra = extra * 10 ** ((loudness_db(work.wave) + quiet - loudness_db(extra)) / 20)
    base = work.wave if peak(work.wave) + peak(extra) < 1.25 else work.wave * 0.8
    return tone.limited(mixed(base, with_fades(extra, 0.01), half or _first_beat(work.wave)))


def _first_beat(wave: Wave) -> int:
    rise = flux(mono(wave))
    strong = np.flatnonzero(rise > 0.35 * rise.max())
    return int(strong[0]) * 441 if len(strong) and strong[0] < 100 else 0


# --- another instrument -----------------------------------------------------------------------------------------------


def reinstrumented(work: Work, text: str) -> Wave | None:
    """The clip's notes on the instrument that the text names last; drums stay. None when no pitched instrument is
    named."""
    before = re.split(r"\b(?:instead of|rather than|in place of)\b", text)[0]
    named = [n for n in music_names.find(before) if n.instrument is not None]
    if not named:
        return None
    instrument = named[-1].instrument
    assert instrument is not None
    notes = transcriber()(soxr.resample(mono(work.wave).astype(np.float32), RATE, 22050, quality="HQ"))
    notes = tuple(sorted((*notes, *_missed(work.wave, notes)), key=lambda n: (n.start_s, n.midi)))
    if not notes:
        return None
    made = played(notes, instrument.program, work.wave.shape[1])
    drums = separated(work.wave)[1]
    made = np.tile(made, (work.wave.shape[0], 1))
    made *= 10 ** ((loudness_db(work.wave) - loudness_db(made)) / 20)
    # Struck instruments leak into the percussive part: drums are kept only where they carry real energy of their own.
    keeps = loudness_db(drums) > loudness_db(work.wave) - 7 and bool(re.search(rf"\b(?:{DRUMS})", text))
    return tone.limited(made + (drums if keeps else 0.0))


def _missed(wave: Wave, notes: tuple[Note, ...]) -> list[Note]:
    """A note for every stretch of 0.25 s and more that sounds and that the transcription left out, at the pitch of its
    harmonic product spectrum, so that all of a clip changes its instrument."""
    x = mono(wave)
    level = levels_db(x)
    left = level > max(float(level.max()) - 28.0, -65.0)
    for note in notes:
        left[int(note.start_s * 100) : int(note.stop_s * 100) + 12] = False
    edges = np.flatnonzero(np.diff(np.concatenate([[0], left.astype(int), [0]])))
    out = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if stop - start < 25:
            continue
        piece = x[start * 441 : stop * 441]
        size = np.log(np.abs(np.fft.rfft(piece * np.hanning(len(piece)), 65536)) + 1e-9)
        bins = np.arange(round(60 * 65536 / RATE), round(1500 * 65536 / RATE))
        hz = float(bins[np.argmax(sum(size[bins * k] for k in (1, 2, 3)))] * RATE / 65536)
        out.append(Note(start / 100, stop / 100, round(69 + 12 * np.log2(hz / 440.0)), 0.5))
    return out


def played(notes: tuple[Note, ...], program: int, frames: int) -> Wave:
    """Notes on a General MIDI program, mono, `frames` long."""
    import tinysoundfont

    synth = tinysoundfont.Synth(gain=-4)
    synth.program_select(0, synth.sfload(str(weights.path("music.soundfont"))), 0, program)
    moments = sorted(
        [(n.stop_s, 0, n.midi, 0) for n in notes]
        + [(n.start_s, 1, n.midi, int(np.clip(50 + 90 * n.strength, 40, 120))) for n in notes]
    )
    out = np.zeros((frames, 2), dtype=np.float32)
    at = 0
    for seconds, on, midi, velocity in [*moments, (frames / RATE, 0, -1, 0)]:
        stop = min(int(seconds * RATE), frames)
        if stop > at:
            out[at:stop] = np.frombuffer(bytes(synth.generate(stop - at)), np.float32).reshape(-1, 2)[: stop - at]
            at = stop
        if midi >= 0:
            synth.noteon(0, midi, velocity) if on else synth.noteoff(0, midi)
    return np.asarray(out.mean(axis=1), dtype=np.float64)


@functools.cache
def transcriber() -> NoteTranscriber:
    """The one note transcriber of this process."""
    return NoteTranscriber({}, 1)
