"""A head of actors/ as a host serves it, in this process: in whatever environment the test runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torus_ray.engine.hosting import HeadServer
from torus_ray.heads import Request, request_to_wire

ACTORS = Path(__file__).parents[2] / "actors"


def head_server(
    folder: str,
    class_name: str,
    weights: Mapping[str, Path],
    heads: Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Any],
) -> HeadServer:
    """heads: operation -> its settings."""
    return HeadServer(
        {
            "folder": str(ACTORS / folder),
            "module": "adapter",
            "class_name": class_name,
            "settings": dict(settings),
            "heads": dict(heads),
            "style": "batch",
            "bits": 16,
            "host": {
                "device": "cpu",
                "threads": 1,
                "gpu_share": 0.0,
                "weights": {name: str(path) for name, path in weights.items()},
            },
        }
    )


def results(server: HeadServer, *requests: Request) -> list[dict[str, Any]]:
    """What each request of one batch came to; what each says of its status stands in it. Raises what the batch
    raised."""
    answer = server.handle(requests[0].operation, [request_to_wire(request) for request in requests])
    assert "error" not in answer, answer["error"]["traceback"]
    found: list[dict[str, Any]] = answer["results"]
    return found


def reply(server: HeadServer, request: Request) -> dict[str, Any]:
    """The reply to a request that alone is served."""
    (result,) = results(server, request)
    assert result["status"] == "ok", result
    given: dict[str, Any] = result["reply"]
    return given


def reason(server: HeadServer, request: Request) -> str:
    """Why a request is refused."""
    (result,) = results(server, request)
    assert result["status"] == "refused", result
    return str(result["reason"])
