"""Compares networks at equal seconds of play and training, on fixed labelled positions, without self-play.

    python benchmarks/screening.py label --board connect_four
    python benchmarks/screening.py compare --board connect_four --networks default attention resnet --seeds 3

`label` plays games with the moves of a teacher, after uniformly random openings of up to half a game, and writes the
teacher's policy and value of every position. The teacher is the shipped network of the board, without search, or, on
boards without one, plain MCTS with 800 rollouts. The labels depend only on the board, --games and --seed.

`compare` trains students on these labels in the way of a run: batches of 256, a warm-up, a cosine decay and random
symmetries. Each student takes as many updates as fit into --seconds of AlphaZero time: per update, 6 evaluations
of a batch and 1 gradient. Both times are medians of rounds in which the networks alternate, on one core, in parts that
fit into its cache, as in a run. Slow networks thus take fewer updates; with --updates, all take equally many. A command
keeps to one core, so two can run side by side.

Rules, written before any run:

1. Each network trains with seed 0 at a learning rate of 0.01, at half of it, and at twice it. Its rate is the one with
   the lowest loss on held-out positions. While that is the lowest or highest rate, half or twice it is tried, too.
2. It then trains with seeds 1 to --seeds, which the table uses; seed 0 is not part of it.
3. A change of the network is accepted if its mean held-out loss is lower than that of the base by more than two
   standard errors of the difference on most boards, and on none higher by as much. Accepted changes are confirmed in
   self-play (`gat_against_resnet.py`, `variants.py`).

The table shows, for positions that no student saw, means over seeds with standard errors: the Kullback-Leibler
divergence from the teacher's policy, the share of positions whose most probable move is the teacher's, and the error
(RMS) of the value. On boards with an exact solver, it adds the shares of best moves and of correct value signs in 1,500
solved positions.
"""

import argparse
import functools
import hashlib
import json
import math
import os
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from gat_against_resnet import FIRST_STEPS, widen
from gateau import AT_ONCE as GATEAU_AT_ONCE
from rich.console import Console
from rich.progress import track
from rich.table import Table
from timing import ROUNDS, repeat_evaluation, take_turns

from alphagat import load
from alphagat.agents.build import make_configured_network, make_params
from alphagat.agents.weight_files import shipped_names
from alphagat.config import Config, NetworkConfig
from alphagat.errors import UserError
from alphagat.evaluation.mcts import make_mcts
from alphagat.evaluation.openings import random_positions
from alphagat.evaluation.oracles import Oracle, make_oracle
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.batches import chunks
from alphagat.games.states import select
from alphagat.games.symmetries import Symmetries, permute_actions, permute_nodes, random_symmetries
from alphagat.learner.loss import Batch, alphazero_loss
from alphagat.learner.optimizer import OPTIMIZERS, make_optimizer, make_schedule
from alphagat.networks import Network
from alphagat.runtime.cpu_cache import fewest_parts
from alphagat.search.tree import mask_illegal

BOARDS = "connect_four", "hex:5", "hex:7", "othello:6", "breakthrough:6", "gardner_chess"
ROLLOUTS = 800  # of a teacher without a network
BATCH = 256
EVALUATIONS_PER_UPDATE = 6  # 24 simulations per position, each trained on 4 times
RATE = 0.01  # the first one tried
SOLVED = 1500
REPEATS = 8  # consecutive evaluations or gradients per timing
CONSOLE = Console(width=200)

# By name. Other fields are the defaults, with a width of 48 unless stated; the ResNets and the network of AlphaGateau
# have about as many parameters as the default.
BASE = {"width": 48}
NETWORKS: dict[str, dict[str, Any]] = {
    "default": {},
    "key_48": {"key_size": 48},
    "four_heads": {"num_heads": 4, "key_size": 12},
    "groups_16": {"mixing_groups": 16},
    "mlp_1": {"mlp_ratio": 1},
    "attention": {"blocks": ("attention",), "num_heads": 4, "key_size": 12},
    "mixing": {"blocks": ("mixing",)},
    "turns": {"blocks": ("mixing", "attention")},
    "first": {"blocks": ("mixing+attention", "mixing", "mixing", "mixing")},
    "everywhere": {"blocks": ("mixing+attention",)},
    "large": {"width": 64, "num_blocks": 6},
    "large_mixing": {"width": 64, "num_blocks": 6, "blocks": ("mixing",)},
    "resnet": {"name": "resnet", "width": 32},
    "resnet_pool": {"name": "resnet_pool", "width": 32},
    "gateau": {"name": "gateau", "width": 44},
}
AT_ONCE = {"gateau": GATEAU_AT_ONCE}  # positions of a part; the others: as in a run


