"""Every file in configs/ is a valid run, and the smoke run trains."""

from pathlib import Path

import jax
import pytest

from alphagat import config_files, config_validation
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.players import make_opponent
from alphagat.runs.metrics import read_metrics
from alphagat.runtime import sharding
from alphagat.training.loop import train
from alphagat.training.setup import Run, make_setups
from alphagat.training.state import state_shapes
from tests.training.tiny import tiny_config

FOLDER = Path(__file__).parents[1] / "configs"
FILES = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "__init__.py")


def test_configs_exist():
    assert {"smoke.py", "quickstart.py"} <= set(FILES)


def test_an_interrupt_is_no_error_of_the_config(tmp_path):
    (tmp_path / "slow.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        config_files.load_config(str(tmp_path / "slow.py"))


@pytest.mark.parametrize("name", FILES)
def test_config_builds_a_run(name: str):
    config = config_files.load_config(str(FOLDER / name))
    config_validation.validate(config)
    run = Run(config, sharding.make_mesh(1), make_setups(config))
    leaves = jax.tree.leaves(state_shapes(run))
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) < 4 * 2**30
    for setup in run.boards:
        assert setup.plan.num_games == config.selfplay.num_games, "nothing needs rounding"
        assert setup.plan.num_groups % 8 == 0, "eight CPU devices, the default, share the groups"
        for opponent in set(config.evaluation.opponents) - {"previous", "solver"}:
            assert make_opponent(setup.game, opponent).name == opponent
        if config.evaluation.every and setup.game.num_players == 2:
            num_openings = config.evaluation.num_games // 2
            assert len(distinct_openings(setup.game, num_openings, config.seed).actions) == num_openings


@pytest.mark.parametrize("name", FILES)
def test_config_starts_with_its_command(name: str):
    text = (FOLDER / name).read_text()
    assert text.startswith('"""')
    assert f"alphagat train {name.removesuffix('.py')}" in text


def test_smoke_trains(tmp_path):
    """Runs the config without matches, whose programs take most of the time; other tests cover them."""
    config = config_files.load_config(str(FOLDER / "smoke.py"), ["--config.evaluation.every=0"])
    train(config, tmp_path / "smoke")
    lines = read_metrics(tmp_path / "smoke")
    assert [line["iteration"] for line in lines] == list(range(1, config.num_iterations + 1))
    assert lines[-1]["train/policy_loss"] > 0
    assert not any("results" in line for line in lines)
    assert (tmp_path / "smoke" / "checkpoints" / str(config.num_iterations)).is_dir()


@pytest.mark.parametrize("board", ["2048:2", "gardner_chess"])
def test_every_family_trains(board: str, tmp_path):
    """Runs a few audited iterations of the real loop, with updates. Other tests train the other families."""
    config = tiny_config()
    config.boards, config.num_iterations, config.mesh.data = (board,), 3, 1
    config.selfplay.max_plies = config.selfplay.plies_per_iteration
    config.selfplay.num_games = config.replay.min_size = config.learner.batch_size = 16
    config.evaluation.every = 0
    train(config, tmp_path)
    line = read_metrics(tmp_path)[-1]
    assert line["train/policy_loss"] > 0
    assert line["train/value_loss"] >= 0
    assert line["selfplay/truncated"] <= 1
