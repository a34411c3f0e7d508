"""A bucket for tests: of a real S3-compatible server, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.s3 import CLEARED, ENVIRONMENT, Server, serve
from torus_ray.store.bucket import Bucket, open_bucket


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def s3(s3_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server, as the environment's own store; the mirrors of this test alone."""
    for name in CLEARED:
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        **ENVIRONMENT,
        "AWS_ENDPOINT_URL": s3_server.endpoint,
        "TORUS_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    open_bucket.cache_clear()
    yield s3_server
    open_bucket.cache_clear()


@pytest.fixture
def bucket(s3: Server) -> Bucket:
    """A new bucket."""
    return open_bucket(s3.new_bucket(), s3.endpoint)