class Labels(NamedTuple):
    """Labelled positions, as numpy arrays.

    Attributes:
      nodes: `[N, V, F]`.
      legal: `[N, A]`.
      policy: `[N, A]`, the teacher's.
      value: `[N]`, the teacher's, from the perspective of the player to move.
      game: `[N]`, the number of the game.
    """

    nodes: np.ndarray
    legal: np.ndarray
    policy: np.ndarray
    value: np.ndarray
    game: np.ndarray


def label(board: str, num_games: int, seed: int, file: Path) -> None:
    """Writes the labels of `num_games` games."""
    game = make_game(board)
    teach, params = make_teacher(game)

    @jax.jit
    def ply(params: Any, states: Any, key: jax.Array) -> Any:
        teach_key, move_key, step_key = jax.random.split(key, 3)
        policy, value = teach(params, teach_key, states)
        seen = jax.vmap(game.observe)(states), states.legal_action_mask, policy, value, ~states.terminated
        actions = jax.random.categorical(move_key, jnp.log(policy + 1e-9))
        after = jax.vmap(game.step)(states, actions.astype(jnp.int32), jax.random.split(step_key, num_games))
        return select(states.terminated, states, after), seen

    states = random_positions(game, num_games, 0, game.max_plies // 2, seed)
    plies = []
    for number in track(range(game.max_plies), f"labelling {board}", console=CONSOLE):
        states, seen = ply(params, states, jax.random.fold_in(jax.random.key(seed), number))
        plies.append(jax.device_get(seen))
        if not plies[-1][-1].any():
            break
    *columns, is_open = (np.concatenate(column) for column in zip(*plies))
    games = np.tile(np.arange(num_games), len(plies))
    labels = Labels(*(column[is_open] for column in columns), game=games[is_open])
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, **labels._asdict())
    CONSOLE.print(f"{file}: {len(labels.value):,} positions of {num_games:,} games")


def make_teacher(game: Game) -> tuple[Callable[[Any, jax.Array, Any], tuple[jax.Array, jax.Array]], Any]:
    """Returns a function from parameters, a key and `[B]` states to policies `[B, A]` and values `[B]`, and the
    parameters.
    """
    if game.family in shipped_names() or game.name in shipped_names():
        agent = load("shipped", board=game.name)

        def ask(params: Any, key: jax.Array, states: Any) -> tuple[jax.Array, jax.Array]:
            found = agent.evaluator(params, states)
            return jax.nn.softmax(mask_illegal(found.prior_logits, states)), found.value

        return ask, agent.params
    search = make_mcts(game, ROLLOUTS)

    def roll_out(params: Any, key: jax.Array, states: Any) -> tuple[jax.Array, jax.Array]:
        tree = search(key, states)
        visits, sums = tree.visits[0], tree.sums[0]
        total = jnp.maximum(visits.sum(-1), 1)
        return visits / total[:, None], sums.sum(-1) / total

    return roll_out, None


def read_labels(file: Path, symmetries: Symmetries) -> tuple[Labels, Labels]:
    """Returns the labels of the first nine tenths of the games, and those of the other games' positions that do not
    occur there, not even in another orientation, since students train on all orientations.
    """
    with np.load(file) as arrays:
        labels = Labels(**arrays)
    is_held_out = labels.game >= 0.9 * (labels.game.max() + 1)
    train, held_out = (Labels(*(column[rows] for column in labels)) for rows in (~is_held_out, is_held_out))
    seen = {nodes.tobytes() for nodes in train.nodes}
    orientations = symmetries.node_permutations
    is_new = [all(nodes[order].tobytes() not in seen for order in orientations) for nodes in held_out.nodes]
    if not any(is_new):
        raise SystemExit(f"{file}: every held-out position also occurs in training; label more --games")
    return train, Labels(*(column[is_new] for column in held_out))


