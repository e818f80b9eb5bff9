"""Builds the parts of a run from its config."""

import dataclasses
import functools
from collections.abc import Iterator

import jax
import optax
from jax.sharding import Mesh

from alphagat.agents.build import asks_for_kernel, fusing_obstacle, make_configured_network, make_portable_network
from alphagat.agents.compatibility import check_one_family
from alphagat.config import Config, MeshConfig
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.learner.optimizer import make_optimizer, make_schedule
from alphagat.network_traits import AUTO, DENSE, FUSED
from alphagat.networks import Network
from alphagat.runtime import distributed, sharding
from alphagat.runtime.cpu_cache import fewest_parts
from alphagat.search import Evaluator, make_network_evaluator
from alphagat.selfplay.auxiliary_targets import AUXILIARY_TARGETS, AuxiliaryTarget
from alphagat.training.board_schedule import board_schedule
from alphagat.training.pipeline_cut import pipeline
from alphagat.training.plan import Plan, make_plan
from alphagat.wording import counted


@dataclasses.dataclass(frozen=True)
class Setup:
    """Everything static about one board of a run; all boards share `config`, `schedule` and `optimizer`.

    `least_micro_batches` is the smallest number that fits into memory. It has no effect if the config sets the number.
    """

    config: Config
    game: Game
    plan: Plan
    network: Network
    evaluate: Evaluator
    schedule: optax.Schedule
    optimizer: optax.GradientTransformation
    least_micro_batches: int = 1

    def positions_per_device(self, mesh: Mesh) -> int:
        """Returns the size of a device's share of a batch."""
        return self.config.learner.batch_size // mesh.shape[sharding.DATA]

    def micro_batch_counts(self, mesh: Mesh) -> Iterator[int]:
        """Yields the numbers of micro-batches to try in turn: the one that the config sets, or if it sets none, the
        divisors of a device's share from the fewest parts that fit into the cache of a CPU core.
        """
        if self.config.learner.num_micro_batches:
            yield self.config.learner.num_micro_batches
            return
        share = self.positions_per_device(mesh)
        least = max(self.least_micro_batches, fewest_parts(share))
        yield from (count for count in range(least, share + 1) if share % count == 0)

    def num_micro_batches(self, mesh: Mesh) -> int:
        """Returns the first of `micro_batch_counts`, which the programs of this setup use."""
        return next(self.micro_batch_counts(mesh))


@dataclasses.dataclass(frozen=True)
class Run:
    """Everything static about a run.

    Attributes:
      config: validated.
      mesh: all devices of the run.
      boards: one setup per board of the config, in its order.
    """

    config: Config
    mesh: Mesh
    boards: tuple[Setup, ...]

    @functools.cached_property
    def order(self) -> tuple[int, ...]:
        """The index of the board that each iteration trains on."""
        return boards_by_iteration(self.config)

    def num_iterations_of(self, number: int, last: int) -> int:
        """Returns how many of the iterations from 1 to `last` train on board `number`."""
        return self.order[:last].count(number)

    @property
    def actor_mesh(self) -> Mesh:
        """The devices that play; the whole mesh unless `mesh.actors` is set."""
        return sharding.split_mesh(self.mesh, self.config.mesh.actors)[0]

    @property
    def learner_mesh(self) -> Mesh:
        """The devices that learn; the whole mesh unless `mesh.actors` is set."""
        return sharding.split_mesh(self.mesh, self.config.mesh.actors)[1]

    @property
    def learns_from_games(self) -> bool:
        """Whether the run trains on recorded games in place of self-play."""
        return bool(self.config.pretrain.games)


def make_run(config: Config, mesh: Mesh) -> Run:
    """Builds a run on the devices of `mesh`.

    Raises:
      UserError: as `make_setups` and `check_groups`, or `learner.num_micro_batches` does not divide a device's share.
    """
    run = Run(config, mesh, make_setups(config))
    check_groups(config, mesh)
    asked, share = config.learner.num_micro_batches, run.boards[0].positions_per_device(run.learner_mesh)
    if asked and share % asked:
        raise UserError(
            f"config.learner.num_micro_batches={asked} does not divide the {share} positions per device and batch: "
            "set it to a divisor, or to 0 to choose it automatically"
        )
    return run


def make_setups(config: Config) -> tuple[Setup, ...]:
    """Builds the game, network and sizes of each board and the optimizer from a validated config.

    Raises:
      UserError: a board is unknown or of another family, the run is too short for one, or a board provides no targets
        for an auxiliary head.
    """
    games = [make_game(name) for name in config.boards]
    check_one_family(config, games)
    check_auxiliary_targets(config, games[0])
    order = boards_by_iteration(config)
    plans = [
        make_plan(config, game, order.count(number), plays_last=order[-1] == number)
        for number, game in enumerate(games)
    ]
    schedule, optimizer = make_configured_optimizer(config, sum(plan.total_updates for plan in plans))
    for game in games:
        check_fused(config, game)
    make = make_portable_network if config.mesh.splits_network else make_configured_network
    networks = [make(config, game) for game in games]
    if config.mesh.stage > 1:
        networks = [pipeline(config, game, network) for game, network in zip(games, networks)]
    return tuple(
        Setup(config, game, plan, network, make_network_evaluator(game, network), schedule, optimizer)
        for game, plan, network in zip(games, plans, networks)
    )


