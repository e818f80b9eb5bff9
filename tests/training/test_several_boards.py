"""One network for several boards: schedule, resume, transfer of weights, and incompatible boards."""

import copy
from types import SimpleNamespace

import chex
import jax
import pytest

from alphagat.agents.agent import load
from alphagat.agents.compatibility import check_one_family
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.states import first_state
from alphagat.runs.metrics import read_metrics
from alphagat.runs.saved_checkpoints import SavedCheckpoints, list_steps
from alphagat.runtime import sharding
from alphagat.training import iterations, loop
from alphagat.training.loop import train
from alphagat.training.setup import boards_by_iteration, make_run, make_setups
from alphagat.training.state import placed_shapes
from tests.training.tiny import tiny_config

BOARDS = ("hex:2", "hex:3")


def config_of(boards: tuple[str, ...] = BOARDS, num_iterations: int = 10):
    config = tiny_config()
    config.boards, config.num_iterations = boards, num_iterations
    config.evaluation.every = 5
    config.evaluation.opponents = ("previous",)
    config.mesh.data = 2
    return config


@pytest.fixture(scope="module")
def finished(programs_once, tmp_path_factory):
    """Returns the folder of a run on both boards, interrupted after four iterations and then resumed."""
    folder = tmp_path_factory.mktemp("several")
    calls, run_iteration = [], iterations.run_iteration

    def stop(program, state, board):
        calls.append(board)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return run_iteration(program, state, board)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iterations, "run_iteration", stop)
        with pytest.raises(KeyboardInterrupt):
            train(config_of(), folder)
    train(config_of(), folder)
    return folder


def last_state(folder, config):
    shapes = placed_shapes(make_run(config, sharding.make_mesh(2)))
    return SavedCheckpoints(folder).restore(shapes, list_steps(folder)[-1])


def test_resume_is_bit_identical(finished, tmp_path):
    train(config_of(), tmp_path)
    alone, resumed = last_state(tmp_path, config_of()), last_state(finished, config_of())
    chex.assert_trees_all_equal(alone, resumed)


def test_each_board_has_its_own_iterations_games_and_keys(finished):
    config = config_of()
    state = last_state(finished, config)
    order = boards_by_iteration(config)
    assert [int(board.iteration) for board in state.boards] == [order.count(0), order.count(1)]
    assert [board.groups.tolist() for board in state.boards] == [[*range(8)], [*range(8, 16)]]
    sizes = [board.games.state.cells.shape[-1] for board in state.boards]
    assert sizes[0] < sizes[1]
    setups = make_setups(config)
    assert boards_by_iteration(config) is order  # computed once
    updates = sum(setup.plan.total_updates for setup in setups)
    assert int(state.train.step) == updates > 0


def test_the_schedule_spans_the_updates_on_all_boards():
    config = config_of()
    setups, learner = make_setups(config), config.learner
    least = learner.learning_rate * learner.final_learning_rate_fraction
    for setup in setups:
        assert setup.schedule(sum(each.plan.total_updates for each in setups)) == pytest.approx(least)
        assert setup.schedule(setup.plan.total_updates) > 1.01 * least


def test_metrics_name_the_board(finished):
    lines = read_metrics(finished)
    assert len(lines) == 10
    assert [line["board"] for line in lines[:2]] == ["hex:2", "hex:3"]
    assert all("selfplay/game_length" in line for line in lines)
    results = {(each.name, each.board, each.opponent) for each in lines[-1]["results"]}
    assert {("win_rate", "hex:2", "previous"), ("elo", "hex:3", None)} <= results


def test_weights_play_an_unseen_board(finished):
    agent = load(finished, board="hex:4")
    state = first_state(agent.game)
    evaluation = agent.evaluate(state)
    assert evaluation.prior_logits.shape == (16,)
    act = jax.jit(agent.player(2).act)
    move = act(agent.params, jax.random.key(1), jax.tree.map(lambda x: x[None], state))
    assert 0 <= int(move[0]) < 16
    assert load(finished).game.name == "hex:2"


def test_a_run_starts_from_the_weights_of_another_board(finished, monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(loop._Steps, "iterate", lambda self, state, start: started.append(state))
    config = config_of(("hex:4",))
    config.init_from = str(finished)
    config.evaluation.every = 0
    monkeypatch.setattr(loop, "make_iterations", lambda *_: SimpleNamespace(num_micro_batches=1))
    train(config, tmp_path)
    weights = load(finished).params
    chex.assert_trees_all_equal(weights, started[0].train.params)
    assert int(started[0].train.step) == 0


@pytest.mark.parametrize(
    ("boards", "change", "message"),
    [
        (("hex:2", "tic_tac_toe"), {}, "hex:2, tic_tac_toe are of the families hex, mnk"),
        (("hex:2", "hex:3"), {"name": "resnet"}, "config.network.name='resnet' has weights for one size"),
        (("tsp:5",), {"name": "resnet"}, "config.network.name='resnet' sees no edges, but those of tsp:5 differ"),
        (("mnk:3x4x3", "mnk:4x3x3"), {"name": "resnet"}, "config.network.name='resnet' has weights for one size"),
        (("hex:2", "hex:99"), {}, "hex:99"),
        (("hex:2",), {"ownership_head": True}, "config.network.ownership_head=True: board hex:2 does not define"),
    ],
)
def test_boards_that_cannot_share_weights_are_refused(boards, change, message):
    config = config_of(boards)
    for name, value in change.items():
        setattr(config.network, name, value)
    with pytest.raises(UserError) as refusal:
        make_setups(config)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("boards", "width", "message"),
    [
        (("tic_tac_toe",), 8, "has weights of the family hex (hex:2, hex:3), but config.boards is of mnk"),
        (("hex:4",), 16, "has the weights of another network: set config.network.width=8 (now 16)"),
    ],
)
def test_incompatible_weights_are_refused(finished, tmp_path, boards, width, message):
    config = config_of(boards, num_iterations=20)
    config.network.width, config.init_from = width, str(finished)
    with pytest.raises(UserError) as refusal:
        train(config, tmp_path / "new")
    assert message in str(refusal.value)
    assert not (tmp_path / "new").exists()


def test_weights_for_one_size_of_board_are_refused_on_another(tmp_path):
    config = config_of(("hex:2",))
    config.network.name = "resnet"
    train(config, tmp_path / "resnet")
    with pytest.raises(
        UserError, match=r"board hex:3: .*resnet was trained on hex:2, and 'resnet' has weights for one size"
    ):
        load(tmp_path / "resnet", board="hex:3")
    config.boards, config.init_from = ("hex:3",), str(tmp_path / "resnet")
    with pytest.raises(UserError, match=r"config\.init_from=.* was trained on hex:2, .* but config\.boards has hex:3"):
        train(config, tmp_path / "new")


def test_a_board_of_another_family_is_refused(finished):
    with pytest.raises(UserError, match="was trained on hex:2, hex:3 and plays only boards of that family"):
        load(finished, board="connect_four")
    config = config_of()
    config.init_from = str(finished / "nowhere")
    with pytest.raises(UserError, match="holds no run"):
        train(config, finished.parent / "new")


def test_boards_of_one_family_with_other_features_are_refused():
    game, other = make_game("hex:2"), copy.copy(make_game("hex:3"))
    other.num_features = 12
    with pytest.raises(UserError, match="hex:2, hex:3 have 9, 12 features per node; boards of one family"):
        check_one_family(tiny_config(), [game, other])
