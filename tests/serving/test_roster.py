"""Tests the boards that a server offers."""

import errno
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np
import pytest

from alphagat import config_fields
from alphagat.agents import weight_files
from alphagat.agents.agent import load
from alphagat.agents.analysis import Analyzer
from alphagat.errors import UserError
from alphagat.games.batches import batch_of_one
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.folder import open_run_folder
from alphagat.serving import roster as roster_module
from alphagat.serving.roster import Roster
from alphagat.training.state import init_state
from tests.serving.untrained import save_untrained
from tests.training.tiny import save_tiny_run, tiny_config, tiny_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("roster")


def test_the_shipped_networks_are_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    roster = Roster()
    assert roster.default == "connect_four"
    assert {"connect_four", "hex:5", "hex:11", "tic_tac_toe", "2048"} <= set(roster.boards)
    assert {"gomoku:15", "breakthrough:7", "go:9", "gardner_chess"} <= set(roster.boards)
    assert "hex:5:swap" not in roster.boards  # node kinds unknown to the nearest network
    assert roster.players("hex:11") == ("shipped",)
    assert Roster(board="hex:9").default == "hex:9"


def test_each_board_has_the_nearest_of_several_shipped_networks(tmp_path, monkeypatch):
    for name, boards in (("0", ["othello:4"]), ("1", ["hex:7"]), ("2", ["hex:3", "hex:5"]), ("3", ["connect_four"])):
        Path(save_untrained(tmp_path, *boards)).rename(tmp_path / f"{name}.safetensors")
    monkeypatch.setattr(weight_files, "FOLDER", tmp_path)
    monkeypatch.chdir(tmp_path)
    roster = Roster()
    assert [board for board in roster.boards if board in ("hex:3", "hex:7", "connect_four", "othello:8")] == [
        *("hex:7", "hex:3"),
        *("connect_four", "othello:8"),
    ]
    assert all(roster.players(board) == ("shipped",) for board in roster.boards)
    assert roster._sources["hex:11"] == {"shipped": "1"}
    assert roster._sources["hex:4"] == {"shipped": "2"}


def test_a_board_is_added_and_opened_once(folder):
    roster = Roster([save_untrained(folder, "hex:2", "hex:3")], "hex:2:swap")
    assert (roster.default, "hex:2" in roster.boards, "hex:2:swap" in roster.boards) == ("hex:2:swap", True, True)
    assert roster.session("hex:2") is roster.session("hex:2")
    assert roster.session("hex:2:swap").game.swap
    for board in ("hex:12", "go:9", "", "../hex:3"):
        with pytest.raises(UserError, match=f"board {board}: this server does not offer it; use one of hex:3"):
            roster.session(board)


def test_a_board_that_is_not_on_the_menu_is_played_by_a_network_of_its_family(tmp_path):
    other, network = save_untrained(tmp_path, "othello:4"), save_untrained(tmp_path, "hex:2")
    roster = Roster([other, network], "hex:12")
    assert roster.players("hex:12") == (network,)


def test_a_resnet_plays_its_board_size_only(folder):
    roster = Roster([save_untrained(folder, "othello:4", name="resnet")])
    assert roster.boards == ("othello:4",)
    with pytest.raises(UserError, match=r"board othello:4: the network of .* has no attention"):
        roster.program("othello:4", "", None)
    with pytest.raises(UserError, match="'resnet' has weights for one size"):
        Roster([save_untrained(folder, "hex:3", name="resnet")], "hex:4")


@pytest.mark.parametrize("board", ["go:9", "chess"])
def test_boards_of_other_families_raise(folder, board):
    with pytest.raises(UserError, match="plays only boards of that family"):
        Roster([save_untrained(folder, f"breakthrough:{5 + len(board) % 4}")], board)


def test_a_board_that_no_shipped_network_plays_raises():
    with pytest.raises(UserError, match="board pgx:tic_tac_toe: no shipped network plays it, only boards like"):
        Roster((), "pgx:tic_tac_toe")


def test_programs_evaluate_batches(folder):
    roster = Roster([save_untrained(folder, "hex:4")])
    state = roster.session("hex:3").games.replay(0, ["b2"]).state
    batch = jax.tree.map(lambda leaf: np.stack([leaf] * 2), state)
    analysis = roster.prepare(roster.program("hex:3", "", 0))(batch)
    assert analysis.prior.shape == (2, 9)
    attention = roster.prepare(roster.program("hex:3", "", None))(batch)
    assert attention.shape == (2, 1, 2, roster.session("hex:3").game.topology.num_edges)


def test_several_networks_play_a_board(tmp_path):
    sources = [save_untrained(tmp_path, "hex:4"), save_untrained(tmp_path, "hex:4", name="resnet"), "hex"]
    roster = Roster(sources)
    assert roster.players("hex:4") == (sources[0], sources[1], "shipped")
    assert roster.players("hex:5") == (sources[0], "shipped")
    assert roster.program("hex:4", "", 16) == ("hex:4", sources[0], 16)
    with pytest.raises(UserError, match="player resnet: it does not play hex:5 here; use one of"):
        roster.program("hex:5", "resnet", 16)
    state = jax.tree.map(lambda leaf: leaf[None], roster.session("hex:4").games.replay(0, []).state)
    for source in (sources[0], sources[1]):
        evaluate = roster.prepare(roster.program("hex:4", source, 0))
        np.testing.assert_array_equal(evaluate(state).prior, Analyzer(load(source), 0)(state, jax.random.key(0)).prior)


