"""The sizes of a run: rounding, refusals, and the first update."""

import numpy as np
import pytest

from alphagat import config_validation
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.training.plan import make_plan
from alphagat.training.setup import make_setups
from tests.training.tiny import tiny_config


def plan_of(board: str = "hex:5", num_iterations: int = 100, **changes):
    config = Config(boards=(board,), num_iterations=num_iterations)
    for path, value in changes.items():
        section, _, name = path.partition("__")
        setattr(getattr(config, section), name, value)
    config_validation.validate(config)
    return make_plan(config, make_game(board), num_iterations)


@pytest.mark.parametrize(("plies", "max_plies", "most"), [(1000, 0, 25), (25, 0, 25), (10, 10, 10)])
def test_openings_are_shorter_than_games(plies: int, max_plies: int, most: int):
    message = rf"config\.selfplay\.opening_plies={plies}: games of hex:5 end after at most {most} plies; set it below"
    with pytest.raises(UserError, match=message):
        plan_of(selfplay__opening_plies=plies, selfplay__max_plies=max_plies)
    plan_of(selfplay__opening_plies=most - 1, selfplay__max_plies=max_plies)


def test_each_board_has_its_own_groups():
    plan = plan_of(selfplay__num_groups=4)
    assert [plan.groups_of(board).tolist() for board in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert plan.groups_of(1).dtype == np.int32


def test_the_updates_can_be_counted():
    with pytest.raises(UserError, match=r"config\.learner\.replay_ratio=10000: it gives 3999880000 updates"):
        plan_of(num_iterations=100_000, learner__replay_ratio=10_000)


def test_games_are_rounded_down_to_whole_groups():
    plan = plan_of(selfplay__num_games=131, selfplay__num_groups=8)
    assert (plan.group_games, plan.num_games) == (16, 128)
    assert plan.frames_per_iteration == 128 * plan.plies_per_iteration


@pytest.mark.parametrize(
    ("plies", "max_plies", "horizon", "waiting"),
    [
        (16, 0, 0, 32),
        (25, 0, 0, 25),
        (24, 0, 0, 24),
        (1, 0, 0, 24),
        (16, 10, 0, 16),
        (16, 0, 3, 16),
        (16, 0, 1, 16),
        (16, 0, 99, 32),
    ],
)
def test_positions_wait_a_whole_number_of_iterations(plies: int, max_plies: int, horizon: int, waiting: int):
    """Hex 5x5 lasts 25 plies: a position waits for that many plies, including its own, to become a sample."""
    plan = plan_of(selfplay__plies_per_iteration=plies, selfplay__max_plies=max_plies, selfplay__horizon=horizon)
    assert plan.num_waiting == waiting
    assert plan.num_waiting % plies == 0
    assert plan.num_waiting + 1 >= min(horizon or max_plies or 25, 25)


def test_the_ply_cap_is_at_most_the_bound_of_the_game():
    assert plan_of(selfplay__max_plies=1000).max_plies == 25


def test_the_replay_capacity_is_a_whole_number_of_iterations():
    plan = plan_of(selfplay__num_games=128, selfplay__plies_per_iteration=16, replay__capacity=5000)
    assert plan.group_capacity * plan.num_groups == 3 * 2048


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(0, 32, (32,)), (32, 32, (32,)), (8, 32, (8, 16, 32)), (5, 24, (5, 10, 20, 24)), (1, 2, (1, 2))],
)
def test_simulations_double_in_equal_parts(first: int, last: int, expected: tuple[int, ...]):
    plan = plan_of(selfplay__first_simulations=first, search__num_simulations=last)
    assert plan.simulations == expected
    numbers = [expected[plan.part_of(iteration)] for iteration in range(100)]
    assert numbers == sorted(numbers)
    counts = [numbers.count(number) for number in expected]
    assert sum(counts) == 100
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(("fraction", "full"), [(1.0, 16), (0.25, 4), (0.3, 5), (0.01, 1)])
def test_only_full_searches_become_samples(fraction: float, full: int):
    plan = plan_of(
        selfplay__full_search_fraction=fraction,
        selfplay__num_games=128,
        selfplay__plies_per_iteration=16,
        replay__capacity=40 * 128 * full,
        replay__min_size=2 * 128 * full,
        learner__batch_size=128,
        learner__replay_ratio=2.0,
    )
    assert plan.full_plies == full
    assert plan.group_capacity * plan.num_groups == 40 * 128 * full
    assert plan.updates_per_iteration == 2 * full
    assert plan.first_update_iteration == 32 // 16 + 1


