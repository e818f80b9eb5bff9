"""The match command: its table, its file of games, and one line per error."""

import os
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from alphagat.agents import weight_files
from alphagat.agents.agent import load
from alphagat.cli import match
from alphagat.contests import contenders
from alphagat.contests.contenders import EngineLimits
from alphagat.contests.match_options import MatchOptions, read_limits, read_settings
from alphagat.contests.match_report import elo_text, notes, solo_line, solo_table
from alphagat.errors import UserError
from alphagat.evaluation.game_files import read_games
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.single_player import Scores
from alphagat.games import make_game
from alphagat.games.twenty_forty_eight import TwentyFortyEightGame
from tests.cli.terminals import be_terminal
from tests.serving.untrained import save_untrained
from tests.training.tiny import save_tiny_run

FAKE_ENGINE = Path(__file__).parents[1] / "evaluation" / "fake_engine.py"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return save_tiny_run(tmp_path_factory.mktemp("match") / "run", 3, 5)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def cells(output: str) -> dict[str, str]:
    """Returns the rows of the table."""
    rows = [line.strip("│").split("│") for line in output.splitlines() if line.startswith("│")]
    return {name.strip(): value.strip() for name, value in rows}


def counts(output: str) -> list[int]:
    return [int(word) for word in cells(output)["won, drawn, lost"].split(", ")]


@pytest.mark.parametrize(
    ("score", "text"), [(1, "≥+1200"), (0.9995, "≥+1200"), (0.75, "+191"), (0.5, "+0"), (0.4995, "+0"), (0, "≤-1200")]
)
def test_a_clipped_difference_is_marked(score, text):
    assert elo_text(score) == text


@pytest.mark.parametrize("board", ["hex:2", "2048:2"])
def test_on_a_terminal_it_says_what_it_waits_for(monkeypatch, board):
    terminal = be_terminal(monkeypatch)
    assert match.run(["random", "random", "--board", board, "--games", "2"]) == 0
    waits = {"hex:2": "drawing the openings", "2048:2": "compiling, then playing"}
    assert {"starting JAX", "loading the players", waits[board]} <= terminal.texts()[0]


def test_two_checkpoints_of_a_run(run, tmp_path, capsys):
    out = tmp_path / "games.sgf"
    players = [f"{run}/checkpoints/3", str(run)]
    flags = ["--games", "8", "--simulations", "2,4", "--out", str(out)]
    assert match.run([*players, *flags]) == 0
    printed = capsys.readouterr()
    assert "hex:2, 8 games" in printed.out
    player, (won, drawn, lost) = cells(printed.out)["player"], counts(printed.out)
    assert player == f"{run}/checkpoints/3 (iteration 3, 2 simulations)"
    assert (won + lost, drawn) == (8, 0)
    assert float(cells(printed.out)["score"].partition("%")[0]) == pytest.approx(100 * won / 8, abs=0.1)
    records = read_games(out.read_text())
    assert len(records) == 8
    assert records[0].names == records[1].names[::-1] == (player, f"{run} (iteration 5, 4 simulations)")
    wins = [record.names[0 if record.outcome > 0 else 1] for record in records]
    assert wins.count(player) == won
    assert len({record.moves[:2] for record in records}) == 4


def test_a_name_that_is_not_utf8_loses_no_game(run, tmp_path, capsys):
    agent, file = load(run), Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.safetensors"))
    weight_files.write(file, agent.params, agent.config, 5)
    out = tmp_path / "games.sgf"
    flags = ["--games", "2", "--simulations", "1", "--out", str(out)]
    assert match.run([str(file), "random", *flags]) == 0
    assert "/caf?.safetensors (iteration 5, 1 simulation" in capsys.readouterr().out.replace("\n", "")
    assert len(read_games(out.read_text())) == 2


def test_each_player_has_its_number_of_symmetries(run, capsys):
    flags = ["--games", "2", "--simulations", "2", "--symmetries", "4,1"]
    assert match.run([f"{run}/checkpoints/3", str(run), *flags]) == 0
    found = cells(capsys.readouterr().out)
    assert found["player"] == f"{run}/checkpoints/3 (iteration 3, 2 simulations, 4 symmetries)"
    assert found["against"] == f"{run} (iteration 5, 2 simulations)"


