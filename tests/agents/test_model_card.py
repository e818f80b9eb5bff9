"""Model cards: front matter that reads as YAML, and what the run has measured."""

import json

import yaml

from alphagat import export
from alphagat.runs.metrics import METRICS_FILE
from tests.training.tiny import save_tiny_run

LINES = [
    {"iteration": 4, "frames": 256.0, "hours": 0.01, "eval/vs_random/win_rate": 0.5, "eval/elo": 0.0},
    {
        "iteration": 7,
        "frames": 448.0,
        "hours": 0.02,
        "eval/vs_random/win_rate": 0.75,
        "eval/vs_random/win_rate_low": 0.6,
        "eval/vs_random/win_rate_high": 0.85,
        "eval/elo": 190.0,
        "eval/elo_low": 90.0,
        "eval/elo_high": 300.0,
        "eval/oracle/best_move_search": 0.91,
    },
    {"iteration": 12, "frames": 768.0, "hours": 0.03, "eval/vs_random/win_rate": 1.0},
]


def test_the_card_tells_of_the_checkpoint_that_was_exported(tmp_path, capsys):
    run = save_tiny_run(tmp_path / "run", 7)
    (run / METRICS_FILE).write_text("".join(json.dumps(line) + "\n" for line in LINES))
    out, card = tmp_path / "tiny.safetensors", tmp_path / "README.md"
    assert export.run(["--workdir", str(run), "--out", str(out), "--card", str(card)]) == 0, capsys.readouterr().err
    _, front_matter, body = card.read_text().split("---\n", 2)
    assert yaml.safe_load(front_matter)["library_name"] == "alphagat"
    assert "hex" in yaml.safe_load(front_matter)["tags"]
    assert "after iteration 7, 448 frames, 0.02 hours" in body
    assert 'alphagat.load("tiny.safetensors")' in body
    assert "| against random | 75%  [60%, 85%] |" in body
    assert "| Elo | 190  [90, 300] |" in body
    assert "| best moves, with search | 91% |" in body
    assert "| `network.width` | `8` |" in body
    assert "`search.algorithm`" not in body  # as by default
