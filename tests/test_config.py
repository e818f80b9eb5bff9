"""Every config error names the field, its value and the fix."""

import dataclasses
import json
import math
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from alphagat import config_fields, config_validation
from alphagat.bounds import Limits
from alphagat.config import MAX_DEVICES, Config, LearnerConfig
from alphagat.config_fields import Field
from alphagat.errors import UserError
from alphagat.network_traits import NETWORK_TRAITS

REFUSED = [
    ("boards", (), "hex:5"),
    ("boards", ("",), "hex:5"),
    ("boards", "hex:5", "tuple of str"),
    ("boards", ("hex:5", "hex:5"), "each board once"),
    ("board_weights", (1.0, 2.0), "one weight for each"),
    ("board_weights", ("a",), "tuple of float"),
    ("board_weights", (-1.0,), "each item must be at least 0"),
    ("board_weights", (math.inf,), "each item must be a finite number"),
    ("board_weights", (True,), "tuple of float"),
    ("final_board_weights", (0.0,), "at least one weight must be above 0"),
    ("init_from", 5, "type str"),
    ("seed", -1, "at least 0"),
    ("seed", 2**32, "at most 4294967295"),
    ("num_iterations", 0, "at least 1"),
    ("num_iterations", 10.0, "type int"),
    ("num_iterations", True, "type int"),
    ("mesh.data", -1, "at least 0"),
    ("mesh.data", 3, "multiple of config.mesh.data=3"),
    ("network.name", "gta", ", ".join(NETWORK_TRAITS)),
    ("network.backend", "sparse", "dense, jraph"),
    ("network.width", 0, "at least 1"),
    ("network.num_heads", 5, "the nearest divisor is 4"),
    ("network.num_heads", 100, "the nearest divisor is 64"),
    ("network.blocks", (), "at least one kind of attention, mixing, mixing+attention"),
    ("network.blocks", ("convolution",), "attention, mixing, mixing+attention"),
    ("search.algorithm", "alphabeta", "gumbel, puct"),
    ("search.num_simulations", 0, "at least 1"),
    ("search.num_simulations", "32", "type int"),
    ("mesh.fsdp", 1, "type bool"),
    ("selfplay.first_simulations", 33, "at most config.search.num_simulations=32"),
    ("search.min_value_range", -0.5, "at least 0"),
    ("search.value_scale", 0.0, "above 0"),
    ("evaluation.value_scale", 0.0, "above 0"),
    ("search.discount", 1.5, "above 0 and at most 1"),
    ("search.discount", 0.0, "above 0"),
    ("search.dirichlet_fraction", 1.5, "at most 1"),
    ("selfplay.full_search_fraction", 0.0, "above 0"),
    ("selfplay.full_search_fraction", 1.5, "at most 1"),
    ("selfplay.surprise_fraction", 1.5, "at most 1"),
    ("selfplay.value_lambda", 1.5, "at most 1"),
    ("selfplay.num_games", 4, "num_groups=8"),
    ("selfplay.value_lambda", -0.1, "at least 0"),
    ("selfplay.horizon", -1, "at least 0"),
    ("replay.capacity", 4_095, "min_size=4096"),
    ("replay.min_size", 511, "batch_size=512"),
    ("pretrain.games", ("",), "name files or folders"),
    ("pretrain.holdout", 1.0, "at least 0 and below 1"),
    ("learner.batch_size", 508, "the nearest are 504 and 512"),
    ("learner.batch_size", 7, "the nearest is 8"),
    ("learner.replay_ratio", 0.0, "above 0"),
    ("learner.optimizer", "adam", "muon, lamb, lars, adamw, sgd"),
    ("learner.ema_decay", 0.99999999, "at most 0.99999"),  # 1 in float32
    ("trackers", ("wandb", "wandb"), "name each tracker once"),
    ("learner.final_learning_rate_fraction", 1.5, "at most 1"),
    ("learner.learning_rate", float("nan"), "finite"),
    ("evaluation.num_games", 0, "at least 2"),
    ("evaluation.num_games", 7, "the nearest are 6 and 8"),
    ("evaluation.opponents", ("random", "mcts"), "'mcts'"),
    ("evaluation.opponents", ("mcts:0",), "mcts:SIMULATIONS must be at least 1"),
    ("evaluation.opponents", ("mcts:65537",), "mcts:SIMULATIONS must be at least 1 and at most 65536"),
    ("evaluation.opponents", (f"mcts:1{'0' * 100}",), "mcts:SIMULATIONS must be at least 1 and at most 65536"),
    ("evaluation.opponents", ("random", "random"), "once"),
    ("evaluation.opponents", "random", "it must be a tuple of str, such as ('random',)"),
    ("checkpoint.keep", 0, "at least 1"),
]


