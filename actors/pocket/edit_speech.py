"""Edits of speech: other words in a voice like the clip's, another speaker, another manner. The rest of the clip
stays."""

from __future__ import annotations

import functools
import re
from difflib import SequenceMatcher

import numpy as np
import soxr

from . import edit_tone as tone
from . import english, speech, voice_effects
from .ears.speech import Recognizer, VoiceDetector, Word, spans
from .edit_events import RATE, Wave, mono
from .edit_work import LONGEST, Work, joined, loudness_db, peak, with_fades

HEARS = 16000


def voice_spans(wave: Wave) -> list[tuple[int, int]]:
    """[start, end) in frames where somebody speaks."""
    found = spans(detector()(soxr.resample(mono(wave).astype(np.float32), RATE, HEARS, quality="HQ")))
    return [(int(a * RATE), min(int(b * RATE), wave.shape[1])) for a, b in found]


def pitch_hz(wave: Wave) -> float | None:
    """Median F0 of the voiced frames by normalised autocorrelation, 65 to 480 Hz; None without voice."""
    x = soxr.resample(mono(wave).astype(np.float32), RATE, 8000, quality="HQ").astype(np.float64)
    if len(x) < 800:
        return None
    frames = np.lib.stride_tricks.sliding_window_view(x, 480)[::160]
    power = (frames**2).mean(axis=1)
    frames = frames[power > max(power.max() * 0.02, 1e-7)]
    frames = (frames - frames.mean(axis=1, keepdims=True)) * np.hanning(480)
    auto = np.fft.irfft(np.abs(np.fft.rfft(frames, 1024, axis=1)) ** 2, axis=1)[:, :130]
    window = np.fft.irfft(np.abs(np.fft.rfft(np.hanning(480), 1024)) ** 2)[:130]
    auto = auto / (auto[:, :1] + 1e-12) / (window / window[0])
    lags = np.arange(17, 123)
    best = lags[np.argmax(auto[:, 17:123], axis=1)]
    clear = auto[np.arange(len(auto)), best] > 0.6
    return float(8000.0 / np.median(best[clear])) if clear.sum() > 4 else None


def speaker_like(wave: Wave) -> english.Speaker:
    """A speaker with the clip's F0: man under 160 Hz, woman under 265 Hz, a child above."""
    hz = pitch_hz(wave) or 170.0
    if hz > 285:
        return english.Speaker("child", "female", None, "girl")
    return english.Speaker("adult", "male" if hz < 160 else "female", None, "man" if hz < 160 else "woman")


def spoken(words: str, phrase: str, rng: np.random.Generator, like: Wave | None = None) -> Wave:
    """Words said as a phrase describes, else in a voice like that of `like`: mono float64."""
    named = english.speaker(phrase)
    if named is None or (named.sex is None and named.age == "adult"):
        named = speaker_like(like) if like is not None else named
    voice = speech.cast((named,), rng)[0]
    return speech.render(speech.Line(words, voice, english.manners(phrase)), rng).astype(np.float64)


def respeak(work: Work) -> Wave | None:
    """The quoted words in place of what was said: all of it, or only the old words when the clause quotes or names
    them too."""
    quotes = work.quotes
    if not quotes:
        return None
    places = voice_spans(work.wave)
    if not places:
        return None
    old, new = _old_and_new(work)
    start, stop = places[0][0], places[-1][1]
    order = english.ordinals(work.text)
    if (
        len(places) > 1
        and order
        and old is None
        and re.search(r"\b(?:speaker|person|voice|sentence|line|utterance)\b", work.text)
    ):
        start, stop = places[order[0] if order[0] < 0 else min(order[0], len(places)) - 1]
    words = new
    if old is not None:
        text, heard = recognizer()(soxr.resample(mono(work.wave).astype(np.float32), RATE, HEARS, quality="HQ"))
        changed = _with_words_changed(heard, old, new)
        if changed is not None:
            words = changed
        elif len(new.split()) < 4 <= len(text.split()):
            return None  # a word that was not heard cannot be exchanged
    return _put_speech(work, words, start, stop)


def _old_and_new(work: Work) -> tuple[str | None, str]:
    quotes = work.quotes
    if len(quotes) == 1:
        return None, quotes[0]
    text = work.text
    marks = [i for i, c in enumerate(text) if english.is_masked_quote(c)]
    between = text[marks[0] + 1 : marks[1]]
    if re.search(r"\b(?:instead of|rather than|in place of|not)\b", between):
        return quotes[1], quotes[0]
    if re.search(r"\b(?:with|to|into|by|for|become|but|had|were)\b", between) or re.search(
        r"\b(?:replace|change|swap|turn)\b", text[: marks[0]]
    ):
        return quotes[0], quotes[1]
    return None, " ".join(quotes)


