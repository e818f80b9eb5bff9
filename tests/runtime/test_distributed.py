"""Tests how processes join a run: flags, environment variables, and unreachable coordinators."""

import os
import socket
import subprocess
import sys

import pytest

from alphagat.errors import UserError
from alphagat.runtime import distributed

SLURM = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "2"}
KUBERNETES = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "3"}


@pytest.mark.parametrize(
    ("environment", "method"),
    [
        ({}, None),
        (SLURM, "slurm"),
        (SLURM | {"SLURM_NTASKS": "1"}, None),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}, None),  # the batch script, not one of its steps
        ({"OMPI_COMM_WORLD_SIZE": "2"}, "ompi"),
        ({"OMPI_COMM_WORLD_SIZE": "1"}, None),
    ],
)
def test_detects_the_launcher(environment, method):
    assert distributed.detect(environment) == method


@pytest.mark.parametrize("name", ["SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"])
@pytest.mark.parametrize("value", ["", "two", "-1", "2x", "²", "[" * 200_000, "9" * 5000])
def test_a_variable_that_is_no_number_is_refused(name: str, value: str):
    with pytest.raises(UserError, match=f"{name}='.*': it must be a number of processes") as refusal:
        distributed.detect((SLURM if name in SLURM else {}) | {name: value})
    assert len(str(refusal.value)) < 150


@pytest.mark.parametrize("index", ["²", "9" * 5000, "x"])
def test_an_invalid_rank_of_kubernetes_counts_as_missing(index: str):
    with pytest.raises(UserError, match="--node_rank missing"):
        distributed._named(4, None, "host:1234", KUBERNETES | {"JOB_COMPLETION_INDEX": index})


@pytest.mark.parametrize("installed", [False, True])
def test_kubernetes_needs_its_package(monkeypatch, installed):
    monkeypatch.setattr(distributed.importlib.util, "find_spec", lambda name: name if installed else None)
    assert distributed.detect(KUBERNETES) == ("k8s" if installed else None)


def test_flags_name_a_cluster():
    assert distributed._named(2, 1, "host:1234", {}) == distributed.Cluster(2, 1, "host:1234")
    assert distributed._named(4, None, "host:1234", KUBERNETES) == distributed.Cluster(4, 3, "host:1234")
    assert distributed._named(None, None, None, SLURM) is None


@pytest.mark.parametrize(
    ("nodes", "rank", "coordinator", "message"),
    [
        (2, 0, None, "--coordinator missing; a run of several processes needs --nodes, --node_rank, --coordinator"),
        (None, 0, None, "--nodes and --coordinator missing"),
        (0, 0, "a:1", "--nodes 0: it must be at least 1"),
        (2, 2, "a:1", "--node_rank 2: it must be 0 to 1, since --nodes is 2"),
        (2, -1, "a:1", "--node_rank -1: it must be 0 to 1"),
        (2, 1, "a", "--coordinator a: write HOST:PORT"),
        (2, 1, "a:0", "--coordinator a:0: write HOST:PORT"),
        (2, 1, "a:99999", "--coordinator a:99999: write HOST:PORT"),
        (2, 1, ":12", "--coordinator :12: write HOST:PORT"),
        (2, 1, "a..b:80", "--coordinator a..b:80: write HOST:PORT"),
        (2, 1, "a" * 64 + ":80", "write HOST:PORT"),
        (2, 1, "a:" + "1" * 5000, "write HOST:PORT"),
    ],
)
def test_invalid_flags_raise(nodes, rank, coordinator, message):
    with pytest.raises(UserError) as refusal:
        distributed.connect(nodes, rank, coordinator)
    assert message in str(refusal.value)


def test_an_unreachable_coordinator_raises_after_the_timeout():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match=f"--coordinator {address}: no answer after 1 s"):
            distributed.connect(2, 1, address, seconds=1)


def test_the_first_process_exits_after_the_timeout():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = f"from alphagat.runtime import distributed; distributed.connect(2, 0, {address!r}, seconds=2)"
    ended = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    error = f"error: --coordinator {address}: not all processes connected within 2 s; start the others, too"
    assert ended.stderr.splitlines()[-1] == error
    with subprocess.Popen([sys.executable, "-c", command], stderr=subprocess.PIPE) as unread:
        assert unread.stderr is not None
        unread.stderr.close()
    assert unread.returncode == 2


def test_a_port_in_use_raises(capsys):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refusal = f"--coordinator {address}: rank 0 cannot listen on port .* in use.*; name another port"
        with pytest.raises(UserError, match=refusal):
            distributed.connect(2, 0, address, seconds=1)
    assert f"waiting at {address} for 1 other process\n" in capsys.readouterr().err


def test_a_single_process_connects_to_nothing(monkeypatch):
    monkeypatch.setattr(distributed.os, "environ", {})
    distributed.connect(None, None, None)
    assert distributed.num_processes() == 1


CONNECTED = """
import jax
from jax._src import xla_bridge
from alphagat.runtime import distributed, sharding
distributed.connect(None, None, None)
sharding.configure_cpu_devices(8)
print(distributed.num_processes(), jax.device_count(), xla_bridge.CUDA_VISIBLE_DEVICES.value)
"""


@pytest.mark.parametrize(("visible", "chosen"), [("5", ["0", "0"]), ("4,5", ["0", "1"])])
def test_processes_of_slurm_have_all_cpu_devices_and_the_gpu_that_they_see(visible, chosen):
    """Slurm shows a task its own GPU, as the only one, or all GPUs of the node."""
    ports = range(65536 - 2**12, 65536)  # JAX takes the port 61,440 + job % 4,096
    job = next(port for port in ports if is_free(port)) - ports[0]
    cluster = {"SLURM_JOB_ID": str(job), "SLURM_NTASKS": "2", "SLURM_STEP_NODELIST": "localhost"}
    processes = []
    for rank in range(len(chosen)):
        task = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "CUDA_VISIBLE_DEVICES": visible}
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", CONNECTED], env=os.environ | cluster | task, stdout=subprocess.PIPE, text=True
            )
        )
    assert [process.communicate(timeout=120)[0] for process in processes] == [f"2 8 {number}\n" for number in chosen]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) != 0
