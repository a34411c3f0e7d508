"""Runs a released repository, with tiny random weights, behind its adapter and in its locked environment.

    .venv/bin/python -m tests.released CARD --checkout DIR [--scratch DIR] [--beside DIR]

DIR is a git directory of the repository (with or without a work tree) that has the commit named in runtime_envs. What
runs is a copy of that commit in the scratch folder; nothing of it is kept. The environment is built where it is
missing, several GB, by the code of `torus env build`, without the repository, which is the copy.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.released.cases import CASES, case
from torus_ray.engine.environments import build, find_environment
from torus_ray.engine.hosts import HostPlan
from torus_ray.systems import load_system

ROOT = Path(__file__).parents[2]


def copied(checkout: Path, commit: str, folder: Path) -> list[str]:
    """The files of a commit, written to `folder`. Returns those that the checkout lacks: a partial one has not all."""
    git = ["git", "-C", str(checkout)]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", commit], check=True, capture_output=True, text=True).stdout
    entries = [entry.split("\t", 1) for entry in listed.split("\0") if entry]
    objects = {path: described.split()[2] for described, path in entries}
    asked = "".join(f"{name}\n" for name in objects.values())
    known = subprocess.run([*git, "cat-file", "--batch-check"], input=asked, check=True, capture_output=True, text=True)
    absent = {line.split()[0] for line in known.stdout.splitlines() if line.endswith(" missing")}
    lacking = [path for path, name in objects.items() if name in absent]
    with tempfile.TemporaryFile() as archive:
        left_out = [f":(exclude,literal){path}" for path in lacking]
        # It complains of what is left out as well.
        subprocess.run(
            [*git, "archive", commit, "--", ".", *left_out], check=True, stdout=archive, stderr=subprocess.PIPE
        )
        archive.seek(0)
        with tarfile.open(fileobj=archive) as files:
            files.extractall(folder, filter="data")
    return lacking


def run(card: str, checkout: Path, scratch: Path, beside: Path | None = None) -> int:
    """Prove one card. Returns the exit status of what ran in its environment."""
    if (needed := case(card).BESIDE) and not (beside and all((beside / name).is_file() for name in needed)):
        print(f"{card} needs --beside, a folder with {', '.join(needed)}: code that comes with its weights")
        return 2
    host = next(iter(load_system(card).hosts.values()))
    spec = find_environment(card)
    (source,) = spec.sources
    folder = Path(tempfile.mkdtemp(prefix=f"{card}-", dir=scratch))
    lacking = copied(checkout, source.commit, folder / "source")
    print(f"{card}: {source.git} at {source.commit[:8]}; not in the checkout: {', '.join(lacking) or 'nothing'}")
    for name in needed if beside else ():
        target = folder / "source" / "beside" / name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(beside / name, target)
    for line in case(card).MADE_SMALL:
        print(f"  small: {line}")
    ready = build(spec.model_copy(update={"sources": ()}), progress=lambda line: print(f"  {line}", flush=True))
    (folder / "payload.json").write_text(json.dumps(HostPlan(host, str(host.folder), 16).payload()))
    command = [str(ready.python), "-P", str(Path(__file__).with_name("inside.py")), card, str(folder)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    variables = {**os.environ, **threads, **spec.env_vars, "PYTHONPATH": str(ROOT)}
    variables.update(CUDA_VISIBLE_DEVICES="", HF_HOME=str(folder / "hub"))
    return subprocess.run(command, cwd=folder, env=variables, check=False).returncode


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.released")
    parser.add_argument("card", choices=CASES)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, help="where it works; removed afterwards where none is named")
    parser.add_argument("--beside", type=Path, help="for ace-step: where the code lies that comes with its weights")
    given = parser.parse_args(arguments)
    if given.scratch:
        given.scratch.mkdir(parents=True, exist_ok=True)
        return run(given.card, given.checkout, given.scratch, given.beside)
    with tempfile.TemporaryDirectory(prefix="torus-released-") as scratch:
        return run(given.card, given.checkout, Path(scratch), given.beside)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
