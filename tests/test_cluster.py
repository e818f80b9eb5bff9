"""The Slurm script, with stand-ins for Slurm's programs, and the JobSet."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from alphagat.cli import launch
from alphagat.errors import REQUEUE, USER_ERROR
from alphagat.runtime.xla import CACHE_VARIABLE

CLUSTER = Path(__file__).parents[1] / "cluster"
SCRIPT = CLUSTER / "slurm.sh"
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


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    """Returns the spec of the job in the JobSet."""
    jobset = yaml.safe_load((CLUSTER / "jobset.yaml").read_text())
    (replicated,) = jobset["spec"]["replicatedJobs"]
    # A job that its own policy fails would otherwise be restarted by the JobSet.
    assert jobset["spec"]["failurePolicy"]["rules"] == [
        {"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    ]
    return replicated["template"]["spec"]


def test_a_mistake_ends_the_jobset_and_a_saved_run_goes_on(job):
    (container,) = job["template"]["spec"]["containers"]
    actions = {}
    for rule in job["podFailurePolicy"]["rules"]:
        assert rule["onExitCodes"]["containerName"] == container["name"]
        assert rule["onExitCodes"]["operator"] == "In"
        actions |= dict.fromkeys(rule["onExitCodes"]["values"], rule["action"])
    assert actions == {USER_ERROR: "FailJob", REQUEUE: "Ignore"}
    assert job["template"]["spec"]["restartPolicy"] == "Never"  # which such a policy needs


def test_pods_keep_their_compiled_programs(job):
    (container,) = job["template"]["spec"]["containers"]
    (variable,) = container["env"]
    (mount,) = container["volumeMounts"]
    assert variable["name"] == CACHE_VARIABLE
    assert Path(mount["mountPath"]) in Path(variable["value"]).parents
    assert container["imagePullPolicy"] == "IfNotPresent"


def test_every_launcher_gives_the_same_time_to_save(job):
    seconds = launch.make_parser().parse_args([]).grace_seconds
    assert job["template"]["spec"]["terminationGracePeriodSeconds"] == seconds
    assert re.findall(r"--signal=TERM@(\d+)$", SCRIPT.read_text(), re.MULTILINE) == [f"{seconds:.0f}"]
