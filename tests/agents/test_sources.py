"""Resolution of names to checkpoints, and of boards to shipped networks."""

import argparse
from pathlib import Path

import pytest

from alphagat.agents import weight_files
from alphagat.agents.agent import load
from alphagat.agents.sources import choose_steps, find_run, resolve, shipped_network_for
from alphagat.cli import engine_options
from alphagat.contests.contenders import EngineLimits, default_board, make_contender
from alphagat.errors import UserError
from alphagat.games import EXAMPLES, make_game
from alphagat.runs.folder import open_run_folder
from alphagat.serving import roster
from tests.serving.untrained import save_untrained
from tests.training.tiny import save_tiny_run, tiny_config

FAMILIES = {"mnk": "connect_four"} | {
    name: name for name in ("2048", "breakthrough", "chess", "go", "hex", "othello", "tsp")
}
BOARDS = {
    "tic_tac_toe": "tic_tac_toe",
    "gomoku:9": "gomoku",
    "mnk:5x6x4": "gomoku",
}  # whose network is not that of their family


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return save_tiny_run(tmp_path_factory.mktemp("sources") / "run", 3, 5)


def test_a_name_resolves_to_one_checkpoint(run):
    for name, iteration, expected in (
        (run, None, 5),
        (str(run), 3, 3),
        (run / "checkpoints" / "3", None, 3),
        (run / "checkpoints" / "3", 3, 3),
    ):
        source = resolve(name, iteration)
        assert (source.path, source.iteration, source.config) == (run, expected, tiny_config())
    assert resolve("hex").path == resolve("shipped", board="hex:4").path == weight_files.FOLDER / "hex.safetensors"


@pytest.mark.parametrize("name", ["hex", "run.safetensors", "checkpoints/3"])
def test_a_run_folder_may_have_any_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved = save_tiny_run(Path(name), 1)
    agent = load(saved)
    assert (agent.config, agent.iteration) == (tiny_config(), 1)


def test_missing_sources_are_refused(run, tmp_path):
    open_run_folder(tmp_path / "new", tiny_config())
    for name, iteration, message in (
        (run / "checkpoints" / "3", 5, "holds iteration 3, not 5"),
        (run, 4, "has no checkpoint of iteration 4, only of 3, 5"),
        (run / "checkpoints" / "4", None, "run has no checkpoint of iteration 4, only of 3, 5"),
        (run / "checkpoints" / "²", None, "holds no run"),
        (tmp_path / "new", None, "has no complete checkpoint yet"),
        (tmp_path, None, "holds no run"),
        ("nothing", None, "nothing/config.json does not exist; use a run folder"),
        ("nothing.safetensors", None, "does not exist; use a run folder"),
        ("./hex", None, "hex/config.json does not exist"),
        ("hex/", None, "hex/config.json does not exist"),
        (Path("nowhere/hex"), None, "nowhere/hex/config.json does not exist"),
        ("shipped", None, "'shipped' needs a board"),
    ):
        with pytest.raises(UserError) as refusal:
            resolve(name, iteration)
        assert message in str(refusal.value)


def test_steps_are_sorted_and_unique(run):
    assert choose_steps(run) == [3, 5]
    assert choose_steps(run, [5, 3, 5]) == [3, 5]
    assert find_run(run.parent) is None


def test_the_first_trained_player_determines_the_board(run):
    assert default_board("random", str(run)) == "hex:2"
    assert default_board("shipped", "hex") == resolve("hex").config.boards[0]
    assert default_board("mcts:3", "shipped", "gtp:gnugo") is None
    with pytest.raises(UserError, match="has no checkpoint of iteration 4, only of 3, 5"):
        default_board("random", str(run / "checkpoints" / "4"))


@pytest.mark.parametrize("board", EXAMPLES)
def test_every_command_uses_the_same_shipped_network(board, monkeypatch, tmp_path):
    """`gtp` opens its agent by `open_agent`, `serve` by `Roster`, `match` by `make_contender`."""
    monkeypatch.chdir(tmp_path)  # where no runs are
    loaded = []

    class Loaded:
        def player(self, num_simulations):
            return None

    def load(name, iteration=None, board=None, precision=None, symmetries=1):
        loaded.append((resolve(name, board=board).path.stem, board))
        return Loaded()

    monkeypatch.setattr("alphagat.agents.agent.load", load)
    monkeypatch.setattr("alphagat.contests.contenders.load", load)
    monkeypatch.setattr(roster, "load", load)
    monkeypatch.setattr(roster, "Playthroughs", lambda game: None)
    monkeypatch.setattr(Loaded, "game", make_game(board), raising=False)
    options = argparse.Namespace(source=None, workdir=None, board=board, symmetries=1)
    commands = (
        lambda: engine_options.open_agent(options, None),
        lambda: roster.Roster((), board),
        lambda: make_contender(make_game(board), "shipped", None, EngineLimits(), 0),
    )
    expected = BOARDS.get(board) or FAMILIES.get(make_game(board).family)
    if expected is None:
        for command in (*commands, lambda: shipped_network_for(board)):
            with pytest.raises(UserError, match=f"board {board}: no shipped network plays it"):
                command()
        return
    for command in commands:
        command()
    assert loaded == [(expected, board)] * len(commands)
    assert shipped_network_for(board) == expected


@pytest.mark.parametrize(
    ("board", "expected"),
    [
        ("hex:5", "small"),
        ("hex:7", "large"),
        ("hex:2", "small"),
        ("hex:6", "large"),  # the ratio to 7x7 is less than that to 5x5
        ("hex:4", "small"),
        ("hex:11", "large"),
        ("othello:8", "discs"),
        ("mnk:4x4x4", "plain"),  # the other has the nearest size, but other kinds of nodes
        ("mnk:5x4x4:gravity", "falling"),
    ],
)
def test_the_network_that_trained_on_the_board_or_on_the_nearest_size_plays_it(board, expected, tmp_path, monkeypatch):
    for name, boards in (
        ("discs", ["othello:4"]),
        ("large", ["hex:7"]),
        ("small", ["hex:3", "hex:5"]),
        ("plain", ["tic_tac_toe"]),
        ("falling", ["mnk:4x3x3:gravity"]),
    ):
        Path(save_untrained(tmp_path, *boards)).rename(tmp_path / f"{name}.safetensors")
    monkeypatch.setattr(weight_files, "FOLDER", tmp_path)
    assert shipped_network_for(board) == expected
