"""The guide's example game keeps the contract, agrees with theory, and trains."""

import functools
import tomllib
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat import games
from alphagat.cli import check
from alphagat.errors import UserError
from alphagat.games.states import first_state
from alphagat.runs.metrics import read_metrics
from alphagat.training.loop import train
from tests.guides import code_of, install, installed
from tests.training.tiny import tiny_config

GUIDE = "add_a_game.md"
BOARD = "kayles:8"


@pytest.fixture(scope="module", autouse=True)
def kayles(tmp_path_factory):
    """Installs the guide's game as a reader would, in a package."""
    source, project = code_of(GUIDE, "KaylesGame"), tomllib.loads(code_of(GUIDE, "[project]", "toml"))
    assert source.count("\n") < 100
    folder = tmp_path_factory.mktemp("site")
    (folder / "kayles.py").write_text(source)
    with installed(folder, project["project"]):
        yield


def test_the_game_keeps_the_contract(capsys):
    assert check.run([BOARD]) == 0
    assert "not checked" not in capsys.readouterr().out


def test_the_first_player_wins_iff_the_grundy_value_is_nonzero():
    """Uses Sprague-Grundy values: a move on a ring leaves a path, and a move on a path leaves two."""

    @functools.cache
    def grundy(length: int) -> int:
        follow = {grundy(max(i - 1, 0)) ^ grundy(max(length - i - 2, 0)) for i in range(length)}
        return next(value for value in range(length + 1) if value not in follow)

    step = jax.jit(lambda game, state, action: game.step(state, action, None), static_argnums=0)

    def wins(game, state) -> bool:
        """Returns whether the player to move wins, by exhaustive search."""
        moves = [action for action in range(game.num_actions) if state.legal_action_mask[action]]
        after = [step(game, state, jnp.int32(action)) for action in moves]
        return any(bool(each.terminated) or not wins(game, each) for each in after)

    for size in (3, 4, 5, 6, 7):
        game = games.make_game(f"kayles:{size}")
        assert wins(game, game.init(jax.random.key(0))) == (grundy(size - 3) == 0)


@pytest.mark.parametrize("size", [3, 20, 21, 99])
def test_drawn_vertices_do_not_overlap(size):
    game = games.make_game(f"kayles:{size}")
    circles = ElementTree.fromstring(game.render_svg(first_state(game))).findall("{*}circle")
    places = np.array([[float(circle.get(name, "nan")) for name in ("cx", "cy", "r")] for circle in circles])
    distance = np.linalg.norm(places[:, :2] - np.roll(places, 1, axis=0)[:, :2], axis=1)
    assert len(places) == size
    assert (distance > 2 * places[:, 2]).all()


def test_the_game_trains(tmp_path):
    config = tiny_config()
    config.boards, config.num_iterations, config.evaluation.every, config.mesh.data = (BOARD,), 5, 0, 1
    train(config, tmp_path)
    assert read_metrics(tmp_path)[-1]["train/policy_loss"] > 0


@pytest.mark.parametrize("value", ["nothing_here:make", "kayles:make_nothing"])
def test_a_game_of_a_broken_package_is_refused_in_one_line(tmp_path, monkeypatch, value):
    project = {"name": "broken", "version": "1", "entry-points": {games.ENTRY_POINTS: {"broken": value}}}
    install(tmp_path, project)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        UserError, match=f"board family broken: {value} of the package broken cannot be loaded"
    ) as error:
        games.make_game("broken:5")
    assert "\n" not in str(error.value)


def test_a_function_that_returns_no_game_is_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(games.GAMES, "nothing", lambda name: None)
    with pytest.raises(UserError, match="board nothing:3: its package made None; the function must return a Game"):
        games.make_game("nothing:3")


def test_an_unknown_game_names_the_installed_ones():
    with pytest.raises(UserError, match=r"hex:5, .*, kayles, or install its package"):
        games.make_game("kayle:3")
