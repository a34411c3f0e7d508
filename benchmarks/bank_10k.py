"""What a bank of 10,000 tests costs: loading it, checking it by words alone, and with sentence embeddings.

    .venv/bin/python benchmarks/bank_10k.py [--tests 10000] [--folder DIR] [--only load,lexical,cold,cached]

The bank is the project's own, varied mechanically and good for nothing else: test n is a copy of one of ours in which
two words in three are exchanged, throughout the test, for others of our own words. Each step runs in a process of its
own; its memory is the largest resident set of that process, the interpreter and the packages it imports included. CPU
seconds stand beside seconds because a machine that does other things as well stretches the latter only.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SEED = 3
EXCHANGED = 2 / 3
WORD = re.compile(r"[a-z]{4,}")
LIMITS_S = {"load": 5, "lexical": 60, "cold": 30 * 60, "cached": 60}
LOAD_LIMIT_MB = 500

STEP = """
import json, resource, sys, time
from pathlib import Path
from torus_ray.bank.load import load_bank
import torus_ray.bank.check, torus_ray.bank.embeddings
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
step, folder, cache = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
def now(): return time.perf_counter(), time.process_time()
start, cpu = now()
bank = load_bank(folder)
end, cpu_end = now()
told = {"load_s": end - start, "load_cpu_s": cpu_end - cpu, "load_mb": peak(), "tests": len(bank.tests)}
if step != "load":
    embed = torus_ray.bank.embeddings.load_embedder(cache=cache) if step != "lexical" else None
    start, cpu = now()
    report = torus_ray.bank.check.check_bank(bank, embed=embed)
    end, cpu_end = now()
    told |= {"check_s": end - start, "check_cpu_s": cpu_end - cpu, "check_mb": peak()}
print(json.dumps(told))
"""


def vary(test: dict[str, Any], number: int, vocabulary: list[str]) -> dict[str, Any]:
    """A copy of `test` with other words; one word is exchanged for one and the same other in the whole test."""
    rng = random.Random(f"{SEED}|{number}")
    words = sorted({word for text in texts_of(test) for word in WORD.findall(text)})
    moved = dict(zip(words, rng.sample(vocabulary, len(words)), strict=True))
    exchanged = {word: other for word, other in moved.items() if rng.random() < EXCHANGED and other not in moved}

    def changed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: changed(entry, name) for name, entry in value.items()}
        if isinstance(value, list):
            return [changed(entry, key) for entry in value]
        told = isinstance(value, str) and key not in ("id", "family", "audio_type", "author", "written")
        return WORD.sub(lambda found: exchanged.get(found.group(), found.group()), value) if told else value

    copy: dict[str, Any] = changed(test)
    return {**copy, "id": f"{test['id']}-{number:05d}"}


def texts_of(value: Any) -> list[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for entry in inner for text in texts_of(entry)]


def write_bank(folder: Path, tests: int) -> None:
    """The varied bank in `folder`."""
    source = ROOT / "bank" / "torus_open_48"
    originals = [json.loads(file.read_text()) for file in sorted(source.glob("*-*.json"))]
    vocabulary = sorted({word for test in originals for text in texts_of(test) for word in WORD.findall(text)})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bank.json").write_bytes((source / "bank.json").read_bytes())
    for number in range(tests):
        test = vary(originals[number % len(originals)], number, vocabulary)
        (folder / f"{test['id']}.json").write_text(json.dumps(test, indent=2, ensure_ascii=False) + "\n")


def measured(step: str, folder: Path, cache: Path) -> dict[str, float]:
    """What STEP prints for one step, run in a process of its own."""
    command = [sys.executable, "-c", STEP, step, str(folder), str(cache)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{step}: {done.stderr}")
    told: dict[str, float] = json.loads(done.stdout)
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="keep the bank there, and take it from there the next time")
    parser.add_argument("--only", default=",".join(LIMITS_S), help="the steps to run")
    given = parser.parse_args()
    within = True
    with tempfile.TemporaryDirectory(prefix="torus-bank-") as scratch:
        folder = given.folder or Path(scratch) / "bank"
        if not (folder / "bank.json").exists():
            write_bank(folder, given.tests)
        print("| step | seconds | CPU seconds | limit | MB at most |\n|---|---|---|---|---|")
        for step in given.only.split(","):
            told = measured(step, folder, Path(scratch) / "embeddings")
            kind = "load" if step == "load" else "check"
            seconds, cpu, memory = told[f"{kind}_s"], told[f"{kind}_cpu_s"], told[f"{kind}_mb"]
            limit = f"{LIMITS_S[step]}" + (f", {LOAD_LIMIT_MB} MB" if step == "load" else "")
            step_of = f"{step}, {told['tests']:.0f} tests"
            print(f"| {step_of} | {seconds:.1f} | {cpu:.1f} | {limit} | {memory:.0f} |", flush=True)
            within &= seconds < LIMITS_S[step] and (step != "load" or memory < LOAD_LIMIT_MB)
    return 0 if within else 1


if __name__ == "__main__":
    raise SystemExit(main())
