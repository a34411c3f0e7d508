"""Runs the tests of the Hugging Face heads, each file where its packages are.

    .venv/bin/python -m tests.actors.hf.environments [PYTEST ARGUMENTS]

Three environments stand for three models: the whole lock `modern`, and two made of less of it. The cascade's judge runs
in its own, `api`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.actors.measures.environments import FOLDER, for_tests, make, run_pytest, variables
from tests.engine.systems import toml
from torus_ray.engine.env_spec import pins, requirement_lines
from torus_ray.engine.environments import EnvironmentSpec, build, find_environment, load_environment

HERE = Path(__file__).parent
MODERN = "modern"
SAMPLER = ("torchsde", "trampoline")
LESS = {
    "hf-editor": (*SAMPLER, "torchvision", "librosa"),
    "hf-listener": (*SAMPLER, "torchvision", "librosa", "diffusers", "accelerate"),
}
"""Environment -> packages of `modern` that are not in it."""
IN_MODERN = ("test_listeners.py", "test_generators.py", "test_contract.py")
IN_CORE = ("test_cards.py", "test_on_ray.py", "test_cascade.py")


def smaller(name: str) -> EnvironmentSpec:
    """`modern` without some packages, built."""
    whole = for_tests(MODERN)
    kept = [line for line in requirement_lines(whole.lock_text) if pins(line)[0][0] not in LESS[name]]
    file = FOLDER / f"{name}.toml"
    file.with_suffix(".txt").write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    content = {"lock": file.with_suffix(".txt").name, "wheels_only": False, "env_vars": whole.env_vars}
    file.write_text("".join(f"{key} = {toml(value)}\n" for key, value in content.items()), encoding="utf-8")
    os.environ["UV_FIND_LINKS"] = str(FOLDER)
    spec = load_environment(file)
    build(spec, progress=lambda line: print(line, flush=True))
    return spec


def main(arguments: list[str]) -> int:
    spec, python = make(MODERN)
    codes = [run_pytest(str(python), [str(HERE / file) for file in IN_MODERN], arguments, variables(spec))]
    build(find_environment("api"), progress=lambda line: print(line, flush=True))
    codes.append(run_pytest(sys.executable, [str(HERE / file) for file in IN_CORE], arguments, dict(os.environ)))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
