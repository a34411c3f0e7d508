"""Baseline (c): inspect_ai with its mock model on six-option questions, realtime log off.

    python inspect_mock.py BANK QUESTIONS FOLDER

The model's outputs carry their token usage: without it the mock model counts tokens with tiktoken, which downloads its
tables and takes longer. Only the evaluation itself is timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice
from questions import STAGES, tell


def samples(bank: Path, count: int) -> Iterator[Sample]:
    files = sorted(path for path in bank.glob("[!.]*.json") if path.name != "bank.json")
    for file in files[: count // 9 + 1]:
        test = json.loads(file.read_bytes())
        for stage in STAGES:
            for question in test["stages"][stage]["questions"]:
                target = "ABCDEF"[question["options"].index(question["answer"])]
                yield Sample(input=question["text"], choices=question["options"], target=target)


def outputs() -> Iterator[ModelOutput]:
    while True:
        output = ModelOutput.from_content("mockllm/model", "ANSWER: A")
        output.usage = ModelUsage(input_tokens=100, output_tokens=4, total_tokens=104)
        yield output


def main() -> None:
    bank, count, folder = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    asked = list(samples(bank, count))[:count]
    task = Task(dataset=MemoryDataset(asked), solver=multiple_choice(), scorer=choice())
    model = get_model("mockllm/model", custom_outputs=outputs())
    began = time.time()
    (log,) = evaluate(
        task, model=model, display="none", log_realtime=False, log_dir=str(folder), log_format="eval", log_samples=True
    )
    took = time.time() - began
    done = log.results.completed_samples if log.results else 0
    tell(samples=done, run_s=took, status=log.status)


if __name__ == "__main__":
    main()
