"""Sentence embeddings: the weights in the package, what they say, and vectors kept by text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from torus_ray.bank import embeddings
from torus_ray.bank.asked import Embed
from torus_ray.bank.embeddings import DIMENSIONS, NoEmbeddings, cached, load_embedder
from torus_ray.errors import InputError

needs_model = pytest.mark.skipif(
    embeddings.find_spec(embeddings.PACKAGE) is None, reason=f"{embeddings.PACKAGE} is not installed"
)


@pytest.fixture(scope="module")
def embed() -> Embed:
    return load_embedder()


@needs_model
def test_vectors_are_of_unit_length_and_alike_where_texts_are(embed: Embed) -> None:
    texts = ["a dog barks", "the barking of a dog", "a piano plays a slow tune", ""]
    vectors = embed(texts).astype(np.float32)
    assert vectors.shape == (4, DIMENSIONS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0], abs=2e-3)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2]


@needs_model
def test_a_text_has_one_vector_whatever_stands_beside_it(embed: Embed, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{number} bells in a hall" * (1 + number % 5) for number in range(30)]
    together = embed(texts)
    monkeypatch.setattr(embeddings, "BATCH", 4)
    assert np.array_equal(together, embed(texts))
    assert np.array_equal(together[7], embed(texts[7:8])[0])


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    with pytest.raises(NoEmbeddings, match="pip install wordllama=="):
        load_embedder()


@needs_model
def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "WEIGHTS", (embeddings.WEIGHTS[0], "0" * 64))
    with pytest.raises(InputError, match="not those that are known") as caught:
        load_embedder()
    assert not isinstance(caught.value, NoEmbeddings)
    assert caught.value.where.endswith(".safetensors")


# --- kept by text -----------------------------------------------------------------------------------------------------


def counting() -> tuple[Embed, list[str]]:
    """An embedder that notes what it was asked."""
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> NDArray[np.float16]:
        asked.extend(texts)
        return np.array([[len(text)] * DIMENSIONS for text in texts], np.float16).reshape(len(texts), DIMENSIONS)

    return embed, asked


def test_a_text_is_embedded_once_and_never_again(tmp_path: Path) -> None:
    embed, asked = counting()
    file = tmp_path / "deep" / "vectors.npy"
    through = cached(embed, file)
    assert through(["bb", "a", "bb"])[:, 0].tolist() == [2, 1, 2]
    assert cached(embed, file)(["ccc", "a", "bb"])[:, 0].tolist() == [3, 1, 2]
    assert asked.count("a") == asked.count("ccc") == 1
    assert cached(embed, file)([]).shape == (0, DIMENSIONS)
    assert sorted(path.name for path in file.parent.iterdir()) == ["vectors.npy"]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-10],
    "no array": lambda data: b"something else",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_made_anew(damage: str, tmp_path: Path) -> None:
    embed, asked = counting()
    file = tmp_path / "vectors.npy"
    cached(embed, file)(["a", "bb"])
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    assert cached(embed, file)(["a"])[0, 0] == 1
    assert asked.count("a") == 2
    cached(embed, file)(["a"])
    assert asked.count("a") == 2


def test_where_nothing_can_be_kept_the_check_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    embed, _ = counting()
    (tmp_path / "file").write_text("in the way")
    assert cached(embed, tmp_path / "file" / "vectors.npy")(["a"])[0, 0] == 1
    assert "vectors are not kept" in caplog.text
