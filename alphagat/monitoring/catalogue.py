"""The catalogue of metrics: their labels and formats in the display, the report and the model card."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from alphagat.config import NetworkConfig
from alphagat.runs.metrics import ELO, HOLDOUT, ORACLE, SCORE, SCORE_RATIO, WIN_RATE

UNITS = ("k", 1e3), ("M", 1e6), ("G", 1e9)


def compact(value: float) -> str:
    """Formats a count: 950, 9,500, 95.0 k, 9.50 M. It chooses unit and decimals after rounding."""
    if round(abs(value)) < 10_000:
        return f"{value:z,.0f}" if round(abs(value), 1) >= 100 or value == int(value) else f"{value:z.1f}"
    unit, size = next(((unit, size) for unit, size in UNITS if round(abs(value) / size, 1) < 1000), UNITS[-1])
    scaled = value / size
    return f"{scaled:.{2 if round(abs(scaled), 2) < 10 else 1}f} {unit}"


def points(value: float) -> str:
    """Formats a score of a single-player game: three significant digits below 100, else whole points."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:z.3g}"


WHOLE, DECIMALS = "{:z,.0f}".format, "{:.3f}".format
PERCENT, EXACT_PERCENT = "{:.0%}".format, "{:.1%}".format


class Metric(NamedTuple):
    """The label, format and chart of a metric.

    Attributes:
      name: key of a scalar in `metrics.jsonl`, or the name of a result.
      label: label beside the value; empty if only a chart shows it. `{opponent}` stands for the result's opponent.
      text: formats a value.
      chart: title of the chart that draws it; None if no chart does.
      curve: label of its curve, in a chart with several.
      is_share: whether values lie in [0, 1].
    """

    name: str
    label: str
    text: Callable[[float], str]
    chart: str | None = None
    curve: str = ""
    is_share: bool = False

    @property
    def has_opponent(self) -> bool:
        return "{opponent}" in self.label


HELD_OUT = "Recorded games that were held out"
ENTROPY = "Entropy of the policy"
RESULTS = (
    Metric(ELO, "Elo", WHOLE, "Elo"),
    Metric(WIN_RATE, "against {opponent}", PERCENT, "Score against", is_share=True),
    Metric(SCORE, "score", points, "Points per game"),
    Metric(SCORE_RATIO, "against {opponent}", "{:.3g} times its score".format),
    Metric(f"{ORACLE}best_move", "best moves, network", PERCENT, "Best moves", "network", True),
    Metric(f"{ORACLE}best_move_search", "best moves, with search", PERCENT, "Best moves", "search", True),
    Metric(f"{HOLDOUT}policy_accuracy", "held-out moves predicted", EXACT_PERCENT, HELD_OUT, "moves predicted", True),
    Metric(f"{HOLDOUT}value_sign", "held-out winners predicted", EXACT_PERCENT, HELD_OUT, "winners predicted", True),
    Metric(f"{HOLDOUT}policy_loss", "held-out policy loss", DECIMALS),
    Metric(f"{HOLDOUT}value_error", "held-out value error", DECIMALS),
)
LEARNING = (
    Metric("train/policy_loss", "policy loss", DECIMALS, "Policy loss"),
    Metric("train/value_loss", "value loss", DECIMALS, "Value loss"),
    *(
        Metric(f"train/{name}_loss", f"{name} loss", DECIMALS, f"{name} loss".capitalize())
        for name in NetworkConfig.known_auxiliary_heads()
    ),
    Metric("train/policy_entropy", "policy entropy", DECIMALS, ENTROPY, "network"),
    Metric("train/grad_norm", "gradient norm", DECIMALS, "Gradient norm"),
)
DATA = (  # of self-play or, in its place, recorded games
    Metric("frames", "frames", compact),
    Metric("selfplay/simulations_per_s", "simulations/s", compact, "Simulations per second"),
    Metric("selfplay/games_per_s", "games/s", compact),
    Metric("selfplay/game_length", "plies per game", compact, "Plies per game"),
    Metric("selfplay/target_entropy", "", compact, ENTROPY, "search"),
    Metric("pretrain/epochs", "epochs", compact),
    Metric("pretrain/positions_per_s", "positions/s", compact),
)


def charts() -> dict[str, Sequence[Metric]]:
    """Returns the metrics of each chart by title: strength first, then learning."""
    grouped: dict[str, list[Metric]] = {}
    for metric in (*RESULTS, *LEARNING, *DATA):
        if metric.chart:
            grouped.setdefault(metric.chart, []).append(metric)
    return dict(grouped)
