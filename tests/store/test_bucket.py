from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.store.s3 import KEY, SECRET, Server
from torus_ray.errors import InputError
from torus_ray.store import StoreError
from torus_ray.store.bucket import Address, Bucket, address_of, endpoint_of_environment


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("s3://my-bucket/a/b", Address("my-bucket", "a/b")),
        ("s3://my-bucket", Address("my-bucket", "")),
        ("s3://my-bucket//a///b/", Address("my-bucket", "a/b")),
        ("s3://my-bucket/bank@1a2b/x+y=z", Address("my-bucket", "bank@1a2b/x+y=z")),
        ("results", None),
        ("/tmp/s3/results", None),
        ("./s3:", None),
    ],
)
def test_what_is_an_address(text: str, address: Address | None) -> None:
    assert address_of(text) == address
    assert address_of(Path(text)) == address  # which has lost a slash


@pytest.mark.parametrize(
    "text",
    [
        f"s3://{KEY}:{SECRET}@my-bucket/a",
        f"s3://my-bucket/a?secret={SECRET}",
        "s3://",
        "s3:///a",
        "s3://My_Bucket/a",
        "s3://my-bucket/../other",
        "s3://my-bucket/a b",
        "gs://my-bucket/a",
        "https://my-bucket.example/a",
    ],
)
def test_what_is_no_address_of_a_bucket_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InputError) as refused:
        address_of(text)
    assert SECRET not in str(refused.value)
    assert "s3://bucket/prefix" in refused.value.expected


@pytest.mark.parametrize(
    "endpoint", ["somewhere", f"http://{KEY}:{SECRET}@host", f"http://host/?key={SECRET}", "ftp://host"]
)
def test_an_endpoint_that_is_none(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(InputError) as refused:
        endpoint_of_environment()
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9000", "https://s3.example.org", "http://[::1]:9000", ""])
def test_an_endpoint(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert endpoint_of_environment() == (endpoint or None)


def test_writing_under_a_condition(bucket: Bucket) -> None:
    first = bucket.put_if("a/lock", b"1", None)
    assert first
    assert bucket.put_if("a/lock", b"2", None) is None
    second = bucket.put_if("a/lock", b"3", first)
    assert second
    assert bucket.put_if("a/lock", b"4", first) is None
    found = bucket.get_versioned("a/lock")
    assert found is not None
    assert (found.data, found.tag) == (b"3", second)
    assert abs(bucket.now("a/lock") - found.modified) < 60
    assert bucket.get_versioned("a/other") is None
    with pytest.raises(FileNotFoundError):
        bucket.get("a/other")


def test_a_listing_of_more_than_a_page(bucket: Bucket) -> None:
    keys = [f"run/clips/{number:05}" for number in range(1010)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: bucket.put(key, b"."), keys))
    bucket.put("run/run.json", b"{}")
    assert list(bucket.objects("run/clips")) == keys
    assert bucket.level("run") == (["clips"], ["run.json"])
    bucket.delete(keys)
    assert list(bucket.objects("")) == ["run/run.json"]


def test_a_bucket_that_can_be_written_is_left_as_it_was(bucket: Bucket) -> None:
    bucket.check_writable("results")
    assert bucket.objects("") == {}


def refused(work: object, *arguments: object) -> str:
    with pytest.raises((InputError, StoreError)) as error:
        work(*arguments)  # type: ignore[operator]
    text = str(error.value)
    assert SECRET not in text
    assert "mend" in text
    return text


def test_a_bucket_that_is_not_there(s3: Server) -> None:
    missing = Bucket("no-such-bucket", s3.endpoint, retry_s=1)
    for text in (
        refused(missing.objects, "results"),
        refused(missing.get, "results/x"),
        refused(missing.get_versioned, "results/x"),
        refused(missing.put, "results/x", b""),
        refused(missing.check_writable, "results"),
    ):
        assert "there is no such bucket" in text
        assert s3.endpoint in text


def test_credentials_that_the_store_does_not_know(bucket: Bucket, s3: Server) -> None:
    s3.check_keys(True)
    try:
        for text in (refused(bucket.objects, ""), refused(bucket.check_writable, "results")):
            assert "AWS_SECRET_ACCESS_KEY" in text
    finally:
        s3.check_keys(False)


def test_a_server_that_is_not_there(s3: Server) -> None:
    assert "AWS_ENDPOINT_URL" in refused(Bucket("bucket", "http://127.0.0.1:1", retry_s=0.1).objects, "")


def test_a_server_that_has_gone_is_not_waited_for_twice(bucket: Bucket) -> None:
    gone, brief = Bucket(bucket.name, "http://127.0.0.1:1", retry_s=0.1), Bucket(bucket.name, None, retry_s=0.1)
    gone.impatient = lambda: bucket  # type: ignore[method-assign]
    assert brief._store is brief._patient
    refused(gone.put, "x", b"")
    assert gone._store is bucket._patient
    gone.put("x", b"")
    assert gone._store is gone._patient


class _Replies(BaseHTTPRequestHandler):
    """Answers every write with the same."""

    status, body = 200, b""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.reply(self.body)

    def do_POST(self) -> None:
        """A removal, which is confirmed key by key."""
        asked = self.rfile.read(int(self.headers.get("content-length") or 0))
        keys = b"".join(b"<Deleted>%s</Deleted>" % key for key in re.findall(rb"<Key>.*?</Key>", asked))
        self.reply(b'<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">%s</DeleteResult>' % keys)

    def reply(self, body: bytes) -> None:
        self.send_response(self.status)
        self.send_header("ETag", '"0"')
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def other_server(request: pytest.FixtureRequest) -> Iterator[str]:
    handler = type("Replies", (_Replies,), dict(zip(("status", "body"), request.param, strict=True)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>"


@pytest.mark.parametrize("other_server", [(200, b"")], indirect=True)
def test_a_store_that_overlooks_conditions_keeps_no_run(s3: Server, other_server: str) -> None:
    text = refused(Bucket("bucket", other_server, retry_s=1).check_writable, "results")
    assert "If-None-Match" in text


def test_credentials_that_may_read_only(bucket: Bucket, s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put("results/x", b"here")
    for name, value in s3.new_user("s3:Get*", "s3:List*").items():
        monkeypatch.setenv(name, value)
    reader = bucket.impatient()
    s3.check_keys(True)
    try:
        assert reader.get("results/x") == b"here"
        assert len(reader.objects("results")) == 1
        for text in (refused(reader.put, "results/y", b""), refused(reader.check_writable, "results")):
            assert "no right" in text
            assert "s3:PutObject" in text
            assert os.environ["AWS_SECRET_ACCESS_KEY"] not in text
    finally:
        s3.check_keys(False)


@pytest.mark.parametrize("other_server", [(503, SLOW_DOWN)], indirect=True)
def test_a_store_that_has_too_much_to_do(s3: Server, other_server: str) -> None:
    text = refused(Bucket("bucket", other_server, retry_s=0.5).put, "results/x", b"")
    assert "SlowDown" in text
    assert "the same command goes on" in text


def test_no_credentials(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any, the client asks the machine that it runs on, which in a cloud may have some to lend."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    without = Bucket(bucket.name, None, retry_s=0.1)
    assert "no credentials were found" in refused(without.objects, "")
