"""Measures the evaluation service under 1 to 64 clients, beside the device's best batch in the same process.

Each client asks for one analysis after another, as a player does, each of a position of its own; every answer is
compared with the analysis of that position alone, and the number of requests with the number of answers.

    python benchmarks/service.py --board hex:5 --simulations 16
"""

import argparse
import concurrent.futures
import threading
import time

import jax
import numpy as np

from alphagat import sharding
from alphagat.evaluation.openings import random_positions, take
from alphagat.serving.roster import Program, Roster
from alphagat.serving.service import BatchService, batch_sizes

NUM_POSITIONS = 256
START_S = 1.0  # in which clients begin one after the other; their latencies are left out
TOLERANCE = 1e-3  # of policies: batches of other sizes are summed in another order


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workdir", help="a run or a file (default: the network of the package)")
    parser.add_argument("--board", default="hex:5", help="(default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=16, help="(default: %(default)s)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--max_batch", type=int, default=64, help="(default: %(default)s)")
    parser.add_argument("--max_wait_ms", type=float, default=10.0, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=8.0, help="per row (default: %(default)s)")
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    roster = Roster(options.workdir, options.board)
    program = Program(options.board, options.simulations)
    states = random_positions(roster.table(options.board).game, NUM_POSITIONS, 0, 8, seed=0)
    positions = [take(states, row) for row in range(NUM_POSITIONS)]
    expected = compile_and_analyse(roster, program, positions, options.max_batch)
    print(f"{options.board}, {options.simulations} simulations, batches of {batch_sizes(options.max_batch)}")
    print("clients   positions/s   of best batch   p50 ms   p99 ms   p99/p50   mean batch   wrong")
    for clients in options.clients:
        print(measure(roster, program, positions, expected, clients, options))


def compile_and_analyse(roster: Roster, program: Program, positions: list, max_batch: int) -> list:
    """Compiles the program for all sizes of batches, and returns the analysis of each position."""
    analyze = roster.prepare(program)
    for size in batch_sizes(max_batch):
        analyze(stack(positions[:size]))
    found = [analyze(stack(positions[at : at + max_batch])) for at in range(0, len(positions), max_batch)]
    return [jax.tree.map(lambda leaf, row=row: leaf[row], batch) for batch in found for row in range(len(batch.action))]


def stack(states: list):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def best_batch(roster: Roster, program: Program, positions: list, max_batch: int, seconds: float) -> float:
    """Returns the positions per second of the size that gives most, called in a loop by one thread."""
    analyze, best = roster.prepare(program), 0.0
    sizes = batch_sizes(max_batch)
    for size in sizes:
        batch, count, start = stack(positions[:size]), 0, time.perf_counter()
        while time.perf_counter() - start < seconds / len(sizes):
            analyze(batch)
            count += size
        best = max(best, count / (time.perf_counter() - start))
    return best


def measure(roster: Roster, program: Program, positions: list, expected: list, clients: int, options) -> str:
    """Returns the row of so many clients; the best batch is measured before and after, and the mean taken."""
    before = best_batch(roster, program, positions, options.max_batch, options.seconds / 2)
    service = BatchService(
        roster.prepare, max_batch=options.max_batch, max_wait_ms=options.max_wait_ms, max_queue=4 * options.max_batch
    )
    stop, latencies, wrong = threading.Event(), [], []

    def client(number: int) -> int:
        random, count = np.random.default_rng(number), 0
        while not stop.is_set():
            row = int(random.integers(len(positions)))
            start = time.perf_counter()
            answer = service.submit(program, positions[row]).result(60)
            latencies.append((start, time.perf_counter() - start))
            count += 1
            if abs(answer.policy - expected[row].policy).max() > TOLERANCE:
                wrong.append(row)
        return count

    start = time.perf_counter()
    with service, concurrent.futures.ThreadPoolExecutor(clients) as pool:
        counts = [pool.submit(client, number) for number in range(clients)]
        time.sleep(options.seconds)
        stop.set()
        answered = sum(count.result() for count in counts)
        elapsed = time.perf_counter() - start
        metrics = service.metrics()
    assert metrics["accepted"] == metrics["answered"] == answered
    after = best_batch(roster, program, positions, options.max_batch, options.seconds / 2)
    settled = [latency for asked, latency in latencies if asked > start + START_S]
    p50, p99 = np.percentile(settled, (50, 99)) * 1000
    rate, batches = answered / elapsed, sum(metrics["batches"].values())
    return (
        f"{clients:7}   {rate:11,.0f}   {2 * rate / (before + after):13.2f}   {p50:6.1f}   {p99:6.1f}   "
        f"{p99 / p50:7.2f}   {answered / batches:10.1f}   {len(wrong)} of {answered}"
    )


if __name__ == "__main__":
    main()
