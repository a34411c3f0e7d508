"""The contract that every system keeps, asked of its hosts through an executor, as a run asks them (DESIGN 4, 5).

Nothing here knows how a host is started: the command line hands in executors (DESIGN 2).
"""

from __future__ import annotations

from torus_ray.contract.asking import OutOfTime as OutOfTime
from torus_ray.contract.findings import Finding as Finding
from torus_ray.contract.suite import check_host as check_host
