"""Packages that stand in for released ones: built from recorded signatures, so that a call which the real code would
not take fails here too; and a torch that is no more than the adapters use of it."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from torus_ray.engine.hosting import HeadServer
from torus_ray.engine.hosts import HostPlan
from torus_ray.heads import Request, request_to_wire
from torus_ray.systems import load_system

SIGNATURES = Path(__file__).parent / "signatures"
Behaviour = Callable[..., Any]
INHERITED = ("to", "eval", "load_state_dict", "load_pretrained")
"""What a network has of torch.nn.Module, and one repository's of a base class: a test may set them."""


def facts(name: str) -> dict[str, Any]:
    """What record_signatures.py wrote of a repository."""
    content: dict[str, Any] = json.loads((SIGNATURES / f"{name}.json").read_text())
    return content


def default_of(name: str, module: str, function: str, parameter: str) -> Any:
    """A recorded default."""
    (found,) = (p for p in facts(name)["modules"][module][function]["parameters"] if p["name"] == parameter)
    return found["default"]


@dataclass
class Call:
    """A call that was made of a stand-in. arguments: as the signature binds them, defaults left out."""

    name: str
    arguments: dict[str, Any]


@dataclass
class Released:
    """The stand-in of one repository's modules. calls: in the order they were made."""

    name: str
    calls: list[Call] = field(default_factory=list)
    modules: dict[str, ModuleType] = field(default_factory=dict)

    def of(self, name: str) -> list[dict[str, Any]]:
        """The arguments of every call of one function, class or method."""
        return [call.arguments for call in self.calls if call.name == name]

    def one(self, name: str) -> dict[str, Any]:
        (only,) = self.of(name)
        return only


def install(
    name: str,
    patch: pytest.MonkeyPatch,
    behaviours: Mapping[str, Behaviour],
    places: Mapping[str, str] | None = None,
) -> Released:
    """Put the recorded modules of a repository where `import` finds them.

    behaviours: "module:name" -> what it does: functions get the bound arguments as keywords, constructors and methods
    `self` before them. places: module -> its `__file__`.
    """
    made = Released(name)
    recorded = facts(name)["modules"]
    for module_name, entries in recorded.items():
        module = _module(module_name, patch)
        module.__file__ = (places or {}).get(module_name, f"/nowhere/{module_name}.py")
        made.modules[module_name] = module
        for entry, told in entries.items():
            if "." in entry:
                continue
            key = f"{module_name}:{entry}"
            if told["kind"] == "class":
                methods = {n.partition(".")[2]: t for n, t in entries.items() if n.startswith(f"{entry}.")}
                value: Any = _class(made, key, told, methods, behaviours)
            elif told["kind"] == "function":
                value = _function(made, key, told["parameters"], behaviours.get(key))
            else:
                value = told["value"] if told["value"] is not None else f"<{entry}>"
            setattr(module, entry, value)
    return made


def _module(name: str, patch: pytest.MonkeyPatch) -> ModuleType:
    """A module and the packages above it, in sys.modules for the length of a test."""
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        path = ".".join(parts[:depth])
        if not isinstance(sys.modules.get(path), Standin):
            made = Standin(path)
            made.__path__ = []
            patch.setitem(sys.modules, path, made)
        if depth > 1:
            setattr(sys.modules[".".join(parts[: depth - 1])], parts[depth - 1], sys.modules[path])
    return sys.modules[name]


