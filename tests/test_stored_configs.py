"""Configs that earlier versions stored still mean what those versions did."""

import json

import pytest

from alphagat import config_fields, stored_configs
from alphagat.config import Config
from alphagat.errors import UserError
from tests.training.reference.wiring_configs import GUMBEL, PUCT


@pytest.mark.parametrize("values", [{}, GUMBEL, PUCT], ids=["defaults", "gumbel", "puct"])
def test_a_config_of_this_version_is_read_as_it_was(values):
    config = Config()
    config_fields.assign(config, values)
    assert stored_configs.read(json.loads(json.dumps(config_fields.to_dict(config)))) == config


@pytest.mark.parametrize("values", [{}, {"network": {"width": 8}, "search": {}}])
def test_fields_that_a_version_lacked_keep_its_behaviour(values):
    config = stored_configs.read(values)
    assert config.network.blocks == ("attention",)
    assert (config.network.num_heads, config.network.value_pools) == (4, 4)
    assert config.network.key_size == config.network.width // 4
    assert config.search.min_value_range == 0


@pytest.mark.parametrize(("rescales", "min_value_range"), [(True, 0.0), (False, 1.0)])
def test_rescaled_values_become_a_range(rescales, min_value_range):
    values = {"search": {"rescale_values": rescales, "num_simulations": 5}}
    search = stored_configs.read(values).search
    assert (search.min_value_range, search.num_simulations) == (min_value_range, 5)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"exploration_plies": 4}, (4, 1.0)),
        ({"temperature_plies": 7}, (7, 1.0)),
        ({"temperature_plies": 0}, (0, 0.0)),
    ],
)
def test_only_puct_stopped_exploring(values, expected):
    search = stored_configs.read({"search": values | {"algorithm": "puct"}}).search
    assert (search.exploration_plies, search.temperature) == expected
    gumbel = stored_configs.read({"search": {"temperature_plies": 7, "algorithm": "gumbel"}})
    assert gumbel.search.exploration_plies == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "section"),
        ({"search": 3}, r"config\.search=3"),
        ({"search": {"rescale": 1}}, "not a field"),
        ({"network": {"num_heads": 0}}, "at least 1"),
        ({"network": {"width": "8"}}, "type int"),
    ],
)
def test_refuses_what_is_no_config(values, message):
    with pytest.raises(UserError, match=message):
        stored_configs.read(values)
