"""Compilation uses the fewest micro-batches that fit, and refuses a program that never fits."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.runs.metrics import read_metrics
from alphagat.runtime import cpu_cache, sharding, terminal
from alphagat.runtime.memory import memory_held, memory_needed
from alphagat.search.memory import num_bytes
from alphagat.training import compilation, iterations, loop
from alphagat.training.compilation import compile_iterations, compile_to_fit, memory_elsewhere, with_less_memory
from alphagat.training.iteration import make_find_gradients
from alphagat.training.memory import estimate_memory
from alphagat.training.setup import Setup, make_run
from alphagat.training.state import init_state
from tests.processes import as_processes
from tests.training.tiny import tiny_config


def config_with(num_micro_batches: int, memory_gb: float = 0.0) -> Config:
    config = tiny_config()
    config.mesh.data, config.mesh.memory_gb = 1, memory_gb
    config.network.width, config.learner.batch_size, config.replay.min_size = 16, 256, 256
    config.learner.num_micro_batches = num_micro_batches
    return config


def compile_with(num_micro_batches: int, memory_gb: float = 0.0):
    run, said = make_run(config_with(num_micro_batches, memory_gb), sharding.make_mesh(1)), []
    (fitted,) = compile_iterations(run, init_state(run), said.append)
    assert isinstance(fitted.program, Planned)
    assert fitted.program.num_micro_batches == fitted.num_micro_batches
    return fitted.num_micro_batches, said


def test_micro_batches_save_memory():
    whole, eighth = (memory_needed(compile_gradients(num_micro_batches)) for num_micro_batches in (1, 8))
    assert 0 < eighth < 0.8 * whole


def test_the_estimate_of_an_update_is_near_the_compiler_s_plan():
    run = make_run(config_with(1), sharding.make_mesh(1))
    (estimate,) = [part.size for part in estimate_memory(run).working if part.name == "the activations of an update"]
    assert 0.5 < estimate / memory_needed(compile_gradients(1)) < 1.5


def compile_gradients(num_micro_batches: int):
    run = make_run(config_with(num_micro_batches), sharding.make_mesh(1))
    state, (board,) = init_state(run), run.boards
    keys = jax.random.split(jax.random.key(0), len(state.boards[0].groups))
    find = jax.jit(make_find_gradients(board, run.mesh))
    return find.lower(state.train.params, jnp.float32(1), state.boards[0], keys).compile()


@dataclasses.dataclass
class Planned:
    """A fake program that needs 1 GB, plus 16 GB divided by the number of micro-batches."""

    num_micro_batches: int

    def lower(self, *_):
        return self

    def compile(self):
        return self


@pytest.fixture
def large_cache(monkeypatch):
    monkeypatch.setattr(cpu_cache, "POSITIONS_AT_ONCE", 10**6)


@pytest.fixture
def planned(monkeypatch):
    monkeypatch.setattr(compilation, "make_iteration", lambda board, mesh: Planned(board.num_micro_batches(mesh)))
    monkeypatch.setattr(compilation, "memory_needed", lambda program: 1e9 + 16e9 / program.num_micro_batches)


@pytest.mark.parametrize(
    ("backend", "num_devices", "batch_size", "count"),
    [
        ("cpu", 1, 256, 16),
        ("cpu", 2, 256, 8),
        ("cpu", 1, 100, 10),
        ("cpu", 1, 24, 2),
        ("cpu", 1, 8, 1),
        ("gpu", 1, 256, 1),
        ("gpu", 2, 256, 1),
    ],
)
def test_a_cpu_device_computes_16_positions_at_once_and_a_gpu_its_whole_share(
    backend, num_devices, batch_size, count, monkeypatch
):
    config, mesh = config_with(0), sharding.make_mesh(num_devices)
    config.learner.batch_size = batch_size
    (one,) = make_run(config, sharding.make_mesh(1)).boards
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert one.num_micro_batches(mesh) == count  # 100: 7 parts would do, but do not divide it
    assert dataclasses.replace(one, least_micro_batches=2 * count).num_micro_batches(mesh) == 2 * count


@pytest.mark.usefixtures("planned")
def test_by_default_a_program_is_compiled_for_the_cache_of_a_core():
    num_micro_batches, said = compile_with(Config().learner.num_micro_batches)
    assert num_micro_batches == 256 // 16
    assert not said


@pytest.mark.usefixtures("planned", "large_cache")
@pytest.mark.parametrize(("memory_gb", "count"), [(0, 1), (17.01, 1), (16.9, 2), (4, 8), (1.1, 256)])
def test_fewest_micro_batches_that_fit(memory_gb: float, count: int):
    num_micro_batches, said = compile_with(0, memory_gb)
    assert num_micro_batches == count
    if count > 1:
        assert said[0] == f"hex:2: needs 17.0 GB per device, of {memory_gb:.1f} GB"
        assert said[-1] == f"hex:2: each device splits its part of a batch into {count} micro-batches"


@pytest.mark.usefixtures("planned", "large_cache")
def test_processes_with_unequal_memory_choose_the_same_micro_batches(monkeypatch):
    run = make_run(config_with(0), sharding.make_mesh(1))
    state = init_state(run)
    monkeypatch.setattr(compilation, "memory_limit", lambda _: (17.01e9, 4e9)[jax.process_index()])

    def compile_here() -> int:
        def lower(setup: Setup) -> Any:
            return compilation.make_iteration(setup, run.mesh)

        return compile_to_fit(run, state, 0, lower, print).num_micro_batches

    assert as_processes(monkeypatch, [compile_here, compile_here]) == [8, 8]


@pytest.mark.usefixtures("planned", "large_cache")
@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("remat", [False, True])
def test_a_program_that_never_fits_is_refused(count: int, remat: bool):
    config = config_with(count, 1.01)
    config.network.remat = remat
    run = make_run(config, sharding.make_mesh(1))
    with pytest.raises(UserError, match=r"config\.learner\.batch_size=256: the program of hex:2 does not") as refusal:
        compile_iterations(run, init_state(run), lambda _: None)
    fixes = ["set config.learner.num_micro_batches=0"] * (count > 0) + ["set config.network.remat=True"] * (not remat)
    assert str(refusal.value).split("; ")[1].split(", or ") == [
        *fixes,
        "lower config.selfplay.num_games or config.network.width",
    ]


@pytest.mark.usefixtures("planned", "large_cache")
def test_a_program_must_fit_beside_the_arrays_of_the_other_boards():
    config = config_with(0, 17)
    config.boards, config.num_iterations = ("hex:2", "hex:3"), 40
    run, said = make_run(config, sharding.make_mesh(1)), []
    state = init_state(run)
    compile_iterations(run, state, said.append)
    for board in config.boards:  # alone, each fits into 17 GB
        assert said.count(f"{board}: each device splits its part of a batch into 2 micro-batches") == 1
    sizes = [num_bytes((board, state.previous_params)) for board in state.boards]
    assert [memory_elsewhere(state, number, run.mesh) for number in (0, 1)] == sizes[::-1]


@pytest.mark.parametrize("num_devices", [1, 2, 4])
def test_each_device_holds_its_share_of_a_board(num_devices: int):
    config, mesh = config_with(0), sharding.make_mesh(num_devices)
    config.mesh.data = num_devices
    board = init_state(make_run(config, mesh)).boards[0]
    assert memory_held(mesh, board.replay) == num_bytes(board.replay) / num_devices
    assert memory_held(mesh, jax.device_put(jnp.zeros(3), sharding.replicated(mesh))) == 12
    assert memory_held(mesh, jax.device_put(jnp.zeros(3), jax.devices()[-1])) == 0


OUT_OF_MEMORY = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8.00GiB."


def test_out_of_memory_retries_with_more_micro_batches(tmp_path, monkeypatch, capsys):
    """The run resumes from its last checkpoint after the compiler underestimated the memory of 2 micro-batches."""
    config, seen, needed = tiny_config(), [], iter([2e9, 1e9, 1e9])
    config.mesh.data, config.mesh.memory_gb, config.learner.num_micro_batches = 1, 1.5, 0
    config.num_iterations, config.evaluation.every = 3, 0
    run_iteration, make = iterations.run_iteration, compilation.make_iteration

    def exhaust(program, state, board):
        if len(seen) == 2 and int(state.iteration) == 2:
            raise jax.errors.JaxRuntimeError(OUT_OF_MEMORY)
        return run_iteration(program, state, board)

    def note(board, mesh):
        seen.append(board.num_micro_batches(mesh))
        return make(board, mesh)

    monkeypatch.setattr(iterations, "run_iteration", exhaust)
    monkeypatch.setattr(compilation, "make_iteration", note)
    monkeypatch.setattr(compilation, "memory_needed", lambda _: next(needed))
    loop.train(config, tmp_path)
    assert seen == [1, 2, 4]
    assert [line["iteration"] for line in read_metrics(tmp_path)] == [1, 2, 3]
    said = capsys.readouterr()
    assert "Out of memory" in said.err
    assert "at least 4 micro-batches" in said.err
    assert "resumed after iteration 2" in said.out + said.err


@pytest.mark.usefixtures("planned", "large_cache")
def test_each_lack_of_memory_doubles_the_micro_batches_of_the_compiled_program(monkeypatch):
    run, counts, said = make_run(config_with(0, 4), sharding.make_mesh(1)), [], []
    monkeypatch.setattr(terminal, "say", said.append)
    for _ in range(3):
        (fitted,) = compile_iterations(run, init_state(run), lambda _: None)
        counts.append(fitted.num_micro_batches)
        run = with_less_memory(run, fitted.num_micro_batches, jax.errors.JaxRuntimeError(OUT_OF_MEMORY))
    assert counts == [8, 16, 32]
    assert "at least 64 micro-batches from now on" in said[-1]


def test_a_device_that_cannot_hold_single_positions_ends_the_run():
    run = make_run(config_with(0), sharding.make_mesh(1))
    boards = tuple(dataclasses.replace(board, least_micro_batches=256) for board in run.boards)
    with pytest.raises(UserError, match=r"num_micro_batches=0: a device ran out .* lower config\.selfplay\.num_games"):
        with_less_memory(dataclasses.replace(run, boards=boards), 0, jax.errors.JaxRuntimeError(OUT_OF_MEMORY))


@pytest.mark.parametrize(
    ("num_micro_batches", "message", "error", "reason"),
    [
        (1, OUT_OF_MEMORY, UserError, r"num_micro_batches=1: a device ran out of memory .* set it to 0"),
        (0, "INTERNAL: something else", jax.errors.JaxRuntimeError, "something else"),
    ],
)
def test_unrecoverable_out_of_memory_is_reported(num_micro_batches, message, error, reason):
    config = tiny_config()
    config.learner.num_micro_batches = num_micro_batches
    with pytest.raises(error, match=reason):
        with_less_memory(make_run(config, sharding.make_mesh(1)), 0, jax.errors.JaxRuntimeError(message))
