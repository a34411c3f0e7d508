"""How far the formulas and front ends agree with the tools that others use, each run as it is, in their environment.

No weights are needed: sets, logits, texts and waves are made here with fixed seeds, the same files go to every tool.
The environment (about 8 GB, as the tools pull in torch with CUDA):

    python3.11 -m venv ENV
    ENV/bin/pip install torch==2.9.1 torchvision==0.24.1 'torchaudio==2.9.*'
    ENV/bin/pip install frechet-audio-distance==0.3.4 transformers==5.24.0 torchmetrics==1.9.0 scipy==1.17.1
    ENV/bin/pip install jiwer==4.0.0 werpy==3.5.0 hypy-utils 'setuptools<81' wheel
    ENV/bin/pip install --no-build-isolation openai-whisper==20250625
    ENV/bin/pip install --no-deps fadtk==1.1.0 kadtk==1.1.0 audiocraft==1.3.0 torchvggish==0.2 audioldm-eval==0.0.3

Then, in this project's environment:

    python -m benchmarks.metrics_parity --python ENV/bin/python
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

Values = dict[str, Any]
ORACLE_TEXTS = Path(__file__).parents[1] / "tests" / "oracles" / "wer.json"
CLASSES = 527
SETS = ("clap", "clap_same", "vggish", "identical")


def make_inputs(folder: Path) -> None:
    """Sets, logits and waves in inputs.npz."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(512, 512)) / np.arange(1, 513)[:, None]

    def unit(rows: int, shift: float = 0.0) -> Any:
        found = rng.normal(size=(rows, 512)) @ mix + shift
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    time = np.arange(51_200) / 16_000
    chirp = 0.4 * np.sin(2 * np.pi * (200 + 900 * time) * time) + rng.normal(scale=0.02, size=len(time))
    sides = {"clap": (unit(144), unit(144, 0.2)), "clap_same": (unit(144), unit(144))}
    frames = rng.normal(size=(2, 1440, 128)) @ (rng.normal(size=(128, 128)) / 8)
    sides["vggish"] = (frames[0].astype(np.float32), (frames[1] * 1.2 + 0.1).astype(np.float32))
    sides["identical"] = (sides["clap"][0], sides["clap"][0])
    arrays = {f"{name}.{side}": rows for name, pair in sides.items() for side, rows in zip("xy", pair, strict=True)}
    logits = rng.normal(scale=3, size=(2, 40, CLASSES)).astype(np.float32)
    long = np.concatenate([rng.normal(scale=0.1, size=480_000), np.zeros(96_000)]).astype(np.float32)
    waves = {"wave16k": chirp.astype(np.float32), "wave48k": rng.normal(scale=0.1, size=33_600).astype(np.float32)}
    np.savez(folder / "inputs.npz", gen=logits[0], ref=logits[1], long48k=long, **waves, **arrays)


def read_inputs(folder: Path) -> dict[str, Any]:
    with np.load(folder / "inputs.npz") as loaded:
        return dict(loaded)


def oracle_texts() -> list[list[str]]:
    """(reference, hypothesis) of the oracle's clips that have words."""
    cases = json.loads(ORACLE_TEXTS.read_text(encoding="utf-8"))["cases"]
    return [[case["reference"], case["hypothesis"]] for case in cases if case["ref_words"]]


# --- ours -------------------------------------------------------------------------------------------------------------


