"""`torus weights`: what systems need, whether it is here, and how it comes. Nothing is fetched without a yes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.systems.weights import Checked, Weight

app = typer.Typer(help="The weights of systems: list, fetch, check.", no_args_is_help=True, rich_markup_mode=None)

Names = Annotated[list[str] | None, typer.Argument(help="Systems, or paths of cards; all where none is named.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]


@app.command("list")
def list_all(names: Names = None, as_json: Json = False) -> int:
    """Every weight: where it belongs, whether it is there, its size, source and licence."""
    found = _weights(names)
    if as_json:
        print(json.dumps([_as_row(weight) for weight in found], indent=1))
        return 0
    for weight in found:
        state = "in a package" if weight.card.in_package else "there" if weight.there else "missing"
        size = f"{weight.card.size_gb:g} GB" if weight.card.size_gb else "size not stated"
        print(f"{weight.where}: {state}, {weight.card.path}")
        print(f"  {size}; from {weight.source}; licence: {licence_told(weight.card.licence)}")
    return 0


@app.command()
def check(names: Names = None, as_json: Json = False) -> int:
    """Read the weights and compare them with their cards, or with what was fetched. Exit 1 if something is wrong."""
    from torus_ray.systems.weights import check_weight

    good = True
    told: list[dict[str, Any]] = []
    for weight in _weights(names):
        checked = check_weight(weight)
        good &= not checked.wrong
        told.append({**_as_row(weight), "ok": not checked.wrong, "found": checked.found, "digest": checked.digest})
        if not as_json:
            _print(checked)
    if as_json:
        print(json.dumps(told, indent=1))
    return 0 if good else 1


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="Systems, or paths of cards.")],
    source: Annotated[Path | None, typer.Option("--from", help="A folder to look in before the hub.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Fetch without asking.")] = False,
) -> int:
    """Bring what is missing: from a folder, else from the hub, after size and licence are told and a yes. Exit 1 if
    something has to be got by hand."""
    from torus_ray.systems.fetching import check_room, copy_from, in_folder, list_hub
    from torus_ray.systems.fetching import fetch as fetch_listing
    from torus_ray.systems.weights import restricts

    if source is not None and not source.is_dir():
        raise InputError(f"no folder {source}", where="--from", expected="a folder", mend="check the path")
    missing = [weight for weight in _unique(_weights(names)) if not weight.there]
    if not missing:
        print("nothing is missing; `torus weights check` reads what is there")
        return 0
    here = {weight: found for weight in missing if source and (found := in_folder(weight, source))}
    by_hand = [weight for weight in missing if weight not in here and not weight.card.repo]
    listings = [list_hub(weight) for weight in missing if weight not in here and weight.card.repo]
    for weight, found in here.items():
        print(f"{weight.where}\n  from: {found}\n  licence: {licence_told(weight.card.licence)}\n  to: {weight.path}")
    for listing in listings:
        print("\n".join(listing.lines()))
        if restricts(listing.weight.card.licence + " " + listing.licence):
            print("  NOTE: this licence keeps out some uses")
    check_room(listings)
    if here or listings:
        _ask(yes, sum(listing.size for listing in listings))
    for weight, found in here.items():
        copy_from(weight, found)
        print(f"{weight.where}: there, from {found}")
    for listing in listings:
        fetch_listing(listing, lambda line: print(line, file=sys.stderr, flush=True))
        print(f"{listing.weight.where}: there, every digest as the hub lists it")
    for weight in by_hand:
        print(f"{weight.where}: by hand: {weight.how_to_get()}")
    return 1 if by_hand else 0


def licence_told(licence: str) -> str:
    """A licence for people, marked where it keeps out some uses."""
    from torus_ray.systems.weights import restricts

    return (licence or "not stated") + ("  [restricted use]" if restricts(licence) else "")


def _ask(yes: bool, size: int) -> None:
    from torus_ray.systems.fetching import size_told

    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(
            "nothing was fetched: nobody is there to say yes",
            where="torus weights fetch",
            expected="a yes at the terminal, or --yes",
            mend="read size and licence above, then the same command with --yes",
        )
    typer.confirm(f"bring {size_told(size)} from the hub and accept the licences above?", abort=True)


def _weights(names: list[str] | None) -> list[Weight]:
    from torus_ray.systems import list_cards, load_system
    from torus_ray.systems.weights import weights_of

    return [weight for name in names or sorted(list_cards()) for weight in weights_of(load_system(name), name)]


def _unique(weights: list[Weight]) -> list[Weight]:
    """Each place once: systems share weights."""
    return list({weight.card.path: weight for weight in weights}.values())


def _as_row(weight: Weight) -> dict[str, Any]:
    from torus_ray.systems.weights import restricts

    card = weight.card.model_dump(mode="json")
    restricted = restricts(weight.card.licence)
    place = {"system": weight.reference, "host": weight.host, "name": weight.name}
    return {**place, "there": weight.there, "restricted": restricted, **card}


def _print(checked: Checked) -> None:
    print(f"{'BAD ' if checked.wrong else 'ok  '} {checked.weight.where}: {checked.found}")
    if checked.wrong:
        print(f"     expected: {checked.expected}\n     mend: {checked.mend}")
