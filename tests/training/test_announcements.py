"""The lines before the first iteration."""

import re

import jax
import pytest

from alphagat.runtime import sharding
from alphagat.search.memory import num_bytes
from alphagat.training import announcements
from alphagat.training.announcements import opening_lines
from alphagat.training.pretraining.dataset import Recorded
from alphagat.training.resume import Start
from alphagat.training.setup import make_run
from alphagat.training.state import init_state
from alphagat.wording import sized
from tests.training.tiny import tiny_config, tiny_config_with_actors


@pytest.mark.parametrize("actors", [0, 1])
def test_the_lines_describe_devices_and_memory(actors: int):
    run = make_run(tiny_config_with_actors(actors), sharding.make_mesh(4))
    state = init_state(run)
    lines = opening_lines(run, Start(state, 3, {}), None)
    assert lines[0].startswith("4 devices (")
    assert lines[0].endswith(", 36 games at once")
    assert ("1 for self-play, 3 for learning" in lines) == bool(actors)
    (board,) = state.boards
    replay, waiting = sized(num_bytes(board.replay)), sized(num_bytes(board.games.waiting))
    assert replay != waiting
    plies = run.boards[0].plan.num_waiting
    told = f"{replay} of replay, {waiting} of positions without targets ({plies} plies per game)"
    assert f"hex:2: memory over all devices: {told}" in lines
    assert lines[-1] == "resumed after iteration 3"


@pytest.mark.parametrize(("num_devices", "share"), [(2, None), (3, 100)])
def test_parameters_that_cannot_be_sliced_are_announced(num_devices: int, share: int | None):
    config = tiny_config()
    config.mesh.data, config.mesh.fsdp, config.network.width = num_devices, True, 64
    config.selfplay.num_groups, config.selfplay.num_games, config.learner.batch_size = 6, 36, 36
    run = make_run(config, sharding.make_mesh(num_devices))
    lines = [line for line in opening_lines(run, Start(init_state(run), 0, {}), None) if "fsdp" in line]
    if share is None:
        assert not lines
    else:
        (line,) = lines
        assert re.match(rf"config.mesh.fsdp=True: each device keeps {share}% of .* a multiple of {num_devices}, ", line)


def test_a_run_on_recorded_games_says_how_its_network_is_computed(monkeypatch):
    config = tiny_config()
    config.pretrain.games = ("games.sgf",)
    run = make_run(config, sharding.make_mesh(1))
    start = Start(init_state(run), 0, {})
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(announcements, "kernel_obstacle", lambda *_: "it is too wide")
    _, *lines = opening_lines(run, start, Recorded([], ["9 games"], {}))
    assert lines == ["9 games", "hex:2: blocks run as separate XLA operations, not as one kernel: it is too wide"]
