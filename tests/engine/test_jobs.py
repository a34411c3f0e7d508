"""Which Ray a driver belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from torus_ray.cli.run import check_results
from torus_ray.engine.jobs import ADDRESS_VARIABLE, JOB_VARIABLE, cluster_address, in_job
from torus_ray.errors import InputError


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADDRESS_VARIABLE, raising=False)
    monkeypatch.delenv(JOB_VARIABLE, raising=False)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JOB_VARIABLE, "{}")
    monkeypatch.setenv(ADDRESS_VARIABLE, "10.0.0.1:6379")


@pytest.mark.parametrize("address", ["auto", "10.0.0.1:6379", "head.cluster.local:6379", "[fd00::1]:6379"])
def test_an_address_is_taken_as_it_is(address: str) -> None:
    assert cluster_address(address) == address


@pytest.mark.parametrize("address", [None, "local", ""])
def test_nothing_said_is_a_cluster_of_our_own(address: str | None) -> None:
    assert cluster_address(address) is None


def test_the_environment_names_a_cluster_and_the_option_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS_VARIABLE, "10.0.0.1:6379")
    assert cluster_address(None) == "10.0.0.1:6379"
    assert cluster_address("10.0.0.2:6379") == "10.0.0.2:6379"
    assert cluster_address("local") is None


@pytest.mark.parametrize(
    ("address", "said"),
    [("http://10.0.0.1:8265", "ray job submit"), ("ray://10.0.0.1:10001", "client"), ("10.0.0.1", "check")],
)
def test_what_no_driver_can_join_is_said_with_the_mend(
    address: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="no address") as caught:
        cluster_address(address)
    assert (caught.value.where, said in caught.value.mend) == ("--address", True)
    monkeypatch.setenv(ADDRESS_VARIABLE, address)
    with pytest.raises(InputError, match="no address") as caught:
        cluster_address(None)
    assert (caught.value.where, "RAY_ADDRESS=local" in caught.value.mend) == (ADDRESS_VARIABLE, True)


@pytest.mark.usefixtures("job")
def test_a_job_joins_its_cluster_and_starts_none() -> None:
    assert in_job()
    assert cluster_address(None) == "10.0.0.1:6379"
    with pytest.raises(InputError, match="starts none of its own"):
        cluster_address("local")


@pytest.mark.usefixtures("job")
def test_a_job_keeps_its_results_where_they_outlive_it() -> None:
    check_results(Path("/shared/results"))
    check_results(Path("s3://bucket/results"))
    with pytest.raises(InputError, match="thrown away") as caught:
        check_results(Path("results"))
    assert caught.value.where == "--results"


def test_elsewhere_results_may_lie_anywhere() -> None:
    check_results(Path("results"))
