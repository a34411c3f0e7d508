"""Does an environment work on this machine? Asked before any actor is started in it.

Ray reports neither a missing interpreter nor an environment without ray: the actor stays pending for ever and keeps its
GPU. So the interpreter is started as a child first, under a deadline, and everything that a host needs is tried in it.

Standard library only, plain dicts in and out: the same function runs in the driver and in a Ray task on any node.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

DEADLINE_S = 25.0
"""Whole preflight; a failure must be told within 30 s."""

Problem = dict[str, str]

_MARK = "torus-preflight "

# Run by the environment's own interpreter: Python 3.9, nothing of ours. Libraries may print, so our lines carry a mark.
_PROBE = """
import importlib, importlib.util, json, os, sys
ask = json.loads(sys.argv[1])
def say(**line):
    sys.stdout.write("\\n" + ask["mark"] + json.dumps(line) + "\\n")
    sys.stdout.flush()
say(step="python", version=".".join(map(str, sys.version_info[:3])))
for file in ask["package_files"]:
    package, _, inner = file.partition(":")
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    folders = list(spec.submodule_search_locations or []) if spec else []
    if not any(os.path.exists(os.path.join(folder, inner)) for folder in folders):
        say(step="no_file", name=file, folders=folders)
for name in ask["imports"]:
    say(step="importing", name=name)
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        say(step="failed", name=name, error=type(error).__name__ + ": " + str(error)[:600])
    else:
        say(step="imported", name=name, version=str(getattr(module, "__version__", "")))
say(step="done")
"""


def run_preflight(request: Mapping[str, Any]) -> dict[str, Any]:
    """Try one environment; never raises for what is wrong with it.

    request:
        name, file: the environment and where it is described; python: its interpreter, "" for the one that runs this.
        marker: a file that a complete build leaves, or "" where nothing is built; build: the command that builds it.
        python_minor, ray: what the driver runs, e.g. "3.11" and "2.60.0".
        imports: modules to import beside ray, numpy, soundfile and soxr.
        files: paths that must exist, absolute or "package:path/inside/it".
        num_gpus, gpu_memory_gib: what a replica asks for; memory 0 means its share of the card.
        env_vars: as a host would get them. deadline_s: seconds for all of it.
    Returns {python_version, ray_version, versions: {module: version}, gpus: [...], seconds, problems}; a problem is
    {what, where, expected, mend}.
    """
    started = time.monotonic()
    request = {**request, "python": request["python"] or sys.executable}
    deadline_s = float(request.get("deadline_s") or DEADLINE_S)
    answer: dict[str, Any] = {"python_version": "", "ray_version": "", "versions": {}, "gpus": []}
    files = [str(file) for file in request.get("files") or ()]
    problems = [_no_file(request, file) for file in files if not _inside_package(file) and not os.path.exists(file)]

    missing = _missing_interpreter(request)
    if missing:
        problems.insert(0, missing)
    else:
        problems += _probe(request, [file for file in files if _inside_package(file)], deadline_s, answer)
    num_gpus = float(request.get("num_gpus") or 0.0)
    if num_gpus > 0:
        gpus, gpu_problems = _gpus(request, num_gpus)
        answer["gpus"] = gpus
        problems += gpu_problems
    answer["seconds"] = round(time.monotonic() - started, 3)
    answer["problems"] = problems
    return answer


def _problem(what: str, where: str, expected: str, mend: str) -> Problem:
    return {"what": what, "where": where, "expected": expected, "mend": mend}


def _inside_package(file: str) -> bool:
    return ":" in file and not os.path.isabs(file)


def _no_file(request: Mapping[str, Any], file: str, folders: Sequence[str] = ()) -> Problem:
    where = file if os.path.isabs(file) else f"{file} (looked in {', '.join(folders) or 'no such package'})"
    return _problem(
        f"a weight file of environment {request['name']} is missing",
        where,
        "a file or a folder",
        "`torus weights fetch` for weights of your own, "
        f"`{request.get('build') or 'reinstall'}` for weights that come in a package",
    )


def _missing_interpreter(request: Mapping[str, Any]) -> Problem | None:
    python, marker, build = request["python"], request.get("marker") or "", request.get("build") or ""
    if marker and not os.path.isfile(marker):
        begun = os.path.isdir(os.path.dirname(marker))
        return _problem(
            f"environment {request['name']} is {'only half built' if begun else 'not built'} on {os.uname().nodename}",
            os.path.dirname(marker),
            "a complete build of the locked packages",
            f"`{build}` on that machine (the same path on every node)",
        )
    if not os.path.isfile(python):
        return _problem(
            f"environment {request['name']} has no interpreter on {os.uname().nodename}",
            python,
            "a Python interpreter",
            f"remove the folder and `{build}`" if build else "check the path",
        )
    return None


def _probe(
    request: Mapping[str, Any], package_files: list[str], deadline_s: float, answer: dict[str, Any]
) -> list[Problem]:
    imports = list(dict.fromkeys(["ray", "numpy", "soundfile", "soxr", *(request.get("imports") or ())]))
    ask = json.dumps({"mark": _MARK, "imports": imports, "package_files": package_files})
    environ = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "VIRTUAL_ENV")}
    environ.update({str(key): str(value) for key, value in (request.get("env_vars") or {}).items()})
    try:
        child = subprocess.Popen(
            [request["python"], "-c", _PROBE, ask],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=os.sep,  # -c puts the folder it stands in on sys.path: a checkout there must not stand in for a package
            env=environ,
            start_new_session=True,
        )
    except OSError as error:
        return [_not_python(request, f"{type(error).__name__}: {error.strerror or error}")]
    timed_out = False
    try:
        out, err = child.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        _end(child)
        out, err = child.communicate()
    stdout, stderr = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
    lines = [json.loads(line[len(_MARK) :]) for line in stdout.splitlines() if line.startswith(_MARK)]
    return _read(request, lines, answer, timed_out, deadline_s, child.returncode, stderr)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and what it started; it leads its own process group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        child.kill()


def _read(
    request: Mapping[str, Any],
    lines: list[dict[str, Any]],
    answer: dict[str, Any],
    timed_out: bool,
    deadline_s: float,
    code: int,
    stderr: str,
) -> list[Problem]:
    """What the probe's lines say, filled into the answer; the problems in them."""
    steps: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        steps.setdefault(line["step"], []).append(line)
    if "python" not in steps:
        cause = f"no answer within {deadline_s:g} s" if timed_out else f"exit code {code}{_tail(stderr)}"
        return [_not_python(request, cause)]
    answer["python_version"] = steps["python"][0]["version"]
    answer["versions"] = {line["name"]: line["version"] for line in steps.get("imported", ())}
    answer["ray_version"] = answer["versions"].get("ray", "")

    problems = _versions(request, answer)
    problems += [_no_file(request, line["name"], line["folders"]) for line in steps.get("no_file", ())]
    problems += [_no_import(request, line["name"], line["error"]) for line in steps.get("failed", ())]
    if "done" not in steps:
        last = steps["importing"][-1]["name"] if "importing" in steps else "the first package"
        cause = f"was not done within {deadline_s:g} s" if timed_out else f"ended the process ({_how(code)})"
        problems.append(_no_import(request, last, f"importing it {cause}{_tail(stderr)}"))
    return problems