def ours(folder: Path) -> Values:
    from torus_ray.metrics import frontends, kl
    from torus_ray.metrics.frechet import frechet_distance
    from torus_ray.metrics.kernel import kernel_distance
    from torus_ray.metrics.wer import _english, normalise, wer, word_errors

    arrays, pairs = read_inputs(folder), oracle_texts()
    windows = {"reference": list(arrays["ref"][:, None]), "generated": list(arrays["gen"][:, None])}
    found: Values = {}
    for name in SETS:
        found[f"frechet {name}"] = frechet_distance(arrays[f"{name}.x"], arrays[f"{name}.y"])
        found[f"mmd2 {name}"] = kernel_distance(arrays[f"{name}.x"], arrays[f"{name}.y"])
    for convention in (kl.REF_GEN, kl.GEN_REF, kl.BOTH, kl.SIGMOID):
        found[f"kl {convention.name}"] = kl.kl_from_logits(**windows, convention=convention).value
    clips = [word_errors(reference=reference, hypothesis=heard) for reference, heard in pairs]
    found["wer pooled"] = wer(clips).pooled.value
    found["normalised texts"] = [_english()(text) for pair in pairs for text in pair]
    found["normalised pairs"] = [[normalise(text) for text in pair] for pair in pairs]
    found["vggish log-mel"] = frontends.vggish_examples(arrays["wave16k"])
    found["clap log-mel, 0.7 s"] = frontends.clap_log_mel(arrays["wave48k"])
    found["clap log-mel, 10 s"] = frontends.clap_log_mel(arrays["long48k"][:480_000])
    found["passt windows"] = [len(each) for each in frontends.passt_windows(np.zeros(650_000))]
    return found


# --- theirs: runs in their environment, without this project ----------------------------------------------------------


