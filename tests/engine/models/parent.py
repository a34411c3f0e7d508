"""The toy with a child in a session of its own, as vLLM has its engine; `close` forgets it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from .toy import Toy


class Parent(Toy):
    """flaky: also the folder that children are noted in, by their pid."""

    def load(self, host: Any) -> None:
        super().load(host)
        command = [sys.executable, "-c", "import time; time.sleep(3600)"]
        child = subprocess.Popen(command, start_new_session=True)
        open(os.path.join(self.flaky, f"child-{child.pid}"), "w").close()