_FIGURES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_DIGITS = {str(figure): word for figure, word in enumerate(_FIGURES)}
"""A recogniser writes figures where a prompt writes words."""


def _with_words_changed(heard: tuple[Word, ...], old: str, new: str) -> str | None:
    """The transcript with the words nearest to `old` exchanged for `new`; None when nothing in it is near."""
    said = [w.text for w in heard]
    wanted = re.findall(r"[\w']+", old.lower())
    plain = [re.sub(r"[^\w']", "", w.lower()) for w in said]
    plain = [_DIGITS.get(w, w) for w in plain]
    wanted = [_DIGITS.get(w, w) for w in wanted]
    best, at = 0.0, 0
    for i in range(max(len(plain) - len(wanted) + 1, 0)):
        near = SequenceMatcher(None, " ".join(plain[i : i + len(wanted)]), " ".join(wanted)).ratio()
        if near > best:
            best, at = near, i
    if best < 0.7:
        return None
    end = re.search(r"[.,!?]+$", said[at + len(wanted) - 1])
    tail = end.group() if end and not re.search(r"[.,!?]$", new) else ""
    return " ".join([*said[:at], new + tail, *said[at + len(wanted) :]])


def _put_speech(work: Work, words: str, start: int, stop: int) -> Wave:
    old = work.wave[:, start:stop]
    fresh = np.atleast_2d(spoken(words, work.text, work.rng(), old))
    hz = pitch_hz(old)
    if hz is not None and not english.manners(work.text) and not _is_another(work.text, _speaker_of(work.text)):
        fresh = at_pitch(fresh, hz, 0.04)
    fresh = np.tile(fresh, (work.wave.shape[0], 1))
    # A named manner ("shouting") sets its own level; otherwise the new words are as loud as the old.
    if not english.manners(work.text):
        fresh = fresh * 10 ** ((loudness_db(old) - loudness_db(fresh)) / 20)
    fresh = fresh * min(1.0, 0.95 / (peak(fresh) + 1e-9))
    lead = work.wave[:, :start].copy()
    rest = work.wave[:, stop:]
    room = LONGEST - lead.shape[1] - rest.shape[1]
    if fresh.shape[1] > room:
        quiet = peak(rest) < 0.02
        rest = rest[:, : max(LONGEST - lead.shape[1] - fresh.shape[1], 0)] if quiet else rest
    if work.scene.has_background:
        from .edit_pick import background_bed

        bed = np.resize(background_bed(work), (work.wave.shape[0], fresh.shape[1]))
        fresh = fresh + bed
    return joined([lead, with_fades(fresh, 0.003), rest], 0.003)[:, :LONGEST]


# --- another speaker, another manner ----------------------------------------------------------------------------------

# (age, sex) -> usual F0 in Hz and formants relative to a man's.
_HEADS: dict[tuple[str, str], tuple[float, float]] = {
    ("adult", "male"): (112.0, 1.0),
    ("adult", "female"): (205.0, 1.16),
    ("old", "male"): (105.0, 0.98),
    ("old", "female"): (180.0, 1.13),
    ("young", "male"): (128.0, 1.03),
    ("young", "female"): (225.0, 1.19),
    ("child", "male"): (285.0, 1.32),
    ("child", "female"): (305.0, 1.34),
}


