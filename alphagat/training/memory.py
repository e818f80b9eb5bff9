"""An estimate of the memory that a run needs, made before anything is compiled."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagat.agents.build import input_shapes, make_portable_network, param_shapes
from alphagat.config import Config, NetworkConfig
from alphagat.errors import UserError
from alphagat.evaluation import mcts, oracles
from alphagat.games.base import Game
from alphagat.opponents import PREVIOUS, find_opponent
from alphagat.runtime import sharding
from alphagat.runtime.memory import device_memory
from alphagat.search.memory import num_bytes, state_bytes, tree_bytes
from alphagat.selfplay.auxiliary_targets import blank_records
from alphagat.training.setup import Run, Setup, auxiliary_targets
from alphagat.training.state import held_share
from alphagat.wording import sized

FLOAT = 4  # bytes


class Part(NamedTuple):
    """A part of the memory of one device, in bytes, and the field that makes it smaller."""

    name: str
    size: float
    field: str


class Estimate(NamedTuple):
    """The memory that a run needs on one device.

    Attributes:
      kept: the parts of the run state.
      working: the temporary arrays of programs that run one after another, so that only the largest counts.
      copies: 2 if a checkpoint is copied within the same memory before it is written, else 1.
    """

    kept: tuple[Part, ...]
    working: tuple[Part, ...]
    copies: int

    @property
    def needed(self) -> float:
        return self.copies * sum(part.size for part in self.kept) + max(part.size for part in self.working)

    @property
    def largest(self) -> Part:
        return max((*self.kept, *self.working), key=lambda part: part.size)


class NetworkSizes(NamedTuple):
    """Bytes of the parameters, and per position of the activations that the backward pass needs."""

    params: float
    activations: float


def check_memory(run: Run) -> None:
    """Refuses a run that needs more memory than its devices have. Compiles nothing.

    Raises:
      UserError: the message names the largest part, the estimate, the limit, and the field to lower.
    """
    limit = device_memory(run.config.mesh.memory_gb)
    estimate = estimate_memory(run)
    if estimate.needed > limit:
        part = estimate.largest
        twice = ", twice during a checkpoint" if part in estimate.kept and estimate.copies > 1 else ""
        section, _, name = part.field.partition(".")
        value = getattr(getattr(run.config, section), name)
        raise UserError(
            f"config.{part.field}={value!r}: the run needs about {sized(estimate.needed)} per device, of "
            f"{sized(limit)}; most of it is {part.name}, {sized(part.size)}{twice}: lower this field"
        )


def estimate_memory(run: Run) -> Estimate:
    """Estimates the memory that a run needs per device, from the shapes of its arrays.

    The sizes of the network are extrapolated from networks with one and two periods of blocks.
    """
    config = run.config
    players = () if run.learns_from_games else run.boards
    num_actors, num_learners = (mesh.shape[sharding.DATA] for mesh in (run.actor_mesh, run.learner_mesh))
    networks = [network_sizes(setup.game, config.network) for setup in run.boards]
    replay = sum(_replay(setup) for setup in players)
    waiting = sum(setup.plan.num_games * (setup.plan.num_waiting + 1) * _ply(setup) for setup in players)
    working = [part for setup in players for part in _selfplay(setup, num_actors)]
    working += [_learning(setup, sizes, num_learners) for setup, sizes in zip(run.boards, networks)]
    if config.evaluation.every:
        matched = [each for each in run.boards if config.evaluation.opponents or each.game.num_players == 1]
        working += [_matches(setup, run.mesh.shape[sharding.DATA]) for setup in matched]
        working += [_perfect_play(setup) for setup in run.boards]
    is_copied = jax.default_backend() == "cpu" or jax.process_count() > 1
    return Estimate(
        (
            Part("the parameters and the optimizer", _parameters(run, networks[0].params), "network.width"),
            Part("the replay", replay / num_learners, "replay.capacity"),
            Part("the positions that wait for their targets", waiting / num_actors, "selfplay.num_games"),
            *_blocks(run, players, num_learners),
        ),
        tuple(working),
        copies=2 if is_copied else 1,
    )


def _blocks(run: Run, players: Sequence[Setup], num_learners: int) -> list[Part]:
    """Returns the part of the learners' `Block`s; none without actors."""
    if not run.config.mesh.actors:
        return []
    size = sum(each.plan.num_games * each.plan.full_plies * _position(each, num_scalars=2) for each in players)
    return [Part("the positions on their way to the learners", size / num_learners, "selfplay.num_games")]


def _replay(setup: Setup) -> float:
    """Returns the bytes of the replay: `Sample`s with a policy target and two numbers."""
    return setup.plan.num_groups * setup.plan.group_capacity * _position(setup, num_scalars=2)


def _ply(setup: Setup) -> float:
    """Returns the bytes of a `Ply`."""
    return _position(setup, num_scalars=8)


