"""Building an environment: a virtual environment holding exactly what its lock says, made once a machine.

It is built where it will stand (a virtual environment does not survive a move) and counts only once its marker is
there, written last: whatever ends a build before that leaves a folder that the next build starts over.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torus_ray.engine.env_spec import (
    EnvironmentSpec,
    Source,
    env_digest,
    environment_path,
    environments_root,
    interpreter,
)
from torus_ray.errors import InputError, TorusError

MARKER = ".complete"
Progress = Callable[[str], None]


class EnvironmentStop(TorusError):
    """An environment cannot be made or used on this machine; once that is mended the same command goes on."""

    exit_code: ClassVar[int] = 3


@dataclass(frozen=True)
class Built:
    """A complete environment. seconds: what building took, back then if `reused`."""

    name: str
    digest: str
    path: Path
    python: Path
    python_version: str
    ray_version: str
    seconds: float
    reused: bool


def built(spec: EnvironmentSpec, root: Path | None = None) -> Built | None:
    """The environment as it stands complete under `root`, or None. Reads one small file."""
    path = environment_path(spec, root or environments_root())
    try:
        facts = json.loads((path / MARKER).read_text(encoding="utf-8"))
        return Built(
            name=spec.name,
            digest=facts["digest"],
            path=path,
            python=path / "bin" / "python",
            python_version=facts["python"],
            ray_version=facts["ray"],
            seconds=facts["seconds"],
            reused=True,
        )
    except (OSError, ValueError, KeyError):
        return None


def build(spec: EnvironmentSpec, root: Path | None = None, progress: Progress | None = None) -> Built:
    """Build the environment if it is not complete; one builder at a time, others wait for it.

    progress gets short lines for a person. Raises InputError where there is nothing to build, else EnvironmentStop.
    """
    root = (root or environments_root()).absolute()
    say = progress or (lambda line: None)
    if spec.kind != "venv":
        raise InputError(
            f"environment {spec.name} is of kind {spec.kind}: there is nothing to build",
            where=spec.where,
            expected='kind = "venv"',
            mend="`torus run` uses it as it is",
        )
    if ready := built(spec, root):
        return ready
    with _told(spec, root):
        root.mkdir(parents=True, exist_ok=True)
        with _only_builder(spec, root, say) as lock:
            return built(spec, root) or _build(spec, root, lock, say)


def _build(spec: EnvironmentSpec, root: Path, lock: int, say: Progress) -> Built:
    started = time.monotonic()
    path, python = environment_path(spec, root), interpreter(spec, root)
    if path.exists():
        say(f"{spec.name}: an earlier build was interrupted, starting over")
        shutil.rmtree(path)
    uv = Uv(spec, root, lock, say)
    base = getattr(sys, "_base_executable", None) or sys.executable
    say(f"{spec.name}: building in {path}")
    uv.run("venv", "--python", base, "--no-project", str(path))
    wheels = ["--no-build"] if spec.wheels_only else []
    constraints = spec.inputs.build_constraints if spec.inputs else ()
    # Beside the environments: what a killed builder leaves lies with its half-built one, not in the temporary folder.
    with _requirements(constraints, root) as file:
        build_constraints = ["--build-constraints", str(file)] if constraints else []
        sync = ["pip", "sync", "--python", str(python), "--require-hashes", *wheels, *build_constraints]
        uv.run(*sync, str(spec.lock_file))
        for source in spec.sources:
            _add_source(source, path, python, uv, build_constraints)
    facts = json.loads(uv.ask(python, "-c", _FACTS))
    seconds = round(time.monotonic() - started, 2)
    _write_marker(path, {"digest": env_digest(spec), **facts, "seconds": seconds})
    say(f"{spec.name}: ready after {seconds:.1f} s")
    return Built(
        name=spec.name,
        digest=env_digest(spec),
        path=path,
        python=python,
        python_version=facts["python"],
        ray_version=facts["ray"],
        seconds=seconds,
        reused=False,
    )


_FACTS = """
import importlib.metadata, json, platform
print(json.dumps({"python": platform.python_version(), "ray": importlib.metadata.version("ray")}))
"""


def _add_source(source: Source, path: Path, python: Path, uv: Uv, build_constraints: Sequence[str]) -> None:
    """A repository at its commit, without its dependencies: those are in the lock."""
    if source.how == "install":
        part = f"#subdirectory={source.folder}" if source.folder else ""
        line = f"git+{source.git}@{source.commit}{part}"
        uv.run("pip", "install", "--python", str(python), "--no-deps", *build_constraints, line)
        return
    clone = path / "src" / source.name
    uv.tool("git", "init", "--quiet", str(clone))
    uv.tool("git", "-C", str(clone), "fetch", "--quiet", "--depth", "1", source.git, source.commit)
    uv.tool("git", "-C", str(clone), "checkout", "--quiet", "FETCH_HEAD")
    packages = next((path / "lib").glob("python3.*/site-packages"))
    (packages / f"_source_{source.name}.pth").write_text(f"{clone / source.folder}\n", encoding="utf-8")


def _write_marker(path: Path, facts: dict[str, object]) -> None:
    temporary = path / f"{MARKER}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path / MARKER)


@contextlib.contextmanager
def _only_builder(spec: EnvironmentSpec, root: Path, say: Progress) -> Iterator[int]:
    """Hold the environment's lock file; yields its descriptor.

    uv inherits the descriptor, so the lock outlives a builder that was killed while its uv still writes.
    """
    file = os.open(root / f".{environment_path(spec, root).name}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{spec.name}: another process is building it, waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _told(spec: EnvironmentSpec, root: Path) -> Iterator[None]:
    """A file system that refuses is told as what it means for the environment."""
    try:
        yield
    except OSError as error:
        cause = next((cause for cause in _CAUSES if re.search(cause.pattern, str(error))), None)
        raise EnvironmentStop(
            f"environment {spec.name} cannot be built: {error.strerror or error}",
            where=str(error.filename or root),
            expected=cause.expected if cause else "a folder that can be written to",
            mend=cause.mend if cause else "set TORUS_ENVS to a folder of yours (the same path on every node)",
        ) from error


@contextlib.contextmanager
def _requirements(lines: Sequence[str], folder_for_it: Path | None = None) -> Iterator[Path]:
    """A temporary requirements file."""
    with tempfile.TemporaryDirectory(prefix=".torus-env-", dir=folder_for_it) as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        yield file


# --- running uv -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cause:
    """A way in which a build fails, known by what uv says."""

    pattern: str
    what: str
    expected: str
    mend: str


_CAUSES = (
    _Cause(
        r"(?i)hash mismatch|hashes? (did|do) not match|missing hash",
        "a package is not the one that was locked",
        "files with the hashes of the lock",
        "if the registry or mirror is trusted, make the lock anew (`torus env lock NAME`) and read what changed in it",
    ),
    _Cause(
        r"(?i)no space left|disk quota|os error 28|os error 122",
        "the disk is full",
        "room for the packages, here and in uv's cache",
        "make room, or set TORUS_ENVS (environments) and UV_CACHE_DIR (downloads) to a larger disk",
    ),
    _Cause(
        r"(?i)dns error|failed to lookup|name resolution|error sending request|connection (refused|reset)|network is"
        r" unreachable|timed out|could not connect|tcp connect|client error \(connect\)|network connectivity is"
        r" disabled",
        "the package index cannot be reached",
        "a network, or the packages in uv's cache",
        "connect, or name a mirror (UV_DEFAULT_INDEX); what was downloaded so far is kept and the same command goes on",
    ),
    _Cause(
        r"(?i)no solution found|not found in the package registry|no version of|no wheels|no usable wheels",
        "a locked package is not to be had for this machine",
        "every pin of the lock on the package index, for this platform",
        "make the lock anew on such a machine (`torus env lock NAME`)",
    ),
    _Cause(
        r"(?i)permission denied|read-only file system|os error 13|os error 30",
        "the folder cannot be written to",
        "a folder of yours",
        "set TORUS_ENVS to one (the same path on every node)",
    ),
)
_OTHER = _Cause("", "its packages cannot be installed", "uv ends without an error", "see what uv said above")


class Uv:
    """uv at work for one environment: its lines go to the progress, its errors become ours."""

    def __init__(self, spec: EnvironmentSpec, folder: Path, lock: int | None, say: Progress) -> None:
        self.spec, self.folder, self.lock, self.say = spec, folder, lock, say

    def run(self, *arguments: str) -> None:
        self._call([uv_binary(), *arguments], self.say)

    def tool(self, *command: str) -> None:
        if shutil.which(command[0]) is None:
            raise EnvironmentStop(
                f"environment {self.spec.name} has sources, which need {command[0]}",
                where=self.spec.where,
                expected=f"{command[0]} on PATH",
                mend=f"install {command[0]}",
            )
        self._call(command, self.say)

    def ask(self, python: Path, *arguments: str) -> str:
        return self._call([str(python), *arguments], self.say)

    def _call(self, command: Sequence[str], say: Progress) -> str:
        left_out = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_PROJECT_ENVIRONMENT")
        child = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=self.folder,
            env={key: value for key, value in os.environ.items() if key not in left_out},
            pass_fds=() if self.lock is None else (self.lock,),
            start_new_session=True,
        )
        tail: deque[str] = deque(maxlen=12)
        try:
            assert child.stdout is not None
            for line in map(str.rstrip, child.stdout):
                tail.append(line)
                if re.match(r"(Resolved|Prepared|Installed|Built) ", line):
                    say(f"{self.spec.name}: {line[0].lower()}{line[1:]}")
            code = child.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        if code:
            raise self._failed(command, "\n".join(tail), code)
        return "\n".join(tail)

    def _failed(self, command: Sequence[str], said: str, code: int) -> EnvironmentStop:
        cause = next((cause for cause in _CAUSES if re.search(cause.pattern, said)), _OTHER)
        told = "".join(f"\n    {line}" for line in said.splitlines() if line.strip())
        return EnvironmentStop(
            f"environment {self.spec.name} cannot be built: {cause.what} "
            f"(`{' '.join([Path(command[0]).name, *command[1:3]])}` ended with {code}){told}",
            where=self.spec.where,
            expected=cause.expected,
            mend=cause.mend.replace("NAME", self.spec.name),
        )


def uv_binary() -> str:
    """The uv that the project pins, else one on PATH. Raises EnvironmentStop."""
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise EnvironmentStop(
            "uv, which builds environments, is not installed",
            where=sys.executable,
            expected="the package uv beside torus-ray",
            mend="`pip install uv`",
        )
    return found


# --- locking ----------------------------------------------------------------------------------------------------------


def lock_environment(spec: EnvironmentSpec, progress: Progress | None = None) -> Path:
    """Compile the lock anew from [inputs] and put it in the old one's place; the path of the lock.

    Raises InputError where the file names no inputs, EnvironmentStop where they do not resolve: the old lock stays.
    """
    inputs = spec.inputs
    if inputs is None or spec.lock is None:
        raise InputError(
            f"environment {spec.name} says neither what its lock is made from nor where it lies",
            where=spec.where,
            expected='lock = "NAME.txt" and [inputs] with packages = [...]',
            mend="add both",
        )
    with contextlib.ExitStack() as stack:

        def option(name: str, lines: Sequence[str]) -> list[str]:
            return [name, str(stack.enter_context(_requirements(lines)))] if lines else []

        packages = stack.enter_context(_requirements(inputs.packages))
        output = packages.parent / "lock.txt"
        platform = ["--universal"] if inputs.platform == "universal" else ["--python-platform", inputs.platform]
        Uv(spec, packages.parent, None, progress or (lambda line: None)).run(
            *("pip", "compile", str(packages), "--output-file", str(output), "--python-version", spec.python),
            *("--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate", "--quiet"),
            *platform,
            *option("--excludes", inputs.excludes),
            *option("--overrides", inputs.overrides),
            *option("--build-constraints", inputs.build_constraints),
            *(["--exclude-newer", inputs.exclude_newer] if inputs.exclude_newer else []),
        )
        header = (
            f"# Made by `torus env lock {spec.name}` from {spec.name}.toml; what is here is all that is installed.\n"
        )
        temporary = spec.lock_file.with_suffix(".tmp")
        temporary.write_text(header + output.read_text(encoding="utf-8"), encoding="utf-8")
        temporary.replace(spec.lock_file)
    return spec.lock_file
