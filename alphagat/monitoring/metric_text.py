"""The words and strokes of the display: how metrics become short text."""

import itertools
import re
from collections.abc import Iterable, Mapping

from rich.text import Text

SPARK = "▁▂▃▄▅▆▇█"
SCALE_COLUMNS = 24  # of the scale on which a score is drawn

SELFPLAY = {
    "frames": "frames",
    "simulations/s": "selfplay/simulations_per_s",
    "games/s": "selfplay/games_per_s",
    "plies per game": "selfplay/game_length",
}
PRETRAINING = {
    "epochs": "pretrain/epochs",
    "positions/s": "pretrain/positions_per_s",
}
LEARNING = {
    "policy loss": "train/policy_loss",
    "value loss": "train/value_loss",
    "policy entropy": "train/policy_entropy",
    "gradient norm": "train/grad_norm",
}

HOLDOUT = {  # and the format of each
    "held-out moves named": ("policy_accuracy", "{:.1%}"),
    "held-out winners named": ("value_sign", "{:.1%}"),
    "held-out policy loss": ("policy_loss", "{:.3f}"),
    "held-out value error": ("value_error", "{:.3f}"),
}

Metrics = Mapping[str, float]


def scores(metrics: Metrics) -> dict[str, str]:
    """Returns the names of the scores against opponents, in the metrics' order, each under what it is called on the
    screen: the opponent, after the board where a run has several.
    """
    found = re.compile(r"eval/(?:(.+)/)?vs_(.+)/win_rate")
    matches = {name: match for name in metrics if (match := found.fullmatch(name))}
    return {" ".join(filter(None, match.groups())): name for name, match in matches.items()}


def single_player_rows(metrics: Metrics) -> list[tuple[str, str]]:
    """Returns (label, value) of the mean scores of games for one player, and of their ratios to other players."""
    rows = []
    for name in metrics:
        if match := re.fullmatch(r"eval/(?:(.+)/)?score", name):
            mean, low, high = interval(metrics, name)
            rows.append((" ".join(filter(None, (match[1], "score"))), f"{mean:,.0f}  [{low:,.0f}, {high:,.0f}]"))
        elif match := re.fullmatch(r"eval/(?:(.+)/)?vs_(.+)/score_ratio", name):
            rows.append((" ".join(filter(None, (match[1], match[2]))), f"{metrics[name]:.1f} times its score"))
    return rows


def ratings(metrics: Metrics) -> dict[str, str]:
    """Returns the names of the Elo ratings, each under what it is called on the screen."""
    matches = {name: match for name in metrics if (match := re.fullmatch(r"eval/(?:(.+)/)?elo", name))}
    return {" ".join(filter(None, (match[1], "Elo"))): name for name, match in matches.items()}


def compact(value: float) -> str:
    """Formats a count: 950, 9,500, 95.0 k, 9.50 M."""
    for unit, limit in (("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if abs(value) >= limit:
            scaled = value / (1e3 if unit == "k" else limit)
            return f"{scaled:.{2 if abs(scaled) < 10 else 1}f} {unit}"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}"


def duration(seconds: float) -> str:
    """Formats a time: 42 s, 3 min 05 s, 2 h 07 min."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, minutes_rest = divmod(minutes, 60)
    return f"{hours} h {minutes_rest:02} min" if hours else f"{minutes} min {rest:02} s"


def sparkline(values: list[float], columns: int) -> str:
    """Draws values as blocks from the lowest to the highest, averaged over equal stretches where there are many."""
    if len(values) < 2:
        return ""
    columns = min(columns, len(values))
    bounds = [round(i * len(values) / columns) for i in range(columns + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(bounds)]
    low, span = min(means), max(means) - min(means)
    return "".join(SPARK[round((mean - low) / span * (len(SPARK) - 1))] if span > 0 else SPARK[0] for mean in means)


def score_scale(score: float, low: float, high: float) -> Text:
    """Draws a score and its interval on a line from 0 to 1, whose middle is marked."""

    def column(value: float) -> int:
        return round(min(max(value, 0.0), 1.0) * SCALE_COLUMNS)

    scale = Text()
    for place in range(SCALE_COLUMNS + 1):
        if place == column(score):
            scale.append("●", "bold green" if low > 0.5 else "bold red" if high < 0.5 else "bold yellow")
        elif column(low) <= place <= column(high):
            scale.append("━")
        else:
            scale.append("┼" if place == SCALE_COLUMNS // 2 else "─", "dim")
    return scale


def interval(metrics: Metrics, name: str) -> tuple[float, float, float]:
    """Returns a value and the interval beside it; both ends are the value where there is none."""
    value = metrics[name]
    return value, metrics.get(f"{name}_low", value), metrics.get(f"{name}_high", value)


def score_text(metrics: Metrics, name: str) -> str:
    """Formats the score against an opponent: `61%  [54%, 68%]`."""
    score, low, high = interval(metrics, name)
    return f"{score:.0%}" + (f"  [{low:.0%}, {high:.0%}]" if low < high else "")


def rating_text(metrics: Metrics, name: str) -> str:
    """Formats an Elo rating: `312  [250, 371]`."""
    elo, low, high = interval(metrics, name)
    return f"{elo:,.0f}" + (f"  [{low:,.0f}, {high:,.0f}]" if low < high else "")


def selfplay_rows(metrics: Metrics) -> list[tuple[str, str]]:
    """Returns (label, value) of what is known of self-play, or of the recorded games in its place."""
    return [(label, compact(metrics[name])) for label, name in (SELFPLAY | PRETRAINING).items() if name in metrics]


def holdout_rows(metrics: Metrics) -> list[tuple[str, str]]:
    """Returns (label, value) of what is known of the games that were held out."""
    rows = []
    for name in metrics:
        if (match := re.fullmatch(r"holdout/(?:(.+)/)?(.+)", name)) is None:
            continue
        for label, (what, form) in HOLDOUT.items():
            if match[2] == what:
                rows.append((" ".join(filter(None, (match[1], label))), form.format(metrics[name])))
    return rows


def auxiliary_losses(metrics: Iterable[str]) -> dict[str, str]:
    """Returns the names of the losses of auxiliary heads by their labels, without the board: `train/ownership_loss`."""
    losses = [match[1] for name in metrics if (match := re.fullmatch(r"train/(?:.+/)?(\w+)_loss", name))]
    names = {f"{target} loss".replace("_", " "): f"train/{target}_loss" for target in losses}
    return {label: name for label, name in names.items() if label not in LEARNING}


def learning_rows(metrics: Metrics) -> list[tuple[str, str]]:
    """Returns (label, value) of the learner's metrics."""
    rows = []
    for label, name in LEARNING.items():
        labels = {label: name} | (auxiliary_losses(metrics) if label == "value loss" else {})
        rows += [(label, f"{metrics[name]:.3f}") for label, name in labels.items() if name in metrics]
    return rows
