"""Whether a cluster that somebody else runs is still there.

Without its head Ray itself waits for 60 s and then ends the process, with no exit code of ours and nothing said
(PROBE.md D). So what a driver cannot do without is knocked at, and the run is ended in order before that.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping

KNOCK_S = 1.0
ANSWER_S = 3.0
LOST_S = 15.0
"""How long nobody may answer: a head with fault tolerance is back by then."""

Place = tuple[str, int]
_SETTINGS = b"\x04"
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00" + _SETTINGS + b"\x00" * 5
"""The preface of HTTP/2 and an empty frame of settings (RFC 9113, 3.4)."""


class Watch:
    """Knocks at places (what listens there -> host, port) from a thread of its own until :meth:`stop`."""

    def __init__(self, places: Mapping[str, Place], *, lost_s: float = LOST_S) -> None:
        self._places = places
        self._lost_s = lost_s
        self._lost = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="torus-watch", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> str:
        """What has not answered for too long, in words; "" while all is well."""
        return self._lost

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(ANSWER_S * (len(self._places) + 1))

    def _look(self) -> None:
        silent_since: dict[str, float] = {}
        while not self._ended.wait(KNOCK_S):
            for name, place in self._places.items():
                before = time.monotonic()
                why = knock(place)
                if not why:
                    silent_since.pop(name, None)
                    continue
                silent_s = time.monotonic() - silent_since.setdefault(name, before)
                if silent_s > self._lost_s:
                    self._lost = f"{name} at {place[0]}:{place[1]} has not answered for {silent_s:.0f} s ({why})"
                    return


def knock(place: Place, timeout_s: float = ANSWER_S) -> str:
    """Why nothing can be reached at (host, port); "" where something listens."""
    try:
        socket.create_connection(place, timeout_s).close()
    except OSError as error:
        return error.strerror or str(error) or type(error).__name__
    return ""


def greet(place: Place, timeout_s: float = ANSWER_S) -> str:
    """Why what listens at (host, port) is no head of a cluster; "" where it may be one. A head speaks HTTP/2, and its
    first frame is of settings; Ray itself would go on asking a web page for minutes."""
    try:
        with socket.create_connection(place, timeout_s) as line:
            line.settimeout(timeout_s)
            line.sendall(_GREETING)
            answer = line.recv(9)
    except OSError as error:
        return error.strerror or str(error) or type(error).__name__
    return "" if answer[3:4] == _SETTINGS else "what listens there is no head of a Ray cluster"