def changed(path: str, value: object) -> Config:
    """Returns the default config with one field set."""
    config = Config()
    *sections, name = path.split(".")
    section = getattr(config, sections[0]) if sections else config
    setattr(section, name, value)
    return config


def outside(limits: Limits, kind: type) -> Iterator[Any]:
    """Yields a value just outside each limit."""
    if limits.at_least is not None:
        yield limits.at_least - 1 if kind is int else math.nextafter(limits.at_least, -math.inf)
    if limits.at_most is not None:
        yield limits.at_most + 1 if kind is int else math.nextafter(limits.at_most, math.inf)
    yield from (kind(each) for each in (limits.above, limits.below) if each is not None)
    yield from (f"{each}s" for each in limits.choices or ())


def test_defaults_are_valid():
    config_validation.validate(Config())


@pytest.mark.parametrize(("path", "value", "fix"), REFUSED, ids=[f"{path}={value}" for path, value, _ in REFUSED])
def test_refusal_names_field_value_and_fix(path: str, value: object, fix: str):
    with pytest.raises(UserError) as refusal:
        config_validation.validate(changed(path, value))
    message = str(refusal.value)
    assert f"config.{path}={value!r}" in message
    assert fix in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("learner.learning_rate", 1),
        ("evaluation.opponents", ()),
        ("evaluation.opponents", ("solver", "mcts:10", "mcts:20")),
        ("evaluation.every", 0),
        ("selfplay.value_lambda", 0.0),
        ("mesh.data", 4),
        ("mesh.stage", 4),
        ("seed", 2**32 - 1),
    ],
)
def test_accepts_values_at_the_limits(path: str, value: object):
    config_validation.validate(changed(path, value))


def test_accepts_the_most_devices_with_equal_numbers_of_games_groups_and_positions():
    config = Config()
    config.mesh.data = config.selfplay.num_games = config.selfplay.num_groups = MAX_DEVICES
    config.learner.batch_size = config.replay.min_size = config.replay.capacity = MAX_DEVICES
    config_validation.validate(config)


def test_only_some_devices_act():
    config = Config()
    config.mesh.data, config.mesh.actors = 3, 2  # the groups are divided among some of them
    config_validation.validate(config)
    config.mesh.actors = 3
    with pytest.raises(UserError, match=r"mesh\.actors=3: it must leave some of the 3 devices .*; try 1$"):
        config_validation.validate(config)


def test_fast_searches_are_no_larger_than_full_ones():
    config = Config()
    config.selfplay.fast_simulations = config.search.num_simulations + 1
    config_validation.validate(config)  # no search is fast
    config.selfplay.full_search_fraction = 0.5
    message = r"config\.selfplay\.fast_simulations=33: it must be at most config\.search\.num_simulations=32"
    with pytest.raises(UserError, match=message):
        config_validation.validate(config)
    config.selfplay.first_simulations = config.selfplay.fast_simulations = 4
    config_validation.validate(config)
    config.selfplay.fast_simulations = 5
    with pytest.raises(
        UserError, match=r"fast_simulations=5: it must be at most config\.selfplay\.first_simulations=4"
    ):
        config_validation.validate(config)


