"""Validation of a `Config`: each field by its declaration, and the rules between fields."""

from typing import Any

from alphagat.config import MAX_DEVICES, Config, MeshConfig, NetworkConfig
from alphagat.config_fields import assign, check, fields, refusal
from alphagat.errors import UserError
from alphagat.network_traits import (
    BLOCK_KINDS,
    DIVIDES_WIDTH,
    FUSED,
    NETWORK_TRAITS,
    kinds_of_blocks,
    messages_of,
    networks_with,
)
from alphagat.opponents import PREVIOUS, USAGES, find_opponent


def validate(config: Config) -> None:
    """Checks every rule that does not depend on the board.

    Raises:
      UserError: the first field that breaks a rule; one line names the field, its value and the fix.
    """
    for field in fields(config):
        check(field)
    _check_boards(config)
    _check_trackers(config)
    _check_network(config.network)
    _check_auxiliary_heads(config)
    _check_model_parallelism(config.mesh, config.network)
    _check_sizes(config)
    _check_actors(config.mesh)
    _check_pretrain(config)
    _check_evaluation(config)


def from_dict(values: dict[str, Any]) -> Config:
    """Reads the output of `config_fields.to_dict`; a missing field keeps its default.

    Raises:
      UserError: a name is not a field of the config, or `validate` rejects a value.
    """
    config = Config()
    assign(config, values)
    validate(config)
    return config


def _check_boards(config: Config) -> None:
    boards = config.boards
    if not boards or not all(boards):
        raise refusal("boards", boards, "name at least one board, such as ('hex:5',)")
    if len(set(boards)) < len(boards):
        raise refusal("boards", boards, "name each board once")
    for path in ("board_weights", "final_board_weights"):
        weights = getattr(config, path)
        if weights and len(weights) != len(boards):
            raise refusal(path, weights, f"it must have one weight for each of config.boards={boards}")
        if weights and not any(weights):
            raise refusal(path, weights, "at least one weight must be above 0")
    last = config.final_board_weights or config.board_weights
    for board, *weights in zip(boards, config.board_weights, last):
        if not any(weights):
            raise refusal("board_weights", config.board_weights, f"{board} never trains; leave it out of config.boards")


def _check_trackers(config: Config) -> None:
    if len(set(config.trackers)) < len(config.trackers):
        raise refusal("trackers", config.trackers, "name each tracker once")


def _check_network(network: NetworkConfig) -> None:
    if not network.blocks:
        raise refusal("network.blocks", network.blocks, f"name at least one kind of {', '.join(BLOCK_KINDS)}")
    if not NETWORK_TRAITS[network.name].passes_messages:
        return
    for name in _divided_into(network):
        _check_divides(f"network.{name}", getattr(network, name), "network.width", network.width)


def _divided_into(network: NetworkConfig) -> tuple[str, ...]:
    """Returns the fields into which the width of a network's messages is divided."""
    messages = messages_of(kinds_of_blocks(network.blocks, network.num_blocks))
    return tuple(field for message, field in DIVIDES_WIDTH.items() if message in messages)


def _check_divides(path: str, value: int, whole_path: str, whole: int) -> None:
    if whole % value:
        fix = f"it must divide config.{whole_path}={whole}; the nearest divisor is {_nearest_divisor(whole, value)}"
        raise refusal(path, value, fix)


def _check_auxiliary_heads(config: Config) -> None:
    for head in config.network.auxiliary_heads:
        if not NETWORK_TRAITS[config.network.name].supports_auxiliary_heads:
            fix = f"it needs config.network.name={networks_with('supports_auxiliary_heads')}; set it to False"
            raise refusal(f"network.{head}_head", True, fix)
        if config.mesh.stage > 1:
            fix = f"config.network.{head}_head=True needs one stage; set it to 1"
            raise refusal("mesh.stage", config.mesh.stage, fix)
        if config.selfplay.horizon:
            fix = f"config.network.{head}_head=True needs the end of each game; set it to 0"
            raise refusal("selfplay.horizon", config.selfplay.horizon, fix)


def _check_model_parallelism(mesh: MeshConfig, network: NetworkConfig) -> None:
    for axis, size, trait in (
        ("model", mesh.model, "supports_model_parallel"),
        ("stage", mesh.stage, "supports_stages"),
    ):
        if size > 1 and not getattr(NETWORK_TRAITS[network.name], trait):
            fix = f"splitting a network needs config.network.name={networks_with(trait)}; set it to 1"
            raise refusal(f"mesh.{axis}", size, fix)
        if size > 1 and network.backend == FUSED and NETWORK_TRAITS[network.name].passes_messages:
            fix = f"config.network.backend={FUSED!r} needs a network on one device; set it to 1"
            raise refusal(f"mesh.{axis}", size, fix)
    if mesh.num_devices > MAX_DEVICES:
        split = f"config.mesh.stage={mesh.stage} and config.mesh.model={mesh.model}"
        most = MAX_DEVICES // (mesh.stage * mesh.model)
        fix = f"set it to at most {most}" if most else "lower config.mesh.stage or config.mesh.model"
        fix = f"with {split}, it makes {mesh.num_devices} devices, and the maximum is {MAX_DEVICES}; {fix}"
        raise refusal("mesh.data", mesh.data, fix)
    for name in _divided_into(network):
        count = getattr(network, name)
        if count % mesh.model:
            possible = [n for n in range(mesh.model, network.width + 1, mesh.model) if network.width % n == 0]
            other = f"config.network.{name}={possible[0]}, or " if possible else ""
            fix = f"config.network.{name}={count} must be a multiple of it; set {other}config.mesh.model="
            raise refusal("mesh.model", mesh.model, f"{fix}{_nearest_divisor(count, mesh.model)}")
    if mesh.stage > network.num_blocks:
        fix = f"it must be at most config.network.num_blocks={network.num_blocks}, since each stage needs a block"
        raise refusal("mesh.stage", mesh.stage, fix)


