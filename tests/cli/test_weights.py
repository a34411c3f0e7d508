"""`torus weights`: told before anything is fetched, fetched only after a yes, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.standin.hub_server import COMMIT, TOKEN, Hub, serve
from torus_ray.cli import EXIT_STOPPED, EXIT_USAGE, _run
from torus_ray.systems import fetching, load_system
from torus_ray.systems.weights import WeightCard, digests, folder_digest, restricts, weights_of

pytest.importorskip("huggingface_hub")
# The hub's client asks for a retry in its own time; a cut connection costs it one second.

LARGE = random.Random(1).randbytes(40_000)
CHUNK = 10 * 1024 * 1024
"""What the hub's client writes at once: of less nothing is kept when a connection is cut."""
BIG = bytes(range(256)) * 4 * 1024 * 11
FILES = {"model.safetensors": LARGE, "config.json": b'{"a": 1}', "sub/vocab.txt": b"a\nb\n", "README.md": b"# it"}

CARD = """
name = "toy"
title = "a toy with weights"
licence = "MIT"

[hosts.main]
adapter = "model.py:Model"
heads = {{ answer = {{}} }}

[hosts.main.weights.model]
path = "weights/toy"
licence = "CC BY-NC 4.0"
{lines}
"""
FROM_HUB = f'repo = "owner/toy"\nrevision = "{COMMIT}"\nsize_gb = 0.1\nfiles = ["*.safetensors", "*.json", "sub/*"]'


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve(Hub("owner/toy", FILES)) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        yield served


@pytest.fixture
def big(hub: Hub) -> Hub:
    hub.files = {**FILES, "model.safetensors": BIG}
    return hub


def card(folder: Path, lines: str = FROM_HUB) -> str:
    (folder / "model.py").write_text("class Model:\n    def answer(self, requests):\n        return []\n")
    path = folder / "toy.system.toml"
    path.write_text(CARD.format(lines=lines))
    return str(path)


def weights_folder(tmp_path: Path) -> Path:
    return tmp_path / "weights" / "toy"


def fill(folder: Path, files: dict[str, bytes]) -> None:
    for name, body in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)


# --- listing and checking ---------------------------------------------------------------------------------------------


