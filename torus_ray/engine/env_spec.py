"""An environment as its file describes it, and what Ray is told to use it.

One TOML file an environment, its lock beside it::

    about = "what it is for"
    python = "3.11"
    lock = "pocket.txt"                 # every package with its hashes; nothing else is installed
    imports = ["faster_whisper"]        # tried before a host starts

    [inputs]                            # what `torus env lock` compiles the lock from
    packages = ["ray==2.60.0", "numpy", "soundfile", "soxr", "faster-whisper==1.2.1"]

Kinds other than the default `venv` are for trying things (`uv`, `pip`: packages layered over the driver's; `inherit`:
the driver's interpreter as it is) and for clusters that run images (`image`).
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.metadata
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from torus_ray.errors import InputError

Kind = Literal["venv", "uv", "pip", "image", "inherit"]

EVERYWHERE = ("ray", "numpy", "soundfile", "soxr")
"""What every environment holds: a host needs them to read requests and clips (torus_ray.heads, torus_ray.audio)."""

_RESERVED_VARIABLES: Mapping[str, str] = {
    "CUDA_VISIBLE_DEVICES": "Ray gives each host its GPUs, a value here would win over it and share a card by mistake",
}


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(_Strict):
    """A repository that no registry has, at a commit.

    how: `install` installs it without its dependencies; `path` puts the clone on sys.path. folder: which part of it.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    git: str
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    how: Literal["install", "path"] = "install"
    folder: str = ""


class Inputs(_Strict):
    """What the lock is compiled from.

    excludes: packages that others declare but that must not come (a lock is installed without resolving again).
    overrides: requirements that win over what packages declare. build_constraints: pins for building sdists.
    exclude_newer: a date; only releases before it count. platform: `universal`, or one that uv knows.
    """

    packages: Annotated[tuple[str, ...], Field(min_length=1)]
    excludes: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    build_constraints: tuple[str, ...] = ()
    exclude_newer: str | None = None
    platform: str = "universal"


class EnvironmentSpec(_Strict):
    """An environment. name: its file's stem; file: that file; lock_text: the lock's content, "" where there is none.

    packages: what the kinds `uv` and `pip` add when they have no lock. image: the image of the kind `image`.
    env_vars: set in every host. imports: modules that a host needs. licences: package -> licence that asks something of
    whoever passes the environment on. wheels_only: nothing is compiled while building.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)]
    file: Path | None = None
    lock_text: str = ""

    about: str = ""
    kind: Kind = "venv"
    python: Annotated[str, Field(pattern=r"^3\.\d+$")] = f"{sys.version_info[0]}.{sys.version_info[1]}"
    lock: str | None = None
    packages: tuple[str, ...] = ()
    image: str | None = None
    sources: tuple[Source, ...] = ()
    env_vars: dict[str, str] = Field(default_factory=dict)
    imports: tuple[str, ...] = ()
    wheels_only: bool = True
    licences: dict[str, str] = Field(default_factory=dict)
    inputs: Inputs | None = None

    @property
    def where(self) -> str:
        return str(self.file) if self.file else f"environment {self.name}"

    @property
    def lock_file(self) -> Path:
        """Where the lock lies. Only for an environment that has one."""
        if self.file is None or self.lock is None:
            raise ValueError(f"environment {self.name} has no lock file")
        return self.file.parent / self.lock


INHERIT = EnvironmentSpec(name="inherit", kind="inherit", about="the interpreter that runs torus, as it is")


# --- finding and reading ----------------------------------------------------------------------------------------------


def environments_folder() -> Path:
    """Where environment files are looked for by name: in the installed package, else the checkout's runtime_envs."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_data" / "runtime_envs"
    return installed if installed.is_dir() else package.parent / "runtime_envs"


def environment_files(folder: Path | None = None) -> dict[str, Path]:
    """Every environment file by name."""
    return {path.stem: path for path in sorted((folder or environments_folder()).glob("*.toml"))}


def find_environment(reference: str, folder: Path | None = None, *, with_lock: bool = True) -> EnvironmentSpec:
    """The environment of a name (`pocket`, `inherit`) or of a path to its TOML file. Raises InputError.

    with_lock: False reads the file alone, for making a lock that is not there or is wrong.
    """
    if reference == INHERIT.name:
        return INHERIT
    if reference.endswith(".toml"):
        return load_environment(Path(reference), with_lock=with_lock)
    files = environment_files(folder)
    if reference not in files:
        close = difflib.get_close_matches(reference, files, n=1)
        raise InputError(
            f"no environment is called {reference!r}" + (f"; did you mean {close[0]!r}?" if close else ""),
            where=str(folder or environments_folder()),
            expected="one of " + ", ".join([*files, INHERIT.name]) + ", or a path to a .toml file",
            mend="`torus env list` shows them",
        )
    return load_environment(files[reference], with_lock=with_lock)


