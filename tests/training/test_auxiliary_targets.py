"""A second auxiliary target trains by registration alone."""

import dataclasses
import itertools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.config import Config, LearnerConfig, NetworkConfig
from alphagat.errors import AuditError
from alphagat.networks.auxiliary_heads import AUXILIARY_HEADS
from alphagat.runtime import sharding
from alphagat.selfplay.auxiliary_targets import AUXILIARY_TARGETS, AuxiliaryTarget
from alphagat.training.audit import Auditor
from alphagat.training.iteration import make_iteration, run_iteration
from alphagat.training.setup import auxiliary_targets, make_setups
from alphagat.training.state import init_state
from tests.training.tiny import run_of, tiny_config


class PliesLeft(AuxiliaryTarget):
    """The number of plies until the game ends, including this one; `[]` float32. It needs no record."""

    name = "plies_left"
    meaning = "the number of plies until the end of the game"

    def can_teach(self, game):
        return True

    def blank(self, game):
        return jnp.zeros(())

    def record(self, game, state, ended):
        return jnp.zeros(())

    def targets(self, history):
        def backward(later, ended):
            left = jnp.where(ended, 1.0, jnp.where(later > 0, later + 1, 0.0))
            return left, left

        return jax.lax.scan(backward, jnp.zeros(history.ended.shape[1]), history.ended, reverse=True)[1]

    def recorded_targets(self, ends, players, to_go):
        return to_go + 1

    def audited_target(self, history, ply):
        return 1 + np.argmax(history.ended[ply:])

    def loss(self, prediction, target):
        return jnp.square(prediction - target)


class PliesLeftHead(nn.Module):
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, nodes):
        return nn.softplus(nn.Dense(1, name="plies")(nodes.mean(axis=1))[..., 0])


@dataclasses.dataclass(slots=True, kw_only=True)
class ToyNetworkConfig(NetworkConfig):
    plies_left_head: bool = True


@dataclasses.dataclass(slots=True, kw_only=True)
class ToyLearnerConfig(LearnerConfig):
    plies_left_weight: float = 0.25


def toy_config(board):
    config = tiny_config()
    config.boards, config.mesh.data = (board,), 1
    for name, kind in (("network", ToyNetworkConfig), ("learner", ToyLearnerConfig)):
        section = getattr(config, name)
        setattr(config, name, kind(**{f.name: getattr(section, f.name) for f in dataclasses.fields(section)}))
    return config


@pytest.fixture
def _registered(monkeypatch):
    monkeypatch.setitem(AUXILIARY_TARGETS, "plies_left", PliesLeft())
    monkeypatch.setitem(AUXILIARY_HEADS, "plies_left", lambda topology, dtype: PliesLeftHead(dtype))


def test_every_target_has_a_head_and_config_fields():
    assert AUXILIARY_TARGETS.keys() == AUXILIARY_HEADS.keys()
    for name in AUXILIARY_TARGETS:
        assert not getattr(Config().network, f"{name}_head")
        assert getattr(Config().learner, f"{name}_weight") > 0


@pytest.mark.usefixtures("_registered")
def test_a_registered_target_is_played_audited_and_trained():
    config = toy_config("othello:4")
    config.network.ownership_head = True
    config.selfplay.max_plies = 12
    targets = auxiliary_targets(config)
    weights = {"plies_left": 0.25, "ownership": 0.5}
    assert {target.name: weight for target, weight in targets.items()} == weights
    (setup,), mesh = make_setups(config), sharding.make_mesh(1)
    state, program = init_state(run_of(setup, mesh)), make_iteration(setup, mesh)
    before = jax.device_get(state.train.params["params"]["plies_left"])
    auditor = Auditor(setup)
    for number in itertools.count(1):
        state, metrics, audit = run_iteration(program, state)
        auditor.check(audit)
        if number > setup.plan.first_update_iteration:
            break
    for name in weights:
        assert 0 < float(metrics[f"train/{name}_loss"]) < 1000
    after = jax.device_get(state.train.params["params"]["plies_left"])
    assert not np.array_equal(before["plies"]["kernel"], after["plies"]["kernel"])
    wrong = audit.auxiliary | {"plies_left": audit.auxiliary["plies_left"] + 1}
    with pytest.raises(AuditError, match="the plies_left target is not the number of plies until the end"):
        auditor.check(audit.replace(auxiliary=wrong))
