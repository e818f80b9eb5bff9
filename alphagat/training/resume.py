"""Where a run goes on: its newest checkpoint that is whole, or its start."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from alphagat.agents.build import check_one_family, make_configured_network, make_params, param_shapes
from alphagat.agents.sources import Source, resolve
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.runs.checkpoints import Checkpoints
from alphagat.training.setup import Setup
from alphagat.training.state import RunState, init_state, with_params

# Network fields that may differ from those of `init_from`: none changes the shape of a shared parameter.
FREE_NETWORK_FIELDS = ("backend", "precision", "remat", "ownership_head")


class Start(NamedTuple):
    """Where a run goes on.

    Attributes:
      state: what the run goes on from.
      iteration: that are done; 0 at the start of a run.
      damaged: newer steps that are not what was written, and in what.
    """

    state: RunState
    iteration: int
    damaged: dict[int, str]


def find_start(setups: Sequence[Setup], mesh: Mesh, folder: Path) -> Start:
    """Reads the newest whole checkpoint, or makes the state of a new run, with the weights of another run where the
    config names one; changes nothing on disk.

    Raises:
      UserError: there are checkpoints, but none is whole.
    """
    with Checkpoints(folder, read_only=True) as checkpoints:
        step, damaged = _newest_whole(checkpoints)
        if step is not None:
            return Start(checkpoints.restore(setups, mesh, step, verify=False), step, damaged)
    if damaged:
        newest = max(damaged)
        raise UserError(
            f"none of the checkpoints {sorted(damaged)} in {checkpoints.directory} is whole ({newest}: "
            f"{damaged[newest]}); nothing was changed: restore one from a copy, or start anew in another --workdir"
        )
    state, source = init_state(setups, mesh), setups[0].config.init_from
    return Start(with_params(state, load_weights(source, setups[0])) if source else state, 0, {})


def load_weights(name: str, setup: Setup) -> Any:
    """Reads the initial parameters of a run from another run or a file; a missing ownership head is initialised.

    Args:
      name: a trained network (`agents.sources.resolve`).

    Raises:
      UserError: there is no such network, its boards are of another family, or its config differs in shape.
    """
    source = resolve(name, board=setup.game.name)
    _check_weights_fit(name, source, setup)
    theirs, ours = source.config.network, setup.config.network
    shapes = param_shapes(setup.game, make_configured_network(source.config, setup.game))
    params = source.read_params(shapes)["params"]
    if ours.ownership_head and not theirs.ownership_head:
        initial = make_params(setup.game, setup.network, jax.random.key(setup.config.seed))
        params["ownership"] = initial["params"]["ownership"]
    if theirs.ownership_head and not ours.ownership_head:
        del params["ownership"]
    return {"params": params}


def _check_weights_fit(name: str, source: Source, setup: Setup) -> None:
    config, game = source.config, make_game(source.config.boards[0])
    if (game.topology.vocabulary, game.num_features) != (setup.game.topology.vocabulary, setup.game.num_features):
        raise UserError(
            f"config.init_from={name!r} has weights of the family {game.topology.vocabulary.family} "
            f"({', '.join(config.boards)}), but config.boards is of {setup.game.topology.vocabulary.family} "
            f"({', '.join(setup.config.boards)}); take a run of that family"
        )
    if config.network.name == "resnet":
        check_one_family(config, [game, setup.game])
    for field in dataclasses.fields(config.network):
        theirs, ours = getattr(config.network, field.name), getattr(setup.config.network, field.name)
        if theirs != ours and field.name not in FREE_NETWORK_FIELDS:
            raise UserError(
                f"config.network.{field.name}={ours!r}, but the weights of config.init_from={name!r} have "
                f"{theirs!r}: set that"
            )


def _newest_whole(checkpoints: Checkpoints) -> tuple[int | None, dict[int, str]]:
    """Returns the newest whole step, if any, and newer ones that are not; as the first process sees it."""
    damaged: dict[int, str] = {}
    found = None
    if jax.process_index() == 0:
        for step in reversed(checkpoints.steps()):
            damage = checkpoints.find_damage(step)
            if damage is None:
                found = step
                break
            damaged[step] = damage
    if jax.process_count() > 1:
        said = np.array([-1 if found is None else found, len(damaged)])
        step, number = (int(x) for x in multihost_utils.broadcast_one_to_all(said))
        if jax.process_index():
            found, damaged = None if step < 0 else step, dict.fromkeys(range(number), "as the first process says")
    return found, damaged


def with_another_key(state: RunState, number: int) -> RunState:
    """Returns a state that goes another way than the run went from it, by a `number` for each way."""

    def change(data: Any) -> Any:
        return jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(data), number))

    key = jax.jit(change, out_shardings=state.key.sharding)(state.key)
    return state.replace(key=key, rollbacks=state.rollbacks + 1)
