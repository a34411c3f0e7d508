"""What an executor needs to start a host: its specification, its environment, how many replicas fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torus_ray.systems import DEADLINE_S, HostSpec

WINDOW = 2
"""Batches a replica of style "batch" has in flight: one runs, one waits, so that it is never idle (PROBE.md C: worth
6%)."""


@dataclass(frozen=True)
class HostPlan:
    """A host ready to be started.

    folder: where the adapter lies for the process that runs it (a relative path inside the code that travels).
    runtime_env: what Ray is told (py_executable, env_vars); {} for the interpreter of the driver.
    """

    spec: HostSpec
    folder: str
    bits: int
    runtime_env: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.spec.name

    def deadline_s(self, operation: str) -> float:
        """Seconds that one request may take."""
        head = self.spec.card.heads[operation]
        return head.deadline_s or DEADLINE_S[operation]

    def payload(self, *, folder: str | None = None) -> dict[str, Any]:
        """What HeadServer is given."""
        card = self.spec.card
        return {
            "folder": folder or self.folder,
            "module": self.spec.module,
            "class_name": self.spec.class_name,
            "settings": dict(card.settings),
            "heads": {operation: dict(head.settings) for operation, head in card.heads.items()},
            "style": card.style,
            "bits": self.bits,
            "host": {
                "device": "cuda" if card.num_gpus else "cpu",
                "threads": self.threads,
                "gpu_share": float(card.num_gpus),
                "weights": {name: weight.path for name, weight in card.weights.items()},
            },
        }

    @property
    def threads(self) -> int:
        return max(1, int(self.spec.card.num_cpus))

    def actor_environment(self) -> dict[str, Any]:
        """The actor's runtime_env: its interpreter, its threads, and no GPU for a host that asked for none: Ray 2.60
        leaves it all of them."""
        threads = str(self.threads)
        variables = {
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        if not self.spec.card.num_gpus:
            variables["CUDA_VISIBLE_DEVICES"] = ""
        environment = dict(self.runtime_env)
        environment["env_vars"] = {**variables, **environment.get("env_vars", {})}
        return environment


@dataclass(frozen=True)
class Limits:
    """How many of a batch a head takes, and how many calls a replica holds; from what its model said of itself."""

    max_batch: Mapping[str, int]
    window: int

    @classmethod
    def of(cls, described: Mapping[str, Any], *, exact: bool) -> Limits:
        """exact: a head whose replies depend on their batch is sent one request at a time."""
        if described["style"] == "async":
            return cls({}, max(1, int(described["max_in_flight"])))
        single = exact and not described["batch_invariant"]
        return cls({} if single else dict(described["max_batch"]), WINDOW)

    def room(self) -> int:
        """Requests that one replica can hold."""
        return self.window * max(self.max_batch.values(), default=1)


def replicas_that_fit(plans: Mapping[str, HostPlan], *, cpus: float, gpus: float, memory_gb: float) -> dict[str, int]:
    """Replicas of each host: one each, then one more in turn while CPUs, GPUs and memory are left and a card allows
    it."""
    counts = {name: 1 for name in plans}

    def used(attribute: str) -> float:
        return sum(float(getattr(plan.spec.card, attribute)) * counts[name] for name, plan in plans.items())

    growing = True
    while growing:
        growing = False
        for name, plan in plans.items():
            card = plan.spec.card
            fits = (
                used("num_cpus") + card.num_cpus <= cpus
                and used("num_gpus") + card.num_gpus <= gpus
                and used("memory_gb") + card.memory_gb <= memory_gb
            )
            if fits and counts[name] < (card.replicas or 1_000):
                counts[name] += 1
                growing = True
    return counts
