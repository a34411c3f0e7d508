"""What a system card may say: its fields, as models that refuse everything else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from torus_ray.heads import OPERATIONS
from torus_ray.systems.weights import WeightCard

AudioType = Literal["speech", "sound", "music"]
EditMode = Literal["native", "self-caption"]
EDIT_MODES: tuple[EditMode, ...] = ("native", "self-caption")
Proven = Literal["run", "real code, tiny weights", "contract", "unproven"]
Metric = Literal["wer", "cm.argmax4", "cm.class_argmax4", "kl", "fad", "fd"]
"""What is computed from a measure's rows (METRICS 3-7); FAD and FD bring their kernel distance with them."""

DEADLINE_S: Mapping[str, float] = {
    "generate": 600.0,
    "edit": 600.0,
    "caption": 300.0,
    "answer": 300.0,
    "measure": 300.0,
}
"""Seconds that one request of an operation may take where its card says nothing."""


MeasureName = Annotated[str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$", max_length=60)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HeadCard(_Strict):
    """One ability of a host.

    audio_types: which types it serves (caption and answer heads are routed by the test's type as well).
    words: a text-to-speech head, which gets the words to say beside the prompt (DESIGN 4).
    seeded: the backend takes a seed, so the same request gives the same reply and a clip of NaN is final.
    settings: declared settings of this head alone, part of its identity; the class gets them as one keyword named
    after the operation. deadline_s: seconds for one request.
    measures: of a head that measures: what it may be asked for, and what is computed from it. A measure's name stands
    in the column of each of its numbers, so it names the network: yamnet521, clap512.clip.
    """

    audio_types: tuple[AudioType, ...] = ("speech", "sound", "music")
    words: bool = False
    seeded: bool = True
    settings: dict[str, Any] = Field(default_factory=dict)
    deadline_s: Annotated[float, Field(gt=0)] | None = None
    measures: dict[MeasureName, Annotated[tuple[Metric, ...], Field(min_length=1)]] = Field(default_factory=dict)


class HostCard(_Strict):
    """One process with one set of weights.

    adapter: "file.py:Class", relative to the card. environment: a name from runtime_envs, or "inherit".
    settings: keywords of the class. operating: more of them that change no reply and so are no part of its identity:
    where a server is, how many calls at once, prices, budgets; NAME_env holds the name of an environment variable.
    num_cpus, num_gpus, memory_gb: what one replica holds, as Ray is told: a share of a GPU, or whole GPUs of one node.
    gpu_memory_gb: GiB that must be free on a GPU; 0: its share of the card.
    style: "batch" or "async", as the class says. replicas: at most so many; where nothing is said, what fits the
    machine.
    """

    adapter: str
    environment: str = "inherit"
    settings: dict[str, Any] = Field(default_factory=dict)
    operating: dict[str, Any] = Field(default_factory=dict)
    weights: dict[str, WeightCard] = Field(default_factory=dict)
    heads: Annotated[dict[str, HeadCard], Field(min_length=1)]
    style: Literal["batch", "async"] = "batch"
    num_cpus: Annotated[float, Field(gt=0)] = 1.0
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    memory_gb: Annotated[float, Field(gt=0)] = 1.0
    gpu_memory_gb: Annotated[float, Field(ge=0)] = 0.0
    replicas: Annotated[int, Field(ge=1)] | None = None
    start_deadline_s: Annotated[float, Field(gt=0)] = 600.0

    @field_validator("heads")
    @classmethod
    def _known_operations(cls, heads: dict[str, HeadCard]) -> dict[str, HeadCard]:
        for operation in heads:
            if operation not in OPERATIONS:
                raise ValueError(f"no operation is called {operation!r}; there are {', '.join(OPERATIONS)}")
            if heads[operation].measures and operation != "measure":
                raise ValueError(f"{operation} has measures, which belong to the operation measure")
        return heads

    @field_validator("num_gpus")
    @classmethod
    def _as_ray_counts(cls, num_gpus: float) -> float:
        if num_gpus > 1 and num_gpus != int(num_gpus):
            raise ValueError(f"num_gpus is {num_gpus:g}: a share of one GPU, or whole GPUs of one node")
        return num_gpus

    @field_validator("operating")
    @classmethod
    def _no_secrets(cls, operating: dict[str, Any]) -> dict[str, Any]:
        # The card is kept in run.json. What is wrong here may be a key, so it is not shown.
        for name, value in operating.items():
            if name.endswith("_env") and not re.fullmatch(r"([A-Z][A-Z0-9_]*)?", str(value)):
                raise ValueError(f"{name} holds the NAME of an environment variable, in capitals, never what is in it")
            if name.endswith("_url") and not re.fullmatch(r"https?://[^\s@?#]+", str(value)):
                raise ValueError(f"{name} is http(s)://host/path, without user, query or fragment")
        return operating

    @model_validator(mode="after")
    def _said_once(self) -> HostCard:
        if twice := self.settings.keys() & self.operating.keys():
            raise ValueError(f"{', '.join(sorted(twice))} stands in settings and in operating")
        return self


class TextsCard(_Strict):
    """Where a system needs other words than the project's versioned texts: name of the text -> the text itself."""

    question: str | None = None
    caption_instruction: str | None = None
    self_caption: str | None = None


class SystemCard(_Strict):
    """A system as its TOML file has it.

    seeds: `fixed` hands the run's seed on as it is, `derived` mixes in the request (DESIGN 4).
    default_for: of a card that only measures: the systems whose runs it measures where nothing else is said, each with
    the arm of its own that the distances are taken to (DESIGN 8).
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9]+([.+-][a-z0-9]+)*$", max_length=80)]
    title: str
    about: str = ""
    licence: str = ""
    proven: Proven = "unproven"
    seeds: Literal["fixed", "derived"] = "derived"
    bits: Literal[16, 24] = 16
    arms: tuple[EditMode, ...] = ()
    default_for: dict[str, str] = Field(default_factory=dict)
    texts: TextsCard = TextsCard()
    hosts: Annotated[dict[str, HostCard], Field(min_length=1)]
