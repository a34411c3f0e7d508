"""`hf:` in the place of a card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torus_ray.errors import InputError
from torus_ray.systems import compose, load_system
from torus_ray.systems.weights import weights_of


def checkpoint(folder: Path, file: str = "config.json", **content: str) -> Path:
    folder.mkdir(parents=True)
    (folder / file).write_text(json.dumps(content))
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    return tmp_path


def test_a_repository_that_a_card_names_is_that_card() -> None:
    assert load_system("hf:suno/bark").name == "bark"


def test_a_folder_is_served_as_the_card_of_its_kind(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "My_Music", model_type="musicgen")
    system, like = load_system(f"hf:{folder}"), load_system("musicgen")
    assert system.name == "my-music"
    assert set(system.routes) == set(like.routes) == {("generate", "music")}
    (weight,) = weights_of(system)
    assert weight.path == folder
    assert "see its model card" in system.card.licence
    (host,) = system.hosts.values()
    assert host.card.settings == like.hosts["musicgen"].card.settings
    assert host.card is system.card.hosts["musicgen"]


def test_a_pipeline_is_told_by_its_index(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "sound", "model_index.json", _class_name="AudioLDM2Pipeline")
    assert ("generate", "sound") in load_system(f"hf:{folder}").routes


def test_a_repository_is_found_among_our_weights_and_in_the_hubs_cache(home: Path) -> None:
    cache = home / ".cache" / "huggingface" / "hub" / "models--facebook--musicgen-small"
    commits = ("1" * 40, "2" * 40)
    for commit in commits:
        checkpoint(cache / "snapshots" / commit, model_type="musicgen")
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(commits[0])
    (found,) = weights_of(load_system("hf:facebook/musicgen-small"))
    assert (found.card.revision, found.card.repo) == (commits[0], "facebook/musicgen-small")
    (other,) = weights_of(load_system(f"hf:facebook/musicgen-small@{commits[1]}"))
    assert other.card.revision == commits[1]
    checkpoint(home / ".cache" / "torus-ray" / "weights" / "musicgen-small", model_type="musicgen")
    (own,) = weights_of(load_system("hf:facebook/musicgen-small"))
    assert own.path.parent.name == "weights"
    assert own.card.revision is None
    assert load_system("hf:facebook/musicgen-small").name == "facebook-musicgen-small"


@pytest.mark.usefixtures("home")
def test_what_is_not_here_is_not_fetched() -> None:
    with pytest.raises(InputError, match="no files of nobody/nothing") as stopped:
        load_system("hf:nobody/nothing")
    assert "hf download nobody/nothing" in stopped.value.mend


@pytest.mark.parametrize(
    ("content", "told"),
    [('{"model_type": "gpt2"}', "of the kind 'gpt2'"), ("{", "not JSON"), ("[]", "of the kind 'unknown'")],
)
def test_a_checkpoint_that_no_card_is_for(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(InputError, match=told):
        load_system(f"hf:{tmp_path}")


def test_parts_that_cannot_do_what_they_are_for(tmp_path: Path) -> None:
    music = load_system(f"hf:{checkpoint(tmp_path / 'music', model_type='musicgen')}")
    with pytest.raises(InputError, match="music has no head for answer"):
        compose(generator=music, editor=None, listener=music)
    with pytest.raises(InputError, match="music has no head for edit"):
        compose(generator=music, editor=music, listener=load_system("qwen2-audio"))
    with pytest.raises(InputError, match="qwen2-audio has no head for generate"):
        compose(generator=load_system("qwen2-audio"), editor=None, listener=music)
    heard = compose(generator=music, editor=None, listener=load_system("hf:Qwen/Qwen2-Audio-7B-Instruct"))
    assert heard.name == "music+qwen2-audio"
    assert heard.edit_modes == ("self-caption",)


def test_a_place_that_is_given_is_not_read_as_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint(tmp_path / "owner" / "name", model_type="bark")
    system = load_system("hf:owner/name")
    assert system.name == "name"
    (weight,) = weights_of(system)
    assert weight.path == tmp_path / "owner" / "name"
