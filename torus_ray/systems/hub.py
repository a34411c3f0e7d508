"""`hf:ID`: a checkpoint of the Hugging Face hub as a system, without a card of its own.

The card that names the repository is taken as it is. Any other checkpoint is looked for on this machine (nothing is
fetched), and the card made for its kind serves it: what its config.json or model_index.json says it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torus_ray.errors import InputError
from torus_ray.systems.weights import WeightCard

if TYPE_CHECKING:
    from torus_ray.systems import System

PREFIX = "hf:"
WEIGHTS = "model"
"""What the cards call the weights of a host that reads a checkpoint's folder; `kind` in its settings says of what."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Checkpoint:
    """A folder as the hub has it. kind: of the pipeline or model; name: as a system is called."""

    name: str
    kind: str
    weights: WeightCard


def hub_system(reference: str, systems: Iterable[System]) -> System:
    """The system behind `hf:...`, made like one of `systems` that reads a checkpoint's folder. Raises InputError."""
    identifier = reference.removeprefix(PREFIX)
    by_kind: dict[str, System] = {}
    for system in systems:
        for host in system.hosts.values():
            weights, kind = host.card.weights.get(WEIGHTS), host.card.settings.get("kind")
            if weights is None or kind is None:
                continue
            if weights.repo == identifier:
                return system
            by_kind.setdefault(str(kind), system)
    found = find_checkpoint(reference, by_kind)
    like = by_kind[found.kind]
    # What the card says of its own checkpoint's size and licence is not said of this one.
    told = {"weights": {WEIGHTS: found.weights}, "gpu_memory_gb": 0.0}
    hosts = {name: replace(host, card=host.card.model_copy(update=told)) for name, host in like.hosts.items()}
    card = like.card.model_copy(
        update={
            "name": found.name,
            "title": f"{reference}, as {like.name}",
            "about": f"a {found.kind} checkpoint, served as the card {like.name} says",
            "licence": "of the checkpoint: see its model card",
            "hosts": {name: host.card for name, host in hosts.items()},
        }
    )
    return replace(like, card=card, hosts=hosts)


def find_checkpoint(reference: str, kinds: Iterable[str]) -> Checkpoint:
    """The checkpoint behind `hf:OWNER/NAME`, `hf:OWNER/NAME@REVISION` or `hf:FOLDER`. Raises InputError."""
    asked = reference.removeprefix(PREFIX)
    identifier, _, revision = asked.partition("@")
    places = [Path(asked).expanduser(), *_places(identifier, revision or "main")]
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise InputError(
            f"no files of {identifier} on this machine",
            where=reference,
            expected="a folder at " + " or ".join(map(str, places[1:] or places)),
            mend=f"`hf download {identifier}`, or give the folder: hf:/path/to/it",
        )
    kind = _kind(folder)
    if kind not in kinds:
        raise InputError(
            f"a checkpoint of the kind {kind or 'unknown'!r}",
            where=str(folder),
            expected="one of " + ", ".join(sorted(kinds)),
            mend="write an adapter for it: docs/your-own-model.md",
        )
    commit = folder.name if _COMMIT.fullmatch(folder.name) else None
    weights = WeightCard(path=str(folder.absolute()), repo=identifier if commit else None, revision=commit)
    words = identifier.split("/") if commit or folder != places[0] else [folder.name]
    return Checkpoint(re.sub(r"[^a-z0-9.]+", "-", "-".join(words).lower()).strip("-.") or "checkpoint", kind, weights)


def _places(identifier: str, revision: str) -> list[Path]:
    """Where the files of a repository may lie: our own folder of weights, then the hub's cache."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", identifier):
        return []
    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    repository = cache / f"models--{identifier.replace('/', '--')}"
    named = repository / "refs" / revision
    commit = named.read_text(encoding="utf-8").strip() if named.is_file() else revision
    own = Path("~/.cache/torus-ray/weights").expanduser() / identifier.rpartition("/")[2]
    # Files put into our own folder are of no stated revision.
    return [own, repository / "snapshots" / commit] if revision == "main" else [repository / "snapshots" / commit]


def _kind(folder: Path) -> str:
    """`_class_name` of a diffusers pipeline, `model_type` of a transformers model; "" where neither is said."""
    for name, key in (("model_index.json", "_class_name"), ("config.json", "model_type")):
        file = folder / name
        if not file.is_file():
            continue
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"not JSON: {error}", where=str(file), expected="JSON", mend="fetch it anew") from error
        if isinstance(content, Mapping) and key in content:
            return str(content[key])
    return ""
