"""What a `Config` may hold: the rules of each field, each refusal naming field, value and fix; and its JSON form."""

import dataclasses
import inspect
import math
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.network_traits import NETWORK_TRAITS, networks_with

CHOICES = {
    "network.name": tuple(NETWORK_TRAITS),
    "network.backend": ("dense", "jraph"),
    "search.algorithm": ("gumbel", "puct"),
    "network.precision": ("float32", "bfloat16", "float16"),
    "learner.optimizer": ("lamb", "lars", "adamw", "sgd"),
}
MINIMA = {
    "seed": 0,
    "evaluation.oracle_positions": 0,
    "num_iterations": 1,
    "mesh.data": 0,
    "mesh.model": 1,
    "mesh.stage": 1,
    "mesh.actors": 0,
    "mesh.memory_gb": 0,
    "network.width": 1,
    "network.num_blocks": 1,
    "network.num_heads": 1,
    "network.mlp_ratio": 1,
    "search.num_simulations": 1,
    "search.max_num_considered_actions": 1,
    "search.temperature": 0,
    "search.temperature_plies": 0,
    "selfplay.num_games": 1,
    "selfplay.num_groups": 1,
    "selfplay.plies_per_iteration": 1,
    "selfplay.fast_simulations": 1,
    "selfplay.opening_plies": 0,
    "selfplay.max_plies": 0,
    "selfplay.horizon": 0,
    "selfplay.audit_every": 0,
    "replay.capacity": 1,
    "replay.min_size": 1,
    "learner.batch_size": 1,
    "learner.num_micro_batches": 0,
    "learner.actor_sync_every": 1,
    "learner.max_skipped": 1,
    "learner.warmup_steps": 0,
    "learner.weight_decay": 0,
    "learner.value_weight": 0,
    "learner.ownership_weight": 0,
    "evaluation.every": 0,
    "evaluation.num_games": 2,
    "evaluation.num_simulations": 1,
    "checkpoint.every": 1,
    "checkpoint.keep": 1,
    "checkpoint.keep_every": 0,
}
POSITIVE = (
    "search.value_scale",
    "evaluation.value_scale",
    "search.dirichlet_alpha",
    "learner.replay_ratio",
    "learner.learning_rate",
    "learner.clip_norm",
)
FRACTIONS = (
    "search.dirichlet_fraction",
    "search.discount",
    "selfplay.full_search_fraction",
    "selfplay.surprise_fraction",
    "selfplay.value_lambda",
    "learner.final_learning_rate_fraction",
    "learner.ema_decay",
    "pretrain.holdout",
)
OPPONENT = re.compile(r"random|previous|solver|mcts:[1-9][0-9]*")
MAX_SEED = 2**32 - 1


@dataclasses.dataclass(frozen=True)
class Field:
    """One settable value of a config.

    Attributes:
      path: dotted, without `config.`, e.g. `search.num_simulations`.
      type: as annotated.
      value: in the config that was asked.
      comment: beside the field in the source; may be empty.
    """

    path: str
    type: Any
    value: Any
    comment: str


def fields(config: Any, prefix: str = "") -> Iterator[Field]:
    """Walks every settable value of a config, sections in order."""
    comments = dict(re.findall(r"^    (\w+): .*  # (.*)$", inspect.getsource(type(config)), re.MULTILINE))
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        section = typing.cast(type, field.type)
        if dataclasses.is_dataclass(section):
            if not isinstance(value, section):
                raise _refusal(prefix + field.name, value, f"it must be a {section.__name__}")
            yield from fields(value, f"{prefix}{field.name}.")
        else:
            yield Field(prefix + field.name, field.type, value, comments.get(field.name, ""))


def changes(config: Config) -> Iterator[tuple[Field, Any]]:
    """Walks the values that differ from their defaults, and gives these."""
    for field, default in zip(fields(config), fields(Config())):
        if field.value != default.value:
            yield field, default.value


def validate(config: Config) -> None:
    """Checks every field that can be checked without the board's rules.

    Raises:
      UserError: the first field that breaks a rule, in one line.
    """
    for field in fields(config):
        _check_type(field)
        _check_range(field)
    _check_together(config)


def _refusal(path: str, value: Any, fix: str) -> UserError:
    return UserError(f"config.{path}={value!r}: {fix}")