def _versions(request: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Problem]:
    problems: list[Problem] = []
    mend = f"lock environment {request['name']} again and build it, or run the driver on what it has"
    minor = ".".join(answer["python_version"].split(".")[:2])
    if minor != request["python_minor"]:
        problems.append(
            _problem(
                f"environment {request['name']} runs Python {answer['python_version']}",
                request["python"],
                f"Python {request['python_minor']}, as the driver: Ray wants one minor version in a cluster",
                mend,
            )
        )
    if answer["ray_version"] and answer["ray_version"] != request["ray"]:
        problems.append(
            _problem(
                f"environment {request['name']} has ray {answer['ray_version']}",
                request["python"],
                f"ray {request['ray']}, as the driver",
                mend,
            )
        )
    return problems


def _not_python(request: Mapping[str, Any], cause: str) -> Problem:
    build = request.get("build") or ""
    return _problem(
        f"the interpreter of environment {request['name']} does not start: {cause}",
        request["python"],
        f"Python {request['python_minor']}",
        f"remove the folder and `{build}`" if build else "check the path",
    )


def _no_import(request: Mapping[str, Any], name: str, error: str) -> Problem:
    return _problem(
        f"environment {request['name']} cannot import {name}: {error}",
        request["python"],
        f"`import {name}` works",
        f"add it to {request['file']}, lock and build again"
        if request.get("file")
        else f"install {name} into that interpreter",
    )


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _tail(stderr: str, lines: int = 8) -> str:
    last = [line for line in stderr.strip().splitlines() if line.strip()][-lines:]
    return "".join(f"\n    {line}" for line in last)


# --- GPU memory -------------------------------------------------------------------------------------------------------

_SMI_S = 4.0
_FREE_SHARE = 0.9
"""Of the share that a replica is promised, what must be free: the driver itself keeps some of every card."""


def _gpus(request: Mapping[str, Any], num_gpus: float) -> tuple[list[dict[str, Any]], list[Problem]]:
    """The visible GPUs [{index, free_gib, total_gib}] and what is wrong. Without nvidia-smi nothing is known."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return [], []
    query = [tool, "--query-gpu=index,uuid,memory.free,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_SMI_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        problem = _problem(
            f"nvidia-smi does not answer: {type(error).__name__}",
            tool,
            f"a list of GPUs within {_SMI_S:g} s",
            "look at the driver of that machine (`nvidia-smi`, `dmesg`)",
        )
        return [], [problem]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus: list[dict[str, Any]] = []
    for line in done.stdout.strip().splitlines():
        index, uuid, free, total = (part.strip() for part in line.split(","))
        if not (free.isdigit() and total.isdigit()):  # "[N/A]" on cards that share memory with the machine
            continue
        if visible is None or {index, uuid} & {part.strip() for part in visible.split(",")}:
            gpus.append({"index": index, "free_gib": int(free) / 1024, "total_gib": int(total) / 1024})
    share = min(1.0, num_gpus)
    asked = float(request.get("gpu_memory_gib") or 0.0)
    fit = [gpu for gpu in gpus if gpu["free_gib"] >= (asked or _FREE_SHARE * share * gpu["total_gib"])]
    if gpus and len(fit) < math.ceil(num_gpus):
        found = ", ".join(f"GPU {gpu['index']}: {gpu['free_gib']:.1f} of {gpu['total_gib']:.1f} GiB" for gpu in gpus)
        want = f"{asked:g} GiB" if asked else f"{_FREE_SHARE * share:.0%} of a card"
        problem = _problem(
            f"too little free GPU memory for a host in environment {request['name']} ({found} free)",
            os.uname().nodename,
            f"{want} free on {math.ceil(num_gpus)} GPU(s)",
            "end what holds it (`nvidia-smi` lists the processes), or lower num_gpus in the card",
        )
        return gpus, [problem]
    return gpus, []
