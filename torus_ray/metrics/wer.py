"""Word error rate (METRICS 3): errors against the authored transcript, both sides normalised alike.

    WER = (substitutions + deletions + insertions) / words of the reference

A stage without words in its transcript is no speech stage and is left out; a clip that is missing, empty or silent
counts with an empty hypothesis, so exactly 1. Nothing is cut at 1: insertions have no limit.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from torus_ray.errors import InputError
from torus_ray.metrics.convention import Convention, Measure

POOLED = Convention(
    name="wer.pooled",
    title="WER",
    unit="errors per word",
    better="lower",
    bounds=(0, None),
    minimum=1,
    says="sum of errors / sum of reference words over the clips of all speech stages",
    source="METRICS 3; jiwer.wer of two lists",
    headline=True,
)
CLIP_MEAN = Convention(
    name="wer.clip_mean",
    title="WER, clip mean",
    unit="errors per word",
    better="lower",
    bounds=(0, None),
    minimum=1,
    says="mean over clips of errors / reference words: a clip of one word weighs like any other",
    source="METRICS 3",
)
CONVENTIONS = (POOLED, CLIP_MEAN)

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
# Whisper itself calls a 30 s window above this ratio a failed decoding; 100 words are spoken in about 30 s. A longer
# text compresses so well without any loop.
_LOOP_RATIO, _LOOP_WORDS = 2.4, 100
_LOOP_PHRASE = re.compile(r"(?<!\S)(\S+(?: \S+){0,7}?)(?: \1){4,}(?!\S)")


@dataclass(frozen=True)
class WordErrors:
    """Errors of one clip. words: of the reference. hypothesis_words: heard. looped: the recogniser repeats itself."""

    hits: int
    substitutions: int
    deletions: int
    insertions: int
    words: int
    hypothesis_words: int
    looped: bool

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float | None:
        """Errors / words; None where the reference has no words (jiwer gives a count there: never average it)."""
        return self.errors / self.words if self.words else None


@dataclass(frozen=True)
class Wer:
    """Both averages over the speech stages of a set, with and without clips on which the recogniser loops.

    insertion_share: of all errors. above_one_share, empty_share: clips with a rate above 1, with no word heard.
    Shares are None without errors or clips. looped, no_words: clips flagged, clips left out for want of words.
    """

    pooled: Measure
    clip_mean: Measure
    pooled_unlooped: Measure
    clip_mean_unlooped: Measure
    words: int
    errors: int
    insertion_share: float | None
    above_one_share: float | None
    empty_share: float | None
    looped: int
    no_words: int


def normalise(text: str) -> str:
    """Typographic quotes made plain, then Whisper's English normaliser: lower case, no punctuation, numbers as digits,
    contractions opened, British spelling made American."""
    return _english()(text.translate(_QUOTES)).strip()


def normaliser() -> str:
    """Name and versions of what :func:`word_errors` uses: a number made with others is another number."""
    return f"whisper_english+plain_quotes, whisper-normalizer {version('whisper-normalizer')}, jiwer {version('jiwer')}"


@cache
def _english() -> Callable[[str], str]:
    from whisper_normalizer.english import EnglishTextNormalizer  # type: ignore[import-untyped]

    made: Callable[[str], str] = EnglishTextNormalizer()
    return made


def word_errors(*, reference: str, hypothesis: str | None, normalised: bool = True) -> WordErrors:
    """Errors of what was heard against what should have been said. hypothesis None: no clip, so nothing heard.

    normalised: whether both sides go through :func:`normalise`; without it jiwer's words are compared as they stand.
    Raises InputError for anything but text.
    """
    for name, text in (("reference", reference), ("hypothesis", "" if hypothesis is None else hypothesis)):
        if not isinstance(text, str):
            raise InputError(f"the {name} is no text", where=repr(text)[:80], expected="a string", mend="pass its text")
    import jiwer

    due, heard = (normalise(text) if normalised else text for text in (reference, hypothesis or ""))
    found = jiwer.process_words(due, heard)
    return WordErrors(
        hits=found.hits,
        substitutions=found.substitutions,
        deletions=found.deletions,
        insertions=found.insertions,
        words=len(found.references[0]),
        hypothesis_words=len(found.hypotheses[0]),
        looped=loops(hypothesis or ""),
    )


def loops(text: str) -> bool:
    """Whether a recogniser repeats itself: 100 words that compress more than 2.4 times, as Whisper tests a window, or a
    phrase of at most 8 words that comes five times in a row."""
    words = text.lower().split()
    blocks = (" ".join(words[at : at + _LOOP_WORDS]).encode() for at in range(0, len(words), _LOOP_WORDS))
    if any(len(block) > _LOOP_RATIO * len(zlib.compress(block)) for block in blocks):
        return True
    return bool(_LOOP_PHRASE.search(" ".join(words)))


def wer(clips: Sequence[WordErrors], *, expected: int | None = None, backbone: str = "") -> Wer:
    """Both averages over `clips`, one for each stage that should have been spoken (missing clips among them).

    expected: speech stages there should be; as many as `clips` with words where not given. backbone: the recogniser.
    """
    spoken = [clip for clip in clips if clip.words]
    steady = [clip for clip in spoken if not clip.looped]
    due = len(spoken) if expected is None else expected
    errors = sum(clip.errors for clip in spoken)

    def share(count: int, of: int) -> float | None:
        return count / of if of else None

    return Wer(
        pooled=_pooled(spoken, due, backbone, "no_speech_stages"),
        clip_mean=_clip_mean(spoken, due, backbone, "no_speech_stages"),
        pooled_unlooped=_pooled(steady, due, backbone, "all_looped"),
        clip_mean_unlooped=_clip_mean(steady, due, backbone, "all_looped"),
        words=sum(clip.words for clip in spoken),
        errors=errors,
        insertion_share=share(sum(clip.insertions for clip in spoken), errors),
        above_one_share=share(sum(clip.errors > clip.words for clip in spoken), len(spoken)),
        empty_share=share(sum(not clip.hypothesis_words for clip in spoken), len(spoken)),
        looped=len(spoken) - len(steady),
        no_words=len(clips) - len(spoken),
    )


def _pooled(clips: Sequence[WordErrors], expected: int, backbone: str, reason: str) -> Measure:
    value = sum(clip.errors for clip in clips) / sum(clip.words for clip in clips) if clips else None
    return POOLED.measure(value, len(clips), expected, backbone=backbone, reason=reason)


def _clip_mean(clips: Sequence[WordErrors], expected: int, backbone: str, reason: str) -> Measure:
    value = sum(clip.errors / clip.words for clip in clips) / len(clips) if clips else None
    return CLIP_MEAN.measure(value, len(clips), expected, backbone=backbone, reason=reason)
