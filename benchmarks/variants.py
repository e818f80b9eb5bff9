"""What a switch, or another network, is worth at equal wall-clock.

    python benchmarks/variants.py --config configs/connect_four.py --minutes 10 --seeds 3 --workdir runs/variants

Trains every variant with every seed for the same time, and the seeds in the outer loop, so that a machine whose speed
drifts favours none. `--at_once 2` trains two at a time, each on half of the cores. How many iterations the time holds
is measured first, so that each learning-rate schedule runs to its end; compilation, matches and checkpoints do not
count. Then each player meets the base of its seed, and perfect play where the board has a solver. The base meets that
of the next seed: as far as that score is from one half, the seed alone can move it.

Runs that are there already are not made again: the command goes on where it was stopped. More variants are added as
`--variant NAME FIELD=VALUE ...`; `--all boards=othello:6 "board_weights=()" "final_board_weights=()"` changes what all
have in common. The interval of a score is that of all games of all seeds, whose own scores stand beside it: it tells
of these players, not of others that would be trained in the same way.
"""

import argparse
import dataclasses
import functools
import itertools
import json
import os
import queue
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
from rich.console import Console
from rich.table import Table

from alphagat import commands, load
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.oracles import OracleTest, make_oracle
from alphagat.evaluation.statistics import wilson_interval
from alphagat.runs.atomic_files import write_atomically
from alphagat.runs.metrics import read_metrics
from alphagat.runtime import sharding
from alphagat.training.setup import make_setups

BASE = "base"
VARIANTS = {
    BASE: [],
    "no_average": ["learner.ema_decay=0"],
    "playout_cap": ["selfplay.full_search_fraction=0.25", "search.num_simulations=48", "selfplay.fast_simulations=8"],
    "surprise": ["selfplay.surprise_fraction=0.5"],
    "lambda": ["selfplay.value_lambda=0.9"],
    "no_opening": ["selfplay.opening_plies=0"],
    "puct": ["search.algorithm=puct"],
    "adamw": ["learner.optimizer=adamw", "learner.learning_rate=1e-3"],
    "no_ownershiphip": ["network.ownership_head=False"],
}
SOLVED = "connect_four", "hex:3", "hex:4", "hex:5", "tic_tac_toe"  # boards whose positions are solved fast enough
NUM_POSITIONS = 2000
PILOT_ITERATIONS = 16  # whose median time counts; in a few, playout caps would have no full search
TRAININGS: set[subprocess.Popen] = set()  # that are going on


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to train, and where its runs lie."""

    name: str
    flags: list[str]
    config: str
    folder: Path
    pilots: Path | None = None  # the same for variants that differ in the learning rate only; None: `folder`

    def train(self, workdir: Path, seed: int, iterations: int, cores: set[int]) -> None:
        """Trains or resumes one run, as a process of its own on these cores of the machine; none: on all."""
        flags = [*self.flags_for(iterations), f"--config.seed={seed}"]
        command = [sys.executable, "-m", "alphagat.main", "--config", self.config, "--workdir", str(workdir), *flags]
        run_training(command, cores)

    def flags_for(self, iterations: int) -> list[str]:
        flags = [*self.flags, f"num_iterations={iterations}", "evaluation.every=0", f"checkpoint.every={iterations}"]
        return [f"--config.{flag}" for flag in flags]

    def make_pilot(self, at_once: int, turn: int) -> Callable[[set[int]], None]:
        """Returns the training after which the time of an iteration in which updates are made is known."""
        setup = make_setups(commands.load_config(self.config, self.flags_for(10**6)))[0]
        iterations = setup.plan.first_update_iteration + 1 + PILOT_ITERATIONS
        run = self.pilot(at_once, turn)
        if len(read_metrics(run)) >= iterations:
            return lambda cores: None
        return functools.partial(self.train, run, 0, iterations)

    def count_iterations(self, effort: "Effort") -> int:
        """Returns how many iterations fit into the time, by the first pilot; those without updates are short."""
        times = [0.0, *(3600 * line["hours"] for line in read_metrics(self.pilot(effort.at_once, 0)))]
        num_before = len(times) - 2 - PILOT_ITERATIONS
        seconds = statistics.median(later - earlier for earlier, later in itertools.pairwise(times[num_before + 1 :]))
        return num_before + round((60 * effort.minutes - times[num_before]) / seconds)

    def pilot(self, at_once: int, turn: int) -> Path:
        return (self.pilots or self.folder) / f"pilot_{at_once}_{turn}"

    def run(self, seed: int, effort: "Effort") -> Path:
        """Returns the folder of one run: another effort has folders of its own."""
        return self.folder / f"seed_{seed}_{self.count_iterations(effort)}"


@dataclasses.dataclass(frozen=True)
class Test:
    """How players are compared, beside what they know of perfect play.

    Attributes:
      games: against the base of the same seed, or of the next for the base itself.
      simulations: in these games, and of the search that perfect play is asked about.
    """

    games: int
    simulations: int


Results = dict[str, list[dict[str, float]]]  # of each variant, by seed


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long each run trains, and how many train at the same time, each on its share of the cores."""

    minutes: float
    at_once: int

    def share_out(self, jobs: Iterable[Callable[[set[int]], None]]) -> None:
        """Calls each job with its cores."""
        if self.at_once == 1:
            for job in jobs:
                job(set())
            return
        free: queue.Queue[set[int]] = queue.Queue()
        cores = sorted(os.sched_getaffinity(0))
        for first in range(self.at_once):
            free.put(set(cores[first :: self.at_once]))

        def do(job: Callable[[set[int]], None]) -> None:
            share = free.get()
            try:
                job(share)
            finally:
                free.put(share)

        pool = ThreadPoolExecutor(self.at_once)
        try:
            list(pool.map(do, jobs))
        finally:
            pool.shutdown(cancel_futures=True)


