"""CLAP: the adapter over a tiny random checkpoint folder, transformers' own code underneath."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from transformers import ClapConfig, ClapFeatureExtractor, ClapModel, ClapProcessor, RobertaTokenizer, set_seed

from actors.clap.adapter import KEPT, _ten_seconds
from tests.actors.measures.served import FORMATS, Served, apart, clip, opposite, silent, stored, wave
from torus_ray.metrics import frontends

EMBEDDING, KINDS, WORDS = "clap512.clip", "clap512", "clap512.words"


def checkpoint(folder: Path, *, fusion: bool = False, truncation: str = "rand_trunc") -> Path:
    """A folder as laion/clap-htsat-unfused is one, its model random and tiny."""
    set_seed(0)
    letters = [*"abcdefghijklmnopqrstuvwxyzTS.", "Ġ"]
    special = {word: at for at, word in enumerate(("<s>", "<pad>", "</s>", "<unk>", "<mask>"))}
    vocabulary = {**special, **{letter: len(special) + at for at, letter in enumerate(letters)}}
    tokenizer = RobertaTokenizer(vocab=vocabulary, merges=[])
    config = ClapConfig(
        text_config={
            "vocab_size": len(vocabulary),
            "hidden_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_position_embeddings": 80,
        },
        audio_config={
            "patch_embeds_hidden_size": 16,
            "hidden_size": 128,
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 1, 2, 2],
            "enable_fusion": fusion,
            "fusion_type": "aff_2d" if fusion else None,
        },
    )
    model = ClapModel(config)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data *= 3
    model.save_pretrained(folder)
    features = ClapFeatureExtractor(truncation=truncation, frequency_min=50)
    ClapProcessor(feature_extractor=features, tokenizer=tokenizer).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served("clap", "Clap", {"model": checkpoint(tmp_path_factory.mktemp("clap"))})


def test_a_unit_vector_and_four_cosines(head: Served) -> None:
    vector = head.numbers(EMBEDDING, clip())
    assert vector.shape == (512,)
    assert abs(np.linalg.norm(vector) - 1) < 1e-5
    texts = head.server.model._texts
    for measure in (KINDS, WORDS):
        cosines = head.numbers(measure, clip())
        assert cosines.shape == (4,)
        np.testing.assert_allclose(cosines, texts[measure] @ vector, atol=1e-5)
    assert apart(texts[KINDS], texts[WORDS]) > 1e-3, "the template and the bare words are other texts"


def test_the_front_end_is_the_one_of_the_formulas(head: Served) -> None:
    for seconds in (0.7, 10.0):
        sound = wave(seconds, 48_000)
        np.testing.assert_array_equal(_ten_seconds(sound), frontends.clap_ten_seconds(sound)[0])
        found = head.server.model._features(
            _ten_seconds(sound), sampling_rate=48_000, truncation="rand_trunc", padding="repeatpad", return_tensors="np"
        )
        np.testing.assert_allclose(found["input_features"][0, 0], frontends.clap_log_mel(sound), atol=2e-3)


def test_a_batch_gives_what_each_clip_alone_gives(head: Served, tmp_path: Path) -> None:
    clips = [clip(seconds, seed=seed) for seed, seconds in enumerate((3.0, 0.4, 12.0, 10.0))]
    together = [result["reply"]["values"]["values"] for result in head.batch(EMBEDDING, [*clips, clips[0]])]
    fresh = Served("clap", "Clap", {"model": checkpoint(tmp_path)})
    for one, found in zip(clips, together, strict=False):
        assert apart(found, fresh.numbers(EMBEDDING, one)) < 1e-4
    assert together[-1] == together[0]


def test_a_long_clip_is_cropped_to_its_beginning_every_time(head: Served, tmp_path: Path) -> None:
    sound = wave(12.0, 48_000)
    values = head.values(EMBEDDING, stored(sound, 48_000))
    assert values["flags"] == ["cropped"]
    assert apart(values["values"], head.numbers(EMBEDDING, stored(sound[:480_000], 48_000))) < 1e-4
    assert head.values(EMBEDDING, clip(10.0, 48_000)).get("flags") is None
    fresh = Served("clap", "Clap", {"model": checkpoint(tmp_path)})
    assert apart(fresh.numbers(EMBEDDING, stored(sound, 48_000)), values["values"]) < 1e-6


def test_twelve_minutes_and_240_samples(head: Served) -> None:
    assert head.values(EMBEDDING, clip(720.0))["flags"] == ["cropped"]
    assert head.numbers(KINDS, stored(wave()[4000:4240])).shape == (4,)


def test_silence_is_valid_and_flagged_however_it_comes(head: Served) -> None:
    quiet, crossed = head.values(KINDS, silent()), head.values(KINDS, opposite())
    assert quiet["flags"] == crossed["flags"] == ["silent"]
    assert quiet["values"] == crossed["values"]
    assert np.isfinite(quiet["values"]).all()


@pytest.mark.parametrize(("rate", "channels", "bits"), FORMATS)
def test_one_clip_in_every_format(head: Served, rate: int, channels: int, bits: int) -> None:
    """Above half its rate a clip has nothing, and CLAP hears the rounding of its samples up to 14 kHz."""
    assert apart(head.numbers(EMBEDDING, clip(3.0, rate, channels, bits)), head.numbers(EMBEDDING, clip())) < 0.02


def test_what_is_kept_stays_small(head: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head.server.model, "_embed", lambda waves: np.zeros((len(waves), 512)))
    for level in np.linspace(0.5, 1, 2 * KEPT):
        head.values(EMBEDDING, stored(wave(0.2) * level))
    assert len(head.server.model._kept) == KEPT
    head.server.model._kept.clear()


def test_a_fused_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="fuses several crops"):
        Served("clap", "Clap", {"model": checkpoint(tmp_path, fusion=True, truncation="fusion")})


def test_texts_are_part_of_the_self_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkpoint(tmp_path / "model")
    monkeypatch.setenv("TORUS_SELF_TESTS", str(tmp_path / "records"))
    Served("clap", "Clap", {"model": folder})
    (record,) = (tmp_path / "records").iterdir()
    text = record.read_text()
    assert {"tone", KINDS, WORDS} <= set(json.loads(text)["values"])
    record.write_text(text.replace(f'"{WORDS}": [', f'"{WORDS}": [9.0,'))
    with pytest.raises(RuntimeError, match=f"{WORDS} has 2048 values, recorded were 2049"):
        Served("clap", "Clap", {"model": folder})
