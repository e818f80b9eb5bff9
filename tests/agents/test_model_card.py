"""Model cards: valid YAML front matter, and the results of the run."""

import json

import yaml

from alphagat.cli import export
from alphagat.runs.metrics import METRICS_FILE, Result
from tests.training.tiny import change_config, save_tiny_run


def line(iteration: int, *results: Result) -> dict:
    fields = [each._asdict() for each in results]
    times = {"frames": 64.0 * iteration, "hours": 0.0025 * iteration}
    return {"iteration": iteration, **times, "results": fields, "num_games": 40}


LINES = [
    line(4, Result("win_rate", "hex:2", 0.5, opponent="random"), Result("elo", "hex:2", 0.0)),
    line(
        7,
        Result("win_rate", "hex:2", 0.75, 0.6, 0.85, "random"),
        Result("elo", "hex:2", 190.0, 90.0, 300.0),
        Result("oracle/best_move_search", "hex:2", 0.91),
    ),
    line(12, Result("win_rate", "hex:2", 1.0, opponent="random")),
]


def test_the_card_describes_the_exported_checkpoint(tmp_path, capsys):
    run = save_tiny_run(tmp_path / "run", 7)
    change_config(run, evaluation={"num_simulations": 3})
    (run / METRICS_FILE).write_text("".join(json.dumps(each) + "\n" for each in LINES))
    out, card = tmp_path / "tiny.safetensors", tmp_path / "README.md"
    assert export.run(["--workdir", str(run), "--out", str(out), "--card", str(card)]) == 0, capsys.readouterr().err
    again = ["--workdir", str(run / "checkpoints" / "7"), "--out", str(tmp_path / "again.safetensors")]
    assert export.run([*again, "--card", str(tmp_path / "again.md")]) == 0, capsys.readouterr().err
    assert "| against random | 75% (60% to 85%) |" in (tmp_path / "again.md").read_text()
    _, front_matter, body = card.read_text().split("---\n", 2)
    assert yaml.safe_load(front_matter)["library_name"] == "alphagat"
    assert yaml.safe_load(front_matter)["tags"][-1] == "hex"
    assert "after iteration 7, 448 frames, 0.02 hours" in body
    assert 'alphagat.load("tiny.safetensors")' in body
    assert "| against random | 75% (60% to 85%) |" in body
    assert "| Elo | 190 (90 to 300) |" in body
    assert "| best moves, with search | 91% |" in body
    assert "| `network.width` | `8` |" in body
    assert "with 3 simulations per move" in body
    assert "`search.algorithm`" not in body  # the default


def test_the_card_of_a_mean_has_no_results_of_one_network(tmp_path, capsys):
    runs = [save_tiny_run(tmp_path / name, 7) for name in ("run", "other")]
    (runs[0] / METRICS_FILE).write_text("".join(json.dumps(each) + "\n" for each in LINES))
    out, card = tmp_path / "mean.safetensors", tmp_path / "README.md"
    words = [str(runs[0]), "--average", str(runs[1]), "--out", str(out), "--card", str(card)]
    assert export.run(words) == 0, capsys.readouterr().err
    text = card.read_text()
    assert f"Its parameters are the mean of those of this iteration and of {runs[1]}." in text
    assert "448 frames" not in text
    assert "against random" not in text