def compare(variants: Sequence[Variant], seeds: Sequence[int], effort: Effort, test: Test, console: Console) -> Results:
    """Trains what is not there yet, and measures; the first variant is the base."""
    train_pilots(variants, effort)
    for variant in variants:
        console.print(f"{variant.name}: {variant.count_iterations(effort)} iterations")
    trainings = [
        functools.partial(variant.train, variant.run(seed, effort), seed, variant.count_iterations(effort))
        for seed in seeds
        for variant in variants
    ]
    effort.share_out(trainings)
    bases, *others = ([variant.run(seed, effort) for seed in seeds] for variant in variants)
    pairings = [zip(bases, bases[1:] + bases[:1]), *(zip(runs, bases) for runs in others)]
    results = {
        variant.name: [measured(run, rival, test) for run, rival in pairs] for variant, pairs in zip(variants, pairings)
    }
    title = f"{variants[0].config}, {effort.minutes:g} minutes each; by seed, and their mean"
    console.print(report(results, title, test))
    return results


def train_pilots(variants: Sequence[Variant], effort: Effort) -> None:
    """Trains the pilots that are not there yet, each beside as many others as the runs are."""
    first: dict[Path, Variant] = {}
    for variant in variants:
        first.setdefault(variant.pilot(effort.at_once, 0), variant)
    pilots = list(first.values())
    missing = -len(pilots) % effort.at_once
    turns = [(variant, 0) for variant in pilots] + [(pilots[0], i + 1) for i in range(missing)]
    effort.share_out([variant.make_pilot(effort.at_once, turn) for variant, turn in turns])


def measured(run: Path, rival: Path, test: Test) -> dict[str, float]:
    """Returns what `measure` says of the latest checkpoints, and keeps it beside the run."""
    trained = "_".join(str(len(read_metrics(each))) for each in (run, rival))
    # The rival by name, too: with more seeds, the base of the last one meets another.
    kept = run / f"measured_{trained}_{rival.name}_{test.games}_{test.simulations}.json"
    if not kept.exists():
        write_atomically(kept, json.dumps(measure(run, rival, test)))
    return json.loads(kept.read_text())


