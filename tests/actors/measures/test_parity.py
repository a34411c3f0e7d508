"""laion_clap and frechet-audio-distance themselves as heads over random weights; our heads over the same weights."""

from __future__ import annotations

import contextlib
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    ClapConfig,
    ClapFeatureExtractor,
    ClapModel,
    ClapProcessor,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizer,
)

from actors.clap.measuring import hear
from tests.actors.measures.served import Served, apart, clip, opposite, silent, stored, wave
from torus_ray.metrics.frechet import frechet_distance

pytestmark = pytest.mark.timeout(400)

CLAP, LABELS, FAD = "clap.laion", "clap.laion.labels", "gudgud96"
TEXT = {"hidden_size": 768, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
TEXT |= {"max_position_embeddings": 80, "type_vocab_size": 1}

# --- laion_clap -------------------------------------------------------------------------------------------------------


def roberta(folder: Path) -> RobertaTokenizer:
    """A folder named roberta-base with one random layer and a small vocabulary."""
    special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    words = [*special, *"abcdefghijklmnopqrstuvwxyzTS.", "Ġ"]
    tokenizer = RobertaTokenizer(vocab={word: at for at, word in enumerate(words)}, merges=[])
    torch.manual_seed(0)
    RobertaModel(RobertaConfig(vocab_size=len(words), **TEXT)).save_pretrained(folder / "roberta-base")
    tokenizer.save_pretrained(folder / "roberta-base")
    return tokenizer


def laion_files(folder: Path) -> Path:
    """The folder with laion.pt, random weights as the published file has them, and roberta-base beside it."""
    roberta(folder)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        import laion_clap

        torch.manual_seed(1)
        net = laion_clap.CLAP_Module(enable_fusion=False, device="cpu").model
    state = dict(net.state_dict())
    for name, value in state.items():
        if value.ndim > 1 and name.endswith("weight") and "extractor" not in name:
            state[name] = value * 2
    state["text_branch.embeddings.position_ids"] = torch.arange(80)[None]
    # As the published file is: from a distributed training, with a number of NumPy's beside the tensors.
    file = {"epoch": np.float64(3), "state_dict": {f"module.{name}": value for name, value in state.items()}}
    torch.save(file, folder / "laion.pt")
    return folder


@pytest.fixture(scope="module")
def laion(tmp_path_factory: pytest.TempPathFactory) -> tuple[Served, Path]:
    """The head, and the folder of what it was loaded from."""
    folder = laion_files(tmp_path_factory.mktemp("laion"))
    return Served("parity", "LaionClap", {"model": folder / "laion.pt", "texts": folder}), folder


@pytest.fixture(scope="module")
def ours(laion: tuple[Served, Path]) -> Served:
    """Our CLAP head over the same weights."""
    folder = laion[1]
    config = ClapConfig(text_config={"vocab_size": 35, **TEXT}, audio_config={})
    net = ClapModel(config)
    state = torch.load(folder / "laion.pt", weights_only=False)["state_dict"]
    state = {name.removeprefix("module."): value for name, value in state.items()}
    missing, unexpected = net.load_state_dict(as_transformers(state), strict=False)
    assert not unexpected
    assert all("position" in name or "token_type" in name for name in missing), missing
    net.save_pretrained(folder / "transformers")
    features = ClapFeatureExtractor(truncation="rand_trunc", frequency_min=50)
    tokenizer = RobertaTokenizer.from_pretrained(folder / "roberta-base")
    ClapProcessor(feature_extractor=features, tokenizer=tokenizer).save_pretrained(folder / "transformers")
    return Served("clap", "Clap", {"model": folder / "transformers"})


RENAMED = {
    "audio_branch.": "audio_model.audio_encoder.",
    "text_branch.": "text_model.",
    "projection.0.": "projection.linear1.",
    "projection.2.": "projection.linear2.",
    "bn0.": "batch_norm.",
    "norm1.": "layernorm_before.",
    "norm2.": "layernorm_after.",
    "attn.proj.": "attention.output.dense.",
    "attn.relative": "attention.self.relative",
    "mlp.fc1.": "intermediate.dense.",
    "mlp.fc2.": "output.dense.",
}
LEFT_OUT = (
    "spectrogram_extractor",
    "logmel_extractor",
    "tscam_conv",
    "branch.head",
    "_transform",
    "position_ids",
    "attn_mask",
)


def as_transformers(state: dict[str, Any]) -> dict[str, Any]:
    """laion_clap's weights under the names of transformers."""
    found: dict[str, Any] = {}
    for name, value in state.items():
        if any(part in name for part in LEFT_OUT):
            continue
        for old, new in RENAMED.items():
            name = name.replace(old, new)
        if "attn.qkv" in name:
            for part, piece in zip(("query", "key", "value"), value.chunk(3), strict=True):
                found[name.replace("attn.qkv", f"attention.self.{part}")] = piece
        else:
            found[name] = value
    return found


@pytest.mark.parametrize(("seconds", "rate"), [(10.0, 48_000), (3.0, 44_100), (12.0, 48_000), (0.7, 16_000)])
def test_clap_hears_the_same_in_both(laion: tuple[Served, Path], ours: Served, seconds: float, rate: int) -> None:
    """But for laion_clap's 16-bit step, without which they agree to the last digits of a float32."""
    data = clip(seconds, rate, bits=24)
    theirs, found = laion[0].values(CLAP, data), ours.values("clap512.clip", data)
    assert theirs.get("flags") == found.get("flags")
    assert np.abs(np.subtract(theirs["values"], found["values"])).max() < 5e-3
    assert np.abs(laion[0].numbers(LABELS, data) - ours.numbers("clap512", data)).max() < 1e-3
    whole = torch.from_numpy(hear(data, 48_000).wave[:480_000])
    with torch.inference_mode():
        (without_step,) = laion[0].server.model._net.get_audio_embedding_from_data([whole], use_tensor=True)
    assert np.abs(without_step.numpy() - found["values"]).max() < 1e-5


def test_fd_of_both_agree(laion: tuple[Served, Path], ours: Served) -> None:
    clips = [[clip(2.0, 48_000, seed=10 * side + seed) for seed in range(4)] for side in range(2)]
    theirs, found = (
        frechet_distance(*([head.numbers(measure, one) for one in side] for side in clips))
        for head, measure in ((laion[0], CLAP), (ours, "clap512.clip"))
    )
    assert abs(theirs - found) < 0.01 * found


def test_texts_are_embedded_alike(laion: tuple[Served, Path], ours: Served) -> None:
    assert apart(laion[0].server.model._texts, ours.server.model._texts["clap512"]) < 1e-3


def test_laion_clap_is_given_what_it_would_crop_at_random(laion: tuple[Served, Path]) -> None:
    values = laion[0].values(CLAP, clip(12.0, 48_000))
    assert values["flags"] == ["cropped"]
    assert laion[0].values(CLAP, clip(12.0, 48_000)) == values


def test_laion_clap_and_silence(laion: tuple[Served, Path]) -> None:
    quiet, crossed = laion[0].values(LABELS, silent()), laion[0].values(LABELS, opposite())
    assert quiet == crossed
    assert quiet["flags"] == ["silent"]


def test_a_checkpoint_with_code_in_it_is_refused(tmp_path: Path) -> None:
    class Code:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "was_run",))

    roberta(tmp_path)
    torch.save({"state_dict": {}, "code": Code()}, tmp_path / "laion.pt")
    with pytest.raises(RuntimeError, match="more than tensors"):
        Served("parity", "LaionClap", {"model": tmp_path / "laion.pt", "texts": tmp_path})
    (tmp_path / "laion.pt").write_bytes(pickle.dumps({"state_dict": {}})[:-3])
    with pytest.raises(RuntimeError, match="damaged"):
        Served("parity", "LaionClap", {"model": tmp_path / "laion.pt", "texts": tmp_path})
    assert not (tmp_path / "was_run").exists()