def _check_sizes(config: Config) -> None:
    """Checks that the numbers of games, devices and positions are consistent."""
    mesh, selfplay, replay, batch_size = config.mesh, config.selfplay, config.replay, config.learner.batch_size
    simulations = "search.num_simulations", config.search.num_simulations
    first = ("selfplay.first_simulations", selfplay.first_simulations) if selfplay.first_simulations else simulations
    fast = "selfplay.fast_simulations", selfplay.fast_simulations
    limits = [(first, simulations), (fast, first)] if selfplay.full_search_fraction < 1 else [(first, simulations)]
    for (name, value), (limit, most) in limits:
        if value > most:
            raise refusal(name, value, f"it must be at most config.{limit}={most}")
    if selfplay.num_games < selfplay.num_groups:
        fix = f"it must be at least config.selfplay.num_groups={selfplay.num_groups}, one game per group"
        raise refusal("selfplay.num_games", selfplay.num_games, fix)
    if mesh.data and not mesh.actors and selfplay.num_groups % mesh.data:
        fix = f"it must be a multiple of config.mesh.data={mesh.data}, so that each device has whole groups"
        fix += f"; {_nearest_multiples(selfplay.num_groups, mesh.data)}"
        raise refusal("selfplay.num_groups", selfplay.num_groups, fix)
    if batch_size % selfplay.num_groups:
        fix = f"it must be a multiple of config.selfplay.num_groups={selfplay.num_groups}"
        fix += f"; {_nearest_multiples(batch_size, selfplay.num_groups)}"
        raise refusal("learner.batch_size", batch_size, fix)
    if replay.min_size < batch_size:
        fix = f"it must be at least config.learner.batch_size={batch_size}, the positions of one update"
        raise refusal("replay.min_size", replay.min_size, fix)
    if replay.capacity < replay.min_size:
        fix = f"it must be at least config.replay.min_size={replay.min_size}, or training never begins"
        raise refusal("replay.capacity", replay.capacity, fix)


def _check_actors(mesh: MeshConfig) -> None:
    if not mesh.actors:
        return
    for path, value, default in (("model", mesh.model, 1), ("stage", mesh.stage, 1), ("fsdp", mesh.fsdp, False)):
        if value != default:
            fix = f"config.mesh.actors={mesh.actors} needs a network on one device; set it to {default}, or actors to 0"
            raise refusal(f"mesh.{path}", value, fix)
    if mesh.data and mesh.actors >= mesh.data:
        fix = f"it must leave some of the {mesh.data} devices of config.mesh.data to learn; try {mesh.data // 2}"
        raise refusal("mesh.actors", mesh.actors, fix)


def _check_pretrain(config: Config) -> None:
    games = config.pretrain.games
    if not all(games):
        raise refusal("pretrain.games", games, "name files or folders, such as ('games.sgf',)")
    if games and config.mesh.actors:
        raise refusal("mesh.actors", config.mesh.actors, "training on recorded games has no self-play; set it to 0")


def _check_evaluation(config: Config) -> None:
    num_games, opponents = config.evaluation.num_games, config.evaluation.opponents
    if num_games % 2:
        fix = f"it must be even, for games with both colours; {_nearest_multiples(num_games, 2)}"
        raise refusal("evaluation.num_games", num_games, fix)
    for opponent in opponents:
        try:
            is_known = opponent == PREVIOUS or find_opponent(opponent) is not None
        except UserError as error:
            raise refusal("evaluation.opponents", opponents, str(error)) from None
        if not is_known:
            fix = f"there is no opponent {opponent!r}; use any of {USAGES}, {PREVIOUS}"
            raise refusal("evaluation.opponents", opponents, fix)
    if len(set(opponents)) < len(opponents):
        raise refusal("evaluation.opponents", opponents, "name each opponent once")


def _nearest_multiples(value: int, factor: int) -> str:
    below = value // factor * factor
    return f"the nearest are {below} and {below + factor}" if below else f"the nearest is {factor}"


def _nearest_divisor(number: int, value: int) -> int:
    near = range(max(1, value - 1000), min(number, value + 1000) + 1)
    return min((d for d in near if number % d == 0), key=lambda d: abs(d - value), default=1)
