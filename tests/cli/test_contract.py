"""`torus check`: its findings as lines and as JSON, its exit codes, and the whole of it against a real host."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from torus_ray.cli import EXIT_STOPPED, EXIT_USAGE, _run
from torus_ray.systems import load_system

ROOT = Path(__file__).parents[2]
EXAMPLE = f"{ROOT / 'docs' / 'examples' / 'my_model.py'}:MyModel"
ODD = ROOT / "tests" / "contract" / "odd.py"


def odd(folder: Path, fault: str, **host: str) -> str:
    path = folder / "odd.system.toml"
    extra = "".join(f"{key} = {value}\n" for key, value in host.items())
    path.write_text(
        f'name = "odd"\ntitle = "Odd"\n[hosts.main]\nadapter = "{ODD}:Odd"\n{extra}'
        f'settings = {{ fault = "{fault}" }}\nheads = {{ caption = {{ deadline_s = 60 }} }}\n'
    )
    return str(path)


def test_the_example_of_the_docs_keeps_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["check", EXAMPLE, "--inline", "--calls", "0"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[-1].endswith("keeps the contract")
    assert "ok   model generate seed: the same twice; another seed changes speech, sound, music" in told


def test_the_cards_of_the_docs_can_be_read() -> None:
    for path in (ROOT / "docs" / "examples" / "mms-tts").glob("*.system.toml"):
        host = load_system(str(path)).hosts["main"]
        assert host.card.heads["generate"].words
        assert Path(host.card.weights["model"].path).is_absolute()


def test_what_is_broken_is_told_and_ends_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = odd(tmp_path, "speechless")
    assert _run(["check", reference, "--inline"]) == 1
    told = capsys.readouterr().out
    assert "BAD  main caption shape: a plain request: '': no text" in told
    assert "     expected: a description" in told
    assert "     mend: " in told
    assert _run(["check", reference, "--inline", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert [f["check"] for f in report["findings"] if f["verdict"] == "failed"] == ["shape"]


def test_the_time_for_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = odd(tmp_path, "")
    # A second is over long before two thousand calls are.
    assert _run(["check", reference, "--inline", "--calls", "200000", "--deadline", "1"]) == EXIT_STOPPED
    assert "before the time was up" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["check", "nobody"], "no system is called"),
        (["check", "nothing.py:Model"], "is no class in a file"),
        (["check", "simulated", "--calls", "-1"], "--calls"),
    ],
)
def test_wrong_usage(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(words) == EXIT_USAGE
    assert told in capsys.readouterr().err


def test_missing_weights_are_told_before_anything_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = odd(tmp_path, "", weights='{ net = { path = "/nowhere/net.bin" } }')
    assert _run(["check", reference]) == EXIT_USAGE
    assert "/nowhere/net.bin" in capsys.readouterr().err


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_real_host_is_stopped_and_replaced() -> None:
    """A process of Ray's: batches go out together, and the hang is a real one."""
    command = [sys.executable, "-m", "torus_ray.cli", "check", "simulated", "--json", "--calls", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = {(f["operation"], f["check"]): f for f in json.loads(done.stdout)["findings"]}
    (hang,) = [f for (_, check), f in told.items() if check == "hangs"]
    assert hang["verdict"] == "ok"
    assert "answered by a new process" in hang["found"]
