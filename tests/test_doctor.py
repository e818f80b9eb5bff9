"""The doctor command: devices, the memory that a run needs, and warnings."""

import pytest

from alphagat import doctor
from alphagat.training import diagnosis
from tests.training.tiny import tiny_config, write_config


def test_prints_versions_devices_and_all_reduce_speed(capsys):
    assert doctor.run(["--megabytes", "0.1"]) == 0
    said = capsys.readouterr().out
    for words in ("jax ", "cpu:7", "mean of 0.1 MB over 8 device(s)", "GB/s per device"):
        assert words in said


def test_prints_the_memory_of_a_run(tmp_path, capsys):
    config_file = write_config(tiny_config(), tmp_path / "tiny.py")
    assert doctor.run(["--megabytes", "0.1", "--config", str(config_file)]) == 0
    said = capsys.readouterr().out
    assert "hex:2: an iteration needs 0.00 GB on each of its devices" in said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--megabytes", "0"], "--megabytes 0: it must be above 0"),
        (["--config.seed=1"], "--config.seed=1 needs --config FILE"),
        (["--config", "configs/smoke", "--config.mesh.data=16", "--config.selfplay.num_groups=16"], "there are 8 cpu"),
    ],
)
def test_errors_give_one_line(flags, message, capsys):
    assert doctor.run(["--megabytes", "0.1", *flags] if "--megabytes" not in flags else flags) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_warns_of_a_read_only_cache(monkeypatch):
    monkeypatch.setenv(diagnosis.CACHE_VARIABLE, "/proc/nothing/cache")
    monkeypatch.setattr(diagnosis, "_is_writable", lambda folder: False)
    assert any("/proc/nothing/cache cannot be written" in line for line in diagnosis.warnings())
    monkeypatch.setattr(diagnosis, "_is_writable", lambda folder: True)
    assert not any("cannot be written" in line for line in diagnosis.warnings())
