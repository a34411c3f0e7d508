"""How Ray is told to behave: environment variables that it reads when it is imported or started."""

from __future__ import annotations

import os

RAY_VARIABLES = {
    # A dead raylet shows after about 1 s instead of 15 (PROBE.md D).
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
    # A driver started by `uv run` would otherwise have every worker build an environment of its own.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Clusters of Ray 2.60 ask for a token by default, but a driver that joins one sends none unless it is told to.
    "RAY_AUTH_MODE": "token",
    # What travels with a submitted job is for its driver; hosts get the folder that the driver lays out.
    "RAY_OVERRIDE_JOB_RUNTIME_ENV": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
    # Ray prints what befell a worker on the driver's standard output, into the middle of a table or of JSON; what
    # matters of it is told by the executor.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}


def set_ray_variables() -> None:
    """Set those that the user has not. Called before Ray is imported: some are read then."""
    for name, value in RAY_VARIABLES.items():
        os.environ.setdefault(name, value)
