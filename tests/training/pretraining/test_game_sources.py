"""The training targets of files and runs agree with the rules, an exact table and the replay."""

import dataclasses
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation.game_files import GameRecord, records_of, to_text
from alphagat.games import make_game
from alphagat.games.batches import take
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.folder import open_run_folder
from alphagat.runtime import sharding
from alphagat.search.memory import state_bytes
from alphagat.selfplay.auxiliary_targets import AUXILIARY_TARGETS
from alphagat.training.pretraining import game_sources
from alphagat.training.pretraining.game_sources import positions_of, read_sources, replayed_positions
from alphagat.training.setup import Run, make_setups
from alphagat.training.state import init_state
from tests.evaluation.perfect_games import BOARD, perfect_games, rows_of, solved
from tests.evaluation.test_game_files import last_state, random_match
from tests.training.tiny import run_of, save_tiny_run, tiny_config, tiny_setup

GAME = make_game(BOARD)
OWNERSHIP = AUXILIARY_TARGETS["ownership"]
WON = GameRecord(BOARD, ("A", "B"), ("a1", "b1", "a2", "b2", "a3"), (0, 1, 0, 1, 0), 1)


def write(path, *records: GameRecord) -> str:
    path.write_text("".join(to_text(record) for record in records))
    return str(path)


def read(*names: str, games=(GAME,), discount=1.0, auxiliary=()):
    return list(read_sources(names, games, discount, auxiliary))


def test_targets_of_perfect_games_are_exact(tmp_path):
    """Play is perfect from the fourth ply on; values are from the perspective of the player to move."""
    (source,) = read(write(tmp_path / "games.sgf", *perfect_games(60, random_plies=3)))
    found = source.positions
    ply = (found.state.board > 0).sum(axis=1)
    perfect = ply >= 3
    positions, rows = solved()[0], rows_of(found.state)
    np.testing.assert_array_equal(found.value_target[perfect], positions.values[rows][perfect])
    best = positions.action_values[rows, found.policy] == positions.values[rows]
    assert best[perfect].all()
    assert not best.all()
    for player in (0, 1):
        assert {-1.0, 1.0} <= set(found.value_target[perfect & (ply % 2 == player)].tolist())
    assert (found.value_mask == 1).all()
    assert source.lines == [f"{tmp_path / 'games.sgf'}: 60 games of tic_tac_toe, {found.size} positions"]


def test_value_targets_are_discounted_per_move(tmp_path):
    file = write(
        tmp_path / "games.sgf", WON, dataclasses.replace(WON, outcome=-1, moves=WON.moves[:3], players=(0, 1, 0))
    )
    (source,) = read(file, discount=0.5)
    found = source.positions
    assert found.value_target[found.game == 0].tolist() == [1 / 16, -1 / 8, 1 / 4, -1 / 2, 1]
    assert found.value_target[found.game == 1].tolist() == [-1 / 4, 1 / 2, -1]


@pytest.mark.parametrize(
    ("record", "known", "targets"),
    [
        (WON, 1, [1, -1, 1, -1, 1]),
        (dataclasses.replace(WON, outcome=None), 1, [1, -1, 1, -1, 1]),  # the rules determine the result
        (dataclasses.replace(WON, outcome=None, moves=WON.moves[:2], players=(0, 1)), 0, [0, 0]),
        (
            dataclasses.replace(WON, outcome=-1, moves=WON.moves[:3], players=(0, 1, 0), forfeit="resigned"),
            1,
            [-1, 1, -1],
        ),
        (dataclasses.replace(WON, outcome=-1, moves=WON.moves[:3], players=(0, 1, 0), forfeit="timed out"), 0, [0] * 3),
    ],
    ids=["won", "no result, but over", "no result", "resigned", "timed out"],
)
def test_forfeits_have_no_value_target(tmp_path, record, known, targets):
    (source,) = read(write(tmp_path / "games.sgf", record))
    assert source.positions.value_target.tolist() == targets
    assert source.positions.value_mask.tolist() == [known] * len(targets)
    assert source.positions.policy_weight.tolist() == [1] * len(targets)
    assert any("train only the policy" in line for line in source.lines) == (not known)


