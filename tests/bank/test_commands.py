"""`torus bank check`, `seal` and `import` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.canary import make_canary_bank
from torus_ray.bank import embeddings
from torus_ray.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return make_canary_bank(tmp_path / "bank", tests=6).path


def torus(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_check_seal_import_and_check_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    assert torus("bank", "check", folder) == 0
    first = capsys.readouterr().out
    assert "not checked, the sentence embeddings are not installed" in first
    assert "the longest option" in first
    assert "6 tests, 0 verified by a human, 54 questions, 0 findings" in first
    assert torus("bank", "seal", folder, tmp_path / "sealed", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["tests"], told["human_verified"]) == (6, 0)
    assert torus("bank", "import", tmp_path / "sealed", tmp_path / "again") == 0
    assert told["hash"] in capsys.readouterr().out
    assert torus("bank", "check", tmp_path / "again") == 0
    assert capsys.readouterr().out == first


def test_findings_are_printed_for_people_and_machines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "canary-000.json"
    content = json.loads(file.read_text())
    content["stages"]["edit"]["prompt"] = 'Add a "hello".'
    file.write_text(json.dumps(content))
    assert torus("bank", "check", folder, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    (finding,) = told["findings"]
    assert (finding["test"], finding["stage"], finding["severity"]) == ("canary-000", "edit", "warning")
    assert {"rule", "hits", "share", "lo", "hi", "questions", "chance", "limit"} <= told["solvers"][0].keys()
    assert torus("bank", "check", folder, "--markdown") == 1
    assert "`torus bank check` found 0 errors and 1 warnings." in capsys.readouterr().out


def test_problems_of_a_bank_are_json_where_it_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "canary-000.json").write_text("{")
    assert torus("bank", "check", folder, "--json") == 2
    written = capsys.readouterr()
    told = json.loads(written.out)
    assert (told["bank"], written.err) == (str(folder), "")
    (problem,) = told["problems"]
    assert (problem["file"], problem["line"]) == ("canary-000.json", 1)
    assert problem["message"].startswith("not JSON")
    assert torus("bank", "check", folder, "--json", "--markdown") == 2
    assert "together" in capsys.readouterr().err


def test_show_prints_no_control_character(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "canary-000.json"
    file.write_text(file.read_text().replace('"title": "', '"title": "\\u001b[31m\\u0000', 1))
    for words in ((), ("canary-000",)):
        assert torus("bank", "show", *words, "--bank", folder) == 2
        written = capsys.readouterr()
        assert "U+001B" in written.err
        assert (written.out + written.err).replace("\n", "").isprintable()


def test_a_folder_in_the_place_of_a_test_is_told_with_the_option(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert torus("bank", "show", folder) == 2
    assert f"torus bank show --bank {folder}" in capsys.readouterr().err
    assert torus("bank", "show", "canary-1", "--bank", folder) == 2
    assert "near: canary-001" in capsys.readouterr().err


def test_what_cannot_be_done_ends_with_2_and_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert torus("bank", "seal", folder, folder) == 2
    assert "is there already" in capsys.readouterr().err
    assert torus("bank", "import", folder, folder.parent / "new") == 2
    assert "there is no such file" in capsys.readouterr().err
    assert not (folder.parent / "new").exists()