def _check_type(field: Field) -> None:
    value = field.value
    if typing.get_origin(field.type) is tuple:
        item = typing.get_args(field.type)[0]
        accepted, example = ((int, float), "(1.0, 2.0)") if item is float else (item, "('a', 'b')")
        if not isinstance(value, tuple) or not all(isinstance(each, accepted) for each in value):
            raise _refusal(field.path, value, f"it must be a tuple of {item.__name__}, such as {example}")
        return
    accepted = (int, float) if field.type is float else field.type
    if not isinstance(value, accepted) or (isinstance(value, bool) and field.type is not bool):
        raise _refusal(field.path, value, f"it must be of type {field.type.__name__}, not {type(value).__name__}")
    if field.type is float and not math.isfinite(value):
        raise _refusal(field.path, value, "it must be a finite number")


def _check_range(field: Field) -> None:
    path, value = field.path, field.value
    if path in CHOICES and value not in CHOICES[path]:
        raise _refusal(path, value, f"choose one of {', '.join(CHOICES[path])}")
    if path in MINIMA and value < MINIMA[path]:
        raise _refusal(path, value, f"it must be at least {MINIMA[path]}")
    if path in POSITIVE and value <= 0:
        raise _refusal(path, value, "it must be above 0")
    if path in FRACTIONS and not 0 <= value <= 1:
        raise _refusal(path, value, "it must lie in [0, 1]")
    if path == "seed" and value > MAX_SEED:
        raise _refusal(path, value, f"it must be at most {MAX_SEED}")


def _check_together(config: Config) -> None:
    """Checks what one field says about another."""
    network, selfplay, replay = config.network, config.selfplay, config.replay
    _check_boards(config)
    traits = NETWORK_TRAITS[network.name]
    if traits.has_attention and network.width % network.num_heads:
        near = _nearest_divisor(network.width, network.num_heads)
        fix = f"it must divide config.network.width={network.width}; the nearest that does is {near}"
        raise _refusal("network.num_heads", network.num_heads, fix)
    for axis, size, trait in (
        ("model", config.mesh.model, "supports_model_parallel"),
        ("stage", config.mesh.stage, "supports_stages"),
    ):
        if not getattr(traits, trait) and size > 1:
            raise _refusal(
                f"mesh.{axis}", size, f"only config.network.name={networks_with(trait)} is split; set it to 1"
            )
    for head in network.auxiliary_heads:
        if not traits.supports_auxiliary_heads:
            fix = f"only config.network.name={networks_with('supports_auxiliary_heads')} has it; set it to False"
            raise _refusal(f"network.{head}_head", True, fix)
        if config.mesh.stage > 1:
            raise _refusal("mesh.stage", config.mesh.stage, f"config.network.{head}_head=True needs it to be 1")
        if selfplay.horizon:
            fix = f"config.network.{head}_head=True learns from how games end; set it to 0"
            raise _refusal("selfplay.horizon", selfplay.horizon, fix)
    if network.num_heads % config.mesh.model:
        near = _nearest_divisor(network.num_heads, config.mesh.model)
        fix = f"it must divide config.network.num_heads={network.num_heads}; the nearest that does is {near}"
        raise _refusal("mesh.model", config.mesh.model, fix)
    if config.mesh.stage > network.num_blocks:
        fix = f"it must be at most config.network.num_blocks={network.num_blocks}, a block for each stage"
        raise _refusal("mesh.stage", config.mesh.stage, fix)
    if selfplay.num_games < selfplay.num_groups:
        fix = f"it must be at least config.selfplay.num_groups={selfplay.num_groups}, one game per group"
        raise _refusal("selfplay.num_games", selfplay.num_games, fix)
    if config.mesh.data and not config.mesh.actors and selfplay.num_groups % config.mesh.data:
        fix = f"it must be a multiple of config.mesh.data={config.mesh.data}, whole groups per device"
        fix += f"; {_nearest_multiples(selfplay.num_groups, config.mesh.data)}"
        raise _refusal("selfplay.num_groups", selfplay.num_groups, fix)
    batch_size = config.learner.batch_size
    if batch_size % selfplay.num_groups:
        fix = f"it must be a multiple of config.selfplay.num_groups={selfplay.num_groups}"
        fix += f"; {_nearest_multiples(batch_size, selfplay.num_groups)}"
        raise _refusal("learner.batch_size", batch_size, fix)
    if selfplay.full_search_fraction == 0:
        raise _refusal("selfplay.full_search_fraction", 0.0, "it must be above 0, or no policy is taught; take 0.25")
    if config.learner.ema_decay == 1:
        raise _refusal("learner.ema_decay", 1.0, "it must be below 1, or the average would never move; take 0.99")
    if replay.min_size < batch_size:
        fix = f"it must be at least config.learner.batch_size={batch_size}, so that an update has its positions"
        raise _refusal("replay.min_size", replay.min_size, fix)
    if replay.capacity < replay.min_size:
        fix = f"it must be at least config.replay.min_size={replay.min_size}, or training would never begin"
        raise _refusal("replay.capacity", replay.capacity, fix)
    _check_actors(config)
    _check_pretrain(config)
    _check_evaluation(config)