# --- frechet-audio-distance -------------------------------------------------------------------------------------------

HUBCONF = """
from torchvggish.torchvggish import VGG, make_layers
from torchvggish.vggish_input import waveform_to_examples
from torch import hub, nn

dependencies = ["torch"]


class Vggish(VGG):
    def __init__(self):
        super().__init__(make_layers(), False)
        self.load_state_dict(hub.load_state_dict_from_url("https://example.invalid/vggish-10086976.pth"))

    def forward(self, wave, rate):
        return super().forward(waveform_to_examples(wave, rate))


def vggish():
    return Vggish()
"""
"""torchvggish as PyPI has it, behind the entry that the library asks torch.hub for."""


def hub_folder(folder: Path) -> Path:
    """A torch.hub folder as a connected machine would have filled it, its weights random."""
    from torchvggish.torchvggish import VGG, make_layers

    (folder / "harritaylor_torchvggish_main").mkdir()
    (folder / "harritaylor_torchvggish_main" / "hubconf.py").write_text(HUBCONF)
    (folder / "checkpoints").mkdir()
    torch.manual_seed(0)
    state = VGG(make_layers(), False).state_dict()
    torch.save(state, folder / "checkpoints" / "vggish-10086976.pth")
    torch.save({"pca_means": np.zeros(128)}, folder / "checkpoints" / "vggish_pca_params-970ea276.pth")
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hub_folder(tmp_path_factory.mktemp("hub"))


