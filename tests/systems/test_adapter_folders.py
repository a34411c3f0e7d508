"""What holds for every folder of adapters: what it imports, its links to the files in actors/shared, how it travels."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torus_ray.engine.code import stage_code
from torus_ray.systems import HostSpec, adapter_files, list_cards, load_system, read_card

ACTORS = Path(__file__).resolve().parents[2] / "actors"
MEASURES = ("clap", "parity", "passt", "vggish", "whisper", "embedded_measures")
RELEASED = ("ace_step", "audio_omni", "mmedit", "step_audio_editx", "tangoflux", "uniaudio2", "unified_io2")
HUB = ("hf_generators", "hf_listeners")
SHARED = {
    "loading.py": {*MEASURES, *RELEASED, *HUB, "audex"},
    "measuring.py": {*MEASURES},
    "released.py": {*RELEASED},
    "dataclass_shim.py": {"uniaudio2", "unified_io2"},
    "checkpoint.py": {*HUB},
}
FILES = sorted(file for file in ACTORS.glob("*/*.py") if not file.is_symlink() and file.parent.name != "pocket")
OURS = {"torus_ray.heads", "torus_ray.audio"}
EVERYWHERE = {"torus_ray", "numpy", "soundfile"}
"""What an adapter may import before it loads: every environment has it."""
IMPORTED_IN_LOAD = {"yamnet.py": {"onnxruntime"}, "network.py": {"torch"}}


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_an_adapter_imports_heads_and_audio_of_ours_and_its_model_when_it_loads(file: Path) -> None:
    tree = ast.parse(file.read_text())
    assert {name for name in imported(ast.walk(tree)) if name.partition(".")[0] == "torus_ray"} <= OURS
    top = {name.partition(".")[0] for name in imported(iter(tree.body))} - sys.stdlib_module_names
    assert top <= EVERYWHERE | IMPORTED_IN_LOAD.get(file.name, set())


def of_folder(folder: str) -> HostSpec:
    """A host whose adapter lies in a folder of actors/."""
    hosts = (host for name in list_cards() for host in load_system(name).hosts.values())
    return next(host for host in hosts if host.folder == ACTORS / folder)


def test_there_is_one_file_of_each_and_the_rest_are_relative_links_to_it() -> None:
    assert {path.name for path in (ACTORS / "shared").glob("*.py")} == set(SHARED)
    for name, folders in SHARED.items():
        file = ACTORS / "shared" / name
        assert not file.is_symlink()
        assert {path.parent.name for path in ACTORS.glob(f"*/{name}") if path.is_symlink()} == folders
        for folder in folders:
            link = ACTORS / folder / name
            assert link.samefile(file)
            assert link.readlink() == Path("..", "shared", name)


@pytest.mark.parametrize("folder", sorted(set().union(*SHARED.values())))
def test_what_travels_is_whole_and_made_of_plain_files(folder: str, tmp_path: Path) -> None:
    host = of_folder(folder)
    place = tmp_path / stage_code(tmp_path, {"host": host})["host"]
    files = {path.relative_to(place).as_posix(): path for path in place.rglob("*") if not path.is_dir()}
    assert files.keys() == {path.name for path in adapter_files(ACTORS / folder)}
    assert {name for name, folders in SHARED.items() if folder in folders} <= files.keys()
    for name, file in files.items():
        assert not file.is_symlink()
        assert file.read_bytes() == (ACTORS / folder / name).read_bytes()


def test_identity_is_made_of_what_a_link_leads_to(tmp_path: Path) -> None:
    def digest(part: str, *, linked: bool) -> str:
        folder = tmp_path / f"{part}-{linked}"
        folder.mkdir()
        (folder / "adapter.py").write_text("from .part import Toy\n")
        if linked:
            real = tmp_path / f"{part}.py"
            real.write_text(part)
            (folder / "part.py").symlink_to(Path("..", real.name))
        else:
            (folder / "part.py").write_text(part)
        card = folder / "toy.system.toml"
        card.write_text(
            'name = "toy"\ntitle = "toy"\n[hosts.toy]\nadapter = "adapter.py:Toy"\nheads = { generate = {} }\n'
        )
        return read_card(card).hosts["toy"].adapter_digest

    one = digest("one", linked=True)
    assert one == digest("one", linked=False)
    assert one != digest("two", linked=True)
