"""System cards: which hosts a system has, which heads they serve, how it edits (DESIGN 1, 7).

A card is a TOML file beside its adapter::

    name = "pocket"
    title = "..."
    seeds = "fixed"

    [hosts.pocket]
    adapter = "adapter.py:Pocket"
    environment = "pocket"
    heads = { generate = {}, edit = {}, caption = {}, answer = {} }

Cards are read by path, by name from the actors folder, or from a package's `torus_ray.systems` entry point.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from torus_ray.bank.digest import sha256_of
from torus_ray.bank.near import near_names
from torus_ray.errors import InputError
from torus_ray.systems.cards import DEADLINE_S as DEADLINE_S
from torus_ray.systems.cards import EDIT_MODES as EDIT_MODES
from torus_ray.systems.cards import AudioType as AudioType
from torus_ray.systems.cards import EditMode as EditMode
from torus_ray.systems.cards import HeadCard as HeadCard
from torus_ray.systems.cards import HostCard as HostCard
from torus_ray.systems.cards import Metric as Metric
from torus_ray.systems.cards import Proven
from torus_ray.systems.cards import SystemCard as SystemCard
from torus_ray.systems.cards import TextsCard as TextsCard
from torus_ray.systems.hub import PREFIX, hub_system
from torus_ray.systems.located import located
from torus_ray.systems.weights import WeightCard as WeightCard

CARD_SUFFIX = ".system.toml"
"""How a card's file is named, so that it is found by name and is no part of its adapter's identity."""

MISTAKES_TOLD = 5


@dataclass(frozen=True)
class HostSpec:
    """A host with its files found: what an executor starts. folder: where the adapter lies."""

    name: str
    card: HostCard
    folder: Path
    module: str
    class_name: str
    adapter_digest: str
    environment_digest: str = ""
    weights_digest: str = ""

    @property
    def background(self) -> bool:
        """Whether it only measures: it then works in what the others leave idle, and may fail without stopping
        them."""
        return set(self.card.heads) == {"measure"}

    def head_fingerprint(self, operation: str) -> str:
        """Identity of one head (DESIGN 4): its part of the card, adapter folder, environment lock, weights.

        Resources and paths are no part of it.
        """
        head = self.card.heads[operation]
        return sha256_of(
            {
                "operation": operation,
                "class": f"{self.module}:{self.class_name}",
                "adapter": self.adapter_digest,
                "environment": self.environment_digest,
                "weights": self.weights_digest,
                "settings": {**self.card.settings, **head.settings},
                "words": head.words,
            }
        )


@dataclass(frozen=True)
class System:
    """A card made ready: its hosts found and digested, its routes by (operation, audio type)."""

    card: SystemCard
    hosts: Mapping[str, HostSpec]

    @property
    def name(self) -> str:
        return self.card.name

    @cached_property
    def routes(self) -> Mapping[tuple[str, str], HostSpec]:
        """(operation, audio type) -> the host that serves it; what is missing the system cannot do."""
        return {
            (operation, audio_type): host
            for host in self.hosts.values()
            for operation, head in host.card.heads.items()
            for audio_type in head.audio_types
            if operation != "measure"
        }

    @cached_property
    def measures(self) -> Mapping[str, HostSpec]:
        """Measure -> the host that takes it."""
        return {name: host for host in self.hosts.values() for name in _measures(host)}

    @cached_property
    def metrics(self) -> Mapping[str, tuple[Metric, ...]]:
        """Measure -> what is computed from it."""
        return {name: metrics for host in self.hosts.values() for name, metrics in _measures(host).items()}

    @property
    def only_measures(self) -> bool:
        return all(host.background for host in self.hosts.values())

    @cached_property
    def edit_modes(self) -> tuple[EditMode, ...]:
        """The arms of the card, or all that its heads allow; none of what only measures."""
        if self.only_measures:
            return ()
        if self.card.arms:
            return self.card.arms
        operations = {operation for operation, _ in self.routes}
        # A system without an editor still has a native arm when it cannot caption: its stages 2 and 3 are refused.
        possible: dict[EditMode, bool] = {
            "native": "edit" in operations or "caption" not in operations,
            "self-caption": "caption" in operations,
        }
        return tuple(mode for mode, able in possible.items() if able)

    def with_digests(self, environment: Mapping[str, str], weights: Mapping[str, str]) -> System:
        """The same system, its hosts carrying environment digests (by environment) and weights digests (by host)."""
        hosts = {
            name: replace(
                host,
                environment_digest=environment[host.card.environment],
                weights_digest=weights.get(name, ""),
            )
            for name, host in self.hosts.items()
        }
        return System(self.card, hosts)


def _measures(host: HostSpec) -> Mapping[str, tuple[Metric, ...]]:
    head = host.card.heads.get("measure")
    return head.measures if head else {}


def with_measures(system: System, measuring: Iterable[System]) -> System:
    """The system with the measuring hosts of other cards, each named after its card. Raises InputError where a card
    measures nothing, or two take a measure of one name."""
    hosts = dict(system.hosts)
    for card in measuring:
        if not card.measures:
            raise InputError(
                f"{card.name} measures nothing",
                where="--measures",
                expected="cards whose hosts have measures",
                mend="`torus systems` shows which do",
            )
        for host in card.hosts.values():
            if not _measures(host):
                continue
            name = f"{card.name}.{host.name}"
            heads = {"measure": host.card.heads["measure"]}
            hosts[name] = replace(host, name=name, card=host.card.model_copy(update={"heads": heads}))
    _check_measures(hosts, "--measures")
    return System(system.card, hosts)


def _check_measures(hosts: Mapping[str, HostSpec], where: str) -> None:
    taken: dict[str, str] = {}
    for name, host in hosts.items():
        for measure in _measures(host):
            other = taken.setdefault(measure, name)
            if other != name:
                raise InputError(
                    f"hosts {other!r} and {name!r} both take the measure {measure!r}",
                    where=where,
                    expected="one host for each measure",
                    mend="rename it in one of the cards, or leave one card out",
                )


# --- reading cards ----------------------------------------------------------------------------------------------------


def card_folders() -> list[Path]:
    """Where cards are looked for by name: inside the installed package, else the checkout's actors folder."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_data" / "actors"
    folder = installed if installed.is_dir() else package.parent / "actors"
    return [folder] if folder.is_dir() else []


