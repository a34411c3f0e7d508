"""A Ray cluster in a process of its own: `cluster_process.py FOLDER` prints its address and ends when stdin ends."""

from __future__ import annotations

import sys

from torus_ray.engine.ray_variables import set_ray_variables

TRIES = 3


def main(folder: str) -> None:
    set_ray_variables()
    print("address", start(folder), flush=True)
    sys.stdin.read()
    import ray

    ray.shutdown()


def start(folder: str) -> str:
    """Ray gives its own processes 30 s, which is not always enough on a busy machine."""
    import ray

    for attempt in range(1, TRIES + 1):
        try:
            context = ray.init(
                address="local",
                num_cpus=4,
                num_gpus=2,  # there are none; Ray counts what it is told
                include_dashboard=False,
                object_store_memory=200 * 1024 * 1024,
                _temp_dir=folder,
                log_to_driver=False,
            )
        except Exception:
            ray.shutdown()
            if attempt == TRIES:
                raise
        else:
            return str(context.address_info["gcs_address"])
    raise AssertionError("the last try returns or raises")


if __name__ == "__main__":
    main(sys.argv[1])