def measure(run: Path, rival: Path, test: Test) -> dict[str, float]:
    """Returns what the player of a run knows of perfect play, and its score against another run's, if it is another."""
    agent, line = load(run), read_metrics(run)[-1]
    game, search = agent.game, agent.search(test.simulations)
    found = {"minutes": 60 * line["hours"], "frames": line["frames"]}
    if game.name in SOLVED:
        oracle = OracleTest(make_oracle(game, NUM_POSITIONS, 0), agent.evaluator, search)
        shares = oracle.play(agent.params, jax.random.key(0))
        found |= {name: shares[name] for name in ("best_move", "best_move_search", "value_sign")}
    if run != rival:
        players = agent.player(test.simulations), load(rival).player(test.simulations)
        openings = distinct_openings(game, test.games // 2, 0)
        found["score"] = play_match(game, *players, openings, jax.random.key(0), sharding.make_mesh(0)).score
    return found


def run_training(command: Sequence[str], cores: Collection[int] = ()) -> None:
    """Runs a command on these cores of the machine; none: on all. Raises CalledProcessError where it fails."""
    with subprocess.Popen(command) as process:
        TRAININGS.add(process)
        if cores:
            os.sched_setaffinity(process.pid, cores)  # before JAX is imported, and counts them
    TRAININGS.remove(process)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def end_trainings_as_well() -> None:
    """Lets SIGTERM end the trainings, too: one that went on would take time from the next start, and its folder."""

    def end(number: int, _: object) -> None:
        for process in list(TRAININGS):
            process.terminate()  # which saves, and ends soon after
        os._exit(128 + number)  # at once: with threads of JAX, Python may wait for ever while it winds up

    signal.signal(signal.SIGTERM, end)


def report(results: Results, title: str, test: Test) -> Table:
    table = Table("variant", "minutes", "frames", "network", "search", "value sign", "against base", title=title)
    for name, found in results.items():
        cells = [_column(found, key) for key in ("best_move", "best_move_search", "value_sign")]
        minutes, frames = (statistics.mean(each[key] for each in found) for key in ("minutes", "frames"))
        score = _column(found, "score")
        if name == next(iter(results)):
            score = f"{BASE}, against the next seed: {score}" if score else BASE
        else:
            low, high = wilson_interval(statistics.mean(each["score"] for each in found), test.games * len(found))
            score = f"{score} [{low:.3f}, {high:.3f}]"
        table.add_row(name, f"{minutes:.1f}", f"{frames / 1000:.0f} k", *cells, score)
    return table


def _column(found: list[dict[str, float]], key: str) -> str:
    if key not in found[0]:
        return ""
    values = [each[key] for each in found]
    return f"{' '.join(f'{value:.3f}' for value in values)} = {statistics.mean(values):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/connect_four.py", help="of the base (default: %(default)s)")
    parser.add_argument("--workdir", type=Path, default=Path("runs/variants"), help="default: %(default)s")
    parser.add_argument("--minutes", type=float, default=10, help="of training, each (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--at_once", type=int, default=1, help="trainings at a time (default: %(default)s)")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=["playout_cap", "surprise", "lambda"])
    parser.add_argument("--variant", nargs="+", action="append", default=[], metavar=("NAME", "FIELD=VALUE"))
    parser.add_argument("--all", nargs="+", default=[], metavar="FIELD=VALUE", help="of every variant, the base too")
    parser.add_argument("--games", type=int, default=400, help="against the base, per seed (default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=64, help="in these games (default: %(default)s)")
    options = parser.parse_args()
    flags = {name: VARIANTS[name] for name in (BASE, *options.variants)}
    flags |= {name: fields for name, *fields in options.variant}
    variants = [
        Variant(name, options.all + fields, options.config, options.workdir / name) for name, fields in flags.items()
    ]
    sharding.configure_cpu_devices(0)
    end_trainings_as_well()
    test = Test(options.games, options.simulations)
    effort = Effort(options.minutes, options.at_once)
    compare(variants, range(options.seeds), effort, test, Console(width=200))


if __name__ == "__main__":
    main()
