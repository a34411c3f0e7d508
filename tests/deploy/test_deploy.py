"""What lies under deploy/ is what Kubernetes, Slurm and Ray take; neither of the first two is there to try it."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from torus_ray.cli.until import deadline_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RAYJOB = DEPLOY / "kuberay" / "rayjob.yaml"
SCHEMA = Path(__file__).parent / "kuberay" / "rayjob-v1.schema.json.gz"
SCRIPTS = sorted((DEPLOY / "slurm").glob("*.sbatch"))


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return strict(json.loads(gzip.decompress(SCHEMA.read_bytes())))


@pytest.fixture
def rayjob() -> dict[str, Any]:
    return yaml.safe_load(RAYJOB.read_text(encoding="utf-8"))


def strict(schema: Any) -> Any:
    """Kubernetes drops a field that it does not know without a word; here that is an error."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(part) for key, part in schema.items()}
    closed = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    if closed and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made


def mistakes(rayjob: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    found = jsonschema.Draft202012Validator(schema).iter_errors(rayjob)
    return [f"{error.json_path}: {error.message}" for error in found]


def test_the_rayjob_is_what_its_schema_says(rayjob: dict[str, Any], schema: dict[str, Any]) -> None:
    assert mistakes(rayjob, schema) == []
    assert rayjob["metadata"]["generateName"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "entrypont"), "torus run"),
        (("spec", "backoffLimit"), "1"),
        (("spec", "rayClusterSpec", "headGroupSpec", "rayStartParams"), {"num-cpus": 0}),
        (("spec", "rayClusterSpec", "authOptions", "mode"), "tokens"),
        (("spec", "rayClusterSpec", "headGroupSpec", "template", "spec", "containers"), [{"image": "x"}]),
    ],
)
def test_a_mistake_in_it_would_show(path: tuple[str, ...], value: Any, rayjob: dict[str, Any], schema: Any) -> None:
    place = rayjob
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert mistakes(rayjob, schema)


def test_the_rayjob_says_what_the_docs_ask_of_a_job(rayjob: dict[str, Any]) -> None:
    spec = rayjob["spec"]
    command = shlex.split(spec["entrypoint"])
    assert command[0].startswith("/"), "an absolute interpreter"
    assert command[1] == "run"
    assert command[command.index("--results") + 1].startswith("/")
    left_s = deadline_of(command[command.index("--deadline") + 1], now=0.0)
    assert left_s + 600 <= spec["activeDeadlineSeconds"]
    assert spec["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    pinned = re.search(r'"ray\[default\]==([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert pinned
    assert spec["rayClusterSpec"]["rayVersion"] == pinned[1]


def test_each_pod_mounts_only_what_it_has(rayjob: dict[str, Any]) -> None:
    for pod in pods(rayjob):
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def pods(rayjob: dict[str, Any]) -> Iterator[dict[str, Any]]:
    cluster = rayjob["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        yield group["template"]["spec"]


# --- Slurm ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_batch_script_is_bash_and_asks_for_a_signal_in_time(script: Path) -> None:
    checked = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, timeout=20)
    assert (checked.returncode, checked.stderr) == (0, "")
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/bash\n")
    assert re.search(r"^#SBATCH --signal=B:TERM@\d+$", text, re.MULTILINE)
    assert "set -euo pipefail" in text


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """What Slurm gives to a job on two nodes, and a checkout whose commands write down how they were called."""
    log = f'printf "%s\\n" "$(basename "$0") $*" >> {tmp_path}/called'
    commands = {
        ".venv/bin/torus": "trap 'exit 3' TERM; touch $HOME/running; for i in {1..200}; do sleep 0.1; done; exit 1",
        ".venv/bin/ray": "exec sleep 60",
        ".venv/bin/python": "cat > /dev/null",
        "slurm/srun": 'while [[ $1 == --* ]]; do shift; done; exec "$@"',
        "slurm/scontrol": "printf 'n1\\nn2\\n'",
    }
    for name, body in commands.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/bash\n{log}\n{body}\n", encoding="utf-8")
        file.chmod(0o755)
    return {
        "PATH": f"{tmp_path}/slurm:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "TZ": "UTC",
        "HEAD_IP": "10.0.0.1",
        "SLURM_SUBMIT_DIR": str(tmp_path),
        "SLURM_JOB_END_TIME": "4102444800",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "n[1-2]",
    }


def ended_in_time(script: str, slurm: dict[str, str]) -> list[str]:
    """The commands that a script called; it is sent SIGTERM when torus runs, and ends as torus does."""
    home = Path(slurm["HOME"])
    with subprocess.Popen(["bash", str(DEPLOY / "slurm" / script), "pocket", "--limit", "2"], env=slurm) as job:
        for _ in range(600):
            if (home / "running").exists() or job.poll() is not None:
                break
            time.sleep(0.05)
        job.terminate()
        assert job.wait(20) == 3
    return (home / "called").read_text(encoding="utf-8").splitlines()


def test_one_node_runs_the_command_until_the_end_of_the_job(slurm: dict[str, str]) -> None:
    (called,) = ended_in_time("one-node.sbatch", slurm)
    results = f"--results {slurm['SLURM_SUBMIT_DIR']}/results"
    assert called == f"torus run pocket --limit 2 {results} --address local --deadline 2100-01-01T00:00:00"


def test_several_nodes_join_one_head_and_no_command_line_shows_the_token(slurm: dict[str, str]) -> None:
    called = ended_in_time("several-nodes.sbatch", slurm)
    head, other = sorted((line for line in called if line.startswith("srun")), key=lambda line: "--head" not in line)
    assert "--nodelist=n1 " in head
    assert "--head --port=20007" in head
    assert "--nodelist=n2 " in other
    assert "--address=10.0.0.1:20007" in other
    assert len([line for line in called if line.startswith("ray start --block")]) == 2
    assert any(line == "python - 10.0.0.1:20007 2" for line in called)
    driver = next(line for line in called if line.startswith("torus"))
    assert driver.endswith("--address 10.0.0.1:20007 --deadline 2100-01-01T00:00:00")
    assert not re.search(r"[0-9a-f]{32}", "\n".join(called))
