"""Compiles programs with micro-batches that fit into the cache of a CPU core and into the memory of a device."""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
from jax import stages
from jax.sharding import Mesh

from alphagat.errors import UserError, first_line
from alphagat.runtime import distributed, sharding, terminal
from alphagat.runtime.memory import memory_held, memory_limit, memory_needed
from alphagat.training.iteration import make_iteration, program_arguments
from alphagat.training.setup import Run, Setup
from alphagat.training.state import RunState
from alphagat.wording import sized

OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"  # in the first line of JAX's error
PATIENCE_SECONDS = 60.0  # how long to wait for the other processes to report the same failure


class Fitted(NamedTuple):
    """A program that fits into memory, and the number of micro-batches for which it was compiled."""

    program: stages.Compiled
    num_micro_batches: int


def compile_iterations(run: Run, state: RunState, say: Callable[[str], None]) -> list[Fitted]:
    """Compiles the program of each board for states like `state`, concurrently in a single-process run.

    A program that does not fit into memory is recompiled with the next of `Setup.micro_batch_counts`.

    Raises:
      UserError: a program does not fit.
    """

    def compile_board(number: int) -> Fitted:
        arguments = program_arguments(state, number)
        return compile_to_fit(run, state, number, lambda setup: make_iteration(setup, run.mesh).lower(*arguments), say)

    # Processes exchange results while they compile, so all must compile in the same order.
    at_once = len(run.boards) if jax.process_count() == 1 else 1
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(compile_board, range(len(run.boards))))


def compile_to_fit(
    run: Run, state: RunState, number: int, lower: Callable[[Setup], stages.Lowered], say: Callable[[str], None]
) -> Fitted:
    """Compiles `lower(setup)`, the learners' program of board `number`, with the first of `setup.micro_batch_counts`
    that fits into memory beside the other arrays of `state`. Raises as `compile_iterations` does.
    """
    setup, mesh = run.boards[number], run.learner_mesh
    elsewhere = memory_elsewhere(state, number, mesh)
    asked = setup.config.learner.num_micro_batches
    limit = -sharding.largest(-memory_limit(setup.config.mesh.memory_gb))
    for count in setup.micro_batch_counts(mesh):
        compiled = lower(dataclasses.replace(setup, least_micro_batches=count)).compile()
        program = sharding.largest(memory_needed(compiled))
        needed = program + elsewhere
        if not program or needed <= limit:
            if count > setup.num_micro_batches(mesh):
                say(f"{setup.game.name}: each device splits its part of a batch into {count} micro-batches")
            return Fitted(compiled, count)
        say(f"{setup.game.name}: needs {sized(needed)} per device, of {sized(limit)}")
    fixes = ["set config.learner.num_micro_batches=0"] if asked else []
    fixes += [] if setup.config.network.remat else ["set config.network.remat=True"]
    fixes += ["lower config.selfplay.num_games or config.network.width"]
    raise UserError(
        f"config.learner.batch_size={setup.config.learner.batch_size}: the program of {setup.game.name} does not fit "
        f"into the {sized(limit)} of a device; {', or '.join(fixes)}"
    )


def memory_elsewhere(state: RunState, number: int, mesh: Mesh) -> int:
    """Returns the bytes per device of `mesh` outside the program of board `number`: the other boards, and the
    parameters at the last evaluation.
    """
    others = [board for index, board in enumerate(state.boards) if index != number]
    return memory_held(mesh, (others, state.previous_params))


def with_less_memory(run: Run, num_micro_batches: int, error: Exception) -> Run:
    """Returns the run with twice as many micro-batches, after a compiled program ran out of memory.

    Args:
      num_micro_batches: the most of any compiled program; 0 before the first is compiled.

    Raises:
      UserError: the config sets the number of micro-batches, it cannot grow, or another process has not run out of
        memory and so goes on.
      JaxRuntimeError: `error` is not an out-of-memory error.
    """
    reason = first_line(error)
    if OUT_OF_MEMORY not in reason:
        raise error
    learner, setup, mesh = run.config.learner, run.boards[0], run.learner_mesh
    least = 2 * max(setup.num_micro_batches(mesh), num_micro_batches)
    if learner.num_micro_batches or least > setup.positions_per_device(mesh):
        fix = "set it to 0" if learner.num_micro_batches else "lower config.selfplay.num_games"
        raise UserError(
            f"config.learner.num_micro_batches={learner.num_micro_batches}: a device ran out of memory ({reason}); "
            f"{fix}"
        ) from error
    if not distributed.all_arrive(f"{least} micro-batches", PATIENCE_SECONDS):
        raise UserError(
            f"config.learner.num_micro_batches=0: a device ran out of memory ({reason}), but not in every process; set "
            f"it to {least}"
        ) from error
    terminal.say(f"a device ran out of memory ({reason}): at least {least} micro-batches from now on")
    boards = tuple(dataclasses.replace(setup, least_micro_batches=least) for setup in run.boards)
    return dataclasses.replace(run, boards=boards)
