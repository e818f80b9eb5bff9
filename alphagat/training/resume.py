"""The state from which a run starts or resumes."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils

from alphagat.agents.build import make_params, make_portable_network, param_shapes
from alphagat.agents.compatibility import differing_fields, fits_sizes
from alphagat.agents.sources import Source, resolve
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.runs.metrics import METRICS_FILE, read_metrics
from alphagat.runs.saved_checkpoints import SavedCheckpoints, list_steps
from alphagat.runtime import sharding
from alphagat.training.iteration import RETRIES
from alphagat.training.setup import Run, Setup
from alphagat.training.state import RunState, init_state, placed_shapes, with_params

NO_CHECKPOINT = -1  # what the first process tells the others in place of a step


class Start(NamedTuple):
    """The state from which a run continues.

    Attributes:
      state: the restored or initial state.
      iteration: iterations done; 0 in a new run.
      damaged: damaged steps to set aside, and a description of the damage; empty in all processes but the first.
    """

    state: RunState
    iteration: int
    damaged: dict[int, str]


def find_start(run: Run, folder: Path) -> Start:
    """Restores the newest intact checkpoint, or makes the state of a new run, from `init_from` if the config sets it.

    Changes nothing on disk.

    Raises:
      UserError: there are checkpoints, but none is intact; or there are none, although the run saved some.
    """
    step, damaged = _agree_on_step(folder)
    if step is not None:
        return Start(SavedCheckpoints(folder).restore(placed_shapes(run), step, verify=False), step, damaged)
    source = run.config.init_from
    # First, because it may fail.
    weights = sharding.agree(lambda: load_weights(source, run.boards[0])) if source else None
    state = init_state(run)
    return Start(state if weights is None else with_params(state, weights), 0, {})


def load_weights(name: str, setup: Setup) -> Any:
    """Reads the initial parameters of a run from another run or a file; a missing auxiliary head is initialised.

    Args:
      name: a trained network (`agents.sources.resolve`).

    Raises:
      UserError: the network does not exist, its boards are of another family, or its config gives other shapes.
    """
    source = resolve(name, board=setup.game.name)
    _check_weights_fit(name, source, setup)
    theirs, ours = source.config.network, setup.config.network
    shapes = param_shapes(setup.game, make_portable_network(source.config, setup.game))
    params = source.read_params(shapes)["params"]
    extra, missing = (set(a.auxiliary_heads) - set(b.auxiliary_heads) for a, b in ((theirs, ours), (ours, theirs)))
    params = {name: part for name, part in params.items() if name not in extra}
    if missing:
        initial = make_params(setup.game, setup.network, jax.random.key(setup.config.seed))["params"]
        params |= {name: initial[name] for name in missing}
    return {"params": params}


def _check_weights_fit(name: str, source: Source, setup: Setup) -> None:
    config, game = source.config, make_game(source.config.boards[0])
    if (game.topology.vocabulary, game.num_features) != (setup.game.topology.vocabulary, setup.game.num_features):
        raise UserError(
            f"config.init_from={name!r} has weights of the family {game.family} ({', '.join(config.boards)}), but "
            f"config.boards is of {setup.game.family} ({', '.join(setup.config.boards)}); use a run of that family"
        )
    if not fits_sizes(config, [game, setup.game]):
        raise UserError(
            f"config.init_from={name!r} was trained on {game.name}, and {config.network.name!r} has weights for one "
            f"size of board, but config.boards has {setup.game.name}; take that board, or another network"
        )
    theirs, ours = config.network, setup.config.network
    # A missing head is initialised.
    fields = [each for each in differing_fields(ours, theirs) if not each.endswith("_head")]
    if fields:
        fixes = (f"config.network.{each}={getattr(theirs, each)!r} (now {getattr(ours, each)!r})" for each in fields)
        raise UserError(f"config.init_from={name!r} has the weights of another network: set {', '.join(fixes)}")


def _agree_on_step(folder: Path) -> tuple[int | None, dict[int, str]]:
    """Returns what the first process finds by `_step_to_restore`, which may raise; the others get only the step."""
    is_first = jax.process_index() == 0
    found, damaged = sharding.agree(lambda: _step_to_restore(folder) if is_first else (None, {}))
    if jax.process_count() > 1:
        code = int(multihost_utils.broadcast_one_to_all(np.array(NO_CHECKPOINT if found is None else found)))
        found = None if code == NO_CHECKPOINT else code
    return found, damaged


def _step_to_restore(folder: Path) -> tuple[int | None, dict[int, str]]:
    """Returns what `_newest_whole` returns.

    Raises:
      UserError: there are checkpoints, but none is intact; or there are none, although the run saved some.
    """
    found, damaged = _newest_whole(folder)
    if found is not None:
        return found, damaged
    directory = SavedCheckpoints(folder).directory
    if damaged:
        newest = max(damaged)
        raise UserError(
            f"none of the checkpoints {sorted(damaged)} in {directory} is intact ({newest}: {damaged[newest]}); "
            "nothing was changed: restore one from a copy, or start again in another --workdir"
        )
    if len(read_metrics(folder)) > 1:
        raise UserError(
            f"{folder / METRICS_FILE} has iterations, but {directory} has no checkpoint; nothing was changed: restore "
            "a checkpoint from a copy, or start again in another --workdir"
        )
    return None, {}


def _newest_whole(folder: Path) -> tuple[int | None, dict[int, str]]:
    """Returns the newest intact step, if any, and the damaged ones that the run has to set aside: those that are newer,
    and those that Orbax cannot open.
    """
    damaged: dict[int, str] = {}
    found, steps, checkpoints = None, list_steps(folder), SavedCheckpoints(folder)
    for step in reversed(steps):
        damage = checkpoints.find_damage(step)
        if damage is None:
            found = step
            break
        damaged[step] = damage
    older = [step for step in steps if found is not None and step < found]
    damaged |= {step: damage for step in older if (damage := checkpoints.find_metadata_damage(step))}
    return found, damaged


def with_another_key(state: RunState, number: int) -> RunState:
    """Folds the retry count `number` into the key, so that a retry does not repeat the failed run."""

    def change(data: Any) -> Any:
        retries = jax.random.fold_in(jax.random.wrap_key_data(data), RETRIES)
        return jax.random.key_data(jax.random.fold_in(retries, number))

    key = jax.jit(change, out_shardings=state.key.sharding)(state.key)
    return state.replace(key=key, rollbacks=state.rollbacks + number)