def test_mixing_groups_divide_the_width_of_networks_that_mix():
    config = changed("network.mixing_groups", 5)
    config.network.blocks = ("attention",)
    config_validation.validate(config)
    config.network.blocks = ("attention", "mixing")
    with pytest.raises(UserError, match=r"mixing_groups=5: it must divide .*width=64; the nearest divisor is 4"):
        config_validation.validate(config)
    config.network.num_heads, config.network.mixing_groups, config.mesh.model = 2, 1, 2
    with pytest.raises(
        UserError,
        match=r"config\.network\.mixing_groups=1 must be a multiple of it; set config\.network\.mixing_groups=2,",
    ):
        config_validation.validate(config)


def test_heads_divide_the_width_of_networks_that_attend():
    config = changed("network.num_heads", 5)
    config.network.blocks = ("mixing",)
    config_validation.validate(config)
    config.network.num_heads, config.mesh.model = 1, 2
    config_validation.validate(config)
    config.network.blocks, config.network.num_blocks = ("mixing", "attention", "mixing"), 1  # the last one
    config_validation.validate(config)
    config.network.blocks = ("mixing", "mixing+attention")
    with pytest.raises(
        UserError,
        match=r"config\.network\.num_heads=1 must be a multiple of it; set config\.network\.num_heads=2,",
    ):
        config_validation.validate(config)
    config.mesh.model = 2 * config.network.width
    with pytest.raises(UserError, match=r"num_heads=1 must be a multiple of it; set config\.mesh\.model=1$"):
        config_validation.validate(config)


def test_fused_blocks_need_a_network_on_one_device():
    for axis in ("model", "stage"):
        config = changed("network.backend", "fused")
        config_validation.validate(config)
        config.network.num_heads = 2
        setattr(config.mesh, axis, 2)
        with pytest.raises(
            UserError, match=rf"mesh\.{axis}=2: config\.network\.backend='fused' needs a network on one"
        ):
            config_validation.validate(config)
        config.network.name = "resnet"  # which has no such backend, and is refused for another reason
        with pytest.raises(UserError, match=r"needs config\.network\.name='gat'"):
            config_validation.validate(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stage": 5}, r"mesh\.stage=5: it must be at most config\.network\.num_blocks=4"),
        (
            {"data": 1024, "stage": 4, "model": 2},
            r"mesh\.data=1024: with config\.mesh\.stage=4 and config\.mesh\.model=2, it makes 8192 devices, and the "
            "maximum is 4096; set it to at most 512$",
        ),
        ({"data": 1, "stage": 4096, "model": 2}, r"8192 devices.*; lower config\.mesh\.stage or config\.mesh\.model$"),
        ({"actors": 1, "stage": 2}, r"mesh\.stage=2: config\.mesh\.actors=1 needs a network on one device"),
        ({"actors": 1, "fsdp": True}, r"mesh\.fsdp=True: config\.mesh\.actors=1 needs a network on one device"),
    ],
)
def test_a_mesh_must_suit_the_network(changes: dict, message: str):
    config = Config()
    for name, value in changes.items():
        setattr(config.mesh, name, value)
    with pytest.raises(UserError, match=message):
        config_validation.validate(config)


def test_no_network_has_an_empty_cycle_of_blocks():
    config = changed("network.blocks", ())
    config.network.name = "resnet"
    with pytest.raises(UserError, match=r"network\.blocks=\(\): name at least one kind"):
        config_validation.validate(config)


def test_resnet_needs_no_divisible_width():
    config = changed("network.num_heads", 5)
    config.network.name = "resnet"
    config_validation.validate(config)


CANNOT_TEACH = {"network.name": "resnet", "mesh.stage": 2, "selfplay.horizon": 16}


