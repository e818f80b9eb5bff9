"""Tests the mesh: its number of devices, and the error when there are too few."""

import jax
import numpy as np
import pytest

from alphagat.errors import JointError, UserError
from alphagat.runtime import sharding
from tests.processes import as_processes


@pytest.mark.parametrize(("requested", "expected"), [(0, 8), (1, 1), (3, 3), (8, 8)])
def test_mesh_has_the_requested_devices(requested: int, expected: int):
    mesh = sharding.make_mesh(requested)
    assert mesh.size == expected
    assert dict(mesh.shape) == {"data": expected, "stage": 1, "model": 1}
    assert list(mesh.devices.flat) == jax.devices()[:expected]


def test_too_few_devices_raise():
    with pytest.raises(UserError, match=r"^config\.mesh\.data=9, but JAX has 8 cpu devices: set config"):
        sharding.make_mesh(9)


def test_devices_are_divided_among_the_axes():
    assert dict(sharding.make_mesh(0, 2).shape) == {"data": 4, "stage": 1, "model": 2}
    assert dict(sharding.make_mesh(2, 4).shape) == {"data": 2, "stage": 1, "model": 4}
    assert [device.id for device in sharding.make_mesh(2, 2).devices[0, 0]] == [0, 1]
    assert dict(sharding.make_mesh(0, 2, 2).shape) == {"data": 2, "stage": 2, "model": 2}
    with pytest.raises(UserError, match=r"config\.mesh\.data=3 times config\.mesh\.model=4, but JAX has 8 cpu"):
        sharding.make_mesh(3, 4)
    with pytest.raises(UserError, match=r"config\.mesh\.model=3 does not divide the 8 cpu"):
        sharding.make_mesh(0, 3)
    with pytest.raises(UserError, match=r"config\.mesh\.stage=2 times config\.mesh\.model=8, but JAX has 8 cpu"):
        sharding.make_mesh(0, 8, 2)


def test_no_device_of_several_processes_stays_idle(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert sharding.make_mesh(0).size == 8
    with pytest.raises(UserError, match=r"config\.mesh\.data=3 would leave devices of 2 processes idle: set it to 8"):
        sharding.make_mesh(3)


def test_initialized_devices_do_not_change():
    jax.devices()
    sharding.configure_cpu_devices(3)
    assert len(jax.devices()) == 8


def test_shardings():
    mesh = sharding.make_mesh(4)
    numbers = jax.numpy.arange(8)
    assert [len(x.data) for x in jax.device_put(numbers, sharding.sharded(mesh)).addressable_shards] == [2] * 4
    assert [len(x.data) for x in jax.device_put(numbers, sharding.replicated(mesh)).addressable_shards] == [8] * 4


def refuse(message: str):
    raise UserError(message)


@pytest.mark.parametrize(
    ("works", "expected"),
    [
        ([lambda: 5, lambda: 6], [5, 6]),
        ([lambda: refuse("früh"), lambda: refuse("late")], [("früh", True), ("früh", False)]),
        ([lambda: 5, lambda: refuse("a\udcff")], [("a\\udcff", False), ("a\\udcff", True)]),
        ([lambda: refuse(""), lambda: 5], [("", True), ("", False)]),
        ([lambda: 5, lambda: refuse("x" * 5000)], [("x" * 2000, False), ("x" * 2000, True)]),
    ],
)
def test_processes_agree_on_a_mistake(monkeypatch, works, expected):
    assert as_processes(monkeypatch, [lambda work=work: sharding.agree(work) for work in works]) == expected


def test_processes_with_equal_values_go_on(monkeypatch):
    works = [lambda: sharding.check_equal({"a": (1, 2), "b": "x\udcff"}, "fix")] * 3
    assert as_processes(monkeypatch, works) == [None] * 3


def test_the_first_value_that_differs_between_processes_is_named(monkeypatch):
    works = [
        lambda last=last: sharding.check_equal({"a": 1, "b": last, "c": last}, "make it equal") for last in (2, 2, 3)
    ]
    said = "b differs between the processes; make it equal"
    assert as_processes(monkeypatch, works) == [(said, True), (said, False), (said, False)]


def test_processes_share_their_largest_value(monkeypatch):
    assert sharding.largest(3.5) == 3.5
    works = [lambda value=value: sharding.largest(value) for value in (-2.0, 7.0, -np.inf)]
    assert as_processes(monkeypatch, works) == [7.0] * 3


def test_a_single_process_raises_its_own_error():
    with pytest.raises(UserError, match=r"^x$") as caught:
        sharding.agree(lambda: refuse("x"))
    assert not isinstance(caught.value, JointError)


def test_the_host_device_is_a_cpu_if_there_is_one(monkeypatch):
    assert sharding.host_device() == jax.local_devices(backend="cpu")[0]
    devices = jax.local_devices()

    def without_cpu(*, backend=None):
        if backend == "cpu":
            raise RuntimeError("Unknown backend cpu")
        return devices[3:]

    monkeypatch.setattr(jax, "local_devices", without_cpu)
    assert sharding.host_device() == devices[3]
