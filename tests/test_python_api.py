"""The public Python API: names that exist, an import that costs nothing, and a page whose examples run."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import torus_ray
from tests.store.sample import answer, manifest, render, tone
from torus_ray.errors import InputError
from torus_ray.store import LocalRunStore
from torus_ray.store.tables import SCHEMAS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def test_every_public_name_exists_and_is_documented() -> None:
    for name in torus_ray.__all__:
        found = getattr(torus_ray, name)
        if callable(found):
            assert found.__doc__, name
        assert name == "__version__" or f"`{name}" in PAGE, f"docs/python.md does not name {name}"
    assert set(torus_ray.__all__) <= set(dir(torus_ray))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        torus_ray.nothing  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    stub = ast.parse((ROOT / "torus_ray" / "__init__.pyi").read_text(encoding="utf-8"))
    (listed,) = (node.value for node in stub.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(listed) == sorted(torus_ray.__all__)
    imported = {
        (node.module or "", alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torus_ray.")
        for alias in node.names
    }
    lazily = {(f"torus_ray.{module}", name) for module, names in torus_ray._MODULES.items() for name in names}
    assert imported == lazily


def test_importing_the_package_pulls_in_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import torus_ray;"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["torus_ray"]


def test_formulas_need_neither_ray_nor_torch_nor_polars() -> None:
    code = (
        "import sys, torus_ray as t;"
        "t.wer([t.word_errors(reference='go home', hypothesis='go')]); t.frechet(generated=[[1.0], [2.0]],"
        " reference=[[1.0], [3.0]]); t.kl(reference=[[0.5, 0.5]], generated=[[0.5, 0.5]]);"
        " t.jackknife(1.0, [1.0, 2.0, 3.0]);"
        "print(*sorted({name.split('.')[0] for name in sys.modules} & {'ray', 'torch', 'polars', 'pyarrow'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == ""


def test_the_examples_of_the_page_give_what_it_says() -> None:
    """Lines `>>> ...` of docs/python.md run in order, each with the output that stands below it."""
    text = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(text, {}, "docs/python.md", None, None)
    assert len(examples.examples) > 15
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    told: list[str] = []
    runner.run(examples, out=told.append)
    assert runner.failures == 0, "".join(told)


def test_a_run_is_loaded_as_frames(tmp_path: Path) -> None:
    stored = tone(1)
    with LocalRunStore(tmp_path) as store:
        store.append("renders", [render("t1", stored)], clips=[stored])
        store.append("answers", [answer("t1", "q1", stored.id), answer("t1", "q2", stored.id, correct=False)])
        store.flush()
        store.write_manifest(manifest())
    frames = torus_ray.load(tmp_path)
    assert set(frames) == set(SCHEMAS)
    assert frames["answers"].height == 2
    assert frames["captions"].columns == SCHEMAS["captions"].names
    assert isinstance(frames["attempts"], pl.DataFrame)
    assert torus_ray.coherence(frames["answers"])["pct"].to_list() == [50]
    assert torus_ray.load(str(tmp_path))["renders"].equals(frames["renders"])


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no run at .*empty"):
        torus_ray.load(tmp_path / "empty")


def test_a_folder_above_runs_names_them(tmp_path: Path) -> None:
    for arm in ("native", "self-caption"):
        with LocalRunStore(tmp_path / "bank@12345678" / "toy" / arm) as store:
            store.write_manifest(manifest())
    with pytest.raises(InputError, match=r"is no run, but 2 lie below it") as told:
        torus_ray.load(tmp_path)
    assert str(tmp_path / "bank@12345678" / "toy" / "native") in told.value.expected


OPTIONS = ["a bell", "a drum", "a dog", "a train", "a door", "rain"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: torus_ray.letter_of("zzz", OPTIONS),
        lambda: torus_ray.letter_of("seventh", [*OPTIONS, "seventh"]),
        lambda: torus_ray.read_letter("B", OPTIONS[:3]),
        lambda: torus_ray.read_letter(2, OPTIONS),  # type: ignore[arg-type]
        lambda: torus_ray.option_order(seed=0, item="t.edit.q1", options=["same", "same"]),
        lambda: torus_ray.shown_options(seed=0, item="t.edit.q1", options=[]),
        lambda: torus_ray.convention_of("nope"),
        lambda: torus_ray.coherence(1),  # type: ignore[arg-type]
        lambda: torus_ray.paired_difference([], []),  # type: ignore[arg-type]
        lambda: torus_ray.jackknife(None, [1, 2, 3]),  # type: ignore[arg-type]
        lambda: torus_ray.sign_flip([]),
    ],
)
def test_bad_input_is_refused_with_what_was_expected(ask: Callable[[], object]) -> None:
    with pytest.raises(InputError) as told:
        ask()
    assert told.value.expected
