"""Runs one case inside the system's environment: makes its weights, loads the head as a host does, asks it.

    PYTHON -P tests/released/inside.py CARD FOLDER

FOLDER holds `payload.json`, what HeadServer is given for the card, and `source`, a copy of the checkout.
"""

from __future__ import annotations

import json
import sys
import time
import types
from pathlib import Path


def main(card: str, folder: Path) -> None:
    # An environment may have a package called `tests` of its own, which would win over this folder.
    tests = types.ModuleType("tests")
    tests.__path__ = [str(Path(__file__).parents[1])]
    sys.modules["tests"] = tests
    # Last on the path, where the environment of a host has it.
    sys.path.append(str(folder / "source"))

    import torch

    from tests.released.cases import case
    from torus_ray.engine.hosting import HeadServer, load_class

    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {line}", flush=True)

    # On some CPUs it takes minutes to prepare a transposed convolution of a clip's length.
    torch.backends.mkldnn.set_flags(False)
    payload = json.loads((folder / "payload.json").read_text())
    found = case(card)
    with found.patched(load_class(payload["folder"], payload["module"], payload["class_name"])):
        weights = found.weights(folder / "weights", folder / "source")
        payload["host"].update(device="cpu", weights={name: str(path) for name, path in weights.items()})
        payload["settings"].update(found.SETTINGS)
        say("the weights are made")
        server = HeadServer(payload)
        described = server.describe()
        say(f"{payload['class_name']} loaded them; Python {described['python']}, {described['versions']}")
        found.prove(server, say, folder / "weights")
        server.close()
        say("done")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
