"""The evaluate command: one line of result, one line per error."""

import re
from pathlib import Path

import pytest

from alphagat.cli import evaluate
from alphagat.errors import UserError
from tests.serving.untrained import save_untrained
from tests.training.tiny import save_tiny_run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return save_tiny_run(tmp_path_factory.mktemp("evaluate") / "run", 3, 5)


def test_result_is_one_line(run, capsys):
    flags = ["--workdir", str(run), "--opponent", "random", "--games", "8", "--simulations", "2"]
    assert evaluate.run(flags) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    line = re.fullmatch(
        rf"hex:2, {run} \(iteration 5, 2 simulations\) against random: score (\S+)% \(95% interval (\S+)% to (\S+)%; "
        r"moving first (\S+)%, second (\S+)%\), (\d+) won, (\d+) drawn, (\d+) lost of 8 games\n",
        printed.out,
    )
    assert line
    score, low, high, first, second, *counts = map(float, line.groups())
    assert sum(counts) == 8
    assert low <= score <= high
    assert score == pytest.approx(100 * (counts[0] + counts[1] / 2) / 8, abs=0.1)
    assert score == pytest.approx((first + second) / 2, abs=0.1)
    assert evaluate.run(flags) == 0
    assert capsys.readouterr().out == printed.out


def test_the_opponent_is_named_as_on_the_command_line(run, capsys):
    flags = ["--workdir", str(run), "--games", "2", "--simulations", "2"]
    assert evaluate.run([*flags, "--opponent", f"{run}/checkpoints/5"]) == 0
    said = capsys.readouterr().out
    # The simulations are those of the player; its opponent has those of its own evaluations.
    assert said.startswith(f"hex:2, {run} (iteration 5, 2 simulations) against {run}/checkpoints/5 (iteration 5, ")
    assert evaluate.run([*flags[:-1], "3", "--opponent", f"{run}/checkpoints/5"]) == 0
    said = capsys.readouterr().out
    assert " (iteration 5, 3 simulations) against " in said
    assert f"{run}/checkpoints/5 (iteration 5, 2 simulations): " in said


def test_it_plays_with_the_iteration_and_the_seed_of_the_command(run, monkeypatch):
    played = []

    def play(contest, settings, console):
        played.append((contest.players[0].name, settings.seed))
        raise UserError("enough")

    monkeypatch.setattr("alphagat.contests.match.play_duel", play)
    flags = ["--workdir", str(run), "--opponent", "random", "--simulations", "2"]
    assert evaluate.run([*flags, "--iteration", "3", "--seed", "7"]) == 2
    assert played == [("iteration 3, 2 simulations", 7)]


def test_a_single_player_game(tmp_path, capsys):
    file = save_untrained(tmp_path, "2048:3")
    assert evaluate.run(["--workdir", file, "--opponent", "random", "--games", "4", "--simulations", "2"]) == 0
    assert re.fullmatch(
        rf"2048:3, {file} \(iteration 0, 2 simulations\): mean score \S+ \(95% interval \S+ to \S+\); "
        r"random: \S+ \(\S+ to \S+\); ratio \S+, 4 games each\n",
        capsys.readouterr().out,
    )


MISTAKES = {
    "no run": ([], "RUN is missing; name a run"),
    "odd games": (["--games", "7"], "--games 7: it must be an even number"),
    "no games": (["--games", "0"], "--games 0: it must be at least 2"),
    "too many games": (["--games", "600"], "play at most"),
    "a word for games": (["--games", "many"], "--games many: it must be an integer"),
    "no simulations": (["--simulations", "0"], "--simulations 0: it must be at least 1"),
    "unknown opponent": (
        ["--opponent", "mcst:3"],
        "player 'mcst:3': there is no such player or folder; use a run folder",
    ),
    "no playouts": (["--opponent", "mcts:0"], "opponent mcts:0: each number of mcts:SIMULATIONS must be at least 1"),
    "previous": (["--opponent", "previous"], "player 'previous': there is no such player"),
    "negative seed": (["--seed", "-1"], "--seed -1: it must"),
    "unknown flag": (["--game=3"], "--game is not a flag of this command; the nearest is --games"),
}


@pytest.mark.parametrize(("flags", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_errors_give_one_line_and_exit_2(run, capsys, flags: list[str], message: str):
    assert evaluate.run([*flags, *(["--workdir", str(run)] if flags else [])]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err


def test_help(capsys):
    assert evaluate.run(["--help"]) == 0
    assert "--opponent mcts:100 --games 200" in capsys.readouterr().out