def _position(setup: Setup, num_scalars: int) -> float:
    """Returns the bytes of a position with its policy target, auxiliary targets and other numbers."""
    game = setup.game
    auxiliary = blank_records(game, auxiliary_targets(setup.config))
    return state_bytes(game) + FLOAT * (game.num_actions + num_scalars) + num_bytes(auxiliary)


def _parameters(run: Run, params: float) -> float:
    """Returns the bytes of the parameters, their averages and the optimizer state on a device."""
    config, mesh = run.config, run.mesh
    matrix = {"kernel": jax.ShapeDtypeStruct((64, 64), jnp.float32)}
    optimizer = num_bytes(jax.eval_shape(run.boards[0].optimizer.init, matrix)) / num_bytes(matrix)
    # The parameters now, at the last evaluation, their average, and those of the actors.
    copies = 2 + optimizer + bool(config.learner.ema_decay) + bool(config.mesh.actors)
    if config.mesh.splits_network or config.mesh.fsdp:
        shapes = param_shapes(run.boards[0].game, run.boards[0].network)
        params *= held_share(mesh, shapes, fsdp=config.mesh.fsdp)
    return copies * params


def _selfplay(setup: Setup, num_devices: int) -> list[Part]:
    """Returns the arrays of the search and of the moves of an iteration."""
    config, plan, games = setup.config, setup.plan, setup.plan.num_games / num_devices
    simulations = config.search.num_simulations
    fields = {"search.num_simulations": simulations, "selfplay.num_games": plan.num_games}
    moves = {"selfplay.plies_per_iteration": plan.plies_per_iteration, "selfplay.num_games": plan.num_games}
    plies = plan.num_waiting + 2 * plan.plies_per_iteration  # the new moves, and their copy after the waiting ones
    searching = plan.group_games if jax.default_backend() == "cpu" else games  # `over_groups`
    return [
        Part("the search tree", searching * tree_bytes(setup.game, simulations), max(fields, key=fields.__getitem__)),
        Part("the moves of an iteration", games * plies * _ply(setup), max(moves, key=moves.__getitem__)),
    ]


def _learning(setup: Setup, sizes: NetworkSizes, num_devices: int) -> Part:
    """Returns the activations and gradients of an update with the fewest positions at once that the config allows."""
    learner = setup.config.learner
    share = learner.batch_size / num_devices
    positions = share / learner.num_micro_batches if learner.num_micro_batches else 1
    field = "learner.batch_size" if positions * sizes.activations > 2 * sizes.params else "network.width"
    return Part("the activations of an update", positions * sizes.activations + 2 * sizes.params, field)


def _matches(setup: Setup, num_devices: int) -> Part:
    """Returns the largest tree of the players of an evaluation."""
    evaluation, game = setup.config.evaluation, setup.game
    found = [find_opponent(name) for name in evaluation.opponents if name != PREVIOUS]
    simulations = [number for _, numbers in filter(None, found) for number in numbers]
    trees = [tree_bytes(game, evaluation.num_simulations), *(mcts.tree_bytes(game, number) for number in simulations)]
    return Part("the matches", evaluation.num_games / num_devices * max(trees), "evaluation.num_games")


def _perfect_play(setup: Setup) -> Part:
    """Returns the tree of the comparison with perfect play, which runs on one device."""
    evaluation = setup.config.evaluation
    positions = min(evaluation.oracle_positions, oracles.CHUNK)
    size = positions * tree_bytes(setup.game, evaluation.num_simulations)
    return Part("the comparison with perfect play", size, "evaluation.num_simulations")


def network_sizes(game: Game, network: NetworkConfig) -> NetworkSizes:
    """Returns the sizes of a network from those with one and two periods of its blocks, since periods are equal."""
    period = len(network.blocks)
    more, rest = divmod(network.num_blocks, period)
    if not more:
        return NetworkSizes(*_traced_sizes(game, _frozen(network)))
    one, two = (_traced_sizes(game, _frozen(network, num_blocks=rest + n * period)) for n in (1, 2))
    params, activations = (first + (more - 1) * (second - first) for first, second in zip(one, two))
    return NetworkSizes(params, activations)


def _frozen(network: NetworkConfig, **changes: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((dataclasses.asdict(network) | changes).items())


@functools.lru_cache(maxsize=64)
def _traced_sizes(game: Game, network: tuple[tuple[str, Any], ...]) -> tuple[float, float]:
    """Returns the bytes of the parameters, and per position of what the forward pass saves for the backward pass."""
    config = Config(network=NetworkConfig(**dict(network)))
    module = make_portable_network(config, game)  # a fused one keeps less, but would compile a check
    params = param_shapes(game, module)

    def saved(params: Any, nodes: jax.Array, edges: jax.Array | None) -> Any:
        return jax.vjp(lambda params: module.apply(params, nodes, edges), params)[1]

    one, two = (num_bytes(jax.eval_shape(saved, params, *input_shapes(game, batch))) for batch in (1, 2))
    return num_bytes(params), two - one
