"""Where a run goes on: its newest checkpoint that is whole, or its start."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils

from alphagat.agents.agent import load_weights
from alphagat.errors import UserError
from alphagat.runs.checkpoints import Checkpoints
from alphagat.training.setup import Run
from alphagat.training.state import RunState, init_state, placed_shapes, with_params


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


def find_start(run: Run, folder: Path) -> Start:
    """Reads the newest whole checkpoint, or makes the state of a new run, with the weights of another run where the
    config names one; changes nothing on disk.

    Raises:
      UserError: there are checkpoints, but none is whole.
    """
    with Checkpoints(folder, read_only=True) as checkpoints:
        step, damaged = _newest_whole(checkpoints)
        if step is not None:
            return Start(checkpoints.restore(placed_shapes(run), step, verify=False), step, damaged)
    if damaged:
        newest = max(damaged)
        raise UserError(
            f"none of the checkpoints {sorted(damaged)} in {checkpoints.directory} is whole ({newest}: "
            f"{damaged[newest]}); nothing was changed: restore one from a copy, or start anew in another --workdir"
        )
    state, source = init_state(run), run.config.init_from
    return Start(with_params(state, load_weights(source, run.boards[0])) if source else state, 0, {})


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