def revoiced(work: Work) -> Wave | None:
    """The same words by another kind of speaker (pitch and formants), or in another manner; None when neither is
    named."""
    text = re.split(r"\b(?:instead of|rather than)\b", work.text)[0]
    named = _speaker_of(text)
    manners = [m for m in english.manners(text) if m in MANNERS]
    pace = _pace_of(text)
    places = voice_spans(work.wave)
    if not places:
        return None
    changes = _is_another(text, named)
    if not manners and not changes and pace == 1.0:
        return None
    out = work.wave.copy()
    for start, stop in places:
        start, stop = max(0, start - RATE // 20), min(work.wave.shape[1], stop + RATE // 20)
        piece = out[:, start:stop]
        if changes and named is not None:
            piece = _by_another(piece, named, work)
        for manner in manners:
            piece = MANNERS[manner](piece, work)
        if piece.shape[1] == stop - start:
            out[:, start:stop] = piece
    return _paced(tone.limited(out), pace, places)


_PRONOUN = r"\b(?:he|she|him|her|his|their|they|my|your|our|its|herself|himself)\b"


def _speaker_of(text: str) -> english.Speaker | None:
    """The speaker a clause names; "her grandfather" is a grandfather, and "the speaker" or "she" nobody new."""
    return english.speaker(re.sub(rf"\b(?:the|same) (?:speaker|person|voice|narrator)\b|{_PRONOUN}", " ", text))


_PACES: tuple[tuple[str, float], ...] = (
    (r"exhausted|worn out|half asleep|utterly tired|dead tired|drunk\w*", 0.72),
    (r"tired\w*|weary|wearily|sleep(?:y|ily)|drows\w+|groggy|fatigued|bored|listless", 0.78),
    (r"sad(?:ly)?|mournful\w*|melanchol\w*|sorrow\w*|gloom\w*|dejected|heartbroken|somber|solemn\w*", 0.85),
    (r"hesita\w*|halting\w*|ponderous\w*|drawn[- ]out|leisurely|unhurried\w*", 0.75),
    (r"hurr\w*|rush\w*|in haste|hast(?:y|ily)|frantic\w*|panick\w*|late for", 1.38),
    (r"urgent\w*|impatient\w*|excit\w*|enthusias\w*", 1.15),
)
"""How a state of mind changes the pace of speech; the first that a clause names counts."""


def _pace_of(text: str) -> float:
    """How much faster the delivery is that a clause describes: under 1 slower."""
    if re.search(r"\b(?:whisper|shout)", text):
        pace = 1.0
    else:
        pace = next((f for pattern, f in _PACES if re.search(rf"\b(?<!un)(?:{pattern})\b", text)), 1.0)
    strength = english.degree(text)
    if re.search(r"\bslow(?:er|ly)?\b|\bmore slowly\b", text):
        pace = min(pace, 1 / (1.0 + 0.32 * max(strength, 0.5)))
    elif re.search(r"\b(?:fast(?:er)?|quick(?:er|ly)|rapid(?:ly)?)\b", text):
        pace = max(pace, 1.0 + 0.3 * max(strength, 0.5))
    return float(np.clip(pace, 0.5, 1.8))


def _paced(wave: Wave, pace: float, places: list[tuple[int, int]]) -> Wave:
    """The whole clip at another pace; silence at its end gives way where it would last over 10 s."""
    if pace == 1.0:
        return wave
    if wave.shape[1] / pace > LONGEST:
        end = min(places[-1][1] + RATE // 5, wave.shape[1])
        wave = wave[:, : max(end, int(LONGEST * pace))]
    return tone.stretched(wave, pace)[:, : max(LONGEST, wave.shape[1])]


def _is_another(text: str, named: english.Speaker | None) -> bool:
    if named is None or (named.sex is None and named.age == "adult"):
        return False
    return bool(
        re.search(
            r"\b(?:an?|by|into|to|like|as|sound\w*|different|voice|spoken|said|sa(?:y|ys)|were|was|been|turn\w*|become\w*|"
            r"replace\w*|had|instead|read\w*|told|tell\w*|sp[eo]k\w*|deliver\w*|utter\w*|grand\w+)\b",
            text,
        )
    )


_RANGES: dict[tuple[str, str], tuple[float, float]] = {
    ("adult", "male"): (90.0, 145.0),
    ("adult", "female"): (172.0, 248.0),
    ("old", "male"): (80.0, 124.0),
    ("old", "female"): (160.0, 225.0),
    ("young", "male"): (100.0, 150.0),
    ("young", "female"): (180.0, 250.0),
    ("child", "male"): (265.0, 360.0),
    ("child", "female"): (270.0, 370.0),
}
"""Where the median F0 of such a speaker lies, in Hz."""


def _by_another(piece: Wave, named: english.Speaker, work: Work) -> Wave:
    """The same words in another head; spoken anew at the same pace where so large a change has blurred them."""
    out = _other_head(piece, named)
    hz = pitch_hz(piece)
    if hz is None or abs(np.log2((pitch_hz(out) or hz) / hz)) < 0.5:
        return out
    said = _words_in(piece)
    if not said or SequenceMatcher(None, said.lower(), _words_in(out).lower()).ratio() > 0.93:
        return out
    sex = named.sex or ("male" if hz < 160 else "female")
    fresh = spoken(said, _LABELS.get((named.age, sex), named.label), work.rng())[np.newaxis]
    rate = fresh.shape[1] / piece.shape[1]
    if not 0.6 < rate < 1.7:
        return out
    n = piece.shape[1]
    fresh = np.pad(tone.stretched(fresh, rate), ((0, 0), (0, n)))[:, :n]
    fresh = at_pitch(fresh, _HEADS.get((named.age, sex), _HEADS[("adult", sex)])[0], 0.08)
    fresh = np.tile(fresh * 10 ** ((loudness_db(piece) - loudness_db(fresh)) / 20), (piece.shape[0], 1))
    if work.scene.has_background:
        from .edit_pick import background_bed

        fresh = fresh + np.resize(background_bed(work), fresh.shape)
    return with_fades(fresh, 0.005)


_LABELS = {
    ("adult", "male"): "a man",
    ("adult", "female"): "a woman",
    ("old", "male"): "an old man",
    ("old", "female"): "an old woman",
    ("young", "male"): "a young man",
    ("young", "female"): "a young woman",
    ("child", "male"): "a boy",
    ("child", "female"): "a girl",
}


def _words_in(wave: Wave) -> str:
    return recognizer()(soxr.resample(mono(wave).astype(np.float32), RATE, HEARS, quality="HQ"))[0]


def _other_head(piece: Wave, named: english.Speaker) -> Wave:
    hz = pitch_hz(piece)
    if hz is None:
        return piece
    sex = named.sex or ("male" if hz < 160 else "female")
    kind = (named.age, sex) if (named.age, sex) in _HEADS else ("adult", sex)
    target, size = _HEADS[kind]
    own = 1.0 if hz < 160 else 1.16 if hz < 265 else 1.32
    if named.register is not None:
        target *= 1.2 if named.register == "high" else 0.84
    low, high = _RANGES[kind]
    target = float(np.clip(target, low, high))
    semitones = float(np.clip(12 * np.log2(target / hz), -20, 20))
    out = tone.resampled_voice(piece, semitones, float(np.clip(size / own, 0.72, 1.4)))
    out = at_pitch(out, target, 0.04)
    out = out * 10 ** ((loudness_db(piece) - loudness_db(out)) / 20)
    if named.age == "old":
        out = np.stack(
            [voice_effects.tremor(c.astype(np.float32), RATE, 0.7, np.random.default_rng(3)) for c in out]
        ).astype(np.float64)
    return out


def at_pitch(wave: Wave, hz: float, near: float) -> Wave:
    """A voice moved to a median F0, formants kept, as often as it takes (at most twice) to come within the share
    `near`; the length stays."""
    for _ in range(2):
        now = pitch_hz(wave)
        if now is None or abs(now / hz - 1) <= near:
            break
        moved = tone.stretched(wave, 1.0, float(np.clip(12 * np.log2(hz / now), -12, 12)), True)[:, : wave.shape[1]]
        wave = np.pad(moved, ((0, 0), (0, wave.shape[1] - moved.shape[1])))
    return wave


def _each(piece: Wave, act: object) -> Wave:
    return np.stack([np.asarray(act(c.astype(np.float32)), dtype=np.float64) for c in piece])


def _whispered(piece: Wave, work: Work) -> Wave:
    out = _each(piece, lambda c: voice_effects.whisper(c, RATE, work.rng()))
    return out * 10 ** ((loudness_db(piece) - 8.0 - loudness_db(out)) / 20)


def _shouted(piece: Wave, work: Work) -> Wave:
    raised = tone.stretched(piece, 1.0, 3.0)[:, : piece.shape[1]]
    out = np.tanh(3.0 * tone.shelf(raised, 1500.0, 6.0, True) / (peak(raised) + 1e-9))
    return out * min(10 ** ((loudness_db(piece) + 8.0 - loudness_db(out)) / 20), 0.97 / (peak(out) + 1e-9))


def _robotic(piece: Wave, work: Work) -> Wave:
    hz = 95.0 if (pitch_hz(piece) or 170) < 160 else 170.0
    out = _each(piece, lambda c: voice_effects.robot(c, RATE, hz))
    return out * 10 ** ((loudness_db(piece) - loudness_db(out)) / 20)


def _trembling(piece: Wave, work: Work) -> Wave:
    return _each(piece, lambda c: voice_effects.tremor(c, RATE, 0.8, work.rng()))


MANNERS = {
    "whisper": _whispered,
    "shout": _shouted,
    "angry": lambda p, w: _shouted(p, w) * 0.8,
    "excited": lambda p, w: tone.stretched(p, 1.0, 3.0)[:, : p.shape[1]] * 1.25,
    "cheerful": lambda p, w: tone.stretched(p, 1.0, 2.0)[:, : p.shape[1]],
    "sad": lambda p, w: 0.6 * tone.shelf(tone.stretched(p, 1.0, -2.0)[:, : p.shape[1]], 2500.0, -5.0, True),
    "tired": lambda p, w: 0.5 * tone.shelf(tone.stretched(p, 1.0, -2.0)[:, : p.shape[1]], 2500.0, -5.0, True),
    "afraid": _trembling,
    "robot": _robotic,
}
"""Manner of english.manners -> what it does to a stretch of voice of unchanged length."""


@functools.cache
def detector() -> VoiceDetector:
    """The one voice detector of this process."""
    return VoiceDetector({}, 1)


@functools.cache
def recognizer() -> Recognizer:
    """The one recogniser of this process, loaded at first use."""
    return Recognizer({}, 1)