def fingerprint_of(*arrays: np.ndarray) -> str:
    """Returns a hash of the contents of arrays."""
    return hashlib.blake2b(b"".join(array.tobytes() for array in arrays), digest_size=8).hexdigest()


class Solved(NamedTuple):
    """Solved positions, with their features `[N, V, F]`."""

    oracle: Oracle
    nodes: np.ndarray


class Student:
    """A network that learns from labels; set `steps` before `train`."""

    def __init__(self, name: str, game: Game):
        self.name, self.game = name, game
        fields: dict[str, Any] = BASE | NETWORKS[name]
        config = Config(boards=(game.name,), network=NetworkConfig(**fields))
        self.network: Network = make_configured_network(config, game)
        self.steps = 0
        self.evaluate = jax.jit(self.network.apply)
        self.gradient = jax.jit(jax.grad(self.loss, has_aux=True))
        self.params = make_params(game, self.network, jax.random.key(0))
        self.num_params = sum(leaf.size for leaf in jax.tree.leaves(self.params))

    def loss(self, params: Any, batch: Batch) -> tuple[jax.Array, dict]:
        return alphazero_loss(params, self.network, batch, value_weight=1.0)

    def train(self, labels: Labels, optimizer_name: str, rate: float, seed: int) -> Any:
        """Returns the parameters after `steps` updates."""
        schedule = make_schedule(
            learning_rate=rate,
            warmup_steps=self.steps // 20,
            total_steps=self.steps,
            final_learning_rate_fraction=0.1,
        )
        optimizer = make_optimizer(name=optimizer_name, schedule=schedule, weight_decay=1e-4, clip_norm=1.0)
        params = make_params(self.game, self.network, jax.random.key(seed))
        state = optimizer.init(params)

        @functools.partial(jax.jit, donate_argnums=(0, 1))
        def update(params: Any, state: Any, batch: Batch, key: jax.Array) -> tuple[Any, Any]:
            index = random_symmetries(key, BATCH, self.game.symmetries)
            batch = batch._replace(
                nodes=permute_nodes(batch.nodes, index, self.game.symmetries),
                legal_action_mask=permute_actions(batch.legal_action_mask, index, self.game.symmetries),
                policy_target=permute_actions(batch.policy_target, index, self.game.symmetries),
            )
            gradient, _ = jax.grad(self.loss, has_aux=True)(params, batch)
            changes, state = optimizer.update(gradient, state, params)
            return optax.apply_updates(params, changes), state

        for number, rows in enumerate(batches(len(labels.value), self.steps, seed)):
            key = jax.random.fold_in(jax.random.key(seed), number)
            params, state = update(params, state, batch_of(labels, rows), key)
        return params

    def measure(self, params: Any, labels: Labels, solved: Solved | None) -> dict[str, float]:
        """Returns the columns of the table, and `loss`, on labels and solved positions."""
        found = [self.evaluate(params, labels.nodes[padded]) for _, padded in chunks(len(labels.value), BATCH)]
        logits, values = (np.concatenate(column)[: len(labels.value)] for column in zip(*found))
        logits, policy = np.where(labels.legal, logits, -1e9), labels.policy
        log_prior = logits - logits.max(1, keepdims=True)
        log_prior -= np.log(np.exp(log_prior).sum(1, keepdims=True))
        divergence = (policy * (np.log(policy + 1e-12) - log_prior)).sum(1).mean()
        error = ((values - labels.value) ** 2).mean()
        columns = {
            "loss": divergence + error,
            "divergence": divergence,
            "teacher's move": 100 * (logits.argmax(1) == policy.argmax(1)).mean(),
            "value error": math.sqrt(error),
        }
        if solved is not None:
            oracle, (logits, values) = solved.oracle, self.evaluate(params, solved.nodes)
            moves = np.where(oracle.states.legal_action_mask, logits, -1e9).argmax(1)
            best = oracle.scores[np.arange(len(moves)), moves] == oracle.scores.max(1)
            decided = oracle.values != 0
            columns["best moves"] = 100 * best.mean()
            columns["value signs"] = 100 * (np.sign(values) == oracle.values)[decided].mean()
        return {name: float(value) for name, value in columns.items()}


