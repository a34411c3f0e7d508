"""The toy, and what it observes of itself after loading."""

from __future__ import annotations

from typing import Any

from .toy import Toy


class Telling(Toy):
    def observe(self) -> dict[str, Any]:
        return {"accent": self.accent}
