"""The estimate of a run's memory agrees with its arrays, and refuses what cannot fit before anything is compiled."""

import math
from pathlib import Path

import jax
import pytest

import alphagat
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.runtime import sharding
from alphagat.runtime.memory import memory_held
from alphagat.search.memory import tree_bytes
from alphagat.training.memory import Estimate, Part, check_memory, estimate_memory, network_sizes
from alphagat.training.setup import make_run
from alphagat.training.state import placed_shapes
from tests.training.tiny import tiny_config, tiny_config_with_actors


def othello() -> Config:
    config = tiny_config()
    config.boards, config.num_iterations = ("othello:4", "othello:6"), 60
    config.network.ownership_head, config.network.num_blocks = True, 3
    config.learner.ema_decay, config.learner.optimizer = 0.9, "sgd"
    config.mesh.data = 4
    return config


def blocks_of_two_kinds() -> Config:
    config = tiny_config()
    config.network.blocks, config.network.num_blocks, config.network.width = ("mixing", "attention"), 5, 32
    return config


def resnet() -> Config:
    config = tiny_config()
    config.network.name, config.network.num_blocks, config.network.width = "resnet", 4, 32
    config.mesh.data = 2
    return config


def sliced(num_devices: int) -> Config:
    config = tiny_config()
    config.mesh.data, config.mesh.fsdp, config.network.width = num_devices, True, 64
    config.selfplay.num_groups, config.selfplay.num_games, config.learner.batch_size = 6, 36, 36
    return config


def sliced_over_some() -> Config:
    return sliced(2)


def sliced_over_none() -> Config:
    return sliced(3)  # which divides no dimension of the large parameters


@pytest.mark.parametrize(
    "make", [tiny_config, othello, blocks_of_two_kinds, resnet, sliced_over_some, sliced_over_none]
)
def test_the_kept_parts_are_the_run_state(make):
    config = make()
    run = make_run(config, sharding.make_mesh(config.mesh.data))
    assert sum(part.size for part in estimate_memory(run).kept) == pytest.approx(
        memory_held(run.mesh, placed_shapes(run)), rel=0.03
    )


def test_actors_and_learners_keep_different_parts():
    run = make_run(tiny_config_with_actors(1), sharding.make_mesh(4))
    state, (parameters, replay, waiting, coming) = placed_shapes(run), estimate_memory(run).kept
    (board,) = state.boards
    for part, kept in (
        (parameters, (state.train, state.previous_params, state.actors)),
        (replay, board.replay),
        (coming, board.block),
    ):
        assert part.size == pytest.approx(memory_held(run.mesh, kept), rel=0.03)
    held = memory_held(run.mesh, board.games)
    assert held <= waiting.size < 1.3 * held


def test_the_need_is_what_is_kept_and_the_largest_temporary_part():
    kept, working = (Part("a", 3, "x"), Part("b", 2, "x")), (Part("c", 5, "x"), Part("d", 7, "x"))
    assert Estimate(kept, working, copies=1).needed == 3 + 2 + 7
    assert Estimate(kept, working, copies=2).needed == 2 * (3 + 2) + 7


@pytest.mark.parametrize(("backend", "processes", "copies"), [("cpu", 1, 2), ("gpu", 1, 1), ("gpu", 2, 2)])
def test_a_checkpoint_is_copied_within_the_memory_of_a_cpu_and_of_the_devices_of_several_processes(
    backend: str, processes: int, copies: int, monkeypatch: pytest.MonkeyPatch
):
    run = make_run(tiny_config(), sharding.make_mesh(1))
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "process_count", lambda: processes)
    assert estimate_memory(run).copies == copies


def test_without_opponents_only_a_single_player_plays_matches():
    def parts(board: str) -> set[str]:
        config = tiny_config()
        config.boards, config.evaluation.opponents = (board,), ()
        return {part.name for part in estimate_memory(make_run(config, sharding.make_mesh(1))).working}

    assert "the matches" not in parts("hex:2")
    assert "the matches" in parts("2048:2")