def test_the_table_says_that_it_counts_plies_after_the_opening(capsys):
    assert match.run(["random", "random", "--board", "tic_tac_toe", "--opening_plies", "4"]) == 0
    rows = cells(capsys.readouterr().out)
    assert "plies per game" not in rows
    assert int(rows["plies after the opening"]) <= 5


def test_games_at_once_are_two_per_opening():
    options = match.make_parser().parse_args(["random", "random", "--board", "hex:3", "--games_at_once", "48"])
    assert read_settings(MatchOptions(**vars(options)), make_game("hex:3")).part_size == 24


def test_all_openings_of_two_plies_in_parts(capsys):
    assert match.run(["mcts:2", "random", "--board", "hex:3", "--opening_plies", "2", "--games_at_once", "48"]) == 0
    printed = capsys.readouterr().out
    assert "hex:3, 144 games" in printed
    assert cells(printed)["against"] == "random"


def test_a_decided_match_stops_early(capsys):
    flags = ["--board", "tic_tac_toe", "--sprt", "0,50", "--games", "500", "--games_at_once", "20"]
    assert match.run(["mcts:50", "random", *flags]) == 0
    printed = capsys.readouterr().out
    assert "Elo accepted, against" in printed
    assert sum(counts(printed)) < 500


@pytest.mark.parametrize("flags", [[], ["--opening_plies", "2"]])
def test_the_seed_draws_the_openings_and_the_choices_of_players(monkeypatch, flags):
    drawn = []

    def make(game, a, b, openings, key, *_):
        drawn.append((openings.actions.tolist(), jax.random.key_data(key).tolist()))
        raise UserError("enough")

    monkeypatch.setattr("alphagat.contests.match.Series", make)
    for seed in ("1", "1", "2"):
        assert match.run(["random", "random", "--board", "hex:4", "--games", "8", "--seed", seed, *flags]) == 2
    first, again, other = drawn
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]


def test_the_seed_draws_the_games_of_one_player(monkeypatch):
    keys = []

    def play(game, player, num_games, key, mesh):
        keys.append(jax.random.key_data(key).tolist())
        raise UserError("enough")

    monkeypatch.setattr("alphagat.contests.match.play_alone", play)
    for seed in ("1", "1", "2"):
        assert match.run(["random", "random", "--board", "2048:2", "--seed", seed]) == 2
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("board", "player", "engine", "arguments"),
    [
        ("chess", "uci:a b", "UciEngine", ("a b", 2.5, 70, {"Skill Level": "3"})),
        ("go:5", "gtp:c d", "GtpEngine", ("c d", 2.5)),
        ("hex:4", "solver", "SolverEngine", (7,)),
    ],
)
def test_engines_get_their_limits_options_and_seed(monkeypatch, board, player, engine, arguments):
    made, limits = [], contenders.EngineLimits(2.5, 70, {"Skill Level": "3"})
    monkeypatch.setattr(contenders, engine, lambda game, *rest: made.append(rest))
    contenders.make_contender(make_game(board), player, None, limits, 7)
    assert made == [arguments]


def test_games_forfeited_by_an_engine_are_listed(capsys):
    engine = f"gtp:'{sys.executable}' '{FAKE_ENGINE}' gtp die"
    assert match.run(["random", engine, "--board", "go:5", "--games", "2"]) == 0
    printed = capsys.readouterr()
    assert counts(printed.out) == [2, 0, 0]
    assert "forfeited 2 games: died" in printed.out
    assert printed.err.count("forfeited a game after") == 2


def test_forfeits_are_counted_by_player_and_reason():
    outcomes, forfeits = np.array([[-1.0, 1, 1], [-1, -1, -1]]), np.array([["died", "", "died"], ["resigned"] * 3])
    result = MatchResult(outcomes, np.ones((2, 3), int), np.zeros((2, 3, 1), int), forfeits)
    assert notes(("a", "b"), result, None) == [
        "a forfeited 1 game: died",
        "a forfeited 3 games: resigned",
        "b forfeited 1 game: died",
    ]


def test_names_are_not_markup(tmp_path, monkeypatch, capsys):
    engine = tmp_path / "[" / "y]"
    engine.parent.mkdir()
    engine.symlink_to(FAKE_ENGINE)
    command = f"gtp:{sys.executable} '{engine}' gtp pass"
    monkeypatch.setenv("FORCE_COLOR", "1")  # the progress is shown
    assert match.run([command, "random", "--board", "go:5", "--games", "2"]) == 0
    printed = capsys.readouterr()
    assert "[/y]" in printed.out
    assert "[/y]" in printed.err