def list_cards() -> dict[str, Path]:
    """Every card found by name -> its file: outside packages first, then the project's own."""
    found: dict[str, Path] = {}
    for entry in importlib.metadata.entry_points(group="torus_ray.systems"):
        module = importlib.import_module(entry.module)
        path = Path(getattr(module, entry.attr or "CARD"))
        found[entry.name] = path
    for folder in card_folders():
        for path in sorted(folder.glob(f"*/*{CARD_SUFFIX}")):
            found.setdefault(path.name.removesuffix(CARD_SUFFIX), path)
    return found


def load_system(reference: str) -> System:
    """The system behind a card's name or path, or behind `hf:` and a checkpoint. Raises InputError."""
    if reference.startswith(PREFIX):
        return hub_system(reference, map(read_card, list_cards().values()))
    path = Path(reference)
    if path.suffix == ".toml":
        if not path.is_file():
            raise InputError(
                f"no system card {reference}", where=str(path.absolute()), expected="a TOML file", mend="check the path"
            )
        return read_card(path)
    cards = list_cards()
    if reference not in cards:
        near = near_names(reference, cards)
        raise InputError(
            f"no system is called {reference!r}",
            where="the command line",
            expected=(f"near: {', '.join(near)}; " if near else "")
            + f"one of {', '.join(sorted(cards))}, or a path to a card",
            mend="`torus systems` lists them; your own: a path to its card, or `--model my_model.py:MyModel`",
        )
    return read_card(cards[reference])


def measuring_by_default(system: str) -> dict[str, str]:
    """The cards that measure a system's runs where nothing is said: name -> the arm that distances are taken to."""
    cards = (read_card(path) for path in list_cards().values())
    return {card.name: card.card.default_for[system] for card in cards if system in card.card.default_for}


def read_card(path: Path) -> System:
    """The system in a card file. Raises InputError that names the file and the field."""
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
        card = SystemCard.model_validate(data)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"the card is not TOML: {error}", where=str(path), expected="a TOML file", mend="mend that line"
        ) from error
    except ValidationError as error:
        told = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        problems = "; ".join(told[:MISTAKES_TOLD]) + ("; ..." if len(told) > MISTAKES_TOLD else "")
        raise InputError(
            f"the card has {error.error_count()} mistake(s): {problems}",
            where=str(path),
            expected="fields as in docs/systems.md",
            mend="mend the fields named",
        ) from error
    return _system(located(card, path.parent), path)