@pytest.fixture(scope="module")
def fad(hub: Path) -> Served:
    return Served("parity", "GudgudVggish", {"hub": hub})


def test_vggish_hears_the_same_in_both(fad: Served, hub: Path) -> None:
    ours = Served("vggish", "VggishHead", {"model": hub / "checkpoints" / "vggish-10086976.pth"})
    sets = []
    for seconds, rate in ((10.0, 16_000), (3.0, 44_100), (1.0, 16_000)):
        data = clip(seconds, rate)
        theirs, found = fad.numbers(FAD, data), ours.numbers("vggish128.preact", data)
        assert apart(found, theirs) < 1e-5
        sets.append((theirs, found))
    (x, mine), (y, other) = sets[:2]
    library = fad.server.model._fad
    statistics = [library.calculate_embd_statistics(side) for side in (x, y)]
    distance = library.calculate_frechet_distance(*statistics[0], *statistics[1])
    assert abs(frechet_distance(mine, other) - distance) < 1e-3 * distance


def test_fad_pads_nothing_so_a_short_clip_is_as_missing(fad: Served) -> None:
    for samples in (240, 15_599):
        assert fad.reason(FAD, stored(wave()[4000 : 4000 + samples])) == "too_short"
    assert np.shape(fad.values(FAD, stored(wave()[4000:19_600]))["values"]) == (1, 128)


def test_fad_and_silence(fad: Served) -> None:
    assert fad.values(FAD, silent())["flags"] == ["silent"]
    assert fad.values(FAD, silent()) == fad.values(FAD, opposite())


def test_loading_leaves_the_hub_folder_as_it_was(tmp_path: Path) -> None:
    """Its files are digested: what the library writes beside them would make it another head at the next run."""
    folder = hub_folder(tmp_path)
    before = sorted(folder.rglob("*"))
    Served("parity", "GudgudVggish", {"hub": folder})
    assert sorted(folder.rglob("*")) == before


def test_what_the_library_swallows_is_an_error(fad: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(wave: Any, rate: int) -> Any:
        raise MemoryError("no room for this clip")

    monkeypatch.setattr(fad.server.model._fad.model, "forward", forward)
    request = {"operation": "measure", "id": "0", "measure": FAD, "clip_bytes": clip(), "seed": 0}
    assert "no room for this clip" in fad.server.handle("measure", [request])["error"]["message"]


def test_a_hub_folder_that_is_not_filled_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nothing is fetched") as stopped:
        Served("parity", "GudgudVggish", {"hub": tmp_path})
    assert "vggish-10086976.pth" in str(stopped.value)
