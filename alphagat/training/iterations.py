"""One protocol for all kinds of run: self-play, actors and learners, and recorded games."""

from collections.abc import Callable, Mapping
from typing import Protocol

from jax import stages

from alphagat.training.actor_learner import ActorLearnerIterations
from alphagat.training.audit import Audit
from alphagat.training.compilation import compile_iterations
from alphagat.training.iteration import Metrics, run_iteration
from alphagat.training.pretraining.dataset import Recorded
from alphagat.training.pretraining.program import PretrainIterations
from alphagat.training.setup import Run
from alphagat.training.state import RunState


class Iterations(Protocol):
    """The compiled programs of a run."""

    @property
    def programs(self) -> Mapping[str, list[stages.Compiled]]:
        """The programs of each role, such as `playing`, one per board."""
        ...

    @property
    def num_micro_batches(self) -> int:
        """The most micro-batches of any program."""
        ...

    def run(self, state: RunState, iteration: int) -> tuple[RunState, Metrics, Audit | None]:
        """Starts iteration number `iteration`, counted from 1, and consumes `state`.

        Returns without waiting for the results. The audit is None in runs without self-play.
        """
        ...


class SelfplayIterations:
    """Every device both plays and learns."""

    def __init__(self, run: Run, state: RunState, say: Callable[[str], None]):
        """Compiles the programs of all boards. Raises UserError if one does not fit into memory."""
        self._order = run.order
        self._fitted = compile_iterations(run, state, say)

    @property
    def programs(self) -> dict[str, list[stages.Compiled]]:
        return {"an iteration": [each.program for each in self._fitted]}

    @property
    def num_micro_batches(self) -> int:
        return max(each.num_micro_batches for each in self._fitted)

    def run(self, state: RunState, iteration: int) -> tuple[RunState, Metrics, Audit]:
        board = self._order[iteration - 1]
        return run_iteration(self._fitted[board].program, state, board)


def make_iterations(
    run: Run, state: RunState, say: Callable[[str], None], recorded: Recorded | None = None
) -> Iterations:
    """Compiles the programs of a run for states like `state`.

    Args:
      say: receives a line for each change that makes a program fit into memory.
      recorded: the positions to learn from; None in runs with self-play.

    Raises:
      UserError: a program does not fit into device memory.
    """
    if recorded is not None:
        return PretrainIterations(run, state, say, recorded)
    if run.config.mesh.actors:
        return ActorLearnerIterations(run, state, say)
    return SelfplayIterations(run, state, say)
