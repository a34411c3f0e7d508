"""Values as messages show them; and control characters: a bank's texts hold none but tab and newline."""

from __future__ import annotations

import json
import re
from typing import Any

NO_CONTROLS = r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$"
"""A text without control characters, tab and newline apart: as a pattern both of `re` and of pydantic."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def first_control(text: str) -> str:
    """The first control character of a text in Unicode's notation, such as U+001B; "" where there is none."""
    found = _CONTROL.search(text)
    return f"U+{ord(found.group()):04X}" if found else ""


def visible(text: str) -> str:
    r"""The text for a terminal: each control character but tab and newline written as ``\u001b``."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def shown(value: Any) -> str:
    """The start of a value as JSON."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
