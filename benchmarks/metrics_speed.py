"""How long the formulas take, beside the matrix square root that other tools take for the same distance.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.metrics_speed

Each line is the best and the median of `--repeats` runs in this process, in CPU seconds, which other work on the
machine disturbs least: with one BLAS thread that is the wall time of a quiet machine. Inputs have fixed seeds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from scipy import linalg

from torus_ray.metrics.frechet import frechet_distance
from torus_ray.metrics.kernel import kernel_distance
from torus_ray.metrics.sets import clip_set, distance_floor, swapped_difference, without_each_test
from torus_ray.metrics.wer import wer, word_errors
from torus_ray.stats.intervals import estimates
from torus_ray.stats.swap import sign_flip, swap_test

CLIPS, TESTS = 144, 48


def by_square_root(x: Any, y: Any, kind: type = float) -> float:
    """The usual route (pytorch-fid and what came of it): scipy's root of the product of both covariances."""
    gap = x.mean(axis=0) - y.mean(axis=0)
    cov_x, cov_y = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    root = linalg.sqrtm((cov_x @ cov_y).astype(kind))
    return float(np.real(gap @ gap + np.trace(cov_x) + np.trace(cov_y) - 2 * np.trace(root)))


def jobs() -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(512, 512)) / np.arange(1, 513)[:, None]
    clap = [rng.normal(size=(CLIPS, 512)) @ mix for _ in range(3)]
    frames = rng.normal(size=(3, CLIPS, 10, 128)) @ (rng.normal(size=(128, 128)) / 8)
    tests = [f"t{index // 3:02d}" for index in range(CLIPS)]
    fd = [clip_set(list(rows), tests=tests) for rows in clap]
    fad = [clip_set(list(rows), tests=tests) for rows in frames]
    right = rng.integers(0, 10, size=(432, 7))
    words = ["the dog barked at the mailman and ran twenty one times around the old grey house"] * CLIPS

    def swap(sets: Any, permutations: int) -> Any:
        _, difference = swapped_difference(a=sets[0], b=sets[1], reference=sets[2])
        return swap_test(difference, TESTS, permutations=permutations)

    def speech() -> Any:
        return wer([word_errors(reference=one, hypothesis=one.replace("dog", "cat")) for one in words])

    return {
        "both intervals, 10,000 resamples, 432 tests x 7 systems": lambda: estimates(right, np.full((432, 7), 9.0)),
        "both intervals, 10,000 resamples, 48 tests x 7 systems": lambda: estimates(right[:48], np.full((48, 7), 9.0)),
        "sign-flip test, 9,999 draws, 48 tests": lambda: sign_flip(rng.normal(size=TESTS)),
        "Frechet 144 x 512, singular values (ours)": lambda: frechet_distance(clap[0], clap[1]),
        "Frechet 144 x 512, scipy sqrtm, real": lambda: by_square_root(clap[0], clap[1]),
        "Frechet 144 x 512, scipy sqrtm, complex": lambda: by_square_root(clap[0], clap[1], complex),
        "Frechet 1440 x 128, singular values (ours)": lambda: frechet_distance(fad[0].rows, fad[1].rows),
        "Frechet 1440 x 128, scipy sqrtm, real": lambda: by_square_root(fad[0].rows, fad[1].rows),
        "kernel distance 144 x 512": lambda: kernel_distance(clap[0], clap[1]),
        "kernel distance 1440 x 128": lambda: kernel_distance(fad[0].rows, fad[1].rows),
        "floor of FD, 100 half-splits": lambda: distance_floor(reference=fd[2]),
        "floor of FAD, 100 half-splits": lambda: distance_floor(reference=fad[2]),
        "jackknife of FD, 48 tests": lambda: without_each_test(generated=fd[0], reference=fd[2]),
        "jackknife of FAD, 48 tests": lambda: without_each_test(generated=fad[0], reference=fad[2]),
        "swap test of FD, 99 draws": lambda: swap(fd, 99),
        "swap test of FAD, 99 draws": lambda: swap(fad, 99),
        "WER of 144 clips of 16 words": speech,
    }


def seconds(job: Callable[[], Any]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "as many as there are")
    print(
        f"Python {sys.version.split()[0]}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"{os.cpu_count()} cores, BLAS threads: {threads}, {repeats} repeats\n"
    )
    print("| what | best, s | median, s |\n|---|---|---|")
    best = {}
    for name, job in jobs().items():
        seconds(job)  # caches and BLAS warm up
        found = [seconds(job) for _ in range(repeats)]
        best[name] = min(found)
        print(f"| {name} | {min(found):.4f} | {statistics.median(found):.4f} |", flush=True)
    mine, theirs = (best[f"Frechet 144 x 512, {way}"] for way in ("singular values (ours)", "scipy sqrtm, real"))
    print(f"\nAt 144 x 512 singular values are {theirs / mine:.1f} times as fast as scipy's real square root.")


if __name__ == "__main__":
    main()
