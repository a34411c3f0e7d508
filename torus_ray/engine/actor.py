"""The Ray actors that hold a host. They import no more than hosting needs: they run in the model's environment."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from torus_ray.engine import leftovers
from torus_ray.engine.hosting import HeadServer, describe_error

Answer = Dict[str, Any]

LOWEST_PRIORITY = 19


def _load(payload: Dict[str, Any], place: Dict[str, Any]) -> HeadServer:
    """The model, loaded where others may have been before.

    place: {family: the mark of this host's children, ended: marks of hosts that are gone, gpu_memory_gib}.
    """
    if payload["background"]:  # what only measures takes the CPU that nobody else wants
        os.nice(LOWEST_PRIORITY)
    leftovers.join_family(place["family"])
    leftovers.end_families(place["ended"])
    devices = _devices()
    leftovers.wait_for_memory(devices, place["gpu_memory_gib"], payload["host"]["gpu_share"])
    return HeadServer(payload, devices=devices)


def _devices() -> List[str]:
    """The GPUs that Ray gave to this actor, by index or UUID."""
    import ray

    ids: Dict[str, List[str]] = ray.get_runtime_context().get_accelerator_ids()
    return [str(device) for device in ids.get("GPU", [])]


class BatchHost:
    """A host whose model takes lists: one call at a time."""

    def __init__(self) -> None:
        self._server: Optional[HeadServer] = None

    def start(self, payload: Dict[str, Any], place: Dict[str, Any]) -> Answer:
        """Load the model: {describe: ...} or {error: ...}."""
        try:
            self._server = _load(payload, place)
            return {"describe": self._server.describe()}
        except BaseException as error:  # SystemExit of a library must not end the worker without its cause
            return {"error": describe_error(error)}

    def handle(self, operation: str, wires: List[Dict[str, Any]]) -> Answer:
        assert self._server is not None
        return self._server.handle(operation, wires)

    def stop(self) -> None:
        """Let the model give back what it holds; what it started ends with it."""
        try:
            if self._server is not None:
                self._server.close()
        finally:
            leftovers.end_children()


class AsyncHost:
    """A host whose model keeps many requests in flight by itself."""

    def __init__(self) -> None:
        self._server: Optional[HeadServer] = None

    async def start(self, payload: Dict[str, Any], place: Dict[str, Any]) -> Answer:
        try:
            self._server = _load(payload, place)
            return {"describe": self._server.describe()}
        except BaseException as error:
            return {"error": describe_error(error)}

    async def handle(self, operation: str, wires: List[Dict[str, Any]]) -> Answer:
        assert self._server is not None
        return await self._server.handle_async(operation, wires)

    async def stop(self) -> None:
        try:
            if self._server is not None:
                self._server.close()
        finally:
            leftovers.end_children()
