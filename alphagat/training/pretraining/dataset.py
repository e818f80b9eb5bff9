"""The data of a run on recorded games, identical at every start."""

import json
from pathlib import Path
from typing import NamedTuple

import jax

from alphagat import bounded_json
from alphagat.errors import UserError
from alphagat.runs.atomic_files import write_atomically
from alphagat.runs.folder import has_progress
from alphagat.training.pretraining.game_sources import read_sources
from alphagat.training.pretraining.loader import import_grain
from alphagat.training.pretraining.positions import Split, digest, join, split
from alphagat.training.setup import Run, auxiliary_targets
from alphagat.wording import sized

GAMES_FILE = "games.json"


class Recorded(NamedTuple):
    """The training data of a run.

    Attributes:
      boards: one split per board of the config.
      lines: messages about the data.
      digests: hash of each board's positions, stored in `games.json`.
    """

    boards: list[Split]
    lines: list[str]
    digests: dict[str, str]

    def note(self, folder: Path) -> None:
        """Writes the digests of the positions into the folder of the run."""
        write_atomically(folder / GAMES_FILE, json.dumps(self.digests, indent=2) + "\n")


def read_recorded(run: Run, folder: Path | None) -> Recorded:
    """Reads `config.pretrain.games` and splits the games of each board.

    Args:
      folder: folder of the run to resume; None for a new run.

    Raises:
      UserError: grain is not installed, a source cannot be read or used, a board has no position, or the positions
        differ from those with which the run in `folder` made progress.
    """
    import_grain()  # reading may take minutes, and would be in vain
    config = run.config
    games = [setup.game for setup in run.boards]
    sources = list(read_sources(config.pretrain.games, games, config.search.discount, auxiliary_targets(config)))
    lines = [line for source in sources for line in source.lines]
    boards, digests = [], {}
    for setup in run.boards:
        name = setup.game.name
        parts = [source.positions for source in sources if source.board == name]
        if not parts:
            raise UserError(
                f"--games {' '.join(config.pretrain.games)}: there are no positions of {name}; add such games"
            )
        positions = join(parts, setup.game.num_actions)
        train, held_out = found = split(positions, setup.game.symmetries, config.pretrain.holdout, config.seed)
        boards.append(found)
        digests[name] = digest(positions)
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(positions))
        used = setup.plan.updates_per_iteration * config.learner.batch_size
        lines.append(
            f"{name}: {train.size:,} training positions, {held_out.size if held_out else 0:,} held out "
            f"({sized(size)} on the host); an iteration uses {used:,}, which is {used / train.size:.2g} epochs"
        )
    if folder is not None:
        _check_same(folder, digests)
    return Recorded(boards, lines, digests)


def _check_same(folder: Path, digests: dict[str, str]) -> None:
    if not has_progress(folder):
        return
    file = folder / GAMES_FILE
    try:
        before = bounded_json.read(file)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}; restore it, or name another --workdir") from error
    if before != digests:
        raise UserError(
            f"--games: the positions differ from those at the start of the run in {folder} (a file changed, or a "
            "source run continued: name its checkpoint, such as runs/1/checkpoints/40); restore them, or name another "
            "--workdir"
        )
