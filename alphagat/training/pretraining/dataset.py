"""The data of a run that learns from recorded games, the same at every start."""

import json
from pathlib import Path
from typing import NamedTuple

import jax

from alphagat.errors import UserError
from alphagat.runs.atomic_files import write_atomically
from alphagat.training.pretraining.game_sources import read_sources
from alphagat.training.pretraining.positions import Split, digest, join, split
from alphagat.training.setup import Run

GAMES_FILE = "games.json"


class Recorded(NamedTuple):
    """The recorded positions of a run.

    Attributes:
      boards: one split per board of the config.
      lines: a summary for the output.
      digests: by board, the hashes stored in `games.json`.
    """

    boards: list[Split]
    lines: list[str]
    digests: dict[str, str]

    def note(self, folder: Path) -> None:
        """Writes into the folder of the run which positions it learns from."""
        write_atomically(folder / GAMES_FILE, json.dumps(self.digests, indent=2) + "\n")


def read_recorded(run: Run, folder: Path | None) -> Recorded:
    """Reads `config.pretrain.games`, and splits the games of each board.

    Raises:
      UserError: something cannot be read or used, a board has no position, or the positions are not those with which
        the run in `folder` began; None: there is no such run.
    """
    config = run.config
    games = [setup.game for setup in run.boards]
    sources = list(read_sources(config.pretrain.games, games, config.search.discount))
    lines = [line for source in sources for line in source.lines]
    boards, digests = [], {}
    for setup in run.boards:
        name = setup.game.name
        parts = [source.positions for source in sources if source.board == name]
        if not parts:
            raise UserError(f"--games {' '.join(config.pretrain.games)}: no position is of {name}; add games of it")
        positions = join(parts, setup.game.num_actions)
        taught, held_out = found = split(positions, config.pretrain.holdout, config.seed)
        boards.append(found)
        digests[name] = digest(positions)
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(positions)) / 1e6
        used = setup.plan.updates_per_iteration * config.learner.batch_size
        lines.append(
            f"{name}: {taught.size:,} positions teach, {held_out.size if held_out else 0:,} are held out "
            f"({size:,.1f} MB on the host); an iteration takes {used:,}, which is {used / taught.size:.2g} epochs"
        )
    if folder is not None:
        _check_same(folder, digests)
    return Recorded(boards, lines, digests)


def _check_same(folder: Path, digests: dict[str, str]) -> None:
    file = folder / GAMES_FILE
    if not file.exists():
        return
    before = json.loads(file.read_text())
    if before != digests:
        raise UserError(
            f"--games: the positions are not those that the run in {folder} began with (a file has changed, or a run "
            "has gone on: name its checkpoint, such as runs/1/checkpoints/40); restore them, or name another --workdir"
        )
