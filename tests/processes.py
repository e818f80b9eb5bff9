"""Threads that stand in for the processes of a run."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import multihost_utils

from alphagat.errors import JointError


def as_processes(monkeypatch: pytest.MonkeyPatch, works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Calls each function in a thread, as one process of a run; returns the results. For a JointError, that is its text
    and whether the process reports it.

    `Barrier` is what connects the threads.
    """
    sent: dict[int, np.ndarray] = {}
    barrier, rank = threading.Barrier(len(works)), threading.local()

    def gather(value: np.ndarray) -> np.ndarray:
        sent[rank.value] = value
        barrier.wait(10)
        gathered = np.stack([sent[each] for each in range(len(works))])
        barrier.wait(10)
        return gathered

    def take_part(index: int) -> Any:
        rank.value = index
        try:
            return works[index]()
        except JointError as error:
            return str(error), error.is_reported_here

    monkeypatch.setattr(jax, "process_count", lambda: len(works))
    monkeypatch.setattr(jax, "process_index", lambda: rank.value)
    monkeypatch.setattr(multihost_utils, "process_allgather", gather)
    monkeypatch.setattr(multihost_utils, "broadcast_one_to_all", lambda value: gather(value)[0])
    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(take_part, range(len(works))))