@pytest.mark.parametrize("sources", [("gomoku", "tic_tac_toe"), ("tic_tac_toe", "gomoku")])
def test_several_named_networks_of_the_package_play_a_board(sources):
    roster = Roster(sources)
    for board in ("gomoku:9", "tic_tac_toe"):
        assert roster.players(board) == sources
        assert roster._sources[board] == {source: source for source in sources}


def test_a_named_shipped_network_plays_all_its_boards(tmp_path):
    assert Roster(["gomoku"]).players("tic_tac_toe") == ("shipped",)
    run = save_untrained(tmp_path, "hex:7")
    assert Roster([run, "shipped"], "hex:7").players("hex:7") == (run, "shipped")


def test_runs_are_offered_beside_the_shipped_networks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_tiny_run(tmp_path / "runs" / "mine", 1)
    open_run_folder(tmp_path / "runs" / "new", tiny_config())  # without a checkpoint
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "config.json").write_text("[")
    config = tiny_config()
    config.boards = ("hex:99",)  # not available: `make_game` refuses it
    save_tiny_run(tmp_path / "runs" / "large", 1)
    (tmp_path / "runs" / "large" / "config.json").write_text(json.dumps(config_fields.to_dict(config)))
    roster = Roster()
    assert roster.default == "connect_four"
    assert roster.players("hex:3") == ("shipped", "runs/mine")
    assert Roster(["hex"]).players("hex:3") == ("shipped",)


@pytest.mark.parametrize("refused", ["find_run", "resolve"])
def test_a_run_that_cannot_be_read_is_not_offered(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    for name in ("locked", "mine"):
        save_tiny_run(tmp_path / "runs" / name, 1)
    original = getattr(roster_module, refused)

    def refuse(path, *arguments, **options):  # as without rights, which root always has
        if Path(path).name == "locked":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return original(path, *arguments, **options)

    monkeypatch.setattr(roster_module, refused, refuse)
    assert Roster().players("hex:3") == ("shipped", "runs/mine")


def test_a_refreshed_roster_plays_by_the_newest_checkpoint(tmp_path):
    folder = save_tiny_run(tmp_path / "run", 1)
    roster = Roster([str(folder)])
    program = roster.program("hex:2", "", 4)
    evaluate = roster.prepare(program)
    state = jax.tree.map(lambda leaf: leaf[None], roster.session("hex:2").games.replay(0, []).state)
    before = evaluate(state)
    trained = init_state(tiny_run())
    params = jax.tree.map(lambda leaf: leaf + 0.1, trained.train.params)
    with CheckpointWriter(folder) as writer:
        writer.save(trained.replace(train=trained.train.replace(params=params)), 2)
    np.testing.assert_array_equal(evaluate(state).prior, before.prior)
    roster.refresh()
    after = evaluate(state)
    assert not np.array_equal(after.prior, before.prior)
    fresh = Analyzer(load(folder, 2), 4)(state, jax.random.key(0))
    np.testing.assert_array_equal(after.prior, fresh.prior)
    assert roster.agent("hex:2", program.player).iteration == 2


def test_evaluations_and_open_boards_do_not_wait_for_a_load(tmp_path, monkeypatch):
    roster = Roster([save_untrained(tmp_path, "hex:4")])
    evaluate = roster.prepare(roster.program("hex:4", "", 0))
    state = batch_of_one(roster.session("hex:4").games.replay(0, []).state)
    begun, may_end = threading.Event(), threading.Event()

    def load_slowly(source, board):
        begun.set()
        assert may_end.wait(30)
        return load(source, board=board)

    monkeypatch.setattr(roster_module, "load", load_slowly)
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(roster.agent, "hex:5", roster.players("hex:5")[0])
        assert begun.wait(30)
        evaluate(state)
        roster.session("hex:6")
        assert roster.iteration() == 0
        assert not loading.done()
        may_end.set()
        assert loading.result().game.name == "hex:5"


def test_a_load_that_a_refresh_overtakes_is_refreshed_too(tmp_path, monkeypatch):
    folder = save_tiny_run(tmp_path / "run", 1)
    roster = Roster([str(folder)])
    begun, may_end = threading.Event(), threading.Event()

    class Lock:
        """The lock of loads; a load may end once the refresh waits for the lock."""

        def __init__(self):
            self.lock = threading.Lock()

        def __enter__(self):
            if not self.lock.acquire(blocking=False):
                may_end.set()
                self.lock.acquire()

        def __exit__(self, *_):
            self.lock.release()

    def load_slowly(source, board):
        agent = load(source, board=board)
        if board == "hex:3" and not begun.is_set():
            begun.set()
            assert may_end.wait(30)
        return agent

    monkeypatch.setattr(roster, "_loading", Lock())
    monkeypatch.setattr(roster_module, "load", load_slowly)
    with ThreadPoolExecutor(2) as pool:
        loading = pool.submit(roster.agent, "hex:3", str(folder))
        assert begun.wait(30)
        with CheckpointWriter(folder) as writer:
            writer.save(init_state(tiny_run()), 2)
        refreshing = pool.submit(roster.refresh)
        refreshing.add_done_callback(lambda _: may_end.set())  # it has not waited
        assert loading.result().iteration == 1
        refreshing.result()
    assert roster.agent("hex:3", str(folder)).iteration == 2


def test_the_players_of_all_boards_are_refreshed(tmp_path):
    folder = save_tiny_run(tmp_path / "run", 1)
    roster = Roster([str(folder)])
    assert roster.agent("hex:3", str(folder)).iteration == 1
    with CheckpointWriter(folder) as writer:
        writer.save(init_state(tiny_run()), 2)
    roster.refresh()
    agents = [roster.agent(board, str(folder)) for board in ("hex:2", "hex:3")]
    assert [(each.game.name, each.iteration) for each in agents] == [("hex:2", 2), ("hex:3", 2)]
