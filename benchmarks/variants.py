"""Measures a setting, or another network, at equal wall-clock training time.

    python benchmarks/variants.py --config configs/connect_four.py --minutes 10 --seeds 3 --workdir runs/variants

Trains every variant with every seed for the same time. Seeds are in the outer loop, so a drifting machine speed favours
no variant. `--at_once 2` trains two at a time, each on half of the cores. Pilot runs first measure how many iterations
fit, so that each learning-rate schedule completes; compilation, matches and checkpoints do not count. Then each player
plays the base of its seed, and is compared with perfect play if the board has a solver. The base plays the base of the
next seed; the distance of this score from one half measures the effect of the seed.

Finished runs are not repeated: the command resumes where it was stopped. `--variant NAME FIELD=VALUE ...` adds a
variant; `--all boards=othello:6 "board_weights=()" "final_board_weights=()"` sets fields of all variants. With
`--same_cost`, all variants train for as many iterations as the base: for settings that do not change the cost of an
iteration, whose pilots would only add noise. The interval of a score is Student's over the seeds, whose scores stand
alongside; a single seed has none, shown as 0 to 1.
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
import numpy as np
from rich.console import Console
from rich.table import Table

from alphagat import config_fields, config_files, load
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.oracles import OracleTest, make_oracle
from alphagat.evaluation.statistics import mean_interval
from alphagat.runs.atomic_files import write_atomically
from alphagat.runs.folder import read_config
from alphagat.runs.metrics import read_metrics
from alphagat.runs.saved_checkpoints import list_steps
from alphagat.runtime import sharding
from alphagat.training.plan import Plan
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
    "no_ownership": ["network.ownership_head=False"],
}
SOLVED = "connect_four", "hex:3", "hex:4", "hex:5", "tic_tac_toe"  # boards whose positions are solved fast enough
NUM_POSITIONS = 2000
PILOT_ITERATIONS = 16  # for the median time; with fewer, playout caps might have no full search
TRAININGS: set[subprocess.Popen] = set()  # running


@dataclasses.dataclass(frozen=True)
class Variant:
    """A training configuration and the folder of its runs."""

    name: str
    flags: list[str]
    config: str
    folder: Path
    pilots: Path | None = None  # shared by variants whose iterations cost the same; None: `folder`

    def train(self, workdir: Path, seed: int, iterations: int, cores: set[int]) -> None:
        """Trains or resumes one run in a separate process on these cores; none: on all. Leaves a finished run alone."""
        if max(list_steps(workdir), default=0) >= iterations:
            self.check(workdir, seed, iterations)
            return
        command = [sys.executable, "-m", "alphagat", "train", "--config", self.config, "--workdir", str(workdir)]
        run_training([*command, *self.flags_for(iterations, seed)], cores)

    def check(self, workdir: Path, seed: int, iterations: int) -> None:
        """Exits if the run in a folder has another config."""
        wanted = config_files.load_config(self.config, self.flags_for(iterations, seed))
        pairs = zip(config_fields.fields(read_config(workdir)), config_fields.fields(wanted))
        if differing := [trained.path for trained, field in pairs if trained.value != field.value]:
            sys.exit(f"{workdir} was trained with other values of {', '.join(differing)}; use another --workdir")

    def flags_for(self, iterations: int, seed: int) -> list[str]:
        lengths = [f"num_iterations={iterations}", "evaluation.every=0", f"checkpoint.every={iterations}"]
        return [f"--config.{flag}" for flag in (*self.flags, *lengths, f"seed={seed}")]

    @functools.cached_property
    def plan(self) -> Plan:
        return make_setups(config_files.load_config(self.config, self.flags_for(10**6, 0)))[0].plan

    @property
    def num_before(self) -> int:
        """Iterations without updates, at the start."""
        return self.plan.first_update_iteration

    @property
    def num_parts(self) -> int:
        """Equal parts of a run, which differ in their simulations."""
        return len(self.plan.simulations)

    @property
    def pilot_iterations(self) -> int:
        return self.num_parts * (self.num_before + 1 + PILOT_ITERATIONS)

    def has_pilot(self, at_once: int, turn: int) -> bool:
        return len(read_metrics(self.pilot(at_once, turn))) >= self.pilot_iterations

    def train_pilot(self, at_once: int, turn: int, cores: set[int]) -> None:
        """Trains a run that measures the time of an iteration with updates, in each part of a run."""
        self.train(self.pilot(at_once, turn), 0, self.pilot_iterations, cores)

    def count_iterations(self, effort: "Effort") -> int:
        """Returns how many iterations fit into the time, by the first pilot; iterations without updates are short."""
        times = [0.0, *(3600 * line["hours"] for line in read_metrics(self.pilot(effort.at_once, 0)))]
        durations = [later - earlier for earlier, later in itertools.pairwise(times)]
        length = len(durations) // self.num_parts
        parts = [durations[start : start + length] for start in range(0, len(durations), length)]
        parts[0] = parts[0][self.num_before + 1 :]
        seconds = statistics.mean(statistics.median(part) for part in parts)
        return self.num_before + round((60 * effort.minutes - times[self.num_before]) / seconds)

    def pilot(self, at_once: int, turn: int) -> Path:
        return (self.pilots or self.folder) / f"pilot_{at_once}_{turn}"

    def run(self, seed: int, effort: "Effort") -> Path:
        """Returns the folder of one run; each effort has separate folders."""
        return self.folder / f"seed_{seed}_{self.count_iterations(effort)}"


@dataclasses.dataclass(frozen=True)
class Test:
    """The matches that compare players, in addition to perfect play.

    Attributes:
      games: number against the base of the same seed; for the base itself, of the next seed.
      simulations: per move in these games and in the comparison with perfect play.
    """

    games: int
    simulations: int


Results = dict[str, list[dict[str, float]]]  # by variant, then seed


@dataclasses.dataclass(frozen=True)
class Effort:
    """The training time of each run, and the number of concurrent runs, each on its share of the cores."""

    minutes: float
    at_once: int

    def __post_init__(self) -> None:
        if self.at_once > (cores := len(os.sched_getaffinity(0))):
            sys.exit(f"--at_once {self.at_once}: there are {cores} cores")

    def share_out(self, jobs: Iterable[Callable[[set[int]], None]]) -> None:
        """Runs the jobs, each on its share of the cores."""
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
    """Trains missing runs and measures all; the first variant is the base."""
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
    console.print(report(results, title))
    return results


def train_pilots(variants: Sequence[Variant], effort: Effort) -> None:
    """Trains missing pilots, with the same concurrency as the runs."""
    at_once = effort.at_once
    first: dict[Path, Variant] = {}
    for variant in variants:
        first.setdefault(variant.pilot(at_once, 0), variant)
    turns = []
    for folder, variant in first.items():
        if not variant.has_pilot(at_once, 0):
            turns.append((variant, 0))
        elif variant.pilots is None:  # variants that share a pilot differ in fields that cost no time
            variant.check(folder, 0, variant.pilot_iterations)
    unused = (turn for turn in itertools.count(1) if not variants[0].has_pilot(at_once, turn))
    turns += [(variants[0], next(unused)) for _ in range(-len(turns) % at_once)]  # so that all cores are busy
    effort.share_out([functools.partial(variant.train_pilot, at_once, turn) for variant, turn in turns])


def measured(run: Path, rival: Path, test: Test) -> dict[str, float]:
    """Returns the result of `measure` for the latest checkpoints, and caches it in the run folder."""
    trained = "_".join(str(len(read_metrics(each))) for each in (run, rival))
    # Keyed by rival as well: with more seeds, the base of the last seed plays a different one. The runs of all variants
    # have the same names.
    kept = run / f"measured_{trained}_{rival.parent.name}_{rival.name}_{test.games}_{test.simulations}.json"
    if not kept.exists():
        write_atomically(kept, json.dumps(measure(run, rival, test)))
    return json.loads(kept.read_text())


def measure(run: Path, rival: Path, test: Test) -> dict[str, float]:
    """Returns how a run's player compares with perfect play, and its score against a different run's player."""
    agent, line = load(run), read_metrics(run)[-1]
    game, search = agent.game, agent.search(test.simulations)
    found = {"minutes": 60 * line["hours"], "frames": line["frames"]}
    if game.name in SOLVED:
        oracle = OracleTest(make_oracle(game, NUM_POSITIONS, 0), agent.evaluator, search)
        shares = oracle.measure(agent.params, jax.random.key(0))
        found |= {name: shares[name] for name in ("best_move", "best_move_search", "value_sign")}
    if run != rival:
        players = agent.player(test.simulations), load(rival).player(test.simulations)
        openings = distinct_openings(game, test.games // 2, 0)
        found["score"] = play_match(game, *players, openings, jax.random.key(0), sharding.make_mesh(0)).score
    return found


def run_training(command: Sequence[str], cores: Collection[int] = ()) -> None:
    """Runs a command on these cores; none: on all. Raises CalledProcessError if it fails."""
    with subprocess.Popen(command) as process:
        TRAININGS.add(process)
        if cores:
            os.sched_setaffinity(process.pid, cores)  # before the child imports JAX, which counts them
    TRAININGS.remove(process)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def end_trainings_as_well() -> None:
    """Makes SIGTERM also end the training processes, which would otherwise occupy cores and folders."""

    def end(number: int, _: object) -> None:
        for process in list(TRAININGS):
            process.terminate()  # the run saves and ends
        os._exit(128 + number)  # immediately: with JAX threads, the interpreter may hang at shutdown

    signal.signal(signal.SIGTERM, end)


def report(results: Results, title: str) -> Table:
    table = Table("variant", "minutes", "frames", "network", "search", "value sign", "against base", title=title)
    for name, found in results.items():
        cells = [_column(found, key) for key in ("best_move", "best_move_search", "value_sign")]
        minutes, frames = (statistics.mean(each[key] for each in found) for key in ("minutes", "frames"))
        score = _column(found, "score")
        if name == next(iter(results)):
            score = f"{BASE}, against the next seed: {score}" if score else BASE
        else:
            low, high = mean_interval(np.array([each["score"] for each in found])) if len(found) > 1 else (0.0, 1.0)
            score = f"{score} ({low:.3f} to {high:.3f})"
        table.add_row(name, f"{minutes:.1f}", f"{frames / 1000:.0f} k", *cells, score)
    return table


def _column(found: list[dict[str, float]], key: str) -> str:
    if key not in found[0]:
        return ""
    values = [each[key] for each in found]
    return f"{' '.join(f'{value:.3f}' for value in values)} = {statistics.mean(values):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/connect_four.py", help="config of the base (default: %(default)s)")
    parser.add_argument("--workdir", type=Path, default=Path("runs/variants"), help="default: %(default)s")
    parser.add_argument("--minutes", type=float, default=10, help="training time per run (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--at_once", type=int, default=1, help="concurrent training runs (default: %(default)s)")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=["playout_cap", "surprise", "lambda"])
    parser.add_argument("--variant", nargs="+", action="append", default=[], metavar=("NAME", "FIELD=VALUE"))
    parser.add_argument("--all", nargs="+", default=[], metavar="FIELD=VALUE", help="for every variant and the base")
    parser.add_argument(
        "--same_cost", action="store_true", help="train every variant for as many iterations as the base"
    )
    parser.add_argument("--games", type=int, default=400, help="per seed against the base (default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=64, help="simulations per move (default: %(default)s)")
    options = parser.parse_args()
    flags = {name: VARIANTS[name] for name in (BASE, *options.variants)}
    flags |= {name: fields for name, *fields in options.variant}
    pilots = options.workdir / BASE if options.same_cost else None
    variants = [
        Variant(name, options.all + fields, options.config, options.workdir / name, pilots)
        for name, fields in flags.items()
    ]
    sharding.configure_cpu_devices(0)
    end_trainings_as_well()
    test = Test(options.games, options.simulations)
    effort = Effort(options.minutes, options.at_once)
    compare(variants, range(options.seeds), effort, test, Console(width=200))


if __name__ == "__main__":
    main()