def test_list_tells_size_source_and_licence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["weights", "list", card(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "missing" in told
    assert "0.1 GB; from hub owner/toy@0123456789ab; licence: CC BY-NC 4.0  [restricted use]" in told
    assert _run(["weights", "list", card(tmp_path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["there"], row["restricted"], row["revision"]) == (False, True, COMMIT)


@pytest.mark.parametrize(
    ("licence", "restricted"),
    [
        ("CC BY-NC 4.0", True),
        ("weights research use only", True),
        ("Qwen research licence", True),
        ("Stability AI: academic and non-commercial use only", True),
        ("Apache-2.0", False),
        ("MIT, code and weights", False),
        ("", False),
    ],
)
def test_licences_that_keep_out_some_uses(licence: str, restricted: bool) -> None:
    assert restricts(licence) == restricted


def test_systems_shows_the_licences_of_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["systems", card(tmp_path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["restricted"]
    assert row["hosts"]["main"] == {
        "environment": "inherit",
        "num_cpus": 1.0,
        "memory_gb": 1.0,
        "num_gpus": 0.0,
        "gpu_memory_gb": 0.0,
        "settings": {},
    }
    assert _run(["systems", card(tmp_path)]) == 0
    assert "weights main.model: missing, 0.1 GB, licence: CC BY-NC 4.0  [restricted use]" in capsys.readouterr().out


def test_a_folder_is_checked_against_its_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"a.bin": b"one", "b/c.bin": b"two"}
    fill(weights_folder(tmp_path), files)
    listed = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    right = hashlib.sha256(listed.encode()).hexdigest()
    assert folder_digest(digests(weights_folder(tmp_path))) == right
    assert _run(["weights", "check", card(tmp_path, f'sha256 = "{right}"')]) == 0
    assert _run(["weights", "check", card(tmp_path, f'sha256 = "{"0" * 64}"')]) == 1
    told = capsys.readouterr().out
    assert right in told
    assert "0" * 64 in told


def test_what_nothing_is_known_of_is_told_with_its_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights_folder(tmp_path).parent.mkdir()
    weights_folder(tmp_path).write_bytes(b"one file")
    assert _run(["weights", "check", card(tmp_path, "")]) == 0
    told = capsys.readouterr().out
    assert f'sha256 = "{hashlib.sha256(b"one file").hexdigest()}"' in told


def test_missing_and_empty_weights_are_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = card(tmp_path, 'obtain = "ask the authors"')
    assert _run(["weights", "check", reference]) == 1
    assert "ask the authors" in capsys.readouterr().out
    weights_folder(tmp_path).mkdir(parents=True)
    assert _run(["weights", "check", reference]) == 1
    assert "is empty" in capsys.readouterr().out


@pytest.mark.parametrize(
    "lines",
    ['revision = "main"', 'repo = "noslash"', 'files = ["x"]', "gated = true", 'sha256 = "short"', "size_gb = 0"],
)
def test_a_card_says_it_right_or_not_at_all(tmp_path: Path, lines: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["weights", "list", card(tmp_path, lines)]) == EXIT_USAGE
    assert "hosts.main.weights.model" in capsys.readouterr().err


def test_a_digest_or_a_commit_stands_for_weights_that_were_not_read() -> None:
    pinned = WeightCard(path="x", repo="owner/toy", revision=COMMIT, files=("b", "a"))
    assert pinned.identity == f"owner/toy@{COMMIT}:a,b"
    assert pinned.model_copy(update={"sha256": "0" * 64}).identity == "0" * 64
    assert WeightCard(path="x", repo="owner/toy").identity is None


def test_paths_of_a_card_are_the_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = card(tmp_path, "")
    monkeypatch.chdir("/")
    (weight,) = weights_of(load_system(reference))
    assert weight.path == weights_folder(tmp_path)


# --- fetching from the hub --------------------------------------------------------------------------------------------


def test_fetch_tells_asks_and_brings_what_the_card_names(
    tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = card(tmp_path)
    assert _run(["weights", "fetch", reference, "--yes"]) == 0
    told = capsys.readouterr().out
    assert f"{hub.url}/owner/toy at {COMMIT} (as the card says)" in told
    assert "40 kB in 3 file(s)" in told
    assert "licence: CC BY-NC 4.0; the hub says mit" in told
    assert "NOTE: this licence keeps out some uses" in told
    there = weights_folder(tmp_path)
    found = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    assert found == {"model.safetensors", "config.json", "sub/vocab.txt"}, "no README, nothing of the client's"
    assert (there / "model.safetensors").read_bytes() == LARGE
    assert sorted(path.name for path in there.parent.iterdir()) == ["toy", "toy.weights.json"]
    assert _run(["weights", "check", reference]) == 0
    assert _run(["weights", "fetch", reference]) == 0
    assert "nothing is missing" in capsys.readouterr().out


def test_nothing_is_fetched_without_a_yes(tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["weights", "fetch", card(tmp_path)]) == EXIT_USAGE
    assert "--yes" in capsys.readouterr().err
    assert not weights_folder(tmp_path).parent.exists()
    assert {method for method, path, _ in hub.asked if "/resolve/" in path} == set()


def test_a_changed_file_is_found_afterwards(tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    reference = card(tmp_path)
    _run(["weights", "fetch", reference, "--yes"])
    (weights_folder(tmp_path) / "config.json").write_text('{"a": 2}')
    assert _run(["weights", "check", reference]) == 1
    assert "config.json" in capsys.readouterr().out


def test_another_commit_in_the_card_is_found(tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    _run(["weights", "fetch", card(tmp_path), "--yes"])
    assert _run(["weights", "check", card(tmp_path, f'repo = "owner/toy"\nrevision = "{"f" * 40}"')]) == 1
    assert "fetched at commit 0123" in capsys.readouterr().out


def test_without_a_commit_the_newest_is_told_for_the_card(
    tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["weights", "fetch", card(tmp_path, 'repo = "owner/toy"'), "--yes"]) == 0
    assert f'to keep it: revision = "{COMMIT}"' in capsys.readouterr().out


def test_one_file_lies_at_its_path(tmp_path: Path, hub: Hub) -> None:
    digest = hashlib.sha256(LARGE).hexdigest()
    lines = f'repo = "owner/toy"\nrevision = "{COMMIT}"\nfiles = ["model.safetensors"]\nsha256 = "{digest}"'
    reference = card(tmp_path, lines)
    text = Path(reference).read_text().replace('"weights/toy"', '"weights/model.safetensors"')
    Path(reference).write_text(text)
    assert _run(["weights", "fetch", reference, "--yes"]) == 0
    assert (tmp_path / "weights" / "model.safetensors").read_bytes() == LARGE
    assert _run(["weights", "check", reference]) == 0


def test_other_bytes_than_listed_are_thrown_away(tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.altered = frozenset({"model.safetensors"})
    assert _run(["weights", "fetch", card(tmp_path), "--yes"]) == EXIT_STOPPED
    assert "came with other bytes" in capsys.readouterr().err
    assert not weights_folder(tmp_path).exists()
    hub.altered = frozenset()
    assert _run(["weights", "fetch", card(tmp_path), "--yes"]) == 0
    assert (weights_folder(tmp_path) / "model.safetensors").read_bytes() == LARGE


def test_a_digest_that_the_card_states_wins(tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["weights", "fetch", card(tmp_path, f'{FROM_HUB}\nsha256 = "{"0" * 64}"'), "--yes"]) == EXIT_USAGE
    assert "not what the card says" in capsys.readouterr().err
    assert not weights_folder(tmp_path).exists()


def test_a_cut_connection_is_gone_on_with(tmp_path: Path, big: Hub) -> None:
    big.cut_after = [CHUNK + 5]
    assert _run(["weights", "fetch", card(tmp_path), "--yes"]) == 0
    assert (weights_folder(tmp_path) / "model.safetensors").read_bytes() == BIG
    assert big.asked_for("GET", "model.safetensors") == ["", f"bytes={CHUNK}-"]


def test_a_fetch_that_ended_goes_on_at_the_next_command(
    tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = card(tmp_path)
    hub.down_after = 1
    assert _run(["weights", "fetch", reference, "--yes"]) == EXIT_STOPPED
    assert "the same command goes on" in capsys.readouterr().err
    assert not weights_folder(tmp_path).exists()
    assert _run(["doctor", reference]) == 1
    assert "a fetch was begun" in capsys.readouterr().out
    hub.down_after = 1_000
    hub.asked.clear()
    assert _run(["weights", "fetch", reference, "--yes"]) == 0
    assert hub.asked_for("GET", "model.safetensors") == [], "it came whole the first time"
    assert len(hub.asked_for("GET", "config.json")) == 1
    assert _run(["weights", "check", reference]) == 0


@pytest.mark.parametrize("token", [None, "hf_somebody_else"])
def test_a_gated_model_says_what_to_do(
    tmp_path: Path, hub: Hub, token: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.gated = True
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    assert _run(["weights", "fetch", card(tmp_path), "--yes"]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert "https://huggingface.co/owner/toy" in error
    assert ("is set, but not let in" if token else "HF_TOKEN is not set") in error
    assert not token or token not in error
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert _run(["weights", "fetch", card(tmp_path), "--yes"]) == 0


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('repo = "owner/other"', "does not give owner/other|has no owner/other"),
        (f'repo = "owner/toy"\nrevision = "{"f" * 40}"', "has no owner/toy at f"),
        ('repo = "owner/toy"\nfiles = ["*.ckpt"]', r"has no \*.ckpt"),
    ],
)
def test_what_the_hub_does_not_have(
    tmp_path: Path, hub: Hub, lines: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import re

    assert _run(["weights", "fetch", card(tmp_path, lines), "--yes"]) == EXIT_USAGE
    assert re.search(told, capsys.readouterr().err)


def test_no_hub_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert _run(["weights", "fetch", card(tmp_path), "--yes"]) == EXIT_STOPPED
    error = capsys.readouterr().err
    assert "--from DIR" in error
    assert "Traceback" not in error


def test_no_client_of_the_hub(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(fetching.importlib, "import_module", absent)
    assert _run(["weights", "fetch", card(tmp_path), "--yes"]) == EXIT_USAGE
    assert "pip install huggingface_hub" in capsys.readouterr().err


def test_a_disk_too_small_is_told_before(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fetching, "SPARE_GB", 1e9)
    assert _run(["weights", "fetch", card(tmp_path), "--yes"]) == EXIT_USAGE
    assert "do not fit on the disk" in capsys.readouterr().err
    assert hub.asked_for("GET", "model.safetensors") == []


# --- from a folder ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["toy", "owner/toy", f"models--owner--toy/snapshots/{COMMIT}", "."])
def test_a_folder_comes_before_the_hub(tmp_path: Path, hub: Hub, place: str) -> None:
    fill(tmp_path / "disk" / place, FILES)
    assert _run(["weights", "fetch", card(tmp_path), "--from", str(tmp_path / "disk"), "--yes"]) == 0
    assert hub.asked == []
    there = weights_folder(tmp_path)
    assert {path.name for path in there.rglob("*") if path.is_file()} == {
        "model.safetensors",
        "config.json",
        "vocab.txt",
    }
    assert _run(["weights", "check", card(tmp_path)]) == 0


def test_links_of_a_cache_are_followed(tmp_path: Path, hub: Hub) -> None:
    blobs = tmp_path / "disk" / "blobs"
    fill(blobs, {"aaa": LARGE})
    snapshot = tmp_path / "disk" / "models--owner--toy" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    os.symlink(blobs / "aaa", snapshot / "model.safetensors")
    assert _run(["weights", "fetch", card(tmp_path), "--from", str(tmp_path / "disk"), "--yes"]) == 0
    there = weights_folder(tmp_path) / "model.safetensors"
    assert not there.is_symlink()
    assert there.read_bytes() == LARGE


def test_a_folder_with_other_bytes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "disk" / "toy", {"model.safetensors": b"other"})
    reference = card(tmp_path, f'sha256 = "{"0" * 64}"')
    assert _run(["weights", "fetch", reference, "--from", str(tmp_path / "disk"), "--yes"]) == EXIT_USAGE
    assert "not what the card says" in capsys.readouterr().err
    assert not weights_folder(tmp_path).exists()


def test_what_no_hub_has_is_got_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["weights", "fetch", card(tmp_path, 'obtain = "ask the authors"'), "--yes"]) == 1
    assert "by hand: ask the authors" in capsys.readouterr().out


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["weights", "fetch", card(tmp_path), "--from", str(tmp_path / "nowhere"), "--yes"]) == EXIT_USAGE
    assert "no folder" in capsys.readouterr().err
