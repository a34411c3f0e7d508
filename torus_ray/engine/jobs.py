"""Which Ray a driver belongs to: the one it was told, that of its job, that of RAY_ADDRESS, or one of its own."""

from __future__ import annotations

import os
import re

from torus_ray.errors import InputError

JOB_VARIABLE = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Set by Ray for the driver of a submitted job, and for nothing else."""
ADDRESS_VARIABLE = "RAY_ADDRESS"
OWN = "local"
STOP_WAIT_VARIABLE, STOP_WAIT_S = "RAY_JOB_STOP_WAIT_TIME_S", 3.0
"""How long `ray job stop` waits after SIGTERM before it kills."""


def in_job() -> bool:
    """Whether this process is the driver of a job that somebody submitted to a cluster."""
    return JOB_VARIABLE in os.environ


def job_stop_wait_s() -> float:
    """Seconds from SIGTERM to SIGKILL when this job is stopped."""
    try:
        return float(os.environ.get(STOP_WAIT_VARIABLE, STOP_WAIT_S))
    except ValueError:
        return STOP_WAIT_S


def cluster_address(asked: str | None) -> str | None:
    """The address of the cluster to join: what was asked for, else RAY_ADDRESS (every job has it); None for a cluster
    of our own (`local`, or nothing said). Raises InputError for what is no address of a cluster."""
    address, where = (asked, "--address") if asked else (os.environ.get(ADDRESS_VARIABLE), ADDRESS_VARIABLE)
    if in_job() and (not address or address == OWN):
        raise InputError(
            "a job runs on the cluster that it was submitted to, it starts none of its own",
            where=where,
            expected="no --address, and the RAY_ADDRESS that Ray gives to a job",
            mend="leave --address out",
        )
    if not address or address == OWN:
        return None
    if address == "auto" or re.fullmatch(r"(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):\d{1,5}", address):
        return address
    raise InputError(
        f"{address!r} is no address that a driver can join",
        where=where,
        expected="HOST:PORT as `ray start --head` prints it (port 6379 where nothing was said), auto, or local",
        mend=_mend(address, where),
    )


def _mend(address: str, where: str) -> str:
    away = f"; `{ADDRESS_VARIABLE}=local torus ...` runs on this machine" if where == ADDRESS_VARIABLE else ""
    if address.startswith(("http://", "https://")):
        return f"that is where jobs are handed in: `ray job submit --address {address} -- ...` (docs/cluster.md){away}"
    if address.startswith("ray://"):
        return f"Ray's client cannot carry a run: submit a job, or give HOST:PORT on a machine of the cluster{away}"
    return f"check it{away}"
