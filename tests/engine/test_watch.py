"""A place where nobody answers any more is noticed, and one that answers is not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from torus_ray.engine import watch
from torus_ray.engine.watch import Watch, greet, knock


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "KNOCK_S", 0.02)


def lost(watched: Watch, patience_s: float = 20.0) -> str:
    """What is lost, once the watch has ended by itself."""
    watched._thread.join(patience_s)
    return watched.lost


def test_a_place_that_goes_away_is_named_with_its_cause() -> None:
    with listening() as stays, listening() as goes:
        watched = Watch({"the head": goes.getsockname(), "the raylet": stays.getsockname()}, lost_s=0.2)
        assert watched.lost == ""
        goes.close()
        told = lost(watched)
    assert "the head at 127.0.0.1:" in told
    assert "refused" in told


def test_while_all_answer_nothing_is_lost() -> None:
    with listening() as stays:
        watched = Watch({"the head": stays.getsockname()}, lost_s=0.05)
        for _ in range(5):
            stays.accept()[0].close()
        assert watched.lost == ""
        watched.stop()
    assert watched.lost == ""


def test_one_that_comes_back_in_time_was_never_lost() -> None:
    with listening() as first:
        place = first.getsockname()
        watched = Watch({"the head": place}, lost_s=30.0)
        first.accept()[0].close()
    assert knock(place)
    with socket.create_server(place) as again:
        again.accept()[0].close()
        assert watched.lost == ""
        watched.stop()
    assert watched.lost == ""


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03", ""),
        (b"HTTP/1.1 400 Bad Request\r\n", "no head"),
        (b"", "no head"),
    ],
    ids=["a head", "a web page", "it hangs up"],
)
def test_what_is_no_head_is_known_by_its_first_word(answer: bytes, why: str) -> None:
    with listening() as server:

        def serve() -> None:
            with server.accept()[0] as line:
                line.recv(100)
                line.sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        told = greet(server.getsockname())
        serving.join(10)
    assert (why in told, bool(told)) == (True, bool(why))


def test_one_that_never_answers_is_given_up() -> None:
    with listening() as silent:
        assert "timed out" in greet(silent.getsockname(), 0.1)
