"""The Ray actors that hold a host. They import no more than hosting needs: they run in the model's environment."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from torus_ray.engine.hosting import HeadServer, describe_error

Answer = Dict[str, Any]

LOWEST_PRIORITY = 19


def _step_back(payload: Dict[str, Any]) -> None:
    """What only measures takes the CPU that nobody else wants."""
    if payload["background"]:
        os.nice(LOWEST_PRIORITY)


class BatchHost:
    """A host whose model takes lists: one call at a time."""

    def __init__(self) -> None:
        self._server: Optional[HeadServer] = None

    def start(self, payload: Dict[str, Any]) -> Answer:
        """Load the model: {describe: ...} or {error: ...}."""
        try:
            _step_back(payload)
            self._server = HeadServer(payload)
            return {"describe": self._server.describe()}
        except BaseException as error:  # SystemExit of a library must not end the worker without its cause
            return {"error": describe_error(error)}

    def handle(self, operation: str, wires: List[Dict[str, Any]]) -> Answer:
        assert self._server is not None
        return self._server.handle(operation, wires)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()


class AsyncHost:
    """A host whose model keeps many requests in flight by itself."""

    def __init__(self) -> None:
        self._server: Optional[HeadServer] = None

    async def start(self, payload: Dict[str, Any]) -> Answer:
        try:
            _step_back(payload)
            self._server = HeadServer(payload)
            return {"describe": self._server.describe()}
        except BaseException as error:
            return {"error": describe_error(error)}

    async def handle(self, operation: str, wires: List[Dict[str, Any]]) -> Answer:
        assert self._server is not None
        return await self._server.handle_async(operation, wires)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
