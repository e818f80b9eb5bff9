"""Metrics of the evaluation service."""

import collections
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

NUM_RECENT = 4096  # latencies kept for percentiles
COUNTS = ("accepted", "answered", "refused", "cancelled", "failed")


class ServiceMetrics:
    """Counts requests and batches since the start, and keeps recent latencies. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        self._batches: collections.Counter[int] = collections.Counter()
        self._latencies: collections.deque[float] = collections.deque(maxlen=NUM_RECENT)

    def count(self, name: str, number: int = 1) -> None:
        """Increments one of `COUNTS`."""
        with self._lock:
            self._counts[name] += number

    def add_batch(self, latencies: Sequence[float]) -> None:
        """Records an answered batch, given the latency of each request in seconds."""
        with self._lock:
            self._counts["answered"] += len(latencies)
            self._batches[len(latencies)] += 1
            self._latencies.extend(latencies)

    def summary(self) -> dict[str, Any]:
        """Returns the counts, `batches` (number of batches by size), and `latency_ms` with p50 and p99."""
        with self._lock:
            counts, batches, latencies = dict(self._counts), dict(self._batches), list(self._latencies)
        percentiles = np.percentile(latencies, (50, 99)) * 1000 if latencies else (None, None)
        latency = {name: value and round(float(value), 3) for name, value in zip(("p50", "p99"), percentiles)}
        return {**counts, "batches": {str(size): batches[size] for size in sorted(batches)}, "latency_ms": latency}
