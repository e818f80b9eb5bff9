"""Kills a run with SIGKILL at random moments, resumes it each time, and compares it with an uninterrupted run.

    python benchmarks/kill_resume.py --kills 20 --seed 0

The moments are uniform over the duration of an uninterrupted run, or over `--within` seconds, so they hit imports,
compilation, self-play, matches and saves. One round is one run, killed until it finishes. Rounds repeat until `--kills`
is reached. A round is identical if the last checkpoint is bit-identical, and every metric except times is equal. This
takes about 20 s per kill on two cores. All starts use one kind of device, one version of JAX and one compilation cache.
Further flags, such as `--config.network.width=64`, are those of `alphagat train`.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from survive import ROOT, command, environment, newest_step, plain, state_of

from alphagat.runs.metrics import read_metrics
from alphagat.runtime import sharding

PATIENCE = 50  # kills
FLAGS = ("--config.checkpoint.every=1", "--config.evaluation.every=6", "--config.num_iterations=24")


def run_until(config: str, flags: Sequence[str], workdir: Path, cache: Path, seconds: float) -> bool:
    """Starts or resumes the run and kills it after `seconds`; returns whether it was still running."""
    words = command("train", workdir, *FLAGS, *flags, config=config)
    with subprocess.Popen(words, cwd=ROOT, env=environment(cache), stdout=subprocess.DEVNULL) as run:
        try:
            status = run.wait(seconds)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            return True
    if status:
        raise SystemExit(f"the run in {workdir} ended with status {status}")
    return False


def differences(workdir: Path, reference: Path) -> list[str]:
    """Names the leaves of the last run state, and the iterations' metrics, in which two runs differ."""
    ours, theirs = state_of(workdir), state_of(reference)
    found = [name for name in theirs if ours[name] != theirs[name]]
    lines = [[plain(line) for line in read_metrics(folder)] for folder in (workdir, reference)]
    if len(lines[0]) != len(lines[1]):
        found.append(f"{len(lines[0])} lines of metrics, not {len(lines[1])}")
    return found + [f"metrics of iteration {b['iteration']}" for a, b in zip(*lines) if a != b]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=6, help="minimum number of kills (default: %(default)s)")
    parser.add_argument("--within", type=float, help="seconds (default: the duration of an uninterrupted run)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the kill times (default: %(default)s)")
    parser.add_argument("--config", default="configs/smoke.py", help="config to run (default: %(default)s)")
    parser.add_argument(
        "--xla", default="default", help="compiler flags; deterministic on a GPU (default: %(default)s)"
    )
    options, flags = parser.parse_known_args()
    flags += ["--xla", options.xla]
    sharding.configure_cpu_devices(0)
    moments, console, kills, rounds, identical = random.Random(options.seed), Console(), 0, 0, 0
    table = Table("round", "kills", "resumed after iterations", "result", title="killed and resumed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reference, cache = folder / "reference", folder / "compiled"
        run_until(options.config, flags, folder / "first", cache, 3600)  # compiles
        start = time.perf_counter()
        run_until(options.config, flags, reference, cache, 3600)
        seconds = time.perf_counter() - start
        console.print(f"an undisturbed run takes {seconds:.1f} s, {newest_step(reference)} iterations")
        within = options.within or seconds
        while kills < options.kills:
            rounds, workdir, resumed = rounds + 1, folder / f"round_{rounds}", []
            while run_until(options.config, flags, workdir, cache, moments.uniform(0, within)):
                kills += 1
                resumed.append(newest_step(workdir))
                if resumed[-PATIENCE:] == [resumed[-1]] * PATIENCE:
                    raise SystemExit(
                        f"{PATIENCE} kills within {within:g} s without a checkpoint: use a larger --within"
                    )
            found = differences(workdir, reference)
            identical += not found
            result = "identical" if not found else f"{len(found)} differences: {', '.join(found[:3])}"
            table.add_row(str(rounds), str(len(resumed)), " ".join(map(str, resumed)), result)
            console.print(f"round {rounds}: {len(resumed)} kills, {result}")
    console.print(table)
    console.print(f"identical: {identical} of {rounds} rounds, {kills} kills")
    sys.exit(identical < rounds)


if __name__ == "__main__":
    main()