class Standin(ModuleType):
    """A module of this file's making."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.__name__} has no {name} that was recorded")


def _signature(parameters: list[dict[str, Any]], leading: tuple[str, ...] = ()) -> inspect.Signature:
    own = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in leading]
    told = [
        inspect.Parameter(
            p["name"],
            getattr(inspect.Parameter, p["kind"]),
            **({"default": p["default"]} if p.get("optional") else {}),
        )
        for p in parameters
    ]
    return inspect.Signature([*own, *told])


def _bound(made: Released, key: str, parameters: list[dict[str, Any]], args: Any, kwargs: Any) -> dict[str, Any]:
    try:
        bound = _signature(parameters).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{key} of {facts(made.name)['repository']}: {error}") from error
    made.calls.append(Call(key, dict(bound.arguments)))
    return dict(bound.arguments)


def _function(made: Released, key: str, parameters: list[dict[str, Any]], behaviour: Behaviour | None) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        arguments = _bound(made, key, parameters, args, kwargs)
        return behaviour(**arguments) if behaviour else None

    return function


def _class(
    made: Released,
    key: str,
    told: dict[str, Any],
    methods: Mapping[str, dict[str, Any]],
    behaviours: Mapping[str, Behaviour],
) -> type:
    attributes = {*told["attributes"], *methods, *INHERITED}
    if not told["attributes"]:  # a dataclass has fields alone
        attributes |= {p["name"] for p in told["parameters"]}

    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        arguments = _bound(made, key, told["parameters"], args, kwargs)
        if not told["attributes"]:
            for parameter in told["parameters"]:
                if parameter["name"] in arguments or parameter.get("optional"):
                    setattr(self, parameter["name"], arguments.get(parameter["name"], parameter.get("default")))
        if behaviour := behaviours.get(key):
            behaviour(self, **arguments)

    def assign(self: Any, name: str, value: Any) -> None:
        assert name in attributes, f"{key} has no attribute {name}"
        object.__setattr__(self, name, value)

    def method(name: str, parameters: list[dict[str, Any]]) -> Any:
        full = f"{key}.{name}"

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            arguments = _bound(made, full, parameters, args, kwargs)
            behaviour = behaviours.get(full)
            return behaviour(self, **arguments) if behaviour else None

        return call

    body: dict[str, Any] = {"__setattr__": assign, **told["constants"]}
    body.update({name: method(name, m["parameters"]) for name, m in methods.items() if name != "__init__"})
    # What torch.nn.Module and the hub's mixin give every network; no signature of the repository's own.
    for chained in ("to", "eval"):
        body.setdefault(chained, lambda self, *args, **kwargs: self)
    return type(key.partition(":")[2], (), {"__init__": construct, **body})


# --- torch ------------------------------------------------------------------------------------------------------------


class Tensor:
    """An array under the methods of a tensor that adapters use."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.shape = self.array.shape

    def to(self, *_: Any, **__: Any) -> Tensor:
        return self

    detach = cpu = to

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32))

    def long(self) -> Tensor:
        return Tensor(self.array.astype(np.int64))

    def transpose(self, first: int, second: int) -> Tensor:
        return Tensor(self.array.swapaxes(first, second))

    def numpy(self) -> Any:
        return self.array

    def __getitem__(self, at: Any) -> Tensor:
        return Tensor(self.array[at])

    def __len__(self) -> int:
        return len(self.array)


def fake_torch(patch: pytest.MonkeyPatch) -> list[int]:
    """A torch without a network in it. Returns the seeds that it was given, in order."""
    seeds: list[int] = []
    torch = Standin("torch")
    for name, value in {
        "manual_seed": seeds.append,
        "cuda": SimpleNamespace(is_available=lambda: False),
        "no_grad": nullcontext,
        "set_num_threads": lambda count: None,
        "device": str,
        "long": "long",
        "from_numpy": Tensor,
        "tensor": lambda values, dtype=None: Tensor(values),
        "zeros": lambda *shape, device=None: Tensor(np.zeros(shape)),
    }.items():
        setattr(torch, name, value)
    patch.setitem(sys.modules, "torch", torch)
    return seeds


def library(patch: pytest.MonkeyPatch, name: str, **values: Any) -> None:
    """A module of a library that is not held to recorded signatures."""
    module = _module(name, patch)
    for key, value in values.items():
        setattr(module, key, value)


# --- hosts ------------------------------------------------------------------------------------------------------------


@dataclass
class Served:
    """One host of a card as an executor starts it, in this process."""

    server: HeadServer
    weights: dict[str, Path]

    def ask(self, request: Request) -> dict[str, Any]:
        """The result of one request; raises AssertionError with the traceback where the adapter raised."""
        answer = self.server.handle(request.operation, [request_to_wire(request)])
        assert "error" not in answer, answer["error"]["traceback"]
        (result,) = answer["results"]
        assert isinstance(result, dict)
        return result

    def raised(self, request: Request) -> dict[str, Any]:
        """The error that a request ended with."""
        error: dict[str, Any] = self.server.handle(request.operation, [request_to_wire(request)])["error"]
        return error


def serve(
    card: str, weights: Mapping[str, Any], folder: Path, device: str = "cuda", name: str | None = None, **changed: Any
) -> Served:
    """A host of a card, the first where none is named, with its settings, over files made for it.

    weights: name -> the files of its folder (paths ending in / are folders), or the content of a file of its own.
    changed: settings other than the card's.
    """
    hosts = load_system(card).hosts
    host = hosts[name or next(iter(hosts))]
    assert set(weights) == set(host.card.weights)
    paths = {name: made_weights(folder / name, parts) for name, parts in weights.items()}
    payload = HostPlan(host, str(host.folder), 16).payload()
    payload["settings"].update(changed)
    payload["host"].update(device=device, weights={name: str(path) for name, path in paths.items()})
    return Served(HeadServer(payload), paths)


def made_weights(path: Path, parts: Any) -> Path:
    if isinstance(parts, str):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(parts)
        return path
    for part, content in dict.fromkeys(parts, "").items() if not isinstance(parts, Mapping) else parts.items():
        target = path / part
        (target if part.endswith("/") else target.parent).mkdir(parents=True, exist_ok=True)
        if not part.endswith("/"):
            target.write_text(content)
    return path
