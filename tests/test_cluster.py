"""The Slurm script, with stand-ins for Slurm's programs."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "cluster" / "slurm.sh"
# As srun: with --kill-on-bad-exit=1, the first failure kills the other tasks. The status is the highest of all tasks.
SRUN = """#!/bin/bash
echo "$*" > srun_arguments
(sleep 0.2; exit "$STATUS") & slow=$!
(exit "$STATUS"); status=$?
[ "$1" = --kill-on-bad-exit=1 ] && [ $status -ne 0 ] && kill -9 $slow
wait $slow; last=$?
exit $((last > status ? last : status))
"""
SCONTROL = """#!/bin/bash
echo "$*" > scontrol_arguments
"""


@pytest.mark.parametrize(("status", "requeues"), [(0, False), (2, False), (75, True)])
def test_a_job_is_requeued_if_all_its_processes_were_preempted(tmp_path, status, requeues):
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "STATUS": str(status), "SLURM_JOB_ID": "17"}
    words = ["bash", str(SCRIPT), "a b.py", "/shared/c4", "--config.seed=3"]
    assert subprocess.run(words, cwd=tmp_path, env=environment, timeout=30).returncode == status
    arguments = (tmp_path / "srun_arguments").read_text()
    assert arguments.endswith("alphagat train --config a b.py --workdir /shared/c4 --config.seed=3\n")
    asked = tmp_path / "scontrol_arguments"
    assert (asked.read_text() if asked.exists() else "") == ("requeue 17\n" if requeues else "")