def _lone(package: str, module: str, *absent: str) -> Any:
    """One module of a package without the rest of it: what it imports beside it is replaced by stand-ins."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    place = Path(next(iter(spec.submodule_search_locations)))
    parts = module.split(".")
    for depth in range(len(parts)):
        name = ".".join([package, *parts[:depth]])
        stand_in = types.ModuleType(name)
        stand_in.__path__, stand_in.__spec__ = [str(place.joinpath(*parts[:depth]))], spec
        sys.modules[name] = stand_in
    for name in absent:
        sys.modules[name] = MagicMock()
    return importlib.import_module(f"{package}.{module}")


def _moments(arrays: dict[str, Any], name: str) -> list[Any]:
    rows = [arrays[f"{name}.{side}"].astype(np.float64) for side in "xy"]
    return [part for each in rows for part in (each.mean(axis=0), np.cov(each, rowvar=False))]


def gudgud96(arrays: dict[str, Any], pairs: Any) -> Values:
    # laion_clap asks the network for a tokenizer as it is imported
    absent = ("laion_clap", "encodec", "frechet_audio_distance.models.pann", "frechet_audio_distance.utils")
    tool = object.__new__(_lone("frechet_audio_distance", "fad", *absent).FrechetAudioDistance)
    return {f"frechet {name}": tool.calculate_frechet_distance(*_moments(arrays, name)) for name in SETS}


def fadtk(arrays: dict[str, Any], pairs: Any) -> Values:
    tool = _lone("fadtk", "fad", "fadtk.model_loader", "hypy_utils.logging_utils")
    return {f"frechet {name}": tool.calc_frechet_distance(*_moments(arrays, name)) for name in SETS}


def kadtk(arrays: dict[str, Any], pairs: Any) -> Values:
    import torch

    absent = ("kadtk.emb_loader", "kadtk.model_loader")
    frechet, kernel = _lone("kadtk", "fad", *absent), _lone("kadtk", "kad", *absent)
    found: Values = {}
    for name in SETS:
        rows = [torch.tensor(arrays[f"{name}.{side}"]) for side in "xy"]
        for kind, tool in (("frechet", frechet.calc_frechet_distance), ("mmd2", kernel.calc_kernel_audio_distance)):
            value = float(tool(*rows, (None, None), "cpu"))
            found[f"{kind} {name}"] = value / (kernel.SCALE_FACTOR if kind == "mmd2" else 1)
    return found


def audioldm_eval(arrays: dict[str, Any], pairs: Any) -> Values:
    import torch

    tool = object.__new__(
        _lone("audioldm_eval", "metrics.fad", "audioldm_eval.feature_extractors").FrechetAudioDistance
    )
    found: Values = {f"frechet {name}": tool.calculate_frechet_distance(*_moments(arrays, name)) for name in SETS}
    names = [f"{index}.wav" for index in range(len(arrays["gen"]))]
    sides = [{"logits": torch.tensor(arrays[side]), "file_path_": names} for side in ("gen", "ref")]
    values, *_ = _lone("audioldm_eval", "metrics.kl").calculate_kl(*sides, "logits")
    found["kl kl.clip_mean.ref_gen"] = values["kullback_leibler_divergence_softmax"]
    found["kl kl.sigmoid.ref_gen"] = values["kullback_leibler_divergence_sigmoid"]
    return found


def torchmetrics(arrays: dict[str, Any], pairs: Any) -> Values:
    import torch
    from torchmetrics.functional.text import word_error_rate
    from torchmetrics.image.fid import _compute_fid

    found: Values = {
        f"frechet {name}": float(_compute_fid(*(torch.tensor(part) for part in _moments(arrays, name))))
        for name in SETS
    }
    found["wer pooled"] = float(word_error_rate([pair[1] for pair in pairs], [pair[0] for pair in pairs]))
    return found


def scipy_sqrtm(arrays: dict[str, Any], pairs: Any) -> Values:
    from scipy import linalg

    found: Values = {}
    for name in SETS:
        mean_x, cov_x, mean_y, cov_y = _moments(arrays, name)
        root = np.trace(linalg.sqrtm(cov_x @ cov_y))
        found[f"frechet {name}"] = float(
            np.real(((mean_x - mean_y) ** 2).sum() + np.trace(cov_x) + np.trace(cov_y) - 2 * root)
        )
    return found


def audiocraft(arrays: dict[str, Any], pairs: Any) -> Values:
    import torch

    tool = _lone("audiocraft", "metrics.kld", "audiocraft.data.audio_utils")
    tool.convert_audio = lambda wave, **_: wave

    class FromLogits(tool.KLDivergenceMetric):  # type: ignore[misc, name-defined]
        """Their sums over laws that are given instead of heard."""

        def _get_label_distribution(self, x: Any, sizes: Any, sample_rates: Any) -> Any:
            return torch.softmax(x, dim=-1)

    metric = FromLogits()
    metric.update(torch.tensor(arrays["gen"]), torch.tensor(arrays["ref"]), None, None)
    values = metric.compute()
    passt = tool.PasstKLDivergenceMetric
    split = types.SimpleNamespace(model_sample_rate=32_000, max_input_frames=320_000, min_input_frames=4_800)
    pieces = passt._process_audio(split, torch.zeros(1, 650_000), 32_000, 650_000)
    return {
        "kl kl.clip_mean.ref_gen": values["kld"],
        "kl kl.clip_mean.gen_ref": values["kld_qp"],
        "kl kl.clip_mean.both": values["kld_both"],
        "passt windows": [piece.shape[-1] for piece in pieces],
    }


def jiwer(arrays: dict[str, Any], pairs: Any) -> Values:
    import jiwer as tool

    return {"wer pooled": tool.wer([pair[0] for pair in pairs], [pair[1] for pair in pairs])}


def werpy(arrays: dict[str, Any], pairs: Any) -> Values:
    import werpy as tool

    return {"wer pooled": float(tool.wer([pair[0] for pair in pairs], [pair[1] for pair in pairs]))}


def openai_whisper(arrays: dict[str, Any], pairs: Any) -> Values:
    from whisper.normalizers import EnglishTextNormalizer

    tool = EnglishTextNormalizer()
    return {"normalised texts": [tool(text) for pair in oracle_texts() for text in pair]}


def torchvggish(arrays: dict[str, Any], pairs: Any) -> Values:
    from torchvggish import vggish_input

    found = vggish_input.waveform_to_examples(arrays["wave16k"].astype(np.float64), 16_000, return_tensor=False)
    return {"vggish log-mel": np.asarray(found)}


def transformers(arrays: dict[str, Any], pairs: Any) -> Values:
    from transformers import ClapFeatureExtractor

    # the published settings of laion/clap-htsat-unfused
    tool = ClapFeatureExtractor(truncation="rand_trunc", padding="repeatpad", frequency_min=50, frequency_max=14_000)

    def mel(wave: Any) -> Any:
        return np.asarray(tool(wave, sampling_rate=48_000, return_tensors="np")["input_features"])[0, 0]

    return {"clap log-mel, 0.7 s": mel(arrays["wave48k"]), "clap log-mel, 10 s": mel(arrays["long48k"][:480_000])}


def laion_clap(arrays: dict[str, Any], pairs: Any) -> Values:
    import torch
    from torchlibrosa.stft import LogmelFilterBank, Spectrogram

    # the layers at the head of laion_clap's HTSAT (clap_module/htsat.py), with its model configuration
    config = {"n_fft": 1024, "hop_length": 480}
    spectrogram = Spectrogram(**config, win_length=1024, window="hann", center=True, pad_mode="reflect")
    mel = LogmelFilterBank(sr=48_000, n_fft=1024, n_mels=64, fmin=50, fmax=14_000, ref=1.0, amin=1e-10, top_db=None)
    with torch.no_grad():
        found = mel(spectrogram(torch.tensor(arrays["long48k"][None, :480_000])))
    return {"clap log-mel, 10 s": found[0, 0].numpy()}


TOOLS: dict[str, Callable[[dict[str, Any], Any], Values]] = {
    "frechet-audio-distance": gudgud96,
    "fadtk": fadtk,
    "kadtk": kadtk,
    "audioldm-eval": audioldm_eval,
    "torchmetrics": torchmetrics,
    "scipy sqrtm, real": scipy_sqrtm,
    "audiocraft": audiocraft,
    "jiwer": jiwer,
    "werpy": werpy,
    "openai-whisper": openai_whisper,
    "torchvggish": torchvggish,
    "transformers": transformers,
    "laion-clap layers": laion_clap,
}


def inside(folder: Path, tool: str) -> None:
    """Run one tool in its environment; its values, or its error, go to a file."""
    arrays = read_inputs(folder)
    pairs = json.loads((folder / "normalised.json").read_text(encoding="utf-8"))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found = TOOLS[tool](arrays, pairs)
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in found.items()}
    (folder / "found.json").write_text(json.dumps(plain, default=float), encoding="utf-8")


# --- the table --------------------------------------------------------------------------------------------------------


def compare(key: str, mine: Any, theirs: Any) -> tuple[str, str, str]:
    """(ours, theirs, difference) as text."""
    if key.startswith("normalised"):
        other = sum(a.strip() != b.strip() for a, b in zip(mine, theirs, strict=True))
        return f"{len(mine)} texts", f"{len(theirs)} texts", f"{other} differ"
    if isinstance(mine, list):
        return str(mine), str(theirs), "none" if mine == theirs else "differ"
    if isinstance(mine, np.ndarray):
        given = np.asarray(theirs)
        if given.shape != mine.shape:
            return str(mine.shape), str(given.shape), "other shape"
        return str(mine.shape), str(given.shape), f"{np.abs(given - mine).max():.1e} at most"
    return f"{mine:.6g}", f"{theirs:.6g}", f"{abs(theirs - mine):.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare with the tools that others use.")
    parser.add_argument("--python", help="interpreter of the environment that holds the tools")
    parser.add_argument("--only", nargs="*", choices=TOOLS, default=list(TOOLS), help="some of the tools")
    parser.add_argument("--inside", nargs=2, metavar=("FOLDER", "TOOL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        inside(Path(given.inside[0]), given.inside[1])
        return
    if not given.python:
        parser.error("--python: the interpreter of the environment that holds the tools")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_inputs(folder)
        mine = ours(folder)
        (folder / "normalised.json").write_text(json.dumps(mine["normalised pairs"]), encoding="utf-8")
        print("| quantity | tool | ours | theirs | difference |\n|---|---|---|---|---|")
        for tool in given.only:
            (folder / "found.json").write_text('{"error": "ended without a result"}', encoding="utf-8")
            done = subprocess.run(
                [given.python, __file__, "--inside", name, tool],
                capture_output=True,
                text=True,
                check=False,
                timeout=600,
            )
            found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
            if "error" in found:
                print(f"| | {tool} | | {found['error'][:160]} | |")
                sys.stderr.write(done.stderr[-500:])
                continue
            for key, value in found.items():
                print(f"| {key} | {tool} | {' | '.join(compare(key, mine[key], value))} |", flush=True)


if __name__ == "__main__":
    main()
