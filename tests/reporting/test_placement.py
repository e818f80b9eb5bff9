"""Drawings of shardings: one rectangle per shard, labeled with its devices."""

import re

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from alphagat.reporting.placement import draw_placement
from alphagat.runtime import sharding

SHARDINGS = {
    "replicated": (PartitionSpec(), ["0-7"]),
    "rows": (PartitionSpec("data"), ["0 1", "2 3", "4 5", "6 7"]),
    "columns": (PartitionSpec(None, "model"), ["0 2 4 6", "1 3 5 7"]),
    "both": (PartitionSpec("data", "model"), ["0", "1", "2", "3", "4", "5", "6", "7"]),
}


@pytest.mark.parametrize(("spec", "expected"), SHARDINGS.values(), ids=SHARDINGS.keys())
def test_shards_and_their_devices(spec, expected):
    array = jax.device_put(np.zeros((8, 4)), NamedSharding(sharding.make_mesh(4, 2), spec))
    drawing = draw_placement(array)
    assert re.findall(r">([^<>\n]+)</text>", drawing) == expected
    sizes = [(float(w), float(h)) for w, h in re.findall(r'<rect [^>]*width="(\S+)" height="(\S+)"', drawing)]
    assert len(set(sizes)) == 1
    assert len(sizes) == len(expected)


def test_the_sharded_axis_is_always_shown():
    array = jax.device_put(np.zeros((2, 3, 8)), NamedSharding(sharding.make_mesh(8), PartitionSpec(None, None, "data")))
    assert re.findall(r">(\d)</text>", draw_placement(array)) == list("01234567")


def test_scalars_and_vectors():
    mesh = sharding.make_mesh(2)
    for shape, spec, parts in (((), PartitionSpec(), 1), ((4,), PartitionSpec("data"), 2)):
        assert draw_placement(jax.device_put(np.zeros(shape), NamedSharding(mesh, spec))).count("<rect") == parts
