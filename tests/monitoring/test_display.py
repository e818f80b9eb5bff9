"""The display, on a terminal and without one."""

import io
import math
import os
import pty
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from alphagat.monitoring.catalogue import compact, points
from alphagat.monitoring.display import PACE_ITERATIONS, PLAIN_SECONDS, LiveDisplay, PlainDisplay, make_display
from alphagat.monitoring.metric_text import duration, score_scale, sparkline
from alphagat.runs.metrics import Result

EVALUATION = {
    "results": [
        Result("win_rate", "hex:5", 0.99, 0.96, 1.0, "random"),
        Result("win_rate", "hex:5", 0.4, opponent="mcts:100"),
        Result("elo", "hex:5", 312.0, 250.0, 371.0),
    ]
}


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def metrics(iteration: int) -> dict[str, Any]:
    return {
        "iteration": iteration,
        "board": "hex:5",
        "frames": 2_048.0 * iteration,
        "selfplay/simulations_per_s": 12_345.0,
        "train/policy_loss": 2.0 / iteration,
        "train/value_loss": 0.5,
    }


def console(**options) -> Console:
    return Console(file=io.StringIO(), _environ={}, **options)


def drawn(display: LiveDisplay) -> str:
    with display.console.capture() as capture:
        display.console.print(display.render())
    return capture.get()


