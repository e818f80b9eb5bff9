"""The reported time of an iteration ends when its devices finish."""

import itertools
import threading
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.reporting.page import tiles_of
from alphagat.runs.metrics import Result, read_metrics
from alphagat.runtime import sharding
from alphagat.training import reporter as report_module
from alphagat.training.evaluation import EvaluationResult, PlayedGame
from alphagat.training.reporter import Diverged, Reporter, hours_so_far, open_sinks
from alphagat.training.setup import make_run
from tests.training.tiny import tiny_config, tiny_run

SUMS = {
    "full_plies": 64,
    "searches_not_finite": 0,
    "games": 4,
    "game_plies": 12,
    "drawn": 0,
    "truncated": 0,
    "target_entropy": 32,
    "simulations": 512,
}


@pytest.fixture
def metrics() -> dict[str, jax.Array]:
    """Returns the metrics of an iteration without updates."""
    return {name: jnp.float32(value) for name, value in (SUMS | {"train/skipped_in_a_row": 0}).items()}


class Clock:
    """A clock that a test sets; it records whether it was read."""

    def __init__(self):
        self.seconds, self.was_read = 0.0, threading.Event()

    def perf_counter(self) -> float:
        self.was_read.set()
        return self.seconds


def test_time_excludes_the_start_of_the_next_iteration(tmp_path, monkeypatch, metrics):
    """On a GPU, starting an iteration returns only when it is almost over."""
    clock = Clock()
    monkeypatch.setattr(report_module, "time", clock)
    durations = [2.0, 5.0, 3.0]
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        report = Reporter(run, sinks, hours=1.0)
        for iteration, ends in enumerate(itertools.accumulate(durations), start=1):
            clock.seconds = ends  # of this iteration, whose start blocked the host until now
            clock.was_read.clear()
            report.add(iteration, 0, metrics, None)
            assert clock.was_read.wait(60)
        report.flush()
    lines = read_metrics(tmp_path)
    passed = itertools.accumulate(durations)
    assert [line["hours"] for line in lines] == pytest.approx([1 + seconds / 3600 for seconds in passed])
    assert [line["selfplay/games_per_s"] for line in lines] == pytest.approx([4 / seconds for seconds in durations])
    assert {line["selfplay/target_entropy"] for line in lines} == {0.5}
    speeds = [line["selfplay/simulations_per_s"] for line in lines]
    assert speeds == pytest.approx([512 / seconds for seconds in durations])


def test_time_excludes_matches(tmp_path, monkeypatch, metrics):
    clock = Clock()
    monkeypatch.setattr(report_module, "time", clock)
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        report = Reporter(run, sinks, hours=1.0)
        clock.seconds = 2.0
        report.add(1, 0, metrics, None)
        report.wait()
        clock.seconds = 1000.0
        report.add_evaluation(EvaluationResult([], []))
        clock.was_read.clear()
        clock.seconds = 1003.0
        report.add(2, 0, metrics, None)
        assert clock.was_read.wait(60)
        report.flush()
    assert [line["hours"] for line in read_metrics(tmp_path)] == pytest.approx([1 + 2 / 3600, 1 + 5 / 3600])


def test_hours_continue_after_the_line_of_a_late_evaluation(tmp_path, metrics):
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        report = Reporter(run, sinks, hours=3.0)
        report.add(1, 0, metrics, None)
        report.flush()
        hours = read_metrics(tmp_path)[0]["hours"]
        report.add_late_evaluation(2, EvaluationResult([Result("win_rate", "hex:2", 0.5, opponent="random")], []))
    assert [line.get("hours") for line in read_metrics(tmp_path)] == [hours, None]
    assert hours_so_far(tmp_path) == hours >= 3
    assert hours_so_far(tmp_path / "none") == 0
    assert [tile.label for tile in tiles_of(("hex:2",), read_metrics(tmp_path))][:2] == ["frames", "training"]


def test_a_late_evaluation_is_shown(tmp_path, metrics):
    result = Result("win_rate", "hex:2", 0.5, opponent="random")
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        report = Reporter(run, sinks, hours=0.0)
        report.add(1, 0, metrics, None)
        report.flush()
        report.stage("match 1 of 1")
        drawn, tracked = [], []
        sinks.writer.draw_game = lambda iteration, board, drawing: drawn.append((iteration, board, drawing[:4]))
        sinks.trackers.add = lambda values, iteration: (
            tracked.append((values["eval/vs_random/win_rate"], iteration)) or []
        )
        game = PlayedGame(make_game("hex:2"), np.array([0, 1, 2]))
        report.add_late_evaluation(1, EvaluationResult([result], [game]))
        assert drawn == [(1, "hex:2", "<svg")]
        assert tracked == [(0.5, 1)]
        assert result in sinks.display.results.values()
        assert sinks.display._stage is None
    assert read_metrics(tmp_path)[0]["results"][0] == result


def test_every_board_is_audited_as_often_as_configured(metrics):
    config, checked = tiny_config(), []
    config.boards, config.selfplay.audit_every = ("hex:2", "hex:3"), 2
    report = Reporter(make_run(config, sharding.make_mesh(1)), None, hours=0.0)
    report._auditors = [
        SimpleNamespace(check=lambda audit, board=board: checked.append((audit, board))) for board in range(2)
    ]
    for iteration in range(1, 9):
        report.add(iteration, (iteration - 1) % 2, metrics, iteration)
    report.flush()
    assert checked == [(3, 0), (4, 1), (7, 0), (8, 1)]


