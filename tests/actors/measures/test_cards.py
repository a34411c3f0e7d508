"""The cards of the measuring heads and their environments."""

from __future__ import annotations

from pathlib import Path

import pytest

from torus_ray.engine.environments import find_environment
from torus_ray.metrics.table import convention_of
from torus_ray.report.makers import MAKERS
from torus_ray.systems import load_system, with_measures

CARDS = ("whisper-large-v3", "clap", "passt", "vggish", "clap.laion", "fad.gudgud96")


@pytest.mark.parametrize("name", CARDS)
def test_a_card_is_read_and_its_environment_is_locked(name: str) -> None:
    system = load_system(name)
    assert system.only_measures
    assert not system.card.default_for, "nobody's run needs them"
    assert system.card.proven == "real code, tiny weights"
    for host in system.hosts.values():
        assert find_environment(host.card.environment).lock_text
        for weight in host.card.weights.values():
            assert Path(weight.path).is_relative_to(Path.home() / ".cache" / "torus-ray" / "weights")
    assert set().union(*system.metrics.values()) <= set(MAKERS)


def test_all_may_be_taken_together_with_the_embedded_ones() -> None:
    together = with_measures(load_system("simulated"), [load_system(name) for name in (*CARDS, "embedded")])
    assert {"whisper-large-v3", "clap512", "passt527", "vggish128.preact", "gudgud96", "yamnet521"} <= set(
        together.measures
    )


@pytest.mark.parametrize(
    ("convention", "measure", "column"),
    [
        ("fad", "vggish128.preact", "fad.vggish128.preact"),
        ("fad", "gudgud96", "fad.gudgud96"),
        ("fd", "clap512.clip", "fd.clap512.clip"),
        ("fd", "clap.laion", "fd.clap.laion"),
        ("cm.argmax4", "clap512", "cm.argmax4.clap512"),
        ("kl.clip_mean.ref_gen", "passt527", "kl.clip_mean.ref_gen.passt527"),
    ],
)
def test_the_columns_are_those_of_the_conventions(convention: str, measure: str, column: str) -> None:
    assert convention_of(column).name == convention
    assert convention_of(column).column(measure) == column
