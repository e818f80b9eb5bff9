"""Boards alternate in proportion to their shares."""

import numpy as np
import pytest

from alphagat.training import board_schedule as module
from alphagat.training.board_schedule import board_schedule, shortest_schedule


def test_equal_shares_alternate():
    assert board_schedule(6, 2, (), ()) == (0, 1, 0, 1, 0, 1)
    assert board_schedule(3, 1, (), ()) == (0, 0, 0)


def test_shares_hold_at_every_iteration():
    boards = np.array(board_schedule(400, 3, (5.0, 3.0, 2.0), ()))
    for number, share in enumerate((0.5, 0.3, 0.2)):
        counts = np.cumsum(boards == number)
        assert np.abs(counts - share * np.arange(1, 401)).max() <= 1.5


def test_shares_interpolate_to_the_final_weights():
    boards = np.array(board_schedule(100, 2, (1.0, 0.0), (0.0, 1.0)))
    assert (boards[:10] == 0).mean() > 0.85
    assert (boards[-10:] == 1).mean() > 0.85
    assert 40 <= (boards == 0).sum() <= 60
    # At every iteration, the count equals the integral of the share.
    wanted = np.cumsum(np.linspace(1, 0, 100))
    assert np.abs(np.cumsum(boards == 0) - wanted).max() <= 1.5


def test_a_board_with_zero_weight_gets_no_iterations():
    assert 1 not in board_schedule(50, 3, (1.0, 0.0, 1.0), ())


@pytest.mark.parametrize("weights", [(), (3.0, 1.0, 1.0), (1.0, 2.0, 3.0), (0.1, 0.2, 0.7)])
def test_the_order_of_constant_shares_does_not_depend_on_the_length(weights):
    long = board_schedule(500, 3, weights, ())
    for length in range(1, 500, 7):
        assert board_schedule(length, 3, weights, ()) == long[:length]


def test_no_more_iterations_are_tried_than_allowed(monkeypatch):
    tried = []
    monkeypatch.setattr(module, "board_schedule", lambda *args: tried.append(args[0]) or board_schedule(*args))
    assert shortest_schedule((20, 20), (), (), 39, last_counts=True) is None
    assert not tried
    assert shortest_schedule((20, 20), (), (), 40, last_counts=True) == max(tried) == 40
