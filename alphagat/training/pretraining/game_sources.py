"""Reads the sources of `config.pretrain.games`: files of games, folders of them, and replays of runs."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import jax
import numpy as np

from alphagat.agents.sources import choose_step, find_run
from alphagat.config import MeshConfig
from alphagat.errors import UserError
from alphagat.evaluation.game_files import GameRecord, read_file
from alphagat.evaluation.game_replay import Replayed, play_again
from alphagat.games.base import Game
from alphagat.games.states import moves_determine_positions
from alphagat.network_traits import DENSE
from alphagat.replay import Replay
from alphagat.runs.folder import read_config
from alphagat.runs.saved_checkpoints import SavedCheckpoints
from alphagat.runtime import sharding
from alphagat.runtime.memory import available_memory
from alphagat.search.memory import num_bytes, state_bytes
from alphagat.selfplay.auxiliary_targets import AuxiliaryTarget, blank_records, record_all
from alphagat.training.pretraining.positions import Positions
from alphagat.training.setup import Run, make_setups
from alphagat.training.state import state_shapes
from alphagat.wording import sized

ENDINGS = (".sgf", ".pgn")
COPIES = 3
FAIR_ENDS = ("", "resigned")  # forfeits whose result reflects the position


@dataclasses.dataclass(frozen=True)
class Source:
    """The positions that a file or a run provides for one board, and messages about them."""

    board: str
    positions: Positions
    lines: list[str]


def read_sources(
    names: Iterable[str], games: Sequence[Game], discount: float, auxiliary: Iterable[AuxiliaryTarget] = ()
) -> Iterator[Source]:
    """Reads the sources in the given order.

    The value target of a position in a file is discounted by `discount` per move to the end; a run's replay keeps its
    own targets. `auxiliary` are the auxiliary targets to find, which are unknown where a game did not end by the rules
    and in the replay of a run without their heads.

    Raises:
      UserError: a source is named twice, cannot be read, belongs to no board of `games`, or breaks the rules.
    """
    seen, auxiliary = set[Path](), tuple(auxiliary)
    for name in names:
        run = find_run(Path(name))
        for path in [run.folder] if run else game_files(Path(name)):
            if path.resolve() in seen:  # one copy of a game could be held out, and another be trained on
                what = (
                    "this run is named twice; name one of its checkpoints" if run else "it is named twice; name it once"
                )
                raise UserError(f"--games {name if run else path}: {what}")
            seen.add(path.resolve())
            yield from _read_run(*run, games, auxiliary) if run else _read_file(path, games, discount, auxiliary)


def game_files(path: Path) -> list[Path]:
    """Returns `path`, or all game files below the folder, sorted. Raises UserError if there are none."""
    if path.is_dir():
        if files := sorted(each for each in path.rglob("*") if each.suffix.lower() in ENDINGS and each.is_file()):
            return files
        raise UserError(f"--games {path}: it holds no run, and no file that ends in {' or '.join(ENDINGS)}")
    if not path.is_file():
        raise UserError(f"--games {path}: there is no such file or folder")
    return [path]


def _read_file(
    file: Path, games: Sequence[Game], discount: float, auxiliary: Sequence[AuxiliaryTarget]
) -> Iterator[Source]:
    try:
        records = read_file(file, games[0].name if len(games) == 1 else "")
    except UserError as error:
        raise UserError(f"--games {file}: {error}") from error
    known = {game.name: game for game in games}
    by_board: dict[str, dict[str, GameRecord]] = {}
    for number, record in enumerate(records, 1):
        label = f"--games {file}: game {number}"
        if record.board not in known:
            raise UserError(f"{label} is on {record.board}, but config.boards is {', '.join(known)}; remove it")
        if record.moves:
            by_board.setdefault(record.board, {})[label] = record
    for board, labelled in by_board.items():
        yield positions_of(known[board], file, labelled, discount, auxiliary)


def positions_of(
    game: Game,
    file: Path,
    labelled: dict[str, GameRecord],
    discount: float,
    auxiliary: Sequence[AuxiliaryTarget] = (),
) -> Source:
    """Replays games. Each move is a policy target; the result, for the player to move, is the value target.

    A game without a result, or lost by a forfeit unrelated to the position, has no value target. A game that did not
    end by the rules has no auxiliary targets. Moves after the end by the rules are left out.
    """
    if not moves_determine_positions(game):
        raise UserError(f"--games {file}: files hold only two-player games without chance; name a run")
    records = list(labelled.values())
    lengths = np.array([len(record.moves) for record in records])
    check_memory(game, file, int(lengths.sum()), auxiliary)
    played = play_again(game, records, list(labelled))
    recorded = np.array([np.nan if record.outcome is None else record.outcome for record in records], np.float32)
    is_fair = np.array([record.forfeit in FAIR_ENDS for record in records])
    outcomes = np.where(is_fair, np.where(np.isnan(recorded), played.results, recorded), np.nan)
    outcome = outcomes[played.games] * discount**played.to_go
    target = np.where(played.states.current_player == 0, outcome, -outcome)
    is_known = ~np.isnan(target)
    differs = is_fair & ~np.isnan(recorded + played.results) & (np.sign(played.results) != recorded)
    counts = {
        "go on after the end by the rules, and are cut there": np.bincount(played.games) < lengths,
        "have no result or were forfeited, and train only the policy": np.isnan(outcomes),
        "have another result by the rules; the result in the file is used": differs,
    }
    lines = [f"{file}: {len(records):,} games of {game.name}, {len(target):,} positions"]
    lines += [f"{file}: {which.sum():,} of them {what}" for what, which in counts.items() if which.any()]
    positions = Positions(
        state=played.states,
        policy=played.actions,
        policy_weight=np.ones(len(target), np.float32),
        value_target=np.where(is_known, target, 0).astype(np.float32),
        value_mask=is_known.astype(np.float32),
        game=played.games,
    )
    return Source(game.name, _with_auxiliary(positions, game, played, auxiliary), lines)


def _with_auxiliary(
    positions: Positions, game: Game, played: Replayed, auxiliary: Sequence[AuxiliaryTarget]
) -> Positions:
    """Returns `positions` with the auxiliary targets that the ends of their games determine."""
    if not auxiliary:
        return positions
    ended = np.asarray(played.ends.terminated)
    found = jax.device_get(jax.jit(functools.partial(record_all, game, auxiliary))(played.ends, ended))
    targets = {
        each.name: each.recorded_targets(found[each.name][played.games], played.states.current_player, played.to_go)
        for each in auxiliary
    }
    return positions.replace(auxiliary=targets, auxiliary_mask=ended[played.games].astype(np.float32))


def check_memory(game: Game, file: Path, num_positions: int, auxiliary: Sequence[AuxiliaryTarget] = ()) -> None:
    """Refuses games whose positions do not fit into the free memory of the machine. Replays nothing.

    The positions exist `COPIES` times while they are joined and split.

    Raises:
      UserError: the message names the file, the estimate and the limit.
    """
    position = state_bytes(game) + num_bytes(blank_records(game, auxiliary))
    needed, free = COPIES * num_positions * position, available_memory()
    if needed > free:
        raise UserError(
            f"--games {file}: {num_positions:,} positions of {game.name} need about {sized(needed)}, of "
            f"{sized(free)}; use a part of the file"
        )


def _read_run(
    folder: Path, step: int | None, games: Sequence[Game], auxiliary: Sequence[AuxiliaryTarget]
) -> Iterator[Source]:
    config = read_config(folder)
    if config.pretrain.games:
        raise UserError(f"--games {folder}: this run has no replay, because it trained on recorded games; name those")
    shared = [game for game in games if game.name in config.boards]
    if not shared:
        raise UserError(f"--games {folder}: its boards are {', '.join(config.boards)}; remove it, or set config.boards")
    # The devices of that run do not matter.
    config.mesh, config.network.backend = MeshConfig(actors=config.mesh.actors), DENSE
    run = Run(config, sharding.make_local_mesh(), make_setups(config))
    try:
        step = choose_step(folder, step)
    except UserError as error:
        raise UserError(f"--games {error}") from error
    boards = SavedCheckpoints(folder).read(state_shapes(run), step).boards
    for game in shared:
        number = config.boards.index(game.name)
        group_games = run.boards[number].plan.group_games
        positions = replayed_positions(boards[number].replay, group_games, blank_records(game, auxiliary))
        if not positions.size:
            raise UserError(f"--games {folder}: the replay of {game.name} is empty; train that run further")
        label = f"{folder}, iteration {step}"
        yield Source(game.name, positions, [f"{label}: {positions.size:,} positions of {game.name} in its replay"])


def replayed_positions(replay: Replay, group_games: int, blanks: dict[str, jax.Array] | None = None) -> Positions:
    """Returns, on the host, the valid positions of a replay whose arrays have `[G, C]` before each shape. Successive
    games in the same slot count as one game.

    Args:
      blanks: zeros in the shape of each auxiliary target to return. They are unknown if the replay lacks any of them.
    """
    blanks = blanks or {}
    capacity = replay.samples.value_target.shape[1]
    groups, places = np.nonzero(np.arange(capacity) < np.asarray(replay.size)[:, None])
    samples = jax.tree.map(lambda x: np.asarray(x)[groups, places], replay.samples)
    is_known = blanks.keys() <= samples.auxiliary.keys()
    unknown = {name: np.zeros((len(groups), *x.shape), x.dtype) for name, x in blanks.items()}
    return Positions(
        state=samples.state,
        policy=samples.policy_target,
        policy_weight=samples.policy_weight,
        value_target=samples.value_target,
        value_mask=np.ones(len(groups), np.float32),
        # Samples are ordered by ply, then by game of the group.
        game=(groups * group_games + places % group_games).astype(np.int32),
        auxiliary={name: samples.auxiliary[name] for name in blanks} if is_known else unknown,
        auxiliary_mask=np.full(len(groups), is_known, np.float32) if blanks else None,
    )