def test_ownership_is_the_final_board_from_the_view_of_the_player_to_move(tmp_path):
    game, openings, result = random_match("othello:4", 3)
    whole = records_of(game, ("A", "B"), openings, result)
    resigned = dataclasses.replace(whole[0], moves=whole[0].moves[:-2], forfeit="resigned")
    file = write(tmp_path / "games.sgf", *whole, resigned)
    (source,) = read(file, games=(game,), discount=1.0, auxiliary=(OWNERSHIP,))
    found, seen = source.positions, set()
    for number, record in enumerate(whole):
        cells = [line.split()[1:] for line in game.render(last_state(game, record.moves)).splitlines()[1:5]]
        owners = np.array([{".": 0, "x": 1, "o": -1}[cell] for row in cells for cell in row])
        for row in np.flatnonzero(found.game == number):
            player = int(found.state.current_player[row])
            np.testing.assert_array_equal(found.auxiliary["ownership"][row, :-1], owners * (1 - 2 * player))
            seen.add(player)
    assert seen == {0, 1}
    assert found.auxiliary["ownership"].dtype == np.int8
    np.testing.assert_array_equal(found.auxiliary_mask, found.game < len(whole))


def test_a_result_that_contradicts_the_rules_is_reported(tmp_path):
    (source,) = read(write(tmp_path / "games.sgf", dataclasses.replace(WON, outcome=-1), WON))
    assert "1 of them have another result by the rules" in source.lines[-1]
    assert source.positions.value_target[:2].tolist() == [-1, 1]  # of the first game, and of the second


UNCLAIMED = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 5. e4 e5"


