"""What an executor needs to start a host: its specification, its environment, what one replica holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torus_ray.engine.rooms import Room, Wants, fits
from torus_ray.protocol.executor import EngineStop
from torus_ray.systems import DEADLINE_S, HostSpec

GIB = 1024**3

WINDOW = 2
"""Batches a replica of style "batch" has in flight: one runs, one waits, so that it is never idle (PROBE.md C: worth
6%)."""


@dataclass(frozen=True)
class HostPlan:
    """A host ready to be started.

    folder: where the adapter lies for the process that runs it (a relative path inside the code that travels).
    runtime_env: what Ray is told (py_executable, env_vars); {} for the interpreter of the driver.
    avoid: ids of nodes where it cannot run.
    """

    spec: HostSpec
    folder: str
    bits: int
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    avoid: tuple[str, ...] = ()

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
            "settings": {**card.settings, **card.operating},
            "heads": {operation: dict(head.settings) for operation, head in card.heads.items()},
            "style": card.style,
            "bits": self.bits,
            "background": self.spec.background,
            "host": {
                "device": "cuda" if card.num_gpus else "cpu",
                "threads": self.threads,
                "gpu_share": min(1.0, card.num_gpus),
                "weights": {name: weight.path for name, weight in card.weights.items()},
            },
        }

    @property
    def ray_cpus(self) -> float:
        """CPUs that Ray counts for one replica: none for a host that only measures, at the lowest priority."""
        return 0.0 if self.spec.background else self.spec.card.num_cpus

    @property
    def wants(self) -> Wants:
        """What one replica holds, as Ray counts."""
        return Wants(self.ray_cpus, self.spec.card.num_gpus, self.spec.card.memory_gb, self.avoid)

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


def unfit(plan: HostPlan, rooms: Sequence[Room]) -> EngineStop | None:
    """Why Ray could never place a host: it would wait for ever, without a word."""
    wants = plan.wants
    if fits([wants], rooms):
        return None
    able = [room for room in rooms if room.id not in wants.avoid] or [Room(0.0)]
    there = {
        "num_cpus": (wants.cpus, max(room.cpus for room in able)),
        "num_gpus": (wants.gpus, max(room.gpus for room in able)),
        "memory_gb": (wants.memory_gb, max(room.memory_gb for room in able)),
    }
    lacking = [(name, *amounts) for name, amounts in there.items() if amounts[0] > amounts[1]]
    what = (
        "wants {} = {:g}, this Ray has {:.1f}".format(*lacking[0])
        if lacking
        else "wants " + ", ".join(f"{name} = {wanted:g}" for name, (wanted, _) in there.items()) + " on one node"
    )
    node = " on any one node" if lacking and len(rooms) > 1 else ""
    return EngineStop(
        f"host {plan.name!r} {what}{node}",
        where=f"the card of {plan.name}",
        expected="a replica that fits one node",
        mend=f"lower {lacking[0][0] if lacking else 'one of them'} in the card, or run where there is more",
    )