def test_single_player_games_compare_mean_scores(capsys):
    assert match.run(["random", "random", "--board", "2048:3", "--games", "4"]) == 0
    rows = cells(capsys.readouterr().out)
    assert rows["player"] == rows["against"] == "random"
    assert rows["ratio of scores"] == "1"  # both players use the same keys
    assert rows["largest tile, at least"].endswith(": 100.0%")


def test_small_scores_have_decimals():
    each = Scores(np.full(4, 0.375, np.float32), np.full(4, 2))
    line = solo_line(make_game("2048"), ("A", "B"), (each, each))
    assert "A: mean score 0.375 (95% interval 0.375 to 0.375); B: 0.375 (0.375 to 0.375)" in line
    cell = list(solo_table(make_game("2048"), ("A", "B"), (each, each)).columns[1].cells)[1]
    assert cell == "0.375 (95% interval 0.375 to 0.375)"


def test_a_weight_file_determines_the_board(tmp_path, capsys):
    file = save_untrained(tmp_path, "hex:2")
    assert match.run([file, "random", "--games", "4", "--simulations", "2"]) == 0
    assert "hex:2, 4 games" in capsys.readouterr().out


def test_a_missing_package_for_game_files_is_noticed_before_the_match(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sgfmill", None)  # an import of it raises ImportError
    monkeypatch.delitem(sys.modules, "alphagat.evaluation.game_formats.sgf", raising=False)
    monkeypatch.setattr("alphagat.contests.match.play_duel", None)
    assert match.run(["random", "random", "--board", "hex:3", "--out", str(tmp_path / "games.sgf")]) == 2
    assert "these game files need sgfmill, which is not installed" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_games_with_chance_are_not_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(TwentyFortyEightGame, "num_players", 2)
    monkeypatch.setattr("alphagat.contests.match.play_duel", None)
    assert match.run(["random", "random", "--board", "2048:2", "--out", str(tmp_path / "games.sgf")]) == 2
    assert capsys.readouterr().err == (
        "error: --out: 2048:2 has chance or a random first position, which game files do not hold; leave this option "
        "out\n"
    )


MISTAKES = {
    "no player": ([], "the following arguments are required: A, B"),
    "no such folder": (["no/run", "random", "--board", "hex:3"], "player 'no/run': there is no such player or folder"),
    "no such run": (["runs/smok", "mcts:3"], "player 'runs/smok': there is no such player or folder"),
    "a folder without a run": (["tests", "random", "--board", "hex:3"], "tests holds no run"),
    "no board": (["random", "random"], "--board is missing"),
    "unknown board": (["random", "random", "--board", "hexx:3"], "board hexx:3: there is no such game"),
    "one player": (["random", "random", "--board", "2048", "--sprt", "0,30"], "--sprt: 2048 is a game for one player"),
    "odd games": (["random", "random", "--board", "hex:3", "--games", "7"], "--games 7: it must be an even number"),
    "too many games": (["random", "random", "--board", "hex:2", "--games", "600"], "play at most"),
    "no file": (["random", "pgx:", "--board", "go:5"], "it names no file; use pgx:FILE, such as pgx:connect_four_v0"),
    "no program": (["random", "gtp:", "--board", "go:5"], "it names no program; use gtp:COMMAND, such as gtp:'gnugo "),
    "no UCI program": (
        ["random", "uci:", "--board", "chess"],
        "player 'uci:': it names no program; use uci:COMMAND, such as uci:stockfish",
    ),
    "not installed": (["random", "gtp:no-such-engine -x", "--board", "go:5"], "no-such-engine"),
    "engine of another game": (["random", "uci:stockfish", "--board", "go:5"], "go:5"),
    "sprt": (
        ["random", "random", "--board", "hex:3", "--sprt", "30,0"],
        "--sprt 30,0: the smaller difference must come first",
    ),
    "simulations": (["random", "random", "--board", "hex:3", "--simulations", "1,2,3"], "--simulations 1,2,3: it must"),
    "seconds": (["random", "random", "--board", "hex:3", "--move_seconds", "0"], "--move_seconds 0: it must"),
    "option": (["random", "random", "--board", "hex:3", "--engine_option", "x"], "--engine_option x: write NAME"),
    "unused simulations": (
        ["mcts:2", "random", "--board", "hex:3", "--simulations", "8"],
        "--simulations: neither mcts:2 nor random is a trained player; leave this option out",
    ),
    "an unused number": (
        ["shipped", "mcts:2", "--board", "hex:3", "--simulations", "8,16"],
        "--simulations 8,16: mcts:2 is not a trained player; give one number",
    ),
    "unused symmetries": (
        ["mcts:2", "random", "--board", "hex:3", "--symmetries", "4"],
        "--symmetries: neither mcts:2 nor random is a trained player of AlphaGAT; leave this option out",
    ),
    "an unused number of symmetries": (
        ["shipped", "mcts:2", "--board", "hex:3", "--symmetries", "4,1"],
        "--symmetries 4,1: mcts:2 is not a trained player of AlphaGAT; give one number",
    ),
    "too many symmetries": (
        ["shipped", "mcts:2", "--board", "hex:3", "--symmetries", "8"],
        "symmetries=8: it must be at most 4, the number of symmetries of hex:3",
    ),
    "unused seconds": (["random", "solver", "--board", "hex:3", "--move_seconds", "1"], "is a program (gtp or uci)"),
    "two limits": (
        ["random", "uci:x", "--board", "chess", "--move_seconds", "1", "--move_nodes", "5"],
        "--move_seconds: UCI engines follow --move_nodes instead; leave one of the two out",
    ),
    "unused nodes": (["random", "gtp:x", "--board", "go:5", "--move_nodes", "5"], "is a UCI engine; leave"),
    "unused option": (["random", "random", "--board", "hex:3", "--engine_option", "a=b"], "--engine_option: neither"),
    "ending": (
        ["random", "random", "--board", "hex:3", "--out", "x.pgn"],
        "x.pgn: end the name with .sgf",
    ),
    "out folder": (["random", "random", "--board", "hex:3", "--out", "no/x.sgf"], "there is no folder no"),
    "out exists": (["random", "random", "--board", "hex:3", "--out", "README.md"], "nothing is overwritten"),
}


@pytest.mark.parametrize(("flags", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_errors_give_one_line_and_exit_2(capsys, flags: list[str], message: str):
    assert match.run(flags) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err


def test_a_checkpoint_of_another_family_is_refused(run, capsys):
    assert match.run([str(run), "random", "--board", "go:5"]) == 2
    assert "plays only boards of that family" in capsys.readouterr().err


def test_help(capsys):
    assert match.run(["--help"]) == 0
    printed = capsys.readouterr().out
    assert "runs/c4 mcts:1000 --games 200" in printed
    assert "seconds per move of an engine, rounded to whole seconds, at least 1, for GTP" in " ".join(printed.split())


def test_an_interrupted_match_names_the_games_that_are_lost(tmp_path, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("alphagat.evaluation.match_parts.play_match", interrupt)
    out = tmp_path / "games.sgf"
    assert match.run(["random", "random", "--board", "hex:2", "--games", "2", "--out", str(out)]) == 130
    line = "the games of the current part (--games_at_once) are lost; --out has those of earlier parts, if any"
    assert capsys.readouterr().err == f"interrupted; {line}\n"
    assert not out.exists()


def test_a_sequential_test_plays_32_openings_at_once():
    options = match.make_parser().parse_args(["random", "random", "--board", "hex:3", "--sprt", "0,30"])
    assert read_settings(MatchOptions(**vars(options)), make_game("hex:3")).part_size == 32


def test_engines_follow_the_limits_and_options_of_the_command():
    flags = ["--move_seconds", "2.5", "--move_nodes", "70", "--engine_option", "Skill Level=3"]
    options = match.make_parser().parse_args(["uci:a", "gtp:b", "--board", "chess", *flags])
    assert read_limits(MatchOptions(**vars(options))) == EngineLimits(2.5, 70, {"Skill Level": "3"})


def test_a_solver_gets_the_seed_of_the_command(monkeypatch):
    made = []

    def make(game, seed):
        made.append(seed)
        raise UserError("enough")

    monkeypatch.setattr(contenders, "SolverEngine", make)
    assert match.run(["solver", "random", "--board", "hex:4", "--seed", "7"]) == 2
    assert made == [7]
