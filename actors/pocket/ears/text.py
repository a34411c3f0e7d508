"""Sentence embedding (MiniLM-L6, int8 ONNX, mean pooling): how near two wordings are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tokenizers import Tokenizer

from . import files
from .onnx import session
from .signal import Array


class Embedder:
    """MiniLM. `weights` may name `minilm` and `minilm_tokenizer`."""

    def __init__(self, weights: Mapping[str, str], threads: int) -> None:
        self._net = session(files.need("minilm", weights).read_bytes(), threads)
        self._tokenizer = Tokenizer.from_file(str(files.need("minilm_tokenizer", weights)))
        self._tokenizer.enable_truncation(128)
        self._tokenizer.no_padding()
        self._known: dict[str, Array] = {}

    def __call__(self, texts: Sequence[str]) -> Array:
        """Unit vectors (len(texts), 384). Each text goes alone, so that a vector never depends on its neighbours."""
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> Array:
        if text not in self._known:
            ids = np.asarray([self._tokenizer.encode(text).ids], dtype=np.int64)
            ones = np.ones_like(ids)
            feed = {"input_ids": ids, "attention_mask": ones, "token_type_ids": np.zeros_like(ids)}
            mean = self._net.run(None, feed)[0][0].mean(axis=0)
            self._known[text] = mean / max(float(np.linalg.norm(mean)), 1e-9)
        return self._known[text]
