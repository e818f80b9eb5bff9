"""What the evaluations of a run have found, in words."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from alphagat.monitoring.live_ratings import is_evaluation
from alphagat.monitoring.metric_text import rating_text, ratings, score_text, scores, single_player_rows

Line = Mapping[str, Any]


def last_evaluation(lines: Sequence[Line], iteration: int | None = None) -> Line:
    """Returns the last line of `metrics.jsonl` with an evaluation, up to an iteration; an empty one where none is."""
    found = [each for each in lines if is_evaluation(each) and (iteration is None or each["iteration"] <= iteration)]
    return found[-1] if found else {}


def describe(line: Line) -> list[tuple[str, str]]:
    """Returns label and value of each result of an evaluation: Elo, scores, best moves.

    A value with a 95 % interval has it behind two spaces: `75%  [60%, 85%]`.
    """
    known = {name: value for name, value in line.items() if value is not None}
    rows = [(label, rating_text(known, name)) for label, name in ratings(known).items()]
    for label, name in scores(known).items():
        *board, opponent = label.split(" ", 1)
        rows.append((" ".join((*board, "against", opponent)), score_text(known, name)))
    rows += single_player_rows(known)
    for name in known:
        if match := re.fullmatch(r"eval/(?:(.+)/)?oracle/best_move(_search)?", name):
            words = (match[1], "best moves,", "with search" if match[2] else "network")
            rows.append((" ".join(filter(None, words)), f"{known[name]:.0%}"))
    return rows