def make_configured_optimizer(config: Config, total_steps: int) -> tuple[optax.Schedule, optax.GradientTransformation]:
    """Builds the schedule of the learning rate over `total_steps` updates, and the optimizer that follows it."""
    learner = config.learner
    schedule = make_schedule(
        learning_rate=learner.learning_rate,
        warmup_steps=learner.warmup_steps,
        total_steps=total_steps,
        final_learning_rate_fraction=learner.final_learning_rate_fraction,
    )
    optimizer = make_optimizer(
        name=learner.optimizer,
        schedule=schedule,
        weight_decay=learner.weight_decay,
        clip_norm=learner.clip_norm,
        as_one_vector=config.mesh.ravels_gradients,
    )
    return schedule, optimizer


def check_auxiliary_targets(config: Config, game: Game) -> None:
    """Checks that the game defines what each auxiliary head learns. Raises UserError otherwise."""
    for target in auxiliary_targets(config):
        if not target.can_teach(game):
            raise UserError(
                f"config.network.{target.name}_head=True: board {game.name} does not define {target.meaning}; "
                "set it to False"
            )


def check_fused(config: Config, game: Game) -> None:
    """Checks that the blocks run as one kernel if the config insists on it.

    Raises:
      UserError: this machine, the board or the network prevents it.
    """
    obstacle = kernel_obstacle(config, game)
    if obstacle and config.network.backend == FUSED:
        fix = f"set it to {AUTO!r} or {DENSE!r}"
        raise UserError(f"config.network.backend={FUSED!r} on board {game.name}: {obstacle}; {fix}")


def kernel_obstacle(config: Config, game: Game) -> str | None:
    """Returns why the blocks of a run are no kernel; None if they are one, or if the config asks for none."""
    if asks_for_kernel(config) and config.mesh.splits_network:
        return "several devices share the network"
    return fusing_obstacle(config, game)


def auxiliary_targets(config: Config) -> dict[AuxiliaryTarget, float]:
    """Returns the auxiliary targets that a run trains and their weights in the loss."""
    return {
        AUXILIARY_TARGETS[name]: getattr(config.learner, f"{name}_weight") for name in config.network.auxiliary_heads
    }


def scales_loss(config: Config) -> bool:
    """Returns whether the loss is scaled for the backward pass, as float16 requires."""
    return config.network.precision == "float16"


def boards_by_iteration(config: Config) -> tuple[int, ...]:
    """Returns the index of the board that each iteration trains on."""
    return board_schedule(config.num_iterations, len(config.boards), config.board_weights, config.final_board_weights)


def num_cpu_devices(mesh: MeshConfig) -> int:
    """Returns the number of CPU devices of a run without accelerators; 0: the default of `configure_cpu_devices`.

    `mesh.data=0` gives one device per core. On more devices than cores each update is slower, because every device
    repeats the optimizer. With several processes, actors, or a `model` or `stage` axis, it returns 0.
    """
    if mesh.num_devices:
        return mesh.num_devices
    is_plain = distributed.num_processes() == 1 and not mesh.splits_network and not mesh.actors
    return sharding.one_device_per_core() if is_plain else 0


def make_configured_mesh(config: Config) -> Mesh:
    """Returns the mesh that a config describes. Raises UserError if there are too few devices."""
    return sharding.make_mesh(config.mesh.data, config.mesh.model, config.mesh.stage)


def check_groups(config: Config, mesh: Mesh) -> None:
    """Checks that each device gets whole groups of games. Raises UserError otherwise."""
    num_groups, num_actors, num_devices = config.selfplay.num_groups, config.mesh.actors, mesh.shape[sharding.DATA]
    if num_actors >= num_devices:
        raise UserError(
            f"config.mesh.actors={num_actors} leaves no learner among {counted(num_devices, 'device')}: set it to "
            f"{num_devices // 2} (0: every device plays and learns)"
        )
    if num_actors and jax.process_count() > 1:
        raise UserError(f"config.mesh.actors={num_actors} needs all devices in one process; set it to 0")
    for share in (num_actors, num_devices - num_actors) if num_actors else (num_devices,):
        if num_groups % share:
            kind = f"actors or learners among {num_devices} devices" if num_actors else "devices of config.mesh.data"
            raise UserError(
                f"config.selfplay.num_groups={num_groups} is not a multiple of {share}, the number of {kind}: set it "
                f"to {-(-num_groups // share) * share}, or that number to a divisor of {num_groups}"
            )