def load_environment(file: Path, *, with_lock: bool = True) -> EnvironmentSpec:
    """Read and check one environment file and its lock. Raises InputError that names the file, the line where known."""
    file = file.absolute()
    text = _read(file, "an environment file")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"the environment file is not TOML: {error}", where=str(file), expected="TOML", mend="mend that line"
        ) from error
    own = {"name": file.stem, "file": file}
    try:
        spec = EnvironmentSpec.model_validate({**data, **{key: own.get(key, "") for key in ("name", "file")}})
        if clash := data.keys() & {"name", "file", "lock_text"}:
            raise InputError(
                f"{', '.join(sorted(clash))} cannot be set: the file's name is the environment's",
                where=_at(file, text, min(clash)),
                expected="no such key",
                mend="remove the line",
            )
    except ValidationError as error:
        raise _mistakes(error, file, text) from error
    _check(spec, text)
    if spec.lock is None or not with_lock:
        return spec
    locked = spec.model_copy(update={"lock_text": _read(spec.lock_file, f"the lock of environment {spec.name}")})
    _check_lock(locked)
    return locked


def _read(file: Path, what: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        mend = f"`torus env lock {file.stem}` makes a lock" if file.suffix == ".txt" else "check the path"
        raise InputError(f"{what} is missing", where=str(file), expected="a text file", mend=mend) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{what} cannot be read: {error}", where=str(file), expected="a UTF-8 text file", mend="check the file"
        ) from error


def _at(file: Path, text: str, key: str) -> str:
    """file:line of the first line that sets a key."""
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"""\s*\[?["']?{re.escape(key)}["']?\s*[=\].]""", line):
            return f"{file}:{number}"
    return str(file)


def _mistakes(error: ValidationError, file: Path, text: str) -> InputError:
    first = error.errors()[0]
    key = str(first["loc"][-1]) if first["loc"] else ""
    if isinstance(first["loc"][-1] if first["loc"] else "", int):
        key = str(first["loc"][0])
    told = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
    return InputError(
        f"the environment file has {error.error_count()} mistake(s): {told}",
        where=_at(file, text, key),
        expected="the keys "
        + ", ".join(k for k in EnvironmentSpec.model_fields if k not in ("name", "file", "lock_text")),
        mend="mend or remove what is named",
    )


def _check(spec: EnvironmentSpec, text: str) -> None:
    """What one field alone cannot say."""
    file = spec.file or Path(spec.where)
    for variable, why in _RESERVED_VARIABLES.items():
        if variable in spec.env_vars:
            raise InputError(
                f"an environment may not set {variable}: {why}",
                where=_at(file, text, variable),
                expected="no such variable in env_vars",
                mend=f"remove it; to keep torus to some cards, set {variable} before `torus run` or `ray start`",
            )
    needs = {"venv": ("lock",), "uv": ("lock", "packages"), "pip": ("lock", "packages"), "image": ("image",)}
    wanted = needs.get(spec.kind, ())
    if wanted and not any(getattr(spec, key) for key in wanted):
        raise InputError(
            f"an environment of kind {spec.kind} says what it installs",
            where=_at(file, text, "kind"),
            expected=" or ".join(f"`{key}`" for key in wanted),
            mend=f"add `{wanted[0]} = ...`",
        )
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if spec.python != minor:
        raise InputError(
            f"environment {spec.name} wants Python {spec.python}",
            where=_at(file, text, "python"),
            expected=f"{minor}, as the driver: Ray wants one minor version in a cluster",
            mend=f'python = "{minor}" and a lock made for it, or run torus on Python {spec.python}',
        )


# --- locks ------------------------------------------------------------------------------------------------------------

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)\s*(?:;(.*?))?\s*(?:--hash=.*)?$")


def requirement_lines(lock_text: str) -> list[str]:
    """The logical lines of a lock: continuations joined, comments and blank lines gone."""
    joined = re.sub(r"\\\r?\n\s*", "", lock_text)
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def pins(lock_text: str) -> list[tuple[str, str, str]]:
    """(name, version, marker) of each package of a lock, in its order; names in lower case with dashes."""
    found = (_PIN.match(line) for line in requirement_lines(lock_text))
    return [(re.sub(r"[-_.]+", "-", m[1]).lower(), m[2], (m[3] or "").strip()) for m in found if m]


