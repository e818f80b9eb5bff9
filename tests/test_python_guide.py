"""The code of the guide to Python runs, in one namespace and with a tiny run."""

import re
from pathlib import Path

from alphagat import config_validation
from alphagat.training import loop, resume
from alphagat.training.setup import make_setups
from tests.training.tiny import tiny_config

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "python.md"


def test_the_blocks_run_in_order(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 7
    small = {"num_openings=64": "num_openings=2", "mcts:100": "mcts:1", "num_simulations=32": "num_simulations=2"}
    code = "\n".join(blocks)
    for text, smaller in small.items():
        assert text in code
        code = code.replace(text, smaller)
    monkeypatch.chdir(tmp_path)
    train = loop.train

    def train_little(config, folder):
        config_validation.validate(config)
        if config.init_from:
            resume.load_weights(config.init_from, make_setups(config)[0])
        train(tiny_config(), folder)

    monkeypatch.setattr(loop, "train", train_little)
    exec(compile(code, GUIDE.name, "exec"), {})
    said = capsys.readouterr().out
    assert "Agent(game=make_game('hex:7'), iteration=165)" in said
    assert "of 4 games, 95% interval" in said
