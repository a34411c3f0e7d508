"""Records the signatures of vllm-omni that the Audex adapter calls, and its files of stages, out of its wheel.

    .venv/bin/python -m tests.systems.record_audex vllm_omni-0.30.0-py3-none-any.whl

Facts only, as record_signatures.py takes them of checkouts: this one is on PyPI, and has no commit to go by.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import yaml

from tests.systems.record_signatures import FOLDER, definitions

_AUDEX = "vllm_omni/model_executor/models/audex"
WANTED = {
    "vllm_omni/entrypoints/omni.py": ("Omni.generate", "Omni.abort"),
    "vllm_omni/entrypoints/omni_base.py": ("OmniBase", "OmniBase.resolve_sampling_params_list", "OmniBase.close"),
    f"{_AUDEX}/prompt.py": (
        "build_cond_prompt",
        "build_null_prompt",
        "build_tta_cond_prompt",
        "build_tta_null_prompt",
    ),
    f"{_AUDEX}/tta.py": ("build_tta_phase_token_ids", "AUDEX_AUDIOGEN_START_TOKEN_ID", "AUDEX_AUDIOGEN_END_TOKEN_ID"),
    f"{_AUDEX}/audex_omni_processing.py": ("SOUND_TOKEN", "MAX_AUDIO_SECONDS"),
}
_STAGE = ("stage_id", "model", "max_model_len", "gpu_memory_utilization", "dtype", "default_sampling_params")


def record(wheel: Path) -> dict[str, Any]:
    """The facts, in the shape of record_signatures.py; `deploy`: of each file of stages, what the adapter reads."""
    with zipfile.ZipFile(wheel) as archive:
        modules = {}
        for file, names in WANTED.items():
            found = dict(definitions(ast.parse(archive.read(file))))
            modules[file.removesuffix(".py").replace("/", ".")] = {name: found[name] for name in names}
        deploy = {}
        for file in archive.namelist():
            if file.startswith("vllm_omni/deploy/audex_") and file.endswith(".yaml"):
                content = yaml.safe_load(archive.read(file))
                stages = [{key: stage[key] for key in _STAGE if key in stage} for stage in content["stages"]]
                deploy[Path(file).stem] = {"pipeline": content["pipeline"], "stages": stages}
    # `Omni` is built by its base, which the adapter never names.
    base = modules.pop("vllm_omni.entrypoints.omni_base")
    omni = modules["vllm_omni.entrypoints.omni"]
    for name, told in base.items():
        omni[name.replace("OmniBase", "Omni")] = told
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return {"repository": wheel.name, "commit": f"sha256:{digest}", "modules": modules, "deploy": deploy}


if __name__ == "__main__":
    told = record(Path(sys.argv[1]))
    (FOLDER / "audex.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
