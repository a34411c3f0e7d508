"""Seal a bank: a folder in the layout of a Hugging Face dataset, never changed afterwards.

README.md is the card: what the bank is, its hash, who has verified it, its statistics. data/tests.parquet holds the
bank whole, data/questions.parquet a flat row a question; `datasets` and Polars load both as they are.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from torus_ray.bank.check import BankReport
from torus_ray.bank.load import Bank
from torus_ray.bank.parquet import questions_table, tests_table, to_bytes
from torus_ray.bank.statistics import statistics, verified
from torus_ray.errors import InputError

TESTS, QUESTIONS, CARD = "data/tests.parquet", "data/questions.parquet", "README.md"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def sealed_files(bank: Bank, report: BankReport) -> dict[str, bytes]:
    """The files of the sealed bank by their path in the folder. Raises InputError if `report` has errors."""
    errors = [finding.render() for finding in report.findings if finding.severity == "error"]
    if errors:
        more = f" and {len(errors) - 5} more" if len(errors) > 5 else ""
        raise InputError(
            f"the bank {bank.card.name} has {len(errors)} errors: " + "; ".join(errors[:5]) + more,
            where=str(bank.path or bank.card.name),
            expected="a bank in which `torus bank check` finds no error",
            mend="put them right; warnings may stay, the card counts them",
        )
    return {
        CARD: card_text(bank, report).encode(),
        TESTS: to_bytes(tests_table(bank)),
        QUESTIONS: to_bytes(questions_table(bank)),
    }


def write_sealed(files: Mapping[str, bytes], target: Path) -> None:
    """Write the files to the new folder `target`, all or none. Raises InputError if something is there already."""
    refuse_existing(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for name, data in files.items():
            file = part / name
            file.parent.mkdir(exist_ok=True)
            with file.open("wb") as sink:
                sink.write(data)
                sink.flush()
                os.fsync(sink.fileno())
        part.chmod(0o755)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def refuse_existing(target: Path) -> None:
    """Raise InputError unless `target` is free: a new name, or an empty folder."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(
            f"{target} is there already", where=str(target.absolute()), expected="a new folder", mend="name another"
        )


def card_text(bank: Bank, report: BankReport) -> str:
    """README.md: YAML for the hub and for `datasets`, then the card for people."""
    size = next((name for limit, name in SIZES if report.questions < limit), "n>1M")
    card = bank.card
    return f"""---
pretty_name: {json.dumps(card.title, ensure_ascii=False)}
license: {card.licence.lower()}
language:
- {card.language}
size_categories:
- {size}
tags:
- audio
- benchmark
- torus
configs:
- config_name: questions
  default: true
  data_files:
  - split: test
    path: {QUESTIONS}
- config_name: tests
  data_files:
  - split: test
    path: {TESTS}
---

# {card.title}

{card.about}

**{verified(bank)}** Name `{card.name}`, licence {card.licence}, order seed {card.order_seed}. The bank's hash is
`{bank.hash}`; `torus bank import` refuses a folder whose content has another.

Each test renders a scene, edits it twice and asks three six-option questions about each of its three clips. A model is
shown the prompt when it renders, and the question and its options when it answers. All else is sealed: specs,
transcripts, keys and answers must reach neither the model nor its training data.

## Tables

- `questions`: a row a question. `options` in the order in which they are shown, A first; `letter` is the right one.
- `tests`: a row a test with everything that it holds: seed, and for each stage prompt, spec, transcript and questions
  (options in the author's order), and provenance. `human_verified_by` is null until a person has verified the test.

```python
from datasets import load_dataset
questions = load_dataset("path/to/this/folder", "questions", split="test")

import polars
questions = polars.read_parquet("path/to/this/folder/{QUESTIONS}")
```

`torus bank import path/to/this/folder my_bank` makes a bank's folder of it that `torus run --bank my_bank` takes.

## Statistics

{statistics(bank, report)}"""
