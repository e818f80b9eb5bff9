"""The choice of a device: what there is, in words, and one line where it cannot be had."""

import pytest

from alphagat import notebook
from alphagat.errors import UserError


@pytest.fixture(autouse=True)
def keep_the_cache_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_what_there_is(device):
    assert notebook.use_device(device) == "8 CPU devices"
    assert notebook.use_device(device) == "8 CPU devices"  # as a cell that is run again


@pytest.mark.parametrize(
    ("device", "num_cpu_devices", "message"),
    [
        ("tpu", 0, "DEVICE='tpu': take one of auto, cpu, gpu"),
        ("gpu", 0, "DEVICE='gpu': JAX finds none"),
        ("cpu", 4, "DEVICE='cpu': JAX computes on 8 cpu device(s) already; restart the kernel"),
    ],
)
def test_what_cannot_be_had(device, num_cpu_devices, message):
    with pytest.raises(UserError) as caught:
        notebook.use_device(device, num_cpu_devices)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