def live(width: int, total: int = 10) -> tuple[LiveDisplay, Clock]:
    clock = Clock()
    return LiveDisplay(total, ["hex:5"], console(width=width, color_system=None), clock), clock


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
def test_a_run_outlives_its_terminal(terminal: str, monkeypatch):
    monkeypatch.setenv("TERM", terminal)
    near, far = pty.openpty()
    with os.fdopen(far, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        display = make_display(3, ["hex:5"])
        assert isinstance(display, PlainDisplay if terminal == "dumb" else LiveDisplay)
        with display:
            display.message("before")
            os.close(near)
            display.message("after")
            display.update(metrics(1))
            display.finish(["the end"])


def unread_pipe() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("open_output", [unread_pipe, lambda: os.open("/dev/full", os.O_WRONLY)], ids=("pipe", "full"))
def test_a_run_outlives_the_reader_of_its_output(open_output: Callable[[], int], monkeypatch):
    with os.fdopen(open_output(), "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with make_display(3, ["hex:5"]) as display:
            display.update(metrics(1))
            display.message("after")
            display.finish(["the end"])


def test_kind_follows_the_console():
    assert isinstance(make_display(3, ["hex:5"], console(force_terminal=True)), LiveDisplay)
    assert isinstance(make_display(3, ["hex:5"], console(force_terminal=False)), PlainDisplay)
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(make_display(3, ["hex:5"], dumb), PlainDisplay)


def test_a_notebook_gets_plain_text(monkeypatch, capsys):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    display = make_display(3, ["hex:5"])
    assert isinstance(display, PlainDisplay)
    display.message("checkpoint 1")
    assert capsys.readouterr().out == "checkpoint 1\n"


def test_live_shows_progress_numbers_and_scores():
    display, clock = live(100)
    for iteration in range(1, 5):
        clock.now += 30.0
        display.update(metrics(iteration) | (EVALUATION if iteration == 2 else {}))
    text = drawn(display)
    for expected in (
        "hex:5",
        "4 / 10",
        "2 min 00 s elapsed",
        "3 min 00 s left",
        "12.3 k",
        "0.500",
        "312  (250 to 371)",
        "99%  (96% to 100%)",
        "against mcts:100  40%",
        "█▃▂▁",
    ):
        assert expected in text


def test_live_shows_the_stage_and_its_time_until_the_next_iteration():
    display, clock = live(100)
    display.stage("compiling 2 programs")
    clock.now += 75.0
    assert "compiling 2 programs: 1 min 15 s so far" in drawn(display)
    display.update(metrics(10))
    assert "compiling" not in drawn(display)
    assert "done" in drawn(display)
    display.stage("match 1 of 2, hex:5 against random")
    clock.now += 3.0
    assert "match 1 of 2, hex:5 against random: 3 s so far" in drawn(display)


@pytest.mark.parametrize("width", [30, 44, 64, 80, 110, 200])
def test_no_line_is_wider_than_the_terminal_or_wraps(width: int):
    display, clock = live(width)
    heights = []
    for iteration in (1, 2, 10):
        clock.now += 4_000.0
        display.update(metrics(iteration) | EVALUATION)
        lines = drawn(display).splitlines()
        assert max(map(len, lines)) <= width
        assert width < 40 or "…" not in "".join(lines)
        heights.append(len(lines))
    assert len(set(heights)) == 1


def test_live_shows_no_losses_before_the_replay_is_filled():
    display, _ = live(100)
    display.update({"iteration": 1, "frames": 64.0, "train/policy_loss": float("nan")})
    assert "waiting for the replay to fill" in drawn(display)


def test_live_names_the_source_of_the_games():
    display, _ = live(100)
    display.update(metrics(1))
    assert "self-play" in drawn(display)
    display.update({"iteration": 2, "board": "hex:5", "pretrain/epochs": 0.5})
    assert "recorded games" in (text := drawn(display))
    assert "self-play" not in text


def test_a_result_that_is_not_finite_leaves_the_last_one():
    display, _ = live(100)
    display.update(metrics(1) | EVALUATION)
    display.update(metrics(2) | {"results": [Result("elo", "hex:5", math.nan)]})
    assert "312  (250 to 371)" in drawn(display)


def test_live_runs_on_a_terminal_and_ends_with_the_closing_lines():
    terminal = console(force_terminal=True, width=100)
    with make_display(2, ["hex:5"], terminal) as display:
        display.update(metrics(1))
        display.message("checkpoint 1 [saved]")
        display.update(metrics(2))
        display.finish(["the end"])
    text = terminal.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert "checkpoint 1 [saved]" in text
    assert "2 / 2" in text
    assert text.endswith("the end\n")
    assert "\x1b[?25h" in text.rpartition("\x1b[?25l")[2]  # the cursor is shown again


def plain(total: int, *boards: str) -> tuple[PlainDisplay, Clock, io.StringIO]:
    clock, stream = Clock(), io.StringIO()
    return PlainDisplay(total, boards or ["hex:5"], Console(file=stream, width=80), clock), clock, stream


def test_plain_prints_first_last_and_timed_lines():
    display, clock, stream = plain(total=41)
    for iteration in range(1, 42):
        clock.now += PLAIN_SECONDS / 10
        display.update(metrics(iteration))
    iterations = [line.split()[2].split("/")[0] for line in stream.getvalue().splitlines()]
    assert iterations == ["1", "11", "21", "31", "41"]
    assert "\x1b" not in stream.getvalue()


def test_plain_prints_the_first_iteration_soon_after_a_stage():
    display, clock, stream = plain(total=100)
    display.stage("compiling 1 program")
    clock.now += PLAIN_SECONDS / 2
    display.update(metrics(1))
    assert "iteration 1/100" in stream.getvalue()


def test_plain_prints_a_stage_if_nothing_was_printed_for_a_while():
    display, clock, stream = plain(total=100)
    display.stage("compiling 1 program")
    display.update(metrics(100))
    display.stage("match 1 of 2")
    clock.now += PLAIN_SECONDS
    display.stage("match 2 of 2")
    assert [line for line in stream.getvalue().splitlines() if line.endswith("...")] == [
        "compiling 1 program ...",
        "match 2 of 2 ...",
    ]


def test_plain_prints_only_the_first_of_stages_in_quick_succession():
    display, _, stream = plain(total=100)
    display.stage("match 1 of 2")
    display.stage("match 2 of 2")
    assert stream.getvalue() == "match 1 of 2 ...\n"


def test_plain_prints_each_evaluation_once_on_separate_lines():
    display, clock, stream = plain(total=100)
    for iteration in range(1, 4):
        clock.now += 1.0
        display.update(metrics(iteration) | (EVALUATION if iteration == 2 else {}))
    lines = stream.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines[:2]] == ["hex:5: iteration 1/100", "hex:5: iteration 2/100"]
    assert lines[2:] == ["  evaluation: Elo 312 (250 to 371), against random 99% (96% to 100%), against mcts:100 40%"]


@pytest.mark.parametrize("late", [[], [{"iteration": 0, **EVALUATION}]], ids=["new", "after a late evaluation"])
def test_time_left_excludes_the_first_iteration(late):
    display, clock, _ = plain(total=12)
    for line in late:
        display.update(line)
    clock.now = 100.0  # compiling
    display.update(metrics(1))
    assert display.seconds_left is None
    clock.now = 102.0
    display.update(metrics(2))
    assert display.seconds_left == 20.0
    clock.now = 103.0
    assert display.seconds_left == 19.0
    clock.now = 500.0
    assert display.seconds_left == 0.0


def test_time_left_after_a_resume_uses_new_iterations():
    display, clock, _ = plain(total=100)
    for iteration in (91, 92):
        clock.now += 3.0
        display.update(metrics(iteration))
    assert display.seconds_left == 24.0


def test_time_left_follows_the_recent_pace():
    display, clock, _ = plain(total=100)
    for iteration in range(1, PACE_ITERATIONS + 11):
        clock.now += 10.0 if iteration <= 10 else 1.0
        display.update(metrics(iteration))
    assert display.seconds_left == 100 - (PACE_ITERATIONS + 10)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (41.27, "41.3"),
        (950.4, "950"),
        (9_500, "9,500"),
        (12_345, "12.3 k"),
        (9.5e6, "9.50 M"),
        (2e10, "20.0 G"),
        (2e12, "2000.0 G"),
        (-0.0, "0"),
        (99.96, "100"),
        (9_999.7, "10.0 k"),
        (999_940, "999.9 k"),
        (999_960, "1.00 M"),
        (9_996_000, "10.0 M"),
        (-999_960, "-1.00 M"),
    ],
)
def test_compact(value: float, text: str):
    assert compact(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.46512, "0.465"), (-0.0, "0"), (-0.25, "-0.25"), (12.345, "12.3"), (99.96, "100"), (5432.1, "5,432")],
)
def test_points(value: float, text: str):
    assert points(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.9, "59 s"), (185, "3 min 05 s"), (7_620, "2 h 07 min")]
)
def test_duration(seconds: float, text: str):
    assert duration(seconds) == text


