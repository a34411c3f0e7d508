"""System cards: what is refused and how it is told, what is composed, and what makes a head another head."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import MEASURES, gauge, host, measured, system
from torus_ray.errors import InputError
from torus_ray.systems import (
    System,
    compose,
    list_cards,
    load_system,
    measuring_by_default,
    model_system,
    read_card,
    with_measures,
)

CARD = """
name = "toy"
title = "Toy"
[hosts.toy]
adapter = "adapter.py:Toy"
heads = { generate = {}, edit = {}, caption = {}, answer = {} }
"""


def write(folder: Path, card: str = CARD, name: str = "toy.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter.py").write_text("class Toy: pass\n")
    (folder / name).write_text(card)
    return folder / name


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_card(path)
    assert str(path) in caught.value.where
    assert caught.value.expected
    assert caught.value.mend
    return caught.value


# --- reading ----------------------------------------------------------------------------------------------------------


def test_every_card_of_the_project_is_read() -> None:
    cards = list_cards()
    assert "simulated" in cards
    for name in cards:
        assert load_system(name).name == name


def test_the_simulated_system_serves_everything(tmp_path: Path) -> None:
    system = load_system("simulated")
    assert len(system.routes) == 12
    assert system.edit_modes == ("native", "self-caption")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("title = ", "titel = ", "titel"),
        ("heads = ", "gpus = 1\nheads = ", "hosts.toy.gpus"),
        ("answer = {}", "answer = { deadline = 3 }", "hosts.toy.heads.answer.deadline"),
        ("answer = {}", "listen = {}", "listen"),
        ('name = "toy"', 'name = "My Toy"', "name"),
        ("answer = {}", 'answer = { audio_types = ["noise"] }', "audio_types"),
        ("heads = {", "num_gpus = -1\nheads = {", "num_gpus"),
        ("heads = {", 'style = "stream"\nheads = {', "style"),
        ("heads = { generate = {}, edit = {}, caption = {}, answer = {} }", "heads = {}", "heads"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, old: str, new: str, named: str) -> None:
    assert named in refused(write(tmp_path, CARD.replace(old, new))).message


def test_what_is_no_toml_is_told_with_its_line(tmp_path: Path) -> None:
    assert "line 2" in refused(write(tmp_path, "\nname = toy\n")).message
    path = write(tmp_path)
    path.write_bytes(b'name = "\xff"')
    refused(path)


@pytest.mark.parametrize("adapter", ["missing.py:Toy", "adapter.py", "adapter:Toy", "."])
def test_a_missing_adapter_is_told_with_the_path_looked_at(tmp_path: Path, adapter: str) -> None:
    error = refused(write(tmp_path, CARD.replace("adapter.py:Toy", adapter)))
    assert "'toy'" in error.message
    assert str(tmp_path) in error.expected


def test_two_hosts_may_share_an_operation_but_not_an_audio_type(tmp_path: Path) -> None:
    second = '\n[hosts.other]\nadapter = "adapter.py:Toy"\nheads = { answer = { audio_types = ["music"] } }\n'
    error = refused(write(tmp_path, CARD + second))
    assert "answer of music" in error.message
    mended = CARD.replace("answer = {}", 'answer = { audio_types = ["speech", "sound"] }') + second
    routes = read_card(write(tmp_path, mended)).routes
    assert (routes["answer", "music"].name, routes["answer", "speech"].name) == ("other", "toy")


def test_no_such_system_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="simulatde") as caught:
        load_system("simulatde")
    assert "simulated" in caught.value.expected
    with pytest.raises(InputError) as caught:
        load_system(str(tmp_path / "none.toml"))
    assert str(tmp_path) in caught.value.where


@pytest.mark.parametrize(
    ("heads", "modes"),
    [
        ("generate = {}, edit = {}, caption = {}, answer = {}", ("native", "self-caption")),
        ("generate = {}, edit = {}, answer = {}", ("native",)),
        ("generate = {}, caption = {}, answer = {}", ("self-caption",)),
        ("generate = {}, answer = {}", ("native",)),
    ],
)
def test_edit_modes_are_those_that_the_heads_allow(tmp_path: Path, heads: str, modes: tuple[str, ...]) -> None:
    card = CARD.replace("generate = {}, edit = {}, caption = {}, answer = {}", heads)
    assert read_card(write(tmp_path, card)).edit_modes == modes


def test_a_card_may_name_its_arms(tmp_path: Path) -> None:
    assert read_card(write(tmp_path, 'arms = ["native"]' + CARD)).edit_modes == ("native",)


# --- fingerprints -----------------------------------------------------------------------------------------------------


def fingerprints(system: System) -> dict[str, str]:
    system = system.with_digests({"inherit": "e", "other": "o"}, {name: "w" for name in system.hosts})
    (host,) = system.hosts.values()
    return {operation: host.head_fingerprint(operation) for operation in host.card.heads}


def replaced(old: str, new: str) -> Callable[[Path], Path]:
    return lambda folder: write(folder, CARD.replace(old, new))


def with_file(name: str, text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = write(folder)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        return path

    return make


@pytest.mark.parametrize(
    "change",
    [
        replaced("heads = {", "num_cpus = 4\nmemory_gb = 8\nreplicas = 3\nstart_deadline_s = 9\nheads = {"),
        replaced("heads = {", "num_gpus = 0.5\nheads = {"),
        replaced("answer = {}", "answer = { deadline_s = 3 }"),
        replaced('title = "Toy"', 'title = "Another"\nabout = "More"\nlicence = "MIT"\nproven = "run"'),
        replaced("heads = {", 'weights = { net = { path = "/elsewhere/net.bin" } }\nheads = {'),
        with_file(".hidden/note", "x"),
        with_file("__pycache__/adapter.cpython-311.pyc", "x"),
        with_file("other.system.toml", "x"),
    ],
)
def test_resources_paths_and_descriptions_are_no_part_of_a_fingerprint(
    tmp_path: Path, change: Callable[[Path], Path]
) -> None:
    assert fingerprints(read_card(change(tmp_path / "b"))) == fingerprints(read_card(write(tmp_path / "a")))


@pytest.mark.parametrize(
    "change",
    [
        replaced("heads = {", "settings = { steps = 9 }\nheads = {"),
        with_file("adapter.py", "class Toy: x = 1\n"),
        with_file("helper.py", ""),
        with_file("data/table.json", "{}"),
        replaced("heads = {", 'environment = "other"\nheads = {'),
    ],
)
def test_adapter_settings_and_environment_change_every_head(tmp_path: Path, change: Callable[[Path], Path]) -> None:
    old, new = fingerprints(read_card(write(tmp_path / "a"))), fingerprints(read_card(change(tmp_path / "b")))
    assert old.keys() == new.keys()
    assert not set(old.values()) & set(new.values())


@pytest.mark.parametrize("new", ["answer = { settings = { beams = 2 } }", "answer = { words = true }"])
def test_what_is_said_of_one_head_changes_that_head_alone(tmp_path: Path, new: str) -> None:
    old = fingerprints(read_card(write(tmp_path / "a")))
    other = fingerprints(read_card(write(tmp_path / "b", CARD.replace("answer = {}", new))))
    assert {operation for operation in old if old[operation] != other[operation]} == {"answer"}


def test_weights_change_every_head_and_heads_differ_from_each_other(tmp_path: Path) -> None:
    system = read_card(write(tmp_path))
    first, second = (system.with_digests({"inherit": "e"}, {"toy": weights}).hosts["toy"] for weights in ("1", "2"))
    found = [host.head_fingerprint(operation) for host in (first, second) for operation in host.card.heads]
    assert len(set(found)) == 8


# --- systems made of a class or of parts ------------------------------------------------------------------------------


def test_the_system_of_one_class(tmp_path: Path) -> None:
    (tmp_path / "My_Model 2.py").write_text("class Net: pass\n")
    system = model_system(tmp_path / "My_Model 2.py", "Net", ["generate", "answer"], {"generate": ("music",)}, "async")
    assert (system.name, system.edit_modes) == ("my-model-2", ("native",))
    assert set(system.routes) == {("generate", "music"), *(("answer", kind) for kind in ("speech", "sound", "music"))}
    (host,) = system.hosts.values()
    assert (host.module, host.class_name, host.card.style, host.folder) == ("My_Model 2", "Net", "async", tmp_path)


def test_only_the_python_files_beside_a_class_make_it_what_it_is(tmp_path: Path) -> None:
    def digest() -> str:
        (host,) = model_system(tmp_path / "net.py", "Net", ["answer"], {}).hosts.values()
        return host.adapter_digest

    (tmp_path / "net.py").write_text("class Net: pass\n")
    first = digest()
    (tmp_path / "holiday.jpg").write_text("x")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "other.py").write_text("x")
    assert digest() == first
    (tmp_path / "helper.py").write_text("x = 1\n")
    assert digest() != first


def part(folder: Path, name: str, **changes: Any) -> System:
    card = CARD.replace('"toy"', f'"{name}"').replace("hosts.toy", f"hosts.{changes.pop('host', 'main')}")
    for old, new in changes.get("replace", {}).items():
        card = card.replace(old, new)
    return read_card(write(folder / name, card))


def test_a_system_of_three_parts(tmp_path: Path) -> None:
    first = part(tmp_path, "one", replace={"title": "bits = 24\nseeds = 'fixed'\ntitle"})
    second, third = part(tmp_path, "two"), part(tmp_path, "three")
    system = compose(generator=first, editor=second, listener=third)
    assert system.name == "one+two+three"
    assert (system.card.bits, system.card.seeds) == (24, "fixed")
    assert {operation: host.name for (operation, kind), host in system.routes.items() if kind == "music"} == {
        "generate": "one.main",
        "edit": "two.main",
        "caption": "three.main",
        "answer": "three.main",
    }
    assert {name: list(host.card.heads) for name, host in system.hosts.items()} == {
        "one.main": ["generate"],
        "two.main": ["edit"],
        "three.main": ["caption", "answer"],
    }
    # a head is the same head wherever it is used, so what it gave is used again
    alone, composed = first.hosts["main"], system.hosts["one.main"]
    assert composed.head_fingerprint("generate") == alone.head_fingerprint("generate")


def test_parts_of_one_system_stay_one_host(tmp_path: Path) -> None:
    one, two = part(tmp_path, "one"), part(tmp_path, "two")
    system = compose(generator=one, editor=None, listener=one)
    assert system.name == "one"
    assert {name: set(host.card.heads) for name, host in system.hosts.items()} == {
        "one.main": {"generate", "caption", "answer"}
    }
    assert system.edit_modes == ("self-caption",)
    assert compose(generator=one, editor=two, listener=two).name == "one+two"


def test_a_composed_system_is_proven_as_far_as_its_least_part(tmp_path: Path) -> None:
    run = part(tmp_path, "one", replace={"title": "proven = 'run'\ntitle"})
    contract = part(tmp_path, "two", replace={"title": "proven = 'contract'\ntitle"})
    assert compose(generator=run, editor=None, listener=contract).card.proven == "contract"


# --- cards that measure -----------------------------------------------------------------------------------------------


def test_a_card_that_measures_stands_beside_a_system(tmp_path: Path) -> None:
    made = measured(system(tmp_path / "toy"), tmp_path / "gauge")
    assert made.measures.keys() == MEASURES.keys()
    assert made.metrics["toy8"] == ("kl", "fad")
    assert made.hosts["gauge.gauge"].background
    assert not made.hosts["toy"].background
    assert ("measure", "speech") not in made.routes
    assert gauge(tmp_path / "gauge").only_measures


def test_two_hosts_cannot_take_one_measure(tmp_path: Path) -> None:
    made = measured(system(tmp_path / "toy"), tmp_path / "gauge")
    other = system(tmp_path / "two", {"gauge": host("measure", heads={"measure": {"measures": MEASURES}})}, name="two")
    with pytest.raises(InputError, match="both take the measure"):
        with_measures(made, [other])


@pytest.mark.parametrize(
    ("heads", "told"),
    [
        ({"generate": {"measures": {"m": ["kl"]}}}, "belong to the operation measure"),
        ({"measure": {"measures": {"m": ["loudness"]}}}, "measures.m.0"),
        ({"measure": {"measures": {"m": []}}}, "measures.m"),
        ({"measure": {"measures": {"no/name": ["kl"]}}}, "no/name"),
    ],
)
def test_a_card_with_wrong_measures_is_told(tmp_path: Path, heads: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        system(tmp_path, {"toy": host(*heads, heads=heads)})


def test_pocket_is_measured_by_the_embedded_heads_against_its_native_arm() -> None:
    assert measuring_by_default("pocket") == {"embedded": "native"}
    assert measuring_by_default("simulated") == {}
    assert load_system("embedded").metrics == {
        "whisper-base": ("wer",),
        "yamnet521": ("kl", "fad"),
        "yamnet1024": ("fd",),
        "yamnet4": ("cm.class_argmax4",),
    }


def test_weights_may_lie_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somebody")
    made = system(tmp_path, {"toy": host(weights={"net": {"path": "~/net.bin"}})})
    assert made.hosts["toy"].card.weights["net"].path == "/somebody/net.bin"