@pytest.mark.parametrize("has_outputs", [True, False])
def test_searches_that_are_not_finite_are_no_broken_rules(tmp_path, monkeypatch, metrics, has_outputs: bool):
    """The audit would report the targets of such a search as an error of the rules."""
    monkeypatch.setattr(report_module.Auditor, "check", lambda *_: pytest.fail("audited"))
    audit: Any = object()
    run = tiny_run()
    before_an_update = 1 + run.boards[0].plan.first_update_iteration
    errors = {
        before_an_update: (
            UserError,
            rf"config.boards=.*: searches of iteration {before_an_update} .*alphagat check hex:2$",
        ),
        before_an_update + 1: (Diverged, rf"^searches of iteration {before_an_update + 1} were not finite$"),
    }
    for iteration, (kind, text) in errors.items():
        (folder := tmp_path / str(iteration)).mkdir()
        with open_sinks(run, folder, 0) as sinks:
            report = Reporter(run, sinks if has_outputs else None, hours=0.0)
            report.add(iteration, 0, metrics | {"searches_not_finite": jnp.float32(3)}, audit)
            with pytest.raises(kind, match=text):
                report.flush()
        assert read_metrics(folder) == []


def test_an_iteration_in_which_no_game_ended(tmp_path, metrics):
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        report = Reporter(run, sinks, hours=0.0)
        report.add(1, 0, metrics | {"games": jnp.float32(0)}, None)
        report.flush()
    (line,) = read_metrics(tmp_path)
    assert {line[f"selfplay/{name}"] for name in ("game_length", "draws", "truncated")} == {None}
    assert line["selfplay/games_per_s"] == 0


def test_shares_are_of_the_games_that_ended(tmp_path, metrics):
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        report = Reporter(run, sinks, hours=0.0)
        report.add(1, 0, metrics | {"drawn": jnp.float32(1), "truncated": jnp.float32(2)}, None)
        report.flush()
    (line,) = read_metrics(tmp_path)
    assert (line["selfplay/draws"], line["selfplay/truncated"]) == (0.25, 0.5)
    assert line["frames"] == run.boards[0].plan.frames_per_iteration


def test_an_evaluation_is_written_with_the_iteration_of_its_opponent(tmp_path, metrics):
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        report = Reporter(run, sinks, hours=0.0)
        report.add(1, 0, metrics, None)
        report.wait()
        report.add_evaluation(EvaluationResult([], [], previous=7))
        report.flush()
    (line,) = read_metrics(tmp_path)
    assert (line["previous_iteration"], line["num_games"]) == (7, run.config.evaluation.num_games)


def test_too_many_skipped_updates_in_a_row_end_the_attempt(metrics):
    report = Reporter(run := tiny_run(), None, hours=0.0)
    most = run.config.learner.max_skipped
    report.add(1, 0, metrics | {"train/skipped_in_a_row": jnp.float32(most - 1)}, None)
    report.flush()
    report.add(2, 0, metrics | {"train/skipped_in_a_row": jnp.float32(most)}, None)
    with pytest.raises(Diverged, match=rf"^up to iteration 2, the last {most} updates were not finite$"):
        report.flush()


def test_a_game_of_each_board_is_drawn(tmp_path, metrics):
    games = [PlayedGame(make_game(board), np.array([0, 1, 2])) for board in ("hex:2", "hex:3")]
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        drawn = []
        sinks.writer.draw_game = lambda iteration, board, _: drawn.append((iteration, board))
        report = Reporter(run, sinks, hours=0.0)
        report.add(3, 0, metrics, None)
        report.wait()
        report.add_evaluation(EvaluationResult([], games))
        report.add_late_evaluation(2, EvaluationResult([], games))
    assert drawn == [(3, "hex:2"), (3, "hex:3"), (2, "hex:2"), (2, "hex:3")]


def test_each_iteration_is_shown_and_tracked_with_its_board(tmp_path, metrics):
    config = tiny_config()
    config.boards = ("hex:2", "hex:3")
    shown, tracked, stages = [], [], []
    with open_sinks(run := make_run(config, sharding.make_mesh(1)), tmp_path, 0) as sinks:
        sinks.display.update, sinks.display.stage = shown.append, stages.append
        sinks.trackers.add = lambda values, iteration: tracked.append((iteration, values)) or []
        report = Reporter(run, sinks, hours=0.0)
        report.stage("compiling")
        for iteration in (1, 2):
            report.add(iteration, iteration - 1, metrics, None)
        report.flush()
    assert stages == ["compiling"]
    assert [(line["iteration"], line["board"]) for line in shown] == [(1, "hex:2"), (2, "hex:3")]
    assert [(iteration, values[f"selfplay/hex:{iteration + 1}/game_length"]) for iteration, values in tracked] == [
        (1, 3.0),
        (2, 3.0),
    ]


def test_the_speed_of_pretraining(tmp_path, monkeypatch, metrics):
    clock = Clock()
    monkeypatch.setattr(report_module, "time", clock)
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        report = Reporter(run, sinks, hours=0.0)
        clock.seconds = 4.0
        skipped = {"train/skipped_in_a_row": metrics["train/skipped_in_a_row"]}
        report.add(
            1, 0, skipped | {report_module.POSITIONS: jnp.float32(200), report_module.EPOCHS: jnp.float32(3)}, None
        )
        report.flush()
    (line,) = read_metrics(tmp_path)
    assert (line["pretrain/epochs"], line["pretrain/positions_per_s"]) == (3, 50)
    assert "frames" not in line


def test_a_late_evaluation_is_rated_at_its_iteration(tmp_path):
    rated = []
    with open_sinks(run := tiny_run(), tmp_path, 0) as sinks:
        sinks.ratings.add = lambda line: rated.append(line["iteration"]) or []
        Reporter(run, sinks, hours=0.0).add_late_evaluation(2, EvaluationResult([], []))
    assert rated == [2]
