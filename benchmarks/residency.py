"""How often hosts are loaded on one GPU: the cases of DESIGN 5, counted, on real Ray actors and a GPU that Ray is told
of.

    .venv/bin/python -m benchmarks.residency [--tests 4] [--out FILE.md]

Every case runs the whole protocol through the real executor, runner and store. A load is an actor that was started;
what each said of its device is read from `attempts`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bank_10k import write_bank
from benchmarks.lanes import runs_on
from torus_ray.bank.load import Bank, load_bank
from torus_ray.engine.cluster import Cluster
from torus_ray.engine.code import stage_code
from torus_ray.engine.hosts import HostPlan
from torus_ray.engine.session import RunOptions, run_system
from torus_ray.engine.sites import Actor, RaySite
from torus_ray.protocol.graph import Arm
from torus_ray.store.reader import current_rows
from torus_ray.systems import System, read_card, with_measures

ROOT = Path(__file__).resolve().parents[1]
TOY = ROOT / "tests" / "engine" / "models" / "toy.py"
GENERATOR, LISTENER = ("generate", "edit"), ("caption", "answer")


@dataclass(frozen=True)
class Case:
    """hosts: operations of each, all with `gpus` of the one GPU. measuring: the share of a host that measures."""

    name: str
    arm: str
    gpus: float
    hosts: Mapping[str, tuple[str, ...]]
    expected: tuple[str, ...]
    measuring: float | None = None


PAIR = {"G": GENERATOR, "U": LISTENER}
CASES = (
    Case("one host", "self-caption", 1.0, {"A": (*GENERATOR, *LISTENER)}, ("A",)),
    Case("two hosts that fit together", "self-caption", 0.5, PAIR, ("G", "U")),
    Case("two that exclude each other", "native", 1.0, PAIR, ("G", "U")),
    Case("two that exclude each other", "self-caption", 1.0, PAIR, ("G", "U") * 3),
    Case("the same, and one that measures", "native", 1.0, PAIR, ("G", "U", "gauge.M"), 1.0),
    Case("the same, and one that measures", "self-caption", 1.0, PAIR, (*("G", "U") * 3, "gauge.M"), 1.0),
)


@dataclass
class CountingSite(RaySite):
    """The Ray that is there; which hosts were loaded, in order."""

    loads: list[str] = field(default_factory=list)

    def actor(self, plan: HostPlan) -> Actor:
        self.loads.append(plan.name)
        return super().actor(plan)


def system_of(case: Case, folder: Path) -> System:
    made = _card(folder, "toy", {name: (operations, case.gpus, "{}") for name, operations in case.hosts.items()})
    if case.measuring is None:
        return made
    gauge = _card(folder, "gauge", {"M": (("measure",), case.measuring, '{ measures = { toy8 = ["kl"] } }')})
    return with_measures(made, [gauge])


def _card(folder: Path, name: str, hosts: Mapping[str, tuple[tuple[str, ...], float, str]]) -> System:
    lines = [f'name = "{name}"', f'title = "{name}"']
    for host, (operations, gpus, head) in hosts.items():
        lines += [f"[hosts.{host}]", f'adapter = "{TOY}:Toy"', f"num_cpus = 0.5\nnum_gpus = {gpus}\nmemory_gb = 0.2"]
        lines += [f"heads = {{ {', '.join(f'{operation} = {head}' for operation in operations)} }}"]
    path = folder / f"{name}.system.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_card(path)


def count(case: Case, bank: Bank, folder: Path, places: Mapping[Path, str]) -> tuple[list[str], list[str]]:
    """The loads of one run, and the devices that its calls ran on."""
    site = CountingSite()

    def plans(system: System) -> Mapping[str, HostPlan]:
        return {name: HostPlan(host, places[host.folder], 16) for name, host in system.hosts.items()}

    with runs_on(site, plans):
        result = run_system(system_of(case, folder), bank, RunOptions(folder, bank.tests, (Arm(case.arm),)))  # type: ignore[arg-type]
    if set(result.by_status) != {"ok"}:
        raise SystemExit(f"{case.name}: not every unit is ok: {result.by_status}")
    devices = current_rows(result.runs[case.arm], "attempts", ["device"])["device"].unique().sort().to_list()
    return site.loads, devices


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=4)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    lines = ["| hosts on one GPU | arm | loads | in the order | as expected | devices |", "|---|---|---|---|---|---|"]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="torus-code-") as code, tempfile.TemporaryDirectory() as name:
        write_bank(Path(name) / "bank", asked.tests)
        bank = load_bank(Path(name) / "bank")
        hosts = system_of(CASES[-1], Path(name)).hosts
        staged = stage_code(Path(code), hosts)
        places = {host.folder: staged[name] for name, host in hosts.items()}
        cluster = Cluster(Path(code), num_cpus=2, num_gpus=1)
        cluster.start()
        try:
            for number, case in enumerate(CASES):
                folder = Path(name) / str(number)
                folder.mkdir()
                loads, devices = count(case, bank, folder, places)
                found = sorted(loads) if case.gpus < 1 else loads
                right = tuple(found) == case.expected
                wrong += not right
                order = " ".join(loads)
                lines.append(
                    f"| {case.name} | {case.arm} | {len(loads)} | {order} | {'yes' if right else 'NO'} "
                    f"| {', '.join(devices)} |"
                )
                print(lines[-1], flush=True)
        finally:
            cluster.stop()
    text = "\n".join(lines)
    print("\n" + text)
    if asked.out:
        asked.out.write_text(text + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
