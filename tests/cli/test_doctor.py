"""The doctor command: devices, the memory that a run needs, and warnings."""

import importlib.util
import itertools
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

import jax
import pytest

from alphagat.cli import doctor
from alphagat.runtime import sharding
from alphagat.training import diagnosis
from tests.training.tiny import tiny_config, write_config


def test_prints_versions_devices_and_all_reduce_speed(capsys):
    assert doctor.run(["--megabytes", "0.1"]) == 0
    said = capsys.readouterr().out
    for words in ("jax ", "cpu:7", "mean of 0.1 MB over 8 devices", "GB/s per device"):
        assert words in said


def test_the_speed_of_a_mean_counts_what_each_device_sends(monkeypatch):
    times = itertools.count()
    monkeypatch.setattr(diagnosis, "time", SimpleNamespace(perf_counter=lambda: float(next(times))))
    seconds, speed = diagnosis.measure_all_reduce(sharding.make_mesh(8), 1.0)
    assert seconds == 1
    assert speed == 2 * 7 / 8 * 1e6


def test_the_mean_has_the_size_of_the_command(monkeypatch, capsys):
    monkeypatch.setattr(diagnosis, "measure_all_reduce", lambda mesh, megabytes: (1e-3 * mesh.size, 1e9 * megabytes))
    assert doctor.run(["--megabytes", "0.5"]) == 0
    assert "mean of 0.5 MB over 8 devices: 8.00 ms, 0.50 GB/s per device\n" in capsys.readouterr().out


def test_a_run_is_examined_on_its_devices(tmp_path, monkeypatch):
    configured, config = [], tiny_config()
    config.mesh.data = 2
    monkeypatch.setattr(sharding, "configure_cpu_devices", configured.append)
    monkeypatch.setattr(diagnosis, "examine", lambda config: [])
    assert doctor.run(["--megabytes", "0.1", str(write_config(config, tmp_path / "tiny.py"))]) == 0
    assert configured == [2]


def test_devices_are_listed_with_the_memory_in_use(monkeypatch):
    statistics = {"bytes_limit": 80e9, "bytes_in_use": 1e9}
    device = SimpleNamespace(platform="gpu", id=3, device_kind="H100", memory_stats=lambda: statistics)
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert list(diagnosis.devices()) == [("gpu:3", "H100, 1.0 GB of 80.0 GB in use")]


def test_prints_the_memory_of_a_run(tmp_path, capsys):
    config_file = write_config(tiny_config(), tmp_path / "tiny.py")
    assert doctor.run(["--megabytes", "0.1", "--config", str(config_file)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"hex:2: an iteration needs [0-9.]+ kB on each of its devices", said)


def test_warnings_are_printed_as_they_are(capsys, monkeypatch):
    lines = ["pip install 'alphagat[cuda12]'", "the cache /tmp/[/x] :smile: cannot be written"]
    monkeypatch.setattr(diagnosis, "warnings", lambda: iter(lines))
    assert doctor.run(["--megabytes", "0.1"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [f"warning: {line}" for line in lines]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--megabytes", "0"], "--megabytes 0: it must be above 0"),
        (["--config.seed=1"], "--config.seed=1 needs a config"),
        (["smoke", "--workdir", "runs/x"], "--workdir is not a flag of this command; see --help"),
        (["--config", "configs/smoke", "--config.mesh.data=16", "--config.selfplay.num_groups=16"], "JAX has 8 cpu"),
    ],
)
def test_errors_give_one_line(flags, message, capsys):
    assert doctor.run(["--megabytes", "0.1", *flags] if "--megabytes" not in flags else flags) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


class Machine(NamedTuple):
    """What the warnings depend on; the defaults deserve none."""

    backend: str = "gpu"
    has_gpu: bool = True
    cores: int = 8
    environment: Mapping[str, str] = MappingProxyType({})
    has_kubernetes: bool = False
    can_write: bool = True
    free: float = 1e12


CACHE = {diagnosis.CACHE_VARIABLE: "/nothing"}
KUBERNETES = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
MACHINES = [
    (Machine(), ""),
    (Machine(backend="cpu"), "this machine has an NVIDIA GPU that JAX does not use"),
    (Machine(backend="cpu", has_gpu=False), ""),
    (Machine(environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "False"}), "XLA_PYTHON_CLIENT_PREALLOCATE=false makes"),
    (Machine(environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}), ""),
    (Machine("cpu", False, environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}), ""),
    (Machine("cpu", False, cores=1), "there is one CPU core"),
    (Machine(cores=1), ""),
    (Machine("cpu", False, cores=2), ""),
    (Machine(environment=KUBERNETES), "KUBERNETES_SERVICE_HOST is set, but the package kubernetes is missing"),
    (Machine(environment=KUBERNETES, has_kubernetes=True), ""),
    (Machine(environment=CACHE, can_write=False), "the compile cache /nothing cannot be written"),
    (Machine(environment=CACHE), ""),
    (Machine(can_write=False), ""),
    (Machine(free=1e8), "100.0 MB are free on the disk"),
]


@pytest.mark.parametrize(("machine", "warning"), MACHINES)
def test_warns_of_what_slows_or_stops_runs(machine: Machine, warning: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax, "default_backend", lambda: machine.backend)
    monkeypatch.setattr(Path, "glob", lambda *_: iter([Path("0")] if machine.has_gpu else []))
    monkeypatch.setattr(os, "cpu_count", lambda: machine.cores)
    monkeypatch.setattr(os, "environ", machine.environment)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: machine.has_kubernetes)
    monkeypatch.setattr(diagnosis, "_is_writable", lambda _: machine.can_write)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=machine.free))
    said = list(diagnosis.warnings())
    monkeypatch.undo()
    assert len(said) == bool(warning)
    assert all(line.startswith(warning) for line in said)