@pytest.mark.parametrize("final_weights", [(), (2.0, 0.0)])
def test_a_board_that_never_trains_is_refused(final_weights: tuple):
    config = Config(boards=("hex:5", "hex:7"), board_weights=(1.0, 0.0), final_board_weights=final_weights)
    with pytest.raises(UserError, match=r"board_weights=\(1\.0, 0\.0\): hex:7 never trains; leave it out"):
        config_validation.validate(config)
    config.final_board_weights = (1.0, 1.0)
    config_validation.validate(config)


@pytest.mark.parametrize(("path", "value"), CANNOT_TEACH.items())
def test_an_ownership_head_needs_games_with_ownership(path: str, value: object):
    config = changed(path, value)
    config_validation.validate(config)
    config.network.ownership_head = True
    with pytest.raises(UserError, match="ownership_head"):
        config_validation.validate(config)


def test_a_section_of_another_type_is_refused():
    config = Config()
    config.search = LearnerConfig()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(UserError, match=r"config\.search=.*SearchConfig"):
        config_validation.validate(config)


@pytest.mark.parametrize("field", list(config_fields.fields(Config())), ids=lambda field: field.path)
def test_fields_have_help_and_enforced_limits(field: Field):
    assert field.help
    is_tuple = typing.get_origin(field.type) is tuple
    kind = typing.get_args(field.type)[0] if is_tuple else field.type
    if kind in (int, float):
        assert (field.limits.at_least is None) != (field.limits.above is None)
        assert (field.limits.at_most is None) != (field.limits.below is None)
    if kind is str and not is_tuple and field.path != "init_from":
        assert field.limits.choices
    for item in outside(field.limits, kind):
        value = (item,) if is_tuple else item
        with pytest.raises(UserError) as error:
            config_validation.validate(changed(field.path, value))
        assert str(error.value).startswith(f"config.{field.path}={value!r}: ")
        assert str(error.value).endswith(f"must be {field.limits}")


@pytest.mark.parametrize("field", list(config_fields.fields(Config())), ids=lambda field: field.path)
@pytest.mark.parametrize("value", [10**20, 10**5000, 1e39, math.inf, math.nan], ids="abcde")
def test_huge_numbers_are_refused_in_one_short_line(field: Field, value: float):
    with pytest.raises(UserError) as error:
        config_validation.validate(changed(field.path, (value,) if typing.get_origin(field.type) is tuple else value))
    assert str(error.value).startswith(f"config.{field.path}=")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_json_round_trip():
    config = changed("evaluation.opponents", ("mcts:5",))
    config.learner.learning_rate = 0.125
    assert config_validation.from_dict(json.loads(json.dumps(config_fields.to_dict(config)))) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bord": "hex:5"}, r"config\.bord is not a field"),
        ({"search": {"simulations": 3}}, r"config\.search\.simulations is not a field"),
        ({"search": 3}, r"config\.search=3: it must be a section"),
        ({"search": {"num_simulations": 0}}, r"config\.search\.num_simulations=0"),
        ([], "section"),
    ],
)
def test_from_dict_refuses(values, message: str):
    with pytest.raises(UserError, match=message):
        config_validation.from_dict(values)


def test_changes_list_value_and_default():
    ((field, default),) = config_fields.changes(changed("search.num_simulations", 5))
    assert (field.path, field.value, default) == ("search.num_simulations", 5, 32)


@pytest.mark.parametrize(("value", "text"), [((), "()"), (("a", "b"), "a,b"), (0.5, "0.5"), (True, "True")])
def test_a_value_is_written_as_in_a_flag(value: object, text: str):
    assert config_fields.text_of(value) == text


def test_configs_refuse_unknown_attributes():
    for field in dataclasses.fields(Config):
        section = getattr(Config(), field.name)
        if dataclasses.is_dataclass(section):
            with pytest.raises(AttributeError):
                section.stray = 1  # pyright: ignore[reportAttributeAccessIssue]
