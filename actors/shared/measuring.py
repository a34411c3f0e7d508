"""What measuring heads share: a clip as a wave with its flags, weights digested, the self-test at the start."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Mapping, Sequence, Tuple

import numpy as np

from torus_ray.audio import SILENT_PEAK, mono
from torus_ray.heads import MeasureRequest, Refused

from .loading import Unusable

RECORDS = "TORUS_SELF_TESTS"
"""Environment variable: where the values of self-tests are kept; else ~/.cache/torus-ray/self-tests."""
TOLERANCE = 0.01
"""How far a value may be from the recorded one, as a share of the largest recorded: GPUs and CPUs differ by less,
wrong weights or a wrong front end by far more."""


# --- clips ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heard:
    """A clip as a head hears it. wave: float32 (frames,), the mean of its channels at the rate asked for. flags:
    `silent` where all of it stays below the peak of silence, as opposite channels do."""

    wave: Any
    flags: Tuple[str, ...]


def hear(clip: bytes, rate_hz: int) -> Heard:
    """Decode, downmix, resample; nothing is normalised. Raises Refused `empty` where no sample is left."""
    wave = mono(clip, rate_hz)
    if not len(wave):
        raise Refused("empty", f"no sample is left at {rate_hz} Hz")
    return Heard(wave, ("silent",) if float(np.abs(wave).max()) < SILENT_PEAK else ())


def tone(rate_hz: int, seconds: float = 2.0) -> Any:
    """The sound of self-tests: 1 kHz at half amplitude."""
    return (0.5 * np.sin(2 * np.pi * 1000 * np.arange(round(seconds * rate_hz)) / rate_hz)).astype(np.float32)


def known(request: MeasureRequest, measures: Sequence[str]) -> str:
    """The request's measure. Raises Refused where the head takes no such measure."""
    if request.measure not in measures:
        raise Refused("unknown_measure", f"{request.measure!r} is none of {', '.join(measures)}")
    return request.measure


def values_reply(values: Any, flags: Sequence[str]) -> Mapping[str, Any]:
    """Numbers and flags as a reply has them; plain lists, since arrays do not travel between environments."""
    return {"values": np.asarray(values, dtype=np.float32).tolist(), **({"flags": list(flags)} if flags else {})}


# --- weights ----------------------------------------------------------------------------------------------------------


def digest_of(path: Path) -> str:
    """sha256 of a file, or over the names and sha256 of the files in a folder."""
    if path.is_file():
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(1 << 22):
                digest.update(chunk)
        return digest.hexdigest()
    files = sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    lines = [f"{file.relative_to(path).as_posix()} {digest_of(file)}\n" for file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


# --- the self-test ----------------------------------------------------------------------------------------------------


def same_as_first(head: str, digest: str, values: Mapping[str, Any]) -> None:
    """Hold the values of a self-test against those recorded when weights of this digest were first loaded here; the
    first ones are recorded. Raises Unusable where they differ, or are not finite."""
    found = {name: [float(x) for x in np.asarray(value).ravel()] for name, value in values.items()}
    folder = Path(os.environ.get(RECORDS) or Path.home() / ".cache" / "torus-ray" / "self-tests").expanduser()
    record = folder / f"{head}-{digest[:16]}.json"
    for name, numbers in found.items():
        if not all(map(math.isfinite, numbers)):
            raise _differs(head, record, f"{name} is not finite")
    if not record.exists():
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{record.name}.{os.getpid()}"
        temporary.write_text(json.dumps({"weights_sha256": digest, "values": found}, indent=1), encoding="utf-8")
        temporary.replace(record)
        return
    try:
        recorded = json.loads(record.read_text(encoding="utf-8"))["values"]
    except (ValueError, KeyError, TypeError) as error:
        raise _differs(head, record, f"the record cannot be read ({error})") from error
    for name in sorted({*recorded, *found}):
        told = _apart(recorded.get(name, []), found.get(name, []))
        if told:
            raise _differs(head, record, f"{name} {told}")


def _apart(recorded: List[float], found: List[float]) -> str:
    if len(recorded) != len(found):
        return f"has {len(found)} values, recorded were {len(recorded)}"
    scale = max(map(abs, recorded), default=0.0)
    apart = max((abs(a - b) for a, b in zip(recorded, found)), default=0.0)
    return f"is {apart:.3g} from what was recorded" if apart > TOLERANCE * max(scale, 1e-6) else ""


def _differs(head: str, record: Path, what: str) -> Unusable:
    return Unusable(
        f"the self-test of {head} does not give what it gave when these weights were first loaded: {what}",
        str(record),
        f"the recorded values within {TOLERANCE:.0%} of the largest",
        "find out what changed (packages, device); where the new values are right, remove the record",
    )
