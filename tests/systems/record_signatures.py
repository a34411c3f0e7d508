"""Records the signatures that adapters call, from a checkout of the public repository, without importing any of it.

    .venv/bin/python -m tests.systems.record_signatures CHECKOUTS [NAME ...]

CHECKOUTS holds one git directory a system, named as in WANTED (with or without a work tree). Each is read at its
commit; what is written is facts: names, parameters, defaults, attributes. A test drives the adapters against them.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "signatures"


@dataclass(frozen=True)
class Wanted:
    """What of one repository is recorded. names: file -> functions, classes, methods (Class.method) and module
    constants."""

    repository: str
    commit: str
    names: dict[str, tuple[str, ...]]


_GENERATOR = ("Generator",)
WANTED = {
    "audio-omni": Wanted(
        "ZeyueT/Audio-Omni",
        "c96cc2cf18e9769d9c9c422465682ad9f01ab875",
        {
            "audio_omni/api.py": (
                "AudioOmni",
                "AudioOmni.generate",
                "AudioOmni.edit",
                "AudioOmni.understand",
                "AudioOmni._build_conditioning",
                "AudioOmni._postprocess",
                "AudioOmni._get_omni_conditioner",
            ),
            "audio_omni/prompts.py": ("build_prompt", "_wrap", "SYSTEM_EDITING", "SYSTEM_UNDERSTANDING"),
            "audio_omni/inference/generation.py": ("generate_diffusion_cond",),
            "audio_omni/models/conditioners.py": ("OmniConditioner",),
        },
    ),
    "uniaudio2": Wanted(
        "yangdongchao/UniAudio2",
        "dea57db2ee7cc5416dc5ef4f8ce08eb923a0a61c",
        {
            "llm_models/model_new.py": ("ModelArgs", "Model_stage3"),
            "llm_utils/train_utils.py": ("resume_for_inference",),
            "tools/tokenizer/Text2ID/text_tokenizer.py": ("TextTokenizer", "TextTokenizer.tokenize"),
            "tools/tokenizer/ReasoningCodec_film/reason_tokenizer.py": (
                "ReasoningTokenizer",
                "ReasoningTokenizer.tokenize",
                "ReasoningTokenizer.detokenize_no_reason",
            ),
            "evaluation/audiogen_task.py": (*_GENERATOR, "Generator.generate_audio"),
            "evaluation/tts_task.py": (*_GENERATOR, "Generator.generate_tts"),
            "evaluation/audio_understanding.py": (*_GENERATOR, "Generator.generate_answer"),
            "evaluation/audio_music_caption_task.py": (*_GENERATOR, "Generator.generate_audio_caption"),
        },
    ),
    "unified-io-2": Wanted(
        "allenai/unified-io-2.pytorch",
        "6e487bec6be8f9b909453a5f9833c49914f4a777",
        {
            "uio2/audio_utils.py": ("extract_spectrograms_from_audio",),
            "uio2/config.py": ("MAX_TEXT_LEN", "AUDIO_SEGMENT_LENGTH", "AUDIO_SAMPLING_RATE", "DEFAULT_SEQUENCE_LEN"),
            "uio2/model.py": ("UnifiedIOModel",),
            "uio2/preprocessing.py": (
                "UnifiedIOPreprocessor",
                "UnifiedIOPreprocessor.from_dict",
                "UnifiedIOPreprocessor.__call__",
            ),
            "uio2/prompt.py": ("Prompt", "Prompt.random_prompt"),
            "uio2/runner.py": (
                "TaskRunner",
                "TaskRunner.audio_generation",
                "TaskRunner.audio_captioning",
                "TaskRunner.predict_text",
            ),
        },
    ),
    "tangoflux": Wanted(
        "declare-lab/TangoFlux",
        "164420faa2b3f8a28bb013ccde7006422a616fc7",
        {
            "tangoflux/__init__.py": ("TangoFluxInference", "TangoFluxInference.generate"),
            "tangoflux/model.py": ("TangoFlux", "TangoFlux.inference_flow"),
        },
    ),
    "ace-step": Wanted(
        "ace-step/ACE-Step-1.5",
        "f30aee4c186c33b7b8a6ea59a4b7fc36f795b49f",
        {
            "acestep/handler.py": (
                "AceStepHandler",
                "AceStepHandler.initialize_service",
                "AceStepHandler._get_project_root",
            ),
            "acestep/llm_inference.py": ("LLMHandler", "LLMHandler.initialize", "LLMHandler.unload"),
            "acestep/inference.py": ("GenerationParams", "GenerationConfig", "GenerationResult", "generate_music"),
            "acestep/model_downloader.py": ("MAIN_MODEL_COMPONENTS",),
        },
    ),
    "step-audio-editx": Wanted(
        "stepfun-ai/Step-Audio-EditX",
        "aacb90a2a4f43a977c38c6c824e67071296ab17b",
        {
            "tts.py": (
                "StepAudioTTS",
                "StepAudioTTS.clone",
                "StepAudioTTS.edit",
                "StepAudioTTS._build_audio_edit_instruction",
            ),
            "tokenizer.py": ("StepAudioTokenizer",),
            "model_loader.py": ("ModelSource",),
            "config/edit_config.py": ("get_supported_edit_types",),
        },
    ),
    "mmedit": Wanted(
        "xycs6k8r2Anonymous/MMEdit",
        "b51cdbdb67126b334ba706ce032de0be8942fd62",
        {
            "utils/config.py": ("register_omegaconf_resolvers",),
            "models/common.py": ("LoadPretrainedBase", "LoadPretrainedBase.load_pretrained"),
            "models/content_adapter.py": ("ContentEncoderAdapterMixin",),
            "models/content_encoder/content_encoder.py": ("ContentEncoder",),
            "models/content_encoder/llm_encoder.py": ("Qwen2AudioEmbedder",),
            "models/diffusion.py": (
                "SingleTaskCrossAttentionAudioDiffusion",
                "SingleTaskCrossAttentionAudioDiffusion.inference",
            ),
        },
    ),
}


def record(wanted: Wanted, repository: Path) -> dict[str, Any]:
    """The recorded facts. Raises KeyError for a name that the commit does not have."""
    modules: dict[str, Any] = {}
    for file, names in wanted.names.items():
        source = subprocess.run(
            ["git", "-C", str(repository), "show", f"{wanted.commit}:{file}"], check=True, capture_output=True
        ).stdout
        found = dict(definitions(ast.parse(source)))
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        modules[module] = {name: found[name] for name in names}
    return {"repository": wanted.repository, "commit": wanted.commit, "modules": modules}


def definitions(tree: ast.Module) -> Iterator[tuple[str, dict[str, Any]]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, _function(node, method=False)
        elif isinstance(node, ast.ClassDef):
            yield from _class(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                yield target.id, {"kind": "constant", "value": _literal(node.value)}


def _class(node: ast.ClassDef) -> Iterator[tuple[str, dict[str, Any]]]:
    methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    is_dataclass = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]
    if is_dataclass:
        parameters = [
            _parameter(part.target.id, "POSITIONAL_OR_KEYWORD", part.value)
            for part in fields
            if isinstance(part.target, ast.Name)
        ]
    else:
        parameters = _function(methods["__init__"], method=True)["parameters"] if "__init__" in methods else []
    assigned = {
        target.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Assign)
        for chained in part.targets
        for target in (chained.elts if isinstance(chained, ast.Tuple) else [chained])
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    }
    constants = {
        part.targets[0].id: _literal(part.value)
        for part in node.body
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)
    }
    yield (
        node.name,
        {"kind": "class", "parameters": parameters, "attributes": sorted(assigned), "constants": constants},
    )
    for name, method in methods.items():
        yield f"{node.name}.{name}", _function(method, method=True)


def _function(node: ast.FunctionDef, *, method: bool) -> dict[str, Any]:
    given = node.args
    is_static = any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)
    plain = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    parameters = [_parameter(a.arg, "POSITIONAL_OR_KEYWORD", d) for a, d in zip(plain, defaults, strict=True)]
    parameters = parameters[1:] if method and not is_static else parameters
    if given.vararg:
        parameters.append(_parameter(given.vararg.arg, "VAR_POSITIONAL", None))
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        parameters.append(_parameter(argument.arg, "KEYWORD_ONLY", default))
    if given.kwarg:
        parameters.append(_parameter(given.kwarg.arg, "VAR_KEYWORD", None))
    returned = [part.value for part in node.body if isinstance(part, ast.Return) and part.value is not None]
    return {"kind": "function", "parameters": parameters, "returns": _literal(returned[0]) if returned else None}


def _parameter(name: str, kind: str, default: ast.expr | None) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        **({} if default is None else {"default": _literal(default), "optional": True}),
    }


def _literal(node: ast.expr | None) -> Any:
    """A literal's value where JSON can hold it, else None. No text longer than a name: those are the authors'."""
    try:
        value = ast.literal_eval(node) if node is not None else None
        return None if isinstance(value, str) and len(value) > 60 else json.loads(json.dumps(value))
    except (ValueError, TypeError):
        return None


def main(arguments: list[str]) -> int:
    checkouts, names = Path(arguments[0]), arguments[1:] or list(WANTED)
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        facts = record(WANTED[name], checkouts / name)
        (FOLDER / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        print(
            f"{name}: {sum(map(len, facts['modules'].values()))} names of {facts['repository']}@{facts['commit'][:8]}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
