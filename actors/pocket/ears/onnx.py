"""One way to open an ONNX session: CPU, a fixed number of threads, no spinning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnxruntime


def session(model: bytes, threads: int, external: Mapping[str, bytes] | None = None) -> Any:
    """A session over `model` (ONNX bytes); `external` holds the contents of its external data files by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    if external:
        names, buffers = list(external), list(external.values())
        options.add_external_initializers_from_files_in_memory(names, buffers, [len(b) for b in buffers])
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