def solved_positions(game: Game) -> Solved | None:
    """Returns solved positions; None if the board has no exact solver."""
    try:
        oracle = make_oracle(game, SOLVED, 0)
    except UserError:
        return None
    return Solved(oracle, jax.device_get(jax.jit(jax.vmap(game.observe))(oracle.states)))


def batches(size: int, count: int, seed: int) -> Iterator[np.ndarray]:
    """Yields `count` batches of row numbers, in a new order in each epoch."""
    generator = np.random.default_rng(seed)
    per_epoch = size // BATCH
    for number in range(count):
        if number % per_epoch == 0:
            order = generator.permutation(size)
        start = number % per_epoch * BATCH
        yield order[start : start + BATCH]


def batch_of(labels: Labels, rows: np.ndarray) -> Batch:
    nodes, legal, policy, value = (jnp.asarray(column[rows]) for column in labels[:4])
    return Batch(nodes, legal, policy, jnp.ones(len(rows)), value)


def find_seconds(file: Path, game: Game, students: list[Student], labels: Labels) -> dict[str, tuple[float, float]]:
    """Returns the times of `time_students`. New networks are timed beside the first one of NETWORKS, and their times
    scaled by its time in the file, so that all are comparable and a stopped command resumes with the same updates.
    """
    known = json.loads(file.read_text()) if file.exists() else {}
    new = [student for student in students if student.name not in known]
    if new:
        first = next(iter(NETWORKS))
        others = [student for student in new if student.name != first]
        measured = time_students([Student(first, game), *others], labels)
        scale = [known[first][i] / measured[first][i] if first in known else 1 for i in range(2)]
        known |= {name: [each * by for each, by in zip(times, scale)] for name, times in measured.items()}
        file.write_text(json.dumps(known))
    return {name: (times[0], times[1]) for name, times in known.items()}


