"""Small rows and clips for the tests of the store."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from torus_ray.audio import Clip, StoredClip, encode
from torus_ray.protocol.rows import render_outcome
from torus_ray.store import HeadInfo, RunManifest
from torus_ray.store.manifest import Driver

OPTIONS = ("a bell", "a drum", "a dog", "a train", "a door", "rain")
FINGERPRINT = "f" * 64


def tone(number: int) -> StoredClip:
    """A short clip, another for each number."""
    wave = 0.5 * np.sin(2 * np.pi * (200 + number) * np.arange(2000) / 8000)
    return encode(Clip(wave.astype(np.float32), 8000))


def encoded_otherwise(flac: bytes) -> bytes:
    """The same sound in a FLAC file of other bytes."""
    file = io.BytesIO()
    wave, rate = soundfile.read(io.BytesIO(flac), dtype="int16", always_2d=True)
    soundfile.write(file, wave, rate, format="FLAC", subtype="PCM_16", compression_level=0.0)
    return file.getvalue()


def key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def render(test: str, stored: StoredClip | None, **more: Any) -> dict[str, Any]:
    unit = f"sys/native/{test}/generation/generate"
    row = {
        "unit_id": unit,
        "key": key(unit),
        "system": "sys",
        "arm": "native",
        "seed": 0,
        "test": test,
        "audio_type": "sound",
        "stage": "generation",
        "operation": "generate",
        "prompt": f"the prompt of {test}",
        "head": "model",
        "fingerprint": FINGERPRINT,
        **(render_outcome(stored, hit_limit=False) if stored else {"status": "failed", "reason": "error"}),
    }
    return row | more


def answer(test: str, question: str, clip: str | None, **more: Any) -> dict[str, Any]:
    unit = f"sys/native/{test}/generation/answer/{question}/0/0"
    row = {
        "unit_id": unit,
        "key": key(unit),
        "system": "sys",
        "arm": "native",
        "seed": 0,
        "renderer": "sys/native",
        "listener": "model",
        "test": test,
        "audio_type": "sound",
        "stage": "generation",
        "question": question,
        "family": "expression",
        "source_test": test,
        "option_shift": 0,
        "repeat": 0,
        "clip": clip,
        "status": "ok",
        "question_text": "What is heard?",
        **{f"option_{letter}": text for letter, text in zip("abcdef", OPTIONS, strict=True)},
        "reply": "B",
        "letter": "B",
        "letter_strict": "B",
        "answer_letter": "B",
        "correct": True,
        "correct_strict": True,
        "question_hash": key(question),
        "head": "model",
        "fingerprint": FINGERPRINT,
    }
    return row | more


def manifest(**more: Any) -> RunManifest:
    fields: dict[str, Any] = {
        "bank": "mini",
        "bank_hash": "0" * 64,
        "tests": ("t1", "t2"),
        "system": "sys",
        "arm": "native",
        "edit_mode": "native",
        "seed": 0,
        "heads": {"generate": HeadInfo(fingerprint=FINGERPRINT)},
        "created": 1.0,
        "updated": 2.0,
        "state": "running",
        "engine": "0.1.0",
        "epoch": 1,
        "driver": Driver(pid=1, host="here"),
    }
    return RunManifest(**(fields | more))


def temps(run: Path) -> list[Path]:
    return list(run.rglob(".tmp-*"))
