"""`--inline` in a model's own environment: the command goes on in that interpreter."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.systems import System

_START = """
import json, sys
sys.path += [path for path in json.loads(sys.argv.pop(1)) if path not in sys.path]
from torus_ray.cli import main
main()
"""
_BORROWED = "TORUS_INLINE_ENVIRONMENT"


def borrow_environment(systems: Iterable[System]) -> None:
    """Go on in the interpreter of the systems' environment, with this one's packages behind its own.

    Inline runs an adapter in this process, so this process must be its environment's. Returns where it already is.
    """
    from torus_ray.engine.environments import environments_root, find_environment, interpreter, preflight

    names = {host.card.environment for system in systems for host in system.hosts.values()}
    if len(names) > 1:
        raise InputError(
            f"--inline is one process, the hosts want {len(names)} environments: {', '.join(sorted(names))}",
            where="--inline",
            expected="systems of one environment",
            mend="run them with Ray (leave --inline out), or one system at a time",
        )
    (name,) = names
    if name == "inherit" or os.environ.get(_BORROWED) == name:
        return
    spec = find_environment(name)
    preflight(spec).raise_for_findings()
    python = interpreter(spec, environments_root())
    paths = [path for path in sys.path if path]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **spec.env_vars, **threads, "HF_HUB_OFFLINE": "1", _BORROWED: name}
    sys.stdout.flush()
    os.execve(python, [str(python), "-c", _START, json.dumps(paths), *sys.argv[1:]], environment)
