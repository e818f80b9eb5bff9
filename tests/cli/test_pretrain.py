"""The command line of `alphagat pretrain`."""

from pathlib import Path

import pytest

import alphagat
from alphagat.cli import pretrain
from alphagat.config import Config

BASE = ["--config", "configs/tic_tac_toe", "--workdir", "w"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Config, Path]]:
    recorded: list[tuple[Config, Path]] = []
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setattr(
        alphagat, "train", lambda config, workdir, **_: recorded.append((config, workdir)), raising=False
    )
    return recorded


def test_flags_set_config_fields(calls):
    argv = [*BASE, "--games", "a, b.sgf", "--games", "runs/c", "--holdout", "0.2", "--config.learner.batch_size=64"]
    assert pretrain.run(argv) == 0
    ((config, workdir),) = calls
    assert config.pretrain.games == ("a, b.sgf", "runs/c")
    assert config.pretrain.holdout == 0.2
    assert (config.learner.batch_size, config.boards, workdir) == (64, ("tic_tac_toe",), Path("w"))


MISTAKES = {
    "no games": (BASE, "--games is missing"),
    "an empty name": ([*BASE, "--games", ""], "argument --games: it is empty; give it a value"),
    "all held out": ([*BASE, "--games", "a.sgf", "--holdout", "1"], "config.pretrain.holdout=1.0"),
    "a word": ([*BASE, "--games", "a.sgf", "--holdout", "some"], "holdout=some"),
    "games twice": (
        [*BASE, "--games", "a.sgf", "--config.pretrain.games=b.sgf"],
        "--games and --config.pretrain.games set the same field; remove one of them",
    ),
    "two holdouts": (
        [*BASE, "--games", "a.sgf", "--config.pretrain.holdout", "0.1", "--holdout", "0.2"],
        "--holdout and --config.pretrain.holdout set",
    ),
    "actors": (
        [*BASE, "--games", "a.sgf", "--config.mesh.actors=4"],
        "config.mesh.actors=4: training on recorded games",
    ),
}


@pytest.mark.parametrize(("argv", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_errors_give_one_line_and_exit_2(argv, expected, calls, capsys):
    assert pretrain.run(argv) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert expected in printed.err
    assert not calls
