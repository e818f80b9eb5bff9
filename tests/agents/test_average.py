"""The average of networks has the mean of their parameters; networks of other shapes are refused."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest

from alphagat.agents import weight_files
from alphagat.agents.agent import load
from alphagat.agents.build import make_configured_network, make_params
from alphagat.agents.compatibility import differing_fields
from alphagat.cli import export
from alphagat.config import NetworkConfig
from alphagat.games import make_game
from tests.training.tiny import save_tiny_run, tiny_config


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return save_tiny_run(tmp_path_factory.mktemp("average") / "run", 7)


GAT, RESNET = {"name": "gat", "num_blocks": 4}, {"name": "resnet"}
MIXING, ATTENTION = {"blocks": ("mixing",)}, {"blocks": ("attention",)}


@pytest.mark.parametrize(
    ("ours", "theirs", "differing"),
    [
        (GAT, GAT | {"backend": "dense", "remat": True, "precision": "bfloat16"}, []),
        (GAT, GAT | {"num_blocks": 6}, ["num_blocks"]),
        (GAT | {"blocks": ("mixing", "attention")}, GAT | {"blocks": ("mixing", "attention") * 2}, []),
        (GAT | {"blocks": ("mixing", "attention")}, GAT | {"blocks": ("attention", "mixing")}, ["blocks"]),
        (GAT | MIXING, GAT | MIXING | {"num_heads": 4, "key_size": 8}, []),
        (GAT | MIXING, GAT | MIXING | {"mixing_groups": 4}, ["mixing_groups"]),
        (GAT | ATTENTION, GAT | ATTENTION | {"mixing_groups": 4}, []),
        (GAT | ATTENTION, GAT | ATTENTION | {"num_heads": 4, "key_size": 8}, ["num_heads", "key_size"]),
        (GAT, GAT | {"mlp_ratio": 3, "value_pools": 2}, ["mlp_ratio", "value_pools"]),
        (GAT | MIXING, GAT | ATTENTION, ["blocks"]),
        (RESNET, RESNET | MIXING | {"num_heads": 4, "mlp_ratio": 3, "value_pools": 2}, []),
        (RESNET, RESNET | {"width": 32}, ["width"]),
        (RESNET, GAT, ["name"]),
    ],
)
def test_fields_without_effect_do_not_differ(ours, theirs, differing):
    for one, other in ((ours, theirs), (theirs, ours)):
        assert differing_fields(NetworkConfig(**one), NetworkConfig(**other)) == differing


def write_scaled(run: Path, file: Path, factor: float, **network: object) -> str:
    """Writes the network of a run with scaled parameters, and other fields of `config.network`."""
    agent = load(run)
    config = dataclasses.replace(agent.config, network=dataclasses.replace(agent.config.network, **network))
    weight_files.write(file, jax.tree.map(lambda x: x * factor, agent.params), config, 9)
    return str(file)


def test_writes_the_mean_and_the_config_of_the_first(run, tmp_path):
    others = [
        write_scaled(run, tmp_path / "double.safetensors", 2.0),
        write_scaled(run, tmp_path / "six.safetensors", 6.0, precision="bfloat16", remat=True),
    ]
    file = tmp_path / "mean.safetensors"
    assert export.run([str(run), "--average", *others, "--out", str(file)]) == 0
    mean = load(file)
    assert (mean.iteration, mean.config) == (7, tiny_config())
    expected = jax.tree.leaves(load(run).params)
    for found, leaf in zip(jax.tree.leaves(mean.params), expected, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, 3 * leaf, rtol=1e-6)


@pytest.mark.parametrize(
    ("field", "value"), [("blocks", ("attention",)), ("num_heads", 4), ("width", 32), ("value_pools", 1)]
)
def test_refuses_another_shape(run, tmp_path, capsys, field, value):
    config, game, other = tiny_config(), make_game("hex:2"), tmp_path / "other.safetensors"
    assert getattr(config.network, field) != value
    setattr(config.network, field, value)
    params = make_params(game, make_configured_network(config, game), jax.random.key(0))
    weight_files.write(other, params, config, 3)
    assert export.run([str(run), "--average", str(other), "--out", str(tmp_path / "mean.safetensors")]) == 2
    assert f"it differs from the first in config.network.{field}" in capsys.readouterr().err
    assert not (tmp_path / "mean.safetensors").exists()


def test_refuses_another_family(run, tmp_path, capsys):
    assert export.run([str(run), "--average", "tic_tac_toe", "--out", str(tmp_path / "mean.safetensors")]) == 2
    assert "plays only boards of that family" in capsys.readouterr().err
