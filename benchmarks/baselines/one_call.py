"""Baseline (a): one actor call a unit, results taken with ray.get in the order of the calls.

    python one_call.py BANK TESTS FOLDER CHUNK

Two actors, as in our own run. In its best form: a chunk of tests goes stage by stage, the answers of a stage and the
edits of the next are under way together, rows are written and synced once a chunk (so not durable before what hangs on
them starts, which would cost more), with few columns, no keys and no clip files.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import ray
from questions import STAGES, read_tests, tell

CLIP = bytes(600)


@ray.remote(num_cpus=0.5)
class Heads:
    """Zero-cost heads: a clip of 600 bytes, the letter A."""

    def generate(self, prompt: str) -> bytes:
        return CLIP

    def edit(self, prompt: str, clip: bytes) -> bytes:
        return CLIP

    def answer(self, prompt: str, clip: bytes) -> str:
        return "A"

    def ready(self) -> None:
        return None


def write(folder: Path, table: str, number: int, rows: list[dict[str, Any]]) -> None:
    path = folder / f"{table}-{number:05d}.parquet"
    with open(path, "wb") as file:
        pq.write_table(pa.Table.from_pylist(rows), file)
        file.flush()
        os.fsync(file.fileno())


def run_chunk(actors: list[Any], tests: list[dict[str, Any]], folder: Path, number: int) -> None:
    renders: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    turn = len(actors)
    refs = [actors[at % turn].generate.remote(test[STAGES[0]]) for at, test in enumerate(tests)]
    for place, stage in enumerate(STAGES):
        clips = ray.get(refs)
        following = STAGES[place + 1] if place + 1 < len(STAGES) else None
        asked = [
            actors[at % turn].answer.remote(prompt, clips[at])
            for at, test in enumerate(tests)
            for prompt in test[f"{stage}_asked"]
        ]
        if following:
            refs = [actors[at % turn].edit.remote(test[following], clips[at]) for at, test in enumerate(tests)]
        for test, clip in zip(tests, clips, strict=True):
            digest = hashlib.sha256(clip).hexdigest()
            renders.append({"unit": f"{test['test']}/{stage}", "status": "ok", "prompt": test[stage], "clip": digest})
        said = iter(ray.get(asked))
        for test in tests:
            for question, prompt in enumerate(test[f"{stage}_asked"]):
                unit = f"{test['test']}/{stage}/{question}"
                answers.append({"unit": unit, "status": "ok", "prompt": prompt, "reply": next(said)})
    write(folder, "renders", number, renders)
    write(folder, "answers", number, answers)


def main() -> None:
    bank, count, folder, chunk = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    tests = read_tests(bank, count)
    began = time.time()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=512 << 20)
    ray_up = time.time()
    actors = [Heads.remote() for _ in range(2)]
    ray.get([actor.ready.remote() for actor in actors])
    dispatched = time.time()
    for number, start in enumerate(range(0, len(tests), chunk)):
        run_chunk(actors, tests[start : start + chunk], folder, number)
    ended = time.time()
    tell(units=12 * len(tests), ray_start_s=ray_up - began, start_s=dispatched - began, run_s=ended - dispatched)


if __name__ == "__main__":
    main()
