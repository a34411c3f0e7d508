"""YAMNet (521 AudioSet classes): class scores, the layer before them, and the classes' four groups.

Front end as the network was trained: 16 kHz, 25-ms Hann windows each 10 ms, 64 HTK mel bands 125-7500 Hz of the
magnitude, log(x + 0.001), patches of 96 frames. The weights are an 8-bit export.
"""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

from torus_ray.audio import SILENT_PEAK

from . import weights

Array = Any
WINDOW, HOP, FFT, BANDS, PATCH = 400, 160, 512, 64, 96
LEAST = WINDOW + HOP * (PATCH - 1)
"""Samples that give one patch: 15600, 0.975 s."""
_SCALE, _ZERO = 0.04793788492679596, 144
"""How the network's input is coded in 8 bits; constants of the export."""
_SCORES, _EMBEDDING = "class_scores_updated", "/model/GlobalAveragePool_output_0"
"""Inner values of the network, before they are cut to 8 bits: class scores before the sigmoid, and what they are made
of."""

GROUPS = ("speech", "music", "sound", "noise")
_SPEECH = [*range(0, 13), 63, 65]
# Singing is music here; bells and chimes, which AudioSet counts among the instruments, are sounds.
_MUSIC = [*range(24, 33), *range(132, 195), 199, *range(203, 277)]
_NOISE = [279, *range(507, 518)]
# Silence, test tones, rooms and media say nothing of the four.
_UNMAPPED = [*range(494, 498), 499, *range(500, 507), *range(518, 521)]


@dataclass(frozen=True)
class Heard:
    """One clip. logits: float32 (patches, 521). embedding: float32 (1024,), mean over patches. padded: it was shorter
    than one patch. silent: its samples all stay below the peak of silence."""

    logits: Array
    embedding: Array
    padded: bool
    silent: bool


class Yamnet:
    """The network; one patch a call, so that no clip ever depends on another."""

    def __init__(self, threads: int) -> None:
        with zipfile.ZipFile(io.BytesIO(weights.read("yamnet"))) as archive:
            files = {name.rsplit("/", 1)[-1]: archive.read(name) for name in archive.namelist()}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        data = files["model.data"]
        options.add_external_initializers_from_files_in_memory(["model.data"], [data], [len(data)])
        model = with_outputs(files["model.onnx"], [_SCORES, _EMBEDDING])
        self._net = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        classes = csv.DictReader(io.StringIO(weights.read("yamnet.classes").decode()))
        self.labels = tuple(row["display_name"] for row in classes)
        sound = sorted({*range(len(self.labels))} - {*_SPEECH, *_MUSIC, *_NOISE, *_UNMAPPED})
        self._groups = (_SPEECH, _MUSIC, sound, _NOISE)
        self._mel = mel_bank()

    def __call__(self, wave: Array) -> Heard:
        """From one channel at 16 kHz, (samples,). A rest shorter than a patch is left out, a whole clip padded."""
        padded = np.pad(wave, (0, max(0, LEAST - len(wave))))
        frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
        frames = frames[: len(frames) // PATCH * PATCH] * np.hanning(WINDOW + 1)[:-1]
        log_mel = np.log(np.abs(np.fft.rfft(frames, n=FFT, axis=1)) @ self._mel + 0.001)
        codes = np.clip(np.rint(log_mel / _SCALE + _ZERO), 0, 255).astype(np.uint8)
        patches = codes.reshape(-1, 1, 1, PATCH, BANDS)
        found = [self._net.run([_SCORES, _EMBEDDING], {"audio": patch}) for patch in patches]
        return Heard(
            logits=np.stack([scores[0] for scores, _ in found]).astype(np.float32),
            embedding=np.mean([inner.ravel() for _, inner in found], axis=0, dtype=np.float64).astype(np.float32),
            padded=len(wave) < LEAST,
            silent=not len(wave) or float(np.abs(wave).max()) < SILENT_PEAK,
        )

    def groups(self, heard: Heard) -> Array:
        """Best class of each of GROUPS by its mean score over patches, in 0-1: float64 (4,)."""
        scores = (1.0 / (1.0 + np.exp(-heard.logits.astype(np.float64)))).mean(axis=0)
        return np.array([scores[members].max() for members in self._groups])


def mel_bank() -> Array:
    """Triangular HTK-mel filters, (257, 64), peak 1."""

    def mel(hz: Array) -> Array:
        return 1127.0 * np.log1p(np.asarray(hz, dtype=np.float64) / 700.0)

    edges = np.linspace(mel(125.0), mel(7500.0), BANDS + 2)
    bins = mel(np.linspace(0.0, 8000.0, FFT // 2 + 1))[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.maximum(0.0, np.minimum(rising, falling))


def with_outputs(model: bytes, names: list[str]) -> bytes:
    """An ONNX model with more of its inner values as outputs.

    A message that occurs twice in a protocol buffer is read as both merged, so what is appended (ModelProto.graph = 7,
    GraphProto.output = 12, ValueInfoProto.name = 1) joins the graph that is there: no package for ONNX files is needed.
    """
    return model + b"".join(_message(7, _message(12, _message(1, name.encode()))) for name in names)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    digits = []
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])