def _check_actors(config: Config) -> None:
    mesh = config.mesh
    if not mesh.actors:
        return
    for path, value, default in (("model", mesh.model, 1), ("stage", mesh.stage, 1), ("fsdp", mesh.fsdp, False)):
        if value != default:
            fix = f"config.mesh.actors={mesh.actors} needs whole networks; set it to {default}, or actors to 0"
            raise _refusal(f"mesh.{path}", value, fix)
    if mesh.data and mesh.actors >= mesh.data:
        fix = f"it must leave some of the {mesh.data} devices of config.mesh.data to learn; take {mesh.data // 2}"
        raise _refusal("mesh.actors", mesh.actors, fix)


def _check_pretrain(config: Config) -> None:
    games = config.pretrain.games
    if not all(games):
        raise _refusal("pretrain.games", games, "name files or folders, such as ('games.sgf',)")
    if config.pretrain.holdout == 1:
        raise _refusal("pretrain.holdout", 1.0, "it must be below 1, or no game would teach; take 0.05")
    if games and config.mesh.actors:
        raise _refusal("mesh.actors", config.mesh.actors, "with recorded games no device plays; set it to 0")
    if games and config.network.auxiliary_heads:
        fix = "recorded games do not teach it; set it to False: a run that starts from the weights may have it"
        raise _refusal(f"network.{config.network.auxiliary_heads[0]}_head", True, fix)


def _check_boards(config: Config) -> None:
    boards = config.boards
    if not boards or not all(boards):
        raise _refusal("boards", boards, "name at least one board, such as ('hex:5',)")
    if len(set(boards)) < len(boards):
        raise _refusal("boards", boards, "name each board once")
    for path in ("board_weights", "final_board_weights"):
        weights = getattr(config, path)
        if weights and len(weights) != len(boards):
            raise _refusal(path, weights, f"it must have one weight for each of config.boards={boards}")
        if weights and (not all(0 <= each < math.inf for each in weights) or sum(weights) <= 0):
            raise _refusal(path, weights, "weights must be finite, not negative, and not all 0")


def _check_evaluation(config: Config) -> None:
    evaluation = config.evaluation
    if evaluation.num_games % 2:
        near = _nearest_multiples(evaluation.num_games, 2)
        raise _refusal("evaluation.num_games", evaluation.num_games, f"it must be even, one game per colour; {near}")
    for opponent in evaluation.opponents:
        if not OPPONENT.fullmatch(opponent):
            fix = f"{opponent!r} is none of random, previous, solver, mcts:SIMULATIONS"
            raise _refusal("evaluation.opponents", evaluation.opponents, fix)
    if len(set(evaluation.opponents)) < len(evaluation.opponents):
        raise _refusal("evaluation.opponents", evaluation.opponents, "name each opponent once")


def _nearest_multiples(value: int, factor: int) -> str:
    below = value // factor * factor
    return f"the nearest are {below} and {below + factor}" if below else f"the nearest is {factor}"


def _nearest_divisor(number: int, value: int) -> int:
    return min((d for d in range(1, number + 1) if number % d == 0), key=lambda d: abs(d - value))


def to_dict(config: Config) -> dict[str, Any]:
    """Returns nested dicts of JSON's types; tuples become lists."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items()}
        return list(value) if isinstance(value, tuple) else value

    return plain(dataclasses.asdict(config))


def from_dict(values: dict[str, Any]) -> Config:
    """Reads what `to_dict` wrote; a field that is missing keeps its default.

    Raises:
      UserError: a field that no config has, or a value that `validate` refuses.
    """
    config = Config()
    _assign(config, values, "")
    validate(config)
    return config


def _assign(section: Any, values: Any, prefix: str) -> None:
    if not isinstance(values, dict):
        raise _refusal(prefix.rstrip("."), values, "it must be a section with fields")
    known = {field.name: field.type for field in dataclasses.fields(section)}
    for name, value in values.items():
        if name not in known:
            raise UserError(f"config.{prefix}{name} is not a field of this version; remove it")
        if dataclasses.is_dataclass(known[name]):
            _assign(getattr(section, name), value, f"{prefix}{name}.")
        else:
            is_tuple = isinstance(known[name], types.GenericAlias) and isinstance(value, list)
            setattr(section, name, tuple(value) if is_tuple else value)