def _check_lock(spec: EnvironmentSpec) -> None:
    relock = f"`torus env lock {spec.name}` makes it anew"
    for line in requirement_lines(spec.lock_text):
        pin = _PIN.match(line)
        if pin is None or "--hash=" not in line:
            raise InputError(
                f"the lock of environment {spec.name} has a line that is no hashed pin: {line[:100]!r}",
                where=str(spec.lock_file),
                expected="name==version with its --hash, and no index or find-links line",
                mend=relock,
            )
    found: dict[str, set[str]] = {}
    for name, version, _ in pins(spec.lock_text):
        found.setdefault(name, set()).add(version)
    layered = spec.kind in ("uv", "pip")  # these stand on the driver's packages
    if missing := [name for name in EVERYWHERE if name not in found and not layered]:
        raise InputError(
            f"the lock of environment {spec.name} lacks {', '.join(missing)}",
            where=str(spec.lock_file),
            expected="ray, numpy, soundfile and soxr in every environment",
            mend=f"add them to [inputs] packages; {relock}",
        )
    driver = importlib.metadata.version("ray")
    if found.get("ray", {driver}) != {driver}:
        raise InputError(
            f"environment {spec.name} locks ray {', '.join(sorted(found['ray']))}",
            where=str(spec.lock_file),
            expected=f"ray=={driver}, as the driver",
            mend=f'"ray=={driver}" in [inputs] packages; {relock}',
        )


# --- identity and place -----------------------------------------------------------------------------------------------


def env_digest(spec: EnvironmentSpec) -> str:
    """sha256 of what is installed: kind, Python, the lock's lines, sources, packages, image.

    env_vars, comments, imports and the file's place do not count: they change nothing in the folder.
    """
    content = {
        "kind": spec.kind,
        "python": spec.python,
        "lock": requirement_lines(spec.lock_text),
        "sources": [source.model_dump() for source in spec.sources],
        "packages": list(spec.packages),
        "image": spec.image,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def environments_root() -> Path:
    """Where environments are built: $TORUS_ENVS, else ~/.cache/torus-ray/envs. The same literal path on all nodes."""
    chosen = os.environ.get("TORUS_ENVS")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".cache" / "torus-ray" / "envs"


def environment_path(spec: EnvironmentSpec, root: Path) -> Path:
    return root / f"{spec.name}-{env_digest(spec)[:12]}"


def interpreter(spec: EnvironmentSpec, root: Path) -> Path:
    """The python of a built environment; the current one for the kinds that stand on it."""
    return environment_path(spec, root) / "bin" / "python" if spec.kind == "venv" else Path(sys.executable)


def compile_runtime_env(spec: EnvironmentSpec, *, root: Path) -> dict[str, Any]:
    """The runtime_env with which Ray starts an actor in this environment. Pure: touches no disk."""
    compiled = _COMPILERS[spec.kind](spec, root)
    return {**compiled, "env_vars": dict(spec.env_vars)} if spec.env_vars else compiled


def _added(spec: EnvironmentSpec) -> tuple[list[str], bool]:
    """What is layered over the driver's packages, and whether it is a complete lock. ray is the driver's own."""
    locked = [
        f"{name}=={version}" + (f" ; {marker}" if marker else "")
        for name, version, marker in pins(spec.lock_text)
        if name != "ray"
    ]
    return locked or list(spec.packages), bool(locked)


def _uv(spec: EnvironmentSpec, _root: Path) -> dict[str, Any]:
    packages, locked = _added(spec)
    # Ray's own default, --no-cache, would download everything again in every session.
    return {"uv": {"packages": packages, "uv_pip_install_options": ["--no-deps"] if locked else []}}


def _pip(spec: EnvironmentSpec, _root: Path) -> dict[str, Any]:
    return {"pip": {"packages": _added(spec)[0], "pip_check": False}}


_COMPILERS: Mapping[str, Callable[[EnvironmentSpec, Path], dict[str, Any]]] = {
    "venv": lambda spec, root: {"py_executable": str(interpreter(spec, root))},
    "uv": _uv,
    "pip": _pip,
    "image": lambda spec, _root: {"image_uri": spec.image},
    "inherit": lambda _spec, _root: {},
}