@pytest.mark.parametrize(("ratio", "updates"), [(4.0, 16), (0.25, 1), (0.01, 1), (1.1, 4)])
def test_updates_follow_the_replay_ratio(ratio: float, updates: int):
    plan = plan_of(learner__replay_ratio=ratio, selfplay__num_games=128, selfplay__plies_per_iteration=16)
    assert plan.updates_per_iteration == updates
    assert plan.total_updates == updates * (100 - plan.first_update_iteration)
    assert plan.group_batch_size * plan.num_groups == 512
    assert plan.replay_ratio == updates / 4


@pytest.mark.parametrize(("min_size", "first"), [(2048, 2), (2049, 3), (4096, 3), (4097, 4)])
def test_first_update(min_size: int, first: int):
    """With 2,048 positions per iteration that wait two iterations, the replay holds 2,048 in iteration 2, counted from
    0.
    """
    assert plan_of(replay__min_size=min_size, selfplay__plies_per_iteration=16).first_update_iteration == first


def test_a_run_too_short_for_an_update_is_refused():
    plan_of(num_iterations=4, replay__min_size=4096)
    with pytest.raises(UserError) as refusal:
        plan_of(num_iterations=3, replay__min_size=4096)
    assert "config.num_iterations=3 " in str(refusal.value)
    assert "set config.num_iterations to at least 4" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("weights", "final_weights", "actors"),
    [((0.02, 1.0), (), 0), ((1.0, 3.0), (), 1), ((0.1, 1.0), (1.0, 0.3), 0), ((), (), 0), ((), (), 1)],
)
def test_the_named_number_of_iterations_is_the_smallest_that_works(weights, final_weights, actors):
    config = tiny_config()
    config.boards, config.num_iterations = ("tic_tac_toe", "mnk:4x4x3"), 2
    config.board_weights, config.final_board_weights, config.mesh.actors = weights, final_weights, actors
    with pytest.raises(UserError) as refusal:
        make_setups(config)
    config.num_iterations = int(str(refusal.value).split()[-1])
    make_setups(config)
    config.num_iterations -= 1
    with pytest.raises(UserError, match=rf"set config\.num_iterations to at least {config.num_iterations + 1}$"):
        make_setups(config)


def test_a_board_with_a_tiny_weight_is_named_instead_of_a_huge_number():
    config = tiny_config()
    config.boards, config.num_iterations = ("tic_tac_toe", "mnk:4x4x3"), 8
    config.board_weights = (1e-6, 1.0)
    with pytest.raises(UserError, match=r"much higher, or balance config\.board_weights"):
        make_setups(config)


def test_the_last_block_of_actors_is_not_learned_from():
    plan_of(num_iterations=5, replay__min_size=4096, mesh__actors=1)
    with pytest.raises(UserError, match=r"set config\.num_iterations to at least 5"):
        plan_of(num_iterations=4, replay__min_size=4096, mesh__actors=1)
    together, apart = (plan_of(mesh__actors=actors) for actors in (0, 1))
    assert apart.total_updates == together.total_updates - together.updates_per_iteration


def test_sizes_of_the_tiny_run():
    plan = make_plan(tiny_config(), make_game("hex:2"), tiny_config().num_iterations)
    assert (plan.num_waiting, plan.first_update_iteration, plan.updates_per_iteration) == (4, 1, 2)