def test_sparkline():
    assert sparkline([1.0], 5) == ""
    assert sparkline([3.0, 3.0], 5) == "▁▁"
    assert sparkline([0.0, 7.0, 3.0], 5) == "▁█▄"
    assert sparkline([float(i) for i in range(1_000)], 8) == "▁▂▃▄▅▆▇█"


def test_score_scale():
    assert score_scale(0.5, 0.5, 0.5).plain == "─" * 12 + "●" + "─" * 12
    assert score_scale(0.75, 0.625, 0.875).plain == "─" * 12 + "┼──" + "━━━●━━━" + "───"
    assert score_scale(1.0, 0.9, 1.2).plain.endswith("━━●")


def shown(boards: list[str], *results: Result) -> str:
    """Returns the plain lines of an evaluation; checks that the live display has the same labels."""
    display, _, stream = plain(10, *boards)
    display.update(metrics(1) | {"results": results})
    picture = LiveDisplay(10, boards, console(width=100, color_system=None))
    picture.update(metrics(1) | {"results": results})
    for word in ("score", "Elo", "held-out"):
        assert (word in stream.getvalue()) == (word in drawn(picture))
    return stream.getvalue()


def test_results_name_their_board_with_several_boards():
    scores = [
        Result("win_rate", board, value, opponent="mcts:100") for board, value in (("hex:5", 0.5), ("hex:7", 0.25))
    ]
    text = shown(["hex:5", "hex:7"], *scores, Result("elo", "hex:7", 31.0))
    assert "hex:5, hex:7: iteration 1/10" in text
    assert "hex:7 Elo 31, hex:5 against mcts:100 50%, hex:7 against mcts:100 25%" in text


def test_scalars_of_several_boards_are_not_mixed():
    lines = [
        metrics(number) | {"board": board, "train/policy_loss": loss, "selfplay/game_length": plies}
        for number, board, loss, plies in [(1, "hex:5", 1.0, 15), (2, "hex:9", 3.0, 50), (3, "hex:5", 0.9, 14)]
    ]
    picture = LiveDisplay(10, ["hex:5", "hex:9"], console(width=100, color_system=None))
    display, clock, stream = plain(10, "hex:5", "hex:9")
    for line in lines:
        clock.now += PLAIN_SECONDS
        display.update(line)
        picture.update(line)
    text = drawn(picture)
    assert re.search("self-play on hex:5 .*learning on hex:5", text)
    assert re.search("policy loss +0.900 +█▁ ", text)
    assert re.search("plies per game +14 ", text)
    printed = stream.getvalue().replace("\n", " ").split("hex:5, hex:9: iteration ")[1:]
    for row, number, words in zip(
        printed,
        (1, 2, 3),
        (("hex:5", "15 plies", "loss 1.000"), ("hex:9", "50 plies", "loss 3.000"), ("hex:5", "14 plies", "loss 0.900")),
        strict=True,
    ):
        board, *values = words
        assert row.startswith(f"{number}/10 on {board},")
        assert [value for value in values if value not in row] == []
    actors = metrics(4) | {"board": "hex:9", "trained_board": "hex:5", "train/policy_loss": 0.8}
    picture.update(actors)
    assert re.search("self-play on hex:9 .*learning on hex:5", text := drawn(picture))
    assert re.search(f"policy loss +0.800 +{sparkline([1.0, 0.9, 0.8], 16)} ", text)  # on hex:5
    assert re.search("plies per game +50 ", text)


def test_a_single_player_game_shows_its_score():
    results = Result("score", "2048", 5432.1, 5000.0, 6000.0), Result("score_ratio", "2048", 4.94, opponent="random")
    assert "score 5,432 (5,000 to 6,000), against random 4.94 times its score" in shown(["2048"], *results)
    small = Result("score", "2048", 0.5234, 0.4, 0.61)
    assert "score 0.523 (0.4 to 0.61)" in shown(["2048"], small)


def test_holdout_results_omit_unmeasured_values():
    names = {"policy_accuracy": 0.5, "value_sign": math.nan, "value_error": 0.5}
    text = shown(["hex:7"], *(Result(f"holdout/{name}", "hex:7", value) for name, value in names.items()))
    assert "evaluation: held-out moves predicted 50.0%, held-out value error 0.500" in text
