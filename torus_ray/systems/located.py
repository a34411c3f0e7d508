"""Paths of a card are the card's: relative ones start at its folder, wherever the command was given."""

from __future__ import annotations

from pathlib import Path

from torus_ray.systems.cards import HostCard, SystemCard


def located(card: SystemCard, folder: Path) -> SystemCard:
    """The card with the paths of its environment files and weights made absolute; names stay names."""
    hosts = {name: _located(host, folder.absolute()) for name, host in card.hosts.items()}
    return card.model_copy(update={"hosts": hosts})


def _located(host: HostCard, folder: Path) -> HostCard:
    named = not host.environment.endswith(".toml")
    weights = {
        name: weight if weight.in_package else weight.model_copy(update={"path": str(folder / weight.path)})
        for name, weight in host.weights.items()
    }
    environment = host.environment if named else str(folder / Path(host.environment).expanduser())
    return host.model_copy(update={"environment": environment, "weights": weights})