@pytest.mark.parametrize(
    ("name", "ending", "text", "size", "value"),
    [
        ("chess", "pgn", f"{UNCLAIMED} 1-0", 8, 1),
        ("chess", "pgn", f"{UNCLAIMED} *", 8, 0),  # a draw by the rules
        ("go:5", "sgf", "(;GM[1]SZ[5]RE[B+3.5];B[cc];W[bb];B[];W[];B[dd];W[])", 4, 1),
    ],
)
def test_a_game_is_cut_where_the_rules_end_it_and_keeps_its_result(tmp_path, name, ending, text, size, value):
    file = tmp_path / f"games.{ending}"
    file.write_text(text)
    (source,) = read(str(file), games=(make_game(name),))
    assert source.positions.value_mask.tolist() == [1] * size
    assert source.positions.value_target.tolist() == [value, -value] * (size // 2)
    assert source.lines[:2] == [
        f"{file}: 1 games of {name}, {size} positions",
        f"{file}: 1 of them go on after the end by the rules, and are cut there",
    ]


def test_folders_and_boards(tmp_path):
    (tmp_path / "more").mkdir()
    names = [write(tmp_path / "b.sgf", WON), write(tmp_path / "more" / "a.SGF", WON, WON)]
    hexes = write(tmp_path / "a.sgf", GameRecord("hex:3", ("A", "B"), ("a1", "b1"), (0, 1), 1))
    sources = read(str(tmp_path), games=(GAME, make_game("hex:3")))
    assert [source.board for source in sources] == ["hex:3", BOARD, BOARD]
    assert [source.lines[0].split(":")[0] for source in sources] == [hexes, *names]


MISTAKES = {
    "nothing": (None, "there is no such file or folder"),
    "no game": ("hello", "neither PGN nor SGF"),
    "another board": (
        to_text(GameRecord("hex:3", ("A", "B"), ("a1",), (0,), 1)),
        "game 1 is on hex:3, but config.boards",
    ),
    "illegal": (
        to_text(WON) + to_text(dataclasses.replace(WON, moves=("a1", "a1"))),
        "game 2, move 2: 'a1' is not legal",
    ),
    "a diagram": ("(;FF[4]GN[tic_tac_toe]AB[a1];W[a2])", "game 1: it starts from placed stones"),
}


@pytest.mark.parametrize(("text", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_errors_name_the_file_and_the_game(tmp_path, text, expected):
    file = tmp_path / "games.sgf"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UserError) as caught:
        read(str(file))
    assert str(caught.value).startswith(f"--games {file}: ")
    assert expected in str(caught.value)


def test_files_beyond_the_memory_are_refused(tmp_path, monkeypatch):
    file = write(tmp_path / "games.sgf", WON, WON)
    monkeypatch.setattr(game_sources, "available_memory", lambda: 3.0 * 10 * state_bytes(GAME))
    assert read(file)
    for free in (2.9 * 10 * state_bytes(GAME), 0.0):
        monkeypatch.setattr(game_sources, "available_memory", lambda free=free: free)
        with pytest.raises(
            UserError, match=rf"--games {file}: 10 positions of {BOARD} need about [0-9]+ bytes, of [0-9]+ bytes;"
        ):
            read(file)


def test_auxiliary_targets_need_memory(tmp_path, monkeypatch):
    game, openings, result = random_match("othello:4", 1)
    records = records_of(game, ("A", "B"), openings, result)
    file, size = write(tmp_path / "games.sgf", *records), sum(len(record.moves) for record in records)
    monkeypatch.setattr(game_sources, "available_memory", lambda: 3.0 * size * state_bytes(game))
    assert read(file, games=(game,))
    with pytest.raises(UserError, match=rf"{size} positions of othello:4 need about"):
        read(file, games=(game,), auxiliary=(OWNERSHIP,))


def test_one_bad_file_of_a_folder_is_named(tmp_path):
    """A folder that ends like a game file is no file."""
    (tmp_path / "a.sgf").mkdir()
    write(tmp_path / "b.sgf", WON)
    (source,) = read(str(tmp_path))
    assert source.positions.num_games == 1
    (tmp_path / "c.sgf").write_bytes(b"(;GN[tic_tac_toe];B[a1" + b"\xff" * 10)
    with pytest.raises(UserError, match=r"--games .*c\.sgf: game 1: it is damaged"):
        read(str(tmp_path))
    (tmp_path / "c.sgf").write_text("(;GN[tic_tac_toe]" * 2000 + ")" * 2000)
    with pytest.raises(UserError, match=r"--games .*c\.sgf: game 1: it has more than 1,000 levels of nested"):
        read(str(tmp_path))


def test_a_file_named_twice_is_refused(tmp_path):
    """Otherwise copies of held-out games would be trained on."""
    file = write(tmp_path / "a.sgf", WON)
    assert len(read(file, write(tmp_path / "b.sgf", WON))) == 2
    for names in ([file, file], [file, str(tmp_path)], [str(tmp_path), str(tmp_path / ".." / tmp_path.name)]):
        with pytest.raises(UserError, match=r"--games .*\.sgf: it is named twice; name it once"):
            read(*names)


def test_two_checkpoints_of_a_run_are_refused(tmp_path, monkeypatch):
    """Their replays overlap, so copies of held-out games would be trained on."""
    monkeypatch.setattr(game_sources, "_read_run", lambda *_: iter(()))
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.json").write_text("{}")
    first = str(run / "checkpoints" / "4")
    for names in ([first, str(run / "checkpoints" / "8")], [first, str(run)], [str(run), f"{run}/../run"]):
        with pytest.raises(UserError, match=r"^--games .*: this run is named twice; name one of its checkpoints"):
            read(*names)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no run, and no file"):
        read(str(tmp_path))


def test_files_of_chance_or_single_player_games_are_refused(tmp_path):
    with pytest.raises(UserError, match="without chance"):
        positions_of(make_game("2048"), tmp_path / "x.sgf", {"x": WON}, 1.0)


def test_the_replay_of_a_run(tmp_path):
    """Valid samples, and which positions may belong to one game."""
    setup = tiny_setup()  # eight groups of two games, blocks of four plies
    state = init_state(run_of(setup, sharding.make_mesh(0)))
    (board,) = state.boards
    samples = board.replay.samples
    value = jnp.arange(samples.value_target.size, dtype=jnp.float32).reshape(samples.value_target.shape)
    policy = jnp.broadcast_to(value[..., None], samples.policy_target.shape)
    filled = board.replay.replace(
        samples=samples.replace(value_target=value, policy_target=policy, policy_weight=2 * value),
        size=jnp.full(8, 8, jnp.int32),
    )
    open_run_folder(tmp_path, tiny_config())
    with CheckpointWriter(tmp_path) as writer:
        writer.save(state, 2)
        writer.save(state.replace(boards=(board.replace(replay=filled),)), 3)
    (source,) = read(str(tmp_path), games=[make_game("hex:2")])
    found = source.positions
    expected = np.asarray(value[:, :8]).reshape(-1)
    np.testing.assert_array_equal(found.value_target, expected)
    np.testing.assert_array_equal(found.policy_weight, 2 * expected)
    np.testing.assert_array_equal(found.policy, np.repeat(expected[:, None], found.policy.shape[1], axis=1))
    assert found.game.reshape(8, 8).tolist() == [[2 * group, 2 * group + 1] * 4 for group in range(8)]
    assert source.lines == [f"{tmp_path}, iteration 3: 64 positions of hex:2 in its replay"]
    with pytest.raises(UserError, match="replay of hex:2 is empty"):
        read(str(tmp_path / "checkpoints" / "2"), games=[make_game("hex:2")])


def test_each_board_has_its_own_replay(tmp_path):
    config = tiny_config()
    config.boards = ("hex:2", "hex:3")
    state = init_state(Run(config, sharding.make_mesh(0), make_setups(config)))
    sizes = [jnp.full(8, size, jnp.int32) for size in (4, 8)]
    boards = [board.replace(replay=board.replay.replace(size=size)) for board, size in zip(state.boards, sizes)]
    open_run_folder(tmp_path, config)
    with CheckpointWriter(tmp_path) as writer:
        writer.save(state.replace(boards=tuple(boards)), 1)
    (source,) = read(str(tmp_path), games=[make_game("hex:3")])
    assert (source.board, source.positions.size, source.positions.policy.shape[1]) == ("hex:3", 64, 9)


@pytest.mark.parametrize("has_head", [True, False])
def test_the_ownership_in_a_replay(has_head):
    """It is unknown in the replay of a run without the head."""
    config = tiny_config()
    config.boards, config.network.ownership_head = ("othello:4",), has_head
    (setup,) = make_setups(config)
    (board,) = init_state(run_of(setup, sharding.make_mesh(1))).boards
    samples, shape = board.replay.samples, board.replay.samples.value_target.shape
    owners = jnp.arange(shape[0] * shape[1] * 17).reshape(*shape, 17).astype(jnp.int8)
    if has_head:
        samples = samples.replace(auxiliary={"ownership": owners})
    filled = board.replay.replace(samples=samples, size=jnp.full(shape[0], 4, jnp.int32))
    found = replayed_positions(filled, 2, {"ownership": OWNERSHIP.blank(setup.game)})
    expected = np.asarray(owners)[:, :4].reshape(-1, 17)
    np.testing.assert_array_equal(found.auxiliary["ownership"], expected * has_head)
    assert found.auxiliary_mask.tolist() == [has_head] * found.size
    assert replayed_positions(filled, 2).auxiliary_mask is None
    empty = filled.replace(size=jnp.zeros(shape[0], jnp.int32))
    found = replayed_positions(empty, 2, {"ownership": OWNERSHIP.blank(setup.game)})
    assert (found.size, found.auxiliary["ownership"].shape) == (0, (0, 17))


def test_runs_without_usable_positions_are_refused(tmp_path):
    save_tiny_run(tmp_path / "other", 1)
    with pytest.raises(UserError, match="its boards are hex:2"):
        read(str(tmp_path / "other"))
    config = tiny_config()
    config.pretrain.games = ("x.sgf",)
    open_run_folder(tmp_path / "learned", config)
    with pytest.raises(UserError, match="name those"):
        read(str(tmp_path / "learned"), games=[make_game("hex:2")])


def test_a_replay_is_read_without_the_gpu_of_its_run(tmp_path):
    folder = save_tiny_run(tmp_path / "run", 4)
    file = folder / "config.json"
    before = file.read_text()
    file.write_text(before.replace('"backend": "auto"', '"backend": "fused"'))
    assert file.read_text() != before
    with pytest.raises(UserError, match=r"replay of hex:2 is empty"):  # so far it came
        read(str(folder), games=[make_game("hex:2")])


def test_positions_after_the_end_are_excluded(tmp_path):
    (source,) = read(write(tmp_path / "games.sgf", WON))
    assert not source.positions.state.terminated.any()
    assert take(source.positions.state, 0).board.sum() == 0
    assert jax.tree.leaves(source.positions)[0].shape[0] == len(WON.moves)


READ = """
import sys
from alphagat.games import make_game
from alphagat.runtime import distributed, sharding
from alphagat.training.pretraining.game_sources import read_sources
distributed.connect(2, int(sys.argv[1]), sys.argv[2])
sharding.configure_cpu_devices(4)
list(read_sources([sys.argv[3]], [make_game("hex:2")], 1.0))
"""


def test_two_processes_read_a_run(tmp_path):
    """Its replay is empty, which they find after reading it."""
    run = save_tiny_run(tmp_path / "run", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = [[sys.executable, "-c", READ, str(rank), address, str(run)] for rank in range(2)]
    processes = [subprocess.Popen(each, stderr=subprocess.PIPE, text=True) for each in words]
    for process in processes:
        assert f"--games {run}: the replay of hex:2 is empty" in process.communicate(timeout=120)[1]
