"""Measures the evaluation service under 1 to 64 clients, relative to the device's best batch in the same process.

Each client requests one analysis after another, like a player, each of a different position. Every answer is compared
with the analysis of that position alone, and the number of requests with the number of answers.

    python benchmarks/service.py --board hex:5 --simulations 16
"""

import argparse
import concurrent.futures
import threading
import time
from collections.abc import Callable

import numpy as np

from alphagat.evaluation.openings import random_positions
from alphagat.games.batches import stack, take
from alphagat.runtime import sharding
from alphagat.serving.roster import Program, Roster
from alphagat.serving.service import BatchService, batch_sizes

NUM_POSITIONS = 256
START_S = 1.0  # ramp-up of the clients; its latencies are excluded
TOLERANCE = 1e-3  # of policies: the order of summation depends on the batch size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workdir", help="a run or a file (default: the shipped network)")
    parser.add_argument("--board", default="hex:5", help="(default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=16, help="(default: %(default)s)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--max_batch", type=int, default=64, help="(default: %(default)s)")
    parser.add_argument("--max_wait_ms", type=float, default=10.0, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="per round (default: %(default)s)")
    options = parser.parse_args()
    if options.seconds <= START_S:
        parser.error(f"--seconds {options.seconds:g}: the first {START_S:g} s do not count; use more")
    sharding.configure_cpu_devices(1)
    roster = Roster([options.workdir] if options.workdir else [], options.board)
    program = roster.program(options.board, "", options.simulations)
    states = random_positions(roster.session(options.board).game, NUM_POSITIONS, 0, 8, seed=0)
    positions = [take(states, row) for row in range(NUM_POSITIONS)]
    analyze = roster.prepare(program)
    expected = compile_and_analyze(analyze, positions, options.max_batch)
    print(f"{options.board}, {options.simulations} simulations, batches of {batch_sizes(options.max_batch)}")
    print("clients   positions/s   of best batch   p50 ms   p99 ms   p99/p50   mean batch   wrong")
    for clients in options.clients:
        print(measure(analyze, program, positions, expected, clients, options))


def compile_and_analyze(analyze: Callable, positions: list, max_batch: int) -> list:
    """Compiles `analyze` for all batch sizes, and returns the analysis of each position."""
    for size in batch_sizes(max_batch):
        analyze(stack(positions[:size]))
    found = [analyze(stack(positions[at : at + max_batch])) for at in range(0, len(positions), max_batch)]
    return [take(batch, row) for batch in found for row in range(len(batch.action))]


def positions_per_second(analyze, batch, seconds: float) -> float:
    """Returns the throughput of `analyze` in a tight loop."""
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        analyze(batch)
        count += len(batch.terminated)
    return count / elapsed


def serve(service: BatchService, program: Program, positions: list, expected: list, clients: int, seconds: float):
    """Runs the clients; returns positions per second, the latencies in ms, and the number of wrong answers."""
    stop, start = threading.Event(), time.perf_counter()

    def client(number: int) -> tuple[list[tuple[float, float]], int]:
        random, times, wrong = np.random.default_rng(number), [], 0
        while not stop.is_set():
            row = int(random.integers(len(positions)))
            asked = time.perf_counter()
            answer = service.submit(program, positions[row]).result(60)
            times.append((asked, time.perf_counter() - asked))
            wrong += abs(answer.policy - expected[row].policy).max() > TOLERANCE
        return times, wrong

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(client, number) for number in range(clients)]
        time.sleep(seconds)
        stop.set()
        answers = [each.result() for each in running]
    elapsed = time.perf_counter() - start
    times = [each for many, _ in answers for each in many]
    latencies = [1000 * latency for asked, latency in times if asked > start + START_S]
    return len(times) / elapsed, latencies, sum(wrong for _, wrong in answers)


def measure(analyze: Callable, program: Program, positions: list, expected: list, clients: int, options) -> str:
    """Returns one table row: medians over rounds in which service and best batch alternate."""
    part = options.seconds / 2
    batches = [stack(positions[:size]) for size in batch_sizes(options.max_batch)]
    best = max(batches, key=lambda batch: positions_per_second(analyze, batch, part))
    sizes = {
        "max_batch": options.max_batch,
        "max_wait_ms": options.max_wait_ms,
        "max_queue": max(4 * options.max_batch, clients),
    }
    rates, ratios, p50s, p99s, wrong = [], [], [], [], 0
    with BatchService(lambda _: analyze, **sizes) as service:
        for _ in range(options.rounds):
            before = positions_per_second(analyze, best, part)
            rate, latencies, mistakes = serve(service, program, positions, expected, clients, options.seconds)
            after = positions_per_second(analyze, best, part)
            p50, p99 = np.percentile(latencies, (50, 99))
            rates, ratios = [*rates, rate], [*ratios, 2 * rate / (before + after)]
            p50s, p99s, wrong = [*p50s, p50], [*p99s, p99], wrong + mistakes
        metrics = service.metrics()
    assert metrics["accepted"] == metrics["answered"], "a request was lost"
    tails = [p99 / p50 for p50, p99 in zip(p50s, p99s)]
    rate, ratio, p50, p99, tail = (float(np.median(each)) for each in (rates, ratios, p50s, p99s, tails))
    mean = metrics["answered"] / sum(metrics["batches"].values())
    return (
        f"{clients:7}   {rate:11,.0f}   {ratio:13.2f}   {p50:6.1f}   {p99:6.1f}   {tail:7.2f}   {mean:10.1f}   "
        f"{wrong} of {metrics['answered']}"
    )


if __name__ == "__main__":
    main()
