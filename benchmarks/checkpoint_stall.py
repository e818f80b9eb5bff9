"""Measures the slowdown of iterations by checkpoint writes: `python benchmarks/checkpoint_stall.py`.

A round runs as many iterations as the config has between two checkpoints: once with a save at the start, whose files
are written in the background, and once without. The order alternates. The stall is the median over the rounds of the
time difference, relative to the time without a save. `held` is the share of time in which the loop itself waits.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import jax
from rich.console import Console
from rich.progress import track
from timing import OneBoardRun

from alphagat import config_files
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runtime import sharding
from alphagat.training.setup import make_configured_mesh, num_cpu_devices
from alphagat.wording import counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/connect_four.py", help="config to run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each kind (default: %(default)s)")
    options = parser.parse_args()
    config = config_files.load_config(options.config, [])
    sharding.configure_cpu_devices(num_cpu_devices(config.mesh))
    mesh = make_configured_mesh(config)
    running = OneBoardRun(config, mesh)
    running.warm_up(1)
    megabytes = sum(leaf.nbytes for leaf in jax.tree.leaves(running.state)) / 1e6
    stalls, held, seconds = [], [], []
    with tempfile.TemporaryDirectory() as folder, CheckpointWriter(Path(folder), keep=1) as writer:
        writer.save(running.state, 0)  # compiles the copy
        writer.wait()
        for number in track(range(options.rounds), "rounds"):
            times = {}
            for saves in (True, False) if number % 2 else (False, True):
                jax.block_until_ready(running.state)
                start = time.perf_counter()
                if saves:
                    writer.save(running.state, number + 1)
                    held.append(time.perf_counter() - start)
                for _ in range(config.checkpoint.every):
                    running.iterate()
                jax.block_until_ready(running.state)
                times[saves] = time.perf_counter() - start
                writer.wait()
            stalls.append(times[True] / times[False] - 1)
            seconds.append(times[False])
    Console().print(
        f"{options.config}, a checkpoint of {megabytes:,.1f} MB every {config.checkpoint.every} iterations of "
        f"{statistics.median(seconds) / config.checkpoint.every:.2f} s on {counted(mesh.size, 'device')}: stall "
        f"{statistics.median(stalls):.1%} ({min(stalls):.1%} to {max(stalls):.1%}), held "
        f"{statistics.median(held):.3f} s, {statistics.median(held) / statistics.median(seconds):.2%}"
    )


if __name__ == "__main__":
    main()
