"""Device selection in notebooks."""

import functools

import pytest

from alphagat import notebook
from alphagat.errors import UserError


@pytest.fixture(autouse=True)
def keep_the_cache_unchanged(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_describes_the_devices(device):
    assert notebook.use_device(device) == "8 CPU devices"
    assert notebook.use_device(device) == "8 CPU devices"  # a cell may run twice


def test_the_compiler_is_prepared_as_for_commands(monkeypatch):
    called = []
    for name in ("keep_loops_on_gpu", "use_cache"):
        monkeypatch.setattr(notebook.xla, name, functools.partial(called.append, name))
    notebook.use_device()
    assert called == ["keep_loops_on_gpu", "use_cache"]


@pytest.mark.parametrize(
    ("device", "num_cpu_devices", "message"),
    [
        ("tpu", 0, "DEVICE='tpu': use one of auto, cpu, gpu"),
        ("gpu", 0, "DEVICE='gpu': JAX finds none"),
        ("cpu", 4, "DEVICE='cpu': JAX already uses 8 CPU devices; restart the kernel"),
        ("cpu", -1, "num_cpu_devices=-1: it must be an integer, at least 0 and at most 4096"),
        ("cpu", 10**6, "num_cpu_devices=1000000: it must be an integer, at least 0"),
        ("cpu", "x", "num_cpu_devices='x': it must be an integer, at least 0"),
    ],
)
def test_unavailable_devices_raise(device, num_cpu_devices, message):
    with pytest.raises(UserError) as caught:
        notebook.use_device(device, num_cpu_devices)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
