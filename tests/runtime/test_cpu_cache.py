"""Batches are computed in parts that fit into the cache of a core, with the results of the whole batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.runtime.cpu_cache import POSITIONS_AT_ONCE, map_in_parts


@pytest.fixture
def seen():
    return []


@pytest.fixture
def double(seen: list):
    """A function that notes the size of each part."""

    def apply(batch: dict) -> tuple:
        seen.append(len(batch["x"]))
        return 2 * batch["x"], batch["y"].sum(axis=-1)

    return apply


def batch_of(size: int) -> dict:
    numbers = jnp.arange(size * 3, dtype=jnp.float32).reshape(size, 3)
    return {"x": jnp.arange(size), "y": numbers}


@pytest.mark.parametrize(("size", "part"), [(1, 1), (16, 16), (17, 9), (32, 16), (100, 15), (333, 16)])
def test_parts_give_the_results_of_the_whole_batch(double, seen, size: int, part: int):
    found = jax.jit(lambda batch: map_in_parts(double, batch))(batch_of(size))
    assert set(seen) == {part}
    assert part <= POSITIONS_AT_ONCE
    np.testing.assert_array_equal(found[0], 2 * np.arange(size))
    np.testing.assert_array_equal(found[1], np.arange(size * 3).reshape(size, 3).sum(axis=1))


def test_an_accelerator_computes_the_whole_batch_at_once(double, seen, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    map_in_parts(double, batch_of(100))
    assert seen == [100]
