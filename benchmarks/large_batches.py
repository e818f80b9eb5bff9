"""Compares LAMB with AdamW at small and large batches, on the same positions and number of examples.

    python benchmarks/large_batches.py --games runs/connect_four --workdir runs/large_batches

Trains on the replay buffer of a run, or on recorded games (`alphagat pretrain`), with each optimizer, batch size and
learning rate. All see the same number of examples, with a warm-up over a tenth of the updates followed by a cosine
schedule, and are measured on positions of held-out games. The learning rates are `--factors` times the rate for a batch
of 1,024, scaled by the square root of the batch size over 1,024 (You et al. 2020, "Large batch optimization for deep
learning", section 4).

Finished runs are not repeated: the command resumes where it was stopped.
"""

import argparse
import math
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from variants import end_trainings_as_well, run_training

from alphagat.runs.metrics import HOLDOUT, RESULTS, read_metrics

RATES = {"lamb": 5e-3, "adamw": 1e-3}  # at a batch of 1,024
USUAL_BATCH = 1024


def train(options: argparse.Namespace, optimizer: str, batch_size: int, rate: float) -> dict[str, float]:
    """Trains or resumes one run, and returns its last metrics."""
    folder = options.workdir / f"{optimizer}_{batch_size}_{rate:.2g}_{options.width}_{options.examples}_{options.seed}"
    largest = max(options.batch_sizes)
    fields = {
        "network.width": options.width,
        "learner.optimizer": optimizer,
        "learner.ema_decay": 0.0,  # after 30 updates the EMA would still be close to the initial weights
        "learner.batch_size": batch_size,
        "learner.learning_rate": rate,
        "learner.warmup_steps": max(options.examples // batch_size // 10, 1),
        # An iteration has as many examples as the largest batch.
        "learner.replay_ratio": largest / USUAL_BATCH,
        "learner.num_micro_batches": max(batch_size // USUAL_BATCH, 1),
        "selfplay.num_games": 128,
        "selfplay.plies_per_iteration": USUAL_BATCH // 128,
        "replay.min_size": largest,
        "replay.capacity": largest,
        "num_iterations": options.examples // largest,
        "evaluation.every": options.examples // largest,
        "evaluation.opponents": "()",
        "checkpoint.every": options.examples // largest,
        "seed": options.seed,
    }
    command = [sys.executable, "-m", "alphagat", "pretrain", "--config", options.config, "--workdir", str(folder)]
    games = [word for name in options.games for word in ("--games", name)]
    flags = [f"--config.{name}={value}" for name, value in fields.items()]
    run_training([*command, *games, *flags])
    return {each.name: each.value for each in read_metrics(folder)[-1][RESULTS]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/connect_four.py", help="default: %(default)s")
    parser.add_argument("--games", action="append", required=True, help="a run, a game file, or a folder of game files")
    parser.add_argument("--workdir", type=Path, default=Path("runs/large_batches"), help="default: %(default)s")
    parser.add_argument("--batch_sizes", type=int, nargs="+", default=[1024, 32_768], help="default: %(default)s")
    parser.add_argument("--factors", type=float, nargs="+", default=[0.5, 1.0, 2.0], help="default: %(default)s")
    parser.add_argument("--examples", type=int, default=32_768 * 30, help="default: %(default)s")
    parser.add_argument("--width", type=int, default=16, help="width of the network (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args()
    largest = max(options.batch_sizes)
    if odd := [size for size in options.batch_sizes if largest % size]:
        parser.error(f"--batch_sizes {odd[0]}: each must divide the largest, {largest}")
    if options.examples < largest or options.examples % largest:
        parser.error(f"--examples {options.examples}: it must be a multiple of the largest batch, {largest}")
    end_trainings_as_well()
    console = Console()
    measures = ("policy_accuracy", "policy_loss", "value_error")
    table = Table("optimizer", "batch", "updates", "rate", "held-out moves predicted", "policy loss", "value error")
    for batch_size in options.batch_sizes:
        for optimizer, rate in RATES.items():
            for factor in options.factors:
                scaled = rate * factor * math.sqrt(batch_size / USUAL_BATCH)
                results = train(options, optimizer, batch_size, scaled)
                cells = [f"{results[HOLDOUT + name]:.3f}" for name in measures]
                updates = options.examples // batch_size
                table.add_row(optimizer, f"{batch_size:,}", f"{updates:,}", f"{scaled:.2g}", *cells)
    console.print(table)


if __name__ == "__main__":
    main()
