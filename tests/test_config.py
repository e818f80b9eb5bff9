"""Every refusal names the field, its value and the fix."""

import dataclasses
import json

import pytest

from alphagat import config_validation
from alphagat.config import Config, LearnerConfig
from alphagat.errors import UserError

REFUSED = [
    ("boards", (), "hex:5"),
    ("boards", ("",), "hex:5"),
    ("boards", "hex:5", "tuple of str"),
    ("boards", ("hex:5", "hex:5"), "each board once"),
    ("board_weights", (1.0, 2.0), "one weight for each"),
    ("board_weights", ("a",), "tuple of float"),
    ("board_weights", (-1.0,), "not negative"),
    ("final_board_weights", (0.0,), "not all 0"),
    ("init_from", 5, "type str"),
    ("seed", -1, "at least 0"),
    ("seed", 2**32, "at most"),
    ("num_iterations", 0, "at least 1"),
    ("num_iterations", 10.0, "type int"),
    ("num_iterations", True, "type int"),
    ("mesh.data", -1, "at least 0"),
    ("mesh.data", 3, "multiple of config.mesh.data=3"),
    ("network.name", "gta", "gat, resnet"),
    ("network.backend", "sparse", "dense, jraph"),
    ("network.width", 0, "at least 1"),
    ("network.num_heads", 5, "the nearest that does is 4"),
    ("search.algorithm", "alphabeta", "gumbel, puct"),
    ("search.num_simulations", 0, "at least 1"),
    ("search.num_simulations", "32", "type int"),
    ("search.rescale_values", 1, "type bool"),
    ("search.value_scale", 0.0, "above 0"),
    ("evaluation.value_scale", 0.0, "above 0"),
    ("search.dirichlet_fraction", 1.5, "[0, 1]"),
    ("selfplay.num_games", 4, "num_groups=8"),
    ("selfplay.value_lambda", -0.1, "[0, 1]"),
    ("selfplay.horizon", -1, "at least 0"),
    ("replay.capacity", 4_095, "min_size=4096"),
    ("replay.min_size", 511, "batch_size=512"),
    ("pretrain.games", ("",), "name files or folders"),
    ("pretrain.holdout", 1.5, "[0, 1]"),
    ("pretrain.holdout", 1.0, "below 1"),
    ("learner.batch_size", 508, "the nearest are 504 and 512"),
    ("learner.replay_ratio", 0.0, "above 0"),
    ("learner.optimizer", "adam", "lamb, lars, adamw, sgd"),
    ("learner.learning_rate", float("nan"), "finite"),
    ("evaluation.num_games", 0, "at least 2"),
    ("evaluation.num_games", 7, "the nearest are 6 and 8"),
    ("evaluation.opponents", ("random", "mcts"), "'mcts'"),
    ("evaluation.opponents", ("mcts:0",), "mcts:SIMULATIONS"),
    ("evaluation.opponents", ("random", "random"), "once"),
    ("evaluation.opponents", "random", "tuple of str"),
    ("checkpoint.keep", 0, "at least 1"),
]


def changed(path: str, value: object) -> Config:
    """Returns the default config with one field set."""
    config = Config()
    *sections, name = path.split(".")
    section = getattr(config, sections[0]) if sections else config
    setattr(section, name, value)
    return config


def test_defaults_are_valid():
    Config().validate()


@pytest.mark.parametrize(("path", "value", "fix"), REFUSED, ids=[f"{path}={value}" for path, value, _ in REFUSED])
def test_refusal_names_field_value_and_fix(path: str, value: object, fix: str):
    with pytest.raises(UserError) as refusal:
        changed(path, value).validate()
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
        ("seed", 2**32 - 1),
    ],
)
def test_accepts_values_at_the_edge(path: str, value: object):
    changed(path, value).validate()


def test_resnet_needs_no_divisible_width():
    config = changed("network.num_heads", 5)
    config.network.name = "resnet"
    config.validate()


CANNOT_TEACH = {"network.name": "resnet", "mesh.stage": 2, "selfplay.horizon": 16, "pretrain.games": ("games.sgf",)}


@pytest.mark.parametrize(("path", "value"), CANNOT_TEACH.items())
def test_an_ownership_head_needs_games_that_teach_it(path: str, value: object):
    config = changed(path, value)
    config.validate()
    config.network.ownership_head = True
    with pytest.raises(UserError, match="ownership_head"):
        config.validate()


def test_a_section_of_another_type_is_refused():
    config = Config()
    config.search = LearnerConfig()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(UserError, match=r"config\.search=.*SearchConfig"):
        config.validate()


def test_every_number_has_a_rule_and_every_rule_a_field():
    ruled = [*config_validation.MINIMA, *config_validation.POSITIVE, *config_validation.FRACTIONS]
    numbers = [field.path for field in config_validation.fields(Config()) if field.type in (int, float)]
    assert sorted(ruled) == sorted(numbers)
    texts = {field.path for field in config_validation.fields(Config()) if field.type is str}
    assert set(config_validation.CHOICES) == texts - {"init_from"}


def test_json_round_trip():
    config = changed("evaluation.opponents", ("mcts:5",))
    config.learner.learning_rate = 0.125
    assert config_validation.from_dict(json.loads(json.dumps(config_validation.to_dict(config)))) == config


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


def test_comments_come_from_the_source():
    comments = {field.path: field.comment for field in config_validation.fields(Config())}
    assert comments["evaluation.num_games"] == "per opponent; even"
    assert comments["seed"] == ""


def test_configs_refuse_stray_attributes():
    for field in dataclasses.fields(Config):
        section = getattr(Config(), field.name)
        if dataclasses.is_dataclass(section):
            with pytest.raises(AttributeError):
                section.stray = 1