def time_students(students: list[Student], labels: Labels) -> dict[str, tuple[float, float]]:
    """Returns the seconds of an evaluation and of a gradient of one batch, computed in parts that fit into the cache.

    Each runs in a loop inside one program, as in self-play and training: a program that runs once also pays for fresh
    memory.
    """
    sizes = {student.name: AT_ONCE.get(student.name, BATCH // fewest_parts(BATCH)) for student in students}
    parts = {name: jax.device_put(batch_of(labels, np.arange(size))) for name, size in sizes.items()}

    def gradients(student: Student) -> Callable[[], Any]:
        batch = parts[student.name]

        def once(params: Any, _: None) -> tuple[Any, None]:
            gradient, _ = student.gradient(params, batch)
            return jax.tree.map(lambda leaf, change: leaf + 0 * change, params, gradient), None

        return functools.partial(jax.jit(lambda params: jax.lax.scan(once, params, length=REPEATS)[0]), student.params)

    def evaluations(student: Student) -> Callable[[], Any]:
        return repeat_evaluation(student.network, student.params, parts[student.name].nodes, REPEATS)

    kinds = {"evaluation": evaluations, "gradient": gradients}
    calls = {(student.name, kind): make(student) for student in students for kind, make in kinds.items()}
    rounds = take_turns(calls, ROUNDS)
    seconds = {key: statistics.median(found) * BATCH / sizes[key[0]] / REPEATS for key, found in rounds.items()}
    return {
        student.name: (seconds[student.name, "evaluation"], seconds[student.name, "gradient"]) for student in students
    }


def compare(options: argparse.Namespace) -> None:
    game = make_game(options.board)
    train, held_out = read_labels(file_of(options, ".npz"), game.symmetries)
    digest = fingerprint_of(*train, *held_out)
    solved = solved_positions(game)
    students = [Student(name, game) for name in options.networks]
    results = Results(file_of(options, ".jsonl"))
    seconds = find_seconds(file_of(options, ".json"), game, students, train)

    def score(student: Student, rate: float, seed: int) -> dict[str, float]:
        optimizer = options.optimizer
        key = {"network": student.name, "steps": student.steps, "optimizer": optimizer, "rate": rate, "seed": seed}
        key["labels"] = digest
        return results.get(key, lambda: student.measure(student.train(train, optimizer, rate, seed), held_out, solved))

    rows = {}
    for student in students:
        evaluation, gradient = seconds[student.name]
        student.steps = options.updates or round(options.seconds / (EVALUATIONS_PER_UPDATE * evaluation + gradient))
        rate = best_rate(lambda rate, student=student: score(student, rate, 0)["loss"])
        rows[student.name] = rate, [score(student, rate, seed) for seed in range(1, options.seeds + 1)]
        show(rows, students, seconds)


def best_rate(loss: Callable[[float], float]) -> float:
    """Returns the rate with the lowest loss, which is not at the edge of those tried."""
    steps = FIRST_STEPS
    while True:
        best = min(steps, key=lambda step: loss(RATE * 2**step))
        wider = widen(steps, best)
        if wider == steps:
            return RATE * 2**best
        steps = wider


class Results:
    """Finished trainings, one per line of a file, so that a stopped command resumes."""

    def __init__(self, file: Path):
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self._known = {json.dumps(key): value for key, value in map(json.loads, lines)}

    def get(self, key: dict[str, Any], find: Callable[[], dict[str, float]]) -> dict[str, float]:
        name = json.dumps(key)
        if name not in self._known:
            self._known[name] = find()
            with self._file.open("a") as stream:
                stream.write(json.dumps([key, self._known[name]]) + "\n")
            CONSOLE.print(key, {column: round(value, 4) for column, value in self._known[name].items()})
        return self._known[name]


def show(rows: dict[str, Any], students: list[Student], seconds: dict[str, tuple[float, float]]) -> None:
    """Prints the table: means over seeds, with standard errors."""
    columns = list(next(iter(rows.values()))[1][0])
    table = Table("network", "parameters", "ms evaluation", "ms gradient", "updates", "rate", *columns)
    for student in students:
        if student.name not in rows:
            continue
        rate, found = rows[student.name]
        times = (f"{1000 * each:.1f}" for each in seconds[student.name])
        cells = []
        for column in columns:
            values = [each[column] for each in found]
            error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
            cells.append(f"{np.mean(values):.4g} ± {error:.2g}")
        table.add_row(student.name, f"{student.num_params:,}", *times, f"{student.steps:,}", f"{rate:g}", *cells)
    CONSOLE.print(table)


def file_of(options: argparse.Namespace, ending: str) -> Path:
    return options.workdir / f"{options.board.replace(':', '_')}{ending}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("label", "compare"))
    parser.add_argument("--board", required=True, choices=BOARDS)
    parser.add_argument("--workdir", type=Path, default=Path("runs/screening"), help="(default: %(default)s)")
    parser.add_argument("--games", type=int, default=3000, help="games to label (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the games (default: %(default)s)")
    parser.add_argument("--networks", nargs="+", default=["default", "attention", "resnet"], choices=list(NETWORKS))
    parser.add_argument("--core", type=int, default=0, help="the CPU core to use (default: %(default)s)")
    parser.add_argument("--optimizer", default="muon", choices=OPTIMIZERS, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=240, help="of AlphaZero time (default: %(default)s)")
    parser.add_argument("--updates", type=int, help="of each network, instead of as many as fit into --seconds")
    parser.add_argument("--seeds", type=int, default=3, help="per network (default: %(default)s)")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # Linux
        os.sched_setaffinity(0, {options.core})
    if options.part == "label":
        label(options.board, options.games, options.seed, file_of(options, ".npz"))
    else:
        compare(options)


if __name__ == "__main__":
    main()
