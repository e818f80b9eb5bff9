"""Writes the report of a finished or running run."""

from collections.abc import Callable
from pathlib import Path

from alphagat.agents.agent import load
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.reporting.page import Contents, colours_of, has_ended, make_page
from alphagat.reporting.pictures import NUM_GAMES, draw_checkpoint, draw_none
from alphagat.runs.atomic_files import write_atomically
from alphagat.runs.folder import read_config, read_starts
from alphagat.runs.metrics import read_metrics
from alphagat.runs.saved_checkpoints import list_steps


class PageWriter:
    """Writes the report of a run, and updates it. Pictures are redrawn only for a new checkpoint."""

    def __init__(self, folder: Path, file: Path, say: Callable[[str], None] = lambda line: None):
        """Reads the run in `folder`. Raises UserError if there is none.

        Args:
          say: receives a line for each checkpoint that cannot be shown.
        """
        self._folder, self._file, self._say = folder, file, say
        self._config = read_config(folder)
        self._drawn: int | None = None
        self._pictures = ""
        self._damaged: dict[int, str] = {}  # by checkpoint, why it cannot be shown

    def write(self, refresh: float | None = None) -> bool:
        """Writes the page, and returns whether the run has ended: its last iteration is logged, evaluated and saved.

        Args:
          refresh: seconds after which a browser reloads the page of a run in progress; None: never.
        """
        self._config = read_config(self._folder)  # a resumed run may have more iterations
        lines = read_metrics(self._folder)
        steps = list_steps(self._folder)
        self._draw_pictures(steps)
        ended = has_ended(self._config, lines, steps)
        contents = Contents(
            self._folder.resolve().name,
            self._config,
            lines,
            read_starts(self._folder),
            self._pictures,
            colours_of(make_game(self._config.boards[0])),
            None if ended else refresh,
        )
        write_atomically(self._file, make_page(contents))
        return ended

    def _draw_pictures(self, steps: list[int]) -> None:
        for step in reversed(steps):
            if step == self._drawn:
                return
            try:
                self._pictures = self._pictures_of(step)
            except UserError as error:  # damaged, or deleted by the run meanwhile; the previous one may be valid
                if step in list_steps(self._folder) and step not in self._damaged:
                    self._damaged[step] = str(error)
                    self._say(f"the page does not show iteration {step}: {error}")
            else:
                self._drawn = step
                return
        if self._drawn is None:
            self._pictures = draw_none([*self._damaged.values(), "The run has no checkpoint yet."][0])

    def _pictures_of(self, step: int) -> str:
        return draw_checkpoint([load(self._folder, step, board) for board in self._config.boards[:NUM_GAMES]])
