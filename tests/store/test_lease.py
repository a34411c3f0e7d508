from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from torus_ray.store.errors import RunHeld, StoreError
from torus_ray.store.lease import take_lease

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from pathlib import Path
from torus_ray.store.lease import take_lease
lease = take_lease(Path(sys.argv[1]))
print(lease.epoch, flush=True)
time.sleep(60)
"""


def test_a_second_opening_in_one_process_is_refused(tmp_path: Path) -> None:
    lease = take_lease(tmp_path / "run")
    with pytest.raises(RunHeld, match=f"process {os.getpid()} .this very process."):
        take_lease(tmp_path / "run")
    lease.release()
    lease.release()
    assert take_lease(tmp_path / "run").epoch == 2


def test_another_process_holds_the_run_until_it_dies(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "1\n"
    with pytest.raises(RunHeld) as held:
        take_lease(tmp_path)
    assert f"process {holder.pid}" in held.value.message
    assert held.value.where == str(tmp_path)
    assert f"kill {holder.pid}" in held.value.mend
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert take_lease(tmp_path).epoch == 2


def test_the_epoch_is_above_every_part_ever_written(tmp_path: Path) -> None:
    folder = tmp_path / "tables" / "answers"
    folder.mkdir(parents=True)
    (folder / "000041-000003.parquet").touch()
    (tmp_path / "lock").write_text("half a json")
    lease = take_lease(tmp_path)
    assert lease.epoch == 42
    assert json.loads((tmp_path / "lock").read_text())["epoch"] == 42


def test_a_lock_that_was_removed_is_noticed(tmp_path: Path) -> None:
    lease = take_lease(tmp_path)
    lease.check()
    (tmp_path / "lock").unlink()
    other = take_lease(tmp_path)
    with pytest.raises(StoreError, match="lock of this run is gone"):
        lease.check()
    other.check()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        take_lease(tmp_path / "run")