def test_devices_share_matches_and_updates():
    config = tiny_config()
    config.learner.num_micro_batches = 1
    one, two = (
        {part.name: part.size for part in estimate_memory(make_run(config, sharding.make_mesh(number))).working}
        for number in (1, 2)
    )
    assert two["the matches"] == one["the matches"] / 2
    run = make_run(config, sharding.make_mesh(1))
    sizes = network_sizes(run.boards[0].game, config.network)
    update = "the activations of an update"
    assert one[update] - two[update] == config.learner.batch_size / 2 * sizes.activations


def config_with(**changes) -> Config:
    config = tiny_config()
    config.mesh.data, config.mesh.memory_gb, config.num_iterations = 1, 1.0, 10_000
    config.learner.replay_ratio = 1e-3
    for path, value in changes.items():
        section, _, name = path.partition("__")
        setattr(getattr(config, section), name, value)
    return config


TOO_LARGE = {
    "replay.capacity": {"replay__capacity": 10**9},
    "selfplay.num_games": {"selfplay__num_games": 2**24},
    "selfplay.plies_per_iteration": {"selfplay__plies_per_iteration": 1_000_000, "selfplay__max_plies": 4},
    "search.num_simulations": {"search__num_simulations": 65_536, "selfplay__num_games": 1_000},
    "learner.batch_size": {
        **{"learner__batch_size": 2**18, "replay__min_size": 2**18, "replay__capacity": 2**18},
        "learner__num_micro_batches": 1,  # with 0, no batch is too large
    },
    "evaluation.num_games": {"evaluation__opponents": ("mcts:65536",), "evaluation__num_games": 1_000},
    "evaluation.num_simulations": {"evaluation__oracle_positions": 1_000_000, "evaluation__num_simulations": 65_536},
    "network.width": {"network__width": 65_536, "network__num_blocks": 512},
}


@pytest.mark.parametrize(("field", "changes"), TOO_LARGE.items(), ids=TOO_LARGE)
def test_a_run_that_cannot_fit_is_refused(field: str, changes):
    config = config_with(**changes)
    section, _, name = field.partition(".")
    with pytest.raises(UserError) as refusal:
        check_memory(make_run(config, sharding.make_mesh(1)))
    assert str(refusal.value).startswith(f"config.{field}={getattr(getattr(config, section), name)}: the run needs ")
    assert "of 1.0 GB" in str(refusal.value)


@pytest.mark.parametrize(("backend", "num_games"), [("cpu", 2), ("gpu", 8)])
def test_the_groups_of_a_cpu_device_search_in_turn(backend: str, num_games: int, monkeypatch: pytest.MonkeyPatch):
    """Of eight groups of two games, each of two devices has four."""
    run = make_run(tiny_config(), sharding.make_mesh(2))
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    sizes = {part.name: part.size for part in estimate_memory(run).working}
    assert sizes["the search tree"] == num_games * tree_bytes(run.boards[0].game, 2)


def test_a_run_is_refused_before_it_starts(tmp_path: Path):
    config = tiny_config()
    config.replay.capacity = 10**9
    with pytest.raises(UserError, match=r"config\.replay\.capacity=1000000000: the run needs about"):
        alphagat.train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_cpu_devices_share_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch):
    config = config_with(mesh__memory_gb=0.0)
    run = make_run(config, sharding.make_mesh(1))
    needed = estimate_memory(run).needed * jax.local_device_count()
    monkeypatch.setattr("alphagat.runtime.memory.available_memory", lambda: 1.01 * needed)
    check_memory(run)
    for free in (0.99 * needed, 0.0):
        monkeypatch.setattr("alphagat.runtime.memory.available_memory", lambda free=free: free)
        with pytest.raises(UserError, match="the run needs about"):
            check_memory(run)
    monkeypatch.setattr("alphagat.runtime.memory.available_memory", lambda: math.inf)  # unknown
    check_memory(run)