def _system(card: SystemCard, file: Path) -> System:
    hosts = {name: find_adapter(name, host, file) for name, host in card.hosts.items()}
    served: dict[tuple[str, str], str] = {}
    for name, host in card.hosts.items():
        for operation, head in host.heads.items():
            for audio_type in head.audio_types if operation != "measure" else ():
                other = served.setdefault((operation, audio_type), name)
                if other != name:
                    raise InputError(
                        f"hosts {other!r} and {name!r} both serve {operation} of {audio_type}",
                        where=str(file),
                        expected="one host for each operation and audio type",
                        mend=f"take {audio_type} out of the audio_types of one of them",
                    )
    _check_measures(hosts, str(file))
    return System(card, hosts)


def find_adapter(name: str, host: HostCard, card_file: Path) -> HostSpec:
    """The host with its adapter file found and its folder, but for the card, digested. Raises InputError."""
    file, _, class_name = host.adapter.partition(":")
    path = (card_file.parent / file).resolve()
    if not class_name or path.suffix != ".py" or not path.is_file():
        raise InputError(
            f"host {name!r} has no adapter {host.adapter!r}",
            where=str(card_file),
            expected=f"FILE.py:CLASS with the file at {path}",
            mend="check the adapter line",
        )
    return HostSpec(name, host, path.parent, path.stem, class_name, _digest_without(path.parent, card_file))


def adapter_files(folder: Path) -> list[Path]:
    """The files of an adapter folder that make it what it is: all but cards, caches and hidden ones, sorted."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts)
        and not path.name.endswith(CARD_SUFFIX)
    )


def _digest_without(folder: Path, card_file: Path) -> str:
    return files_digest(folder, [file for file in adapter_files(folder) if file != card_file.resolve()])


def files_digest(folder: Path, files: Iterable[Path]) -> str:
    """sha256 over the names, relative to `folder`, and the contents of files."""
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


# --- systems made on the command line ---------------------------------------------------------------------------------


def model_system(
    path: Path,
    class_name: str,
    heads: Iterable[str],
    capabilities: Mapping[str, Iterable[str]],
    style: str = "batch",
) -> System:
    """The system of one class in one file, run by the current interpreter (`torus run --model FILE.py:CLASS`).

    heads: the operations the class implements; capabilities: audio types by operation where it says so.
    Only the Python files beside it count towards its identity: its folder may be anybody's home.
    """
    cards = {
        operation: HeadCard.model_validate(
            {"audio_types": tuple(capabilities[operation])} if operation in capabilities else {}
        )
        for operation in heads
    }
    stem = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "model"
    host = HostCard.model_validate({"adapter": f"{path.name}:{class_name}", "heads": cards, "style": style})
    card = SystemCard(name=stem, title=f"{class_name} of {path.name}", hosts={"model": host})
    files = sorted(file for file in path.parent.glob("*.py"))
    spec = HostSpec("model", host, path.parent, path.stem, class_name, files_digest(path.parent, files))
    return System(card, {"model": spec})


def compose(*, generator: System, editor: System | None, listener: System) -> System:
    """A system of parts: one system's generate head, another's edit head, another's ears (caption, answer).

    The generator's card decides seeds and bits. Without an editor it has the self-caption arm alone. Raises InputError
    for a part that cannot do what it is for.
    """
    for operation, system in (("generate", generator), ("edit", editor), ("answer", listener)):
        if system and not any(operation in host.card.heads for host in system.hosts.values()):
            raise InputError(
                f"{system.name} has no head for {operation}",
                where="the parts of a composed system",
                expected="a generator that generates, an editor that edits, a listener that answers",
                mend="`torus systems` shows what each can do",
            )
    parts = [("generate", generator), ("edit", editor), ("caption", listener), ("answer", listener)]
    hosts: dict[str, HostSpec] = {}
    for operation, system in parts:
        for host in system.hosts.values() if system else ():
            head = host.card.heads.get(operation)
            if system is None or head is None:
                continue
            name = f"{system.name}.{host.name}"
            known = hosts.get(name)
            heads: dict[str, HeadCard] = {**(known.card.heads if known else {}), operation: head}
            hosts[name] = replace(host, name=name, card=host.card.model_copy(update={"heads": heads}))
    names = dict.fromkeys([generator.name, *([editor.name] if editor else []), listener.name])
    card = generator.card.model_copy(
        update={
            "name": "+".join(names),
            "title": " + ".join(names),
            "arms": (),
            "proven": min((s.card.proven for s in (generator, editor, listener) if s), key=_PROVEN_ORDER.index),
            "hosts": {name: host.card for name, host in hosts.items()},
        }
    )
    return System(card, hosts)


_PROVEN_ORDER: list[Proven] = ["unproven", "contract", "real code, tiny weights", "run"]
