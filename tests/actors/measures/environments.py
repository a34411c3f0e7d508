"""Runs the tests of the measuring heads, each file in its head's own environment.

    .venv/bin/python -m tests.actors.measures.environments [PYTEST ARGUMENTS]

The locks in runtime_envs name PyPI's torch, which brings CUDA, about 3 GB. Where pip finds a CPU build of the same
release on this disk, the environments are built from the same locks with that build in its place and without what only
CUDA needs: every other package is the locked one. Where there is none, they are built as locked.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.engine.systems import toml
from torus_ray.engine.env_spec import pins, requirement_lines
from torus_ray.engine.environments import EnvironmentSpec, build, find_environment, load_environment

REPOSITORY = Path(__file__).parents[3]
HERE = Path(__file__).parent
FOLDER = REPOSITORY / ".venv" / "measures"
TOOLS = REPOSITORY / ".venv" / "pytest-for-models"
"""pytest, which stands beside the environments and never in them (Makefile)."""
TORCH = "2.13.0"
CUDA_ONLY = re.compile(r"(nvidia|cuda)-|triton$")
BESIDE = {
    # What frechet-audio-distance loads from a repository by torch.hub, as PyPI has it.
    "metrics-parity": "torchvggish==0.2 --hash=sha256:fc4d7cc17db557867bf793625f8897f0fc0c6877be737df26ee7d9df6e4ce35f",
}
FILES = {
    "metrics-asr-clap": ("test_whisper.py", "test_clap.py"),
    "metrics-passt": ("test_passt.py",),
    "metrics-vggish": ("test_vggish.py",),
    "metrics-parity": ("test_parity.py",),
}
IN_CORE = ("test_cards.py", "test_on_ray.py", "../test_contract.py")


def cpu_torch() -> Path | None:
    """A CPU build of torch that pip has on this disk, or None. Nothing is downloaded."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for python in (sys.executable, getattr(sys, "_base_executable", sys.executable)):
        if found := list(FOLDER.glob(f"torch-{TORCH}+cpu-*.whl")):
            return found[0]
        command = [python, "-m", "pip", "download", "--no-index", "--no-deps", "--dest", str(FOLDER), f"torch=={TORCH}"]
        subprocess.run(command, check=False, capture_output=True)
    return next(iter(FOLDER.glob(f"torch-{TORCH}+cpu-*.whl")), None)


def for_tests(name: str) -> EnvironmentSpec:
    """The environment of a head as tests use it; where it is another than the locked one, its file lies in FOLDER."""
    spec = find_environment(name)
    wheel = cpu_torch()
    if wheel is None:
        return spec
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lines = [f"torch=={TORCH}+cpu --hash=sha256:{digest}"]
    lines += [BESIDE[name]] if name in BESIDE else []
    for line in requirement_lines(spec.lock_text):
        package = pins(line)[0][0]
        if package != "torch" and not CUDA_ONLY.match(package):
            lines.append(line)
    file = FOLDER / f"{name}-cpu.toml"
    file.with_suffix(".txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    content = {
        "lock": file.with_suffix(".txt").name,
        "wheels_only": False,
        "env_vars": {**spec.env_vars, "TORUS_SELF_TESTS": str(FOLDER / "self-tests")},
        "inputs": {"packages": ["torch"], "build_constraints": ["setuptools<81"]},
    }
    file.write_text("".join(f"{key} = {toml(value)}\n" for key, value in content.items()), encoding="utf-8")
    return load_environment(file)


def make(name: str) -> tuple[EnvironmentSpec, Path]:
    """The environment built, and its interpreter."""
    spec = for_tests(name)
    os.environ["UV_FIND_LINKS"] = str(FOLDER)
    built = build(spec, progress=lambda line: print(line, flush=True))
    if spec.name != name:
        _without_compiled_operators(built.path)
    return spec, built.python


def _without_compiled_operators(environment: Path) -> None:
    """torchaudio's and torchvision's own libraries are linked against CUDA and end the import. No head calls what is in
    them; their Python code stays as it is, but for the list that describes those operators to torch."""
    packages = next((environment / "lib").glob("python3.*/site-packages"))
    for library in [*packages.glob("torchaudio/lib/*.so"), *packages.glob("torchvision/*.so")]:
        library.unlink()
    described = packages / "torchvision" / "_meta_registrations.py"
    if described.exists() and described.stat().st_size:
        described.unlink()  # uv hard-links files to its cache: written over, it would change there
        described.write_text("", encoding="utf-8")


def variables(spec: EnvironmentSpec) -> dict[str, str]:
    """What a process of the tests in an environment is started with."""
    return {**os.environ, **spec.env_vars, "PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY, TOOLS)))}


def main(arguments: list[str]) -> int:
    codes = []
    for name, files in FILES.items():
        spec, python = make(name)
        codes.append(run_pytest(str(python), [str(HERE / file) for file in files], arguments, variables(spec)))
    codes.append(run_pytest(sys.executable, [str(HERE / file) for file in IN_CORE], arguments, dict(os.environ)))
    return max(codes)


def run_pytest(python: str, files: list[str], arguments: list[str], env: dict[str, str]) -> int:
    began = time.monotonic()
    names = " ".join(Path(file).name for file in files)
    command = [python, "-m", "pytest", "-q", *files, *arguments]
    code = subprocess.run(command, cwd=REPOSITORY, env=env, check=False).returncode
    print(f"{names}: {time.monotonic() - began:.0f} s", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
